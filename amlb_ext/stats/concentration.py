"""Is a gain larger where F fails? The difference of two weighted means of the same rows.

Notation
--------
d : (n,) contrasts, loss of a model minus loss of F
w : (n,) region weights, not negative
c : (n,) clusters, the real row that each row came from; K clusters
"""

from __future__ import annotations

import numpy as np

from amlb_ext.stats.weighted_mean import (
    MeanEstimate,
    cluster_influence,
    interval_around,
    weighted_mean_interval,
)


def concentration_interval(
    contrasts: np.ndarray,
    weights: np.ndarray,
    clusters: np.ndarray | None = None,
    level: float = 0.95,
) -> MeanEstimate:
    r"""Return the weighted mean of contrasts minus their plain mean, with a t interval.

    .. math::
        e = \frac{\sum_i w_i d_i}{\sum_i w_i} - \bar d, \quad
        \psi_k = \sum_{i \in k} \left( \frac{w_i}{\sum_j w_j} (d_i - \bar d_w)
            - \frac{1}{n} (d_i - \bar d) \right), \quad
        s^2 = \frac{K}{K-1} \sum_k \psi_k^2

    Both means rest on the same rows, so their errors are not independent; the linearised
    variance counts that (Särndal, Swensson & Wretman 1992, section 5.6). Degrees of freedom are
    those of the weighted mean.

    Parameters
    ----------
    contrasts : ndarray of shape (n,)
    weights : ndarray of shape (n,)
    clusters : ndarray of shape (n,), optional
        Any labels; when omitted every row is its own cluster.
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
    in_region = weighted_mean_interval(contrasts, weights, clusters, level)
    if not in_region.has_interval:
        return in_region
    # rows without weight count in the plain mean
    d, w = np.asarray(contrasts, dtype=float), np.asarray(weights, dtype=float)
    codes = np.arange(len(d))
    if clusters is not None:
        codes = np.unique(clusters, return_inverse=True)[1].reshape(-1)
    n_clusters = int(codes.max()) + 1
    influence = cluster_influence(d, w, codes, n_clusters)
    influence -= cluster_influence(d, np.ones(len(d)), codes, n_clusters)
    se = float(np.sqrt(n_clusters / (n_clusters - 1) * (influence**2).sum()))
    point = in_region.point - float(d.mean())
    low, high = interval_around(point, se, in_region.df, level)
    return MeanEstimate(
        point=point,
        low=low,
        high=high,
        se=se,
        df=in_region.df,
        n=len(d),
        n_clusters=n_clusters,
        method="linearised difference of two means",
        assumes="clusters (originating real rows) are independent draws from the population",
        level=level,
    )
