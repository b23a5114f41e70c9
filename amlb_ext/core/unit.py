"""What is predicted, and what an evaluation counts: a row of a table, or a window of series.

A verdict, a measure and a region are the same for both units. Only their sentences differ, so what
is called otherwise stands here, and a sentence takes it from its unit. No finished sentence is ever
translated.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

#: What F is called among frameworks.
F = "F"


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
    refit, refits : str
        Further fits of F that show what "no difference" looks like.
    groups : str
        What units that depend on each other have in common.
    everything : str
        All units that are tested.
    more : str
        What gives a user more of them.
    made : str
        Those that a program made, where real ones follow in the sentence.
    oracle, judge : str
        Who says whether their labels are right: at length, and in brief.
    """

    one: str
    many: str
    features: str
    given: str
    fold: str
    folds: str
    refit: str
    refits: str
    groups: str
    everything: str
    more: str
    made: str
    oracle: str
    judge: str

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
    refit="re-fit",
    refits="re-fits",
    groups="groups",
    everything="the whole fold",
    more="run more folds or take a larger table",
    made="synthetic",
    oracle="a freshly fitted oracle",
    judge="a fresh oracle",
)
WINDOW = Unit(
    one="window",
    many="windows",
    features="features of the past",
    given="past",
    fold="origin",
    folds="test origins",
    refit="twin",
    refits="twins",
    groups="series",
    everything="all windows",
    more="take more series",
    made="made windows",
    oracle="the median of the candidates",
    judge="the median of the candidates",
)
#: By the name that a file has for them.
UNITS = {unit.one: unit for unit in (ROW, WINDOW)}


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
