"""What the search maximises: how wrong F is, less how far a row has gone (paper, section 4.3).

Notation
--------
P : (p, n, d) populations of n bad points; the first M_c genes are category codes
f, t : (p, n) predictions of F and of the oracle; (p, n, C) for classes, (p, n, k) for k targets
y : (n,) the targets y_ga, or (n, k) for k targets
L : (p, n) fitness
"""

from __future__ import annotations

import numpy as np


def fitness(
    f: np.ndarray,
    y: np.ndarray,
    P: np.ndarray,
    *,
    bad: np.ndarray,
    kappa: float,
    n_categorical: int,
    t: np.ndarray | None = None,
) -> np.ndarray:
    """Return L, ``(p, n)`` (paper, sections 4.3.1 and 4.3.2).

    Regression: ``kappa (y_ga - F(X_ga))^2 - distance``. Classification:
    ``-kappa p_{y_ga}(X_ga) - distance``. Given an oracle's predictions t, both:
    ``kappa sum_c (t - f)^2 - distance``, the reducible hardness, which ignores the label.

    NOTE[DIFF]: the printed formula for classes, ``kappa F(X_ga)``, pushes rows of one class
    only towards error; with the probability of the row's own label every class becomes harder.

    Parameters
    ----------
    f : ndarray of shape (p, n), (p, n, C) or (p, n, k)
    y : ndarray of shape (n,) or (n, k)
    P : ndarray of shape (p, n, d)
    bad : ndarray of shape (n, d)
    kappa : float
    n_categorical : int
        M_c.
    t : ndarray of the shape of f, optional
    """
    return kappa * error_term(f, y, t) - distance_term(P, bad, n_categorical)


def error_term(f: np.ndarray, y: np.ndarray, t: np.ndarray | None = None) -> np.ndarray:
    """Return how wrong F is, ``(p, n)``: the part of the fitness that kappa weighs.

    Of several targets it is the mean over them (paper, section 6).

    Parameters
    ----------
    f : ndarray of shape (p, n), (p, n, C) or (p, n, k)
    y : ndarray of shape (n,) or (n, k)
    t : ndarray of the shape of f, optional

    Examples
    --------
    >>> f = np.array([[[0.0, 1.0]]])
    >>> error_term(f, np.array([0])).tolist(), error_term(f, np.array([[0.0, 0.0]])).tolist()
    ([[-0.0]], [[0.5]])
    """
    if y.ndim == 2:
        # several targets: y and an oracle are wrong in the same unit
        reference = y if t is None else t
        return ((reference - f) ** 2).mean(axis=2)
    if t is not None:
        squared = (t - f) ** 2
        return squared.sum(axis=2) if f.ndim == 3 else squared
    if f.ndim == 3:
        # classes: less is better for the search where F believes in the row's label
        own_class = y.astype(np.intp)[None, :, None]
        probability = np.take_along_axis(f, own_class, axis=2)
        return -probability[..., 0]
    return (y - f) ** 2


def distance_term(
    P: np.ndarray,
    bad: np.ndarray,
    n_categorical: int,
    scratch: np.ndarray | None = None,
) -> np.ndarray:
    """Return the mean squared difference to the bad point, ``(p, n)``.

    NOTE[DIFF]: in the paper all genes are numbers; here a category counts 0 or 1, since with
    the squared difference of codes categories would never change. A gene missing on one side
    only counts 1.

    Parameters
    ----------
    P : ndarray of shape (p, n, d)
    bad : ndarray of shape (n, d)
    n_categorical : int
        M_c.
    scratch : ndarray of the shape of P, optional
        Memory to work in.

    Examples
    --------
    >>> distance_term(np.array([[[1.0, 0.5]]]), np.array([[0.0, 0.0]]), 1).tolist()
    [[0.625]]
    """
    difference = np.subtract(P, bad, out=scratch)
    if n_categorical:
        # codes are whole numbers: what differs, differs by 1 or more, and shall count 1
        most = np.ones(bad.shape)
        most[:, n_categorical:] = np.inf
        np.abs(difference, out=difference)
        np.minimum(difference, most, out=difference)
    total = np.einsum("pnd,pnd->pn", difference, difference)
    # NaN in a sum tells of missing genes far cheaper than a look at every gene
    if np.isnan(total).any():
        one_sided = np.isnan(P) != np.isnan(bad)
        np.copyto(difference, one_sided, where=np.isnan(difference))
        total = np.einsum("pnd,pnd->pn", difference, difference)
    n_genes = P.shape[2]
    total /= n_genes
    return total
