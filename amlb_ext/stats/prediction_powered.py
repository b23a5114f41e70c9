"""Prediction-powered means: intervals from labelled rows with the help of rows without labels.

Notation
--------
v : (n,) values on the labelled rows: losses, or a candidate's losses minus those of F
w : (n,) or (N,) weights, functions of the features alone
tau : (n,) or (N,) the surrogate: the value expected from the features alone, by a model that has
    not seen the labels of these rows
n, N : labelled rows, rows without labels
W : sum of w over the labelled rows
H(a; w) = sum(w a) / sum(w)
lam : power-tuning factor in [0, 1]; 0 is the mean of the labelled rows alone

A surrogate may be arbitrarily wrong: it widens the interval, but does not shift it.

References
----------
Angelopoulos, Bates, Fannjiang, Jordan & Zrnic (2023), Science 382, 669-674 (prediction-powered
inference); Angelopoulos, Duchi & Zrnic (2023), arXiv:2311.01453 (PPI++, power tuning).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.stats.bounded_loss import BoundedLoss
from amlb_ext.stats.bounded_mean import why_no_spread
from amlb_ext.stats.error_estimate import ErrorEstimate, LossSample
from amlb_ext.stats.weighted_mean import (
    MeanEstimate,
    checked_rows,
    kish_size,
    weighted_mean_interval,
    why_no_interval,
)

# Surrogates: the loss that is expected of a row from its features alone.
#
# Notation:
# l : (n,) losses of the labelled rows, in [0, C_h]
# tau : (n,) or (N,) the surrogate: the loss expected from the features alone
# n, N : labelled rows, rows without label
#
# A surrogate may be arbitrarily wrong: it widens a prediction-powered interval (see
# :mod:`amlb_ext.stats.prediction_powered`), but does not shift it. It must not have seen the labels
# of the rows it is used on, hence the cross-fitting.
#
# References:
# Zrnic & Candès (2024), PNAS 121, e2322083121 (cross-prediction-powered inference).


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
    """

    labelled: np.ndarray
    unlabelled: np.ndarray


