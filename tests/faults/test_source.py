"""A source that vanishes half-way."""

import os
import signal
import subprocess
import sys
import time

import pytest
from folders import contents
from small_faults import CHEAP, cheap, error_of, write_table

from amlb_ext.suite import SuiteFiles, verify_suite


@pytest.fixture
def tables(tmp_path):
    return [write_table(tmp_path / f"{name}.csv", 10) for name in "ab"]


@pytest.mark.exhaustive
def test_a_table_deleted_after_an_interrupted_run(tables, tmp_path, capsys):
    out, table = tmp_path / "hard", tables[0]
    words = ["generate", table, "--certificate", "none", "--folds", "2", "-o"]
    command = [sys.executable, "-m", "amlb_ext", *map(str, words), str(out), *CHEAP]
    process = subprocess.Popen([*command, "--folds", "2"])
    while process.poll() is None and not list(
        out.glob("hardsynth/*/fold_*/record.json")
    ):
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    content = table.read_bytes()
    table.unlink()
    before = contents(out)
    assert cheap(*words, out) == 2
    assert "a.csv" in error_of(capsys)
    assert contents(out) == before  # what was finished waits for it
    table.write_bytes(content)
    assert cheap(*words, out) == 0
    other = tmp_path / "undisturbed"
    assert cheap(*words, other) == 0
    assert contents(out) == contents(other)


def test_a_table_that_is_gone_when_a_finished_suite_is_made_again(tables, tmp_path):
    out, content = tmp_path / "hard", tables[1].read_bytes()
    words = ["generate", *tables, "-o", out, "--certificate", "none"]
    assert cheap(*words) == 0
    before = contents(out)
    written = {path: path.stat().st_mtime_ns for path in out.glob("data/*/*.csv")}
    tables[1].unlink()
    assert cheap(*words) == 1
    assert list(SuiteFiles.load(out).tasks) == ["a"]
    (finding,) = verify_suite(out)
    assert finding.startswith("warning: b is not a task of the suite")
    assert "finished folds (1) are kept" in finding
    tables[1].write_bytes(content)
    assert cheap(*words) == 0
    assert contents(out) == before
    assert {path: path.stat().st_mtime_ns for path in written} == written
