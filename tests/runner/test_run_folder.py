"""What a log of AMLB tells of a job; the excerpts are of real runs, with folders shortened."""

from __future__ import annotations

import pandas as pd

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


def failed_row(task: str, info: str) -> pd.DataFrame:
    return pd.DataFrame(
        {"task": [task], "fold": [0], "result": [None], "info": [info]},
    )


def test_a_failed_job_tells_the_frameworks_own_last_error() -> None:
    # AMLB's row has the text without the name of the error, cut at 200 characters
    info = (
        "NoResultError: A pipeline has not yet been optimized. Please call fit() first."
    )
    _, failed = find_unscored_jobs(
        failed_row("wine_full", info),
        [Job("wine_full", 0)],
        TPOT_WITHOUT_A_PIPELINE,
    )
    assert [str(job) for job in failed] == [
        "wine_full, fold 0: RuntimeError: A pipeline has not yet been optimized. "
        "Please call fit() first."
    ]


def test_an_error_of_one_job_is_not_told_of_another() -> None:
    _, failed = find_unscored_jobs(
        failed_row("penguins_full", "NoResultError: Process crashed: "),
        [Job("penguins_full", 0)],
        TPOT_WITHOUT_A_PIPELINE,
    )
    assert [job.reason for job in failed] == ["NoResultError: Process crashed: "]


def test_a_job_that_amlb_stopped_tells_of_the_limit() -> None:
    info = "CalledProcessError: Command 'frameworks/mljarsupervised/venv/bin/python -W igno…"
    _, failed = find_unscored_jobs(
        failed_row("breast_cancer_full", info),
        [Job("breast_cancer_full", 0)],
        MLJAR_STOPPED,
    )
    reason = "TimeoutError: AMLB stopped the job after 120 s"
    assert [job.reason for job in failed] == [reason]


def test_a_process_that_left_no_error_tells_how_it_ended() -> None:
    killed = "died with <Signals.SIGKILL: 9>"
    log = (
        "Starting job local.hardsynth.hardsynth_quick.a.0.H2OAutoML.\n"
        f"subprocess.CalledProcessError: Command 'exec.py' {killed}.\n"
    )
    _, failed = find_unscored_jobs(
        failed_row("a", "CalledProcessError: Command 'fra…"), [Job("a", 0)], log
    )
    assert [job.reason for job in failed] == [f"the framework's process {killed}"]
