"""What a certificate measures: arrays in, one :class:`Measure` out.

Notation
--------
S : all real test rows of a task, pooled over folds;  B : its bad rows;  M : made rows
G : (n, m) loss per row of each of m candidates;  F : (n,) loss of the baseline
w : (n,) weight of each row, ``P(bad | x)``;  c : (n,) the real row each came from (its cluster)
delta_g : weighted mean of ``G[:, g] - F``
T : (n,) or (n, C) what an oracle predicts that is fitted anew for the certificate

Intervals are 95 % and clustered by c, see :mod:`amlb_ext.stats.weighted_mean`; those of rankings
come from a bootstrap of clusters, drawn jointly for real rows and what was made from them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np
from scipy.stats import rankdata
from scipy.stats import t as student

from amlb_ext.core.unit import Unit
from amlb_ext.hardening.oracle import check_labels
from amlb_ext.stats.best_saving import BestSaving, best_saving
from amlb_ext.stats.contrasts import SMALLEST_EFFECTIVE_SIZE
from amlb_ext.stats.weighted_mean import MeanEstimate, kish_size, weighted_mean_interval

#: Fewer distinct real rows than this say nothing.
MIN_ROWS = 10
#: Fewer made rows than this have no spread to speak of.
MIN_MADE_ROWS = 3
#: No candidate saves more than this share of F's loss: nothing is left to mend.
NOTHING_LEFT = 0.05
#: Differences of losses below this part of the largest loss are rounding.
ROUNDING = 1e-12
#: Share of labels by which made rows may surely agree less than real bad rows.
AGREEMENT_MARGIN = 0.05
#: Plausibility by which made rows may surely fall short of real bad rows.
CLASS_MARGIN, REGRESSION_MARGIN = -0.02, -0.1
#: One absurd label must not outweigh all others.
LEAST_PLAUSIBLE = -5.0

#: What an interval shows of the best candidate's saving; empty for other measures.
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

    def missing(self, why: str) -> Measure:
        """Return a planned measure as one that could not be taken."""
        return replace(self, text=why)

    def found(
        self, value: float, text: str, *, low: float = math.nan, high: float = math.nan
    ) -> Measure:
        """Return a planned measure with its value: the threshold says whether it passes."""
        return replace(
            self,
            value=finite_or_none(value),
            low=finite_or_none(low),
            high=finite_or_none(high),
            passed=self.reaches(value),
            text=text,
        )

    def reaches(self, value: float) -> bool | None:
        """Whether a value lies on the right side of the threshold; None where there is none."""
        if self.threshold is None:
            return None
        is_enough = value >= self.threshold
        return bool(is_enough if self.sense == ">=" else value <= self.threshold)

    def estimated(self, estimate: MeanEstimate, text: str) -> Measure:
        """Return a planned measure with an estimate and its interval."""
        return self.found(estimate.point, text, low=estimate.low, high=estimate.high)


SomeUnits = TypeVar("SomeUnits", bound="UnitRecord")


@dataclass(frozen=True)
class UnitRecord:
    """A record of arrays, or of such records, with an entry for each unit.

    An array without entries holds what is not known of any unit.
    """

    def take(self: SomeUnits, units: np.ndarray) -> SomeUnits:
        """Return the record of some units, by position or as a mask."""
        taken = {}
        for name, value in vars(self).items():
            if isinstance(value, UnitRecord):
                taken[name] = value.take(units)
            else:
                taken[name] = value[units] if len(value) else value
        return replace(self, **taken)

    @classmethod
    def join(cls: type[SomeUnits], parts: Sequence[SomeUnits]) -> SomeUnits:
        """Return the units of several records as one, for the same models."""
        joined: dict[str, Any] = {}
        for name, value in vars(parts[0]).items():
            values = [getattr(part, name) for part in parts]
            is_record = isinstance(value, UnitRecord)
            joined[name] = value.join(values) if is_record else np.concatenate(values)
        return replace(parts[0], **joined)


@dataclass(frozen=True)
class Losses(UnitRecord):
    """Losses of all models on the same units; see the module's notation.

    Attributes
    ----------
    candidates : ndarray of shape (n, m)
        G.
    baseline : ndarray of shape (n,)
        F.
    clusters : ndarray of shape (n,)
        c.
    """

    candidates: np.ndarray
    baseline: np.ndarray
    clusters: np.ndarray

    def __len__(self) -> int:
        return len(self.baseline)

    @property
    def gaps(self) -> np.ndarray:
        """G - F, ``(n, m)``: 0 where it is rounding, as where a candidate is F fitted again."""
        gaps = self.candidates - self.baseline[:, None]
        largest_loss = np.abs(self.baseline).max(initial=0.0)
        gaps[np.abs(gaps) <= ROUNDING * largest_loss] = 0.0
        return gaps

    @property
    def n_real_rows(self) -> int:
        """Number of distinct real rows behind the losses."""
        return len(np.unique(self.clusters))

    def with_candidates(self, columns: np.ndarray) -> Losses:
        """Return the losses of F and of some candidates, by position."""
        return Losses(self.candidates[:, columns], self.baseline, self.clusters)


@dataclass(frozen=True, kw_only=True)
class ScoredUnits(UnitRecord):
    """One part of a task, all folds or origins together: what models lose on it, judges among them.

    Attributes
    ----------
    losses : Losses
        Of the candidates and of F.
    judged : ndarray of shape (n,) or (n, C)
        T, what judges predict that have made none of the labels; of windows the MASE of the
        candidates' median, an ensemble that no made window was chosen by.
    y : ndarray of shape (n,)
        The targets; empty for windows.
    twins : ndarray of shape (n, R)
        Losses of F's re-fits; R is 0 where they were not asked.
    fold, weight, bad : ndarray of shape (n,)
        Empty where they are not known, which may be so of all parts but ``full``.
    reducible : ndarray of shape (n,)
        v = (T - F)^2; empty where it is not known.
    recorded : ndarray of shape (n,)
        Whether the generation's own oracle supported the label; empty where it was not asked.
    """

    losses: Losses
    judged: np.ndarray
    y: np.ndarray = field(default_factory=lambda: np.empty(0))
    twins: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    fold: np.ndarray = field(default_factory=lambda: np.empty(0))
    weight: np.ndarray = field(default_factory=lambda: np.empty(0))
    bad: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=bool))
    reducible: np.ndarray = field(default_factory=lambda: np.empty(0))
    recorded: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=bool))

    def __len__(self) -> int:
        return len(self.losses)

    @property
    def known_losses(self) -> Losses:
        """The losses, or none at all where F's loss is missing on some unit."""
        if np.isnan(self.losses.baseline).any():
            return self.losses.take(np.zeros(0, dtype=int))
        return self.losses

    @property
    def recorded_share(self) -> float | None:
        """Share of the labels that the generation's own oracle supported."""
        return float(self.recorded.mean()) if len(self.recorded) else None


