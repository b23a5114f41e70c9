"""Numbers on their way to ``float64``, and those that would become one on the way.

A table's numbers end as ``float64``, which tells about 17 digits apart. Whole numbers beyond
2**53 and decimals of more digits may become equal. A column in which that would happen is read
as Python's exact numbers (``object`` of ``int``, ``Decimal`` and ``float``) and kept so until
:func:`amlb_ext.core.tables.make_task` decides what becomes of it.
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
#: float64 tells all decimals of so many digits apart that a program wrote from a float64.
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
    """Return numbers as ``float64`` and say what that loses.

    Parameters
    ----------
    values : Series
        Of a numeric type, or ``object`` of numbers; text counts as missing.

    Examples
    --------
    >>> floats = convert_to_float64(pd.Series([2**53, 2**53 + 1]))
    >>> floats.before, floats.after, floats.is_whole
    (2, 1, True)
    """
    present = values[values.notna()]
    if holds_numbers(values):
        floats = pd.Series(np.nan, index=values.index, name=values.name, dtype="float64")
        floats[values.notna()] = [float(value) for value in present]
    else:
        floats = pd.to_numeric(values, errors="coerce").astype("float64")
        is_integer = pd.api.types.is_integer_dtype(values)
        if not is_integer or not (floats.abs() >= MAX_EXACT_INTEGER).any():
            return FloatColumn(floats)
    exact = {_canonical(value) for value in present}
    whole = {value for value in exact if isinstance(value, int)}
    is_whole = all(isinstance(v, float) and v.is_integer() for v in exact - whole)
    is_rounded = any(int(float(value)) != value for value in whole)
    return FloatColumn(floats, len(exact), int(floats.nunique()), is_whole, is_rounded)


def holds_numbers(values: pd.Series) -> bool:
    """Whether an ``object`` column holds numbers alone; an empty one does not."""
    if not pd.api.types.is_object_dtype(values):
        return False
    present = values[values.notna()]
    return len(present) > 0 and all(_is_number(value) for value in present)


def narrow_to_float64(values: pd.Series) -> pd.Series:
    """Return an ``object`` column of numbers as ``float64``, unless distinct values become equal.

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
    present = values.notna()
    return replace_as_objects(values, present, [_canonical(value) for value in values[present]])


def replace_as_objects(
    values: pd.Series, chosen: pd.Series, numbers: Sequence[object]
) -> pd.Series:
    """Return a column as ``object`` with other numbers where ``chosen`` holds, as they are.

    Assigning them to a Series of ``object`` would make an array of them first, and so floats.
    """
    objects = values.astype(object).where(values.notna(), None).to_numpy(dtype=object, copy=True)
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
    return _canonical(Decimal(text.strip()))


def _canonical(value: object) -> float | int | Decimal:
    """One form for each number, so that equal numbers are equal and hash alike."""
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, int | np.integer):
        return int(value)
    assert isinstance(value, Decimal)
    if not value.is_finite():
        return float(value)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0")
    exponent += len(digits) - len(text)
    if exponent >= 0 or not text:
        return int(value)
    if len(text) <= FLOAT_DIGITS:
        return float(value)
    return Decimal((sign, tuple(map(int, text)), exponent))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal | np.number) and not isinstance(value, bool)
