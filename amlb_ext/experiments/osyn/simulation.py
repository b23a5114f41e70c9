"""Five Gaussians in the plane, one for each class (section 5.1, Appendix B.1.1).

Notation
--------
π_k, μ_k, Σ_k : share, mean and covariance of class k;  a : shift of all means along (1, 0)
P_x = Σ π_k N(μ_k, Σ_k);  P_x^a : the generator's
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

PI = np.array([1, 3, 4, 5, 7]) / 20
MU = np.array([[0, 0], [12, 15], [15, 6], [6, 7], [3, 18]], dtype=float)
SIGMA = np.array(
    [
        [[2, 0.5], [0.5, 4]],
        [[5, -2], [-2, 7]],
        [[1, 0.9], [0.9, 5]],
        [[10, -7], [-7, 15]],
        [[5, 0.9], [0.9, 5]],
    ]
)
ROOTS = np.linalg.cholesky(SIGMA)
#: Step of the sums that stand for integrals, and how far they reach; the error is below 1e-6.
STEP, REACH = 0.25, 8.0


def rows_of(classes: np.ndarray, rng: np.random.Generator, a: float = 0.0) -> np.ndarray:
    """Draw one row for each class code; the generator's with a shift ``a``.

    Examples
    --------
    >>> X = rows_of(np.full(10_000, 4), np.random.default_rng(0))
    >>> bool(np.abs(X.mean(axis=0) - MU[4]).max() < 0.1)
    True
    """
    noise = rng.standard_normal((len(classes), 2))
    X = np.einsum("nij,nj->ni", ROOTS[classes], noise) + MU[classes]
    X[:, 0] += a
    return X


def draw_rows(n: int, rng: np.random.Generator, a: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows and their classes; the generator keeps labels and shares."""
    y = rng.choice(len(PI), n, p=PI)
    return rows_of(y, rng, a), y


def input_density(X: np.ndarray, a: float = 0.0) -> np.ndarray:
    """Return P_x^a, shape (n,)."""
    total = np.zeros(len(X))
    for share, mean, root in zip(PI, MU, ROOTS, strict=True):
        z = np.linalg.solve(root, (X - mean - [a, 0]).T)
        total += share * np.exp(-0.5 * (z**2).sum(axis=0)) / (2 * np.pi * root[0, 0] * root[1, 1])
    return total


@lru_cache(maxsize=32)
def kl_divergence(a: float) -> float:
    """Return KL(P_x^a, P_x), summed on a grid.

    NOTE[DIFF]: section 5.1 speaks of the joint distributions of x and y. Their divergence is
    ½ a² Σ π_k (Σ_k⁻¹)_11 = .204 a², .816 at a = -2 where .558 is printed; that of x alone is met.

    Examples
    --------
    >>> [round(kl_divergence(a), 3) for a in (0.0, -0.5, -2.0)]  # printed: 0, .042, .558
    [0.0, 0.042, 0.558]
    """
    spread = REACH * np.sqrt(np.max([np.diag(S) for S in SIGMA], axis=0))
    low, high = MU.min(axis=0) - spread, MU.max(axis=0) + spread
    axes = [np.arange(low[j] - abs(a), high[j] + abs(a), STEP) for j in (0, 1)]
    X = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    q, p = input_density(X, a), input_density(X)
    known = (q > 0) & (p > 0)
    return float((q[known] * np.log(q[known] / p[known])).sum() * STEP**2)
