"""T, a strong cross-fitted ensemble fitted on the training rows, and what it says of labels.

It judges labels (agreement filter) and where F could be better (rule ``reducible``). Rows it
was fitted on are always predicted out of fold.

Notation
--------
Z, y : (n, d) encoded rows, (n,) the values of one target
t : (n,) predictions of T, or (n, C) class probabilities
"""

from __future__ import annotations

from copy import copy

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.isotonic import IsotonicRegression

from amlb_ext.core.config import AgreementConfig
from amlb_ext.hardening.baseline import forests
from amlb_ext.hardening.baseline.estimator import (
    CvSplits,
    class_probabilities,
    cross_folds,
    fill_missing,
)
from amlb_ext.hardening.encode import Encoder
from amlb_ext.hardening.hardness import BadRule

#: Rows that a tree of a forest is fitted on at most; all rows have their turn in other trees.
MOST_PER_TREE = 20_000
#: A numeric column with more distinct values than this makes its rows no cells of a table.
MOST_VALUES = 10
#: Share of labels that shall be right among those the oracle vouches for.
RIGHT_SHARE = 0.8


class Oracle(BaseEstimator):
    """Average of gradient boosting and a random forest, cross-fitted.

    Parameters
    ----------
    n_classes : int
        C, or 0 for regression.
    seed : int
    folds : int
        CvSplits of the cross-fitting.

    Attributes
    ----------
    members_ : list of (estimator, estimator)
        Boosting and forest, fitted without each part in turn.
    out_of_fold_ : ndarray of shape (n,) or (n, C)
        Predictions of the training rows by models that did not see them.
    rmse_ : float or None
        Root mean squared error of ``out_of_fold_`` on the scaled target; None for classes.
    """

    def __init__(self, n_classes: int, seed: int, folds: int = 3) -> None:
        self.n_classes = n_classes
        self.seed = seed
        self.folds = folds

    def fit(
        self, Z: np.ndarray, y: np.ndarray, parts: CvSplits | None = None
    ) -> Oracle:
        """Fit on encoded training rows ``Z (n, d)`` with targets ``y (n,)``.

        ``parts``: positions to fit on and to predict, in place of ``folds`` random ones.
        """
        shape = (len(y), self.n_classes) if self.n_classes else (len(y),)
        self.out_of_fold_ = np.zeros(shape)
        self.members_: list[tuple[BaseEstimator, BaseEstimator]] = []
        for train, held in parts or cross_folds(
            y, self.n_classes, self.folds, self.seed
        ):
            pair = self._fit_pair(Z[train], y[train])
            self.members_.append(pair)
            self.out_of_fold_[held] = self._predict_pair(pair, Z[held])
        self.rmse_: float | None = None
        if not self.n_classes:
            self.rmse_ = float(np.sqrt(((self.out_of_fold_ - y) ** 2).mean()))
        return self

    def without_part(self, number: int) -> Oracle:
        """Return the oracle that never saw one part of its training rows."""
        blind = copy(self)
        blind.members_ = [self.members_[number]]
        return blind

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Predict rows the oracle was not fitted on: ``(n,)`` or ``(n, C)``."""
        return np.mean([self._predict_pair(pair, Z) for pair in self.members_], axis=0)

    def _fit_pair(
        self, Z: np.ndarray, y: np.ndarray
    ) -> tuple[BaseEstimator, BaseEstimator]:
        boosting_class = HistGradientBoostingRegressor
        forest_class = RandomForestRegressor
        if self.n_classes:
            boosting_class = HistGradientBoostingClassifier
            forest_class = RandomForestClassifier
        boosting = boosting_class(
            max_iter=60,
            learning_rate=0.1,
            max_leaf_nodes=15,
            # stopping early would hold rows back, and a few hundred rows have none to spare
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

    def _predict_pair(
        self, pair: tuple[BaseEstimator, BaseEstimator], Z: np.ndarray
    ) -> np.ndarray:
        Z = fill_missing(Z)
        boosting, forest = pair
        if self.n_classes:
            # a part of the training rows may lack a class, so columns are put in place
            first = class_probabilities(boosting, Z, self.n_classes)
            second = class_probabilities(forest, Z, self.n_classes)
        else:
            first = forests.predict(boosting, Z)
            second = forests.predict(forest, Z)
        return (first + second) / 2


def check_labels(
    t: np.ndarray, y: np.ndarray, config: AgreementConfig, *, rmse: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return how strongly an oracle supports each label, and whether that suffices.

    Regression: minus ``|T(x) - y|`` in oracle RMSEs, at least ``-tolerance``.
    Classification: the oracle's probability of the label, at least ``min_probability``.

    Parameters
    ----------
    t : ndarray of shape (n,) or (n, C)
        The oracle's predictions of the rows.
    y : ndarray of shape (n,)
        The labels the rows carry.
    config : AgreementConfig
    rmse : float or None
        The oracle's own error (regression); None for classes.

    Returns
    -------
    support : ndarray of shape (n,)
    agrees : ndarray of shape (n,), bool

    Examples
    --------
    >>> check_labels(np.array([0.3]), np.array([0.5]), AgreementConfig(tolerance=2.5), rmse=0.1)
    (array([-2.]), array([ True]))
    """
    if rmse is None:
        support = t[np.arange(len(y)), y.astype(int)]
        return support, support >= config.min_probability
    # an oracle without any error, of a constant target, must not divide by zero
    support = -np.abs(t - y) / max(rmse, 1e-9)
    return support, support >= -config.tolerance


