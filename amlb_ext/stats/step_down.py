"""Several tests on the same rows, adjusted together: step-down minimum p with their correlations.

Notation
--------
p : (m,) p-values of two-sided tests
psi : (K, m) influence of each cluster of rows on each estimate, as in
    :mod:`amlb_ext.stats.weighted_mean`
R : (m, m) correlations of the estimates, those of psi's columns
Z : (DRAWS, m) normal draws with correlations R: what the tests look like where nothing differs

Holm's adjustment takes the worst dependence there may be. Candidates are judged on the same rows,
so their tests are correlated and Holm pays for more tests than there really are. The p-values stay
those of their t tests; the normal draws carry the dependence alone (a Gaussian copula).

References
----------
Westfall & Young (1993), *Resampling-Based Multiple Testing*, algorithm 2.8; Ge, Dudoit & Speed
(2003), Test 12, 1-77, box 4, for the successive minima.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from amlb_ext.core.errors import DataError

#: An adjusted p-value of .05 is known to ± .0015.
DRAWS = 20_000
#: The draws are always the same, so the same losses give the same verdicts.
SEED = 19_930


def step_down_adjusted(p_values: np.ndarray, influence: np.ndarray) -> np.ndarray:
    r"""Return step-down minimum-p adjusted p-values.

    .. math::
        \tilde p_{(i)} = \max_{j \le i}
            P\Big(\min_{l \ge j} 2 \Phi(-|Z_{(l)}|) \le p_{(j)}\Big),
        \quad p_{(1)} \le \dots \le p_{(m)}

    and each lies between the p-value itself and Holm's one, which bound it whatever the draws say.
    Rejecting where it is at most alpha keeps the chance of any false claim at alpha. NaN (no test
    was possible) stays NaN and does not count.

    Parameters
    ----------
    p_values : ndarray of shape (m,)
    influence : ndarray of shape (K, m)
        psi. A column without any spread is independent of all others.

    Returns
    -------
    ndarray of shape (m,)

    Raises
    ------
    DataError
        The columns are not as many as the p-values, or an influence of a test is not finite.

    Examples
    --------
    >>> psi = np.random.default_rng(0).standard_normal((200, 1))
    >>> same = step_down_adjusted(np.array([0.03, 0.03]), np.hstack([psi, psi]))
    >>> bool(abs(same[0] - 0.03) < 0.005)  # one test twice is one test
    True
    >>> step_down_adjusted(np.array([0.03, np.nan]), np.hstack([psi, psi])).tolist()
    [0.03, nan]
    """
    p = np.asarray(p_values, dtype=float)
    psi = np.asarray(influence, dtype=float)
    if psi.ndim != 2 or psi.shape[1] != len(p):
        raise DataError(
            f"influence has the shape {psi.shape} for {len(p)} p-values",
            "give one column for each test",
        )
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    if not np.isfinite(psi[:, tested]).all():
        raise DataError(
            "an influence of a test is not finite",
            "give NaN as the p-value of a test that was not possible",
        )
    if len(tested):
        adjusted[tested] = _adjust_all(p[tested], psi[:, tested])
    return adjusted


def _adjust_all(p: np.ndarray, psi: np.ndarray) -> np.ndarray:
    if len(p) == 1:
        return np.minimum(p, 1.0)
    drawn = 2 * norm.sf(np.abs(_correlated_draws(_correlations(psi))))
    ascending = np.argsort(p, kind="stable")
    chances, bonferroni = np.empty(len(p)), np.empty(len(p))
    smallest = np.full(len(drawn), np.inf)
    # from the largest p-value on, so that each step adds one test to the minimum
    for n_left, test in enumerate(ascending[::-1], start=1):
        smallest = np.minimum(smallest, drawn[:, test])
        chances[test] = (1 + (smallest <= p[test]).sum()) / (1 + len(drawn))
        bonferroni[test] = p[test] * n_left
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
