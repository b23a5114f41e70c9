"""How the real numbers of a column are written: their range, decimals, and list of values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from amlb_ext.relations.rounding import Rounding, learn_rounding
from amlb_ext.relations.values import ValueIndex, holds_numbers

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
            is_missing = np.isnan(numbers)
            return np.where(is_missing, np.nan, snapped)
        # rounding may leave the range where a bound has more digits than are counted
        return np.clip(self.round(corrected), self.low, self.high)

    def round(self, numbers: np.ndarray) -> np.ndarray:
        """Return numbers rounded as real ones are; neither range nor list are looked at."""
        return numbers if self.rounding is None else self.rounding.round(numbers)

    def breaks(self, numbers: np.ndarray) -> np.ndarray:
        """Return which numbers have too many digits or are not on the list; bounds aside."""
        if self.values is not None and self.is_complete:
            index = ValueIndex(self.values, is_numeric=True)
            codes = index.number_codes(numbers)
            return codes == index.unknown
        if self.rounding is None:
            return np.zeros(len(numbers), dtype=bool)
        return self.rounding.breaks(numbers)

    def judging(self, real: np.ndarray) -> WrittenForm:
        """Return the form that all real numbers have, more of them than it was learnt from.

        A list of values that does not hold is given up; the rounding is learnt anew.
        """
        known = real[~np.isnan(real)]
        holds = not self.breaks(known).any()
        if holds:
            return self
        return replace(self, rounding=learn_rounding(known), values=None)


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
        rounding=learn_rounding(values),
        values=values if takes_few else None,
        is_complete=takes_few and chance_of_new <= COMPLETE_CHANCE,
    )
