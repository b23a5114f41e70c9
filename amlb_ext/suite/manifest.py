"""The manifest: what a suite is made of, how it came to be, and the way back to the sources.

It holds no time and no absolute path, so the same request gives the same bytes, and the suite
can be moved.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import write_text
from amlb_ext.core.task import Kind, Origin
from amlb_ext.suite.coding import Coding
from amlb_ext.suite.layout import SUFFIXES, amlb_name, is_inside, is_plain_name
from amlb_ext.suite.read_record import record_from_json
from amlb_ext.suite.sealed_json import SealedFile, open_sealed, sealed_text

#: Incremented when a reader of an older version could not understand the file.
FORMAT = 2
#: The first keeps no request, see :func:`request_of_format_1`.
_READABLE_FORMATS = (1, FORMAT)
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

    name: str
    task: str
    suffix: str
    type: Kind
    target: str
    description: str
    metric: list[str] | None
    folds: list[int]
    train: list[str]
    test: list[str]
    provenance: list[str]
    train_rows: list[int]
    test_rows: list[int]


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
    folds : dict of int to dict
        Per source fold: ``key``, ``notes``, ``summary``, and per part the substituted cells
        and dropped rows.
    """

    source_name: str
    target: str
    kind: Kind
    origin: Origin
    content_hash: str
    coding: Coding
    notes: list[str]
    folds: dict[int, dict[str, Any]]


@dataclass(frozen=True)
class Pair:
    """The hard twin of an existing benchmark, see :mod:`amlb_ext.suite.twin`.

    Attributes
    ----------
    name : str
        Of the twin's definition.
    of : str
        Name of the original's definition.
    tasks : dict of str to dict
        By the suite's task name: ``name`` in the original, its ``limits``, the ``metric``.
    """

    name: str
    of: str
    tasks: dict[str, dict[str, Any]]


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
        Names of the tasks as the definitions list them; empty in a manifest of an older version.
    """

    version: str
    name: str
    seed: int
    request: SuiteRequest
    config: dict[str, Any]
    tasks: dict[str, TaskEntry]
    amlb_tasks: dict[str, AmlbTask]
    failures: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    pair: Pair | None = None
    order: list[str] = field(default_factory=list)

    @property
    def command(self) -> str:
        """The command that makes the suite, for people to read."""
        return self.request.command

    @property
    def listed(self) -> list[AmlbTask]:
        """The AMLB tasks in the order of the definitions."""
        # a manifest of an older version names no order: then all tasks stay as they stand
        positions = {name: position for position, name in enumerate(self.order)}
        unordered = len(positions)

        def place(amlb_task: AmlbTask) -> tuple[int, int]:
            position = positions.get(amlb_task.task, unordered)
            return position, SUFFIXES.index(amlb_task.suffix)

        return sorted(self.amlb_tasks.values(), key=place)

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as plain mappings and lists."""
        tasks = {}
        for name, task in self.tasks.items():
            tasks[name] = {
                **vars(task),
                "origin": vars(task.origin),
                "coding": task.coding.to_json(),
            }
        amlb_tasks = {}
        for name, amlb_task in self.amlb_tasks.items():
            amlb_tasks[name] = dict(vars(amlb_task))
        entry: dict[str, Any] = {
            **vars(self),
            "tool": "hardsynth",
            "format": FORMAT,
            "request": vars(self.request),
            "tasks": tasks,
            "amlb_tasks": amlb_tasks,
        }
        # most suites are no twin, and their manifests do not mention one
        if self.pair is None:
            del entry["pair"]
        else:
            entry["pair"] = vars(self.pair)
        return entry

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Manifest:
        """Read a manifest that :meth:`to_json` returned, or one of format 1.

        Raises
        ------
        ValueError, KeyError, TypeError
            It is damaged.
        """
        if "request" not in entry:
            entry = {**entry, "request": request_of_format_1(entry)}
        return record_from_json(cls, entry)