@dataclass(frozen=True, kw_only=True)
class LabelOpinion:
    """What an oracle says of the labels of some rows.

    Attributes
    ----------
    support : ndarray of shape (n,)
        How plausible each label is, see :class:`LabelJudge`.
    agrees : ndarray of shape (n,), bool
        Whether the oracle supports it.
    clusters : ndarray of shape (n,)
        c.
    """

    support: np.ndarray
    agrees: np.ndarray
    clusters: np.ndarray


def finite_or_none(value: float) -> float | None:
    """Return the value as a float, or None where it is not finite.

    Examples
    --------
    >>> finite_or_none(float("nan")), finite_or_none(np.float64(2))
    (None, 2.0)
    """
    return float(value) if math.isfinite(value) else None


def plan_measure(
    name: str, source: str, sense: str = "", threshold: float | None = None
) -> Measure:
    """Return a measure before it is taken; while it has a threshold, it has not passed.

    Examples
    --------
    >>> tau = plan_measure("tau", "", ">=", 0.5)
    >>> tau.missing("no made rows").passed, tau.found(0.6, "on few rows").passed
    (False, True)
    """
    return Measure(
        name=name,
        value=None,
        low=None,
        high=None,
        threshold=threshold,
        source=source,
        passed=None if threshold is None else False,
        text="",
        sense=sense,
    )


