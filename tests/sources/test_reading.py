"""The table of roles: what each column was read as, and the warning that names the remedy."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Reading
from amlb_ext.sources.reading import describe_reading, reading_csv, reading_text

N = 100
Y = [0, 0, 1, 1] * (N // 4)


def warning_of(values, **more):
    task = make_task(pd.DataFrame({"c": values, "y": Y}), "y", name="t")
    return describe_reading(task, **more).columns[0].warning


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([f"{k},5" for k in range(N)], "decimal comma? --as c=number --decimal ,"),
        ([f"${1234 + k:,}.50" for k in range(N)], "numbers such as '$1,234.50'? --as c=number"),
        ([f"{k / 8}%" for k in range(N)], "numbers such as '0.0%'? --as c=number"),
        ([f"({k}.5)" for k in range(N)], "numbers such as '(0.5)'? --as c=number"),
        ([f"{k + 1},{k + 100}" for k in range(N)], "such as '1,100', with thousands or a dec"),
        ([f"{k % 24}:30" for k in range(N)], "times of day such as '0:30'? --as c=number"),
        ([f"2024-01-{k % 28 + 1:02d}" for k in range(N)], "dates, each a cat"),
        ([f"{k % 28 + 1}.1.2024" for k in range(N)], "--as c=date"),
        ([str(k / 8) for k in range(N)], "numbers, each a category: --as c=number"),
        ([f"user {k}" for k in range(N)], "one value per row, an id? --drop c"),
        ([7 * k for k in range(N)], "one whole number per row, an id? --drop c"),
        (["CH"] * N, "constant: --drop c"),
        ([1e25] * N, "digits were lost"),
        ([None] * N, "no value at all"),
        ([f"c{k}" for k in Y], "tells the target of every row; if it is not known before"),
        (
            ["n/a?" if k % 10 == 0 else str(k / 8) for k in range(N)],
            "numbers, but for 10 values such as 'n/a?'? --as c=number",
        ),
    ],
)  # fmt: skip
def test_a_warning_says_what_to_type(values, said):
    assert said in warning_of(values)


@pytest.mark.parametrize(
    "values",
    [
        ["red", "blue"] * (N // 2),
        ["1", "2", "3+", "1"] * (N // 4),
        [k % 10 / 4 for k in range(N)],
        ["a,b", "c,d"] * (N // 2),
        ["5 stars", "4 stars"] * (N // 2),
        # codes
        [f"{k % 20:03d}" for k in range(N)],
        ["E101", "E5", "C85", ",", "-"] * (N // 5),
        [True, False] * (N // 2),
    ],
)
def test_plain_columns_have_none(values):
    assert warning_of(values) == ""


def test_what_was_left_out_shows_no_values():
    names = [f"Anna {k}" for k in range(N)]
    task = make_task(pd.DataFrame({"c": names, "x": 1.0, "y": Y}), "y", name="t")
    reading = describe_reading(task, kept=["x"])
    assert reading.columns[0].read_as == "ignored"
    assert "--keep c brings it back" in reading.columns[0].warning
    assert "Anna" not in reading_csv([reading])


def test_the_target_is_named_with_who_chose_it():
    frame = pd.DataFrame({"x": range(N), "y": Y})
    task = make_task(frame, "y", name="t", reading=Reading("last column"))
    text = reading_text([describe_reading(task)])
    assert "target 'y' (binary, 2 classes): the last column" in text
    given = reading_text([describe_reading(make_task(frame, "y", name="t"))])
    assert "last column" not in given


def test_a_target_of_many_classes_is_warned_of():
    labels = [f"c{k % 70}" for k in range(N)]
    task = make_task(pd.DataFrame({"x": range(N), "y": labels}), "y", name="t")
    warning = describe_reading(task).target_warning
    assert "70 classes in 100 rows, 1.4 rows per class, 40 classes of a" in warning


def test_a_wide_table_is_cut_to_the_columns_with_a_warning():
    wide = pd.DataFrame(np.random.default_rng(0).random((N, 100)))
    wide = wide.set_axis([f"c{k}" for k in range(100)], axis=1).assign(c77=1, y=Y)
    reading = describe_reading(make_task(wide, "y", name="t"))
    text = reading_text([reading], "columns.csv")
    assert len(text.splitlines()) == 10  # target, header, rule, 6 columns, the rest
    assert "constant: --drop c77" in text
    assert "94 more columns, 0 of them with a warning; all are in columns.csv" in text
    assert len(reading_csv([reading]).splitlines()) == 102


def test_foreign_names_do_not_act_on_the_terminal():
    name = "red\x1b[31m\nname"
    task = make_task(pd.DataFrame({name: ["a"] * N, "y": Y}), "y", name="t")
    text = reading_text([describe_reading(task)])
    assert "\x1b" not in text
    assert len(text.splitlines()) == 4
