"""How the real numbers of a column are written: their range, decimals, and list of values."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from amlb_ext.relations.conditions import tolerance_at
from amlb_ext.relations.values import ValueIndex, holds_numbers

#: Numbers with more decimals than this are measurements.
MOST_DECIMALS = 6
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
    decimals : int or None
        Decimals that no value exceeds; None where a value has more than six.
    values : ndarray or None
        The values that were seen, sorted, where the column takes only few.
    is_complete : bool
        Whether a new value is so unlikely that one is not written as real ones are.

    Examples
    --------
    >>> form = WrittenForm("temp", 0.0, 1.0, decimals=2, values=None)
    >>> form.correct(np.array([0.24373, 1.2, np.nan])).tolist()
    [0.24, 1.0, nan]
    >>> form.breaks(np.array([0.24373, 0.24])).tolist()
    [True, False]
    """

    column: str
    low: float
    high: float
    decimals: int | None = None
    values: np.ndarray | None = field(default=None, compare=False)
    is_complete: bool = False

    def correct(self, numbers: np.ndarray) -> np.ndarray:
        """Return numbers as real ones are written: within range, rounded, from the list."""
        corrected = np.clip(numbers, self.low, self.high)
        if self.values is not None:
            index = ValueIndex(self.values, is_numeric=True)
            snapped = self.values[index.nearest(corrected)]
            # a missing number has no nearest value, and stays missing
            is_missing = np.isnan(numbers)
            return np.where(is_missing, np.nan, snapped)
        if self.decimals is not None:
            rounded = np.round(corrected, self.decimals)
            # rounding may leave the range where a bound has more digits than are counted
            corrected = np.clip(rounded, self.low, self.high)
        return corrected

    def breaks(self, numbers: np.ndarray) -> np.ndarray:
        """Return which numbers have too many decimals or are not on the list; bounds aside."""
        if self.values is not None and self.is_complete:
            index = ValueIndex(self.values, is_numeric=True)
            codes = index.number_codes(numbers)
            return codes == index.unknown
        if self.decimals is None:
            return np.zeros(len(numbers), dtype=bool)
        rounded = np.round(numbers, self.decimals)
        lost = np.abs(numbers - rounded)
        is_known = ~np.isnan(numbers)
        return is_known & (lost > tolerance_at(numbers))


def learn_forms(rows: pd.DataFrame) -> list[WrittenForm]:
    """Return the written form of each column of numbers that has a value.

    Parameters
    ----------
    rows : DataFrame
        In canonical form.
    """
    forms = []
    for name in rows:
        if not holds_numbers(rows[name]):
            continue
        column = rows[name].dropna()
        if len(column):
            form = _learn_form(str(name), column.to_numpy(dtype=float))
            forms.append(form)
    return forms


def _learn_form(column: str, numbers: np.ndarray) -> WrittenForm:
    values, counts = np.unique(numbers, return_counts=True)
    n_seen_once = (counts == 1).sum()
    chance_of_new = n_seen_once / len(numbers)
    most_values = len(numbers) / ROWS_PER_VALUE
    # a column with a single value leaves nothing to choose
    has_choice = 2 <= len(values) <= most_values
    takes_few = has_choice and chance_of_new <= FEW_VALUES_CHANCE
    return WrittenForm(
        column=column,
        low=float(values[0]),
        high=float(values[-1]),
        decimals=count_decimals(values),
        values=values if takes_few else None,
        is_complete=takes_few and chance_of_new <= COMPLETE_CHANCE,
    )


def count_decimals(values: np.ndarray) -> int | None:
    """Return the decimals that no value exceeds; None where one has more than six.

    Examples
    --------
    >>> count_decimals(np.array([1.25, 3.5])), count_decimals(np.array([np.pi]))
    (2, None)
    """
    # a number such as 0.1 is itself no decimal fraction, hence the tolerance
    room = tolerance_at(values)
    for decimals in range(MOST_DECIMALS + 1):
        rounded = np.round(values, decimals)
        lost = np.abs(values - rounded)
        if np.all(lost <= room):
            return decimals
    return None
