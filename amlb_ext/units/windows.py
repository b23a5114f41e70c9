"""Where F fails on windows, by the past alone: learnt forward in time and across series.

The weight of a window comes from a model that has seen neither its series nor any future that ends
behind its cutoff. So it never comes from F's error on that window, nor from a shock that other
series had at the same time.
"""

from __future__ import annotations

import numpy as np

from amlb_ext.core.rng import random_stream
from amlb_ext.core.unit import WINDOW
from amlb_ext.units.judged import FEWEST_CLUSTERS
from amlb_ext.units.region import GROUPS, Part, RegionWeights, cross_fit

#: Fewer bad windows teach no region.
FEWEST_BAD = 10


def weigh_windows(
    features: np.ndarray,
    series: np.ndarray,
    cutoffs: np.ndarray,
    is_bad: np.ndarray,
    *,
    test_cutoffs: tuple[int, ...],
    horizon: int,
    seed: int = 0,
) -> RegionWeights:
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
        Ascending.
    horizon : int
    seed : int

    Returns
    -------
    RegionWeights
        Of the windows at test origins, in the order given.
    """
    is_test = np.isin(cutoffs, test_cutoffs)
    n_series = len(np.unique(series[is_test]))
    if n_series < FEWEST_CLUSTERS:
        return RegionWeights(
            reason=f"{n_series} series {'is' if n_series == 1 else 'are'} too few to learn where F "
            f"fails, {FEWEST_CLUSTERS} are needed"
        )
    # later cutoffs know of all that the first one does
    n_bad = int(is_bad[cutoffs + horizon <= test_cutoffs[0]].sum())
    if n_bad < FEWEST_BAD:
        return RegionWeights(
            reason=f"F fails on {n_bad} windows of earlier origins; {FEWEST_BAD} teach where"
        )
    group = _groups(series, seed)
    parts = []
    for cutoff in test_cutoffs:
        # what a window teaches is known when its future is
        known = cutoffs + horizon <= cutoff
        for own in range(GROUPS):
            parts.append(
                Part(
                    group=own,
                    learnt=np.flatnonzero(known & (group != own)),
                    held=np.flatnonzero((cutoffs == cutoff) & (group == own)),
                    # what later origins know says nothing of the first
                    known=np.flatnonzero(
                        known & (group == own) & (cutoff == test_cutoffs[0])
                    ),
                )
            )
    # each origin and each group of series has a model of its own, and is a part
    found = cross_fit(
        features,
        is_bad,
        parts,
        seed,
        unforeseen=f"{WINDOW.features} do not foresee where F fails",
        is_forward=True,
    )
    if found.weights is None or found.part is None:
        return found
    return RegionWeights(weights=found.weights[is_test], part=found.part[is_test])


def _groups(series: np.ndarray, seed: int) -> np.ndarray:
    """Return the group of each window; all windows of a series are in one."""
    members, codes = np.unique(series, return_inverse=True)
    rng = random_stream(seed, "forecasting", "groups")
    group_of = rng.permutation(len(members)) % GROUPS
    return np.asarray(group_of[codes.reshape(-1)])
