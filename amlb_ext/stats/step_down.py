"""Several tests on the same rows, adjusted together: step-down minimum p with their correlations.

Notation
--------
p : (m,) p-values of two-sided tests
psi : (K, m) influence of each cluster of rows on each estimate, as in
    :mod:`amlb_ext.stats.weighted_mean`
R : (m, m) correlations of the estimates, those of psi's columns
Z : (DRAWS, m) normal draws with correlations R: what the tests look like where nothing differs

w : (m,) weights of the tests, with mean 1: the share of alpha that each is given to begin with

Holm's adjustment takes the worst dependence there may be. Candidates are judged on the same rows,
and "overall" and "where F fails" are two means of the same losses, so their tests are highly
correlated and Holm pays for more tests than there really are. The p-values stay those of
their t tests; the normal draws carry the dependence alone (a Gaussian copula).

Where one question matters more than another, its tests get a larger weight. What a rejected test
was given passes on to those that are left, as without weights.

References
----------
Westfall & Young (1993), *Resampling-Based Multiple Testing*, algorithm 2.8; Ge, Dudoit & Speed
(2003), Test 12, 1-77, box 4, for the successive minima; Genovese, Roeder & Wasserman (2006),
Biometrika 93, 509-524, for weighted p-values.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from amlb_ext.core.errors import DataError
from amlb_ext.stats.weighted_mean import (
    MeanEstimate,
    cluster_influence,
    interval_around,
    weighted_mean_interval,
)

#: An adjusted p-value of .05 is known to ± .0015.
DRAWS = 20_000
#: The draws are always the same, so the same losses give the same verdicts.
SEED = 19_930


def step_down_adjusted(
    p_values: np.ndarray, influence: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    r"""Return step-down minimum-p adjusted p-values.

    .. math::
        \tilde p_{(i)} = \max_{j \le i}
            P\Big(\min_{l \ge j} \frac{2 \Phi(-|Z_{(l)}|)}{w_{(l)}}
                \le \frac{p_{(j)}}{w_{(j)}}\Big),
        \quad \frac{p_{(1)}}{w_{(1)}} \le \dots \le \frac{p_{(m)}}{w_{(m)}}

    and each lies between the p-value itself and Holm's (weighted) one, which bound it whatever the
    draws say. Rejecting where it is at most alpha keeps the chance of any false claim at alpha.
    NaN (no test was possible) stays NaN and does not count.

    Parameters
    ----------
    p_values : ndarray of shape (m,)
    influence : ndarray of shape (K, m)
        psi. A column without any spread is independent of all others.
    weights : ndarray of shape (m,), optional
        w, above 0; only their ratios count. All tests count alike when omitted.

    Returns
    -------
    ndarray of shape (m,)

    Raises
    ------
    DataError
        The columns or weights are not as many as the p-values, a weight is not above 0, or an
        influence of a test is not finite.

    Examples
    --------
    >>> psi = np.random.default_rng(0).standard_normal((200, 1))
    >>> same = step_down_adjusted(np.array([0.03, 0.03]), np.hstack([psi, psi]))
    >>> bool(abs(same[0] - 0.03) < 0.005)  # one test twice is one test
    True
    >>> step_down_adjusted(np.array([0.03, np.nan]), np.hstack([psi, psi])).tolist()
    [0.03, nan]

    Two independent tests, of which the first is given four fifths of alpha:

    >>> psi = np.random.default_rng(0).standard_normal((200, 2))
    >>> first, second = step_down_adjusted(
    ...     np.array([0.035, 0.5]), psi, weights=np.array([1.6, 0.4])
    ... )
    >>> bool(first < 0.05)
    True
    """
    p = np.asarray(p_values, dtype=float)
    psi = np.asarray(influence, dtype=float)
    if psi.ndim != 2 or psi.shape[1] != len(p):
        raise DataError(
            f"influence has the shape {psi.shape} for {len(p)} p-values",
            "give one column for each test",
        )
    w = np.ones(len(p)) if weights is None else np.asarray(weights, dtype=float)
    if w.shape != p.shape or not (w > 0).all():
        raise DataError(
            f"weights are {w.tolist()} for {len(p)} p-values",
            "give one number above 0 for each test",
        )
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    if not np.isfinite(psi[:, tested]).all():
        raise DataError(
            "an influence of a test is not finite",
            "give NaN as the p-value of a test that was not possible",
        )
    if len(tested) == 0:
        return adjusted
    # alpha of tests that are not possible goes to those that are
    w = w[tested] / w[tested].mean()
    adjusted[tested] = _adjust_all(p[tested], psi[:, tested], w)
    return adjusted


def _adjust_all(p: np.ndarray, psi: np.ndarray, w: np.ndarray) -> np.ndarray:
    if len(p) == 1:
        return np.minimum(p, 1.0)
    drawn = 2 * norm.sf(np.abs(_correlated_draws(_correlations(psi)))) / w
    observed = p / w
    ascending = np.argsort(observed, kind="stable")
    chances, bonferroni = np.empty(len(p)), np.empty(len(p))
    smallest = np.full(len(drawn), np.inf)
    weight_left = 0.0
    # from the largest p-value on, so that each step adds one test to the minimum
    for test in ascending[::-1]:
        smallest = np.minimum(smallest, drawn[:, test])
        chances[test] = (1 + (smallest <= observed[test]).sum()) / (1 + len(drawn))
        weight_left += w[test]
        bonferroni[test] = observed[test] * weight_left
    adjusted = np.empty(len(p))
    bounded = np.clip(chances, p, np.clip(bonferroni, p, 1.0))
    adjusted[ascending] = np.maximum.accumulate(bounded[ascending])
    return adjusted


def _correlations(psi: np.ndarray) -> np.ndarray:
    """Return R; a column without spread is uncorrelated with all others."""
    lengths = np.sqrt((psi**2).sum(axis=0))
    has_spread = lengths > 0
    # influences sum to 0, so nothing has to be centred
    unit = np.zeros_like(psi)
    unit[:, has_spread] = psi[:, has_spread] / lengths[has_spread]
    correlations = unit.T @ unit
    np.fill_diagonal(correlations, 1.0)
    return np.asarray(correlations)


def _correlated_draws(correlations: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(correlations)
    # equal tests have eigenvalues of 0, which rounding may make negative
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    rng = np.random.default_rng(SEED)
    return np.asarray(rng.standard_normal((DRAWS, len(values))) @ root.T)


# Is a gain larger where F fails? The difference of two weighted means of the same rows.
#
# Notation:
# d : (n,) contrasts, loss of a model minus loss of F
# w : (n,) region weights, not negative
# c : (n,) clusters, the real row that each row came from; K clusters


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
