"""Conformance: every baseline keeps the contract; a new one inherits these tests."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import ModelError
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Kind
from amlb_ext.hardening.baseline.estimator import FilledColumns, LeadingOneHot
from amlb_ext.hardening.baseline.fitted import make_baseline
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.split import cross_folds
from amlb_ext.models.registry import (
    BASELINES,
    build_estimator,
    is_installed,
    resolve_model,
)


def make(kind, n=120, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random(n)
    color = rng.choice(["red", "green", "blue"], n)
    table = pd.DataFrame({"x": x, "whole": rng.integers(0, 9, n), "color": color})
    table.loc[::11, "x"] = np.nan
    signal = np.nan_to_num(x) + (color == "red")
    if kind == "regression":
        table["y"] = 10 * signal + rng.normal(0, 0.1, n)
    else:
        classes = 2 if kind == "binary" else 3
        edges = np.quantile(signal, np.linspace(0, 1, classes + 1)[1:-1])
        table["y"] = pd.Series(np.digitize(signal, edges)).map({0: "a", 1: "b", 2: "c"})
    return make_task(table, "y", name=kind)


def encoded(task):
    encoder = Encoder(task.columns).fit(task.features)
    target = TargetEncoder(task.kind, task.labels, task.target)
    return (
        encoder,
        target,
        encoder.transform(task.features),
        target.transform(task.target),
    )


@pytest.fixture(params=["regression", "binary", "multiclass"])
def task(request):
    return make(request.param)


def few_rounds(name, kind):
    """Return a baseline with fewer trees or rounds than it has: each is fitted seven times."""
    known = resolve_model(BaselineConfig(model=name), kind)
    settings = build_estimator(known, kind).get_params()
    # of a network it is a word
    is_boosting = isinstance(settings.get("learning_rate"), float)
    few = {"n_estimators": 20, "max_iter": 20} if is_boosting else {"n_estimators": 20}
    return BaselineConfig(
        model=name, params={key: few[key] for key in few if key in settings}
    )


@pytest.mark.parametrize("name", BASELINES)
def test_contract(name, task):
    if not is_installed(name):
        pytest.skip(f"the optional package of {name} is not installed")
    encoder, target, Z, y = encoded(task)
    rows = np.arange(len(task))
    config = few_rounds(name, task.kind)
    model = make_baseline(config, task, encoder, target).fit(Z, y, seed=1)
    f = model.predict(Z)
    parts = cross_folds(y, len(task.labels), 5, 1)
    out, fits = model.cross_fit(Z, y, rows, parts, seed=1)
    assert len(fits) == 5
    assert (
        f.shape
        == out.shape
        == ((len(y), len(task.labels)) if task.labels else (len(y),))
    )
    assert np.isfinite(f).all()
    if task.labels:
        np.testing.assert_allclose(f.sum(axis=1), 1.0)
        assert (f.argmax(axis=1) == y).mean() > 0.6
    else:
        assert np.corrcoef(f, y)[0, 1] > 0.8
    again = make_baseline(config, task, encoder, target).fit(Z, y, seed=1)
    np.testing.assert_array_equal(f, again.predict(Z))
    # a category and a number never seen, and a missing number, are predicted too
    assert np.isfinite(
        model.predict(np.array([[2.0, 7.0, 99.0], [0.0, np.nan, 0.0]]))
    ).all()


def test_a_class_missing_from_training_gets_probability_zero():
    task = make("multiclass")
    encoder, target, Z, y = encoded(task)
    seen = y != 1
    model = make_baseline(BaselineConfig(model="ridge"), task, encoder, target)
    f = model.fit(Z[seen], y[seen], seed=0).predict(Z)
    assert np.all(f[:, 1] == 0)
    np.testing.assert_allclose(f.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("model", "kind", "message"),
    [
        ("rigde", Kind.BINARY, "did you mean 'ridge'"),
        ("sklearn.ensemble.Nothing", Kind.BINARY, "cannot import"),
        (
            "sklearn.ensemble.RandomForestClassifier",
            Kind.REGRESSION,
            "cannot be fitted to a regression",
        ),
        ("sklearn.linear_model.Ridge:alpa=1", Kind.REGRESSION, "did you mean 'alpha'"),
        ("sklearn.linear_model.Ridge:alpha", Kind.REGRESSION, "key=value"),
        ("math.sin", Kind.REGRESSION, "not a class of scikit-learn estimators"),
    ],
)
def test_models_that_cannot_be_built(model, kind, message):
    with pytest.raises(ModelError, match=message):
        resolve_model(BaselineConfig(model=model), kind)


def user_model(task):
    """A deployed model as users have them: a pipeline on the table's own columns."""
    frame = pd.DataFrame(
        {
            "x": task.features["x"].fillna(0.5),
            "color": task.features["color"].astype(object),
        }
    )
    one_hot = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer((one_hot, ["color"]))
    final = LinearRegression() if task.kind is Kind.REGRESSION else LogisticRegression()
    return make_pipeline(columns, final).fit(frame, task.target.to_numpy()), frame


