"""Two commands that write one suite at once: the second says so and harms nothing."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from commands import hardsynth, words_of
from folders import contents
from small_faults import CHEAP, cheap

from amlb_ext.cli import main
from amlb_ext.core.errors import SuiteError
from amlb_ext.core.locks import lock_folder
from amlb_ext.suite import Layout, verify_suite

HOLD = """
import sys, pathlib
from amlb_ext.suite import Layout
from amlb_ext.core.locks import lock_folder
layout = Layout(pathlib.Path(sys.argv[1]))
with lock_folder(layout.lock, layout.root):
    print("held", flush=True)
    sys.stdin.read()
"""


def held(layout):
    return lock_folder(layout.lock, layout.root)


@pytest.fixture
def hold():
    """Hold the lock of a suite in another process."""
    running = []

    def start(root):
        command = [sys.executable, "-c", HOLD, str(root)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        running.append(subprocess.Popen(command, **pipes))
        assert running[-1].stdout.readline() == "held\n"
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def test_every_command_that_writes_a_suite_waits_for_none(
    whole, desk, tmp_path, hold, refused
):
    root = shutil.copytree(whole, tmp_path / "hard")
    before = contents(root)
    holder = hold(root)
    tables = [str(desk / "u.csv"), str(desk / "t.csv")]
    for words in (
        ["generate", *tables, "-o", str(root), *CHEAP],
        ["certify", str(root), "-q"],
        ["verify", str(root), "--repair", "-q"],
    ):
        said = refused(words)
        assert f"is being written by process {holder.pid} on " in said
        assert "since 20" in said
        assert "choose another folder" in said
    assert (
        verify_suite(root) == []
    )  # who reads needs no lock, and the lock is no part of the suite
    assert main(["generate", *tables, "-o", str(root), *CHEAP, "--dry-run"]) == 0
    holder.kill()
    holder.communicate()
    assert contents(root).keys() - before.keys() == {"hardsynth/.lock"}
    assert (
        hardsynth("generate", tables, "-o", root, CHEAP) == 0
    )  # the lock died with its holder
    assert contents(root) == before


def test_two_generates_at_once(desk, tmp_path, refused):
    root = tmp_path / "hard"
    words = words_of(
        "generate",
        desk / "u.csv",
        desk / "t.csv",
        "-o",
        root,
        CHEAP,
        "--certificate none",
    )
    first = subprocess.Popen([sys.executable, "-m", "amlb_ext", *words])
    while first.poll() is None and not (root / "hardsynth/request.json").exists():
        time.sleep(0.002)
    first.send_signal(signal.SIGSTOP)
    try:
        assert f"process {first.pid} on " in refused(words)
    finally:
        first.send_signal(signal.SIGCONT)
    assert first.wait(120) == 0
    undisturbed = tmp_path / "undisturbed"
    tables = words[1:3]
    assert cheap("generate", *tables, "-o", undisturbed, "--certificate", "none") == 0
    assert contents(root) == contents(undisturbed)


def test_a_lock_leaves_nothing_behind(tmp_path, hold):
    root = tmp_path / "a" / "b"
    with held(Layout(root)):
        assert [path.name for path in root.rglob("*")] == ["hardsynth", ".lock"]
        with held(Layout(tmp_path / "a/../a/b")):  # by another name, and again
            pass
        assert Layout(root).lock.exists()
    assert not (tmp_path / "a").exists()
    with pytest.raises(ZeroDivisionError), held(Layout(root)):
        1 / 0
    assert not (tmp_path / "a").exists()
    holder = hold(root)
    with pytest.raises(SuiteError, match="is being written"), held(Layout(root)):
        pass
    holder.communicate("")
    assert not (tmp_path / "a").exists()


def test_a_torn_lock_file_is_another_process(tmp_path, hold):
    hold(tmp_path)
    (tmp_path / "hardsynth/.lock").write_text('{"process"')
    with pytest.raises(SuiteError, match="by another process"), held(Layout(tmp_path)):
        pass


def test_a_generation_that_fails_leaves_no_folder(desk, tmp_path):
    out = tmp_path / "x" / "hard"
    assert cheap("generate", desk / "t.csv", "-o", out, "--alpha", "99") == 1
    assert not (tmp_path / "x").exists() or os.listdir(tmp_path / "x") == []
