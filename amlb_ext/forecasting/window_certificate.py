"""What the windows of a suite may be used for: measures, one verdict, one sentence why.

The measures are those of rows of tables (:mod:`amlb_ext.validity`), with series as clusters, and
two of their own: made windows must keep their order in time, and AMLB must be able to score every
one. Real failures are the bad windows of test and learning origins together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from amlb_ext.core.errors import ModelError
from amlb_ext.core.rng import random_stream
from amlb_ext.forecasting.failing_windows import FailingWindows, describe_left_out
from amlb_ext.forecasting.forecaster_zoo import (
    ForecasterZoo,
    ZooAnswers,
    ZooSize,
    candidate_forecasters,
)
from amlb_ext.forecasting.forecasters import Forecaster, ForecastRequest
from amlb_ext.forecasting.losses import scaled_errors
from amlb_ext.forecasting.made_parts import MadePart, MadeWindows
from amlb_ext.forecasting.origins import Windows
from amlb_ext.forecasting.rolling import RolledForecasts, request_at
from amlb_ext.forecasting.source_windows import SourceWindows
from amlb_ext.forecasting.window_realism import (
    WindowSet,
    measure_time_order,
    measure_window_realism,
)
from amlb_ext.forecasting.wording import of_windows
from amlb_ext.suite.series_manifest import MAIN_KIND
from amlb_ext.validity import measures, ranking_measures, realism_measures
from amlb_ext.validity.certificate import Certificate, Verdict, decide_verdict
from amlb_ext.validity.measures import LabelOpinion, Losses, Measure
from amlb_ext.validity.reference import ReferenceRows

#: Of the certificate, where a table's has ``classification`` or ``regression``.
KIND = "forecasting"
#: The ensemble supports a future where its MASE is within this factor of its mean.
_TOLERANCE = 1.5


def certify_windows(
    forecaster: Forecaster,
    failing: FailingWindows,
    made: MadeWindows,
    twins: Sequence[RolledForecasts],
    *,
    size: ZooSize = "quick",
    seed: int = 0,
) -> dict[str, Certificate]:
    """Return a certificate of each made part, or one of the real windows where nothing was made.

    By the kind of task that each speaks of, which is its task's name, too, until it is written.

    Parameters
    ----------
    forecaster : Forecaster
        F.
    failing : FailingWindows
        With its learning windows.
    made : MadeWindows
    twins : sequence of RolledForecasts
        F's null twins, at the test origins.
    size : {'quick', 'full'}
    seed : int
    """
    evidence = gather_evidence(forecaster, failing, made, size=size, seed=seed)
    real = _measure_real(failing, evidence, twins, seed)
    notes = [*made.notes, *describe_left_out(failing.left_out)]
    certificates = {}
    parts: list[MadePart | None] = [*made.parts] or [None]
    for part in parts:
        own = [*real]
        rows = {
            "full": len(evidence.tests),
            "bad": len(evidence.failures),
        }
        if part is not None:
            assert made.windows is not None  # a part has sources
            rows[part.kind] = len(part)
            own += _measure_part(part, made.windows, evidence, failing, seed)
        verdict, reason = window_verdict(own, len(evidence.tests))
        kind = MAIN_KIND if part is None else part.kind
        certificates[kind] = Certificate(
            task=kind,
            kind=KIND,
            verdict=verdict,
            reason=of_windows(reason),
            measures=tuple(
                replace(measure, text=of_windows(measure.text)) for measure in own
            ),
            rows=rows,
            candidates=_mean_losses(evidence, part),
            dropped=evidence.dropped,
            notes=tuple(notes),
            size=size,
            refits=len(twins),
            seed=seed,
        )
    return certificates


def window_verdict(found: Sequence[Measure], n_windows: int) -> tuple[Verdict, str]:
    """Return the verdict on windows, and the sentence that gives the reason.

    As :func:`~amlb_ext.validity.certificate.decide_verdict`, and before it: windows that lost
    their order in time, or that AMLB cannot score, are for stress tests alone.
    """
    by_name = {measure.name: measure for measure in found}
    order = by_name.get("time order")
    if order is not None and order.passed is False and order.value is not None:
        return "stress-test only", (
            "Made windows are other series than real ones: an autocorrelation is "
            f"{order.value:.1f} standard errors off, at most {order.threshold:g} is allowed "
            f"({order.text.partition('; ')[2] or order.text})."
        )
    scored = by_name.get("AMLB's scale")
    if scored is not None and scored.passed is False:
        return "stress-test only", (
            "AMLB cannot score every made window: a share of "
            f"{scored.value:.3g} has a scale, all must."
        )
    return decide_verdict(found, real_rows=n_windows)


def _measure_real(
    failing: FailingWindows,
    evidence: WindowEvidence,
    twins: Sequence[RolledForecasts],
    seed: int,
) -> list[Measure]:
    """Return what is measured on the real windows of the test origins."""
    weights = failing.weighting.weights
    tests = evidence.tests
    if weights is None:
        why = failing.weighting.reason
        return [measures.missing_measure("region", why, "", 0.5, ">=")]
    clusters = tests.losses.clusters
    rng = random_stream(seed, "forecasting", "certificate")
    found = [
        measures.measure_region(weights, failing.is_bad, clusters),
        measures.measure_solvability(tests.losses, weights, list(evidence.names), rng),
        ranking_measures.measure_target_agreement(
            tests.losses.take(failing.is_bad), tests.losses, weights, rng
        ),
    ]
    if twins:
        null = ranking_measures.measure_null(
            np.column_stack([twin.mase for twin in twins]),
            tests.losses.baseline,
            clusters=clusters,
            fold=failing.cutoffs,
            weights=weights,
            where="region",
        )
        found.append(null)
    found.append(measures.measure_effective_size(weights, clusters))
    return found


def _measure_part(
    part: MadePart,
    windows: SourceWindows,
    evidence: WindowEvidence,
    failing: FailingWindows,
    seed: int,
) -> list[Measure]:
    """Return what is measured on made windows of one kind."""
    scored, failures = evidence.made[part.kind], evidence.failures
    rng = random_stream(seed, "forecasting", "certificate", part.kind)
    reference = ReferenceRows(
        losses=failures.losses,
        weights=np.ones(len(failures)),
        y=failures.losses.baseline,
    )
    why_not = measures.why_not_compared(failures.losses.n_real_rows, len(part))
    tested = np.unique(failing.items[failing.is_bad])
    season = failing.panel.season
    own = WindowSet(pasts=part.pasts, future=part.future, series=part.sources)
    sources = WindowSet(
        pasts=list(windows.pasts), future=windows.future, series=windows.items
    )
    found = [
        ranking_measures.measure_order(
            scored.losses,
            reference,
            part.kind,
            rng,
            as_many=len(tested),
            why_not=why_not,
        )
    ]
    for measure in ranking_measures.measure_fidelity(
        scored.losses, failures.losses, rng, part.kind
    ):
        # the order decides, as on tables
        found.append(replace(measure, threshold=None, passed=None, sense=""))
    found.append(measure_time_order(own, sources, season))
    found.append(_measure_scale(part))
    found += _measure_copies(part, failing)
    found += _measure_labels(scored, failures, evidence.tests)
    found.append(measures.measure_hardness(scored.losses, failures.losses))
    # of the same origin: another weekday or year would be told apart, too
    found += measure_window_realism(own, sources, season, rng)
    found.append(ranking_measures.measure_widening(scored.losses))
    found.append(
        measures.make_measure(
            f"{part.kind} windows kept",
            len(part) / max(part.asked, 1),
            f"of {part.asked} asked; not kept in all rounds: {_counted(part.dropped)}",
            "information only",
        )
    )
    return found


def _measure_scale(part: MadePart) -> Measure:
    """Return the share of made windows that AMLB can score."""
    return measures.make_measure(
        "AMLB's scale",
        float(np.isfinite(part.judged.scale).mean()),
        "made windows whose past is longer than the season and does not repeat itself: AMLB "
        "scores others in another unit, or leaves them out of its mean",
        "AMLB v2.1.7; all must",
        threshold=1.0,
        sense=">=",
    )


def _measure_copies(part: MadePart, failing: FailingWindows) -> list[Measure]:
    """Return the shares of made pasts that are the end of a real one, or repeat another."""
    lengths = {len(past) for past in part.pasts}
    ends = set()
    assert failing.learning is not None  # made windows came from there
    for windows in failing.learning.origins:
        for item in windows.items:
            real = failing.panel.past(int(item), windows.cutoff)
            ends |= {real[-length:].tobytes() for length in lengths}
    keys = [np.ascontiguousarray(past).tobytes() for past in part.pasts]
    shares = {
        "exact copies": sum(key in ends for key in keys),
        "repeated windows": len(keys) - len(set(keys)),
    }
    texts = {
        "exact copies": "made windows whose past is that of a real window",
        "repeated windows": "made windows whose past is that of another made window",
    }
    found = []
    for name, count in shares.items():
        found.append(
            measures.make_measure(
                name,
                count / len(keys),
                f"{count} of {len(keys)} {texts[name]}",
                realism_measures.COPY_SOURCE,
                threshold=realism_measures.MOST_COPIES,
                sense="<=",
            )
        )
    return found


def _measure_labels(
    made: ScoredWindows, failures: ScoredWindows, tests: ScoredWindows
) -> list[Measure]:
    """Compare futures of made and real bad windows by the candidates' median.

    It is not the ensemble that made windows were screened by.
    """
    tolerance = _TOLERANCE * float(tests.teacher_mase.mean())

    def opinion(scored: ScoredWindows) -> LabelOpinion:
        error = scored.teacher_mase
        return LabelOpinion(
            support=np.maximum(-error, measures.LEAST_PLAUSIBLE),
            agrees=np.asarray(error <= tolerance),
            clusters=scored.losses.clusters,
        )

    found = measures.measure_labels(
        opinion(made),
        opinion(failures),
        all_agree=tests.teacher_mase <= tolerance,
        recorded=1.0,
        n_classes=0,
    )
    # windows were screened by an error, so there is no opinion on record to set beside it
    return [
        replace(measure, text=measure.text.partition("; as generated")[0])
        for measure in found
    ]


def _counted(dropped: dict[str, int]) -> str:
    if not dropped:
        return "none"
    return ", ".join(f"{count} {reason}" for reason, count in dropped.items())


def _mean_losses(
    evidence: WindowEvidence, part: MadePart | None
) -> dict[str, dict[str, float | None]]:
    """Return the mean MASE of each candidate on each set of windows."""
    sets = {"full": evidence.tests, "bad": evidence.failures}
    if part is not None:
        sets[part.kind] = evidence.made[part.kind]
    means: dict[str, dict[str, float | None]] = {}
    for position, name in enumerate(evidence.names):
        means[name] = {
            what: float(scored.losses.candidates[:, position].mean())
            for what, scored in sets.items()
        }
    return means


@dataclass(frozen=True, kw_only=True)
class ScoredWindows:
    """What F and the candidates lose on some windows.

    Attributes
    ----------
    losses : Losses
        MASE; clusters are series.
    teacher_mase : ndarray of shape (n,)
        Of the candidates' median.
    """

    losses: Losses
    teacher_mase: np.ndarray

    def __len__(self) -> int:
        return len(self.losses)

    def take(self, is_taken: np.ndarray) -> ScoredWindows:
        """Return some of the windows, by a mask."""
        chosen = np.flatnonzero(is_taken)
        return ScoredWindows(
            losses=self.losses.take(chosen),
            teacher_mase=self.teacher_mase[chosen],
        )

    def join(self, other: ScoredWindows) -> ScoredWindows:
        """Return these windows and others."""
        losses = Losses(
            np.concatenate([self.losses.candidates, other.losses.candidates]),
            np.concatenate([self.losses.baseline, other.losses.baseline]),
            np.concatenate([self.losses.clusters, other.losses.clusters]),
        )
        return ScoredWindows(
            losses=losses,
            teacher_mase=np.r_[self.teacher_mase, other.teacher_mase],
        )


@dataclass(frozen=True, kw_only=True)
class WindowEvidence:
    """What all certificates of a suite rest on.

    Attributes
    ----------
    names : tuple of str
        Of the candidates.
    dropped : dict of str to str
        Candidates that could not learn, and why.
    tests : ScoredWindows
        All windows of the test origins.
    failures : ScoredWindows
        Bad windows of test and learning origins.
    made : dict of str to ScoredWindows
        Made windows by kind.
    """

    names: tuple[str, ...]
    dropped: dict[str, str]
    tests: ScoredWindows
    failures: ScoredWindows
    made: dict[str, ScoredWindows]


def gather_evidence(
    forecaster: Forecaster,
    failing: FailingWindows,
    made: MadeWindows,
    *,
    size: ZooSize = "quick",
    seed: int = 0,
) -> WindowEvidence:
    """Ask F and the candidates, each as it stands at the cutoff of the windows.

    Parameters
    ----------
    forecaster : Forecaster
        F.
    failing : FailingWindows
    made : MadeWindows
    size : {'quick', 'full'}
    seed : int
    """
    candidates = candidate_forecasters(forecaster, size)
    dropped: dict[str, str] = {}
    while True:
        try:
            return _ask_all(forecaster, candidates, dropped, failing, made, seed)
        except _CandidateError as failed:
            # all windows are answered by the same candidates
            dropped[failed.name] = failed.reason
            candidates = [each for each in candidates if each.name != failed.name]


class _CandidateError(Exception):
    """A candidate that cannot learn at some cutoff."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason


