"""Baselines by short name, and import paths: what to build, before anything is fitted."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass, field
from typing import Any

import yaml
from sklearn.base import BaseEstimator, is_classifier, is_regressor

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import ModelError, suggest_nearest
from amlb_ext.core.estimators import check_is_listed, is_estimator
from amlb_ext.core.task import Kind

#: Models that read a missing number as it is; all others get the training median.
_READS_MISSING = ("HistGradientBoosting", "XGB", "LGBM", "CatBoost")


@dataclass(frozen=True)
class ModelSpec:
    """One estimator: where to import it, its parameters, what it sees of categories."""

    path: str
    params: dict[str, Any] = field(default_factory=dict)
    encoding: str = "ordinal"

    @property
    def reads_missing(self) -> bool:
        """Whether the estimator takes NaN."""
        return self.path.rsplit(".", 1)[-1].startswith(_READS_MISSING)


@dataclass(frozen=True)
class NamedBaseline:
    """A baseline known by a short name: an estimator for each family of tasks."""

    classifier: ModelSpec
    regressor: ModelSpec
    description: str


def _pair(
    classifier: str, regressor: str, encoding: str, text: str, **params: Any
) -> NamedBaseline:
    return NamedBaseline(
        ModelSpec(classifier, dict(params), encoding),
        ModelSpec(regressor, dict(params), encoding),
        text,
    )


#: Short names; a new baseline is one entry here and inherits ``tests/hardening``'s conformance
#: suite. Trees see ordinal codes (paper, section 4.3.1), the others one-hot columns.
BASELINES: dict[str, NamedBaseline] = {
    "ridge": NamedBaseline(
        ModelSpec("sklearn.linear_model.LogisticRegression", {"max_iter": 1000}, "onehot"),
        ModelSpec("sklearn.linear_model.Ridge", {}, "onehot"),
        "linear model with an L2 penalty (logistic for classes)",
    ),
    "logistic": NamedBaseline(
        ModelSpec("sklearn.linear_model.LogisticRegression", {"max_iter": 1000}, "onehot"),
        ModelSpec("sklearn.linear_model.Ridge", {}, "onehot"),
        "logistic regression (ridge for regression)",
    ),
    "random_forest": _pair(
        "sklearn.ensemble.RandomForestClassifier",
        "sklearn.ensemble.RandomForestRegressor",
        "ordinal",
        "random forest of 100 trees",
        n_estimators=100,
    ),
    "gradient_boosting": _pair(
        "sklearn.ensemble.GradientBoostingClassifier",
        "sklearn.ensemble.GradientBoostingRegressor",
        "ordinal",
        "gradient boosting of 100 trees, depth 3",
    ),
    "hist_gradient_boosting": _pair(
        "sklearn.ensemble.HistGradientBoostingClassifier",
        "sklearn.ensemble.HistGradientBoostingRegressor",
        "ordinal",
        "histogram gradient boosting",
    ),
    "knn": _pair(
        "sklearn.neighbors.KNeighborsClassifier",
        "sklearn.neighbors.KNeighborsRegressor",
        "onehot",
        "15 nearest neighbours",
        n_neighbors=15,
    ),
    "mlp": _pair(
        "sklearn.neural_network.MLPClassifier",
        "sklearn.neural_network.MLPRegressor",
        "onehot",
        "multi-layer perceptron, 64 hidden units",
        hidden_layer_sizes=[64],
        max_iter=300,
    ),
    "xgboost": _pair(
        "xgboost.XGBClassifier",
        "xgboost.XGBRegressor",
        "ordinal",
        "XGBoost, 200 trees of depth 3 (extra 'xgboost')",
        n_estimators=200,
        max_depth=3,
    ),
}


def resolve_model(config: BaselineConfig, kind: Kind) -> ModelSpec:
    """Turn a short name or an import path into the estimator for this kind.

    ``package.Class:key=value,key=value`` gives parameters in the same word.

    Raises
    ------
    ModelError
        Unknown name, a class that cannot be imported, or a parameter it does not have.

    Examples
    --------
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
    word, _, inline = config.model.partition(":")
    params = {**_inline_params(inline), **config.params}
    if word in BASELINES:
        named = BASELINES[word]
        spec = named.classifier if kind.is_classification else named.regressor
        spec = ModelSpec(spec.path, {**spec.params, **params}, spec.encoding)
    elif "." in word:
        tree_like = any(mark in word for mark in (".ensemble.", ".tree.", "xgboost", "lightgbm"))
        spec = ModelSpec(word, params, "ordinal" if tree_like else "onehot")
    else:
        raise ModelError(f"unknown baseline {word!r}", suggest_nearest(word, BASELINES))
    if config.encoding != "auto":
        spec = ModelSpec(spec.path, spec.params, config.encoding)
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
    params = {}
    for item in filter(None, text.split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise ModelError(f"{item!r} is no key=value", "write package.Class:key=value,key=value")
        params[key.strip()] = yaml.safe_load(value)
    return params


def build_estimator(spec: ModelSpec, kind: Kind, seed: int = 0) -> BaseEstimator:
    """Return the unfitted estimator, single-threaded, seeded where it has a ``random_state``.

    Raises
    ------
    ModelError
    """
    module_name, _, class_name = spec.path.rpartition(".")
    try:
        estimator_class = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        remedy = "check the import path, e.g. sklearn.ensemble.ExtraTreesClassifier"
        if module_name == "xgboost":
            remedy = "pip install 'hardsynth[xgboost]'"
        raise ModelError(f"cannot import the model {spec.path}: {error}", remedy) from None
    remedy = "give a class with get_params, fit and predict"
    if not is_estimator(estimator_class):  # nothing is called that is none
        raise ModelError(f"{spec.path} is no class of scikit-learn estimators", remedy)
    try:
        estimator = estimator_class()
        known = estimator.get_params()
    except (TypeError, AttributeError) as error:
        raise ModelError(f"{spec.path} is no scikit-learn estimator: {error}", remedy) from None
    for key in spec.params:
        if key not in known:
            raise ModelError(f"{spec.path} has no parameter {key!r}", suggest_nearest(key, known))
    defaults: dict[str, Any] = {"random_state": seed % 2**31}
    if not module_name.startswith("sklearn."):  # scikit-learn is single-threaded by itself
        defaults["n_jobs"] = 1
    estimator.set_params(**{k: v for k, v in defaults.items() if k in known})
    estimator.set_params(**spec.params)
    wrong = is_regressor if kind.is_classification else is_classifier
    if wrong(estimator):
        raise ModelError(
            f"{spec.path} does not fit a {kind} task",
            "name a model of the other family, or a short name, which serves both",
        )
    return estimator


def is_installed(name: str) -> bool:
    """Whether the package behind a short name can be imported."""
    return importlib.util.find_spec(BASELINES[name].classifier.path.split(".")[0]) is not None
