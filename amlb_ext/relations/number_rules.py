"""Search for rules between numbers: orders, sums, multiples and exclusions.

A multiple of another number, and a constant more: two units of one quantity, or an amount before
and after tax. The target is often rounded, so the rule allows half a unit of its last decimal. Of
the two columns the one with more values is the source: what has fewer digits follows from what has
more.
"""

# Its lines stay dense: formulas of whole columns, whose parts have no name of their own.

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pandas as pd

from amlb_ext.relations.conditions import TOLERANCE, tolerance_at
from amlb_ext.relations.grammar import quote_name, quote_value, write_equality
from amlb_ext.relations.kinds import Rule
from amlb_ext.relations.mining_table import LEAST_ROWS, MiningTable

#: The most frequent value of a number is a pile from this share on, where others are spread out.
PILE_SHARE, SPREAD_VALUES = 0.3, 5
#: Both summands must be at work in this share of the rows.
SUMMAND_SHARE = 0.05


# a <= b


def mine_orders(table: MiningTable) -> Iterator[Rule]:
    """Find pairs of numbers of which one never exceeds the other."""
    names = table.numeric_names
    if len(names) < 2:
        return
    screened = table.screened_rows(names).to_numpy(dtype=float)
    smallest = table.rows[names].min().to_numpy()
    largest = table.rows[names].max().to_numpy()
    for i, lower in enumerate(names):
        # a missing number is not above another one
        with np.errstate(invalid="ignore"):
            holds_on_sample = ~(screened[:, [i]] > screened).any(axis=0)
        # where the ranges do not overlap the order cannot fail, so that it holds says nothing
        could_fail = largest[i] > smallest
        for j in np.flatnonzero(holds_on_sample & could_fail):
            a, b = table.complete_numbers(lower, names[j])
            # equal columns are found as a sum with one summand
            if len(a) < LEAST_ROWS or (a > b).any() or np.array_equal(a, b):
                continue
            # how many of n rows have a > b when both are drawn independently
            n_below = np.searchsorted(np.sort(b), a, side="left")
            evidence = n_below.sum() / len(b)
            if evidence >= table.least_evidence:
                symbol = "<" if (a < b).all() else "<="
                text = f"{quote_name(lower)} {symbol} {quote_name(names[j])}"
                yield table.make_rule("order", text, evidence)


# a + b == c and a == b


def mine_sums(table: MiningTable) -> Iterator[Rule]:
    """Find numbers that are the sum of two others, or equal to another one."""
    screened = table.complete_sample(table.varied_names())
    for names, total in _sum_candidates(screened):
        *columns, values = table.complete_numbers(*names, total)
        if len(values) < LEAST_ROWS:
            continue
        summands = np.column_stack(columns)
        if ((summands != 0).mean(axis=0) <= SUMMAND_SHARE).any():
            continue
        sums = summands.sum(axis=1)
        room = tolerance_at(np.maximum(np.abs(sums), np.abs(values)))
        evidence = _count_changed(values)
        if (np.abs(sums - values) <= room).all() and evidence >= table.least_evidence:
            left = " + ".join(quote_name(name) for name in names)
            yield table.make_rule("sum", f"{left} == {quote_name(total)}", evidence)


