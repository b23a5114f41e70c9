"""Forecasters behind one protocol: of one series, of all series at once, yours, or a file's.

A forecaster is given the pasts of some series at one cutoff, and nothing behind it. Its null twins
are the same method on other knowledge: without the oldest seasons where it looks at each series
alone, on other series where it learns from all.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.errors import ModelError, suggest_nearest
from amlb_ext.core.numbers import plain_floats
from amlb_ext.core.paths import table_ending
from amlb_ext.core.rng import derive_seed
from amlb_ext.models.columns import list_names
from amlb_ext.models.lag_models import LagModel
from amlb_ext.models.local_methods import METHODS
from amlb_ext.sources.long_columns import Clock
from amlb_ext.sources.panel import Panel
from amlb_ext.suite.series_manifest import QUANTILE_LEVELS

#: Quantile levels that are forecast.
LEVELS = QUANTILE_LEVELS
#: Baselines that learn from all series.
GLOBAL_NAMES = ("ridge", "boosting")
#: Share of all widths between neighbouring quantiles by which two levels may stand in reverse on
#: average: of many windows, and what is added over the root of their number. Quantiles of separate
#: models cross in nearly every step by chance, and as often the other way.
_MOST_REVERSED = (0.02, 0.3)
#: Share of the steps in which a mean may lie further from its quantiles than any distribution's.
_MOST_APART = 0.5
#: How the head of a column of quantiles is written: ``0.1``, ``q10``, ``p10``, ``10%``.
_LEVEL_HEAD = re.compile(r"(?:(quantile|q|p)[ _-]*)?([\d.e+-]+) *(%?)", re.IGNORECASE)
#: A twin keeps at least this many seasons of each series.
_SEASONS_KEPT = 3


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
    frequency : str
        Of the times, as pandas 1.5 spells it; empty where nobody says.
    known : tuple of str
        Columns that are known beforehand.
    known_values : tuple of ndarray
        Their values over each past and the H steps behind it, ``(n + H, len(known))``; empty
        where there is no such column.
    cutoff : Timestamp, optional
        The last time that is seen.
    clock : Clock, optional
        Whose times these are, where the table writes zones.
    """

    names: tuple[str, ...]
    pasts: tuple[np.ndarray, ...]
    times: pd.DatetimeIndex
    season: int
    levels: tuple[float, ...] = LEVELS
    seed: int = 0
    frequency: str = ""
    known: tuple[str, ...] = ()
    known_values: tuple[np.ndarray, ...] = ()
    cutoff: pd.Timestamp | None = None
    clock: Clock | None = None

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
    truth : ndarray of shape (n, H) or None
        What came, as a file of forecasts has it; NaN where it has nothing.
    unread : tuple of str
        Columns of the forecasts that nothing was read from.
    """

    mean: np.ndarray
    quantiles: np.ndarray | None = None
    truth: np.ndarray | None = None
    unread: tuple[str, ...] = ()


#: Forecasts behind any pasts, by a forecaster as it stands at one cutoff.
AskPasts = Callable[[Sequence[np.ndarray]], Forecasts]


class Forecaster(ABC):
    """A method of forecasting many series at one cutoff."""

    name: str

    @property
    def takes_known(self) -> bool:
        """Whether it looks at what is known beforehand (``known_values`` of a request)."""
        return False

    @property
    def knows_origins(self) -> bool:
        """Whether it forecasts one time in several ways, by what lies before."""
        return True

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
            # of a made past nothing else is known
            made = replace(
                request, names=names, pasts=tuple(pasts), known=(), known_values=()
            )
            return checked_forecasts(self, made)

        return ask

    def twins(self, count: int, season: int) -> list[Forecaster]:
        """Return the same method on other knowledge, or nothing where there is no such."""
        return []


@dataclass(frozen=True)
class _OneByOne(Forecaster):
    """A method that looks at each series alone.

    Parameters
    ----------
    name : str
    method : callable
    forgets : int
        Oldest values that it does not see, where three seasons are left.
    """

    name: str
    method: Callable[..., Any]
    forgets: int = 0

    def count_forgotten(self, past: np.ndarray, season: int) -> int:
        """Return how many of the oldest values of a past it does not see."""
        return min(self.forgets, max(len(past) - _SEASONS_KEPT * season, 0))

    def twins(self, count: int, season: int) -> list[Forecaster]:
        """Return the method without the oldest season, without the oldest two, ..."""
        return [replace(self, forgets=(k + 1) * season) for k in range(count)]


class LocalForecaster(_OneByOne):
    """A method of one series, see :mod:`amlb_ext.models.local_methods`.

    ``method(past, horizon, season)`` returns means and standard errors, ``(H,)`` each.
    """

    def forecast(self, request: ForecastRequest) -> Forecasts:
        """Forecast each series by itself."""
        shape = (len(request.pasts), request.horizon)
        mean, error = np.empty(shape), np.empty(shape)
        for position, past in enumerate(request.pasts):
            forgotten = self.count_forgotten(past, request.season)
            mean[position], error[position] = self.method(
                past[forgotten:], request.horizon, request.season
            )
        normal = np.array([NormalDist().inv_cdf(level) for level in request.levels])
        quantiles = error[:, :, None] * normal
        # in place: a second array of all quantiles would be as large as the table
        quantiles += mean[:, :, None]
        return Forecasts(mean=mean, quantiles=quantiles)


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


class ImportedForecaster(_OneByOne):
    """A class of yours whose objects have ``fit(past)`` and ``predict(H)``.

    ``method`` returns a new object; it is made for each series and cutoff.

    Notes
    -----
    ``predict(H)`` returns ``(H,)`` means. ``predict_quantiles(H, levels)``, where the object has
    it, returns ``(H, Q)``. Where ``fit`` has a parameter ``known``, those of the three that have it
    are given the columns known beforehand, ``(n, k)`` over the past and ``(H, k)`` behind it.
    """

    @property
    def takes_known(self) -> bool:
        """Whether ``fit`` has a parameter ``known``."""
        return _has_known(self.method().fit)

    def forecast(self, request: ForecastRequest) -> Forecasts:
        """Fit and predict each series by itself."""
        means, quantiles = [], []
        takes_known = self.takes_known and request.known
        for position, past in enumerate(request.pasts):
            forgotten = self.count_forgotten(past, request.season)
            known = None
            if takes_known:
                known = request.known_values[position][forgotten:]
            try:
                # a copy: a model that changes its input must not change the series
                mean, by_level = self._predict(past[forgotten:].copy(), known, request)
            except Exception as error:
                raise ModelError(
                    f"{self.name} fails on series {request.names[position]!r} of {len(past)} "
                    f"values: {type(error).__name__}: {error}",
                    "it needs fit(past) and predict(horizon), past a one-dimensional array",
                ) from error
            means.append(mean)
            if by_level is not None:
                quantiles.append(by_level)
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

    def _predict(
        self, past: np.ndarray, known: np.ndarray | None, request: ForecastRequest
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return means ``(H,)`` and quantiles ``(H, Q)`` behind one past."""
        model = self.method()

        def behind(method: Callable[..., Any]) -> dict[str, np.ndarray]:
            if known is None or not _has_known(method):
                return {}
            return {"known": known[len(past) :]}

        before = {} if known is None else {"known": known[: len(past)]}
        model.fit(past, **before)
        said = model.predict(request.horizon, **behind(model.predict))
        if isinstance(said, pd.Series) and not said.index.is_monotonic_increasing:
            raise ValueError("predict returns a Series whose steps are not in order")
        mean = plain_floats(said)
        if not hasattr(model, "predict_quantiles"):
            return mean, None
        levels = np.array(request.levels)
        ask = model.predict_quantiles
        by_level = ask(request.horizon, levels, **behind(ask))
        return mean, plain_floats(_in_order_of_levels(by_level, request.levels))


