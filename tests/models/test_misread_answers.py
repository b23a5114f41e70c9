"""Answers that could be read in two ways: they are read by what names them, or refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import amlb_ext as hs
from amlb_ext.core.errors import HardsynthError, ModelError
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.models.answers import Labels
from amlb_ext.models.checks import check_classes
from amlb_ext.models.given_table import GivenTable

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(120, 2)), columns=["a", "b"])
Y = np.where(X["a"] > 0.7, "c", np.where(X["b"] > 0.5, "b", "a"))
TABLE, LABELS = GivenTable.of(X), Labels(("a", "b", "c"))
MODEL = LogisticRegression().fit(X, Y)


@pytest.mark.parametrize(
    "answer",
    [
        lambda rows: np.r_[MODEL.predict_proba(rows)[:3], MODEL.predict_proba(rows)],
        lambda rows: MODEL.predict(rows)[3:],
        lambda rows: pd.concat([pd.Series(MODEL.predict(rows))] * 2),
        lambda rows: None,
        lambda rows: iter(MODEL.predict(rows)),
        lambda rows: [{"a": 1}] * len(rows),
    ],
)
def test_a_function_that_answers_other_rows_is_refused(answer):
    with pytest.raises(HardsynthError, match="F "):
        ModelAdapter(answer, "F").answer(TABLE, LABELS)
    numbers = ModelAdapter(lambda rows: np.ones(len(rows) + 3), "F")
    with pytest.raises(ModelError, match="answers 123 rows for 120"):
        numbers.answer(TABLE, Labels(()))


def test_columns_of_other_libraries_are_read_by_name():
    class Renamed:
        classes_ = MODEL.classes_

        def predict(self, rows):
            return pl.Series(MODEL.predict(rows))

        def predict_proba(self, rows):
            columns = dict(zip("abc", MODEL.predict_proba(rows).T, strict=True))
            return pl.DataFrame(columns).select("a", "c", "b")

    answers = ModelAdapter(Renamed(), "F").answer(TABLE, LABELS)
    np.testing.assert_allclose(answers.f, MODEL.predict_proba(X))
    # rows of polars have no index that could contradict that of X
    given = pl.DataFrame(dict(zip("abc", MODEL.predict_proba(X).T, strict=True)))
    elsewhere = GivenTable.of(X.set_axis(range(1000, 1120)))
    answers = ModelAdapter(given, "F").answer(elsewhere, LABELS)
    np.testing.assert_allclose(answers.f, MODEL.predict_proba(X))


@pytest.mark.parametrize(
    ("classes", "known"),
    [
        ([-1, 1], ("0", "1")),
        ([1, 2], ("False", "True")),
        ([0, 1, 2], ("1", "2", "3")),
        (["no", "yes"], ("None", "yes")),
    ],
)
def test_classes_of_which_only_some_agree_are_other_codes(classes, known):
    with pytest.raises(ModelError, match="other codes of the classes"):
        check_classes(classes, Labels(known), "F")
    # rows may lack a class, and of many named ones have a new one
    check_classes(classes, Labels((known[1],)), "F")
    check_classes(["a", "b", "c"], Labels(("a", "b", "new")), "F")
    check_classes([3, 4, 5], Labels(("4", "5", "6")), "F")


def test_an_own_loss_says_of_which_row_a_loss_is():
    y = np.where(Y == "a", "yes", "no")
    F = LogisticRegression().fit(X, y)
    other = {"G": LogisticRegression(C=0.001).fit(X, y)}
    by_row = (F.predict_proba(X)[:, 1] - (y == "yes")) ** 2

    def shuffled(y, f):
        return pd.Series((f[:, 1] - (y == "yes")) ** 2).sort_values()

    found = hs.compare(F, other, X, y, refits=0, loss=shuffled)
    np.testing.assert_allclose(found.rows["F"], by_row)
    with pytest.raises(HardsynthError, match="does not count the rows"):
        hs.compare(
            F, other, X, y, refits=0, loss=lambda y, f: shuffled(y, f).rename(str)
        )
    with pytest.raises(HardsynthError, match="takes y_pred before y_true"):
        hs.compare(
            F, other, X, y, refits=0, loss=lambda y_pred, y_true: abs(y_pred - y_true)
        )
