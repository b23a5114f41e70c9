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
from amlb_ext.suite import Suite
from amlb_ext.suite.definition import yaml_text
from amlb_ext.suite.layout import safe_names

#: The folder of all installed suites, in a user directory; on AMLB's ``sys.path``.
FOLDER = "hardsynth_suites"
#: The name that suites have unless another is asked for.
_PLAIN = "hardsynth"


@dataclass(frozen=True)
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


def copies(suite: Suite, name: str | None = None) -> Copies:
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
    own = suite.manifest.name
    name = name or own
    if safe_names([name]) != [name]:
        raise RunError(
            f"{name!r} is not a name that AMLB can load",
            f"use letters, digits, - and _, e.g. --name {safe_names([name])[0]}",
        )
    root = _written(suite.layout.root)
    files: dict[str, bytes] = {}
    listed = sorted(suite.manifest.files)
    stems = [Path(path).stem for path in listed if path.startswith("benchmarks/")]
    names = benchmark_names(stems, own, name)
    for stem, new in names.items():
        content = _absolute(_load(suite, f"benchmarks/{stem}.yaml"), root)
        files[f"benchmarks/{new}.yaml"] = yaml_text(content).encode("ascii")
    frameworks: dict[str, Any] = {}
    for known, entry in (_load(suite, "frameworks.yaml") or {}).items():
        frameworks[framework_name(str(known), name)] = _module(entry, name)
    files["frameworks.yaml"] = yaml_text(frameworks).encode("ascii")
    constraints: tuple[str, ...] = ()
    if "constraints.yaml" in listed:
        constraints = tuple(map(str, _load(suite, "constraints.yaml") or {}))
        files["constraints.yaml"] = _bytes(suite, "constraints.yaml")
    for path in listed:
        if path.startswith("extensions/"):
            files[path] = _bytes(suite, path)
    return Copies(name, tuple(names.values()), tuple(frameworks), constraints, files)


def benchmark_names(stems: list[str], own: str, name: str) -> dict[str, str]:
    """Return what each definition of a suite is installed as, the main one first.

    Under another name the suite's definitions take that name; that of a hard twin gets it
    appended.

    Examples
    --------
    >>> benchmark_names(["hardsynth", "hardsynth_all", "small_hard"], "hardsynth", "mine")
    {'hardsynth': 'mine', 'hardsynth_all': 'mine_all', 'small_hard': 'small_hard_mine'}
    """
    plain = {own: name, f"{own}_all": f"{name}_all"}
    ordered = sorted(stems, key=lambda stem: (stem not in plain, stem))
    return {
        stem: plain.get(stem) or (stem if name == own else f"{stem}_{name}")
        for stem in ordered
    }


def framework_name(framework: str, name: str) -> str:
    """Return what a framework of a suite is installed as: AMLB wants each name once.

    Examples
    --------
    >>> framework_name("HardsynthNull", "hardsynth"), framework_name("HardsynthNull", "mine")
    ('HardsynthNull', 'HardsynthNull_mine')
    """
    tail = name.removeprefix(f"{_PLAIN}_")
    return framework if name == _PLAIN else f"{framework}_{tail}"


def braced(path: Path) -> str:
    """Return a path as AMLB's files want it: braces doubled.

    Examples
    --------
    >>> braced(Path("/data/{a}"))
    '/data/{{a}}'
    """
    return path.as_posix().replace("{", "{{").replace("}", "}}")


def _written(root: Path) -> str:
    path = root.expanduser().absolute()
    try:
        path.as_posix().encode("utf-8")
    except UnicodeEncodeError:
        raise RunError(
            f"the folder {str(path)!r} has a name that is not UTF-8", "move the suite"
        ) from None
    return braced(path)


def _absolute(value: Any, root: str) -> Any:
    """Put the suite's folder where its files say ``{user}``."""
    if isinstance(value, Mapping):
        return {key: _absolute(item, root) for key, item in value.items()}
    if isinstance(value, list):
        return [_absolute(item, root) for item in value]
    if isinstance(value, str) and value.startswith("{user}/"):
        return root + value.removeprefix("{user}")
    return value


def _module(entry: Any, name: str) -> Any:
    if isinstance(entry, Mapping) and str(entry.get("module", "")).startswith(
        "extensions."
    ):
        return {**entry, "module": f"{FOLDER}.{name}.{entry['module']}"}
    return entry


def _bytes(suite: Suite, relative: str) -> bytes:
    try:
        return suite.layout.at(relative).read_bytes()
    except OSError as error:
        raise SuiteError(
            f"{relative} of the suite {suite.layout.root} cannot be read: {error.strerror}",
            f"see what is wrong: hardsynth verify {shlex.quote(str(suite.layout.root))}",
        ) from None


def _load(suite: Suite, relative: str) -> Any:
    try:
        return yaml.safe_load(_bytes(suite, relative).decode("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        raise SuiteError(
            f"{relative} of the suite {suite.layout.root} is no YAML",
            "generate the suite again",
        ) from None
