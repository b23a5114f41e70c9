"""A task of a suite in memory, as its own files hold it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from amlb_ext.core.task import Column, Kind
from amlb_ext.suite import Part, Rows, SuiteFiles, amlb_name
from amlb_ext.suite.copy_counts import (
    MADE_PARTS,
    POPULATION,
    CopyCounts,
    count_copies,
    read_hard,
    read_population,
)

#: What is scored: all real rows, the bad ones, what was made from these, and the rows of the main
#: test file that were made for the region.
PARTS = ("full", "bad", "ga", "synthetic", POPULATION)
#: Parts that consist of made rows.
MADE = (*MADE_PARTS, POPULATION)
#: Columns of the provenance with the losses of F's re-fits: ``null_0``, ``null_1``, ...
REFIT_PREFIX = "null_"


#: Training rows of a fold, and its test rows by part.
FoldRows = tuple[Rows, dict[str, Rows]]


@dataclass(frozen=True, kw_only=True)
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
        Per source fold: training rows, and test rows by suffix; ``population`` are those of this
        origin among the rows of the main test file.
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
    folds: dict[int, FoldRows]
    summaries: tuple[Mapping[str, Any], ...] = ()
    hard: Mapping[int, Part] = field(default_factory=dict)

    def tampered(self, part: str, change: Callable[[Rows], Rows]) -> TaskRows:
        """Return the task with ``change(rows)`` in place of a part: for planted cases.

        What the suite stored of F's re-fits is dropped, since it speaks of the rows as they were.
        """
        folds = {}
        for fold, (train, parts) in self.folds.items():
            changed = {}
            for name, rows in parts.items():
                altered = change(rows) if name == part else rows
                changed[name] = _without_refits(altered)
            folds[fold] = (train, changed)
        return replace(self, folds=folds)

    def holds_refits(self, refits: int) -> bool:
        """Whether the files hold the losses of so many re-fits of F for every row scored.

        They are the fits of F without a fifth of the training rows each, see
        :mod:`amlb_ext.hardening.prepare`: fitted when the suite was made, for other ends too.
        """
        wanted = {f"{REFIT_PREFIX}{number}" for number in range(refits)}
        for _, parts in self.folds.values():
            for rows in parts.values():
                if len(rows) and not wanted <= set(rows.provenance.columns):
                    return False
        return True

    def count_refits(self, most: int) -> int:
        """Return of how many re-fits of F, up to ``most``, the files hold all losses."""
        count = most
        while count and not self.holds_refits(count):
            count -= 1
        return count

    def count_copies(self) -> CopyCounts:
        """Count what made rows repeat, over all folds."""
        counts = CopyCounts()
        for fold, (train, parts) in self.folds.items():
            if "full" not in parts:
                continue
            made = [parts[name] for name in MADE if name in parts]
            counts += count_copies(
                train=train, test=parts["full"], made=made, hard=self.hard.get(fold)
            )
        return counts


def _without_refits(rows: Rows) -> Rows:
    columns = rows.provenance.columns
    kept = [name for name in columns if not str(name).startswith(REFIT_PREFIX)]
    return replace(rows, provenance=rows.provenance[kept])


def read_task(suite: SuiteFiles, task: str) -> TaskRows:
    """Read the files of one task of a finished suite.

    Raises
    ------
    SuiteError
        No such task, or a damaged file.
    """
    suite.amlb_task(amlb_name(task, "full"))  # raises where there is none
    entry = suite.tasks[task]
    coding = entry.coding
    folds: dict[int, FoldRows] = {}
    for part in PARTS:
        if part == POPULATION:
            continue
        name = amlb_name(task, part)
        # a task without made rows has no such parts
        if name not in suite.amlb_tasks:
            continue
        # AMLB numbers the folds of a part from 0, the source's numbers may have gaps
        for index, fold in enumerate(suite.amlb_tasks[name].folds):
            train_file, test_file = suite.pair(name, index)
            if fold not in folds:  # all parts share the fold's training rows
                features, target = coding.decode(coding.read_csv(train_file))
                provenance = _train_provenance(suite, task, fold, len(features))
                folds[fold] = (Rows(features, target, provenance), {})
            _, parts = folds[fold]
            features, target = coding.decode(coding.read_csv(test_file))
            parts[part] = Rows(features, target, suite.provenance(name, index))
    for fold, (_, parts) in folds.items():
        population = read_population(suite, task, fold)
        if population is not None:
            parts[POPULATION] = population
    hard = {}
    for fold in folds:
        pair = read_hard(suite, task, fold)
        if pair is not None:
            hard[fold] = pair
    # in the order of the folds, whatever order they were finished in
    summaries = [entry.folds[fold].summary for fold in sorted(entry.folds)]
    return TaskRows(
        name=task,
        kind=entry.kind,
        labels=coding.labels,
        columns=tuple(column.as_column() for column in coding.columns),
        settings=suite.manifest.config,
        seed=suite.manifest.seed,
        folds=folds,
        summaries=tuple(summaries),
        hard=hard,
    )


def _train_provenance(
    suite: SuiteFiles, task: str, fold: int, n_rows: int
) -> pd.DataFrame:
    """Return where the training rows of a fold come from; no columns where that is not known."""
    path = suite.layout.train_provenance(task, fold)
    if path.is_file():
        provenance = suite.train_provenance(task, fold)
        if len(provenance) == n_rows:
            return provenance
    return pd.DataFrame(index=range(n_rows))
