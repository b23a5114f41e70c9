"""Per-row losses of a fixed model, each with the number it cannot exceed.

Notation
--------
y : (n,) class codes 0..C-1, or targets in units of the target
f : (n, C) class probabilities, or (n,) predicted codes or predicted targets
C_h : bound of the loss; the true error is the population's mean loss and lies in [0, C_h]
u(v) = (v - low) / (high - low) : a target, scaled by its range

References
----------
Brier (1950), Monthly Weather Review 78, 1-3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.core.row_losses import (
    absolute_error,
    brier_loss,
    squared_error,
    true_probability,
)
from amlb_ext.core.task import Kind

#: Probability at which ``log`` clips unless told otherwise; its bound is then 6.91 nats.
CLIP = 1e-3
#: A larger one would clip what models say, not only what they should never say: with .9 all that is
#: left of the loss is the clip.
MAX_CLIP = 0.05

Needs = Literal["codes", "probabilities", "numbers"]
#: What a loss takes for predictions: their dimensions, and the same in words.
DIMENSIONS: dict[Needs, tuple[int, ...]] = {
    "codes": (1, 2),
    "probabilities": (2,),
    "numbers": (1,),
}
SHAPES: dict[Needs, str] = {
    "codes": "(n,) class codes or (n, C) probabilities",
    "probabilities": "(n, C) probabilities",
    "numbers": "(n,) predictions",
}


@dataclass(frozen=True, kw_only=True)
class BoundedLoss:
    """A loss per row, and what it cannot exceed.

    Attributes
    ----------
    name : str
    bound : float
        C_h, in units of the loss.
    binary : bool
        Whether it is 0 or 1 and nothing else: such losses allow exact binomial intervals.
    unit : str
        Of the loss, in words.
    needs : str
        ``probabilities`` (n, C); ``codes``, which may also be probabilities, whose largest then
        counts; ``numbers`` (n,).
    rows : callable
        ``(y, f) -> (n,)``.

    Examples
    --------
    >>> LOSSES["zero_one"](np.array([0, 1]), np.array([[0.9, 0.1], [0.6, 0.4]])).tolist()
    [0.0, 1.0]
    """

    name: str
    bound: float
    binary: bool
    unit: str
    needs: Needs
    rows: Callable[[np.ndarray, np.ndarray], np.ndarray] = field(
        repr=False, compare=False
    )

    def __call__(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Return the loss of each row, ``(n,)``, between 0 and ``bound``.

        Raises
        ------
        DataError
            When shapes do not match, a number is missing, or a class code has no probability.
        """
        y = np.asarray(y)
        f = np.asarray(f, dtype=float)
        if y.ndim != 1 or f.ndim not in DIMENSIONS[self.needs] or len(f) != len(y):
            raise DataError(
                f"loss {self.name!r} got targets of shape {y.shape} and predictions of shape "
                f"{f.shape}",
                f"give (n,) targets and {SHAPES[self.needs]}",
            )
        if not (np.isfinite(f).all() and np.isfinite(y.astype(float)).all()):
            raise DataError(
                f"loss {self.name!r} got a missing or infinite target or prediction",
                "drop or fill these rows first",
            )
        # a negative code would silently pick a column from the end
        if f.ndim == 2 and len(y) and (y.min() < 0 or y.max() >= f.shape[1]):
            raise DataError(
                f"class codes run from {y.min()} to {y.max()} with {f.shape[1]} probabilities",
                "code the classes 0..C-1 in the order of the columns",
            )
        return np.asarray(self.rows(y, f), dtype=float)


def log_loss(eps: float = CLIP) -> BoundedLoss:
    """Return the log loss, ``-ln max(f_y, eps)``, bound ``-ln eps``.

    Clipping is part of the loss: what is estimated is the error of the model whose
    probabilities are never below ``eps``. A smaller ``eps`` widens every interval that rests on
    the bound.

    Parameters
    ----------
    eps : float
        Above 0, at most ``MAX_CLIP``.

    Raises
    ------
    ConfigError
        For another ``eps``.

    Examples
    --------
    >>> log_loss(0.01)(np.array([0]), np.array([[0.0, 1.0]])).round(3).tolist()  # -ln .01
    [4.605]
    """
    if not 0 < eps <= MAX_CLIP:
        raise ConfigError(
            f"log loss clipped at {eps}",
            f"give a small probability above 0, at most {MAX_CLIP}",
        )

    def clipped_log_loss(y: np.ndarray, f: np.ndarray) -> np.ndarray:
        # rounding may have left a probability of 1 + 1e-16, whose loss would be negative
        return -np.log(np.clip(true_probability(y, f), eps, 1.0))

    return BoundedLoss(
        name="log",
        bound=-math.log(eps),
        binary=False,
        unit="nats",
        needs="probabilities",
        rows=clipped_log_loss,
    )


def squared_loss(
    low: float = 0.0, high: float = 1.0, cap: float | None = None
) -> BoundedLoss:
    """Return ``(u(f) - u(y))^2``, bound 1; see :func:`absolute_loss` for the range and the cap.

    Examples
    --------
    >>> squared_loss(0, 8)(np.array([2.0]), np.array([6.0])).tolist()  # (.75 - .25)^2
    [0.25]
    """
    return _loss_of_range("squared", low, high, cap)


