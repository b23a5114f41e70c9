"""Every line of the table in the design's AMLB notes, one by one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.task import Kind
from amlb_ext.suite import check_pair, metrics_for


def frame(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "k": rng.integers(0, 9, n),
            "c": np.resize(["a", "b", "d"], n),
            "b": np.resize([True, False], n),
            "y": np.resize(["neg", "pos"], n),
        }
    ).astype(object)


def put(column, value, row=0):
    return lambda f: f.assign(
        **{column: [value, *f[column][1:]] if row == 0 else value}
    )


def same(f):
    return f


def renamed(name):
    return lambda f: f.rename(columns={"x": name})


CASES = {
    "fine": (same, same, None),
    "extra column": (same, lambda f: f.assign(z=1), "columns are not the training"),
    "permuted": (same, lambda f: f[["k", "x", "c", "b", "y"]], "in the same order"),
    "integer then fraction": (same, put("k", 1.5), "'k' is integer"),
    "integer then 1.0": (same, put("k", 1.0), None),
    "integer then missing": (same, put("k", ""), "the test file holds a missing value"),
    "number then text": (same, put("x", "?"), "'x' is float"),
    "infinite": (same, put("x", "inf"), "beyond"),
    "huge": (put("x", "1e300"), same, "training file, beyond"),
    "unseen category": (same, put("c", "z"), "'z' in the test file"),
    "category missing in test only": (same, put("c", ""), "nowhere in the training"),
    "category missing in both": (put("c", ""), put("c", ""), None),
    "boolean then missing": (same, put("b", ""), "'b' is boolean"),
    "boolean then number": (same, put("b", "1"), "'b' is boolean"),
    "empty then text": (put("x", "", 1), put("x", "s"), "'x' is float"),
    "empty in both": (put("x", "", 1), put("x", "", 1), None),
    "case twins": (put("c", "A"), same, "only by case"),
    "None": (put("c", "None"), same, "missing to some readers"),
    "label only in test": (same, put("y", "new"), "class 'new'"),
    "label only in train": (same, put("y", "pos", 1), None),
    "single class": (put("y", "pos", 1), put("y", "pos", 1), "single class"),
    "three classes": (put("y", "z"), same, "3 classes"),
    "target missing": (same, put("y", ""), "target is missing"),
    "label NA": (same, put("y", "NA"), "target is missing"),
    "labels by case": (put("y", "Pos"), same, "wrongly"),
    "labels out of order": (
        lambda f: f.assign(y=np.resize(["Yes", "no"], len(f))),
        lambda f: f.assign(y=np.resize(["Yes", "no"], len(f))),
        "wrongly",
    ),
    "column name": (renamed("x[0]"), renamed("x[0]"), "'x[0]' holds characters"),
    "blank in a name": (renamed("x y"), renamed("x y"), "'x y' holds characters"),
    "names by case": (renamed("C"), renamed("C"), "'C' and 'c' are one name"),
    "doubled column": (
        lambda f: f.set_axis(["x", "x", "c", "b", "y"], axis=1),
        same,
        "'x' more than once",
    ),
    "one training row": (lambda f: f[:1], same, "1 rows, at least 2"),
    "no test row": (same, lambda f: f[:0], "has no rows"),
    "no target": (lambda f: f[["x", "c"]], same, "'y' is no column"),
    "target alone": (lambda f: f[["y"]], lambda f: f[["y"]], "no feature"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_rule(tmp_path, name):
    change_train, change_test, said = CASES[name]
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    change_train(frame(30, 0)).to_csv(train, index=False)
    change_test(frame(12, 1)).to_csv(test, index=False)
    found = check_pair(train, test, "y", "binary")
    if said is None:
        assert found == []
    else:
        assert any(said in sentence for sentence in found), found


def test_types_regression_and_files_that_are_no_csv(tmp_path):
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text("a,y\n1,2.5\n2,3.5\n")
    test.write_text("a,y\n1,oops\n")
    assert "none of" in check_pair(train, test, "y", "classification")[0]
    assert "regression needs numbers" in check_pair(train, test, "y", "regression")[0]
    test.write_text("a,y\n3,1e300\n")
    assert "The target holds 1e300" in check_pair(train, test, "y", "regression")[0]
    test.write_bytes("a,y\nü,1\n".encode("latin-1"))
    assert "no CSV in UTF-8" in check_pair(train, test, "y", "regression")[0]
    test.write_text("a,y\n1,2,3\n")
    assert check_pair(train, test, "y", "regression") != []
    test.write_text("")
    assert "no CSV" in check_pair(train, test, "y", "regression")[0]
    test.unlink()
    assert check_pair(train, test, "y", "regression") == ["test.csv is missing."]


def test_metrics_only_where_auc_is_undefined():
    labels = ["a", "b"]
    assert metrics_for(Kind.BINARY, [labels], labels) is None
    assert metrics_for(Kind.BINARY, [labels, ["b"]], labels) == ["logloss", "acc"]
    assert metrics_for(Kind.REGRESSION, [[]], []) is None
