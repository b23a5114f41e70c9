"""Whether a text file may hold numbers that need a second look.

These are long numbers (:data:`amlb_ext.core.numbers.LONG_NUMBER`) and numbers with leading zeros.
Most files hold neither, and are to be read as fast as before: the whole file is looked through as
an array of bytes, which is some thirty times faster than a regular expression.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

_BLOCK = 1 << 22
#: The last line of a block is seen again at the head of the next, or the end of a long one.
_OVERLAP = 512
_BEFORE_FIELD = np.frombuffer(b',"\n \t', dtype=np.uint8)
_AFTER_FIELD = np.frombuffer(b',"\r\n \t', dtype=np.uint8)
_SIGNS = np.frombuffer(b"+-", dtype=np.uint8)


def may_hold_odd_numbers(path: Path) -> bool:
    """Whether a file may hold long numbers or numbers with leading zeros.

    Numbers inside texts count too: yes means to look closely, no is certain.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.csv"
    ...     for text in ("0.012345678901234567", "007", "1234567890123456"):
    ...         _ = path.write_text(f"x\\n{text}\\n")
    ...         may_hold_odd_numbers(path)
    False
    True
    True
    """
    tail = b""
    with path.open("rb") as handle:
        while block := handle.read(_BLOCK):
            content = tail + block
            if _is_odd(np.frombuffer(b"\n" + content + b"\n", dtype=np.uint8)):
                return True
            tail = content[max(content.rfind(b"\n"), len(content) - _OVERLAP) :]
    return False


def _is_odd(content: np.ndarray) -> bool:
    """Look at every run of digits and points."""
    digit = (content - np.uint8(48)) < 10
    point = content == ord(".")
    edges = np.flatnonzero(np.diff(digit | point)) + 1
    starts, ends = edges[::2], edges[1::2]  # the content begins and ends with a line end
    return _has_long(content, digit, starts, ends) or _has_leading_zero(content, starts, ends)


def _has_long(content: np.ndarray, digit: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> bool:
    is_candidate = ends - starts >= 16
    starts, ends = starts[is_candidate], ends[is_candidate]
    if not len(starts):
        return False
    significant = np.flatnonzero(digit & (content != ord("0")))
    place = np.searchsorted(significant, starts)
    first = np.append(significant, len(content))[place]
    before = np.concatenate([[0], np.cumsum(digit, dtype=np.int64)])
    digits = np.where(first < ends, before[ends] - before[np.minimum(first, ends)], 0)
    is_whole = before[ends] - before[starts] == ends - starts
    return bool(((digits > 17) | (is_whole & (digits > 15))).any())


def _has_leading_zero(content: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> bool:
    is_zero = (ends - starts > 1) & (content[starts] == ord("0"))
    starts, ends = starts[is_zero], ends[is_zero]
    is_candidate = content[starts + 1] != ord(".")
    starts, ends = starts[is_candidate], ends[is_candidate]
    starts = starts - np.isin(content[starts - 1], _SIGNS)
    is_field = np.isin(content[starts - 1], _BEFORE_FIELD) & np.isin(content[ends], _AFTER_FIELD)
    return bool(is_field.any())
