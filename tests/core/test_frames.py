"""Tables in memory: whatever a user hands over, and the types that tasks are made of."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse

from amlb_ext.core.errors import DataError
from amlb_ext.core.frames import plain_frame, to_pandas, with_columns
from amlb_ext.core.parquet import write_frame
from amlb_ext.core.tables import make_task
from amlb_ext.sources.read_table import read_table

N = 40


def test_a_table_of_many_categories_takes_a_column_without_a_warning():
    # pandas warns beyond a hundred columns that it cannot keep in one block; here that is an error
    categories = {f"c{number}": pd.Categorical(["a", "b"]) for number in range(150)}
    frame = pd.DataFrame(categories, index=[5, 3])
    labels = pd.Series(pd.Categorical(["no", "yes"]), index=[5, 3])
    found = with_columns(frame, {"c7": [1, 2], "y": labels})
    assert list(found)[-2:] == ["c7", "y"]
    assert found.loc[3, ["c7", "y"]].tolist() == [2, "yes"]
    assert found["y"].dtype == labels.dtype
    pd.testing.assert_frame_equal(found[list(frame)[:7]], frame.iloc[:, :7])


#: What a user hands over, and the columns and cells that it has.
TABLES = {
    "frame": (pd.DataFrame({1: [1], "b": [2]}), {"1": [1], "b": [2]}),
    "levels": (
        pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])),
        {"('a', 'b')": [1]},
    ),
    "array": (np.eye(2), {"x0": [1, 0], "x1": [0, 1]}),
    "objects": (np.array([[1, "a"]], dtype=object), {"x0": [1], "x1": ["a"]}),
    "fields": (np.array([(1, 2.5)], dtype=[("a", int), ("b", float)]), {"a": [1], "b": [2.5]}),
    "columns": ({"a": [1, 2]}, {"a": [1, 2]}),
    "rows": ([[1, "a"], (2, "b")], {"x0": [1, 2], "x1": ["a", "b"]}),
    "records": ([{"a": 1}, {"a": 2}], {"a": [1, 2]}),
    "sparse matrix": (scipy.sparse.csr_matrix([[0, 3]]), {"x0": [0], "x1": [3]}),
    "sparse array": (scipy.sparse.coo_array([[0, 3]]), {"x0": [0], "x1": [3]}),
    "arrow": (pa.table({"a": [1, 2]}), {"a": [1, 2]}),
    "long integers with gaps": (
        pa.table({"a": [2**60, None, 2**60 + 1]}),
        {"a": [2**60, None, 2**60 + 1]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_every_table_becomes_a_data_frame(case):
    table, columns = TABLES[case]
    assert to_pandas(table).to_dict("list") == columns


@pytest.mark.parametrize("is_lazy", [False, True])
def test_frames_of_polars(is_lazy):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    table = polars.DataFrame({"a": [1, 2], "b": ["x", None], "c": [2**60 + 1, None]})
    found = to_pandas(table.lazy() if is_lazy else table)
    assert found["a"].tolist() == [1, 2]
    assert found["b"].isna().tolist() == [False, True]
    assert list(found) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (np.arange(3), r"rows has the shape \(3,\)"),
        (np.zeros((2, 2, 2)), r"rows has the shape \(2, 2, 2\)"),
        ([1, 2], r"rows has the shape \(2,\)"),
        ([], r"rows has the shape \(0,\)"),
        (pd.Series([1]), r"rows has the shape \(1,\)"),
        (pa.chunked_array([[1]]), "rows is a ChunkedArray"),
        ("rows.csv", "rows is a str"),
        (None, "rows is a NoneType"),
        ({"a": [1], "b": [1, 2]}, "rows is no table: .* same length"),
        (scipy.sparse.csr_matrix((10**6, 10**6)), "rows is a sparse matrix of 1000000 rows"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "rows: the column name 'a' occurs more"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "rows: the column name '1' occurs more"),
        (pa.table([[1], [2]], names=["a", "a"]), "rows: the column name 'a' occurs more"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused(table, said):
    with pytest.raises(DataError, match=said):
        to_pandas(table, what="rows")


def objects(values):
    return pd.Series(list(values), dtype=object)


#: A column of a frame: the type that a task gives it, and its first cells in the task.
COLUMNS = {
    "mixed": ([1, "a", 2.0, None] * 10, "categorical", ["1", "a", "2"]),
    "truth and numbers": ([True, 0, 3, 1] * 10, "categorical", ["True", "0", "3"]),
    "truth and texts": ([True, "yes"] * 20, "categorical", ["True", "yes"]),
    "intervals": (pd.cut(np.arange(N), [-1, 9, 50]), "categorical", ["(-1, 9]"]),
    "intervals as objects": (
        objects(pd.interval_range(0, 2)) .repeat(20), "categorical", ["(0, 1]"]
    ),
    "sparse": (pd.arrays.SparseArray([0, 0, 1, 0] * 10), "integer", [0, 0, 1]),
    "flags with gaps": (pd.array([True, None] * 20, dtype="boolean"), "boolean", ["True", None]),
    "small integers with gaps": (pd.array([1, None] * 20, dtype="Int8"), "integer", [1, None]),
    "the text NA": (["NA", "x"] * 20, "categorical", ["NA", "x"]),
    "two Unicode forms": (["\u00e9", "e\u0301"] * 20, "categorical", ["\u00e9", "e\u0301"]),
    "categories of numbers": (pd.Categorical([3.0, 1.5] * 20), "categorical", ["3", "1.5"]),
    "periods": (pd.period_range("2020-01", periods=N, freq="M"), "date", ["2020-01-01"]),
    "periods as objects": (
        objects(pd.period_range("2020", periods=N, freq="Y")), "date", ["2020-01-01"]
    ),
    "durations": (pd.timedelta_range("1h", periods=N, freq="min"), "integer", [3600, 3660]),
    "durations as objects": (
        objects(pd.timedelta_range("1h", periods=N)), "integer", [3600, 90000]
    ),
    "times of day": ([datetime.time(k % 24, 30) for k in range(N)], "categorical", ["00:30:00"]),
    "fractions": ([Fraction(k, 7) for k in range(N)], "categorical", ["0", "1/7"]),
    "numbers of many types": (
        objects([2**60 + 1, 0.5, Decimal("0.1234567890123456789"), None] * 10),
        "numeric",
        [2.0**60, 0.5],
    ),
    "integers beyond 64 bits": (objects(2**70 + k for k in range(N)), "categorical", [str(2**70)]),
    "dates of Arrow": (
        pd.Series([datetime.date(2024, 1, 1)] * N, dtype="date32[pyarrow]"),
        "date",
        ["2024-01-01"],
    ),
    "texts of Arrow": (pd.array(["a", None] * 20, dtype="string[pyarrow]"), "categorical", ["a"]),
    "instants with two offsets": (
        objects(
            [
                pd.Timestamp("2024-03-31T00:00+01:00"),
                pd.Timestamp("2024-04-01T00:00+02:00"),
            ]
            * 20
        ),
        "date",
        ["2024-03-31 00:00:00+01:00"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", COLUMNS)
def test_a_column_is_the_same_in_memory_and_as_a_file(case, tmp_path):
    values, expected_type, first = COLUMNS[case]
    frame = pd.DataFrame({"a": values, "b": range(N)}).reset_index(drop=True)
    target = ["u", "v"] * (N // 2)
    task = make_task(frame.assign(y=target), "y", name="memory")
    assert task.columns[0].type == expected_type
    cells = task.features["a"].astype(object).iloc[: len(first)]
    assert [None if pd.isna(cell) else cell for cell in cells] == first
    write_frame(frame, tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    again = make_task(
        table.frame.assign(y=target),
        "y",
        name="file",
        types=table.types,
        categories=table.categories,
    )
    assert again.columns == task.columns
    pd.testing.assert_frame_equal(again.features, task.features)


def test_a_column_that_becomes_texts_is_told():
    frame = pd.DataFrame(
        {"a": [1, "x", 2.5, None], "b": [1, None, 2, 3], "c": ["1", "2", None, "4"]}
    )
    _, notes = plain_frame(frame, what="X")
    assert notes == ["column 'a' holds float, int and str values, and is read as texts"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1j, 2j], "column 'a' holds complex numbers"),
        ([1, 2j], "column 'a' holds complex numbers"),
        (objects([np.complex64(1), None]), "column 'a' holds complex numbers"),
        ([[1], [2]], "column 'a' holds list values"),
        ([b"x", b"y"], "column 'a' holds bytes values"),
        ([{1}, {2}], "column 'a' holds set values"),
        (objects([10**400, 1]), "column 'a' holds a whole number of more than 300 digits"),
    ],
)  # fmt: skip
def test_what_no_task_can_hold_is_refused_by_the_name_of_its_column(values, said):
    frame = pd.DataFrame({"a": values})
    with pytest.raises(DataError, match=f"^table: {said}"):
        plain_frame(frame, what="table")
