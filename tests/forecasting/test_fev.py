"""A suite for fev: what is written, what is read back, and fev itself where it is installed."""

import json
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from amlb_ext.cli import main
from amlb_ext.core.errors import ConfigError, HardsynthError, RunError
from amlb_ext.models.forecasters import LEVELS
from amlb_ext.report import report_tables
from amlb_ext.report.series import build_series_report
from amlb_ext.units.stored_windows import ForecastSuite


def fev_tasks(suite):
    return yaml.safe_load((suite / "fev" / "tasks.yaml").read_text())["tasks"]


@pytest.fixture
def predictions(twin, tmp_path):
    """Return a folder with F's own forecasts, as fev's predictions are saved."""
    for table in ForecastSuite.load(twin.suite).tables:
        failing = table.read_failing_windows()
        start = 0
        for task in table.main_tasks:
            rows = slice(start, start + len(task.items))
            start += len(task.items)
            columns = {"predictions": failing.forecasts.mean[rows].tolist()}
            for position, level in enumerate(LEVELS):
                values = failing.forecasts.quantiles[rows, :, position]
                columns[str(level)] = values.tolist()
            pq.write_table(pa.table(columns), tmp_path / f"{task.name}.parquet")
    return tmp_path


def test_each_origin_is_a_task_of_fev_with_amlbs_series(twin):
    tasks = fev_tasks(twin.suite)
    names = ["shops_o0_full", "shops_o1_full", "stores_no__2_full"]
    assert [task["task_name"] for task in tasks] == names
    for task in tasks:
        assert task["min_context_length"] == task["seasonality"] + 1 == 13
        rows = pq.read_table(task["dataset_path"]).to_pandas()
        name = task["task_name"]
        csv = twin.suite / "data" / name / f"{name}.csv"
        long = pd.read_csv(csv, parse_dates=["timestamp"])
        assert rows["item_id"].tolist() == long["item_id"].unique().tolist()
        assert np.concatenate(rows["target"]).tolist() == long["target"].tolist()
        times = pd.DatetimeIndex(np.concatenate(rows["timestamp"]))
        assert (times == pd.DatetimeIndex(long["timestamp"])).all()


def report(suite, folder):
    """Return the report on predictions in a folder, and its tables."""
    built = build_series_report(suite, predictions={"naive": folder}, charts=False)
    return built, report_tables(built)


def scores_by_framework(tables, metric="mase"):
    table = tables["scores"].query("metric == @metric and part == 'full'")
    return table.pivot_table(index="task", columns="framework", values="value")


def test_the_command_writes_one_page_of_all_tables(twin, predictions, tmp_path, capsys):
    out = tmp_path / "answer"
    words = ["report", str(twin.suite), "--predictions", f"naive={predictions}"]
    assert main([*words, "-o", str(out)]) == 0
    said = capsys.readouterr().out
    # they are F's own
    assert re.search(r"^shops +\? ", said, re.M)
    page = (out / "report.html").read_text()
    for name in ("shops", "stores_no__2"):
        assert f'href="#task-{name.replace("_", "-").replace("--", "-")}"' in page
    assert " rows" not in said
    windows = pd.read_csv(out / "report" / "windows.csv")
    assert set(windows["task"]) == {"shops", "stores_no__2"}
    assert windows["mase_naive"].tolist() == pytest.approx(windows["mase_F"].tolist())
    told = json.loads((out / "report" / "report.json").read_text())
    assert told["unit"] == "window"
    assert {row["where"] for row in told["tasks"][0]["contrasts"]} == {
        "all rows",
        "region",
    }
    assert main([*words, "--text"]) == 0
    assert "worst" in capsys.readouterr().out


STORES = "stores_no__2_full"


