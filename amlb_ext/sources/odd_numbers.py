"""Whether a text file may hold numbers that need a second look.

These are long numbers (:data:`amlb_ext.core.numbers.LONG_NUMBER`) and numbers with leading zeros.
Most files hold neither, and are to be read as fast as before. So the whole file is searched as an
array of bytes, which is several times faster than a regular expression.

Notation
--------
content : (n,) uint8, a block of the file between two line ends
starts, ends : (m,) positions of the runs of digits and points in it; a run is content[start:end]
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from amlb_ext.core.numbers import FLOAT_DIGITS

_BLOCK_BYTES = 1 << 22
#: The last line of a block is seen again at the head of the next, or the end of a long one.
_OVERLAP_BYTES = 512
#: Whole numbers of fewer digits are exact in float64.
_LONG_INTEGER_DIGITS = 16
_POINT, _ZERO = ord("."), ord("0")
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
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            text = tail + block
            if _holds_odd_number(np.frombuffer(b"\n" + text + b"\n", dtype=np.uint8)):
                return True
            last_line = text.rfind(b"\n")
            tail = text[max(last_line, len(text) - _OVERLAP_BYTES) :]
    return False


def _holds_odd_number(content: np.ndarray) -> bool:
    is_point = content == _POINT
    # A byte below "0" wraps around to a large number, so one comparison finds all ten digits.
    is_digit = content - np.uint8(_ZERO) < 10
    is_part = is_digit | is_point
    # The content begins and ends with a line end, so every run has a start and an end.
    edges = np.flatnonzero(is_part[1:] != is_part[:-1]) + 1
    starts, ends = edges[::2], edges[1::2]
    points = np.append(np.flatnonzero(is_point), len(content))
    if _has_long_number(content, points, starts, ends):
        return True
    return _has_leading_zero(content, starts, ends)


def _has_long_number(
    content: np.ndarray, points: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> bool:
    is_candidate = ends - starts >= _LONG_INTEGER_DIGITS
    starts, ends = starts[is_candidate], ends[is_candidate]
    first_points = points[np.searchsorted(points, starts)]
    digits_before_point = np.minimum(first_points, ends) - starts
    if (digits_before_point >= _LONG_INTEGER_DIGITS).any():
        return True
    # All runs step over their leading zeros together, a byte at a time.
    first_significant = starts.copy()
    for _ in range(_OVERLAP_BYTES):
        byte = content[first_significant]
        is_leading = (first_significant < ends) & ((byte == _ZERO) | (byte == _POINT))
        if not is_leading.any():
            break
        first_significant += is_leading
    points_inside = np.searchsorted(points, ends) - np.searchsorted(
        points, first_significant
    )
    significant_digits = ends - first_significant - points_inside
    return bool((significant_digits > FLOAT_DIGITS).any())


def _has_leading_zero(
    content: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> bool:
    """Whether a field is a number such as ``007``; ``0.7`` and ``x007`` are none."""
    starts_with_zero = (ends - starts > 1) & (content[starts] == _ZERO)
    starts, ends = starts[starts_with_zero], ends[starts_with_zero]
    is_candidate = content[starts + 1] != _POINT
    starts, ends = starts[is_candidate], ends[is_candidate]
    starts = starts - np.isin(content[starts - 1], _SIGNS)
    begins_field = np.isin(content[starts - 1], _BEFORE_FIELD)
    ends_field = np.isin(content[ends], _AFTER_FIELD)
    return bool((begins_field & ends_field).any())
