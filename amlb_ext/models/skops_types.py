"""The classes and functions that a ``.skops`` file may name, each by module and name.

A name of this list is held against the object behind it: the class of that name must have been
defined in that module. Otherwise whatever a module of scikit-learn imports, a shell among it,
would count as scikit-learn.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

#: A class or function by module and name.
Name = tuple[str, str]

#: What fitted estimators hold beside other estimators, by module. ``*`` is every public class that
#: the module defines.
_INNER: dict[str, tuple[str, ...]] = {
    "sklearn.calibration": (
        "_CalibratedClassifier",
        "_SigmoidCalibration",
        "_TemperatureScaling",
    ),
    "sklearn.cluster._bisect_k_means": ("_BisectingTree",),
    "sklearn.compose._column_transformer": (
        "make_column_selector",
        "_RemainderColsList",
    ),
    "sklearn.ensemble._hist_gradient_boosting.binning": ("_BinMapper",),
    "sklearn.ensemble._hist_gradient_boosting.predictor": ("TreePredictor",),
    "sklearn.gaussian_process._gpc": ("_BinaryGaussianProcessClassifierLaplace",),
    "sklearn.gaussian_process.kernels": ("*",),
    "sklearn._loss.link": ("*",),
    "sklearn._loss.loss": ("*",),
    "sklearn.metrics._dist_metrics": ("*",),
    "sklearn.metrics._scorer": ("_CurveScorer", "_PassthroughScorer", "_Scorer"),
    "sklearn.model_selection._split": ("*",),
    "sklearn.multiclass": ("_ConstantPredictor",),
    "sklearn.neighbors._ball_tree": ("*",),
    "sklearn.neighbors._kd_tree": ("*",),
    "sklearn.neural_network._stochastic_optimizers": ("*",),
    "sklearn.utils._metadata_requests": ("MetadataRequest", "MethodMetadataRequest"),
    "scipy.interpolate._bsplines": ("BSpline",),
}
#: Loss functions written in Cython.
_LOSSES = ("sklearn._loss._loss", "sklearn.linear_model._sgd_fast")
#: What the first of these modules calls itself in scikit-learn 1.6.
_SHORT_LOSS_MODULE = "_loss"
#: Scikit-learn's estimators of XGBoost, and the model inside them.
_XGBOOST = {
    "xgboost.sklearn": (
        "XGBClassifier",
        "XGBRegressor",
        "XGBRFClassifier",
        "XGBRFRegressor",
    ),
    "xgboost.core": ("Booster",),
}
#: Functions of arrays that fitted estimators hold; none writes, reads or starts anything.
_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "numpy": ("max", "mean", "median", "min", "sum"),
    "scipy._lib.array_api_compat.numpy._aliases": ("asarray",),
    "sklearn.cluster._kmeans": ("_kmeans_single_elkan", "_kmeans_single_lloyd"),
    "sklearn.feature_selection._mutual_info": (
        "mutual_info_classif",
        "mutual_info_regression",
    ),
    "sklearn.feature_selection._univariate_selection": (
        "chi2",
        "f_classif",
        "f_oneway",
        "f_regression",
        "r_regression",
    ),
    "sklearn.preprocessing._function_transformer": ("_identity",),
    "sklearn.utils.validation": ("check_array",),
}
#: Where numpy's and scipy's universal functions say that they come from, by version.
_UFUNC_MODULES = (
    "numpy",
    "numpy._core._multiarray_umath",
    "numpy._core.umath",
    "numpy.core._multiarray_umath",
    "numpy.core.umath",
    "scipy.special",
    "scipy.special._ufuncs",
)
#: Types that a file names as values: of dictionary keys, of parameters such as ``dtype``.
_PLAIN = frozenset(
    ("builtins", name)
    for name in (
        "bool",
        "bytes",
        "dict",
        "float",
        "int",
        "list",
        "NoneType",
        "set",
        "str",
        "tuple",
    )
)


def _imported(module: str) -> Any:
    """Return a module, or None where this installation has none of that name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(module)
        except ImportError:
            return None


def _is_defined_as(thing: Any, module: str, name: str) -> bool:
    """Whether an object says that it was defined under this very name."""
    return (
        getattr(thing, "__module__", None) == module
        and getattr(thing, "__name__", "") == name
    )


