"""Setting a framework up, with a stand-in for AMLB that installs files instead of packages.

Its framework ``Fw`` has an environment, whose Python is a link to ours, with one module ``fw``;
``exec.py`` imports it. How the set-up goes is told by files beside it: ``slow`` (it waits while
the file is there), ``broken`` (it installs a module that fails), ``offline`` (pip finds nothing,
and the script goes on, as AMLB's do), ``full`` (AMLB ends well, having done nothing).
"""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time

import pytest
from amlb_runs import run_benchmark

from amlb_ext.amlb.configuration import read_user_config
from amlb_ext.amlb.frameworks import find_framework
from amlb_ext.runner import setup
from amlb_ext.runner.setup import look_up

STAND_IN = """
import argparse, os, subprocess, sys, time
from pathlib import Path
parser = argparse.ArgumentParser()
for name in ("framework", "benchmark", "constraint"):
    parser.add_argument(name)
for flag in ("-u", "-o", "--session", "-s", "-f"):
    parser.add_argument(flag)
parser.add_argument("-X", action="append")
args = parser.parse_args()
home = Path(__file__).parent
folder = home / "frameworks" / "Fw"
installed = folder / ".setup" / "installed"
if args.s != "skip":
    with open(home / "setups", "a") as log:
        log.write(os.environ.get("PIP_CONSTRAINT", "none") + "\\n")
    for uri in os.environ.get("PIP_CONSTRAINT", "").split():
        print("constraint:", Path(uri.removeprefix("file://")).read_text().split())
    if (home / "full").exists():
        sys.exit()
    installed.parent.mkdir(exist_ok=True)
    installed.unlink(missing_ok=True)
    (folder / "venv" / "bin").mkdir(parents=True)  # a second set-up at once fails here
    (folder / "venv" / "bin" / "python").symlink_to(sys.executable)
    (folder / "venv" / "begun").touch()
    while (home / "slow").exists():
        time.sleep(0.05)
    if (home / "offline").exists():
        print("ERROR: No matching distribution found for fw<2")
    else:
        text = "raise AttributeError('np.Inf was removed')" if (home / "broken").exists() else ""
        (folder / "venv" / "fw.py").write_text(text)
    installed.write_text("1.2.4\\nstable\\n")
    print("Setup of framework Fw completed successfully.")
if args.s == "only":
    sys.exit()
out = Path(args.o, args.session, "scores")
out.mkdir(parents=True)
line = "id,task,framework,constraint,fold,type,result,metric,duration,info\\n"
print("Starting job local.fine.test.good_one.0.Fw.")
done = subprocess.run([folder / "venv" / "bin" / "python", folder / "exec.py"], stderr=1)
info = f"CalledProcessError: exit {done.returncode}" if done.returncode else ""
result = "" if info else ".5"
line += f"good_one,good_one,Fw,c,0,binary,{result},auc,1.5,{info}\\n"
(out / "results.csv").write_text(line)
"""
EXEC = """
import os, sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parent / "venv"))
import fw
if __name__ == "__main__" and os.path.exists(Path(__file__).parents[2] / "crash"):
    raise ValueError("too few rows")
"""


@pytest.fixture
def stand_in(fake):
    root = fake.root
    (root / "runbenchmark.py").write_text(STAND_IN)
    (root / "resources" / "frameworks.yaml").write_text("Fw:\n  version: stable\n")
    folder = root / "frameworks" / "Fw"
    folder.mkdir(parents=True)
    (folder / "setup.sh").touch()
    (folder / "exec.py").write_text(EXEC)
    return fake


def run(stand_in, userdir, *extra):
    return run_benchmark(
        "Fw",
        "fine",
        userdir=userdir,
        outdir=userdir.parent / "out",
        folds=[0],
        amlb=stand_in,
        extra=extra,
        quiet=False,
    )


def setups(stand_in):
    path = stand_in.root / "setups"
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_framework_is_set_up_once_under_constraints(stand_in, userdir, capfd):
    first = run(stand_in, userdir)
    assert first.ok, first.summary()
    said = capfd.readouterr().err
    assert "hardsynth: Fw is not set up yet: setting it up in " in said
    assert "constraint: ['numpy<2']" in said
    assert run(stand_in, userdir).ok
    assert setups(stand_in) == 1
    assert run(stand_in, userdir, "-s", "force").ok
    assert setups(stand_in) == 2


def test_the_users_own_constraints_stay(
    stand_in, userdir, capfd, monkeypatch, tmp_path
):
    own = tmp_path / "own.txt"
    own.write_text("torch<2\n")
    monkeypatch.delenv("PIP_CONSTRAINT", raising=False)
    config = tmp_path / "pip.conf"
    config.write_text("[install]\nconstraint = own.txt\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.chdir(tmp_path)  # AMLB runs elsewhere
    assert run(stand_in, userdir).ok
    said = capfd.readouterr().err
    assert "constraint: ['torch<2']" in said
    assert "constraint: ['numpy<2']" in said


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("broken", "AttributeError: np.Inf was removed"),
        ("offline", "ERROR: No matching distribution found for fw<2"),
        # AMLB's own log may fail on a full disk, after which AMLB ends with status 0
        ("full", "AMLB ended with status 0 and set nothing up"),
    ],
)
def test_a_failed_setup_tells_its_own_error_and_is_healed_by_the_next_run(
    stand_in, userdir, fault, error
):
    (stand_in.root / fault).touch()
    outcome = run(stand_in, userdir)
    assert not outcome.ok
    (missing,) = outcome.missing
    assert str(missing).startswith(f"good_one, fold 0: Fw could not be set up: {error}")
    assert f"no score for good_one/0: {missing.reason}" in outcome.summary()
    assert outcome.log.read_text().endswith(f"SetupError: {missing.reason}\n")
    assert "the same command again, or with '-- -s force'" in outcome.summary()
    (stand_in.root / fault).unlink()
    assert run(stand_in, userdir).ok


