"""Framework definitions: what AMLB runs under a framework's name, and where it is set up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amlb_ext.amlb.configuration import configured_paths
from amlb_ext.amlb.definition import read_amlb_yaml, sanitize_name

#: AMLB's own value of the setting ``frameworks.definition_file``.
OWN_FRAMEWORKS = "{root}/resources/frameworks.yaml"


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
        None for an unknown one; AMLB then says what it misses.

    Raises
    ------
    DefinitionError
        A file of definitions cannot be read.
    """
    name, _, tag = framework.partition(":")
    entries = _read_entries(tag, userdir, root, config)
    lineage = _list_with_parents(name.lower(), entries)
    if not lineage:
        return None
    merged: dict[str, Any] = {}
    for entry in reversed(lineage):  # a child's settings replace its parent's
        merged.update(entry)
    # The code is by default that of the oldest ancestor, under its name.
    default_module = f"frameworks.{lineage[-1]['name']}"
    module = str(merged.get("module") or default_module)
    folder = _find_module_folder(module, root, userdir)
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


def _read_entries(
    tag: str, userdir: Path, root: Path, config: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the entries of all files of frameworks, by lower-case name; the last one wins."""
    files = configured_paths(
        config,
        "frameworks",
        "definition_file",
        OWN_FRAMEWORKS,
        userdir=userdir,
        root=root,
    )
    entries: dict[str, dict[str, Any]] = {}
    for path in files:
        if tag:  # flaml:2023Q2 stands in frameworks_2023Q2.yaml
            path = path.with_name(f"{path.stem}_{tag}{path.suffix}")
        content = read_amlb_yaml(path) if path.is_file() else None
        if not isinstance(content, dict):
            continue
        for name, settings in content.items():
            entry = {"name": sanitize_name(str(name))}
            entry.update(settings or {})
            entries[str(name).lower()] = entry
    return entries


def _find_module_folder(module: str, *search_path: Path) -> Path | None:
    for base in search_path:
        folder = base.joinpath(*module.split("."))
        if folder.is_dir():
            return folder
    return None


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
