"""Difficulty data: true to the suite, and described as it is."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hostile_files import reseal

from amlb_ext.core.files import sha256_file
from amlb_ext.difficulty import write_difficulty
from amlb_ext.difficulty.files import ROW_COLUMNS, TASK_COLUMNS
from amlb_ext.suite import SuiteFiles

TASKS = ["titanic", "toy", "wine"]


@pytest.fixture(scope="module")
def written(scored, tmp_path_factory):
    out = tmp_path_factory.mktemp("difficulty") / "hard.parquet"
    return SimpleNamespace(
        suite=SuiteFiles.load(scored.suite), files=write_difficulty(scored.suite, out)
    )


def test_every_test_row_stands_with_what_the_suite_knows(written):
    table = pd.read_parquet(written.files.rows)
    assert table.columns.tolist() == [column.name for column in ROW_COLUMNS]
    for task in TASKS:
        full = written.suite.amlb_task(f"{task}_full")
        for index, fold in enumerate(full.folds):
            rows = table[(table["task"] == task) & (table["fold"] == fold)]
            about = written.suite.provenance(f"{task}_full", index)
            assert rows["source_row"].tolist() == about["source_row"].tolist()
            for column in ("hardness", "loss", "reducible"):
                np.testing.assert_array_equal(rows[column], about[column])
            np.testing.assert_array_equal(rows["p_fails"], about["weight"])
            main_rows = written.suite.provenance(task, index)
            n_real = int((main_rows["source_row"] >= 0).sum())
            assert rows["in_main"].sum() == n_real
    n_bad = {
        task: sum(written.suite.amlb_task(f"{task}_bad").test_rows) for task in TASKS
    }
    assert table.groupby("task")["is_bad"].sum().to_dict() == n_bad


def test_tasks_have_the_certificates_interval(written):
    tasks = pd.read_csv(written.files.tasks).set_index("task")
    assert [tasks.index.name, *tasks.columns] == [
        column.name for column in TASK_COLUMNS
    ]
    for task in TASKS:
        path = written.suite.layout.task_certificate(task)
        measures = json.loads(path.read_text())["certificate"]["measures"]
        (measure,) = [m for m in measures if m["name"] == "solvability"]
        row = tasks.loc[task]
        names = ["left_to_gain", "left_to_gain_low", "left_to_gain_high"]
        expected = [measure["value"], measure["low"], measure["high"]]
        assert row[names].tolist() == pytest.approx(expected)
        assert row["finding"] == measure["finding"]
        assert row["baseline"] == "ridge"
        assert row["source"] == f"bundled/{task}"


def test_schema_and_description_say_what_is_there(written):
    schema = pq.read_schema(written.files.rows)
    assert b"P(F fails" in schema.field("p_fails").metadata[b"description"]
    about = json.loads(schema.metadata[b"hardsynth"])
    assert [task["task"] for task in about["tasks"]] == TASKS
    description = json.loads(written.files.croissant.read_text())
    files = {entry["@id"]: entry for entry in description["distribution"]}
    for key, path in (("rows", written.files.rows), ("tasks", written.files.tasks)):
        assert files[f"{key}-file"]["contentUrl"] == path.name
        assert files[f"{key}-file"]["sha256"] == sha256_file(path)
    rows, tasks = description["recordSet"]
    assert [field["name"] for field in rows["field"]] == schema.names
    columns = pd.read_csv(written.files.tasks).columns
    assert [field["name"] for field in tasks["field"]] == columns.tolist()
    types = {field["name"]: field["dataType"] for field in rows["field"]}
    assert types["is_bad"] == "sc:Boolean"
    assert str(schema.field("is_bad").type) == "bool"


def test_a_part_that_a_suite_lacks_is_no_error(scored, tmp_path):
    """A suite without augmented rows and certificates; older ones lack columns as well."""
    copy = shutil.copytree(scored.suite, tmp_path / "hard")

    def leave_out(manifest):
        del manifest["amlb_tasks"]["toy_ga"]
        for fold in manifest["tasks"]["toy"]["folds"].values():
            del fold["parts"]["ga"]

    reseal(copy, leave_out)
    (copy / "hardsynth" / "toy" / "certificate.json").unlink()
    files = write_difficulty(copy, tmp_path / "d.parquet")
    table = pd.read_parquet(files.rows).query("task == 'toy'")
    assert (table["made_from"] == 0).all()
    toy = files.table.set_index("task").loc["toy"]
    assert np.isnan(toy["left_to_gain"])
    assert toy["verdict"] == ""
