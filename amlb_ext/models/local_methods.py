"""Forecasts of one series from its own past: seasonal naive, drift, Theta, exponential smoothing.

Only numpy and scipy, and Python 3.9: suites take this file into AMLB's own process, so that F
forecasts there as it does here.

Notation
--------
y_1 .. y_n : the past; H : horizon; m : season; sigma : standard deviation of one-step errors

References
----------
Assimakopoulos & Nikolopoulos (2000), Int. J. Forecasting 16, 521-530 (Theta); Fiorucci et al.
(2016), Int. J. Forecasting 32, 1151-1161, for its state-space form; Hyndman, Koehler, Ord & Snyder
(2008), Forecasting with Exponential Smoothing, chapters 2 and 6.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.signal import lfilter

#: The smoothing parameters of Theta that are tried first, and how finely they are tried again.
_ALPHAS = np.linspace(0.1, 0.99, 30)
#: |autocorrelation| at the season beyond which a series has a season, in standard errors.
_SEASONAL_TEST = 1.645
#: Smoothing parameters of exponential smoothing; None leaves the component out.
_LEVELS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
_TRENDS = (None, 0.02, 0.1, 0.3)
_SEASONS = (None, 0.01, 0.1, 0.3)
#: Each step the trend keeps this share of itself.
_DAMPING = 0.97


def seasonal_naive(
    y: np.ndarray, horizon: int, season: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the value of a season before, and its standard errors; both ``(H,)``.

    Examples
    --------
    >>> seasonal_naive(np.array([1.0, 2.0, 3.0, 5.0]), 3, 2)[0].tolist()
    [3.0, 5.0, 3.0]
    """
    season = season if len(y) > season else 1
    steps = np.arange(horizon)
    mean = y[-season:][steps % season]
    seasons_ahead = steps // season + 1
    return mean, _residual_size(y, season) * np.sqrt(seasons_ahead)


