"""Who says what is right of a made row, and whether real rows are where it stands.

Notation
--------
Z : (n, d) encoded rows;  y : (n,) the generator's own labels
T : teacher, (n,) predictions or (n, C) probabilities, fitted on rows that neither the generators
    nor the takers saw
yhat_m : label (class code or number) that taker m predicts
s : (M, n) performance of M takers on n rows, within 0..1; 1 is a row answered right
S(x) : whether x is supported, that is as near to a real row as real rows are to each other

Labels
------
own : the generator's own label, as in the paper; s = [yhat = y]
hard : the teacher's class; s = [yhat = argmax T]
soft : s = T(yhat), the chance of being right if T is the truth
excess : s = 1 - (max_c T - T(yhat)), the regret alone. With the identity
    1 - T(yhat) = (1 - max_c T) + (max_c T - T(yhat)), noise + excess, it is what is left of
    difficulty when noise that no model could mend is taken off.
Regression: s = 1 - (y - yhat)^2 on the scaled target for ``own``, and 1 - (T - yhat)^2 for the
others, which coincide.
"""

from __future__ import annotations

from typing import Literal, Protocol, get_args

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.encode import Encoder
from amlb_ext.hardening.oracle import Oracle
from amlb_ext.hardening.split import cross_folds

Labels = Literal["own", "hard", "soft", "excess"]
#: Real rows among which the nearest is sought, and the share of real rows that counts as supported.
REFERENCE_ROWS, SUPPORTED_SHARE = 2000, 0.95
#: A third of a number's range is as far as another category.
NUMBER_WEIGHT = 3.0
#: Parts of the cross-fit behind teacher and auditor; their mean predicts.
TEACHER_PARTS = 3


class Teacher(Protocol):
    """Who says what is right of a row: an ensemble, or the truth where it is known."""

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Return expected targets, ``(n,)``, or class probabilities, ``(n, C)``."""


def check_labels_name(name: str) -> Labels:
    """Return the name of a kind of labels.

    Raises
    ------
    ConfigError
        There is no such kind.
    """
    kinds = get_args(Labels)
    if name not in kinds:
        raise ConfigError(f"no labels {name!r}", suggest_nearest(name, kinds))
    return name  # type: ignore[return-value]


def fit_teacher(Z: np.ndarray, y: np.ndarray, n_classes: int, seed: int) -> Oracle:
    """Fit the ensemble that labels, or audits, made rows.

    Parameters
    ----------
    Z, y : ndarray of shape (n, d), (n,)
        Encoded rows and targets of its role alone.
    n_classes : int
        C, or 0 for regression.
    seed : int
    """
    parts = cross_folds(y, n_classes, TEACHER_PARTS, seed)
    return Oracle(n_classes, seed).fit(Z, y, parts)


def best_labels(t: np.ndarray) -> np.ndarray:
    """Return the labels that predictions say are most likely: class codes, or the numbers."""
    return t if t.ndim == 1 else t.argmax(axis=1)


def performance(
    predicted: np.ndarray, labels: Labels, *, y: np.ndarray, t: np.ndarray
) -> np.ndarray:
    """Return s, how well each taker does on each row.

    Parameters
    ----------
    predicted : ndarray of shape (M, n)
        Class codes or scaled numbers.
    labels : {'own', 'hard', 'soft', 'excess'}
    y : ndarray of shape (n,)
        The rows' own labels.
    t : ndarray of shape (n,) or (n, C)
        The teacher's predictions.

    Returns
    -------
    ndarray of shape (M, n)
        Within 0..1.

    Examples
    --------
    >>> t = np.array([[0.6, 0.4], [0.1, 0.9]])
    >>> yhat = np.array([[1, 1]])
    >>> performance(yhat, "excess", y=np.array([1, 0]), t=t).round(6).tolist()
    [[0.8, 1.0]]
    >>> performance(yhat, "own", y=np.array([1, 0]), t=t).tolist()
    [[1.0, 0.0]]
    """
    if t.ndim == 1:
        right = y if labels == "own" else t
        return np.clip(1 - (predicted - right) ** 2, 0.0, 1.0)
    if labels == "own":
        return (predicted == y).astype(float)
    if labels == "hard":
        return (predicted == t.argmax(axis=1)).astype(float)
    of_prediction = t[np.arange(len(t)), predicted.astype(int)]
    if labels == "soft":
        return of_prediction
    return 1 - (t.max(axis=1) - of_prediction)


class SupportGuard:
    """Whether rows stand where real ones do: nearest real row within the .95 quantile.

    The quantile is that of the distances from each real row to the nearest other one. Categories
    lie one apart, a number's range three.

    Parameters
    ----------
    encoder : Encoder
    Z : ndarray of shape (n, d)
        Real rows; at most :data:`REFERENCE_ROWS`, the first, are kept.

    Attributes
    ----------
    rows : int
        Real rows that were kept.
    radius : float
    copy_radius : float
        Only one real row in twenty is nearer to another one.
    """

    def __init__(self, encoder: Encoder, Z: np.ndarray) -> None:
        self.encoder = encoder
        real = self.metric(Z[:REFERENCE_ROWS])
        self.rows = len(real)
        # brute force: one-hot columns are too many for a tree, and few rows are asked at once
        self._search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(real)
        distance, _ = self._search.kneighbors()
        self.radius = float(np.quantile(distance[:, 0], SUPPORTED_SHARE))
        self.copy_radius = float(np.quantile(distance[:, 0], 1 - SUPPORTED_SHARE))

    def nearest(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return whether each row is supported, ``(n,)``, and its nearest real row, ``(n,)``."""
        distance, position = self._search.kneighbors(self.metric(Z))
        # rows that repeat make a radius of 0, which rounding must not lose
        return distance[:, 0] <= self.radius + 1e-9, position[:, 0]

    def metric(self, Z: np.ndarray) -> np.ndarray:
        """Return encoded rows as vectors in which distance is meant, ``(n, e)``."""
        encoded = fill_missing(self.encoder.metric(Z))
        n_one_hot = sum(self.encoder.cards_)
        encoded[:, n_one_hot:] *= NUMBER_WEIGHT
        return encoded
