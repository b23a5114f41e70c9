"""The candidate zoo: models of many families and capacities, to see what a benchmark says of them.

A certificate asks whether two ways of scoring rank the *same models* alike, so the zoo must hold
models that differ: linear, Bayes, neighbours, shallow and deep trees, forests, boosting, networks.
None is tuned; none needs to win.

``quick`` is small enough that a certificate costs less than the suite it certifies (the models
see at most :data:`QUICK_ROWS` training rows); ``full`` is what one would really submit.

A certificate also asks what the best candidate saves, which is no fair question to models that saw
fewer rows than F, or fewer rounds. :func:`candidates_beside` gives boosting the rounds of F, and
the candidates of :data:`WHOLE` see every row that F saw, in the quick zoo too: they cost little.
Forests, neighbours and networks keep to :data:`QUICK_ROWS` there; where F is one of them and saw
more, one on all rows joins. Of an F of another kind :func:`names_like` finds no match, and then
nobody can say that nothing is left to mend.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import ConfigError, ModelError
from amlb_ext.core.memory import release_memory
from amlb_ext.core.rng import derive_int_seed, derive_seed
from amlb_ext.core.task import Kind
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.baseline.forests import (
    MOST_CLASSES,
    affordable_rounds,
    boosting_bins,
    most_leaves,
)
from amlb_ext.models.registry import ModelSpec, build_estimator, resolve_model

Size = Literal["quick", "full"]
#: Most training rows a candidate of the quick zoo sees.
QUICK_ROWS = 2000
#: Candidates that grow a tree for each class and round.
_BOOSTING = ("boosting", "boosting_slow")
#: How the name of a candidate ends that joins the quick zoo with as many rows as F.
ALL_ROWS = "_all_rows"
#: What models of a family are called (a part of the class's name), and the candidate that joins
#: for it where F saw more rows than the zoo; the first family that fits is F's.
_JOINING = (
    ("RandomForest", "forest"),
    ("ExtraTrees", "extra_trees"),
    ("KNeighbors", "neighbours_25"),
    ("MLP", "network_deep"),
)
#: The same for families whose candidates see all rows anyway; how the class's name begins.
_PRESENT = (
    (
        ("HistGradientBoosting", "GradientBoosting", "XGB", "LGBM", "CatBoost"),
        _BOOSTING,
    ),
    (("Logistic", "Ridge", "Lasso", "LinearRegression", "ElasticNet"), ("linear",)),
    (("GaussianNB",), ("naive_bayes",)),
    (("DecisionTree",), ("tree_3", "tree_8")),
)
#: Candidates of the quick zoo that see as many rows as F all the same in a certificate.
WHOLE = (
    "linear",
    "naive_bayes",
    "lasso",
    "tree_3",
    "tree_8",
    "boosting",
    "boosting_slow",
    *(name + ALL_ROWS for _, name in _JOINING),
)
#: Rounds and leaves of boosting as scikit-learn has it, and the most rounds taken over from F.
STANDARD_ROUNDS, STANDARD_LEAVES, MOST_ROUNDS = 100, 31, 1000
#: What boosting libraries call their rounds; a forest's trees and a network's epochs are alike.
_ROUNDS = ("max_iter", "n_estimators", "iterations")
#: Fewer candidates than this make no ranking worth comparing.
MIN_CANDIDATES = 4
#: Candidates whose mean prediction judges labels: strong, of different families.
JUDGES = ("forest", "extra_trees", "boosting")
#: How the name of a judge begins that is no candidate as it stands.
JUDGE_ONLY = "judge:"


def candidate_zoo(
    kind: Kind, size: Size = "quick", *, n_classes: int = 0
) -> dict[str, ModelSpec]:
    """Return the candidates for a kind of task, by name.

    Parameters
    ----------
    kind : Kind
    size : {'quick', 'full'}
    n_classes : int
        C: boosting has fewer rounds where there are many, and is left out where there are very
        many, see :mod:`amlb_ext.hardening.baseline.forests`.

    Examples
    --------
    >>> len(candidate_zoo(Kind.BINARY)), candidate_zoo(Kind.REGRESSION)["linear"].path
    (12, 'sklearn.linear_model.Ridge')
    """
    zoo = _all_candidates(kind, size, n_classes)
    if n_classes > MOST_CLASSES:
        return {name: spec for name, spec in zoo.items() if name not in _BOOSTING}
    return zoo


def _all_candidates(kind: Kind, size: Size, n_classes: int) -> dict[str, ModelSpec]:
    if size not in ("quick", "full"):
        raise ConfigError(f"no zoo of size {size!r}", "use quick or full")
    is_full = size == "full"
    # early stopping is off: it would hold rows back, and other rows with every seed
    # a tree of very many classes takes ten times one of few, and a candidate need not win
    share = 0.5 if n_classes > MOST_CLASSES else 1
    trees: dict[str, Any] = {"n_estimators": int(share * (200 if is_full else 40))}
    if leaves := most_leaves(n_classes):
        trees["max_leaf_nodes"] = leaves
    most_rounds = affordable_rounds(200 if is_full else 40, n_classes)
    rounds = {"max_iter": most_rounds, "early_stopping": False}
    steps = {"max_iter": 200 if is_full else 30}
    boosting, network = "ensemble.HistGradientBoosting", "neural_network.MLP"
    classes = kind.is_classification

    def spec(path: str, encoding: str, **params: Any) -> ModelSpec:
        ending = "Classifier" if classes else "Regressor"
        return ModelSpec(f"sklearn.{path}{ending}", params, encoding)

    def linear(path: str, **params: Any) -> ModelSpec:
        return ModelSpec(f"sklearn.{path}", params, "onehot")

    # two candidates whose classes differ by more than their ending
    first_two = {
        "linear": linear("linear_model.Ridge"),
        "lasso": linear("linear_model.Lasso", alpha=0.001),
    }
    if classes:
        first_two = {
            "linear": linear("linear_model.LogisticRegression", max_iter=300),
            # one-hot columns of a class may be constant: without smoothing they decide alone
            "naive_bayes": linear("naive_bayes.GaussianNB", var_smoothing=0.01),
        }
    return {
        **first_two,
        "neighbours_5": spec("neighbors.KNeighbors", "onehot", n_neighbors=5),
        "neighbours_25": spec("neighbors.KNeighbors", "onehot", n_neighbors=25),
        "tree_3": spec("tree.DecisionTree", "ordinal", max_depth=3),
        "tree_8": spec("tree.DecisionTree", "ordinal", max_depth=8, min_samples_leaf=5),
        "forest": spec("ensemble.RandomForest", "ordinal", **trees, min_samples_leaf=2),
        "extra_trees": spec(
            "ensemble.ExtraTrees", "ordinal", **trees, min_samples_leaf=2
        ),
        "boosting": spec(boosting, "ordinal", **rounds, max_leaf_nodes=15),
        "boosting_slow": spec(
            boosting, "ordinal", **rounds, max_leaf_nodes=4, learning_rate=0.05
        ),
        "network_small": spec(
            network, "onehot", **steps, hidden_layer_sizes=[16], alpha=0.01
        ),
        "network_deep": spec(network, "onehot", **steps, hidden_layer_sizes=[64, 32]),
    }


def candidates_beside(
    baseline: ModelSpec | None,
    kind: Kind,
    size: Size = "quick",
    *,
    train_rows: int = 0,
    n_classes: int = 0,
) -> dict[str, ModelSpec]:
    """Return the zoo with boosting of as many rounds as F has, at least the standard ones.

    Where F is a forest, neighbours or a network, and saw more rows than such candidates of the
    quick zoo do, one that sees them all joins.

    Parameters
    ----------
    baseline : ModelSpec or None
        F; None where it is a file.
    kind : Kind
    size : {'quick', 'full'}
    train_rows : int
        Rows that F saw.
    n_classes : int
        C: of many, boosting has no more rounds than are worth their time, and of very many it is
        no candidate, unless F has more, or is boosting itself.

    Examples
    --------
    >>> F = ModelSpec("sklearn.ensemble.HistGradientBoostingClassifier", {"max_iter": 300})
    >>> candidates_beside(F, Kind.BINARY)["boosting"].params["max_iter"]
    300
    >>> candidates_beside(None, Kind.BINARY)["boosting"].params["max_iter"]
    100
    """
    beside = candidate_zoo(kind, size, n_classes=n_classes)
    specs = _all_candidates(kind, size, n_classes)
    rounds_of_baseline = boosting_rounds(baseline, kind)
    if "boosting" in beside or rounds_of_baseline:
        fast, slow = specs["boosting"], specs["boosting_slow"]
        # with fewer rounds than F a candidate would lose for want of time, not of skill
        rounds = {
            "max_iter": max(
                affordable_rounds(STANDARD_ROUNDS, n_classes),
                fast.params["max_iter"],
                rounds_of_baseline,
            )
        }
        leaves = {"max_leaf_nodes": STANDARD_LEAVES}
        beside["boosting"] = replace(fast, params=fast.params | rounds | leaves)
        beside["boosting_slow"] = replace(slow, params=slow.params | rounds)
    name = _joining_name(baseline)
    if baseline is not None and name and size == "quick" and train_rows > QUICK_ROWS:
        # with as many trees or epochs as F, where it has fewer
        spec = specs[name]
        more = {
            name: max(spec.params[name], rounds)
            for name, rounds in _rounds_of(baseline, kind).items()
            if name in spec.params
        }
        beside[name + ALL_ROWS] = replace(spec, params={**spec.params, **more})
    return beside


def candidates_and_judges(
    specs: Mapping[str, ModelSpec], kind: Kind, size: Size, *, n_classes: int
) -> tuple[dict[str, ModelSpec], list[str]]:
    """Return candidates with the judges among them, and the names that judges go by there.

    The limits on labels were set with the judges of the zoo, so these follow neither F's rounds
    nor a user's candidates: one that is no candidate as it stands comes first, under a name of its
    own.

    Examples
    --------
    >>> specs = candidates_beside(None, Kind.BINARY)
    >>> candidates_and_judges(specs, Kind.BINARY, "quick", n_classes=2)[1]
    ['forest', 'extra_trees', 'judge:boosting']
    """
    zoo = candidate_zoo(kind, size, n_classes=n_classes)
    beside = {}
    names = []
    for name, spec in zoo.items():
        if name not in JUDGES:
            continue
        if specs.get(name) != spec:
            name = JUDGE_ONLY + name
            beside[name] = spec
        names.append(name)
    return beside | dict(specs), names


def _joining_name(baseline: ModelSpec | None) -> str:
    """Return the candidate of F's family that does not see all rows; empty for none."""
    class_name = _class_name(baseline)
    for family, name in _JOINING:
        if family in class_name:
            return name
    return ""


