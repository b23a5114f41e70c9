"""Killed in mid-search and continued, on one process or two: the same bytes in the end."""

import signal
import subprocess
import sys
import time

import pytest
import small_swarms
from small_faults import contents
from small_models import lighten
from small_swarms import small_run, write_groups

from amlb_ext.suite import verify_suite
from amlb_ext.swarm.run import swarm_suite


@pytest.fixture
def table(tmp_path):
    return write_groups(tmp_path / "groups.csv")


def records_of(folder):
    return {
        path: path.stat().st_mtime_ns
        for path in folder.glob("hardsynth/*/fold_*/record.json")
    }


@pytest.mark.exhaustive  # each process loads torch, which takes longer than its search
def test_a_search_that_is_killed_continues_where_it_was(table, tmp_path, monkeypatch):
    # not by the fixture, which would stay for the other test: its workers know nothing of it
    lighten(monkeypatch)
    out, whole = tmp_path / "killed", tmp_path / "whole"
    command = [sys.executable, small_swarms.__file__, table, str(out), "2"]
    with subprocess.Popen(command) as process:
        # the first fold stands, the second one is being searched
        while process.poll() is None and not records_of(out):
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    finished = records_of(out)
    assert not (out / "swarm.md").exists()
    swarm_suite(small_run(table, out, folds=2))
    again = records_of(out)
    assert len(again) == 2
    assert {path: again[path] for path in finished} == finished
    swarm_suite(small_run(table, whole, folds=2))
    assert contents(out) == contents(whole)
    assert verify_suite(out) == []


@pytest.mark.exhaustive
def test_two_processes_write_the_same_bytes(table, tmp_path):
    for jobs in (1, 2):
        swarm_suite(small_run(table, tmp_path / str(jobs), folds=2, jobs=jobs))
    assert contents(tmp_path / "1") == contents(tmp_path / "2")
