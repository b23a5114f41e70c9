"""Groups of rows in words, and how bad the worst of them can be.

A group is a conjunction of at most two conditions on columns. Words say *where*; how much is said
by the foreseen group (:mod:`amlb_ext.swap.harm`), since words that were searched for are rosy.

Notation
--------
M : (n, m) which row meets which condition; d : (n,) change of loss
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import t as student

from amlb_ext.swap.contrast import Contrast
from amlb_ext.swap.harm import Harm
from amlb_ext.units.conditions import short_number

#: Shares of a column's values at which it is cut.
CUTS = 8
#: Conditions in all: their pairs are m^2.
MOST_CONDITIONS = 150
#: A condition is met by at least this share of the rows, and by no more than the rest.
LEAST_SHARE = 0.05
#: A number with fewer distinct values is told by each of them.
FEW_VALUES = 10
#: Share of the rows that a group in words holds at least, ...
LEAST_GROUP = 0.1
#: ... and that of the bound.
BOUND_SHARE = 0.2
#: Standard errors above the foreseen fifth: what a learner of more rows would foresee.
FORESIGHT_ERRORS = 3.0


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Single conditions on the columns of a table.

    Attributes
    ----------
    texts : list of str
    met : ndarray of shape (n, m), float32
    """

    texts: list[str]
    met: np.ndarray

    def pair(self, first: int, second: int) -> tuple[str, np.ndarray]:
        """Return two conditions in words, and which rows meet both."""
        words = " and ".join(dict.fromkeys((self.texts[first], self.texts[second])))
        return words, (self.met[:, first] * self.met[:, second]).astype(bool)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values over the rows of each pair, ``(m, m)``."""
        # single precision holds neither absurd losses nor those of tiny numbers
        unit = float(np.abs(values).max(initial=0.0)) or 1.0
        values = (values / unit).astype("f4")
        return unit * np.asarray((self.met * values[:, None]).T @ self.met, dtype=float)


@dataclass(frozen=True, kw_only=True)
class Words:
    """A group in words.

    Attributes
    ----------
    text : str
    inside : ndarray of shape (n,), bool
    """

    text: str
    inside: np.ndarray


def list_conditions(table: pd.DataFrame) -> Conditions:
    """Return the conditions that a table's columns allow.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [20, 30, 40, 50] * 5, "sex": ["f", "m"] * 10})
    >>> list_conditions(table).texts[-2:]
    ['sex = f', 'sex = m']
    """
    texts: list[str] = []
    met: list[np.ndarray] = []
    per_column = max(2, MOST_CONDITIONS // max(1, table.shape[1]))
    for name, column in table.items():
        for text, rows in _of_column(str(name), column, per_column):
            if LEAST_SHARE <= rows.mean() <= 1 - LEAST_SHARE:
                texts.append(text)
                met.append(rows)
    matrix = np.column_stack(met) if met else np.empty((len(table), 0))
    return Conditions(texts=texts, met=matrix.astype("f4"))


def _of_column(name: str, column: pd.Series, most: int) -> list[tuple[str, np.ndarray]]:
    """Return the conditions on one column."""
    missing = column.isna().to_numpy()
    found = [(f"{name} is missing", missing)] if missing.any() else []
    is_number = pd.api.types.is_numeric_dtype(column)
    if is_number and column.nunique() > FEW_VALUES:
        numbers = column.to_numpy(dtype=float, na_value=np.nan)
        shares = np.linspace(0, 1, min(CUTS, most // 2) + 2)[1:-1]
        for cut in np.unique(np.nanquantile(numbers, shares)):
            text = short_number(cut, numbers.__gt__)
            found.append((f"{name} <= {text}", numbers <= cut))
            found.append((f"{name} > {text}", numbers > cut))
        return found
    values = column.astype(str)
    common = values[~missing].value_counts()
    for value in common.index[: max(1, most // 2)]:
        is_value = (values == value).to_numpy() & ~missing
        found.append((f"{name} = {value}", is_value))
        # of two values "not the one" is the other
        if len(common) > 2:
            found.append((f"{name} != {value}", ~is_value & ~missing))
    return found


def find_words(harm: Harm, conditions: Conditions) -> Words | None:
    """Return where G is foreseen to lose, in words; None where no column tells rows apart.

    Searched on the foreseen changes, which have less noise than d itself.
    """
    if not conditions.texts:
        return None
    text, inside = conditions.pair(*best_pair(conditions, harm.score))
    return Words(text=text, inside=inside)


def words_of_group(
    conditions: Conditions, inside: np.ndarray
) -> tuple[str, np.ndarray]:
    """Return the conditions that tell a group best, and which rows meet them.

    The pair with the largest share of common rows among those of either (Jaccard's index).

    Parameters
    ----------
    conditions : Conditions
        At least one.
    inside : ndarray of shape (n,)
        1 for the rows of the group, 0 for others.
    """
    common = conditions.sums(inside)
    either = conditions.sums(np.ones(len(inside))) + inside.sum() - common
    return conditions.pair(*_largest(common / either))


def best_pair(conditions: Conditions, values: np.ndarray) -> tuple[int, int]:
    """Return the pair of conditions with the largest mean less one standard error.

    Parameters
    ----------
    conditions : Conditions
        At least one.
    values : ndarray of shape (n,)
    """
    counts, mean, variance = _moments(conditions, values)
    worth = mean - np.sqrt(variance / np.maximum(counts, 1))
    is_large = counts >= max(LEAST_GROUP * len(values), 10)
    if not is_large.any():
        is_large = counts == counts.max()
    return _largest(np.where(is_large, worth, -np.inf))


def _moments(
    conditions: Conditions, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return number, mean and variance of the values that each pair holds, ``(m, m)`` each."""
    counts = conditions.sums(np.ones(len(values)))
    n = np.maximum(counts, 1)
    mean = conditions.sums(values) / n
    variance = np.maximum(conditions.sums(values**2) / n - mean**2, 0)
    return counts, mean, variance


def _largest(worth: np.ndarray) -> tuple[int, int]:
    """Return the pair that is worth most; a single condition where a second adds nothing."""
    alone = int(np.argmax(np.diag(worth)))
    first, second = np.unravel_index(int(np.argmax(worth)), worth.shape)
    if np.isclose(worth[alone, alone], worth[first, second]):
        return alone, alone
    return int(first), int(second)


def bound_harm(
    contrast: Contrast, harm: Harm, conditions: Conditions, level: float = 0.95
) -> float:
    """Return what no group of a fifth of the rows loses more than, at a confidence level.

    Of all conjunctions of at most two conditions, and of the foreseen fifth. The worst group is one
    fixed group, so the largest of the groups' own one-sided limits bounds it: their number needs no
    correction.

    Returns
    -------
    float
        In the unit of the loss.
    """
    judged = harm.judged
    # below 0 it would claim that every group gains
    foreseen = max(
        0.0,
        judged.value + FORESIGHT_ERRORS * judged.se,
        harm.groups["all rows"].upper(level),
    )
    if not conditions.texts or not contrast.is_of_rows:
        return foreseen
    n = len(contrast)
    counts, mean, variance = _moments(conditions, contrast.d)
    size = np.maximum(counts, 2)
    se = np.sqrt(variance / (size - 1))
    if contrast.clusters is not None:
        se = se * max(1.0, np.sqrt(n / (contrast.clusters.max() + 1)))
    # a group of a fifth of all may hold somewhat less of the rows at hand
    chance = 1.645 * np.sqrt(BOUND_SHARE * (1 - BOUND_SHARE) / n)
    is_large = counts >= n * (BOUND_SHARE - chance)
    limits = mean + student.ppf(level, size) * se
    return float(max(foreseen, np.max(limits, where=is_large, initial=foreseen)))
