"""The hard twin of an existing benchmark: same names, limits and metrics, hard rows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from amlb_runs import run_benchmark
from commands import BRIEF, words_of
from folders import contents
from loopback_openml import Dataset, LoopbackOpenML, splits

from amlb_ext.amlb.definition import read_definition
from amlb_ext.cli import main
from amlb_ext.core.assets import asset_path
from amlb_ext.core.config import SourceConfig
from amlb_ext.runner.install import install
from amlb_ext.runner.jobs import read_jobs
from amlb_ext.suite import SuiteFiles, verify_suite

FAST = words_of(BRIEF, "--baseline logistic --kappa .005")
pytestmark = pytest.mark.usefixtures("light_models")

SHIPPED = ["test", "validation", "small", "medium", "large", "timeseries"]
MINE = """\
- name: __defaults__
  cores: 1
  max_runtime_seconds: 45
  folds: 3
- name: three.folds
  metric: [auc, logloss]
  max_runtime_seconds: 30
  ec2_instance_type: m5.large
  max_mem_size_mb:
  dataset:
    train: ['{user}/data/t_train_0.csv', '{user}/data/t_train_1.csv', '{user}/data/t_train_2.csv']
    test: ['{user}/data/t_test_0.csv', '{user}/data/t_test_1.csv', '{user}/data/t_test_2.csv']
    target: y
    type: binary
- name: plain
  folds: 2
  dataset:
    train: ['{user}/data/t_train_1.csv', '{user}/data/t_train_2.csv']
    test: ['{user}/data/t_test_1.csv', '{user}/data/t_test_2.csv']
    target: y
    type: binary
- {name: asleep, enabled: false, openml_task_id: 1}
- name: series
  dataset: {path: x.csv, type: timeseries, target: y}