def _is_found_by_name(cls: type) -> bool:
    """Whether a class is what its module has under its name."""
    return bool(vars(sys.modules[cls.__module__]).get(cls.__name__) is cls)


def _listed_classes(listed: dict[str, tuple[str, ...]]) -> set[Name]:
    """Return those of the listed classes that this installation defines where they are listed."""
    names = set()
    for module_name, listed_names in listed.items():
        module = _imported(module_name)
        if module is None:
            continue
        for name in vars(module):
            is_public_of_all = "*" in listed_names and not name.startswith("_")
            if name not in listed_names and not is_public_of_all:
                continue
            thing = getattr(module, name)
            if inspect.isclass(thing) and _is_defined_as(thing, module_name, name):
                names.add((module_name, name))
    return names


@lru_cache(maxsize=1)
def object_classes() -> frozenset[Name]:
    """Return the classes whose instances a file may hold: estimators and their fitted parts."""
    from sklearn.utils.discovery import all_estimators

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimators = [estimator for _, estimator in all_estimators()]
    public = {
        (estimator.__module__, estimator.__name__)
        for estimator in estimators
        if estimator.__module__.startswith("sklearn.") and _is_found_by_name(estimator)
    }
    return frozenset(public | _listed_classes(_INNER))


@lru_cache(maxsize=1)
def xgboost_classes() -> frozenset[Name]:
    """Return the same of XGBoost, which is imported only where a file names it."""
    return frozenset(_listed_classes(_XGBOOST))


@lru_cache(maxsize=1)
def loss_classes() -> frozenset[Name]:
    """Return the loss classes, which skops builds by calling them with numbers."""
    listed = _listed_classes(dict.fromkeys(_LOSSES, ("*",)))
    return frozenset(listed | _losses_by_short_name())


def _losses_by_short_name() -> set[Name]:
    """Return the losses whose module calls itself ``_loss``, as that of scikit-learn 1.6 does.

    skops writes and imports it by that name, under which Cython has put it into ``sys.modules``.
    Another module may have the name as well, so each class must be scikit-learn's.
    """
    defining_module = _imported(_LOSSES[0])
    imported_module = sys.modules.get(_SHORT_LOSS_MODULE)
    if defining_module is None or imported_module is None:
        return set()
    return {
        (_SHORT_LOSS_MODULE, name)
        for name, thing in vars(defining_module).items()
        if inspect.isclass(thing)
        and _is_defined_as(thing, _SHORT_LOSS_MODULE, name)
        and getattr(imported_module, name, None) is thing
    }


@lru_cache(maxsize=1)
def array_scalars() -> frozenset[Name]:
    """Return numpy's scalar types, except that of Python objects."""
    kinds = {kind for kind in np.sctypeDict.values() if kind is not np.object_}
    return frozenset((kind.__module__, kind.__name__) for kind in kinds)


def plain_types() -> frozenset[Name]:
    """Return the types that a file may name as values."""
    return _PLAIN | array_scalars()


@lru_cache(maxsize=1)
def _listed_functions() -> frozenset[Name]:
    """Return the functions of the list, and those behind scikit-learn's own scorers."""
    from sklearn.metrics import get_scorer, get_scorer_names

    scoring = [
        getattr(get_scorer(name), "_score_func", None) for name in get_scorer_names()
    ]
    scorers = {
        (score.__module__, score.__name__)
        for score in scoring
        if inspect.isfunction(score) and score.__module__.startswith("sklearn.metrics.")
    }
    listed = {(module, name) for module, names in _FUNCTIONS.items() for name in names}
    return frozenset(listed | scorers)


def is_known_function(module: str, name: str) -> bool:
    """Whether a function is a universal function of numpy or scipy, or one of the short list.

    Examples
    --------
    >>> is_known_function("numpy", "log1p"), is_known_function("numpy", "load")
    (True, False)
    """
    if (module, name) in _listed_functions():
        return callable(getattr(_imported(module), name, None))
    return module in _UFUNC_MODULES and isinstance(
        getattr(_imported(module), name, None), np.ufunc
    )


def names_of(kinds: Iterable[Name]) -> list[str]:
    """Return names as skops writes them, sorted."""
    return sorted(f"{module}.{name}" for module, name in kinds)
