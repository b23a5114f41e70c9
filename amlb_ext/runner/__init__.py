"""The runner wing: AMLB itself, always as a subprocess, and what it wrote.

``checkout`` finds AMLB or clones it, and makes the virtual environment that it runs in
(``ensure_checkout``, ``Checkout``) · ``setup`` one framework's set-up, and the versions and
programs that it takes · ``run`` runs of AMLB (``run_benchmarks``), stopped ones gone on with ·
``processes`` AMLB and other commands as subprocesses, and a lock between processes ·
``run_folder`` what a run's folder and log tell, and whether it did
all that was asked (``RunOutcome``, ``UnscoredJob``) · ``results`` scores and predictions, read,
joined to provenance and written (``read_results``, ``read_predictions``, ``find_predictions``,
``join_predictions``) · ``jobs`` which jobs of a suite have been run, what came of each, and the
commands that run some of them again (``read_jobs``, ``rerun_commands``) · ``install`` a suite in a
user's own AMLB configuration, not imported here · ``score`` the suite's own integrations scored
without AMLB (``compare_scores``) · ``agreement`` whether the F that was run is the F of the suite.
"""

from amlb_ext.runner.jobs import read_jobs
from amlb_ext.runner.results import (
    find_predictions,
    join_predictions,
    read_predictions,
)
from amlb_ext.runner.run import run_benchmarks
from amlb_ext.runner.score import compare_scores, summarise_scores

__all__ = [
    "compare_scores",
    "find_predictions",
    "join_predictions",
    "read_jobs",
    "read_predictions",
    "run_benchmarks",
    "summarise_scores",
]
