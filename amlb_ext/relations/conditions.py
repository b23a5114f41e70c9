"""Conditions on rows: true, false or unknown, evaluated on whole columns at once.

Missing values follow SQL's CHECK: a comparison with a missing value is unknown, and a row breaks a
condition only where it is false. ``column == missing`` is never unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

#: Numbers that differ by less than this share of their size count as equal: what a value may lose
#: on its way through the scaling of a column and back.
TOLERANCE = 1e-9


def tolerance_at(numbers: np.ndarray) -> np.ndarray:
    """Return by how much numbers of a column may differ and still count as equal.

    Near 0 it is what the others lose: those of a column of tiny numbers differ by less.

    Examples
    --------
    >>> tolerance_at(np.array([0.0, 20.0])).tolist()
    [1e-09, 2e-08]
    >>> float(tolerance_at(np.array([0.0, 1e-12]))[0]) < 1e-20
    True
    """
    sizes = np.abs(numbers)
    largest = np.nanmax(sizes, initial=0.0)
    return TOLERANCE * np.maximum(min(1.0, largest), sizes)


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


def compare_numbers(
    left: np.ndarray, symbol: str, right: np.ndarray, room: float = 0.0
) -> Truth:
    """Return the comparison of numbers, ``(n,)``, which are equal within the room and TOLERANCE."""
    with np.errstate(invalid="ignore"):
        larger = np.maximum(np.abs(left), np.abs(right))
        is_equal = np.abs(left - right) <= room + tolerance_at(larger)
        is_less = (left < right) & ~is_equal
        is_greater = (left > right) & ~is_equal
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


def compare_texts(values: pd.Series, other: pd.Series | str) -> Truth:
    """Return whether categories are a text, or those of another column."""
    is_known = values.notna()
    if isinstance(other, pd.Series):
        is_known &= other.notna()
        # two columns may have different categories, so their texts are compared
        values, other = values.astype(object), other.astype(object)
    matches = (values == other).to_numpy(dtype=bool, na_value=False)
    known = is_known.to_numpy()
    return Truth(is_true=matches & known, is_false=~matches & known)
