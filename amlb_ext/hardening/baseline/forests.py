"""Predictions of scikit-learn's forests without what their dispatch costs.

``forest.predict`` hands every single tree to joblib, which takes a tenth of a millisecond or more
per tree: longer than a tree itself needs for some hundred rows, and the search asks for few rows
many times. A tree's own ``predict`` looks at its input again, which takes as long as some ten rows.
Here the ``tree_`` of each tree is asked, the array form that scikit-learn documents, and the values
are added up in the same order; the result has the same bits.
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
    total: np.ndarray | float = 0.0
    # summed in the order of the trees, since another one gives other last bits
    for tree in forest.estimators_:
        values = tree.tree_.predict(X)
        total = total + values[:, columns]
    return np.asarray(total) / len(forest.estimators_)


def _is_plain_forest(model: BaseEstimator) -> bool:
    """Whether a model is a forest that predicts one target in one thread."""
    return (
        type(model) in FORESTS and model.n_jobs in (None, 1) and model.n_outputs_ == 1
    )