def too_few_text(n: int, what: str, unit: Unit, needed: int = MIN_ROWS) -> str:
    """Say that there are not enough real units of some kind."""
    return (
        f"not enough {unit.many}: {n} distinct real {what}, at least {needed} are "
        "needed"
    )


def why_not_compared(
    n_bad: int, n_made: int, unit: Unit, *, least: int = 1, nothing: str = ""
) -> str:
    """Return why made units cannot be held against real bad ones; empty where they can.

    Parameters
    ----------
    n_bad, n_made : int
        Distinct real units that are bad, and made ones.
    unit : Unit
    least : int
        Of the made ones that are needed.
    nothing : str
        What is said where there are fewer.

    Examples
    --------
    >>> from amlb_ext.core.unit import ROW
    >>> why_not_compared(20, 0, ROW), why_not_compared(20, 5, ROW)
    ('no made rows', '')
    """
    if n_bad < MIN_ROWS:
        return too_few_text(n_bad, f"bad {unit.many}", unit)
    return "" if n_made >= least else nothing or f"no made {unit.many}"


def measure_region(
    weights: np.ndarray, bad: np.ndarray, clusters: np.ndarray, unit: Unit
) -> Measure:
    """AUC of w for the bad flags of the test rows: does P(bad | x) foresee failures at all?"""
    source = "ours: the interval must lie above .5, else there is no region"
    region = plan_measure("region", source, ">=", 0.5)
    # an area between two classes needs rows of both: F may fail on all rows
    sides = ((bad, f"bad {unit.many}"), (~bad, f"{unit.many} that are not bad"))
    for flags, what in sides:
        n_real = len(np.unique(clusters[flags]))
        if n_real < MIN_ROWS:
            return region.missing(too_few_text(n_real, what, unit))
    area = clustered_auc(weights, bad, clusters)
    # a constant w has an AUC of .5 without error, which its interval does not show; and where every
    # bad row weighs more than every other there is no error, and so no interval
    is_above_chance = bool(np.ptp(weights) > 0 and (area.low > 0.5 or area.point == 1))
    text = (
        f"how well {unit.features} alone foresee F's failures: AUC of P(bad | {unit.given}) for "
        f"the bad test {unit.many}"
    )
    # not the value but the lower limit decides: a point above .5 may be chance
    return replace(region.estimated(area, text), passed=is_above_chance)


def clustered_auc(
    score: np.ndarray, positive: np.ndarray, clusters: np.ndarray
) -> MeanEstimate:
    r"""Return the AUC with a cluster-robust interval.

    With placements :math:`V_i` (share of the other class that row i beats, ties half) the AUC is
    their mean, and :math:`\psi_i = (V_i - A) / n_{class}` its influence (DeLong et al. 1988).

    Examples
    --------
    >>> round(clustered_auc(np.arange(8.0), np.arange(8) >= 4, np.arange(8)).point, 6)
    1.0
    """
    n, n_positive = len(score), int(positive.sum())
    n_negative = n - n_positive
    # the rank of a row among all less that within its class counts the other class below it
    rank_overall = rankdata(score)
    rank_within = np.empty(n)
    rank_within[positive] = rankdata(score[positive])
    rank_within[~positive] = rankdata(score[~positive])
    n_other_class = np.where(positive, n_negative, n_positive)
    below = (rank_overall - rank_within) / n_other_class
    placement = np.where(positive, below, 1 - below)  # V
    area = float(placement[positive].mean())
    # weighted_mean_interval divides by n, the influence by the size of the row's own class
    scale = np.where(positive, n / n_positive, n / n_negative)
    return weighted_mean_interval(area + (placement - area) * scale, None, clusters)


