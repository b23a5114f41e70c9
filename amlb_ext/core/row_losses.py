"""Losses of single rows, and the few scores that the summary prints.

Each is a formula of one or two lines.

Notation
--------
y : (n,) true targets, min–max scaled for regression, class codes 0..C-1 for classification
f : (n,) predictions, or (n, C) class probabilities
"""

from __future__ import annotations

import numpy as np


def absolute_error(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return ``|f - y|`` per row."""
    return np.abs(f - y)


def squared_error(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return ``(f - y)^2`` per row; infinite where that is too large for a number."""
    with np.errstate(over="ignore"):
        return np.asarray((f - y) ** 2)


def pinball_error(y: np.ndarray, f: np.ndarray, q: float) -> np.ndarray:
    """Return the quantile loss at q per row, ``max(q (y - f), (q - 1) (y - f))``.

    Examples
    --------
    >>> pinball_error(np.array([1.0, 1.0]), np.array([0.0, 2.0]), 0.75).tolist()
    [0.75, 0.25]
    """
    gap = y - f
    return np.asarray(np.maximum(q * gap, (q - 1) * gap))


def true_probability(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return the probability of the true class, per row."""
    rows = np.arange(len(y))
    codes = y.astype(int)
    return f[rows, codes]


def symmetric_percentage_error(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return ``2 |f - y| / (|f| + |y|)``, from 0 to 2; its mean is SMAPE.

    NOTE[DIFF]: a row with f = y = 0, where the definition divides 0 by 0, counts 0.

    Examples
    --------
    >>> symmetric_percentage_error(np.array([1.0, 0.0]), np.array([3.0, 0.0])).tolist()
    [1.0, 0.0]
    """
    size = np.abs(f) + np.abs(y)
    divisor = np.where(size > 0, size, 1.0)
    return 2.0 * np.abs(f - y) / divisor


def brier_loss(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return the Brier loss per row, ``sum_c (p_c - 1[y = c])^2``.

    Source: Brier (1950), Monthly Weather Review 78, 1-3: the original form, over all classes.

    Examples
    --------
    >>> brier_loss(np.array([1]), np.array([[0.25, 0.75]])).tolist()
    [0.125]
    """
    # one copy, in place: of many classes it is large
    gaps = f.copy()
    gaps[np.arange(len(y)), y.astype(int)] -= 1
    np.square(gaps, out=gaps)
    return gaps.sum(axis=1)


def row_loss(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return the squared error of ``(n,)`` predictions, the Brier loss of ``(n, C)`` ones."""
    if f.ndim == 1:
        return squared_error(y, f)
    return brier_loss(y, f)


def summary_score(y: np.ndarray, f: np.ndarray, unit: float = 1.0) -> tuple[str, float]:
    """Return the name and the value of the score of F that the summary prints.

    Root mean squared error for regression, the mean Brier loss of classes: the metric that the
    report has first. NaN for no rows.

    Parameters
    ----------
    y, f : ndarray
    unit : float
        Length of 1 of the scaled target in the target's own unit, the unit of the error.

    Examples
    --------
    >>> summary_score(np.array([0.0, 1.0]), np.array([0.5, 0.5]), unit=10.0)
    ('rmse', 5.0)
    """
    is_regression = f.ndim == 1
    name = "rmse" if is_regression else "brier"
    if not len(y):
        return name, float("nan")
    if is_regression:
        mean_square = squared_error(y, f).mean()
        return name, unit * float(np.sqrt(mean_square))
    return name, float(brier_loss(y, f).mean())
