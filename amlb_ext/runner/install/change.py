"""Adds a suite to a user directory, and takes it back.

The entries of all installed suites are always set anew, in the backup of the user's file or, when
the user has edited since, in the file as it stands. So suites may be taken back in any order.
"""

from __future__ import annotations

import difflib
import json
import os
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from amlb_ext.amlb.configuration import (
    OWN_USER_DIRECTORY,
    expand_path,
    substitute_directories,
)
from amlb_ext.core.errors import DefinitionError, HardsynthError, RunError
from amlb_ext.core.files import write_file
from amlb_ext.runner.install.config_edit import (
    LISTS,
    OURS,
    Key,
    list_entries,
    our_entries,
    read_config,
    set_entries,
)
from amlb_ext.runner.install.copies import FOLDER, Installed, make_copies
from amlb_ext.suite.layout import Layout
from amlb_ext.suite.reader import open_suite

Action = Literal["installed", "updated", "unchanged", "uninstalled"]


@dataclass(frozen=True, kw_only=True)
class Change(Installed):
    """What was done to a user directory, or would be.

    Attributes
    ----------
    action : str
        ``installed``, ``updated``, ``unchanged`` or ``uninstalled``.
    userdir : str
    diff : str
        Of ``config.yaml``, unified; empty where it stays as it is.
    notes : list of str
    dry_run : bool
    """

    action: Action
    userdir: str
    diff: str
    notes: list[str]
    dry_run: bool

    def text(self, userdir: str | None) -> str:
        """Return the diff, what AMLB knows now, and how to undo it; for a ``--userdir``."""
        where = f"in {self.userdir}"
        lines = [self.diff or "config.yaml does not change"]
        if self.dry_run:
            lines.append(f"\ndry run: nothing was changed {where}")
        elif self.action == "unchanged":
            lines.append(
                f"\nalready installed as {self.name} {where}, nothing to change"
            )
        else:
            lines.append(f"\n{self.action}: {self.name}, {where}")
        lines.append(f"  benchmarks:  {', '.join(self.benchmarks)}")
        lines.append(f"  frameworks:  {', '.join(self.frameworks)}")
        if self.constraints:
            lines.append(f"  constraints: {', '.join(self.constraints)}")
        if self.action != "uninstalled":
            # AMLB needs no -u for its own default directory
            folder = shlex.quote(str(Path(userdir).absolute())) if userdir else ""
            run = f"python runbenchmark.py FRAMEWORK {self.benchmarks[0]}"
            # the suite may be installed under other names as well
            undo = f"hardsynth uninstall {shlex.quote(self.suite)} --name {self.name}"
            lines.append(f"  run:         {run}{folder and f' -u {folder}'}")
            lines.append(f"  take back:   {undo}{folder and f' --userdir {folder}'}")
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


def install(
    directory: Path,
    userdir: Path | None = None,
    name: str | None = None,
    dry_run: bool = False,
) -> Change:
    """Add a suite to an AMLB user directory.

    Parameters
    ----------
    directory : Path
        The suite.
    userdir : Path, optional
        AMLB's default where omitted.
    name : str, optional
        In place of the suite's own, for benchmarks and frameworks.
    dry_run : bool
        Change nothing.

    Raises
    ------
    RunError, SuiteError
        No suite, a name that is taken, a configuration that cannot be read or written; nothing
        was changed.
    """
    home = _Home.of(userdir)
    suite = open_suite(directory)
    if Layout(home.root).manifest.is_file():
        raise RunError(
            f"{home.root} is a suite itself, which needs no installation",
            "name your own user directory with --userdir, or use -u SUITE",
        )
    record, files = make_copies(suite, name)
    installed = home.read_installed()
    earlier = installed.pop(record.name, None)
    # a suite that is gone from its place was moved
    place = Path(earlier.suite) if earlier else suite.root
    if place.exists() and not place.samefile(suite.root):
        undo = f"hardsynth uninstall {shlex.quote(str(place))} --name {record.name}"
        raise RunError(
            f"another suite is installed as {record.name}: {place}",
            f"--name NAME for a second one, or first: {undo} --userdir "
            f"{shlex.quote(str(home.root))}",
        )
    text = home.read_config()
    home.check_names(text or "", record, installed.values())
    entries = _wanted_entries([*installed.values(), record])
    wanted = set_entries(home.base_text(text) or "", entries)
    files["installed.json"] = json.dumps(asdict(record), indent=1).encode()
    folder = home.folder / record.name
    is_same = text == wanted and all(
        (folder / path).is_file() and (folder / path).read_bytes() == content
        for path, content in files.items()
    )
    if not is_same and not dry_run:
        home.check_writable()
        # the record, which promises the others, comes last
        for path, content in files.items():
            _write_bytes(folder / path, content)
        for path in set(earlier.files if earlier else ()) - set(files):
            (folder / path).unlink(missing_ok=True)
        home.write_config(text, wanted)
    action: Action = "installed"
    if earlier is not None:
        action = "unchanged" if is_same else "updated"
    return Change(
        **asdict(record),
        action=action,
        userdir=str(home.root),
        diff=home.diff(text, wanted),
        notes=[
            f"the suite's seed {suite.manifest.seed} is not set in your configuration: add "
            f"-Xseed={suite.manifest.seed} to runbenchmark.py for the runs that -u "
            f"{shlex.quote(str(directory))} gives"
        ],
        dry_run=dry_run,
    )


