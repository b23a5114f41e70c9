"""The whole way: from a suite and results to verdicts, tables, files, exit status and notebook."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import words_of
from sklearn import metrics as sk

from amlb_ext import Suite
from amlb_ext.amlb.definition import Job
from amlb_ext.cli import main
from amlb_ext.core.errors import ConfigError, RunError
from amlb_ext.report import (
    build_report,
    report_summary,
    report_tables,
    report_text,
    write_report,
)
from amlb_ext.report.tables import TABLES
from amlb_ext.runner import read_predictions
from amlb_ext.runner.run_folder import write_asked
from amlb_ext.stats.claims import CONCENTRATIONS
from amlb_ext.suite import SuiteFiles as Files
from amlb_ext.suite import verify_suite
from amlb_ext.units.region import place_of_failure

BASELINE, NULL, CANDIDATE = "HardsynthBaseline", "HardsynthNull", "HardsynthCandidate"

VERDICTS = {"better", "worse", "undecided", "incomplete", "no claim"}
#: Where each contrast is taken; the third is asked where one of the others found a difference.
QUESTIONS = ["all rows", "region"]
GAIN = "region minus elsewhere"


@pytest.fixture(scope="module")
def built(scored):
    return build_report(scored.suite, [scored.results])


@pytest.fixture(scope="module")
def found(built):
    return report_tables(built)


def files(root):
    """Every file below a folder with its content and time."""
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_the_answer(built):
    """On toy the baseline is a line and the candidate trees: these are far better."""
    report = built
    [headline] = report.verdict
    assert headline.startswith("F is beaten on ")
    assert f"toy (by {CANDIDATE}, −" in headline
    # the terminal has the page's first table
    said = report_summary(report, Path("report.html"))
    assert re.search(r"^toy +✓✓ −\d+ %$", said, re.M)
    assert report.caveats[0].startswith("Decide on all rows.")
    assert [task.name for task in report.tasks] == ["titanic", "toy", "wine"]
    assert report.warnings == ()
    assert report.commands == ()
    toy = report.tasks[1].contrasts
    everywhere = toy[toy["where"] == "all rows"].set_index("framework")
    assert everywhere.loc[CANDIDATE, "verdict"] == "better"
    region = toy[toy["where"] == "region"].set_index("framework")
    # described: 160 rows are too few for a verdict there
    assert region.loc[CANDIDATE, "verdict"] == "no claim"
    assert region.loc[CANDIDATE, "high"] < 0
    assert region.loc[CANDIDATE, "relative"] < -0.5
    assert abs(region.loc[BASELINE, "difference"]) < 1e-9
    assert any(
        "HardsynthBaseline, which is F itself, is called neither better nor worse"
        in sentence
        for sentence in report.caveats
    )


def test_tables_hold_a_row_for_each_thing(found):
    """Their columns are held to the page on reports in test_notebook.py."""
    assert set(found) == {*TABLES, "harm", "wins", "left_to_gain"}
    contrasts = found["contrasts"]
    gains = contrasts[contrasts["where"] == GAIN]
    assert set(gains["verdict"]) <= {"undecided", "opposite", *CONCENTRATIONS}
    contrasts = contrasts.drop(gains.index)
    assert set(contrasts["verdict"]) <= VERDICTS
    # asked of those alone for whom a difference is shown
    shown = contrasts[contrasts["verdict"].isin(["better", "worse"])]
    assert set(gains["framework"]) <= set(shown["framework"])
    assert set(found["pairs"]["verdict"]) <= VERDICTS
    assert not contrasts.duplicated(["task", "framework", "where"]).any()
    assert len(contrasts) == 3 * 3 * 2  # tasks, frameworks, where
    assert len(found["pairs"]) == 3 * 3
    assert set(contrasts["folds"]) == {"2/2"}
    assert not found["scores"].duplicated(["task", "framework", "part", "metric"]).any()
    overall = found["overall"]
    counted = overall[["better", "worse", "undecided", "withheld"]].sum(axis=1)
    assert (counted == overall["tasks"]).all()
    assert (overall["better_family"] <= overall["better"]).all()
    assert (overall["overall_better_family"] <= overall["overall_better"]).all()
    assert overall["framework"].iloc[0] == CANDIDATE  # controls stand last
    assert len(found["jobs"]) == 0


def test_intervals_are_of_real_rows_chosen_without_looking(found):
    """The honesty rule: rows that F's errors chose, or made, get scores and no interval."""
    assert set(found["contrasts"]["where"]) <= {*QUESTIONS, GAIN}
    scores = found["scores"]
    chosen = ~scores["part"].isin(["full", "region"])
    assert scores.loc[chosen, ["low", "high"]].isna().all(axis=None)
    means = scores["metric"].isin(["brier", "logloss", "acc", "mse", "rmse", "mae"])
    told = scores[~chosen & means].dropna(subset=["low"])
    assert len(told) > 50
    assert (
        (told["low"] <= told["value"] + 1e-12) & (told["value"] <= told["high"] + 1e-12)
    ).all()
    assert scores.loc[~means, "low"].isna().all()  # no interval for AUC, F1, R2
    made = {"bad", "ga", "synthetic", "evaluation"}
    assert made <= set(found["scores"]["part"])
    assert made.isdisjoint(found["contrasts"].columns)
    assert made.isdisjoint(found["overall"].columns)


