"""Answers that could be read in two ways: they are read by what names them, or refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

import amlb_ext as hs
from amlb_ext.comparison.files import compare_files
from amlb_ext.core.errors import HardsynthError, ModelError
from amlb_ext.core.losses import ask_own_loss
from amlb_ext.estimate.estimate import estimate
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


@pytest.mark.parametrize(
    "named",
    ["{}", "proba_{}", "P({})", "{}.0"],
)
def test_heads_name_the_classes_in_any_spelling(named):
    """Columns of a frame stand in the order of their heads, whatever ``classes_`` says."""
    codes = LogisticRegression().fit(X, np.unique(Y, return_inverse=True)[1])

    class Headed:
        classes_ = codes.classes_

        def predict(self, rows):
            return codes.predict(rows)

        def predict_proba(self, rows):
            p = codes.predict_proba(rows)[:, [0, 2, 1]]
            return pd.DataFrame(p, columns=[named.format(code) for code in (0, 2, 1)])

    answers = ModelAdapter(Headed(), "F").answer(TABLE, Labels(("0", "1", "2")))
    np.testing.assert_allclose(answers.f, codes.predict_proba(X))
    assert not answers.notes


def sorted_answers(rows):
    """Answers of a model that sorts the rows, and keeps their labels."""
    rows = rows.sort_index()
    return pd.Series(MODEL.predict(rows), index=rows.index)


def test_an_answer_with_the_labels_of_the_rows_in_another_order_is_never_read_by_place():
    shuffled = GivenTable.of(X.sample(frac=1, random_state=1))
    with pytest.raises(HardsynthError, match="not clear which rows belong together"):
        ModelAdapter(sorted_answers, "F").answer(shuffled, LABELS)
    by_index = ModelAdapter(sorted_answers, "F", align="index")
    expected = LABELS.codes(MODEL.predict(shuffled.frame))
    assert (by_index.answer(shuffled, LABELS).decided == expected).all()
    # labels that are no fresh numbers are of one reading
    named = GivenTable.of(shuffled.frame.set_axis(shuffled.frame.index + 7))
    answers = ModelAdapter(sorted_answers, "F").answer(named, LABELS)
    assert (answers.decided == expected).all()


@pytest.mark.parametrize(
    ("column", "start"), [("index", 0), ("Unnamed: 0", 1), ("customer_id", 500)]
)
def test_a_column_that_counts_the_rows_in_another_order_is_refused(column, start):
    rows = X.assign(id=np.arange(120) + 500)
    given = pd.DataFrame({"prediction": Y}).rename_axis(column).reset_index()
    given[column] += start
    in_order = ModelAdapter(given, "F").answer(GivenTable.of(rows), LABELS)
    assert (in_order.decided == LABELS.codes(Y)).all()
    by_value = given.sort_values("prediction", ignore_index=True)
    with pytest.raises(ModelError, match=f"column '{column}' of F holds"):
        ModelAdapter(by_value, "F").answer(GivenTable.of(rows), LABELS)


def test_a_copy_of_the_target_is_held_against_it():
    given = pd.DataFrame({"kind": Y, "prediction": MODEL.predict(X)})
    y = pd.Series(Y, name="kind")
    hs.compare(given, {"g": given}, X, y, refits=0)
    with pytest.raises(ModelError, match="targets of its own"):
        hs.compare(given[::-1].reset_index(drop=True), {"g": MODEL}, X, y, refits=0)


@pytest.fixture
def table(tmp_path):
    """A table with an id, of which some rows have no target, and its files of predictions."""
    rows = X.assign(id=np.arange(120) + 500, kind=Y)
    rows.loc[::10, "kind"] = None
    rows.to_csv(tmp_path / "t.csv", index=False)
    given = pd.DataFrame({"id": rows["id"], "prediction": MODEL.predict(X)})
    labels = given.drop(columns="id")
    files = {
        "plain": labels,
        "by_id": given.sample(frac=1, random_state=0),
        "more_ids": pd.concat([given.assign(id=given["id"] - 200), given]),
        "more_rows": pd.concat([labels, labels]),
    }
    for name, frame in files.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("name", ["plain", "by_id", "more_ids", "more_rows"])
def test_files_of_predictions_are_joined_alike_at_every_door(table, name):
    known = np.arange(120) % 10 != 0
    wrong = (MODEL.predict(X) != Y)[known].mean()
    data, given = table / "t.csv", str(table / f"{name}.csv")
    rows = {"target": "kind"}
    if name == "more_rows":
        for ask in (
            lambda: estimate(given, data, **rows),
            lambda: compare_files(
                data, "kind", baseline=given, candidates={"g": given}
            ),
        ):
            with pytest.raises(ModelError, match="240 rows, but the table has 120"):
                ask()
        return
    assert estimate(given, data, **rows).rows[0].point == pytest.approx(wrong)
    told = compare_files(
        data, "kind", baseline=given, candidates={"g": given}, quiet=True
    )
    assert told.rows["F"].mean() == pytest.approx(wrong)


def test_the_index_of_a_parquet_file_tells_of_an_order(tmp_path):
    rows = X.assign(kind=Y)
    shuffled = rows.sample(frac=1, random_state=2)
    path = str(tmp_path / "f.parquet")
    pd.DataFrame({"prediction": MODEL.predict(X)}).to_parquet(path)

    def wrong(table):
        table.to_parquet(tmp_path / "t.parquet")
        return estimate(path, tmp_path / "t.parquet", target="kind").rows[0].point

    expected = pytest.approx((MODEL.predict(X) != Y).mean())
    assert wrong(rows) == expected
    # a selection of other rows leaves numbers that tell nothing
    assert wrong(rows.set_axis(rows.index + 300)) == expected
    with pytest.raises(ModelError, match="in different orders"):
        wrong(shuffled)
    pd.DataFrame({"prediction": MODEL.predict(X)}, rows.index + 7).to_parquet(path)
    assert wrong(shuffled.set_axis(shuffled.index + 7)) == expected


@pytest.mark.parametrize("kind", [int, bool, "Int64", "category"])
def test_models_and_losses_get_targets_of_the_type_that_was_given(kind):
    y = pd.Series(Y == "a").astype(int).astype(kind)

    def own(y, p):
        # positions, as scikit-learn's metrics use them, too
        return 1 - p[np.arange(len(y)), np.unique(y, return_inverse=True)[1]]

    found = hs.compare(
        LogisticRegression(), {"tree": DecisionTreeClassifier()}, X, y, cv=3, loss=own
    )
    parts = StratifiedKFold(3).split(X, y)
    again = hs.compare(
        LogisticRegression(), {"tree": DecisionTreeClassifier()}, X, y, cv=list(parts)
    )
    p = cross_val_predict(
        LogisticRegression(), X, Y == "a", cv=3, method="predict_proba"
    )
    brier = ((p - np.column_stack([Y != "a", Y == "a"])) ** 2).sum(axis=1)
    np.testing.assert_allclose(again.rows["F"], brier)
    assert found.rows["F"].between(0, 1).all()


@pytest.mark.parametrize(
    "names", ["f, y", "output, target", "pred, obs", "p, t", "x, actual"]
)
def test_an_own_loss_whose_names_say_that_predictions_come_first_is_refused(names):
    loss = eval(f"lambda {names}: 0")
    first, second = names.split(", ")
    with pytest.raises(HardsynthError, match=f"takes {first} before {second}"):
        ask_own_loss(loss, np.zeros(2), np.zeros(2), "targets and predictions")
    for usual in ("y, f", "y_true, y_pred", "a, b", "target, output", "score, x"):
        ask_own_loss(
            eval(f"lambda {usual}: [0, 0]"), np.zeros(2), np.zeros(2), "targets"
        )


def test_shares_of_classes_are_named_as_the_target_has_them():
    y = (Y == "a").astype(int)
    F = LogisticRegression().fit(X, y)
    shares = {"0": 0.9, "1": 0.1}
    by_text = hs.estimate_error(F, X, y, class_prior=shares).rows
    for kind in (int, lambda label: label == "1"):
        given = {kind(label): share for label, share in shares.items()}
        assert hs.estimate_error(F, X, y, class_prior=pd.Series(given)).rows == by_text


def test_what_no_answer_can_be_given_to_says_so():
    y = np.where(Y == "a", "yes", "no")
    wrong = hs.failures(lambda rows: np.where(y == "yes", "no", "yes"), X, y)
    assert repr(wrong).startswith("F decides 120 of 120 rows wrongly")
    assert "on 0 of" not in repr(wrong)
    assert "no slice" not in repr(wrong)
    line = LinearRegression().fit(X, X["a"])
    with pytest.raises(HardsynthError, match=r"True or False, .*astype"):
        hs.failures(line, X, Y == "a")
    with pytest.raises(HardsynthError, match="lie outside the range 0 to 1: they go"):
        hs.estimate_error(line, X, X["a"], target_range=(0, 1))


LONG = 2_000_000_000_000_000_000


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ({"id": [str(LONG + row) for row in range(120)]}, None),
        ({"id": 1_000_000.0 + np.arange(120)}, None),
        ({"seconds": 1_700_000_000.5 + np.arange(120)}, "in another order"),
        ({"id": np.arange(120) + 500, "row": np.arange(120)}, "tells of another order"),
        ({"Unnamed: 0": np.arange(120)}, "in different orders"),
    ],
)
def test_ids_are_compared_whole_and_all_of_them(ids, told):
    rows = GivenTable.of(X.assign(**ids))
    given = rows.frame[list(ids)].assign(prediction=MODEL.predict(X))
    given = given.sample(frac=1, random_state=3, ignore_index=True)
    if "row" in ids:
        given["row"] = range(120)
    if told is None:
        answers = ModelAdapter(given, "F").answer(rows, LABELS)
        assert (answers.decided == LABELS.codes(MODEL.predict(X))).all()
    else:
        with pytest.raises(ModelError, match=told):
            ModelAdapter(given, "F").answer(rows, LABELS)


def test_the_first_column_of_probabilities_is_not_taken_for_the_second():
    yes = np.where(Y == "a", "yes", "no")
    p = pd.DataFrame(LogisticRegression().fit(X, yes).predict_proba(X))
    labels = Labels(("no", "yes"))
    with pytest.raises(ModelError, match="may be the place of a column"):
        ModelAdapter(p[0], "F").answer(TABLE, labels)
    np.testing.assert_allclose(ModelAdapter(p[1], "F").answer(TABLE, labels).f, p)


def test_files_with_one_index_are_read_alike_at_every_door(tmp_path):
    rows = X.assign(kind=Y)[Y != "c"].sample(frac=0.9, random_state=4)
    rows.to_parquet(tmp_path / "t.parquet")
    given = pd.DataFrame({"prediction": MODEL.predict(rows[["a", "b"]])}, rows.index)
    given.to_parquet(tmp_path / "f.parquet")
    path, wrong = str(tmp_path / "f.parquet"), (given["prediction"] != rows["kind"])
    told = estimate(path, tmp_path / "t.parquet", target="kind").rows[0].point
    assert told == pytest.approx(wrong.mean())
    compared = compare_files(
        tmp_path / "t.parquet", "kind", path, {"g": path}, quiet=True
    )
    assert compared.rows["F"].mean() == pytest.approx(wrong.mean())