def uninstall(
    directory: Path,
    userdir: Path | None = None,
    dry_run: bool = False,
    name: str | None = None,
) -> Change:
    """Take a suite back; ``config.yaml`` is again what the user made it.

    Parameters
    ----------
    directory : Path
        The suite's folder when it was installed; it need not exist any more.
    userdir : Path, optional
        AMLB's default where omitted.
    dry_run : bool
        Change nothing.
    name : str, optional
        That it was installed under; needed where it is installed under several.

    Raises
    ------
    RunError
        The suite is not installed there, or under several names, or ``config.yaml`` cannot be
        read or written; nothing was changed.
    """
    home = _Home.of(userdir)
    installed = home.read_installed()
    place = directory.expanduser().resolve()
    names = [
        one.name
        for one in installed.values()
        if Path(one.suite).resolve() == place and name in (None, one.name)
    ]
    if len(names) > 1:
        raise RunError(
            f"the suite {directory} is installed in {home.root} as {', '.join(names)}",
            "name one of them with --name",
        )
    if not names:
        listed = [f"{other.suite} (as {other.name})" for other in installed.values()]
        under = f" as {name}" if name else ""
        raise RunError(
            f"the suite {directory} is not installed in {home.root}{under}",
            f"installed there: {', '.join(listed) or 'none'}; "
            "another user directory: --userdir DIR",
        )
    record = installed.pop(names[0])
    text = home.read_config()
    # After the last suite the file is the user's own, byte for byte unless it was edited.
    wanted = home.base_text(text)
    if wanted is not None or installed:
        wanted = set_entries(wanted or "", _wanted_entries(installed.values()))
    notes: list[str] = []
    if not dry_run:
        home.check_writable()
        home.write_config(text, wanted)
        notes = remove_suite(home, record, is_last=not installed)
    return Change(
        **asdict(record),
        action="uninstalled",
        userdir=str(home.root),
        diff=home.diff(text, wanted),
        notes=notes,
        dry_run=dry_run,
    )


def _wanted_entries(installed: Iterable[Installed]) -> dict[Key, list[str]]:
    """Return the entries of ``config.yaml`` that suites need; not every suite has constraints."""
    entries: dict[Key, list[str]] = {key: [] for key in LISTS}
    for record in sorted(installed, key=lambda record: record.name):
        for key, listed in LISTS.items():
            if record.constraints or key[1] != "constraints_file":
                entries[key].append(f"{OURS}{record.name}/{listed.file}")
    return entries


