"""The answer on one table and in one sentence."""

import numpy as np
import pandas as pd
import pytest
from sample_reports import sample_report

from amlb_ext.core.unit import ROW
from amlb_ext.report.overall import (
    MARKS,
    SURELY_BETTER,
    answer_matrix,
    overall_table,
    verdict_sentence,
)


def task(name, **answers):
    """A task on which each framework has (change, p, verdict) overall and where F fails."""
    rows = []
    for framework, (overall, region) in answers.items():
        for where, (change, p, verdict) in (("all rows", overall), ("region", region)):
            row = {"task": name, "framework": framework, "where": where, "loss_f": 0.2}
            row |= {"relative": change, "low": change / 5 - 0.01, "high": change / 5}
            row |= {"p": p, "p_null": np.nan, "verdict": verdict}
            rows.append(row)
    (sample,) = sample_report(1).tasks
    return type(sample)(
        **{**vars(sample), "name": name, "title": name, "contrasts": pd.DataFrame(rows)}
    )


UNDECIDED = (-0.01, 0.6, "undecided")
WITHHELD = (np.nan, np.nan, "no claim")


@pytest.fixture(scope="module")
def tasks():
    sure = (-0.62, 1e-6, "better")
    alone = (-0.10, 0.02, "better")
    worse = (5.23, 1e-5, "worse")
    return [
        task("digits", a=(sure, sure), b=(UNDECIDED, WITHHELD)),
        task("titanic", a=(alone, UNDECIDED), b=(worse, worse)),
        task("cpu", a=(worse, WITHHELD), b=(UNDECIDED, alone)),
        task("wine", a=(UNDECIDED, WITHHELD), b=(UNDECIDED, UNDECIDED)),
    ]


@pytest.fixture(scope="module")
def matrix(tasks):
    ranks = sample_report(1).ranks
    return answer_matrix(tasks, overall_table(tasks, ranks))


def test_f_is_chosen_where_none_is_better(matrix):
    chosen = {row.task.name: row.choice for row in matrix.rows}
    assert chosen == {"digits": "a", "titanic": "a", "cpu": "F", "wine": "F"}


def test_marks_tell_what_counting_all_comparisons_leaves(matrix):
    digits, titanic, cpu, _ = [row.cells["a"] for row in matrix.rows]
    assert digits.overall.mark == MARKS[SURELY_BETTER]
    assert titanic.overall.mark == MARKS["better"]
    assert (cpu.overall.text(), cpu.overall.mark.sign) == ("+523 %", "✗")
    assert (cpu.region.text(), cpu.region.is_judged) == ("–", False)
    signs = [mark.sign for mark in MARKS.values()]
    assert len(set(signs)) == len(signs)  # told apart without colour


def test_the_sentence_names_the_tasks_on_which_f_is_beaten(matrix):
    assert verdict_sentence(matrix, ROW) == (
        "F is beaten on 2 of 4 tasks: digits (by a, −62 %), titanic (by a, −10 %); on titanic "
        "only if looked at alone."
    )


def test_a_single_task_is_named_and_not_counted():
    for answer, headline in (
        (UNDECIDED, "No framework is shown to beat F on wine."),
        ((-0.5, 1e-9, "better"), "F is beaten on wine (by a, −50 %)."),
        ((-0.5, np.nan, "incomplete"), "No comparison with F could be judged."),
    ):
        only = [task("wine", a=(answer, WITHHELD))]
        table = overall_table(only, sample_report(1).ranks)
        assert verdict_sentence(answer_matrix(only, table), ROW) == headline


def test_means_over_tasks_are_geometric():
    """Twice F's loss and half of it cancel; no single task decides."""
    double, half = (1.0, 0.5, "undecided"), (-0.5, 0.5, "undecided")
    perfect = (-1.0, 0.5, "undecided")
    ranks = sample_report(1).ranks
    two = [task("x", a=(double, double)), task("y", a=(half, perfect))]
    row = overall_table(two, ranks).iloc[0]
    assert row["overall_relative"] == pytest.approx(0.0, abs=1e-12)
    assert row["relative"] == pytest.approx(np.sqrt(2 / 100) - 1)  # 0 counts as 1/100
    three = [*two, task("z", a=(half, half))]
    row = overall_table(three, ranks).iloc[0]
    assert row["overall_relative"] == pytest.approx(0.5 ** (1 / 3) - 1)
    assert -1 < row["overall_low"] < row["overall_relative"] < row["overall_high"]
