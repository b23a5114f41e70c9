"""Scaled losses of forecasts, a number for each window, as AMLB scores them.

Notation
--------
y_1 .. y_t : the past of a window; H : horizon; m : season
s = mean |y_u - y_{u-m}| over u = m+1..t : the window's scale, of its past alone
q : quantile level, f_q : its forecast

References
----------
Hyndman & Koehler (2006), Int. J. Forecasting 22, 679-688 (MASE). AMLB v2.1.7,
``amlb/results.py``, ``mase``, ``sql`` and ``wql``.
"""

from __future__ import annotations

import numpy as np

#: Windows whose losses of all steps and levels are in memory at once.
_WINDOWS_AT_ONCE = 1024


def seasonal_scale(past: np.ndarray, season: int) -> float:
    """Return s, the mean size of seasonal differences; NaN where the past is no longer than m.

    AMLB puts 1.0 in place of NaN, so that such errors are in the target's own unit, and leaves
    windows of scale 0 out of its mean. Neither is done here: such windows take part in nothing.

    Examples
    --------
    >>> seasonal_scale(np.array([1.0, 2.0, 4.0, 7.0]), 2)  # |4 - 1|, |7 - 2|
    4.0
    >>> seasonal_scale(np.array([1.0, 2.0]), 2)
    nan
    """
    if len(past) <= season:
        return float("nan")
    return float(np.abs(past[season:] - past[:-season]).mean())


def scaled_errors(y: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the MASE of each window: its mean absolute error over its scale.

    Parameters
    ----------
    y, mean : ndarray of shape (n, H)
    scale : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> scaled_errors(np.array([[3.0, 5.0]]), np.array([[2.0, 8.0]]), np.array([4.0]))
    array([0.5])
    """
    return np.asarray(np.abs(y - mean).mean(axis=1) / scale)


def scaled_quantile_losses(
    y: np.ndarray, quantiles: np.ndarray, levels: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    r"""Return the SQL of each window, the mean pinball loss over steps and levels over its scale.

    .. math:: 2 |(f_q - y) (1[f_q \ge y] - q)|

    Parameters
    ----------
    y : ndarray of shape (n, H)
    quantiles : ndarray of shape (n, H, Q)
    levels : ndarray of shape (Q,)
    scale : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> f = np.array([[[4.0]]])  # 2 (4 - 3) (1 - .9) / 2
    >>> scaled_quantile_losses(np.array([[3.0]]), f, np.array([0.9]), np.array([2.0])).round(6)
    array([0.1])
    """
    means = np.empty(len(y))
    for first in range(0, len(y), _WINDOWS_AT_ONCE):
        part = slice(first, first + _WINDOWS_AT_ONCE)
        gaps = quantiles[part] - y[part, :, None]
        losses = 2 * np.abs(gaps * ((gaps >= 0) - levels))
        means[part] = losses.mean(axis=(1, 2))
    return np.asarray(means / scale)


def weighted_quantile_loss(
    y: np.ndarray, quantiles: np.ndarray, levels: np.ndarray
) -> float:
    """Return the WQL: the sum of pinball losses, a mean over levels, over the sum of sizes.

    Parameters
    ----------
    y : ndarray of shape (n, H)
        Not all zero.
    quantiles : ndarray of shape (n, H, Q)
    levels : ndarray of shape (Q,)

    Examples
    --------
    >>> zeros = np.zeros((1, 2, 9))
    >>> round(weighted_quantile_loss(np.array([[0.0, 4.0]]), zeros, np.arange(1, 10) / 10), 6)
    1.0
    """
    by_window = scaled_quantile_losses(y, quantiles, levels, np.ones(len(y)))
    return float(by_window.sum() * y.shape[1] / np.abs(y).sum())
