"""Predictions by file: they stand in the report as a run of AMLB does, or are refused in a line."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from amlb_ext import Suite
from amlb_ext.core.errors import ConfigError, HardsynthError, ModelError
from amlb_ext.report import build_report
from amlb_ext.report.given_predictions import read_given_predictions
from amlb_ext.runner import read_predictions
from amlb_ext.suite import SuiteFiles

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "predictions.md"
CANDIDATE = "HardsynthCandidate"
TASKS = ("toy_full", "wine_full", "titanic_full")


@pytest.fixture(scope="module")
def table(scored):
    """What AMLB wrote of the candidate, as a file of the user's."""
    suite = SuiteFiles.load(scored.suite)
    run = scored.run_dir(CANDIDATE)
    tables = []
    for task in TASKS:
        for fold in range(2):
            part = read_predictions(run, task, fold)
            if suite.coding(task).labels:
                part = part.drop(columns="predictions")
            part = part.rename(columns={"predictions": "prediction"})
            tables.append(part.assign(task=task, fold=fold, row=range(len(part))))
    return pd.concat(tables, ignore_index=True)


def read(scored, table, tmp_path, name="mine.csv"):
    path = tmp_path / name
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.astype({"truth": str}).to_parquet(path)
    return read_given_predictions(SuiteFiles.load(scored.suite), {"mine": path})[1]


def test_it_stands_beside_the_run_with_its_numbers(scored, table, tmp_path):
    table.sample(frac=1, random_state=0).to_csv(tmp_path / "mine.csv", index=False)
    files = {"mine": tmp_path / "mine.csv"}
    report = build_report(
        scored.suite, [scored.results], predictions=files, charts=False
    )
    for task in report.tasks:
        of_file = task.contrasts.query("framework == 'mine'")
        of_run = task.contrasts.query("framework == @CANDIDATE")
        assert of_file["verdict"].tolist() == of_run["verdict"].tolist()
        for column in ("loss", "difference", "low", "high", "p"):
            np.testing.assert_allclose(of_file[column], of_run[column], rtol=1e-9)
    assert {"mine", CANDIDATE} <= set(report.overall["framework"])
    assert not report.needed


def test_parquet_is_read_as_csv(scored, table, tmp_path):
    of_csv = read(scored, table, tmp_path)
    of_parquet = read(scored, table, tmp_path, "mine.parquet")
    for key, expected in of_csv.items():
        pd.testing.assert_frame_equal(of_parquet[key], expected)


def test_one_score_is_enough_for_two_classes(scored, table, tmp_path):
    whole = read(scored, table, tmp_path)
    short = table.rename(columns={"1": "score"}).drop(columns="0")
    scores = read(scored, short, tmp_path)
    key = ("mine", "titanic_full", 1)
    np.testing.assert_allclose(scores[key]["1"], whole[key]["1"])
    np.testing.assert_allclose(scores[key]["0"], whole[key]["0"])


