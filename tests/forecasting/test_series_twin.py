"""The hard twin of a benchmark of series, and suites of several tables."""

from pathlib import Path

import pandas as pd
import pytest

from amlb_ext.amlb.definition import read_definition
from amlb_ext.cli import main
from amlb_ext.core.errors import SuiteError
from amlb_ext.suite.series_manifest import ForecastTask
from amlb_ext.suite.twin import Original, pair_of_series
from amlb_ext.units.stored_windows import ForecastSuite


def entries_of(suite, name):
    return dict(read_definition(Path(suite) / "benchmarks" / f"{name}.yaml"))


def test_tasks_that_cannot_be_had_are_left_out_in_a_line_each(twin):
    assert twin.status == 1
    assert len(twin.lines) == 2
    assert twin.lines[0].startswith("away is left out: away: no such file or folder")
    assert "task 'endless' has no 'forecast_horizon_in_steps'" in twin.lines[1]


def test_the_twin_has_the_originals_names_limits_and_metrics(twin):
    entries = entries_of(twin.suite, "mine_hard")
    # the two folds of AMLB's are two origins, and each is a task
    assert list(entries) == ["shops_o0", "shops_o1", "stores no. 2"]
    shops = entries["shops_o1"]
    assert shops["id"] == "mine_hard/shops_o1"
    assert (shops["max_runtime_seconds"], shops["cores"]) == (60, 2)
    assert shops["metric"] == ["mase", "smape"]
    assert shops["quantile_levels"] == [0.1, 0.9]
    assert entries["stores no. 2"]["metric"][0] == "mase"
    assert "max_runtime_seconds" not in entries["stores no. 2"]


def test_the_twin_holds_series_on_which_f_fails(twin):
    hard = entries_of(twin.suite, "mine_hard")["stores no. 2"]["dataset"]
    every = entries_of(twin.suite, "hardsynth_mine_all")
    assert hard["path"].endswith("_bad.csv")
    series = pd.read_csv(hard["path"])["item_id"].nunique()
    full = pd.read_csv(every["stores_no__2_full"]["dataset"]["path"])["item_id"]
    assert 1 < series < full.nunique()


def test_each_table_keeps_its_own_horizon_and_series(twin):
    main_tasks = entries_of(twin.suite, "hardsynth_mine")
    assert list(main_tasks) == ["shops_o0_full", "shops_o1_full", "stores_no__2_full"]
    horizons = [
        task["dataset"]["forecast_horizon_in_steps"] for task in main_tasks.values()
    ]
    assert horizons == [3, 3, 4]
    shops, stores = ForecastSuite.load(twin.suite).tables
    assert shops.read_failing_windows().future.shape == (64, 3)
    failing = stores.read_failing_windows()
    table = pd.read_csv(twin.folder / "b.csv")
    assert list(failing.panel.names) == sorted(table["shop"].unique())
    assert len(stores.read_twins(stores.read_failing_windows())) == 4


def test_export_and_installation_have_the_twin(twin, tmp_path):
    out = tmp_path / "export"
    words = ["export", str(twin.suite), "--base-url", "https://a.org/x", "-q"]
    assert main([*words, "-o", str(out)]) == 0
    names = {path.stem for path in (out / "benchmarks").iterdir()}
    assert names == {"mine_hard", "hardsynth_mine", "hardsynth_mine_all"}
    path = entries_of(out, "mine_hard")["shops_o0"]["dataset"]["path"]
    assert path.startswith("https://a.org/x/")
    user = tmp_path / "user"
    user.mkdir()
    assert main(["install", str(twin.suite), "--userdir", str(user), "-q"]) == 0
    home = user / "hardsynth_suites" / "hardsynth_mine"
    path = entries_of(home, "mine_hard")["shops_o0"]["dataset"]["path"]
    assert path.startswith(str(twin.suite))


def test_series_drawn_by_their_chance_of_failure_come_first():
    kinds = ("full", "bad", "region")
    tasks = [
        ForecastTask(name=f"a_{kind}", kind=kind, origin=0, path="", items=(0, 1))
        for kind in kinds
    ]
    pair = pair_of_series(Original("mine", {"a": {"name": "A"}}), {"a": tasks})
    (entry,) = pair.tasks
    assert (entry.name, entry.task) == ("A", "a_region")


def test_two_tasks_of_one_name_are_refused():
    task = {"kind": "bad", "path": "", "items": (0, 1)}
    tasks = {
        "a": [
            ForecastTask(name="a_o0_bad", origin=0, **task),
            ForecastTask(name="a_o1_bad", origin=1, **task),
        ],
        "b": [ForecastTask(name="b_bad", origin=0, **task)],
    }
    original = Original("mine", {"a": {"name": "a"}, "b": {"name": "A_o1"}})
    with pytest.raises(SuiteError, match="two tasks of the twin"):
        pair_of_series(original, tasks)
