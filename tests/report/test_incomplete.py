"""Whoever leaves out a fold, a row or a task gets no verdict, and is told what completes it."""

import json

import pandas as pd
import pytest
from exhaustive import first_of

from amlb_ext.cli import main
from amlb_ext.report import (
    build_report,
    report_as_json,
    report_tables,
    report_text,
)

CANDIDATE = "HardsynthCandidate"
TASK = "toy_full"


def scores_file(small):
    return small.run_dir(CANDIDATE) / "scores" / "results.csv"


def change_scores(small, change):
    path = scores_file(small)
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    change(rows).to_csv(path, index=False)


def delete_row(small):
    """As if the fold had never been asked for: no row, no record of the request, no log."""
    is_gone = {"task": TASK, "fold": "1"}
    change_scores(
        small, lambda rows: rows[~(rows[list(is_gone)] == is_gone).all(axis=1)]
    )
    for name in ("asked.json", "run.log"):
        (small.run_dir(CANDIDATE) / name).unlink(missing_ok=True)


def lose_score(small):
    def change(rows):
        is_lost = (rows["task"] == TASK) & (rows["fold"] == "1")
        return rows.assign(result=rows["result"].mask(is_lost, ""))

    change_scores(small, change)


def delete_predictions(small):
    small.predictions(CANDIDATE, TASK, 1).unlink()


def predict_some_rows(small):
    small.edit(CANDIDATE, TASK, 1, lambda table: table.iloc[:-5])


def predict_nothing_in_a_row(small):
    def change(table):
        table.loc[0, table.columns[0]] = "nan"
        return table.assign(predictions=table["predictions"].mask(table.index == 0, ""))

    small.edit(CANDIDATE, TASK, 1, change)


LEFT_OUT = (
    delete_row,
    lose_score,
    delete_predictions,
    predict_some_rows,
    predict_nothing_in_a_row,
)


def gate(small, *words):
    words = ["--results", str(small.results), "-j", "1", *words]
    return main(["gate", str(small.suite), "--candidate", CANDIDATE, *words])


def test_a_suite_is_gated_by_its_report(scored, refused, output_of):
    words = ["gate", str(scored.suite), "--results", str(scored.results), "-j", "1"]
    (check,) = json.loads(output_of(words, "--task toy --json"))["checks"]
    assert (check["candidate"], check["data"]) == ("HardsynthCandidate", "toy")
    assert "the suite has its own F, ridge" in refused(words, "--baseline forest")


@pytest.mark.parametrize("leave_out", first_of(LEFT_OUT, 3))
def test_a_fold_that_is_left_out_takes_the_verdict_back(small, leave_out, capsys):
    leave_out(small)
    junit = small.suite.parent / "gate.xml"
    assert gate(small, "--junit", str(junit)) == 3
    said = capsys.readouterr().out
    assert "no claim" in said
    assert "fold 1" in said
    assert "hardsynth score" in said
    assert 'errors="1"' in junit.read_text()
    assert "RMSE" not in said

    report = build_report(small.suite, [small.results], charts=False)
    text = report_text(report)
    assert "F is beaten" not in text
    assert "incomplete" in text
    assert "hardsynth score" in text
    told = report_as_json(report)
    for row in told["tasks"][0]["contrasts"]:
        if row["framework"] == CANDIDATE and row["where"] in ("all rows", "region"):
            assert row["verdict"] == "incomplete"
            assert "fold 1" in row["reason"]
    for row in told["tasks"][0]["pairs"]:
        if CANDIDATE in (row["framework"], row["other"]):
            assert row["verdict"] == "incomplete"


def test_incomplete_results_have_their_own_status(small, output_of):
    delete_row(small)
    assert gate(small, "--need", "not-worse", "--where", "failures") == 3
    words = ["report", str(small.suite), "--results", str(small.results), "-j", "1"]
    assert "incomplete" in output_of(words, "--text", status=1)


def test_no_mean_over_tasks_where_one_is_left_out(copied):
    """A task stands for itself; what is said of all of them needs all."""
    change_scores(copied, lambda rows: rows[~rows["task"].str.startswith("wine")])
    (copied.run_dir(CANDIDATE) / "asked.json").unlink(missing_ok=True)
    report = build_report(copied.suite, [copied.results], charts=False)
    contrasts = report_tables(report)["contrasts"]
    asked = contrasts[contrasts["where"] == "all rows"]
    verdicts = asked[asked["framework"] == CANDIDATE].set_index("task")["verdict"]
    assert verdicts["wine"] == "incomplete"
    assert verdicts["toy"] == "better"
    overall = report.overall.set_index("framework").loc[CANDIDATE]
    assert pd.isna(overall["overall_relative"])
    assert overall["overall_withheld"] == 1
    assert report.needed
    assert gate(copied) != 0
    assert gate(copied, "--task", "toy") == 0
