"""The losses that forecasters can be compared by: one table, and a user's own.

Each is a number for a window. MASE, SQL and WQL are AMLB's, and CRPS is what AMLB calls MQL.

Notation
--------
y_1 .. y_t : the past of a window; H : horizon; m : season
s = mean |y_u - y_{u-m}| over u = m+1..t : the window's scale, of its past alone
r = root of the mean (y_u - y_{u-m})^2 : its root mean square scale
f : forecast of the H values y behind the past; f_q : that of their quantile at level q
n : windows

References
----------
Hyndman & Koehler (2006), Int. J. Forecasting 22, 679-688 (MASE). Makridakis et al. (2022), Int. J.
Forecasting 38, 1346-1364 (RMSSE; there with m = 1). Gneiting & Ranjan (2011), J. Business &
Economic Statistics 29, 411-422 (CRPS as an integral of pinball losses). AMLB v2.1.7,
``amlb/results.py``, ``mase``, ``sql``, ``wql`` and ``mql``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.core.losses import Loss, ask_own_loss, checked_unit_losses, function_name
from amlb_ext.core.unit import WINDOW

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


def root_mean_square_scale(past: np.ndarray, season: int) -> float:
    """Return r, the root of the mean squared seasonal difference.

    Examples
    --------
    >>> root_mean_square_scale(np.array([1.0, 2.0, 2.0, 9.0]), 2)  # 2 - 1, 9 - 2
    5.0
    """
    return float(np.sqrt(np.mean((past[season:] - past[:-season]) ** 2)))


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


def mean_pinball_losses(
    y: np.ndarray, quantiles: np.ndarray, levels: np.ndarray
) -> np.ndarray:
    r"""Return the mean pinball loss of each window over steps and levels, twice as in AMLB.

    .. math:: 2 |(f_q - y) (1[f_q \ge y] - q)|

    Parameters
    ----------
    y : ndarray of shape (n, H)
    quantiles : ndarray of shape (n, H, Q)
    levels : ndarray of shape (Q,)

    Returns
    -------
    ndarray of shape (n,)
        In the target's own unit.

    Examples
    --------
    >>> f = np.array([[[4.0]]])  # 2 (4 - 3) (1 - .9)
    >>> mean_pinball_losses(np.array([[3.0]]), f, np.array([0.9])).round(6)
    array([0.2])
    """
    means = np.empty(len(y))
    for first in range(0, len(y), _WINDOWS_AT_ONCE):
        part = slice(first, first + _WINDOWS_AT_ONCE)
        gaps = quantiles[part] - y[part, :, None]
        losses = 2 * np.abs(gaps * ((gaps >= 0) - levels))
        means[part] = losses.mean(axis=(1, 2))
    return means


def scaled_quantile_losses(
    y: np.ndarray, quantiles: np.ndarray, levels: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """Return the SQL of each window, its mean pinball loss over its scale.

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
    return np.asarray(mean_pinball_losses(y, quantiles, levels) / scale)


@dataclass(frozen=True, kw_only=True)
class ForecastWindows:
    """What came in some windows, and what was forecast.

    Attributes
    ----------
    y : ndarray of shape (n, H)
    forecast : Any
        ``mean (n, H)`` and ``quantiles (n, H, Q)``, the latter None where there are none.
    levels : ndarray of shape (Q,)
    scale, rms_scale : ndarray of shape (n,)
        s and r.
    mean_size : float
        Mean of abs(y) over all windows that are compared, of which these may be a part.
    """

    y: np.ndarray
    forecast: Any
    levels: np.ndarray
    scale: np.ndarray
    rms_scale: np.ndarray
    mean_size: float

    @cached_property
    def absolute(self) -> np.ndarray:
        """Mean absolute error of each window, ``(n,)``."""
        return np.asarray(np.abs(self.y - self.forecast.mean).mean(axis=1))

    @cached_property
    def pinball(self) -> np.ndarray:
        """Mean pinball loss of each window, ``(n,)``."""
        return mean_pinball_losses(self.y, self.forecast.quantiles, self.levels)


def _share_of_sizes(windows: ForecastWindows) -> np.ndarray:
    # of zeros alone it is no number
    if windows.mean_size == 0:
        return np.full(len(windows.y), np.nan)
    return windows.pinball / windows.mean_size


