"""AMLB's configuration: where it looks for definitions, constraints and data.

A user directory's ``config.yaml`` replaces AMLB's lists. Texts in it may hold ``{root}`` (the
checkout), ``{user}`` (the user directory) and ``{input}`` (the folder of data sets).
"""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from amlb_ext.amlb.definition import DEFAULT_FOLDS, read_amlb_yaml
from amlb_ext.core.assets import asset_path
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import DefinitionError, suggest_nearest
from amlb_ext.core.paths import DEFINITION_ENDINGS

ENDINGS = DEFINITION_ENDINGS
#: AMLB's own values of settings that a user directory may replace.
OWN_DEFINITIONS = "{root}/resources/benchmarks"
OWN_CONSTRAINTS = "{root}/resources/constraints.yaml"
OWN_USER_DIRECTORY = "~/.config/automlbenchmark"
OWN_INPUT_DIRECTORY = "~/.openml/cache"


class PathSetting(NamedTuple):
    """A setting that holds paths: where it stands, and AMLB's own value."""

    section: str
    key: str
    own: str


DEFINITION_DIR = PathSetting("benchmarks", "definition_dir", OWN_DEFINITIONS)
CONSTRAINTS_FILE = PathSetting("benchmarks", "constraints_file", OWN_CONSTRAINTS)


def resolve_directories(options: SourceConfig) -> dict[str, str]:
    """Return what ``{root}``, ``{user}`` and ``{input}`` stand for.

    Parameters
    ----------
    options : SourceConfig
        ``amlb`` (else the environment's ``AMLB_HOME``), ``userdir`` (else AMLB's default),
        ``{input}`` is ``input_dir`` of the user's ``config.yaml``, else AMLB's default.

    Returns
    -------
    dict of str to str
        ``root`` is absent when no checkout is known.

    Examples
    --------
    >>> resolve_directories(SourceConfig(amlb="/a", userdir="/u"))["user"]
    '/u'
    """
    user = expand_path(options.userdir or OWN_USER_DIRECTORY)
    directories = {"user": str(user)}
    root = options.amlb or os.environ.get("AMLB_HOME")
    if root:
        directories["root"] = str(expand_path(root))
    configured = _read_optional_config(user).get("input_dir")
    input_text = str(configured or OWN_INPUT_DIRECTORY)
    # The last one, as its text may hold {user} and {root}.
    input_path = expand_path(substitute_directories(input_text, directories))
    return {**directories, "input": str(input_path)}


def substitute_directories(text: str, directories: Mapping[str, str]) -> str:
    """Replace ``{root}``, ``{user}``, ``{input}``; doubled braces stand for themselves.

    Raises
    ------
    DefinitionError
        Another word in braces, a single brace, or ``{root}`` without a checkout.

    Examples
    --------
    >>> substitute_directories("{user}/a{{1}}.csv", {"user": "/home/me"})
    '/home/me/a{1}.csv'
    """

    def replace_mark(match: re.Match[str]) -> str:
        mark, word = match[0], match[1]
        if mark in ("{{", "}}"):
            return mark[0]
        if not word:
            raise DefinitionError(
                f"{reprlib.repr(text)} has a brace that stands for nothing",
                "double it: {{ or }}",
            )
        if word in directories:
            return directories[word]
        # {root} is a word of AMLB's, so what is missing is the checkout.
        if word == "root":
            remedy = "give an AMLB checkout with --amlb DIR or the environment variable AMLB_HOME"
        else:
            remedy = "known: input, root, user; double other braces"
        raise DefinitionError(f"{text[:200]!r}: {{{word[:50]}}} is unknown", remedy)

    return re.sub(r"\{\{|\}\}|\{([^{}]*)\}|[{}]", replace_mark, text)


