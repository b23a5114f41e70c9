"""Whether a text file may hold numbers that need a second look.

These are long numbers (:data:`amlb_ext.core.numbers.LONG_NUMBER`) and numbers with leading zeros.
Most files hold neither, and are to be read as fast as before. So the whole file is searched as an
array of bytes, which is several times faster than a regular expression, if denser to read.

Notation
--------
content : (n,) uint8, a block of the file between two line ends
run : digits and points that stand together in it, content[start:end]
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from amlb_ext.core.numbers import FLOAT_DIGITS

_BLOCK_BYTES = 1 << 22
#: The last line of a block is seen again at the head of the next, or the end of a long one.
_OVERLAP_BYTES = 512
#: Whole numbers of fewer digits are exact in float64.
_LONG_INTEGER_DIGITS = 16
_POINT = ord(".")
_ZERO = ord("0")
_BEFORE_FIELD = np.frombuffer(b',;|"\n \t', dtype=np.uint8)
_AFTER_FIELD = np.frombuffer(b',;|"\r\n \t', dtype=np.uint8)
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
            # Line ends around it spare every search below the question of where the block ends.
            content = np.frombuffer(b"\n" + text + b"\n", dtype=np.uint8)
            if _holds_odd_number(content):
                return True
            last_line = text.rfind(b"\n")
            tail_start = max(last_line, len(text) - _OVERLAP_BYTES)
            tail = text[tail_start:]
    return False


@dataclass(frozen=True)
class _Runs:
    """Runs of digits and points: where they begin, and where the first byte after them stands.

    Attributes
    ----------
    starts, ends : ndarray of shape (m,), int64
    """

    starts: np.ndarray
    ends: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        return self.ends - self.starts

    def select(self, mask: np.ndarray) -> _Runs:
        return _Runs(self.starts[mask], self.ends[mask])


def _holds_odd_number(content: np.ndarray) -> bool:
    is_point = content == _POINT
    # A byte below "0" wraps around to a large number, so one comparison finds all ten digits.
    is_digit = content - np.uint8(_ZERO) < 10
    is_part = is_digit | is_point
    # The content begins and ends with a line end, so every run has a start and an end.
    is_edge = is_part[1:] != is_part[:-1]
    edges = np.flatnonzero(is_edge) + 1
    runs = _Runs(starts=edges[::2], ends=edges[1::2])
    # One more behind the last byte, so that every run has a point at its start or after it.
    points = np.append(np.flatnonzero(is_point), len(content))
    if _has_long_number(content, runs, points):
        return True
    return _has_leading_zero(content, runs)


def _has_long_number(content: np.ndarray, runs: _Runs, points: np.ndarray) -> bool:
    # Shorter runs are exact in float64, with a point or without.
    candidates = runs.select(runs.lengths >= _LONG_INTEGER_DIGITS)
    starts, ends = candidates.starts, candidates.ends
    first_points = points[np.searchsorted(points, starts)]
    integer_ends = np.minimum(first_points, ends)
    integer_digits = integer_ends - starts
    if (integer_digits >= _LONG_INTEGER_DIGITS).any():
        return True
    # All runs step over their leading zeros together, a byte at a time.
    significant_starts = starts.copy()
    for _ in range(_OVERLAP_BYTES):
        byte = content[significant_starts]
        is_insignificant = (byte == _ZERO) | (byte == _POINT)
        is_leading = is_insignificant & (significant_starts < ends)
        if not is_leading.any():
            break
        significant_starts += is_leading
    # A point among the significant digits is no digit.
    points_before = np.searchsorted(points, significant_starts)
    points_inside = np.searchsorted(points, ends) - points_before
    significant_digits = ends - significant_starts - points_inside
    return bool((significant_digits > FLOAT_DIGITS).any())


def _has_leading_zero(content: np.ndarray, runs: _Runs) -> bool:
    """Whether a field is a number such as ``007``; ``0.7`` and ``x007`` are none."""
    starts_with_zero = content[runs.starts] == _ZERO
    candidates = runs.select(starts_with_zero & (runs.lengths > 1))
    second_bytes = content[candidates.starts + 1]
    candidates = candidates.select(second_bytes != _POINT)
    # A sign before the digits belongs to the field.
    has_sign = np.isin(content[candidates.starts - 1], _SIGNS)
    field_starts = candidates.starts - has_sign
    begins_field = np.isin(content[field_starts - 1], _BEFORE_FIELD)
    ends_field = np.isin(content[candidates.ends], _AFTER_FIELD)
    return bool((begins_field & ends_field).any())
