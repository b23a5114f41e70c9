"""The simulated population of the seed paper: five Gaussians in the plane, one for each class.

Notation (section 5.1, Appendix B.1.1)
--------
π_k, μ_k, Σ_k : share, mean and covariance of class k;  a : shift of all means along (1, 0)
P_x = Σ π_k N(μ_k, Σ_k);  P_x^a : that of a generator that is off by a
"""

from __future__ import annotations

import numpy as np
from scipy.stats import multivariate_normal

#: π_k
SHARES = np.array([1, 3, 4, 5, 7]) / 20
#: μ_k
MEANS = np.array(
    [
        [0.0, 0.0],
        [12.0, 15.0],
        [15.0, 6.0],
        [6.0, 7.0],
        [3.0, 18.0],
    ]
)
#: Σ_k
COVARIANCES = np.array(
    [
        [[2.0, 0.5], [0.5, 4.0]],
        [[5.0, -2.0], [-2.0, 7.0]],
        [[1.0, 0.9], [0.9, 5.0]],
        [[10.0, -7.0], [-7.0, 15.0]],
        [[5.0, 0.9], [0.9, 5.0]],
    ]
)
LAWS = [multivariate_normal(*law) for law in zip(MEANS, COVARIANCES, strict=True)]
#: Lower triangular, root rootᵀ = covariance.
ROOTS = np.linalg.cholesky(COVARIANCES)


def log_densities(X: np.ndarray, shift: float = 0.0) -> np.ndarray:
    """Return log π_k + log density of each class at rows, ``(n, 5)``.

    Examples
    --------
    >>> log_densities(MEANS).argmax(axis=1).tolist()
    [0, 1, 2, 3, 4]
    """
    unshifted = X - np.array([shift, 0.0])
    return np.log(SHARES) + np.column_stack([law.logpdf(unshifted) for law in LAWS])


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
    # root noise has the covariance of the row's class: one product of 2 × 2 and 2 per row
    correlated = np.einsum("nij,nj->ni", ROOTS[classes], noise)
    X = correlated + MEANS[classes]
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
