"""Test rows as they are written: F fitted here, F as a fitted model, F as a file of predictions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from amlb_ext.core.errors import DataError
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Fold, Kind
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.baseline.fitted import FittedBaseline, PredictionsBaseline
from amlb_ext.hardening.baseline.replacements import (
    Chooser,
    known_classes,
    write_test_rows,
)
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.models.registry import ModelSpec

WORTH = {"a": 0.0, "b": 5.0, "c": 9.0, "new": 8.5}


def table():
    rng = np.random.default_rng(3)
    town = np.array(
        ["a"] * 20 + ["b"] * 12 + ["c"] * 8 + ["new", "a"] * 5, dtype=object
    )
    x = rng.normal(size=len(town))
    y = x + np.array([WORTH[t] for t in town])
    task = make_task(pd.DataFrame({"town": town, "x": x, "y": y}), "y", name="t")
    return task.with_folds((Fold(np.arange(40), np.arange(40, 50)),))


def prepared(task):
    features = task.features.iloc[:40]
    return Encoder(task.columns).fit(features), TargetEncoder(
        task.kind, (), task.target.iloc[:40]
    )


def model(unknown, rows):
    one_hot = OneHotEncoder(handle_unknown=unknown)
    pipeline = make_pipeline(
        make_column_transformer((one_hot, ["town"]), remainder="passthrough"),
        Ridge(1e-6),
    )
    task = table()
    return pipeline.fit(
        task.features.iloc[:rows].astype({"town": object}), task.target.iloc[:rows]
    )


def written(baseline, encoder):
    return write_test_rows(table(), 0, Chooser((baseline,), encoder))


def test_a_model_that_knows_the_category_decides_by_its_own_opinion():
    encoder, target = prepared(table())
    found = written(FittedBaseline(model("error", 50), "m", encoder, target), encoder)
    assert list(found.features["town"]) == ["c", "a"] * 5  # 9 is next to 8.5
    assert found.judged
    assert list(found.substituted) == ["town", ""] * 5
    assert found.to_json()["replaced"] == {"town": 5}


def test_a_model_that_refuses_the_category_gets_the_most_frequent_one_and_that_is_said():
    encoder, target = prepared(table())
    found = written(FittedBaseline(model("error", 40), "m", encoder, target), encoder)
    assert list(found.features["town"]) == ["a", "a"] * 5
    assert any("most frequent training value" in note.text for note in found.notes())


def test_a_file_of_predictions_cannot_be_asked():
    encoder, target = prepared(table())
    found = written(PredictionsBaseline(np.zeros(50), target), encoder)
    assert list(found.features["town"]) == ["a", "a"] * 5
    notes = found.notes()
    assert notes[0].text.startswith("column 'town': 5 of 10 test cells (50.0%)")
    assert "F cannot be asked" in notes[1].text


def test_rows_of_unknown_classes_are_counted_and_a_fold_of_nothing_else_is_refused():
    frame = pd.DataFrame({"x": np.arange(24.0), "y": np.resize(["p", "q"], 24)})
    frame.loc[22:, "y"] = "r"
    task = make_task(frame, "y", name="t", kind="multiclass")
    task = task.with_folds(
        (Fold(np.arange(20), np.arange(20, 24)), Fold(np.arange(22), np.arange(22, 24)))
    )
    rows, left_out = known_classes(task, 0)
    assert rows.tolist() == [20, 21]
    assert left_out == {"unknown_class": 2}
    with pytest.raises(
        DataError, match="no training row has a class of the 2 test rows"
    ):
        known_classes(task, 1)


@pytest.mark.parametrize(
    "path", ["neighbors.KNeighborsRegressor", "linear_model.Ridge"]
)
def test_a_column_without_training_values_says_nothing_of_test_rows(path):
    """As in the integration; the imputer alone would let the test rows' values pass."""
    rng = np.random.default_rng(0)
    Z = np.column_stack([rng.random(30), np.full(30, np.nan)])
    F = EstimatorBaseline(ModelSpec(f"sklearn.{path}"), Kind.REGRESSION, 0, 0)
    F.fit(Z, Z[:, 0], 0)
    filled = np.column_stack([Z[:, 0], 50 * rng.random(30)])
    np.testing.assert_array_equal(F.predict(Z), F.predict(filled))
