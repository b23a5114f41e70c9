"""Conditions on rows: true, false or unknown, evaluated on whole columns at once.

Missing values follow SQL's CHECK: a comparison with a missing value is unknown, and a row breaks a
condition only where it is false. ``column == missing`` is never unknown.

Notation: an *evaluation* takes a table of n rows and returns a :class:`Truth` of n values; a
*number* takes the table and returns n numbers, or a single one for a literal.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_

import numpy as np
import pandas as pd

#: Numbers that differ by less than this share of their size count as equal: what a value may lose
#: on its way through the scaling of a column and back.
TOLERANCE = 1e-9


def tolerance_at(numbers: np.ndarray) -> np.ndarray:
    """Return by how much numbers of this size may differ and still count as equal."""
    return TOLERANCE * np.maximum(1.0, np.abs(numbers))


@dataclass(frozen=True)
class Truth:
    """What is known of a condition in each row: it is true, it is false, or neither is known.

    Attributes
    ----------
    is_true, is_false : ndarray of shape (n,), bool
    """

    is_true: np.ndarray
    is_false: np.ndarray

    def __and__(self, other: Truth) -> Truth:
        return Truth(
            is_true=self.is_true & other.is_true,
            is_false=self.is_false | other.is_false,
        )

    def __or__(self, other: Truth) -> Truth:
        return Truth(
            is_true=self.is_true | other.is_true,
            is_false=self.is_false & other.is_false,
        )

    def __invert__(self) -> Truth:
        return Truth(is_true=self.is_false, is_false=self.is_true)


Evaluation = Callable[[pd.DataFrame], Truth]
Number = Callable[[pd.DataFrame], np.ndarray]
#: Two arrays to one, as ``operator.add``.
Operation = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Condition:
    """A condition on rows.

    Attributes
    ----------
    text : str
        As it was written.
    columns : tuple of str
        The columns that it names, in the order of their first mention.
    evaluate : callable
        Rows to :class:`Truth`.
    tree : ast.expr or None
        What was written, with the names of columns; None for an 'implies'.
    """

    text: str
    columns: tuple[str, ...]
    evaluate: Evaluation = field(repr=False, compare=False)
    tree: ast.expr | None = field(default=None, repr=False, compare=False)

    def breaks(self, rows: pd.DataFrame) -> np.ndarray:
        """Return which rows break the condition, ``(n,)`` bool."""
        return self.evaluate(rows).is_false


# logic


def negation(condition: Evaluation) -> Evaluation:
    """Return the evaluation of ``not condition``."""
    return lambda rows: ~condition(rows)


def conjunction(conditions: Sequence[Evaluation]) -> Evaluation:
    """Return the evaluation of conditions joined by ``and``."""

    def evaluate(rows: pd.DataFrame) -> Truth:
        return reduce(and_, (condition(rows) for condition in conditions))

    return evaluate


def disjunction(conditions: Sequence[Evaluation]) -> Evaluation:
    """Return the evaluation of conditions joined by ``or``."""

    def evaluate(rows: pd.DataFrame) -> Truth:
        return reduce(or_, (condition(rows) for condition in conditions))

    return evaluate


# comparisons


def compare_numbers(
    left: Number,
    symbol: str,
    right: Number,
    room: float = 0.0,
) -> Evaluation:
    """Return the comparison of two numbers, which are equal within the room and TOLERANCE."""

    def evaluate(rows: pd.DataFrame) -> Truth:
        # a literal is one number: it is stretched to one per row
        shape = (len(rows),)
        a = np.broadcast_to(left(rows), shape)
        b = np.broadcast_to(right(rows), shape)
        with np.errstate(invalid="ignore"):
            larger = np.maximum(np.abs(a), np.abs(b))
            is_equal = np.abs(a - b) <= room + tolerance_at(larger)
            is_less = (a < b) & ~is_equal
            is_greater = (a > b) & ~is_equal
        holds = {
            "<=": is_less | is_equal,
            "<": is_less,
            ">=": is_greater | is_equal,
            ">": is_greater,
            "==": is_equal,
            "!=": is_less | is_greater,
        }[symbol]
        # a missing number is neither less, nor equal, nor greater
        is_known = is_less | is_equal | is_greater
        return Truth(is_true=holds, is_false=is_known & ~holds)

    return evaluate


def is_missing(column: str) -> Evaluation:
    """Return the evaluation of ``column == missing``, which is never unknown."""

    def evaluate(rows: pd.DataFrame) -> Truth:
        missing = rows[column].isna().to_numpy()
        return Truth(is_true=missing, is_false=~missing)

    return evaluate


def is_category(column: str, text: str) -> Evaluation:
    """Return the comparison of a category with a text."""

    def evaluate(rows: pd.DataFrame) -> Truth:
        values = rows[column]
        is_known = values.notna().to_numpy()
        matches = (values == text).to_numpy(dtype=bool, na_value=False)
        return Truth(
            is_true=matches & is_known,
            is_false=~matches & is_known,
        )

    return evaluate


def is_same_category(first: str, second: str) -> Evaluation:
    """Return the comparison of two categories."""

    def evaluate(rows: pd.DataFrame) -> Truth:
        # two columns may have different categories, so their texts are compared
        left = rows[first].astype(object)
        right = rows[second].astype(object)
        is_known = (left.notna() & right.notna()).to_numpy()
        matches = (left == right).to_numpy(dtype=bool)
        return Truth(
            is_true=matches & is_known,
            is_false=~matches & is_known,
        )

    return evaluate


# numbers


def calculate(
    operation: Operation,
    left: Number,
    right: Number,
) -> Number:
    """Return the result of an operation on two numbers."""

    def evaluate(rows: pd.DataFrame) -> np.ndarray:
        with np.errstate(all="ignore"):
            result = operation(left(rows), right(rows))
        # a division by zero is unknown, like a missing value
        is_finite = np.isfinite(result)
        return np.where(is_finite, result, np.nan)

    return evaluate
