"""A suite of forecasting tasks: written whole, checked, moved, reported."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from hostile_files import reseal

from amlb_ext.amlb.definition import read_definition
from amlb_ext.cli.verify import verify_folder
from amlb_ext.comparison.forecasts import answer_comparison
from amlb_ext.core.errors import SuiteError
from amlb_ext.core.unit import WINDOW
from amlb_ext.gate.suites import check_suite
from amlb_ext.models.forecasters import LEVELS, make_forecaster
from amlb_ext.pipeline.series_suite import SuitePart, write_suite
from amlb_ext.report import report_tables, report_text
from amlb_ext.report.series import build_series_report
from amlb_ext.sources.bundled_series import SIMULATED_ROLES, simulate_series
from amlb_ext.sources.panel import read_panel
from amlb_ext.stats.window_losses import read_window_loss
from amlb_ext.suite import SuiteFiles, verify_suite
from amlb_ext.suite.shared_files import (
    place_definitions,
    runnable_definition,
)
from amlb_ext.units.failing_windows import find_failing_windows
from amlb_ext.units.origins import plan_origins
from amlb_ext.units.rolling import request_at, roll_forecaster, score_forecasts
from amlb_ext.units.stored_windows import ForecastSuite
from amlb_ext.validity import Certificate, decide_verdict
from amlb_ext.validity.measures import plan_measure


@pytest.fixture(scope="module")
def failing():
    panel = read_panel(simulate_series(60, 96), SIMULATED_ROLES)
    return find_failing_windows(
        make_forecaster("seasonal_naive"),
        panel,
        plan_origins(panel, test=2),
    )


@pytest.fixture(scope="module")
def made(failing, tmp_path_factory):
    out = tmp_path_factory.mktemp("suite") / "hard"
    twins = [
        roll_forecaster(twin, failing.panel, failing.tests)
        for twin in make_forecaster("seasonal_naive").twins(2, 12)
    ]
    about = {"source": "simulated", "baseline": "seasonal_naive"}
    part = SuitePart(task="my series", failing=failing, twins=twins, about=about)
    write_suite(out, [part], name="hardsynth", seed=0)
    return out


@pytest.fixture
def suite(made, tmp_path):
    """Return a copy that a test may change, its paths put right."""
    copy = tmp_path / "copy"
    shutil.copytree(made, copy)
    place_definitions(ForecastSuite.load(copy))
    return copy


def test_each_origin_is_a_task_of_all_series_cut_behind_its_horizon(made, failing):
    tasks = dict(read_definition(made / "benchmarks" / "hardsynth.yaml"))
    assert list(tasks) == ["my_series_o0_full", "my_series_o1_full"]
    for task, windows in zip(tasks.values(), failing.tests, strict=True):
        table = pd.read_csv(task["dataset"]["path"])
        assert list(table) == ["item_id", "timestamp", "target"]
        assert table["item_id"].is_monotonic_increasing
        last = table.groupby("item_id").tail(12)["target"].to_numpy()
        assert last.reshape(-1, 12) == pytest.approx(windows.future)


def test_what_was_written_is_read_back(made, failing):
    again = ForecastSuite.load(made).tables[0].read_failing_windows()
    assert np.array_equal(again.is_bad, failing.is_bad)
    assert again.forecasts.mase == pytest.approx(failing.forecasts.mase, abs=1e-12)
    assert again.forecasts.sql == pytest.approx(failing.forecasts.sql, abs=1e-12)
    assert np.array_equal(again.weighting.weights, failing.weighting.weights)
    assert again.rule == failing.rule


def test_a_moved_suite_is_stale_until_it_is_repaired(suite, tmp_path):
    moved = tmp_path / "elsewhere"
    suite.rename(moved)
    assert any("no longer stands" in finding for finding in verify_suite(moved))
    loaded = ForecastSuite.load(moved)
    runnable = runnable_definition(loaded, "hardsynth", tmp_path / "results")
    tasks = dict(read_definition(Path(runnable)))
    path = tasks["my_series_o0_full"]["dataset"]["path"]
    assert path.startswith(str(moved))
    assert len(place_definitions(loaded)) == 3
    assert verify_suite(moved) == []
    assert runnable_definition(loaded, "hardsynth", tmp_path) == "hardsynth"


def change_parquet(file, **changes):
    def change(suite):
        frame = pd.read_parquet(suite / file)
        frame.assign(**changes).to_parquet(suite / file)

    return change


def change_csv(file, change):
    def change_file(suite):
        path = suite / "data" / file / f"{file}.csv"
        change(pd.read_csv(path)).to_csv(path, index=False)

    return change_file


WINDOWS = "hardsynth/windows.parquet"
O0, O1 = "my_series_o0", "my_series_o1"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            change_csv(f"{O1}_full", lambda table: table.eval("target = target + 1")),
            f"data/{O1}_full/{O1}_full.csv: its ids, times or values",
        ),
        (
            change_csv(f"{O0}_bad", lambda table: table.iloc[::-1]),
            f"{O0}_bad.csv: its ids, times or values",
        ),
        (
            change_parquet(f"fev/{O0}_full.parquet", item_id=lambda rows: "w00000"),
            f"fev/{O0}_full.parquet: its ids, times or values",
        ),
        (
            change_parquet(
                "hardsynth/series.parquet", values=lambda rows: rows["values"] * 2
            ),
            f"{O0}_full.csv: its ids, times or values",
        ),
        (
            change_parquet(WINDOWS, f_mean=lambda rows: rows["f_mean"] + 30),
            "windows 'hardness' does not follow",
        ),
        (change_parquet(WINDOWS, scale=1.0), "windows 'scale' does not follow"),
        (
            change_parquet(WINDOWS, bad=lambda rows: ~rows["bad"]),
            "windows 'bad' does not follow",
        ),
        (change_parquet(WINDOWS, weight=0.5), f"{O0}_region: the manifest has other"),
        (change_parquet(WINDOWS, bad="?"), "is no table of windows"),
    ],
)
def test_files_that_contradict_each_other_are_damage_under_any_seal(
    suite, change, said
):
    assert verify_folder(suite) == []
    change(suite)
    reseal(suite)
    found = verify_folder(suite)
    assert any(said in line for line in found), found


def test_autogluon_is_there_without_models_that_are_downloaded(made):
    entry = yaml.safe_load((made / "frameworks.yaml").read_text())["HardsynthAutoGluon"]
    assert entry["extends"] == "AutoGluon"
    models = entry["params"]["hyperparameters"]
    assert len(models) > 2
    assert not any(name.startswith("Chronos") for name in models)
    assert "presets" not in entry["params"]


def test_commands_of_tables_refuse_the_suite(made, refused):
    with pytest.raises(
        SuiteError, match="holds series, which this command does not take"
    ):
        SuiteFiles.load(made)
    assert "holds series, which this command does not take" in refused(
        "publish", made, "--server test --dry-run"
    )


def amlb_run(suite, out, framework, answers, drop=0):
    """Write predictions as AMLB v2.1.7 does, some items dropped."""
    loaded = ForecastSuite.load(suite)
    (table,) = loaded.tables
    failing = table.read_failing_windows()
    run = out / f"{framework.lower()}.hardsynth.test.local.20260101T000000"
    rows = []
    for task, windows, answer in zip(
        table.main_tasks, failing.tests, answers, strict=True
    ):
        n, horizon = windows.future.shape
        table = pd.DataFrame(
            {str(level): 0.0 for level in LEVELS}, index=range(n * horizon)
        )
        if answer.quantiles is not None:
            table[[str(level) for level in LEVELS]] = answer.quantiles.reshape(-1, 9)
        table["predictions"] = answer.mean.ravel()
        table["truth"] = windows.future.ravel()
        table["repeated_item_id"] = np.repeat(np.arange(n), horizon)
        table["repeated_abs_seasonal_error"] = np.repeat(windows.scale, horizon)
        if drop:
            table = table.iloc[: -drop * horizon]
        folder = run / "predictions" / task.name / "0"
        folder.mkdir(parents=True)
        table.to_csv(folder / "predictions.csv", index=False)
        (folder / "metadata.json").write_text(json.dumps({"framework": framework}))
        mase = np.abs(answer.mean - windows.future).mean(axis=1) / windows.scale
        rows.append((task.name, 0, framework, -mase.mean(), "neg_mase", ""))
    columns = ["task", "fold", "framework", "result", "metric", "info"]
    (run / "scores").mkdir()
    pd.DataFrame(rows, columns=columns).to_csv(scores_of(run), index=False)
    return run


def scores_of(run):
    return run / "scores" / "results.csv"


def answers_of(failing, word):
    forecaster = make_forecaster(word)
    return [
        forecaster.forecast(request_at(failing.panel, windows))
        for windows in failing.tests
    ]


def test_the_report_takes_predictions_of_amlb(made, failing, tmp_path):
    amlb_run(made, tmp_path, "Theta", answers_of(failing, "theta"))
    amlb_run(made, tmp_path, "Again", answers_of(failing, "seasonal_naive"))
    amlb_run(made, tmp_path, "Drops", answers_of(failing, "drift"), drop=3)
    built = build_series_report(made, [tmp_path])
    (task,) = built.tasks
    everywhere = task.asked("all rows").set_index("framework")
    assert everywhere.loc["Theta", "verdict"] == "better"
    # the method of F itself is no candidate, and no comparison of the family
    assert everywhere.index.tolist() == ["Theta", "Drops"]
    assert task.notes[0].startswith("Again forecasts what F does")
    assert everywhere.loc["Drops", "verdict"] == "incomplete"
    assert "predicts 57 of 60 series" in everywhere.loc["Drops", "reason"]
    assert built.commands == (f"hardsynth run Drops -u {made}",)
    # the worst windows are drawn, with what the best candidate forecast
    (windows,) = task.sections
    assert len(windows.charts) == 6
    for name in ("what came", "F", "Theta"):
        assert f">{name}</text>" in windows.charts[0].drawn
    n_hard = failing.hardness.max()
    assert windows.table["hardness"].iloc[0] == pytest.approx(n_hard)
    # MASE as AMLB has it: the mean over a task's items
    full = task.scores.query("part == 'full' and metric == 'mase'")
    mean = full.set_index("framework")["value"]
    assert mean["F"] == pytest.approx(failing.forecasts.mase.mean())


def test_quantiles_of_other_levels_are_no_result(made, failing, tmp_path):
    turned = [
        replace(answer, quantiles=answer.quantiles[..., ::-1])
        for answer in answers_of(failing, "theta")
    ]
    amlb_run(made, tmp_path, "Turned", turned)
    (task,) = build_series_report(made, [tmp_path], charts=False).tasks
    (row,) = task.asked("all rows").to_dict("records")
    assert row["verdict"] == "incomplete"
    assert "Turned forecasts a quantile at" in row["reason"]


def test_who_loses_where_f_is_replaced_is_told_as_compare_does(tmp_path):
    """In the sections that a suite of tables has, with F's twins as the control."""
    panel = read_panel(simulate_series(60, 96), SIMULATED_ROLES)
    forecaster = make_forecaster("seasonal_naive")
    failing = find_failing_windows(forecaster, panel, plan_origins(panel, test=3))
    twins = [
        roll_forecaster(twin, panel, failing.tests) for twin in forecaster.twins(3, 12)
    ]
    part = SuitePart(task="s", failing=failing, twins=twins, about={})
    write_suite(tmp_path / "hard", [part], name="hardsynth", seed=7)
    drift = answers_of(failing, "drift")
    amlb_run(tmp_path / "hard", tmp_path / "runs", "Drift", drift)
    amlb_run(tmp_path / "hard", tmp_path / "runs", "Drops", drift, drop=3)
    report = build_series_report(
        tmp_path / "hard", [tmp_path / "runs"], segments=["cutoff"]
    )
    tables = report_tables(report)
    (harm,) = tables["harm"].to_dict("records")
    answer = answer_comparison(
        failing,
        {"Drift": score_forecasts(drift, failing.tests)},
        twins,
        segments=["cutoff"],
        seed=7,
    )
    swap = answer.harm["Drift"]
    assert (harm["framework"], harm["verdict"]) == ("Drift", swap.verdict)
    assert swap.verdict != "no verdict"
    worst = swap.to_dict()["groups"]["worst fifth"]
    told = [harm["worst_fifth"], harm["worst_low"], harm["worst_high"]]
    assert told == pytest.approx(list(worst.values()))
    assert harm["bound"] == pytest.approx(swap.share(swap.bound))
    told = tables["segments"].drop(columns="task")
    expected = answer.segments.rename(columns={"model": "framework"})
    pd.testing.assert_frame_equal(told[expected.columns], expected)
    assert len(told) == 3
    assert [each.key for each in report.tasks[0].sections][:2] == ["harm", "segments"]
    assert swap.verdict in report_text(report)


