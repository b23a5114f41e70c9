r"""Means of values that depend on each other in two ways: by series, and by calendar.

Notation
--------
v, w : (n,) values and weights;  e : their weighted mean;  W : sum of w
psi_i = w_i (v_i - e) / W : influence of one value
a, b : (n,) two clusterings, with K_a and K_b clusters

References
----------
Cameron, Gelbach & Miller (2011), J. Business & Economic Statistics 29, 238-249.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from amlb_ext.stats.weighted_mean import MeanEstimate, interval_around, kish_size

#: Fewer clusters say too little of their own spread to count as a second way.
FEWEST_SECOND_CLUSTERS = 10


def two_way_variance(
    influence: np.ndarray, first: np.ndarray, second: np.ndarray
) -> float:
    r"""Return the variance of a mean from the influences of its values.

    .. math:: V = V_a + V_b - V_{ab}, \quad V_c = \frac{K_c}{K_c - 1} \sum_k \psi_{k}^2

    with ``ab`` the pairs of clusters. It may fall below ``V_a`` or below 0 by chance.

    Parameters
    ----------
    influence : ndarray of shape (n,)
    first, second : ndarray of shape (n,)
        Any labels.

    Examples
    --------
    >>> psi = np.array([1.0, -1.0, 1.0, -1.0]) / 4
    >>> first, second = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> round(two_way_variance(psi, first, second), 4)  # 0 + 1 - 1/3
    0.6667
    """
    codes_a = np.unique(first, return_inverse=True)[1].reshape(-1)
    codes_b = np.unique(second, return_inverse=True)[1].reshape(-1)
    pairs = codes_a * (codes_b.max() + 1) + codes_b
    codes_ab = np.unique(pairs, return_inverse=True)[1].reshape(-1)
    variances = [_variance(influence, codes) for codes in (codes_a, codes_b, codes_ab)]
    return variances[0] + variances[1] - variances[2]


def _variance(influence: np.ndarray, codes: np.ndarray) -> float:
    sums = np.bincount(codes, influence)
    n_clusters = len(sums)
    if n_clusters < 2:
        return 0.0
    return float(n_clusters / (n_clusters - 1) * (sums**2).sum())


def widen_two_way(
    estimate: MeanEstimate,
    influence: np.ndarray,
    *,
    first: np.ndarray,
    second: np.ndarray,
    weights: np.ndarray,
) -> MeanEstimate:
    """Return an estimate clustered one way, or the two-way one where that is wider.

    Parameters
    ----------
    estimate : MeanEstimate
        Clustered by ``first``.
    influence : ndarray of shape (n,)
        Of each value on the estimate; they sum to 0.
    first, second : ndarray of shape (n,)
    weights : ndarray of shape (n,)

    Returns
    -------
    MeanEstimate
        As given where ``second`` has fewer than 10 clusters with weight.
    """
    if not estimate.has_interval:
        return estimate
    codes = np.unique(second, return_inverse=True)[1].reshape(-1)
    totals = np.bincount(codes, weights)
    n_second = int((totals > 0).sum())
    if n_second < FEWEST_SECOND_CLUSTERS:
        return estimate
    variance = two_way_variance(influence, first, second)
    if not variance > 0:
        return estimate
    se = float(np.sqrt(variance))
    df = min(estimate.df, kish_size(totals) - 1)
    low, high = interval_around(estimate.point, se, df, estimate.level)
    if not high - low > estimate.width:
        return estimate
    return replace(
        estimate,
        se=se,
        df=df,
        low=low,
        high=high,
        method="two-way cluster-robust t",
        assumes="series are independent draws, and so are shocks of the calendar",
    )
