"""A folder of tasks: an AMLB user directory of whole tasks, with nothing made hard.

Unlike a suite it has no baseline and no certificate; it has side files, which AMLB does not read
and a framework may: raw texts and unlabelled rows. ``hardsynth/tasks.json`` says what stands where,
under a seal, with the sha256 of every file.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from amlb_ext.amlb.loader_rules import check_pair
from amlb_ext.core.assets import asset_path
from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import sha256_file, write_file, write_text
from amlb_ext.core.task import Kind
from amlb_ext.suite.definition import amlb_configuration, yaml_text
from amlb_ext.suite.layout import Layout, files_below, is_inside, is_note, is_plain_name
from amlb_ext.suite.read_record import record_from_json
from amlb_ext.suite.sealed_json import open_sealed, sealed_text

FORMAT = 1
#: Where AMLB puts environments and caches, which are no part of the folder.
_BY_AMLB = (".setup", "__pycache__", "venv", "programs", "lib")


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

    train: str
    test: str
    train_text: str = ""
    test_text: str = ""
    unlabelled: str = ""
    train_rows: int
    test_rows: int


@dataclass(frozen=True, kw_only=True)
class FolderTask:
    """A task of a folder: what is asked, where its data come from, and its files.

    The fields are those of :class:`amlb_ext.tasks.record.WeirdTask`.
    """

    name: str
    title: str
    statement: str
    target: str
    type: Kind
    labels: tuple[str, ...]
    origin: str
    licence: str
    citation: str = ""
    stands_for: str = ""
    row_shape: tuple[int, ...] = ()
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

    name: str
    version: str
    seed: int
    literal: bool
    salt: str
    tasks: tuple[FolderTask, ...]
    files: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT

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
    configuration = amlb_configuration(seed, constraints=True)
    definition = [_definition_entry(task) for task in tasks]
    texts = {
        layout.config: yaml_text(configuration),
        layout.definition(name): yaml_text(definition),
        layout.frameworks: yaml_text(frameworks),
        layout.constraints: constraints_text(len(tasks[0].folds)),
    }
    for path, text in texts.items():
        written[layout.relative(path)] = write_text(path, text)
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


def copy_integration(layout: Layout, module: str) -> dict[str, str]:
    """Copy a packaged integration to ``extensions/``; return the sha256 of each copy."""
    source = asset_path("frameworks", module)
    written = {}
    for relative in files_below(source):
        steps = relative.split("/")
        is_leftover = relative.endswith(".pyc") or any(s in _BY_AMLB for s in steps)
        if is_leftover:
            continue
        target = layout.extensions.joinpath(module, *steps)
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
    path = folder_manifest(root)
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        if entry["format"] != FORMAT:
            raise SuiteError(
                f"{path} has format {entry['format']}, this version reads {FORMAT}",
                "install the version that wrote it, or write the tasks again",
            )
        folder = record_from_json(TaskFolder, entry)
    except OSError as error:
        raise SuiteError(
            f"cannot read {path}: {error.strerror}",
            "name a folder that hardsynth tasks wrote",
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SuiteError(
            f"{path} is damaged: {error}", "write the tasks again with hardsynth tasks"
        ) from None
    _check_places(folder)
    return folder


def verify_task_folder(root: Path) -> list[str]:
    """Return what is wrong with a folder of tasks, one sentence each; empty when it is whole.

    Checks the seal of the manifest, the sha256 of every file, files that are missing or foreign,
    and every pair of files against AMLB's loader rules.
    """
    path = folder_manifest(root)
    layout = Layout(root)
    opened = open_sealed(path, ())
    if opened.content is None or not opened.sealed:
        return [
            f"{layout.relative(path)} was changed after it was written (its seal is broken)."
        ]
    try:
        folder = read_task_folder(root)
    except SuiteError as error:
        return [str(error)]
    sentences = []
    present = set(files_below(root))
    for relative, digest in folder.files.items():
        if relative not in present:
            sentences.append(f"{relative} is missing.")
        elif sha256_file(layout.at(relative)) != digest:
            sentences.append(f"{relative} was changed after it was written.")
    for relative in sorted(present - set(folder.files) - {layout.relative(path)}):
        steps = relative.split("/")
        is_by_amlb = steps[0] == "extensions" and any(s in _BY_AMLB for s in steps)
        is_by_report = relative.startswith("hardsynth/report")
        if not (is_by_amlb or is_by_report or is_note(relative)):
            sentences.append(f"{relative} is not part of the folder.")
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


def _check_places(folder: TaskFolder) -> None:
    names = [folder.name, *(task.name for task in folder.tasks)]
    paths = list(folder.files)
    for task in folder.tasks:
        for fold in task.folds:
            paths += [fold.train, fold.test]
            side = [fold.train_text, fold.test_text, fold.unlabelled]
            paths += [path for path in side if path]
    if not all(is_plain_name(name) for name in names) or not all(map(is_inside, paths)):
        raise SuiteError(
            "the manifest names a task or a file outside of its folder; nothing was read",
            "the folder was tampered with: get it again from where it was made",
        )
