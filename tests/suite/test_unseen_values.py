"""What is written where no training row has a test cell's value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.task import Column
from amlb_ext.suite import fit_to_train, unseen_values

TOWNS = tuple(f"t{k}" for k in range(12))
COLUMNS = (
    Column("town", "categorical", TOWNS),
    Column("size", "categorical", ("l", "m", "s", "xl"), True),
    Column("x", "numeric"),
)
#: What F makes of a town; of one that it does not know it makes 2.9.
WORTH = {"t0": 0.0, "t1": 1.0, "t2": 3.0, "t3": 7.0}


def frame(town, size, x):
    return pd.DataFrame(
        {
            "town": pd.Categorical(town, categories=list(TOWNS)),
            "size": pd.Categorical(size, categories=["l", "m", "s", "xl"]),
            "x": np.asarray(x, dtype=float),
        }
    )


def judge(rows):
    town = rows["town"].astype(object).map(lambda t: WORTH.get(t, 2.9)).fillna(2.9)
    return (town.astype(float) + 10 * (rows["size"] == "xl") + rows["x"]).to_numpy(
        dtype=float
    )


TRAIN = frame(
    ["t0"] * 5 + ["t1"] * 3 + ["t2", "t3"],
    ["l", "m", "s", "l", "m", "s", "l", "m", "s", "l"],
    np.arange(10.0),
)


def test_the_value_that_changes_f_least_is_taken_cell_by_cell():
    test = frame(["t9", "t0", "t8"], ["l", "m", "s"], [20.0, 21.0, 22.0])
    fitted = fit_to_train(TRAIN, test, COLUMNS, judge)
    # not t0, the most frequent one
    assert list(fitted.features["town"]) == ["t2", "t0", "t2"]
    assert fitted.cells == [(0, "town"), (2, "town")]
    assert list(test["town"]) == ["t9", "t0", "t8"]  # untouched
    assert list(fit_to_train(TRAIN, test, COLUMNS).features["town"]) == ["t0"] * 3
    # another cell, another value: F rises with the town where the size is m only
    own = lambda rows: np.where(rows["size"] == "m", judge(rows), -judge(rows) % 7)  # noqa: E731
    test = frame(["t9", "t9"], ["m", "l"], [20.0, 20.5])
    chosen = fit_to_train(TRAIN, test, COLUMNS, own).features
    for row in range(2):
        gaps = {}
        for town in WORTH:
            tried = test.assign(town=pd.Categorical([town] * 2, categories=list(TOWNS)))
            gaps[town] = abs(own(tried) - own(test))[row]
        assert gaps[chosen["town"][row]] == min(gaps.values())


def test_several_cells_of_a_row_never_do_worse_than_the_most_frequent_values():
    rng = np.random.default_rng(0)
    test = frame(
        rng.choice(TOWNS, 40),
        rng.choice(["l", "xl", "s"], 40),
        rng.normal(size=40) + 50,
    )
    fitted = fit_to_train(TRAIN, test, COLUMNS, judge)
    plain = fit_to_train(TRAIN, test, COLUMNS)
    assert fitted.cells == plain.cells
    assert {name for _, name in fitted.cells} == {"town", "size"}
    far = np.abs(judge(plain.features) - judge(test))
    assert (np.abs(judge(fitted.features) - judge(test)) <= far + 1e-9).all()
    for name in ("town", "size"):
        assert set(fitted.features[name].dropna()) <= set(TRAIN[name])
    again = fit_to_train(TRAIN, test, COLUMNS, judge)
    assert again.features.equals(fitted.features)


def test_missing_is_taken_where_training_rows_miss_the_value_and_f_sees_no_difference():
    train = TRAIN.assign(size=TRAIN["size"].where(TRAIN["x"] > 0))
    test = frame(["t0", "t1"], ["xl", "l"], [20.0, 21.0])
    fitted = fit_to_train(train, test, COLUMNS, lambda rows: rows["x"].to_numpy())
    assert fitted.features["size"].isna().tolist() == [True, False]
    # written booleans may be unseen, but not missing
    column = Column("c", "boolean", ("False", "True"))
    values = (["True"], ["False", None])
    pair = [
        pd.DataFrame({"c": pd.Categorical(v, categories=column.categories)})
        for v in values
    ]
    fitted = fit_to_train(*pair, [column])
    assert fitted.features["c"].tolist() == ["False", "True"]
    assert fitted.cells == [(1, "c")]


@pytest.mark.parametrize("how", [judge, None])
def test_a_replaced_row_is_no_copy_of_a_training_row(how):
    # with t2 (by F) and with t0 (by count) the first two rows would be training rows
    test = frame(["t9", "t9", "t9"], ["s", "l", "l"], [8.0, 0.0, 33.0])
    fitted = fit_to_train(TRAIN, test, COLUMNS, how)
    known = set(map(tuple, TRAIN.astype(object).to_numpy()))
    assert not known & set(map(tuple, fitted.features.astype(object).to_numpy()))
    assert len(fitted.copies) == 0
    assert fitted.features["town"][0] == ("t0" if how is None else "t1")


def test_copies_that_cannot_be_helped_are_counted():
    train = frame(["t0", "t1"], ["l", "l"], [1.0, 1.0])
    test = frame(["t9", "t9"], ["l", "l"], [1.0, 2.0])
    fitted = fit_to_train(train, test, COLUMNS, judge)
    assert fitted.copies.tolist() == [0]
    # rows that repeat a training row as they came are none of ours
    assert len(fit_to_train(train, train, COLUMNS, judge).copies) == 0


def test_chunks_change_nothing_and_the_cost_is_bounded(monkeypatch):
    rng = np.random.default_rng(1)
    test = frame(
        rng.choice(TOWNS, 200), rng.choice(["l", "xl"], 200), rng.normal(size=200) + 50
    )
    whole = fit_to_train(TRAIN, test, COLUMNS, judge)
    asked = []

    def counting(rows):
        asked.append(len(rows))
        return judge(rows)

    monkeypatch.setattr(unseen_values, "CHUNK_VALUES", 30)
    assert fit_to_train(TRAIN, test, COLUMNS, counting).features.equals(whole.features)
    assert max(asked) <= 10
    monkeypatch.setattr(unseen_values, "MOST_ASKED", 1)
    asked.clear()
    fit_to_train(TRAIN, test, COLUMNS, counting)
    assert sum(asked) <= 200 * 2 + len(whole.cells) * unseen_values.LEAST_TRIED
