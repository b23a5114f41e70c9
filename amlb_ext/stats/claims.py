"""What may be claimed of each candidate: overall, where F fails, and which gain is larger.

Notation
--------
d : (n,) contrast of a candidate, its loss minus F's
w : (n,) region weights, functions of the features alone
m : candidates

Overall, a candidate is set against F as it stands: all rows count alike, and F fitted again is
another question. Where F fails the rows count by w, and being better than F there may be F's bad
luck; so the candidate must differ from F's re-fits as well (intersection-union, so its p-value is
the larger of the two). Both questions of all candidates are one family of 2m tests, adjusted
together with the correlations that they have (:mod:`amlb_ext.stats.step_down`): the chance of any
false claim is 1 - level, of which the question overall gets three quarters to begin with. Whether
the gain is larger where F fails is asked only of candidates for which something was claimed, and
adjusted among these.

Squared errors are compared with a cap. Where the largest errors would decide, nothing is claimed by
the capped ones (:mod:`amlb_ext.stats.heavy_tails`). Such a test stays in the family with a p-value
of 1, so that leaving it out, which the same losses decided, makes no other test easier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError
from amlb_ext.core.unit import ROW, Unit
from amlb_ext.stats.contrasts import (
    SMALLEST_EFFECTIVE_SIZE,
    ComparedUnits,
    Comparison,
    Weighting,
    choose_weighting,
    compare_candidate,
)
from amlb_ext.stats.heavy_tails import (
    PlainContrast,
    contrast_plainly,
    no_interval_text,
    withheld_figures,
)
from amlb_ext.stats.step_down import concentration_interval, step_down_adjusted
from amlb_ext.stats.weighted_mean import MeanEstimate, cluster_influence, p_value

#: The three questions, as the column ``question`` has them.
OVERALL = "overall"
REGION = "where F fails"
CONCENTRATED = "gain where F fails minus gain overall"
#: Verdicts on the third question that say where a change is larger, relative to F's loss.
CONCENTRATIONS = ("larger gain", "smaller gain", "larger loss", "smaller loss")
#: Of the table of :func:`answer_questions`, in the order in which reports show them.
COLUMNS = [
    "candidate",
    "question",
    "rows",
    "loss",
    "loss_f",
    "difference",
    "low",
    "high",
    "p",
    "p_adjusted",
    "effective_size",
    "weighted",
    "null_difference",
    "null_se",
    "p_null",
    "rmse",
    "rmse_f",
    "by",
    "verdict",
    "reason",
]
_NO_NUMBERS = {"candidate", "question", "rows", "weighted", "by", "verdict", "reason"}
#: Those of :data:`COLUMNS` that hold numbers.
NUMBERS = [name for name in COLUMNS if name not in _NO_NUMBERS]
#: Share of the chance of a false claim that the question "overall" is given to begin with: it comes
#: first and decides. With .5 the two questions found less than one t test (chosen on exploratory
#: draws among .5, .7, .8, .9).
OVERALL_SHARE = 0.75


def no_region_text(unit: Unit) -> str:
    """Return that what is known of units beforehand does not tell where F fails."""
    return (
        f"nothing foretells where F fails: no region is found from the {unit.features}"
    )


def answer_questions(
    losses: pd.DataFrame,
    units: ComparedUnits,
    *,
    scored: pd.DataFrame | None = None,
    smallest: float = SMALLEST_EFFECTIVE_SIZE,
    no_claim: str = "",
) -> pd.DataFrame:
    """Answer the three questions for each candidate.

    Parameters
    ----------
    losses : DataFrame of shape (n, m)
        Losses of each unit, by candidate, as they are.
    units : ComparedUnits
        F's losses, their cap, the region's weights, clusters, the losses of F's re-fits, and the
        level.
    scored : DataFrame of shape (n, m), bool, optional
        The units that each candidate is compared on, all when omitted. Losses elsewhere are not
        looked at.
    smallest : float
        Where the weights of a candidate's units are worth fewer equal ones than this, nothing is
        tested where F fails; see :func:`~amlb_ext.stats.contrasts.choose_weighting`.
    no_claim : str
        Why nothing may be claimed where F fails; empty where it may.

    Returns
    -------
    DataFrame
        One row per candidate and question, question by question. ``p`` is the t test of the
        difference from F, ``p_null`` that of the difference from F's re-fits, ``p_adjusted`` what
        the verdict rests on; NaN where nothing was tested. ``verdict`` is ``better``, ``worse`` or
        ``undecided``; ``no claim`` where nothing may be said. The third question has no row where
        nobody asked it: ``larger gain``, ``smaller gain``, ``larger loss``, ``smaller loss``,
        ``opposite`` or ``undecided``. ``by`` says whether the figures are of ``capped`` losses or
        ``plain`` ones; ``rmse`` and ``rmse_f`` are of plain ones always, NaN without ``span``.

    Raises
    ------
    DataError
        When lengths differ or a loss is not finite; the message names the candidate.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> f = rng.random(400)
    >>> g = pd.DataFrame({"good": f - 0.1 + 0.2 * rng.random(400),
    ...                   "better": f - 0.3 + 0.2 * rng.random(400)})
    >>> table = answer_questions(g, ComparedUnits(loss_f=f))
    >>> table[["candidate", "question", "verdict"]].values.tolist()[:2]
    [['good', 'overall', 'undecided'], ['better', 'overall', 'better']]
    >>> set(table["reason"][2:])  # no weights were given
    {'nothing foretells where F fails: no region is found from the features'}
    """
    candidates = []
    for name in losses.columns:
        # a candidate may have failed on a fold: it is compared on the units it predicted
        keep = np.ones(len(units.loss_f), dtype=bool)
        if scored is not None:
            keep = scored[name].to_numpy(dtype=bool)
        loss_g = losses[name].to_numpy(dtype=float)
        try:
            candidate = _compare_both(
                str(name),
                loss_g,
                units,
                keep=keep,
                smallest=smallest,
                no_claim=no_claim,
            )
        except DataError as error:
            raise DataError(
                f"candidate {name!r}: {error.message}", error.remedy
            ) from None
        candidates.append(candidate)
    alpha = 1 - units.level
    overall, region = _adjusted_together(candidates)
    answers = []
    claimed = set()
    for candidate, p in zip(candidates, overall, strict=True):
        verdict, reason = _overall_verdict(candidate.overall, p, alpha)
        if verdict in ("better", "worse"):
            claimed.add(candidate.name)
        record = candidate.overall.record(p, verdict, reason)
        answers.append({**record, "question": OVERALL})
    for candidate, p in zip(candidates, region, strict=True):
        verdict, reason = _region_verdict(candidate, p, alpha)
        if verdict in ("better", "worse"):
            claimed.add(candidate.name)
        answers.append(candidate.region_record(p, verdict, reason))
    asked = [c for c in candidates if c.name in claimed and not c.no_claim]
    answers += _concentration_records(asked, units.level)
    numbers = dict.fromkeys(NUMBERS, float)
    # numbers stay numbers where nobody is compared, too
    return pd.DataFrame(answers, columns=COLUMNS).astype(numbers)


@dataclass(frozen=True, kw_only=True)
class _Contrast:
    """One candidate on one set of rows: what capped losses say, and whether they may decide.

    Attributes
    ----------
    comparison : Comparison
        Of capped losses.
    plain : PlainContrast
    veto : str
        Why capped losses may not decide; empty where they may.
    null_difference, null_se : float
        Of F's re-fits: plain and NaN where capped losses may not tell of these.
    """

    comparison: Comparison
    plain: PlainContrast
    veto: str
    null_difference: float
    null_se: float

    @property
    def p(self) -> float:
        """For the family of tests; what may not be claimed is never rejected."""
        p = self.comparison.p_both
        return 1.0 if self.veto and np.isfinite(p) else p

    def record(self, p_adjusted: float, verdict: str, reason: str) -> dict[str, object]:
        return {
            **self.comparison.record(),
            "p_null": self.comparison.p_null,
            "null_difference": self.null_difference,
            "null_se": self.null_se,
            "p_adjusted": p_adjusted,
            "verdict": verdict,
            "reason": reason,
            **self.plain.record(self.veto),
        }


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """One candidate set against F over all rows and where F fails.

    Attributes
    ----------
    name : str
    overall : _Contrast
    region : _Contrast or None
        None where the rows have no weights worth using.
    no_claim : str
        Why nothing may be claimed where F fails; empty where it may.
    effective_size : float
        What the weights are worth.
    influence, region_influence : ndarray of shape (K,)
        Of all clusters, those of other folds among them, on the two contrasts.
    """

    name: str
    overall: _Contrast
    region: _Contrast | None
    no_claim: str
    effective_size: float
    influence: np.ndarray
    region_influence: np.ndarray

    def region_record(
        self, p_adjusted: float, verdict: str, reason: str
    ) -> dict[str, object]:
        if self.region is not None:
            record = self.region.record(p_adjusted, verdict, reason)
            return {**record, "question": REGION}
        # without weights there are no numbers: those of all rows stand one question above
        return {
            "candidate": self.name,
            "rows": len(self.overall.comparison.loss_g),
            "effective_size": self.effective_size,
            "weighted": False,
            "question": REGION,
            "p_adjusted": p_adjusted,
            "by": "",
            "verdict": verdict,
            "reason": reason,
        }


def _compare_both(
    name: str,
    loss_g: np.ndarray,
    units: ComparedUnits,
    *,
    keep: np.ndarray,
    smallest: float,
    no_claim: str,
) -> _Candidate:
    kept = units.subset(keep)
    own_losses = loss_g[keep]
    weighting = choose_weighting(kept.weights, kept.clusters, smallest, unit=units.unit)
    alike = replace(kept, weights=None, reweighted=None, refits=None)
    overall = _judge(name, own_losses, alike)
    region = None
    if weighting.is_weighted:
        region = _judge(name, own_losses, kept)
        if units.refits is None and not no_claim:
            no_claim = (
                "F was not fitted again, so a gain over F may be its bad luck on these "
                f"{units.unit.many}"
            )
    else:
        no_claim = no_claim or why_no_region(weighting, smallest, unit=units.unit)
    capped_g, capped_f = units.cap.apply(loss_g), units.cap.apply(units.loss_f)
    contrasts = np.where(keep, capped_g, 0.0) - np.where(keep, capped_f, 0.0)
    codes, n_clusters = _cluster_codes(units)
    influence = cluster_influence(contrasts, keep.astype(float), codes, n_clusters)
    region_influence = np.zeros(n_clusters)
    if region is not None:
        weights = np.where(keep, np.asarray(units.weights, dtype=float), 0.0)
        region_influence = cluster_influence(contrasts, weights, codes, n_clusters)
    return _Candidate(
        name=name,
        overall=overall,
        region=region,
        no_claim=no_claim,
        effective_size=weighting.effective_size,
        influence=influence,
        region_influence=region_influence,
    )


def _judge(name: str, loss_g: np.ndarray, units: ComparedUnits) -> _Contrast:
    """Compare a candidate with F by capped losses, and ask whether these may decide."""
    comparison = compare_candidate(name, units.cap.apply(loss_g), units.capped())
    contrast = partial(
        contrast_plainly, cap=units.cap, weights=units.weights, unit=units.unit
    )
    plain = contrast(loss_g, units.loss_f, span=units.span)
    estimate = comparison.estimate
    veto = plain.veto(estimate.point, estimate.low, estimate.high)
    judged = _Contrast(
        comparison=comparison,
        plain=plain,
        veto=veto,
        null_difference=float("nan"),
        null_se=float("nan"),
    )
    beside = comparison.beside_refits
    if units.refits is None or beside is None:
        return judged
    # where F fails a candidate must differ from F's re-fits as well, and by both losses
    refit = units.refits.to_numpy(dtype=float).mean(axis=1)
    against = contrast(loss_g, refit, whose="that of F fitted again")
    veto = veto or against.disagreement(beside.point, beside.low, beside.high)
    difference, se = comparison.null_difference, comparison.null_se
    null = contrast(refit, units.loss_f)
    if null.veto(difference, difference - 2 * se, difference + 2 * se):
        difference, se = null.difference, float("nan")
    return replace(judged, veto=veto, null_difference=difference, null_se=se)


def verdict_text(row: Mapping[str, Any], level: float, unit: Unit = ROW) -> str:
    """Return a verdict, and what the interval beside it says where the two are of two kinds.

    A verdict counts all comparisons, an interval is of one. Where F fails, a model must differ
    from F's re-fits as well.

    Parameters
    ----------
    row : mapping
        A row of :func:`answer_questions`.
    level : float
    unit : Unit

    Examples
    --------
    >>> row = {"verdict": "undecided", "p": 0.01, "p_null": np.nan, "difference": -0.1}
    >>> verdict_text(row, 0.95)
    'undecided (alone: better)'
    """
    if row["verdict"] != "undecided" or not row["p"] < 1 - level:
        return str(row["verdict"])
    if row["p_null"] >= 1 - level:
        return f"undecided (so is a {unit.refit} of F)"
    return f"undecided (alone: {'better' if row['difference'] < 0 else 'worse'})"


def why_no_region(
    weighting: Weighting,
    smallest: float = SMALLEST_EFFECTIVE_SIZE,
    *,
    unit: Unit = ROW,
) -> str:
    """Return why nothing is said where F fails; empty where the weights are worth enough.

    Examples
    --------
    >>> why_no_region(choose_weighting(np.ones(20)))
    'not enough rows where F fails: the region weights are worth only 20 rows, below 50'
    """
    if weighting.is_weighted:
        return ""
    if not weighting.effective_size > 0:
        return no_region_text(unit)
    return (
        f"not enough {unit.many} where F fails: the region weights are worth only "
        f"{weighting.effective_size:.0f} {unit.many}, below {smallest:.0f}"
    )


def _cluster_codes(units: ComparedUnits) -> tuple[np.ndarray, int]:
    """Return the cluster of each unit, ``0..K-1``, and K."""
    if units.clusters is None:
        return np.arange(len(units.loss_f)), len(units.loss_f)
    clusters, codes = np.unique(units.clusters, return_inverse=True)
    # numpy 2.0 alone gives the codes the shape of its input
    return codes.reshape(-1), len(clusters)


def _adjusted_together(
    candidates: list[_Candidate],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the adjusted p-values of both questions, NaN where nothing is tested."""
    p_values = [candidate.overall.p for candidate in candidates]
    influences = [candidate.influence for candidate in candidates]
    for candidate in candidates:
        is_tested = candidate.region is not None and not candidate.no_claim
        p_values.append(candidate.region.p if is_tested else np.nan)  # type: ignore[union-attr]
        influences.append(candidate.region_influence)
    if not candidates:
        return np.empty(0), np.empty(0)
    weights = np.repeat([OVERALL_SHARE, 1 - OVERALL_SHARE], len(candidates))
    adjusted = step_down_adjusted(
        np.array(p_values), np.column_stack(influences), weights=weights
    )
    return adjusted[: len(candidates)], adjusted[len(candidates) :]


