"""What several commands print."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What a command prints; one that returns it has the flags ``--quiet`` and ``--json``.

    Attributes
    ----------
    text : callable
        Returns what people read.
    entry : callable
        Returns what ``--json`` prints: JSON, or a value of which it is made.
    status : int
        The exit status.
    is_urgent : bool
        Whether the text is printed with ``--quiet``, too, as it is where the status is not 0: what
        failed is never silent.
    """

    text: Callable[[], str]
    entry: Callable[[], Any]
    status: int = 0
    is_urgent: bool = False

    def show(self, *, quiet: bool, json: bool) -> int:
        """Print the answer in the form that was asked for, and return the exit status."""
        if json:
            entry = self.entry()
            if not isinstance(entry, str):
                # what JSON lacks, such as a path, becomes text
                dumps = json_format.dumps
                entry = dumps(entry, indent=2, sort_keys=True, default=str) + "\n"
            print(entry, end="")
        elif self.is_urgent or self.status or not quiet:
            text = self.text()
            print(text, end="" if text.endswith("\n") else "\n")
        return self.status
