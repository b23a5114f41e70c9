"""Search for columns that share one total: one-hot groups, and shares whose sum lies in a band."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from amlb_ext.relations.grammar import (
    LONGEST_RULE,
    MOST_OPERATIONS,
    quote_name,
    quote_value,
)
from amlb_ext.relations.groups import OneHot, read_shares
from amlb_ext.relations.kinds import Rule
from amlb_ext.relations.mining_table import LEAST_ROWS, SCREENING_ROWS, MiningTable
from amlb_ext.relations.number_rules import complete_rows

#: Of two columns each says what the other one is, so a group has more.
LEAST_MEMBERS = 3
#: Columns that are tried until a group is given up.
MOST_TRIED = 2000

#: Rows for each column, so that no shares have one sum by chance.
ROWS_PER_COLUMN = 4
#: A share falls by one when another one rises by one, up to this.
MOST_OFF = 0.35
#: The spread of the sum, as a share of what it would be if the shares had nothing to do with each
#: other; and the width of its band, as a share of the sum.
MOST_SPREAD, MOST_WIDTH = 0.25, 0.05
#: A column belongs to the shares if the variance of their sum falls by more than this with it.
LEAST_FALL = 0.1


def mine_one_hot(table: MiningTable, least_evidence: float) -> Iterator[OneHot]:
    """Find groups of columns of zeros and ones, of which exactly one is 1 in every row.

    Examples
    --------
    >>> import pandas as pd
    >>> color = np.random.default_rng(0).integers(0, 3, 100)
    >>> rows = pd.DataFrame(np.eye(3)[color], columns=["red", "green", "blue"])
    >>> [rule.text for rule in mine_one_hot(MiningTable.from_rows(rows, 0), 10)]
    ['exactly one of {red, green, blue} is 1']
    """
    names = []
    for name in table.numeric_names:
        # a column that is no indicator shows it at its beginning
        if np.isin(table.numbers(name)[:100], (0, 1)).all():
            numbers = table.numbers(name)
            if np.isin(numbers, (0, 1)).all() and numbers.any():
                names.append(name)
    if len(names) < LEAST_MEMBERS:
        return
    is_one = np.column_stack([table.numbers(name) for name in names]).astype(np.float32)
    meets = is_one.T @ is_one > 0
    counts = is_one.sum(axis=0, dtype=float)
    is_free = np.ones(len(names), dtype=bool)
    for first in range(len(names)):
        if not is_free[first]:
            continue
        group = _complete_group(is_one > 0, meets, is_free, first)
        if len(group) < LEAST_MEMBERS:
            continue
        shares = counts[group] / table.n_rows
        # a row with independent columns keeps the rule if exactly one of them is 1
        others = [
            np.prod(np.delete(1 - shares, position)) for position in range(len(group))
        ]
        evidence = table.n_rows * (1 - float(shares @ np.array(others)))
        if evidence >= least_evidence:
            is_free[group] = False
            yield OneHot.of([names[position] for position in group], evidence)


def _complete_group(
    is_one: np.ndarray, meets: np.ndarray, is_free: np.ndarray, first: int
) -> list[int]:
    """Return columns, the first given, that cover every row once; empty if there are none.

    A row that no column covers yet is taken, and the columns that could cover it are tried one
    after another, those that stand next to the first one first (Knuth's exact cover).
    """
    waiting = [[first]]
    for _ in range(MOST_TRIED):
        if not waiting:
            return []
        group = waiting.pop()
        is_covered = is_one[:, group].any(axis=1)
        if is_covered.all():
            return sorted(group)
        row = int(is_covered.argmin())
        is_apart = ~meets[group].any(axis=0)
        fitting = np.flatnonzero(is_one[row] & is_apart & is_free)
        # the last one is taken first
        by_distance = np.argsort(-np.abs(fitting - first), kind="stable")
        waiting += [[*group, int(fitting[position])] for position in by_distance]
    return []


def mine_bands(
    table: MiningTable,
    least_evidence: float,
    left_out: Collection[str] = (),
) -> Iterator[Rule]:
    """Find shares of a whole: columns whose sum lies within a narrow band in every row.

    Parameters
    ----------
    table : MiningTable
    least_evidence : float
    left_out : collection of str
        Columns that others give exactly.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rows = pd.DataFrame(rng.dirichlet([4, 3, 2], 300) * 100, columns=["a", "b", "c"])
    >>> rows = (rows * rng.uniform(0.99, 1.001, (300, 1))).round(2)
    >>> [rule.text for rule in mine_bands(MiningTable.from_rows(rows, 0), 10)]
    ['99.01 <= a + b + c <= 100.1']
    """
    n_values = table.rows[table.numeric_names].nunique()
    names = []
    for name in table.numeric_names:
        # a column of two values is a mark, not a share
        if name not in left_out and n_values[name] > 2 and table.rows[name].min() >= 0:
            names.append(name)
    if len(names) < LEAST_MEMBERS:
        return
    n_tried = max(SCREENING_ROWS, ROWS_PER_COLUMN * len(names))
    complete = complete_rows(
        table.rows[names].iloc[np.sort(table.permutation[:n_tried])]
    )
    names = [str(name) for name in complete]
    least_rows = max(LEAST_ROWS, ROWS_PER_COLUMN * len(names))
    if len(names) < LEAST_MEMBERS or len(complete) < least_rows:
        return
    covariance = np.cov(complete.to_numpy(dtype=float), rowvar=False)
    seen: set[frozenset[int]] = set()
    taken: set[int] = set()
    for members in _balanced_groups(covariance):
        if members in seen or members & taken:
            continue
        seen.add(members)
        rule = _verify_band(table, [names[position] for position in sorted(members)])
        if rule is not None and rule.evidence >= least_evidence:
            taken |= members
            yield rule


def _balanced_groups(covariance: np.ndarray) -> Iterator[frozenset[int]]:
    """Return columns each of which falls by as much as the others rise together."""
    spread = np.sqrt(covariance.diagonal())
    if not spread.all():
        return
    # regressions of each column on all others, by the inverse; columns that others give leave a
    # trace of themselves on the diagonal
    scaled = covariance / np.outer(spread, spread) + 1e-9 * np.eye(len(covariance))
    precision = np.linalg.inv(scaled) / np.outer(spread, spread)
    slopes = -precision / precision.diagonal()[:, None]
    for column, row in enumerate(slopes):
        members = set(np.flatnonzero(np.abs(row + 1) <= MOST_OFF).tolist()) | {column}
        members = _least_spread(covariance, members)
        if not LEAST_MEMBERS <= len(members) <= MOST_OPERATIONS:
            continue
        positions = sorted(members)
        among = covariance[np.ix_(positions, positions)]
        if among.sum() <= MOST_SPREAD**2 * among.trace():
            yield frozenset(members)


def _least_spread(covariance: np.ndarray, members: set[int]) -> set[int]:
    """Add and remove columns as long as the variance of the sum falls by much."""
    is_member = np.zeros(len(covariance))
    is_member[list(members)] = 1.0
    for _ in range(len(covariance)):
        variance = is_member @ covariance @ is_member
        sign = 1 - 2 * is_member
        change = covariance.diagonal() + 2 * sign * (covariance @ is_member)
        # a column that hardly matters is no member
        gain = -change - sign * LEAST_FALL * variance
        best = int(gain.argmax())
        if gain[best] <= 0:
            break
        is_member[best] = 1 - is_member[best]
    return set(np.flatnonzero(is_member).tolist())


def _verify_band(table: MiningTable, names: list[str]) -> Rule | None:
    """Return the rule that the sum lies in the band of all rows, with its evidence."""
    numbers = np.column_stack([table.numbers(name) for name in names])
    sums = numbers.sum(axis=1)
    known = sums[~np.isnan(sums)]
    if len(known) < LEAST_ROWS:
        return None
    low, high = float(known.min()), float(known.max())
    if high - low > MOST_WIDTH * abs(low):
        return None
    digits = max(0, int(np.ceil(2 - np.log10(max(high - low, 1e-9)))))
    low = float(np.floor(low * 10**digits + 1e-6) / 10**digits)
    high = float(np.ceil(high * 10**digits - 1e-6) / 10**digits)
    summands = " + ".join(quote_name(name) for name in names)
    text = f"{quote_value(low)} <= {summands} <= {quote_value(high)}"
    if len(text) > LONGEST_RULE:
        return None
    rule = read_shares(table.make_rule("shares", text, 0.0))
    # each column is shifted by rows of its own, so that no two stay together
    order = table.permutation
    shuffled = {
        name: table.numbers(name)[np.roll(order, shift)]
        for shift, name in enumerate(names)
    }
    evidence = rule.breaks(table.rows[names].assign(**shuffled)).sum()
    return (
        None
        if rule.breaks(table.rows).any()
        else replace(rule, evidence=float(evidence))
    )
