"""Units that were judged, rows or windows alike, and what may be said of models on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.unit import Unit
from amlb_ext.stats.claims import (
    COLUMNS,
    NUMBERS,
    OVERALL,
    REGION,
    answer_questions,
    why_no_region,
)
from amlb_ext.stats.contrasts import ComparedUnits
from amlb_ext.stats.diebold_mariano import diebold_mariano
from amlb_ext.stats.heavy_tails import BY_PLAIN
from amlb_ext.stats.weighted_mean import holm_adjusted, p_value

#: Fewer groups whose units share their times are compared over time, and teach no region.
FEWEST_CLUSTERS = 30


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Units on which models are compared with F.

    Attributes
    ----------
    compared : ComparedUnits
        F's losses and those of its re-fits, which units are in the place where F fails, which
        depend on each other, and what the units are.
    is_bad : ndarray of shape (n,), bool
        Those that the rule calls bad.
    risk : ndarray of shape (n,) or None
        Each unit's chance that F fails on it, by what is known beforehand; None where that does
        not foresee it.
    rule : str
        The rule in words, with its threshold and why.
    verb : str
        What F does on bad units: ``fails``, or ``is unsure``.
    no_claim : str
        Why nothing may be claimed where F fails; empty where it may.
    overlap : int
        How many times in a row have outcomes that overlap; 1 where none do.
    """

    compared: ComparedUnits
    is_bad: np.ndarray
    risk: np.ndarray | None = None
    rule: str = ""
    verb: str = "fails"
    no_claim: str = ""
    overlap: int = 1

    @property
    def unit(self) -> Unit:
        """What the units are."""
        return self.compared.unit

    @property
    def is_over_time(self) -> bool:
        """Whether too few groups are left to compare across, and units have times."""
        units = self.compared
        if units.calendar is None or units.clusters is None:
            return False
        return len(np.unique(units.clusters)) < FEWEST_CLUSTERS

    @property
    def weighting(self) -> str:
        """How units count where F fails, or why nothing is said there."""
        weighting = self.compared.weighting
        why = self.no_claim or why_no_region(weighting, unit=self.unit)
        return why or weighting.reason

    def by_row(self) -> dict[str, np.ndarray]:
        """Return what is known of each unit: whether it is bad, its risk, and its place."""
        n, inside = len(self.is_bad), self.compared.weights
        return {
            "is_bad": self.is_bad,
            "risk": np.full(n, np.nan) if self.risk is None else self.risk,
            "where_f_fails": (np.zeros(n) if inside is None else inside) > 0,
        }


def answer(
    judged: Judged,
    losses: pd.DataFrame,
    *,
    scored: pd.DataFrame | None = None,
    apart: Collection[str] = (),
    fits: Mapping[str, pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """Answer the three questions for each candidate.

    Parameters
    ----------
    judged : Judged
    losses : DataFrame of shape (n, m)
        Losses of each unit, by candidate, as they are.
    scored : DataFrame of shape (n, m), bool, optional
        The units that each candidate is compared on, all when omitted.
    apart : collection of str
        Names that are no candidates, such as F's own controls: they are adjusted among themselves.
    fits : mapping of str to DataFrame of shape (n, R), optional
        Losses of each candidate's recipe fitted on the samples of F's re-fits, by candidate: the
        claim is then of recipes.

    Returns
    -------
    DataFrame
        See :func:`~amlb_ext.stats.claims.answer_questions`, and ``relative``: the difference as a
        share of F's loss, NaN where F has none. Few groups over time are compared by
        :func:`~amlb_ext.stats.diebold_mariano.diebold_mariano`.

    Raises
    ------
    DataError
        Losses that are not finite; or groups and times too few for either kind of comparison.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> f = rng.random(400)
    >>> judged = Judged(compared=ComparedUnits(loss_f=f), is_bad=f > 0.9)
    >>> table = answer(judged, pd.DataFrame({"g": f - 0.3 + 0.2 * rng.random(400)}))
    >>> table["verdict"].tolist()
    ['better', 'no claim']
    """
    if judged.is_over_time:
        table = _answer_over_time(judged, losses)
    else:
        is_apart = losses.columns.isin(list(apart))
        families = [losses.columns[~is_apart], losses.columns[is_apart]]
        # where nobody is compared, the columns are those of any other table
        tables = [
            answer_questions(
                losses[family],
                judged.compared,
                scored=None if scored is None else scored[family],
                no_claim=judged.no_claim,
                fits=fits,
            )
            for family in families
            if len(family) or not losses.shape[1]
        ]
        table = pd.concat(tables, ignore_index=True)
    has_loss = table["loss_f"] > 0
    table["relative"] = table["difference"] / table["loss_f"].where(has_loss)
    return table


def _answer_over_time(judged: Judged, losses: pd.DataFrame) -> pd.DataFrame:
    """Return the answers of the Diebold-Mariano test over origins, for few groups."""
    units, unit = judged.compared, judged.unit
    assert units.calendar is not None
    times, time_of = np.unique(units.calendar, return_inverse=True)
    time_of = time_of.reshape(-1)
    n_times = len(times)
    counts = np.bincount(time_of)
    same = {"rows": len(units.loss_f), "weighted": False}
    overall: list[dict[str, Any]] = []
    region = []
    for name in losses.columns:
        differences = losses[name].to_numpy() - units.loss_f
        by_time = np.bincount(time_of, differences) / counts
        estimate = diebold_mariano(by_time, judged.overlap, units.level)
        overall.append(
            {
                **same,
                "candidate": name,
                "question": OVERALL,
                "loss": float(losses[name].mean()),
                "loss_f": float(units.loss_f.mean()),
                "difference": estimate.point,
                "low": estimate.low,
                "high": estimate.high,
                "p": p_value(estimate),
                "effective_size": float(n_times),
                "by": BY_PLAIN,
                "verdict": "undecided",
                "reason": estimate.reason or "no significant difference from F",
            }
        )
        answer = {"verdict": "no claim", "reason": judged.no_claim, "by": ""}
        region.append({**same, "candidate": name, "question": REGION, **answer})
    adjusted = holm_adjusted(np.array([record["p"] for record in overall]))
    for record, p in zip(overall, adjusted, strict=True):
        record["p_adjusted"] = p
        if p < 1 - units.level:
            word = "better" if record["difference"] < 0 else "worse"
            reason = f"significantly {word} than F over {n_times} {unit.folds}"
            record |= {"verdict": word, "reason": reason}
    table = pd.DataFrame([*overall, *region], columns=COLUMNS)
    return table.astype(dict.fromkeys(NUMBERS, float))
