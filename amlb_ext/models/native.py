"""Boosters and results that are no scikit-learn models: their kind, columns and probabilities.

LightGBM's and XGBoost's ``Booster``, CatBoost's base class and the results of statsmodels have a
``predict`` of one meaning each: a probability, a margin, a number. The object itself says which.
None of the libraries is imported here before one of its models comes in.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, softmax
from sklearn.base import (
    is_classifier,
    is_clusterer,
    is_outlier_detector,
    is_regressor,
)

from amlb_ext.core.errors import ModelError

# What a model predicts, classes or numbers, from what the model itself says.


def kind_of_model(model: Any) -> str | None:
    """Return ``classification`` or ``regression``; None where the model does not tell.

    Parameters
    ----------
    model : object
        A fitted model, a function, or predictions, which do not tell.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression, Ridge
    >>> kind_of_model(LogisticRegression()), kind_of_model(Ridge()), kind_of_model(len)
    ('classification', 'regression', None)
    """
    native = as_native(model)
    if native is not None:
        return native.kind
    # a service answers what it is asked for
    if not getattr(model, "gives_labels", True):
        return None
    if _has_tag(is_classifier, model):
        return "classification"
    if _has_tag(is_regressor, model):
        return "regression"
    # CatBoost's regressors have an empty list of classes
    if classes_of_model(model) is not None or hasattr(model, "predict_proba"):
        return "classification"
    return None


def classes_of_model(model: Any) -> list[Any] | None:
    """Return the classes of a model in its own order; None where it names none."""
    classes = attribute_of(model, "classes_")
    if classes is None or not len(classes):
        return None
    # one array for each target of a model of several; its answers will be refused
    return None if np.ndim(classes[0]) else list(classes)


def attribute_of(model: Any, name: str) -> Any:
    """Return an attribute, or None where the model refuses it: before a fit, or of another kind."""
    try:
        return getattr(model, name, None)
    except Exception:
        return None


def check_kind(model: Any, name: str, *, target: str, is_classification: bool) -> None:
    """Raise where a model predicts numbers and the target has classes, the reverse, or neither.

    Raises
    ------
    ModelError
    """
    if _has_tag(is_clusterer, model) or _has_tag(is_outlier_detector, model):
        raise ModelError(
            f"{name} is of the class {type(model).__name__}, which learns no target",
            "give a classifier or a regressor",
        )
    kind = kind_of_model(model)
    if kind is None or (kind == "classification") == is_classification:
        return
    needs = "classes" if is_classification else "numbers"
    raise ModelError(
        f"{name} is a {'regressor' if is_classification else 'classifier'}, but the target "
        f"{target} has {needs}",
        f"name the column that the model predicts with --target, or add --kind {kind} (in Python "
        f"kind={kind!r})",
    )


#: Objectives of XGBoost, LightGBM and CatBoost that order the rows of a query.
_RANKS = re.compile(r"rank|Pair|Query|xendcg|StochasticFilter|YetiRank")


#: Whether a model of scikit-survival predicts risks, as it does if it does not say; the objectives
#: of XGBoost and CatBoost that do.
_SURVIVAL, _PREDICTS_RISK, _RISKS = (
    "sksurv",
    "_predict_risk_score",
    ("survival:cox", "Cox"),
)


def refuse_scores(model: Any, name: str) -> None:
    """Raise ``ModelError`` for a model whose scores order rows, and are in no unit of the target.

    They rank the rows of a query, or say how early an event comes, where more is earlier.

    Parameters
    ----------
    model : object
        A fitted model; of a library's own as :func:`as_native` returns it.
    name : str

    Examples
    --------
    >>> refuse_scores(type("LGBMRanker", (), {})(), "G")
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ModelError: G is of the class LGBMRanker, whose scores order the rows of \
a query (give a classifier or a regressor)
    """
    last = model
    # a search may hold a pipeline, and a pipeline a search
    for _ in range(2):
        last = getattr(last, "best_estimator_", last)
        last = getattr(last, "steps", [(None, last)])[-1][1]
    kind = type(getattr(last, "model", last)).__name__
    objective = attribute_of(last, "objective")
    ranks = isinstance(objective, str) and bool(_RANKS.search(objective))
    if ranks or kind.endswith("Ranker"):
        raise ModelError(
            f"{name} is of the class {kind}, whose scores order the rows of a query",
            "give a classifier or a regressor",
        )
    is_survival = type(last).__module__.partition(".")[0] == _SURVIVAL
    says_risk = is_survival and getattr(last, _PREDICTS_RISK, True)
    if says_risk or objective in _RISKS:
        raise ModelError(
            f"{name} is of the class {kind}, a model of survival, whose scores are risks and no "
            "times",
            "give a function of the rows that returns the times it predicts",
        )


def _has_tag(ask: Any, model: Any) -> bool:
    """Whether scikit-learn counts a model as of a kind; False where it has no tags."""
    try:
        return bool(ask(model))
    except Exception:
        return False


#: Losses of CatBoost whose models predict classes.
_CATBOOST_CLASSES = ("Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll")
#: Models of statsmodels whose results predict the probability of a class.
_STATSMODELS_CLASSES = (
    "Logit",
    "Probit",
    "ConditionalLogit",
    "MNLogit",
    "OrderedModel",
)


class NativeModel:
    """A fitted model of a library that scikit-learn does not know, asked like one that it does.

    Attributes
    ----------
    kind : {'classification', 'regression'}
    feature_names_in_ : list of str or None
        None where it was fitted on an array, or finds its columns itself.
    n_features_in_ : int or None
    """

    def __init__(
        self, model: Any, kind: str, names: list[str] | None, count: int | None
    ) -> None:
        self.model = model
        self.kind = kind
        self.feature_names_in_ = names
        self.n_features_in_ = count

    #: It is asked for probabilities alone: a label would be made of them.
    gives_labels = False
    #: Whether its classes are codes 0, 1, ..., whatever the labels were.
    has_codes = False

    def predict(self, features: Any) -> np.ndarray:
        """Return numbers, ``(n,)``; of a classifier what :meth:`predict_proba` does."""
        return np.asarray(self.model.predict(features), dtype=float)

    def predict_proba(self, features: Any) -> np.ndarray:
        """Return probabilities, ``(n, C)``, or ``(n,)`` of the second class."""
        return self.predict(features)


def _codes(n: int) -> list[int]:
    """Return the classes of a library that knows whole numbers alone; one output is of two."""
    return list(range(max(n, 2)))


class LightgbmBooster(NativeModel):
    """A ``lightgbm.Booster``; its objective is in the text of the model, also after loading."""

    has_codes = True

    def __init__(self, model: Any) -> None:
        found = re.search(
            r"^objective=(\S+)", model.model_to_string(num_iteration=1), re.M
        )
        self.objective = objective = found.group(1) if found else ""
        if not objective:
            raise ModelError(
                "a lightgbm.Booster with an objective of its own predicts margins",
                "give a function that returns probabilities, or numbers: "
                "lambda X: expit(booster.predict(X))",
            )
        is_class = objective in (
            "binary",
            "cross_entropy",
            "multiclass",
            "multiclassova",
        )
        names = model.feature_name()
        super().__init__(
            model, "classification" if is_class else "regression", names, len(names)
        )
        if is_class:
            self.classes_ = _codes(model.num_model_per_iteration())


class XgboostBooster(NativeModel):
    """An ``xgboost.Booster``; margins become probabilities."""

    has_codes = True

    def __init__(self, model: Any) -> None:
        learner = json.loads(model.save_config())["learner"]
        self.objective = learner["objective"]["name"]
        family, _, _ = self.objective.partition(":")
        kind = "classification" if family in ("binary", "multi") else "regression"
        super().__init__(model, kind, model.feature_names, model.num_features())
        if kind == "classification":
            self.classes_ = _codes(int(learner["learner_model_param"]["num_class"]))

    def predict(self, features: Any) -> np.ndarray:
        """See :meth:`NativeModel.predict`."""
        import xgboost

        rows = xgboost.DMatrix(
            features, feature_names=self.feature_names_in_, enable_categorical=True
        )
        if self.kind == "regression":
            return np.asarray(self.model.predict(rows), dtype=float)
        # whatever the objective prints, hinge and softmax only a label
        margins = np.asarray(self.model.predict(rows, output_margin=True), dtype=float)
        return expit(margins) if margins.ndim == 1 else softmax(margins, axis=1)


class CatboostModel(NativeModel):
    """A model of CatBoost's base class, whose ``predict`` gives margins."""

    def __init__(self, model: Any) -> None:
        self.objective = str(model.get_all_params().get("loss_function", ""))
        loss, _, _ = self.objective.partition(":")
        kind = "classification" if loss in _CATBOOST_CLASSES else "regression"
        names = [str(name) for name in model.feature_names_]
        super().__init__(model, kind, names, len(names))
        if kind == "classification":
            self.classes_ = list(model.classes_) or _codes(2)

    def predict(self, features: Any) -> np.ndarray:
        """See :meth:`NativeModel.predict`."""
        form = "RawFormulaVal"
        if self.kind == "classification":
            form = "Probability"
        # fitted on the logarithm: CatBoostRegressor returns the number by itself
        elif self.objective.startswith(("Poisson", "Tweedie")):
            form = "Exponent"
        return np.asarray(
            self.model.predict(features, prediction_type=form), dtype=float
        )


