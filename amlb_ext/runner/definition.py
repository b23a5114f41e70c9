"""Which jobs a benchmark definition asks AMLB for, read as AMLB reads it.

Rules taken from ``amlb/benchmarks/file.py``, ``amlb/resources.py`` and ``amlb/benchmark.py``
of AMLB v2.1.7: the first definition directory that holds ``NAME.yaml`` wins; a task's own
``folds`` wins over the definition's ``__defaults__``, these over the constraint's, these over
the configuration's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from amlb_ext.core.errors import RunError, nearest
from amlb_ext.core.yaml_reader import Loader, read_yaml

#: AMLB's default, used where neither task, constraint nor configuration says.
DEFAULT_FOLDS = 10


@dataclass(frozen=True, order=True)
class Job:
    """One fold of one task, by AMLB's names."""

    task: str
    fold: int


def sanitized(name: str) -> str:
    """Return a name as AMLB writes it (``str_sanitize``).

    Examples
    --------
    >>> sanitized("a b/c.d-e")
    'a_b_c_d-e'
    """
    return re.sub(r"[^\w-]", "_", name)


def is_openml(benchmark: str) -> bool:
    """Whether a benchmark is an OpenML suite or task, whose jobs only AMLB knows."""
    return re.fullmatch(r"(test\.)?openml/[st]/\d+", benchmark) is not None


@dataclass(frozen=True, kw_only=True)
class Framework:
    """A framework as its definition has it.

    Attributes
    ----------
    name, version, module : str
    folder : Path
        Of its code, where AMLB puts its environment.
    has_setup : bool
        Whether anything is installed for it.
    """

    name: str
    version: str
    module: str
    folder: Path
    has_setup: bool


def find_framework(
    framework: str, userdir: Path, root: Path, config: dict[str, Any]
) -> Framework | None:
    """Return a framework by AMLB's rules, e.g. ``flaml`` or ``flaml:2023Q2``.

    Returns
    -------
    Framework or None
        None for one that is not known here; AMLB then says what it misses.

    Raises
    ------
    RunError
        A file of definitions cannot be read.
    """
    name, _, tag = framework.partition(":")
    known: dict[str, dict[str, Any]] = {}
    default = "{root}/resources/frameworks.yaml"
    for path in _paths(config, "frameworks", "definition_file", default, userdir, root):
        path = path.with_name(f"{path.stem}_{tag}{path.suffix}") if tag else path
        entries = _read(path) if path.is_file() else None
        for key, entry in (entries if isinstance(entries, dict) else {}).items():
            known[str(key).lower()] = {"name": sanitized(str(key)), **(entry or {})}
    line = _with_parents(name.lower(), known)
    if not line:
        return None
    merged: dict[str, Any] = {}
    for entry in reversed(line):
        merged.update(entry)
    module = str(merged.get("module") or f"frameworks.{line[-1]['name']}")
    folders = [base.joinpath(*module.split(".")) for base in (root, userdir)]
    folder = next((folder for folder in folders if folder.is_dir()), None)
    if folder is None:
        return None
    return Framework(
        name=str(line[0]["name"]),
        version=str(merged.get("version") or "stable"),
        module=module,
        folder=folder,
        has_setup=bool(merged.get("setup_cmd") or merged.get("setup_script"))
        or (folder / "setup.sh").is_file(),
    )


