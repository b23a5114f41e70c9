"""Where F fails, described: the words for that place, and how much of F's failing lies there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_percent
from amlb_ext.core.unit import Unit
from amlb_ext.swap.words import list_conditions, words_of_group
from amlb_ext.units.judged import Judged


@dataclass(frozen=True, kw_only=True)
class Place:
    """The units where F is foreseen to fail most, a fifth of those of which anything is foreseen.

    Attributes
    ----------
    n : int
        Units inside.
    share : float
        Of all units.
    fails_there, fails_elsewhere : float
        Shares of the units on which F fails.
    share_of_failures : float
        Of all units on which F fails, those inside.
    words : str
        Where most of them are; empty where no column tells.
    share_of_words : float
        Of all units, those that the words hold for.
    """

    n: int
    share: float
    fails_there: float
    fails_elsewhere: float
    share_of_failures: float
    words: str
    share_of_words: float

    def sentence(self, unit: Unit, verb: str = "fails") -> str:
        """Return the description.

        Examples
        --------
        >>> from amlb_ext.core.unit import ROW
        >>> place = Place(n=200, share=0.2, fails_there=0.38, fails_elsewhere=0.12,
        ...     share_of_failures=0.61, words="age > 70", share_of_words=0.14)
        >>> place.sentence(ROW)
        'Where F fails, the fifth of rows where that is foreseen most (mostly where age > 70, \
14 % of rows), it fails on 38 % of 200 rows, and elsewhere on 12 %; 61 % of its failures lie there.'
        """
        words = ""
        if self.words:
            share = format_percent(self.share_of_words)
            words = f" (mostly where {self.words}, {share} of {unit.many})"
        return (
            f"Where F {verb}, the fifth of {unit.many} where that is foreseen most{words}, it "
            f"{verb} on {format_percent(self.fails_there)} of {unit.count(self.n)}, and elsewhere "
            f"on {format_percent(self.fails_elsewhere)}; {format_percent(self.share_of_failures)} "
            f"of its failures lie there."
        )


def describe_place(judged: Judged, table: pd.DataFrame) -> Place | None:
    """Return where F fails, described; None where nothing foresees it.

    Parameters
    ----------
    judged : Judged
    table : DataFrame of n rows
        What is known of each unit beforehand.
    """
    weights = judged.compared.weights
    if weights is None or not weights.any():
        return None
    inside, bad = weights > 0, judged.is_bad
    conditions = list_conditions(table)
    words, told = "", np.zeros(len(bad), dtype=bool)
    if conditions.texts:
        words, told = words_of_group(conditions, weights)
    return Place(
        n=int(inside.sum()),
        share=float(inside.mean()),
        fails_there=float(bad[inside].mean()),
        fails_elsewhere=float(bad[~inside].mean()),
        share_of_failures=float(inside[bad].mean()) if bad.any() else 0.0,
        words=words,
        share_of_words=float(told.mean()),
    )
