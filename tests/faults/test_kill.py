"""Killed at random moments, continued, and the same bytes in the end.

A run kills twice; ``HARDSYNTH_NIGHTLY=1`` kills fifty.
"""

import os
import random
import signal
import subprocess
import sys
import time

import psutil
import pytest
from commands import words_of
from folders import contents
from small_faults import CHEAP, write_table

from amlb_ext.suite import verify_suite

NIGHTLY = bool(os.environ.get("HARDSYNTH_NIGHTLY"))
KILLS = 50 if NIGHTLY else 2
SEED = 20
COMMAND = [sys.executable, "-m", "amlb_ext", "generate"]
COMMAND += words_of(CHEAP[:-2], "--folds 2 -j 2")
COMMAND += [] if NIGHTLY else ["--certificate", "none"]


def workers_of(process):
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


@pytest.mark.exhaustive  # test_source.py kills one process once
def test_a_run_that_is_killed_at_random_moments_ends_with_the_same_bytes(tmp_path):
    write_table(tmp_path / "t.csv", seed=1, n=120)
    command = [*COMMAND, str(tmp_path / "t.csv"), "-o"]
    began = time.monotonic()
    subprocess.run([*command, str(tmp_path / "whole")], check=True)
    length = time.monotonic() - began
    wanted = contents(tmp_path / "whole")

    draw = random.Random(SEED)
    killed, finished = 0, 0
    while killed < KILLS:
        folder = tmp_path / f"killed_{finished}"
        began = time.monotonic()
        with subprocess.Popen([*command, str(folder)]) as process:
            try:
                process.wait(draw.uniform(0.2, 0.9) * length)
            except subprocess.TimeoutExpired:
                workers = workers_of(process)
                process.send_signal(signal.SIGKILL)
                killed += 1
                psutil.wait_procs(
                    workers, timeout=0.3
                )  # the next run may meet them alive
                continue
        assert process.returncode == 0
        assert contents(folder) == wanted
        finished += 1
        length = min(
            length, time.monotonic() - began
        )  # it ended before its time: aim earlier
    folder = tmp_path / f"killed_{finished}"
    subprocess.run([*command, str(folder)], check=True)
    assert contents(folder) == wanted
    assert verify_suite(folder) == []
