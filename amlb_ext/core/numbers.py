"""Columns of numbers on their way to ``float64``, and different numbers that become equal there.

The numbers of a table end as ``float64``, which distinguishes about 17 digits. Whole numbers beyond
2**53 and decimals of more digits may become equal: one order number and the next. A column in which
that would happen is read as Python's exact numbers (``object`` of ``int``, ``Decimal`` and
``float``), and kept so until :func:`amlb_ext.core.tables.make_task` decides what becomes of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pandas as pd

#: Integers beyond this are not exact in float64.
MAX_EXACT_INTEGER = 2**53
#: Digits that a program needs to write any float64 so that it reads back unchanged.
FLOAT_DIGITS = 17

#: A whole number of 16 digits or more, or any number of more than 17 significant digits.
LONG_NUMBER = re.compile(r"(?<![\d.])0*(?:[1-9]\d{15}|\.?0*[1-9](?:\.?\d){17})")


@dataclass(frozen=True)
class FloatColumn:
    """A column as ``float64``, and how many distinct values it had before and has now.

    Attributes
    ----------
    values : Series of float64
    before, after : int
        Numbers of distinct values; both 0 where every value is exact.
    is_whole : bool
        Whether all values are whole numbers.
    is_rounded : bool
        Whether some whole number is not exact in ``float64``.
    """

    values: pd.Series
    before: int = 0
    after: int = 0
    is_whole: bool = False
    is_rounded: bool = False

    @property
    def lost(self) -> int:
        """How many distinct values became equal to another."""
        return self.before - self.after


def convert_to_float64(values: pd.Series) -> FloatColumn:
    """Return numbers as ``float64``, with the count of distinct values that this loses.

    Parameters
    ----------
    values : Series
        Of a numeric type, or ``object`` of numbers. Text counts as missing.

    Examples
    --------
    >>> floats = convert_to_float64(pd.Series([2**53, 2**53 + 1]))
    >>> floats.before, floats.after, floats.is_whole
    (2, 1, True)
    """
    is_present = values.notna()
    present = values[is_present]
    if holds_numbers(values):
        floats = pd.Series(
            np.nan, index=values.index, name=values.name, dtype="float64"
        )
        floats[is_present] = [float(value) for value in present]
    else:
        floats = pd.to_numeric(values, errors="coerce").astype("float64")
        # The common case: nothing can be lost, and nothing need be counted.
        if not pd.api.types.is_integer_dtype(values):
            return FloatColumn(floats)
        if not (floats.abs() >= MAX_EXACT_INTEGER).any():
            return FloatColumn(floats)
    distinct = {_normalize_number(value) for value in present}
    integers = {value for value in distinct if isinstance(value, int)}
    return FloatColumn(
        values=floats,
        before=len(distinct),
        after=int(floats.nunique()),
        is_whole=all(_is_whole_float(value) for value in distinct - integers),
        is_rounded=any(int(float(value)) != value for value in integers),
    )


def _is_whole_float(value: object) -> bool:
    return isinstance(value, float) and value.is_integer()


def holds_numbers(values: pd.Series) -> bool:
    """Whether an ``object`` column holds numbers alone; an empty one does not."""
    if not pd.api.types.is_object_dtype(values):
        return False
    present = values[values.notna()]
    return len(present) > 0 and all(_is_number(value) for value in present)


def narrow_to_float64(values: pd.Series) -> pd.Series:
    """Convert an ``object`` column of numbers to ``float64`` if distinct values stay distinct.

    Else it stays ``object``, each number in one normal form.

    Raises
    ------
    OverflowError
        A whole number of more than 308 digits.

    Examples
    --------
    >>> narrow_to_float64(pd.Series([Decimal("0.5"), 2], dtype=object)).tolist()
    [0.5, 2.0]
    >>> narrow_to_float64(pd.Series([2**60, Decimal(2**60 + 1)], dtype=object)).tolist()
    [1152921504606846976, 1152921504606846977]
    """
    floats = convert_to_float64(values)
    if not floats.lost:
        return floats.values
    is_present = values.notna()
    exact = [_normalize_number(value) for value in values[is_present]]
    return replace_as_objects(values, is_present, exact)


def count_not_finite(values: np.ndarray) -> int:
    """Return how many rows hold a number that is not finite.

    Parameters
    ----------
    values : ndarray of shape (n,) or (n, C)

    Examples
    --------
    >>> count_not_finite(np.array([[0.2, 0.8], [np.nan, 1.0]]))
    1
    """
    is_finite = np.isfinite(values).reshape(len(values), -1)
    return int((~is_finite.all(axis=1)).sum())


def replace_as_objects(
    values: pd.Series, chosen: pd.Series, numbers: Sequence[object]
) -> pd.Series:
    """Return a column as ``object``, with exact numbers in the rows where ``chosen`` holds.

    Assigning them to a Series of ``object`` would convert them to an array first, and so to
    floats.
    """
    with_none = values.astype(object).where(values.notna(), None)
    objects = with_none.to_numpy(dtype=object, copy=True)
    objects[chosen.to_numpy()] = numbers
    return pd.Series(objects, index=values.index, name=values.name, dtype=object)


def parse_number(text: str) -> float | int | Decimal:
    """Return the number that a text writes: exact where it has more digits than ``float64``.

    Raises
    ------
    ValueError
        The text is no number.

    Examples
    --------
    >>> for text in ("0.5", "9007199254740993", "0.100000000000000000001"):
    ...     parse_number(text)
    0.5
    9007199254740993
    Decimal('0.100000000000000000001')
    """
    value = float(text)
    if len(text) < 16 or not LONG_NUMBER.search(text) or not np.isfinite(value):
        return value
    return _normalize_number(Decimal(text.strip()))


def _normalize_number(value: object) -> float | int | Decimal:
    """Return one form of each number, so that equal numbers of all types have equal hashes."""
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, int | np.integer):
        return int(value)
    assert isinstance(value, Decimal)
    if not value.is_finite():
        return float(value)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # a text for infinity and NaN only
    # 2.50 has the digits 250 and the exponent -2; without the last zero they are 25 and -1.
    text = "".join(str(digit) for digit in digits).rstrip("0")
    exponent += len(digits) - len(text)
    is_zero = not text
    if exponent >= 0 or is_zero:
        return int(value)
    if len(text) <= FLOAT_DIGITS:
        return float(value)
    significant_digits = tuple(int(digit) for digit in text)
    return Decimal((sign, significant_digits, exponent))


def _is_number(value: object) -> bool:
    # bool is a subclass of int
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float | Decimal | np.number)
