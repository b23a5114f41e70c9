"""Where the search may go, learnt from a fold's rows, and what it maximises (paper, section 4.3).

It maximises how wrong F is, less how far a row has gone.

Notation
--------
d, M_c : genes of a row, one per encoded column; the first M_c are category codes
omega : linear-regression coefficients of the target on the features (paper, section 4.3.1)
P : (p, n, d) populations of n bad points
f, t : (p, n) predictions of F and of the oracle; (p, n, C) for classes, (p, n, k) for k targets
y : (n,) the targets y_ga, or (n, k) for k targets
L : (p, n) fitness
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import Ridge

from amlb_ext.hardening.baseline.forests import MANY_COLUMNS

#: The penalty of :func:`linear_slopes` for many columns, relative to the rows, in units of spread.
RIDGE = 1e-6
#: F, or the oracle T: encoded rows ``(m, d)`` to ``(m,)``, ``(m, k)`` or ``(m, C)``.
Predict = Callable[[np.ndarray], np.ndarray]
#: Computes the determined genes of individuals ``(m, d)`` in place.
Derive = Callable[[np.ndarray], None]


@dataclass(frozen=True, kw_only=True)
class Domain:
    """What the search knows of the genes, whichever points it is given.

    What a gene may be is stated here once, and
    :func:`amlb_ext.hardening.search.operators.repair` sees to it in every generation.

    Attributes
    ----------
    pools : list of ndarray
        Unique values of each encoded column (missing numbers included, as in the table).
    low, high : ndarray of shape (d,)
        Bounds of each column.
    omega : ndarray of shape (1, d), (k, d) or (C, d)
        Slopes of the target: one row, or one per target or per class.
    n_categorical : int
        M_c.
    frozen : ndarray of shape (d,), bool
        Genes that keep the bad point's value.
    derive : callable or None
        Computes genes that others determine, in place: ``(m, d)`` individuals. None where there
        are none.
    """

    pools: list[np.ndarray]
    low: np.ndarray
    high: np.ndarray
    omega: np.ndarray
    n_categorical: int
    frozen: np.ndarray
    derive: Derive | None = None


def learn_domain(
    pool: np.ndarray,
    Z: np.ndarray,
    y: np.ndarray,
    *,
    n_classes: int,
    n_categorical: int,
    frozen: np.ndarray | None = None,
    derive: Derive | None = None,
    omega: np.ndarray | None = None,
) -> Domain:
    """Learn values and bounds from the rows searched among, omega from the training rows.

    Parameters
    ----------
    pool : ndarray of shape (m, d)
        Encoded rows whose values the search may use.
    Z, y : ndarray of shape (n, d), (n,) or (n, k)
        Encoded training rows and targets.
    n_classes, n_categorical : int
        C (0 for regression) and M_c.
    frozen, derive
        As in :class:`Domain`; without them every gene is free.
    omega : ndarray, optional
        What :func:`linear_slopes` returned of ``Z`` and ``y``, where they were asked before.
    """
    n_columns = pool.shape[1]
    is_missing = np.isnan(pool)
    least = np.where(is_missing, np.inf, pool).min(axis=0)
    most = np.where(is_missing, -np.inf, pool).max(axis=0)
    if frozen is None:
        frozen = np.zeros(n_columns, dtype=bool)
    if omega is None:
        omega = linear_slopes(Z, y, n_classes)
    return Domain(
        pools=[np.unique(pool[:, j]) for j in range(n_columns)],
        # the bounds of a column without any value are infinite until here; its genes are
        # missing, so that any finite bound serves
        low=np.where(np.isfinite(least), least, 0.0),
        high=np.where(np.isfinite(most), most, 0.0),
        omega=omega,
        n_categorical=n_categorical,
        frozen=frozen,
        derive=derive,
    )


def linear_slopes(Z: np.ndarray, y: np.ndarray, n_classes: int) -> np.ndarray:
    """Return omega by least squares on centred rows; classes are 0/1 targets.

    From :data:`~amlb_ext.hardening.baseline.forests.MANY_COLUMNS` columns on by ridge regression.

    Parameters
    ----------
    Z, y : ndarray of shape (n, d), (n,) or (n, k)
    n_classes : int
        C, or 0 for regression.

    Examples
    --------
    >>> Z = np.array([[0.0], [1.0], [2.0]])
    >>> linear_slopes(Z, np.array([1.0, 3.0, 5.0]), 0).round(6).tolist()
    [[2.0]]
    """
    features = np.where(np.isnan(Z), 0.0, Z)
    # in place: it is a copy of all rows already
    features -= features.mean(axis=0)
    if n_classes:
        targets = np.eye(n_classes)[y.astype(int)]
    else:
        targets = y.reshape(len(y), -1)
    # both centred, so that there is no intercept to fit
    targets = targets - targets.mean(axis=0)
    if features.shape[1] < MANY_COLUMNS:
        return np.asarray(np.linalg.lstsq(features, targets, rcond=None)[0].T)
    # singular values of thousands of columns take longer than a fit of F, and gigabytes
    spread = features.std(axis=0)
    spread[spread == 0] = 1.0
    features /= spread
    ridge = Ridge(RIDGE * len(features), fit_intercept=False, solver="cholesky")
    return np.atleast_2d(ridge.fit(features, targets).coef_) / spread


def target_slopes(
    predict: Predict, bad: np.ndarray, y: np.ndarray, domain: Domain
) -> np.ndarray:
    """Return ``omega_i zeta`` for each gene of each point, ``(n, d)`` (section 4.3.1).

    zeta is +1 where y_ga >= F(X_b), else -1: the sign of the slope says which way a gene must
    move for the true target to leave F's prediction further behind.

    NOTE[DIFF]: the paper names no direction for several targets. Here a gene follows the sum of
    ``omega_j (y_j - F_j(X_b))`` over the targets j, so that the target on which F is most wrong
    says most; of a single target the sign of that sum is the paper's.
    """
    f = predict(bad)
    if y.ndim == 2:
        shortfall = y - f
        return np.asarray(shortfall @ domain.omega)
    if f.ndim == 2:
        # of its own class a row has the probability 1, never below F's: zeta is +1
        classes = y.astype(int)
        return np.asarray(domain.omega[classes])
    zeta = np.where(y >= f, 1.0, -1.0)
    return np.asarray(domain.omega * zeta[:, None])


# What the search maximises.


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
