"""Search for rules between numbers: orders, sums and exclusions."""

# Its lines stay dense: formulas of whole columns, whose parts have no name of their own.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from amlb_ext.relations.conditions import TOLERANCE, tolerance_at
from amlb_ext.relations.grammar import quote_name, write_equality
from amlb_ext.relations.kinds import Rule
from amlb_ext.relations.mining_table import LEAST_ROWS, MiningTable

#: The most frequent value of a number is a pile from this share on, where others are spread out.
PILE_SHARE, SPREAD_VALUES = 0.3, 5
#: Both summands must be at work in this share of the rows.
SUMMAND_SHARE = 0.05


# a <= b


def mine_orders(
    table: MiningTable,
    least_evidence: float,
) -> Iterator[Rule]:
    """Find pairs of numbers of which one never exceeds the other."""
    names = table.numeric_names
    if len(names) < 2:
        return
    screened = table.screened_rows(names).to_numpy(dtype=float)
    numbers = table.rows[names]
    smallest = numbers.min().to_numpy()
    largest = numbers.max().to_numpy()
    for i, lower in enumerate(names):
        column = screened[:, [i]]
        # a missing number is not above another one
        with np.errstate(invalid="ignore"):
            is_above = column > screened
        holds_on_sample = ~is_above.any(axis=0)
        # where the ranges do not overlap the order cannot fail, so that it holds says nothing
        could_fail = largest[i] > smallest
        candidates = holds_on_sample & could_fail
        candidates[i] = False
        for j in np.flatnonzero(candidates):
            upper = names[j]
            rule = _verify_order(table, lower, upper, least_evidence=least_evidence)
            if rule is not None:
                yield rule


def _verify_order(
    table: MiningTable,
    lower: str,
    upper: str,
    *,
    least_evidence: float,
) -> Rule | None:
    """Return the order where it holds in every row and could have failed."""
    a = table.numbers(lower)
    b = table.numbers(upper)
    is_missing = np.isnan(a) | np.isnan(b)
    a = a[~is_missing]
    b = b[~is_missing]
    if len(a) < LEAST_ROWS or (a > b).any():
        return None
    # equal columns are found as a sum with one summand
    if np.array_equal(a, b):
        return None
    evidence = _expected_above(a, b)
    if evidence < least_evidence:
        return None
    is_strict = (a < b).all()
    symbol = "<" if is_strict else "<="
    left = quote_name(lower)
    right = quote_name(upper)
    return table.make_rule("order", f"{left} {symbol} {right}", evidence)


def _expected_above(a: np.ndarray, b: np.ndarray) -> float:
    """Return how many of n rows have a > b when a and b are drawn independently."""
    # how many values of b are below each value of a
    n_below = np.searchsorted(np.sort(b), a, side="left")
    return float(n_below.sum() / len(b))


# a + b == c and a == b

#: The summands, one or two, and their total.
SumCandidate = tuple[tuple[str, ...], str]


def mine_sums(table: MiningTable, least_evidence: float) -> Iterator[Rule]:
    """Find numbers that are the sum of two others, or equal to another one."""
    n_values = table.rows[table.numeric_names].nunique()
    varying = [name for name in table.numeric_names if n_values[name] > 1]
    if len(varying) < 2:
        return
    screened = complete_rows(table.screened_rows(varying))
    n_rows, n_columns = screened.shape
    if n_columns < 2 or not n_rows:
        return
    for summands, total in _sum_candidates(screened):
        rule = _verify_sum(table, summands, total, least_evidence=least_evidence)
        if rule is not None:
            yield rule


def complete_rows(sample: pd.DataFrame) -> pd.DataFrame:
    """Return rows without gaps: all columns but the emptiest, where enough rows remain."""
    half = len(sample) // 2
    complete = sample.dropna(axis=1, thresh=half).dropna(axis=0)
    if len(complete) >= LEAST_ROWS:
        return complete
    return sample.dropna(axis=1)


