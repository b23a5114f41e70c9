"""Forecasters behind one protocol: of one series, of all series at once, yours, or a file's.

A forecaster is given the pasts of some series at one cutoff, and nothing behind it. Its null twins
are the same method on other knowledge: without the oldest seasons where it looks at each series
alone, on other series where it learns from all.
"""

from __future__ import annotations

import copy
import importlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.errors import ModelError, suggest_nearest
from amlb_ext.core.rng import derive_seed
from amlb_ext.forecasting.lag_models import LagModel
from amlb_ext.forecasting.local_methods import METHODS
from amlb_ext.forecasting.panel import read_times
from amlb_ext.suite.series_manifest import QUANTILE_LEVELS

#: Quantile levels that are forecast.
LEVELS = QUANTILE_LEVELS
#: Baselines that learn from all series.
GLOBAL_NAMES = ("ridge", "boosting")
#: A twin keeps at least this many seasons of each series.
_SEASONS_KEPT = 3
#: A name of a column that holds the forecast of a quantile.
_MEAN_COLUMNS = ("mean", "prediction", "predictions", "forecast")


@dataclass(frozen=True, kw_only=True)
class ForecastRequest:
    """What a forecaster is asked at one cutoff.

    Attributes
    ----------
    names : tuple of str
        Of the series.
    pasts : tuple of ndarray
        Their values up to the cutoff; read-only.
    times : DatetimeIndex of shape (H,)
        To forecast.
    season : int
    levels : tuple of float
        Quantiles to forecast.
    seed : int
    """

    names: tuple[str, ...]
    pasts: tuple[np.ndarray, ...]
    times: pd.DatetimeIndex
    season: int
    levels: tuple[float, ...] = LEVELS
    seed: int = 0

    @property
    def horizon(self) -> int:
        """H."""
        return len(self.times)


@dataclass(frozen=True, kw_only=True)
class Forecasts:
    """What a forecaster answers.

    Attributes
    ----------
    mean : ndarray of shape (n, H)
    quantiles : ndarray of shape (n, H, Q) or None
        None where the forecaster has no quantiles.
    """

    mean: np.ndarray
    quantiles: np.ndarray | None = None


#: Forecasts behind any pasts, by a forecaster as it stands at one cutoff.
AskPasts = Callable[[Sequence[np.ndarray]], Forecasts]


class Forecaster(ABC):
    """A method of forecasting many series at one cutoff."""

    name: str

    @abstractmethod
    def forecast(self, request: ForecastRequest) -> Forecasts:
        """Return the forecasts of all series of a request, in its order."""

    def learn(self, request: ForecastRequest) -> AskPasts | None:
        """Return the forecaster as it stands at a cutoff, to be asked about made pasts, too.

        None where it only knows forecasts of named series. A forecaster that learns from all series
        of a request must learn here, from the real ones, and not from the made pasts.
        """

        def ask(pasts: Sequence[np.ndarray]) -> Forecasts:
            names = tuple(f"made window {number}" for number in range(len(pasts)))
            return checked_forecasts(
                self, replace(request, names=names, pasts=tuple(pasts))
            )

        return ask

    def twins(self, count: int, season: int) -> list[Forecaster]:
        """Return the same method on other knowledge, or nothing where there is no such."""
        return []