def _ask_all(
    forecaster: Forecaster,
    candidates: Sequence[Forecaster],
    dropped: dict[str, str],
    failing: FailingWindows,
    made: MadeWindows,
    seed: int,
) -> WindowEvidence:
    """Ask one origin after another, so that the pasts of one at a time are in memory."""
    learning = [] if failing.learning is None else failing.learning.parts()
    tests: list[ScoredWindows] = []
    earlier: list[ScoredWindows] = []
    scored_parts: dict[str, ScoredWindows] = {}
    names = tuple(candidate.name for candidate in candidates)
    start = 0
    for windows in failing.tests:
        request = request_at(failing.panel, windows, seed)
        zoo = _learn_zoo(candidates, request)
        end = start + len(windows)
        every = np.arange(len(windows))
        f_mase = failing.forecasts.mase[start:end]
        tests.append(_score(request, windows, every, zoo, f_mase))
        start = end
        scored_parts |= _score_made(made, windows, zoo)
    for windows, is_bad in learning:
        request = request_at(failing.panel, windows, seed)
        zoo = _learn_zoo(candidates, request)
        scored_parts |= _score_made(made, windows, zoo)
        ask = forecaster.learn(request)
        bad = np.flatnonzero(is_bad)
        if ask is None or not len(bad):
            continue
        mean = ask([request.pasts[k] for k in bad]).mean
        f_mase = scaled_errors(windows.future[bad], mean, windows.scale[bad])
        earlier.append(_score(request, windows, bad, zoo, f_mase))
    all_tests = _joined(tests)
    return WindowEvidence(
        names=names,
        dropped=dropped,
        tests=all_tests,
        failures=_joined([all_tests.take(failing.is_bad), *earlier]),
        made=scored_parts,
    )


