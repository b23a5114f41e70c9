"""What a user directory gets of a suite: copies of its YAML with absolute paths, its integrations.

A suite's own files say ``{user}`` where they mean the suite; in another user directory that is
another place. So the copies name the suite's folder, and the suite itself stays as it is::

    USERDIR/hardsynth_suites/<name>/benchmarks/*.yaml     data: the suite's folder
    USERDIR/hardsynth_suites/<name>/frameworks.yaml       module: hardsynth_suites.<name>.extensions
    USERDIR/hardsynth_suites/<name>/extensions/           the integrations' code
    USERDIR/hardsynth_suites/<name>/constraints.yaml
    USERDIR/hardsynth_suites/<name>/installed.json        what was installed

The folder is not called ``hardsynth``: AMLB takes a folder of a benchmark's name, where it
stands in the current directory, for the benchmark.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from amlb_ext.core.errors import RunError, SuiteError
from amlb_ext.core.estimators import packaged_folder
from amlb_ext.suite.definition import yaml_text
from amlb_ext.suite.layout import safe_names
from amlb_ext.suite.reader import Suite

#: The folder of all installed suites, in a user directory; on AMLB's ``sys.path``.
FOLDER = "hardsynth_suites"
#: The name that suites have unless another is asked for.
_DEFAULT_NAME = "hardsynth"


@dataclass(frozen=True, kw_only=True)
class Copies:
    """A suite as it is installed.

    Attributes
    ----------
    name : str
    benchmarks, frameworks, constraints : tuple of str
        Names that AMLB then knows.
    files : dict of str to bytes
        Contents by path below the suite's folder in the user directory.
    """

    name: str
    benchmarks: tuple[str, ...]
    frameworks: tuple[str, ...]
    constraints: tuple[str, ...]
    files: dict[str, bytes]


def make_copies(suite: Suite, name: str | None = None) -> Copies:
    """Return what to install of a suite.

    Parameters
    ----------
    suite : Suite
    name : str, optional
        In place of the suite's own; see :func:`benchmark_names` and :func:`framework_name`.

    Raises
    ------
    RunError
        A name or a folder that AMLB cannot load.
    SuiteError
        A file of the suite is missing or damaged.
    """
    name = name or suite.name
    loadable_name = safe_names([name])[0]
    if loadable_name != name:
        raise RunError(
            f"{name!r} is not a name that AMLB can load",
            f"use letters, digits, - and _, e.g. --name {loadable_name}",
        )
    files: dict[str, bytes] = {}
    suite_files = sorted(suite.manifest.files)

    # Definitions, whose data files lie in the suite's folder.
    root = _root_text(suite.root)
    definitions = suite.definition_entries()
    names = benchmark_names(list(definitions), suite.name, name)
    for stem, installed_name in names.items():
        content = _with_absolute_paths(definitions[stem], root)
        files[f"benchmarks/{installed_name}.yaml"] = yaml_text(content).encode("ascii")

    # Frameworks, whose code AMLB imports from the copy.
    frameworks: dict[str, Any] = {}
    suite_frameworks = _load_yaml(suite, "frameworks.yaml") or {}
    for framework, entry in suite_frameworks.items():
        installed_name = framework_name(str(framework), name)
        frameworks[installed_name] = _with_installed_module(entry, name)
    files["frameworks.yaml"] = yaml_text(frameworks).encode("ascii")

    # Constraints and code, as they are.
    constraints: tuple[str, ...] = ()
    if "constraints.yaml" in suite_files:
        suite_constraints = _load_yaml(suite, "constraints.yaml") or {}
        constraints = tuple(map(str, suite_constraints))
        files["constraints.yaml"] = _read_bytes(suite, "constraints.yaml")
    for path in suite_files:
        if path.startswith("extensions/"):
            files[path] = _read_bytes(suite, path)
    return Copies(
        name=name,
        benchmarks=tuple(names.values()),
        frameworks=tuple(frameworks),
        constraints=constraints,
        files=files,
    )


def benchmark_names(stems: list[str], suite_name: str, name: str) -> dict[str, str]:
    """Return what each definition of a suite is installed as, the main one first.

    Under another name the suite's definitions take that name; that of a hard twin gets it
    appended.

    Examples
    --------
    >>> benchmark_names(["hardsynth", "hardsynth_all", "small_hard"], "hardsynth", "mine")
    {'hardsynth': 'mine', 'hardsynth_all': 'mine_all', 'small_hard': 'small_hard_mine'}
    """
    main_names = {suite_name: name, f"{suite_name}_all": f"{name}_all"}
    main_stems = sorted(stem for stem in stems if stem in main_names)
    twin_stems = sorted(stem for stem in stems if stem not in main_names)
    names = {stem: main_names[stem] for stem in main_stems}
    for stem in twin_stems:
        names[stem] = stem if name == suite_name else f"{stem}_{name}"
    return names


def framework_name(framework: str, name: str) -> str:
    """Return what a framework of a suite is installed as: AMLB wants each name once.

    Examples
    --------
    >>> framework_name("HardsynthNull", "hardsynth"), framework_name("HardsynthNull", "mine")
    ('HardsynthNull', 'HardsynthNull_mine')
    """
    if name == _DEFAULT_NAME:
        return framework
    # A twin's suite is called hardsynth_<benchmark>: its frameworks need not say so twice.
    return f"{framework}_{name.removeprefix(f'{_DEFAULT_NAME}_')}"


def escape_braces(path: Path) -> str:
    """Return a path as AMLB's files want it: it formats them, so braces are doubled.

    Examples
    --------
    >>> escape_braces(Path("/data/{a}"))
    '/data/{{a}}'
    """
    return path.as_posix().replace("{", "{{").replace("}", "}}")


def _root_text(root: Path) -> str:
    """Return the suite's folder as AMLB's files want it; raise where they could not hold it."""
    path = root.expanduser().absolute()
    try:
        path.as_posix().encode("utf-8")
    except UnicodeEncodeError:
        raise RunError(
            f"the folder {str(path)!r} has a name that is not UTF-8", "move the suite"
        ) from None
    return escape_braces(path)


def _with_absolute_paths(value: Any, root: str) -> Any:
    """Put the suite's folder where its files say ``{user}``."""
    if isinstance(value, Mapping):
        return {key: _with_absolute_paths(item, root) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_absolute_paths(item, root) for item in value]
    if isinstance(value, str) and value.startswith("{user}/"):
        return root + value.removeprefix("{user}")
    return value


