from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amlb_ext.amlb import coding as coding_module
from amlb_ext.amlb.coding import column_form, write_csv
from amlb_ext.amlb.safe_text import (
    check_columns,
    is_safe_text,
    labels_survive,
    normalize_text,
    safe_columns,
    safe_labels,
    safe_values,
)
from amlb_ext.core.errors import SuiteError
from amlb_ext.core.tables import make_task
from amlb_ext.suite import Coding

TEXTS = st.lists(st.text(max_size=4), min_size=1, max_size=8, unique=True)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(values=TEXTS)
def test_written_values_are_safe_and_apart_once_normalised(values):
    written = safe_values(values)
    assert all(map(is_safe_text, written))
    assert len({normalize_text(text) for text in written}) == len(values)
    # what was safe, and alone when normalised, stays
    alone = [
        v
        for v in values
        if is_safe_text(v)
        and [*map(normalize_text, values)].count(normalize_text(v)) < 2
    ]
    assert [
        v for v, w in zip(values, written, strict=True) if v == w and v not in alone
    ] == []
    assert all(written[values.index(v)] == v for v in alone)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(labels=TEXTS)
def test_written_labels_survive_and_replaced_ones_keep_their_order(labels):
    written = safe_labels(labels)
    assert labels_survive(written)
    assert list(written) == labels or list(written) == sorted(written)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(names=TEXTS)
def test_column_names_are_clean_and_apart(names):
    written = safe_columns(names)
    assert len({name.lower() for name in written}) == len(names)
    assert check_columns(written) == []
    assert not any(set(name) & set('[]{}:,"<>\n\r\x00') or not name for name in written)


#: Names of columns, and what is written for them.
NAMES = [
    (["age", "education-num", "Sepal.Length", "a(0)"], None),
    (["a b", "a_b"], ["a_b_2", "a_b"]),
    (["a-b", "a.b"], ["a-b", "a_b_2"]),
    (["Age", "age", "AGE "], ["Age", "age_2", "AGE_"]),
    (["x[0]", "x[1]", "x<1", "x,1"], ["x_0_", "x_1_", "x_1", "x_1_2"]),
    (['"q"', "k:v", "{u}", "a\tb", "a\nb"], ["_q_", "k_v", "_u_", "a_b", "a_b_2"]),
    (["", " ", "\u4fa1\u683c"], ["column", "column_2", "column_3"]),
    (["2020", "1.5", "1e3", "1st"], ["c_2020", "c_1_5", "c_1e3", "1st"]),
    (["inf", "NA", "None", "nano"], ["c_inf", "c_NA", "c_None", "nano"]),
    (["Gr\u00f6\u00dfe", "caf\u00e9", "cafe\u0301"], ["Grosse", "cafe", "cafe_2"]),
    (["x" * 300, "x" * 301], ["x" * 100, "x" * 100 + "_2"]),
    (["column", "", "column_2"], ["column", "column_3", "column_2"]),
]  # fmt: skip


@pytest.mark.parametrize(("names", "written"), NAMES)
def test_names_that_a_framework_would_change(names, written):
    assert list(safe_columns(names)) == (written or names)
    assert check_columns(safe_columns(names)) == []


@pytest.mark.parametrize("module", ["lightgbm", "xgboost"])
def test_boosters_take_every_written_name(module):
    booster = pytest.importorskip(module, reason=f"{module} is not installed")
    names = [name for case, _ in NAMES for name in case]
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        rng.normal(size=(60, len(names))), columns=list(safe_columns(names))
    )
    if module == "lightgbm":
        model = booster.LGBMRegressor(n_estimators=2, min_child_samples=5, verbose=-1)
        model.fit(rows, rng.normal(size=60))
        assert list(model.booster_.feature_name()) == list(rows)
    else:
        model = booster.XGBRegressor(n_estimators=2).fit(rows, rng.normal(size=60))
        assert list(model.get_booster().feature_names) == list(rows)


def test_replacements_avoid_texts_that_look_like_them():
    assert safe_values(["c0_na", "NA"]) == ("c0_na", "cc1_na")


