"""A forecaster rolled over origins: its forecasts and losses, window by window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from amlb_ext.core.errors import ModelError
from amlb_ext.core.losses import Loss
from amlb_ext.core.rng import random_stream
from amlb_ext.models.columns import list_names
from amlb_ext.models.forecasters import (
    LEVELS,
    Forecaster,
    ForecastRequest,
    Forecasts,
    checked_forecasts,
    make_forecaster,
)
from amlb_ext.models.lag_models import LagModel
from amlb_ext.sources.panel import Panel
from amlb_ext.stats.window_losses import WINDOW_LOSSES, ForecastWindows
from amlb_ext.units.origins import Windows

#: What the ensemble T is made of: methods of one series, and a model that learns from others.
_ENSEMBLE_LOCAL = ("theta", "ets")
_ENSEMBLE_GLOBAL = "ridge"
#: A file's own copy of the target may be rounded by this many scales, to so many digits behind the
#: point (less than none: to tens and hundreds) or in all.
_MOST_ROUNDED, _DIGITS, _SIGNIFICANT = 0.1, range(-3, 10), range(3, 10)
#: Groups of series that T's global model is cross-fitted over.
_ENSEMBLE_GROUPS = 2


def request_at(panel: Panel, windows: Windows, seed: int = 0) -> ForecastRequest:
    """Return what forecasters are asked at one origin: pasts, and what is known beforehand."""
    pasts, known = [], []
    for item in windows.items:
        # a copy: whoever holds a view of a series could look behind its end
        pasts.append(panel.past(item, windows.cutoff).copy())
        if panel.known_values:
            known.append(panel.known_at(item, windows.cutoff).copy())
    return ForecastRequest(
        names=tuple(panel.names[item] for item in windows.items),
        pasts=tuple(pasts),
        times=panel.future_times(windows.cutoff),
        cutoff=panel.calendar[windows.cutoff],
        clock=panel.clock,
        season=panel.season,
        levels=LEVELS,
        seed=seed,
        frequency=panel.frequency,
        known=panel.known if known else (),
        known_values=tuple(known),
    )


@dataclass(frozen=True, kw_only=True)
class RolledForecasts:
    """Forecasts of one forecaster at some origins, windows in their order.

    Attributes
    ----------
    mean : ndarray of shape (n, H)
    quantiles : ndarray of shape (n, H, Q) or None
    losses : mapping of str to ndarray of shape (n,)
        By the names of :data:`~amlb_ext.stats.window_losses.WINDOW_LOSSES`. Those that need
        quantiles are missing where the forecaster has none.
    unread : tuple of str
        Columns of its file that nothing was read from.
    """

    mean: np.ndarray
    quantiles: np.ndarray | None
    losses: Mapping[str, np.ndarray]
    unread: tuple[str, ...] = ()

    @property
    def in_other_columns(self) -> str:
        """A phrase that names the columns that nothing was read from; empty without such."""
        return f" in its columns {list_names(self.unread)}" if self.unread else ""

    @property
    def mase(self) -> np.ndarray:
        """The MASE of each window, ``(n,)``."""
        return self.losses["mase"]

    @property
    def sql(self) -> np.ndarray | None:
        """The SQL of each window, ``(n,)``; None where the forecaster has no quantiles."""
        return self.losses.get("sql")

    def with_loss(self, loss: Loss, origins: Sequence[Windows]) -> RolledForecasts:
        """Return the same with the losses of a user's own function; named ones are there already.

        Parameters
        ----------
        loss : Loss
        origins : sequence of Windows
            Those of the forecasts.
        """
        if loss.name in WINDOW_LOSSES:
            return self
        y = np.concatenate([windows.future for windows in origins])
        own = loss(
            ForecastWindows(
                y=y,
                forecast=Forecasts(mean=self.mean, quantiles=self.quantiles),
                levels=np.array(LEVELS),
                scale=np.concatenate([windows.scale for windows in origins]),
                rms_scale=np.concatenate([windows.rms_scale for windows in origins]),
                mean_size=float(np.abs(y).mean()),
            )
        )
        return replace(self, losses={**self.losses, loss.name: own})


def roll_forecaster(
    forecaster: Forecaster,
    panel: Panel,
    origins: Sequence[Windows],
    seed: int = 0,
    *,
    keep_quantiles: bool = True,
) -> RolledForecasts:
    """Forecast the windows of some origins, and score them.

    Parameters
    ----------
    forecaster : Forecaster
    panel : Panel
    origins : sequence of Windows
    seed : int
    keep_quantiles : bool
        False where the losses are enough: quantiles take nine times the memory of the means.

    Raises
    ------
    ModelError
        The forecaster fails, or is a file of other values or without origins; the message names it.
    """
    apart = np.diff([windows.cutoff for windows in origins])
    if not forecaster.knows_origins and (apart < panel.horizon).any():
        raise ModelError(
            f"{forecaster.name} has one forecast for each time, and origins that are "
            f"{apart.min()} apart ask for forecasts of one time up to {panel.horizon} steps ahead",
            "add to its file a column 'cutoff', the last time seen at the origin of each forecast, "
            f"or ask for origins {panel.horizon} or more steps apart (--step {panel.horizon})",
        )
    answers = (_ask(forecaster, panel, windows, seed) for windows in origins)
    return score_forecasts(answers, origins, keep_quantiles=keep_quantiles)


def _ask(
    forecaster: Forecaster, panel: Panel, windows: Windows, seed: int
) -> Forecasts:
    """Return a forecaster's answer at one origin, which is of the values that came.

    Raises
    ------
    ModelError
        Its file has the target, and other values of it.
    """
    request = request_at(panel, windows, seed)
    answer = checked_forecasts(forecaster, request)
    if answer.truth is None:
        return answer
    # a missing value differs from none
    gaps = np.abs(answer.truth - windows.future)
    room = 1e-5 * np.abs(windows.future) + 1e-6 * windows.scale[:, None]
    size = np.floor(np.log10(np.maximum(np.abs(answer.truth), 1e-300)))
    units = [np.full_like(size, 10.0**-digits) for digits in _DIGITS]
    units += [10.0 ** (size + 1 - digits) for digits in _SIGNIFICANT]
    for unit in units:
        rounded = np.round(answer.truth / unit) * unit
        alike = np.isclose(rounded, answer.truth, rtol=1e-9, atol=0, equal_nan=True)
        # a window that shows no finer digits was rounded to these
        shows = alike.all(axis=1)
        room[shows] = np.maximum(room, 0.5000001 * unit)[shows]
    differs = gaps > np.minimum(room, _MOST_ROUNDED * windows.scale[:, None])
    if differs.any():
        window, step = np.argwhere(differs)[0]
        raise ModelError(
            f"{forecaster.name} has targets of its own, which differ from the table's in "
            f"{differs.sum()} of {differs.size} steps: {answer.truth[window, step]:.6g} for "
            f"{windows.future[window, step]:.6g} of series {request.names[window]!r} at "
            f"{request.times[step]}",
            "are its series and times those of the table? Without that column nothing is checked",
        )
    return answer


def score_forecasts(
    answers: Iterable[Forecasts],
    origins: Sequence[Windows],
    *,
    keep_quantiles: bool = True,
) -> RolledForecasts:
    """Return the losses of forecasts, an answer for each origin.

    Quantiles are most of what is kept. So there is one array for all origins, and never a list of
    arrays beside what they are joined to.

    Parameters
    ----------
    answers : iterable of Forecasts
    origins : sequence of Windows
    keep_quantiles : bool
    """
    n = sum(len(windows) for windows in origins)
    quantiles = None
    unread: tuple[str, ...] = ()
    means = []
    losses: dict[str, list[np.ndarray]] = {name: [] for name in WINDOW_LOSSES}
    sizes = [np.abs(windows.future).mean() * len(windows) for windows in origins]
    mean_size = float(sum(sizes) / n)
    first = 0
    waiting = iter(answers)
    for windows in origins:
        answer = next(waiting)
        means.append(answer.mean)
        unread = answer.unread
        scored = ForecastWindows(
            y=windows.future,
            forecast=answer,
            levels=np.array(LEVELS),
            scale=windows.scale,
            rms_scale=windows.rms_scale,
            mean_size=mean_size,
        )
        for name, loss in WINDOW_LOSSES.items():
            if answer.quantiles is not None or loss.basis != "quantiles":
                losses[name].append(loss(scored))
        if answer.quantiles is not None and keep_quantiles:
            if quantiles is None:
                quantiles = np.empty((n, *answer.quantiles.shape[1:]))
            quantiles[first : first + len(windows)] = answer.quantiles
        first += len(windows)
        # gone before the next origin is forecast
        del answer, scored
    # of quantiles that some origins lack, none
    known = {
        name: np.concatenate(parts)
        for name, parts in losses.items()
        if len(parts) == len(origins)
    }
    return RolledForecasts(
        mean=np.concatenate(means),
        quantiles=quantiles if "sql" in known else None,
        losses=known,
        unread=unread,
    )


def ensemble_means(
    panel: Panel, origins: Sequence[Windows], seed: int = 0
) -> np.ndarray:
    """Return the forecasts of T, ``(n, H)``: the mean of Theta, smoothing and ridge on lags.

    The first two see a series' own past alone; ridge is learnt from other series than it forecasts.
    """
    means = []
    for windows in origins:
        request = request_at(panel, windows, seed)
        parts = [
            make_forecaster(word).forecast(request).mean for word in _ENSEMBLE_LOCAL
        ]
        n = len(request.pasts)
        rng = random_stream(seed, "forecasting", "ensemble")
        group = rng.permutation(n) % _ENSEMBLE_GROUPS
        cross_fitted = np.empty((n, request.horizon))
        for own in range(_ENSEMBLE_GROUPS):
            others = [request.pasts[k] for k in np.flatnonzero(group != own)]
            mine = np.flatnonzero(group == own)
            model = LagModel(_ENSEMBLE_GLOBAL, season=request.season, seed=seed)
            model.fit(others, request.horizon, request.levels)
            cross_fitted[mine] = model.predict([request.pasts[k] for k in mine])[0]
        means.append(np.mean([*parts, cross_fitted], axis=0))
    return np.concatenate(means)
