"""T, a strong cross-fitted ensemble fitted on the training rows.

It judges labels (agreement filter) and where F could be better (rule ``reducible``). Rows it
was fitted on are always predicted out of fold.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from amlb_ext.core.config import AgreementConfig
from amlb_ext.hardening.baseline import forests
from amlb_ext.hardening.baseline.estimator import (
    CvSplits,
    class_probabilities,
    cross_folds,
    fill_missing,
)

#: Rows that a tree of a forest is fitted on at most; all rows have their turn in other trees.
MOST_PER_TREE = 20_000


class Oracle(BaseEstimator):
    """Average of gradient boosting and a random forest, cross-fitted.

    Parameters
    ----------
    n_classes : int
        C, or 0 for regression.
    seed : int
    folds : int
        Parts of the cross-fitting.

    Attributes
    ----------
    members_ : list of (estimator, estimator)
        Boosting and forest, fitted without each part in turn.
    out_of_fold_ : ndarray of shape (n,) or (n, C)
        Predictions of the training rows by models that did not see them.
    rmse_ : float
        Root mean squared error of ``out_of_fold_`` (regression, scaled target).
    """

    def __init__(self, n_classes: int, seed: int, folds: int = 3) -> None:
        self.n_classes = n_classes
        self.seed = seed
        self.folds = folds

    def fit(self, Z: np.ndarray, y: np.ndarray, parts: CvSplits | None = None) -> Oracle:
        """Fit on encoded training rows ``Z (n, d)`` with targets ``y (n,)``.

        ``parts``: positions to fit on and to predict, in place of ``folds`` random ones.
        """
        shape = (len(y), self.n_classes) if self.n_classes else (len(y),)
        self.out_of_fold_ = np.zeros(shape)
        self.members_: list[tuple[BaseEstimator, BaseEstimator]] = []
        for train, held in parts or cross_folds(y, self.n_classes, self.folds, self.seed):
            pair = self._fit_pair(Z[train], y[train])
            self.members_.append(pair)
            self.out_of_fold_[held] = self._predict_pair(pair, Z[held])
        self.rmse_: float | np.ndarray = 0.0
        if not self.n_classes:
            self.rmse_ = float(np.sqrt(((self.out_of_fold_ - y) ** 2).mean()))
        return self

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Predict rows the oracle was not fitted on: ``(n,)`` or ``(n, C)``."""
        return np.mean([self._predict_pair(pair, Z) for pair in self.members_], axis=0)

    def _fit_pair(self, Z: np.ndarray, y: np.ndarray) -> tuple[BaseEstimator, BaseEstimator]:
        boosting_class = HistGradientBoostingRegressor
        forest_class = RandomForestRegressor
        if self.n_classes:
            boosting_class = HistGradientBoostingClassifier
            forest_class = RandomForestClassifier
        boosting = boosting_class(
            max_iter=60,
            learning_rate=0.1,
            max_leaf_nodes=15,
            early_stopping=False,
            random_state=self.seed,
        )
        forest = forest_class(
            50,
            min_samples_leaf=3,
            max_features=0.4,
            max_samples=min(MOST_PER_TREE, len(y)),
            random_state=self.seed,
            n_jobs=1,
        )
        Z = fill_missing(Z)
        return boosting.fit(Z, y), forest.fit(Z, y)

    def _predict_pair(self, pair: tuple[BaseEstimator, BaseEstimator], Z: np.ndarray) -> np.ndarray:
        Z = fill_missing(Z)
        if self.n_classes:
            first, second = (class_probabilities(model, Z, self.n_classes) for model in pair)
        else:
            first, second = (forests.predict(model, Z) for model in pair)
        return (first + second) / 2


def check_labels(
    oracle: Oracle, predicted: np.ndarray, y: np.ndarray, config: AgreementConfig
) -> tuple[np.ndarray, np.ndarray]:
    """Return how strongly the oracle supports each label, and whether that suffices.

    Regression: minus ``|T(x) - y|`` in oracle RMSEs, at least ``-tolerance``.
    Classification: the oracle's probability of the label, at least ``min_probability``.
    Several targets, ``(n, k)``: each by its own oracle.

    Parameters
    ----------
    oracle : Oracle
    predicted : ndarray of shape (n,) or (n, C)
        T's predictions of the rows.
    y : ndarray of shape (n,)
        The labels the rows carry.
    config : AgreementConfig

    Returns
    -------
    support : ndarray of shape (n,)
    agrees : ndarray of shape (n,), bool
    """
    if oracle.n_classes:
        support = predicted[np.arange(len(y)), y.astype(int)]
        return support, support >= config.min_probability
    support = -np.abs(predicted - y) / np.maximum(oracle.rmse_, 1e-9)
    return support, support >= -config.tolerance