@pytest.fixture
def stores(twin, predictions):
    """Return the file of one task, its predictions, names of its series and times to predict."""
    loaded = ForecastSuite.load(twin.suite).tables[-1]
    failing = loaded.read_failing_windows()
    (windows,) = failing.tests
    path = predictions / f"{STORES}.parquet"
    return SimpleNamespace(
        path=path,
        table=pq.read_table(path),
        names=[failing.panel.names[item] for item in windows.items],
        times=failing.panel.future_times(windows.cutoff).tolist(),
    )


@pytest.mark.parametrize("column", ["ITEM_ID", "shop"])
def test_rows_that_say_their_series_may_stand_in_any_order(
    twin, predictions, stores, column
):
    n = stores.table.num_rows
    ids = [f"w{item:05d}" for item in range(n)]
    if column == "shop":
        ids = stores.names
    order = np.random.default_rng(0).permutation(n)
    mixed = stores.table.append_column(column, [ids]).take(order)
    pq.write_table(mixed, stores.path)
    scores = scores_by_framework(report(twin.suite, predictions)[1])
    assert scores["naive"].tolist() == pytest.approx(scores["F"].tolist())


@pytest.mark.parametrize(
    ("column", "order"), [("timestamp", [3, 2, 1, 0]), ("ds", [2, 0, 3, 1])]
)
def test_steps_that_say_their_times_may_stand_in_any_order(
    twin, predictions, stores, column, order
):
    table = stores.table
    for number, name in enumerate(table.column_names):
        lists = [[row[step] for step in order] for row in table[name].to_pylist()]
        table = table.set_column(number, name, [lists])
    times = [[stores.times[step] for step in order]] * table.num_rows
    pq.write_table(table.append_column(column, [times]), stores.path)
    scores = scores_by_framework(report(twin.suite, predictions)[1])
    assert scores["naive"].tolist() == pytest.approx(scores["F"].tolist())


def changed(table, change):
    """Return fev's predictions with what somebody might get wrong."""
    lists = table["predictions"].to_pylist()
    if change == "shorter":
        lists[3] = lists[3][:-1]
    elif change == "nan":
        lists[3] = [float("nan"), *lists[3][1:]]
    elif change == "numbers":
        lists = [row[0] for row in lists]
    elif change == "texts":
        lists = [[str(value) + "!" for value in row] for row in lists]
    elif change == "fewer":
        return table.slice(1)
    elif change == "renamed":
        return table.rename_columns(["mean", *table.column_names[1:]])
    elif change == "others":
        return table.append_column("item_id", [["x"] * table.num_rows])
    elif change == "unknown order":
        return table.append_column("shop", [list(range(table.num_rows))[::-1]])
    elif change == "late":
        times = list(pd.date_range("2100-01-01", periods=4, freq="MS"))
        return table.append_column("timestamp", [[times] * table.num_rows])
    elif change == "reversed levels":
        heads = table.column_names
        return table.rename_columns([heads[0], *heads[:0:-1]])
    elif change == "distances":
        for number, level in enumerate(LEVELS, start=1):
            distances = [[level - 0.5] * 4] * table.num_rows
            table = table.set_column(number, str(level), [distances])
        return table
    return table.set_column(0, "predictions", [lists])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("shorter", r"row 4 \(series 'stable_005'\): 'predictions' has 3 steps, the"),
        ("nan", r"row 4 \(series 'stable_005'\): 'predictions' is NaN or infinite"),
        ("numbers", "holds double, no lists"),
        ("texts", "holds list<"),
        ("fewer", "has 31 rows, the task has 32 series"),
        ("renamed", "has no column 'predictions'"),
        ("others", "has no prediction of series 'w00000', and lacks 32"),
        ("unknown order", "a column 'shop' that tells its rows apart, e.g. 31, and by"),
        ("late", r"row 1 \(series .*'timestamp' is 2100-01-01 .* the task asks for"),
        ("reversed levels", r"a quantile at 0.\d below that at 0.\d in 128 of 128 ste"),
        ("distances", "a mean far outside its own quantiles in 128 of 128 steps"),
        ("damaged", "is no Parquet file"),
    ],
)
def test_predictions_that_do_not_fit_are_refused(twin, predictions, change, message):
    path = predictions / "stores_no__2_full.parquet"
    if change == "damaged":
        path.write_bytes(b"PAR1")
    else:
        pq.write_table(changed(pq.read_table(path), change), path)
    with pytest.raises(HardsynthError, match=message):
        report(twin.suite, predictions)


