"""Whether a text file may hold numbers that need a second look.

These are long numbers (:data:`amlb_ext.core.numbers.LONG_NUMBER`) and numbers with leading zeros.
Most files hold neither, and are to be read as fast as before: the whole file is looked through as
an array of bytes, which is several times faster than a regular expression.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from amlb_ext.core.numbers import FLOAT_DIGITS

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
    """Whether a run of digits and points is a long number or has leading zeros."""
    point = content == ord(".")
    part = (content - np.uint8(48) < 10) | point
    edges = np.flatnonzero(part[1:] != part[:-1]) + 1
    starts, ends = edges[::2], edges[1::2]  # the content begins and ends with a line end
    points = np.append(np.flatnonzero(point), len(content))
    return _has_long(content, points, starts, ends) or _has_leading_zero(content, starts, ends)


def _has_long(
    content: np.ndarray, points: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> bool:
    is_candidate = ends - starts >= 16
    starts, ends = starts[is_candidate], ends[is_candidate]
    whole = np.minimum(points[np.searchsorted(points, starts)], ends) - starts
    if (whole >= 16).any():
        return True
    first = starts.copy()  # the first significant digit
    for _ in range(_OVERLAP):
        is_ahead = (first < ends) & ((content[first] == ord("0")) | (content[first] == ord(".")))
        if not is_ahead.any():
            break
        first += is_ahead
    inside = np.searchsorted(points, ends) - np.searchsorted(points, first)
    return bool((ends - first - inside > FLOAT_DIGITS).any())


def _has_leading_zero(content: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> bool:
    is_zero = (ends - starts > 1) & (content[starts] == ord("0"))
    starts, ends = starts[is_zero], ends[is_zero]
    is_candidate = content[starts + 1] != ord(".")
    starts, ends = starts[is_candidate], ends[is_candidate]
    starts = starts - np.isin(content[starts - 1], _SIGNS)
    is_field = np.isin(content[starts - 1], _BEFORE_FIELD) & np.isin(content[ends], _AFTER_FIELD)
    return bool(is_field.any())