def _overall_verdict(
    judged: _Contrast, p_adjusted: float, alpha: float
) -> tuple[str, str]:
    estimate = judged.comparison.estimate
    if judged.veto:
        return "no claim", judged.veto
    if not estimate.has_interval:
        return "undecided", estimate.reason
    if not p_adjusted < alpha:  # so that NaN, no test, is undecided too
        return "undecided", "no significant difference from F"
    word = "better" if estimate.point < 0 else "worse"
    return word, f"significantly {word} than F"


def _region_verdict(
    candidate: _Candidate, p_adjusted: float, alpha: float
) -> tuple[str, str]:
    if candidate.region is None:
        return "no claim", candidate.no_claim
    # first of two reasons: no re-fits and no further rows would mend it
    if candidate.region.veto or candidate.no_claim:
        return "no claim", candidate.region.veto or candidate.no_claim
    comparison = candidate.region.comparison
    if not comparison.estimate.has_interval:
        return "undecided", comparison.estimate.reason
    word = "better" if comparison.estimate.point < 0 else "worse"
    unit = comparison.rows.unit
    if p_adjusted < alpha:
        return word, f"significantly {word} than F and than its {unit.refits}"
    # who is told from F alone, but not from both, is stopped by the re-fits
    if comparison.p < alpha and not comparison.p_both < alpha:
        likewise = "good" if word == "better" else "bad"
        return (
            "undecided",
            f"differs from F, but a {unit.refit} of F may be as {likewise}",
        )
    return "undecided", "no significant difference from F"


