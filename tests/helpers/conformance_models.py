"""Models for the conformance suite: of scikit-learn, LightGBM, XGBoost, CatBoost, skorch, and none.

A name is ``library.Name``; one of a library that is not installed skips with that reason.
"""

import importlib.util
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import (
    calibration,
    discriminant_analysis,
    dummy,
    ensemble,
    linear_model,
    model_selection,
    naive_bayes,
    neighbors,
    neural_network,
    svm,
    tree,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

SEED = {"random_state": 0}
SKLEARN = {
    "LogisticRegression": linear_model.LogisticRegression(),
    "scaled LogisticRegression": make_pipeline(
        StandardScaler(), linear_model.LogisticRegression()
    ),
    "RidgeClassifier": linear_model.RidgeClassifier(),
    "SGDClassifier": linear_model.SGDClassifier(loss="log_loss", **SEED),
    "GaussianNB": naive_bayes.GaussianNB(),
    "KNeighborsClassifier": neighbors.KNeighborsClassifier(1),
    "DecisionTreeClassifier": tree.DecisionTreeClassifier(**SEED),
    "RandomForestClassifier": ensemble.RandomForestClassifier(10, **SEED),
    "ExtraTreesClassifier": ensemble.ExtraTreesClassifier(10, **SEED),
    "GradientBoostingClassifier": ensemble.GradientBoostingClassifier(
        n_estimators=5, **SEED
    ),
    "HistGradientBoostingClassifier": ensemble.HistGradientBoostingClassifier(
        max_iter=5, **SEED
    ),
    "AdaBoostClassifier": ensemble.AdaBoostClassifier(n_estimators=5, **SEED),
    "LinearDiscriminantAnalysis": discriminant_analysis.LinearDiscriminantAnalysis(),
    "MLPClassifier": neural_network.MLPClassifier((4,), max_iter=20, **SEED),
    "LinearSVC": svm.LinearSVC(**SEED),
    "DummyClassifier": dummy.DummyClassifier(),
    "calibrated LinearSVC": calibration.CalibratedClassifierCV(
        svm.LinearSVC(**SEED), cv=2
    ),
    "FixedThresholdClassifier": model_selection.FixedThresholdClassifier(
        linear_model.LogisticRegression(),
        threshold=0.1,
        response_method="predict_proba",
    ),
    "TunedThresholdClassifierCV": model_selection.TunedThresholdClassifierCV(
        naive_bayes.GaussianNB(), cv=2, **SEED
    ),
    "GridSearchCV": model_selection.GridSearchCV(
        tree.DecisionTreeClassifier(**SEED), {"max_depth": [2, 3]}, cv=2
    ),
    "VotingClassifier": ensemble.VotingClassifier(
        [("nb", naive_bayes.GaussianNB()), ("tree", tree.DecisionTreeClassifier())],
        voting="soft",
    ),
    "LinearRegression": linear_model.LinearRegression(),
    "Ridge": linear_model.Ridge(),
    "HuberRegressor": linear_model.HuberRegressor(max_iter=1000),
    "KNeighborsRegressor": neighbors.KNeighborsRegressor(3),
    "DecisionTreeRegressor": tree.DecisionTreeRegressor(**SEED),
    "RandomForestRegressor": ensemble.RandomForestRegressor(10, **SEED),
    "HistGradientBoostingRegressor": ensemble.HistGradientBoostingRegressor(
        max_iter=5, **SEED
    ),
    "SVR": svm.SVR(),
    "DummyRegressor": dummy.DummyRegressor(strategy="median"),
    "scaled Ridge": make_pipeline(StandardScaler(), linear_model.Ridge()),
    "Ridge on an array": linear_model.Ridge(),
    "RandomForestClassifier on an array": ensemble.RandomForestClassifier(10, **SEED),
}
OTHERS = [
    "lightgbm.LGBMClassifier",
    "lightgbm.LGBMRegressor",
    "lightgbm.Booster regression",
    "xgboost.XGBRegressor",
    "xgboost.Booster regression",
    "catboost.CatBoostClassifier",
    "catboost.CatBoostClassifier yes first",
    "catboost.CatBoostRegressor",
    "skorch.NeuralNetRegressor",
    "statsmodels.OLS",
    "hand-made.classifier",
    "hand-made.labels",
    "hand-made.regressor",
    "function.probabilities",
    "function.numbers",
]
MODELS = [f"sklearn.{name}" for name in SKLEARN] + OTHERS


def is_classifier_name(name: str) -> bool:
    """Whether a model of that name predicts classes."""
    words = (
        "Classifier",
        "Regression",
        "GaussianNB",
        "SVC",
        "Analysis",
        "GridSearch",
        "labels",
    )
    if "regression" in name or name in ("sklearn.LinearRegression",):
        return False
    return any(word in name for word in (*words, "classifier", "probabilities"))


def build(name: str, X: pd.DataFrame, y: pd.Series):
    """Return the fitted model of that name; skip where its library is not installed."""
    library, _, model = name.partition(".")
    if library in ("hand-made", "function"):
        return _own_model(name, X, y)
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if library == "sklearn":
            rows = X.to_numpy() if "array" in model else X
            return SKLEARN[model].fit(rows, y)
        return _OF_LIBRARY[library](model, X, y)


def _of_lightgbm(model: str, X: pd.DataFrame, y: pd.Series):
    import lightgbm

    settings = {"n_estimators": 5, "verbose": -1, "n_jobs": 1}
    if model == "LGBMClassifier":
        return lightgbm.LGBMClassifier(**settings).fit(X, y)
    if model == "LGBMRegressor":
        return lightgbm.LGBMRegressor(**settings).fit(X, y)
    data = lightgbm.Dataset(X, y)
    return lightgbm.train({"objective": "l2", "verbose": -1}, data, 5)


def _of_xgboost(model: str, X: pd.DataFrame, y: pd.Series):
    import xgboost

    if model == "XGBRegressor":
        return xgboost.XGBRegressor(n_estimators=5, n_jobs=1).fit(X, y)
    return xgboost.train({"objective": "reg:squarederror"}, xgboost.DMatrix(X, y), 5)


def _of_catboost(model: str, X: pd.DataFrame, y: pd.Series):
    import catboost

    settings = {"iterations": 5, "verbose": 0, "allow_writing_files": False}
    if model == "CatBoostRegressor":
        return catboost.CatBoostRegressor(**settings).fit(X, y)
    if model.endswith("yes first"):
        settings["class_names"] = ["yes", "no"]
    return catboost.CatBoostClassifier(**settings).fit(X, y)


def _of_skorch(model: str, X: pd.DataFrame, y: pd.Series):
    import skorch
    import torch

    torch.manual_seed(0)
    net = skorch.NeuralNetRegressor(
        torch.nn.Linear, module__in_features=3, module__out_features=1, verbose=0
    )
    target = y.to_numpy(dtype=np.float32)[:, None]
    return net.set_params(max_epochs=2, lr=1e-5).fit(
        X.to_numpy(dtype=np.float32), target
    )


def _of_statsmodels(model: str, X: pd.DataFrame, y: pd.Series):
    import statsmodels.api as sm

    return sm.OLS(y, sm.add_constant(X)).fit()


_OF_LIBRARY = {
    "lightgbm": _of_lightgbm,
    "xgboost": _of_xgboost,
    "catboost": _of_catboost,
    "skorch": _of_skorch,
    "statsmodels": _of_statsmodels,
}


class OwnClassifier:
    """Knows nothing of scikit-learn but its two methods."""

    def __init__(self, inner, *, gives_probabilities: bool = True) -> None:
        self.inner = inner
        if gives_probabilities:
            self.predict_proba = self._probabilities

    def _probabilities(self, X):
        return self.inner.predict_proba(X)

    def predict(self, X):
        """Return labels."""
        return self.inner.predict(X)


class OwnRegressor:
    """Returns a column, as networks do."""

    def __init__(self, inner) -> None:
        self.inner = inner

    def predict(self, X):
        """Return numbers, one column."""
        return self.inner.predict(X)[:, None]


class Counted:
    """Spoils the rows that it is given, and remembers their index."""

    def __init__(self, inner) -> None:
        self.inner = inner

    def predict(self, X):
        """Return the answers of the other model."""
        self.seen_index = X.index
        said = self.inner.predict(X)
        X.iloc[:, 0] = 0.0
        return said


def _own_model(name: str, X: pd.DataFrame, y: pd.Series):
    numbers = linear_model.Ridge()
    classes = linear_model.LogisticRegression()
    if name == "hand-made.classifier":
        return OwnClassifier(classes.fit(X, y))
    if name == "hand-made.labels":
        return OwnClassifier(classes.fit(X, y), gives_probabilities=False)
    if name == "hand-made.regressor":
        return OwnRegressor(numbers.fit(X, y))
    if name == "function.probabilities":
        fitted = classes.fit(X, y)
        return lambda rows: fitted.predict_proba(rows)[:, 1]
    return numbers.fit(X, y).predict
