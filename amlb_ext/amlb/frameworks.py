"""Framework definitions: what AMLB runs under a framework's name, and where it is set up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amlb_ext.amlb.configuration import PathSetting, configured_paths
from amlb_ext.amlb.definition import read_amlb_yaml, sanitize_name
from amlb_ext.core.errors import DefinitionError, suggest_nearest

DEFINITION_FILE = PathSetting(
    "frameworks", "definition_file", "{root}/resources/frameworks.yaml"
)

#: The names of AMLB's own constraints and frameworks, v2.1.7, as it compares them: in lower case.
AMLB_CONSTRAINTS = ("test", "1h4c", "1h8c", "4h8c", "8h8c", "1h8c_gp3", "4h8c_gp3")
_FRAMEWORKS = """
    autogluon autogluon_bestquality autogluon_hq autogluon_gq autosklearn autosklearn2 autoweka
    autoxgboost flaml gama h2oautoml hyperoptsklearn lightautoml mljarsupervised
    mljarsupervised_compete mlnet mlplan mlplansklearn mlplanweka mlr3automl naiveautoml oboe tpot
    fedot constantpredictor decisiontree randomforest ranger tunedrandomforest
"""
AMLB_FRAMEWORKS = tuple(_FRAMEWORKS.split())


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


def check_framework(
    framework: str, userdir: Path, root: Path, config: dict[str, Any]
) -> None:
    """Raise unless AMLB can run a framework of that name, e.g. ``flaml`` or ``flaml:2023Q2``.

    Parameters
    ----------
    framework : str
    userdir, root : Path
        The user directory, and AMLB's checkout.
    config : dict
        As :func:`amlb_ext.amlb.configuration.read_user_config` gives it.

    Raises
    ------
    DefinitionError
        An unknown framework or tag, or one that AMLB only lists. Naming the nearest known one.
    """
    name, _, tag = framework.partition(":")
    files = _definition_files(tag, userdir, root, config)
    if tag and not any(path.is_file() for path in files):
        tags = []
        for path in _definition_files("", userdir, root, config):
            for tagged in path.parent.glob(f"{path.stem}_*{path.suffix}"):
                tags.append(tagged.stem.removeprefix(f"{path.stem}_"))
        raise DefinitionError(
            f"AMLB has no frameworks with the tag {tag!r}",
            suggest_nearest(tag, sorted(tags)),
        )
    entries = _read_entries(files)
    # A name that is listed to be built upon, or is gone, cannot be run.
    runnable = []
    for entry in entries.values():
        is_base = entry["name"].startswith("__") or entry.get("abstract")
        if not (is_base or entry.get("removed")):
            runnable.append(entry["name"])
    chosen = entries.get(name.lower())
    if chosen is None:
        places = " and ".join(str(path) for path in files if path.is_file())
        raise DefinitionError(
            f"there is no framework {name!r} in {places or 'the files of frameworks'}",
            f"{suggest_nearest(name, runnable)}; one of your own AMLB user directory runs after "
            "hardsynth install SUITE",
        )
    if chosen.get("removed"):
        raise DefinitionError(
            f"AMLB has removed the framework {name!r}: {chosen['removed']}",
            suggest_nearest(name, runnable),
        )
    if chosen.get("abstract"):
        raise DefinitionError(
            f"the framework {name!r} is abstract, so it is only a base for others",
            "run one that extends it",
        )


def find_framework(
    framework: str, userdir: Path, root: Path, config: dict[str, Any]
) -> Framework | None:
    """Return a framework by AMLB's rules, e.g. ``flaml`` or ``flaml:2023Q2``.

    Returns
    -------
    Framework or None
        None for an unknown one, and where its code is not found; AMLB then says what it misses.

    Raises
    ------
    DefinitionError
        A file of definitions cannot be read.
    """
    name, _, tag = framework.partition(":")
    entries = _read_entries(_definition_files(tag, userdir, root, config))
    lineage = _list_with_parents(name.lower(), entries)
    if not lineage:
        return None
    merged: dict[str, Any] = {}
    for entry in reversed(lineage):  # a child's settings replace its parent's
        merged.update(entry)
    # The code is by default that of the oldest ancestor, under its name.
    default_module = f"frameworks.{lineage[-1]['name']}"
    module = str(merged.get("module") or default_module)
    folders = [base.joinpath(*module.split(".")) for base in (root, userdir)]
    folder = next((path for path in folders if path.is_dir()), None)
    if folder is None:
        return None
    has_command = bool(merged.get("setup_cmd") or merged.get("setup_script"))
    return Framework(
        name=str(lineage[0]["name"]),
        version=str(merged.get("version") or "stable"),
        module=module,
        folder=folder,
        has_setup=has_command or (folder / "setup.sh").is_file(),
    )


def _definition_files(
    tag: str, userdir: Path, root: Path, config: dict[str, Any]
) -> list[Path]:
    """Return the files of frameworks that AMLB reads for a tag, whether they are there or not."""
    files = configured_paths(DEFINITION_FILE, config, userdir=userdir, root=root)
    if not tag:
        return files
    # flaml:2023Q2 stands in frameworks_2023Q2.yaml
    return [path.with_name(f"{path.stem}_{tag}{path.suffix}") for path in files]


def _read_entries(files: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Return the entries of all files of frameworks, by lower-case name; the last one wins."""
    entries: dict[str, dict[str, Any]] = {}
    for path in files:
        content = read_amlb_yaml(path) if path.is_file() else None
        if not isinstance(content, dict):
            continue
        for name, settings in content.items():
            entry = {"name": sanitize_name(str(name)), **(settings or {})}
            entries[str(name).lower()] = entry
    return entries


def _list_with_parents(
    name: str, entries: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return a framework's entry, then those it extends; a circle ends the list."""
    lineage: list[dict[str, Any]] = []
    while name in entries and entries[name] not in lineage:
        entry = entries[name]
        lineage.append(entry)
        name = str(entry.get("extends") or "").lower()
    return lineage
