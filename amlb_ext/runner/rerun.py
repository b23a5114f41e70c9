"""Commands that run some jobs again, and no others."""

from __future__ import annotations

import shlex
from pathlib import Path

import pandas as pd

from amlb_ext.runner.written import CONSTRAINT
from amlb_ext.suite import Suite
from amlb_ext.suite.layout import MAIN_SUFFIXES


def rerun(jobs: pd.DataFrame, suite: Suite, results: Path | str) -> list[str]:
    """Return the commands that run again the jobs in ``jobs``, and no others.

    AMLB runs every chosen fold of every chosen task, so tasks that lack the same folds share a
    command.

    Parameters
    ----------
    jobs : DataFrame
        Rows of :func:`read_jobs`.
    suite : Suite
    results : path
        For ``-r``.

    Returns
    -------
    list of str
        For a POSIX shell.
    """
    commands = []
    columns = ["name", "constraint", "benchmark"]
    root, main = str(suite.layout.root), suite.manifest.name
    # AMLB lower-cases definitions in the names of folders
    spelled = {name.lower(): name for name in suite.definitions} | {"": main}
    for (name, constraint, benchmark), some in jobs.groupby(columns, sort=False):
        if constraint == CONSTRAINT:  # no run of AMLB's: `hardsynth score` wrote it
            commands.append(shlex.join(["hardsynth", "score", root, "-r", str(results)]))
            continue
        suffixes = {suite.amlb_tasks[task].suffix for task in some["amlb_task"]}
        installed = main if suffixes <= set(MAIN_SUFFIXES) else f"{main}_all"  # under another name
        definition = spelled.get(str(benchmark).lower(), installed)
        tasks: dict[tuple[int, ...], list[str]] = {}
        for task, folds in some.groupby("amlb_task", sort=False)["fold"]:
            tasks.setdefault(tuple(sorted(folds)), []).append(str(task))
        for which, names in tasks.items():
            words = ["hardsynth", "run", str(name), *([str(constraint)] if constraint else [])]
            words += ["-u", root, "-b", definition]
            words += ["-r", str(results)]
            words += [word for task in names for word in ("-t", task)]
            if len(which) < max(len(suite.amlb_tasks[task].folds) for task in names):
                words += [word for fold in which for word in ("-f", str(fold))]
            commands.append(shlex.join(words))
    return list(dict.fromkeys(commands))