def test_where_a_change_comes_from_adds_up(found):
    """What comes from where F fails and from elsewhere is the change on all rows."""
    known = found["contrasts"].dropna(subset=["from_region"])
    assert set(known["where"]) == {"all rows"}
    assert CANDIDATE in set(known["framework"])
    parts = known["from_region"] + known["from_elsewhere"]
    np.testing.assert_allclose(parts, known["relative"], rtol=1e-9, atol=1e-12)


def test_a_score_and_the_contrast_tell_one_loss(found):
    """The Brier score on the region is the loss that the contrast subtracts F's from."""
    brier = found["scores"].query("part == 'region' and metric == 'brier'")
    told = brier.set_index(["task", "framework"])["value"]
    weighted = found["contrasts"].query("where == 'region' and task == 'titanic'")
    for row in weighted.to_dict("records"):
        assert row["loss"] == pytest.approx(told["titanic", row["framework"]], rel=1e-9)
    assert weighted["loss_f"].iloc[0] == pytest.approx(told["titanic", "F"], rel=1e-9)


def predictions(scored, task, framework):
    suite = Files.load(scored.suite)
    folds = range(len(suite.amlb_task(task).folds))
    rows = [read_predictions(scored.run_dir(framework), task, k) for k in folds]
    about = [suite.provenance(task, k).assign(fold=k) for k in folds]
    return pd.concat(rows, ignore_index=True), pd.concat(about, ignore_index=True)


def score(found, task, part, metric, framework=CANDIDATE):
    table = found["scores"].query(
        "task == @task and part == @part and metric == @metric and framework == @framework"
    )
    (value,) = table["value"]
    return value


@pytest.mark.parametrize("part", ["full", "region", "bad"])
def test_scores_of_classes_are_scikit_learns(scored, found, part):
    table, about = predictions(scored, "titanic_full", CANDIDATE)
    keep = about["origin"] == "bad" if part == "bad" else about["weight"] > 0
    place = place_of_failure(about["weight"].to_numpy(), about["fold"].to_numpy())
    w = place[keep] if part == "region" else None
    y, p = table["truth"][keep].astype(int), table["1"][keep]
    expected = {
        "auc": sk.roc_auc_score(y, p, sample_weight=w),
        "logloss": sk.log_loss(y, p, sample_weight=w),
        "acc": sk.accuracy_score(
            y, table["predictions"][keep].astype(int), sample_weight=w
        ),
        "brier": 2 * sk.brier_score_loss(y, p, sample_weight=w),  # over both classes
    }
    for metric, value in expected.items():
        assert score(found, "titanic", part, metric) == pytest.approx(
            value, rel=1e-9
        ), metric


def test_the_score_of_f_is_the_baselines(found):
    wide = found["scores"].pivot_table(
        index=["task", "part", "metric"],
        columns="framework",
        values="value",
        dropna=False,
    )
    known = wide.dropna(subset=["F", BASELINE])
    assert len(known) > 50
    np.testing.assert_allclose(known["F"], known[BASELINE], rtol=1e-6, atol=1e-9)