def test_the_ten_lines_of_the_page_make_the_file(scored, tmp_path, monkeypatch):
    (block,) = re.findall(
        r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hard").symlink_to(scored.suite)
    exec(compile(block, str(PAGE), "exec"), {})
    suite = Suite.load("hard")
    contrasts = suite.table("contrasts", predictions={"mine": "boosting.csv"})
    of_toy = contrasts.query("task == 'toy' and where == 'all rows'")
    # on toy the baseline is a line
    assert of_toy["verdict"].tolist() == ["better"]
    assert set(contrasts["task"]) == {"toy", "wine", "titanic"}


def _cell(task, fold, row, column, value):
    def change(table):
        is_row = (
            (table["task"] == task) & (table["fold"] == fold) & (table["row"] == row)
        )
        table[column] = table[column].astype(object)
        table.loc[is_row, column] = value
        return table

    return change


def _but(query):
    return lambda table: table.query(f"not ({query})")


def _decided(change):
    """Name the likelier label on titanic, and change what stands beside it."""

    def changed(table):
        is_titanic = table["task"] == "titanic_full"
        likelier = table["1"].gt(table["0"]).astype(int).astype(str)
        named = table["prediction"].astype(object).mask(is_titanic, likelier)
        return change(table.assign(prediction=named))

    return changed


def _score_of_the_label(table):
    return table.assign(score=table[["0", "1"]].max(axis=1)).drop(columns=["0", "1"])


MISFITS = {
    "swapped": (
        _decided(lambda table: table.rename(columns={"0": "1", "1": "0"})),
        "fold 0 of titanic_full contradict its predict",
    ),
    "score of the label": (
        _decided(_score_of_the_label),
        "it seems to be that of the label beside it",
    ),
    "task": (
        _cell("toy_full", 0, 3, "task", "toy_fll"),
        "mine.csv has predictions of 'toy_fll', and the suite has no such AMLB task "
        "(did you mean 'toy_full'?",
    ),
    "fold": (
        _cell("toy_full", 1, 3, "fold", 2),
        "mine.csv has rows that the suite lacks, 1 row in all; the first is row 3 of fold 2 of toy",
    ),
    "no fold": (
        _but("task == 'toy_full' and fold == 1"),
        "mine.csv has no prediction of some rows, 200 rows in all; the first is row 0 of fold 1",
    ),
    "no untouched rows": (
        lambda table: table.query("task == 'toy_full'").assign(task="toy"),
        "mine.csv has predictions of toy, but none of toy_full",
    ),
    "fraction": (
        _cell("toy_full", 0, 3, "row", 3.5),
        "mine.csv has '3.5' in the column 'row', row 3 of the file",
    ),
    "beyond": (
        _cell("toy_full", 1, 3, "row", 200),
        "mine.csv has rows that the suite lacks, 1 row in all; the first is row 200 of fold 1",
    ),
    "twice": (
        _cell("toy_full", 1, 3, "row", 4),
        "mine.csv has rows twice, 1 row in all; the first is row 4 of fold 1 of toy_full",
    ),
    "missing": (
        _but("task == 'toy_full' and fold == 1 and row > 197"),
        "mine.csv has no prediction of some rows, 2 rows in all; the first is row 198 of fold 1",
    ),
    "truth": (
        _cell("titanic_full", 1, 5, "truth", "7"),
        "mine.csv, fold 1 of titanic_full: row 5 of the predictions is not row 5 of the test "
        "file: its truth is 7",
    ),
    "class": (
        lambda table: table.drop(columns="0").rename(columns={"1": "one"}),
        "mine.csv, fold 0 of titanic_full lacks the column '0'",
    ),
    "sum": (
        _cell("titanic_full", 1, 9, "0", 2.5),
        "mine.csv, row 9 of fold 1 of titanic_full, are no probabilities",
    ),
    "number": (
        _cell("toy_full", 0, 7, "prediction", "much"),
        "mine.csv, row 7 of fold 0 of toy_full, predicts no finite number",
    ),
    "key": (
        lambda table: table.drop(columns="fold"),
        "mine.csv lacks the column 'fold'",
    ),
}


@pytest.mark.parametrize("kind", MISFITS)
def test_what_does_not_fit_is_refused_in_one_line(scored, table, tmp_path, kind):
    change, message = MISFITS[kind]
    with pytest.raises(ModelError) as error:
        read(scored, change(table.copy()), tmp_path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.remedy


def test_names_are_no_ones_else(scored, table, tmp_path):
    table.to_csv(tmp_path / "mine.csv", index=False)
    for name, results in (("F", []), (CANDIDATE, [scored.results])):
        with pytest.raises(ConfigError, match="another name"):
            build_report(
                scored.suite, results, predictions={name: tmp_path / "mine.csv"}
            )


def test_a_model_without_probabilities_is_told(scored):
    from sklearn.svm import LinearSVC

    fold = next(
        fold for fold in Suite.load(scored.suite).folds() if fold.task == "wine"
    )
    with pytest.raises(HardsynthError, match="has no predict_proba"):
        fold.predictions(LinearSVC().fit(fold.X, fold.y))
