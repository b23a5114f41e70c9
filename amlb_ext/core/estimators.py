"""Models that a foreign file may name: an exact list of classes and of parameters.

A suite names classes by import path, with parameters. Its author could name any class of any
package, or a parameter such as ``memory``, a folder from which joblib loads pickles. The models on
this list compute from their rows and do nothing else.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import numbers
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from amlb_ext.core.assets import asset_path
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
#: Parameters of XGBoost whose value is a word; the library does not list the words it allows.
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
    """Return the first part of a model that is not on the list; empty if all of it is.

    Only scikit-learn is imported for this, and nothing is called.

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
    is_allowed = _find_rule(path)
    if is_allowed is None:
        return f"the class {path}"
    if not isinstance(params, Mapping):
        return f"the parameters of {path}, {params!r},"
    for key, value in params.items():
        if not is_allowed(key, value):
            return f"the parameter {key}={value!r} of {path}"
    return ""


def _find_rule(path: str) -> Callable[[Any, Any], bool] | None:
    """Return what says whether a parameter may have a value; None of a class not on the list."""
    if path in PACKAGED_MODELS:
        return lambda key, value: key in PACKAGED_MODELS[path] and _is_number(value)
    package, _, name = path.partition(".")
    if package == "xgboost" and name in _XGBOOST:
        return lambda key, value: _is_number(value) or is_xgboost_word(key, value)
    sklearn_class = _find_listed_class(path)
    if sklearn_class is None:
        return None
    return functools.partial(_is_listed_value, sklearn_class)


def check_is_listed(where: str, path: str, params: Mapping[str, Any]) -> None:
    """Raise unless a model that a suite names is on the list.

    Parameters
    ----------
    where : str
        The file or setting that names the model, for the error.
    path : str
    params : mapping of str to object

    Raises
    ------
    SuiteError
    """
    unlisted = find_unlisted(path, params)
    if unlisted:
        raise SuiteError(
            f"{where} names {unlisted}, which is not on the list of what a suite may name; nothing "
            "of it was run",
            "add --trust-suite only if the suite is your own, since whatever it names then runs",
        )


def _find_listed_class(path: str) -> Any:
    """Return the public class of scikit-learn at that path, or None."""
    package, _, rest = path.partition(".")
    module_name, _, name = rest.partition(".")
    if package != "sklearn" or module_name not in _MODULES:
        return None
    module = importlib.import_module(f"sklearn.{module_name}")
    if name not in getattr(module, "__all__", [name]):
        return None
    value = vars(module).get(name)
    if not is_estimator(value):
        return None
    # A module also holds names that it imports from elsewhere.
    defining_package = value.__module__.split(".")[:2]
    return value if defining_package == ["sklearn", module_name] else None


def is_estimator(value: Any) -> bool:
    """Whether an object is a class with the methods of an estimator; nothing is called.

    Examples
    --------
    >>> import os
    >>> is_estimator(os.abort), is_estimator(dict)
    (False, False)
    """
    methods = ("fit", "predict", "get_params", "set_params")
    return inspect.isclass(value) and all(
        callable(getattr(value, method, None)) for method in methods
    )


def is_xgboost_word(key: Any, value: Any) -> bool:
    """Whether a parameter of XGBoost may be this word."""
    if not isinstance(value, str) or key not in _XGBOOST_WORDS:
        return False
    return re.fullmatch(r"[a-z0-9_:-]{1,40}", value) is not None


def _is_listed_value(sklearn_class: Any, key: Any, value: Any) -> bool:
    """Whether a value is a number, a list of numbers, or a word that scikit-learn names itself."""
    constraints = getattr(sklearn_class, "_parameter_constraints", {})
    if key not in constraints:
        return False
    if isinstance(value, str):
        return value in declared_words(sklearn_class, key)
    if isinstance(value, list | tuple):
        return all(map(_is_number, value))
    if isinstance(value, Mapping):
        # the weights of classes
        are_labels = all(isinstance(label, str | int) for label in value)
        return are_labels and all(map(_is_number, value.values()))
    return _is_number(value)


def declared_words(estimator: type, key: str) -> set[Any]:
    """Return the words that a parameter may be; scikit-learn keeps them as StrOptions.

    Examples
    --------
    >>> from sklearn.svm import SVR
    >>> sorted(declared_words(SVR, "gamma"))
    ['auto', 'scale']
    """
    constraint = getattr(estimator, "_parameter_constraints", {}).get(key)
    words: set[Any] = set()
    # Otherwise it is the text "no_validation".
    if isinstance(constraint, list):
        for alternative in constraint:
            words |= set(getattr(alternative, "options", ()))
    return words


def _is_number(value: Any) -> bool:
    """Whether a value is a number, a truth value or nothing."""
    return value is None or isinstance(value, numbers.Number)


# Models that hardsynth brings itself, named as AMLB finds them in a suite: below extensions.
#
# A suite holds a copy of their code, which AMLB runs. Here the code of this installation runs,
# under the same name, whatever a folder called extensions holds.


#: Import path of each model that a suite may name, with its parameters, which are numbers.
PACKAGED_MODELS: Mapping[str, tuple[str, ...]] = {
    "extensions.WeirdReader.readers.OutlineReader": ("is_hard", "grid"),
}


def packaged_folder(path: str) -> str:
    """Return the folder below ``frameworks`` that holds a packaged model; empty for any other.

    Examples
    --------
    >>> packaged_folder("extensions.WeirdReader.readers.OutlineReader")
    'WeirdReader'
    >>> packaged_folder("sklearn.linear_model.Ridge")
    ''
    """
    return path.split(".")[1] if path in PACKAGED_MODELS else ""


def make_importable(path: str) -> None:
    """Let Python find a packaged model by its import path; nothing happens for any other path.

    Parameters
    ----------
    path : str
        Import path of a class.

    Raises
    ------
    FileNotFoundError
        The installation lacks it.

    Examples
    --------
    >>> import importlib
    >>> make_importable("extensions.WeirdReader.readers.OutlineReader")
    >>> importlib.import_module("extensions.WeirdReader.readers").OutlineReader(grid=24)
    OutlineReader(grid=24)
    """
    folder = packaged_folder(path)
    if folder:
        import_packaged(folder)


def import_packaged(folder: str) -> str:
    """Import a folder below ``frameworks``, and return the name that it has in AMLB.

    The package alone is imported: its modules are by their own names, below it.

    Examples
    --------
    >>> import_packaged("WeirdReader")
    'extensions.WeirdReader'
    """
    name = f"extensions.{folder}"
    if name not in sys.modules:
        root = asset_path("frameworks", folder)
        spec = importlib.util.spec_from_file_location(
            name, root / "__init__.py", submodule_search_locations=[str(root)]
        )
        assert spec is not None
        assert spec.loader is not None
        package = importlib.util.module_from_spec(spec)
        sys.modules[name] = package
        spec.loader.exec_module(package)
    return name