def request_of_format_1(entry: Mapping[str, Any]) -> SuiteRequest:
    """Return the request of a manifest of 0.1.0, which keeps the text of the command alone.

    A target that was named is no part of that text, but all tasks then have it.

    Examples
    --------
    >>> command = "hardsynth generate 'my data.csv' --targets a b -o DIR --config FILE"
    >>> request = request_of_format_1({"command": command, "tasks": {}})
    >>> request.sources, request.targets, request.twin
    (['my data.csv'], ['a', 'b'], False)
    """
    command = str(entry["command"])
    unknown = SuiteRequest(command=command)
    # hardsynth generate SOURCE ... [--targets TARGET ...] -o DIR ..., as 0.1.0 always wrote it
    try:
        arguments = shlex.split(command)
        program, subcommand, *positional = arguments[: arguments.index("-o")]
    except ValueError:
        return unknown
    if program != "hardsynth" or subcommand not in ("generate", "harden"):
        return unknown
    sources = positional
    targets: list[str] = []
    if "--targets" in positional:
        end_of_sources = positional.index("--targets")
        sources = positional[:end_of_sources]
        targets = positional[end_of_sources + 1 :]
    # tasks that share one target may have it by name or by chance; naming it fits both
    target_names = {str(task["target"]) for task in entry["tasks"].values()}
    target = None
    if len(target_names) == 1 and not targets:
        target = target_names.pop()
    return SuiteRequest(
        command=command,
        sources=sources,
        target=target,
        targets=targets,
        twin=subcommand == "harden",
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
        return SuiteRequest.from_json(entry)
    except (ValueError, TypeError, RecursionError):
        return None


def write_manifest(manifest: Manifest, path: Path) -> None:
    """Write a manifest under its own seal; the same one gives the same bytes."""
    write_text(path, sealed_text(manifest.to_json()))


def open_manifest(path: Path) -> SealedFile:
    """Return a manifest's content with its seal checked, see :mod:`amlb_ext.suite.sealed_json`."""
    names = [entry.name for entry in dataclasses.fields(Manifest)]
    # manifests of format 1 have the key "command" in place of "request"
    return open_sealed(path, {*names, "tool", "format", "command"})


def check_places(manifest: Manifest) -> None:
    """Raise unless every name is a plain one and every path stands inside the suite.

    Folders are named after tasks, in the suite and wherever results are written, so that a name
    like ``../../x`` would lead anywhere.

    Raises
    ------
    SuiteError
    """
    # names become folders and files
    names = [manifest.name, *manifest.tasks, *manifest.amlb_tasks, *manifest.order]
    if manifest.pair is not None:
        names += [manifest.pair.name, *manifest.pair.tasks]
    for name in names:
        if not is_plain_name(name):
            raise _misplaced_error(
                f"names a task or definition {name!r}, which is not a plain name"
            )
    for name, task in manifest.amlb_tasks.items():
        derived_name = amlb_name(task.task, task.suffix)
        is_named_after_task = task.suffix in SUFFIXES and name == derived_name
        belongs_to_suite = name == task.name and task.task in manifest.tasks
        if not (is_named_after_task and belongs_to_suite):
            raise _misplaced_error(
                f"names an AMLB task {name!r}, which belongs to none of its tasks"
            )
    paths = list(manifest.files)
    for task in manifest.amlb_tasks.values():
        paths += [*task.train, *task.test, *task.provenance]
    for path in paths:
        if not is_inside(path):
            raise _misplaced_error(
                f"names {path!r}, which is not a path inside the suite"
            )


def _misplaced_error(fault: str) -> SuiteError:
    return SuiteError(
        f"The manifest {fault}; nothing of the suite was read or written",
        "the suite was tampered with: get it again from where it was made",
    )


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises
    ------
    SuiteError
        The file is missing, damaged, of a newer tool, or names what is not inside the suite.
    """
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        if entry["format"] not in _READABLE_FORMATS:
            raise SuiteError(
                f"{path} has format {entry['format']}, this version of hardsynth reads {FORMAT}",
                "install the version that wrote it, or generate the suite again",
            )
        manifest = Manifest.from_json(entry)
        check_places(manifest)
        return manifest
    except OSError as error:
        raise SuiteError(
            f"cannot read {path}: {error.strerror}",
            "name the directory of a finished suite",
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # no key "format", no mapping at all, brackets without end: only a ValueError says in words
        # what is at fault
        fault = str(error)
        if not isinstance(error, ValueError):
            fault = f"{type(error).__name__}: {fault}"
        raise SuiteError(
            f"{path} is damaged: {fault}",
            "run the command that generated the suite again, or hardsynth verify DIR --repair",
        ) from None