def _concentration_records(
    asked: list[_Candidate], level: float
) -> list[dict[str, object]]:
    """Return, per candidate, how much larger its gain is where F fails."""
    if not asked:
        return []
    estimates = []
    for candidate in asked:
        assert candidate.region is not None  # asked only where something may be claimed
        rows = candidate.region.comparison.rows
        contrasts = candidate.region.comparison.loss_g - rows.loss_f
        estimate = concentration_interval(
            contrasts,
            np.asarray(rows.weights),
            clusters=rows.clusters,
            level=level,
        )
        weights = np.asarray(rows.weights)
        weighted = weights * (contrasts - np.average(contrasts, weights=weights))
        plain = (contrasts - contrasts.mean()) / len(contrasts)
        influence = weighted / weights.sum() - plain
        estimate = rows.widen_by_calendar(estimate, influence)
        # the plain mean has no learnt weights, so its difference scatters as the weighted mean
        estimates.append(rows.widen(estimate, contrasts))
    vetoes = [_concentration_veto(c, e) for c, e in zip(asked, estimates, strict=True)]
    p_values = np.array([p_value(estimate) for estimate in estimates])
    # as above: what may not be claimed is not rejected, and no other test is easier for it
    is_withheld = np.array([bool(veto) for veto in vetoes])
    p_values[is_withheld & np.isfinite(p_values)] = 1.0
    influences = [c.region_influence - c.influence for c in asked]
    adjusted = step_down_adjusted(p_values, np.column_stack(influences))
    records: list[dict[str, object]] = []
    for candidate, estimate, veto, p, p_adjusted in zip(
        asked, estimates, vetoes, p_values, adjusted, strict=True
    ):
        assert candidate.region is not None
        verdict, reason = "undecided", estimate.reason or "may be the same everywhere"
        if p_adjusted < 1 - level:
            verdict, reason = _concentration_verdict(candidate, estimate)
        records.append(
            {
                "candidate": candidate.name,
                "question": CONCENTRATED,
                "rows": len(candidate.overall.comparison.loss_g),
                "difference": estimate.point,
                "low": estimate.low,
                "high": estimate.high,
                "p": p,
                "p_adjusted": p_adjusted,
                "effective_size": candidate.effective_size,
                "weighted": True,
                "by": candidate.overall.plain.by(veto),
                "verdict": verdict,
                "reason": reason,
            }
        )
        if veto:
            records[-1] |= withheld_figures(_plain_concentration(candidate), veto)
    return records