def _sum_candidates(screened: pd.DataFrame) -> Iterator[SumCandidate]:
    """Find summands, and the total that has their sum in every screened row.

    Rows get random weights: two columns, or a sum and a column, have the same weighted total
    only if they agree in every row. So a sum is found by a search among d sorted totals, and not
    by a comparison of d ** 3 columns.
    """
    names = list(screened.columns)
    numbers = screened.to_numpy(dtype=float)
    n_rows, n_columns = numbers.shape
    rng = np.random.default_rng(n_rows)
    weights = rng.normal(size=n_rows)
    totals = weights @ numbers
    # rounding errors of a total grow with the size of what it adds up
    scale = np.abs(weights) @ np.abs(numbers)
    by_total = np.argsort(totals, kind="stable")
    sorted_totals = totals[by_total]
    for i, name in enumerate(names[:-1]):
        later = np.arange(i + 1, n_columns)
        # the tiny number lets two columns of zeros agree
        room = TOLERANCE * (scale[i] + scale[later] + 1e-300)
        is_equal = np.abs(totals[i] - totals[later]) <= room
        for j in later[is_equal]:
            yield (name,), names[j]
        sums = totals[i] + totals[later]
        # where the columns with such a total begin and end, in the order of totals
        starts = np.searchsorted(sorted_totals, sums - room)
        stops = np.searchsorted(sorted_totals, sums + room, side="right")
        for position in np.flatnonzero(stops > starts):
            j = later[position]
            summands = (name, names[j])
            fitting = slice(starts[position], stops[position])
            for k in by_total[fitting]:
                if k not in (i, j):
                    yield summands, names[k]


def _verify_sum(
    table: MiningTable,
    names: tuple[str, ...],
    total: str,
    *,
    least_evidence: float,
) -> Rule | None:
    """Return the sum where it holds in every row and could have failed."""
    columns = [table.numbers(name) for name in names]
    summands = np.column_stack(columns)
    values = table.numbers(total)
    is_missing = np.isnan(summands).any(axis=1)
    is_missing |= np.isnan(values)
    summands = summands[~is_missing]
    values = values[~is_missing]
    if len(values) < LEAST_ROWS:
        return None
    share_at_work = (summands != 0).mean(axis=0)
    if (share_at_work <= SUMMAND_SHARE).any():
        return None
    sums = summands.sum(axis=1)
    larger = np.maximum(np.abs(sums), np.abs(values))
    difference = np.abs(sums - values)
    if (difference > tolerance_at(larger)).any():
        return None
    # a row that draws its total from any row keeps the sum where it draws the value that it had
    _, counts = np.unique(values, return_counts=True)
    shares = counts / len(values)
    chance_to_keep = float(np.square(shares).sum())
    evidence = len(values) * (1 - chance_to_keep)
    if evidence < least_evidence:
        return None
    left = " + ".join(quote_name(name) for name in names)
    right = quote_name(total)
    return table.make_rule("sum", f"{left} == {right}", evidence)


# a == 0 or b == 0


@dataclass(frozen=True)
class _PiledColumn:
    """A number that often has one value, and is spread out elsewhere.

    Attributes
    ----------
    test : str
        The condition that the number has its frequent value.
    is_off : ndarray of shape (n,), bool
        Rows with another value.
    """

    test: str
    is_off: np.ndarray


def mine_exclusions(
    table: MiningTable,
    least_evidence: float,
) -> Iterator[Rule]:
    """Find two numbers of which one always has its most frequent value, as gains and losses."""
    piled = _piled_columns(table)
    if len(piled) < 2:
        return
    marks = [column.is_off for column in piled]
    # as numbers, because the product of boolean matrices counts nothing
    is_off = np.column_stack(marks).astype(np.float32)
    n_both_off = is_off.T @ is_off
    n_off = is_off.sum(axis=0, dtype=np.float64)
    expected_both_off = np.outer(n_off, n_off) / table.n_rows
    for i, j in combinations(range(len(piled)), 2):
        evidence = expected_both_off[i, j]
        if n_both_off[i, j] == 0 and evidence >= least_evidence:
            text = f"{piled[i].test} or {piled[j].test}"
            yield table.make_rule("exclusive", text, evidence)


def _piled_columns(table: MiningTable) -> list[_PiledColumn]:
    piled = []
    for name in table.numeric_names:
        numbers = table.numbers(name)
        is_known = ~np.isnan(numbers)
        values, counts = np.unique(numbers[is_known], return_counts=True)
        if len(values) <= SPREAD_VALUES:
            continue
        if counts.max() < PILE_SHARE * table.n_rows:
            continue
        pile = values[counts.argmax()]
        is_off = (numbers != pile) & is_known
        test = write_equality(name, float(pile))
        piled.append(_PiledColumn(test, is_off))
    return piled
