"""How much made rows should count beside real ones, by cross-validation on the bad rows.

Over random halves A, B of the real rows, a mixture of A's mean with what made rows and the
teacher say is a prediction of B's mean. Its weights have the least squared error over all splits.
Means differ by a constant that no ranking sees, so each is centred over the models first.
"""

from __future__ import annotations

import numpy as np

# Dense lines below: each is one equation of least squares, in the names of its docstring.

#: Splits into halves from which the shares are fitted.
SPLITS = 40
#: Fewer bad rows than these give no two halves with two rows each.
FEWEST_BAD = 4
#: Ridge of :func:`fit_mixture`, relative to the mean of the Gram matrix's diagonal.
PULL = 0.1


def fit_share(
    few: np.ndarray,
    made: np.ndarray,
    rng: np.random.Generator,
    weights: np.ndarray | None = None,
) -> float:
    """Return the weight of the few bad rows against made rows, by cross-validation.

    Over random halves A, B of the bad rows, the weight in [0, 1] with the least squared error
    of ``weight * mean_A + (1 - weight) * made`` as a prediction of ``mean_B``, differences
    between models only. Half the rows stand for all, so the fitted weight is a lower bound: the
    full set deserves ``2 w / (1 + w)`` (its variance is half of a half's).

    Parameters
    ----------
    few : ndarray of shape (n_b, m)
    made : ndarray of shape (m,)
    rng : Generator
    weights : ndarray of shape (n_b,), optional

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> few = np.array([0.0, 1.0]) + 0.01 * rng.standard_normal((20, 2))
    >>> fit_share(few, np.array([1.0, 0.0]), rng) > 0.95
    True
    """
    if len(few) < FEWEST_BAD:
        return 0.5
    row_weights = np.ones(len(few)) if weights is None else weights
    centred_made = made - made.mean()
    # least squares in one unknown: mean_B - made = weight * (mean_A - made)
    numerator = 0.0
    denominator = 0.0
    for _ in range(SPLITS):
        order = rng.permutation(len(few))
        gaps = []
        for half in np.array_split(order, 2):
            mean = np.average(few[half], axis=0, weights=row_weights[half])
            gaps.append(mean - mean.mean() - centred_made)
        gap_a, gap_b = gaps
        numerator += float(gap_a @ gap_b)
        denominator += float(gap_a @ gap_a)
    share = 0.5
    if denominator > 0:
        share = float(np.clip(numerator / denominator, 0.0, 1.0))
    return 2 * share / (1 + share)


def fit_mixture(
    few: np.ndarray,
    is_bad: np.ndarray,
    *,
    tau: np.ndarray,
    beta: np.ndarray,
    made: np.ndarray,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the shares of the teacher on S and of made rows; the bad rows have the rest.

    Parameters
    ----------
    few : ndarray of shape (n, m + 1)
        delta of the rows of S, 0 where a row is not bad.
    is_bad : ndarray of shape (n,), bool
    tau, beta : ndarray of shape (n, m + 1), (n,)
        The teacher's ``E[b delta | x]`` and ``E[b | x]`` of the same rows.
    made : ndarray of shape (m + 1,)
        Mean delta of the made rows.
    rng : Generator
    """
    gram = np.zeros((2, 2))
    right = np.zeros(2)
    # the last model is the twin of F, which is no candidate
    centred_made = made[:-1] - made[:-1].mean()
    for _ in range(SPLITS):
        order = rng.permutation(len(few))
        sides = []
        for half in np.array_split(order, 2):
            if not is_bad[half].any():
                break
            real = few[half].sum(axis=0)[:-1] / is_bad[half].sum()
            teacher = tau[half].sum(axis=0)[:-1] / beta[half].sum()
            sides.append((real - real.mean(), teacher - teacher.mean()))
        if len(sides) < 2:
            continue
        (real, teacher), (target, _) = sides
        # target - real = b (teacher - real) + c (made - real): shares that add up to one
        X = np.column_stack([teacher - real, centred_made - real])
        gram += X.T @ X
        right += X.T @ (target - real)
    # ridge towards half and half without the teacher, the best of the fixed mixtures
    prior = np.array([0.0, 0.5])
    pull = PULL * np.trace(gram) / 2 + 1e-12
    shares = np.linalg.solve(gram + pull * np.eye(2), right + pull * prior)
    return float(shares[0]), float(shares[1])