def expected_loss(loss: BoundedLoss, f: np.ndarray) -> np.ndarray:
    """Return the loss that a classifier's own probabilities expect, per row.

    ``1 - max_c f_c`` for zero_one, ``1 - sum_c f_c^2`` for brier, ``-sum_c f_c ln f_c`` for log
    (clipped as the loss is), ``sum_c f_c cost(c, d)`` for costs, with d the most probable class. No
    label is used, so nothing needs to be cross-fitted.

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
    if loss.costs is None and loss.name not in ("zero_one", "brier", "log_loss"):
        raise ConfigError(
            f"no expected {loss.name!r} loss without training",
            "use cross_fitted_surrogate instead",
        )
    if f.ndim != 2:
        raise DataError(f"predictions of shape {f.shape}", "give (n, C) probabilities")
    if loss.costs is not None:
        return np.asarray((f @ loss.costs)[np.arange(len(f)), f.argmax(axis=1)])
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
        When shapes do not match.

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
    return Surrogate(on_labelled, on_far)


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
    >>> choose_surrogate(LOSSES["zero_one"], np.array([0.0, 1.0]), f, f).labelled.round(1).tolist()
    [0.2, 0.4]
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
            return Surrogate(tau, expected_loss(loss, f_far))
    v = np.asarray(losses, dtype=float)
    if X is None or X_unlabelled is None:
        return None
    # nothing to learn: too few rows, or losses that do not differ
    if len(v) < MIN_LEARN or np.ptp(v) == 0:
        return None
    return cross_fitted_surrogate(X, v, X_unlabelled, seed=seed)


#: What :func:`prediction_powered_error` assumes of rows without label.
REAL = (
    "labelled and unlabelled rows are independent draws from one population, and there are "
    "enough labelled ones that their mean is nearly normal"
)


def prediction_powered_mean(
    values: np.ndarray,
    surrogate: np.ndarray,
    surrogate_unlabelled: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    weights_unlabelled: np.ndarray | None = None,
    level: float = 0.95,
) -> MeanEstimate:
    r"""Return the weighted mean of the values with the help of unlabelled *real* rows.

    .. math::
        \theta &= H_n(v; w) - \lambda \{ H_n(\tau; w) - H_N(\tau; w) \} \\
        a_i &= w_i (v_i - H_n(v)) / W, \quad b_i = w_i (\tau_i - H_n(\tau)) / W, \quad
        b'_j = w_j (\tau_j - H_N(\tau)) / W' \\
        s^2 &= \tfrac{n}{n-1} \sum_i (a_i - \lambda b_i)^2
             + \tfrac{N}{N-1} \lambda^2 \sum_j b'^2_j \\
        \lambda &= \frac{\sum_i a_i b_i}{\sum_i b_i^2 + \sum_j b'^2_j}
        \ \text{clipped to } [0, 1]

    The last minimises s² (PPI++, power tuning); a useless surrogate gets λ = 0 and the classical
    interval. Degrees of freedom are those of the labelled rows.

    NOTE[OWN] ``ppi_py.ppi_mean_ci`` (0.2.3) takes weights, but its variance is that of
    ``w v`` without the ratio's linearisation; it uses a normal quantile, which covers too rarely
    in small samples (.908 for .95 at n = 20, where this one covers .952).
    For equal weights and large n the two agree: the tests hold this function to it.

    Parameters
    ----------
    values : ndarray of shape (n,)
        On the labelled rows.
    surrogate : ndarray of shape (n,)
        Expected values on the labelled rows, whose labels it must not have seen.
    surrogate_unlabelled : ndarray of shape (N,)
        The same on rows without labels, drawn from the same population: generated rows
        undercover (.89 to .91 for .95). Ask :func:`amlb_ext.stats.support.check_support` first.
    weights, weights_unlabelled : ndarray of shape (n,), (N,), optional
        The same function of the features on both.
    level : float
        Nominal coverage.

    Returns
    -------
    MeanEstimate
        Without an interval where the labelled rows alone allow none.

    Raises
    ------
    DataError
        When lengths differ, a value is not finite or a weight is negative.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, far = rng.standard_normal(200), rng.standard_normal(5000)
    >>> values = x + 0.3 * rng.standard_normal(200)
    >>> powered = prediction_powered_mean(values, x, far)
    >>> powered.width < 0.5 * weighted_mean_interval(values).width  # .3 / sqrt(1.09) is .29
    True
    """
    # what is reported where the surrogate cannot help
    classical = weighted_mean_interval(values, weights, None, level)
    v, w, _ = checked_rows(values, weights, None)
    tau, _, _ = checked_rows(surrogate, weights, None)
    if tau.shape != v.shape:
        raise DataError(
            f"{len(tau)} surrogate values for {len(v)} labelled rows",
            "give the expected value of each labelled row",
        )
    far, w_far, _ = checked_rows(surrogate_unlabelled, weights_unlabelled, None)
    n_far = len(far)
    reason = why_no_interval(w)
    if not reason and n_far < 2:
        reason = f"{n_far} unlabelled rows with weight; at least 2 are needed"
    if reason:
        return classical.without_interval(reason)

    total = w.sum()
    mean_tau = (w * tau).sum() / total
    mean_far = float(w_far @ far / w_far.sum())
    # the influence of each row on the means
    a = (w * v - classical.point * w) / total
    b = (w * tau - mean_tau * w) / total
    b_far = w_far * (far - mean_far) / w_far.sum()
    spread = (b**2).sum() + (b_far**2).sum()
    # a surrogate without spread knows nothing: it is left out
    lam = 0.0
    if spread > 0:
        lam = float(np.clip((a * b).sum() / spread, 0.0, 1.0))

    n = len(v)
    labelled_variance = n / (n - 1) * ((a - lam * b) ** 2).sum()
    unlabelled_variance = n_far / (n_far - 1) * lam**2 * (b_far**2).sum()
    se = float(np.sqrt(labelled_variance + unlabelled_variance))
    # without spread there is nothing to narrow
    if not (classical.has_interval and se > 0):
        return classical
    # unbiased whatever the surrogate: both means of tau estimate the same number
    point = float(classical.point - lam * (mean_tau - mean_far))
    return replace(classical, point=point).with_error(se, kish_size(w) - 1)


def prediction_powered_error(
    losses: np.ndarray,
    surrogate: Surrogate,
    level: float = 0.95,
    bound: float = 1.0,
) -> ErrorEstimate:
    """Return the prediction-powered interval for the true error of a model.

    It is :func:`prediction_powered_mean` of the losses, clipped to [0, bound]. It sees spread
    only where losses differ: with few errors among few labelled rows it is too short, see the
    table in docs/evidence/coverage.md.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        In units of the loss.
    surrogate : Surrogate
    level : float
    bound : float
        C_h.

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
    >>> e = prediction_powered_error(losses, Surrogate(tau, far))
    >>> bool(e.low < 0.5 < e.high), bool(e.width < 0.03)  # from S alone .08
    (True, True)
    """
    sample = LossSample.checked("ppi", losses, level, assumes=REAL, bound=bound)
    v = sample.losses
    tau = np.asarray(surrogate.labelled, dtype=float)
    far = np.asarray(surrogate.unlabelled, dtype=float)
    if tau.shape != v.shape or far.ndim != 1:
        raise DataError(
            f"a surrogate of shapes {tau.shape} and {far.shape} for {len(v)} labelled rows",
            "give one value per labelled row and one per row without label",
        )
    if not (np.isfinite(tau).all() and np.isfinite(far).all()):
        raise DataError(
            "a surrogate with missing values", "fill or drop these rows first"
        )
    # equal losses give an interval of no width, which would claim to know the error exactly
    reason = why_no_spread(v)
    if not reason and len(far) < 2:
        reason = f"{len(far)} rows without label; 2 needed"
    if reason:
        return sample.without_interval(reason)
    powered = prediction_powered_mean(v, tau, far, level=level)
    if not powered.has_interval:
        return sample.without_interval(powered.reason)
    return sample.interval(powered.low, powered.high, powered.point)