# Which labels the oracle vouches for in a table of cells.
#
# Where every column has few values, each row is a cell of the table. No small step leads from one
# cell to another, so a made row cannot inherit its label from a neighbour: it rests on the oracle
# alone, and it is asked about just those cells where F and the label disagree. How often the oracle
# is right *there* is seen on the training rows: each is asked about with every label under which F
# would fail on it, all predictions being out of fold, and its own label says which were right.


def has_cells_only(encoder: Encoder, Z: np.ndarray) -> bool:
    """Return whether every numeric column of the encoded training rows has few values.

    Examples
    --------
    >>> import pandas as pd
    >>> from amlb_ext.core.task import Column
    >>> table = pd.DataFrame({"a": [1.0, 2.0] * 20, "b": np.arange(40.0)})
    >>> for names in ("a", "ab"):
    ...     encoder = Encoder([Column(name, "integer") for name in names]).fit(table)
    ...     has_cells_only(encoder, encoder.transform(table))
    True
    False
    """
    numeric = range(encoder.n_categorical_, Z.shape[1])
    return all(len(np.unique(Z[:, j])) <= MOST_VALUES for j in numeric)


def least_support(rule: BadRule, y: np.ndarray, f: np.ndarray, t: np.ndarray) -> float:
    """Return the support from which on the oracle's labels are right in four of five cases.

    Both where they are supported just so much (by isotonic regression) and of all that are
    supported as much or more. The latter share is Laplace's, ``(right + 1) / (asked + 2)``, so
    that one or two cases vouch for nothing.

    Parameters
    ----------
    rule : BadRule
    y : ndarray of shape (n,)
        Class codes of the training rows.
    f, t : ndarray of shape (n, C)
        Out-of-fold predictions of F and of the oracle.

    Returns
    -------
    float
        Infinite where no support suffices.

    Examples
    --------
    >>> y, f = np.array([1, 1, 1, 0]), np.tile([0.9, 0.1], (4, 1))
    >>> t = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]])
    >>> rule = BadRule(rule="wrong", threshold=0.5, alpha=0.5, reason="given")
    >>> least_support(rule, y, f, t)
    0.7
    """
    supports = []
    hits = []
    for label in range(t.shape[1]):
        asked = np.full(len(y), label)
        fails = rule.select(rule.hardness(asked[:, None], f[:, None], t[:, None]))
        supports.append(t[fails, label])
        hits.append(y[fails] == label)
    support = np.concatenate(supports)
    hit = np.concatenate(hits)
    if not hit.any():
        return np.inf
    isotonic = IsotonicRegression(y_min=0.0, y_max=1.0).fit(support, hit)
    order = np.argsort(-support, kind="stable")
    asked_so_far = np.arange(1, len(order) + 1)
    right_so_far = np.cumsum(hit[order])
    suffices = (right_so_far + 1) / (asked_so_far + 2) >= RIGHT_SHARE
    suffices &= isotonic.predict(support)[order] >= RIGHT_SHARE
    # of equal supports all are in or none
    suffices[:-1] &= np.diff(support[order]) < 0
    return float(support[order][suffices].min(initial=np.inf))
