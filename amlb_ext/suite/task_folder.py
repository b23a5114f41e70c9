"""A folder of tasks: an AMLB user directory of whole tasks, with nothing made hard.

It is a suite without baseline and certificates; it has side files, which AMLB does not read and a
framework may: raw texts and unlabelled rows.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from amlb_ext.core.display import text_table
from amlb_ext.core.paths import amlb_places
from amlb_ext.core.task import Kind, Origin
from amlb_ext.suite.manifest import AmlbTask, BenchmarkTask, Place
from amlb_ext.suite.read_record import Count, InnerPath, PlainName, check_distinct
from amlb_ext.suite.repeatable import RepeatableManifest

#: What the data of a task are, for people.
_ORIGINS = {"made": "made", "embedded": "embedded data", "real": "real data"}


@dataclass(frozen=True, kw_only=True)
class FolderFold:
    """Files of one fold, relative to the folder; texts and unlabelled rows may be missing.

    Attributes
    ----------
    train, test : str
    train_text, test_text : str
        The raw text of each row, one a line, in the order of the rows.
    unlabelled : str
        Rows of the same columns without a target.
    train_rows, test_rows : int
    """

    train: InnerPath
    test: InnerPath
    train_text: InnerPath | Literal[""] = ""
    test_text: InnerPath | Literal[""] = ""
    unlabelled: InnerPath | Literal[""] = ""
    train_rows: Count
    test_rows: Count

    @property
    def files(self) -> list[str]:
        """All that it has."""
        side = (self.train_text, self.test_text, self.unlabelled)
        return [self.train, self.test, *filter(None, side)]


@dataclass(frozen=True, kw_only=True)
class FolderTask:
    """A task of a folder: what is asked, where its data come from, and its files.

    The fields are those of :class:`amlb_ext.tasks.record.WeirdTask`.
    """

    name: PlainName
    title: str
    statement: str
    target: str
    type: Kind
    labels: tuple[str, ...]
    origin: str
    licence: str
    citation: str = ""
    stands_for: str = ""
    row_shape: tuple[Count, ...] = ()
    group: str = ""
    folds: tuple[FolderFold, ...] = ()

    @property
    def amlb_task(self) -> AmlbTask:
        """The task's entry of the definition."""
        n_folds = len(self.folds)
        return AmlbTask(
            name=self.name,
            task=self.name,
            suffix="",
            type=self.type,
            target=self.target,
            description=f"{self.title} ({_ORIGINS.get(self.origin, self.origin)})",
            metric=["acc", "logloss"],
            folds=list(range(n_folds)),
            train=[fold.train for fold in self.folds],
            test=[fold.test for fold in self.folds],
            # every row is the task's own
            provenance=[],
            train_rows=[fold.train_rows for fold in self.folds],
            test_rows=[fold.test_rows for fold in self.folds],
        )


@dataclass(frozen=True, kw_only=True)
class TaskFolder(RepeatableManifest):
    """The manifest of a folder of tasks.

    Attributes
    ----------
    literal : bool
        All folds have the same data.
    salt : str
        What entered the draws beside the seed: a secret, since how they are drawn is public.
    tasks : tuple of FolderTask
    """

    holds = "weird tasks"
    no_refits = "a folder of tasks, which has no F"

    literal: bool
    salt: str
    tasks: tuple[FolderTask, ...]

    @property
    def n_folds(self) -> int:
        """How many folds every task has."""
        return len(self.tasks[0].folds)

    @property
    def listed(self) -> list[AmlbTask]:
        """Each task as AMLB has it."""
        return [task.amlb_task for task in self.tasks]

    @property
    def main_names(self) -> set[str]:
        """The names of all tasks."""
        return {task.name for task in self.tasks}

    @property
    def origins(self) -> dict[str, Origin]:
        """What the tasks say of themselves."""
        return {
            task.name: Origin(f"weird/{task.name}", {}, task.licence, task.citation)
            for task in self.tasks
        }

    @property
    def own_files(self) -> set[str]:
        """The tables, the files beside them, and the order."""
        files = self.order_files
        for task in self.tasks:
            for fold in task.folds:
                files.update(fold.files)
        return files

    @property
    def constraints(self) -> str:
        """Those with the number of folds, which the tasks leave to them."""
        return constraints_text(self.n_folds)

    def definitions(
        self, place: Callable[[BenchmarkTask, str], str]
    ) -> dict[str, list[dict[str, Any]]]:
        """Return the one definition, by its name."""
        return {self.name: super().definitions(place)[self.name]}

    def check(self) -> None:
        """Raise ``ValueError`` where the tasks have other numbers of folds."""
        if self.pair is not None:
            raise ValueError("pair: tasks that nothing was made hard of are no twin")
        check_distinct("tasks", [task.name for task in self.tasks])
        n_folds = {len(task.folds) for task in self.tasks}
        if len(n_folds) != 1 or 0 in n_folds:
            raise ValueError(
                "tasks: there are none, or they have other numbers of folds"
            )

    def _entry(self, task: AmlbTask, place: Place) -> dict[str, Any]:
        entry = task.entry(place)
        # without a number of its own the constraint's holds
        del entry["folds"]
        return entry


def constraints_text(folds: int) -> str:
    """Return the constraints ``weirdml`` and ``weirdml_quick`` for this many folds.

    A task of the folder has no number of folds of its own, so the constraint's holds.

    Examples
    --------
    >>> "folds: 15" in constraints_text(15), "folds: 3" in constraints_text(3)
    (True, True)
    """
    return (
        "# Constraints for AMLB, the third word of\n"
        "#   python runbenchmark.py FRAMEWORK weird CONSTRAINT -u DIR\n"
        "# A fold is a run: WeirdML asks for at least 15, of which this folder has "
        f"{folds}.\n---\n"
        f"weirdml:\n  folds: {folds}\n  max_runtime_seconds: 3600\n  cores: 1\n\n"
        f"weirdml_quick:\n  folds: {min(folds, 2)}\n  max_runtime_seconds: 60\n  cores: 1\n"
    )


def folder_summary(folder: TaskFolder, out: str) -> str:
    """Return what was written, and the commands that check, run and report it."""
    rows: list[list[Any]] = []
    for task in folder.tasks:
        fold = task.folds[0]
        stands_for = f", stands for {task.stands_for}" if task.stands_for else ""
        data = f"{task.origin}{stands_for}"
        rows.append([task.name, fold.train_rows, fold.test_rows, data])
    table = text_table(["task", "training rows", "test rows", "data"], rows)
    where = shlex.quote(out)
    sets = "one set of data for all" if folder.literal else "a draw each"
    return (
        f"{table}\n{folder.n_folds} folds, {sets}\n"
        f"  check:   hardsynth verify {where}\n"
        f"  run:     hardsynth run FRAMEWORK weirdml -u {where}\n"
        "           or AMLB itself: python runbenchmark.py FRAMEWORK weird weirdml "
        f"{amlb_places(out)}\n"
        f"  report:  hardsynth report {where} --results results"
    )
