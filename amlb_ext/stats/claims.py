"""What may be claimed of each candidate: over all rows, then where F fails, and how the two differ.

Notation
--------
d : (n,) contrast of a candidate, its loss minus F's
w : (n,) 1 where F fails, in the fifth of the rows where that is foreseen most, else 0

Three questions, asked in this order, so that the first pays for no other:

1. Over all rows, all of ``1 - level`` is spent. A candidate is set against F as it stands; all
   candidates are adjusted together with the correlations that they have
   (:mod:`amlb_ext.stats.step_down`).
2. Where F fails a change is described with its interval. A verdict of its own is given only to
   candidates that the first question has called, in the same direction, and where at least
   :data:`FEWEST_JUDGED` rows are: with fewer nothing was ever found. These are adjusted among
   themselves, so the chance of any false claim is ``1 - level`` in this column, too. Being better
   than F there may be F's bad luck, so a candidate must differ from F's re-fits as well
   (intersection-union: the larger of the two p-values counts).
3. Of candidates that the first question has called: is the change, as a share of F's loss, another
   one where F fails than elsewhere?

Of 362 verdicts where F fails 360 repeated that over all rows, on eleven tables; asked in one family
they cost the first question a quarter of its finds.

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
from amlb_ext.stats.heavy_tails import PlainContrast, contrast_plainly
from amlb_ext.stats.step_down import step_down_adjusted
from amlb_ext.stats.weighted_mean import checked_rows, holm_adjusted, p_value

#: The three questions, as the column ``question`` has them.
OVERALL = "overall"
REGION = "where F fails"
CONCENTRATED = "change where F fails minus change elsewhere"
#: Verdicts on the third question that say where a change is larger, relative to F's loss.
CONCENTRATIONS = ("larger gain", "smaller gain", "larger loss", "smaller loss")
#: Units where F fails that a verdict of its own needs.
FEWEST_JUDGED = 200.0
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
    fits: Mapping[str, pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """Answer the three questions for each candidate.

    Parameters
    ----------
    losses : DataFrame of shape (n, m)
        Losses of each unit, by candidate, as they are.
    units : ComparedUnits
        F's losses, their cap, where F fails, clusters, the losses of F's re-fits, and the level.
    scored : DataFrame of shape (n, m), bool, optional
        The units that each candidate is compared on, all when omitted. Losses elsewhere are not
        looked at.
    smallest : float
        Where the weights of a candidate's units are worth fewer equal ones than this, nothing is
        said where F fails; see :func:`~amlb_ext.stats.contrasts.choose_weighting`.
    no_claim : str
        Why nothing may be claimed where F fails; empty where it may.
    fits : mapping of str to DataFrame of shape (n, R), optional
        Losses of each candidate's recipe, fitted on the samples on which F's re-fits were. Both
        sides are then the means of these fits, and a difference scatters by how fits differ, too.

    Returns
    -------
    DataFrame
        One row per candidate and question, question by question. ``p`` is the t test of the
        difference from F, ``p_null`` that of the difference from F's re-fits, ``p_adjusted`` what
        the verdict rests on; NaN where nothing was tested. ``verdict`` is ``better``, ``worse`` or
        ``undecided``; ``no claim`` where nothing may be said. The third question has no row where
        nobody asked it: ``larger gain``, ``smaller gain``, ``larger loss``, ``smaller loss``,
        ``opposite`` or ``undecided``; its ``difference`` is one of shares of F's loss. ``by`` says
        whether the figures are of ``capped`` losses or ``plain`` ones; ``rmse`` and ``rmse_f`` are
        of plain ones always, NaN without ``span``.

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
        own_fits = None if fits is None else fits[name]
        try:
            candidate = _compare_both(
                str(name),
                losses[name].to_numpy(dtype=float),
                units,
                keep=keep,
                fits=own_fits,
                smallest=smallest,
                no_claim=no_claim,
            )
        except DataError as error:
            raise DataError(
                f"candidate {name!r}: {error.message}", error.remedy
            ) from None
        candidates.append(candidate)
    alpha = 1 - units.level
    answers = []
    called: dict[str, str] = {}
    adjusted = np.empty(0)
    if candidates:
        p_values = np.array([candidate.overall.p for candidate in candidates])
        influences = [candidate.influence for candidate in candidates]
        adjusted = step_down_adjusted(p_values, np.column_stack(influences))
    for candidate, p in zip(candidates, adjusted, strict=True):
        verdict, reason = _overall_verdict(candidate.overall, p, alpha)
        if verdict in ("better", "worse"):
            called[candidate.name] = verdict
        record = candidate.overall.record(p, verdict, reason)
        answers.append({**record, "question": OVERALL})
    answers += _region_records(candidates, called, alpha)
    answers += _concentration_records(
        [c for c in candidates if c.name in called and c.is_described], alpha
    )
    numbers = dict.fromkeys(NUMBERS, float)
    # numbers stay numbers where nobody is compared, too
    return pd.DataFrame(answers, columns=COLUMNS).astype(numbers)


