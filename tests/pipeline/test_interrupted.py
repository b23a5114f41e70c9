"""Ctrl-C in the midst of a suite: the same command ends it, with the same bytes."""

import signal
import subprocess
import sys
import time

from folders import contents
from small_faults import CHEAP, cheap, write_table


# kill -9, with two workers, is in tests/faults
def test_ctrl_c_leaves_a_suite_that_continues(tmp_path):
    table = write_table(tmp_path / "t.csv", seed=1, n=80)
    out, whole = tmp_path / "hard", tmp_path / "whole"
    words = ["--folds", "2", "--certificate", "none", str(table)]
    command = ["generate", *CHEAP, *words, "-o", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "amlb_ext", *command],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while process.poll() is None and not list(
        out.glob("hardsynth/*/fold_*/record.json")
    ):
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (
        err.strip()
        .splitlines()[-1]
        .startswith("hardsynth: interrupted; the same command")
    )
    assert "Traceback" not in err
    assert cheap("generate", *words, "-o", out) == 0
    assert cheap("generate", *words, "-o", whole) == 0
    assert contents(out) == contents(whole)