def by_size(y, forecast):
    return np.abs(y - forecast.mean).max(axis=1)


@pytest.mark.parametrize("loss", ["rmsse", "wql", by_size])
def test_another_loss_is_judged_as_compare_does(made, failing, tmp_path, loss):
    """And the gate on the suite by the same."""
    drift = answers_of(failing, "drift")
    amlb_run(made, tmp_path, "Drift", drift)
    report = build_series_report(made, [tmp_path], loss=loss, charts=False)
    compared = read_window_loss(loss)
    own = failing.forecasts.with_loss(compared, failing.tests)
    said = score_forecasts(drift, failing.tests).with_loss(compared, failing.tests)
    twins = [
        roll_forecaster(twin, failing.panel, failing.tests)
        for twin in make_forecaster("seasonal_naive").twins(2, 12)
    ]
    # other losses do not follow from what the suite keeps of twins
    is_kept = loss not in ("rmsse", by_size)
    answer = answer_comparison(
        replace(failing, forecasts=own),
        {"Drift": said},
        twins if is_kept else [],
        loss=compared,
    )
    (task,) = report.tasks
    columns = ["loss", "loss_f", "difference", "low", "high", "relative"]
    told = task.contrasts.rename(columns={"framework": "model"})
    np.testing.assert_allclose(told[columns], answer.contrasts[columns], rtol=1e-9)
    assert told["verdict"].tolist() == answer.contrasts["verdict"].tolist()
    assert any("F has no twin" in note for note in task.notes) is not is_kept
    # AMLB's own stand beside it
    assert {"mase", "sql", "wql", compared.name} == set(task.scores["metric"])
    need = {"need": "not-worse", "where": "overall", "margin": 0.05}
    gate, _ = check_suite(made, **need, results=[str(tmp_path)], loss=loss)
    (check,) = gate.checks
    (overall,) = told.loc[told["where"] == "all rows", "relative"]
    assert check.change == pytest.approx(overall)
    assert "windows" in gate.text()