@dataclass(frozen=True, kw_only=True)
class _Contrast:
    """One candidate on one set of rows: what capped losses say, and whether they may decide.

    Attributes
    ----------
    comparison : Comparison
        Of capped losses; its figures of F's re-fits are plain, and NaN, where capped losses may
        not tell of these.
    plain : PlainContrast
    veto : str
        Why capped losses may not decide; empty where they may.
    """

    comparison: Comparison
    plain: PlainContrast
    veto: str

    @property
    def p(self) -> float:
        """For the family of tests; what may not be claimed is never rejected."""
        p = self.comparison.p_both
        return 1.0 if self.veto and np.isfinite(p) else p

    @property
    def word(self) -> str:
        """The direction of the difference."""
        return "better" if self.comparison.estimate.point < 0 else "worse"

    def record(self, p_adjusted: float, verdict: str, reason: str) -> dict[str, object]:
        return {
            **self.comparison.record(),
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
    influence : ndarray of shape (K,)
        Of all clusters, those of other folds among them, on the contrast over all rows.
    """

    name: str
    overall: _Contrast
    region: _Contrast | None
    no_claim: str
    effective_size: float
    influence: np.ndarray

    @property
    def is_described(self) -> bool:
        """Whether there are figures where F fails, and no few errors decide them."""
        if self.region is None or self.region.veto or self.overall.veto:
            return False
        return self.region.comparison.estimate.has_interval

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
    fits: pd.DataFrame | None,
) -> _Candidate:
    if fits is not None:
        loss_g, units = fits.to_numpy().mean(axis=1), units.of_recipe(fits)
    kept = units.subset(keep)
    own_losses = loss_g[keep]
    weighting = choose_weighting(kept.weights, kept.clusters, smallest, unit=units.unit)
    overall = _judge(name, own_losses, kept.alike())
    region = None
    if weighting.is_weighted:
        region = _judge(name, own_losses, kept)
        no_claim = no_claim or _why_not_judged(kept, weighting)
    else:
        no_claim = no_claim or why_no_region(weighting, smallest, unit=units.unit)
    capped_g, capped_f = units.cap.apply(loss_g), units.cap.apply(units.loss_f)
    contrasts = np.where(keep, capped_g, 0.0) - np.where(keep, capped_f, 0.0)
    mean = contrasts[keep].mean()
    _, _, codes = checked_rows(contrasts, None, units.clusters)
    influence = np.bincount(codes, keep * (contrasts - mean)) / keep.sum()
    return _Candidate(
        name=name,
        overall=overall,
        region=region,
        no_claim=no_claim,
        effective_size=weighting.effective_size,
        influence=influence,
    )


def _why_not_judged(units: ComparedUnits, weighting: Weighting) -> str:
    """Return why a change where F fails is described and not judged; empty where it is."""
    many = units.unit.many
    if units.refits is None:
        return f"F was not fitted again, so a gain over F may be its bad luck on these {many}"
    if weighting.effective_size < FEWEST_JUDGED:
        return (
            f"described, not judged: {weighting.effective_size:.0f} {many} where F fails, below "
            f"{FEWEST_JUDGED:.0f}"
        )
    return ""


def _judge(name: str, loss_g: np.ndarray, units: ComparedUnits) -> _Contrast:
    """Compare a candidate with F by capped losses, and ask whether these may decide."""
    comparison = compare_candidate(name, units.cap.apply(loss_g), units.capped())
    contrast = partial(
        contrast_plainly, cap=units.cap, weights=units.weights, unit=units.unit
    )
    plain = contrast(loss_g, units.loss_f, span=units.span)
    estimate = comparison.estimate
    veto = plain.veto(estimate.point, estimate.low, estimate.high)
    beside = comparison.beside_refits
    # where F fails a candidate must differ from F's re-fits as well, and by both losses
    if units.refits is not None and beside is not None:
        refit = units.refits.to_numpy(dtype=float).mean(axis=1)
        against = contrast(loss_g, refit, whose="that of F fitted again")
        veto = veto or against.disagreement(beside.point, beside.low, beside.high)
        difference, se = comparison.null_difference, comparison.null_se
        null = contrast(refit, units.loss_f)
        if null.veto(difference, difference - 2 * se, difference + 2 * se):
            comparison = replace(
                comparison, null_difference=null.difference, null_se=float("nan")
            )
    return _Contrast(comparison=comparison, plain=plain, veto=veto)


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
    'not enough rows where F fails: 20 effective ones, below 50'
    """
    if weighting.is_weighted:
        return ""
    if not weighting.effective_size > 0:
        return no_region_text(unit)
    return (
        f"not enough {unit.many} where F fails: {weighting.effective_size:.0f} effective ones, "
        f"below {smallest:.0f}"
    )


def _overall_verdict(
    judged: _Contrast, p_adjusted: float, alpha: float
) -> tuple[str, str]:
    estimate = judged.comparison.estimate
    if judged.veto:
        return "no claim", judged.veto
    if not estimate.has_interval:
        return "no claim", estimate.reason
    if not p_adjusted < alpha:  # so that NaN, no test, is undecided too
        return "undecided", "no significant difference from F"
    return judged.word, f"significantly {judged.word} than F"


def _region_records(
    candidates: list[_Candidate], called: Mapping[str, str], alpha: float
) -> list[dict[str, object]]:
    """Return, per candidate, its change where F fails, and a verdict where it earns one."""
    p_values = np.full(len(candidates), np.nan)
    for number, candidate in enumerate(candidates):
        region = candidate.region
        if region is None or candidate.no_claim:
            continue
        if called.get(candidate.name) == region.word:
            p_values[number] = region.p
    records = []
    for candidate, p in zip(candidates, holm_adjusted(p_values), strict=True):
        verdict, reason = _region_verdict(candidate, p, called, alpha)
        records.append(candidate.region_record(p, verdict, reason))
    return records


def _region_verdict(
    candidate: _Candidate, p_adjusted: float, called: Mapping[str, str], alpha: float
) -> tuple[str, str]:
    region = candidate.region
    if region is None:
        return "no claim", candidate.no_claim
    # first of two reasons: no re-fits and no further rows would mend it
    if region.veto or candidate.no_claim:
        return "no claim", region.veto or candidate.no_claim
    comparison = region.comparison
    if not comparison.estimate.has_interval:
        return "undecided", comparison.estimate.reason
    unit, word = comparison.rows.unit, region.word
    if called.get(candidate.name) != word:
        return "undecided", f"not called {word} over all {unit.many}, so described here"
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
    asked: list[_Candidate], alpha: float
) -> list[dict[str, object]]:
    """Return, per candidate, how its relative change differs between there and elsewhere."""
    found = []
    for candidate in asked:
        assert candidate.region is not None
        changes = candidate.region.comparison.relative_difference()
        if changes is not None:
            found.append((candidate, *changes))
    adjusted = holm_adjusted(np.array([p_value(each[-1]) for each in found]))
    records: list[dict[str, object]] = []
    for p, (candidate, there, elsewhere, estimate) in zip(adjusted, found, strict=True):
        verdict, reason = "undecided", "may be the same everywhere"
        if p < alpha:
            verdict, reason = _concentration_verdict(candidate, there, elsewhere)
            # capped errors are F's above all, so a cap alone makes gains look smaller there
            if 2 * _plain_gap(candidate) / (there - elsewhere) < 1:
                verdict, reason = "undecided", "the cap on large errors decides"
        records.append(
            {
                "candidate": candidate.name,
                "question": CONCENTRATED,
                "rows": len(candidate.overall.comparison.loss_g),
                "difference": estimate.point,
                "low": estimate.low,
                "high": estimate.high,
                "p": p_value(estimate),
                "p_adjusted": p,
                "effective_size": candidate.effective_size,
                "weighted": True,
                "by": candidate.overall.plain.by(""),
                "verdict": verdict,
                "reason": reason,
            }
        )
    return records


def _plain_gap(candidate: _Candidate) -> float:
    """Return the relative change where F fails minus that elsewhere, no error capped."""
    assert candidate.region is not None
    weights = candidate.region.comparison.rows.weights
    share = float(np.mean(np.asarray(weights)))
    there, overall = candidate.region.plain, candidate.overall.plain
    change = overall.difference - share * there.difference
    base = overall.f.mean - share * there.f.mean
    return there.difference / there.f.mean - change / base


def _concentration_verdict(
    candidate: _Candidate, there: float, elsewhere: float
) -> tuple[str, str]:
    """Return how a change where F fails differs from that elsewhere, as a gain or as a loss.

    The sign is that of the verdict over all rows, so no model that loses can have a larger gain.
    """
    assert candidate.region is not None
    is_gain = candidate.overall.word == "better"
    size = "larger" if (there < elsewhere) == is_gain else "smaller"
    estimate = candidate.region.comparison.estimate
    if (estimate.low > 0) if is_gain else (estimate.high < 0):
        return "opposite", "the other way round where F fails"
    word = f"{size} {'gain' if is_gain else 'loss'}"
    return (
        word,
        f"significantly {word} where F fails than elsewhere, as a share of F's loss",
    )
