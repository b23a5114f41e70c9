r"""Moves of a whole window: past and future together, by a few numbers and never lag by lag.

A window is put on its own scale s round the mean c of the last season of its past, and moved:

.. math::
    x_u &= (y_u - c) / s \\
    x'_u &= e^{a} x_u + b (u - t) / t, \qquad u = 1 .. t + H

The past alone is moved in two more ways. Its trend is read at warped times, which leave its first
and its last time where they are. And slow noise is added, as large as the series' own noise from
one step to the next, that is 0 at the cutoff. So the future keeps what led to it: the label moves
by the same map as the past. Everything that the map rests on is of the past.

Where the past comes near zero and never below, as counts and demand do, the same is done to its
logarithm, and l, the mean of its positive values, stands for c:

.. math:: y'_u = l \, (y_u / l)^{\exp a} \exp(r b (u - t) / t), \qquad r = s / l.

So a zero stays a zero, and nothing falls below. Values are written with as many decimals as the
past has.

Moving each lag by itself destroys a series: on bike counts it takes the autocorrelation of
differences from .33 to -.38 (docs/evidence/forecasting.md).

Notation
--------
y_1 .. y_t : past; y_{t+1} .. y_{t+H} : future; m : season; s : scale
a, b, n, v_1 .. v_6 : the genes of a move, in the units of :data:`SPREADS`
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from amlb_ext.core.rng import random_stream
from amlb_ext.units.past_features import centred_mean

#: Knots of the warp's speed, evenly spaced over the past.
WARP_KNOTS = 6
#: What a gene of 1 does: log of the scale (10 %), slope in scales over the whole past, size of
#: the noise in the series' own, log of the warp's speed at a knot.
SPREADS = np.array([0.1, 0.5, 1.0] + [0.25] * WARP_KNOTS)
#: Autocorrelation of the slow noise from step to step.
_SLOWNESS = 0.95
#: r stays below this, or a series of nearly zeros would grow out of all bounds.
_LARGEST_RELATIVE = 0.5
#: Decimals beyond this are those of a computed number, and are not kept.
_MOST_DECIMALS = 6


@dataclass(frozen=True, kw_only=True)
class WindowMove:
    """How a window is moved.

    Attributes
    ----------
    genes : ndarray of shape (9,)
        a, b, n and the warp, in units of :data:`SPREADS`; all zero leaves the window as it is.
    noise_key : int
        Of the slow noise's random stream.
    """

    genes: np.ndarray
    noise_key: int


def draw_move(rng: np.random.Generator) -> WindowMove:
    """Return a move at random: genes normal, the size of the noise never negative."""
    genes = rng.normal(size=len(SPREADS))
    genes[2] = abs(genes[2])
    return WindowMove(genes=genes, noise_key=int(rng.integers(2**31)))


def move_window(
    past: np.ndarray,
    future: np.ndarray,
    move: WindowMove,
    *,
    season: int,
    scale: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return a moved past and the future that goes with it.

    Parameters
    ----------
    past : ndarray of shape (t,)
        Longer than the season.
    future : ndarray of shape (H,)
        Decides nothing of the moved past.
    move : WindowMove
    season : int
    scale : float
        s, positive.

    Returns
    -------
    past : ndarray of shape (t,)
    future : ndarray of shape (H,)

    Examples
    --------
    >>> past, future = np.array([1.0, 5.0, 2.0, 6.0, 3.0]), np.array([7.0])
    >>> stay = WindowMove(genes=np.zeros(len(SPREADS)), noise_key=0)
    >>> move_window(past, future, stay, season=2, scale=1.0)[1]
    array([7.])
    """
    log_scale, slope, noise_size, *warp = move.genes * SPREADS
    length = len(past)
    time = np.arange(length + len(future))
    # 0 at the cutoff, so that the level there stays
    tilt = slope * (time - (length - 1)) / length
    noise = noise_size * slow_noise(move.noise_key, length)
    trend, warped_trend = _trends(past, np.array(warp), season)
    roughness = one_step_noise(past, season)
    if is_near_zero(past, scale):
        level = past[past > 0].mean()
        # a trend of zero has nothing that could be moved
        ratio = warped_trend / np.where(trend > 0, trend, 1.0)
        both = np.r_[past * np.where(trend > 0, ratio, 1.0), future]
        exponent = min(scale / level, _LARGEST_RELATIVE) * tilt
        exponent[:length] += min(roughness / level, _LARGEST_RELATIVE) * noise
        moved = level * (both / level) ** np.exp(log_scale) * np.exp(exponent)
    else:
        centre = past[-season:].mean()
        both = np.r_[past - trend + warped_trend, future]
        moved = centre + np.exp(log_scale) * (both - centre) + scale * tilt
        moved[:length] += roughness * noise
    moved = np.round(moved, count_decimals(past))
    # copies: whoever holds a view of a past could look behind its end
    return moved[:length].copy(), moved[length:].copy()