def test_places_without_predictions_are_refused(twin, predictions, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(RunError, match=r"empty/shops_o0_full\.parquet"):
        report(twin.suite, empty)
    with pytest.raises(RunError, match="no file or folder of predictions"):
        report(twin.suite, tmp_path / "nope")
    one = predictions / "shops_o0_full.parquet"
    with pytest.raises(RunError, match="is one file, and the suite has 3 tasks"):
        report(twin.suite, one)
    with pytest.raises(ConfigError, match="another forecaster's name"):
        build_series_report(twin.suite, predictions={"F": predictions})


# fev warns of what pandas will change
@pytest.mark.filterwarnings("ignore")
def test_fev_itself_gives_our_mase_and_sql_for_each_series(twin, tmp_path, monkeypatch):
    fev = pytest.importorskip("fev", reason="fev is not installed")
    from fev.metrics import get_metric

    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    suite = tmp_path / "hard"
    shutil.copytree(twin.suite, suite)
    assert main(["verify", str(suite), "--repair", "-q"]) == 0
    saved = tmp_path / "naive"
    saved.mkdir()
    theirs: dict[str, list[dict[str, float]]] = {}
    for task in fev.Benchmark.from_yaml(suite / "fev" / "tasks.yaml").tasks:
        (window,) = task.iter_windows(num_proc=1)
        past, _ = window.get_input_data()
        truth = window.get_ground_truth()
        rows = []
        for series, future in zip(past, truth, strict=True):
            y, m = np.asarray(series["target"]), task.seasonality
            mean = np.resize(y[-m:], task.horizon)
            row = {"predictions": mean}
            for level in task.quantile_levels:
                row[str(level)] = mean + (level - 0.5) * y.std()
            rows.append(row)
            quantiles = np.column_stack([row[str(q)] for q in task.quantile_levels])
            known = {
                "y_true": np.asarray(future["target"])[None, :, None],
                "y_pred": mean[None, :, None],
                "y_past": y[:, None],
                "y_past_lengths": np.array([len(y)]),
                "q_pred": quantiles[None, :, None, :],
                "seasonality": m,
                "quantile_levels": task.quantile_levels,
            }
            scores = {
                name: get_metric(name).compute(**known) for name in ("MASE", "SQL")
            }
            theirs.setdefault(task.task_name, []).append(scores)
        summary = task.evaluation_summary([rows], model_name="naive")
        mean_of_items = np.mean([scores["MASE"] for scores in theirs[task.task_name]])
        assert summary["MASE"] == pytest.approx(mean_of_items)
        pd.DataFrame(rows).to_parquet(saved / f"{task.task_name}.parquet")
    windows = report(suite, saved)[1]["windows"]
    items = [scores for task in theirs.values() for scores in task]
    for name, loss in (("MASE", "mase"), ("SQL", "sql")):
        # windows stand worst first
        expected = sorted(scores[name] for scores in items)
        found = sorted(windows[f"{loss}_naive"])
        assert found == pytest.approx(expected, abs=1e-6)


def test_a_task_without_predictions_is_told(twin, predictions):
    (predictions / "shops_o1_full.parquet").unlink()
    told, tables = report(twin.suite, predictions)
    jobs = tables["jobs"].set_index("amlb_task")
    assert set(jobs["reason"]) == {"no predictions of shops_o1_full"}
    everywhere = tables["contrasts"].query("where == 'all rows'").set_index("task")
    assert everywhere.loc["shops", "verdict"] == "incomplete"
    assert everywhere.loc["stores_no__2", "verdict"] == "undecided"
    assert not told.is_complete