def test_a_loss_that_does_not_fit_is_told(made, failing, tmp_path, refused):
    (drift, other) = answers_of(failing, "drift")
    bare = [replace(answer, quantiles=None) for answer in (drift, other)]
    run = amlb_run(made, tmp_path, "Bare", bare)
    for file in run.glob("predictions/*/0/predictions.csv"):
        table = pd.read_csv(file).drop(columns=[str(level) for level in LEVELS])
        table.to_csv(file, index=False)
    report = build_series_report(made, [tmp_path], loss="crps", charts=False)
    assert "Bare forecasts no quantiles, so it has no CRPS" in report_text(report)
    words = [str(made), "-r", str(tmp_path), "-q", "--loss"]
    for command in ("report", "gate"):
        more = ["--need", "better"] if command == "gate" else []
        assert "no loss of series is called 'brier'" in refused(
            [command], words, "brier", more
        )


def test_without_results_the_suite_is_told(made):
    report = build_series_report(made)
    assert report.verdict[0].startswith("There are no results yet")
    assert set(report.tasks[0].scores["framework"]) == {"F"}
    assert report.is_complete


def test_where_f_fails_nothing_is_claimed_that_the_certificate_does_not_find(
    failing, tmp_path
):
    region = plan_measure("region", "", ">=", 0.6).found(0.52, "", low=0.4)
    verdict, reason = decide_verdict([region], WINDOW)
    certificate = Certificate("full", "forecasting", verdict, reason, (region,), WINDOW)
    told = {}
    for name, certificates in (("with", {"full": certificate}), ("without", {})):
        part = SuitePart(
            task="s", failing=failing, twins=[], about={}, certificates=certificates
        )
        suite = tmp_path / name
        write_suite(suite, [part], name="hardsynth", seed=0)
        runs = tmp_path / "runs" / name
        amlb_run(suite, runs, "Theta", answers_of(failing, "theta"))
        told[name] = report_text(build_series_report(suite, [runs]))
    said = {name: " ".join(text.split()) for name, text in told.items()}
    assert "features of the past are not shown to foresee" in said["with"]
    assert "are not shown to foresee" not in said["without"]
    (path,) = (tmp_path / "with").glob("hardsynth/*/certificate.json")
    path.write_text(path.read_text().replace("stress-test only", "rank"))
    with pytest.raises(SuiteError, match=r"certificate\.json .* was changed"):
        build_series_report(tmp_path / "with")


