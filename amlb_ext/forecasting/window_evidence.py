"""What F and other forecasters do on real windows, bad ones of earlier origins, and made ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from amlb_ext.forecasting.failing_windows import FailingWindows
from amlb_ext.forecasting.forecaster_zoo import (
    ForecasterZoo,
    ZooSize,
    candidate_forecasters,
    learn_zoos,
)
from amlb_ext.forecasting.forecasters import Forecaster
from amlb_ext.forecasting.losses import scaled_errors
from amlb_ext.forecasting.made_parts import MadeWindows
from amlb_ext.forecasting.origins import Windows
from amlb_ext.forecasting.panel import Panel
from amlb_ext.forecasting.rolling import request_at
from amlb_ext.forecasting.source_windows import past_until
from amlb_ext.forecasting.window_realism import WindowSet
from amlb_ext.validity.measures import Losses


@dataclass(frozen=True, kw_only=True)
class ScoredWindows:
    """Windows with what F and the candidates lose on them.

    Attributes
    ----------
    windows : WindowSet
    losses : Losses
        MASE; clusters are series.
    teacher_mase : ndarray of shape (n,)
        Of the candidates' median.
    """

    windows: WindowSet
    losses: Losses
    teacher_mase: np.ndarray

    def __len__(self) -> int:
        return len(self.losses)

    def take(self, is_taken: np.ndarray) -> ScoredWindows:
        """Return some of the windows, by a mask."""
        chosen = np.flatnonzero(is_taken)
        return ScoredWindows(
            windows=self.windows.take(chosen),
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
            windows=self.windows.join(other.windows),
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
    panel = failing.panel
    learning = [] if failing.learning is None else failing.learning.parts()
    origins = [*failing.tests, *(windows for windows, _ in learning)]
    requests = [request_at(panel, windows, seed) for windows in origins]
    zoos, dropped = learn_zoos(candidate_forecasters(forecaster, size), requests)
    by_cutoff = dict(zip((w.cutoff for w in origins), zoos, strict=True))

    parts = []
    start = 0
    for windows in failing.tests:
        end = start + len(windows)
        every = np.arange(len(windows))
        f_mase = failing.forecasts.mase[start:end]
        parts.append(_score(panel, windows, every, by_cutoff[windows.cutoff], f_mase))
        start = end
    tests = _joined(parts)
    failures = [tests.take(failing.is_bad)]
    for (windows, is_bad), request in zip(
        learning, requests[len(failing.tests) :], strict=True
    ):
        ask = forecaster.learn(request)
        bad = np.flatnonzero(is_bad)
        if ask is None or not len(bad):
            continue
        mean = ask([request.pasts[k] for k in bad]).mean
        f_mase = scaled_errors(windows.future[bad], mean, windows.scale[bad])
        failures.append(_score(panel, windows, bad, by_cutoff[windows.cutoff], f_mase))
    scored_parts = {}
    for part in made.parts:
        assert made.windows is not None  # a part has sources
        zoo = by_cutoff[made.windows.cutoff]
        own = WindowSet(pasts=list(part.pasts), future=part.future, series=part.sources)
        scored_parts[part.kind] = _scored(own, zoo, part.judged.scale, part.judged.mase)
    return WindowEvidence(
        names=tuple(zoos[0].asks),
        dropped=dropped,
        tests=tests,
        failures=_joined(failures),
        made=scored_parts,
    )


def _score(
    panel: Panel,
    windows: Windows,
    chosen: np.ndarray,
    zoo: ForecasterZoo,
    f_mase: np.ndarray,
) -> ScoredWindows:
    """Return some windows of an origin, with F's loss on these."""
    items = windows.items[chosen]
    own = WindowSet(
        pasts=[past_until(panel, int(item), windows.cutoff) for item in items],
        future=windows.future[chosen],
        series=items,
    )
    return _scored(own, zoo, windows.scale[chosen], f_mase)


def _scored(
    own: WindowSet, zoo: ForecasterZoo, scale: np.ndarray, f_mase: np.ndarray
) -> ScoredWindows:
    answers = zoo.answer(own.pasts, own.future, scale)
    return ScoredWindows(
        windows=own,
        losses=Losses(answers.losses, f_mase, own.series),
        teacher_mase=answers.teacher_mase,
    )


def _joined(parts: Sequence[ScoredWindows]) -> ScoredWindows:
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.join(part)
    return joined
