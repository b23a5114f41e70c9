"""Prediction-powered means: intervals from labelled rows with the help of rows without labels.

Notation
--------
v : (n,) values on the labelled rows: losses, or a candidate's losses minus those of F
w : (n,) or (N,) weights, functions of the features alone
tau : (n,) or (N,) the surrogate: the value expected from the features alone, by a model that has
    not seen the labels of these rows
n, N : labelled rows, rows without labels
K : clusters of labelled rows; W_k, N_k(a) sums over cluster k of w and of w a; W : sum of w
H(a; w) = sum(w a) / sum(w)
lam : power-tuning factor in [0, 1]; 0 is the mean of the labelled rows alone

A surrogate may be arbitrarily wrong: it widens the interval, but does not shift it.

References
----------
Angelopoulos, Bates, Fannjiang, Jordan & Zrnic (2023), Science 382, 669-674 (prediction-powered
inference); Angelopoulos, Duchi & Zrnic (2023), arXiv:2311.01453 (PPI++, power tuning).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from amlb_ext.core.errors import DataError
from amlb_ext.stats.weighted_mean import (
    MeanEstimate,
    checked_rows,
    cluster_sums,
    interval_around,
    kish_size,
    no_interval,
    refusal,
    weighted_mean_interval,
)

METHOD = "prediction-powered, power-tuned, cluster-robust t"
ASSUMES = (
    "labelled and unlabelled rows are independent draws from one population; "
    "the surrogate was fitted on other rows"
)


@dataclass(frozen=True)
class PoweredMean:
    """A prediction-powered mean beside the classical one.

    Attributes
    ----------
    estimate : Estimate
        Prediction-powered.
    classical : Estimate
        From the labelled rows alone.
    lam : float
        Power-tuning factor in [0, 1]; 0 is the classical estimate.
    width_ratio : float
        Width of the first over width of the second; .86 means 14 % narrower.
    n_unlabelled : int
        Unlabelled rows with positive weight.
    """

    estimate: MeanEstimate
    classical: MeanEstimate
    lam: float
    width_ratio: float
    n_unlabelled: int


def prediction_powered_mean(
    values: np.ndarray,
    surrogate: np.ndarray,
    surrogate_unlabelled: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    weights_unlabelled: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
    level: float = 0.95,
    lam: float | None = None,
) -> PoweredMean:
    r"""Return the weighted mean of the values with the help of unlabelled *real* rows.

    .. math::
        \theta &= H_n(v; w) - \lambda \{ H_n(\tau; w) - H_N(\tau; w) \} \\
        a_k &= (N_k(v) - H_n(v) W_k) / W, \quad b_k = (N_k(\tau) - H_n(\tau) W_k) / W, \quad
        b'_j = w_j (\tau_j - H_N(\tau)) / W' \\
        s^2 &= \tfrac{K}{K-1} \sum_k (a_k - \lambda b_k)^2
             + \tfrac{N}{N-1} \lambda^2 \sum_j b'^2_j \\
        \lambda &= \frac{\sum_k a_k b_k}{\sum_k b_k^2 + \sum_j b'^2_j}
        \ \text{clipped to } [0, 1]

    The last minimises s² (PPI++, power tuning); a useless surrogate gets λ = 0 and the classical
    interval. Degrees of freedom are those of the labelled clusters.

    NOTE[OWN] ``ppi_py.ppi_mean_ci`` (0.2.3) takes weights, but its variance is that of
    ``w v`` without the ratio's linearisation; it knows no clusters and uses a normal quantile,
    which covers too rarely in small samples (.908 for .95 at n = 20, where this one covers .952).
    For equal weights and large n the two agree: the tests hold this function to it.

    Parameters
    ----------
    values : ndarray of shape (n,)
        On the labelled rows.
    surrogate : ndarray of shape (n,)
        Expected values on the labelled rows, whose labels it must not have seen.
    surrogate_unlabelled : ndarray of shape (N,)
        The same on rows without labels, drawn from the same population: generated rows
        undercover (.89 to .91 for .95). Ask :func:`amlb_ext.stats.support.check_support` first.
    weights, weights_unlabelled : ndarray of shape (n,), (N,), optional
        The same function of the features on both.
    clusters : ndarray of shape (n,), optional
        Of the labelled rows.
    level : float
        Nominal coverage.
    lam : float, optional
        Fixed power-tuning factor; tuned when omitted.

    Returns
    -------
    PoweredMean
        Without an interval where the labelled rows alone allow none.

    Raises
    ------
    DataError
        When lengths differ, a value is not finite or a weight is negative.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, far = rng.standard_normal(200), rng.standard_normal(5000)
    >>> both = prediction_powered_mean(x + 0.3 * rng.standard_normal(200), x, far)
    >>> bool(both.width_ratio < 0.5)  # .3 / sqrt(1.09) is .29
    True
    """
    classical = weighted_mean_interval(values, weights, clusters, level)
    v, w, codes = checked_rows(values, weights, clusters)
    tau, _, _ = checked_rows(surrogate, weights, clusters)
    if tau.shape != v.shape:
        raise DataError(
            f"{len(tau)} surrogate values for {len(v)} labelled rows",
            "give the expected value of each labelled row",
        )
    far, w_far, _ = checked_rows(surrogate_unlabelled, weights_unlabelled, None)
    n_far = len(far)
    v_sums, w_sums = cluster_sums(v, w, codes)
    reason = refusal(w_sums)
    if not reason and n_far < 2:
        reason = f"{n_far} unlabelled rows with weight; at least 2 are needed"
    if reason:
        empty = no_interval(
            classical.point, len(v), classical.n_clusters, METHOD, ASSUMES, level, reason
        )
        return PoweredMean(empty, classical, 0.0, float("nan"), n_far)

    tau_sums, _ = cluster_sums(tau, w, codes)
    total = w_sums.sum()
    mean_tau = tau_sums.sum() / total
    mean_far = float(w_far @ far / w_far.sum())
    # the influence of each cluster, and of each unlabelled row, on the two means
    a = (v_sums - classical.point * w_sums) / total
    b = (tau_sums - mean_tau * w_sums) / total
    b_far = w_far * (far - mean_far) / w_far.sum()
    if lam is None:
        spread = (b**2).sum() + (b_far**2).sum()
        lam = float(np.clip((a * b).sum() / spread, 0.0, 1.0)) if spread > 0 else 0.0

    point = float(classical.point - lam * (mean_tau - mean_far))
    k = classical.n_clusters
    variance = k / (k - 1) * ((a - lam * b) ** 2).sum()
    variance += n_far / (n_far - 1) * lam**2 * (b_far**2).sum()
    se = float(np.sqrt(variance))
    df = kish_size(w_sums) - 1
    if not classical.has_interval or se == 0:
        estimate = classical
    else:
        low, high = interval_around(point, se, df, level)
        estimate = MeanEstimate(point, low, high, se, df, len(v), k, METHOD, ASSUMES, level)
    ratio = estimate.width / classical.width if classical.width > 0 else float("nan")
    return PoweredMean(estimate, classical, lam, ratio, n_far)
