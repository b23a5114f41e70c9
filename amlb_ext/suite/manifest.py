"""The manifest: what a suite is made of, how it came to be, and the way back to the sources.

Every suite has one, ``hardsynth/manifest.json``, written last. Of tasks whose files are a pair of
tables for each fold it is a :class:`TableManifest`, of tasks in long tables of series a
:class:`~amlb_ext.suite.series_manifest.SeriesManifest`, of tasks that nothing was made hard of a
:class:`~amlb_ext.suite.task_folder.TaskFolder`. It holds no time and no absolute path, so the same
request gives the same bytes, and the suite can be moved.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from amlb_ext.amlb.coding import Coding
from amlb_ext.core.assets import asset_path
from amlb_ext.core.files import write_text
from amlb_ext.core.notes import Note
from amlb_ext.core.task import Kind, Origin
from amlb_ext.suite.layout import (
    MAIN_SUFFIXES,
    SUFFIXES,
    TABLE_INTEGRATION,
    Layout,
    amlb_name,
)
from amlb_ext.suite.read_record import (
    Count,
    InnerPath,
    PlainName,
    Seed,
    check_distinct,
    record_from_json,
)
from amlb_ext.suite.sealed_json import sealed_text

#: Incremented when the form changes; no other form is read.
FORMAT = 4
#: What stands before the request in the text of a manifest.
_REQUEST_KEY = '\n "request": '
#: Keys of a task that decide how AMLB runs it, in the order in which they are written.
LIMITS = (
    "max_runtime_seconds",
    "cores",
    "max_mem_size_mb",
    "min_vol_size_mb",
    "ec2_instance_type",
    "ec2_volume_type",
    "quantile_levels",
)
#: From a file of a task, relative to the suite, to how a definition names it.
Place = Callable[[str], str]
SomeManifest = TypeVar("SomeManifest", bound="Manifest")


class BenchmarkTask(ABC):
    """One entry of the benchmark definitions, whatever form its files have.

    Attributes
    ----------
    name : str
    """

    name: str

    @property
    @abstractmethod
    def data_files(self) -> list[str]:
        """The files that AMLB reads, relative to the suite."""

    @property
    @abstractmethod
    def names_in_archive(self) -> dict[str, str]:
        """These files by the names that AMLB looks for in an archive; empty if it unpacks none."""

    @abstractmethod
    def own_place(self, root: Path, file: str) -> str:
        """Return how the definitions of a suite that stands at ``root`` name one of the files."""


@dataclass(frozen=True, kw_only=True)
class TwinTask:
    """A task of a hard twin.

    Attributes
    ----------
    name : str
        In the original.
    task : str
        The suite's task that stands in its place.
    what : str
        What its rows or series are, for people.
    limits : dict
        What the original states of :data:`LIMITS`.
    metric : list of str, optional
        None for AMLB's own.
    """

    name: str
    task: PlainName
    what: str
    limits: dict[str, Any]
    metric: list[str] | None


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The hard twin of an existing benchmark, see :mod:`amlb_ext.suite.twin`.

    Attributes
    ----------
    name : str
        Of the twin's definition.
    of : str
        Name of the original's definition.
    tasks : tuple of TwinTask
        In the definition's order.
    """

    name: PlainName
    of: str
    tasks: tuple[TwinTask, ...]

    def entries(self, own: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the content of the twin's definition.

        Limits stand in it only where the original's own entry (or its defaults) has them.

        Parameters
        ----------
        own : mapping of str to mapping
            The entries of the suite's tasks; the data sets are taken from them.
        """
        entries = []
        for twin in self.tasks:
            task = own[twin.task]
            # keys are written in this order
            entry: dict[str, Any] = {
                "name": twin.name,
                # AMLB's results name the task but not the benchmark
                "id": f"{self.name}/{twin.name}",
                "description": twin.what,
                "folds": task["folds"],
            }
            for limit in LIMITS:
                if limit in twin.limits:
                    entry[limit] = twin.limits[limit]
            entry["dataset"] = task["dataset"]
            if twin.metric is not None:
                entry["metric"] = list(twin.metric)
            if "quantile_levels" in task:
                entry.setdefault("quantile_levels", list(task["quantile_levels"]))
            entries.append(entry)
        return entries


@dataclass(frozen=True, kw_only=True)
class Manifest(ABC):
    """What the manifest of every suite says.

    Attributes
    ----------
    version : str
        The tool's.
    name : str
        Of the main benchmark definition.
    seed : int
        Of generation and of AMLB's runs.
    files : dict of str to str
        The sha256 of every file but the manifest, by relative path.
    pair : Pair, optional
        The benchmark that this suite is the hard twin of.
    """

    #: What the suite holds, in words; a manifest states it, too.
    holds: ClassVar[str]
    #: Whether definitions name the folder of the suite. They have no checksum then, and are made
    #: anew where the suite was moved.
    names_its_folder: ClassVar[bool] = False
    #: Why F is not fitted again for a report, in words; empty where it can be.
    no_refits: ClassVar[str] = ""
    #: Packaged integrations that the suite has, whichever frameworks it names.
    integrations: ClassVar[tuple[str, ...]] = ()

    version: str
    name: PlainName
    seed: Seed
    files: dict[InnerPath, str] = field(default_factory=dict)
    pair: Pair | None = None

    @property
    @abstractmethod
    def listed(self) -> list[Any]:
        """The entries of the definitions, each a :class:`BenchmarkTask`, in their order."""

    @property
    @abstractmethod
    def main_names(self) -> set[str]:
        """The names of those that stand in the main definition."""

    @property
    @abstractmethod
    def own_files(self) -> set[str]:
        """The data files and what is known of them: the manifest must list them."""

    @abstractmethod
    def _entry(self, task: Any, place: Place) -> dict[str, Any]:
        """Return a task's entry of a definition."""

    @property
    def pairs(self) -> list[AmlbTask]:
        """The tasks whose files are a pair of tables for each fold."""
        return [task for task in self.listed if isinstance(task, AmlbTask)]

    @property
    def baseline(self) -> str:
        """The class of F, where the suite names one of the user's own; else nothing."""
        return ""

    @property
    def baselines(self) -> list[str]:
        """What F is called, as it was typed, once for each F; empty where there is none."""
        return []

    @property
    def certified(self) -> list[str]:
        """The names of what has a certificate, or may be given one."""
        return []

    @property
    def command(self) -> str:
        """The command that makes the suite, for people to read; empty where it is not kept."""
        return ""

    @property
    def constraints(self) -> str:
        """The text of the constraints of AMLB that hardsynth writes into the suite."""
        return asset_path("resources", "constraints.yaml").read_text(encoding="utf-8")

    @property
    def origins(self) -> dict[str, Origin]:
        """Where the rows of each source task come from; empty where no data set is made of them."""
        return {}

    def may_list(self) -> Callable[[str], bool]:
        """Return whether the manifest may list a file beside its own, by relative path."""
        return frozenset[str]().__contains__

    def definitions(
        self, place: Callable[[BenchmarkTask, str], str]
    ) -> dict[str, list[dict[str, Any]]]:
        """Return the content of each of AMLB's benchmark definitions by name, the main one first.

        Parameters
        ----------
        place : callable
            From a task and one of its files to how the definitions name that file.
        """
        entries = {
            task.name: self._entry(task, partial(place, task)) for task in self.listed
        }
        main = [entry for name, entry in entries.items() if name in self.main_names]
        found = {self.name: main, f"{self.name}_all": list(entries.values())}
        if self.pair is not None:
            found[self.pair.name] = self.pair.entries(entries)
        return found

    def more_texts(self, root: Path) -> dict[str, str]:
        """Return files for other programs that name the suite's folder, by relative path."""
        return {}

    @classmethod
    def from_json(cls: type[SomeManifest], entry: Mapping[str, Any]) -> SomeManifest:
        """Read a manifest that :func:`write_manifest` wrote.

        Raises
        ------
        ValueError
            It is damaged, or names what is not inside the suite.
        """
        manifest = record_from_json(cls, entry)
        manifest.check()
        check_distinct("files", manifest.files)
        names = [task.name for task in manifest.listed]
        if not names or len(set(names)) < len(names):
            raise ValueError("there is no task, or one name stands twice")
        if manifest.pair is not None:
            for twin in manifest.pair.tasks:
                if twin.task not in names:
                    raise ValueError(f"pair: the suite has no task {twin.task!r}")
        return manifest

    @abstractmethod
    def check(self) -> None:
        """Raise ``ValueError`` where the parts of a manifest do not fit each other."""


@dataclass(frozen=True, kw_only=True)
class SuiteRequest:
    """What a suite was generated from; a repair reads the same sources in the same way.

    Attributes
    ----------
    command : str
        The command that makes the suite, without local folders; for people.
    sources : list of str
        In the command's order, without local folders; empty where they are unknown.
    target : str, optional
        The one target column that was named.
    targets : list of str
        Several targets of one table.
    kind : str, optional
        Of the target, where it was named.
    twin : bool
        The suite is the hard twin of the benchmark that its one source defines.
    """

    command: str
    sources: list[str] = field(default_factory=list)
    target: str | None = None
    targets: list[str] = field(default_factory=list)
    kind: str | None = None
    twin: bool = False


@dataclass(frozen=True)
class AmlbTask(BenchmarkTask):
    """One entry of the benchmark definitions, of a training and a test table for each fold.

    Attributes
    ----------
    name, task, suffix : str
        ``name`` is ``task`` with ``suffix``.
    type : Kind
    target : str
        The target's name in the files.
    description : str
    metric : list of str, optional
        Metrics to name in the definition; None for AMLB's own.
    folds : list of int
        The source's number of each of AMLB's folds 0, 1, ...
    train, test, provenance : list of str
        Per AMLB fold, paths relative to the suite's root.
    train_rows, test_rows : list of int
    """

    name: PlainName
    task: PlainName
    suffix: str
    type: Kind
    target: str
    description: str
    metric: list[str] | None
    folds: list[Count]
    train: list[InnerPath]
    test: list[InnerPath]
    provenance: list[InnerPath]
    train_rows: list[Count]
    test_rows: list[Count]

    @property
    def data_files(self) -> list[str]:
        """The training files, then the test files."""
        return [*self.train, *self.test]

    @property
    def names_in_archive(self) -> dict[str, str]:
        """Named by the task, whatever task the files belong to, and numbered as AMLB does."""
        names = {}
        for side, files in (("train", self.train), ("test", self.test)):
            for fold, file in enumerate(files):
                names[f"{self.name}_{side}_{fold}.csv"] = file
        return names

    def own_place(self, root: Path, file: str) -> str:
        """Return the file in the user directory, wherever that stands."""
        return f"{{user}}/{file}"

    def entry(self, place: Place) -> dict[str, Any]:
        """Return the task's entry of a definition.

        Budgets and cores are left out: a task's own would override the user's constraint.
        """
        # keys are written in this order
        entry: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "folds": len(self.folds),
            "dataset": {
                "train": [place(file) for file in self.train],
                "test": [place(file) for file in self.test],
                "target": self.target,
                "type": self.type.value,
            },
        }
        if self.metric is not None:
            entry["metric"] = list(self.metric)
        return entry


