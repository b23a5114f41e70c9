r"""How much of F's loss can the best of several candidates save? An interval that covers it.

Notation
--------
G : (n, m) losses of m candidates;  F : (n,) losses of F on the same real rows
w : (n,) region weights, functions of the features alone;  c : (n,) clusters
N_kg, D_k : sums over cluster k of ``w (F - G_g)`` and of ``w F``
theta_g : E[w (F - G_g)] / E[w F], the share of F's loss in the region that candidate g saves
theta : max(0, max_g theta_g), for F is a candidate too and saves 0

Theory
------
The candidates are taken as they were fitted; chance lies in the rows. Nothing is assumed about how
the candidates depend on each other, and there are two one-sided limits, each at half the error.

*Lower limit.* A candidate (or F) is chosen on half of the clusters and judged on the other half,
for many halves. What a chosen model saves is at most theta, whichever it is, so a lower limit of
the mean saving of the choices is a lower limit of theta. No winner's curse: no row judges a choice
that it took part in. The splits share their rows, so the error of their mean is taken to be that of
one split, which it does not exceed.

*Upper limit.* With U_g an upper limit of theta_g for each candidate alone, ``max_g U_g`` is at
least the U of the best candidate, which covers by itself. So the largest of the single limits is
an upper limit of theta, without any correction for the number of candidates. F's own limit is 0.

Both limits are found by inverting a t test of ``E[N - theta D] = 0`` over clusters (Fieller), so
noise in F's loss is accounted for, and a saving above 1 cannot come out. Losses are skewed: a rare
failure of the candidate may just not be among the rows. Beyond the worst row that was seen lies a
mass of about 1 / (K + 1), so the most adverse cluster is counted once more. Degrees of freedom are
those of the clusters that carry F's loss (Kish), which are few where failures are few.

References
----------
Fieller (1954), J. R. Statist. Soc. B 16, 175-185; Luedtke & van der Laan (2016), Ann. Statist. 44,
713-742, for the value of the best of several choices; Berger (1982), Technometrics 24, 295-300, for
tests by union and intersection. ``benchmarks/claims/solvability.py`` measures the coverage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from amlb_ext.core.errors import DataError
from amlb_ext.stats.weighted_mean import (
    MIN_CLUSTERS,
    MIN_EFFECTIVE,
    kish_size,
)

# Formulas stand as in the notation, one a line, so this module is denser than others.

#: Random halves of the clusters on which a candidate is chosen and judged.
SPLITS = 25


@dataclass(frozen=True, kw_only=True)
class BestSaving:
    """The share of F's loss that the best candidate saves; F itself is one, which saves 0.

    Attributes
    ----------
    point : float
        Mean saving of a candidate chosen without the rows that judge it, within the interval.
    low, high : float
        Of theta, the saving of the best; within 0 and 1. They are 0 and 1 where the rows say
        nothing, and ``reason`` says why.
    chosen : dict of int to float
        How often each candidate was chosen, by its column, the most often first; -1 is F.
    reason : str
    """

    point: float
    low: float
    high: float
    chosen: dict[int, float]
    reason: str = ""


def best_saving(
    candidate_losses: np.ndarray,
    loss_f: np.ndarray,
    weights: np.ndarray,
    clusters: np.ndarray,
    rng: np.random.Generator,
    level: float = 0.95,
) -> BestSaving:
    """Return the saving of the best candidate with an interval that covers it.

    Parameters
    ----------
    candidate_losses : ndarray of shape (n, m)
    loss_f, weights, clusters : ndarray of shape (n,)
        See the module's notation.
    rng : Generator
        Draws the halves.
    level : float
        Nominal coverage.

    Returns
    -------
    BestSaving

    Raises
    ------
    DataError
        F makes no error where there is weight, so there is nothing to take a share of.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> f = 1 + rng.random(500)
    >>> g = np.column_stack([f * rng.random(500), 2 * f])  # the first saves half on average
    >>> found = best_saving(g, f, np.ones(500), np.arange(500), rng)
    >>> bool(found.low < 0.5 < found.high), found.chosen
    (True, {0: 1.0})
    """
    has_weight = weights > 0
    w, F = weights[has_weight], loss_f[has_weight]
    # numpy 2.0 alone gives the codes the shape of its input, hence the reshape
    codes = np.unique(clusters[has_weight], return_inverse=True)[1].reshape(-1)
    levels = np.bincount(codes, w * F)  # D
    by_candidate = [
        np.bincount(codes, w * (F - candidate_loss))
        for candidate_loss in candidate_losses[has_weight].T
    ]
    gains = np.column_stack(by_candidate)  # N
    if not levels.sum() > 0:
        raise DataError(
            "F makes no error where there is weight", "there is nothing to save"
        )
    split_gains, chosen = _cross_fitted_gains(gains, rng)
    total_gain = split_gains.mean(axis=0).sum()
    share = float(np.clip(total_gain / levels.sum(), 0.0, 1.0))
    if reason := _refusal(levels):
        return BestSaving(point=share, low=0.0, high=1.0, chosen=chosen, reason=reason)
    # half of the error for each limit
    df = kish_size(levels) - 1
    critical = float(student.ppf(0.5 + level / 2, df))
    worst_gains, worst_levels = _with_extreme(split_gains, levels, worst=True)
    low, _ = ratio_limits(worst_gains, worst_levels, critical)
    # the largest of the candidates' single limits, U_g, limits the best one
    high = 0.0
    for gain in gains.T:
        best_gain, best_levels = _with_extreme(gain[None, :], levels, worst=False)
        _, limit = ratio_limits(best_gain, best_levels, critical)
        high = max(high, limit)
    # F itself is a candidate and saves 0; nobody saves more than all
    low = float(np.clip(low, 0.0, 1.0))
    # the limits come from different statements and may cross
    high = float(np.clip(high, low, 1.0))
    point = float(np.clip(share, low, high))
    return BestSaving(point=point, low=low, high=high, chosen=chosen)


def ratio_limits(
    numerators: np.ndarray,
    denominator: np.ndarray,
    critical: float,
) -> tuple[float, float]:
    r"""Return Fieller's limits of the ratio of two means over independent pairs.

    All :math:`\theta` with :math:`(\bar N - \theta \bar D)^2 \le t^2 s^2(\theta) / K`, where
    :math:`s^2(\theta)` is the variance of :math:`N_k - \theta D_k`. Of several numerators the mean
    is taken, and the mean of their variances: no less than the variance of their mean, however
    they depend on each other.

    Parameters
    ----------
    numerators : ndarray of shape (S, K)
    denominator : ndarray of shape (K,)
    critical : float
        t.

    Returns
    -------
    low, high : float
        Infinite where the denominator cannot be told from 0.

    Examples
    --------
    >>> ratio_limits(np.array([[2.0, 4.0, 6.0]]), np.array([1.0, 2.0, 3.0]), 2.0)
    (2.0, 2.0)
    """
    size = len(denominator)
    unit = critical**2 / (size * (size - 1))  # t^2 / K, and the K - 1 of a variance
    mean_n = numerators.mean()
    mean_d = denominator.mean()
    deviations_n = numerators - numerators.mean(axis=1, keepdims=True)
    deviations_d = denominator - mean_d
    squares_n = (deviations_n**2).sum(axis=1)
    squares_d = (deviations_d**2).sum()
    products = deviations_n @ deviations_d
    # (N - theta D)^2 <= t^2 s^2(theta) / K is a theta^2 - 2 b theta + c <= 0
    a = mean_d**2 - unit * squares_d
    b = mean_n * mean_d - unit * products.mean()
    c = mean_n**2 - unit * squares_n.mean()
    if a <= 0:  # the denominator may be 0: no theta can be ruled out on both sides
        return -np.inf, np.inf
    # rounding may leave a root of -1e-20 where both limits are one point
    root = np.sqrt(max(b**2 - a * c, 0.0))
    low = (b - root) / a
    high = (b + root) / a
    return float(low), float(high)


def _cross_fitted_gains(
    gains: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, dict[int, float]]:
    """Return, per split, each cluster's gain by the candidate chosen on the other half."""
    size = len(gains)
    with_f = np.column_stack([np.zeros(size), gains])  # F comes first: it wins a tie
    total = with_f.sum(axis=0)
    split_gains = np.zeros((SPLITS, size))
    n_chosen = np.zeros(with_f.shape[1])
    for split_gain in split_gains:
        first_half = rng.permutation(size) < size // 2
        for judged in (first_half, ~first_half):
            gain_elsewhere = total - with_f[judged].sum(axis=0)
            best = int(np.argmax(gain_elsewhere))
            split_gain[judged] = with_f[judged, best]
            n_chosen[best] += 1
    share = n_chosen / n_chosen.sum()
    chosen = {}
    # a stable sort, so that of candidates chosen equally often the first is named
    for column in np.argsort(-n_chosen, kind="stable"):
        if n_chosen[column]:
            caller_column = int(column) - 1  # without F, which is -1
            chosen[caller_column] = float(share[column])
    return split_gains, chosen


def _with_extreme(
    gains: np.ndarray, levels: np.ndarray, *, worst: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Count the cluster that speaks most against (or for) the mean gain once more."""
    mean_gain = gains.mean(axis=0)
    saving = mean_gain.sum() / levels.sum()
    influence = mean_gain - saving * levels
    extreme = np.argmin(influence) if worst else np.argmax(influence)
    more_gains = np.column_stack([gains, gains[:, extreme]])
    more_levels = np.append(levels, levels[extreme])
    return more_gains, more_levels


def _refusal(levels: np.ndarray) -> str:
    """Return why the clusters are too few for an interval; empty where they are not."""
    if len(levels) < MIN_CLUSTERS:
        return f"only {len(levels)} real rows with weight"
    if kish_size(levels) < MIN_EFFECTIVE:
        largest_share = levels.max() / levels.sum()
        return f"one real row holds {largest_share:.0%} of F's loss"
    return ""
