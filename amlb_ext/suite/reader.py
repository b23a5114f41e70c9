"""Open a finished suite."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from amlb_ext.core.errors import SuiteError, suggest_nearest
from amlb_ext.core.parquet import read_frame
from amlb_ext.core.paths import no_suite_error
from amlb_ext.suite.coding import Coding
from amlb_ext.suite.layout import FORECAST_MANIFEST, MAIN_SUFFIXES, Layout
from amlb_ext.suite.manifest import AmlbTask, Manifest, TaskEntry, read_manifest


@dataclass(frozen=True)
class SuiteFiles:
    """A finished suite; open one with :meth:`load`.

    Attributes
    ----------
    layout : Layout
    manifest : Manifest
    """

    layout: Layout
    manifest: Manifest

    @classmethod
    def load(cls, directory: str | Path) -> SuiteFiles:
        """Open the suite in ``directory``.

        Raises
        ------
        SuiteError
            There is no suite, it is unfinished, or its manifest is damaged.
        """
        layout = Layout(Path(directory))
        problem = unfinished_error(layout)
        if problem is not None:
            raise problem
        return cls(layout, read_manifest(layout.manifest))

    @property
    def tasks(self) -> dict[str, TaskEntry]:
        """The tasks by name."""
        return self.manifest.tasks

    @property
    def amlb_tasks(self) -> dict[str, AmlbTask]:
        """The entries of the benchmark definitions by name."""
        return self.manifest.amlb_tasks

    @property
    def definitions(self) -> dict[str, set[str]]:
        """The names of the AMLB tasks of each benchmark definition, by its name."""
        main_names = set()
        for task in self.amlb_tasks.values():
            if task.suffix in MAIN_SUFFIXES:
                main_names.add(task.name)
        manifest = self.manifest
        definitions = {
            manifest.name: main_names,
            f"{manifest.name}_all": set(self.amlb_tasks),
        }
        if manifest.pair is not None:
            definitions[manifest.pair.name] = set(manifest.pair.tasks)
        return definitions

    def amlb_task(self, name: str) -> AmlbTask:
        """Return an entry of the benchmark definitions.

        Raises
        ------
        SuiteError
            The suite has no such AMLB task.
        """
        if name not in self.amlb_tasks:
            remedy = suggest_nearest(name, self.amlb_tasks)
            raise SuiteError(f"no AMLB task {name!r}", remedy)
        return self.amlb_tasks[name]

    def coding(self, amlb_task: str) -> Coding:
        """Return the coding of an AMLB task's files."""
        # the files of all parts of a task are written alike
        task = self.amlb_task(amlb_task).task
        return self.tasks[task].coding

    def pair(self, amlb_task: str, fold_index: int) -> tuple[Path, Path]:
        """Return training and test file of AMLB's fold ``fold_index``."""
        task = self._task_with_fold(amlb_task, fold_index)
        train = self.layout.at(task.train[fold_index])
        test = self.layout.at(task.test[fold_index])
        for path in (train, test):
            if not path.is_file():
                raise SuiteError(
                    f"{self.layout.relative(path)} of the suite is missing",
                    "hardsynth verify DIR --repair makes it again",
                )
        return train, test

    def provenance(self, amlb_task: str, fold_index: int) -> pd.DataFrame:
        """Return where each row of a test file comes from, row for row.

        Parameters
        ----------
        amlb_task : str
        fold_index : int
            AMLB's fold number, 0, 1, ...

        Returns
        -------
        DataFrame of shape (rows of the test file, p)
        """
        task = self._task_with_fold(amlb_task, fold_index)
        return read_frame(self.layout.at(task.provenance[fold_index]))

    def train_provenance(self, amlb_task: str, fold: int) -> pd.DataFrame:
        """Return where each row of an AMLB task's own training file comes from, row for row.

        Parameters
        ----------
        amlb_task : str
            The task itself, whose training rows its parts share, or its ``_hard``.
        fold : int
            The source's fold number.
        """
        return read_frame(self.layout.train_provenance(amlb_task, fold))

    def _task_with_fold(self, name: str, fold_index: int) -> AmlbTask:
        """Return an AMLB task after a check that it has a fold of this number."""
        task = self.amlb_task(name)
        # -1 would read the last fold's files
        if not 0 <= fold_index < len(task.folds):
            raise SuiteError(
                f"{name} has no fold {fold_index}",
                f"use 0 to {len(task.folds) - 1}, as AMLB does",
            )
        return task


def unfinished_error(layout: Layout) -> SuiteError | None:
    """Return the error for a directory that is not a finished suite, else None."""
    # the manifest is written last, and the request first
    if layout.manifest.is_file():
        return None
    if (layout.own / FORECAST_MANIFEST).is_file():
        return SuiteError(
            f"{layout.root} holds forecasting tasks, which this command does not take",
            "use hardsynth run, report or verify",
        )
    if layout.request.is_file():
        return SuiteError(
            f"the suite in {layout.root} is unfinished",
            "run the same hardsynth generate command again; finished folds are kept",
        )
    return no_suite_error(layout.root)
