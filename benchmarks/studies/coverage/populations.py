"""Simulated populations with a model trained once, whose true error is known.

The rows of a population *are* the population: samples are drawn from them with replacement, so
the mean loss over all of them is the true error exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.stats.bounded_loss import LOSSES, BoundedLoss, absolute_loss, squared_loss
from amlb_ext.stats.prediction_powered import expected_loss
from benchmarks.studies.five_gaussians import SHARES, draw_rows

#: How far ``drifted`` and ``ppi_generated`` are off, in units of the features.
SHIFT = -1.0
#: Rows that the models are trained on, and those that a surrogate is.
TRAIN, SURROGATE_TRAIN = 5_000, 20_000
#: The shifted population has a fifth as many rows: no true error is measured on it.
DRIFTED_PART = 5


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A population for one loss: losses and surrogates of all its rows.

    Attributes
    ----------
    loss : BoundedLoss
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


@dataclass(frozen=True, kw_only=True)
class Population:
    """A simulated population with a model trained once; pools share their rows.

    Attributes
    ----------
    name, model : str
    pools : tuple of Pool
    classes, classes_drifted : ndarray of shape (M,), (M',)
        Codes; empty for regression.
    """

    name: str
    model: str
    pools: tuple[Pool, ...]
    classes: np.ndarray
    classes_drifted: np.ndarray

    @cached_property
    def priors(self) -> np.ndarray:
        """Shares of the classes in the pool, ``(C,)``."""
        counts = np.bincount(self.classes, minlength=len(SHARES))
        return counts / max(1, len(self.classes))

    @cached_property
    def by_class(self) -> list[np.ndarray]:
        """Positions of the rows of each class."""
        return [np.flatnonzero(self.classes == code) for code in range(len(SHARES))]


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
    e = rng.standard_normal(n)
    noise = 0.3 * (1 + np.abs(X[:, 2])) * e
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 4 + noise


@dataclass(frozen=True, kw_only=True)
class Law:
    """Where the rows of a population come from, and what is judged on them.

    Attributes
    ----------
    name : str
    draw : callable
        From a number of rows, a stream and a shift to features and targets.
    model : estimator
        Not fitted.
    losses : callable
        From the targets seen in training to the losses.
    learns : bool
        Whether the surrogate is learnt on other rows, since the model says nothing of its errors:
        a regressor, or a tree, whose probabilities are 0 or 1.
    """

    name: str
    draw: Callable[..., tuple[np.ndarray, np.ndarray]]
    model: Any
    losses: Callable[[np.ndarray], list[BoundedLoss]]
    learns: bool = True


def _range_losses(y: np.ndarray) -> list[BoundedLoss]:
    """Return losses whose range is that of the targets seen, as for a user."""
    low, high = float(y.min()), float(y.max())
    return [squared_loss(low, high), absolute_loss(low, high)]


#: By the model that is judged.
LAWS = {
    "tree": Law(
        name="mixture",
        draw=draw_rows,
        model=DecisionTreeClassifier(random_state=0),
        losses=lambda _: [LOSSES["zero_one"]],
    ),
    "logistic": Law(
        name="mixture",
        draw=draw_rows,
        model=LogisticRegression(max_iter=1000),
        losses=lambda _: [LOSSES[name] for name in ("zero_one", "brier", "log_loss")],
        learns=False,
    ),
    "boosting": Law(
        name="waves",
        draw=draw_waves,
        model=HistGradientBoostingRegressor(early_stopping=False, random_state=0),
        losses=_range_losses,
    ),
}


@lru_cache(maxsize=1)
def make_population(model: str, size: int, seed: int) -> Population:
    """Return the population of a model; the last one is kept, as many designs draw from it.

    Parameters
    ----------
    model : str
        A key of :data:`LAWS`.
    size : int
        Rows of the pool.
    seed : int
    """
    law = LAWS[model]
    # one stream, so the order of the draws below is part of every number
    rng = random_stream(seed, "coverage", law.name)
    # trained on rows of the same law that are not in the pool
    X_train, y_train = law.draw(TRAIN, rng)
    fitted = law.model.fit(X_train, y_train)
    X, y = law.draw(size, rng)
    X_drifted, y_drifted = law.draw(size // DRIFTED_PART, rng, SHIFT)
    X_other, y_other = law.draw(SURROGATE_TRAIN, rng)
    predict = getattr(fitted, "predict_proba", fitted.predict)
    f, f_drifted = predict(X), predict(X_drifted)
    pools = []
    for loss in law.losses(y_train):
        if law.learns:
            # on labelled rows that no draw holds
            expect = HistGradientBoostingRegressor(
                learning_rate=0.05,
                early_stopping=False,
                random_state=derive_int_seed(seed, "coverage", "surrogate"),
            ).fit(X_other, loss(y_other, predict(X_other)))
            tau, tau_drifted = expect.predict(X), expect.predict(X_drifted)
        else:
            tau, tau_drifted = expected_loss(loss, f), expected_loss(loss, f_drifted)
        pool = Pool(
            loss=loss,
            losses=loss(y, f),
            tau=tau,
            drifted=loss(y_drifted, f_drifted),
            tau_drifted=tau_drifted,
        )
        pools.append(pool)
    codes = (y, y_drifted)
    if law.name == "waves":
        codes = (np.zeros(0, dtype=int),) * 2
    return Population(
        name=law.name,
        model=model,
        pools=tuple(pools),
        classes=codes[0],
        classes_drifted=codes[1],
    )
