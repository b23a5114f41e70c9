"""What F and other forecasters do on real windows, bad ones of earlier origins, and made ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from amlb_ext.core.errors import ModelError
from amlb_ext.forecasting.failing_windows import FailingWindows
from amlb_ext.forecasting.forecaster_zoo import (
    ForecasterZoo,
    ZooAnswers,
    ZooSize,
    candidate_forecasters,
)
from amlb_ext.forecasting.forecasters import Forecaster, ForecastRequest
from amlb_ext.forecasting.losses import scaled_errors
from amlb_ext.forecasting.made_parts import MadeWindows
from amlb_ext.forecasting.origins import Windows
from amlb_ext.forecasting.rolling import request_at
from amlb_ext.validity.measures import Losses


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
