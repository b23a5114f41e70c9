"""Open a finished suite, whatever it holds."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd

from amlb_ext.amlb.coding import Coding
from amlb_ext.core.errors import HardsynthError, SuiteError, suggest_nearest
from amlb_ext.core.files import sha256_file
from amlb_ext.core.parquet import read_frame
from amlb_ext.core.paths import check_no_links, no_suite_error
from amlb_ext.suite.definition import amlb_configuration, yaml_text
from amlb_ext.suite.layout import Layout
from amlb_ext.suite.manifest import (
    FORMAT,
    AmlbTask,
    BenchmarkTask,
    Manifest,
    TableManifest,
    TaskEntry,
)
from amlb_ext.suite.read_record import SHOWN
from amlb_ext.suite.sealed_json import open_sealed
from amlb_ext.suite.series_manifest import SeriesManifest
from amlb_ext.suite.task_folder import TaskFolder

#: The manifests by what they say that the suite holds.
_KINDS: Mapping[Any, type[Manifest]] = {
    kind.holds: kind for kind in (TableManifest, SeriesManifest, TaskFolder)
}
#: A command that may be shown as it stands in a manifest: it says nothing to a shell.
_PLAIN_COMMAND = re.compile(r"hardsynth (?:generate|harden) [\w ./=,:+@%#'-]{1,300}")

SomeSuite = TypeVar("SomeSuite", bound="Suite")


@dataclass(frozen=True)
class Suite:
    """A finished suite; :func:`open_suite` opens one.

    Attributes
    ----------
    layout : Layout
    manifest : Manifest
    """

    #: The manifests of suites that :meth:`load` opens.
    reads: ClassVar[type[Manifest]]

    layout: Layout
    manifest: Manifest

    @property
    def root(self) -> Path:
        """The suite's folder."""
        return self.layout.root

    @property
    def name(self) -> str:
        """Of the main benchmark definition."""
        return self.manifest.name

    @property
    def tasks(self) -> Mapping[str, TaskEntry]:
        """The tables of which rows were made hard, by task: none but in a suite of tables."""
        return {}

    @classmethod
    def load(cls: type[SomeSuite], directory: str | Path) -> SomeSuite:
        """Open the suite in ``directory``, where it holds what this class reads.

        Raises
        ------
        SuiteError
            There is no suite, it is unfinished, its manifest is damaged, or it holds something
            else.
        """
        suite = open_suite(directory)
        if not isinstance(suite.manifest, cls.reads):
            raise SuiteError(
                f"{suite.root} holds {suite.manifest.holds}, which this command does not take",
                "hardsynth verify, run, report, export and install take every suite",
            )
        return cls(suite.layout, suite.manifest)

    def unchanged_file(self, path: Path) -> Path:
        """Return a file's path after a check that its bytes are those of the manifest.

        Raises
        ------
        SuiteError
            The file is missing, or was changed after it was written.
        """
        relative = self.layout.relative(path)
        digest = self.manifest.files.get(relative)
        if not path.is_file() or digest not in (None, sha256_file(path)):
            raise SuiteError(
                f"{relative} of the suite is missing, or was changed after it was written",
                f"hardsynth verify {shlex.quote(str(self.root))} names all such files, and makes "
                "them again with --repair",
            )
        return path

    def definition_entries(self) -> dict[str, list[dict[str, Any]]]:
        """Return the content of the suite's benchmark definitions by name, the main one first."""

        def place(task: BenchmarkTask, file: str) -> str:
            return task.own_place(self.root, file)

        return self.manifest.definitions(place)

    def definition_texts(self, root: Path | None = None) -> dict[Path, str]:
        """Return the text of each definition, and of fev's, by its file.

        Parameters
        ----------
        root : Path, optional
            Where the suite stands, if not where it was opened.
        """
        stands_at = Suite(Layout(root or self.root), self.manifest)
        texts = {}
        for name, entries in stands_at.definition_entries().items():
            texts[self.layout.definition(name)] = yaml_text(entries)
        for relative, text in self.manifest.more_texts(stands_at.root).items():
            texts[self.layout.at(relative)] = text
        return texts

    def configuration(self, *, data: bool = True) -> str:
        """Return AMLB's configuration.

        Parameters
        ----------
        data : bool
            Whether the data stand in the user directory, not at an address.
        """
        return yaml_text(amlb_configuration(self.manifest.seed, data=data))