def test_predictions_of_other_data_are_refused(made, failing, tmp_path):
    run = amlb_run(made, tmp_path, "Theta", answers_of(failing, "drift"))
    (first, *_) = sorted(run.glob("predictions/*/0/predictions.csv"))
    table = pd.read_csv(first)
    table.assign(truth=table["truth"] + 1).to_csv(first, index=False)
    amlb_run(made, tmp_path, "Drift", answers_of(failing, "drift"))
    report = build_series_report(made, [tmp_path], charts=False)
    everywhere = report.tasks[0].asked("all rows").set_index("framework")
    assert everywhere.loc["Drift", "verdict"] != "incomplete"
    assert "of other data" in everywhere.loc["Theta", "reason"]
    # its other origin fits
    assert report.jobs["reason"].tolist() == [
        "its predictions are of other data than the suite's"
    ]


def failed(run, rows):
    rows.assign(result="", info="boom").to_csv(scores_of(run), index=False)


def left_out(run, rows):
    rows[:1].to_csv(scores_of(run), index=False)
    shutil.rmtree(run / "predictions" / rows["task"][1])


def of_another(run, rows):
    rows.assign(framework="Other").to_csv(scores_of(run), index=False)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (failed, "my_series_o0_full failed (boom), and 1 more"),
        (left_out, "my_series_o1_full not run (no result"),
        (of_another, "refused (the predictions are those of Theta"),
    ],
)
def test_jobs_without_results_are_told_as_those_of_rows(
    made, failing, tmp_path, change, told
):
    run = amlb_run(made, tmp_path, "Theta", answers_of(failing, "theta"))
    change(run, pd.read_csv(scores_of(run), dtype=str))
    report = build_series_report(made, [tmp_path], charts=False)
    assert not report.is_complete
    (row,) = report.tasks[0].asked("all rows").to_dict("records")
    assert row["verdict"] == "incomplete"
    assert told in row["reason"]
    assert len(report.jobs) == (1 if change is left_out else 2)


def test_a_score_of_other_forecasts_is_told(made, failing, tmp_path):
    run = amlb_run(made, tmp_path, "F", answers_of(failing, "theta"))
    rows = pd.read_csv(scores_of(run)).assign(result=-9, constraint="1h")
    rows.to_csv(scores_of(run), index=False)
    (task,) = build_series_report(made, [tmp_path], charts=False).tasks
    (warning,) = task.warnings
    assert warning.startswith("F (1h): on my_series_o0_full AMLB wrote mase 9 where")


def test_a_folder_in_use_is_not_overwritten(failing, made, tmp_path):
    parts = [SuitePart(task="a", failing=failing, twins=[], about={})]
    how = {"name": "hardsynth", "seed": 0}
    with pytest.raises(SuiteError, match="--force to replace it"):
        write_suite(made, parts, **how)
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(SuiteError, match="is not empty"):
        write_suite(tmp_path, parts, **how)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
