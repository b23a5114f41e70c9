"""Framework definitions: what AMLB runs under a framework's name, and where it is set up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amlb_ext.amlb.configuration import configured_paths
from amlb_ext.amlb.definition import read_amlb_yaml, sanitize_name

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
        None for one that is not known here; AMLB then says what it misses.

    Raises
    ------
    DefinitionError
        A file of definitions cannot be read.
    """
    name, _, tag = framework.partition(":")
    known: dict[str, dict[str, Any]] = {}
    files = configured_paths(
        config,
        "frameworks",
        "definition_file",
        OWN_FRAMEWORKS,
        userdir=userdir,
        root=root,
    )
    for path in files:
        # flaml:2023Q2 stands in frameworks_2023Q2.yaml.
        tagged = path.with_name(f"{path.stem}_{tag}{path.suffix}") if tag else path
        entries = read_amlb_yaml(tagged) if tagged.is_file() else None
        if not isinstance(entries, dict):
            continue
        for key, entry in entries.items():
            known[str(key).lower()] = {"name": sanitize_name(str(key)), **(entry or {})}
    lineage = _list_with_parents(name.lower(), known)
    if not lineage:
        return None
    merged: dict[str, Any] = {}
    for entry in reversed(lineage):  # a child's settings replace its parent's
        merged.update(entry)
    module = str(merged.get("module") or f"frameworks.{lineage[-1]['name']}")
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


def _find_module_folder(module: str, *search_path: Path) -> Path | None:
    for base in search_path:
        folder = base.joinpath(*module.split("."))
        if folder.is_dir():
            return folder
    return None


def _list_with_parents(
    name: str, known: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return a framework's entry, then those it extends; a circle ends the list."""
    lineage: list[dict[str, Any]] = []
    while name in known and known[name] not in lineage:
        lineage.append(known[name])
        name = str(known[name].get("extends") or "").lower()
    return lineage
