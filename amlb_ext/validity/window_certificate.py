"""What the windows of a suite may be used for: measures, one verdict, one sentence why.

All is measured as for rows of tables (:mod:`amlb_ext.validity.evaluation`), with series as
clusters. Two measures are windows' own: made ones must keep their order in time, and AMLB must be
able to score every one. Real failures are the bad windows of test and learning origins together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from amlb_ext.core.errors import ModelError
from amlb_ext.core.rng import random_stream
from amlb_ext.core.unit import WINDOW
from amlb_ext.making.made_windows import MadeWindows
from amlb_ext.models.forecasters import (
    AskPasts,
    Forecaster,
    ForecastRequest,
    GlobalForecaster,
    LocalForecaster,
)
from amlb_ext.models.local_methods import METHODS, drift, seasonal_naive, theta
from amlb_ext.stats.window_losses import scaled_errors
from amlb_ext.suite.series_manifest import MAIN_KIND
from amlb_ext.units.failing_windows import FailingWindows, describe_left_out
from amlb_ext.units.origins import Windows, split_by_origin
from amlb_ext.units.rolling import RolledForecasts, request_at
from amlb_ext.validity.candidates import Size
from amlb_ext.validity.certificate import Certificate
from amlb_ext.validity.evaluation import (
    Evaluation,
    measure_evaluation,
    write_certificate,
)
from amlb_ext.validity.measures import (
    LEAST_PLAUSIBLE,
    LabelOpinion,
    Losses,
    Measure,
    ScoredUnits,
    plan_measure,
)
from amlb_ext.validity.reference import Reference
from amlb_ext.validity.window_realism import (
    common_length,
    cut_alike,
    measure_copies,
    measure_scale,
    measure_time_order,
    measure_window_realism,
)

#: Mean and spread of H steps.
Forecast: TypeAlias = tuple[np.ndarray, np.ndarray]
#: Of the certificate, where a table's has ``classification`` or ``regression``; and the key of the
#: random streams.
KIND = "forecasting"
#: The candidates' median supports a future where its MASE is within this factor of its mean.
_TOLERANCE = 1.5
#: Seasons that methods of the recent past look at.
_RECENT = 3
#: Windows of which the median over all candidates is taken at once.
_WINDOWS_AT_ONCE = 1024


def certify_windows(
    forecaster: Forecaster,
    failing: FailingWindows,
    made: MadeWindows,
    twins: Sequence[RolledForecasts],
    *,
    size: Size = "quick",
    seed: int = 0,
) -> dict[str, Certificate]:
    """Return the certificate of the made windows, or of the real ones where nothing was made.

    By the kind of task that it speaks of, which is its task's name, too, until it is written.

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
    evaluation = evaluate_windows(
        forecaster, failing, made, twins, size=size, seed=seed
    )
    of_files, looks = _measure_files(failing, made, seed)
    found, notes = measure_evaluation(evaluation, seed, of_files=of_files, looks=looks)
    kind = made.parts[0].kind if made.parts else MAIN_KIND
    certificate = write_certificate(
        evaluation,
        found,
        task=kind,
        kind=KIND,
        notes=[*notes, *made.notes, *describe_left_out(failing.left_out)],
        size=size,
        refits=len(twins),
        seed=seed,
    )
    return {kind: certificate}


def _measure_files(
    failing: FailingWindows, made: MadeWindows, seed: int
) -> tuple[list[Measure], list[Measure]]:
    """Return what made windows hold, and whether they look like the real ones of their origin."""
    of_files: list[Measure] = []
    looks: list[Measure] = []
    season = failing.panel.season
    for part in made.parts:
        # of the same origin: another weekday or year would be told apart, too
        real = made.windows
        assert real is not None  # a part has sources
        length = common_length([part.pasts, real.pasts], season)
        cut = partial(cut_alike, length=length, season=season)
        own = cut(part.pasts, part.future, part.sources)
        sources = cut(real.pasts, real.future, real.items)
        counts = [f"{count} {reason}" for reason, count in part.dropped.items()]
        text = f"of {part.asked} asked; not kept in all rounds: {', '.join(counts) or 'none'}"
        kept = plan_measure(f"{part.kind} windows kept", "information only")
        of_files += [
            kept.found(len(part) / max(part.asked, 1), text),
            measure_time_order(own, sources, season),
            measure_scale(part.judged.scale),
            *measure_copies(part.pasts, failing),
        ]
        rng = random_stream(seed, KIND, "certificate", part.kind)
        looks += measure_window_realism(own, sources, season, rng)
    return of_files, looks


