"""What a certificate measures: arrays in, one :class:`Measure` out.

Notation
--------
S : all real test rows of a task, pooled over folds;  B : its bad rows;  M : made rows
G : (n, m) loss per row of each of m candidates;  F : (n,) loss of the baseline
w : (n,) weight of each row, ``P(bad | x)``;  c : (n,) the real row each came from (its cluster)
delta_g : weighted mean of ``G[:, g] - F``

Intervals are 95 % and clustered by c, see :mod:`amlb_ext.stats.weighted_mean`; those of rankings
come from a bootstrap of clusters, drawn jointly for real rows and what was made from them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.stats import rankdata

from amlb_ext.stats.best_saving import BestSaving, best_saving
from amlb_ext.stats.weighted_mean import MeanEstimate, kish_size, weighted_mean_interval

#: Fewer distinct real rows than this say nothing.
MIN_ROWS = 10
#: No candidate saves more than this share of F's loss: nothing is left to mend.
NOTHING_LEFT = 0.05

#: What an interval shows of the best candidate's saving; empty for other measures, and in
#: certificates of format 1.
Finding = Literal["", "mendable", "nothing to mend", "not shown"]
MENDABLE: Finding = "mendable"
NOTHING: Finding = "nothing to mend"
NOT_SHOWN: Finding = "not shown"


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One line of a certificate.

    Attributes
    ----------
    name : str
    value, low, high : float or None
        None where there are too few rows, or no interval can be had.
    threshold : float or None
    source : str
        Where measure and threshold come from.
    passed : bool or None
        None when the measure is information only, does not apply, or shows neither; what could
        not be measured for want of rows has not passed.
    text : str
        What the number means, one sentence.
    sense : str
        ``>=`` or ``<=``: on which side of the threshold a value passes.
    finding : {'', 'mendable', 'nothing to mend', 'not shown'}
        What solvability has shown; the verdict rests on it.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    threshold: float | None
    source: str
    passed: bool | None
    text: str
    sense: str = ""
    finding: Finding = ""

    def to_json(self) -> dict[str, Any]:
        """Return the measure as a mapping."""
        return dict(vars(self))


#: Differences of losses below this part of the largest loss are rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Losses:
    """Losses of candidates and F on some rows; see the module's notation."""

    G: np.ndarray
    F: np.ndarray
    c: np.ndarray

    def __len__(self) -> int:
        return len(self.F)

    @property
    def gaps(self) -> np.ndarray:
        """G - F, ``(n, m)``: 0 where it is rounding, as where a candidate is F fitted again."""
        gaps = self.G - self.F[:, None]
        gaps[np.abs(gaps) <= ROUNDING * np.abs(self.F).max(initial=0.0)] = 0.0
        return gaps

    @property
    def rows(self) -> int:
        """Distinct real rows behind them."""
        return len(np.unique(self.c))

    def take(self, rows: np.ndarray) -> Losses:
        """Return some rows."""
        return Losses(self.G[rows], self.F[rows], self.c[rows])


def finite_or_none(value: float) -> float | None:
    """Return None for what is no finite number.

    Examples
    --------
    >>> finite_or_none(float("nan")), finite_or_none(np.float64(2))
    (None, 2.0)
    """
    return float(value) if math.isfinite(value) else None


def make_measure(
    name: str,
    value: float,
    text: str,
    source: str,
    *,
    low: float = math.nan,
    high: float = math.nan,
    threshold: float | None = None,
    sense: str = "",
) -> Measure:
    """Return a measure; it passes when the value stands on the right side of the threshold.

    Examples
    --------
    >>> make_measure("tau", 0.4, "", "", threshold=0.5, sense=">=").passed
    False
    """
    passed = None
    if threshold is not None:
        passed = bool(value >= threshold if sense == ">=" else value <= threshold)
    return Measure(
        name=name,
        value=finite_or_none(value),
        low=finite_or_none(low),
        high=finite_or_none(high),
        threshold=threshold,
        source=source,
        passed=passed,
        text=text,
        sense=sense,
    )


def missing_measure(
    name: str, why: str, source: str, threshold: float | None, sense: str
) -> Measure:
    """Return a measure that could not be taken; it has not passed when it has a threshold."""
    return Measure(
        name=name,
        value=None,
        low=None,
        high=None,
        threshold=threshold,
        source=source,
        passed=None if threshold is None else False,
        text=why,
        sense=sense,
    )


def too_few_text(rows: int, what: str = "bad rows", needed: int = MIN_ROWS) -> str:
    """Say that there are not enough rows."""
    return f"not enough rows: {rows} distinct real {what}, at least {needed} are needed"


def measure_region(w: np.ndarray, bad: np.ndarray, c: np.ndarray) -> Measure:
    """AUC of w for the bad flags of the test rows: does P(bad | x) foresee failures at all?"""
    name, source = (
        "region",
        "ours: the interval must lie above .5, else there is no region",
    )
    rows = len(np.unique(c[bad]))
    if rows < MIN_ROWS:
        return missing_measure(name, too_few_text(rows), source, 0.5, ">=")
    estimate = clustered_auc(w, bad, c)
    # a constant w has an AUC of .5 without error, which its interval does not show
    is_above_chance = bool(np.ptp(w) > 0 and estimate.low > 0.5)
    region = make_measure(
        name,
        estimate.point,
        "how well features alone foresee F's failures: AUC of P(bad | x) for the bad test rows",
        source,
        low=estimate.low,
        high=estimate.high,
        threshold=0.5,
        sense=">=",
    )
    return replace(region, passed=is_above_chance)