def absolute_loss(
    low: float = 0.0, high: float = 1.0, cap: float | None = None
) -> BoundedLoss:
    """Return ``|u(f) - u(y)|``, bound 1.

    Predictions are clipped to the range, which can only lower the loss of targets inside it;
    the loss of a target outside it is capped at 1. What is estimated is the mean of that: choose
    a range that holds all targets and nothing is altered.

    Parameters
    ----------
    low, high : float
        Range of the target, in its units: known to the user, or that of the training rows.
    cap : float, optional
        Largest error that counts, in units of the target: what is estimated is the mean of
        ``min(error, cap)``. The bound of the loss, on which the width of the intervals that hold
        for every bounded loss rests, shrinks with it.

    Raises
    ------
    ConfigError
        When the range is empty or not finite, or the cap is not a positive number.

    Examples
    --------
    >>> absolute_loss(0, 8)(np.array([2.0, 30.0]), np.array([6.0, -5.0])).tolist()
    [0.5, 1.0]
    >>> absolute_loss(0, 8, cap=2)(np.array([2.0, 3.0]), np.array([6.0, 2.0])).tolist()
    [0.25, 0.125]
    """
    return _loss_of_range("absolute", low, high, cap)


def default_loss(kind: Kind) -> BoundedLoss:
    """Return the loss for a kind of task: ``zero_one``, or ``squared`` for regression.

    Examples
    --------
    >>> default_loss(Kind.BINARY).name, default_loss(Kind.REGRESSION).name
    ('zero_one', 'squared')
    """
    return LOSSES["squared" if Kind(kind) is Kind.REGRESSION else "zero_one"]


def checked_losses(losses: np.ndarray, bound: float) -> np.ndarray:
    """Return the losses as floats, ``(n,)``, all in [0, bound].

    Raises
    ------
    ConfigError
        For a bound that is not positive and finite.
    DataError
        For losses of another shape, outside the bound, or missing.

    Examples
    --------
    >>> checked_losses([0, 1, 2], 2.0).tolist()
    [0.0, 1.0, 2.0]
    """
    if not (math.isfinite(bound) and bound > 0):
        raise ConfigError(f"a loss bounded by {bound}", "give a positive finite bound")
    v = np.asarray(losses, dtype=float)
    if v.ndim != 1:
        raise DataError(
            f"losses of shape {v.shape}", "give one loss per row, shape (n,)"
        )
    if not np.isfinite(v).all():
        raise DataError("a missing or infinite loss", "drop rows without label first")
    # a bound such as -ln eps may be met up to rounding
    if len(v) and (v.min() < 0 or v.max() > bound * (1 + 1e-12)):
        raise DataError(
            f"losses from {v.min():.4g} to {v.max():.4g} with a bound of {bound:.4g}",
            "give the bound of this loss, or scale the target",
        )
    return v


def _zero_one_loss(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    # of two classes with the largest probability the first is predicted, as by scikit-learn
    predicted = f if f.ndim == 1 else f.argmax(axis=1)
    return predicted != y


def _loss_of_range(
    name: str, low: float, high: float, cap: float | None
) -> BoundedLoss:
    """Return the squared or absolute loss of targets and predictions scaled by a range."""
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ConfigError(
            f"{name} loss with a target range from {low} to {high}",
            "give two different finite numbers, the smaller first",
        )
    if cap is not None and not (math.isfinite(cap) and cap > 0):
        raise ConfigError(f"errors that count up to {cap}", "give a positive number")
    is_squared = name == "squared"
    row_loss = squared_error if is_squared else absolute_error
    # a cap wider than the range caps nothing, for predictions are clipped to the range
    largest_error = 1.0 if cap is None else min(1.0, cap / (high - low))
    bound = largest_error**2 if is_squared else largest_error

    def scaled_loss(y: np.ndarray, f: np.ndarray) -> np.ndarray:
        scaled_y = (y - low) / (high - low)
        scaled_f = np.clip((f - low) / (high - low), 0.0, 1.0)
        # targets are not clipped: one outside the range has a loss of the bound at most
        return np.minimum(row_loss(scaled_y, scaled_f), bound)

    return BoundedLoss(
        name=name,
        bound=bound,
        binary=False,
        unit="squared range of the target" if is_squared else "range of the target",
        needs="numbers",
        rows=scaled_loss,
    )


#: The losses by name; ``squared`` and ``absolute`` here want a target scaled to [0, 1].
LOSSES: dict[str, BoundedLoss] = {
    "zero_one": BoundedLoss(
        name="zero_one",
        bound=1.0,
        binary=True,
        unit="share of rows",
        needs="codes",
        rows=_zero_one_loss,
    ),
    "brier": BoundedLoss(
        name="brier",
        bound=2.0,
        binary=False,
        unit="squared probability",
        needs="probabilities",
        rows=brier_loss,
    ),
    "log": log_loss(),
    "squared": squared_loss(),
    "absolute": absolute_loss(),
}
