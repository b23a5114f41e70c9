"""Groups of numbers that share one total: one-hot columns, and shares within a band.

What they are, how rows are mended to keep them, and the search for them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from amlb_ext.relations.conditions import Condition, Truth, tolerance_at
from amlb_ext.relations.grammar import (
    LONGEST_RULE,
    MOST_OPERATIONS,
    quote_name,
    quote_value,
)
from amlb_ext.relations.kinds import Rule
from amlb_ext.relations.mining_table import LEAST_ROWS, MiningTable
from amlb_ext.relations.values import WrittenForm, read_numbers

#: By how much the parent's own choice is ahead of another column's that is as large.
PARENT_BONUS = 1e-6


#: Made rows, their parents and how numbers are written, to the columns of a group, ``(n, k)``.
Mender = Callable[[pd.DataFrame, pd.DataFrame, Mapping[str, WrittenForm]], np.ndarray]


def one_hot_rule(columns: Sequence[str], evidence: float = np.inf) -> Rule:
    """Return the rule that exactly one of several columns is 1, and the others are 0.

    Examples
    --------
    >>> one_hot = one_hot_rule(("a", "b"))
    >>> one_hot.text
    'exactly one of {a, b} is 1'
    >>> made = pd.DataFrame({"a": [0.0, 0.4], "b": [0.0, 0.7]})
    >>> one_hot.breaks(made).tolist()
    [True, True]
    >>> mend = find_mender(one_hot)
    >>> mend(made, made.assign(a=[1.0, 1.0], b=[0.0, 0.0]), {}).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    names = tuple(columns)

    def evaluate(rows: pd.DataFrame) -> Truth:
        numbers = _group_numbers(rows, names)
        room = tolerance_at(numbers)
        is_one = np.abs(numbers - 1) <= room
        is_zero = np.abs(numbers) <= room
        is_known = ~np.isnan(numbers)
        n_ones = is_one.sum(axis=1)
        are_all_known = is_known.all(axis=1)
        is_false = (is_known & ~is_one & ~is_zero).any(axis=1) | (n_ones > 1)
        is_false |= are_all_known & (n_ones == 0)
        return Truth(is_true=are_all_known & ~is_false, is_false=is_false)

    quoted = ", ".join(quote_name(name) for name in names)
    text = f"exactly one of {{{quoted}}} is 1"
    return Rule("one_hot", Condition(text, names, evaluate), evidence)


def find_mender(rule: Rule) -> Mender | None:
    """Return what sets the columns of a rule right together; None where one by one is enough.

    Of a rule ``low <= a + b <= high`` the columns are shares, which are scaled into the band.

    Examples
    --------
    >>> from amlb_ext.relations.kinds import parse_relation
    >>> rows = pd.DataFrame({"a": [60.0, 30.0], "b": [40.2, 69.9]})
    >>> find_mender(parse_relation("a <= b + 20", rows))
    >>> mend = find_mender(parse_relation("99.5 <= a + b <= 100.5", rows))
    >>> mend(rows.assign(a=90.3), rows, {}).sum(axis=1).round(3).tolist()
    [100.2, 99.9]
    """
    if rule.kind == "one_hot":
        return partial(_mend_one_hot, rule.columns)
    tree = rule.condition.tree
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 2:
        return None
    is_sum = _count_summands(tree.comparators[0]) == len(rule.columns) > 1
    is_between = all(isinstance(comparator, ast.LtE) for comparator in tree.ops)
    if not is_sum or not is_between:
        return None
    try:
        low = float(ast.literal_eval(tree.left))
        high = float(ast.literal_eval(tree.comparators[1]))
    except (ValueError, TypeError):
        return None
    return partial(_scale_into_band, rule.columns, (low, high))