@dataclass(frozen=True)
class LocalForecaster(Forecaster):
    """A method of one series, see :mod:`amlb_ext.forecasting.local_methods`.

    Parameters
    ----------
    name : str
    method : callable
        ``method(past, horizon, season)`` returns means and standard errors, ``(H,)`` each.
    forgets : int
        Oldest values that it does not see, where three seasons are left.
    """

    name: str
    method: Callable[[np.ndarray, int, int], tuple[np.ndarray, np.ndarray]]
    forgets: int = 0

    def forecast(self, request: ForecastRequest) -> Forecasts:
        """Forecast each series by itself."""
        shape = (len(request.pasts), request.horizon)
        mean, error = np.empty(shape), np.empty(shape)
        fewest = _SEASONS_KEPT * request.season
        for position, past in enumerate(request.pasts):
            forgotten = min(self.forgets, max(len(past) - fewest, 0))
            mean[position], error[position] = self.method(
                past[forgotten:], request.horizon, request.season
            )
        normal = np.array([NormalDist().inv_cdf(level) for level in request.levels])
        quantiles = error[:, :, None] * normal
        # in place: a second array of all quantiles would be as large as the table
        quantiles += mean[:, :, None]
        return Forecasts(mean=mean, quantiles=quantiles)

    def twins(self, count: int, season: int) -> list[Forecaster]:
        """Return the method without the oldest season, without the oldest two, ..."""
        return [replace(self, forgets=(k + 1) * season) for k in range(count)]


@dataclass(frozen=True)
class GlobalForecaster(Forecaster):
    """A model on scaled lags that learns from all series of a request.

    Parameters
    ----------
    name : str
        ``ridge`` or ``boosting``.
    part : int, optional
        A twin's number: twins 0 and 1 learn from one half of the series each, as do 2 and 3, ...
    """

    name: str
    part: int | None = None

    def forecast(self, request: ForecastRequest) -> Forecasts:
        """Learn from the pasts, and forecast behind them."""
        return self.learn(request)(request.pasts)

    def learn(self, request: ForecastRequest) -> AskPasts:
        """Learn from the pasts of a request once."""
        learnt = request.pasts
        if self.part is not None:
            pair, half = divmod(self.part, 2)
            is_first = _first_half(request.names, request.seed, pair)
            rows = np.flatnonzero(is_first if half == 0 else ~is_first)
            learnt = tuple(learnt[row] for row in rows)
        model = LagModel(self.name, season=request.season, seed=request.seed)
        model.fit(learnt, request.horizon, request.levels)

        def ask(pasts: Sequence[np.ndarray]) -> Forecasts:
            mean, quantiles = model.predict(pasts)
            return Forecasts(mean=mean, quantiles=quantiles)

        return ask

    def twins(self, count: int, season: int) -> list[Forecaster]:
        """Return the model learnt from halves of the series."""
        return [replace(self, part=part) for part in range(count)]


def _first_half(names: Sequence[str], seed: int, pair: int) -> np.ndarray:
    """Return which series are in the first half, ``(n,)``.

    A series' half depends on its name alone, so that it is the same at every origin, whichever
    series have a window there.
    """
    keys = [derive_seed(seed, "forecasting", "halves", pair, name) for name in names]
    is_first = np.array([key % 2 == 0 for key in keys])
    if len(names) > 1 and (is_first.all() or not is_first.any()):
        # few series may all fall on one side: split these by rank
        is_first = np.argsort(np.argsort(keys)) % 2 == 0
    return is_first


