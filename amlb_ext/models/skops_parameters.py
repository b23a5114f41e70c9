"""What the parameters of a model from a ``.skops`` file may say.

Types alone are not enough: ``Pipeline(memory="cache")`` is a listed type, and joblib unpickles what
stands in that folder as soon as the pipeline is fitted again. A text is therefore allowed only
where the estimator itself declares it as a word, where it is the default, or where the parameter
takes names and values of a table; a function only where the estimator declares that it takes one.
Everything here looks at a loaded model, before anything of it is called.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from amlb_ext.core.display import shorten_text
from amlb_ext.core.errors import ModelError
from amlb_ext.core.estimators import declared_words, is_xgboost_word

#: Values with nothing inside them that could be a tree.
_PLAIN_VALUES = (str, bytes, int, float, type)


def check_trees(model: Any, name: str) -> None:
    """Raise where a tree of a model leads outside of itself.

    Scikit-learn's compiled code follows the numbers of a tree's nodes without looking, so that a
    crafted file could read the memory of the process, crash it, or keep it busy for ever.

    Raises
    ------
    ModelError
    """
    checks = {"Tree": _is_sound_tree, "TreePredictor": _is_sound_predictor}
    for part in inner_objects(model):
        # by name, since the classes are private to scikit-learn
        is_sound = checks.get(type(part).__name__)
        if is_sound is not None and not is_sound(part):
            raise ModelError(
                f"{name} holds a tree whose nodes are damaged", "save it again"
            )


def inner_objects(model: Any) -> Iterator[Any]:
    """Yield every object inside a model once."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        part = waiting.pop()
        # by identity: parts may be equal, and arrays cannot be hashed
        if id(part) in seen:
            continue
        # a function is one of the list, whatever hangs on it
        if isinstance(part, _PLAIN_VALUES) or inspect.isroutine(part):
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, dict):
            waiting.extend(part.values())
        elif isinstance(part, list | tuple | set):
            waiting.extend(part)
        elif isinstance(part, np.ndarray) and part.dtype == object:
            # a gradient boosting keeps its trees in such an array
            waiting.extend(part.ravel().tolist())
        if hasattr(part, "__dict__"):
            waiting.extend(vars(part).values())


def _leads_on(children: np.ndarray, inner: np.ndarray) -> bool:
    """Whether every child stands behind its parent, and none beyond the last node."""
    # behind its parent, so that no walk down the tree can go round in a circle
    is_behind = children > np.arange(len(children))
    return bool(np.all((is_behind & (children < len(children))) | ~inner))


def _is_sound_tree(tree: Any) -> bool:
    """Whether a tree of a forest stays within its own arrays."""
    left, right = tree.children_left, tree.children_right
    sizes = {len(left), tree.node_count, len(tree.value)}
    # -1 is scikit-learn's mark of a leaf, which asks about no feature
    inner = left != -1
    has_feature = (tree.feature >= 0) & (tree.feature < tree.n_features)
    is_whole = len(left) > 0 and len(sizes) == 1 and np.all(has_feature | ~inner)
    return bool(is_whole) and _leads_on(left, inner) and _leads_on(right, inner)


def _is_sound_predictor(predictor: Any) -> bool:
    """Whether a tree of histogram gradient boosting stays within its own arrays."""
    nodes = getattr(predictor, "nodes", None)
    if not isinstance(nodes, np.ndarray) or nodes.ndim != 1 or not len(nodes):
        return False
    inner = nodes["is_leaf"] == 0
    # a categorical split looks into a set of bits, by its number
    categorical = inner & (nodes["is_categorical"] != 0)
    n_raw = len(predictor.raw_left_cat_bitsets)
    n_binned = len(predictor.binned_left_cat_bitsets)
    has_bitset = nodes["bitset_idx"] < min(n_raw, n_binned)
    has_feature = nodes["feature_idx"] >= 0
    if not (np.all(has_feature | ~inner) and np.all(has_bitset | ~categorical)):
        return False
    children = (nodes[side].astype(np.int64) for side in ("left", "right"))
    return all(_leads_on(each, inner) for each in children)


#: Parameters that hold names of steps and columns, labels, or values of cells.
NAMES_AND_VALUES = frozenset(
    {
        "categorical_features", "categories", "class_weight", "classes", "constant", "drop",
        "encoded_missing_value", "estimators", "feature_types", "fill_value", "interaction_cst",
        "missing_values", "monotonic_cst", "neg_label", "outlier_label", "pos_label", "priors",
        "separator", "steps", "stop_words", "transform_input", "transformer_list",
        "transformer_weights", "transformers", "unknown_value", "vocabulary",
    }
)  # fmt: skip
#: Words that scikit-learn declares, and with which it opens the files that cells name.
_OPENS_FILES = {"input": {"file", "filename"}}
#: Texts of objects that are no estimators, by class and attribute.
_INNER_TEXTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("_CalibratedClassifier", "method"): ("isotonic", "sigmoid", "temperature"),
    ("_CurveScorer", "_response_method"): ("decision_function", "predict_proba"),
    # how a score is averaged over the classes
    ("_Scorer", "_kwargs"): (
        "binary",
        "linear",
        "macro",
        "micro",
        "ovo",
        "ovr",
        "quadratic",
        "samples",
        "weighted",
    ),
    ("_Scorer", "_response_method"): (
        "decision_function",
        "predict",
        "predict_log_proba",
        "predict_proba",
    ),
}
#: Objects that hold names of columns, classes and methods, and open nothing by them.
_TEXT_HOLDERS = ("MetadataRequest", "MethodMetadataRequest", "make_column_selector")
_PACKAGES = ("sklearn.", "xgboost.")
#: Searches set these on what they search, under the names of the parameters there.
_GRIDS = ("param_grid", "param_distributions")