"""


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    """A user directory with a benchmark of its own; fold 0 of its first task has no failures."""
    root = tmp_path_factory.mktemp("user")
    (root / "data").mkdir()
    (root / "benchmarks").mkdir()
    (root / "benchmarks" / "mine.yaml").write_text(MINE)
    (root / "config.yaml").write_text(
        "benchmarks:\n  definition_dir: ['{user}/benchmarks', '{root}/resources/benchmarks']\n"
    )
    rng = np.random.default_rng(0)
    for fold in range(3):
        for part, n in (("train", 200), ("test", 60)):
            a = rng.uniform(-1, 1, n)
            clear = fold == 0 and part == "test"
            a = np.sign(a) * (0.8 + 0.2 * np.abs(a)) if clear else a
            noise = 0 if clear else 0.4
            y = np.where(a + noise * rng.normal(size=n) > 0, "yes", "no")
            frame = pd.DataFrame({"a": a, "b": rng.random(n), "y": y})
            frame.to_csv(root / "data" / f"t_{part}_{fold}.csv", index=False)
    return root


def harden(user, out, *more, benchmark="mine", composition="weighted"):
    words = words_of(
        "harden", benchmark, "-o", out, "--userdir", user, "--alpha .6", FAST
    )
    at = words.index("--composition")
    words[at : at + 2] = ["--composition", composition] if composition else []
    return main([*words, *more])


@pytest.fixture(scope="module")
def made(user, tmp_path_factory):
    out = tmp_path_factory.mktemp("made") / "hard"
    assert harden(user, out, "-q") == 1  # the time series is left out
    return out


def twin(root):
    entries = yaml.safe_load((root / "benchmarks" / "mine_hard.yaml").read_text())
    return {entry["name"]: entry for entry in entries}


def test_names_limits_and_metrics_are_the_originals(made):
    entries = twin(made)
    assert list(entries) == ["three.folds", "plain"]
    first, second = entries.values()
    assert (
        first["id"] == "mine_hard/three.folds"
    )  # in AMLB's results the name alone says nothing
    assert first["metric"] == ["auc", "logloss"]
    assert (first["cores"], first["max_runtime_seconds"]) == (1, 30)
    assert first["ec2_instance_type"] == "m5.large"
    assert "max_mem_size_mb" not in first
    assert (second["cores"], second["max_runtime_seconds"], second["folds"]) == (
        1,
        45,
        2,
    )
    assert "metric" not in second
    assert second["dataset"]["test"][0] == "{user}/data/plain/plain_test_0.csv"
    suite = SuiteFiles.load(made)
    assert suite.manifest.name == "hardsynth_mine"
    assert suite.manifest.command == "hardsynth harden mine -o DIR --config FILE"
    assert suite.definitions["mine_hard"] == {"three_folds", "plain"}
    assert suite.manifest.failures[0]["task"] == "series"
    assert verify_suite(made) == []


def test_without_main_tasks_the_twin_has_rows_drawn_by_region(user, tmp_path):
    out = tmp_path / "hard"
    assert harden(user, out, "-q", benchmark="mine#plain", composition="") == 0
    entry = yaml.safe_load((out / "benchmarks" / "mine_hard.yaml").read_text())[0]
    assert (entry["name"], entry["folds"]) == ("plain", 2)
    assert entry["id"] == "mine_hard/plain"
    assert entry["description"].startswith("rows drawn by how likely F fails on them")
    assert (
        entry["dataset"]["test"][1]
        == "{user}/data/plain_region/plain_region_test_1.csv"
    )
    suite = SuiteFiles.load(out)
    assert suite.definitions["mine_hard"] == {"plain_region"}
    assert suite.definitions["hardsynth_mine"] == {"plain_full"}
    assert verify_suite(out) == []


def test_folds_without_failures_are_said(made, user, tmp_path, capsys):
    first = twin(made)["three.folds"]
    assert first["folds"] == 2
    assert "fold 0 is 1, 1 is 2 of the original" in first["description"]
    assert SuiteFiles.load(made).amlb_tasks["three_folds"].folds == [1, 2]
    assert first["dataset"]["test"] == [
        f"{{user}}/data/three_folds/three_folds_test_{fold}.csv" for fold in (1, 2)
    ]
    copy = shutil.copytree(made, tmp_path / "copy")
    before = contents(copy)
    assert (
        harden(user, copy) == 1
    )  # the same command again: the same bytes, and all notes
    said = capsys.readouterr().out
    assert contents(copy) == before
    assert "mine_hard: three.folds: folds without failures are left out" in said
    assert "left out: series: series: time series are not yet supported" in said
    # both definitions: the verdict rests on the untouched test folds, which the second one has
    assert f"hardsynth run FRAMEWORK -u {copy} -b mine_hard+hardsynth_mine" in said


@pytest.mark.exhaustive
def test_a_metric_that_a_hard_file_cannot_have(user, tmp_path, capsys):
    data = tmp_path / "data"
    shutil.copytree(user / "data", data)
    for fold in (0, 1):
        train = pd.read_csv(data / f"t_train_{fold}.csv")
        clear = pd.DataFrame({"a": np.linspace(-1, 1, 60), "b": 0.5})
        clear["y"] = np.where(clear["a"] > 0, "yes", "no")
        clear.loc[clear["a"] > 0.9, "y"] = (
            "no"  # F fails on the rows of one class alone
        )
        clear = clear[clear["a"].abs() > 0.5]
        clear.to_csv(data / f"t_test_{fold}.csv", index=False)
        train.to_csv(data / f"t_train_{fold}.csv", index=False)
    path = tmp_path / "one.yaml"
    task = {
        "train": [str(data / "t_train_0.csv")],
        "test": [str(data / "t_test_0.csv")],
    }
    dataset = {**task, "target": "y", "type": "binary"}
    tasks = [
        {"name": "default", "dataset": dataset},
        {"name": "auc_first", "dataset": dataset, "metric": ["auc", "f1", "acc"]},
        {"name": "acc_alone", "dataset": dataset, "metric": "acc"},
        {"name": "auc_alone", "dataset": dataset, "metric": "auc"},
    ]
    path.write_text(yaml.safe_dump(tasks))
    out = tmp_path / "hard"
    assert (
        harden(
            user,
            out,
            "--rule",
            "wrong",
            "--alpha",
            ".4",
            benchmark=str(path),
            composition="bad",
        )
        == 0
    )
    entries = yaml.safe_load((out / "benchmarks" / "one_hard.yaml").read_text())
    metrics = {entry["name"]: entry.get("metric") for entry in entries}
    assert metrics == {
        "default": ["logloss", "acc"],
        "auc_first": ["f1", "acc"],
        "acc_alone": ["acc"],
        "auc_alone": ["logloss", "acc"],
    }
    said = capsys.readouterr().out
    assert "one_hard: default is scored by logloss" in said
    assert "one_hard: auc_first is scored by f1" in said
    assert "acc_alone is scored" not in said
    assert verify_suite(out) == []


def test_generate_into_the_same_folder_takes_the_twin_away(made, user, tmp_path):
    copy = shutil.copytree(made, tmp_path / "copy")
    words = words_of("generate mine -o", copy, "--userdir", user, "--alpha .6", FAST)
    assert main([*words, "--name", "hardsynth_mine", "-q"]) == 1
    assert not (copy / "benchmarks" / "mine_hard.yaml").exists()
    assert (
        json.loads((copy / "hardsynth" / "manifest.json").read_text())["pair"] is None
    )
    assert verify_suite(copy) == []


@pytest.mark.parametrize(
    ("benchmark", "more", "said"),
    [
        ("nime", [], "did you mean 'mine'"),
        ("openml/d/271", [], "of OpenML AMLB takes openml/s/ID and openml/t/ID"),
        ("bundled", [], "hardsynth generate bundled -o DIR"),
        ("data.csv", [], "no such file: data.csv"),
        (
            "mine",
            ["--name", "mine_hard"],
            "choose another --name, e.g. --name hardsynth_mine",
        ),
        ("no/such.yaml", [], "check the path"),
        ("mine#nothing", [], "has no task 'nothing'"),
    ],
)
def test_what_cannot_be_hardened(user, tmp_path, capsys, benchmark, more, said):
    out = tmp_path / "hard"
    assert harden(user, out, *more, benchmark=benchmark) == 2
    error = capsys.readouterr().err
    assert said in error
    assert not out.exists()


@pytest.mark.exhaustive
def test_a_suite_of_openml(tmp_path, own_cache, monkeypatch, capsys):
    """Two of its tasks have one data set; AMLB would call both by its name."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    lines = ["@relation noisy", "@attribute a numeric", "@attribute y {no,yes}"]
    rng = np.random.default_rng(0)
    n = 240
    a = rng.uniform(-1, 1, n).round(4)
    y = np.where(a + 0.4 * rng.normal(size=n) > 0, "yes", "no")
    lines += ["@data", *map("{},{}".format, a, y)]
    features = [("a", "numeric", []), ("y", "nominal", ["no", "yes"])]
    data = Dataset("noisy set", "\n".join(lines) + "\n", features, "y")
    tasks = {3: (1, 1, splits(n)), 4: (1, 1, splits(n, 3))}
    out = tmp_path / "hard"
    with LoopbackOpenML({1: data}, tasks, {7: [3, 4]}) as server:
        words = ["--openml-server", server.url, "--alpha", ".6", *FAST]
        words += ["--openml-cache", str(tmp_path / "cache")]
        assert main(["harden", "openml/s/7", "-o", str(out), *words]) == 0
    said = capsys.readouterr().out
    assert "-b openml_s_7_hard+hardsynth_openml_s_7" in said
    assert "noisy_set_2 is called" not in said
    path = out / "benchmarks" / "openml_s_7_hard.yaml"
    entries = dict(read_definition(path))
    assert list(entries) == ["noisy_set", "noisy_set_2"]
    # AMLB adds the limits of the constraint, as it does to the suite itself.
    assert set(entries["noisy_set"]) == {
        "name",
        "id",
        "description",
        "folds",
        "dataset",
    }
    assert SuiteFiles.load(out).manifest.pair.of == "openml_s_7"
    assert verify_suite(out) == []


