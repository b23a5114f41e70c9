"""Columns of numbers on their way to ``float64``, and different numbers that become equal there.

The numbers of a table end as ``float64``, which distinguishes about 17 digits. Whole numbers beyond
2**53 and decimals of more digits may become equal: one order number and the next. A column in which
that would happen is read as Python's exact numbers (``object`` of ``int``, ``Decimal`` and
``float``), and kept so until :func:`amlb_ext.core.tables.make_task` decides what becomes of it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError

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
    others = distinct - integers
    return FloatColumn(
        values=floats,
        before=len(distinct),
        after=int(floats.nunique()),
        is_whole=all(isinstance(one, float) and one.is_integer() for one in others),
        is_rounded=any(int(float(value)) != value for value in integers),
    )


def holds_numbers(values: pd.Series) -> bool:
    """Whether an ``object`` column holds numbers alone; an empty one does not."""
    if not pd.api.types.is_object_dtype(values):
        return False
    present = values[values.notna()]
    return len(present) > 0 and all(_is_number(value) for value in present)


def is_numeric(values: pd.Series) -> bool:
    """Whether a column holds numbers, in a type for them or as objects; truth values are none."""
    if pd.api.types.is_bool_dtype(values):
        return False
    return pd.api.types.is_numeric_dtype(values) or holds_numbers(values)


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


def without_mask(values: Any) -> Any:
    """Return a masked array with NaN in its masked places; anything else as it is.

    Examples
    --------
    >>> without_mask(np.ma.masked_array([1, 2], mask=[False, True])).tolist()
    [1, nan]
    """
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(object), np.nan)
    return values


def plain_floats(values: Any) -> np.ndarray:
    """Return numbers as ``float64``; what is missing or masked becomes NaN.

    numpy by itself drops imaginary parts and masks, and counts dates and durations in units of its
    own.

    Parameters
    ----------
    values : array-like

    Raises
    ------
    TypeError
        Complex numbers, dates or durations.
    ValueError
        A text that is no number.

    Examples
    --------
    >>> plain_floats(np.ma.masked_array([1, 2], mask=[False, True])).tolist()
    [1.0, nan]
    """
    values = without_mask(values)
    kind = np.asarray(values).dtype.kind
    if kind in "cmM":
        raise TypeError(f"{values!r:.60} are no real numbers")
    return np.asarray(values, dtype=float)


def are_rounded(given: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return which numbers are those of a column, but for the digits that a file leaves out.

    Those may be a hundred-thousandth of a number, and no more than a thousandth of what the
    column's numbers differ by: otherwise, far from 0, any row would pass for any other.

    Parameters
    ----------
    given, wanted : ndarray of shape (n,)

    Examples
    --------
    >>> times = np.array([1.7e9, 1.7e9 + 60])
    >>> are_rounded(times[::-1], times).tolist(), are_rounded(times + 0.01, times).tolist()
    ([False, False], [True, True])
    """
    sizes = np.abs(wanted)
    spread = float(np.nanstd(wanted)) if np.isfinite(wanted).any() else 0.0
    with np.errstate(invalid="ignore"):
        # beside zero a share of the number is none, so there the largest counts
        room = 1e-5 * sizes + 1e-9 * np.nanmax(sizes, initial=0.0)
        room = np.minimum(room, 1e-3 * spread)
        # AMLB's encoded frameworks hold numbers in single precision
        single = given.astype(np.float32)
        if np.array_equal(single, given, equal_nan=True):
            wanted = wanted.astype(np.float32)
        return np.asarray((given == wanted) | (np.abs(given - wanted) <= room))


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


# Numbers as people write them: currencies, thousands, per cent, brackets, units, times of day.
#
# A cell alone may be read in two ways: 1,234 has a thousands separator or a decimal comma. So the
# texts of a column are read together, and a column whose texts contradict each other is refused.


Number = float | int | Decimal

