"""What is installed in a user directory, and names that are taken there.

``hardsynth_suites/config.json`` knows which entries of ``config.yaml`` are ours and what the file
was before the first of them; ``hardsynth_suites/<name>/installed.json`` what a suite brought.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from amlb_ext.core.errors import HardsynthError, RunError
from amlb_ext.core.files import sha256_file, write_file
from amlb_ext.runner.install.config_edit import Key, list_entries, strip_entries
from amlb_ext.runner.install.copies import FOLDER, Copies

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
    """

    name: str
    suite: str
    manifest: str
    benchmarks: list[str]
    frameworks: list[str]
    constraints: list[str]
    files: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class State:
    """What we remember of ``config.yaml``.

    Attributes
    ----------
    suites : list of str
        Names, in the order in which they were installed.
    before, after : str
        The sha256 of the file without ours, and with; ``before`` is empty where there was none.
    made, created : bool
        Whether the user directory, and the file, did not exist before.
    """

    suites: list[str] = field(default_factory=list)
    before: str = ""
    after: str = ""
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
        """What we remember of the configuration."""
        return self.folder / "config.json"

    def suite(self, name: str) -> Path:
        """Folder of an installed suite."""
        return self.folder / name

    def record(self, name: str) -> Path:
        """Record of an installed suite; written last."""
        return self.suite(name) / "installed.json"


# Records that cannot be read, or that another version wrote with other fields, count as none:
# a damaged record must not keep the user from installing or uninstalling.
_UNREADABLE = (OSError, ValueError, TypeError)


def read_state(home: Home) -> State:
    """Return what we remember of the configuration; nothing where no suite was installed."""
    with contextlib.suppress(*_UNREADABLE):
        return State(**json.loads(home.state.read_text(encoding="utf-8")))
    return State()


def read_installed(home: Home) -> dict[str, Installed]:
    """Return all installed suites by name."""
    installed = {}
    for path in sorted(home.folder.glob("*/installed.json")):
        with contextlib.suppress(*_UNREADABLE):
            record = Installed(**json.loads(path.read_text(encoding="utf-8")))
            # A folder that the user copied or renamed is not an installation.
            if record.name == path.parent.name:
                installed[record.name] = record
    return installed


def write_json(path: Path, record: Installed | State) -> None:
    """Write a record."""
    text = json.dumps(asdict(record), indent=1, sort_keys=True) + "\n"
    write_bytes(path, text.encode("ascii"))