def measure_solvability(
    all_rows: Losses,
    weights: np.ndarray,
    names: list[str],
    rng: np.random.Generator,
    unit: Unit,
    *,
    capped: Collection[str] = (),
    has_match: bool = True,
) -> Measure:
    """Share of F's loss in the region that the best candidate saves, see ``stats.best_saving``.

    The interval is one for the *best* candidate, F among them, so it lies within 0 and 1. Its
    lower end shows that something can be mended, its upper end that little can; where neither
    does, the finding is ``not shown``, which is neither passed nor failed. What candidates save
    that saw fewer training rows than F is no limit of what others would, so without a match of F's
    own family that little can be mended is not shown either.

    Parameters
    ----------
    all_rows : Losses
    weights : ndarray of shape (n,)
    names : list of str
        Of the candidates.
    rng : Generator
    unit : Unit
    capped : collection of str
        Candidates that saw fewer training rows than F.
    has_match : bool
        Whether a candidate of F's own family saw as many as F.
    """
    source = "ours: the lower limit must lie above 0"
    solvability = replace(
        plan_measure("solvability", source, ">=", 0.0), finding=NOT_SHOWN
    )
    loss_f = all_rows.baseline
    n_real = all_rows.n_real_rows
    # the candidates are chosen on one half of the rows and judged on the other
    if n_real < 2 * MIN_ROWS:
        return solvability.missing(too_few_text(n_real, unit.many, unit, 2 * MIN_ROWS))
    if not weights @ loss_f > 0:
        return solvability.missing("F makes no error in the region")
    # gaps, not losses: where a candidate is F fitted again, rounding is no saving
    candidate_losses = loss_f[:, None] + all_rows.gaps
    saving = best_saving(candidate_losses, loss_f, weights, all_rows.clusters, rng)
    candidates_chosen = [names[index] for index in saving.chosen if index >= 0]
    best = candidates_chosen[0] if candidates_chosen else "none"
    n_capped = sum(name in capped for name in names)
    if best in capped:
        best += ", which saw fewer training rows than F"
    passed, finding, text = _saving_finding(saving, best, len(names))
    if finding == NOTHING and n_capped and not has_match:
        passed, finding = None, NOT_SHOWN
        text = (
            f"not shown: none of {len(names)} candidates saves more than {100 * saving.high:.1f} % "
            f"of F's loss in the region, but {n_capped} of them saw fewer training rows than F, "
            "and none that saw as many is of F's kind; --size full gives all rows to all"
        )
    elif finding != MENDABLE and n_capped:
        text += f"; {n_capped} of the candidates saw fewer training rows than F"
    solvability = solvability.found(
        saving.point, text, low=saving.low, high=saving.high
    )
    return replace(solvability, passed=passed, finding=finding)


def _saving_finding(
    saving: BestSaving, best: str, candidates: int
) -> tuple[bool | None, Finding, str]:
    """Return whether anything can be mended, the finding, and the sentence that says so."""
    low, high = 100 * saving.low, 100 * saving.high
    limits = f"95 % interval {low:.0f} to {high:.0f} %"
    # little to mend comes first: a saving of 1 % that is sure is still nothing to mend
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


def contradiction_in(measure: Measure) -> str:
    """Return what a measure says against itself, as a clause; empty where it was taken like this.

    Examples
    --------
    >>> auc = plan_measure("region", "", ">=", 0.5).found(0.7, "", low=0.4, high=0.8)
    >>> contradiction_in(replace(auc, passed=False)), contradiction_in(auc)
    ('', 'whether it has passed does not follow from its numbers')
    >>> contradiction_in(replace(auc, value=0.9, passed=False))
    'its value lies outside its interval'
    """
    value, low, high, passed = measure.value, measure.low, measure.high, measure.passed
    wrong = "whether it has passed does not follow from its numbers"
    if value is None or measure.threshold is None:
        expected = None if measure.threshold is None else False
        return "" if passed is expected else wrong
    ends = [end for end in (low, value, high) if end is not None]
    # a statistic of draws is biased, so its percentiles need not hold its value
    if ends != sorted(ends) and measure.name != "target check":
        return "its value lies outside its interval"
    if measure.finding and low is not None and high is not None:
        saving = BestSaving(point=value, low=low, high=high, chosen={})
        shown = _saving_finding(saving, "", 0)[:2]
        # candidates that saw few rows are no limit of what others would save
        allowed = [shown, (None, NOT_SHOWN)] if NOTHING in shown else [shown]
        return "" if (passed, measure.finding) in allowed else wrong
    expected = measure.reaches(value)
    if measure.name == "region":
        expected = value == 1 if low is None else low > 0.5
    elif measure.name.endswith(": order"):
        expected = low is not None and measure.reaches(low)
    elif measure.name.startswith("label "):
        # few rows are no fault of labels
        expected = passed or expected
    elif measure.name.startswith("null on "):
        # twins may win more often than chance gives
        expected = passed and expected
    return "" if passed is expected else wrong


