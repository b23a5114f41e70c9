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
from amlb_ext.runner.install.config_edit import Key, entries_of, strip
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
        See :func:`amlb_ext.runner.install.config_edit.insert`.
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
    places = {name: f"{{user}}/{FOLDER}/{name}" for name in names}
    return {
        ("benchmarks", "definition_dir"): [
            f"{places[name]}/benchmarks" for name in names
        ],
        ("benchmarks", "constraints_file"): [
            f"{places[name]}/constraints.yaml"
            for name in names
            if with_constraints[name]
        ],
        ("frameworks", "definition_file"): [
            f"{places[name]}/frameworks.yaml" for name in names
        ],
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
            takers |= {
                p.stem.lower(): str(p) for p in folder.iterdir() if p.suffix == ".yaml"
            }
    for other in others:
        takers |= {
            name.lower(): f"the suite {other.suite}" for name in other.benchmarks
        }
    for name in new.benchmarks:
        if name.lower() in takers:
            raise RunError(
                f"the benchmark's name {name} is taken by {takers[name.lower()]}",
                remedy,
            )
    takers = {}
    for path in _paths(home, config, ("frameworks", "definition_file")):
        takers |= {name.lower(): str(path) for name in _keys(path)}
    for other in others:
        takers |= {
            name.lower(): f"the suite {other.suite}" for name in other.frameworks
        }
    for name in new.frameworks:
        if name.lower() in takers:
            raise RunError(
                f"the framework's name {name} is taken by {takers[name.lower()]}",
                remedy,
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


# Files of a user directory, written and removed for :mod:`amlb_ext.runner.install`.


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
        backup = home.backup.read_bytes() if home.backup.is_file() else b""
        if (
            hashlib.sha256(backup).hexdigest() if home.backup.is_file() else ""
        ) == state.before:
            return backup.decode("utf-8"), text
    return strip(text, state.inline, f"/{FOLDER}/"), text


def stands(home: Home, record: Installed) -> bool:
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
    for relative in set(earlier.files if earlier else ()) - set(new.files):
        folder.joinpath(*relative.split("/")).unlink(missing_ok=True)


def write_config(
    home: Home, own: str, text: str | None, wanted: str, state: State
) -> None:
    """Write backup, state and configuration, in this order.

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
    keeps = bool(own.strip()) or not created  # a file of the user's stands behind ours
    before, after = own.encode("utf-8"), wanted.encode("utf-8")
    target = home.config.resolve()  # through a link, which stays one
    mode = target.stat().st_mode & 0o7777 if target.exists() else None
    if state.suites:
        if keeps and not (home.backup.is_file() and home.backup.read_bytes() == before):
            write_bytes(home.backup, before, mode)
        if not keeps:
            home.backup.unlink(missing_ok=True)
        state = dataclasses.replace(
            state,
            before=hashlib.sha256(before).hexdigest() if keeps else "",
            after=hashlib.sha256(after).hexdigest(),
            created=created,
        )
        write_json(home.state, state)
    if not state.suites and not keeps:
        target.unlink(missing_ok=True)
    elif wanted != text:
        write_bytes(target, after, mode)


def remove(home: Home, record: Installed, others: bool) -> list[str]:
    """Remove a suite's folder and, after the last suite, all that is ours."""
    folder, notes = home.suite(record.name), []
    home.record(record.name).unlink(missing_ok=True)
    for relative in record.files:
        folder.joinpath(*relative.split("/")).unlink(missing_ok=True)
    # AMLB keeps its own notes, and what an integration installs, beside each integration
    shutil.rmtree(folder / "extensions", ignore_errors=True)
    if folder.is_dir():
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        if any(folder.iterdir()):
            notes.append(f"{folder} holds files that are not ours; they stay")
        else:
            folder.rmdir()
    if not others:
        made = read_state(home).made
        home.state.unlink(missing_ok=True)
        home.backup.unlink(missing_ok=True)
        shutil.rmtree(home.folder / "__pycache__", ignore_errors=True)
        with contextlib.suppress(OSError):
            home.folder.rmdir()
        if made:
            with contextlib.suppress(OSError):
                home.root.rmdir()
    return notes
