"""T, a strong ensemble cross-fitted on the training rows, and what it says of labels.

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
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from amlb_ext.hardening.baseline import forests
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.baseline.forests import (
    MANY_COLUMNS,
    MOST_CLASSES,
    affordable_rounds,
    boosting_bins,
    most_leaves,
)
from amlb_ext.hardening.split import CvSplits, judged_rows

#: Rows that a tree of a forest is fitted on at most; all rows have their turn in other trees.
#: With half of them T errs 2 % more; of more rows half of the trees err alike
#: (docs/evidence/speed.md).
MOST_PER_TREE = 20_000
#: Trees of the forest, and those of a forest whose trees do not see all rows.
TREES, FEWER_TREES = 50, 25
#: A label is supported up to this distance from the oracle, in the oracle's RMSEs (regression).
LARGEST_DISTANCE = 1.5
#: ... and from this probability of it on (classes).
LEAST_PROBABILITY = 0.25
#: Boosting, where there is any, and a forest.
_Pair = tuple[BaseEstimator | None, BaseEstimator]


class Oracle(BaseEstimator):
    """Average of gradient boosting and a random forest, cross-fitted.

    Parameters
    ----------
    n_classes : int
        C, or 0 for regression.
    seed : int

    Attributes
    ----------
    members_ : list of (estimator, estimator)
        Boosting and forest, fitted without each part in turn; None for boosting of very many
        classes.
    whole_ : (estimator, estimator) or None
        Both fitted on all rows, where the parts look forward in time: a member of the oldest rows
        alone says little of new ones.
    judged_ : ndarray of int
        Positions of the training rows that some part holds out, ascending: all of them, unless the
        parts look forward in time.
    out_of_fold_ : ndarray of shape (n,) or (n, C)
        Predictions of the training rows by models that did not see them; NaN of the others.
    rmse_ : float or None
        Root mean squared error of ``out_of_fold_`` on the scaled target; None for classes.
    """

    def __init__(self, n_classes: int, seed: int) -> None:
        self.n_classes = n_classes
        self.seed = seed

    def fit(self, Z: np.ndarray, y: np.ndarray, parts: CvSplits) -> Oracle:
        """Fit on encoded training rows ``Z (n, d)`` with targets ``y (n,)``.

        ``parts`` are the positions to fit on and to predict, see
        :func:`amlb_ext.hardening.split.cross_folds`.
        """
        classes = (self.n_classes,) if self.n_classes else ()
        self.out_of_fold_ = np.full((len(y), *classes), np.nan)
        self.members_: list[_Pair] = []
        for train, held_out in parts:
            pair = self._fit_pair(Z[train], y[train])
            self.members_.append(pair)
            self.out_of_fold_[held_out] = self._predict_pair(pair, Z[held_out])
        self.judged_ = judged_rows(parts)
        self.whole_: _Pair | None = None
        if len(self.judged_) < len(y):
            self.whole_ = self._fit_pair(Z, y)
        self.rmse_: float | None = None
        if not self.n_classes:
            squared_error = (self.out_of_fold_ - y)[self.judged_] ** 2
            self.rmse_ = float(np.sqrt(squared_error.mean()))
        return self

    def without_part(self, number: int) -> Oracle:
        """Return the oracle that never saw one part of its training rows."""
        # the members are shared with this oracle, not copied
        blind = copy(self)
        blind.members_ = [self.members_[number]]
        blind.whole_ = None
        return blind

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Predict rows the oracle was not fitted on: ``(n,)`` or ``(n, C)``."""
        if self.whole_ is not None:
            return self._predict_pair(self.whole_, Z)
        first, *others = self.members_
        total = self._predict_pair(first, Z)
        for pair in others:
            total += self._predict_pair(pair, Z)
        return total / len(self.members_)

    def _fit_pair(self, Z: np.ndarray, y: np.ndarray) -> _Pair:
        Z = fill_missing(Z)
        if self.n_classes > MOST_CLASSES:
            return None, self._many_class_forest(len(y)).fit(Z, y)
        boosting_class = HistGradientBoostingRegressor
        forest_class = RandomForestRegressor
        if self.n_classes:
            boosting_class = HistGradientBoostingClassifier
            forest_class = RandomForestClassifier
        boosting = boosting_class(
            max_iter=affordable_rounds(60, self.n_classes),
            learning_rate=0.1,
            max_leaf_nodes=15,
            # stopping early would hold rows back, and a few hundred rows have none to spare
            early_stopping=False,
            random_state=self.seed,
            **boosting_bins(Z.shape[1]),
        )
        forest = forest_class(
            TREES if len(y) <= MOST_PER_TREE else FEWER_TREES,
            min_samples_leaf=3,
            max_features=0.4,
            max_samples=min(MOST_PER_TREE, len(y)),
            random_state=self.seed,
            n_jobs=1,
        )
        boosting.fit(Z, y)
        if Z.shape[1] >= MANY_COLUMNS:
            # of 7,200 columns that takes a fifteenth of the time, and T errs less
            used = _split_columns(boosting)
            if len(used):
                pick = {"indices": used, "axis": 1}
                forest = make_pipeline(
                    FunctionTransformer(np.take, kw_args=pick), forest
                )
        return boosting, forest.fit(Z, y)

    def _many_class_forest(self, n_rows: int) -> ExtraTreesClassifier:
        """Return a forest whose fit does not weigh every class at every threshold."""
        has_all_rows = n_rows <= MOST_PER_TREE
        return ExtraTreesClassifier(
            TREES if has_all_rows else FEWER_TREES,
            min_samples_leaf=3,
            max_features=1.0,
            max_leaf_nodes=most_leaves(self.n_classes),
            bootstrap=not has_all_rows,
            max_samples=None if has_all_rows else MOST_PER_TREE,
            random_state=self.seed,
            n_jobs=1,
        )

    def _predict_pair(self, pair: _Pair, Z: np.ndarray) -> np.ndarray:
        Z = fill_missing(Z)
        boosting, forest = pair
        if boosting is None:
            return forests.class_probabilities(forest, Z, self.n_classes)
        if self.n_classes:
            # a part of the training rows may lack a class, so columns are put in place
            first = forests.class_probabilities(boosting, Z, self.n_classes)
            second = forests.class_probabilities(forest, Z, self.n_classes)
        else:
            first = forests.predict(boosting, Z)
            second = forests.predict(forest, Z)
        return (first + second) / 2


