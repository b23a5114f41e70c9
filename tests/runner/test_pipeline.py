"""The integration's preprocessing and models, without AMLB."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "category": rng.choice(["x", "y", "10", "9"], n),
            "flag": rng.random(n) < 0.5,
            "whole": rng.integers(0, 9, n),
        }
    )
    frame.loc[frame.index % 7 == 0, "category"] = None
    frame.loc[frame.index % 5 == 0, "number"] = np.nan
    frame["category"] = frame["category"].astype("category")
    return frame


def test_codes_and_scaling_by_hand(pipeline):
    train = pd.DataFrame(
        {"a": [0.0, 4.0, np.nan], "b": ["2", "10", None], "c": [True, False, True]}
    )
    test = pd.DataFrame(
        {"a": [2.0, 8.0, np.nan], "b": ["10", "new", None], "c": [False] * 3}
    )
    encoder = pipeline.Encoder().fit(train)
    # categories by value: 2 -> 0, 10 -> 1, missing and unseen -> 2; False -> 0, True -> 1;
    # a: (2-0)/4 = 0.5, (8-0)/4 = 2
    assert encoder.transform(test).tolist()[:2] == [[1.0, 0.0, 0.5], [2.0, 0.0, 2.0]]
    last = encoder.transform(test)[2]
    assert last[0] == 2.0
    assert np.isnan(last[2])


def test_constant_empty_and_no_columns_of_a_kind(pipeline):
    frame = pd.DataFrame({"same": [3, 3, 3], "empty": [np.nan] * 3})
    Z = pipeline.Encoder().fit(frame).transform(frame)
    assert Z[:, 0].tolist() == [0, 0, 0]
    assert np.isnan(Z[:, 1]).all()
    only = pd.DataFrame({"c": ["a", "b", "a"]})
    assert pipeline.Encoder().fit(only).transform(only).tolist() == [[0], [1], [0]]


@pytest.mark.parametrize(
    ("path", "encoding"),
    [
        ("sklearn.ensemble.RandomForestClassifier", "ordinal"),
        ("sklearn.linear_model.LogisticRegression", "onehot"),
        ("sklearn.linear_model.RidgeClassifier", "ordinal"),  # has no predict_proba
    ],
)
def test_classifiers(pipeline, path, encoding):
    frame = table()
    y = pd.Series(np.where(frame["whole"] > 4, "c01_yes", "c00_no")).astype("category")
    settings = pipeline.Settings(classifier=path, encoding=encoding)
    model = pipeline.Model(settings, classes=True, seed=1).fit(frame, y)
    new = table(seed=1)
    new["category"] = new["category"].astype(object).where(new.index % 3 != 0, "unseen")
    labels, p = model.predict(new)
    assert model.labels_ == ["c00_no", "c01_yes"]
    assert p.shape == (len(new), 2)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (labels == np.array(model.labels_, dtype=object)[p.argmax(axis=1)]).all()
    assert (labels == np.where(new["whole"] > 4, "c01_yes", "c00_no")).mean() > 0.8


@pytest.mark.parametrize("encoding", ["ordinal", "onehot"])
def test_numbers_are_predicted_in_their_own_unit(pipeline, encoding):
    frame = table()
    y = pd.Series(1000.0 + 50.0 * frame["whole"])
    settings = pipeline.Settings(
        regressor="sklearn.linear_model.LinearRegression", encoding=encoding
    )
    predictions, p = (
        pipeline.Model(settings, classes=False).fit(frame, y).predict(frame)
    )
    assert p is None
    np.testing.assert_allclose(predictions, y)


def test_labels_are_sorted_as_text(pipeline):
    frame = table(30)
    y = pd.Series([2, 9, 10] * 10).astype("category")
    model = pipeline.Model(pipeline.Settings.from_params({}), classes=True, seed=0).fit(
        frame, y
    )
    labels, p = model.predict(frame)
    assert model.labels_ == ["10", "2", "9"]
    assert set(labels) <= {"2", "9", "10"}
    assert p.shape == (30, 3)


def test_seed_and_cores_reach_the_model(pipeline):
    settings = pipeline.Settings.from_params({"seed_offset": 3})
    frame, y = table(), pd.Series(np.arange(120.0))
    model = pipeline.Model(settings, classes=False, seed=7, cores=2).fit(frame, y)
    assert model.model_[-1].random_state == 10
    assert model.model_[-1].n_jobs == 2
    again = pipeline.Model(settings, classes=False, seed=7, cores=1).fit(frame, y)
    # threads add the trees up in any order: equal to the last bits only
    np.testing.assert_allclose(
        model.predict(frame)[0], again.predict(frame)[0], rtol=1e-12
    )
    own = {"regressor": "sklearn.ensemble.ExtraTreesRegressor"}
    own["regressor_params"] = {"random_state": 1, "n_jobs": 1}
    model = pipeline.Model(pipeline.Settings.from_params(own), False, seed=7, cores=2)
    assert (model.fit(frame, y).model_[-1].random_state, model.model_[-1].n_jobs) == (
        1,
        1,
    )


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"clasifier": "x"}, "unknown parameter 'clasifier'; known: classifier"),
        ({"encoding": "target"}, "choose ordinal or onehot"),
        ({"regressor": "sklearn.linear_model.Ridge"}, "params.classifier"),
        ({"classifier": "sklearn.ensemble.RandomForst"}, "cannot import the model"),
        ({"classifier": "no_such_package.Model"}, "No module named 'no_such_package'"),
        ({"classifier": "RandomForestClassifier"}, "give an import path"),
        ({"classifier": "collections.OrderedDict"}, "no scikit-learn model"),
        (
            {"classifier": "sklearn.svm.SVC", "classifier_params": {"c": 1}},
            "SVC has no parameter 'c'",
        ),
    ],
)
def test_errors_say_what_to_type(pipeline, params, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        pipeline.Model(pipeline.Settings.from_params(params), classes=True).fit(
            table(20), pd.Series(["a", "b"] * 10)
        )
