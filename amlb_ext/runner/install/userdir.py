"""An AMLB user directory with installed suites: its paths, and the files written and removed.

What is ours in ``config.yaml`` is told by its text. ``hardsynth_suites/<name>/installed.json``
says what a suite brought.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from amlb_ext.amlb.configuration import expand_path, substitute_directories
from amlb_ext.core.errors import DefinitionError, HardsynthError, RunError
from amlb_ext.core.files import sha256_file, write_file
from amlb_ext.runner.install.config_edit import (
    LISTS,
    OURS,
    Key,
    list_entries,
    our_entries,
    set_entries,
)
from amlb_ext.runner.install.copies import FOLDER, Copies


@dataclass(frozen=True, kw_only=True)
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
    made : bool
        Whether the user directory did not exist before.
    """

    name: str
    suite: str
    manifest: str
    benchmarks: list[str]
    frameworks: list[str]
    constraints: list[str]
    files: dict[str, str]
    made: bool


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
        """The configuration as it was before the first suite; absent where there was none."""
        return self.root / "config.yaml.hardsynth-backup"

    @property
    def folder(self) -> Path:
        """Where installed suites stand."""
        return self.root / FOLDER

    def record(self, name: str) -> Path:
        """Record of an installed suite."""
        return self.folder / name / "installed.json"


def read_installed(home: Home) -> dict[str, Installed]:
    """Return all installed suites by name."""
    installed = {}
    for path in sorted(home.folder.glob("*/installed.json")):
        # A damaged record must not keep the user from installing or uninstalling.
        with contextlib.suppress(OSError, ValueError, TypeError):
            record = Installed(**json.loads(path.read_text(encoding="utf-8")))
            # A folder that the user copied or renamed is not an installation.
            if record.name == path.parent.name:
                installed[record.name] = record
    return installed


def wanted_entries(installed: Iterable[Installed]) -> dict[Key, list[str]]:
    """Return the entries of ``config.yaml`` that suites need."""
    by_name = sorted(installed, key=lambda record: record.name)
    entries: dict[Key, list[str]] = {}
    for key, listed in LISTS.items():
        # Not every suite has constraints.
        is_listed = [
            r for r in by_name if r.constraints or key[1] != "constraints_file"
        ]
        entries[key] = [f"{OURS}{record.name}/{listed.file}" for record in is_listed]
    return entries


def read_config_text(path: Path) -> str | None:
    """Return the text of a ``config.yaml``; None where there is none.

    Raises
    ------
    RunError
        It cannot be read.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(
            f"cannot read {path}: {error.strerror}", "make it readable"
        ) from None
    except UnicodeDecodeError as error:
        raise RunError(
            f"{path} is not in UTF-8 (byte {error.start})", "save it as UTF-8"
        ) from None


def base_text(home: Home, text: str | None) -> str | None:
    """Return what entries are added to: the backup, or the file where the user has edited it.

    The backup with our entries is the file to the byte exactly if nobody has edited since.
    """
    ours = our_entries(text or "")
    if any(ours.values()):
        backup = read_config_text(home.backup)
        with contextlib.suppress(RunError):
            if set_entries(backup or "", ours) == text:
                return backup
    return text


def is_intact(home: Home, record: Installed) -> bool:
    """Whether every installed file is as it was written."""
    folder = home.folder / record.name
    for relative, digest in record.files.items():
        path = folder / relative
        if not path.is_file() or sha256_file(path) != digest:
            return False
    return True


def check_writable(home: Home) -> None:
    """Raise before anything is changed."""
    target = home.config.resolve()  # through a link, which stays one
    for path in (target, target.parent, home.root, home.folder):
        if path.exists() and not os.access(path, os.W_OK):
            raise RunError(
                f"{path} is read-only; nothing was changed",
                "make it writable, or choose another --userdir",
            )


def write_copies(home: Home, new: Copies, record: Installed) -> None:
    """Write a suite's copies, remove what an earlier installation had beside them.

    The record, which promises the copies, is written last.
    """
    for relative, content in new.files.items():
        _write_bytes(home.folder / new.name / relative, content)
    earlier = read_installed(home).get(new.name)
    if earlier is not None:
        for relative in set(earlier.files) - set(new.files):
            (home.folder / new.name / relative).unlink(missing_ok=True)
    text = json.dumps(asdict(record), indent=1, sort_keys=True) + "\n"
    _write_bytes(home.record(new.name), text.encode("ascii"))


def write_config(home: Home, text: str | None, wanted: str | None) -> None:
    """Write the backup, where the file holds nothing of ours yet, and then the file.

    Parameters
    ----------
    home : Home
    text, wanted : str or None
        The file as it stands, and as it shall be; None for no file.
    """
    if text == wanted:
        return
    target = home.config.resolve()  # through a link, which stays one
    mode = target.stat().st_mode & 0o7777 if target.exists() else None
    if text is None:
        home.backup.unlink(missing_ok=True)
    elif not any(our_entries(text).values()):
        _write_bytes(home.backup, text.encode("utf-8"), mode)
    if wanted is None:
        target.unlink(missing_ok=True)
    else:
        _write_bytes(target, wanted.encode("utf-8"), mode)


def _write_bytes(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file whole or not at all."""

    def write_part(part: Path) -> None:
        part.write_bytes(content)
        if mode is not None:
            part.chmod(mode)

    try:
        write_file(path, write_part)
    except HardsynthError as error:
        raise RunError(
            error.message, "make it writable, or choose another --userdir"
        ) from None


def remove_suite(home: Home, record: Installed, *, is_last: bool) -> list[str]:
    """Remove a suite's folder and, after the last suite, all that is ours; return notes."""
    folder = home.folder / record.name
    notes: list[str] = []
    # The record goes first: a removal that is killed halfway leaves no suite that seems installed.
    home.record(record.name).unlink(missing_ok=True)
    for relative in record.files:
        (folder / relative).unlink(missing_ok=True)
    # AMLB keeps its own notes, and what an integration installs, beside each integration.
    shutil.rmtree(folder / "extensions", ignore_errors=True)
    # A folder that is not empty holds files of the user's.
    for path in [*sorted(folder.rglob("*"), reverse=True), folder]:
        with contextlib.suppress(OSError):
            path.rmdir()
    if folder.exists():
        notes.append(f"{folder} holds files that are not ours; they stay")
    if is_last:
        home.backup.unlink(missing_ok=True)
        shutil.rmtree(home.folder / "__pycache__", ignore_errors=True)
        made = [home.folder, home.root] if record.made else [home.folder]
        for path in made:
            with contextlib.suppress(OSError):
                path.rmdir()
    return notes


# Names of benchmarks, frameworks and constraints that are taken in a user directory.

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
