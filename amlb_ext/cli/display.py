"""What several commands print."""

from __future__ import annotations

import json
from typing import Any


def print_json(value: Any) -> None:
    """Print a result as JSON; what JSON lacks, such as a path, becomes text."""
    print(json.dumps(value, indent=2, sort_keys=True, default=str))
