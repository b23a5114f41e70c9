"""What trees cost: predictions of forests without detours, and rounds of boosting for many classes.

``forest.predict`` hands every single tree to joblib, which takes a tenth of a millisecond or more
per tree: longer than a tree itself needs for some hundred rows, and the search asks for few rows
many times. A tree's own ``predict`` looks at its input again, which takes as long as some ten rows.
Here the ``tree_`` of each tree is asked, the array form that scikit-learn documents, and the values
are added up in the same order; the result has the same bits.

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


def _is_plain_forest(model: BaseEstimator) -> bool:
    """Whether a model is a forest that predicts one target in one thread."""
    return (
        type(model) in FORESTS and model.n_jobs in (None, 1) and model.n_outputs_ == 1
    )


# Rounds and bins of boosting.


#: Columns from which on trees cost more than they find; docs/evidence/speed.md has the figures.
MANY_COLUMNS = 500


def boosting_bins(n_columns: int) -> dict[str, int]:
    """Return a setting of histogram boosting: of many columns each has a quarter of the bins.

    Examples
    --------
    >>> boosting_bins(20), boosting_bins(7200)
    ({}, {'max_bins': 63})
    """
    return {"max_bins": 63} if n_columns >= MANY_COLUMNS else {}


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


#: Leaves of a tree times classes, where these are very many: scikit-learn keeps a number for each
#: class in every node, so the oracle's forests of five parts hold 1 GB at most.
_MOST_LEAF_VALUES = 250_000


def most_leaves(n_classes: int) -> int | None:
    """Return how many leaves a tree of a forest may have; None for any number.

    Examples
    --------
    >>> most_leaves(10), most_leaves(355)
    (None, 704)
    """
    return _MOST_LEAF_VALUES // n_classes if n_classes > MOST_CLASSES else None
