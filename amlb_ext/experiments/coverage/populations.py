"""Simulated populations with a model trained once, whose true error is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.experiments.five_gaussians import SHARES, draw_rows
from amlb_ext.stats.bounded_loss import LOSSES, BoundedLoss, absolute_loss, squared_loss
from amlb_ext.stats.surrogate import expected_loss

#: How far ``drifted`` and ``ppi_generated`` are off, in units of the features.
SHIFT = -1.0
#: Rows that the models are trained on.
TRAIN = 5_000


@dataclass(frozen=True)
class Pool:
    """A population for one loss: losses and surrogates of all its rows.

    Attributes
    ----------
    loss : Loss
    losses, tau : ndarray of shape (M,)
        The model's losses, and what the surrogate expects.
    drifted, tau_drifted : ndarray of shape (M',)
        The same on the shifted population.
    """

    loss: BoundedLoss
    losses: np.ndarray
    tau: np.ndarray
    drifted: np.ndarray
    tau_drifted: np.ndarray


@dataclass(frozen=True)
class Population:
    """A simulated population with a model trained once; pools share their rows.

    Attributes
    ----------
    name, model : str
    pools : tuple of Pool
    classes, classes_drifted : ndarray of shape (M,), (M',)
        Codes; empty for regression.
    priors : ndarray of shape (C,)
        Those of the pool.
    order : ndarray of shape (M,)
        Rows of the pool, class by class.
    """

    name: str
    model: str
    pools: tuple[Pool, ...]
    classes: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    classes_drifted: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    priors: np.ndarray = field(default_factory=lambda: np.zeros(0))
    order: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))


def draw_waves(
    n: int, rng: np.random.Generator, shift: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw a regression with noise that grows with a feature: ``(n, 4)`` and ``(n,)``.

    ``y = sin 2x_1 + x_2^2 / 4 + .3 (1 + |x_3|) e``, x uniform on [-3, 3], e standard normal;
    ``shift`` is added to all features.

    Examples
    --------
    >>> draw_waves(3, np.random.default_rng(0))[0].shape
    (3, 4)
    """
    X = rng.uniform(-3, 3, (n, 4)) + shift
    noise = 0.3 * (1 + np.abs(X[:, 2])) * rng.standard_normal(n)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 4 + noise


def _tree(size: int, seed: int) -> Population:
    return _mixture(
        "tree", DecisionTreeClassifier(random_state=0), ("zero_one",), size, seed
    )


def _logistic(size: int, seed: int) -> Population:
    model = LogisticRegression(max_iter=1000)
    return _mixture("logistic", model, ("zero_one", "brier", "log"), size, seed)


def _mixture(
    name: str, model: Any, losses: tuple[str, ...], size: int, seed: int
) -> Population:
    rng = random_stream(seed, "coverage", "mixture")
    model.fit(*draw_rows(TRAIN, rng))
    X, y = draw_rows(size, rng)
    X_far, y_far = draw_rows(size // 5, rng, SHIFT)
    f, f_far = model.predict_proba(X), model.predict_proba(X_far)
    other = draw_rows(20_000, rng)
    pools = []
    for word in losses:
        loss = LOSSES[word]
        v, v_far = loss(y, f), loss(y_far, f_far)
        if (
            name == "tree"
        ):  # its probabilities are 0 or 1: learn what to expect on other rows
            learnt = _learnt(
                other[0], loss(other[1], model.predict_proba(other[0])), seed
            )
            tau, tau_far = learnt(X), learnt(X_far)
        else:
            tau, tau_far = expected_loss(loss, f), expected_loss(loss, f_far)
        pools.append(Pool(loss, v, tau, v_far, tau_far))
    priors = np.bincount(y, minlength=len(SHARES)) / size
    return Population(
        "mixture", name, tuple(pools), y, y_far, priors, np.argsort(y, kind="stable")
    )


def _boosting(size: int, seed: int) -> Population:
    rng = random_stream(seed, "coverage", "waves")
    X, y = draw_waves(TRAIN, rng)
    low, high = float(y.min()), float(y.max())
    model = HistGradientBoostingRegressor(early_stopping=False, random_state=0).fit(
        X, y
    )
    X, y = draw_waves(size, rng)
    X_far, y_far = draw_waves(size // 5, rng, SHIFT)
    f, f_far = model.predict(X), model.predict(X_far)
    other = draw_waves(20_000, rng)
    seen = model.predict(other[0])
    pools = []
    for loss in (squared_loss(low, high), absolute_loss(low, high)):
        learnt = _learnt(other[0], loss(other[1], seen), seed)
        pools.append(
            Pool(loss, loss(y, f), learnt(X), loss(y_far, f_far), learnt(X_far))
        )
    return Population("waves", "boosting", tuple(pools))


def _learnt(
    X: np.ndarray, v: np.ndarray, seed: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a surrogate learnt on labelled rows that no draw holds."""
    model = HistGradientBoostingRegressor(
        max_leaf_nodes=31,
        learning_rate=0.05,
        early_stopping=False,
        random_state=derive_seed(seed, "coverage", "surrogate") % 2**31,
    ).fit(X, v)
    return lambda rows: np.asarray(model.predict(rows))


#: The populations by the model that is judged on them.
MAKERS: dict[str, Callable[[int, int], Population]] = {
    "tree": _tree,
    "logistic": _logistic,
    "boosting": _boosting,
}