def write_bytes(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file whole or not at all.

    Raises
    ------
    RunError
        It cannot be written.
    """

    def write_part(part: Path) -> None:
        part.write_bytes(content)
        if mode is not None:
            os.chmod(part, mode)

    try:
        write_file(path, write_part)
    except HardsynthError as error:
        raise RunError(
            error.message, "make it writable, or choose another --userdir"
        ) from None


def added_entries(
    names: list[str], with_constraints: Mapping[str, bool]
) -> dict[Key, list[str]]:
    """Return the entries of ``config.yaml`` that the installed suites need.

    Examples
    --------
    >>> added_entries(["a"], {"a": False})["frameworks", "definition_file"]
    ['{user}/hardsynth_suites/a/frameworks.yaml']
    """
    definition_dirs: list[str] = []
    constraints_files: list[str] = []
    framework_files: list[str] = []
    for name in names:
        # AMLB replaces {user}, so the entries stay valid where the user directory moves.
        folder = f"{{user}}/{FOLDER}/{name}"
        definition_dirs.append(f"{folder}/benchmarks")
        if with_constraints[name]:
            constraints_files.append(f"{folder}/constraints.yaml")
        framework_files.append(f"{folder}/frameworks.yaml")
    return {
        ("benchmarks", "definition_dir"): definition_dirs,
        ("benchmarks", "constraints_file"): constraints_files,
        ("frameworks", "definition_file"): framework_files,
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
    owners = _benchmark_owners(home, config, others)
    for name in new.benchmarks:
        _check_is_free("benchmark", name, owners)
    owners = _framework_owners(home, config, others)
    for name in new.frameworks:
        _check_is_free("framework", name, owners)


def _benchmark_owners(
    home: Home, config: Mapping[str, Any], others: list[Installed]
) -> dict[str, str]:
    """Return where each benchmark's name is taken, by the name in lower case."""
    owners: dict[str, str] = {name: "AMLB itself" for name in AMLB_BENCHMARKS}
    for folder in _configured_paths(home, config, ("benchmarks", "definition_dir")):
        with contextlib.suppress(OSError):  # a folder that is not there takes no name
            for path in folder.iterdir():
                if path.suffix == ".yaml":
                    owners[path.stem.lower()] = str(path)
    for other in others:
        for name in other.benchmarks:
            owners[name.lower()] = f"the suite {other.suite}"
    return owners


def _framework_owners(
    home: Home, config: Mapping[str, Any], others: list[Installed]
) -> dict[str, str]:
    """Return where each framework's name is taken, by the name in lower case."""
    owners: dict[str, str] = {}
    for path in _configured_paths(home, config, ("frameworks", "definition_file")):
        for name in _top_level_keys(path):
            owners[name.lower()] = str(path)
    for other in others:
        for name in other.frameworks:
            owners[name.lower()] = f"the suite {other.suite}"
    return owners


def _check_is_free(kind: str, name: str, owners: Mapping[str, str]) -> None:
    # AMLB finds frameworks, and names folders of results, in lower case.
    owner = owners.get(name.lower())
    if owner is not None:
        raise RunError(
            f"the {kind}'s name {name} is taken by {owner}",
            "install it under another name: --name NAME",
        )


def list_overridden_constraints(
    home: Home, config: Mapping[str, Any], new: Copies
) -> list[str]:
    """Return constraints of the suite whose names the user has too; the user's stay in force."""
    users: set[str] = set()
    for path in _configured_paths(home, config, ("benchmarks", "constraints_file")):
        users.update(name.lower() for name in _top_level_keys(path))
    return [name for name in new.constraints if name.lower() in users]


def _configured_paths(
    home: Home, config: Mapping[str, Any], key: Key
) -> Iterator[Path]:
    """Yield the user's own files or folders of a list, and AMLB's where its checkout is known."""
    directories = {"user": str(home.root)}
    if os.environ.get("AMLB_HOME"):
        directories["root"] = os.environ["AMLB_HOME"]
    for text in list_entries(config, key) or ():
        # What cannot be resolved here (no checkout, stray braces) is left for AMLB to report.
        with contextlib.suppress(KeyError, ValueError, IndexError, AttributeError):
            yield Path(text.format_map(directories)).expanduser()


def _top_level_keys(path: Path) -> list[str]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return []  # AMLB reports such a file itself
    return [str(key) for key in content] if isinstance(content, dict) else []


# The files of a user directory, read, written and removed.


def read_texts(home: Home) -> tuple[str, str | None]:
    """Return the user's own configuration, and the file as it stands (None where there is none).

    Raises
    ------
    RunError
        It cannot be read.
    """
    if not home.config.exists():
        return "", None
    try:
        raw = home.config.read_bytes()
        text = raw.decode("utf-8")
    except OSError as error:
        raise RunError(
            f"cannot read {home.config}: {error.strerror}", "make it readable"
        ) from None
    except UnicodeDecodeError as error:
        raise RunError(
            f"{home.config} is not in UTF-8 (byte {error.start})", "save it as UTF-8"
        ) from None
    state = read_state(home)
    if state.after == hashlib.sha256(raw).hexdigest():
        # Not edited since we wrote it: the backup has the user's own bytes.
        backup, digest = b"", ""
        if home.backup.is_file():
            backup = home.backup.read_bytes()
            digest = hashlib.sha256(backup).hexdigest()
        if digest == state.before:
            return backup.decode("utf-8"), text
    return strip_entries(text, f"/{FOLDER}/"), text


def is_intact(home: Home, record: Installed) -> bool:
    """Whether every installed file is as it was written."""
    for relative, digest in record.files.items():
        path = home.suite(record.name).joinpath(*relative.split("/"))
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


def write_copies(home: Home, new: Copies, earlier: Installed | None) -> None:
    """Write a suite's copies; remove those that an earlier installation had beside them."""
    folder = home.suite(new.name)
    for relative, content in new.files.items():
        write_bytes(folder.joinpath(*relative.split("/")), content)
    earlier_files = set(earlier.files) if earlier else set()
    for relative in earlier_files - set(new.files):
        folder.joinpath(*relative.split("/")).unlink(missing_ok=True)


def write_config(
    home: Home, *, own: str, text: str | None, wanted: str, state: State
) -> None:
    """Write backup, state and configuration, in this order.

    A run that is killed between two of them leaves a backup of the user's own bytes, and at worst
    a state whose hashes fit no file; our entries are then taken out of the configuration.

    Parameters
    ----------
    home : Home
    own : str
        The user's own configuration.
    text : str or None
        The file as it stands; None where there is none.
    wanted : str
        The file as it shall be.
    state : State
        Its hashes and ``created`` are filled in.
    """
    earlier = read_state(home)
    created = text is None or bool(earlier.suites and earlier.created)
    # A file of the user's stands behind ours, if only an empty one.
    has_own_file = bool(own.strip()) or not created
    before, after = own.encode("utf-8"), wanted.encode("utf-8")
    target = home.config.resolve()  # through a link, which stays one
    mode = target.stat().st_mode & 0o7777 if target.exists() else None
    if state.suites:
        _write_backup(home, before if has_own_file else None, mode)
        state = dataclasses.replace(
            state,
            before=hashlib.sha256(before).hexdigest() if has_own_file else "",
            after=hashlib.sha256(after).hexdigest(),
            created=created,
        )
        write_json(home.state, state)
    if not state.suites and not has_own_file:
        target.unlink(missing_ok=True)
    elif wanted != text:
        write_bytes(target, after, mode)


def _write_backup(home: Home, content: bytes | None, mode: int | None) -> None:
    """Keep the user's own configuration, where there is one; an equal backup stays untouched."""
    if content is None:
        home.backup.unlink(missing_ok=True)
        return
    is_kept = home.backup.is_file() and home.backup.read_bytes() == content
    if not is_kept:
        write_bytes(home.backup, content, mode)


def remove_suite(home: Home, record: Installed, *, is_last: bool) -> list[str]:
    """Remove a suite's folder and, after the last suite, all that is ours; return notes."""
    folder = home.suite(record.name)
    notes: list[str] = []
    # The record goes first: a removal that is killed halfway leaves no suite that seems installed.
    home.record(record.name).unlink(missing_ok=True)
    for relative in record.files:
        folder.joinpath(*relative.split("/")).unlink(missing_ok=True)
    # AMLB keeps its own notes, and what an integration installs, beside each integration.
    shutil.rmtree(folder / "extensions", ignore_errors=True)
    if folder.is_dir():
        _remove_empty_folders(folder)
        if any(folder.iterdir()):
            notes.append(f"{folder} holds files that are not ours; they stay")
        else:
            folder.rmdir()
    if is_last:
        _remove_home(home)
    return notes


def _remove_empty_folders(folder: Path) -> None:
    """Remove the folders below a folder that hold nothing, the deepest first."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def _remove_home(home: Home) -> None:
    """Remove state and backup, and the folders that we made where they are empty."""
    made = read_state(home).made
    home.state.unlink(missing_ok=True)
    home.backup.unlink(missing_ok=True)
    shutil.rmtree(home.folder / "__pycache__", ignore_errors=True)
    with contextlib.suppress(OSError):  # not empty: the rest is the user's
        home.folder.rmdir()
    if made:
        with contextlib.suppress(OSError):
            home.root.rmdir()