def _root_mean_square(windows: ForecastWindows) -> np.ndarray:
    with np.errstate(over="ignore"):
        squared = (windows.y - windows.forecast.mean) ** 2
    return np.asarray(np.sqrt(squared.mean(axis=1)) / windows.rms_scale)


#: Every loss of windows that has a name.
WINDOW_LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss(
            counted=WINDOW,
            name="mase",
            title="MASE",
            meaning="mean absolute error of a window over its scale",
            formula="mean |y - f| / s",
            unit="scales",
            basis="median",
            of_units=lambda windows: windows.absolute / windows.scale,
        ),
        Loss(
            counted=WINDOW,
            name="rmsse",
            title="RMSSE",
            meaning="root mean squared error of a window over its root mean square scale",
            formula="root of mean (y - f)^2 / r",
            unit="scales",
            basis="mean",
            of_units=_root_mean_square,
        ),
        Loss(
            counted=WINDOW,
            name="mae",
            title="MAE",
            meaning="mean absolute error of a window, in the target's own unit",
            formula="mean |y - f|",
            unit="target",
            basis="median",
            of_units=lambda windows: windows.absolute,
        ),
        Loss(
            counted=WINDOW,
            name="sql",
            title="SQL",
            meaning="mean pinball loss of a window over its scale",
            formula="mean 2 |(f_q - y) (1[f_q >= y] - q)| / s",
            unit="scales",
            basis="quantiles",
            of_units=lambda windows: windows.pinball / windows.scale,
        ),
        Loss(
            counted=WINDOW,
            name="wql",
            title="WQL",
            meaning="mean pinball loss of a window over the mean size of all values to forecast",
            formula="mean 2 |(f_q - y) (1[f_q >= y] - q)| / mean |y| of all windows",
            unit="",
            basis="quantiles",
            of_units=_share_of_sizes,
        ),
        Loss(
            counted=WINDOW,
            name="crps",
            title="CRPS",
            meaning="mean pinball loss of a window, in the target's own unit",
            formula="mean 2 |(f_q - y) (1[f_q >= y] - q)|",
            unit="target",
            basis="quantiles",
            of_units=lambda windows: windows.pinball,
        ),
    )
}
MASE = WINDOW_LOSSES["mase"]
#: What a user's own loss is called in tables: the name of a function could be that of another loss.
OWN_LOSS = "own"


def read_window_loss(given: Any) -> Loss:
    """Return the loss that a name or a function stands for.

    Parameters
    ----------
    given : str or callable
        A name of :data:`WINDOW_LOSSES`, or a function of ``y`` (n, H) and a forecast with ``mean``
        (n, H) and ``quantiles`` (n, H, Q) or None, which returns a loss for each window, ``(n,)``.

    Raises
    ------
    ConfigError
        A name that no loss has, or neither name nor function.

    Examples
    --------
    >>> read_window_loss("rmsse").formula
    'root of mean (y - f)^2 / r'
    >>> read_window_loss("rmse")
    Traceback (most recent call last):
        ...
    amlb_ext.core.errors.ConfigError: ...
    """
    if callable(given):
        return _own_loss(given)
    if not isinstance(given, str):
        raise ConfigError(
            f"{given!r} is no loss",
            f"give a name ({', '.join(WINDOW_LOSSES)}) or a function",
        )
    if given in WINDOW_LOSSES:
        return WINDOW_LOSSES[given]
    raise ConfigError(
        f"no loss of series is called {given!r}",
        suggest_nearest(given, WINDOW_LOSSES),
    )


def _own_loss(function: Callable[..., Any]) -> Loss:
    """Return a user's own loss."""
    name = function_name(function)

    def of_windows(windows: ForecastWindows) -> np.ndarray:
        losses = ask_own_loss(
            function,
            windows.y,
            windows.forecast,
            f"the values, shape {windows.y.shape}, and a forecast whose mean has the same shape; "
            "forecast.quantiles is None where there are none",
        )
        return checked_unit_losses(losses, name, len(windows.y), WINDOW)

    return Loss(
        name=OWN_LOSS,
        title=f"your loss {name}",
        formula="as the function returns it",
        basis="anything",
        counted=WINDOW,
        of_units=of_windows,
    )