@pytest.mark.exhaustive  # as tests/validity/test_certificate_whole.py, with another work
def test_workers_change_nothing(scored, built, found):
    again = build_report(scored.suite, [scored.results], workers=2, charts=False)
    for name, table in report_tables(again).items():
        pd.testing.assert_frame_equal(table, found[name])
    assert again.verdict == built.verdict


def test_without_results_the_suite_is_told(small):
    report = build_report(small.suite, charts=False)
    assert report.verdict[0].startswith("There are no results yet")
    assert report.warnings == report.commands == ()
    (toy,) = report.tasks
    assert toy.certificate is not None
    assert set(toy.scores["framework"]) == {"F"}
    assert len(toy.slices)
    made = report_tables(report)
    assert len(made["contrasts"]) == len(made["jobs"]) == len(made["overall"]) == 0
    # nobody is there to replace F
    assert "harm" not in made
    assert "There are no results yet" in report_text(report)


def test_results_of_other_tasks_alone(small):
    """What was run is only on rows that F's errors chose: nothing is compared, all is said."""
    for run in small.results.iterdir():
        path = run / "scores" / "results.csv"
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        table[table["task"] == "toy_ga"].to_csv(path, index=False)
    built = build_report(small.suite, [small.results], charts=False)
    report = built
    assert report.verdict[0] == "No comparison with F could be judged."
    # The command that supplies what is needed, for the candidate alone, wherever one looks.
    (command,) = report.needed
    assert command == f"hardsynth score {small.suite} -r {small.results}"
    assert "that a verdict needs have not been run" in report.warnings[-1]
    for text in (report_text(report), report_summary(report, small.suite / "x")):
        assert command in text
    page = write_report(built, small.suite.parent / "page")
    assert command in page.read_text()
    words = ["report", str(small.suite), "--results", str(small.results)]
    assert main([*words, "--text", "-q"]) == 1
    assert set(report.tasks[0].scores["framework"]) == {"F", BASELINE, NULL, CANDIDATE}


@pytest.mark.parametrize("level", [0, 95])
def test_levels_outside_0_and_1_are_refused(scored, level):
    with pytest.raises(ConfigError, match=r"between 0 and 1"):
        build_report(scored.suite, [scored.results], level=level)


@pytest.fixture
def broken(copied):
    """Predictions in another order, predictions that are gone, and a job that was killed."""
    copied.edit(CANDIDATE, "wine_full", 1, lambda table: table[::-1])
    copied.predictions(CANDIDATE, "titanic_full", 0).unlink()
    run = copied.run_dir(NULL)
    path = run / "scores" / "results.csv"
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    killed = (rows["task"] == "toy_full") & (rows["fold"] == "1")
    rows[~killed].to_csv(path, index=False)
    jobs = [
        Job(task, int(fold))
        for task, fold in zip(rows["task"], rows["fold"], strict=True)
    ]
    asked = {"framework": NULL, "benchmark": "hardsynth", "constraint": "score"}
    write_asked(run, asked, jobs)
    (run / "run.log").write_text(
        f"Starting job local.hardsynth.score.toy_full.1.{NULL}.\n"
    )
    return copied