class StatsmodelsResults(NativeModel):
    """The results of a fit of statsmodels; a constant that was added by hand is added again."""

    def __init__(self, model: Any) -> None:
        fitted = model.model
        kind = "regression"
        family = type(getattr(fitted, "family", None)).__name__
        if type(fitted).__name__ in _STATSMODELS_CLASSES or family == "Binomial":
            kind = "classification"
        # a formula takes its columns from the frame by itself
        has_formula = getattr(fitted, "formula", None) is not None
        names = [] if has_formula else [str(name) for name in fitted.exog_names]
        # behind the columns an ordered model has its thresholds
        self.names = names[: fitted.exog.shape[1]]
        wanted = [name for name in self.names if name != "const"]
        super().__init__(model, kind, wanted or None, len(wanted) or None)
        if not isinstance(fitted.data.orig_exog, pd.DataFrame):
            # x1, x2, ... are what statsmodels calls the columns of an array
            self.feature_names_in_ = None
        for beside in ("exposure", "offset"):
            if np.any(getattr(fitted, beside, None)):
                raise ModelError(
                    f"these results of statsmodels were fitted with {beside}=, which is no column "
                    "of the table",
                    f"give a function: lambda X: results.predict(X, {beside}=...)",
                )
        self.classes_ = self._find_classes(fitted) if kind == "classification" else []

    @staticmethod
    def _find_classes(fitted: Any) -> list[Any]:
        """Return the classes in the order of the probabilities."""
        if hasattr(fitted, "_ynames_map"):
            return list(fitted._ynames_map.values())
        if hasattr(fitted, "labels"):
            return list(fitted.labels)
        target = fitted.endog_names
        if isinstance(target, str):
            return _codes(2)
        # two columns: of y[no] and y[yes] the first is what is predicted
        found = [re.search(r"\[(.*)\]$", str(name)) for name in target]
        if not all(found):
            raise ModelError(
                f"these results of statsmodels predict the share of {target[0]!r}, and do not say "
                "which class that is",
                "give a function that returns the probability of each class",
            )
        return [match[1] for match in reversed(found) if match]

    def predict(self, features: Any) -> np.ndarray:
        """See :meth:`NativeModel.predict`."""
        if "const" in self.names:
            place = self.names.index("const")
            if isinstance(features, pd.DataFrame):
                features.insert(place, "const", 1.0)
            else:
                features = np.insert(
                    np.asarray(features, dtype=float), place, 1.0, axis=1
                )
        return np.asarray(self.model.predict(features), dtype=float)


