"""What is predicted, and what an evaluation counts: a row of a table, or a window of series.

A verdict, a measure and a region are the same for both units. Only their sentences differ, so what
is called otherwise stands here, and a sentence takes it from its unit. No finished sentence is ever
translated.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, kw_only=True)
class Unit:
    """The words of one kind of unit.

    Attributes
    ----------
    one, many : str
        The unit itself.
    features : str
        What is known of it beforehand.
    given : str
        The same in a formula: ``P(F fails | x)``.
    fold, folds : str
        A part of the units that is tested at once.
    refits : str
        Further fits of F that show what "no difference" looks like.
    everything : str
        All units that are tested.
    more : str
        What gives a user more of them.
    """

    one: str
    many: str
    features: str
    given: str
    fold: str
    folds: str
    refits: str
    everything: str
    more: str

    def count(self, n: int) -> str:
        """Return a number of units in words.

        Examples
        --------
        >>> ROW.count(1), WINDOW.count(2)
        ('1 row', '2 windows')
        """
        return f"{n} {self.one if n == 1 else self.many}"


ROW = Unit(
    one="row",
    many="rows",
    features="features",
    given="x",
    fold="fold",
    folds="test folds",
    refits="re-fits",
    everything="the whole fold",
    more="run more folds or take a larger table",
)
WINDOW = Unit(
    one="window",
    many="windows",
    features="features of the past",
    given="past",
    fold="origin",
    folds="test origins",
    refits="twins",
    everything="all windows",
    more="take more series",
)


class Kind(str, Enum):
    """What is predicted, under AMLB's names."""

    REGRESSION = "regression"
    BINARY = "binary"
    MULTICLASS = "multiclass"

    @property
    def is_classification(self) -> bool:
        """Whether the target is a class."""
        return self is not Kind.REGRESSION

    def __str__(self) -> str:
        return self.value