def _has_known(method: Callable[..., Any]) -> bool:
    """Whether a method has a parameter for the columns known beforehand."""
    return "known" in inspect.signature(method).parameters


def _in_order_of_levels(by_level: Any, levels: Sequence[float]) -> Any:
    """Return quantiles with their columns in the order of the levels, where a frame has heads.

    Raises
    ------
    ValueError
        The heads are not those of the levels, or the rows are not in the order of the steps.
    """
    if hasattr(by_level, "to_pandas"):
        by_level = by_level.to_pandas()
    if not isinstance(by_level, pd.DataFrame):
        return by_level
    wanted = [str(level) for level in levels]
    if set(name_levels(by_level.index).values()) == set(wanted):
        by_level = by_level.T
    if not by_level.index.is_monotonic_increasing:
        raise ValueError(
            "predict_quantiles returns a frame whose steps are not in order"
        )
    if isinstance(by_level.columns, pd.MultiIndex):
        # sktime's have the variable above the level
        by_level = by_level.set_axis(by_level.columns.get_level_values(-1), axis=1)
    heads = by_level.columns
    # heads that count places, as pandas gives them where there are none
    if list(heads) == list(range(len(heads))):
        return by_level
    named = name_levels(heads)
    if set(named.values()) != set(wanted):
        raise ValueError(
            f"predict_quantiles returns a frame with the columns {list_names(heads)}, wanted are "
            f"{list_names(wanted)}"
        )
    return by_level.rename(columns=named)[wanted]


