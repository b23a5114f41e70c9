"""What trees cost: predictions of forests without detours, and rounds of boosting for many classes.

``forest.predict`` hands every single tree to joblib, which takes a tenth of a millisecond or more
per tree: longer than a tree itself needs for some hundred rows, and the search asks for few rows
many times. A tree's own ``predict`` looks at its input again, which takes as long as some ten rows.
Here the ``tree_`` of each tree is asked, the array form that scikit-learn documents, and the values
are added up in the same order; the result has the same bits.

Of many classes a leaf holds few, and adding up the shares of all of them is most of the time. There
the leaves of a forest that is asked again and again are kept without the classes that they lack: a
zero that is not added leaves the same bits, too.

scikit-learn's boosting grows a tree for each class and round. Of 199 classes that is 199 times the
time of a regression, in fitting and in every prediction, and with some ten rows of each class more
rounds make the probabilities no better. Measured on 2,000 rows, 10 columns and 199 classes, the
mean Brier loss on others after 15 rounds and after all of them: 1.87 and 1.82 (60 rounds of 15
leaves), .89 and .90 (100 rounds of 4 leaves); with rare classes 1.78 and 1.83, .76 and .70. A
forest has .88 and .69. So many classes get fewer rounds; 30 classes and fewer get all of 100.

Beyond :data:`MOST_CLASSES` boosting is left out of every mean of models and of the candidates: the
oracle loses 1.13 with 15 rounds, 1.09 with 60 and .88 without boosting, .93, .93 and .57 where some
classes are rare. Of 100 classes 30 rounds are as good as 60 (.65 and .64, .45 and .44).
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import Pipeline

#: These very classes: a subclass may predict in another way.
FORESTS = (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)


#: Classes from which on leaves are kept as above, and rows after which a forest is asked often.
MANY_CLASSES, MANY_ROWS = 50, 4000
#: Rows whose leaves are in memory at once.
_ROWS_AT_ONCE = 4096


def predict(model: BaseEstimator, Z: np.ndarray) -> np.ndarray:
    """Return what ``model.predict(Z)`` returns, of regression; forests faster.

    Parameters
    ----------
    model : estimator or Pipeline, fitted
    Z : ndarray of shape (n, d)

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> forest = RandomForestRegressor(3, random_state=0).fit(rng.random((20, 2)), rng.random(20))
    >>> rows = rng.random((5, 2))
    >>> bool((predict(forest, rows) == forest.predict(rows)).all())
    True
    """
    return _predict_fast(model, Z, "predict")


def predict_proba(model: BaseEstimator, Z: np.ndarray) -> np.ndarray:
    """Return what ``model.predict_proba(Z)`` returns; forests faster.

    Parameters
    ----------
    model : estimator or Pipeline, fitted
    Z : ndarray of shape (n, d)

    Returns
    -------
    ndarray of shape (n, C)
    """
    return _predict_fast(model, Z, "predict_proba")


def class_probabilities(
    model: BaseEstimator, Z: np.ndarray, n_classes: int
) -> np.ndarray:
    """Return ``(n, C)`` probabilities; classes the model never saw get 0."""
    f = np.zeros((len(Z), n_classes))
    classes = model.classes_.astype(int)
    # of a single class some models still return two columns
    if len(classes) > 1:
        f[:, classes] = predict_proba(model, Z)
    else:
        f[:, classes] = 1.0
    return f


def _predict_fast(model: BaseEstimator, Z: np.ndarray, method: str) -> np.ndarray:
    """Return what a method of the model returns, of a plain forest by its trees' arrays."""
    preprocessing = []
    forest = model
    if type(model) is Pipeline:
        *preprocessing, (_, forest) = model.steps
    wants_classes = method == "predict_proba"
    if not _is_plain_forest(forest) or is_classifier(forest) != wants_classes:
        return np.asarray(getattr(model, method)(Z))
    for _, step in preprocessing:
        Z = step.transform(Z)
    # as the trees read numbers
    X = np.ascontiguousarray(Z, dtype=np.float32)
    has_columns = X.shape[1] == forest.n_features_in_
    if not has_columns or not len(X) or not np.isfinite(X).all():
        # the forest itself refuses such rows, or reads missing values
        return np.asarray(getattr(forest, method)(Z))
    if wants_classes and forest.n_classes_ >= MANY_CLASSES:
        leaves = _kept_leaves(forest, len(X))
        if leaves is not None:
            return leaves.mean_shares(X)
    # a tree returns (n, 1) values, or (n, C) shares of its classes
    columns: int | slice = slice(forest.n_classes_) if wants_classes else 0
    first, *others = forest.estimators_
    # as a copy: scikit-learn's sum starts at 0, too
    total = 0.0 + first.tree_.predict(X)[:, columns]
    # summed in the order of the trees, since another one gives other last bits; in place, since of
    # many classes each sum is a large array
    for tree in others:
        total += tree.tree_.predict(X)[:, columns]
    return np.asarray(total) / len(forest.estimators_)