@pytest.mark.parametrize(
    ("labels", "written"),
    [
        (["neg", "pos"], ["neg", "pos"]),
        (["No", "Yes"], ["No", "Yes"]),  # same order before and after lower-casing
        (["Yes", "no"], ["c0_yes", "c1_no"]),  # AUC .0185 instead of .98
        (["B", "a", "C"], ["c0_b", "c1_a", "c2_c"]),  # logloss 4.18 instead of .60
        (["2", "9", "10"], ["c0_2", "c1_9", "c2_10"]),
        (["-1", "1"], ["-1", "1"]),
        (["0.0", "1.0"], ["c0_0.0", "c1_1.0"]),
        (["01", "02"], ["c0_01", "c1_02"]),
        (["False", "True"], ["c0_false", "c1_true"]),
        (["NA", "b"], ["c0_na", "c1_b"]),
        (["a", "truth"], ["c0_a", "c1_truth"]),
        ([" a", "b"], ["c0_a", "c1_b"]),
    ],
)
def test_labels_are_replaced_only_where_amlb_would_err(labels, written):
    assert list(safe_labels(labels)) == written


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "whole": range(20),
            "lost": [1.0, None] * 10,
            "flag": [True, False] * 10,
            "flag?": [True, None] * 10,
            "code": ["007", "1"] * 10,
            "y": np.linspace(0, 1, 20),
        }
    )


def test_forms_are_fixed_by_the_whole_table(tmp_path):
    task = make_task(table(), "y", name="t")
    coding = Coding.of(task)
    assert [c.form for c in coding.columns] == [
        "integer",
        "float",
        "boolean",
        "text",
        "text",
    ]
    one = coding.encode(task.features.iloc[:1], task.target.iloc[:1])
    path = tmp_path / "one.csv"
    first = write_csv(one, path)
    assert (
        path.read_bytes()
        == b"whole,lost,flag,flag?,code,y\n0,1.0,True,c0_true,c1_007,0.0\n"
    )
    assert write_csv(one, path) == first


def test_floats_come_back_to_the_last_bit(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**64, 4000, dtype=np.uint64).view(np.float64)
    values = np.append(
        values[np.abs(values) < 3e38], [5e-324, -0.0, 0.1 + 0.2, 2**53 + 0.0]
    )
    task = make_task(pd.DataFrame({"a": values, "y": values[::-1]}), "y", name="t")
    coding = Coding.of(task)
    write_csv(coding.encode(task.features, task.target), tmp_path / "a.csv")
    features, _ = coding.decode(coding.read_csv(tmp_path / "a.csv"))
    assert features["a"].to_numpy().tobytes() == task.features["a"].to_numpy().tobytes()


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("whole", 2.5, "whole numbers holds 2.5"),
        ("whole", np.nan, "no value in row 0"),
        ("lost", np.inf, "reads numbers up to"),
    ],
)
def test_values_that_a_form_cannot_hold_are_refused(column, value, said):
    task = make_task(table(), "y", name="t")
    features = task.features.copy()
    features.loc[0, column] = value
    with pytest.raises(SuiteError, match=said):
        Coding.of(task).encode(features, task.target)


def test_unknown_categories_and_other_columns_are_refused():
    task = make_task(table(), "y", name="t")
    coding = Coding.of(task)
    odd = task.features.assign(code=pd.Categorical(["blue"] * 20))
    with pytest.raises(SuiteError, match="'blue', which is not one of its 2 values"):
        coding.encode(odd, task.target)
    with pytest.raises(SuiteError, match="in their order"):
        coding.encode(task.features.iloc[:, ::-1], task.target)
    with pytest.raises(SuiteError, match="'flag' instead of 'whole'"):
        coding.decode(coding.encode(task.features, task.target)[["flag", "whole"]])


def test_a_written_column_is_read_back_as_the_column_it_holds():
    """The report once took booleans for categories and the writer for booleans: now one answer."""
    columns = Coding.of(make_task(table(), "y", name="t")).columns
    back = [column.as_column() for column in columns]
    assert [(column.type, column.has_missing) for column in back] == [
        ("integer", False),
        ("numeric", True),
        ("boolean", False),
        ("categorical", True),
        ("categorical", True),
    ]
    # whatever the source's type was, it is written in the same form again
    assert [column_form(column) for column in back] == [c.form for c in columns]


def test_files_are_read_in_blocks_as_they_are_at_once(tmp_path, monkeypatch):
    task = make_task(table(), "y", name="t")
    coding = Coding.of(task)
    path = tmp_path / "t.csv"
    for rows in (0, 5, 20):
        write_csv(coding.encode(task.features, task.target).head(rows), path)
        at_once = coding.read_csv(path)
        with monkeypatch.context() as patch:
            patch.setattr(coding_module, "BLOCK_ROWS", 5)
            in_blocks = coding.read_csv(path)
        pd.testing.assert_frame_equal(in_blocks, at_once)
        features, _ = coding.decode(in_blocks)
        pd.testing.assert_frame_equal(features, task.features.head(rows))