#: Blanks of typesetters, and signs that look like a minus or an apostrophe.
_PLAIN = str.maketrans(
    "\u00a0\u2007\u2009\u202f\u2212\u2013\ufe63\uff0d\u2019", "    ----'"
)
_CELL = re.compile(
    r"([+-]?)\s*(\D*?)\s*([+-]?)\s*"
    # behind a letter a point ends a word, as in Rs.500
    r"(\d(?:[\d.,' ]*\d)?[.,]?|(?<![^\W\d_])[.,]\d+)"
    r"([eE][+-]?\d+)?\s*(\D*?)(-?)",
    re.ASCII,
)
_BRACKETS = re.compile(r"(\D*)\(([^()]*\d[^()]*)\)(\D*)", re.ASCII)
_GROUPS = {".": "[,' ]", ",": "[.' ]"}
#: What stands before the exponent: digits in one group or in groups of three, and a fraction.
_BODY = {
    decimal: re.compile(
        rf"(?:\d+|[1-9]\d{{0,2}}({groups})\d{{3}}(?:\1\d{{3}})*{lakhs})"
        rf"(?:{re.escape(decimal)}\d*)?|{re.escape(decimal)}\d+",
        re.ASCII,
    )
    # India writes 12,34,567
    for decimal, groups, lakhs in (
        (".", _GROUPS["."], r"|\d{1,2}(?:,\d{2})+,\d{3}"),
        (",", _GROUPS[","], ""),
    )
}
_TIME = re.compile(r"(\d\d?)(?::([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?)?", re.ASCII)
_HALF_OF_DAY = re.compile(r"\s*([ap])\.?m\.?", re.IGNORECASE)
#: Currencies that are written in letters; signs such as $ are known to Unicode.
_CODES = (
    "AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF IDR ILS INR JPY KRW MXN MYR NOK NZD PHP PLN RON "
    "RUB SEK SGD THB TRY TWD UAH USD ZAR Fr Fr. Ft Kč kr kr. Rs Rs. zł"
)
_CURRENCIES = frozenset(_CODES.split())
#: The exponent of what stands behind a number.
_SHARES = {"%": "e-2", "\u2030": "e-3"}
_TIME_OF_DAY = ":"


@dataclass(frozen=True)
class WrittenNumbers:
    """The numbers that the texts of a column write.

    Attributes
    ----------
    numbers : dict of str to number
        By text; None for what is none. Exact where a text has more digits than ``float64``.
    decimal : str
        The decimal sign, ``.`` or ``,``.
    unit : str
        What stands beside the numbers, ``:`` for times of day; empty for numbers alone.
    example : str
        The first text that no program would read as a number; empty where there is none.
    """

    numbers: dict[str, Number | None]
    decimal: str
    unit: str
    example: str

    @property
    def is_time(self) -> bool:
        """Whether they are times of day."""
        return self.unit == _TIME_OF_DAY

    @property
    def note(self) -> str:
        """What the reader of a table should know of it; empty for plain numbers."""
        if not self.example:
            return ""
        value = self.numbers[self.example]
        meaning = f"{self.example!r} is read as {value:.12g}"
        if self.is_time:
            return f"{meaning}, minutes since midnight"
        if self.unit in _SHARES:
            return f"{meaning}, a fraction"
        return meaning


class AmbiguousNumberError(DataError):
    """Every number of a column can be read with a decimal point and with a decimal comma."""


@dataclass(frozen=True)
class _Cell:
    """A text taken apart: ``-$1,234.5e3`` has the sign ``-`` and the unit ``$``."""

    sign: str
    body: str
    exponent: str
    unit: str

    def number(self, decimal: str) -> Number | None:
        """Return the number with one decimal sign, or None where it cannot have that sign."""
        if self.unit == _TIME_OF_DAY:
            return float(self.body)
        if not _BODY[decimal].fullmatch(self.body):
            return None
        digits = re.sub(_GROUPS[decimal], "", self.body).replace(",", ".")
        exponent = _SHARES.get(self.unit, self.exponent)
        return parse_number(f"{self.sign}{digits}{exponent}")