def is_near_zero(past: np.ndarray, scale: float) -> bool:
    """Whether a past comes within a scale of zero, and never below.

    Examples
    --------
    >>> is_near_zero(np.array([0.0, 3.0]), 1.0), is_near_zero(np.array([0.0, -3.0]), 1.0)
    (True, False)
    >>> is_near_zero(np.array([50.0, 53.0]), 1.0)
    False
    """
    return bool(0 <= past.min() < scale)


def slow_noise(key: int, length: int) -> np.ndarray:
    """Return noise of unit size that changes slowly and is 0 at its end; ``(length,)``.

    Examples
    --------
    >>> float(slow_noise(3, 50)[-1]), bool(abs(np.diff(slow_noise(3, 50))).max() < 1.5)
    (0.0, True)
    """
    shocks = random_stream(key, "slow noise").normal(size=length)
    shocks[1:] *= np.sqrt(1 - _SLOWNESS**2)
    path = lfilter([1.0], [1.0, -_SLOWNESS], shocks)
    # backwards from the cutoff: the same key gives the same end, however long the past is
    return np.asarray(path - path[0])[::-1]


def one_step_noise(past: np.ndarray, season: int) -> float:
    """Return the size of a series' own noise from one step to the next, in the target's unit.

    Robust, of differences of seasonal differences: neither season nor trend nor a jump enters.

    Examples
    --------
    >>> one_step_noise(np.tile([1.0, 4.0, 2.0], 5), 3)
    0.0
    """
    seasonal = past[season:] - past[:-season]
    changes = np.diff(seasonal)
    if not len(changes):
        return 0.0
    deviations = np.abs(changes - np.median(changes))
    # 1.4826: the median of |e| of a normal e as a standard deviation; each e holds four values
    return float(1.4826 * np.median(deviations) / 2)


def count_decimals(past: np.ndarray) -> int:
    """Return how many decimals all values are written with, 0 to 6; 12 where they have more.

    Examples
    --------
    >>> count_decimals(np.array([3.0, 12.0])), count_decimals(np.array([0.5, 2.25]))
    (0, 2)
    >>> count_decimals(np.array([1 / 3]))
    12
    """
    tolerance = 1e-9 * max(float(np.abs(past).max()), 1e-9)
    for decimals in range(_MOST_DECIMALS + 1):
        if np.abs(np.round(past, decimals) - past).max() <= tolerance:
            return decimals
    return 12


def _trends(
    past: np.ndarray, log_speed: np.ndarray, season: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the trend of a past, and the same read at warped times; ``(t,)`` each."""
    length = len(past)
    trend = centred_mean(past, max(season, 3))
    places = np.arange(length)
    knots = np.linspace(0, length - 1, WARP_KNOTS)
    speed = np.exp(np.interp(places, knots, log_speed))
    warped = np.r_[0.0, np.cumsum(speed[1:])]
    warped *= (length - 1) / max(warped[-1], 1e-12)
    return trend, np.interp(warped, places, trend)