def name_levels(heads: Iterable[Any]) -> dict[Any, str]:
    """Return the quantile level of each head of a column that writes one.

    Raises
    ------
    ValueError
        Two heads write the same level.

    Examples
    --------
    >>> name_levels(["mean", 0.1, "0.20", "q30", "40%"])
    {0.1: '0.1', '0.20': '0.2', 'q30': '0.3', '40%': '0.4'}
    """
    named: dict[Any, str] = {}
    known = [str(level) for level in LEVELS]
    for head in heads:
        found = _LEVEL_HEAD.fullmatch(str(head).strip())
        try:
            number = float(found[2]) if found else np.nan
        except ValueError:
            continue
        if found and (found[3] or (found[1] and number > 1)):
            number /= 100
        level = str(round(number, 6))
        if level not in known:
            continue
        if level in named.values():
            raise ValueError(
                f"two columns of quantiles at {level}, one of them {head!r}"
            )
        named[head] = level
    return named


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
    module_name, colon, attribute = word.partition(":")
    if table_ending(word):
        raise ModelError(
            f"{word!r} is the name of a file", f"give its table: pd.read_csv({word!r})"
        )
    if not colon:
        raise ModelError(
            f"no forecaster is called {word!r}",
            f"{suggest_nearest(word, [*METHODS, *GLOBAL_NAMES])}; give a class of yours as "
            "module:Class, forecasts as a .csv or .parquet file, in Python as a table",
        )
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
    return forecaster_of(make, name or attribute, word)


def forecaster_of(given: Any, name: str, word: str) -> ImportedForecaster:
    """Return the forecaster of a class, or of an object, that has ``fit`` and ``predict``.

    Parameters
    ----------
    given : class or object
    name : str
        What reports call it.
    word : str
        What an error calls it.

    Raises
    ------
    ModelError
        It lacks a method.
    """
    # nothing is called before it is known to be what is asked for
    if not all(callable(getattr(given, method, None)) for method in ("fit", "predict")):
        raise ModelError(
            f"{word} is not a forecaster",
            "give a class that has fit(past) and predict(horizon)",
        )
    if not isinstance(given, type):
        return ImportedForecaster(name, partial(copy.deepcopy, given))
    try:
        given()
    except Exception as error:
        raise ModelError(
            f"{word} cannot be made without arguments: {type(error).__name__}: {error}",
            "give an object in place of the class, or a class with defaults",
        ) from error
    return ImportedForecaster(name, given)


def describe_known(panel: Panel, forecasters: Mapping[str, Forecaster]) -> list[str]:
    """Return who sees the columns known beforehand; nothing where there are none."""
    if not panel.known:
        return []
    blind = [name for name, one in forecasters.items() if not one.takes_known]
    verb = "does" if len(blind) == 1 else "do"
    without = f"; {', '.join(blind)} {verb} not look at them" if blind else ""
    return [f"known beforehand: {', '.join(panel.known)}{without}"]


def checked_forecasts(forecaster: Forecaster, request: ForecastRequest) -> Forecasts:
    """Return a forecaster's answer after a check of its shape and numbers.

    Raises
    ------
    ModelError
        A shape is wrong or a forecast is not finite; the message names the series.
    """
    for past in request.pasts:
        past.flags.writeable = False
    return check_forecasts(forecaster.forecast(request), request, forecaster.name)