def _class_name(spec: ModelSpec | None) -> str:
    return "" if spec is None else spec.path.rsplit(".", 1)[-1]


def _rounds_of(spec: ModelSpec, kind: Kind) -> dict[str, int]:
    """Return a model's rounds, trees or epochs by the name of the setting, not beyond the most."""
    # of the built model: what the user left out is the library's default
    params = build_estimator(spec, kind).get_params()
    rounds = {}
    for name in _ROUNDS:
        if isinstance(params.get(name), int):  # XGBoost's default is None
            rounds[name] = min(params[name], MOST_ROUNDS)
    return rounds


def names_like(baseline: ModelSpec | None) -> tuple[str, ...]:
    """Return the candidates of F's family that see as many rows as F; none where F is unlike all.

    Parameters
    ----------
    baseline : ModelSpec or None
        F; None where it is a file.

    Examples
    --------
    >>> names_like(ModelSpec("sklearn.ensemble.RandomForestClassifier"))
    ('forest_all_rows',)
    >>> names_like(ModelSpec("sklearn.svm.SVC"))
    ()
    """
    if name := _joining_name(baseline):
        return (name + ALL_ROWS,)
    class_name = _class_name(baseline)
    for families, names in _PRESENT:
        if class_name.startswith(families):
            return names
    return ()


