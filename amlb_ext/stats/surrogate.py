"""Surrogates: the loss that is expected of a row from its features alone.

Notation
--------
l : (n,) losses of the labelled rows, in [0, C_h]
tau : (n,) or (N,) the surrogate: the loss expected from the features alone
n, N : labelled rows, rows without label

A surrogate may be arbitrarily wrong: it widens a prediction-powered interval (see
:mod:`amlb_ext.stats.prediction_powered`), but does not shift it. It must not have seen the labels
of the rows it is used on, hence the cross-fitting.

References
----------
Zrnic & Candès (2024), PNAS 121, e2322083121 (cross-prediction-powered inference).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.stats.bounded_loss import BoundedLoss

#: A surrogate is learnt from no fewer labelled rows.
MIN_LEARN = 100


@dataclass(frozen=True)
class Surrogate:
    """What losses are expected from the features.

    Attributes
    ----------
    labelled : ndarray of shape (n,)
        On the labelled rows, whose labels it has not seen.
    unlabelled : ndarray of shape (N,)
    origin : str
        ``expected`` (the model's own probabilities), ``cross-fitted`` or ``given``.
    """

    labelled: np.ndarray
    unlabelled: np.ndarray
    origin: Literal["expected", "cross-fitted", "given"]


def expected_loss(loss: BoundedLoss, f: np.ndarray) -> np.ndarray:
    """Return the loss that a classifier's own probabilities expect, per row.

    ``1 - max_c f_c`` for zero_one, ``1 - sum_c f_c^2`` for brier, ``-sum_c f_c ln f_c`` for log
    (clipped as the loss is). No label is used, so nothing needs to be cross-fitted.

    Parameters
    ----------
    loss : BoundedLoss
    f : ndarray of shape (n, C)
        Probabilities.

    Returns
    -------
    ndarray of shape (n,)
        In units of the loss.

    Raises
    ------
    ConfigError
        For a loss of regression: no probability tells what to expect.
    DataError
        When f is not (n, C).

    Examples
    --------
    >>> from amlb_ext.stats.bounded_loss import LOSSES
    >>> f = np.array([[0.8, 0.2], [1.0, 0.0]])
    >>> expected_loss(LOSSES["zero_one"], f).round(2).tolist()
    [0.2, 0.0]
    >>> expected_loss(LOSSES["brier"], f).round(2).tolist()  # 1 - .64 - .04
    [0.32, 0.0]
    """
    f = np.asarray(f, dtype=float)
    # by name: what a loss expects of probabilities is a formula of its own for each
    if loss.name not in ("zero_one", "brier", "log"):
        raise ConfigError(
            f"no expected {loss.name!r} loss without training",
            "use cross_fitted_surrogate instead",
        )
    if f.ndim != 2:
        raise DataError(f"predictions of shape {f.shape}", "give (n, C) probabilities")
    if loss.name == "zero_one":
        return 1 - f.max(axis=1)
    if loss.name == "brier":
        return 1 - (f**2).sum(axis=1)
    eps = np.exp(-loss.bound)  # the bound of a log loss clipped at eps is -ln eps
    return -(f * np.log(np.clip(f, eps, 1.0))).sum(axis=1)


def cross_fitted_surrogate(
    X: np.ndarray,
    losses: np.ndarray,
    X_unlabelled: np.ndarray,
    folds: int = 5,
    seed: int = 0,
) -> Surrogate:
    """Return a surrogate learnt from the labelled losses, each row by the models without it.

    The rows without label get the mean over the folds' models. Source: Zrnic & Candès (2024),
    section 3; NOTE[DIFF] the variance is that of the prediction-powered mean instead of their
    bootstrap.

    Parameters
    ----------
    X, X_unlabelled : ndarray of shape (n, d), (N, d)
        Encoded features; NaN where missing.
    losses : ndarray of shape (n,)
    folds : int
    seed : int

    Raises
    ------
    DataError
        With fewer than ``MIN_LEARN`` labelled rows, or when shapes do not match.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, far = rng.random((200, 2)), rng.random((1000, 2))
    >>> s = cross_fitted_surrogate(X, X[:, 0], far)
    >>> bool(np.corrcoef(s.unlabelled, far[:, 0])[0, 1] > 0.9)
    True
    """
    X = np.asarray(X, dtype=float)
    far = np.asarray(X_unlabelled, dtype=float)
    v = np.asarray(losses, dtype=float)
    has_same_columns = X.ndim == far.ndim == 2 and X.shape[1] == far.shape[1]
    if not has_same_columns or v.shape != (len(X),):
        raise DataError(
            f"features of shapes {X.shape} and {far.shape} with losses of shape {v.shape}",
            "give (n, d), (N, d) and (n,)",
        )
    if len(v) < MIN_LEARN:
        raise DataError(
            f"{len(v)} labelled rows to learn a surrogate from; {MIN_LEARN} needed",
            "use the labelled rows alone",
        )
    rng = random_stream(seed, "surrogate", "folds")
    fold_of_row = rng.permutation(len(v)) % folds
    on_labelled = np.empty(len(v))
    on_far = np.zeros(len(far))
    for k in range(folds):
        held_out = fold_of_row == k
        # small trees and few of them: a hundred labelled rows teach little more
        model = HistGradientBoostingRegressor(
            max_iter=50,
            max_leaf_nodes=8,
            min_samples_leaf=10,
            early_stopping=False,
            random_state=derive_int_seed(seed, "surrogate", k),
        )
        model.fit(X[~held_out], v[~held_out])
        on_labelled[held_out] = model.predict(X[held_out])
        # no fold's model has seen a label of these rows, so all of them may speak
        on_far += model.predict(far) / folds
    return Surrogate(on_labelled, on_far, "cross-fitted")


def choose_surrogate(
    loss: BoundedLoss,
    losses: np.ndarray,
    f: np.ndarray,
    f_unlabelled: np.ndarray,
    X: np.ndarray | None = None,
    X_unlabelled: np.ndarray | None = None,
    seed: int = 0,
) -> Surrogate | None:
    """Return the default surrogate, or None when there is none.

    The loss that the model's probabilities expect, when these say anything; otherwise (labels
    alone, probabilities of 0 and 1, regression) one cross-fitted on the features, when these are
    given with at least ``MIN_LEARN`` labelled rows whose losses differ.

    Parameters
    ----------
    loss : BoundedLoss
    losses : ndarray of shape (n,)
        Of the labelled rows.
    f, f_unlabelled : ndarray
        The model's predictions on both.
    X, X_unlabelled : ndarray of shape (n, d), (N, d), optional
        Encoded features.
    seed : int

    Examples
    --------
    >>> from amlb_ext.stats.bounded_loss import LOSSES
    >>> f = np.array([[0.8, 0.2], [0.6, 0.4]])
    >>> choose_surrogate(LOSSES["zero_one"], np.array([0.0, 1.0]), f, f).origin
    'expected'
    >>> choose_surrogate(LOSSES["squared"], np.array([0.0, 1.0]), f[:, 0], f[:, 0]) is None
    True
    """
    f = np.asarray(f, dtype=float)
    f_far = np.asarray(f_unlabelled, dtype=float)
    # what the model says of itself comes first: it costs no fit and no rows
    if f.ndim == 2 and loss.needs != "numbers":
        tau = expected_loss(loss, f)
        # class labels come as probabilities of 0 and 1, which expect no loss anywhere
        if np.ptp(tau) > 0:
            return Surrogate(tau, expected_loss(loss, f_far), "expected")
    v = np.asarray(losses, dtype=float)
    if X is None or X_unlabelled is None:
        return None
    # nothing to learn: too few rows, or losses that do not differ
    if len(v) < MIN_LEARN or np.ptp(v) == 0:
        return None
    return cross_fitted_surrogate(X, v, X_unlabelled, seed=seed)