def check_forecasts(
    answer: Forecasts, request: ForecastRequest, name: str
) -> Forecasts:
    """Return an answer to a request, whoever gave it, after a check of its shape and numbers.

    Parameters
    ----------
    answer : Forecasts
    request : ForecastRequest
    name : str
        Of the forecaster or its file, for errors.

    Raises
    ------
    ModelError
        A shape is wrong, a forecast is not finite, or the quantiles are of other levels, or in
        another unit than the mean.

    Notes
    -----
    No distribution has its mean further from its quantile at level q than ``s sqrt((1 - q) / q)``
    for ``q >= 1/2``, s its standard deviation (Cantelli's inequality). For s stands that of the
    past, which is no less than what a forecast leaves open.
    """
    try:
        quantiles = None if answer.quantiles is None else plain_floats(answer.quantiles)
        answer = replace(answer, mean=plain_floats(answer.mean), quantiles=quantiles)
    except (AttributeError, TypeError, ValueError) as error:
        raise ModelError(
            f"{name} forecasts no arrays of numbers: {error}",
            "return Forecasts of mean, (series, steps), and quantiles, (series, steps, levels)",
        ) from error
    shape = (len(request.names), request.horizon)
    if answer.mean.shape != shape:
        raise ModelError(
            f"{name} forecasts {answer.mean.shape}, {shape} were asked for",
            "return a row for each series and a column for each step",
        )
    is_finite = np.isfinite(answer.mean).all(axis=1)
    if quantiles is not None:
        wanted = (*shape, len(request.levels))
        if quantiles.shape != wanted:
            raise ModelError(
                f"{name} forecasts quantiles {quantiles.shape}, {wanted} were asked for",
                "return series x steps x levels",
            )
        is_finite &= np.isfinite(quantiles).all(axis=(1, 2))
    broken = np.flatnonzero(~is_finite)
    if len(broken):
        raise ModelError(
            f"{name} forecasts NaN or infinity for series "
            f"{request.names[broken[0]]!r} and {len(broken) - 1} others",
            "AMLB gives no score then; return numbers only",
        )
    if quantiles is not None:
        _check_quantiles(answer.mean, quantiles, request, name)
    return answer


def _check_quantiles(
    mean: np.ndarray, quantiles: np.ndarray, request: ForecastRequest, name: str
) -> None:
    """Refuse quantiles whose levels were mistaken for one another, or in another unit."""
    levels = request.levels
    # neighbours, and the outer pair
    lower = np.r_[: len(levels) - 1, 0]
    upper = np.r_[1 : len(levels), len(levels) - 1]
    widths = quantiles[..., upper] - quantiles[..., lower]
    mean_widths = widths.mean(axis=(0, 1))
    total = np.abs(widths[..., :-1]).mean(axis=(0, 1)).sum()
    always, by_chance = _MOST_REVERSED
    worst = int(mean_widths.argmin())
    # quantiles that are all alike fall by rounding
    rounding = 1e-9 * np.abs(quantiles).mean()
    most = (always + by_chance / np.sqrt(len(quantiles))) * total + rounding
    if -mean_widths[worst] > most:
        is_below = widths[..., worst] < 0
        raise ModelError(
            f"{name} forecasts a quantile at {levels[upper[worst]]} below that at "
            f"{levels[lower[worst]]} in {is_below.sum()} of {is_below.size} steps",
            f"give the levels in the order {levels[0]} to {levels[-1]}, each as a value of the "
            "target and not as a distance from the mean",
        )
    deviations = np.array([past.std() for past in request.pasts])[:, None]
    highest, lowest = levels[-1], levels[0]
    above = mean - quantiles[..., -1] - deviations * np.sqrt((1 - highest) / highest)
    below = quantiles[..., 0] - mean - deviations * np.sqrt(lowest / (1 - lowest))
    is_apart = np.maximum(above, below) > 0
    if is_apart.mean() > _MOST_APART:
        window, step = np.argwhere(is_apart)[0]
        low, high = quantiles[window, step, [0, -1]]
        raise ModelError(
            f"{name} forecasts a mean far outside its own quantiles in {is_apart.sum()} of "
            f"{is_apart.size} steps, e.g. {mean[window, step]:.6g} where those at {lowest} and "
            f"{highest} are {low:.6g} and {high:.6g}",
            "give both as values of the target, in its unit, and no quantile as a distance from "
            "the mean",
        )
