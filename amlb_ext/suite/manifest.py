"""The manifest: what a suite is made of, how it came to be, and the way back to the sources.

It holds no time and no absolute path, so the same request gives the same bytes, and the suite
can be moved.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amlb_ext.core.files import write_text
from amlb_ext.core.task import Kind, Origin
from amlb_ext.suite.coding import Coding
from amlb_ext.suite.layout import SUFFIXES, amlb_name
from amlb_ext.suite.notes import Note
from amlb_ext.suite.read_record import (
    Count,
    InnerPath,
    PlainName,
    Seed,
    check_distinct,
    read_sealed_manifest,
    record_from_json,
)
from amlb_ext.suite.sealed_json import sealed_text

#: Incremented when the form changes; no other form is read.
FORMAT = 3
#: What stands before the request in the text of a manifest.
_REQUEST_KEY = '\n "request": '


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

    @classmethod
    def from_json(cls, entry: object) -> SuiteRequest:
        """Return the request that a manifest keeps; ``ValueError`` where it is damaged."""
        return record_from_json(cls, entry)


@dataclass(frozen=True)
class AmlbTask:
    """One entry of the benchmark definitions.

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


@dataclass(frozen=True)
class PairTask:
    """A task of a hard twin: its ``name`` in the original, its limits there, its metrics."""

    name: str
    limits: dict[str, Any]
    metric: list[str] | None


@dataclass(frozen=True)
class Pair:
    """The hard twin of an existing benchmark, see :mod:`amlb_ext.suite.twin`.

    Attributes
    ----------
    name : str
        Of the twin's definition.
    of : str
        Name of the original's definition.
    tasks : dict of str to PairTask
        By the suite's task name.
    """

    name: PlainName
    of: str
    tasks: dict[PlainName, PairTask]


@dataclass(frozen=True)
class Manifest:
    """The manifest of a suite.

    Attributes
    ----------
    version : str
        The tool's.
    name : str
        Of the benchmark definition.
    seed : int
        Of generation and of AMLB's runs.
    request : SuiteRequest
    config : dict
    tasks : dict of str to TaskEntry
    amlb_tasks : dict of str to AmlbTask
    failures : list of dict
        Folds and tasks that could not be generated, with reasons.
    files : dict of str to str
        The sha256 of every file but the manifest, by relative path.
    pair : Pair, optional
        The benchmark that this suite is the hard twin of.
    order : list of str
        Names of the tasks as the definitions list them.
    """

    version: str
    name: PlainName
    seed: Seed
    request: SuiteRequest
    config: dict[str, Any]
    tasks: dict[PlainName, TaskEntry]
    amlb_tasks: dict[PlainName, AmlbTask]
    failures: list[dict[str, Any]] = field(default_factory=list)
    files: dict[InnerPath, str] = field(default_factory=dict)
    pair: Pair | None = None
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

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Manifest:
        """Read a manifest that :func:`write_manifest` wrote.

        Raises
        ------
        ValueError
            It is damaged, or names what is not inside the suite.
        """
        manifest = record_from_json(cls, entry)
        check_distinct("tasks", manifest.tasks)
        if sorted(manifest.order) != sorted(manifest.tasks):
            raise ValueError("order: it does not list the tasks")
        check_distinct("files", manifest.files)
        for name, task_entry in manifest.tasks.items():
            coding = task_entry.coding
            if len(coding.labels) != len(coding.written_labels):
                raise ValueError(f"tasks.{name}.coding: a label has no written one")
        if not manifest.amlb_tasks:
            raise ValueError("amlb_tasks: there is none")
        for name, task in manifest.amlb_tasks.items():
            belongs_to_suite = task.task in manifest.tasks and task.suffix in SUFFIXES
            own_name = amlb_name(task.task, task.suffix)
            if not belongs_to_suite or not name == task.name == own_name:
                raise ValueError(f"amlb_tasks.{name} belongs to none of the tasks")
            coding = manifest.tasks[task.task].coding
            if (task.target, task.type) != (coding.written_target, coding.kind):
                raise ValueError(f"amlb_tasks.{name} has another target than its task")
            per_fold = (task.train, task.test, task.provenance)
            rows = (task.train_rows, task.test_rows)
            if any(len(entries) != len(task.folds) for entries in (*per_fold, *rows)):
                raise ValueError(
                    f"amlb_tasks.{name} has other numbers of folds and files"
                )
        return manifest


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
        return SuiteRequest.from_json(entry)
    except (ValueError, TypeError, RecursionError):
        return None


def write_manifest(manifest: Manifest, path: Path) -> None:
    """Write a manifest under its own seal; the same one gives the same bytes."""
    content = {**vars(manifest), "tool": "hardsynth", "format": FORMAT}
    write_text(path, sealed_text(content))


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises
    ------
    SuiteError
        See :func:`amlb_ext.suite.read_record.read_sealed_manifest`.
    """
    return read_sealed_manifest(
        path,
        Manifest.from_json,
        wanted=FORMAT,
        remedy="run the command that generated the suite again, or hardsynth verify DIR --repair",
    )
