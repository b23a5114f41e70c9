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
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_number, format_percent
from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.core.row_losses import (
    absolute_error,
    brier_loss,
    pinball_error,
    squared_error,
    true_probability,
)
from amlb_ext.stats.weighted_mean import ROUNDING

#: Probability at which ``log`` clips unless told otherwise; its bound is then 6.91 nats.
CLIP = 1e-3
#: A larger one would clip what models say, not only what they should never say: with .9 all that is
#: left of the loss is the clip.
MAX_CLIP = 0.05

Needs = Literal["codes", "probabilities", "numbers"]
#: What a loss takes for predictions: their dimensions, and the same in words.
SHAPES: dict[Needs, tuple[tuple[int, ...], str]] = {
    "codes": ((1, 2), "(n,) class codes or (n, C) probabilities"),
    "probabilities": ((2,), "(n, C) probabilities"),
    "numbers": ((1,), "(n,) predictions"),
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
    costs : ndarray of shape (C, C) or None
        What each decision costs, where the loss is made of such costs.
    is_balanced : bool
        Whether each class counts alike: the error is the mean over classes of their mean losses.

    Examples
    --------
    >>> LOSSES["zero_one"](np.array([0, 1]), np.array([[0.9, 0.1], [0.6, 0.4]])).tolist()
    [0.0, 1.0]
    """

    name: str
    bound: float
    binary: bool = False
    unit: str
    needs: Needs
    rows: Callable[[np.ndarray, np.ndarray], np.ndarray] = field(
        repr=False, compare=False
    )
    costs: np.ndarray | None = field(default=None, repr=False, compare=False)
    is_balanced: bool = False

    def __call__(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Return the loss of each row, ``(n,)``, between 0 and ``bound``.

        Raises
        ------
        DataError
            When shapes do not match, a number is missing, or a class code has no probability.
        """
        y = np.asarray(y)
        f = np.asarray(f, dtype=float)
        dimensions, wanted = SHAPES[self.needs]
        if y.ndim != 1 or f.ndim not in dimensions or len(f) != len(y):
            raise DataError(
                f"loss {self.name!r} got targets of shape {y.shape} and predictions of shape "
                f"{f.shape}",
                f"give (n,) targets and {wanted}",
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
        name="log_loss",
        bound=-math.log(eps),
        unit="nats",
        needs="probabilities",
        rows=clipped_log_loss,
    )


def cost_loss(costs: np.ndarray) -> BoundedLoss:
    """Return the cost of what is decided, bound the largest cost.

    Parameters
    ----------
    costs : ndarray of shape (C, C)
        By true class, then by decision; finite, none negative, one above 0. See
        :func:`amlb_ext.core.losses.read_cost_matrix`.

    Examples
    --------
    >>> loss = cost_loss(np.array([[0.0, 10.0], [1.0, 0.0]]))
    >>> loss(np.array([0, 1]), np.array([1, 0])).tolist(), loss.bound
    ([10.0, 1.0], 10.0)
    """

    def cost_of(y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return costs[y.astype(int), _decided(f).astype(int)]

    return BoundedLoss(
        name="cost",
        bound=float(costs.max()),
        binary=bool(np.isin(costs, (0.0, 1.0)).all()),
        unit="unit of your costs",
        needs="codes",
        rows=cost_of,
        costs=costs,
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


def pinball_loss(
    q: float, low: float = 0.0, high: float = 1.0, cap: float | None = None
) -> BoundedLoss:
    """Return the quantile loss at q, bound ``max(q, 1 - q)``; see :func:`absolute_loss`.

    Examples
    --------
    >>> pinball_loss(0.75, 0, 8)(np.array([2.0, 6.0]), np.array([6.0, 2.0])).tolist()
    [0.125, 0.375]
    """
    return _loss_of_range(f"pinball:{q:g}", low, high, cap, q=q)


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


def _loss_of_range(
    name: str, low: float, high: float, cap: float | None, *, q: float | None = None
) -> BoundedLoss:
    """Return the squared, absolute or pinball loss of a target scaled by a range."""
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ConfigError(
            f"{name} loss with a target range from {low} to {high}",
            "give two different finite numbers, the smaller first",
        )
    if cap is not None and not (math.isfinite(cap) and cap > 0):
        raise ConfigError(f"errors that count up to {cap}", "give a positive number")
    is_squared = name == "squared"
    # a cap wider than the range caps nothing, for predictions are clipped to the range
    largest_error = 1.0 if cap is None else min(1.0, cap / (high - low))
    bound = largest_error**2 if is_squared else largest_error
    if q is not None:
        bound *= max(q, 1 - q)

    def scaled_loss(y: np.ndarray, f: np.ndarray) -> np.ndarray:
        scaled_y = (y - low) / (high - low)
        scaled_f = np.clip((f - low) / (high - low), 0.0, 1.0)
        if is_squared:
            losses = squared_error(scaled_y, scaled_f)
        elif q is None:
            losses = absolute_error(scaled_y, scaled_f)
        else:
            losses = pinball_error(scaled_y, scaled_f, q)
        # targets are not clipped: one outside the range has a loss of the bound at most
        return np.minimum(losses, bound)

    return BoundedLoss(
        name=name,
        bound=bound,
        unit="squared range of the target" if is_squared else "range of the target",
        needs="numbers",
        rows=scaled_loss,
    )


def _zero_one_loss(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    return _decided(f) != y


def _decided(f: np.ndarray) -> np.ndarray:
    # of two classes with the largest probability the first is predicted, as by scikit-learn
    return f if f.ndim == 1 else f.argmax(axis=1)


_ZERO_ONE = BoundedLoss(
    name="zero_one",
    bound=1.0,
    binary=True,
    unit="share of rows",
    needs="codes",
    rows=_zero_one_loss,
)
#: The losses by name; ``squared`` and ``absolute`` here want a target scaled to [0, 1].
LOSSES: dict[str, BoundedLoss] = {
    "zero_one": _ZERO_ONE,
    "balanced": replace(
        _ZERO_ONE,
        name="balanced",
        unit="share of rows, each class counting alike",
        is_balanced=True,
    ),
    "brier": BoundedLoss(
        name="brier",
        bound=2.0,
        unit="squared probability",
        needs="probabilities",
        rows=brier_loss,
    ),
    "log_loss": log_loss(),
    "squared": squared_loss(),
    "absolute": absolute_loss(),
}


# Squared errors with a cap, so that the t interval of their mean covers.
#
# Notation:
# l_F : (n,) squared errors of F on real, labelled rows
# k : distinct rows whose errors reach the cap, max(10, 2 %) of all, at most a fifth
#
# One row in a thousand may hold most of a mean squared error. While that row is not among those
# that were drawn, nothing in them says how far off the mean is: t intervals of 95 % then cover
# down to 46 % (benchmarks/claims/coverage_tails.py). So errors beyond the k-th largest of F
# count as if they were that large, for F, its re-fits and every candidate alike. What is
# estimated is the mean of that capped loss: k rows of F reach the cap, so its size is well
# known, and no single row outweighs the others. The cap rests on F alone, so no candidate can
# move it. Where the rows beyond it would decide, nothing is claimed by the capped loss
# (:mod:`amlb_ext.stats.heavy_tails`).
#
# Brier losses are at most 2 and need no cap.
#
# References:
# Huber (1964), Ann. Math. Statist. 35, 73-101, for errors that count no more beyond a limit.


Losses = TypeVar("Losses", np.ndarray, pd.DataFrame)

#: Rows of F that reach the cap: this share of all rows, ...
SHARE_AT_CAP = 0.02
#: ... at least so many, for the size of fewer is chance, ...
FEWEST_AT_CAP = 10
#: ... and never more than this share of a small table.
MOST_AT_CAP = 0.2
#: The square of a larger loss, which a variance needs, is no number.
LARGEST_LOSS = 1e100
#: A squared error of a target scaled to its range that is smaller than this is rounding.
ROUNDING_LOSS = ROUNDING**2


@dataclass(frozen=True, kw_only=True)
class ErrorCap:
    """The largest squared error that counts.

    Attributes
    ----------
    loss : float
        In units of the squared error; infinite for no cap.
    at_cap, n : int
        Rows on which F's error reaches the cap, of all rows.
    """

    loss: float = np.inf
    at_cap: int = 0
    n: int = 0

    def apply(self, losses: Losses) -> Losses:
        """Return the losses, none larger than the cap; NaN stays NaN.

        Parameters
        ----------
        losses : ndarray or DataFrame of any shape

        Examples
        --------
        >>> ErrorCap(loss=4.0).apply(np.array([1.0, 9.0])).tolist()
        [1.0, 4.0]
        """
        return np.minimum(losses, min(self.loss, LARGEST_LOSS))

    def sentence(self, span: float | np.ndarray | None = None) -> str:
        """Return what the cap does, in words; empty for no cap.

        Parameters
        ----------
        span : float or ndarray, optional
            Length of 1 of the scaled target in the target's own unit; of each row or fold, where
            these differ. Without it the cap is told in percent of the target's range.

        Examples
        --------
        >>> ErrorCap(loss=0.04, at_cap=20, n=1000).sentence(216.0)
        'errors beyond 43.2 count as 43.2 (F errs by as much on 20 of 1 000 rows)'
        """
        if not np.isfinite(self.loss):
            return ""
        largest_error = float(np.sqrt(self.loss))
        counts = f"{format_number(self.at_cap)} of {format_number(self.n)}"
        reached = f"(F errs by as much on {counts} rows)"
        if span is None:
            size = f"{format_percent(largest_error)} of the target's range"
            return f"errors beyond {size} count as that {reached}"
        low = format_number(largest_error * float(np.min(span)))
        high = format_number(largest_error * float(np.max(span)))
        # each fold scales its target by its own training rows
        if low != high:
            return f"errors beyond {low} to {high}, by fold, count as that {reached}"
        return f"errors beyond {low} count as {low} {reached}"


#: Every loss counts as it is.
NO_CAP = ErrorCap()


def cap_from_baseline(
    loss_f: np.ndarray, clusters: np.ndarray | None = None
) -> ErrorCap:
    """Return the cap for squared errors: the k-th largest of F.

    Parameters
    ----------
    loss_f : ndarray of shape (n,)
        Squared errors of F on all real test rows of the task, the target scaled to its range.
    clusters : ndarray of shape (n,), optional
        The real row that each row came from; k counts these.

    Returns
    -------
    ErrorCap
        No cap for fewer than five distinct rows, and where the k-th largest error is 0 but for
        rounding: F that is exact on most rows says nothing of what a large error is.

    Examples
    --------
    >>> cap = cap_from_baseline(np.arange(1000.0))  # the 20th largest
    >>> cap.loss, cap.at_cap
    (980.0, 20)
    >>> cap_from_baseline(np.zeros(1000)).loss
    inf
    """
    losses = np.asarray(loss_f, dtype=float)
    largest = losses
    if clusters is not None:
        # a row that stands in several folds counts once, with its largest error
        by_row = np.unique(clusters, return_inverse=True)[1].reshape(-1)
        largest = np.zeros(by_row.max(initial=-1) + 1)
        np.maximum.at(largest, by_row, losses)
    n_distinct = len(largest)
    wanted = max(FEWEST_AT_CAP, int(np.ceil(SHARE_AT_CAP * n_distinct)))
    k = min(wanted, int(MOST_AT_CAP * n_distinct))
    if k == 0:
        return NO_CAP
    cap = float(np.sort(largest)[-k])
    largest_known = largest.max(initial=0.0, where=np.isfinite(largest))
    if not cap > max(ROUNDING_LOSS, ROUNDING * largest_known):
        return NO_CAP
    return ErrorCap(loss=cap, at_cap=int((losses >= cap).sum()), n=len(losses))