def _group_numbers(rows: pd.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """Return the columns of a group, ``(n, k)``."""
    return np.column_stack([read_numbers(rows, name) for name in columns])


def _mend_one_hot(
    columns: Sequence[str],
    made: pd.DataFrame,
    parents: pd.DataFrame,
    _: Mapping[str, WrittenForm],
) -> np.ndarray:
    """Put 1 where the number is largest; the parent's column where none is ahead."""
    numbers = _group_numbers(made, columns)
    parent = _group_numbers(parents, columns)
    leading = np.argmax(np.nan_to_num(numbers + PARENT_BONUS * parent), axis=1)
    mended = np.zeros(numbers.shape)
    mended[np.arange(len(mended)), leading] = 1.0
    # a real row with a gap knows no group
    is_unknown = np.isnan(parent).any(axis=1) | np.isnan(numbers).any(axis=1)
    return np.where(is_unknown[:, None], numbers, mended)


def _scale_into_band(
    columns: Sequence[str],
    band: tuple[float, float],
    made: pd.DataFrame,
    parents: pd.DataFrame,
    forms: Mapping[str, WrittenForm],
) -> np.ndarray:
    """Scale rows outside the band so that they have the parent's sum."""
    numbers = _group_numbers(made, columns)
    sums = numbers.sum(axis=1)
    wanted = _group_numbers(parents, columns).sum(axis=1)
    low, high = band
    room = tolerance_at(sums)
    with np.errstate(all="ignore"):
        is_outside = (sums < low - room) | (sums > high + room)
        factor = wanted / sums
        can_scale = is_outside & np.isfinite(factor) & (factor > 0)
        factor = np.where(can_scale, factor, 1.0)
        scaled = numbers * factor[:, None]

    def round_columns() -> None:
        """Round each share as its real numbers are."""
        for position, name in enumerate(columns):
            if name in forms:
                scaled[:, position] = forms[name].round(scaled[:, position])

    round_columns()
    # what rounding takes away goes to the largest share
    rows = np.flatnonzero(can_scale)
    largest = np.argmax(scaled[rows], axis=1)
    scaled[rows, largest] += wanted[rows] - scaled[rows].sum(axis=1)
    round_columns()
    return np.where(can_scale[:, None], scaled, numbers)


def _count_summands(node: ast.expr) -> int:
    """Return how many names a sum adds up; -1 where it is none."""
    if isinstance(node, ast.Name):
        return 1
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return -1
    parts = (_count_summands(node.left), _count_summands(node.right))
    return -1 if min(parts) < 0 else sum(parts)


# The search for groups.


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


def mine_one_hot(table: MiningTable) -> Iterator[Rule]:
    """Find groups of columns of zeros and ones, of which exactly one is 1 in every row.

    Examples
    --------
    >>> import pandas as pd
    >>> color = np.random.default_rng(0).integers(0, 3, 100)
    >>> rows = pd.DataFrame(np.eye(3)[color], columns=["red", "green", "blue"])
    >>> [rule.text for rule in mine_one_hot(MiningTable(rows))]
    ['exactly one of {red, green, blue} is 1']
    """
    names = []
    for name in table.numeric_names:
        numbers = table.numbers(name)
        # a column that is no indicator shows it at its beginning
        starts_so = np.isin(numbers[:100], (0, 1)).all()
        if starts_so and np.isin(numbers, (0, 1)).all() and numbers.any():
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
        if evidence >= table.least_evidence:
            is_free[group] = False
            yield one_hot_rule([names[position] for position in group], evidence)


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


def mine_bands(table: MiningTable, left_out: Collection[str]) -> Iterator[Rule]:
    """Find shares of a whole: columns whose sum lies within a narrow band in every row.

    Parameters
    ----------
    table : MiningTable
    left_out : collection of str
        Columns that others give exactly.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rows = pd.DataFrame(rng.dirichlet([4, 3, 2], 300) * 100, columns=["a", "b", "c"])
    >>> rows = (rows * rng.uniform(0.99, 1.001, (300, 1))).round(2)
    >>> [rule.text for rule in mine_bands(MiningTable(rows), [])]
    ['99.01 <= a + b + c <= 100.1']
    """
    # a column of two values is a mark, not a share
    varied = table.varied_names(3, left_out)
    shares = [name for name in varied if table.rows[name].min() >= 0]
    complete = table.complete_sample(shares, ROWS_PER_COLUMN)
    names = [str(name) for name in complete]
    least_rows = max(LEAST_ROWS, ROWS_PER_COLUMN * len(names))
    if len(names) < LEAST_MEMBERS or len(complete) < least_rows:
        return
    covariance = np.cov(complete.to_numpy(dtype=float), rowvar=False)
    taken: set[int] = set()
    for members in dict.fromkeys(_balanced_groups(covariance)):
        if members & taken:
            continue
        rule = _verify_band(table, [names[position] for position in sorted(members)])
        if rule is not None and rule.evidence >= table.least_evidence:
            taken |= members
            yield rule


def _balanced_groups(covariance: np.ndarray) -> Iterator[frozenset[int]]:
    """Return columns each of which falls by as much as the others rise together."""
    spread = np.sqrt(covariance.diagonal())
    if not spread.all():
        return
    # regressions of each column on all others, by the inverse; columns that others give leave a
    # trace of themselves on the diagonal
    sizes = np.outer(spread, spread)
    scaled = covariance / sizes + 1e-9 * np.eye(len(covariance))
    precision = np.linalg.inv(scaled) / sizes
    slopes = -precision / precision.diagonal()[:, None]
    for column, row in enumerate(slopes):
        balancing = np.flatnonzero(np.abs(row + 1) <= MOST_OFF).tolist()
        members = _least_spread(covariance, {column, *balancing})
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
    # to a hundredth of the band's width, and not below or above it
    width = max(high - low, 1e-9)
    digits = int(np.ceil(2 - np.log10(width)))
    unit = 10 ** max(0, digits)
    low = float(np.floor(low * unit + 1e-6) / unit)
    high = float(np.ceil(high * unit - 1e-6) / unit)
    summands = " + ".join(quote_name(name) for name in names)
    text = f"{quote_value(low)} <= {summands} <= {quote_value(high)}"
    if len(text) > LONGEST_RULE:
        return None
    rule = table.make_rule("shares", text, 0.0)
    # each column is shifted by rows of its own, so that no two stay together
    apart = table.rows[names].copy()
    for shift, name in enumerate(names):
        apart[name] = table.numbers(name)[np.roll(table.permutation, shift)]
    if rule.breaks(table.rows).any():
        return None
    return replace(rule, evidence=float(rule.breaks(apart).sum()))
