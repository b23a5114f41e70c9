"""Columns that identify rows: found on the training rows, left out, kept, named."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.config import SourceConfig, SplitConfig
from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.core.tables import make_task
from amlb_ext.hardening.identifiers import (
    RequiredColumns,
    check_column_options,
    find_identifiers,
    row_numbers,
    select_columns,
)
from amlb_ext.hardening.split import split_task

N = 400


def planted(**columns):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": rng.random(N), "colour": rng.choice(list("abc"), N), **columns}
    )
    frame["y"] = np.where(frame["x"] > 0.5, "yes", "no")
    return split_task(make_task(frame, "y", name="planted"), SplitConfig(folds=3), 1)


def texts(*numbers):
    return [f"v{number}" for number in numbers]


def test_a_value_per_row_is_an_identifier_and_a_colour_is_none():
    task = planted(id=texts(*range(N)), nearly=texts(*range(N - 10), *range(10)))
    found = {one.name: one.reason for one in find_identifiers(task)}
    assert found == {"id": "one value per row", "nearly": "almost one value per row"}


def test_dates_are_identifiers_and_booleans_never():
    days = pd.date_range("2020-01-01", periods=N).astype(str)
    task = planted(day=days, flag=[True, False] * (N // 2))
    assert [one.name for one in find_identifiers(task)] == ["day"]


def test_the_share_is_what_a_split_into_parts_would_show():
    rng = np.random.default_rng(3)
    task = planted(street=texts(*rng.integers(0, 150, N)))
    share = find_identifiers(task)[0].share_new
    seen = []
    for fold in task.folds:
        values = task.features["street"].to_numpy(dtype=object)[fold.train]
        part = rng.permutation(np.arange(len(values)) % 5)
        for k in range(5):
            seen.append(~np.isin(values[part == k], values[part != k]))
    assert share == pytest.approx(np.concatenate(seen).mean(), abs=0.04)


def test_a_missing_value_is_not_a_new_one():
    few = [f"v{k}" if k < 12 else None for k in range(N)]
    assert not find_identifiers(planted(remark=few))


def test_only_training_rows_are_looked_at():
    task = planted(group=texts(*np.arange(N) % 4))
    test = task.folds[0].test
    values = task.features["group"].astype(object).to_numpy(copy=True)
    values[test] = [f"only here {row}" for row in test]
    own = planted(group=values)
    assert not find_identifiers(own.with_folds(own.folds[:1]))


def test_row_numbers_are_named_and_stay():
    shuffled = np.random.default_rng(1).permutation(N) + 7
    task = planted(number=np.arange(N), shuffled=shuffled, age=np.arange(N) * 2)
    assert row_numbers(task) == ["number", "shuffled"]
    chosen = select_columns(task, SourceConfig(), RequiredColumns())
    assert list(chosen.features) == list(task.features)
    assert "--drop number --drop shuffled" in chosen.notes[-1]


def test_what_is_left_out_is_named_and_can_be_kept():
    task = planted(id=texts(*range(N)))
    chosen = select_columns(task, SourceConfig(), RequiredColumns())
    assert list(chosen.features) == ["x", "colour"] == [c.name for c in chosen.columns]
    assert "'id' (one value per row)" in chosen.notes[-1]
    assert "--keep id" in chosen.notes[-1]
    kept = select_columns(task, SourceConfig(keep=("id",)), RequiredColumns())
    assert list(kept.features) == list(task.features)
    assert "kept because --keep says so: 'id'" in kept.notes[-1]


def test_a_fitted_model_keeps_what_it_was_fitted_on():
    task = planted(id=texts(*range(N)), code=texts(*range(N)))
    demand = RequiredColumns("f.skops", frozenset({"x", "id"}))
    chosen = select_columns(task, SourceConfig(), demand)
    assert list(chosen.features) == ["x", "colour", "id"]
    assert "kept because F, the file f.skops, was fitted on it: 'id'" in " ".join(
        chosen.notes
    )
    with pytest.raises(ConfigError, match="was fitted on it"):
        select_columns(task, SourceConfig(drop=("id",)), demand)
    unknown = select_columns(task, SourceConfig(), RequiredColumns("f.skops", None))
    assert list(unknown.features) == list(task.features)


def test_a_column_may_be_of_a_table_that_could_not_be_read():
    task = planted()
    check_column_options([task], SourceConfig(drop=("elsewhere",)), all_read=False)
    with pytest.raises(ConfigError, match="the target of planted"):
        check_column_options([task], SourceConfig(drop=("y",)), all_read=False)


def test_a_table_of_identifiers_alone_is_refused():
    frame = pd.DataFrame({"id": texts(*range(N)), "y": ["yes", "no"] * (N // 2)})
    task = split_task(make_task(frame, "y", name="t"), SplitConfig(), 1)
    with pytest.raises(DataError, match="--keep id"):
        select_columns(task, SourceConfig(), RequiredColumns())
