"""A suite as a folder from which TabArena's models run on it.

TabArena 0.1.0 takes a table with positions of training and test rows for each fold, and wants no
row in the test part of two folds. So the rows of each fold stand in the table once for each fold
that has them, training rows first, then the test rows of every part.
"""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.core.assets import asset_path
from amlb_ext.core.display import format_count
from amlb_ext.core.errors import PublishError
from amlb_ext.core.files import sha256_file, write_file, write_text
from amlb_ext.core.frames import with_columns
from amlb_ext.core.paths import check_no_links
from amlb_ext.report.notebook import SuiteFold, read_suite_folds
from amlb_ext.suite import SuiteFiles
from amlb_ext.suite.layout import is_fresh

#: Says of a folder that it was written here.
INDEX = "tasks.json"
_SCRIPTS = ("hardsynth_tasks.py", "run_tabarena.py")


@dataclass(frozen=True, kw_only=True)
class TabArenaExport:
    """What was written.

    Attributes
    ----------
    out : Path
    tasks : dict of str to int
        Number of folds by task.
    """

    out: Path
    tasks: dict[str, int]


def export_for_tabarena(
    directory: str | Path, out: str | Path | None = None
) -> TabArenaExport:
    """Write the tasks of a suite for TabArena, with a script that runs its models on them.

    Parameters
    ----------
    directory : path
        A finished suite of tables.
    out : path, optional
        Default: the suite's name with ``_tabarena``, in the current directory. Tables and scripts
        of an earlier export of the same suite are replaced, and its results kept.

    Returns
    -------
    TabArenaExport

    Raises
    ------
    PublishError
        The folder holds something else, or another suite's tasks.
    SuiteError
        There is no finished suite.

    References
    ----------
    https://github.com/autogluon/tabarena, ``run_quickstart_tabarena_custom_datasets.py``
    """
    suite = SuiteFiles.load(directory)
    root = suite.layout.root.resolve()
    folder = Path(out) if out else Path(f"{root.name}_tabarena")
    suite_hash = sha256_file(suite.layout.manifest)
    _check_folder(folder, root, suite_hash)
    entries: list[dict[str, Any]] = []
    index = {"suite": suite.manifest.name, "manifest": suite_hash, "tasks": entries}
    # written first, so that the same command goes on where it stopped, and last, with the tasks
    write_text(folder / INDEX, json.dumps(index, indent=2) + "\n")
    folds_of_task = groupby(read_suite_folds(suite), key=lambda fold: fold.task)
    for task, folds in folds_of_task:
        entries.append(_write_task(folder / "tasks", task, list(folds)))
    for name in _SCRIPTS:
        script = asset_path("resources", "tabarena", name)
        write_file(folder / name, partial(shutil.copyfile, script))
    write_text(folder / INDEX, json.dumps(index, indent=2) + "\n")
    return TabArenaExport(
        out=folder, tasks={entry["name"]: entry["folds"] for entry in entries}
    )


def _check_folder(folder: Path, root: Path, suite_hash: str) -> None:
    """Raise where the folder holds what this command did not write, or another suite's tasks."""
    if folder.resolve() == root:
        raise PublishError(
            f"{folder} is the suite itself", "give another folder with -o"
        )
    # whatever else stands there, TabArena's environment among it, is not written to
    for place in (folder / INDEX, folder / "tasks"):
        if place.is_symlink():
            raise PublishError(f"{place} is a link", "give a new folder with -o")
    check_no_links(folder / "tasks")
    if not folder.exists() or is_fresh(folder):
        return
    index = folder / INDEX
    try:
        earlier = json.loads(index.read_text(encoding="utf-8"))["manifest"]
    except (OSError, ValueError, KeyError, TypeError):
        raise PublishError(
            f"{folder} holds something else; nothing was written",
            "give an empty folder or a new one with -o",
        ) from None
    # predictions and TabArena's cache of one suite would be taken for another's
    if earlier != suite_hash:
        raise PublishError(
            f"{folder} holds the tasks of another suite, or of this one before it was changed",
            "give a new folder with -o",
        )


def _write_task(folder: Path, task: str, folds: list[SuiteFold]) -> dict:
    """Write a task's table and what each of its rows is; return its entry of the index."""
    tables = []
    rows = []
    for fold in folds:
        # training rows, under no name, then the test rows of each part with AMLB's fold
        train = with_columns(fold.X, {fold.target: fold.y})
        for (part, index), table in {("", -1): train, **fold.tests}.items():
            tables.append(table)
            role = pd.DataFrame({"source_fold": fold.fold}, index=range(len(table)))
            rows.append(role.assign(part=part, fold=index, row=range(len(table))))
    whole = pd.concat(tables, ignore_index=True)
    first = folds[0]
    if first.labels:
        # by number of the class, so that TabArena's order of labels is the task's
        whole[first.target] = pd.Categorical(
            whole[first.target], categories=first.labels
        )
    roles = pd.concat(rows, ignore_index=True)
    for name, table in ((task, whole), (f"{task}.rows", roles)):
        write = partial(table.to_parquet, index=False)
        write_file(folder / f"{name}.parquet", write)
    return {
        "name": task,
        "kind": first.kind,
        "target": first.target,
        "labels": list(first.labels),
        "folds": len(folds),
    }


def export_summary(export: TabArenaExport, suite: str) -> str:
    """Return what was written, and the commands that run and report it."""
    out = shlex.quote(str(export.out))
    n_folds = sum(export.tasks.values())
    return "\n".join(
        [
            f"{out}: {format_count(len(export.tasks), 'task')} for TabArena, "
            f"{format_count(n_folds, 'fold')}",
            "  install:  pip install tabarena 'autogluon.tabular[lightgbm]>=1.6,<1.7', in an "
            "environment of its own (Python 3.11 to 3.13)",
            f"  run:      (cd {out} && python run_tabarena.py LightGBM RandomForest)",
            f"  report:   hardsynth report {shlex.quote(suite)} --results {out}",
        ]
    )
