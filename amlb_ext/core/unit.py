"""What an evaluation counts: a row of a table, or a window of series.

A verdict, a measure and a region are the same for both. Only their sentences differ, so what is
called otherwise stands here, and a sentence takes it from its unit. No finished sentence is ever
translated.
"""

from __future__ import annotations

from dataclasses import dataclass


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
    refits: str
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
    refits="re-fits",
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
    refits="twins",
    everything="all windows",
    more="take more series",
    made="made windows",
    oracle="the median of the candidates",
    judge="the median of the candidates",
)
#: By the name that a file has for them.
UNITS = {unit.one: unit for unit in (ROW, WINDOW)}
