"""fev's ``tasks.yaml`` as a source of series."""

import pandas as pd
import pytest
import yaml
from commands import words_of

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import SourceError
from amlb_ext.sources.panel import read_panel
from amlb_ext.sources.series_definitions import find_series_tasks

TASK = {"horizon": 3, "seasonality": 12, "id_column": "item_id"}


@pytest.fixture
def define(wide, tmp_path):
    """Return a function that writes a definition of one task and opens it."""

    def define(**settings):
        path = tmp_path / "tasks.yaml"
        entry = {"dataset_path": str(wide), **TASK, **settings}
        given = {key: value for key, value in entry.items() if value is not None}
        path.write_text(yaml.safe_dump({"tasks": [given]}))
        (task,) = find_series_tasks(str(path), SourceConfig())
        return task.open()

    return define


def test_rows_of_lists_are_read_as_the_long_table_is(define, twin):
    table = define(num_windows=2, window_step_size=6)
    expected = pd.read_csv(twin.folder / "a.csv", parse_dates=["timestamp"])
    expected = expected.sort_values(["item_id", "timestamp"], ignore_index=True)
    assert table.frame["target"].tolist() == expected["target"].tolist()
    assert table.frame["item_id"].tolist() == expected["item_id"].tolist()
    assert (table.frame["timestamp"] == expected["timestamp"]).all()
    assert (table.roles.horizon, table.roles.season) == (3, 12)
    assert (table.origins, table.step, table.first_cutoff) == (2, 6, None)
    assert table.notes == ()


def test_what_is_not_used_is_told(define):
    table = define(initial_cutoff=-20, static_columns=["city"], max_context_length=9)
    assert len(table.notes) == 3
    assert "initial_cutoff -20" in table.notes[0]
    assert "city left out" in table.notes[2]
    # fev's own default says the same
    assert define(initial_cutoff=-3).notes == ()


def test_columns_known_beforehand_come_along(define, wide, tmp_path):
    rows = pd.read_parquet(wide)
    rows["promo"] = [[float(k % 2) for k in range(len(y))] for y in rows["target"]]
    rows["size"] = range(len(rows))
    rows["city"] = "Bern"
    path = tmp_path / "known.parquet"
    rows.to_parquet(path, index=False)
    named = {"known_dynamic_columns": "promo", "static_columns": ["size", "city"]}
    table = define(dataset_path=str(path), **named)
    assert table.roles.known == ("promo", "size")
    assert "city left out: not columns of numbers" in table.notes[0]
    panel = read_panel(table.frame, table.roles)
    assert panel.known_values[1][:3].tolist() == [[0, 1], [1, 1], [0, 1]]
    assert panel.known_at(1, 10).shape == (10 + 1 + 3, 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"horizon": None}, "has no 'horizon'"),
        ({"horizon": "ten"}, "horizon is 'ten'"),
        ({"window_step_size": "MS"}, "window_step_size is 'MS'"),
        ({"dataset_config": "m4_hourly"}, "on the Hugging Face Hub"),
        ({"target": ["a", "b"]}, "has several targets"),
        ({"known_dynamic_columns": 5}, "known_dynamic_columns is '5'"),
        ({"dataset_path": "nope.parquet"}, "no such file or folder: nope.parquet"),
        ({"dataset_path": __file__}, "is no Parquet file"),
        ({"id_column": "shop"}, "has no column 'shop'"),
    ],
)
def test_a_task_that_cannot_be_used_is_refused_in_a_line(define, settings, message):
    with pytest.raises(SourceError, match=message) as error:
        define(**settings)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks: [1", "is no YAML: line"),
        ("tasks: 3", "'tasks' is no list of tasks"),
        ("tasks: [3]", "task 1 is '3', no settings"),
        ("tusks: []", "a definition is a list of tasks"),
    ],
)
def test_an_unreadable_definition_is_refused_in_a_line(
    text, message, tmp_path, refused
):
    path = tmp_path / "tasks.yaml"
    path.write_text(text)
    assert message in refused("generate", path, "-o", tmp_path / "hard")
    assert not (tmp_path / "hard").exists()


def test_a_suite_is_made_of_fevs_windows(wide, tmp_path, refused, output_of):
    path = tmp_path / "tasks.yaml"
    cut = {"num_windows": 2, "initial_cutoff": "2013-06-01", "window_step_size": 2}
    entry = {"dataset_path": str(wide), "task_name": "north/shops", **TASK, **cut}
    path.write_text(yaml.safe_dump({"tasks": [entry]}))
    words = ["generate", str(path), "--baseline", "seasonal_naive"]
    words += words_of(
        "--certificate none --copies 0 --learning-origins 1 -o", tmp_path / "hard"
    )
    lines = output_of(words).splitlines()
    seen = [line.split()[-1] for line in lines if "_full " in line]
    assert seen == ["2013-06-01", "2013-08-01"]
    assert any(line.startswith("north_shops_o1_full") for line in lines)
    # AMLB's twin is of AMLB's benchmarks
    assert "definition of fev's" in refused("harden", path, "-o", tmp_path / "hard2")


def test_lists_of_unequal_length_are_refused(define, wide, tmp_path):
    rows = pd.read_parquet(wide)
    rows.at[2, "target"] = rows.at[2, "target"][:-1]
    rows.to_parquet(tmp_path / "broken.parquet", index=False)
    with pytest.raises(SourceError, match="series stable_004: 48 times and 47 values"):
        define(dataset_path=str(tmp_path / "broken.parquet"))
