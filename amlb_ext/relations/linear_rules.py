"""Search for numbers that are a multiple of another one, and a constant more.

Two units of one quantity, or an amount before and after tax. The target is often rounded, so the
rule allows half a unit of its last decimal. Of the two columns the one with more values is the
source: what has fewer digits follows from what has more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from amlb_ext.relations.conditions import tolerance_at
from amlb_ext.relations.grammar import quote_name, quote_value
from amlb_ext.relations.kinds import Rule
from amlb_ext.relations.mining_table import LEAST_ROWS, MiningTable
from amlb_ext.relations.number_rules import complete_rows
from amlb_ext.relations.rounding import half_unit_of

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


@dataclass(frozen=True)
class _Line:
    slope: float
    intercept: float
    #: By how much a target may miss the line.
    room: float


def mine_linear(table: MiningTable, least_evidence: float) -> Iterator[Rule]:
    """Find pairs of numbers that lie on a line in every row.

    Of several columns on one line each is tied to one other: what follows from those is not said
    again. Equal columns are left to :func:`amlb_ext.relations.number_rules.mine_sums`.

    Examples
    --------
    >>> import pandas as pd
    >>> celsius = np.random.default_rng(0).normal(15, 8, 100).round(1)
    >>> rows = pd.DataFrame({"celsius": celsius, "fahrenheit": (1.8 * celsius + 32).round(2)})
    >>> [rule] = mine_linear(MiningTable.from_rows(rows, 0), 10)
    >>> rule.text
    'fahrenheit == 1.8 * celsius + 32'
    """
    n_values = table.rows[table.numeric_names].nunique()
    spread = [name for name in table.numeric_names if n_values[name] >= LEAST_VALUES]
    if len(spread) < 2:
        return
    screened = complete_rows(table.screened_rows(spread))
    names = list(screened.columns)
    numbers = screened.to_numpy(dtype=float)
    rooms = np.array([half_unit_of(table.numbers(name)) for name in names])
    # columns that lines tie together, directly or through others, have one number
    tied = np.arange(len(names))
    for i, j in _correlated_pairs(numbers, rooms):
        if tied[i] == tied[j]:
            continue
        source, target = i, j
        if n_values[names[j]] > n_values[names[i]]:
            source, target = j, i
        rule = _verify_line(
            table,
            names[source],
            names[target],
            room=float(rooms[target]),
            least_evidence=least_evidence,
        )
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
        unexplained = 1 - np.square((centred / length).T @ (centred / length))
        misses = (rooms + tolerance_at(largest)) / largest
        most = len(numbers) * np.square(SLACK * misses / length) + CORRELATION_ERROR
        may_be_line = unexplained <= np.maximum.outer(most, most)
    may_be_line &= unexplained <= 1 - LEAST_CORRELATION**2
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(may_be_line, k=1))]


def _verify_line(
    table: MiningTable,
    source: str,
    target: str,
    *,
    room: float,
    least_evidence: float,
) -> Rule | None:
    """Return the rule where it holds in every row and could have failed.

    ``room`` is by how much the rounded target may miss the line.
    """
    x = table.numbers(source)
    y = table.numbers(target)
    is_known = ~(np.isnan(x) | np.isnan(y))
    known_x = x[is_known]
    known_y = y[is_known]
    if len(known_y) < LEAST_ROWS:
        return None
    if (np.abs(known_x - known_y) <= tolerance_at(known_y)).all():
        return None
    line = _fit_line(known_x, known_y, room)
    if line is None:
        return None
    # a row that draws its target from any row stays on the line where it draws the value it had
    _, counts = np.unique(known_y, return_counts=True)
    shares = counts / len(known_y)
    evidence = len(known_y) * (1 - float(np.square(shares).sum()))
    if evidence < least_evidence:
        return None
    rule = table.make_rule("linear", _write_line(line, source, target), evidence)
    # the rule as it is written, with its rounded slope, is what made rows must keep
    if rule.breaks(table.rows).any():
        return None
    return rule


def _fit_line(x: np.ndarray, y: np.ndarray, rounding: float) -> _Line | None:
    """Return the line of the shortest numbers on which all rows lie, up to rounding."""
    least_squares = _slope_of(x, y)
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
                return _Line(slope=slope, intercept=intercept, room=room)
    return None


def _slope_of(x: np.ndarray, y: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        centred = x - x.mean()
        return float(centred @ (y - y.mean()) / (centred @ centred))


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


def _write_line(line: _Line, source: str, target: str) -> str:
    """Return the rule in the language of relations."""
    number = quote_name(source)
    if line.slope != 1:
        number = f"{quote_value(line.slope)} * {number}"
    if line.intercept:
        sign = "+" if line.intercept > 0 else "-"
        number += f" {sign} {quote_value(abs(line.intercept))}"
    if not line.room:
        return f"{quote_name(target)} == {number}"
    return f"{quote_name(target)} == {number} within {quote_value(line.room)}"
