"""The true error from few labelled rows and many without labels.

Notation
--------
l : (n,) losses of the labelled rows, in [0, C_h]
tau : (n,) or (N,) the surrogate: the loss expected from the features alone
n, N : labelled rows, rows without label
lam : power-tuning factor in [0, 1]; 0 is the mean of the labelled losses
theta = mean_n(l) - lam (mean_n(tau) - mean_N(tau))

A surrogate may be arbitrarily wrong: it widens the interval, but does not shift it. It must not
have seen the labels of the rows it is used on, hence the cross-fitting.

References
----------
Angelopoulos, Bates, Fannjiang, Jordan & Zrnic (2023), Science 382, 669-674 (prediction-powered
inference); Angelopoulos, Duchi & Zrnic (2023), arXiv:2311.01453 (PPI++, power tuning); Zrnic &
Candès (2024), PNAS 121, e2322083121 (cross-prediction-powered inference).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.stats.bounded_loss import BoundedLoss
from amlb_ext.stats.bounded_mean import (
    checked_losses,
    clipped_estimate,
    mean_without_interval,
    no_spread,
)
from amlb_ext.stats.error_estimate import ErrorEstimate
from amlb_ext.stats.prediction_powered import prediction_powered_mean

REAL = (
    "labelled and unlabelled rows are independent draws from one population, and there are "
    "enough labelled ones that their mean is nearly normal"
)
GENERATED = (
    "the generator is the truth: generated rows are distributed as real ones; and there are "
    "enough labelled rows that their mean is nearly normal"
)
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


def prediction_powered_error(
    losses: np.ndarray,
    surrogate: Surrogate,
    level: float = 0.95,
    bound: float = 1.0,
    generated: bool = False,
) -> ErrorEstimate:
    """Return the prediction-powered interval for the true error, power-tuned.

    It is :func:`amlb_ext.stats.prediction_powered.prediction_powered_mean`, clipped to
    [0, bound]. It sees spread only where losses differ: with few errors among few labelled rows
    it is too short, see the table in docs/coverage.md.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        In units of the loss.
    surrogate : Surrogate
    level : float
    bound : float
        C_h.
    generated : bool
        Whether the rows without label come from a generator: the answer is then called
        ``ppi_generated`` and assumes that the generator is the truth.

    Returns
    -------
    ErrorEstimate
        Without an interval for equal losses and for fewer than 2 rows of either kind.

    Raises
    ------
    DataError
        When the surrogate's shape does not match or it has missing values; otherwise as
        :func:`~amlb_ext.stats.bounded_mean.t_interval`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tau, far = rng.random(200), rng.random(5000)
    >>> losses = np.clip(tau + 0.05 * rng.standard_normal(200), 0, 1)
    >>> e = prediction_powered_error(losses, Surrogate(tau, far, "given"))
    >>> bool(e.low < 0.5 < e.high), bool(e.width < 0.03)  # from S alone .08
    (True, True)
    """
    name, assumes = ("ppi_generated", GENERATED) if generated else ("ppi", REAL)
    v = checked_losses(losses, bound, level)
    tau, far = (
        np.asarray(surrogate.labelled, float),
        np.asarray(surrogate.unlabelled, float),
    )
    if tau.shape != v.shape or far.ndim != 1:
        raise DataError(
            f"a surrogate of shapes {tau.shape} and {far.shape} for {len(v)} labelled rows",
            "give one value per labelled row and one per row without label",
        )
    if not (np.isfinite(tau).all() and np.isfinite(far).all()):
        raise DataError("a surrogate with missing values", "fill or drop these rows first")
    reason = no_spread(v)
    if not reason and len(far) < 2:
        reason = f"{len(far)} rows without label; 2 needed"
    if reason:
        return mean_without_interval(name, v, level, assumes, reason)
    powered = prediction_powered_mean(v, tau, far, level=level).estimate
    if not powered.has_interval:
        return mean_without_interval(name, v, level, assumes, powered.reason)
    return clipped_estimate(
        name, powered.point, powered.low, powered.high, level, len(v), assumes, bound
    )


def expected_loss(loss: BoundedLoss, f: np.ndarray) -> np.ndarray:
    """Return the loss that a classifier's own probabilities expect, per row.

    ``1 - max_c f_c`` for zero_one, ``1 - sum_c f_c^2`` for brier, ``-sum_c f_c ln f_c`` for log
    (clipped as the loss is). No label is used, so nothing needs to be cross-fitted.

    Parameters
    ----------
    loss : Loss
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
    if loss.name not in ("zero_one", "brier", "log"):
        raise ConfigError(
            f"no expected {loss.name!r} loss without training", "use cross_fitted instead"
        )
    if f.ndim != 2:
        raise DataError(f"predictions of shape {f.shape}", "give (n, C) probabilities")
    if loss.name == "zero_one":
        return 1 - f.max(axis=1)
    if loss.name == "brier":
        return 1 - (f**2).sum(axis=1)
    eps = np.exp(-loss.bound)
    return -(f * np.log(np.clip(f, eps, 1.0))).sum(axis=1)


def cross_fitted_surrogate(
    X: np.ndarray, losses: np.ndarray, X_unlabelled: np.ndarray, folds: int = 5, seed: int = 0
) -> Surrogate:
    """Return a surrogate learnt from the labelled losses, each row by the models without it.

    The rows without label get the mean over the folds' models. Source: Zrnic & Candès (2024),
    section 3; NOTE[DIFF] the variance is that of :func:`prediction_powered_error` instead of their
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
    X, far, v = np.asarray(X, float), np.asarray(X_unlabelled, float), np.asarray(losses, float)
    if X.ndim != 2 or far.ndim != 2 or X.shape[1] != far.shape[1] or v.shape != (len(X),):
        raise DataError(
            f"features of shapes {X.shape} and {far.shape} with losses of shape {v.shape}",
            "give (n, d), (N, d) and (n,)",
        )
    if len(v) < MIN_LEARN:
        raise DataError(
            f"{len(v)} labelled rows to learn a surrogate from; {MIN_LEARN} needed",
            "use the labelled rows alone",
        )
    part = random_stream(seed, "surrogate", "folds").permutation(len(v)) % folds
    on_labelled, on_far = np.empty(len(v)), np.zeros(len(far))
    for k in range(folds):
        model = HistGradientBoostingRegressor(
            max_iter=50,
            max_leaf_nodes=8,
            min_samples_leaf=10,
            early_stopping=False,
            random_state=derive_seed(seed, "surrogate", k) % 2**31,
        ).fit(X[part != k], v[part != k])
        on_labelled[part == k] = model.predict(X[part == k])
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
    loss : Loss
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
    f, far = np.asarray(f, float), np.asarray(f_unlabelled, float)
    if f.ndim == 2 and loss.needs != "numbers":
        tau = expected_loss(loss, f)
        if np.ptp(tau) > 0:
            return Surrogate(tau, expected_loss(loss, far), "expected")
    v = np.asarray(losses, float)
    if X is None or X_unlabelled is None or len(v) < MIN_LEARN or np.ptp(v) == 0:
        return None
    return cross_fitted_surrogate(X, v, X_unlabelled, seed=seed)
