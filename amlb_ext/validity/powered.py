"""Prediction-powered intervals from unlabelled real rows, and when to refuse them.

Notation
--------
d = l_G - l_F : (n,) the contrast of losses on labelled rows; negative: the candidate is better
w : (n,) region weights, functions of the features alone
tau : (n,) or (N,) the contrast that a teacher T, fitted on other rows, expects
n, N : labelled rows, unlabelled rows
H(a; w) = sum(w a) / sum(w)

References
----------
Angelopoulos, Bates, Fannjiang, Jordan & Zrnic (2023), Science 382, 669-674 (prediction-powered
inference); Angelopoulos, Duchi & Zrnic (2023), arXiv:2311.01453 (PPI++, power tuning).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.errors import DataError
from amlb_ext.hardening.baseline import fill_missing
from amlb_ext.hardening.weights import effective_size
from amlb_ext.validity.clusters import checked_rows, cluster_sums
from amlb_ext.validity.contrast import contrast
from amlb_ext.validity.intervals import Estimate, interval_around, no_interval, refusal

#: Share of unlabelled rows that must lie near labelled ones.
MIN_INSIDE = 0.95


@dataclass(frozen=True)
class PPIContrast:
    """A prediction-powered contrast beside the classical one.

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

    estimate: Estimate
    classical: Estimate
    lam: float
    width_ratio: float
    n_unlabelled: int


@dataclass(frozen=True)
class SupportReport:
    """Whether unlabelled rows lie where labelled ones do.

    Attributes
    ----------
    share_inside : float
        NaN when it cannot be said.
    radius : float
        Distance within which a row counts as inside.
    refused : bool
    reason : str
    """

    share_inside: float
    radius: float
    refused: bool
    reason: str


def ppi_contrast(
    loss_g: np.ndarray,
    loss_f: np.ndarray,
    teacher: np.ndarray,
    teacher_unlabelled: np.ndarray,
    weights: np.ndarray | None = None,
    weights_unlabelled: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
    level: float = 0.95,
    lam: float | None = None,
) -> PPIContrast:
    r"""Return the contrast with the help of unlabelled *real* rows.

    .. math::
        \theta &= H_n(d; w) - \lambda \{ H_n(\tau; w) - H_N(\tau; w) \} \\
        u_k &= (N_k(d) - H_n(d) W_k) / W, \quad v_k = (N_k(\tau) - H_n(\tau) W_k) / W, \quad
        v'_j = w_j (\tau_j - H_N(\tau)) / W' \\
        s^2 &= \tfrac{K}{K-1} \sum_k (u_k - \lambda v_k)^2
             + \tfrac{N}{N-1} \lambda^2 \sum_j v'^2_j \\
        \lambda &= \frac{\sum_k u_k v_k}{\sum_k v_k^2 + \sum_j v'^2_j}
        \ \text{clipped to } [0, 1]

    The last minimises s² (PPI++, power tuning); a useless teacher gets λ = 0 and the classical
    interval. Degrees of freedom are those of the labelled clusters.

    NOTE[DIFF] ``ppi_py.ppi_mean_ci`` (0.2.3) takes weights, but its variance is that of
    ``w d`` without the ratio's linearisation, it knows no clusters and uses a normal quantile;
    for equal weights and large n the two agree (see the tests).

    Parameters
    ----------
    loss_g, loss_f : ndarray of shape (n,)
        Losses on labelled rows.
    teacher : ndarray of shape (n,)
        The teacher's expected contrast on the labelled rows, which it must not have been
        fitted on.
    teacher_unlabelled : ndarray of shape (N,)
        The same on unlabelled rows, drawn from the same population: generated rows
        undercover (.89 to .91 for .95). Ask :func:`support_check` first.
    weights, weights_unlabelled : ndarray of shape (n,), (N,), optional
        The same function of the features on both.
    clusters : ndarray of shape (n,), optional
    level : float
    lam : float, optional
        Fixed power-tuning factor; tuned when omitted.

    Returns
    -------
    PPIContrast
        Without an interval where the labelled rows alone allow none.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, far = rng.standard_normal(200), rng.standard_normal(5000)
    >>> d = x + 0.3 * rng.standard_normal(200)
    >>> both = ppi_contrast(d, np.zeros(200), x, far)
    >>> bool(both.width_ratio < 0.5)  # .3 / sqrt(1.09) is .29
    True
    """
    method = "prediction-powered, power-tuned, cluster-robust t"
    assumes = (
        "labelled and unlabelled rows are independent draws from one population; "
        "the teacher was fitted on other rows"
    )
    g, f = np.asarray(loss_g, dtype=float), np.asarray(loss_f, dtype=float)
    classical = contrast(g, f, weights, clusters, level)
    d, w, codes = checked_rows(g - f, weights, clusters)
    tau, _, _ = checked_rows(teacher, weights, clusters)
    if tau.shape != d.shape:
        raise DataError(
            f"{len(tau)} teacher values for {len(d)} labelled rows",
            "give the teacher's expected contrast for each labelled row",
        )
    far, w_far, _ = checked_rows(teacher_unlabelled, weights_unlabelled, None)
    k, n_far = classical.n_clusters, len(far)
    num, den = cluster_sums(d, w, codes)
    reason = refusal(den)
    if not reason and n_far < 2:
        reason = f"{n_far} unlabelled rows with weight; at least 2 are needed"
    if reason:
        empty = no_interval(classical.point, len(d), k, method, assumes, level, reason)
        return PPIContrast(empty, classical, 0.0, float("nan"), n_far)
    tau_num, _ = cluster_sums(tau, w, codes)
    total = den.sum()
    mean_tau, mean_far = tau_num.sum() / total, float(w_far @ far / w_far.sum())
    u = (num - classical.point * den) / total
    v = (tau_num - mean_tau * den) / total
    v_far = w_far * (far - mean_far) / w_far.sum()
    if lam is None:
        spread = (v**2).sum() + (v_far**2).sum()
        lam = float(np.clip((u * v).sum() / spread, 0.0, 1.0)) if spread > 0 else 0.0
    point = float(classical.point - lam * (mean_tau - mean_far))
    variance = k / (k - 1) * ((u - lam * v) ** 2).sum()
    variance += n_far / (n_far - 1) * lam**2 * (v_far**2).sum()
    se, df = float(np.sqrt(variance)), effective_size(den) - 1
    if not classical.has_interval or se == 0:
        estimate = classical
    else:
        low, high = interval_around(point, se, df, level)
        estimate = Estimate(point, low, high, se, df, len(d), k, method, assumes, level)
    ratio = estimate.width / classical.width if classical.width > 0 else float("nan")
    return PPIContrast(estimate, classical, lam, ratio, n_far)