def as_native(model: Any) -> NativeModel | None:
    """Return a library's own model behind one interface; None for any other object.

    Raises
    ------
    ModelError
        A booster whose answers are margins of an unknown meaning.
    """
    package = _package_of(model)
    if package == "statsmodels":
        return StatsmodelsResults(model) if hasattr(model, "model") else None
    native = _NATIVE.get((package, type(model).__name__))
    return None if native is None else native(model)


#: By package and class.
_NATIVE = {
    ("lightgbm", "Booster"): LightgbmBooster,
    ("xgboost", "Booster"): XgboostBooster,
    ("catboost", "CatBoost"): CatboostModel,
}


def _package_of(model: Any) -> str:
    return type(model).__module__.partition(".")[0]


# Texts as the categories on which a boosting model was fitted.
#
# LightGBM, XGBoost and scikit-learn's histogram gradient boosting read pandas' categories. A table
# from a text file has none: its texts are given the categories that the model knows.


def with_native_categories(model: Any, rows: Any) -> pd.DataFrame | None:
    """Return rows with their texts as categories; None where the model reads no categories.

    Parameters
    ----------
    model : object
    rows : DataFrame, or anything else
    """
    if not isinstance(rows, pd.DataFrame):
        return None
    texts = [
        name
        for name in rows.columns
        if pd.api.types.is_object_dtype(rows[name])
        or pd.api.types.is_string_dtype(rows[name])
    ]
    if isinstance(model, NativeModel):
        model = model.model
    # those of each column, None where its own will do
    categories: list[Any] = [None] * len(texts)
    if _package_of(model) == "lightgbm":
        booster = getattr(model, "booster_", model)
        # in the order of the columns that were categories
        categories = getattr(booster, "pandas_categorical", None) or []
    elif _package_of(model) == "xgboost":
        import xgboost

        major, minor, *_ = xgboost.__version__.split(".")
        # older ones know codes alone, later ones keep categories by value
        if (int(major), int(minor)) < (3, 1):
            return None
    elif not type(model).__name__.startswith("HistGradientBoosting"):
        # whose encoder knows the categories, and goes by their values
        return None
    if not texts or len(categories) != len(texts):
        return None
    dtypes = map(pd.CategoricalDtype, categories)
    recast = rows.astype(dict.fromkeys(texts, object))
    return recast.astype(dict(zip(texts, dtypes, strict=True)))
