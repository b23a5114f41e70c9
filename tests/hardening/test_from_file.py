"""F from a file: what is loaded, what it is given, and how it is fitted again."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import ModelError
from amlb_ext.core.tables import make_task
from amlb_ext.hardening.baseline.fitted import FittedBaseline
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.split import cross_folds
from amlb_ext.models.files import is_baseline_file, load_fitted_model, load_model


def sample(n, seed, kind="class"):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    table["town"] = rng.choice(["u", "v", "w"], n)
    signal = table["a"] + (table["town"] == "u") + 0.3 * rng.normal(size=n)
    table["y"] = np.where(signal > 0, 7, 3) if kind == "class" else 100 + 10 * signal
    return table


def as_baseline(model, table):
    """Return F for a table, with its encoded rows, targets and parts."""
    task = make_task(table, "y", name="t", kind=None)
    encoder = Encoder(task.columns).fit(task.features)
    target = TargetEncoder(task.kind, task.labels, task.target)
    Z, y = encoder.transform(task.features), target.transform(task.target)
    parts = cross_folds(y, target.n_classes, 5, 1)
    return FittedBaseline(model, "m.pkl", encoder, target), Z, y, parts


def pipeline(last):
    one_hot = OneHotEncoder(handle_unknown="ignore")
    return make_pipeline(
        make_column_transformer((one_hot, ["town"]), remainder="passthrough"), last
    )


@pytest.mark.parametrize("name", ["m.pkl", "m.joblib", "m.sav", "m.pkl.gz", "m.pickle"])
@pytest.mark.parametrize("compress", [0, 3])
def test_files_of_joblib_load_under_any_ending(tmp_path, name, compress):
    path = tmp_path / name
    model = LinearRegression().fit(np.eye(3), [1.0, 2.0, 3.0])
    joblib.dump(model, path, compress=compress)
    assert is_baseline_file(BaselineConfig(model=str(path)))
    loaded = load_model(path, trust_pickle=True)
    np.testing.assert_allclose(loaded.predict(np.eye(3)), [1.0, 2.0, 3.0])
    with pytest.raises(ModelError, match="add --trust-pickle"):
        load_model(path, trust_pickle=False)


def test_what_is_no_model_is_named(tmp_path):
    joblib.dump(LinearRegression, tmp_path / "class.pkl")
    with pytest.raises(ModelError, match="holds the class LinearRegression"):
        load_fitted_model(tmp_path / "class.pkl", trust_pickle=True)
    (tmp_path / "garbage.skops").write_text("nothing")
    for trust_pickle in (False, True):
        with pytest.raises(ModelError, match=r"garbage\.skops: it is no \.skops file"):
            load_fitted_model(tmp_path / "garbage.skops", trust_pickle=trust_pickle)


def test_a_model_of_some_columns_gets_those_in_its_order():
    table = sample(60, 0, kind="number")
    model = LinearRegression().fit(table[["b", "a"]], table["y"])
    baseline, Z, _, _ = as_baseline(model, table)
    f = baseline.predict(Z) * baseline.target.span + baseline.target.low
    np.testing.assert_allclose(f, model.predict(table[["b", "a"]]))


def test_missing_texts_reach_the_imputer_of_a_model():
    table = sample(80, 0, kind="number")
    table.loc[::7, "town"] = None
    impute = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    columns = make_column_transformer((impute, ["town"]))
    model = make_pipeline(columns, LinearRegression())
    # texts by themselves: pandas 2 would write a missing one as the text "None"
    towns = table[["town"]].astype(object).where(table[["town"]].notna(), np.nan)
    model.fit(towns, table["y"])
    baseline, Z, _, _ = as_baseline(model, table)
    f = baseline.predict(Z) * baseline.target.span + baseline.target.low
    np.testing.assert_allclose(f, model.predict(towns))


@pytest.mark.parametrize("kind", ["class", "number"])
def test_clones_are_fitted_on_the_table_and_f_stays_as_it_came(kind):
    elsewhere, table = sample(40, 1, kind), sample(400, 2, kind)
    last = LogisticRegression() if kind == "class" else LinearRegression()
    model = pipeline(last).fit(elsewhere.drop(columns="y"), elsewhere["y"])
    baseline, Z, y, parts = as_baseline(model, table)
    f, fits = baseline.cross_fit(Z, y, np.arange(len(y)), parts, seed=1)
    np.testing.assert_array_equal(f, baseline.predict(Z))
    assert (len(fits), baseline.refit_problem_) == (5, "")
    # a clone is the same pipeline, fitted on the training rows of its part
    train = table.iloc[parts[0][0]]
    own = pipeline(last).fit(train.drop(columns="y"), train["y"])
    twin, _, _, _ = as_baseline(own, table)
    np.testing.assert_allclose(fits[0].predict(Z), twin.predict(Z), atol=1e-5)
    # the same seed gives the same clones
    _, again = baseline.cross_fit(Z, y, np.arange(len(y)), parts, seed=1)
    np.testing.assert_array_equal(fits[3].predict(Z), again[3].predict(Z))


def test_random_models_get_a_seed_for_each_clone():
    table = sample(100, 2)
    forest = RandomForestClassifier(3).fit(table[["a", "b"]], table["y"])
    baseline, Z, y, parts = as_baseline(forest, table)
    rows = np.arange(len(y))
    _, one = baseline.cross_fit(Z, y, rows, parts, seed=1)
    _, two = baseline.cross_fit(Z, y, rows, parts, seed=1)
    np.testing.assert_array_equal(one[0].predict(Z), two[0].predict(Z))


class Handmade:
    """A model with the interface, but none that scikit-learn could clone."""

    classes_ = np.array([3, 7])

    def predict(self, X):
        return np.full(len(X), 3)

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


def refuses_unknown():
    table = sample(200, 5)
    columns = make_column_transformer(
        (OneHotEncoder(), ["town"]), remainder="passthrough"
    )
    return make_pipeline(columns, LogisticRegression()).fit(
        table.drop(columns="y"), table["y"]
    )


def test_a_model_that_cannot_be_fitted_again_says_why():
    table = sample(60, 3)
    forest = RandomForestClassifier(3).fit(table[["a", "b"]], table["y"])
    # the town of one row: the clone without that row refuses it
    rare = table.assign(town=["w"] + ["u", "v"] * 29 + ["u"])
    cases = [
        (Handmade(), table, "clone"),
        (FrozenEstimator(forest), table, "does not learn"),
        (refuses_unknown(), rare, "unknown categories"),
    ]
    for model, rows, why in cases:
        baseline, Z, y, parts = as_baseline(model, rows)
        f, fits = baseline.cross_fit(Z, y, np.arange(len(y)), parts, seed=1)
        assert (f.shape, fits) == ((60, 2), [])
        assert why in baseline.refit_problem_
