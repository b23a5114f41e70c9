"""Benchmark definitions: a YAML list of tasks, read as AMLB v2.1.7 reads it.

Rules from ``amlb/benchmarks/parser.py``, ``amlb/resources.py`` and ``amlb/benchmark.py``:

* AMLB's parser is ruamel's, YAML 1.2: ``on``, ``off``, ``yes`` and ``no`` are text, so a task may
  be called ``on``.
* ``enabled`` is read as text afterwards, so there ``yes`` and ``no`` do mean true and false.
* A task keeps its own keys and takes the missing ones from the first entry called
  ``__defaults__``.
* Names are compared after :func:`sanitize_name`.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from amlb_ext.core.errors import DefinitionError, suggest_nearest
from amlb_ext.core.yaml_reader import Loader, read_yaml

#: Name of the entry that holds what the tasks do not say themselves.
DEFAULTS = "__defaults__"
#: Folds of a task where neither task, constraint nor configuration says.
DEFAULT_FOLDS = 10
#: What AMLB's ``str2bool`` takes for true and for false, in any case.
TRUE_WORDS = ("true", "t", "yes", "y", "on", "1")
FALSE_WORDS = ("false", "f", "no", "n", "off", "0")


@dataclass(frozen=True, order=True)
class Job:
    """One fold of one task, by AMLB's names."""

    task: str
    fold: int


def sanitize_name(name: str) -> str:
    """Return a name as AMLB writes it (``str_sanitize``).

    Examples
    --------
    >>> sanitize_name("a b/c.d-e")
    'a_b_c_d-e'
    """
    return re.sub(r"[^\w-]", "_", name)


def is_enabled(task: dict[str, Any], source: str) -> bool:
    """Return whether AMLB runs a task.

    Parameters
    ----------
    task : dict
        Its keys, defaults merged in.
    source : str
        What an error calls the definition.

    Raises
    ------
    DefinitionError
        The value of ``enabled`` is neither a true nor a false word; AMLB would stop there too.

    Examples
    --------
    >>> is_enabled({"enabled": "no"}, "mine.yaml"), is_enabled({}, "mine.yaml")
    (False, True)
    """
    word = str(task.get("enabled", True)).lower()
    if word not in (*TRUE_WORDS, *FALSE_WORDS):
        raise DefinitionError(
            f"{source}: the task {task.get('name')!r} has 'enabled: {word[:50]}'",
            "write 'enabled: true' or 'enabled: false'",
        )
    return word in TRUE_WORDS


def is_series_task(task: Mapping[str, Any]) -> bool:
    """Return whether a task is one of series, ``type: timeseries``."""
    dataset = task.get("dataset")
    return isinstance(dataset, dict) and dataset.get("type") == "timeseries"


