"""A run, with a fake AMLB that skips and fails jobs as the real one does."""

from __future__ import annotations

import os

import pandas as pd
import pytest
from amlb_runs import run_benchmark
from commands import python

from amlb_ext.amlb.definition import Job
from amlb_ext.core.assets import asset_path
from amlb_ext.core.errors import RunError
from amlb_ext.runner.run import remove_unchecked, run_benchmarks
from amlb_ext.runner.run_folder import find_unscored_jobs


def test_missing_and_failed_jobs(fake, userdir, tmp_path, capfd):
    outcome = run_benchmark("Fw", userdir=userdir, outdir=tmp_path / "out", amlb=fake)
    assert outcome.amlb_exit == 0
    assert not outcome.ok
    assert [str(problem) for problem in outcome.missing] == [
        "unloadable, fold 0: no file x",
        "unloadable, fold 1: no file x",
    ]
    assert [str(problem) for problem in outcome.failed] == [
        "failing, fold 0: ValueError: no good"
    ]
    # good one 0 and 1 of 2 + 2 + 1 jobs; the disabled task is not asked for
    assert outcome.summary().startswith("2 of 5 jobs scored")
    assert "no score for unloadable/0, unloadable/1: no file x" in outcome.summary()
    assert "Running benchmark" in capfd.readouterr().err
    assert "Running benchmark" in outcome.log.read_text()


@pytest.mark.parametrize(
    ("framework", "said"),
    [
        ("constantpredictr", "did you mean 'constantpredictor'"),
        ("Own", "did you mean 'Own1'"),
        ("base", "abstract"),
        ("gone", "its authors asked for it"),
        ("constantpredictor:2023Q2", "there is no framework 'constantpredictor'"),
        ("Fw:2032Q2", "did you mean '2023Q2'"),
    ],
)
def test_a_mistyped_framework_leaves_nothing(fake, userdir, tmp_path, framework, said):
    (userdir / "frameworks.yaml").write_text("Own1: {module: extensions.Own1}\n")
    out = tmp_path / "out"
    with pytest.raises(RunError, match=said):
        run_benchmark(framework, userdir=userdir, outdir=out, amlb=fake, quiet=True)
    assert not out.exists()


@pytest.mark.parametrize("framework", ["FW", "fw:2023Q2", "own1"])
def test_frameworks_are_found_as_amlb_finds_them(fake, userdir, tmp_path, framework):
    (userdir / "frameworks.yaml").write_text("Own1: {module: extensions.Own1}\n")
    asked = {"userdir": userdir, "outdir": tmp_path / "out", "amlb": fake}
    assert run_benchmark(framework, "fine", quiet=True, **asked).ok


TWO = """\
- {name: good one, folds: 2, dataset: {train: a, test: b}}
- {name: good one_full, folds: 3, dataset: {train: a, test: c}}
"""


@pytest.fixture
def two(fake, userdir, tmp_path):
    """A hard twin and a main definition, which share a task's files."""
    (userdir / "benchmarks" / "two.yaml").write_text(TWO)
    (userdir / "benchmarks" / "one.yaml").write_text(TWO.splitlines()[0] + "\n")
    out = tmp_path / "out"
    return {"userdir": userdir, "outdir": out, "amlb": fake, "quiet": True}


def test_several_definitions_run_what_they_share_once(two):
    first, second = run_benchmarks("Fw", ["one", "two"], "mine", **two)
    assert first.ok
    assert second.ok
    assert first.run_dir.name.startswith("fw.one.mine.local.")
    assert second.run_dir.name.startswith("fw.two.mine.local.")
    assert first.expected == (Job("good_one", 0), Job("good_one", 1))
    assert second.expected == tuple(Job("good_one_full", fold) for fold in range(3))
    assert set(second.rows["task"]) == {"good_one_full"}


def test_tasks_and_folds_are_chosen_of_all_definitions(two):
    (only,) = run_benchmarks("Fw", ["one", "two"], tasks=["good one_full"], **two)
    assert only.run_dir.name.startswith("fw.two.")
    (only,) = run_benchmarks("Fw", ["one", "two"], folds=[2], **two)
    assert only.expected == (Job("good_one_full", 2),)
    for choice in ({"tasks": ["good two"]}, {"folds": [7]}):
        with pytest.raises(RunError, match=r"good_one|no fold"):
            run_benchmarks("Fw", ["one", "two"], **choice, **two)


def test_outdir_that_cannot_be_made(fake, userdir, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot write into"):
        run_benchmark(
            "Fw", userdir=userdir, outdir=tmp_path / "file" / "out", amlb=fake
        )


def test_openml_jobs_are_known_from_the_log_alone():
    rows = pd.DataFrame({"task": ["a"], "fold": [0], "result": [0.5], "info": [""]})
    log = "[ERROR] Job `local.openml_s_1.test.b-c_d.12.TPOT` failed with error: HTTP 500\nTrace"
    missing, failed = find_unscored_jobs(rows, [], log)
    assert [str(problem) for problem in missing] == ["b-c_d, fold 12: HTTP 500"]
    assert failed == ()
    missing, _ = find_unscored_jobs(
        rows, [Job("z", 0)], "Traceback\nOSError: full\n", amlb_exit=2
    )
    assert missing[0].reason == "AMLB ended with status 2: OSError: full"


def test_what_was_derived_is_removed_from_suites_alone(tmp_path):
    data = tmp_path / "data" / "t"
    data.mkdir(parents=True)
    derived = {data / "t_test_0.parquet", data / "t_test_0.arff"}
    # the last is of no CSV: not derived
    others = {data / "t_test_0.csv", data / "t_test_1.parquet"}
    for path in derived | others:
        path.touch()
    # with the cells of the table beside it: another run may be reading it
    whole = data / "t_train_0.parquet"
    pd.DataFrame({"n": [1, 2]}).to_csv(whole.with_suffix(".csv"), index=False)
    pd.DataFrame({"n": [1, 2]}).to_parquet(whole)
    others |= {whole, whole.with_suffix(".csv")}
    remove_unchecked(tmp_path)
    assert set(data.iterdir()) == derived | others
    (tmp_path / "hardsynth").mkdir()
    (tmp_path / "hardsynth" / "manifest.json").write_text("{}")
    remove_unchecked(tmp_path)
    assert set(data.iterdir()) == others


def test_the_patched_poll_waits_for_amlb_alone(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('the other one')\n")
    script = (
        "import subprocess, sys\n"
        "def child(): return subprocess.Popen([sys.executable, '-c', 'raise SystemExit(3)'])\n"
        "def run_subprocess(): return child().poll()\n"  # as amlb/utils/process.py
        "def others(): return child().poll()\n"
        "print(others(), run_subprocess())\n"
    )
    path = os.pathsep.join(
        [str(asset_path("resources", "amlb_sitecustomize")), str(tmp_path)]
    )
    printed = python(script, env={**os.environ, "PYTHONPATH": path})
    # each new interpreter runs the sitecustomize that ours would hide
    assert "the other one" in printed
    assert "None 3" in printed
