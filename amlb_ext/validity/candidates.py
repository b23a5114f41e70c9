"""The candidate zoo: models of many families and capacities, to see what a benchmark says of them.

A certificate asks whether two ways of scoring rank the *same models* alike, so the zoo must hold
models that differ: linear, Bayes, neighbours, shallow and deep trees, forests, boosting, networks.
None is tuned; none needs to win.

``quick`` is small enough that a certificate costs less than the suite it certifies (the models
see at most :data:`QUICK_ROWS` training rows); ``full`` is what one would really submit.

A certificate also asks what the best candidate saves, which is no fair question to models that saw
fewer rows than F, or fewer rounds. :func:`candidates_beside` gives boosting the rounds of F, and
the candidates of :data:`WHOLE` see every row that F saw, in the quick zoo too: they cost little.
Forests, neighbours and networks keep to :data:`QUICK_ROWS` there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import ConfigError, ModelError
from amlb_ext.core.rng import derive_seed
from amlb_ext.core.task import Kind
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.baseline.registry import ModelSpec, build_estimator, resolve_model

Size = Literal["quick", "full"]
#: Most training rows a candidate of the quick zoo sees.
QUICK_ROWS = 2000
#: Candidates of the quick zoo that see as many rows as F all the same in a certificate.
WHOLE = ("linear", "naive_bayes", "lasso", "tree_3", "tree_8", "boosting", "boosting_slow")
#: Rounds and leaves of boosting as scikit-learn has it, and the most rounds taken over from F.
STANDARD_ROUNDS, STANDARD_LEAVES, MOST_ROUNDS = 100, 31, 1000
#: What boosting libraries call their rounds.
_ROUNDS = ("max_iter", "n_estimators", "iterations")
#: Fewer candidates than this make no ranking worth comparing.
MIN_CANDIDATES = 4
#: Candidates whose mean prediction judges labels: strong, of different families.
JUDGES = ("forest", "extra_trees", "boosting")


def candidate_zoo(kind: Kind, size: Size = "quick") -> dict[str, ModelSpec]:
    """Return the candidates for a kind of task, by name.

    Parameters
    ----------
    kind : Kind
    size : {'quick', 'full'}

    Examples
    --------
    >>> len(candidate_zoo(Kind.BINARY)), candidate_zoo(Kind.REGRESSION)["linear"].path
    (12, 'sklearn.linear_model.Ridge')
    """
    if size not in ("quick", "full"):
        raise ConfigError(f"no zoo of size {size!r}", "use quick or full")
    many = size == "full"
    trees, rounds, steps = (200, 200, 200) if many else (40, 40, 30)
    shared = {
        "neighbours_5": _both("neighbors.KNeighbors", "onehot", n_neighbors=5),
        "neighbours_25": _both("neighbors.KNeighbors", "onehot", n_neighbors=25),
        "tree_3": _both("tree.DecisionTree", "ordinal", max_depth=3),
        "tree_8": _both("tree.DecisionTree", "ordinal", max_depth=8, min_samples_leaf=5),
        "forest": _both("ensemble.RandomForest", "ordinal", n_estimators=trees, min_samples_leaf=2),
        "extra_trees": _both(
            "ensemble.ExtraTrees", "ordinal", n_estimators=trees, min_samples_leaf=2
        ),
        "boosting": _both(
            "ensemble.HistGradientBoosting",
            "ordinal",
            max_iter=rounds,
            max_leaf_nodes=15,
            early_stopping=False,
        ),
        "boosting_slow": _both(
            "ensemble.HistGradientBoosting",
            "ordinal",
            max_iter=rounds,
            max_leaf_nodes=4,
            learning_rate=0.05,
            early_stopping=False,
        ),
        "network_small": _both(
            "neural_network.MLP", "onehot", hidden_layer_sizes=[16], alpha=0.01, max_iter=steps
        ),
        "network_deep": _both(
            "neural_network.MLP", "onehot", hidden_layer_sizes=[64, 32], max_iter=steps
        ),
    }
    classes = kind.is_classification
    specs = {name: pair[0 if classes else 1] for name, pair in shared.items()}
    return {**_linear(classes), **specs}


def candidates_beside(
    baseline: ModelSpec | None, kind: Kind, size: Size = "quick"
) -> dict[str, ModelSpec]:
    """Return the zoo with boosting of as many rounds as F has, at least the standard ones.

    Parameters
    ----------
    baseline : ModelSpec or None
        F; None where it is a file.
    kind : Kind
    size : {'quick', 'full'}

    Examples
    --------
    >>> F = ModelSpec("sklearn.ensemble.HistGradientBoostingClassifier", {"max_iter": 300})
    >>> candidates_beside(F, Kind.BINARY)["boosting"].params["max_iter"]
    300
    >>> candidates_beside(None, Kind.BINARY)["boosting"].params["max_iter"]
    100
    """
    specs = candidate_zoo(kind, size)
    fast, slow = specs["boosting"], specs["boosting_slow"]
    rounds = max(STANDARD_ROUNDS, fast.params["max_iter"], boosting_rounds(baseline, kind))
    more = {"max_iter": rounds}
    fast = replace(fast, params={**fast.params, **more, "max_leaf_nodes": STANDARD_LEAVES})
    return {
        **specs,
        "boosting": fast,
        "boosting_slow": replace(slow, params={**slow.params, **more}),
    }


def boosting_rounds(spec: ModelSpec | None, kind: Kind) -> int:
    """Return the rounds of a boosting model, at most :data:`MOST_ROUNDS`; 0 for other models.

    Examples
    --------
    >>> boosting_rounds(ModelSpec("sklearn.ensemble.GradientBoostingRegressor"), Kind.REGRESSION)
    100
    >>> boosting_rounds(ModelSpec("sklearn.ensemble.RandomForestRegressor"), Kind.REGRESSION)
    0
    """
    name = "" if spec is None else spec.path.rsplit(".", 1)[-1]
    if spec is None or not any(word in name for word in ("Boost", "XGB", "LGBM")):
        return 0
    known = build_estimator(spec, kind).get_params()
    found = [known[word] for word in _ROUNDS if isinstance(known.get(word), int)]
    return min(max(found, default=0), MOST_ROUNDS)


def _both(path: str, encoding: str, **params: Any) -> tuple[ModelSpec, ModelSpec]:
    return (
        ModelSpec(f"sklearn.{path}Classifier", dict(params), encoding),
        ModelSpec(f"sklearn.{path}Regressor", dict(params), encoding),
    )


def _linear(classes: bool) -> dict[str, ModelSpec]:
    if classes:
        return {
            "linear": ModelSpec(
                "sklearn.linear_model.LogisticRegression", {"max_iter": 300}, "onehot"
            ),
            "naive_bayes": ModelSpec(
                "sklearn.naive_bayes.GaussianNB", {"var_smoothing": 0.01}, "onehot"
            ),
        }
    return {
        "linear": ModelSpec("sklearn.linear_model.Ridge", {}, "onehot"),
        "lasso": ModelSpec("sklearn.linear_model.Lasso", {"alpha": 0.001}, "onehot"),
    }


def named_candidates(words: Sequence[str], kind: Kind) -> dict[str, ModelSpec]:
    """Return the user's own candidates: short names or import paths, as for ``--baseline``.

    Raises
    ------
    ModelError
        An unknown name, or a class that cannot be imported.

    Examples
    --------
    >>> words = ["ridge", "sklearn.tree.DecisionTreeRegressor:max_depth=3"]
    >>> sorted(named_candidates(words, Kind.REGRESSION))
    ['ridge', 'sklearn.tree.DecisionTreeRegressor:max_depth=3']
    """
    return {word: resolve_model(BaselineConfig(model=word), kind) for word in words}


def fit_zoo(
    specs: Mapping[str, ModelSpec],
    kind: Kind,
    n_classes: int,
    n_categorical: int,
    Z: np.ndarray,
    y: np.ndarray,
    seed: int,
    most: int | None = QUICK_ROWS,
    whole: Collection[str] = (),
) -> tuple[dict[str, EstimatorBaseline], dict[str, str]]:
    """Fit every candidate on a fold's encoded training rows.

    Parameters
    ----------
    specs : mapping of str to ModelSpec
    kind : Kind
    n_classes, n_categorical : int
        C (0 for regression) and M_c, see :mod:`amlb_ext.hardening.encode`.
    Z, y : ndarray of shape (n, d), (n,)
    seed : int
        Of the subsample and, with the candidate's name, of each fit.
    most : int, optional
        Rows the candidates see at most; None for all.
    whole : collection of str
        Candidates that see all rows whatever ``most`` says.

    Returns
    -------
    fitted : dict of str to EstimatorBaseline
    failed : dict of str to str
        Why a candidate could not be fitted here; it leaves the zoo.
    """
    every = np.arange(len(y))
    some = every
    if most is not None and len(y) > most:
        rng = np.random.default_rng(derive_seed(seed, "subsample"))
        some = np.sort(rng.choice(len(y), most, replace=False))
    fitted, failed = {}, {}
    for name, spec in specs.items():
        rows = every if name in whole else some
        wanted = spec.params.get("n_neighbors", 1)
        if spec.path.startswith("sklearn.neighbors.") and wanted > len(rows):
            failed[name] = f"{wanted} neighbours, {len(rows)} training rows"
            continue
        model = EstimatorBaseline(spec, kind, n_classes, n_categorical)
        try:
            fitted[name] = model.fit(Z[rows], y[rows], derive_seed(seed, name) % 2**31)
        except ModelError as error:
            failed[name] = str(error)
    return fitted, failed
