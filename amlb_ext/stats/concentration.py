"""Is a gain larger where F fails? The difference of two weighted means of the same rows.

Notation
--------
d : (n,) contrasts, loss of a model minus loss of F
w : (n,) region weights, not negative
"""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from amlb_ext.stats.weighted_mean import (
    MeanEstimate,
    kish_size,
    weighted_mean_interval,
)


def concentration_interval(
    contrasts: np.ndarray, weights: np.ndarray, level: float = 0.95
) -> MeanEstimate:
    r"""Return the weighted mean of contrasts minus their plain mean, with a t interval.

    .. math::
        e = \frac{\sum_i w_i d_i}{\sum_i w_i} - \bar d, \quad
        \psi_i = \frac{w_i}{\sum_j w_j} (d_i - \bar d_w) - \frac{1}{n} (d_i - \bar d), \quad
        s^2 = \frac{n}{n-1} \sum_i \psi_i^2

    Both means rest on the same rows, so their errors are not independent; the linearised
    variance counts that (Särndal, Swensson & Wretman 1992, section 5.6).

    Parameters
    ----------
    contrasts : ndarray of shape (n,)
    weights : ndarray of shape (n,)
    level : float

    Returns
    -------
    MeanEstimate
        Negative where the gain is larger in the region.

    Examples
    --------
    >>> d = np.r_[np.full(50, -1.0), np.zeros(50)] + np.tile([0.1, -0.1], 50)
    >>> concentration_interval(d, np.r_[np.ones(50), np.zeros(50)]).point
    -0.5
    """
    in_region = weighted_mean_interval(contrasts, weights, None, level)
    if not in_region.has_interval:
        return in_region
    # rows without weight count in the plain mean
    d, w = np.asarray(contrasts, dtype=float), np.asarray(weights, dtype=float)
    n = len(d)
    influence = w / w.sum() * (d - in_region.point) - (d - d.mean()) / n
    se = float(np.sqrt(n / (n - 1) * (influence**2).sum()))
    df = kish_size(w) - 1
    point = in_region.point - float(d.mean())
    half_width = float(student.ppf((1 + level) / 2, df)) * se
    return MeanEstimate(
        point=point,
        low=point - half_width,
        high=point + half_width,
        se=se,
        df=df,
        n=n,
        n_clusters=n,
        method="linearised difference of two means",
        assumes="rows are independent draws from the population",
        level=level,
    )
