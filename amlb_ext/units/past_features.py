"""What the past of a window looks like, in numbers without a unit.

They say where a forecaster fails before it does. All are of the past alone; none is of F's output,
so that weights learnt from them never come from F's error on the window that they weigh.

Notation
--------
y : the past; m : season; s : its scale (mean size of seasonal differences)
trend : centred mean over a season; pattern : mean remainder of each place in the season
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: In the order of the columns of :func:`past_features`.
FEATURES = (
    "length",
    "variation",
    "season_strength",
    "trend_strength",
    "autocorrelation_1",
    "autocorrelation_season",
    "autocorrelation_changes",
    "level_shift",
    "signed_level_shift",
    "last_deviation",
    "last_season_change",
    "roughness",
    "late_remainder",
    "remainder",
    "largest_jump",
    "late_spread",
    "zeros",
    "whole",
    "outliers",
)
#: Keeps a quotient finite; far below any number of a real series.
_TINY = 1e-12
#: A remainder beyond so many standard deviations is an outlier.
_OUTLIER = 3.0


def past_features(
    pasts: Sequence[np.ndarray], season: int, scale: np.ndarray
) -> np.ndarray:
    """Return the features of some pasts.

    Parameters
    ----------
    pasts : sequence of ndarray
        Each longer than the season.
    season : int
    scale : ndarray of shape (n,)
        s of each, positive.

    Returns
    -------
    ndarray of shape (n, 19)
        Columns as :data:`FEATURES` names them.

    Examples
    --------
    >>> y = np.tile([1.0, 2.0, 3.0, 4.0], 6) + np.arange(24) / 100
    >>> row = past_features([y], 4, np.array([0.04]))[0]
    >>> dict(zip(FEATURES, row.round(2).tolist()))["autocorrelation_season"] > 0.8
    True
    """
    rows = np.empty((len(pasts), len(FEATURES)))
    for position, past in enumerate(pasts):
        rows[position] = _features_of(past, season, float(scale[position]))
    # a huge quotient says no more than a large one, and trees read no infinity
    return np.clip(np.nan_to_num(rows, nan=0.0), -1e6, 1e6)


def _features_of(y: np.ndarray, season: int, scale: float) -> np.ndarray:
    n = len(y)
    trend = centred_mean(y, max(season, 3))
    detrended = y - trend
    places = np.arange(n) % season
    pattern = np.bincount(places, detrended, season) / np.bincount(
        places, minlength=season
    )
    if season == 1:
        pattern = np.zeros(1)
    remainder = detrended - pattern[places]
    changes = np.diff(y)
    last = y[-season:]
    before = y[-2 * season : -season] if n >= 2 * season else y[:season]
    shift = (last.mean() - before.mean()) / scale
    late = remainder[-max(season, 4) :]
    spread = remainder.std()
    size = y.std()
    overlap = min(len(last), len(before))
    values = (
        np.log(n),
        size / (abs(y.mean()) + _TINY),
        1 - remainder.var() / (detrended.var() + _TINY),
        1 - remainder.var() / ((y - pattern[places]).var() + _TINY),
        autocorrelation(y, 1),
        autocorrelation(y, season),
        autocorrelation(changes, 1),
        abs(shift),
        shift,
        abs(y[-1] - last.mean()) / scale,
        np.abs(last[-overlap:] - before[-overlap:]).mean() / scale,
        np.abs(np.diff(changes)).mean() / scale if n > 2 else 0.0,
        late.std() / scale,
        spread / scale,
        np.abs(changes[-max(season, 4) :]).max() / scale,
        y[-max(season, 4) :].std() / (size + _TINY),
        (y == 0).mean(),
        float(np.array_equal(y, np.rint(y))),
        (np.abs(remainder) > _OUTLIER * spread + _TINY).mean(),
    )
    return np.array(values)


def centred_mean(y: np.ndarray, width: int) -> np.ndarray:
    """Return the mean over a window around each value, narrower at both ends; ``(n,)``.

    Examples
    --------
    >>> centred_mean(np.array([1.0, 2.0, 3.0, 7.0]), 3).tolist()
    [1.5, 2.0, 4.0, 5.0]
    """
    sums = np.r_[0.0, np.cumsum(y)]
    places = np.arange(len(y))
    first = np.maximum(places - width // 2, 0)
    last = np.minimum(places + (width + 1) // 2, len(y))
    return np.asarray((sums[last] - sums[first]) / (last - first))


def autocorrelation(y: np.ndarray, lag: int) -> float:
    """Return the correlation of values with those ``lag`` steps before; 0 where it has none.

    Examples
    --------
    >>> round(autocorrelation(np.tile([1.0, -1.0], 50), 1), 2)
    -0.99
    """
    if len(y) <= lag + 1:
        return 0.0
    centred = y - y.mean()
    total = centred @ centred
    return float(centred[lag:] @ centred[:-lag] / total) if total > 0 else 0.0
