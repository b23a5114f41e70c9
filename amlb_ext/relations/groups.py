"""Groups of numbers that share one total: one-hot columns, and shares within a band."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.relations.conditions import Condition, Truth, tolerance_at
from amlb_ext.relations.grammar import quote_name
from amlb_ext.relations.kinds import Rule
from amlb_ext.relations.values import read_numbers
from amlb_ext.relations.written_forms import WrittenForm

#: By how much the parent's own choice is ahead of another column's that is as large.
PARENT_BONUS = 1e-6


@dataclass(frozen=True)
class Group(Rule):
    """Columns that are set right together, with the parent in view."""

    @abstractmethod
    def mend(
        self,
        made: pd.DataFrame,
        parents: pd.DataFrame,
        forms: Mapping[str, WrittenForm],
    ) -> np.ndarray:
        """Return the group's columns so that they satisfy the rule, ``(n, k)``.

        Parameters
        ----------
        made, parents : DataFrame of shape (n, d)
            Row i was made from parent i.
        forms : mapping of str to WrittenForm
        """

    def numbers(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the columns of the group, ``(n, k)``."""
        return np.column_stack([read_numbers(rows, name) for name in self.columns])


@dataclass(frozen=True)
class OneHot(Group):
    """Exactly one of several columns is 1, and the others are 0.

    Examples
    --------
    >>> one_hot = OneHot.of(("a", "b"))
    >>> one_hot.text
    'exactly one of {a, b} is 1'
    >>> made = pd.DataFrame({"a": [0.0, 0.4], "b": [0.0, 0.7]})
    >>> one_hot.breaks(made).tolist()
    [True, True]
    >>> one_hot.mend(made, made.assign(a=[1.0, 1.0], b=[0.0, 0.0]), {}).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    @classmethod
    def of(cls, columns: Sequence[str], evidence: float = np.inf) -> OneHot:
        """Return the rule on some columns of numbers."""
        names = tuple(columns)

        def evaluate(rows: pd.DataFrame) -> Truth:
            numbers = np.column_stack([read_numbers(rows, name) for name in names])
            room = tolerance_at(numbers)
            is_one = np.abs(numbers - 1) <= room
            is_known = ~np.isnan(numbers)
            is_other = is_known & ~is_one & (np.abs(numbers) > room)
            n_ones = is_one.sum(axis=1)
            are_all_known = is_known.all(axis=1)
            is_false = is_other.any(axis=1) | (n_ones > 1)
            is_false |= are_all_known & (n_ones == 0)
            return Truth(is_true=are_all_known & ~is_false, is_false=is_false)

        quoted = ", ".join(quote_name(name) for name in names)
        text = f"exactly one of {{{quoted}}} is 1"
        return cls("one_hot", Condition(text, names, evaluate), evidence)

    def mend(
        self,
        made: pd.DataFrame,
        parents: pd.DataFrame,
        forms: Mapping[str, WrittenForm],
    ) -> np.ndarray:
        """Put 1 where the number is largest; the parent's column where none is ahead."""
        numbers = self.numbers(made)
        parent = self.numbers(parents)
        leading = np.argmax(np.nan_to_num(numbers + PARENT_BONUS * parent), axis=1)
        mended = np.zeros(numbers.shape)
        mended[np.arange(len(mended)), leading] = 1.0
        # a real row with a gap knows no group
        is_unknown = np.isnan(parent).any(axis=1) | np.isnan(numbers).any(axis=1)
        return np.where(is_unknown[:, None], numbers, mended)


@dataclass(frozen=True)
class Shares(Group):
    """The sum of several columns lies within a band.

    Attributes
    ----------
    low, high : float

    Examples
    --------
    >>> from amlb_ext.relations.kinds import parse_relation
    >>> rows = pd.DataFrame({"a": [60.0, 30.0], "b": [40.2, 69.9]})
    >>> shares = read_shares(parse_relation("99.5 <= a + b <= 100.5", rows))
    >>> shares.mend(rows.assign(a=90.3), rows, {}).sum(axis=1).round(3).tolist()
    [100.2, 99.9]
    """

    low: float = -np.inf
    high: float = np.inf

    def mend(
        self,
        made: pd.DataFrame,
        parents: pd.DataFrame,
        forms: Mapping[str, WrittenForm],
    ) -> np.ndarray:
        """Scale rows outside the band so that they have the parent's sum."""
        numbers = self.numbers(made)
        sums = numbers.sum(axis=1)
        wanted = self.numbers(parents).sum(axis=1)
        room = tolerance_at(sums)
        with np.errstate(all="ignore"):
            is_outside = (sums < self.low - room) | (sums > self.high + room)
            can_scale = is_outside & np.isfinite(wanted / sums) & (wanted / sums > 0)
            scaled = numbers * np.where(can_scale, wanted / sums, 1.0)[:, None]
        for position, name in enumerate(self.columns):
            if name in forms:
                scaled[:, position] = forms[name].round(scaled[:, position])
        # what rounding takes away goes to the largest share
        rows = np.flatnonzero(can_scale)
        largest = np.argmax(scaled[rows], axis=1)
        scaled[rows, largest] += wanted[rows] - scaled[rows].sum(axis=1)
        for position, name in enumerate(self.columns):
            if name in forms:
                scaled[:, position] = forms[name].round(scaled[:, position])
        return np.where(can_scale[:, None], scaled, numbers)


def read_shares(rule: Rule) -> Rule:
    """Return a rule ``low <= a + b <= high`` so that rows are mended; others as they are.

    Examples
    --------
    >>> from amlb_ext.relations.kinds import parse_relation
    >>> rows = pd.DataFrame({"a": [60.0], "b": [40.2]})
    >>> type(read_shares(parse_relation("a <= b + 20", rows))).__name__
    'Rule'
    """
    tree = rule.condition.tree
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 2:
        return rule
    low, high = _read_bound(tree.left), _read_bound(tree.comparators[1])
    is_sum = _count_summands(tree.comparators[0]) == len(rule.columns)
    is_between = all(isinstance(comparator, ast.LtE) for comparator in tree.ops)
    if low is None or high is None or not is_sum or not is_between:
        return rule
    if len(rule.columns) < 2:
        return rule
    return Shares(rule.kind, rule.condition, rule.evidence, low=low, high=high)


def _read_bound(node: ast.expr) -> float | None:
    try:
        return float(ast.literal_eval(node))
    except (ValueError, TypeError):
        return None


def _count_summands(node: ast.expr) -> int:
    """Return how many names a sum adds up; -1 where it is none."""
    if isinstance(node, ast.Name):
        return 1
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return -1
    parts = (_count_summands(node.left), _count_summands(node.right))
    return -1 if min(parts) < 0 else sum(parts)
