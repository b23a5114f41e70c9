"""JSON files that carry the sha256 of their own content, so that any changed byte shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from amlb_ext.core.json_values import to_json_values

#: Key of the checksum.
SEAL = "sha256"


class SealedFile(NamedTuple):
    """A sealed file as it was read.

    Attributes
    ----------
    content : dict or None
        Without the seal; None when the file is missing or damaged.
    sealed : bool
        Whether it carries a seal; one that an older version wrote does not.
    """

    content: dict[str, Any] | None
    sealed: bool


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


def open_sealed(path: Path, known: Collection[str]) -> SealedFile:
    """Read a file that :func:`sealed_text` wrote.

    The bytes must be those that the content gives, so a changed space counts too. A file without
    a seal must be written the same way and hold ``known`` keys only: a seal whose own key was
    damaged is no missing seal.

    Parameters
    ----------
    path : Path
    known : collection of str
        Keys that a file without a seal may have.

    Returns
    -------
    SealedFile
    """
    # brackets without end, as a stranger's file may have them, end in a RecursionError
    try:
        raw = path.read_bytes()
        content = json.loads(raw)
    except (OSError, ValueError, RecursionError):
        return SealedFile(None, False)
    if not isinstance(content, dict):
        return SealedFile(None, False)
    # the bytes are made again from the content, so that no reordering or space is overlooked
    sealed = content.pop(SEAL, None) is not None
    if sealed:
        is_whole = raw == sealed_text(content).encode()
    else:
        has_known_keys = set(content) <= set(known)
        is_whole = has_known_keys and raw == json_text(content).encode()
    return SealedFile(content if is_whole else None, sealed)
