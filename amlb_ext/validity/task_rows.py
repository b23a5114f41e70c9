"""A task of a suite in memory, as its own files hold it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from amlb_ext.core.task import Column, Kind
from amlb_ext.suite import Part, Rows, Suite, amlb_name
from amlb_ext.suite.copy_counts import read_hard

#: What is scored: all real rows, the bad ones, and what was made from these.
PARTS = ("full", "bad", "ga", "synthetic")


@dataclass(frozen=True)
class TaskRows:
    """A task of a suite in memory.

    Attributes
    ----------
    name : str
    kind : Kind
    labels : tuple of str
    columns : tuple of Column
    settings : mapping
        The suite's configuration.
    seed : int
        The suite's seed.
    folds : dict of int to (Rows, dict of str to Rows)
        Per source fold: training rows, and test rows by suffix.
    summaries : tuple of mapping
        The figures of each fold's record.
    hard : dict of int to Part
        Both files of ``_hard``, per source fold that has it.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    columns: tuple[Column, ...]
    settings: Mapping[str, Any]
    seed: int
    folds: dict[int, tuple[Rows, dict[str, Rows]]]
    summaries: tuple[Mapping[str, Any], ...] = ()
    hard: Mapping[int, Part] = field(default_factory=dict)

    def tampered(self, part: str, change: Any) -> TaskRows:
        """Return the task with ``change(rows)`` in place of a part: for planted cases.

        What the suite stored of F's re-fits is dropped, since it speaks of the rows as they were.
        """

        def bare(rows: Rows) -> Rows:
            kept = [c for c in rows.provenance.columns if not str(c).startswith("null_")]
            return replace(rows, provenance=rows.provenance[kept])

        folds = {
            fold: (train, {n: bare(change(r) if n == part else r) for n, r in parts.items()})
            for fold, (train, parts) in self.folds.items()
        }
        return replace(self, folds=folds)


def read_task(suite: Suite, task: str) -> TaskRows:
    """Read the files of one task of a finished suite.

    Raises
    ------
    SuiteError
        No such task, or a damaged file.
    """
    suite.amlb_task(amlb_name(task, "full"))
    entry = suite.tasks[task]
    coding = entry.coding
    folds: dict[int, tuple[Rows, dict[str, Rows]]] = {}
    for part in PARTS:
        name = amlb_name(task, part)
        if name not in suite.amlb_tasks:
            continue
        for index, fold in enumerate(suite.amlb_tasks[name].folds):
            train_file, test_file = suite.pair(name, index)
            if fold not in folds:
                train = coding.decode(coding.read_csv(train_file))
                folds[fold] = (Rows(*train, pd.DataFrame(index=train[0].index)), {})
            test = coding.decode(coding.read_csv(test_file))
            folds[fold][1][part] = Rows(*test, suite.provenance(name, index))
    found = {fold: read_hard(suite, task, fold) for fold in folds}
    hard = {fold: pair for fold, pair in found.items() if pair is not None}
    columns = tuple(column.as_column() for column in coding.columns)
    return TaskRows(
        task,
        entry.kind,
        coding.labels,
        columns,
        suite.manifest.config,
        suite.manifest.seed,
        folds,
        tuple(entry.folds[k].get("summary", {}) for k in sorted(entry.folds)),
        hard,
    )