def read_written_numbers(
    texts: Collection[str], decimal: str | None = None, *, what: str = "the column"
) -> WrittenNumbers:
    """Return the numbers that the texts of one column write.

    Read are ``$1,234.50``, ``1.234,56 €``, ``1 234``, ``1'234``, ``(12.5)`` and ``12.5-`` for less
    than zero, ``12 kg`` where all have that unit, ``12.5%`` as the fraction 0.125, and times of day
    as minutes since midnight: ``13:45`` and ``1:45 pm`` are 825.

    Parameters
    ----------
    texts : collection of str
        Distinct.
    decimal : {'.', ','}, optional
        The decimal sign; the other one is taken where it makes numbers of more texts. By default
        the texts decide.
    what : str
        What the column is called in an error.

    Raises
    ------
    AmbiguousNumberError
        Nothing tells a thousands separator from a decimal comma.
    DataError
        Numbers in several units, or with both decimal signs.

    Examples
    --------
    >>> read_written_numbers(["$1,234.50", "($2.25)", "n/a"]).numbers
    {'$1,234.50': 1234.5, '($2.25)': -2.25, 'n/a': None}
    >>> read_written_numbers(["1.234 €", "12,50 €"]).numbers
    {'1.234 €': 1234.0, '12,50 €': 12.5}
    >>> read_written_numbers(["12.5%", "3%"]).note
    "'12.5%' is read as 0.125, a fraction"
    """
    cells = {text: cell for text in texts if (cell := _take_apart(text)) is not None}
    unit = _settle_unit(cells, what)
    sign = decimal or _find_decimal(cells, what)
    numbers = _read_all(cells, sign)
    if decimal is not None:
        other = "," if decimal == "." else "."
        others = _read_all(cells, other)
        if _count_read(others) > _count_read(numbers):
            sign, numbers = other, others
    unusual = (text for text in numbers if numbers[text] is not None)
    unusual = (text for text in unusual if not _is_plain(text))
    return WrittenNumbers(
        numbers={text: numbers.get(text) for text in texts},
        decimal=sign,
        unit=unit,
        example=next(unusual, ""),
    )


#: What to do about numbers that came as text for their decimal comma.
COMMA_REMEDY = (
    "compare and generate read a decimal comma with --decimal , and pandas with decimal=','; for "
    "other commands write a point"
)
#: A number as it is written where a comma is the decimal sign.
_COMMA_NUMBER = r"\s*[+-]?\d*,\d+\s*"


def has_decimal_comma(values: pd.Series) -> bool:
    """Whether the texts of a column are numbers, some of them with a decimal comma.

    Examples
    --------
    >>> has_decimal_comma(pd.Series(["1,5", "2", None])), has_decimal_comma(pd.Series(["a,b"]))
    (True, False)
    """
    if is_numeric(values):
        return False
    texts = values.dropna().astype(str)
    has_comma = texts.str.fullmatch(_COMMA_NUMBER)
    others = pd.to_numeric(texts[~has_comma], errors="coerce")
    return bool(has_comma.any() and others.notna().all())


def _read_all(cells: Mapping[str, _Cell], decimal: str) -> dict[str, Number | None]:
    return {text: cell.number(decimal) for text, cell in cells.items()}


def _count_read(numbers: Mapping[str, Number | None]) -> int:
    return sum(number is not None for number in numbers.values())