def check_parameters(model: Any, name: str) -> None:
    """Raise where a part of a model could read, write or call something when it is used.

    Parameters
    ----------
    model : object
    name : str
        Of the file, for the error.

    Raises
    ------
    ModelError
    """
    for part in inner_objects(model):
        found = _find_unlisted(part)
        if found:
            raise ModelError(
                f"{name} holds {found}, which is not on the list of what a model file may hold",
                "leave that setting out and save the model again; use --trust-pickle only if the "
                "file is your own, since it may then run any code",
            )


def _find_unlisted(part: Any) -> str:
    """Return the first attribute of an object that is not allowed; empty where all are."""
    kind: Any = type(part)
    attributes = getattr(part, "__dict__", None)
    if not isinstance(attributes, dict) or not kind.__module__.startswith(_PACKAGES):
        return ""
    # a mapping with attributes, such as Bunch, is data
    if isinstance(part, dict | type):
        return ""
    is_estimator = hasattr(kind, "get_params")
    parameters = _parameters_of(kind) if is_estimator else {}
    for key, value in attributes.items():
        if is_estimator and key not in parameters:
            what, is_listed = "attribute", _is_state(kind, key, value)
        elif key in _GRIDS and hasattr(part, "estimator"):
            grids = (_is_grid_listed(part.estimator, grid) for grid in _as_list(value))
            what, is_listed = "parameter", all(grids)
        else:
            what, is_listed = "parameter", _is_listed(kind, key, value)
        if not is_listed:
            shown = shorten_text(repr(value), 60)
            return f"the {what} {key}={shown} of {kind.__name__}"
    return ""


@functools.cache
def _parameters_of(kind: Any) -> dict[str, Any]:
    """Return the parameters of an estimator with their defaults."""
    # XGBoost's classes hand on to their base what they do not name
    bases = kind.__mro__ if kind.__module__.startswith("xgboost.") else (kind,)
    parameters = {}
    for base in reversed(bases):
        for key, parameter in inspect.signature(base).parameters.items():
            parameters[key] = parameter.default
    return parameters


def _is_state(kind: Any, key: str, value: Any) -> bool:
    """Whether an attribute beside the parameters is what fitting leaves, or the constructor sets.

    Nothing may hide a method, a property, or the table of what parameters may be.
    """
    if key.startswith("__") or key == "_parameter_constraints":
        return False
    behind = inspect.getattr_static(kind, key, None)
    if callable(behind) or hasattr(behind, "__get__"):
        return False
    if key.startswith("_") or key.endswith("_"):
        return True
    # an object in it is looked at by itself
    if key != "memory" and not any(True for _ in _leaves(value)):
        return True
    return key in _set_by_constructor(kind) and value == _set_by_constructor(kind)[key]


@functools.cache
def _set_by_constructor(kind: Any) -> dict[str, Any]:
    """Return what the constructor of an estimator sets beside its parameters."""
    parameters = _parameters_of(kind)
    # scikit-learn's constructors do nothing but store, so that anything serves for what is needed
    needed = {
        key: None
        for key, value in parameters.items()
        if value is inspect.Parameter.empty
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = vars(kind(**needed))
    return {key: value for key, value in made.items() if key not in parameters}


def _is_listed(kind: Any, key: str, value: Any) -> bool:
    """Whether every text and function in a value is one that this parameter may hold."""
    if key == "memory":
        return value is None
    return all(_is_leaf_listed(kind, key, leaf) for leaf in _leaves(value))


def _is_leaf_listed(kind: Any, key: str, leaf: Any) -> bool:
    is_estimator = hasattr(kind, "get_params")
    if not isinstance(leaf, str | bytes):
        # a function, where an estimator declares that the parameter may be one
        constraint = getattr(kind, "_parameter_constraints", {}).get(key)
        return not is_estimator or (
            isinstance(constraint, list) and callable in constraint
        )
    if not is_estimator:
        is_inner = leaf in _INNER_TEXTS.get((kind.__name__, key), ())
        return is_inner or kind.__name__ in _TEXT_HOLDERS
    if leaf in _OPENS_FILES.get(key, ()):
        return False
    default = _parameters_of(kind).get(key)
    if leaf in declared_words(kind, key) or (
        isinstance(default, str) and leaf == default
    ):
        return True
    if kind.__module__.startswith("xgboost."):
        return is_xgboost_word(key, leaf)
    if key in NAMES_AND_VALUES:
        return True
    # the bounds of a kernel's parameters
    if key.endswith("_bounds"):
        return leaf == "fixed"
    from sklearn.metrics import get_scorer_names

    return key == "scoring" and leaf in get_scorer_names()


def _is_grid_listed(estimator: Any, grid: Any) -> bool:
    """Whether what a search would set on an estimator is allowed there."""
    if not isinstance(grid, dict):
        return False
    inside = estimator.get_params(deep=True) if hasattr(estimator, "get_params") else {}
    for key, values in grid.items():
        owner_name, _, parameter = str(key).rpartition("__")
        owner = inside.get(owner_name) if owner_name else estimator
        # a step may be exchanged for another estimator, whose own parameters are looked at
        may_be_set = all(
            _is_listed(type(owner), parameter, value) for value in _as_list(values)
        )
        if key not in inside or not may_be_set:
            return False
    return True


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value]


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the texts and functions in a value, however deep; objects are looked at alone."""
    if isinstance(value, str | bytes):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "OSU":
        for item in value.ravel().tolist():
            yield from _leaves(item)
    elif inspect.isroutine(value) or isinstance(value, np.ufunc | functools.partial):
        yield value
