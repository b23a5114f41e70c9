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
FORESTS = (ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor)


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
    return _ask(model, Z, "predict")


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
    return _ask(model, Z, "predict_proba")


def _ask(model: BaseEstimator, Z: np.ndarray, method: str) -> np.ndarray:
    last = model.steps[-1][1] if type(model) is Pipeline else model
    plain = type(last) in FORESTS and last.n_jobs in (None, 1) and last.n_outputs_ == 1
    if not plain or is_classifier(last) != (method == "predict_proba"):
        return np.asarray(getattr(model, method)(Z))
    if last is not model:
        for _, step in model.steps[:-1]:
            Z = step.transform(Z)
    X = np.ascontiguousarray(Z, dtype=np.float32)
    if X.shape[1] != last.n_features_in_ or not len(X) or not np.isfinite(X).all():
        return np.asarray(getattr(last, method)(Z))  # which refuses it, or reads missing values
    total: np.ndarray | float = 0.0
    of = (slice(None), 0) if method == "predict" else (slice(None), slice(last.n_classes_))
    for tree in last.estimators_:
        total = total + tree.tree_.predict(X)[of]
    return np.asarray(total) / len(last.estimators_)