def _concentration_verdict(
    candidate: _Candidate, estimate: MeanEstimate
) -> tuple[str, str]:
    """Return whether a gain, or a loss, is larger where F fails.

    F's own loss is larger there, so every model's difference is: what is said must hold relative
    to F's loss, too. A model that gains in one place and loses in the other has told both.
    """
    assert candidate.region is not None
    everywhere = candidate.overall.comparison.relative
    there = candidate.region.comparison.relative
    if not everywhere * there > 0:
        return "opposite", "it gains in one place and loses in the other"
    is_larger = abs(there) > abs(everywhere)
    if is_larger != (estimate.point * there > 0):
        return "undecided", "it is as large as F's loss makes it, in both places"
    word = f"{'larger' if is_larger else 'smaller'} {'gain' if there < 0 else 'loss'}"
    many = candidate.overall.comparison.rows.unit.many
    return word, f"significantly {word} where F fails than over all {many}"


def _plain_concentration(candidate: _Candidate) -> float:
    """Return how much larger the gain is where F fails, by plain losses."""
    assert candidate.region is not None
    return candidate.region.plain.difference - candidate.overall.plain.difference


def _concentration_veto(candidate: _Candidate, estimate: MeanEstimate) -> str:
    """Return why capped losses may not say where the gain is larger; empty where they may."""
    assert candidate.region is not None
    overall, region = candidate.overall.plain, candidate.region.plain
    if overall.tail_reason or region.tail_reason:
        return overall.tail_reason or region.tail_reason
    plain = _plain_concentration(candidate)
    is_inside = estimate.low <= 0 <= estimate.high
    is_inside &= estimate.low <= plain <= estimate.high
    if is_inside or plain == estimate.point or plain * estimate.point > 0:
        return ""
    return (
        "the largest errors decide: the gain is larger where F fails "
        f"{'with' if estimate.point < 0 else 'without'} a cap on them, and smaller "
        f"{'without' if estimate.point < 0 else 'with'} it, "
        f"{no_interval_text(candidate.overall.comparison.rows.unit)}"
    )
