"""Containers of Data Foundry: their splits, groups and times are kept."""

import json

import numpy as np
import pandas as pd
import pytest
from foundry_container import write_container

from amlb_ext.core.config import SourceConfig, SplitConfig
from amlb_ext.core.errors import SourceError
from amlb_ext.pipeline.generate import order_task
from amlb_ext.sources import data_foundry, open_specs

N = 40
SPLITS = {
    "0": {
        "1": [list(range(20)), list(range(20, N))],
        "0": [list(range(10)), list(range(10, 20))],
    },
    "1": {"0": [[0], [1]]},
}


@pytest.fixture
def visits():
    return pd.DataFrame(
        {
            "day": pd.date_range("2024-01-01", periods=N),
            "shop": pd.Categorical([f"s{i // 5}" for i in range(N)]),
            "till": [i % 2 for i in range(N)],
            "size": np.arange(N) / 4,
            "sales": np.arange(N, dtype=float) ** 2,
        }
    )


def write(folder, table, splits=SPLITS, **task):
    task = {"target": "sales", "problem": "regression", **task}
    return write_container(folder, table, splits=splits, **task)


def load(folder):
    return next(open_specs([str(folder)])).load()


def test_the_folds_of_repeat_0_come_in_the_order_of_their_numbers(visits, tmp_path):
    folder = write(tmp_path / "c", visits)
    task = load(folder)
    assert task.name == "shop_visits"
    assert [len(fold.test) for fold in task.folds] == [10, 20]
    assert task.folds[1].train.tolist() == list(range(20))
    assert task.origin.licence == "CC0-1.0"
    assert task.order is None


def test_a_column_that_is_declared_a_category_is_one(visits, tmp_path):
    task = {"target": "till", "problem": "binary_classification"}
    folder = write(tmp_path / "c", visits, **task)
    dtypes = json.loads((folder / "dtypes.json").read_text())
    (folder / "dtypes.json").write_text(json.dumps({**dtypes, "size": "category"}))
    task = load(folder)
    assert task.labels == ("0", "1")
    assert isinstance(task.features["size"].dtype, pd.CategoricalDtype)


def test_times_order_the_rows_and_are_no_feature(visits, tmp_path):
    folder = write(tmp_path / "c", visits, time_on="day")
    task = order_task(load(folder), SplitConfig(), SourceConfig())
    assert np.diff(task.order.time).tolist() == [86400.0] * (N - 1)
    assert "day" not in task.features
    assert any("forward in time by 'day'" in note for note in task.notes)


def test_groups_of_one_column_and_of_two(visits, tmp_path):
    how = {"group_labels": "per_sample"}
    one = write(tmp_path / "one", visits, group_on="shop", **how)
    assert len(set(load(one).order.group)) == 8
    two = write(tmp_path / "two", visits, group_on=["shop", "till"], **how)
    order = load(two).order
    assert len(set(order.group)) == 16
    assert order.group_name == "shop, till"


@pytest.mark.parametrize(
    ("splits", "words"),
    [
        ({"0": {"0": [[0, 1], [1, 2]]}}, "fold 0 names rows twice"),
        ({"0": {"0": [[0, 1], [99]]}}, "beyond the 40 rows"),
        ({"0": {"0": [[0, 1]]}}, "not of the form"),
        ({"0": {}}, "has no split"),
        ({}, "not of the form"),
    ],
)
def test_splits_that_do_not_fit_are_refused(visits, tmp_path, splits, words):
    folder = write(tmp_path / "c", visits, splits)
    with pytest.raises(SourceError, match=words):
        load(folder)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("task_metadata.predictive-ml-task-mold-v1.json", "not valid JSON"),
        ("dataset.parquet", "not a valid Parquet file"),
    ],
)
def test_damaged_files_are_named(visits, tmp_path, name, words):
    folder = write(tmp_path / "c", visits)
    (folder / name).write_text("{")
    with pytest.raises(SourceError, match=words):
        load(folder)


def test_beyondarena_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(data_foundry, "find_spec", lambda name: None)
    with pytest.raises(SourceError) as caught:
        next(open_specs(["beyondarena/diamonds"]))
    assert "hardsynth[beyondarena]" in caught.value.remedy


def test_the_packages_own_example_is_read():
    examples = pytest.importorskip(
        "data_foundry.examples", reason="data-foundry is not installed"
    )
    task = load(examples.get_toy_container_path())
    assert (task.name, len(task.folds)) == ("toy_iid_dataset", 3)