def support_check(
    labelled: np.ndarray, unlabelled: np.ndarray, k: int = 5, quantile: float = 0.99
) -> SupportReport:
    """Say whether unlabelled rows lie where labelled ones do.

    A row is inside when its k-th nearest labelled row is no farther than the 99 % quantile of
    that distance among labelled rows (each without itself). Fewer than 95 % inside: refused.

    Passing is necessary, not sufficient: rows may lie inside in other proportions.

    Parameters
    ----------
    labelled, unlabelled : ndarray of shape (n, d), (N, d)
        Encoded rows.
    k : int
    quantile : float

    Returns
    -------
    SupportReport

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> here, there = rng.random((300, 2)), rng.random((300, 2))
    >>> support_check(here, there).refused, support_check(here, there + 0.5).refused
    (False, True)
    """
    a, b = fill_missing(np.asarray(labelled, float)), fill_missing(np.asarray(unlabelled, float))
    nan = float("nan")
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise DataError(
            f"labelled and unlabelled rows have shapes {a.shape} and {b.shape}",
            "encode both with the same encoder",
        )
    if len(a) < k + 2 or len(b) == 0:
        why = f"{len(a)} labelled and {len(b)} unlabelled rows are too few to compare (k = {k})"
        return SupportReport(nan, nan, True, why)
    search = NearestNeighbors(n_neighbors=k, n_jobs=1).fit(a)
    own = search.kneighbors(None)[0][:, -1]  # None: a row is not its own neighbour
    radius = float(np.quantile(own, quantile))
    # Distances of equal rows may differ in the last bits between the two queries.
    inside = search.kneighbors(b)[0][:, -1] <= radius * (1 + 1e-9) + 1e-12
    share = float(inside.mean())
    if share < MIN_INSIDE:
        why = (
            f"only {share:.0%} of the unlabelled rows lie near labelled ones; "
            f"at least {MIN_INSIDE:.0%} must"
        )
        return SupportReport(share, radius, True, why)
    return SupportReport(share, radius, False, f"{share:.0%} of the unlabelled rows lie near")
