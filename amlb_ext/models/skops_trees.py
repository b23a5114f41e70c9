"""Whether the trees of a model from a ``.skops`` file lead where trees lead.

Everything here looks at a loaded model, before any row is predicted with it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from amlb_ext.core.errors import ModelError

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
    n_nodes = len(children)
    parent = np.arange(n_nodes)
    # behind its parent, so that no walk down the tree can go round in a circle
    is_behind = children > parent
    is_inside = children < n_nodes
    return bool(np.all((is_behind & is_inside) | ~inner))


def _is_sound_tree(tree: Any) -> bool:
    """Whether a tree of a forest stays within its own arrays."""
    left = tree.children_left
    right = tree.children_right
    n_nodes = len(left)
    sizes = {n_nodes, tree.node_count, len(tree.value)}
    if n_nodes == 0 or len(sizes) > 1:
        return False
    # -1 is scikit-learn's mark of a leaf, which asks about no feature
    inner = left != -1
    has_feature = (tree.feature >= 0) & (tree.feature < tree.n_features)
    if not np.all(has_feature | ~inner):
        return False
    return _leads_on(left, inner) and _leads_on(right, inner)


def _is_sound_predictor(predictor: Any) -> bool:
    """Whether a tree of histogram gradient boosting stays within its own arrays."""
    nodes = getattr(predictor, "nodes", None)
    if not isinstance(nodes, np.ndarray):
        return False
    if nodes.ndim != 1 or not len(nodes):
        return False
    inner = nodes["is_leaf"] == 0
    has_feature = nodes["feature_idx"] >= 0
    if not np.all(has_feature | ~inner):
        return False
    # a categorical split looks into a set of bits, by its number
    categorical = inner & (nodes["is_categorical"] != 0)
    n_raw = len(predictor.raw_left_cat_bitsets)
    n_binned = len(predictor.binned_left_cat_bitsets)
    has_bitset = nodes["bitset_idx"] < min(n_raw, n_binned)
    if not np.all(has_bitset | ~categorical):
        return False
    left = nodes["left"].astype(np.int64)
    right = nodes["right"].astype(np.int64)
    return _leads_on(left, inner) and _leads_on(right, inner)
