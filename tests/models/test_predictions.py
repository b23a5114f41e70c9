"""The predictions file: one format for every command."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.errors import ModelError
from amlb_ext.core.tables import make_task
from amlb_ext.models.answers import Labels
from amlb_ext.models.predictions import (
    interpret_predictions,
    read_predictions,
)

LABELS = Labels(("no", "yes"))


def test_one_score_is_the_probability_of_the_second_label(tmp_path):
    table = pd.DataFrame({"x": range(30), "y": ["yes", "no", None] * 10})
    task = make_task(table, "y", name="t")
    path = tmp_path / "p.csv"
    # one prediction for each row of the table, the row without a target included
    score = np.arange(30) / 30
    pd.DataFrame({"id": range(30), "score": score}).to_csv(path, index=False)
    p = read_predictions(path, task).f
    np.testing.assert_allclose(p[:, 1], score[np.arange(30) % 3 < 2])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    columns = pd.DataFrame({"yes": p[:, 1], "no": p[:, 0]})
    np.testing.assert_array_equal(interpret_predictions(columns, LABELS, "p").f, p)


@pytest.mark.parametrize(
    ("columns", "labels", "message"),
    [
        ({"score": [0.1, 0.2]}, "abc", "not enough for 3 classes"),
        (
            {"no": [0.5, 0.1], "x": [1, 2]},
            ("no", "yes"),
            r"lacks the column 'yes' \(it has no, x\)",
        ),
        ({"0": [0.5, 0.1]}, ("0", "1"), "may be the class or a place"),
        (
            {"label": ["no", "yes"], "score": [0.9, 0.8]},
            ("no", "yes"),
            "that of the label beside it",
        ),
        (
            {"prediction": ["no", "yes"], "no": [0.1, 0.9], "yes": [0.9, 0.1]},
            ("no", "yes"),
            "contradict its predict",
        ),
        ({"y_hat": [0.5, 0.1], "low": [0.1, 0.0]}, (), "write one column 'prediction'"),
        ({"prediction": [0.5, np.nan]}, (), "no finite number for 1 of 2 rows"),
        ({"prediction": ["much", "1"]}, (), "not numbers"),
        ({"no": [0.5, 3.0], "yes": [0.5, 2.0]}, ("no", "yes"), "look like raw scores"),
        ({"score": [2.0, -1.0]}, ("no", "yes"), "no probabilities"),
    ],
)
def test_another_file_is_told_what_is_wanted(columns, labels, message):
    with pytest.raises(ModelError, match=message):
        interpret_predictions(pd.DataFrame(columns), Labels(labels), "p.csv")


@pytest.mark.parametrize("name", ["no", "proba_no", "P(no)", "score:no"])
def test_a_column_that_names_a_class_is_its_probability(name):
    for given in (pd.Series([0.9, 0.2], name=name), pd.DataFrame({name: [0.9, 0.2]})):
        f = interpret_predictions(given, LABELS, "p").f
        np.testing.assert_allclose(f, [[0.9, 0.1], [0.2, 0.8]])
    columns = pd.DataFrame([[0.9, 0.1], [0.2, 0.8]], columns=[False, True])
    f = interpret_predictions(columns, Labels(("False", "True")), "p").f
    np.testing.assert_allclose(f, [[0.9, 0.1], [0.2, 0.8]])


def test_labels_may_be_called_after_a_class():
    for names, said, called in (
        (("no", "yes"), ["yes", "no"], "no"),
        (("0", "1"), [1, 0], 0),
        (("0", "1", "2"), [1, 0], 0),
    ):
        given = pd.Series(said, name=called)
        assert interpret_predictions(given, Labels(names), "p").decided.tolist() == [
            1,
            0,
        ]


@pytest.mark.parametrize("name", ["id", "ID"])
def test_an_id_that_both_have_tells_which_row_is_which(name):
    features = pd.DataFrame({"id": [7, 8, 9], "x": [1.0, 2.0, 3.0]})
    given = pd.DataFrame({name: [9, 7, 8], "prediction": [30.0, 10.0, 20.0]})
    answers = interpret_predictions(
        given, Labels(()), "p", beside=features, features=features
    )
    assert answers.f.tolist() == [10, 20, 30]


def test_a_copy_of_the_target_under_its_own_name_is_held_against_it(tmp_path):
    task = make_task(
        pd.DataFrame({"x": range(20), "price": np.arange(20.0)}), "price", name="t"
    )
    path = tmp_path / "p.csv"
    own = pd.DataFrame({"price": np.arange(20.0), "prediction": 1.0})
    own.to_csv(path, index=False)
    assert read_predictions(path, task).raw.truth is not None
    own.iloc[::-1].to_csv(path, index=False)
    with pytest.raises(ModelError, match="targets of its own, which differ"):
        read_predictions(path, task)