def open_suite(directory: str | Path) -> Suite:
    """Open the suite in a folder, of whatever kind.

    Raises
    ------
    SuiteError
        There is no suite, it is unfinished, or its manifest is damaged.
    """
    layout = Layout(Path(directory))
    problem = unfinished_error(layout)
    if problem is not None:
        raise problem
    manifest = read_manifest(layout.manifest)
    if isinstance(manifest, TableManifest):
        return SuiteFiles(layout, manifest)
    return Suite(layout, manifest)


@dataclass(frozen=True)
class SuiteFiles(Suite):
    """A finished suite of tables; open one with :meth:`load`.

    Attributes
    ----------
    layout : Layout
    manifest : TableManifest
    """

    reads = TableManifest

    manifest: TableManifest

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
        main, pair = self.name, self.manifest.pair
        found = {main: self.manifest.main_names, f"{main}_all": set(self.amlb_tasks)}
        if pair is not None:
            found[pair.name] = {twin.task for twin in pair.tasks}
        return found

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
        train = self.unchanged_file(self.layout.at(task.train[fold_index]))
        test = self.unchanged_file(self.layout.at(task.test[fold_index]))
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
        path = self.layout.at(task.provenance[fold_index])
        return read_frame(self.unchanged_file(path))

    def train_provenance(self, amlb_task: str, fold: int) -> pd.DataFrame:
        """Return where each row of an AMLB task's own training file comes from, row for row.

        Parameters
        ----------
        amlb_task : str
            The task itself, whose training rows its parts share, or its ``_hard``.
        fold : int
            The source's fold number.
        """
        path = self.layout.train_provenance(amlb_task, fold)
        return read_frame(self.unchanged_file(path))

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


def stored_predictions(provenance: pd.DataFrame, n_classes: int) -> np.ndarray | None:
    """Return what F predicted by the provenance, ``(n,)`` or ``(n, C)``; None where it says not."""
    names = [f"f_{code}" for code in range(n_classes)] or ["f"]
    if not set(names) <= set(provenance.columns):
        return None
    f = provenance[names].to_numpy(dtype=float)
    return f if n_classes else f[:, 0]


@dataclass(frozen=True)
class WeirdSuite(Suite):
    """A finished folder of tasks that nothing was made hard of."""

    reads = TaskFolder

    manifest: TaskFolder


def unfinished_error(layout: Layout) -> SuiteError | None:
    """Return the error for a directory that is not a finished suite, else None."""
    # the manifest is written last, and the request first
    if layout.manifest.is_file():
        return None
    if layout.request.is_file():
        return SuiteError(
            f"the suite in {layout.root} is unfinished, or has lost its manifest",
            "run the same hardsynth generate command again; finished folds are kept",
        )
    # of a suite without folds the order is written just before the manifest
    if layout.order.is_file() and not layout.started.is_file():
        return SuiteError(
            f"the manifest of the suite in {layout.root} is missing",
            "hardsynth verify DIR --repair makes it again",
        )
    return no_suite_error(layout.root)


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of a suite.

    Parameters
    ----------
    path : Path
        In the folder that AMLB does not look at.

    Raises
    ------
    SuiteError
        Something in the suite is a link; or the file is missing, was changed after it was written,
        is of another version, or names what is not inside the suite.
    """
    remedy = (
        "run the command that made the suite again, or hardsynth verify DIR --repair, which may "
        "need --source SPEC"
    )
    check_no_links(path.parent.parent)
    content = open_sealed(path)
    if content is None:
        if not path.exists():
            raise SuiteError(
                f"there is no {path}", "name the folder of a finished suite"
            )
        raise SuiteError(
            f"{path} is damaged: it was changed after it was written (its seal is broken)",
            remedy,
        )
    if content.get("format") != FORMAT:
        request = content.get("request")
        command = str(request.get("command")) if isinstance(request, dict) else ""
        if not _PLAIN_COMMAND.fullmatch(command):
            command = "the command that made it"
        form = str(content.get("format"))[:SHOWN]
        raise SuiteError(
            f"{path} has format {form}, this version of hardsynth reads {FORMAT}",
            f"make the suite again in another folder: {command}",
        )
    holds = content.get("holds")
    kind = _KINDS.get(holds) if isinstance(holds, str) else None
    try:
        if kind is None:
            raise ValueError(f"holds: it is none of {', '.join(_KINDS)}")
        return kind.from_json(content)
    except (ValueError, OverflowError, HardsynthError) as error:
        raise SuiteError(
            f"{path} is damaged: {error}; nothing of it was used", remedy
        ) from None