@pytest.mark.parametrize("kind", ["regression", "binary", "multiclass"])
def test_fitted_skops_model(kind, tmp_path):
    skops_io = pytest.importorskip("skops.io", reason="skops is an optional extra")
    task = make(kind)
    model, frame = user_model(task)
    path = tmp_path / "model.skops"
    skops_io.dump(model, path)
    encoder, target, Z, _ = encoded(task)
    f = make_baseline(BaselineConfig(model=str(path)), task, encoder, target).predict(Z)
    if kind == "regression":
        np.testing.assert_allclose(f * target.span + target.low, model.predict(frame))
    else:
        order = [list(model.classes_).index(label) for label in task.labels]
        np.testing.assert_allclose(f, model.predict_proba(frame)[:, order])


def test_file_of_predictions(tmp_path):
    task = make("regression")
    path = tmp_path / "p.csv"
    pd.DataFrame({"prediction": task.target + 1}).to_csv(path, index=False)
    encoder, target, Z, y = encoded(task)
    model = make_baseline(BaselineConfig(model=str(path)), task, encoder, target)
    rows = np.array([3, 50])
    np.testing.assert_allclose(
        model.predict_rows(Z[rows], rows), y[rows] + 1 / target.span
    )
    assert not model.can_search
    with pytest.raises(ModelError, match="give --baseline a model"):
        model.predict(Z)
    pd.DataFrame({"prediction": [1.0]}).to_csv(path, index=False)
    with pytest.raises(ModelError, match="has 1 rows"):
        make_baseline(BaselineConfig(model=str(path)), task, encoder, target)


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("n_leading", [1, 2, 5])
def test_leading_one_hot_is_a_column_transformer(n_leading):
    rng = np.random.default_rng(n_leading)
    codes = rng.integers(0, [3, 70, 2, 4, 9], (200, 5)).astype(float)
    Z = np.hstack([codes, rng.random((200, 2))])[:, : max(n_leading, 4)]
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=50, sparse_output=False
    )
    theirs = make_column_transformer(
        (one_hot, list(range(n_leading))), remainder="passthrough"
    )
    # the last rows have categories that the first lack
    ours = LeadingOneHot(one_hot, n_leading).fit(Z[:100]).transform(Z)
    assert np.array_equal(ours, theirs.fit(Z[:100]).transform(Z))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_filled_columns_fill_in_medians_as_a_simple_imputer(share):
    """The framework in AMLB fills with scikit-learn's own: F must read the same rows there."""
    rng = np.random.default_rng(0)
    train, asked = rng.random((40, 4)), rng.random((30, 4))
    for rows in (train, asked):
        rows[rng.random(rows.shape) < share] = np.nan
    train[:, 0] = np.nan
    imputer = SimpleImputer(strategy="median", keep_empty_features=True)
    is_empty = np.isnan(train).all(axis=0)
    imputer.fit(np.where(is_empty, 0.0, train))
    filled = FilledColumns(fills_missing=True).fit(train)
    for rows in (train, asked):
        wanted = imputer.transform(np.where(is_empty, 0.0, rows))
        assert np.array_equal(filled.transform(rows), wanted)
