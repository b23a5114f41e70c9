"""What is known of AMLB's frameworks: the versions that pip is held to, and what came of it.

The tables stand in ``resources/amlb_setup``, one for each release of AMLB that was tried.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from amlb_ext.amlb.frameworks import Framework
from amlb_ext.core.assets import asset_path


@dataclass(frozen=True, kw_only=True)
class KnownFramework:
    """What the table has on one framework.

    Attributes
    ----------
    constraints : tuple of str
        As in a constraints file of pip, a line each.
    programs : mapping of str to str
        Programs that pip cannot install, each with what to type to install it.
    date : date or None
        When it was last tried; None where it never was.
    python, version : str
        What it was tried with: Python's version, and the framework's own.
    scored : str
        How many jobs it scored then, e.g. ``5 of 5``.
    error : str
        Its own last error, where it did not run.
    """

    constraints: tuple[str, ...] = ()
    programs: Mapping[str, str] = field(default_factory=dict)
    date: datetime.date | None = None
    python: str = ""
    version: str = ""
    scored: str = ""
    error: str = ""


def read_known_frameworks(version: str) -> dict[str, KnownFramework]:
    """Return the table of a release of AMLB, by the names of the frameworks' folders.

    Parameters
    ----------
    version : str
        AMLB's; the table of the newest release stands in for one without a table.

    Returns
    -------
    dict of str to KnownFramework
        ``default`` is for the frameworks that have no entry.

    Examples
    --------
    >>> read_known_frameworks("2.1.7")["flaml"].version
    '1.2.4'
    """
    folder = asset_path("resources", "amlb_setup")
    path = folder / f"v{version}.yaml"
    if not path.is_file():
        path = max(folder.glob("*.yaml"), key=_release)
    text = path.read_text(encoding="utf-8")
    table: dict[str, dict[str, Any]] = yaml.safe_load(text)
    known = {}
    for name, entry in table.items():
        known[name] = KnownFramework(
            constraints=tuple(entry["constraints"]),
            programs=entry.get("programs", {}),
            **entry.get("tried", {}),
        )
    return known


def look_up(framework: Framework, version: str) -> KnownFramework:
    """Return what is known of a framework under a release of AMLB.

    Parameters
    ----------
    framework : Framework
    version : str
        AMLB's.

    Returns
    -------
    KnownFramework
        Empty for frameworks that are not AMLB's own, the default for versions other than
        ``stable``.

    Examples
    --------
    >>> own = Framework(name="x", version="1", module="extensions.x", folder=Path(), has_setup=True)
    >>> look_up(own, "2.1.7").constraints
    ()
    """
    package, _, name = framework.module.partition(".")
    if package != "frameworks":
        return KnownFramework()
    table = read_known_frameworks(version)
    # The table knows the versions of AMLB's "stable" frameworks, not those of "latest".
    if framework.version != "stable":
        return table["default"]
    return table.get(name, table["default"])


def _release(path: Path) -> tuple[int, ...]:
    """Return the numbers of a table's release, so that 2.1.10 comes after 2.1.9."""
    return tuple(int(number) for number in path.stem.removeprefix("v").split("."))
