"""AMLB's benchmark definitions: where they stand and what they say.

A definition is a YAML list of tasks. The grammar is AMLB 2.1's, as its documentation and its
code (``amlb/benchmarks``, ``amlb/datasets/file.py``) have it.
"""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from amlb_ext.core.assets import asset
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import SourceError
from amlb_ext.core.yaml_reader import read_yaml

ENDINGS = (".yaml", ".yml")


def directories(options: SourceConfig) -> dict[str, str]:
    """Return what ``{root}``, ``{user}`` and ``{input}`` stand for.

    Parameters
    ----------
    options : SourceConfig
        ``amlb`` (else the environment's ``AMLB_HOME``), ``userdir`` (else AMLB's default),
        ``inputdir`` (else ``input_dir`` of the user's ``config.yaml``, else AMLB's default).

    Returns
    -------
    dict of str to str
        ``root`` is absent when no checkout is known.

    Examples
    --------
    >>> directories(SourceConfig(amlb="/a", userdir="/u", inputdir="/i"))
    {'user': '/u', 'root': '/a', 'input': '/i'}
    """
    user = expanded(options.userdir or "~/.config/automlbenchmark")
    found = {"user": str(user)}
    root = options.amlb or os.environ.get("AMLB_HOME")
    if root:
        found["root"] = str(expanded(root))
    given = options.inputdir or _user_config(user).get("input_dir") or "~/.openml/cache"
    found["input"] = str(expanded(substitute(str(given), found)))
    return found


def substitute(text: str, known: Mapping[str, str]) -> str:
    """Replace ``{root}``, ``{user}``, ``{input}``; doubled braces stand for themselves.

    Raises
    ------
    SourceError
        Another word in braces, a single brace, or ``{root}`` without a checkout.

    Examples
    --------
    >>> substitute("{user}/a{{1}}.csv", {"user": "/home/me"})
    '/home/me/a{1}.csv'
    """

    def swap(found: re.Match[str]) -> str:
        mark, word = found[0], found[1]
        if mark in ("{{", "}}"):
            return mark[0]
        if not word:
            raise SourceError(
                f"{reprlib.repr(text)} has a brace that stands for nothing", "double it: {{ or }}"
            )
        if word in known:
            return known[word]
        if word == "root":
            remedy = "give an AMLB checkout with --amlb DIR or the environment variable AMLB_HOME"
        else:
            remedy = "known: input, root, user; double other braces"
        raise SourceError(f"{text[:200]!r}: {{{word[:50]}}} is unknown", remedy)

    return re.sub(r"\{\{|\}\}|\{([^{}]*)\}|[{}]", swap, text)


def expanded(text: str) -> Path:
    """Return the path that a text of a definition is, ``~`` replaced.

    Raises
    ------
    SourceError
        ``~`` with a user that this machine does not know.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise SourceError(
            f"{text[:200]!r}: there is no such user here", "write the whole path"
        ) from None


def folders(options: SourceConfig) -> list[Path]:
    """Return the folders in which definitions are searched by name, in order."""
    known = directories(options)
    user = Path(known["user"])
    benchmarks = _user_config(user).get("benchmarks")
    listed = benchmarks.get("definition_dir") if isinstance(benchmarks, dict) else None
    found = [user / "benchmarks"]
    for text in listed if isinstance(listed, list) else [listed] if listed else []:
        if "root" in known or "{root}" not in str(text):
            found.append(expanded(substitute(str(text), known)))
    if "root" in known:
        found.append(Path(known["root"]) / "resources" / "benchmarks")
    with suppress(FileNotFoundError):
        found.append(asset("benchmarks"))
    return [folder for folder in dict.fromkeys(found) if folder.is_dir()]


def find(spec: str, options: SourceConfig) -> Path | None:
    """Return the definition that ``spec`` names, by path or by name, or ``None``."""
    if spec.lower().endswith(ENDINGS):
        return expanded(spec)
    if re.fullmatch(r"[\w.-]+", spec):
        for folder in folders(options):
            for ending in ENDINGS:
                path = folder / (spec + ending)
                if path.is_file():
                    return path
    return None


def read_definition(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read a definition and yield its enabled tasks, ``__defaults__`` merged in.

    As in AMLB, a task keeps its own keys and takes the others from ``__defaults__``, whole, and
    ``openml_task_id: null`` without a ``dataset`` switches a task off.

    Parameters
    ----------
    path : Path

    Yields
    ------
    name : str
    entry : dict

    Raises
    ------
    SourceError
        An unreadable file (with the line), no list of tasks, a task without a name, two tasks
        of one name (case-insensitive, after AMLB's sanitising), or a task without data.
    """
    seen: dict[str, str] = {}
    entries = _entries(path)
    defaults: dict[str, Any] = {}
    for entry in entries:
        if entry.get("name") == "__defaults__":
            defaults = {key: value for key, value in entry.items() if key != "name"}
    for number, entry in enumerate(entries, start=1):
        if entry.get("name") == "__defaults__":
            continue
        name = entry.get("name")
        if not isinstance(name, str | int | float) or isinstance(name, bool) or not str(name):
            raise SourceError(f"{path.name}: task {number} has no name", "add 'name: ...' to it")
        name = str(name)
        key = re.sub(r"[^\w-]", "_", name).lower()
        if key in seen:
            raise SourceError(
                f"{path.name}: the names {seen[key]!r} and {name!r} are the same to AMLB",
                "rename one of them",
            )
        seen[key] = name
        merged = defaults | entry
        if merged.get("enabled", True) is False:
            continue
        if merged.get("dataset") is None and merged.get("openml_task_id") is None:
            if "openml_task_id" in merged:
                continue
            raise SourceError(
                f"{path.name}: task {name!r} says nothing about its data",
                "add 'openml_task_id: ID' or 'dataset: {train: ..., test: ..., target: ...}'",
            )
        yield name, merged


def _entries(path: Path) -> list[dict[str, Any]]:
    try:
        content = read_yaml(path)
    except OSError as error:
        raise SourceError(
            f"cannot read {path}: {error.strerror or error}", "check the path"
        ) from None
    if not isinstance(content, list) or not content:
        found = "nothing" if not content else f"a {type(content).__name__}"
        raise SourceError(
            f"{path.name} holds {found}, a definition is a list of tasks",
            "start each task with '- name: ...'",
        )
    for number, entry in enumerate(content, start=1):
        if not isinstance(entry, dict):
            raise SourceError(
                f"{path.name}: entry {number} is {reprlib.repr(entry)}, no task",
                "write '- name: ...'",
            )
    return content


def _user_config(user: Path) -> dict[str, Any]:
    """The user's AMLB configuration; empty when there is none."""
    path = user / "config.yaml"
    if not path.is_file():
        return {}
    try:
        content = read_yaml(path)
    except OSError as error:
        raise SourceError(
            f"cannot read {path}: {error.strerror or error}", "check its permissions"
        ) from None
    return content if isinstance(content, dict) else {}
