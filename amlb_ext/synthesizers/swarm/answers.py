"""Who answers made rows, what is right of them, and whether real rows are where they stand.

Notation
--------
X : (n, d) rows;  y : (n,) their own labels
T : teacher, (n,) predictions or (n, C) probabilities
yhat_m : label (class code or number) that taker m predicts
s : (M, n) performance of M takers on n rows, within 0..1; 1 is a row answered right
S(x) : whether x is supported, that is as near to a real row as real rows are to each other

Labels
------
literal : the row's own label, as in the paper; s = [yhat = y]
honest : s = 1 - (max_c T - T(yhat)), the regret under T alone. With the identity
    1 - T(yhat) = (1 - max_c T) + (max_c T - T(yhat)), noise + excess, it is what is left of
    difficulty when noise that no model could mend is taken off.
Regression: s = 1 - (yhat - right)^2 / variance of real targets, at least 0, with y or T right.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    NearestNeighbors,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from amlb_ext.stats.weighted_mean import weighted_mean_interval
from amlb_ext.synthesizers.prep import TablePrep

Labels = Literal["honest", "literal"]
#: Real rows among which the nearest is sought, and the share of real rows that counts as supported.
REFERENCE_ROWS, SUPPORTED_SHARE = 2000, 0.95


def best_labels(t: np.ndarray) -> np.ndarray:
    """Return the labels that predictions say are most likely: class codes, or the numbers."""
    return t if t.ndim == 1 else t.argmax(axis=1)


def performance(
    predicted: np.ndarray,
    labels: Labels,
    *,
    y: np.ndarray,
    t: np.ndarray,
    variance: float = 1.0,
) -> np.ndarray:
    """Return s, how well each taker does on each row.

    Parameters
    ----------
    predicted : ndarray of shape (M, n)
        Class codes or numbers.
    labels : {'honest', 'literal'}
    y : ndarray of shape (n,)
        The rows' own labels.
    t : ndarray of shape (n,) or (n, C)
        The teacher's predictions.
    variance : float
        Of the target of real rows, for a regression: an error as large as the target's spread
        counts as a wrong class does.

    Returns
    -------
    ndarray of shape (M, n)
        Within 0..1.

    Examples
    --------
    >>> t = np.array([[0.6, 0.4], [0.1, 0.9]])
    >>> yhat = np.array([[1, 1]])
    >>> performance(yhat, "honest", y=np.array([1, 0]), t=t).round(6).tolist()
    [[0.8, 1.0]]
    >>> performance(yhat, "literal", y=np.array([1, 0]), t=t).tolist()
    [[1.0, 0.0]]
    """
    if t.ndim == 1:
        right = y if labels == "literal" else t
        return np.clip(1 - (predicted - right) ** 2 / variance, 0.0, 1.0)
    if labels == "literal":
        return (predicted == y).astype(float)
    of_prediction = t[np.arange(len(t)), predicted.astype(int)]
    return 1 - (t.max(axis=1) - of_prediction)


def own_performance(
    predicted: np.ndarray, y: np.ndarray, n_classes: int, variance: float = 1.0
) -> np.ndarray:
    """Return s by the rows' own labels, ``(M, n)``; of a regression C is 0."""
    # literal labels ask nothing of the teacher but what kind of target it is
    t = np.zeros((len(y), n_classes)) if n_classes else np.zeros(len(y))
    return performance(predicted, "literal", y=y, t=t, variance=variance)


def mendable(
    s: np.ndarray, auditor: np.ndarray, weights: np.ndarray | None = None
) -> tuple[float, float]:
    """Return by how much an auditor beats the best taker on real rows, and its standard error.

    Above zero there is something that a better model could mend.

    Parameters
    ----------
    s : ndarray of shape (M, r)
        Performance of the takers.
    auditor : ndarray of shape (r,)
        The auditor's.
    weights : ndarray of shape (r,), optional

    Examples
    --------
    >>> s = np.array([[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0]])
    >>> mendable(s, np.array([1.0, 1.0, 0.0, 1.0]))[0]
    0.25
    """
    best = int(np.average(s, axis=1, weights=weights).argmax())
    estimate = weighted_mean_interval(auditor - s[best], weights)
    return float(estimate.point), float(estimate.se)


class SupportGuard:
    """Whether rows stand where real ones do: nearest real row within the .95 quantile.

    The quantile is that of the distances from each real row to the nearest other one. Categories
    lie one apart, numbers are normal scores.

    Parameters
    ----------
    prep : TablePrep
        Fitted on rows that have every code of those that are asked about.
    X : ndarray of shape (r, d)
        Real rows; at most :data:`REFERENCE_ROWS`, the first, are kept.

    Attributes
    ----------
    rows : int
        Real rows that were kept.
    radius : float
    copy_radius : float
        Only one real row in twenty is nearer to another one.
    """

    def __init__(self, prep: TablePrep, X: np.ndarray) -> None:
        self.prep = prep
        real = self.metric(X[:REFERENCE_ROWS])
        self.rows = len(real)
        # brute force: one-hot columns are too many for a tree, and few rows are asked at once
        self._search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(real)
        distance, _ = self._search.kneighbors()
        self.radius = float(np.quantile(distance[:, 0], SUPPORTED_SHARE))
        self.copy_radius = float(np.quantile(distance[:, 0], 1 - SUPPORTED_SHARE))

    def nearest(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return whether each row is supported, ``(n,)``, and its nearest real row, ``(n,)``."""
        distance, position = self._search.kneighbors(self.metric(X))
        # rows that repeat make a radius of 0, which rounding must not lose
        return distance[:, 0] <= self.radius + 1e-9, position[:, 0]

    def metric(self, X: np.ndarray) -> np.ndarray:
        """Return rows as vectors in which distance is meant, ``(n, e)``."""
        return self.prep.metric_rows(X).toarray()


class QuickTakers:
    """A line, neighbours, a tree and boosting: other families than the model that is tested.

    Parameters
    ----------
    inputs : ndarray of shape (n, e)
        Rows in a metric, see :meth:`SupportGuard.metric`.
    y : ndarray of shape (n,)
    n_classes : int
        C, or 0 for a regression.
    seed : int
    """

    def __init__(
        self, inputs: np.ndarray, y: np.ndarray, n_classes: int, seed: int
    ) -> None:
        neighbours = {"n_neighbors": min(25, len(y))}
        tree = {"max_depth": 8, "min_samples_leaf": 5, "random_state": seed}
        boosting = {
            "max_iter": 40,
            "max_leaf_nodes": 4,
            "learning_rate": 0.05,
            "early_stopping": False,
            "random_state": seed,
        }
        models: list[Any] = [
            Ridge(),
            KNeighborsRegressor(**neighbours),
            DecisionTreeRegressor(**tree),
            HistGradientBoostingRegressor(**boosting),
        ]
        if n_classes:
            models = [
                LogisticRegression(max_iter=200),
                KNeighborsClassifier(**neighbours),
                DecisionTreeClassifier(**tree),
                HistGradientBoostingClassifier(**boosting),
            ]
        self.models = [model.fit(inputs, y) for model in models]

    def predict(self, inputs: np.ndarray) -> np.ndarray:
        """Return each taker's labels, ``(4, n)``."""
        return np.array([model.predict(inputs) for model in self.models])
