"""A folder of tasks: an AMLB user directory of whole tasks, with nothing made hard.

Unlike a suite it has no baseline and no certificate; it has side files, which AMLB does not read
and a framework may: raw texts and unlabelled rows. ``hardsynth/tasks.json`` says what stands where,
under a seal, with the sha256 of every file.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from amlb_ext.amlb.loader_rules import check_pair
from amlb_ext.core.assets import asset_path
from amlb_ext.core.display import text_table
from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import write_file, write_text
from amlb_ext.core.task import Kind
from amlb_ext.suite.definition import amlb_configuration, yaml_text
from amlb_ext.suite.folder_faults import SuiteContents, folder_faults
from amlb_ext.suite.layout import Layout, files_below
from amlb_ext.suite.own_entries import write_suite_part
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

FORMAT = 1


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


@dataclass(frozen=True, kw_only=True)
class TaskFolder:
    """The manifest of a folder of tasks.

    Attributes
    ----------
    name : str
        Of the benchmark definition.
    version : str
        The tool's.
    seed : int
        Of the data and of AMLB's runs.
    literal : bool
        All folds have the same data.
    salt : str
        What entered the draws beside the seed: a secret, since how they are drawn is public.
    tasks : tuple of FolderTask
    files : dict of str to str
        The sha256 of every file, by relative path.
    """

    name: PlainName
    version: str
    seed: Seed
    literal: bool
    salt: str
    tasks: tuple[FolderTask, ...]
    files: dict[InnerPath, str] = field(default_factory=dict)
    format: int = FORMAT

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> TaskFolder:
        """Read a manifest; ``ValueError`` where it is damaged, or names what is not inside."""
        folder = record_from_json(cls, entry)
        check_distinct("tasks", [task.name for task in folder.tasks])
        check_distinct("files", folder.files)
        n_folds = {len(task.folds) for task in folder.tasks}
        if len(n_folds) != 1 or 0 in n_folds:
            raise ValueError(
                "tasks: there are none, or they have other numbers of folds"
            )
        return folder

    @property
    def n_folds(self) -> int:
        """How many folds every task has."""
        return len(self.tasks[0].folds)


def folder_manifest(root: Path) -> Path:
    """Return where the manifest of a folder of tasks stands."""
    return Layout(root).own / "tasks.json"


def is_task_folder(root: Path) -> bool:
    """Whether a folder is a folder of tasks, not a suite."""
    return folder_manifest(root).is_file()


def finish_task_folder(
    root: Path,
    *,
    name: str,
    version: str,
    seed: int,
    literal: bool,
    salt: str,
    tasks: Sequence[FolderTask],
    frameworks: Mapping[str, Any],
    files: Mapping[str, str],
) -> TaskFolder:
    """Write definition, configuration, constraints and integrations, and last the manifest.

    Parameters
    ----------
    root : Path
    name : str
        Of the definition.
    version : str
    seed : int
    literal : bool
    salt : str
    tasks : sequence of FolderTask
        Whose data files stand.
    frameworks : mapping
        Content of ``frameworks.yaml``; the integrations that it names are copied.
    files : mapping of str to str
        The sha256 of each data file.

    Raises
    ------
    SuiteError
        The disk cannot be written.
    """
    layout = Layout(root)
    written = dict(files)
    for path, text in _shared_texts(layout, name=name, seed=seed, tasks=tasks).items():
        written[layout.relative(path)] = write_text(path, text)
    grown = {
        layout.frameworks: yaml_text(frameworks),
        layout.constraints: constraints_text(len(tasks[0].folds)),
    }
    for path, text in grown.items():
        written[layout.relative(path)] = write_suite_part(path, text)
    for module in named_integrations(frameworks):
        written |= copy_integration(layout, module)
    folder = TaskFolder(
        name=name,
        version=version,
        seed=seed,
        literal=literal,
        salt=salt,
        tasks=tuple(tasks),
        files=dict(sorted(written.items())),
    )
    write_text(folder_manifest(root), sealed_text(_to_json(folder)))
    return folder


def _shared_texts(
    layout: Layout, *, name: str, seed: int, tasks: Sequence[FolderTask]
) -> dict[Path, str]:
    """Return configuration and definition, which follow from the manifest."""
    return {
        layout.config: yaml_text(amlb_configuration(seed, constraints=True)),
        layout.definition(name): yaml_text([_definition_entry(task) for task in tasks]),
    }


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


def named_integrations(frameworks: Mapping[str, Any]) -> list[str]:
    """Return the folders of ``extensions/`` that framework definitions name.

    Examples
    --------
    >>> named_integrations({"a": {"module": "extensions.One"}, "b": {"extends": "a"}})
    ['One']
    """
    modules = set()
    for entry in frameworks.values():
        package, _, module = str(entry.get("module", "")).partition(".")
        if package == "extensions" and module:
            modules.add(module.split(".")[0])
    return sorted(modules)


def copy_integration(layout: Layout, module: str, name: str = "") -> dict[str, str]:
    """Copy a packaged integration to ``extensions/``; return the sha256 of each copy.

    Its folder there bears another name where it is a user's addition to a suite.
    """
    source = asset_path("frameworks", module)
    written = {}
    for relative in files_below(source):
        steps = relative.split("/")
        # what Python, or a set-up of it there, left beside the code
        leftovers = {".setup", "__pycache__", "venv", "programs", "lib"}
        if relative.endswith(".pyc") or leftovers & set(steps):
            continue
        target = layout.extensions.joinpath(name or module, *steps)
        copy = partial(shutil.copyfile, source.joinpath(*steps))
        written[layout.relative(target)] = write_file(target, copy)
    return written


def read_task_folder(root: Path) -> TaskFolder:
    """Read the manifest of a folder of tasks.

    Raises
    ------
    SuiteError
        It is missing, damaged, of a newer version, or names what is not inside the folder.
    """
    return read_sealed_manifest(
        folder_manifest(root),
        TaskFolder.from_json,
        wanted=FORMAT,
        remedy="write the tasks again with hardsynth tasks",
    )


def verify_task_folder(root: Path) -> list[str]:
    """Return what is wrong with a folder of tasks, one sentence each; empty when it is whole.

    Checks what every suite is held to, see :mod:`amlb_ext.suite.folder_faults`, and every pair of
    files against AMLB's loader rules.
    """
    try:
        folder = read_task_folder(root)
    except SuiteError as error:
        return [str(error)]
    layout = Layout(root)
    own: set[str] = set()
    for task in folder.tasks:
        own.update(*(fold.files for fold in task.folds))
    contents = SuiteContents(
        layout=layout,
        files=folder.files,
        needed=frozenset(own),
        belongs=own.__contains__,
        texts=_shared_texts(
            layout, name=folder.name, seed=folder.seed, tasks=folder.tasks
        ),
        unlisted=frozenset({layout.relative(folder_manifest(root))}),
    )
    sentences = [*folder_faults(contents)]
    for task in folder.tasks:
        for number, fold in enumerate(task.folds):
            pair = (layout.at(fold.train), layout.at(fold.test))
            if not all(file.is_file() for file in pair):
                continue
            for fault in check_pair(*pair, task.target, task.type.value):
                sentences.append(f"{task.name}, fold {number}: {fault}")
    return sentences


def _definition_entry(task: FolderTask) -> dict[str, Any]:
    described = {"made": "made", "embedded": "embedded data", "real": "real data"}
    return {
        "name": task.name,
        "description": f"{task.title} ({described.get(task.origin, task.origin)})",
        "metric": ["acc", "logloss"],
        "dataset": {
            "train": [f"{{user}}/{fold.train}" for fold in task.folds],
            "test": [f"{{user}}/{fold.test}" for fold in task.folds],
            "target": task.target,
            "type": task.type.value,
        },
    }


def _to_json(folder: TaskFolder) -> dict[str, Any]:
    tasks = []
    for task in folder.tasks:
        folds = [dict(vars(fold)) for fold in task.folds]
        tasks.append({**vars(task), "type": task.type.value, "folds": folds})
    return {**vars(folder), "tasks": tasks, "tool": "hardsynth"}


def folder_summary(folder: TaskFolder, out: str) -> str:
    """Return what was written, and the commands that check, run and report it."""
    rows: list[list[Any]] = []
    for task in folder.tasks:
        fold = task.folds[0]
        stands_for = f", stands for {task.stands_for}" if task.stands_for else ""
        data = f"{task.origin}{stands_for}"
        rows.append([task.name, fold.train_rows, fold.test_rows, data])
    where = shlex.quote(out)
    n_folds = folder.n_folds
    sets = "one set of data for all" if folder.literal else "a draw each"
    return "\n".join(
        [
            text_table(["task", "training rows", "test rows", "data"], rows),
            f"{n_folds} folds, {sets}",
            f"  check:   hardsynth verify {where}",
            f"  run:     hardsynth run FRAMEWORK weirdml -u {where}",
            f"           or AMLB itself: python runbenchmark.py FRAMEWORK weird weirdml -u {where}",
            f"  report:  hardsynth report {where} --results results",
        ]
    )