def evaluate_windows(
    forecaster: Forecaster,
    failing: FailingWindows,
    made: MadeWindows,
    twins: Sequence[RolledForecasts],
    *,
    size: Size,
    seed: int,
) -> Evaluation:
    """Ask F and the candidates, each as it stands at the cutoff of the windows.

    Parameters
    ----------
    forecaster, failing, made, twins, size, seed
        As in :func:`certify_windows`.
    """
    candidates = candidate_forecasters(forecaster, size)
    dropped: dict[str, str] = {}
    answers: dict[str, ScoredUnits] = {}
    while not answers:
        try:
            answers = _ask_all(forecaster, candidates, failing, made, seed)
        except _CandidateError as failed:
            # all windows are answered by the same candidates
            dropped[failed.name] = failed.reason
            candidates = [each for each in candidates if each.name != failed.name]
    tests = answers["full"]
    tolerance = _TOLERANCE * float(tests.judged.mean())

    def judge(units: ScoredUnits) -> LabelOpinion:
        return LabelOpinion(
            support=np.maximum(-units.judged, LEAST_PLAUSIBLE),
            agrees=np.asarray(units.judged <= tolerance),
            clusters=units.losses.clusters,
        )

    weights = failing.weighting.weights
    if weights is None:
        weights = np.ones(len(tests.losses))
    full = replace(tests, fold=failing.cutoffs, weight=weights, bad=failing.is_bad)
    if twins:
        full = replace(full, twins=np.column_stack([twin.mase for twin in twins]))
    tested_bad = tests.losses.take(failing.is_bad)
    return Evaluation(
        name=KIND,
        unit=WINDOW,
        names=[candidate.name for candidate in candidates],
        parts={**answers, "full": full},
        judge=judge,
        tested_bad=tested_bad,
        from_failures=tuple(part.kind for part in made.parts),
        reference=Reference.of_tests(full, np.arange(len(candidates))),
        dropped=dropped,
        no_region=failing.weighting.reason,
        no_twins="" if twins else f"F has no {WINDOW.refits}",
    )


class _CandidateError(Exception):
    """A candidate that cannot learn at some cutoff."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason


def _ask_all(
    forecaster: Forecaster,
    candidates: Sequence[Forecaster],
    failing: FailingWindows,
    made: MadeWindows,
    seed: int,
) -> dict[str, ScoredUnits]:
    """Ask one origin after another, so that the pasts of one at a time are in memory.

    Returns
    -------
    dict of str to ScoredUnits
        ``full``: all windows of the test origins; ``bad``: the bad ones of test and learning
        origins; and the made parts.
    """
    answers: dict[str, ScoredUnits] = {}
    scored: list[ScoredUnits] = []
    origins: list[tuple[Windows, np.ndarray, np.ndarray | None]] = []
    mase_of_origins = split_by_origin(failing.forecasts.mase, failing.tests)
    for windows, known in zip(failing.tests, mase_of_origins, strict=True):
        origins.append((windows, np.arange(len(windows)), known))
    # what F loses at learning origins is not kept: it is asked again
    if failing.learning is not None:
        for windows, is_bad in failing.learning.parts():
            origins.append((windows, np.flatnonzero(is_bad), None))
    for windows, chosen, mase in origins:
        request = request_at(failing.panel, windows, seed)
        zoo = _Zoo(candidates, request)
        answers |= zoo.answer_made(made, windows.cutoff)
        pasts = [request.pasts[k] for k in chosen]
        future, scale = windows.future[chosen], windows.scale[chosen]
        if mase is None:
            ask = forecaster.learn(request)
            if ask is None or not len(chosen):
                continue
            mase = scaled_errors(future, ask(pasts).mean, scale)
        series = windows.items[chosen]
        scored.append(zoo.answer(pasts, future, scale, mase, series))
    n_tests = len(failing.tests)
    tests, earlier = scored[:n_tests], scored[n_tests:]
    full = ScoredUnits.join(tests)
    bad_ones = ScoredUnits.join([full.take(failing.is_bad), *earlier])
    return {"full": full, "bad": bad_ones, **answers}


class _Zoo:
    """The candidates as they stand at one cutoff.

    Raises
    ------
    _CandidateError
        One cannot learn there.
    """

    def __init__(
        self, candidates: Sequence[Forecaster], request: ForecastRequest
    ) -> None:
        self._asks: list[AskPasts] = []
        for candidate in candidates:
            try:
                ask = candidate.learn(request)
            except ModelError as error:
                raise _CandidateError(candidate.name, str(error)) from None
            assert ask is not None  # no candidate is a file
            self._asks.append(ask)

    def answer(
        self,
        pasts: Sequence[np.ndarray],
        future: np.ndarray,
        scale: np.ndarray,
        mase: np.ndarray,
        series: np.ndarray,
    ) -> ScoredUnits:
        """Return what the candidates forecast behind some pasts, with F's losses there."""
        means = [ask(pasts).mean for ask in self._asks]
        losses = [scaled_errors(future, mean, scale) for mean in means]
        median = np.empty_like(future)
        for first in range(0, len(median), _WINDOWS_AT_ONCE):
            part = slice(first, first + _WINDOWS_AT_ONCE)
            median[part] = np.median([mean[part] for mean in means], axis=0)
        return ScoredUnits(
            losses=Losses(np.column_stack(losses), mase, series),
            judged=scaled_errors(future, median, scale),
        )

    def answer_made(self, made: MadeWindows, cutoff: int) -> dict[str, ScoredUnits]:
        """Return the answers for what was made at this cutoff; nothing at others."""
        if made.windows is None or made.windows.cutoff != cutoff:
            return {}
        answers = {}
        for part in made.parts:
            judged = part.judged
            answers[part.kind] = self.answer(
                part.pasts, part.future, judged.scale, judged.mase, part.sources
            )
        return answers


