"""Language models that write programs, beside F and the others: figures by hand."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from amlb_ext.report import build_report, report_tables
from amlb_ext.report.coders import (
    CoderRun,
    headline_table,
    submissions_section,
)

KINDS = {"Coder": "coder", "Forest": "system"}
CANDIDATE = "HardsynthCandidate"
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "report.md").read_text(encoding="utf-8")


def a_run(task="a", fold=0, cost=0.2, **changes):
    """Three valid submissions of five; the second is the best on the test rows."""
    given = {
        "framework": "Coder",
        "task": task,
        "fold": fold,
        "folder": Path("run", "llm", task, str(fold)),
        "wanted": 5,
        "reasons": ("error", "", "", "", "timeout"),
        "accuracies": (0.0, 0.9, 0.6, 0.7, 0.0),
        "held_out": (None, 0.5, 0.8, 0.8, None),
        "cost": cost,
        "spent": cost,
        "sandbox": "bwrap",
    }
    return CoderRun(**given | changes)


def test_what_held_out_rows_choose_of_the_first_submissions():
    run = a_run()
    # nothing, then the only one, then the better one by held-out rows, then the later of equals
    assert [run.chosen_at(k) for k in range(6)] == [0, 0, 0.9, 0.6, 0.7, 0.7]
    assert [run.max_at(k) for k in range(6)] == [0, 0, 0.9, 0.9, 0.9, 0.9]
    # where no accuracy is known, the latest valid one
    assert a_run(held_out=(None,) * 5).chosen_at(3) == 0.6


def test_means_over_tasks_and_their_spread_by_hand():
    lines = [
        ("a", "Coder", 0.5, 0.7, 0.2),
        ("b", "Coder", 0.7, 0.8, 0.4),
        ("c", "Coder", 0.9, 0.9, 0.9),
        ("a", "Forest", 0.8, np.nan, np.nan),
    ]
    columns = ["task", "framework", "mean", "max_on_test", "failed"]
    scores = pd.DataFrame(lines, columns=columns)
    runs = [a_run(), a_run(fold=1, cost=0.4)]
    table = headline_table(scores, runs, KINDS, 0.95).set_index("framework")
    coder = table.loc["Coder"]
    assert (coder["tasks"], coder["selected"]) == (3, pytest.approx(0.7))
    assert coder["sd"] == pytest.approx(0.2)
    # t with two degrees of freedom: .7 ± 4.303 * .2 / sqrt(3), and no accuracy is above 1
    assert coder["low"] == pytest.approx(0.7 - 4.3027 * 0.2 / np.sqrt(3), abs=1e-3)
    assert coder["high"] == 1.0
    assert coder["failed"] == pytest.approx(0.5)
    assert coder["failed_sd"] == pytest.approx(np.std([0.2, 0.4, 0.9], ddof=1))
    assert coder["cost_of_run"] == pytest.approx(0.3)
    assert np.isnan(table.loc["Forest", "cost_of_run"])
    # unknown is not nothing
    unknown = headline_table(scores, [a_run(), a_run(cost=None)], KINDS, 0.95)
    assert np.isnan(unknown["cost_of_run"]).all()


def test_each_task_counts_alike_by_number_of_submissions():
    runs = [a_run("a"), a_run("a", 1), a_run("b", accuracies=(0.0, 0.1, 0.2, 0.3, 0.0))]
    table = submissions_section(runs).table
    assert table["k"].tolist() == [1, 2, 3, 4, 5]
    assert table["chosen"].tolist() == pytest.approx([0, 0.5, 0.4, 0.5, 0.5])
    assert table["max_on_test"].tolist() == pytest.approx([0, 0.5, 0.55, 0.6, 0.6])


def add_run(binary, task, fold, **more):
    """Keep a run of the candidate as the integration does: one valid program, then an error."""
    folder = binary.run_dir(CANDIDATE) / "llm" / task / str(fold)
    folder.mkdir(parents=True)
    made = pd.read_csv(binary.predictions(CANDIDATE, task, fold), dtype=str)
    for name in ("1", "final"):
        made[["predictions"]].to_csv(folder / f"predictions_{name}.csv", index=False)
    submissions = [
        {"number": 1, "reason": "", "held_out": 0.5},
        {"number": 2, "reason": "error", "held_out": None},
    ]
    entry = {"framework": CANDIDATE, "task": task, "fold": fold, "wanted": 2}
    entry |= {"submissions": submissions, "cost": 0.5, "spent": 0.0, "sandbox": "bwrap"}
    entry |= {"selected": 1, "final": True}
    (folder / "run.json").write_text(json.dumps(entry | more))
    truth = made["truth"]
    return float((made["predictions"] == truth).mean())


def test_a_coder_on_a_suite_of_hard_tasks_stands_beside_the_others(binary):
    accuracies = [add_run(binary, "titanic_full", fold) for fold in range(2)]
    report = build_report(binary.suite, [binary.results], charts=False)
    tables = report_tables(report)
    [line] = tables["coders"].to_dict("records")
    assert (line["task"], line["framework"], line["runs"]) == (
        "titanic_full",
        CANDIDATE,
        2,
    )
    assert line["accuracy"] == line["max_on_test"] == pytest.approx(np.mean(accuracies))
    assert (line["failed"], line["cost"], line["spent"]) == (0.5, 1.0, 0.0)
    assert tables["curve"]["chosen"].tolist() == pytest.approx(
        [np.mean(accuracies)] * 2
    )
    assert tables["failures"]["reason"].tolist() == ["error"]
    for name in ("coders", "curve", "failures"):
        [columns] = re.findall(rf"^\| `{name}\.csv` \|[^|]*\|([^|]*)\|$", PAGE, re.M)
        assert list(tables[name]) == re.findall(r"`(\w+)`", columns)


def test_what_the_endpoint_broke_is_no_verdict_on_the_model(binary):
    def verdicts():
        contrasts = report_tables(
            build_report(binary.suite, [binary.results], charts=False)
        )["contrasts"]
        is_own = (contrasts["task"] == "titanic") & (
            contrasts["framework"] == CANDIDATE
        )
        return set(contrasts.loc[is_own, "verdict"])

    add_run(binary, "titanic_full", 0)
    assert "incomplete" not in verdicts()
    add_run(binary, "titanic_full", 1, is_broken=True)
    assert verdicts() == {"incomplete"}