def read_definition(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read a definition and yield its enabled tasks, ``__defaults__`` merged in.

    Parameters
    ----------
    path : Path

    Yields
    ------
    name : str
        As the definition spells it.
    task : dict
        Its keys.

    Raises
    ------
    DefinitionError
        The file cannot be read (with the line), is no list of tasks, or has a task without a name
        or without data; or two tasks have one name in AMLB's spelling.

    Notes
    -----
    ``openml_task_id: null`` without a ``dataset`` leaves a task out. AMLB itself would stop there;
    definitions of its own have such tasks, so the others are still read.
    """
    names: dict[str, str] = {}  # as they are spelled, by what AMLB compares
    for task in read_tasks(path):
        name = task["name"]
        key = sanitize_name(name).lower()
        if key in names:
            raise DefinitionError(
                f"{path.name}: the names {names[key]!r} and {name!r} are the same to AMLB",
                "rename one of them",
            )
        names[key] = name
        if not is_enabled(task, path.name):
            continue
        if task.get("dataset") is None and task.get("openml_task_id") is None:
            if "openml_task_id" in task:  # null: see the notes above
                continue
            raise DefinitionError(
                f"{path.name}: task {name!r} says nothing about its data",
                "add 'openml_task_id: ID' or 'dataset: {train: ..., test: ..., target: ...}'",
            )
        yield name, task


def read_tasks(
    path: Path, constraint: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return all tasks of a definition, the disabled ones too.

    Parameters
    ----------
    path : Path
    constraint : dict, optional
        Settings that stand behind those of the definition.

    Returns
    -------
    list of dict
        Each with its name, its own keys, and the keys of ``__defaults__`` and of the constraint
        that it lacks.

    Raises
    ------
    DefinitionError
        The file cannot be read, is no list of tasks, or has a task without a name.
    """
    entries = _read_entries(path)
    shared = dict(constraint or {})
    for position, entry in enumerate(entries):
        if entry["name"] == DEFAULTS:
            # The first one alone, as in AMLB.
            shared |= entries.pop(position)
            break
    return [shared | entry for entry in entries]


def list_jobs(
    path: Path,
    constraint: dict[str, Any],
    *,
    fallback_folds: int = DEFAULT_FOLDS,
    tasks: Sequence[str] = (),
    folds: Sequence[int] = (),
) -> tuple[Job, ...]:
    """Return the jobs that AMLB must report for a definition, in its order.

    Parameters
    ----------
    path : Path
        The definition.
    constraint : dict
        As :func:`amlb_ext.amlb.configuration.read_constraint` gives it. A task's own ``folds`` win
        over the definition's ``__defaults__``, these over the constraint's.
    fallback_folds : int
        Number of folds where none of them says.
    tasks, folds : sequence
        The choice, as AMLB's ``-t`` and ``-f``; empty means all.

    Raises
    ------
    DefinitionError
        An unknown or disabled task, or no job left.
    """
    defined = {}
    for task in read_tasks(path, constraint):
        defined[sanitize_name(task["name"])] = task
    chosen = [_choose_task(task, defined, path.name) for task in tasks]
    if not tasks:
        enabled = defined.items()
        chosen = [name for name, task in enabled if is_enabled(task, path.name)]
    jobs = []
    for name in chosen:
        fold_count = defined[name].get("folds")
        # a definition may quote it
        fold_count = int(fallback_folds if fold_count is None else fold_count)
        jobs += [
            Job(name, k) for k in folds or range(fold_count) if 0 <= k < fold_count
        ]
    if not jobs:
        raise DefinitionError(
            f"no fold of {path.stem} is chosen (tasks: {list(tasks) or 'all'}, folds: "
            f"{list(folds) or 'all'})",
            "choose folds that the tasks have, counted from 0",
        )
    return tuple(dict.fromkeys(jobs))  # AMLB runs a job once, however often it is named


def read_amlb_yaml(path: Path) -> Any:
    """Read a YAML file as AMLB's own parser does, with limits.

    Raises
    ------
    DefinitionError
        The file cannot be read or is no YAML; with the line.
    """
    try:
        return read_yaml(path, DefinitionError, loader=_AmlbLoader)
    except OSError as error:
        raise DefinitionError(
            f"cannot read {path}: {error.strerror or error}",
            "check the path and its permissions",
        ) from None


def _read_entries(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a definition, ``__defaults__`` too, each with a name that is text."""
    content = read_amlb_yaml(path)
    if not isinstance(content, list) or not content:
        content_type = f"a {type(content).__name__}" if content else "nothing"
        raise DefinitionError(
            f"{path.name} holds {content_type}, a definition is a list of tasks",
            "start each task with '- name: ...'",
        )
    entries = []
    for number, entry in enumerate(content, start=1):
        if not isinstance(entry, dict):
            raise DefinitionError(
                f"{path.name}: entry {number} is {reprlib.repr(entry)}, no task",
                "write '- name: ...'",
            )
        name = entry.get("name")
        # A bare 31 is a usable name, a bare true (an int to Python) is a slip.
        is_usable = isinstance(name, str | int | float) and not isinstance(name, bool)
        if not is_usable or name == "":
            raise DefinitionError(
                f"{path.name}: task {number} has no name", "add 'name: ...' to it"
            )
        entries.append(entry | {"name": str(name)})
    return entries


def _choose_task(task: str, defined: dict[str, dict[str, Any]], source: str) -> str:
    """Return the name of a task that the user chose, in whatever case it was given."""
    wanted = sanitize_name(task).lower()
    for name, settings in defined.items():
        if name.lower() != wanted:
            continue
        if is_enabled(settings, source):
            return name
        raise DefinitionError(
            f"the task {name} is disabled", "enable it in the definition"
        )
    raise DefinitionError(f"there is no task {task!r}", suggest_nearest(task, defined))


class _AmlbLoader(Loader):
    """YAML 1.2 as AMLB's parser has it: only ``true`` and ``false`` are truth values.

    The limits let a suite of 10,000 tasks with all its companions pass (17 MB, 1.2 million nodes).
    """

    max_bytes, max_nodes = 64 << 20, 3_000_000


# PyYAML reads YAML 1.1, where on, off, yes and no are truth values as well.
_BOOLEAN = "tag:yaml.org,2002:bool"
_AmlbLoader.yaml_implicit_resolvers = {
    first_character: [pair for pair in pairs if pair[0] != _BOOLEAN]
    for first_character, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_AmlbLoader.add_implicit_resolver(
    _BOOLEAN, re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