@dataclass(frozen=True)
class _Home:
    """A user directory."""

    root: Path

    @classmethod
    def of(cls, userdir: Path | None) -> _Home:
        return cls((userdir or Path(OWN_USER_DIRECTORY)).expanduser().absolute())

    @property
    def config(self) -> Path:
        """AMLB's configuration; a link to it stays one."""
        return (self.root / "config.yaml").resolve()

    @property
    def backup(self) -> Path:
        """The configuration as it was before the first suite; absent where there was none."""
        return self.root / "config.yaml.hardsynth-backup"

    @property
    def folder(self) -> Path:
        """Where installed suites stand."""
        return self.root / FOLDER

    def read_installed(self) -> dict[str, Installed]:
        """Return all installed suites by name."""
        installed = {}
        for path in sorted(self.folder.glob("*/installed.json")):
            # A damaged record must not keep the user from installing or uninstalling.
            with suppress(OSError, ValueError, TypeError):
                record = Installed(**json.loads(path.read_text(encoding="utf-8")))
                installed[record.name] = record
        return installed

    def read_config(self, path: Path | None = None) -> str | None:
        """Return the text of the configuration, or of its backup; None where there is none."""
        path = path or self.config
        try:
            return path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RunError(
                f"cannot read {path}: {error.strerror}", "choose another --userdir"
            ) from None
        except UnicodeDecodeError as error:
            raise RunError(
                f"{path} is not in UTF-8 (byte {error.start})", "save it as UTF-8"
            ) from None

    def base_text(self, text: str | None) -> str | None:
        """Return what entries are added to: the backup, or the file where the user has edited it.

        The backup with our entries is the file to the byte exactly if nobody has edited since.
        """
        ours = our_entries(text or "")
        if any(ours.values()):
            backup = self.read_config(self.backup)
            with suppress(RunError):
                if set_entries(backup or "", ours) == text:
                    return backup
        return text

    def diff(self, text: str | None, wanted: str | None) -> str:
        """Return what changes in the configuration."""
        name = str(self.root / "config.yaml")
        # without the line ends, which the diff would double
        before, after = (text or "").splitlines(), (wanted or "").splitlines()
        return "\n".join(difflib.unified_diff(before, after, name, name, lineterm=""))

    def check_writable(self) -> None:
        """Raise before anything is changed."""
        for path in (self.config, self.config.parent, self.root, self.folder):
            if path.exists() and not os.access(path, os.W_OK):
                raise RunError(
                    f"{path} is read-only; nothing was changed",
                    "make it writable, or choose another --userdir",
                )

    def write_config(self, text: str | None, wanted: str | None) -> None:
        """Write the backup, where the file holds nothing of ours yet, and then the file."""
        if text == wanted:
            return
        mode = None if text is None else self.config.stat().st_mode & 0o7777
        if text is None:
            self.backup.unlink(missing_ok=True)
        elif not any(our_entries(text).values()):
            _write_bytes(self.backup, text.encode("utf-8"), mode)
        if wanted is None:
            self.config.unlink(missing_ok=True)
        else:
            _write_bytes(self.config, wanted.encode("utf-8"), mode)

    def check_names(
        self, text: str, record: Installed, others: Iterable[Installed]
    ) -> None:
        """Raise when a name of the suite is taken by another benchmark or framework."""
        config = read_config(text)
        # AMLB finds frameworks, and names folders of results, in lower case.
        benchmarks = {name: "AMLB itself" for name in AMLB_BENCHMARKS}
        frameworks: dict[str, str] = {}
        for folder in self._users_paths(config, ("benchmarks", "definition_dir")):
            for path in folder.glob("*.yaml"):
                benchmarks[path.stem.lower()] = str(path)
        for path in self._users_paths(config, ("frameworks", "definition_file")):
            # a file that cannot be read AMLB reports itself
            with suppress(OSError, yaml.YAMLError, ValueError, TypeError):
                for name in yaml.safe_load(path.read_bytes()):
                    frameworks[str(name).lower()] = str(path)
        for other in others:
            owner = f"the suite {other.suite}"
            benchmarks.update((name.lower(), owner) for name in other.benchmarks)
            frameworks.update((name.lower(), owner) for name in other.frameworks)
        for kind, owners in (("benchmark", benchmarks), ("framework", frameworks)):
            for name in getattr(record, f"{kind}s"):
                if name.lower() in owners:
                    raise RunError(
                        f"the {kind}'s name {name} is taken by {owners[name.lower()]}",
                        "install it under another name: --name NAME",
                    )

    def _users_paths(self, config: Mapping[str, Any], key: Key) -> Iterator[Path]:
        """Yield the user's own files or folders of a list, and AMLB's if its checkout is known."""
        directories = {"user": str(self.root)}
        if os.environ.get("AMLB_HOME"):
            directories["root"] = os.environ["AMLB_HOME"]
        for text in list_entries(config, key) or ():
            if text.startswith(OURS):
                continue
            # What cannot be resolved here (no checkout, stray braces) is left for AMLB to report.
            with suppress(DefinitionError):
                yield expand_path(substitute_directories(text, directories))


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


def remove_suite(home: _Home, record: Installed, *, is_last: bool) -> list[str]:
    """Remove a suite's folder and, after the last suite, all that is ours; return notes."""
    folder = home.folder / record.name
    # The record goes first: a removal that is killed halfway leaves no suite that seems installed.
    for relative in ("installed.json", *record.files):
        (folder / relative).unlink(missing_ok=True)
    # AMLB keeps its own notes, and what an integration installs, beside each integration.
    shutil.rmtree(folder / "extensions", ignore_errors=True)
    emptied = [*sorted(folder.rglob("*"), reverse=True), folder]
    if is_last:
        home.backup.unlink(missing_ok=True)
        shutil.rmtree(home.folder / "__pycache__", ignore_errors=True)
        emptied += [home.folder, home.root]
    for path in emptied:
        # one that is not empty holds files of the user's
        with suppress(OSError):
            path.rmdir()
    if folder.exists():
        return [f"{folder} holds files that are not ours; they stay"]
    return []