@dataclass(frozen=True, kw_only=True)
class PartChanges:
    """Cells replaced, by column, and rows dropped where one part of a fold was written."""

    substituted: dict[str, Count] = field(default_factory=dict)
    dropped: Count = 0


@dataclass(frozen=True, kw_only=True)
class FoldEntry:
    """What a manifest keeps of a fold.

    Attributes
    ----------
    key : str
        Hash of everything the fold depends on.
    notes : tuple of Note
    summary : dict
        The caller's figures.
    parts : dict of str to PartChanges
        By suffix.
    """

    key: str
    notes: tuple[Note, ...]
    summary: dict[str, Any]
    parts: dict[str, PartChanges]


@dataclass(frozen=True)
class TaskEntry:
    """A task of the suite: where it came from and how it is written.

    Attributes
    ----------
    source_name, target : str
        Names in the source.
    kind : Kind
    origin : Origin
    content_hash : str
    coding : Coding
    notes : list of str
    folds : dict of int to FoldEntry
        By the source's number of the fold.
    """

    source_name: str
    target: str
    kind: Kind
    origin: Origin
    content_hash: str
    coding: Coding
    notes: list[str]
    folds: dict[Count, FoldEntry]


@dataclass(frozen=True, kw_only=True)
class TableManifest(Manifest):
    """The manifest of a suite of hard tasks that are tables.

    Attributes
    ----------
    request : SuiteRequest
    config : dict
    tasks : dict of str to TaskEntry
    amlb_tasks : dict of str to AmlbTask
    failures : list of dict
        Folds and tasks that could not be generated, with reasons.
    order : list of str
        Names of the tasks as the definitions list them.
    """

    holds = "tables"
    # a framework that a user adds may run any scikit-learn model
    integrations = (TABLE_INTEGRATION,)

    request: SuiteRequest
    config: dict[str, Any]
    tasks: dict[PlainName, TaskEntry]
    amlb_tasks: dict[PlainName, AmlbTask]
    failures: list[dict[str, Any]] = field(default_factory=list)
    order: list[PlainName] = field(default_factory=list)

    @property
    def command(self) -> str:
        """The command that makes the suite, for people to read."""
        return self.request.command

    @property
    def listed(self) -> list[AmlbTask]:
        """The AMLB tasks in the order of the definitions."""
        return sorted(
            self.amlb_tasks.values(),
            key=lambda task: (self.order.index(task.task), SUFFIXES.index(task.suffix)),
        )

    @property
    def main_names(self) -> set[str]:
        """The names of the whole test folds and of the main tasks beside them."""
        tasks = self.amlb_tasks.values()
        return {task.name for task in tasks if task.suffix in MAIN_SUFFIXES}

    @property
    def own_files(self) -> set[str]:
        """The tables and where their rows come from."""
        files: set[str] = set()
        for task in self.amlb_tasks.values():
            files.update(task.data_files, task.provenance)
        return files

    @property
    def baselines(self) -> list[str]:
        """What F is called."""
        return [self.config["baseline"]["model"]]

    @property
    def certified(self) -> list[str]:
        """The tasks."""
        return list(self.tasks)

    @property
    def origins(self) -> dict[str, Origin]:
        """Where the rows of each task come from."""
        return {name: task.origin for name, task in self.tasks.items()}

    @property
    def baseline(self) -> str:
        """The class of F."""
        baseline = self.config.get("baseline")
        return str(baseline.get("model")) if isinstance(baseline, dict) else ""

    def may_list(self) -> Callable[[str], bool]:
        """Return whether a path is that of a fold's file, or of what was read and asked for."""
        layout = Layout(Path())
        places = {layout.request, layout.columns}
        for name, task in self.tasks.items():
            for fold in task.folds:
                places |= {layout.record(name, fold), layout.certificate(name, fold)}
                # the training rows of a part may be its own
                owners = (name, *(amlb_name(name, suffix) for suffix in SUFFIXES))
                places |= {layout.train_provenance(owner, fold) for owner in owners}
        return {layout.relative(place) for place in places}.__contains__

    def _entry(self, task: AmlbTask, place: Place) -> dict[str, Any]:
        return task.entry(place)

    def check(self) -> None:
        """Raise ``ValueError`` where an AMLB task is none of a task, or order lists others."""
        check_distinct("tasks", self.tasks)
        if sorted(self.order) != sorted(self.tasks):
            raise ValueError("order: it does not list the tasks")
        for name, task_entry in self.tasks.items():
            _check_kind(f"tasks.{name}", task_entry)
        for name, task in self.amlb_tasks.items():
            belongs_to_suite = task.task in self.tasks and task.suffix in SUFFIXES
            own_name = amlb_name(task.task, task.suffix)
            if not belongs_to_suite or not name == task.name == own_name:
                raise ValueError(f"amlb_tasks.{name} belongs to none of the tasks")
            coding = self.tasks[task.task].coding
            if (task.target, task.type) != (coding.written_target, coding.kind):
                raise ValueError(f"amlb_tasks.{name} has another target than its task")
            per_fold = (task.train, task.test, task.provenance)
            rows = (task.train_rows, task.test_rows)
            if any(len(entries) != len(task.folds) for entries in (*per_fold, *rows)):
                raise ValueError(
                    f"amlb_tasks.{name} has other numbers of folds and files"
                )
            _check_places(task)
        self._check_folds()

    def _check_folds(self) -> None:
        """Raise where an AMLB task has other folds than those in which its task has the part."""
        for name, task_entry in self.tasks.items():
            folds = sorted(task_entry.folds.items())
            for suffix in SUFFIXES:
                own_name = amlb_name(name, suffix)
                written = [fold for fold, entry in folds if suffix in entry.parts]
                task = self.amlb_tasks.get(own_name)
                listed = [] if task is None else task.folds
                if listed != written:
                    raise ValueError(
                        f"amlb_tasks.{own_name} has the folds {listed}, tasks.{name} has that part "
                        f"in {written}"
                    )