def candidate_forecasters(
    baseline: Forecaster, size: Size = "quick"
) -> list[Forecaster]:
    """Return the candidates, without F itself.

    Parameters
    ----------
    baseline : Forecaster
        F, under whatever name.
    size : {'quick', 'full'}
        ``full`` has boosting on lags, too.

    Examples
    --------
    >>> f = LocalForecaster("F", theta)
    >>> [candidate.name for candidate in candidate_forecasters(f)][:3]
    ['seasonal_naive', 'drift', 'ets']
    """
    methods = {
        **METHODS,
        "last_value": _last_value,
        "recent_mean": _recent_mean,
        "mean_season": _mean_season,
        "recent_theta": _recent_theta,
        "recent_drift": _recent_drift,
    }
    candidates: list[Forecaster] = [
        LocalForecaster(name, method) for name, method in methods.items()
    ]
    candidates.append(GlobalForecaster("ridge"))
    if size == "full":
        candidates.append(GlobalForecaster("boosting"))
    return [candidate for candidate in candidates if not _is_same(candidate, baseline)]


def _is_same(candidate: Forecaster, baseline: Forecaster) -> bool:
    """Whether two forecasters differ by their name alone."""
    if isinstance(candidate, LocalForecaster) and isinstance(baseline, LocalForecaster):
        return replace(candidate, name=baseline.name) == baseline
    return candidate == baseline


def _last_value(y: np.ndarray, horizon: int, season: int) -> Forecast:
    return seasonal_naive(y, horizon, 1)


def _recent_mean(y: np.ndarray, horizon: int, season: int) -> Forecast:
    last = y[-max(season, 4) :]
    return np.full(horizon, last.mean()), np.full(horizon, last.std())


def _mean_season(y: np.ndarray, horizon: int, season: int) -> Forecast:
    """Return the mean of each place in the season over the last three."""
    whole = min(_RECENT, max(len(y) // season, 1)) * season
    seasons = y[-whole:].reshape(-1, season) if len(y) >= season else y[None]
    places = np.arange(horizon) % seasons.shape[1]
    return seasons.mean(axis=0)[places], seasons.std(axis=0)[places]


def _recent_theta(y: np.ndarray, horizon: int, season: int) -> Forecast:
    return theta(y[-max(_RECENT * season, 8) :], horizon, season)


def _recent_drift(y: np.ndarray, horizon: int, season: int) -> Forecast:
    return drift(y[-max(season, 4) :], horizon, season)