def test_broken_results_are_told_and_withheld(broken, found, tmp_path):
    before = files(broken.suite)
    broken_report = build_report(broken.suite, [broken.results], charts=False)
    path = write_report(broken_report, tmp_path / "page")
    said = " ".join(report_summary(broken_report, path).split())
    assert files(broken.suite) == before
    page = " ".join(path.read_text().split())
    console = " ".join(report_text(broken_report).split())
    folder = tmp_path / "page" / "report"
    written = {path.stem for path in folder.glob("*.csv")}
    assert written == {*TABLES, "harm"}

    jobs = pd.read_csv(folder / "jobs.csv").set_index(["framework", "amlb_task"])
    expected = {
        (CANDIDATE, "wine_full"): (1, "refused", "of the predictions is not row"),
        (CANDIDATE, "titanic_full"): (
            0,
            "missing",
            "its predictions file is missing",
        ),
        (NULL, "toy_full"): (1, "missing", "started but left no result"),
    }
    bad = jobs[jobs["status"] != "not run"]
    assert set(bad.index) == set(expected)
    for key, (fold, status, reason) in expected.items():
        assert (bad.loc[key, "fold"], bad.loc[key, "status"]) == (fold, status)
        assert reason in bad.loc[key, "reason"]
        told = bad.loc[key, "reason"].split(" (")[0].replace("'", "&#39;")
        for text in (*key, f"fold {fold}", status, told):
            assert text in page
    assert "refused" in said or "were not used" in said
    assert "To run the failed, missing and refused jobs again:" in said
    for told in (
        f"{CANDIDATE}, refused: row",
        "wine_full (fold 1)",
        "titanic_full (fold 0)",
        f"{NULL}, missing: started but left no result",
        "toy_full (fold 1)",
        "incomplete",
    ):
        assert told in console

    contrasts = pd.read_csv(folder / "contrasts.csv")
    gone = {("wine", CANDIDATE), ("titanic", CANDIDATE), ("toy", NULL)}
    pairs = zip(contrasts["task"], contrasts["framework"], strict=True)
    at = np.array([pair in gone for pair in pairs])
    assert (contrasts["verdict"][at] == "incomplete").all()
    assert (contrasts["folds"][at] == "1/2").all()
    assert contrasts["reason"][at].str.contains("fold [01] (?:refused|missing)").all()
    # all others keep theirs
    index = ["task", "framework", "where"]
    kept = contrasts[~at].set_index(index).sort_index()
    kept = kept[kept.index.get_level_values("where").isin(QUESTIONS)]
    whole = found["contrasts"].set_index(index).sort_index().loc[kept.index]
    assert (kept["verdict"] == whole["verdict"]).all()
    np.testing.assert_allclose(
        kept["difference"], whole["difference"], rtol=1e-9, atol=1e-15
    )
    withheld = pd.read_csv(folder / "pairs.csv").set_index(
        ["task", "framework", "other"]
    )
    assert withheld.loc[("toy", BASELINE, NULL), "verdict"] == "incomplete"
    assert withheld.loc[("toy", BASELINE, CANDIDATE), "verdict"] == "worse"

    overall = pd.read_csv(folder / "overall.csv").set_index("framework")
    # two tasks are incomplete, and of toy the change where F fails is described alone
    assert overall.loc[CANDIDATE, "withheld"] == 3


def test_json_is_json(small, output_of):
    before = files(small.suite)
    words = words_of("report", small.suite, "--results", small.results, "-j 1 --json")
    out = output_of(words)
    read = json.loads(out, parse_constant=pytest.fail)
    assert read["tasks"][0]["name"] == "toy"
    rows = read["tasks"][0]["contrasts"]
    assert {row["verdict"] for row in rows if row["where"] != GAIN} <= VERDICTS
    assert read["tasks"][0]["certificate"]["verdict"] in (
        "rank",
        "describe",
        "stress-test only",
    )
    assert any(
        "left out" in note for note in read["notes"]
    )  # the tasks that were cut away
    assert files(small.suite) == before


def test_a_report_in_the_suite_leaves_it_whole(copied, built):
    before = files(copied.suite)
    write_report(built, Files.load(copied.suite).layout.own)
    after = files(copied.suite)
    assert {path: after[path] for path in before} == before
    new = {
        path.relative_to(copied.suite).as_posix() for path in set(after) - set(before)
    }
    assert all(name.startswith("hardsynth/report") for name in new)
    assert {"hardsynth/report.html", "hardsynth/report/scores.csv"} <= new
    assert verify_suite(copied.suite) == []
    for path in (copied.suite / "hardsynth" / "report").glob("*.json"):
        json.loads(path.read_text(), parse_constant=pytest.fail)


@pytest.fixture
def some(copied):
    """One framework, on one of the three tasks only."""
    for name in (BASELINE, NULL):
        shutil.rmtree(copied.run_dir(name))
    path = copied.run_dir(CANDIDATE) / "scores" / "results.csv"
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    rows[rows["task"] == "toy_full"].to_csv(path, index=False)
    return copied


