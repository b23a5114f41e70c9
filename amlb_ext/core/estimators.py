"""Models that a file of somebody else may name: an exact list of classes and of parameters.

A suite names classes by import path, with parameters. Whoever wrote it could name any class of any
package, or a parameter such as ``memory``, a folder out of which joblib loads pickles. What is on
this list computes from the rows it is given, and does nothing else.
"""

from __future__ import annotations

import importlib
import inspect
import numbers
import re
from collections.abc import Mapping
from typing import Any

from amlb_ext.core.errors import SuiteError

#: Public modules of scikit-learn whose classifiers and regressors may be named.
_MODULES = (
    "calibration",
    "cross_decomposition",
    "discriminant_analysis",
    "dummy",
    "ensemble",
    "gaussian_process",
    "isotonic",
    "kernel_ridge",
    "linear_model",
    "naive_bayes",
    "neighbors",
    "neural_network",
    "svm",
    "tree",
)
_XGBOOST = ("XGBClassifier", "XGBRFClassifier", "XGBRFRegressor", "XGBRegressor")
#: XGBoost's parameters that are a word; it does not say which words it allows.
_XGBOOST_WORDS = (
    "booster",
    "device",
    "eval_metric",
    "grow_policy",
    "importance_type",
    "multi_strategy",
    "objective",
    "sampling_method",
    "tree_method",
)


def find_unlisted(path: str, params: Mapping[str, Any]) -> str:
    """Return what of a model is not on the list; empty where all of it is.

    Nothing but scikit-learn is imported to know it, and nothing is called.

    Parameters
    ----------
    path : str
        Import path of a class.
    params : mapping of str to object

    Examples
    --------
    >>> find_unlisted("sklearn.linear_model.Ridge", {"alpha": 2.0, "solver": "cholesky"})
    ''
    >>> find_unlisted("sklearn.linear_model.Ridge", {"solver": "kept/solver"})
    "the parameter solver='kept/solver' of sklearn.linear_model.Ridge"
    >>> find_unlisted("os.abort", {})
    'the class os.abort'
    """
    package, _, name = path.partition(".")
    by_xgboost = package == "xgboost" and name in _XGBOOST
    found = None if by_xgboost else _listed_class(path)
    if found is None and not by_xgboost:
        return f"the class {path}"
    if not isinstance(params, Mapping):
        return f"the parameters of {path}, {params!r},"
    for key, value in params.items():
        allowed = _is_word(key, value) if by_xgboost else _is_listed_value(found, key, value)
        if not (allowed or (by_xgboost and _is_number(value))):
            return f"the parameter {key}={value!r} of {path}"
    return ""


def check_is_listed(where: str, path: str, params: Mapping[str, Any]) -> None:
    """Raise unless a model that a suite names is on the list.

    Parameters
    ----------
    where : str
        What names it, for the error.
    path : str
    params : mapping of str to object

    Raises
    ------
    SuiteError
    """
    what = find_unlisted(path, params)
    if what:
        raise SuiteError(
            f"{where} names {what}, which is not on the list of what a suite may name; nothing of "
            "it was run",
            "add --trust-suite only if the suite is your own, since whatever it names then runs",
        )


def _listed_class(path: str) -> Any:
    package, _, rest = path.partition(".")
    module, _, name = rest.partition(".")
    if package != "sklearn" or module not in _MODULES:
        return None
    home = importlib.import_module(f"sklearn.{module}")
    found = vars(home).get(name) if name in getattr(home, "__all__", [name]) else None
    is_own = inspect.isclass(found) and found.__module__.split(".")[:2] == ["sklearn", module]
    return found if is_own and is_estimator(found) else None


def is_estimator(found: Any) -> bool:
    """Whether an object is a class with the methods of an estimator; nothing is called.

    Examples
    --------
    >>> import os
    >>> is_estimator(os.abort), is_estimator(dict)
    (False, False)
    """
    methods = ("fit", "predict", "get_params", "set_params")
    return inspect.isclass(found) and all(callable(getattr(found, m, None)) for m in methods)


def _is_word(key: Any, value: Any) -> bool:
    """Whether a parameter of XGBoost is one of its words."""
    plain = isinstance(value, str) and re.fullmatch(r"[a-z0-9_:-]{1,40}", value)
    return bool(plain) and key in _XGBOOST_WORDS


def _is_listed_value(found: Any, key: Any, value: Any) -> bool:
    known = getattr(found, "_parameter_constraints", {})
    if key not in known:
        return False
    if isinstance(value, str):
        options = [getattr(one, "options", ()) for one in _alternatives(known[key])]
        return any(value in those for those in options)
    if isinstance(value, list | tuple):
        return all(_is_number(item) for item in value)
    if isinstance(value, Mapping):  # the weights of classes
        return all(isinstance(k, str | int) and _is_number(v) for k, v in value.items())
    return _is_number(value)


def _alternatives(constraint: Any) -> list[Any]:
    return constraint if isinstance(constraint, list) else []


def _is_number(value: Any) -> bool:
    """Whether a value is a number, a truth value or nothing."""
    return value is None or isinstance(value, numbers.Number)