@dataclass(frozen=True, kw_only=True)
class _Leaves:
    """The shares of classes in the leaves of a forest, those that are not 0.

    Attributes
    ----------
    trees : list of estimators
    n_classes : int
    first : ndarray of shape (trees,)
        Number of each tree's root among the nodes of all trees.
    start, count : ndarray of shape (nodes,)
        Where the entries of a node begin, and how many there are.
    classes, shares : ndarray of shape (entries,)
    """

    trees: list[BaseEstimator]
    n_classes: int
    first: np.ndarray
    start: np.ndarray
    count: np.ndarray
    classes: np.ndarray
    shares: np.ndarray

    def mean_shares(self, X: np.ndarray) -> np.ndarray:
        """Return the mean over trees of the shares in the leaves of rows, ``(n, C)``."""
        blocks = []
        for begin in range(0, len(X), _ROWS_AT_ONCE):
            blocks.append(self._sums(X[begin : begin + _ROWS_AT_ONCE]))
        return np.concatenate(blocks) / len(self.trees)

    def _sums(self, X: np.ndarray) -> np.ndarray:
        reached = np.empty((len(X), len(self.trees)), dtype=np.int64)
        for number, tree in enumerate(self.trees):
            reached[:, number] = self.first[number] + tree.tree_.apply(X)
        nodes = reached.ravel()
        count = self.count[nodes]
        # each node's entries, one after the other: row by row, in the order of the trees
        before = np.cumsum(count) - count
        shift = self.start[nodes] - before
        entries = np.repeat(shift, count) + np.arange(count.sum())
        n_of_row = count.reshape(reached.shape).sum(axis=1)
        rows = np.repeat(np.arange(len(X)), n_of_row)
        cells = rows * self.n_classes + self.classes[entries]
        shape = (len(X), self.n_classes)
        sums = np.bincount(
            cells, self.shares[entries], minlength=len(X) * self.n_classes
        )
        return sums.reshape(shape)


def _find_leaves(forest: BaseEstimator) -> _Leaves:
    classes, shares, counts, sizes = [], [], [], [0]
    for tree in forest.estimators_:
        is_leaf = tree.tree_.children_left < 0
        values = tree.tree_.value[is_leaf, 0, : forest.n_classes_]
        leaf, own_classes = np.nonzero(values)
        count = np.zeros(len(is_leaf), dtype=np.int64)
        count[is_leaf] = np.bincount(leaf, minlength=len(values))
        classes.append(own_classes)
        shares.append(values[leaf, own_classes])
        counts.append(count)
        sizes.append(len(is_leaf))
    count = np.concatenate(counts)
    return _Leaves(
        trees=forest.estimators_,
        n_classes=forest.n_classes_,
        first=np.cumsum(sizes)[:-1],
        start=np.cumsum(count) - count,
        count=count,
        classes=np.concatenate(classes),
        shares=np.concatenate(shares),
    )


#: What was asked of forests of many classes: their trees, rows so far, and leaves where they pay.
_ASKED: WeakKeyDictionary[
    BaseEstimator, tuple[list[BaseEstimator], int, _Leaves | None]
] = WeakKeyDictionary()


def _kept_leaves(forest: BaseEstimator, n_rows: int) -> _Leaves | None:
    """Return the leaves of a forest that is asked often; None where finding them costs more."""
    trees, n_asked, leaves = _ASKED.get(forest, (None, 0, None))
    # a forest that was fitted again has another list
    if trees is not forest.estimators_:
        n_asked, leaves = 0, None
    if leaves is None and n_asked + n_rows > MANY_ROWS:
        leaves = _find_leaves(forest)
    _ASKED[forest] = (forest.estimators_, n_asked + n_rows, leaves)
    return leaves


def _is_plain_forest(model: BaseEstimator) -> bool:
    """Whether a model is a forest that predicts one target in one thread."""
    return (
        type(model) in FORESTS and model.n_jobs in (None, 1) and model.n_outputs_ == 1
    )


# Rounds of boosting.


#: Trees of one boosting model, over all of its classes.
MOST_TREES = 3000
#: Rounds that it has all the same.
FEWEST_ROUNDS = 10
#: Classes beyond which boosting only makes a mean of models worse, and kappa is not calibrated.
MOST_CLASSES = 150


def affordable_rounds(rounds: int, n_classes: int) -> int:
    """Return the rounds of boosting, fewer where there are many classes.

    Parameters
    ----------
    rounds : int
        As wanted.
    n_classes : int
        C; 0 for regression.

    Examples
    --------
    >>> [affordable_rounds(100, n_classes) for n_classes in (0, 2, 30, 100, 199, 1000)]
    [100, 100, 100, 30, 15, 10]
    """
    if n_classes <= 2:
        return rounds
    return min(rounds, max(FEWEST_ROUNDS, MOST_TREES // n_classes))
