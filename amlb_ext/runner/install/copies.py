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
class Installed:
    """A suite as a user directory has it, and as ``installed.json`` keeps it.

    Attributes
    ----------
    name : str
    suite : str
        Its folder, absolute.
    benchmarks, frameworks, constraints : list of str
        Names that AMLB then knows.
    files : list of str
        Paths below the suite's folder in the user directory.
    """

    name: str
    suite: str
    benchmarks: list[str]
    frameworks: list[str]
    constraints: list[str]
    files: list[str]


def make_copies(
    suite: Suite, name: str | None = None
) -> tuple[Installed, dict[str, bytes]]:
    """Return what to install of a suite, and the contents of its files by path.

    Parameters
    ----------
    suite : Suite
    name : str, optional
        In place of the suite's own; see :func:`benchmark_names` and :func:`framework_name`.

    Raises
    ------
    RunError
        A name that AMLB cannot load.
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
    texts: dict[str, Any] = {}
    # AMLB formats paths, so braces are doubled
    root = suite.root.absolute().as_posix().replace("{", "{{").replace("}", "}}")
    definitions = suite.definition_entries()
    names = benchmark_names(list(definitions), suite.name, name)
    for stem, installed_name in names.items():
        content = _with_absolute_paths(definitions[stem], root)
        texts[f"benchmarks/{installed_name}.yaml"] = content
    frameworks = {}
    try:
        own_frameworks = yaml.safe_load(suite.layout.frameworks.read_bytes())
        for framework, entry in own_frameworks.items():
            installed_name = framework_name(str(framework), name)
            frameworks[installed_name] = with_installed_module(entry, name)
        texts["frameworks.yaml"] = frameworks
        files = {path: yaml_text(text).encode("ascii") for path, text in texts.items()}
        # constraints and code, as they are
        for path in sorted(suite.manifest.files):
            if path == "constraints.yaml" or path.startswith("extensions/"):
                files[path] = suite.layout.at(path).read_bytes()
        constraints = yaml.safe_load(files.get("constraints.yaml", b"")) or {}
    except (OSError, yaml.YAMLError, ValueError, AttributeError) as error:
        raise SuiteError(
            f"the suite {suite.root} is damaged: {error}",
            f"see what is wrong: hardsynth verify {shlex.quote(str(suite.root))}",
        ) from None
    installed = Installed(
        name=name,
        suite=str(suite.root.absolute()),
        benchmarks=list(names.values()),
        frameworks=list(frameworks),
        constraints=list(map(str, constraints)),
        files=list(files),
    )
    return installed, files


def benchmark_names(stems: list[str], suite_name: str, name: str) -> dict[str, str]:
    """Return what each definition of a suite is installed as, the main one first.

    Under another name the suite's definitions take that name; that of a hard twin gets it
    appended.

    Examples
    --------
    >>> benchmark_names(["hardsynth", "hardsynth_all", "small_hard"], "hardsynth", "mine")
    {'hardsynth': 'mine', 'hardsynth_all': 'mine_all', 'small_hard': 'small_hard_mine'}
    """
    names = {suite_name: name, f"{suite_name}_all": f"{name}_all"}
    for stem in sorted(set(stems) - set(names)):
        names[stem] = stem if name == suite_name else f"{stem}_{name}"
    return {stem: installed for stem, installed in names.items() if stem in stems}


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


def _with_absolute_paths(value: Any, root: str) -> Any:
    """Put the suite's folder where its files say ``{user}``."""
    if isinstance(value, Mapping):
        return {key: _with_absolute_paths(item, root) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_absolute_paths(item, root) for item in value]
    if isinstance(value, str) and value.startswith("{user}/"):
        return root + value.removeprefix("{user}")
    return value


def with_installed_module(entry: dict[str, Any], name: str) -> dict[str, Any]:
    """Let a framework's entry name the installed copy of its code, where the suite brings it."""
    module = str(entry.get("module", ""))
    if not module.startswith("extensions."):
        return entry
    installed = {**entry, "module": f"{FOLDER}.{name}.{module}"}
    if entry.get("params"):
        installed["params"] = dict(entry["params"])
        for key, value in entry["params"].items():
            # a model of ours, whose code is a copy, too
            if packaged_folder(str(value)):
                installed["params"][key] = f"{FOLDER}.{name}.{value}"
    return installed