def test_a_framework_may_be_run_on_some_tasks_only(some):
    report = build_report(some.suite, [some.results], charts=False)
    contrasts = report_tables(report)["contrasts"]
    assert set(contrasts["where"]) == {*QUESTIONS, GAIN}
    asked = contrasts[contrasts["where"].isin(QUESTIONS)]
    verdicts = asked.groupby("task")["verdict"].agg(set).to_dict()
    # a task stands for itself, and what is said of all of them needs all
    others = {"titanic": {"incomplete"}, "wine": {"incomplete"}}
    assert verdicts == {"toy": {"better", "no claim"}, **others}
    assert set(report.jobs["status"]) == {"not run"}
    assert np.isnan(report.overall["overall_relative"]).all()
    assert report.needed == (f"hardsynth score {some.suite} -r {some.results}",)
    assert re.search(r"^titanic +… incomplete$", report_text(report), re.M)


def test_the_notebook(small):
    suite = Suite.load(small.suite)
    tasks = suite.tasks.set_index("task")
    assert tasks.index.tolist() == ["toy"]
    assert tasks.loc["toy", ["kind", "classes", "folds", "full"]].tolist() == [
        "regression",
        0,
        2,
        400,
    ]
    certificate = suite.certificate
    assert not certificate.duplicated(["task", "measure"]).any()
    assert set(certificate["verdict"]) == {suite.certificates["toy"].verdict}
    for results in (small.results, str(small.results), [small.results]):
        contrasts = suite.contrasts(results)
        assert contrasts["where"].isin(QUESTIONS).sum() == 3 * 2
    pairs, scores = suite.pairs(small.results), suite.scores(small.results)
    assert {"other", "p_holm"} <= set(pairs.columns)
    assert {"part", "metric"} <= set(scores.columns)
    assert len(suite.jobs(small.results)) == 0
    assert suite.overall(small.results)["framework"].iloc[0] == CANDIDATE
    # what a reader does to a table is not seen by the next
    contrasts["verdict"] = "mine"
    assert "mine" not in set(suite.contrasts(small.results)["verdict"])
    with pytest.raises(RunError):
        suite.contrasts(small.suite)
    with pytest.raises(ConfigError, match="has no table 'nothing'"):
        suite.table("nothing", small.results)


def another_model(table):
    """What a model predicts that took every row for another one."""
    labels = [name for name in table.columns if name not in ("predictions", "truth")]
    order = np.random.default_rng(0).permutation(len(table))
    for name in [*labels, "predictions"]:
        table[name] = table[name].to_numpy()[order]
    return table


def test_another_f_is_an_alarm_on_console_and_page(copied, tmp_path):
    for fold in (0, 1):
        copied.edit(BASELINE, "wine_full", fold, another_model)
    copied.edit(BASELINE, "toy_full", 1, another_model)
    built = build_report(copied.suite, [copied.results], charts=False)
    report = built
    alarms = {task.name: task.alarm for task in report.tasks if task.alarm}
    assert set(alarms) == {"wine", "toy"}
    assert "wine_full fold 0: " in alarms["wine"]
    assert "wine_full fold 1: " in alarms["wine"]
    assert "toy_full fold 1: " in alarms["toy"]
    assert "toy_full fold 0" not in alarms["toy"]
    assert "in the target's unit" in alarms["toy"]
    assert "in a probability" in alarms["wine"]
    assert report.verdict[0].startswith("ALARM: on 2 of 3 tasks (toy, wine)")
    for task in report.tasks:
        verdicts = set(task.contrasts["verdict"])
        assert (verdicts == {"no claim"}) == bool(task.alarm)
    text = " ".join(report_text(report).split())
    assert "ALARM: on 2 of 3" in text
    assert "hardsynth score DIR fits F here" in text
    path = write_report(built, tmp_path)
    said = " ".join(report_summary(report, path).split())
    assert said.startswith("ALARM: on 2 of 3 tasks")
    assert "ignore its contrasts" in said
    page = " ".join(path.read_text().split())
    assert "ALARM: on 2 of 3 tasks" in page
    assert "<strong>Alarm.</strong>" in page
