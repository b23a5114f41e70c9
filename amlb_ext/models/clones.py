"""A fitted model, fitted again: its clone on other rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from amlb_ext.core.errors import HardsynthError, ModelError


def can_clone(model: Any) -> bool:
    """Whether a model has what scikit-learn's ``clone`` asks for, and can be fitted.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> can_clone(Ridge()), can_clone("predictions.csv")
    (True, False)
    """
    return hasattr(model, "get_params") and hasattr(model, "fit")


def _unfitted_copy(model: Any) -> Any:
    """Return scikit-learn's clone; where it refuses, a model made with the same parameters.

    CatBoost keeps ``cat_features`` in another form than it was given, which ``clone`` refuses.
    """
    try:
        return clone(model)
    except RuntimeError:
        return type(model)(**model.get_params())


def fit_clone(
    model: Any, X: Any, y: np.ndarray, seed: int, *, n_jobs: int | None = None
) -> Any:
    """Clone a model and fit the clone; the model is never changed.

    Parameters
    ----------
    model : estimator
    X : DataFrame or array of shape (n, d)
        The columns that the model was fitted on, see
        :func:`~amlb_ext.models.columns.select_features`.
    y : ndarray of shape (n,)
        Targets as the model knows them.
    seed : int
        Becomes every ``random_state`` in the model, those of its parts included.
    n_jobs : int, optional
        Becomes every ``n_jobs`` that the model sets; as the model has it when omitted.

    Raises
    ------
    ModelError
        The model cannot be cloned, or its clone cannot be fitted.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> X = np.arange(6.0).reshape(6, 1)
    >>> twin = fit_clone(Ridge(alpha=0).fit(X, X[:, 0]), X, -X[:, 0], seed=1)
    >>> round(float(twin.coef_[0]), 6)
    -1.0
    """
    try:
        twin = _unfitted_copy(model)
        settings = {}
        for key, value in twin.get_params().items():
            parameter = key.split("__")[-1]
            # a generator would be used up by the first clone, and is left as it is
            if parameter == "random_state" and not isinstance(
                value, np.random.Generator
            ):
                settings[key] = seed % 2**31
            # one thread is what None means, and setting it makes some models warn
            elif parameter == "n_jobs" and n_jobs is not None and value is not None:
                settings[key] = n_jobs
        if settings:
            twin.set_params(**settings)
        with warnings.catch_warnings():
            # a model that is not fitted to the end is one all the same, as F was
            warnings.simplefilter("ignore", ConvergenceWarning)
            return twin.fit(X, y)
    except HardsynthError:
        raise
    except Exception as error:
        reason = str(error).strip().split("\n")[0]
        raise ModelError(
            f"F could not be fitted again: {type(error).__name__}: {reason}"
        ) from error