def percent_or_more(share: float) -> str:
    """Format a lower limit as a percentage; a small one keeps a decimal, or it would read as none.

    Examples
    --------
    >>> percent_or_more(0.412), percent_or_more(0.0042), percent_or_more(0.0001)
    ('41 % or more', '0.4 % or more', 'some')
    """
    if share < 0.001:
        return "some"
    decimals = 0 if share >= 0.01 else 1
    return f"{100 * share:.{decimals}f} % or more"


def measure_hardness(made: Losses, bad: Losses, unit: Unit) -> Measure:
    """F's mean loss on made rows over that on real bad rows."""
    source = "paper, section 5; ours: at least .8 of the real bad rows' loss"
    hardness = plan_measure("hardness", source, ">=", 0.8)
    why = why_not_compared(
        bad.n_real_rows,
        made.n_real_rows,
        unit,
        least=MIN_MADE_ROWS,
        nothing=f"no made {unit.many} on which F is known",
    )
    if why:
        return hardness.missing(why)
    # a rule of quantiles finds bad rows even where F's loss is 0 everywhere
    level = max(float(bad.baseline.mean()), 1e-12)
    loss = weighted_mean_interval(made.baseline, None, made.clusters)
    text = (
        f"F's mean loss on {unit.made} over that on real bad {unit.many} ({loss.point:.3g} / "
        f"{level:.3g})"
    )
    low, high = loss.low / level, loss.high / level
    return hardness.found(loss.point / level, text, low=low, high=high)


def measure_effective_size(
    weights: np.ndarray, clusters: np.ndarray, unit: Unit
) -> Measure:
    """Kish's effective number of distinct real rows under the weights (``docs/validity.md``, 5)."""
    size, n_real = effective_size(weights, clusters)
    source = f"docs/validity.md, 5; below {SMALLEST_EFFECTIVE_SIZE:.0f} rank on all {unit.many}"
    planned = plan_measure("effective size", source, ">=", SMALLEST_EFFECTIVE_SIZE)
    return planned.found(
        size,
        f"distinct real {unit.many} that the weighted test {unit.many} are worth, of {n_real}",
    )


def effective_size(weights: np.ndarray, clusters: np.ndarray) -> tuple[float, int]:
    """Return how many distinct real rows weighted ones are worth, and how many there are.

    Examples
    --------
    >>> effective_size(np.ones(6), np.array([0, 0, 1, 1, 2, 2]))
    (3.0, 3)
    """
    codes = np.unique(clusters, return_inverse=True)[1]
    # a real row stands in the test files of several folds, and counts once
    weight_per_row = np.bincount(codes, weights)
    return float(kish_size(weight_per_row)), len(weight_per_row)


@dataclass(frozen=True)
class LabelJudge:
    """What predictions of judges say of labels, on one scale for all parts of a task.

    Plausible: the judges' probability of the label beyond what they expect where the row
    stands, ``p_y - sum_c p_c^2``, so that rows which moved to uncertain places are not taken
    for mislabelled ones; regression: minus the distance to the judges in their RMSEs.

    Attributes
    ----------
    rmse : float
        Of the judges; regression only.
    n_classes : int
        C, or 0 for regression.

    Examples
    --------
    >>> losses = Losses(np.empty((1, 0)), np.zeros(1), np.zeros(1))
    >>> units = ScoredUnits(losses=losses, judged=np.array([[0.1, 0.9]]), y=np.array([0]))
    >>> said = LabelJudge(rmse=0.0, n_classes=2)(units)
    >>> said.support.round(2).tolist(), said.agrees.tolist()  # .1 - (.01 + .81)
    ([-0.72], [False])
    """

    rmse: float
    n_classes: int

    @classmethod
    def settle(cls, real: ScoredUnits, n_classes: int) -> LabelJudge:
        """Return the judge whose scale is how far it is off on all real rows."""
        rmse = 0.0
        if not n_classes:
            rmse = float(np.sqrt(((real.judged - real.y) ** 2).mean()))
        return cls(rmse, n_classes)

    def __call__(self, units: ScoredUnits) -> LabelOpinion:
        """Return how plausible each label is, and whether the judges support it."""
        T, rmse = units.judged, None if self.n_classes else self.rmse
        support, agrees = check_labels(T, units.y, rmse=rmse)
        if self.n_classes:
            expected = (T**2).sum(axis=1)
            support = support - expected
        return LabelOpinion(
            support=np.maximum(support, LEAST_PLAUSIBLE),
            agrees=agrees,
            clusters=units.losses.clusters,
        )


