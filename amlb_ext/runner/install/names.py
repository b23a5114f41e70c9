"""Names of benchmarks, frameworks and constraints that are taken in a user directory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from amlb_ext.amlb.configuration import expand_path, substitute_directories
from amlb_ext.core.errors import DefinitionError, RunError
from amlb_ext.runner.install.config_edit import OURS, Key, list_entries
from amlb_ext.runner.install.copies import Copies
from amlb_ext.runner.install.userdir import Home, Installed

#: AMLB's own definitions, whose names are found before those of a suite.
AMLB_BENCHMARKS = (
    "example",
    "large",
    "medium",
    "small",
    "test",
    "timeseries",
    "validation",
)


def check_names(
    home: Home, config: Mapping[str, Any], new: Copies, others: list[Installed]
) -> None:
    """Raise when a name of the suite is taken by another benchmark or framework.

    Raises
    ------
    RunError
        Naming what has it already, and what to type.
    """
    # AMLB finds frameworks, and names folders of results, in lower case.
    benchmarks = {name: "AMLB itself" for name in AMLB_BENCHMARKS}
    frameworks: dict[str, str] = {}
    for folder in _users_paths(home, config, ("benchmarks", "definition_dir")):
        for path in folder.glob("*.yaml"):
            benchmarks[path.stem.lower()] = str(path)
    for path in _users_paths(home, config, ("frameworks", "definition_file")):
        for name in _top_level_keys(path):
            frameworks[name.lower()] = str(path)
    for other in others:
        owner = f"the suite {other.suite}"
        benchmarks.update((name.lower(), owner) for name in other.benchmarks)
        frameworks.update((name.lower(), owner) for name in other.frameworks)
    for kind, names, owners in (
        ("benchmark", new.benchmarks, benchmarks),
        ("framework", new.frameworks, frameworks),
    ):
        for name in names:
            if name.lower() in owners:
                raise RunError(
                    f"the {kind}'s name {name} is taken by {owners[name.lower()]}",
                    "install it under another name: --name NAME",
                )


def list_overridden_constraints(
    home: Home, config: Mapping[str, Any], new: Copies
) -> list[str]:
    """Return constraints of the suite whose names the user has too; the user's stay in force."""
    users: set[str] = set()
    for path in _users_paths(home, config, ("benchmarks", "constraints_file")):
        users.update(name.lower() for name in _top_level_keys(path))
    return [name for name in new.constraints if name.lower() in users]


def _users_paths(home: Home, config: Mapping[str, Any], key: Key) -> Iterator[Path]:
    """Yield the user's own files or folders of a list, and AMLB's where its checkout is known."""
    directories = {"user": str(home.root)}
    if os.environ.get("AMLB_HOME"):
        directories["root"] = os.environ["AMLB_HOME"]
    for text in list_entries(config, key) or ():
        if text.startswith(OURS):
            continue
        # What cannot be resolved here (no checkout, stray braces) is left for AMLB to report.
        with suppress(DefinitionError):
            yield expand_path(substitute_directories(text, directories))


def _top_level_keys(path: Path) -> list[str]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return []  # AMLB reports such a file itself
    return [str(key) for key in content] if isinstance(content, dict) else []
