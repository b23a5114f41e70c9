"""Candidates that a certificate is measured with: a dozen forecasters of different kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from amlb_ext.forecasting.forecasters import (
    AskPasts,
    Forecaster,
    GlobalForecaster,
    LocalForecaster,
)
from amlb_ext.forecasting.local_methods import METHODS, drift, seasonal_naive, theta
from amlb_ext.forecasting.losses import scaled_errors

ZooSize = Literal["quick", "full"]
#: Seasons that methods of the recent past look at.
_RECENT = 3
#: Windows of which the median over all candidates is taken at once.
_WINDOWS_AT_ONCE = 1024


def candidate_forecasters(
    baseline: Forecaster, size: ZooSize = "quick"
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
    candidates: list[Forecaster] = []
    methods = {
        **METHODS,
        "last_value": _last_value,
        "recent_mean": _recent_mean,
        "mean_season": _mean_season,
        "recent_theta": _recent_theta,
        "recent_drift": _recent_drift,
    }
    for name, method in methods.items():
        candidates.append(LocalForecaster(name, method))
    candidates.append(GlobalForecaster("ridge"))
    if size == "full":
        candidates.append(GlobalForecaster("boosting"))
    return [candidate for candidate in candidates if not _is_same(candidate, baseline)]


def _is_same(candidate: Forecaster, baseline: Forecaster) -> bool:
    """Whether two forecasters differ by their name alone."""
    if isinstance(candidate, LocalForecaster) and isinstance(baseline, LocalForecaster):
        return replace(candidate, name=baseline.name) == baseline
    return candidate == baseline


def _last_value(
    y: np.ndarray, horizon: int, season: int
) -> tuple[np.ndarray, np.ndarray]:
    return seasonal_naive(y, horizon, 1)


def _recent_mean(
    y: np.ndarray, horizon: int, season: int
) -> tuple[np.ndarray, np.ndarray]:
    last = y[-max(season, 4) :]
    return np.full(horizon, last.mean()), np.full(horizon, last.std())


def _mean_season(
    y: np.ndarray, horizon: int, season: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of each place in the season over the last three."""
    whole = min(_RECENT, max(len(y) // season, 1)) * season
    seasons = y[-whole:].reshape(-1, season) if len(y) >= season else y[None]
    places = np.arange(horizon) % seasons.shape[1]
    return seasons.mean(axis=0)[places], seasons.std(axis=0)[places]


def _recent_theta(
    y: np.ndarray, horizon: int, season: int
) -> tuple[np.ndarray, np.ndarray]:
    return theta(y[-max(_RECENT * season, 8) :], horizon, season)


def _recent_drift(
    y: np.ndarray, horizon: int, season: int
) -> tuple[np.ndarray, np.ndarray]:
    return drift(y[-max(season, 4) :], horizon, season)


@dataclass(frozen=True, kw_only=True)
class ZooAnswers:
    """What candidates forecast for some windows.

    Attributes
    ----------
    losses : ndarray of shape (n, m)
        MASE of each candidate.
    teacher_mase : ndarray of shape (n,)
        MASE of the candidates' median: an ensemble that no made window was chosen by.
    """

    losses: np.ndarray
    teacher_mase: np.ndarray


@dataclass(frozen=True, kw_only=True)
class ForecasterZoo:
    """Candidates as they stand at one cutoff.

    Attributes
    ----------
    asks : dict of str to callable
        By name, see :meth:`~amlb_ext.forecasting.forecasters.Forecaster.learn`.
    """

    asks: dict[str, AskPasts]

    def answer(
        self, pasts: Sequence[np.ndarray], future: np.ndarray, scale: np.ndarray
    ) -> ZooAnswers:
        """Return what the candidates forecast behind some pasts."""
        means = [ask(pasts).mean for ask in self.asks.values()]
        losses = [scaled_errors(future, mean, scale) for mean in means]
        median = np.empty_like(future)
        for first in range(0, len(median), _WINDOWS_AT_ONCE):
            part = slice(first, first + _WINDOWS_AT_ONCE)
            median[part] = np.median([mean[part] for mean in means], axis=0)
        return ZooAnswers(
            losses=np.column_stack(losses),
            teacher_mase=scaled_errors(future, median, scale),
        )