def test_installed_with_its_twin(made, user, tmp_path):
    own = shutil.copytree(user, tmp_path / "own")
    change = install(made, own)
    assert change.benchmarks == ["hardsynth_mine", "hardsynth_mine_all", "mine_hard"]
    assert "HardsynthNull_mine" in change.frameworks
    text = (
        own / "hardsynth_suites/hardsynth_mine/benchmarks/mine_hard.yaml"
    ).read_text()
    entry = yaml.safe_load(text)[0]
    assert (
        entry["dataset"]["train"][0]
        == f"{made}/data/three_folds/three_folds_train_1.csv"
    )
    assert entry["id"] == "mine_hard/three.folds"


@pytest.mark.parametrize("name", SHIPPED)
def test_amlbs_definitions_are_found_without_a_checkout(name, monkeypatch, tmp_path):
    from amlb_ext.amlb.configuration import search_definition as find

    monkeypatch.delenv("AMLB_HOME", raising=False)
    path = find(name, SourceConfig(userdir=str(tmp_path)))
    assert path == asset_path("benchmarks", f"{name}.yaml")
    entries = [entry for _, entry in read_definition(path)]
    assert all("openml_task_id" in entry or "dataset" in entry for entry in entries)


# --- with AMLB itself


@pytest.mark.amlb
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_definitions_are_amlbs(amlb, name):
    def facts(path):
        keys = ("openml_task_id", "folds", "cores", "max_runtime_seconds", "metric")
        keys += ("dataset", "quantile_levels")
        return [
            (task, {key: entry[key] for key in keys if key in entry})
            for task, entry in read_definition(path)
        ]

    theirs = amlb.root / "resources" / "benchmarks" / f"{name}.yaml"
    assert facts(asset_path("benchmarks", f"{name}.yaml")) == facts(theirs)