def test_what_amlb_itself_set_up_is_tried_before_it_is_believed(
    stand_in, userdir, capfd
):
    whole = [sys.executable, "runbenchmark.py", "Fw", "b", "c", "-s", "only"]
    subprocess.run(whole, cwd=stand_in.root, check=True)
    assert run(stand_in, userdir).ok
    assert setups(stand_in) == 1
    (stand_in.root / "frameworks" / "Fw" / ".setup" / "hardsynth-complete").unlink()
    (stand_in.root / "frameworks" / "Fw" / "venv" / "fw.py").unlink()
    assert run(stand_in, userdir).ok
    assert (
        "does not work (ModuleNotFoundError: No module named 'fw')"
        in capfd.readouterr().err
    )
    assert setups(stand_in) == 2


def process(stand_in, userdir, name):
    code = f"""
        from pathlib import Path
        from amlb_ext.runner.checkout import Checkout
        from amlb_ext.runner.run import run_benchmarks
        found = Checkout(Path({str(stand_in.root)!r}), Path({sys.executable!r}), "2.1.7")
        outcome, = run_benchmarks("Fw", ["fine"], userdir={str(userdir)!r}, folds=[0],
                                  outdir={str(userdir.parent / name)!r}, amlb=found)
        print(outcome.summary())
        raise SystemExit(not outcome.ok)
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert condition.exists()


@pytest.mark.exhaustive
def test_of_two_runs_at_once_the_second_waits(stand_in, userdir):
    (stand_in.root / "slow").touch()
    first = process(stand_in, userdir, "first")
    wait_for(stand_in.root / "frameworks" / "Fw" / "venv" / "begun")
    second = process(stand_in, userdir, "second")
    assert second.stderr is not None
    line = second.stderr.readline()
    assert line.startswith("hardsynth: waiting for another process that sets up AMLB (")
    (stand_in.root / "slow").unlink()
    said = [one.communicate(timeout=120) for one in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], said
    assert setups(stand_in) == 1


def test_a_killed_setup_is_mended_by_the_next_run(stand_in, userdir, capfd):
    (stand_in.root / "slow").touch()
    first = process(stand_in, userdir, "first")
    wait_for(stand_in.root / "frameworks" / "Fw" / "venv" / "begun")
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=60)
    # AMLB ends with its parent, and holds the lock until then
    (stand_in.root / "slow").unlink()
    second = process(stand_in, userdir, "second")
    second.communicate(timeout=120)
    assert second.returncode == 0
    installed = stand_in.root / "frameworks" / "Fw" / ".setup" / "installed"
    installed.unlink()  # as where AMLB was killed with it
    assert run(stand_in, userdir).ok
    assert (
        "Fw is half set up, by a run that was stopped or failed"
        in capfd.readouterr().err
    )


def test_a_missing_program_is_named_with_its_remedy(
    stand_in, userdir, tmp_path, monkeypatch
):
    table = """
        default: {constraints: [numpy<2]}
        Fw:
          constraints: [numpy<2]
          programs: {no-such-java: apt-get install no-such-java}
    """
    (tmp_path / "v2.1.7.yaml").write_text(textwrap.dedent(table))
    monkeypatch.setattr(setup, "asset_path", lambda *parts: tmp_path)
    outcome = run(stand_in, userdir)
    assert (
        "Fw could not be set up: the program no-such-java is not installed "
        "(apt-get install no-such-java)" in outcome.summary()
    )


def test_a_setup_that_did_nothing_is_a_failure(stand_in, userdir):
    """AMLB's own log may fail on a full disk, after which AMLB ends with status 0."""
    (stand_in.root / "full").touch()
    outcome = run(stand_in, userdir)
    assert not outcome.ok
    (missing,) = outcome.missing
    assert f"set nothing up; {outcome.log} tells more" in str(missing)


def test_definitions_are_read_as_amlb_reads_them(stand_in, userdir):
    root = stand_in.root
    (root / "resources" / "frameworks.yaml").write_text(
        "Fw:\n  version: stable\nFw_best:\n  extends: Fw\n  params: {a: 1}\n"
        "old:\n  module: frameworks.Fw\n  version: '1.0'\n"
    )
    (root / "resources" / "frameworks_2023Q2.yaml").write_text(
        "Fw:\n  version: '0.9'\n"
    )
    (userdir / "extensions" / "Mine").mkdir(parents=True)
    (userdir / "frameworks.yaml").write_text("mine:\n  module: extensions.Mine\n")
    config = read_user_config(userdir)
    found = {
        name: find_framework(name, userdir, root, config)
        for name in ("fw", "FW_best", "old", "Fw:2023Q2", "mine", "nothing")
    }
    versions = {name: one.version if one else None for name, one in found.items()}
    assert versions == {
        **{"fw": "stable", "FW_best": "stable", "old": "1.0", "Fw:2023Q2": "0.9"},
        **{"mine": "stable", "nothing": None},
    }
    best, mine = found["FW_best"], found["mine"]
    assert best is not None
    assert mine is not None
    assert best.folder == root / "frameworks" / "Fw"
    assert best.has_setup
    assert not mine.has_setup
    assert look_up(best, "2.1.7").constraints == ("numpy<2",)
    assert look_up(best, "dev dfe8d21").constraints == ("numpy<2",)
    assert look_up(mine, "2.1.7").constraints == ()
