"""A run that is stopped leaves no process, and the same command goes on where it was stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from amlb_runs import run_benchmark
from exhaustive import first_of

from amlb_ext.core.errors import RunError
from amlb_ext.runner.results import find_predictions, predictions_path, read_results
from amlb_ext.runner.run_folder import ASKED, is_running, read_asked, write_record

PROGRAM = """
import sys
from pathlib import Path
from amlb_ext.runner.checkout import Checkout
from amlb_ext.runner.run import run_benchmarks
root, user, out = map(Path, sys.argv[1:])
run_benchmarks("Fw", ["three"], userdir=user, outdir=out, quiet=True,
              amlb=Checkout(root, Path(sys.executable), "2.1.7"))
"""


@pytest.fixture
def three(userdir):
    """A user directory with a definition of three jobs, of which the third never ends."""
    (userdir / "benchmarks" / "three.yaml").write_text(
        "- {name: good one, folds: 1}\n- {name: slow, folds: 2}\n"
    )
    (userdir / "wait").touch()
    return userdir


def start_and_wait(fake, user, out):
    """Start a run, and return it when its third job has started a process of its own."""
    command = [sys.executable, "-c", PROGRAM, str(fake.root), str(user), str(out)]
    process = subprocess.Popen(command, start_new_session=True)
    deadline = time.monotonic() + 60
    while not (user / "child").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)  # its number is written
    return process


def is_gone(pid):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid):
            return True
        if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize(
    "number", first_of([signal.SIGTERM, signal.SIGKILL, signal.SIGHUP], 1)
)
def test_a_stopped_run_leaves_no_process_and_goes_on(fake, three, tmp_path, number):
    out = tmp_path / "out"
    process = start_and_wait(fake, three, out)
    child = int((three / "child").read_text())
    process.send_signal(number)
    process.wait(timeout=60)
    assert process.returncode != 0
    assert is_gone(child)
    (three / "wait").unlink()
    asked = {"userdir": three, "outdir": out, "amlb": fake, "quiet": True}
    outcome = run_benchmark("Fw", "three", **asked)
    assert outcome.ok
    assert len(outcome.rows) == 3
    # only what had no score was run again
    second = sorted(path for path in out.iterdir() if path.is_dir())[-1]
    scores = (second / "scores" / "results.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in scores[1:]] == ["slow"]
    assert outcome.summary().startswith("3 of 3 jobs scored")
    # it came to its end: the same command begins anew
    assert len(run_benchmark("Fw", "three", **asked).expected) == 3
    third = sorted(path for path in out.iterdir() if path.is_dir())[-1]
    assert len((third / "scores" / "results.csv").read_text().splitlines()) == 4


def test_a_run_that_is_going_on_is_not_gone_on_with(fake, three, tmp_path):
    out = tmp_path / "out"
    process = start_and_wait(fake, three, out)
    asked = {"userdir": three, "outdir": out, "amlb": fake, "quiet": True}
    try:
        with pytest.raises(RunError, match="the same run is going on in"):
            run_benchmark("Fw", "three", **asked)
        # whoever reads meanwhile sees what is whole
        (run_dir,) = out.iterdir()
        assert is_running(run_dir)
        assert len(read_results(out)) == 2
        for fold in (0, 1):
            path = predictions_path(run_dir, "slow", fold)
            path.parent.mkdir(parents=True)
            path.write_text("predictions,truth\n")
        assert [file.fold for file in find_predictions(out)] == [0]
        (run_dir / "scores" / "results.csv").write_text("")
        with pytest.raises(RunError, match="holds no AMLB results"):
            read_results(out)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
    assert not is_running(run_dir)


def test_what_was_scored_of_another_definition_does_not_count(fake, userdir, tmp_path):
    asked = {"userdir": userdir, "outdir": tmp_path, "amlb": fake, "quiet": True}
    first = run_benchmark("Fw", "fine", **asked).run_dir
    # as if it had been stopped behind its last job
    write_record(first, {**read_asked(first / ASKED), "ended": False})
    gone_on = run_benchmark("Fw", "fine", **asked)
    assert gone_on.ok
    assert gone_on.run_dir == first
    write_record(first, {**read_asked(first / ASKED), "ended": False})
    (userdir / "benchmarks" / "fine.yaml").write_text("- {name: good one} # mine\n")
    anew = run_benchmark("Fw", "fine", **asked)
    assert anew.run_dir != first
    assert len(read_results(anew.run_dir)) == 2


def test_runs_of_series_have_their_splits_for_themselves(fake, userdir, tmp_path):
    (userdir / "benchmarks" / "sold.yaml").write_text(
        "- {name: good one, dataset: {type: timeseries, path: a.csv}}\n"
    )
    asked = {"userdir": userdir, "outdir": tmp_path, "amlb": fake, "quiet": True}
    outcomes = [run_benchmark("Fw", "sold", **asked) for _ in range(2)]
    for outcome in outcomes:
        assert outcome.ok
        splits = outcome.command[outcome.command.index("-i") + 1]
        assert splits == str(outcome.run_dir / "input")
        assert not Path(splits).exists()
    assert "-i" not in run_benchmark("Fw", "fine", **asked).command
    own = str(tmp_path / "own")
    assert own in run_benchmark("Fw", "sold", **asked, extra=["-i", own]).command


def test_amlbs_own_resume_is_refused(fake, userdir, tmp_path):
    with pytest.raises(RunError, match="--resume needs"):
        run_benchmark(
            "Fw",
            "fine",
            userdir=userdir,
            outdir=tmp_path,
            amlb=fake,
            extra=["--resume"],
        )