def expand_path(text: str) -> Path:
    """Return the path that a text of a definition is, ``~`` replaced.

    Raises
    ------
    DefinitionError
        ``~`` with a user that this machine does not know.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise DefinitionError(
            f"{text[:200]!r}: there is no such user here", "write the whole path"
        ) from None


def search_folders(options: SourceConfig) -> list[Path]:
    """Return the folders in which definitions are searched by name, in order.

    Those of the user directory come first, then those that its ``config.yaml`` lists, AMLB's own,
    and ours.
    """
    directories = resolve_directories(options)
    user = Path(directories["user"])
    folders = [user / "benchmarks"]
    config = _read_optional_config(user)
    for text in _setting_texts(config, DEFINITION_DIR):
        # Without a checkout its folders cannot be searched, the others can.
        if "root" in directories or "{root}" not in text:
            folders.append(expand_path(substitute_directories(text, directories)))
    if "root" in directories:
        folders.append(Path(directories["root"]) / "resources" / "benchmarks")
    with suppress(FileNotFoundError):  # an installation without our definitions
        folders.append(asset_path("benchmarks"))
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def search_definition(spec: str, options: SourceConfig) -> Path | None:
    """Return the definition that ``spec`` names, by path or by name, or ``None``."""
    if spec.lower().endswith(ENDINGS):
        return expand_path(spec)
    if not re.fullmatch(r"[\w.-]+", spec):  # a name, which leads into no other folder
        return None
    for folder in search_folders(options):
        for ending in ENDINGS:
            path = folder / (spec + ending)
            if path.is_file():
                return path
    return None


def is_openml_benchmark(benchmark: str) -> bool:
    """Return whether a benchmark is an OpenML suite or task, whose jobs only AMLB knows."""
    return re.fullmatch(r"(test\.)?openml/[st]/\d+", benchmark) is not None


def read_user_config(userdir: Path) -> dict[str, Any]:
    """Read ``config.yaml`` of a user directory.

    Raises
    ------
    DefinitionError
        When it is missing; AMLB would then run without a word on its own definitions alone.
    """
    path = userdir / "config.yaml"
    if not path.is_file():
        raise DefinitionError(
            f"{userdir} is no AMLB user directory, it has no config.yaml",
            "give a suite made by 'hardsynth generate' as -u",
        )
    config = read_amlb_yaml(path)
    if not isinstance(config, dict):
        raise DefinitionError(f"{path} holds no mapping", "generate the suite again")
    return config


def find_definition(
    benchmark: str, userdir: Path, root: Path, config: dict[str, Any]
) -> Path:
    """Return the definition file that AMLB will run for a benchmark, absolute.

    The first folder of ``definition_dir`` that holds ``NAME.yaml`` wins. A path is taken relative
    to the current directory; a bare name never means a file or folder there (AMLB would take it
    for one).

    Raises
    ------
    DefinitionError
        Naming the nearest known benchmark.
    """
    path = Path(benchmark).expanduser()
    if path.suffix in ENDINGS or len(path.parts) > 1:
        if path.is_file():
            return path.absolute()
        raise DefinitionError(
            f"there is no benchmark definition {path}", "give a name or a YAML file"
        )
    folders = configured_paths(DEFINITION_DIR, config, userdir=userdir, root=root)
    names: set[str] = set()
    for folder in folders:
        path = folder / f"{benchmark}.yaml"
        if path.is_file():
            return path.absolute()
        names.update(definition.stem for definition in folder.glob("*.yaml"))
    raise DefinitionError(
        f"there is no benchmark {benchmark!r}", suggest_nearest(benchmark, names)
    )


def read_constraint(
    name: str, userdir: Path, root: Path, config: dict[str, Any]
) -> dict[str, Any]:
    """Return a constraint's settings; of two with one name the later file's.

    Raises
    ------
    DefinitionError
        Naming the nearest known constraint.
    """
    by_name: dict[str, dict[str, Any]] = {}
    files = configured_paths(CONSTRAINTS_FILE, config, userdir=userdir, root=root)
    for path in files:
        constraints = read_amlb_yaml(path) if path.is_file() else None
        for key, settings in (constraints or {}).items():
            by_name[key.lower()] = settings or {}
    if name.lower() not in by_name:
        raise DefinitionError(
            f"there is no constraint {name!r}", suggest_nearest(name.lower(), by_name)
        )
    return by_name[name.lower()]


def configured_folds(config: dict[str, Any]) -> int:
    """Return the number of folds of a task where neither it nor the constraint says."""
    # Either may stand in the file with nothing after it.
    section = config.get("benchmarks") or {}
    defaults = section.get("defaults") or {}
    return int(defaults.get("folds", DEFAULT_FOLDS))


def configured_paths(
    setting: PathSetting, config: dict[str, Any], *, userdir: Path, root: Path
) -> list[Path]:
    """Return the paths of a setting such as ``definition_dir`` of ``benchmarks``.

    Parameters
    ----------
    setting : PathSetting
    config : dict
        As :func:`read_user_config` gives it.
    userdir, root : Path
        What ``{user}`` and ``{root}`` stand for.
    """
    # No definition lies in the folder of data sets, so {input} stays as it is.
    directories = {"user": str(userdir), "root": str(root), "input": "{input}"}
    texts = _setting_texts(config, setting) or [setting.own]
    return [expand_path(substitute_directories(text, directories)) for text in texts]


def _setting_texts(config: dict[str, Any], setting: PathSetting) -> list[str]:
    """Return a setting that is a text or a list of texts, as a list."""
    section = config.get(setting.section)
    value = section.get(setting.key) if isinstance(section, dict) else None
    texts = value if isinstance(value, list) else [value]
    return [str(text) for text in texts if text]


def _read_optional_config(user: Path) -> dict[str, Any]:
    """Return the user's AMLB configuration; empty when there is none."""
    path = user / "config.yaml"
    content = read_amlb_yaml(path) if path.is_file() else None
    return content if isinstance(content, dict) else {}
