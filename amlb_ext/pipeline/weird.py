"""Weird tasks, fold by fold, into a folder that AMLB runs."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from amlb_ext.amlb.safe_text import check_columns, labels_survive
from amlb_ext.core.errors import ConfigError, SuiteError, suggest_nearest
from amlb_ext.core.files import (
    remove_file,
    remove_temporary_files,
    write_file,
    write_text,
)
from amlb_ext.core.json_values import to_json_values
from amlb_ext.core.locks import lock_folder
from amlb_ext.core.paths import portable_spec
from amlb_ext.core.task import Kind
from amlb_ext.core.version import __version__
from amlb_ext.core.yaml_reader import Loader
from amlb_ext.suite.definition import yaml_text
from amlb_ext.suite.layout import Layout, is_fresh
from amlb_ext.suite.manifest import TableManifest, held_in
from amlb_ext.suite.reader import Suite, WeirdSuite
from amlb_ext.suite.repeatable import write_with_order
from amlb_ext.suite.shared_files import copy_integration, write_shared_files
from amlb_ext.suite.task_folder import (
    FolderFold,
    FolderTask,
    TaskFolder,
)
from amlb_ext.suite.writer import remove_derived
from amlb_ext.tasks import WeirdTask, draw_fold, select_tasks, with_data_files
from amlb_ext.tasks.record import TARGET

#: Name of the definition.
NAME = "weird"
#: What ``frameworks/LLMCoder`` takes beside the model. Address and key are no parameters: AMLB
#: writes these into its results.
CODER_PARAMS = (
    "preset",
    "feedback",
    "looks",
    "submissions",
    "iteration_seconds",
    "memory_mb",
    "work_mb",
    "settings",
    "price",
    "max_cost",
    "sandbox",
    "python",
    "tries",
    "request_seconds",
)
#: WeirdML's number of runs.
MOST_FOLDS = 999


@dataclass(frozen=True, kw_only=True)
class WeirdRequest:
    """How tasks are written.

    Attributes
    ----------
    folds : int
        Draws of each task; WeirdML asks for 15.
    seed : int
    literal : bool
        The same draw in every fold.
    salt : str, optional
        Enters the draws beside the seed; by default that of the folder, or a new secret one.
    models : sequence of str
        Language models to write a framework ``LLMCoder_...`` for.
    coder_params : mapping
        Of these frameworks, beside the model.
    """

    folds: int = 2
    seed: int = 0
    literal: bool = False
    salt: str | None = None
    models: Sequence[str] = ()
    coder_params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class WeirdOrder:
    """Weird tasks as a command asks for them; a repair asks for the same again.

    Attributes
    ----------
    tasks : tuple of str
        See :func:`amlb_ext.tasks.select_tasks`.
    data : dict of str to str
        Files, by the task that each is for, see :func:`amlb_ext.tasks.with_data_files`.
    licence : str
        Of the files.
    request : WeirdRequest
    """

    tasks: tuple[str, ...] = ()
    data: dict[str, str] = field(default_factory=dict)
    licence: str = ""
    request: WeirdRequest

    def find_tasks(self) -> list[WeirdTask]:
        """Return the tasks, with the data of the user's files.

        Raises
        ------
        ConfigError, SourceError, DataError
            There is no such task, or a file cannot serve.
        """
        files = {name: Path(file).expanduser() for name, file in self.data.items()}
        return select_tasks(with_data_files(files, licence=self.licence), self.tasks)

    def to_json(self, request: WeirdRequest) -> dict[str, Any]:
        """Return the order without local folders, and with a request whose salt is settled."""
        data = {name: portable_spec(file) for name, file in self.data.items()}
        entry: dict[str, Any] = to_json_values(
            replace(self, data=data, request=request)
        )
        return entry


def write_weird_tasks(
    out: Path,
    tasks: Sequence[WeirdTask],
    request: WeirdRequest,
    order: WeirdOrder | None = None,
) -> TaskFolder:
    """Write weird tasks as an AMLB user directory.

    The same request into the same folder, or with the same salt, gives the same bytes.

    Parameters
    ----------
    out : Path
    tasks : sequence of WeirdTask
    request : WeirdRequest
    order : WeirdOrder, optional
        What the manifest keeps of the command, for a repair.

    Returns
    -------
    TaskFolder

    Raises
    ------
    ConfigError, SuiteError
        Among others, the folder holds other tasks, or other draws of them.
    """
    if not 1 <= request.folds <= MOST_FOLDS:
        raise ConfigError(
            f"--folds is {request.folds}", f"choose a number from 1 to {MOST_FOLDS}"
        )
    names = [task.name for task in tasks]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(
            f"two tasks are called {twice[0]}",
            "name each once, and functions differently",
        )
    for task in tasks:
        if not labels_survive(task.labels):
            some = ", ".join(task.labels[:5])
            raise ConfigError(
                f"--task {task.name}: AMLB would read or order the labels {some} wrongly",
                "give texts that begin with a letter",
            )
    layout = Layout(out)
    with lock_folder(layout.lock, layout.root):
        salt = request.salt
        if held_in(layout) == TaskFolder.holds:
            former = WeirdSuite.load(out).manifest
            _check_same(former, names, request)
            # kept in the manifest, which no program of a coding model can read
            salt = former.salt
        elif not (layout.started.is_file() or is_fresh(out)):
            raise SuiteError(
                f"{out} holds something else",
                "name an empty folder, or remove it first",
            )
        salt = secrets.token_hex(16) if salt is None else salt
        request = replace(request, salt=salt)
        # what an interrupted run left is known by this, and written again
        write_text(layout.started, "")
        files: dict[str, str] = {}
        written_tasks = []
        for task in tasks:
            folds = []
            for fold in range(request.folds):
                folds.append(_write_fold(layout, task, fold, request, files))
            about = {k: v for k, v in vars(task).items() if k not in ("draw", "note")}
            written = FolderTask(
                **about, target=TARGET, type=Kind.MULTICLASS, folds=tuple(folds)
            )
            written_tasks.append(written)
        folder = TaskFolder(
            version=__version__,
            name=NAME,
            seed=request.seed,
            literal=request.literal,
            salt=salt,
            tasks=tuple(written_tasks),
            order=order.to_json(request) if order else {},
        )
        files |= write_shared_files(
            Suite(layout, folder),
            frameworks=weird_frameworks(request.models, request.coder_params),
        )
        folder = replace(folder, files=dict(sorted(files.items())))
        folder = write_with_order(folder, layout)
        remove_temporary_files(out)
        remove_file(layout.started)
    return folder


def _check_same(
    folder: TaskFolder, names: Sequence[str], request: WeirdRequest
) -> None:
    """Raise where a finished folder holds other tasks, or other draws, than are asked for."""
    asked = (names, request.folds, request.seed, request.literal)
    known = [task.name for task in folder.tasks]
    is_other = asked != (known, folder.n_folds, folder.seed, folder.literal)
    if is_other or request.salt not in (None, folder.salt):
        raise SuiteError(
            f"the folder holds other weird tasks, or other draws: {', '.join(known)}, "
            f"{folder.n_folds} folds, seed {folder.seed}",
            "choose another folder with -o, or remove this one first",
        )


def add_coders(
    root: Path, models: Sequence[str], coder_params: Mapping[str, Any] | None = None
) -> list[str]:
    """Add coders to the frameworks of a suite; return their names.

    They are the user's entries there: repairs leave them, and ``verify`` says that they are.

    Raises
    ------
    ConfigError, SuiteError
    """
    if not models:
        raise ConfigError("no model is named", "--model NAME, as the endpoint does")
    layout = Layout(root)
    if held_in(layout) != TableManifest.holds:
        raise SuiteError(
            f"{root} is no suite of hardsynth generate",
            "write coders of weird tasks with hardsynth tasks weird --model NAME -o DIR",
        )
    frameworks = weird_frameworks(models, coder_params)
    # under names that a repair knows as the user's
    coders = {
        name.removeprefix("LLM"): {**entry, "module": "extensions.Coder"}
        for name, entry in frameworks.items()
        if name.startswith("LLMCoder_")
    }
    text = layout.frameworks.read_text(encoding="utf-8")
    present = yaml.load(text, Loader=Loader) or {}
    new = {name: entry for name, entry in coders.items() if name not in present}
    for name, entry in coders.items():
        if name in present and present[name] != entry:
            raise ConfigError(
                f"{layout.frameworks} has {name} already, with other parameters",
                f"change them there, or remove the entry {name} and run this again",
            )
    if new:
        own_part = yaml_text(new).removeprefix("---\n")
        write_text(layout.frameworks, f"{text.rstrip()}\n{own_part}")
    copy_integration(layout, "LLMCoder", "Coder")
    return list(coders)


def check_coder_params(params: Mapping[str, Any]) -> None:
    """Raise for a parameter that the coder does not have.

    Raises
    ------
    ConfigError
    """
    for key in sorted(set(params) - set(CODER_PARAMS)):
        remedy = suggest_nearest(key, CODER_PARAMS)
        if any(word in key.lower() for word in ("key", "url", "token")):
            remedy = "set HARDSYNTH_LLM_URL and HARDSYNTH_LLM_KEY in the environment"
        raise ConfigError(f"--coder-params has no parameter {key!r}", remedy)
    prices = params.get("price") or {}
    amounts = dict(prices) if isinstance(prices, Mapping) else {"price": prices}
    for name, value in {**amounts, "max_cost": params.get("max_cost", 0)}.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (is_number and math.isfinite(value) and value >= 0):
            raise ConfigError(
                f"--coder-params {name} is {value!r}",
                "write a number from 0, such as 2.5",
            )
    if params.get("feedback", "holdout") not in ("holdout", "test"):
        raise ConfigError(
            f"--coder-params feedback is {params['feedback']!r}",
            "choose holdout, or test, which tells the accuracy on the test rows as WeirdML does",
        )


def weird_frameworks(
    models: Sequence[str] = (), coder_params: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return ``frameworks.yaml``: the reader of each task, and a coder for each model.

    Examples
    --------
    >>> list(weird_frameworks(["some/model-1"]))
    ['HardsynthReader', 'LLMCoder_some_model_1']
    """
    frameworks: dict[str, Any] = {
        "HardsynthReader": {
            "module": "extensions.WeirdReader",
            "version": "stable",
            "description": "for each weird task a reader that knows what it is: a reference",
        }
    }
    for model in models:
        plain = "".join(c if c.isalnum() else "_" for c in model)
        frameworks[f"LLMCoder_{plain}"] = {
            "module": "extensions.LLMCoder",
            "version": "1",
            "description": f"{model} writes the program, five submissions a run",
            "params": {"model": model, **(coder_params or {})},
        }
    return frameworks