def _learn_zoo(
    candidates: Sequence[Forecaster], request: ForecastRequest
) -> ForecasterZoo:
    asks = {}
    for candidate in candidates:
        try:
            ask = candidate.learn(request)
        except ModelError as error:
            raise _CandidateError(candidate.name, str(error)) from None
        assert ask is not None  # no candidate is a file
        asks[candidate.name] = ask
    return ForecasterZoo(asks=asks)


def _score_made(
    made: MadeWindows, windows: Windows, zoo: ForecasterZoo
) -> dict[str, ScoredWindows]:
    """Return what was made of an origin's windows, by kind; nothing at other origins."""
    if made.windows is None or made.windows.cutoff != windows.cutoff:
        return {}
    scored = {}
    for part in made.parts:
        answers = zoo.answer(part.pasts, part.future, part.judged.scale)
        scored[part.kind] = _scored(answers, part.judged.mase, part.sources)
    return scored


def _score(
    request: ForecastRequest,
    windows: Windows,
    chosen: np.ndarray,
    zoo: ForecasterZoo,
    f_mase: np.ndarray,
) -> ScoredWindows:
    """Return some windows of an origin, with F's loss on these."""
    pasts = [request.pasts[k] for k in chosen]
    answers = zoo.answer(pasts, windows.future[chosen], windows.scale[chosen])
    return _scored(answers, f_mase, windows.items[chosen])


def _scored(
    answers: ZooAnswers, f_mase: np.ndarray, series: np.ndarray
) -> ScoredWindows:
    return ScoredWindows(
        losses=Losses(answers.losses, f_mase, series),
        teacher_mase=answers.teacher_mase,
    )


def _joined(parts: Sequence[ScoredWindows]) -> ScoredWindows:
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.join(part)
    return joined
