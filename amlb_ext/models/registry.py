"""Which estimator F is: short names and import paths, before anything is fitted."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.core.errors import ModelError, suggest_nearest
from amlb_ext.core.estimators import check_is_listed, is_estimator, make_importable
from amlb_ext.core.unit import Kind

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from amlb_ext.core.config import BaselineConfig

#: Parts of import paths of models that split columns, so that ordinal codes serve them.
_TREE_LIKE = (".ensemble.", ".tree.", "xgboost", "lightgbm")
#: Models that read a missing number as it is; all others get the training median.
_READS_MISSING = ("HistGradientBoosting", "XGB", "LGBM", "CatBoost")


@dataclass(frozen=True)
class ModelSpec:
    """An estimator that is not yet built.

    Attributes
    ----------
    path : str
        Import path of its class.
    params : dict
        Parameters that differ from the class's defaults.
    encoding : {'ordinal', 'onehot'}
        How it sees categories.
    """

    path: str
    params: dict[str, Any] = field(default_factory=dict)
    encoding: str = "ordinal"

    @property
    def reads_missing(self) -> bool:
        """Whether the estimator takes NaN."""
        return self.path.rsplit(".", 1)[-1].startswith(_READS_MISSING)


@dataclass(frozen=True)
class NamedBaseline:
    """A baseline with a short name: an estimator for classification and one for regression.

    Attributes
    ----------
    classifier, regressor : ModelSpec
        No regressor where it knows what the columns of one task of classes are, and reads no other.
    description : str
    ask_at_most : int, optional
        Rows of a fold that it is asked about where the user names no limit.
    """

    classifier: ModelSpec
    regressor: ModelSpec | None
    description: str
    ask_at_most: int | None = None


def _both_kinds(
    path: str, encoding: str, *, description: str, **params: Any
) -> NamedBaseline:
    """Return a baseline whose two estimators have the same parameters, and names that say so."""
    return NamedBaseline(
        classifier=ModelSpec(f"{path}Classifier", dict(params), encoding),
        regressor=ModelSpec(f"{path}Regressor", dict(params), encoding),
        description=description,
    )


_RIDGE = ModelSpec("sklearn.linear_model.Ridge", encoding="onehot")
_LOGISTIC = ModelSpec(
    "sklearn.linear_model.LogisticRegression", {"max_iter": 1000}, "onehot"
)
#: Short names; a new baseline is one entry here and inherits ``tests/hardening``'s conformance
#: suite. Trees see ordinal codes (paper, section 4.3.1), the others one-hot columns.
BASELINES: dict[str, NamedBaseline] = {
    "ridge": NamedBaseline(
        _LOGISTIC, _RIDGE, "linear model with an L2 penalty (logistic for classes)"
    ),
    "logistic": NamedBaseline(
        _LOGISTIC, _RIDGE, "logistic regression (ridge for regression)"
    ),
    "random_forest": _both_kinds(
        "sklearn.ensemble.RandomForest",
        "ordinal",
        description="random forest of 100 trees",
        n_estimators=100,
    ),
    "gradient_boosting": _both_kinds(
        "sklearn.ensemble.GradientBoosting",
        "ordinal",
        description="gradient boosting of 100 trees, depth 3",
    ),
    "hist_gradient_boosting": _both_kinds(
        "sklearn.ensemble.HistGradientBoosting",
        "ordinal",
        description="histogram gradient boosting",
    ),
    "knn": _both_kinds(
        "sklearn.neighbors.KNeighbors",
        "onehot",
        description="15 nearest neighbours",
        n_neighbors=15,
    ),
    "mlp": _both_kinds(
        "sklearn.neural_network.MLP",
        "onehot",
        description="multi-layer perceptron, 64 hidden units",
        hidden_layer_sizes=[64],
        max_iter=300,
    ),
    "xgboost": _both_kinds(
        "xgboost.XGB",
        "ordinal",
        description="XGBoost, 200 trees of depth 3 (extra 'xgboost')",
        n_estimators=200,
        max_depth=3,
    ),
}


#: Short names of models that are worth something on one task alone, so no conformance suite.
READERS: dict[str, NamedBaseline] = {
    "outline_reader": NamedBaseline(
        ModelSpec("extensions.WeirdReader.readers.OutlineReader"),
        None,
        "matches outlines of shapes; reads weird/shapes_hard (and shapes_easy) only",
        # an answer takes it some 20 ms
        ask_at_most=20_000,
    ),
}


def resolve_model(config: BaselineConfig, kind: Kind) -> ModelSpec:
    """Turn a short name or an import path into the estimator for this kind, and try to build it.

    ``package.Class:key=value,key=value`` gives parameters in the same word.

    Raises
    ------
    ModelError
        Unknown name, a class that cannot be imported, or a parameter it does not have.

    Examples
    --------
    >>> from amlb_ext.core.config import BaselineConfig
    >>> resolve_model(BaselineConfig(model="sklearn.linear_model.Ridge:alpha=2"), Kind.REGRESSION)
    ModelSpec(path='sklearn.linear_model.Ridge', params={'alpha': 2}, encoding='onehot')
    """
    spec = parse_model(config, kind)
    build_estimator(spec, kind)
    return spec


def parse_model(config: BaselineConfig, kind: Kind) -> ModelSpec:
    """Return what a short name or an import path stands for; nothing is imported.

    Raises
    ------
    ModelError
        Unknown name.
    """
    name, _, inline = config.model.partition(":")
    params = {**_inline_params(inline), **config.params}
    if name in BASELINES or name in READERS:
        named = BASELINES.get(name) or READERS[name]
        known = named.classifier if kind.is_classification else named.regressor
        if known is None:
            raise ModelError(
                f"{name} predicts classes, and the task is a {kind}",
                "name another model for --baseline, e.g. random_forest",
            )
        spec = replace(known, params={**known.params, **params})
    elif "." in name:
        sees_codes = any(mark in name for mark in _TREE_LIKE)
        spec = ModelSpec(name, params, "ordinal" if sees_codes else "onehot")
    else:
        raise ModelError(
            f"unknown baseline {name!r}",
            f"{suggest_nearest(name, [*BASELINES, *READERS])}; of a package name one class: "
            f"{name or 'package'}.NAME_OF_A_CLASS",
        )
    if config.encoding != "auto":
        spec = replace(spec, encoding=config.encoding)
    return spec


def check_model_listed(where: str, config: BaselineConfig, kind: Kind) -> None:
    """Raise unless a model that a suite names is on the list of what it may name.

    Raises
    ------
    SuiteError
        See :func:`amlb_ext.core.estimators.check_is_listed`.
    ModelError
        Unknown name.
    """
    spec = parse_model(config, kind)
    check_is_listed(where, spec.path, spec.params)


def _inline_params(text: str) -> dict[str, Any]:
    if not text:
        return {}
    import yaml

    from amlb_ext.core.yaml_reader import read_value, yaml_problem

    params = {}
    for item in filter(None, text.split(",")):
        key, equals, value = item.partition("=")
        problem = "" if equals else "is not of the form key=value"
        try:
            params[key.strip()] = read_value(value)
        except yaml.YAMLError as error:
            problem = f"has a value that cannot be read: {yaml_problem(error)}"
        if problem:
            raise ModelError(
                f"{item!r} {problem}", "write package.Class:key=value,key=value"
            )
    return params


def build_estimator(spec: ModelSpec, kind: Kind, seed: int = 0) -> BaseEstimator:
    """Return the unfitted estimator, single-threaded, seeded where it has a ``random_state``.

    Raises
    ------
    ModelError
    """
    # here: names are listed without scikit-learn, whose import takes most of a second
    from sklearn.base import is_classifier, is_regressor

    estimator_class = import_estimator(spec.path)
    remedy = "name a class that has get_params, fit and predict"
    try:
        estimator = estimator_class()
        known = estimator.get_params()
    except (TypeError, AttributeError) as error:
        raise ModelError(
            f"{spec.path} is not a scikit-learn estimator: {error}", remedy
        ) from None
    for key in spec.params:
        if key not in known:
            raise ModelError(
                f"{spec.path} has no parameter {key!r}", suggest_nearest(key, known)
            )
    defaults: dict[str, Any] = {"random_state": seed % 2**31}
    # scikit-learn is single-threaded by itself; others take every core of a busy machine
    if not spec.path.startswith("sklearn."):
        defaults["n_jobs"] = 1
    own = {key: value for key, value in defaults.items() if key in known}
    # last, so that what the user says of them holds
    estimator.set_params(**own | spec.params)
    # a model inside it, which set_params has put there
    for key, value in estimator.get_params().items():
        if key.endswith("__random_state") and value is None:
            estimator.set_params(**{key: seed % 2**31})
    is_other_family = is_regressor if kind.is_classification else is_classifier
    if is_other_family(estimator):
        raise ModelError(
            f"{spec.path} cannot be fitted to a {kind} task",
            "name a model of the other family, or a short name, which serves both",
        )
    return estimator


def import_estimator(path: str) -> type[BaseEstimator]:
    """Import a class that is an estimator; nothing of it is called."""
    module_name, _, class_name = path.rpartition(".")
    if Path(path).is_file():
        raise ModelError(
            f"{path} is a file whose ending is that of no model",
            "give a .skops file, or with --trust-pickle a .joblib or .pkl file",
        )
    make_importable(path)
    try:
        estimator_class = getattr(importlib.import_module(module_name), class_name)
    # a module that is imported may raise anything, and a file of the user's may even exit
    except (Exception, SystemExit) as error:
        remedy = "check the import path, e.g. sklearn.ensemble.ExtraTreesClassifier"
        if module_name == "xgboost":
            remedy = "pip install 'hardsynth[xgboost]'"
        raise ModelError(f"cannot import the model {path}: {error}", remedy) from None
    if not is_estimator(estimator_class):
        raise ModelError(
            f"{path} is not a class of scikit-learn estimators",
            "name a class that has get_params, fit and predict",
        )
    return estimator_class


def is_installed(name: str) -> bool:
    """Whether the package behind a short name can be imported."""
    package, _, _ = BASELINES[name].classifier.path.partition(".")
    return importlib.util.find_spec(package) is not None