def drift(y: np.ndarray, horizon: int, season: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the last value moved on by the mean change, and standard errors; both ``(H,)``.

    Examples
    --------
    >>> drift(np.array([1.0, 2.0, 3.0]), 2, 1)[0].tolist()
    [4.0, 5.0]
    """
    steps = np.arange(1, horizon + 1)
    if len(y) < 2:
        return np.repeat(y[-1], horizon), np.zeros(horizon)
    slope = (y[-1] - y[0]) / (len(y) - 1)
    errors = np.diff(y) - slope
    sigma = np.sqrt(np.mean(errors**2))
    return y[-1] + slope * steps, sigma * np.sqrt(steps * (1 + steps / len(y)))


def theta(y: np.ndarray, horizon: int, season: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the forecast of the standard Theta method, and standard errors; both ``(H,)``.

    A season that the autocorrelation shows is taken out by classical decomposition, multiplied
    where the series allows it. The rest is forecast by exponential smoothing with half the slope
    of a straight line (theta = 2); level and smoothing minimise the squared one-step errors.
    """
    factors, is_multiplied = _seasonal_factors(y, season)
    n = len(y)
    index = np.arange(n + horizon) % season
    pattern = factors[index]
    rest = y / pattern[:n] if is_multiplied else y - pattern[:n]
    time = np.arange(1, n + 1)
    if n < 3:
        slope, intercept = 0.0, rest.mean()
    else:
        slope, intercept = np.polyfit(time, rest, 1)
    # twice: a coarse grid, then a fine one around its best
    alpha, level, sse = _best_theta(rest, intercept, slope, _ALPHAS)
    step = _ALPHAS[1] - _ALPHAS[0]
    fine = np.clip(np.linspace(alpha - step, alpha + step, 31), 0.1, 0.99)
    alpha, level, sse = _best_theta(rest, intercept, slope, fine)
    steps = np.arange(1, horizon + 1)
    decayed = (1 - alpha) ** n
    growth = (steps - 1) + (1 - decayed * (1 - alpha)) / alpha
    mean = level + 0.5 * (decayed * intercept + growth * slope)
    size = np.sqrt(sse / max(n - 3, 1)) * np.sqrt(1 + (steps - 1) * alpha**2)
    if is_multiplied:
        return mean * pattern[n:], size * np.abs(pattern[n:])
    return mean + pattern[n:], size


def _best_theta(
    y: np.ndarray, intercept: float, slope: float, alphas: np.ndarray
) -> tuple[float, float, float]:
    """Return the smoothing, last level and squared error that forecast y best one step on.

    NOTE: the error is linear in the first level, so that it is solved for and not searched.
    """
    n = len(y)
    powers = np.arange(n)
    best = (0.0, 0.0, np.inf)
    for alpha in alphas:
        decay = (1 - alpha) ** powers
        # half the line of theta = 0, as the state-space form has it
        line = 0.5 * (decay * intercept + (1 - decay * (1 - alpha)) / alpha * slope)
        levels = lfilter([alpha], [1, alpha - 1], y)
        before = np.r_[0.0, levels[:-1]]
        errors = y - before - line
        first_level = errors @ decay / (decay @ decay)
        sse = float(((errors - first_level * decay) ** 2).sum())
        if sse < best[2]:
            last = levels[-1] + (1 - alpha) ** n * first_level
            best = (float(alpha), float(last), sse)
    return best


def _seasonal_factors(y: np.ndarray, season: int) -> tuple[np.ndarray, bool]:
    """Return the season's factors ``(m,)`` of a series, and whether they multiply."""
    n = len(y)
    if season < 2 or n < 3 * season or not _has_season(y, season):
        return np.zeros(max(season, 1)), False
    # a centred mean over a season; half weights at both ends where m is even
    window = np.ones(season)
    if season % 2 == 0:
        window = np.r_[0.5, np.ones(season - 1), 0.5]
    trend = np.convolve(y, window / season, mode="valid")
    half = (len(window) - 1) // 2
    inner = y[half : half + len(trend)]
    places = np.arange(half, half + len(trend)) % season
    counts = np.bincount(places, minlength=season)
    if (y > 0).all() and (trend > 0).all():
        factors = np.bincount(places, inner / trend, minlength=season) / counts
        factors = factors / factors.mean()
        if factors.min() > 0.01:
            return factors, True
    factors = np.bincount(places, inner - trend, minlength=season) / counts
    return factors - factors.mean(), False


def _has_season(y: np.ndarray, season: int) -> bool:
    """Whether the autocorrelation at the season stands out (90 %, as in the M competitions)."""
    centred = y - y.mean()
    total = centred @ centred
    if not total > 0:
        return False
    lags = range(1, season + 1)
    correlations = np.array([centred[lag:] @ centred[:-lag] for lag in lags]) / total
    error = np.sqrt((1 + 2 * (correlations[:-1] ** 2).sum()) / len(y))
    return bool(abs(correlations[-1]) > _SEASONAL_TEST * error)


def exponential_smoothing(
    y: np.ndarray, horizon: int, season: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the forecast of additive exponential smoothing, and standard errors; both ``(H,)``.

    Level alone, with a damped trend, with a season, or both: what the corrected AIC prefers
    among a grid of parameters, all of which are run at once.
    """
    n = len(y)
    if n < 4:
        return seasonal_naive(y, horizon, season)
    seasons = _SEASONS if season > 1 and n >= 2 * season + 4 else (None,)
    # g models: a component that one does not have is NaN, and then 0
    points = np.array(list(product(_LEVELS, _TRENDS, seasons)), dtype=float)
    _, has_trend, has_season = ~np.isnan(points.T)
    alpha, beta, gamma = np.nan_to_num(points.T)
    start = season if has_season.any() else 1
    mean_change = (y[-1] - y[0]) / (n - 1)
    level = np.full(len(points), y[:start].mean())
    slope = np.where(has_trend, mean_change, 0.0)
    pattern = np.zeros((season, len(points)))
    if has_season.any():
        # detrended first season, for those that have one
        line = mean_change * (np.arange(season) - (season - 1) / 2)
        pattern[:] = (y[:start] - y[:start].mean() - line)[:, None] * has_season
    sse = np.zeros(len(points))
    for position in range(start, n):
        place = position % season
        expected = level + _DAMPING * slope
        error = y[position] - expected - pattern[place]
        sse += error * error
        level = expected + alpha * error
        slope = _DAMPING * slope + alpha * beta * error
        pattern[place] += gamma * error
    used = n - start
    # how many numbers each model fits, at most so many that two values are spare
    count = np.minimum(2 + 2 * has_trend + has_season * (season + 1), used - 2)
    # the corrected AIC (Hurvich & Tsai 1989), finite too where a model makes no error
    penalty = 2 * count * used / np.maximum(used - count - 1, 1)
    best = int(np.argmin(used * np.log(sse / used + 1e-300) + penalty))
    steps = np.arange(1, horizon + 1)
    damped = np.cumsum(_DAMPING**steps)
    mean = level[best] + damped * slope[best]
    mean = mean + pattern[(n - 1 + steps) % season, best]
    # of the error j steps before, this much stays in the forecast (class 1 models)
    weights = alpha[best] * (1 + beta[best] * np.r_[0.0, damped[:-1]])
    weights = weights + gamma[best] * (np.arange(horizon) % season == 0)
    growth = np.r_[0.0, np.cumsum(weights[1:] ** 2)]
    spare = max(used - count[best], 1)
    return mean, np.sqrt(sse[best] / spare) * np.sqrt(1 + growth)


def _residual_size(y: np.ndarray, lag: int) -> float:
    differences = y[lag:] - y[:-lag]
    if len(differences) == 0:
        return 0.0
    return float(np.sqrt(np.mean(differences**2)))


#: The methods by name.
METHODS = {
    "seasonal_naive": seasonal_naive,
    "drift": drift,
    "theta": theta,
    "ets": exponential_smoothing,
}