def boosting_rounds(spec: ModelSpec | None, kind: Kind) -> int:
    """Return the rounds of a boosting model, at most :data:`MOST_ROUNDS`; 0 for other models.

    Examples
    --------
    >>> boosting_rounds(ModelSpec("sklearn.ensemble.GradientBoostingRegressor"), Kind.REGRESSION)
    100
    >>> boosting_rounds(ModelSpec("sklearn.ensemble.RandomForestRegressor"), Kind.REGRESSION)
    0
    """
    if spec is None:
        return 0
    class_name = _class_name(spec)
    # by name, since a forest has n_estimators too and the libraries share no base class
    if not any(word in class_name for word in ("Boost", "XGB", "LGBM")):
        return 0
    return max(_rounds_of(spec, kind).values(), default=0)


def named_candidates(names: Sequence[str], kind: Kind) -> dict[str, ModelSpec]:
    """Return the user's own candidates: short names or import paths, as for ``--baseline``.

    Raises
    ------
    ModelError
        An unknown name, or a class that cannot be imported.

    Examples
    --------
    >>> names = ["ridge", "sklearn.tree.DecisionTreeRegressor:max_depth=3"]
    >>> sorted(named_candidates(names, Kind.REGRESSION))
    ['ridge', 'sklearn.tree.DecisionTreeRegressor:max_depth=3']
    """
    return {name: resolve_model(BaselineConfig(model=name), kind) for name in names}


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
    seen: np.ndarray | None = None,
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
    seen : ndarray of int, optional
        Positions of the rows that any candidate may see, ascending; all when omitted.

    Returns
    -------
    fitted : dict of str to EstimatorBaseline
    failed : dict of str to str
        Why a candidate could not be fitted here; it leaves the zoo.
    """
    all_rows = np.arange(len(y)) if seen is None else seen
    # one subsample for all candidates: they differ by what they are, not by what they saw
    few_rows = all_rows
    if most is not None and len(all_rows) > most:
        rng = np.random.default_rng(derive_seed(seed, "subsample"))
        few_rows = all_rows[np.sort(rng.choice(len(all_rows), most, replace=False))]
    fitted, failed = {}, {}
    for name, spec in specs.items():
        rows = all_rows if name in whole else few_rows
        neighbours = spec.params.get("n_neighbors", 1)
        if spec.path.startswith("sklearn.neighbors.") and neighbours > len(rows):
            # scikit-learn tells of it only when asked for predictions
            failed[name] = f"{neighbours} neighbours, {len(rows)} training rows"
            continue
        if name.removeprefix(JUDGE_ONLY) in _BOOSTING:
            bins = boosting_bins(Z.shape[1])
            spec = replace(spec, params={**spec.params, **bins})
        model = EstimatorBaseline(spec, kind, n_classes, n_categorical)
        # by name, so that a candidate that joins or leaves changes no other one
        model_seed = derive_int_seed(seed, name)
        try:
            # all rows as they are: picked by position they would be a copy
            of_rows = (Z, y) if len(rows) == len(y) else (Z[rows], y[rows])
            fitted[name] = model.fit(*of_rows, model_seed)
        except ModelError as error:
            failed[name] = str(error)
        # each fit leaves pieces of its own tables behind, into which those of the next do not fit
        if len(y) > QUICK_ROWS:
            release_memory()
    return fitted, failed