def _with_parents(name: str, known: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a framework's entry, then those it extends."""
    line: list[dict[str, Any]] = []
    while name in known and known[name] not in line:
        line.append(known[name])
        name = str(known[name].get("extends") or "").lower()
    return line


def read_user_config(userdir: Path) -> dict[str, Any]:
    """Read ``config.yaml`` of a user directory.

    Raises
    ------
    RunError
        When it is missing; AMLB would then run without a word on its own definitions alone.
    """
    path = userdir / "config.yaml"
    if not path.is_file():
        raise RunError(
            f"{userdir} is no AMLB user directory, it has no config.yaml",
            "give a suite made by 'hardsynth generate' as -u",
        )
    config = _read(path)
    if not isinstance(config, dict):
        raise RunError(f"{path} holds no mapping", "generate the suite again")
    return config


def find_definition(benchmark: str, userdir: Path, root: Path, config: dict[str, Any]) -> Path:
    """Return the definition file of a benchmark, absolute.

    A path is taken relative to the current directory; a bare name never means a file or folder
    there (AMLB would take it for one).

    Raises
    ------
    RunError
        Naming the nearest known benchmark.
    """
    path = Path(benchmark).expanduser()
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        if path.is_file():
            return path.absolute()
        raise RunError(f"there is no benchmark definition {path}", "give a name or a YAML file")
    dirs = _paths(
        config, "benchmarks", "definition_dir", "{root}/resources/benchmarks", userdir, root
    )
    for folder in dirs:
        if (folder / f"{benchmark}.yaml").is_file():
            return (folder / f"{benchmark}.yaml").absolute()
    known = {found.stem for folder in dirs for found in folder.glob("*.yaml")}
    raise RunError(f"there is no benchmark {benchmark!r}", nearest(benchmark, known))


def read_constraint(name: str, userdir: Path, root: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Return a constraint's settings.

    Raises
    ------
    RunError
        Naming the nearest known constraint.
    """
    known: dict[str, dict[str, Any]] = {}
    default = "{root}/resources/constraints.yaml"
    for path in _paths(config, "benchmarks", "constraints_file", default, userdir, root):
        entries = _read(path) if path.is_file() else None
        known.update({key.lower(): value or {} for key, value in (entries or {}).items()})
    if name.lower() not in known:
        raise RunError(f"there is no constraint {name!r}", nearest(name.lower(), known))
    return known[name.lower()]


def expected_jobs(
    definition: Path,
    constraint: dict[str, Any],
    config: dict[str, Any],
    tasks: Sequence[str] = (),
    folds: Sequence[int] = (),
) -> tuple[Job, ...]:
    """Return the jobs that AMLB must report, in its order.

    Parameters
    ----------
    definition : Path
    constraint, config : dict
        As :func:`read_constraint` and :func:`read_user_config` give them.
    tasks, folds : sequence
        The choice, as ``-t`` and ``-f``; empty means all.

    Raises
    ------
    RunError
        An unknown or disabled task, or no job left.
    """
    entries = _read(definition)
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) and entry.get("name") is not None for entry in entries
    ):
        raise RunError(f"{definition} is no list of tasks, each with a name", "mend that file")
    shared: dict[str, Any] = dict(constraint)
    for entry in entries:
        if entry["name"] == "__defaults__":
            shared.update(entry)
    own = (config.get("benchmarks") or {}).get("defaults") or {}
    fallback = own.get("folds", DEFAULT_FOLDS)
    known: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if entry["name"] != "__defaults__":
            known[sanitized(str(entry["name"]))] = {**shared, **entry}
    chosen = [_choose(task, known) for task in tasks] or [
        name for name, task in known.items() if _enabled(task)
    ]
    jobs = []
    for name in chosen:
        count = known[name].get("folds")
        count = int(fallback if count is None else count)
        jobs += [Job(name, k) for k in (folds or range(count)) if 0 <= k < count]
    jobs = list(dict.fromkeys(jobs))
    if not jobs:
        raise RunError(
            f"no fold of {definition.stem} is chosen (tasks: {list(tasks) or 'all'}, "
            f"folds: {list(folds) or 'all'})",
            "choose folds that the tasks have, counted from 0",
        )
    return tuple(jobs)


def _choose(task: str, known: dict[str, dict[str, Any]]) -> str:
    for name, settings in known.items():
        if name.lower() == sanitized(task).lower():
            if _enabled(settings):
                return name
            raise RunError(f"the task {name} is disabled", "enable it in the definition")
    raise RunError(f"there is no task {task!r}", nearest(task, known))


def _enabled(task: dict[str, Any]) -> bool:
    return str(task.get("enabled", True)).lower() in ("true", "t", "yes", "y", "on", "1")


def _paths(
    config: dict[str, Any], section: str, key: str, default: str, userdir: Path, root: Path
) -> list[Path]:
    found = (config.get(section) or {}).get(key) or default
    found = [found] if isinstance(found, str) else found
    swap = {"{user}": str(userdir), "{root}": str(root)}
    out = []
    for text in found:
        for mark, folder in swap.items():
            text = text.replace(mark, folder)
        out.append(Path(text).expanduser())
    return out


class _Loader(Loader):
    """YAML 1.2 as AMLB's parser has it: ``on``, ``off``, ``yes`` and ``no`` are text.

    The limits let a suite of 10,000 tasks with all its companions pass (17 MB, 1.2 million nodes).
    """

    max_bytes, max_nodes = 64 << 20, 3_000_000


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in pairs if tag != "tag:yaml.org,2002:bool"]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


def _read(path: Path) -> Any:
    try:
        return read_yaml(path, RunError, loader=_Loader)
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from None
