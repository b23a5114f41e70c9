"""The runner wing: AMLB itself, always as a subprocess, and what it wrote.

``checkout`` find AMLB or clone it (``ensure``, ``Checkout``) · ``environment`` the virtual
environment that AMLB runs in · ``run`` one run of AMLB (``run_benchmark``) · ``outcome``
whether it did all that was asked (``RunOutcome``, ``Problem``) · ``results`` scores and
predictions, joined to provenance (``read_results``, ``read_predictions``, ``find_predictions``,
``join``) ·
``jobs`` which jobs of a suite have been run, and what came of each (``read_jobs``) ·
``rerun`` the commands that run some of them again · ``runs`` what one run's folder tells ·
``install`` a suite in a user's own AMLB configuration, not imported here ·
``commands`` commands with errors of one line, and a lock between processes · ``score`` the
suite's own integrations scored without AMLB (``score_suite``) · ``agreement`` whether the F that
was run is the F of the suite · ``written`` results of ours in
AMLB's form.
"""

from amlb_ext.runner.checkout import Checkout, ensure_checkout
from amlb_ext.runner.jobs import read_jobs, rerun_commands
from amlb_ext.runner.results import (
    find_predictions,
    join_predictions,
    read_predictions,
    read_results,
)
from amlb_ext.runner.run import run_benchmark
from amlb_ext.runner.run_folder import RunOutcome, UnscoredJob
from amlb_ext.runner.score import compare_scores, score_suite, summarise_scores

__all__ = [
    "Checkout",
    "RunOutcome",
    "UnscoredJob",
    "compare_scores",
    "ensure_checkout",
    "find_predictions",
    "join_predictions",
    "read_jobs",
    "read_predictions",
    "read_results",
    "rerun_commands",
    "run_benchmark",
    "score_suite",
    "summarise_scores",
]