@dataclass(frozen=True)
class ImportedForecaster(Forecaster):
    """A class of yours whose objects have ``fit(past)`` and ``predict(H)``.

    Parameters
    ----------
    name : str
    make : callable
        Returns a new object; it is made for each series and cutoff.
    forgets : int
        As in :class:`LocalForecaster`.

    Notes
    -----
    ``predict(H)`` returns ``(H,)`` means. ``predict_quantiles(H, levels)``, where the object has
    it, returns ``(H, Q)``.
    """

    name: str
    make: Callable[[], Any]
    forgets: int = 0

    def forecast(self, request: ForecastRequest) -> Forecasts:
        """Fit and predict each series by itself."""
        means, quantiles = [], []
        fewest = _SEASONS_KEPT * request.season
        for name, past in zip(request.names, request.pasts, strict=True):
            forgotten = min(self.forgets, max(len(past) - fewest, 0))
            try:
                model = self.make()
                # a copy: a model that changes its input must not change the series
                model.fit(past[forgotten:].copy())
                means.append(np.asarray(model.predict(request.horizon), dtype=float))
                if hasattr(model, "predict_quantiles"):
                    levels = np.array(request.levels)
                    values = model.predict_quantiles(request.horizon, levels)
                    quantiles.append(np.asarray(values, dtype=float))
            except Exception as error:
                raise ModelError(
                    f"{self.name} fails on series {name!r} of {len(past)} values: "
                    f"{type(error).__name__}: {error}",
                    "it needs fit(past) and predict(horizon), past a one-dimensional array",
                ) from error
        shapes = {mean.shape for mean in means}
        if shapes != {(request.horizon,)}:
            raise ModelError(
                f"{self.name} predicts shapes {sorted(shapes)} for a horizon of "
                f"{request.horizon}",
                "predict(horizon) must return one number for each step",
            )
        return Forecasts(
            mean=np.array(means), quantiles=np.array(quantiles) if quantiles else None
        )

    def twins(self, count: int, season: int) -> list[Forecaster]:
        """Return the method without the oldest season, without the oldest two, ..."""
        return [replace(self, forgets=(k + 1) * season) for k in range(count)]


@dataclass(frozen=True)
class FileForecaster(Forecaster):
    """Forecasts that another program made, a row for each series and time.

    Parameters
    ----------
    name : str
    table : DataFrame
        Indexed by series and time; ``mean``, and a column for each quantile level, e.g. ``0.1``.
    """

    name: str
    table: pd.DataFrame

    def forecast(self, request: ForecastRequest) -> Forecasts:
        """Look the forecasts up."""
        index = pd.MultiIndex.from_product([request.names, request.times])
        places = self.table.index.get_indexer(index)
        missing = np.flatnonzero(places < 0)
        if len(missing):
            series, time = index[missing[0]]
            raise ModelError(
                f"{self.name} has no forecast of series {series!r} at {time}, and lacks "
                f"{len(missing)} of {len(index)} forecasts that are asked for",
                "add them; F needs forecasts of earlier origins, too, to learn where it fails",
            )
        found = self.table.iloc[places]
        shape = (len(request.names), request.horizon)
        mean = found["mean"].to_numpy(dtype=float).reshape(shape)
        columns = [str(level) for level in request.levels]
        if not set(columns) <= set(found.columns):
            return Forecasts(mean=mean)
        quantiles = found[columns].to_numpy(dtype=float).reshape(*shape, len(columns))
        return Forecasts(mean=mean, quantiles=quantiles)

    def learn(self, request: ForecastRequest) -> None:
        """Return None: a file knows nothing of made pasts."""
        return


def forecasts_from_table(
    frame: pd.DataFrame, name: str, *, series: str, time: str
) -> FileForecaster:
    """Return the forecaster of a table of forecasts.

    Parameters
    ----------
    frame : DataFrame
        The columns of series and time, a column ``mean`` (or ``prediction``), and one for each
        quantile level where there are quantiles.
    name : str
    series, time : str

    Raises
    ------
    ModelError
        A column is missing, or a series and time occurs twice.
    """
    frame = frame.rename(columns=str)
    means = [column for column in _MEAN_COLUMNS if column in frame.columns]
    for column in (series, time):
        if column not in frame.columns:
            raise ModelError(
                f"the forecasts {name} have no column {column!r}",
                suggest_nearest(column, list(frame.columns)),
            )
    if not means:
        raise ModelError(
            f"the forecasts {name} have no column 'mean'",
            "name the column of point forecasts 'mean' or 'prediction'",
        )
    times, _ = read_times(frame[time], f"forecasts {name}")
    index = pd.MultiIndex.from_arrays([frame[series].astype(str), times])
    if index.has_duplicates:
        twice = index[index.duplicated()][0]
        raise ModelError(
            f"the forecasts {name} have series {twice[0]!r} at {twice[1]} twice",
            "keep one forecast for each series and time; origins must not overlap",
        )
    table = frame.rename(columns={means[0]: "mean"}).drop(columns=[series, time])
    return FileForecaster(name, table.set_index(index))


