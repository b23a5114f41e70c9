"""A suite for TabArena: its rows, its splits, and the way back into the report."""

import json
import sys
import types

import numpy as np
import pandas as pd
import pytest
from imported_files import import_file
from small_suites import write_suite

from amlb_ext.core.errors import PublishError
from amlb_ext.report.given_predictions import find_predictions, read_given_predictions
from amlb_ext.suite import SuiteFiles
from amlb_ext.tabarena import export_for_tabarena

TASKS = {
    "cars": ("binary", 90, 12),
    "wines": ("multiclass", 60, 25),
    "homes": ("regression", 80, 20),
}


class _UserTask:
    """Stands for TabArena's class: it keeps what it is given."""

    def __init__(self, *, task_name, task_cache_path=None):
        self.slug = f"{task_name}-0"

    def create_task(self, **given):
        self.given = given
        return types.SimpleNamespace(metadata=self.slug)

    def save_task(self, wrapper):
        pass


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    return write_suite(tmp_path_factory.mktemp("written") / "hard", TASKS)


@pytest.fixture
def exported(suite, tmp_path):
    return export_for_tabarena(suite, tmp_path / "arena")


@pytest.fixture
def script(exported, monkeypatch):
    """The copied module of the export, with TabArena's one class in place of TabArena."""
    for name in ("tabarena", "tabarena.benchmark", "tabarena.benchmark.task"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["tabarena.benchmark.task"].UserTask = _UserTask
    return import_file(exported.out / "hardsynth_tasks.py", "exported_tasks")


def _result(task, fold, labels):
    """Return what TabArena keeps of a model that predicts row by row the same."""
    _, test = task.given["splits"][0][fold]
    if not labels:
        predicted = np.linspace(1, 2, len(test))
    elif len(labels) == 2:
        predicted = np.full(len(test), 0.25, dtype="float32")
    else:
        share = np.full((len(test), len(labels)), 1 / len(labels), dtype="float32")
        predicted = share
    return {
        "framework": "Mean_c1",
        "task_metadata": {"name": task.slug},
        "simulation_artifacts": {
            "pred_proba_dict_test": {"Mean_c1": predicted},
            "y_test_idx": np.asarray(test),
            "ordered_class_labels": list(labels),
        },
    }


def test_tables_hold_the_rows_of_every_fold_and_part(suite, script):
    tasks, _ = script.load_tasks()
    files = SuiteFiles.load(suite)
    for task, name in zip(tasks, sorted(TASKS), strict=True):
        given = task.given
        assert given["problem_type"] in ("classification", "regression")
        seen = []
        for fold, (train, test) in given["splits"][0].items():
            full = files.amlb_task(f"{name}_full")
            train_file, _ = files.pair(full.name, fold)
            written = pd.read_csv(train_file, dtype=str)
            table = given["dataset"].loc[train]
            for column in written:
                values = table[column]
                if pd.api.types.is_numeric_dtype(values):
                    expected = written[column].astype(float)
                    np.testing.assert_array_equal(values, expected)
                else:
                    assert values.dropna().tolist() == written[column].dropna().tolist()
            seen += test
        assert len(set(seen)) == len(seen)


def test_predictions_come_back_into_the_report(suite, script, exported):
    tasks, _ = script.load_tasks()
    index = json.loads((exported.out / "tasks.json").read_text())["tasks"]
    results = []
    for task, about in zip(tasks, index, strict=True):
        for fold in range(about["folds"]):
            results.append(_result(task, fold, about["labels"]))
    script.write_predictions(results)
    of_amlb, files = find_predictions([exported.out], {})
    assert of_amlb == []
    jobs, tables = read_given_predictions(SuiteFiles.load(suite), files)
    assert {"cars_full", "wines_full", "homes_full"} <= set(jobs["amlb_task"])
    table = tables["Mean_c1", "cars_full", 0]
    labels = [label for label in index[0]["labels"]]
    assert table[labels[1]].unique().tolist() == [0.25]


def test_a_second_export_keeps_results_and_another_suite_is_refused(
    suite, exported, tmp_path
):
    kept = exported.out / "hardsynth_predictions"
    kept.mkdir()
    export_for_tabarena(suite, exported.out)
    assert kept.is_dir()
    other = write_suite(tmp_path / "other", {"cars": ("binary", 70, 12)})
    with pytest.raises(PublishError, match="another suite"):
        export_for_tabarena(other, exported.out)
    with pytest.raises(PublishError, match="holds something else"):
        export_for_tabarena(suite, other)


def test_the_command_says_how_to_run_and_report(suite, tmp_path, refused, output_of):
    out = tmp_path / "arena"
    said = output_of("export", suite, "--for tabarena -o", out)
    assert "python run_tabarena.py LightGBM" in said
    assert f"hardsynth report {suite} --results {out}" in said
    assert "--base-url" in refused("export", suite)
    flags = ["--for", "tabarena", "--base-url", "https://host/folder"]
    said = refused("export", suite, flags)
    assert "--base-url has no effect with --for tabarena (leave it out)" in said