def _check_kind(where: str, task: TaskEntry) -> None:
    """Raise where a task, its coding and the number of labels are not of one kind."""
    coding = task.coding
    if len(coding.labels) != len(coding.written_labels):
        raise ValueError(f"{where}.coding: a label has no written one")
    if task.kind is not coding.kind:
        raise ValueError(
            f"{where}: the task is {task.kind.value}, its coding {coding.kind.value}"
        )
    n_labels = len(coding.labels)
    is_binary = task.kind is Kind.BINARY
    if task.kind.is_classification != bool(n_labels) or is_binary != (n_labels == 2):
        raise ValueError(f"{where}: a {task.kind.value} task with {n_labels} labels")


def _check_places(task: AmlbTask) -> None:
    """Raise where an AMLB task names the files of another one, or of another fold."""
    layout = Layout(Path())
    for index, fold in enumerate(task.folds):
        # parts share the training file of their task, unless they have one of their own
        places = {
            task.train[index]: (
                layout.train(task.task, fold),
                layout.train(task.name, fold),
            ),
            task.test[index]: (layout.test(task.name, fold),),
            task.provenance[index]: (layout.provenance(task.name, fold),),
        }
        for file, expected in places.items():
            if Path(file) not in expected:
                raise ValueError(
                    f"amlb_tasks.{task.name}, fold {fold}: {file} is no file of this fold"
                )


def read_request(path: Path) -> SuiteRequest | None:
    """Return the request of a manifest that may be damaged elsewhere; None where it is lost."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    start = text.find(_REQUEST_KEY)
    if start < 0:
        return None
    try:
        # The whole file may be no JSON any more, so this entry is decoded by itself.
        decoder = json.JSONDecoder()
        entry, _ = decoder.raw_decode(text, start + len(_REQUEST_KEY))
        return record_from_json(SuiteRequest, entry)
    except (ValueError, TypeError, RecursionError):
        return None


def write_manifest(manifest: Manifest, path: Path) -> None:
    """Write a manifest under its own seal; the same one gives the same bytes."""
    about = {"tool": "hardsynth", "format": FORMAT, "holds": manifest.holds}
    write_text(path, sealed_text({**vars(manifest), **about}))


def held_in(layout: Layout) -> str:
    """Return what a folder holds by its manifest, whole or not, or by the order beside it.

    Empty where neither says it.
    """
    for path in (layout.manifest, layout.order):
        try:
            return str(json.loads(path.read_text(encoding="utf-8"))["holds"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return ""
