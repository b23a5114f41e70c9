"""What is installed in a user directory, and names that are taken there.

``hardsynth_suites/config.json`` knows which entries of ``config.yaml`` are ours and what the file
was before the first of them; ``hardsynth_suites/<name>/installed.json`` what a suite brought.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from amlb_ext.core.atomic import write_file
from amlb_ext.core.errors import HardsynthError, RunError
from amlb_ext.runner.install.files import FOLDER, Copies
from amlb_ext.runner.install.place import Key
from amlb_ext.runner.install.text import entries_of

#: AMLB's own definitions, whose names are found before those of a suite.
AMLB_BENCHMARKS = ("example", "large", "medium", "small", "test", "timeseries", "validation")


@dataclass(frozen=True)
class Installed:
    """An installed suite.

    Attributes
    ----------
    name, suite : str
        ``suite`` is its folder, absolute.
    manifest : str
        The sha256 of the suite's manifest.
    benchmarks, frameworks, constraints : list of str
    files : dict of str to str
        The sha256 of each file, by path below the suite's folder in the user directory.
    """

    name: str
    suite: str
    manifest: str
    benchmarks: list[str]
    frameworks: list[str]
    constraints: list[str]
    files: dict[str, str]


@dataclass(frozen=True)
class State:
    """What is known of ``config.yaml``.

    Attributes
    ----------
    suites : list of str
        Names, in the order in which they were installed.
    before, after : str
        The sha256 of the file without ours, and with; ``before`` is empty where there was none.
    inline : list of str
        See :func:`amlb_ext.runner.install.text.insert`.
    made, created : bool
        Whether the user directory, and the file, did not exist before.
    """

    suites: list[str] = field(default_factory=list)
    before: str = ""
    after: str = ""
    inline: list[str] = field(default_factory=list)
    made: bool = False
    created: bool = False


@dataclass(frozen=True)
class Home:
    """The paths of a user directory."""

    root: Path

    @property
    def config(self) -> Path:
        """AMLB's configuration."""
        return self.root / "config.yaml"

    @property
    def backup(self) -> Path:
        """The configuration as it was before the first suite."""
        return self.root / "config.yaml.hardsynth-backup"

    @property
    def folder(self) -> Path:
        """Where installed suites stand."""
        return self.root / FOLDER

    @property
    def state(self) -> Path:
        """What is known of the configuration."""
        return self.folder / "config.json"

    def suite(self, name: str) -> Path:
        """Folder of an installed suite."""
        return self.folder / name

    def record(self, name: str) -> Path:
        """Record of an installed suite; written last."""
        return self.suite(name) / "installed.json"


def read_state(home: Home) -> State:
    """Return what is known of the configuration; nothing where no suite was installed."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return State(**json.loads(home.state.read_text(encoding="utf-8")))
    return State()


def read_installed(home: Home) -> dict[str, Installed]:
    """Return all installed suites by name."""
    found = {}
    for path in sorted(home.folder.glob("*/installed.json")):
        with contextlib.suppress(OSError, ValueError, TypeError):
            entry = Installed(**json.loads(path.read_text(encoding="utf-8")))
            if entry.name == path.parent.name:
                found[entry.name] = entry
    return found


def write_json(path: Path, entry: Installed | State) -> None:
    """Write a record."""
    text = json.dumps(asdict(entry), indent=1, sort_keys=True) + "\n"
    write_bytes(path, text.encode("ascii"))


def write_bytes(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file whole or not at all.

    Raises
    ------
    RunError
        It cannot be written.
    """

    def write(part: Path) -> None:
        part.write_bytes(content)
        if mode is not None:
            os.chmod(part, mode)

    try:
        write_file(path, write)
    except HardsynthError as error:
        raise RunError(error.message, "make it writable, or choose another --userdir") from None


def added_entries(names: list[str], with_constraints: Mapping[str, bool]) -> dict[Key, list[str]]:
    """Return the entries of ``config.yaml`` that the installed suites need.

    Examples
    --------
    >>> added_entries(["a"], {"a": False})["frameworks", "definition_file"]
    ['{user}/hardsynth_suites/a/frameworks.yaml']
    """
    places = {name: f"{{user}}/{FOLDER}/{name}" for name in names}
    return {
        ("benchmarks", "definition_dir"): [f"{places[name]}/benchmarks" for name in names],
        ("benchmarks", "constraints_file"): [
            f"{places[name]}/constraints.yaml" for name in names if with_constraints[name]
        ],
        ("frameworks", "definition_file"): [f"{places[name]}/frameworks.yaml" for name in names],
    }


def check_names(
    home: Home, config: Mapping[str, Any], new: Copies, others: list[Installed]
) -> None:
    """Raise when a name of the suite is taken by another benchmark or framework.

    Raises
    ------
    RunError
        Naming what has it already, and what to type.
    """
    remedy = "install it under another name: --name NAME"
    takers: dict[str, str] = {name: "AMLB itself" for name in AMLB_BENCHMARKS}
    for folder in _paths(home, config, ("benchmarks", "definition_dir")):
        with contextlib.suppress(OSError):
            takers |= {p.stem.lower(): str(p) for p in folder.iterdir() if p.suffix == ".yaml"}
    for other in others:
        takers |= {name.lower(): f"the suite {other.suite}" for name in other.benchmarks}
    for name in new.benchmarks:
        if name.lower() in takers:
            raise RunError(
                f"there is a benchmark {name} already, of {takers[name.lower()]}", remedy
            )
    takers = {}
    for path in _paths(home, config, ("frameworks", "definition_file")):
        takers |= {name.lower(): str(path) for name in _keys(path)}
    for other in others:
        takers |= {name.lower(): f"the suite {other.suite}" for name in other.frameworks}
    for name in new.frameworks:
        if name.lower() in takers:
            raise RunError(
                f"there is a framework {name} already, of {takers[name.lower()]}", remedy
            )


def own_constraints(home: Home, config: Mapping[str, Any], new: Copies) -> list[str]:
    """Return constraints of the suite whose names the user has too; the user's stay in force."""
    known: set[str] = set()
    for path in _paths(home, config, ("benchmarks", "constraints_file")):
        known |= {name.lower() for name in _keys(path)}
    return [name for name in new.constraints if name.lower() in known]


def _paths(home: Home, config: Mapping[str, Any], key: Key) -> Iterator[Path]:
    """Yield the user's own files or folders of a list, and AMLB's where its checkout is known."""
    places = {"user": str(home.root)}
    if os.environ.get("AMLB_HOME"):
        places["root"] = os.environ["AMLB_HOME"]
    for text in entries_of(config, key) or ():
        with contextlib.suppress(KeyError, ValueError, IndexError, AttributeError):
            yield Path(text.format_map(places)).expanduser()


def _keys(path: Path) -> list[str]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return []  # AMLB says so itself
    return [str(key) for key in content] if isinstance(content, dict) else []