@pytest.mark.amlb
def test_both_run_and_stand_side_by_side(amlb, made, user, tmp_path):
    own = Path(shutil.copytree(user, tmp_path / "own"))
    install(made, own)
    out = tmp_path / "out"
    rows = {}
    for benchmark in ("mine", "mine_hard"):
        outcome = run_benchmark(
            "constantpredictor",
            benchmark,
            userdir=own,
            outdir=out,
            tasks=["three.folds", "plain"],
            amlb=amlb,
            quiet=True,
        )
        assert outcome.ok, outcome.summary()
        rows[benchmark] = outcome.rows
    assert (
        set(rows["mine"]["task"])
        == set(rows["mine_hard"]["task"])
        == {"three_folds", "plain"}
    )
    assert set(rows["mine_hard"]["id"]) == {"mine_hard/three.folds", "mine_hard/plain"}
    metrics = {
        name: dict(zip(r["task"], r["metric"], strict=True)) for name, r in rows.items()
    }
    assert metrics["mine"] == metrics["mine_hard"]
    jobs = read_jobs(SuiteFiles.load(made), out)
    scored = jobs.table[jobs.table["status"] == "scored"]
    hard = scored[scored["benchmark"] == "mine_hard"]
    assert set(hard["amlb_task"]) == {"three_folds", "plain"}
    # What ran on the original stands for the untouched test folds.
    full = scored[scored["benchmark"] == "mine"]
    assert set(full["amlb_task"]) == {"three_folds_full", "plain_full"}
    assert len(full) == 5
    assert "5 results of mine, the benchmark whose hard twin" in jobs.notes[0]


@pytest.mark.amlb
def test_an_openml_task(openml_cache, tmp_path):
    path = tmp_path / "credit.yaml"
    path.write_text(
        "- {name: german credit, openml_task_id: 31, folds: 1, metric: acc}\n"
    )
    out = tmp_path / "hard"
    words = ["--openml-cache", str(openml_cache), "-q", "--max-rows", "50"]
    assert main(["harden", str(path), "-o", str(out), *FAST, *words[:3]]) == 0
    (entry,) = yaml.safe_load((out / "benchmarks" / "credit_hard.yaml").read_text())
    assert entry["name"] == "german credit"  # AMLB writes german_credit, of both
    assert (entry["folds"], entry["metric"]) == (1, ["acc"])
    assert list(SuiteFiles.load(out).tasks) == ["german_credit"]
