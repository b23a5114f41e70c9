"""The simulated population of the seed paper: five Gaussians in the plane, one for each class.

Notation (section 5.1, Appendix B.1.1)
--------
π_k, μ_k, Σ_k : share, mean and covariance of class k;  a : shift of all means along (1, 0)
P_x = Σ π_k N(μ_k, Σ_k);  P_x^a : that of a generator that is off by a
"""

from __future__ import annotations

import numpy as np

SHARES = np.array([1, 3, 4, 5, 7]) / 20
MEANS = np.array([[0, 0], [12, 15], [15, 6], [6, 7], [3, 18]], dtype=float)
COVARIANCES = np.array(
    [
        [[2, 0.5], [0.5, 4]],
        [[5, -2], [-2, 7]],
        [[1, 0.9], [0.9, 5]],
        [[10, -7], [-7, 15]],
        [[5, 0.9], [0.9, 5]],
    ]
)
#: Lower triangular, root rootᵀ = covariance.
ROOTS = np.linalg.cholesky(COVARIANCES)


def draw_class_rows(
    classes: np.ndarray, rng: np.random.Generator, shift: float = 0.0
) -> np.ndarray:
    """Draw one row for each class code, ``(n, 2)``.

    Parameters
    ----------
    classes : ndarray of shape (n,)
    rng : Generator
    shift : float
        a, added to the first feature.

    Examples
    --------
    >>> X = draw_class_rows(np.full(10_000, 4), np.random.default_rng(0))
    >>> bool(np.abs(X.mean(axis=0) - MEANS[4]).max() < 0.1)
    True
    """
    noise = rng.standard_normal((len(classes), 2))
    X = np.einsum("nij,nj->ni", ROOTS[classes], noise) + MEANS[classes]
    X[:, 0] += shift
    return X


def draw_rows(
    n: int, rng: np.random.Generator, shift: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows ``(n, 2)`` and their classes ``(n,)``; a shift leaves labels and shares.

    Examples
    --------
    >>> X, y = draw_rows(3, np.random.default_rng(0))
    >>> X.shape, y.shape
    ((3, 2), (3,))
    """
    classes = rng.choice(len(SHARES), n, p=SHARES)
    return draw_class_rows(classes, rng, shift), classes