def _with_installed_module(entry: Any, name: str) -> Any:
    """Let a framework's entry name the installed copy of its code, where the suite brings it."""
    if not isinstance(entry, Mapping):
        return entry
    module = entry.get("module", "")
    if not str(module).startswith("extensions."):
        return entry
    installed = {**entry, "module": f"{FOLDER}.{name}.{module}"}
    params = dict(entry.get("params") or {})
    for family in ("classifier", "regressor"):
        path = str(params.get(family) or "")
        # a model of ours, whose code is a copy, too
        if packaged_folder(path):
            params[family] = f"{FOLDER}.{name}.{path}"
            installed["params"] = params
    return installed


def _read_bytes(suite: Suite, relative: str) -> bytes:
    try:
        return suite.root.joinpath(*relative.split("/")).read_bytes()
    except OSError as error:
        raise SuiteError(
            f"{relative} of the suite {suite.root} cannot be read: {error.strerror}",
            f"see what is wrong: hardsynth verify {shlex.quote(str(suite.root))}",
        ) from None


def _load_yaml(suite: Suite, relative: str) -> Any:
    try:
        return yaml.safe_load(_read_bytes(suite, relative).decode("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        raise SuiteError(
            f"{relative} of the suite {suite.root} is not valid YAML",
            "generate the suite again",
        ) from None
