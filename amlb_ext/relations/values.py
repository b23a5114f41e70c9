"""Values of a column: as small integers, as they are rounded, and as they are written.

Codes let rows be compared by table look-ups. A number such as ``.833333`` shows its rounding, to
decimals, to significant digits, or to single precision: no real value of its column has more
digits. A made number is rounded in the same way, and an equality of columns may miss by what
rounding takes away.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from amlb_ext.relations.conditions import TOLERANCE, tolerance_at


def holds_numbers(values: pd.Series) -> bool:
    """Return whether a column of a table in canonical form holds numbers."""
    return values.dtype.kind == "f"


def numeric_columns(rows: pd.DataFrame) -> dict[str, bool]:
    """Return for each column whether it holds numbers."""
    return {name: holds_numbers(rows[name]) for name in rows}


def read_numbers(rows: pd.DataFrame, name: str) -> np.ndarray:
    """Return the numbers of a column, ``(n,)`` float, NaN where one is missing."""
    return rows[name].to_numpy(dtype=float)


class ColumnReader:
    """Rows for the conditions of many relations: a column is looked up once, not by each of them.

    Parameters
    ----------
    rows : DataFrame of shape (n, d)

    Examples
    --------
    >>> reader = ColumnReader(pd.DataFrame({"a": [1.0, 2.0]}))
    >>> len(reader), reader["a"] is reader["a"]
    (2, True)
    """

    def __init__(self, rows: pd.DataFrame) -> None:
        self._rows = rows
        self._columns: dict[str, pd.Series] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, name: str) -> pd.Series:
        if name not in self._columns:
            self._columns[name] = self._rows[name]
        return self._columns[name]


@dataclass(frozen=True)
class ValueIndex:
    """The distinct values of a column, each with its code.

    Attributes
    ----------
    values : ndarray of shape (m,)
        Sorted numbers, or texts in order of appearance.
    is_numeric : bool
    """

    values: np.ndarray
    is_numeric: bool

    @classmethod
    def learn(cls, column: pd.Series) -> ValueIndex:
        """Learn the values of a column."""
        known = column.dropna()
        if holds_numbers(column):
            return cls(np.unique(known.to_numpy(dtype=float)), is_numeric=True)
        return cls(np.asarray(known.unique(), dtype=object), is_numeric=False)

    @property
    def missing(self) -> int:
        """The code of a missing value."""
        return len(self.values)

    @property
    def unknown(self) -> int:
        """The code of a value that the column does not have."""
        return self.missing + 1

    @property
    def size(self) -> int:
        """How many codes there are, those of missing and unknown values included."""
        return len(self.values) + 2

    def codes(self, column: pd.Series) -> np.ndarray:
        """Return the code of each value, ``(n,)`` int64."""
        if self.is_numeric:
            return self.number_codes(column.to_numpy(dtype=float))
        positions = pd.Index(self.values).get_indexer(column.astype(object))
        # the index has -1 for a text that it does not hold
        codes = np.where(positions < 0, self.unknown, positions)
        return np.where(column.isna(), self.missing, codes)

    def number_codes(self, numbers: np.ndarray) -> np.ndarray:
        """Return the code of each number, ``(n,)`` int64."""
        is_missing = np.isnan(numbers)
        if not len(self.values):
            return np.where(is_missing, self.missing, self.unknown)
        nearest = self.nearest(numbers)
        # a number that went through the scaling of its column and back is the same number
        is_known = np.abs(self.values[nearest] - numbers) <= tolerance_at(numbers)
        codes = np.where(is_known, nearest, self.unknown)
        return np.where(is_missing, self.missing, codes)

    def nearest(self, numbers: np.ndarray) -> np.ndarray:
        """Return the position of the value nearest to each number; the lower one of two."""
        last = len(self.values) - 1
        # both neighbours are values also for numbers outside the range
        right = np.searchsorted(self.values, numbers).clip(min(1, last), last)
        left = np.maximum(right - 1, 0)
        to_left = numbers - self.values[left]
        to_right = self.values[right] - numbers
        return np.where(to_left <= to_right, left, right)


# How numbers are rounded.


#: Up to so many decimals a number may lose what the scaling of a column and back takes.
FEW_DECIMALS = 6
#: A double has 15 digits that are its own; every sixteenth needs no more by chance.
MOST_DIGITS = 15
#: The smallest number of a file has not more decimals than this.
MOST_DECIMALS = 30
#: Numbers on which a rounding is tried before all are.
FIRST_TRIED = 50
EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Rounding:
    """How the numbers of a column are rounded; without decimals and digits to single precision.

    Attributes
    ----------
    decimals : int or None
        Decimals that no number exceeds.
    digits : int or None
        Significant digits that no number exceeds, where there are more than six decimals.

    Examples
    --------
    >>> Rounding(decimals=8, digits=7).round(np.array([44 + 2 / 9, 1 / 9])).tolist()
    [44.22222, 0.1111111]
    >>> Rounding().round(np.array([0.1])).tolist()
    [0.10000000149011612]
    """

    decimals: int | None = None
    digits: int | None = None

    def round(self, numbers: np.ndarray) -> np.ndarray:
        """Return rounded numbers; a missing one stays missing."""
        if self.decimals is None and self.digits is None:
            return np.asarray(numbers, dtype=np.float32).astype(float)
        rounded = np.asarray(numbers, dtype=float)
        if self.digits is not None:
            # as text, because no power of ten below one is exact
            texts = [f"{number:.{self.digits - 1}e}" for number in rounded.tolist()]
            rounded = np.array(texts, dtype=float)
        if self.decimals is not None:
            rounded = np.round(rounded, self.decimals)
        return rounded

    def breaks(self, numbers: np.ndarray) -> np.ndarray:
        """Return which numbers have more digits than the rounding leaves, ``(n,)`` bool."""
        room = tolerance_at(numbers)
        if self.decimals is None or self.decimals > FEW_DECIMALS:
            room = 4 * EPSILON * np.abs(numbers)
        if self.digits is not None:
            room = 2 * EPSILON * np.abs(numbers)
        lost = np.abs(numbers - self.round(numbers))
        return ~np.isnan(numbers) & (lost > room)

    def half_unit(self, numbers: np.ndarray) -> float:
        """Return what rounding changes the largest of some numbers by, at most."""
        largest = float(np.nanmax(np.abs(numbers), initial=0.0))
        if self.decimals is None and self.digits is None:
            return float(np.spacing(np.float32(largest))) / 2
        units = [0.0]
        if self.decimals is not None:
            units.append(10.0**-self.decimals)
        if self.digits is not None and largest:
            units.append(10.0 ** (np.floor(np.log10(largest)) + 1 - self.digits))
        unit = max(units)
        # single precision that was printed is as rough as it was, however many digits it has
        spacing = float(np.spacing(np.float32(largest)))
        if unit < spacing and _are_printed_singles(numbers):
            unit = spacing
        return unit / 2


def learn_rounding(values: np.ndarray) -> Rounding | None:
    """Return how numbers are rounded; None for measurements in double precision.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Without missing numbers.

    Examples
    --------
    >>> learn_rounding(np.array([1.25, 3.5]))
    Rounding(decimals=2, digits=None)
    >>> learn_rounding(np.array([44.22222, 0.11111111, 2.9802322e-08]))
    Rounding(decimals=15, digits=8)
    >>> normal = np.random.default_rng(0).normal(size=9)
    >>> [learn_rounding(values) for values in (normal, 1e-11 * normal, 1.7e9 + normal)]
    [None, None, None]
    """
    room = 4 * EPSILON * np.abs(values)
    # A number such as 0.1 is itself no decimal fraction, hence the tolerance; far from 0, numbers
    # that lie close together are no noise of one another.
    lost = np.minimum(tolerance_at(values), TOLERANCE * np.ptp(values))
    # Beyond the last decimal its unit is hardly larger than what a double loses of most values.
    usual = float(np.median(np.abs(values)))
    last = int(-np.log10(100 * EPSILON * usual)) if usual else FEW_DECIMALS
    few = FEW_DECIMALS + 1
    counts = range(max(1, min(few, last + 1)))
    decimals = _count_decimals(values, np.maximum(lost, room), counts)
    if decimals is not None:
        return Rounding(decimals)
    digits = _count_digits(values)
    if digits is not None:
        decimals = _count_decimals(values, room, range(few, MOST_DECIMALS))
        return Rounding(decimals, digits)
    if np.array_equal(Rounding().round(values), values):
        return Rounding()
    last = int(-np.log10(1000 * EPSILON * np.abs(values).max()))
    decimals = _count_decimals(values, room, range(few, last + 1))
    return None if decimals is None else Rounding(decimals)


def half_unit_of(numbers: np.ndarray) -> float:
    """Return by how much rounding changed the numbers of a column at most; 0 if it did not.

    Examples
    --------
    >>> half_unit_of(np.array([1.25, np.nan, 3.5]))
    0.005
    """
    values = np.unique(numbers[~np.isnan(numbers)])
    rounding = learn_rounding(values) if len(values) else None
    return 0.0 if rounding is None else rounding.half_unit(values)


def _are_printed_singles(numbers: np.ndarray) -> bool:
    """Return whether numbers look like printed single precision: nearest to it, and no longer."""
    known = numbers[~np.isnan(numbers)]
    some = known[:: max(1, len(known) // FIRST_TRIED)].tolist()
    return all(float(str(np.float32(value))) == value for value in some)


def _count_decimals(values: np.ndarray, room: np.ndarray, counts: range) -> int | None:
    """Return the first count of decimals to which all values are rounded."""
    for decimals in counts:
        lost = np.abs(values - np.round(values, decimals))
        # what is lost is no digit: far less than the last one that is left
        if np.all(lost <= np.minimum(room, 0.01 * 10.0**-decimals)):
            return decimals
    return None


def _count_digits(values: np.ndarray) -> int | None:
    """Return the significant digits that no value exceeds; None where one has all of a double."""
    some = values[:: max(1, len(values) // FIRST_TRIED)]
    for tried in (some, values):
        # from the fewest digits that the texts of the values have
        digits = 0
        for value in tried.tolist():
            text = f"{value:.{MOST_DIGITS - 1}e}"
            if float(text) != value:
                return None
            mantissa, _, _ = text.partition("e")
            # without what is no digit, or says nothing
            written = mantissa.lstrip("-").rstrip("0").replace(".", "")
            digits = max(digits, len(written))
    return digits


# How the real numbers of a column are written.


#: A column takes few values where there are this many rows for each of them, and where the chance
#: that the next row brings a new one (Good-Turing: values seen once, by rows) is small. Made rows
#: then take values that were seen; the list counts as complete where that chance is tiny.
ROWS_PER_VALUE, FEW_VALUES_CHANCE, COMPLETE_CHANCE = 20, 0.02, 0.001


@dataclass(frozen=True)
class WrittenForm:
    """How the real numbers of a column are written.

    Attributes
    ----------
    column : str
    low, high : float
        Smallest and largest value.
    rounding : Rounding or None
        None where the values have all digits of a double.
    values : ndarray or None
        The values that were seen, sorted, where the column takes only few.
    is_complete : bool
        Whether a new value is so unlikely that one is not written as real ones are.

    Examples
    --------
    >>> form = WrittenForm("temp", 0.0, 1.0, Rounding(decimals=2))
    >>> form.correct(np.array([0.24373, 1.2, np.nan])).tolist()
    [0.24, 1.0, nan]
    >>> form.breaks(np.array([0.24373, 0.24])).tolist()
    [True, False]
    """

    column: str
    low: float
    high: float
    rounding: Rounding | None = None
    values: np.ndarray | None = field(default=None, compare=False)
    is_complete: bool = False

    def correct(self, numbers: np.ndarray) -> np.ndarray:
        """Return numbers as real ones are written: within range, rounded, from the list."""
        corrected = np.clip(numbers, self.low, self.high)
        if self.values is not None:
            index = ValueIndex(self.values, is_numeric=True)
            snapped = self.values[index.nearest(corrected)]
            # a missing number has no nearest value, and stays missing
            return np.where(np.isnan(numbers), np.nan, snapped)
        # rounding may leave the range where a bound has more digits than are counted
        return np.clip(self.round(corrected), self.low, self.high)

    def round(self, numbers: np.ndarray) -> np.ndarray:
        """Return numbers rounded as real ones are; neither range nor list are looked at."""
        return numbers if self.rounding is None else self.rounding.round(numbers)

    def breaks(self, numbers: np.ndarray) -> np.ndarray:
        """Return which numbers have too many digits or are not on the list; bounds aside."""
        if self.values is not None and self.is_complete:
            index = ValueIndex(self.values, is_numeric=True)
            return index.number_codes(numbers) == index.unknown
        if self.rounding is None:
            return np.zeros(len(numbers), dtype=bool)
        return self.rounding.breaks(numbers)

    def judging(self, real: np.ndarray) -> WrittenForm:
        """Return the form that all real numbers have, more of them than it was learnt from.

        A list of values that does not hold is given up; the rounding is learnt anew.
        """
        known = real[~np.isnan(real)]
        if self.breaks(known).any():
            return replace(self, rounding=learn_rounding(known), values=None)
        return self


def learn_forms(rows: pd.DataFrame) -> list[WrittenForm]:
    """Return the written form of each column of numbers that has a value.

    Parameters
    ----------
    rows : DataFrame
        In canonical form.
    """
    known = {name: rows[name].dropna() for name in rows if holds_numbers(rows[name])}
    return [
        _learn_form(str(name), column.to_numpy(dtype=float))
        for name, column in known.items()
        if len(column)
    ]


def _learn_form(column: str, numbers: np.ndarray) -> WrittenForm:
    values, counts = np.unique(numbers, return_counts=True)
    chance_of_new = (counts == 1).sum() / len(numbers)
    # a column with a single value leaves nothing to choose
    has_choice = 2 <= len(values) <= len(numbers) / ROWS_PER_VALUE
    takes_few = has_choice and chance_of_new <= FEW_VALUES_CHANCE
    return WrittenForm(
        column=column,
        low=float(values[0]),
        high=float(values[-1]),
        rounding=learn_rounding(values),
        values=values if takes_few else None,
        is_complete=takes_few and chance_of_new <= COMPLETE_CHANCE,
    )