def clustered_auc(
    score: np.ndarray, positive: np.ndarray, c: np.ndarray
) -> MeanEstimate:
    r"""Return the AUC with a cluster-robust interval.

    With placements :math:`V_i` (share of the other class that row i beats, ties half) the AUC is
    their mean, and :math:`\psi_i = (V_i - A) / n_{class}` its influence (DeLong et al. 1988).

    Examples
    --------
    >>> round(clustered_auc(np.arange(8.0), np.arange(8) >= 4, np.arange(8)).point, 6)
    1.0
    """
    positives, negatives = int(positive.sum()), int((~positive).sum())
    # the rank of a row among all less that within its class counts the other class below it
    rank_overall = rankdata(score)
    rank_within = np.empty(len(score))
    rank_within[positive] = rankdata(score[positive])
    rank_within[~positive] = rankdata(score[~positive])
    below = (rank_overall - rank_within) / np.where(positive, negatives, positives)
    placement = np.where(positive, below, 1 - below)
    area = float(placement[positive].mean())
    share = np.where(positive, len(score) / positives, len(score) / negatives)
    return weighted_mean_interval(area + (placement - area) * share, None, c)


def measure_solvability(
    all_rows: Losses, w: np.ndarray, names: list[str], rng: np.random.Generator
) -> Measure:
    """Share of F's loss in the region that the best candidate saves, see ``validity.saving``.

    The interval is one for the *best* candidate, F among them, so it lies within 0 and 1. Its
    lower end shows that something can be mended, its upper end that little can; where neither
    does, the finding is ``not shown``, which is neither passed nor failed.
    """
    name, source = "solvability", "ours: the lower limit must lie above 0"
    if all_rows.rows < 2 * MIN_ROWS:
        why = too_few_text(all_rows.rows, "rows", 2 * MIN_ROWS)
        return replace(missing_measure(name, why, source, 0.0, ">="), finding=NOT_SHOWN)
    if not w @ all_rows.F > 0:
        why = "F makes no error in the region"
        return replace(missing_measure(name, why, source, 0.0, ">="), finding=NOT_SHOWN)
    # gaps, not losses: where a candidate is F fitted again, rounding is no saving
    candidate_losses = all_rows.F[:, None] + all_rows.gaps
    saving = best_saving(candidate_losses, all_rows.F, w, all_rows.c, rng)
    best = next((names[index] for index in saving.chosen if index >= 0), "none")
    passed, finding, text = _saving_finding(saving, best, len(names))
    solvability = make_measure(
        name,
        saving.point,
        text,
        source,
        low=saving.low,
        high=saving.high,
        threshold=0.0,
        sense=">=",
    )
    return replace(solvability, passed=passed, finding=finding)


def _saving_finding(
    saving: BestSaving, best: str, candidates: int
) -> tuple[bool | None, Finding, str]:
    """Return whether anything can be mended, the finding, and the sentence that says so."""
    low, high = 100 * saving.low, 100 * saving.high
    limits = f"95 % interval {low:.0f} to {high:.0f} %"
    if saving.high <= NOTHING_LEFT:
        text = (
            f"nothing to mend: none of {candidates} candidates saves more than "
            f"{high:.1f} % of F's loss in the region (the best: {limits})"
        )
        return False, NOTHING, text
    if saving.low > 0:
        text = (
            f"a candidate mends {percent_or_more(saving.low)} of F's loss in the region "
            f"(most often chosen: {best}; the best of {candidates}: {limits})"
        )
        return True, MENDABLE, text
    reason = f"; {saving.reason}" if saving.reason else ""
    text = (
        f"not shown: the best of {candidates} candidates may save none or up to "
        f"{high:.0f} % of F's loss in the region ({limits}{reason})"
    )
    return None, NOT_SHOWN, text


def percent_or_more(share: float) -> str:
    """Say a lower limit; a small one keeps a decimal, lest it read as none.

    Examples
    --------
    >>> percent_or_more(0.412), percent_or_more(0.0042), percent_or_more(0.0001)
    ('41 % or more', '0.4 % or more', 'some')
    """
    if share < 0.001:
        return "some"
    return f"{100 * share:.{0 if share >= 0.01 else 1}f} % or more"


def measure_hardness(made: Losses, bad: Losses) -> Measure:
    """F's mean loss on made rows over that on real bad rows."""
    name = "hardness"
    source = "paper, section 5; ours: at least .8 of the real bad rows' loss"
    if bad.rows < MIN_ROWS or made.rows < 3:
        why = (
            too_few_text(bad.rows)
            if bad.rows < MIN_ROWS
            else "no made rows on which F is known"
        )
        return missing_measure(name, why, source, 0.8, ">=")
    level = max(float(bad.F.mean()), 1e-12)
    loss = weighted_mean_interval(made.F, None, made.c)
    return make_measure(
        name,
        loss.point / level,
        f"F's mean loss on synthetic over that on real bad rows ({loss.point:.3g} / {level:.3g})",
        source,
        low=loss.low / level,
        high=loss.high / level,
        threshold=0.8,
        sense=">=",
    )


def measure_effective_size(
    w: np.ndarray, c: np.ndarray, threshold: float = 50.0
) -> Measure:
    """Kish's effective number of distinct real rows under the weights (``docs/validity.md``, 5)."""
    clusters = np.unique(c, return_inverse=True)[1]
    weight_per_row = np.bincount(clusters, w)  # a real row stands in several folds
    return make_measure(
        "effective size",
        kish_size(weight_per_row),
        f"distinct real rows that the weighted test rows are worth, of {len(weight_per_row)}",
        "docs/validity.md, 5; below 50 rank on all rows",
        threshold=threshold,
        sense=">=",
    )
