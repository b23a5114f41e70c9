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
        ({"no": [0.5, 0.1]}, ("no", "yes"), r"lacks the column 'yes' \(it has no\)"),
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