def _write_fold(
    layout: Layout,
    task: WeirdTask,
    fold: int,
    request: WeirdRequest,
    files: dict[str, str],
) -> FolderFold:
    """Write one fold; return where its files are, and add the sha256 of each to ``files``."""
    draw = draw_fold(
        task,
        fold,
        seed=request.seed,
        literal=request.literal,
        salt=request.salt or "",
    )
    if problems := check_columns([str(name) for name in draw.train.features]):
        raise ConfigError(f"--task {task.name}: {problems[0]}", "rename the column")
    places: dict[str, Path] = {}
    for side, rows in (("train", draw.train), ("test", draw.test)):
        path = layout.train(task.name, fold)
        if side == "test":
            path = layout.test(task.name, fold)
        places[side] = path
        files[layout.relative(path)] = _write_table(path, rows.frame)
        if rows.texts:
            text_path = places[f"{side}_text"] = path.with_suffix(".txt")
            lines = "".join(f"{text}\n" for text in rows.texts)
            files[layout.relative(text_path)] = write_text(text_path, lines)
    if draw.unlabelled is not None:
        name = f"{task.name}_unlabelled_{fold}.csv"
        path = places["unlabelled"] = places["train"].with_name(name)
        files[layout.relative(path)] = _write_table(path, draw.unlabelled)
    return FolderFold(
        train_rows=len(draw.train),
        test_rows=len(draw.test),
        **{key: layout.relative(path) for key, path in places.items()},
    )


def _write_table(path: Path, frame: pd.DataFrame) -> str:
    remove_derived(path)
    return write_file(path, partial(frame.to_csv, index=False))
