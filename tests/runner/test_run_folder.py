"""What a log of AMLB tells of a job; the excerpts are of real runs, with folders shortened."""

from __future__ import annotations

import pandas as pd
import pytest

from amlb_ext.amlb.definition import Job
from amlb_ext.runner.run_folder import find_unscored_jobs

#: TPOT 0.12.1 under AMLB 2.1.7, which evaluated no pipeline within its budget.
TPOT_WITHOUT_A_PIPELINE = """\
Starting job local.hardsynth.hardsynth_quick.wine_full.0.TPOT.
Running cmd `frameworks/TPOT/venv/bin/python -W ignore frameworks/TPOT/exec.py`
INFO:__main__:Running TPOT with a maximum time of 60s on 1 cores, optimizing neg_log_loss.
ERROR:frameworks.shared.callee:A pipeline has not yet been optimized. Please call fit() first.
Traceback (most recent call last):
  File "site-packages/tpot/base.py", line 962, in _update_top_pipeline
    raise RuntimeError(
RuntimeError: A pipeline has not yet been optimized. Please call fit() first.
A pipeline has not yet been optimized. Please call fit() first.
Traceback (most recent call last):
  File "frameworks/shared/caller.py", line 152, in run_in_venv
    raise NoResultError(res.error_message)
amlb.results.NoResultError: A pipeline has not yet been optimized. Please call fit() first.
Job `local.hardsynth.hardsynth_quick.wine_full.0.TPOT` executed in 86.033 seconds.
Starting job local.hardsynth.hardsynth_quick.penguins_full.0.TPOT.
INFO:__main__:Finished fit in 63.1028938293457s.
"""
#: mljar-supervised 1.0.2, which caught AMLB's first interruption and went on.
MLJAR_STOPPED = """\
Starting job local.hardsynth.hardsynth_quick.breast_cancer_full.0.mljarsupervised.
2026-11-23 12:25:36,799 amlb.utils.process WARNING Interrupting thread MainThread \
[ident=139780254423936] after 120s timeout.
2026-11-23 12:25:36,800 supervised.utils.additional_metrics ERROR Exception while saving SHAP \
importance. Interrupting thread MainThread [ident=139780254423936] after 120s timeout.
Continuing ...
Terminated
Traceback (most recent call last):
  File "amlb/utils/process.py", line 98, in run_subprocess
    raise subprocess.CalledProcessError(retcode, process.args, output=stdout, stderr=stderr)
subprocess.CalledProcessError: Command 'frameworks/mljarsupervised/venv/bin/python -W ignore \
frameworks/mljarsupervised/exec.py' returned non-zero exit status 143.
"""


KILLED = "died with <Signals.SIGKILL: 9>"
FRAMEWORK_KILLED = (
    "Starting job local.hardsynth.hardsynth_quick.a.0.H2OAutoML.\n"
    f"subprocess.CalledProcessError: Command 'exec.py' {KILLED}.\n"
)
NO_PIPELINE = "A pipeline has not yet been optimized. Please call fit() first."


@pytest.mark.parametrize(
    ("log", "task", "info", "reason"),
    [
        # AMLB's row has the text without the name of the error, cut at 200 characters
        (
            TPOT_WITHOUT_A_PIPELINE,
            "wine_full",
            f"NoResultError: {NO_PIPELINE}",
            f"RuntimeError: {NO_PIPELINE}",
        ),
        # the error of another job is none of this one
        (
            TPOT_WITHOUT_A_PIPELINE,
            "penguins_full",
            "NoResultError: Process crashed: ",
            "NoResultError: Process crashed: ",
        ),
        (
            MLJAR_STOPPED,
            "breast_cancer_full",
            "CalledProcessError: Command 'frameworks/mljarsupervised/venv/bin/python -W igno…",
            "TimeoutError: AMLB stopped the job after 120 s",
        ),
        (
            FRAMEWORK_KILLED,
            "a",
            "CalledProcessError: Command 'fra…",
            f"the framework's process {KILLED}",
        ),
    ],
)
def test_a_failed_job_tells_the_frameworks_own_last_error(log, task, info, reason):
    row = pd.DataFrame({"task": [task], "fold": [0], "result": [None], "info": [info]})
    _, failed = find_unscored_jobs(row, [Job(task, 0)], log)
    assert [str(job) for job in failed] == [f"{task}, fold 0: {reason}"]