def make_forecaster(word: str, name: str | None = None) -> Forecaster:
    """Return a baseline by name, or a class of yours by its import path.

    Parameters
    ----------
    word : str
        ``seasonal_naive``, ``drift``, ``theta``, ``ets``, ``ridge``, ``boosting``, or
        ``module:Class``.
    name : str, optional
        What reports call it.

    Raises
    ------
    ModelError
        The name is unknown, or the path cannot be imported.

    Examples
    --------
    >>> make_forecaster("theta").name
    'theta'
    """
    if word in METHODS:
        return LocalForecaster(name or word, METHODS[word])
    if word in GLOBAL_NAMES:
        return GlobalForecaster(word)
    if ":" not in word:
        raise ModelError(
            f"no forecaster is called {word!r}",
            f"{suggest_nearest(word, [*METHODS, *GLOBAL_NAMES])}; give a class of yours as "
            "module:Class, forecasts as a .csv or .parquet file",
        )
    module_name, _, attribute = word.partition(":")
    # as `python -m` has it, so that a file beside the user is found
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        make = getattr(importlib.import_module(module_name), attribute)
    except (Exception, SystemExit) as error:
        raise ModelError(
            f"cannot import {word}: {type(error).__name__}: {error}",
            "give module:Class, with the module on Python's path",
        ) from error
    # nothing is called before it is known to be what is asked for
    if not all(callable(getattr(make, method, None)) for method in ("fit", "predict")):
        raise ModelError(
            f"{word} is not a forecaster",
            "name a class that has fit(past) and predict(horizon)",
        )
    if not isinstance(make, type):
        make = partial(copy.deepcopy, make)
    return ImportedForecaster(name or attribute, make)


def checked_forecasts(forecaster: Forecaster, request: ForecastRequest) -> Forecasts:
    """Return a forecaster's answer after a check of its shape and numbers.

    Raises
    ------
    ModelError
        A shape is wrong or a forecast is not finite; the message names the series.
    """
    for past in request.pasts:
        past.flags.writeable = False
    answer = forecaster.forecast(request)
    shape = (len(request.names), request.horizon)
    if answer.mean.shape != shape:
        raise ModelError(
            f"{forecaster.name} forecasts {answer.mean.shape}, {shape} were asked for",
            "return a row for each series and a column for each step",
        )
    is_finite = np.isfinite(answer.mean).all(axis=1)
    if answer.quantiles is not None:
        wanted = (*shape, len(request.levels))
        if answer.quantiles.shape != wanted:
            raise ModelError(
                f"{forecaster.name} forecasts quantiles {answer.quantiles.shape}, {wanted} were "
                "asked for",
                "return series x steps x levels",
            )
        is_finite &= np.isfinite(answer.quantiles).all(axis=(1, 2))
    broken = np.flatnonzero(~is_finite)
    if len(broken):
        raise ModelError(
            f"{forecaster.name} forecasts NaN or infinity for series "
            f"{request.names[broken[0]]!r} and {len(broken) - 1} others",
            "AMLB gives no score then; return numbers only",
        )
    return answer


def read_forecasters(
    words: Sequence[str], tables: Mapping[str, pd.DataFrame], *, series: str, time: str
) -> list[Forecaster]:
    """Return forecasters by name, path, or the table of their forecasts."""
    forecasters: list[Forecaster] = []
    for word in words:
        name, sign, what = word.partition("=")
        name, what = (name, what) if sign else (Path(word).stem, word)
        if word in tables:
            table = tables[word]
            forecasters.append(
                forecasts_from_table(table, name, series=series, time=time)
            )
        else:
            forecasters.append(make_forecaster(what, name if sign else None))
    return forecasters
