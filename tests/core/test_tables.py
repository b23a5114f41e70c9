import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.errors import DataError
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Fold, Kind


def frame(n=30, **columns):
    return pd.DataFrame({"a": np.arange(n), **columns, "y": [0, 1, 1] * (n // 3)})


def test_types_are_inferred():
    n = 120
    table = frame(
        n,
        f=np.linspace(0, 1, n),
        b=[True, False] * (n // 2),
        c=["u", "v"] * (n // 2),
        d=pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"),
        t=[f"some text {i}" for i in range(n)],
        e=[None] * n,
    )
    task = make_task(table, "y", name="t")
    kinds = {c.name: c.type for c in task.columns}
    assert kinds == {
        "a": "integer",
        "f": "numeric",
        "b": "boolean",
        "c": "categorical",
        "d": "date",
        "t": "text",
        "e": "numeric",
    }
    assert task.kind is Kind.BINARY
    assert task.features.dtypes["a"] == np.float64


def test_rows_without_target_leave_the_folds():
    table = frame(60)
    table["y"] = table["y"].astype(float)
    table.loc[[0, 5], "y"] = np.nan
    fold = Fold(np.arange(0, 40), np.arange(40, 60))
    task = make_task(table, "y", name="t", folds=[fold])
    assert len(task) == 58
    assert task.row_ids[0] == 1
    assert "2 rows without a target were dropped" in task.notes
    # rows 0 and 5 were training rows: 38 stay, and the test rows are the same table rows
    assert len(task.folds[0].train) == 38
    assert task.row_ids[task.folds[0].test].tolist() == list(range(40, 60))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (frame(12), "12 rows"),
        (frame().assign(y=1), "single value"),
        (frame().assign(a=np.inf), "finite"),
        (frame().assign(a=1e300), "finite"),
        (frame().rename(columns={"y": "z"}), "no column"),
        (frame().drop(columns="a"), "no feature"),
    ],
)
def test_bad_tables_are_refused(table, message):
    with pytest.raises(DataError, match=message):
        make_task(table, "y", name="t")


def test_mostly_missing_target_is_refused():
    table = frame(60)
    table["y"] = np.where(np.arange(60) < 40, np.nan, 1.0 * table["y"])
    with pytest.raises(DataError, match="40 of 60 rows"):
        make_task(table, "y", name="t")


def test_content_hash_sees_values_folds_and_labels_but_not_the_name():
    one = make_task(frame(), "y", name="one")
    assert one.content_hash == make_task(frame(), "y", name="two").content_hash
    changed = frame()
    changed.loc[3, "a"] = 99
    assert one.content_hash != make_task(changed, "y", name="one").content_hash
    fold = Fold(np.arange(20), np.arange(20, 30))
    assert one.content_hash != one.with_folds((fold,)).content_hash


def test_whole_number_regression_is_remarked():
    table = pd.DataFrame({"a": range(40), "y": [1, 2, 3, 4] * 10})
    task = make_task(table, "y", name="t")
    assert task.kind is Kind.REGRESSION
    assert any("--kind multiclass" in note for note in task.notes)
    assert make_task(table, "y", name="t", kind="multiclass").labels == (
        "1",
        "2",
        "3",
        "4",
    )


def test_the_source_table_is_not_kept_alive():
    table = pd.DataFrame(np.random.default_rng(0).random((30, 4)), columns=list("abcy"))
    task = make_task(table, "y", name="t")
    source = table.to_numpy()
    for values in (task.target, *(task.features[name] for name in "abc")):
        assert not np.shares_memory(values.to_numpy(), source)