def _is_plain(text: str) -> bool:
    """Whether any program reads the text as that number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _take_apart(text: str) -> _Cell | None:
    """Return the parts of a text that may write a number, else None."""
    text = text.translate(_PLAIN).strip()
    minutes = _minutes(text)
    if minutes is not None:
        return _Cell("", repr(minutes), "", _TIME_OF_DAY)
    sign = ""
    if in_brackets := _BRACKETS.fullmatch(text):
        text = "".join(in_brackets.groups()).strip()
        sign = "-"
    match = _CELL.fullmatch(text)
    if match is None:
        return None
    first, before, second, body, exponent, behind, last = match.groups()
    if body[-1] in ".,":
        last = ""  # CHF 5.- has no cents
    signs = sign + first + second + last
    if len(signs) > 1:
        return None
    before, behind = before.strip(), behind.strip()
    if before and (behind or not _is_currency(before)):
        return None
    if behind and behind not in _SHARES and not _is_unit(behind):
        return None
    if behind in _SHARES and exponent:
        return None
    return _Cell(signs, body, exponent or "", before or behind)


def _minutes(text: str) -> float | None:
    """Return the minutes since midnight of a time of day, else None."""
    half = _HALF_OF_DAY.search(text)
    is_halved = half is not None and half.end() == len(text)
    match = _TIME.fullmatch(text[: half.start()] if half and is_halved else text)
    if match is None or not (match[2] or is_halved):
        return None
    hours = int(match[1])
    if half and is_halved:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if half[1].lower() == "p" else 0)
    if hours > 23:
        return None
    return 60.0 * hours + int(match[2] or 0) + float(match[3] or 0) / 60


def _is_currency(word: str) -> bool:
    if word in _CURRENCIES:
        return True
    # $, US$, R$
    kinds = [unicodedata.category(letter) for letter in word]
    return len(word) <= 4 and "Sc" in kinds and all(kind[0] in "LS" for kind in kinds)


def _is_unit(word: str) -> bool:
    """Whether a word behind a number has a letter or a sign of a unit: ``kg``, ``€``, ``°``."""
    kinds = [unicodedata.category(letter) for letter in word]
    return any(kind[0] == "L" or kind in ("Sc", "So") for kind in kinds)


def _settle_unit(cells: dict[str, _Cell], what: str) -> str:
    """Return the unit of all cells; drop cells with one where most have none.

    Raises
    ------
    DataError
        Cells of several units, or of one and of none.
    """
    counts = Counter(cell.unit for cell in cells.values())
    if len(counts) < 2:
        return next(iter(counts), "")
    # a sign of a currency is left out at times, and nothing is nothing in every unit
    others = [unit for unit in counts if unit]
    if len(others) == 1 and _is_currency(others[0]):
        return others[0]
    (unit, _), *_ = counts.most_common(1)
    for text, cell in list(cells.items()):
        if cell.unit == unit or (not cell.unit and not cell.body.strip("0.,")):
            continue
        if unit:
            like = next(text for text in cells if cells[text].unit == unit)
            raise DataError(
                f"{what} holds {like!r} and {text!r}, which are not of one unit",
                "write all of them in one unit",
            )
        del cells[text]
    return unit


def _find_decimal(cells: Mapping[str, _Cell], what: str) -> str:
    """Return the decimal sign that the texts show.

    Raises
    ------
    DataError
        They show both, or none where it matters.
    """
    only: dict[str, str] = {}
    ambiguous = ""
    for text, cell in cells.items():
        with_point, with_comma = cell.number("."), cell.number(",")
        if with_point == with_comma:
            continue
        if with_comma is None:
            only.setdefault(".", text)
        elif with_point is None:
            only.setdefault(",", text)
        elif "," in cell.body or cell.unit not in ("", *_SHARES):
            # a point in a number alone is what programs write
            ambiguous = ambiguous or text
    if len(only) == 2:
        raise DataError(
            f"{what} holds {only['.']!r} with a decimal point and {only[',']!r} with a decimal "
            "comma",
            "write all of them in one way, or name the sign of most: --decimal . or --decimal ,",
        )
    if only:
        return next(iter(only))
    if ambiguous:
        with_point, with_comma = map(cells[ambiguous].number, ".,")
        raise AmbiguousNumberError(
            f"{what} holds {ambiguous!r}, which is {with_point:.12g} with a decimal point and "
            f"{with_comma:.12g} with a decimal comma, and no other value tells which",
            "add --decimal . or --decimal ,",
        )
    return "."