def _split_columns(boosting: BaseEstimator) -> np.ndarray:
    """Return the columns that a fitted histogram boosting splits on, ascending."""
    used = []
    # scikit-learn has no public name for the trees of this model
    for trees in boosting._predictors:
        for tree in trees:
            used.append(tree.nodes["feature_idx"][tree.nodes["is_leaf"] == 0])
    return np.unique(np.concatenate(used))


def check_labels(
    t: np.ndarray, y: np.ndarray, *, rmse: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return how strongly an oracle supports each label, and whether that suffices.

    Regression: minus ``|T(x) - y|`` in oracle RMSEs, at least minus :data:`LARGEST_DISTANCE`.
    Classification: the oracle's probability of the label, at least
    :data:`LEAST_PROBABILITY`.

    Parameters
    ----------
    t : ndarray of shape (n,) or (n, C)
        The oracle's predictions of the rows.
    y : ndarray of shape (n,)
        The labels the rows carry.
    rmse : float or None
        The oracle's own error (regression); None for classes.

    Returns
    -------
    support : ndarray of shape (n,)
    agrees : ndarray of shape (n,), bool

    Examples
    --------
    >>> check_labels(np.array([0.3]), np.array([0.5]), rmse=0.1)
    (array([-2.]), array([False]))
    """
    if rmse is None:
        labels = y.astype(int)
        support = t[np.arange(len(y)), labels]
        return support, support >= LEAST_PROBABILITY
    # an oracle without any error, of a constant target, must not divide by zero
    scale = max(rmse, 1e-9)
    support = -np.abs(t - y) / scale
    return support, support >= -LARGEST_DISTANCE
