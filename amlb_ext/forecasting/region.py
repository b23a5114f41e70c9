"""Where F fails, by the past alone: weights that are learnt forward in time and across series.

The weight of a window comes from a forest that has seen neither its series nor any future that ends
behind its cutoff. So it never comes from F's error on that window, nor from a shock that other
series had at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.hardening.weights import Region

#: Groups of series; the windows of each are weighed by what the others teach.
GROUPS = 5
#: Fewer bad windows teach no region, ...
FEWEST_BAD = 10
#: ... nor do fewer series; nothing is claimed of so few across series, either.
FEWEST_SERIES = 30


@dataclass(frozen=True, kw_only=True)
class WindowWeights:
    """What the windows of the test origins count where F fails.

    Attributes
    ----------
    weights : ndarray of shape (n,) or None
        ``P(bad | past)``; None where the past does not foresee failures.
    reweighted : ndarray of shape (GROUPS, n) or None
        The same, learnt without each group of series.
    reason : str
        Why there are none; empty where there are.
    """

    weights: np.ndarray | None = None
    reweighted: np.ndarray | None = None
    reason: str = ""


def weigh_windows(
    features: np.ndarray,
    series: np.ndarray,
    cutoffs: np.ndarray,
    is_bad: np.ndarray,
    *,
    test_cutoffs: tuple[int, ...],
    horizon: int,
    seed: int = 0,
    with_jackknife: bool = True,
) -> WindowWeights:
    """Learn the weights of the windows at the test origins.

    Parameters
    ----------
    features : ndarray of shape (N, d)
        Of the pasts of all windows, at learning and test origins.
    series : ndarray of shape (N,), int
    cutoffs : ndarray of shape (N,), int
        Calendar position of each window's last seen value.
    is_bad : ndarray of shape (N,), bool
        What a window at a cutoff c teaches is used from the cutoff ``c + horizon`` on.
    test_cutoffs : tuple of int
    horizon : int
    seed : int
    with_jackknife : bool
        Whether the weights are learnt without each group, too; ten more forests an origin.

    Returns
    -------
    WindowWeights
        Of the windows at test origins, in the order given.
    """
    is_test = np.isin(cutoffs, test_cutoffs)
    n_series = len(np.unique(series[is_test]))
    if n_series < FEWEST_SERIES:
        return WindowWeights(
            reason=f"{n_series} series are too few to learn where F fails, {FEWEST_SERIES} are "
            "needed"
        )
    group = _groups(series, seed)
    weights = np.full(len(series), np.nan)
    reweighted = np.full((GROUPS, len(series)), np.nan)
    for cutoff in test_cutoffs:
        # what a window teaches is known when its future is
        known = cutoffs + horizon <= cutoff
        if is_bad[known].sum() < FEWEST_BAD:
            return WindowWeights(
                reason=f"F fails on {int(is_bad[known].sum())} windows of earlier origins; "
                f"{FEWEST_BAD} teach where"
            )
        for left_out in range(GROUPS):
            learnt = known & (group != left_out)
            weighed = (cutoffs == cutoff) & (group == left_out)
            region_seed = derive_int_seed(seed, "forecasting", "region", left_out)
            region = Region(region_seed).fit(
                features[learnt], is_bad[learnt], weigh_beyond=False
            )
            if not region.is_found:
                return WindowWeights(
                    reason="features of the past do not foresee where F fails"
                )
            if weighed.any():
                weights[weighed] = region.weights(features[weighed])
        if not with_jackknife:
            continue
        now = cutoffs == cutoff
        reweighted[:, now] = weights[now]
        for first, second in combinations(range(GROUPS), 2):
            region_seed = derive_int_seed(seed, "forecasting", "region", first, second)
            learnt = known & (group != first) & (group != second)
            region = Region(region_seed).fit(
                features[learnt], is_bad[learnt], weigh_beyond=False
            )
            for missing, own in ((first, second), (second, first)):
                weighed = now & (group == own)
                if not weighed.any():
                    continue
                values = np.full(weighed.sum(), weights[weighed].mean())
                if region.is_found:
                    values = region.weights(features[weighed])
                reweighted[missing, weighed] = values
    return WindowWeights(
        weights=weights[is_test],
        reweighted=reweighted[:, is_test] if with_jackknife else None,
    )


def _groups(series: np.ndarray, seed: int) -> np.ndarray:
    """Return the group of each window; all windows of a series are in one."""
    members, codes = np.unique(series, return_inverse=True)
    rng = random_stream(seed, "forecasting", "groups")
    group_of = rng.permutation(len(members)) % GROUPS
    return np.asarray(group_of[codes.reshape(-1)])
