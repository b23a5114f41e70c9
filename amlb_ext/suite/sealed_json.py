"""JSON files that carry the sha256 of their own content, so that any changed byte shows."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amlb_ext.core.json_values import to_json_values

#: Key of the checksum.
SEAL = "sha256"
#: Its line, among the keys of the outermost level; keys further in stand further right.
_SEAL_LINE = re.compile(rb'^ "sha256": "([0-9a-f]{64})"(,?)\n', flags=re.MULTILINE)


def json_text(entry: object) -> str:
    """Return deterministic JSON: sorted keys, NaN and infinity as ``null``.

    Examples
    --------
    >>> print(json_text({"b": float("nan"), "a": (1, 2)}), end="")
    {
     "a": [
      1,
      2
     ],
     "b": null
    }
    """
    return _text_of(to_json_values(entry))


def _text_of(values: object) -> str:
    """Return the text of values that are JSON's already."""
    text = json.dumps(
        values, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=True
    )
    return text + "\n"


def sealed_text(content: Mapping[str, Any]) -> str:
    """Return deterministic JSON with the sha256 of the same JSON without that key.

    Examples
    --------
    >>> print(sealed_text({"b": 1}), end="")
    {
     "b": 1,
     "sha256": "54af79f2c647b47dcacc5b5195c9e90556e695b45c08d2208e00235b914313c8"
    }
    """
    values = to_json_values(content)
    seal = hashlib.sha256(_text_of(values).encode()).hexdigest()
    return _text_of({**values, SEAL: seal})


def open_sealed(path: Path) -> dict[str, Any] | None:
    """Read a file that :func:`sealed_text` wrote.

    The bytes must be those that the content gives, so a changed space counts too.

    Parameters
    ----------
    path : Path

    Returns
    -------
    dict or None
        Without the seal; None when the file is missing or damaged.

    Raises
    ------
    PermissionError
    """
    # brackets without end, as a stranger's file may have them, end in a RecursionError
    try:
        raw = path.read_bytes()
        content = json.loads(raw)
        line = _SEAL_LINE.search(raw)
        if line is None:
            return None
        del content[SEAL]
    except PermissionError:
        # what may not be read is not damaged
        raise
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    # The text that was sealed is this one without the line, and without a comma before a last one.
    before, after = raw[: line.start()], raw[line.end() :]
    if not line[2]:
        before = before.removesuffix(b",\n") + b"\n"
    is_whole = hashlib.sha256(before + after).hexdigest() == line[1].decode()
    return content if is_whole else None