def _sum_candidates(
    screened: pd.DataFrame,
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Find summands, and the total that has their sum in every screened row.

    Rows get random weights: two columns, or a sum and a column, have the same weighted total
    only if they agree in every row. So a sum is found by a search among d sorted totals, and not
    by a comparison of d ** 3 columns.
    """
    names = list(screened.columns)
    numbers = screened.to_numpy(dtype=float)
    n_rows, n_columns = numbers.shape
    if not n_rows:
        return
    weights = np.random.default_rng(n_rows).normal(size=n_rows)
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
            for k in by_total[starts[position] : stops[position]]:
                if k not in (i, j):
                    yield (name, names[j]), names[k]


def _count_changed(values: np.ndarray) -> float:
    """Return how many rows have another value where each draws that of any row."""
    _, counts = np.unique(values, return_counts=True)
    shares = counts / len(values)
    return len(values) * (1 - float(np.square(shares).sum()))


def is_nearly_constant(numbers: np.ndarray) -> bool:
    """Return whether hardly any row has another number than the most frequent one."""
    _, counts = np.unique(numbers, return_counts=True)
    return bool(1 - counts.max() / counts.sum() < SUMMAND_SHARE)


# a == 0 or b == 0


def mine_exclusions(table: MiningTable) -> Iterator[Rule]:
    """Find two numbers of which one always has its most frequent value, as gains and losses."""
    # conditions that a number has its frequent value, and the rows with another one
    tests = []
    marks = []
    for name in table.numeric_names:
        numbers = table.numbers(name)
        is_known = ~np.isnan(numbers)
        values, counts = np.unique(numbers[is_known], return_counts=True)
        # it often has one value, and is spread out elsewhere
        is_spread = len(values) > SPREAD_VALUES
        if is_spread and counts.max() >= PILE_SHARE * table.n_rows:
            pile = values[counts.argmax()]
            tests.append(write_equality(name, float(pile)))
            marks.append((numbers != pile) & is_known)
    if not tests:
        return
    # as numbers, because the product of boolean matrices counts nothing
    is_off = np.column_stack(marks).astype(np.float32)
    n_both_off = is_off.T @ is_off
    n_off = is_off.sum(axis=0, dtype=np.float64)
    expected_both_off = np.outer(n_off, n_off) / table.n_rows
    for i, j in combinations(range(len(tests)), 2):
        evidence = expected_both_off[i, j]
        if n_both_off[i, j] == 0 and evidence >= table.least_evidence:
            text = f"{tests[i]} or {tests[j]}"
            yield table.make_rule("exclusive", text, evidence)


#: A column of fewer values is a code, and any two codes of two values lie on a line.
LEAST_VALUES = 10
#: Columns that correlate less are not looked at: rounding would say more than the line.
LEAST_CORRELATION = 0.999
#: By what factor the line of least squares may miss rows by more than the line of a rule.
SLACK = 1.5
#: What a squared correlation of one may lose when it is computed.
CORRELATION_ERROR = 1e-12
#: Digits of a slope, and decimals of a constant, that are tried: the shortest that fit are taken.
MOST_DIGITS = 12


#: Slope, intercept, and by how much a target may miss the line.
Line = tuple[float, float, float]


def mine_linear(table: MiningTable) -> Iterator[Rule]:
    """Find pairs of numbers that lie on a line in every row.

    Of several columns on one line each is tied to one other: what follows from those is not said
    again. Equal columns are left to :func:`amlb_ext.relations.number_rules.mine_sums`.

    Examples
    --------
    >>> import pandas as pd
    >>> celsius = np.random.default_rng(0).normal(15, 8, 100).round(1)
    >>> rows = pd.DataFrame({"celsius": celsius, "fahrenheit": (1.8 * celsius + 32).round(2)})
    >>> [rule] = mine_linear(MiningTable(rows))
    >>> rule.text
    'fahrenheit == 1.8 * celsius + 32'
    """
    screened = table.complete_sample(table.varied_names(LEAST_VALUES))
    names = list(screened.columns)
    if len(names) < 2:
        return
    rooms = table.half_units(names)
    # columns that lines tie together, directly or through others, have one number
    tied = np.arange(len(names))
    for i, j in _correlated_pairs(screened.to_numpy(dtype=float), rooms):
        if tied[i] == tied[j]:
            continue
        source, target = i, j
        if table.n_values[names[j]] > table.n_values[names[i]]:
            source, target = j, i
        room = float(rooms[target])
        rule = _verify_line(table, names[source], names[target], room=room)
        if rule is not None:
            tied[tied == tied[j]] = tied[i]
            yield rule


def _correlated_pairs(numbers: np.ndarray, rooms: np.ndarray) -> list[tuple[int, int]]:
    """Return pairs of columns that correlate as those on a line do, each once.

    ``rooms`` is by how much each column is rounded. Most pairs that correlate lie on no line, and
    their correlation shows it: what is left of a line is at most the rounding.
    """
    if len(numbers) < LEAST_ROWS:
        return []
    # scaled first: the square of a large number may be none
    with np.errstate(all="ignore"):
        largest = np.abs(numbers).max(axis=0)
        centred = numbers / largest
        centred -= centred.mean(axis=0)
        length = np.sqrt(np.square(centred).sum(axis=0))
        standardised = centred / length
        correlation = standardised.T @ standardised
        unexplained = 1 - np.square(correlation)
        misses = (rooms + tolerance_at(largest)) / largest
        shares = np.square(SLACK * misses / length)
        most = len(numbers) * shares + CORRELATION_ERROR
        may_be_line = unexplained <= np.maximum.outer(most, most)
    may_be_line &= unexplained <= 1 - LEAST_CORRELATION**2
    # each pair once
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(may_be_line, k=1))]


def _verify_line(
    table: MiningTable, source: str, target: str, *, room: float
) -> Rule | None:
    """Return the rule where it holds in every row and could have failed.

    ``room`` is by how much the rounded target may miss the line.
    """
    x, y = table.complete_numbers(source, target)
    if len(y) < LEAST_ROWS or (np.abs(x - y) <= tolerance_at(y)).all():
        return None
    line = _fit_line(x, y, room)
    evidence = _count_changed(y)
    if line is None or evidence < table.least_evidence:
        return None
    slope, intercept, room = line
    number = quote_name(source)
    if slope != 1:
        number = f"{quote_value(slope)} * {number}"
    text = write_formula(target, number, intercept)
    if room:
        text += f" within {quote_value(room)}"
    rule = table.make_rule("linear", text, evidence)
    # the rule as it is written, with its rounded slope, is what made rows must keep
    return None if rule.breaks(table.rows).any() else rule


def _fit_line(x: np.ndarray, y: np.ndarray, rounding: float) -> Line | None:
    """Return the line of the shortest numbers on which all rows lie, up to rounding."""
    with np.errstate(all="ignore"):
        centred = x - x.mean()
        least_squares = float(centred @ (y - y.mean()) / (centred @ centred))
    if not np.isfinite(least_squares) or least_squares == 0:
        return None
    # the line of a rule misses each row by its room at most, that of least squares by little more
    span = float(np.ptp(y - least_squares * x))
    if span > 2 * SLACK * (rounding + float(tolerance_at(y).max())):
        return None
    # without any room first: exact rules are shorter
    for room in dict.fromkeys((0.0, rounding)):
        for digits in range(MOST_DIGITS):
            slope = float(f"{least_squares:.{digits}e}")
            intercept = fit_constant(y - slope * x, room + tolerance_at(y))
            if intercept is not None:
                return slope, intercept, room
    return None


def fit_constant(rest: np.ndarray, room: np.ndarray) -> float | None:
    """Return the shortest constant that no row misses by more than its room."""
    low = float((rest - room).max())
    high = float((rest + room).min())
    if not low <= high:
        return None
    for decimals in range(MOST_DIGITS):
        intercept = round((low + high) / 2, decimals)
        if low <= intercept <= high:
            # without the sign of a zero
            return intercept + 0.0
    return None


def write_formula(target: str, written: str, constant: float) -> str:
    """Return the rule that a column is what is written, and a constant more."""
    text = f"{quote_name(target)} == {written}"
    sign = "+" if constant > 0 else "-"
    return f"{text} {sign} {quote_value(abs(constant))}" if constant else text