def measure_labels(
    made: LabelOpinion,
    bad: LabelOpinion,
    unit: Unit,
    *,
    all_agree: np.ndarray,
    recorded: float | None,
    n_classes: int,
) -> list[Measure]:
    """Compare the labels of made rows with those of real bad rows, by the opinion of an oracle.

    The oracle is fitted anew for the certificate: the one of the generation has filtered the
    made rows by its own opinion, so its agreement (``recorded``) proves nothing.

    Parameters
    ----------
    made, bad : LabelOpinion
    unit : Unit
    all_agree : ndarray of bool
        Whether the oracle supports the label, for all real test rows.
    recorded : float or None
        Share of made rows that agree according to their provenance; None where it does not say.
    n_classes : int
        C, or 0 for regression.
    """
    margin = CLASS_MARGIN if n_classes else REGRESSION_MARGIN
    source = "docs/validity.md, 6"
    agreement = plan_measure("label agreement", source, ">=")
    support = plan_measure("label support", source, ">=", margin)
    n_bad = len(np.unique(bad.clusters))
    if why := why_not_compared(n_bad, len(made.clusters), unit):
        return [agreement.missing(why), support.missing(why)]
    gap_of = partial(
        _mean_difference,
        a_clusters=made.clusters,
        b_clusters=bad.clusters,
    )
    bad_share = float(np.mean(bad.agrees))
    made_share = weighted_mean_interval(made.agrees.astype(float), None, made.clusters)
    text = (
        f"made {unit.many} whose label {unit.oracle} supports; real bad {unit.many} "
        f"{bad_share:.0%}, all real {unit.many} {all_agree.mean():.0%}"
    )
    if recorded is not None:
        text += f"; as generated {recorded:.0%}"
    least = round(bad_share - AGREEMENT_MARGIN, 4)
    # a limit of 0 would be no check at all: every share reaches it
    if least <= 0:
        text += f"; no limit, since it supports so few real bad {unit.many}"
        agreement = replace(agreement, sense="").estimated(made_share, text)
    else:
        limited = replace(agreement, threshold=least)
        gap = gap_of(made.agrees.astype(float), bad.agrees.astype(float))
        agreement = _fails_only_surely(
            limited.estimated(made_share, text), gap, -AGREEMENT_MARGIN
        )
    gap = gap_of(made.support, bad.support)
    text = (
        f"plausibility of made {unit.many}' labels minus that of bad {unit.many}'; fails if "
        "surely (one-sided 95 %) below limit"
    )
    support = _fails_only_surely(support.estimated(gap, text), gap, margin)
    return [agreement, support]


def _fails_only_surely(measure: Measure, gap: MeanEstimate, least: float) -> Measure:
    """Let a measure pass unless the gap is surely below a limit: few rows are no fault of labels.

    One-sided 95 %: the question is whether made labels are *worse*.
    """
    highest = gap.high
    if gap.has_interval:
        highest = gap.point + gap.se * float(student.ppf(0.95, gap.df))
    return replace(measure, passed=bool(measure.passed or highest >= least))


def _mean_difference(
    a: np.ndarray,
    b: np.ndarray,
    *,
    a_clusters: np.ndarray,
    b_clusters: np.ndarray,
) -> MeanEstimate:
    """Mean of a minus mean of b as one linear statistic of their joint clusters.

    A made row and the bad row it came from are one cluster, so what both share cancels.
    """
    gap = a.mean() - b.mean()
    influence = np.concatenate([(a - a.mean()) / len(a), (b.mean() - b) / len(b)])
    clusters = np.concatenate([a_clusters, b_clusters])
    # values whose mean is the difference, and whose spread is that of its influence
    values = gap + influence * len(clusters)
    return weighted_mean_interval(values, None, clusters)
