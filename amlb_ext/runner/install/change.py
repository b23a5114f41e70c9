"""Adds a suite to a user directory, and takes it back.

The entries of all installed suites are always set anew, in the backup of the user's file or, when
the user has edited since, in the file as it stands. So suites may be taken back in any order.
"""

from __future__ import annotations

import difflib
import hashlib
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from amlb_ext.amlb.configuration import OWN_USER_DIRECTORY
from amlb_ext.core.errors import RunError
from amlb_ext.core.files import sha256_file
from amlb_ext.runner.install.config_edit import read_config, set_entries
from amlb_ext.runner.install.copies import make_copies
from amlb_ext.runner.install.userdir import (
    Home,
    Installed,
    base_text,
    check_names,
    check_writable,
    is_intact,
    list_overridden_constraints,
    read_config_text,
    read_installed,
    remove_suite,
    wanted_entries,
    write_config,
    write_copies,
)
from amlb_ext.suite.layout import Layout
from amlb_ext.suite.reader import Suite, open_suite

Action = Literal["installed", "updated", "unchanged", "uninstalled"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """What was done to a user directory, or would be.

    Attributes
    ----------
    action : str
        ``installed``, ``updated``, ``unchanged`` or ``uninstalled``.
    name, suite, userdir : str
    diff : str
        Of ``config.yaml``, unified; empty where it stays as it is.
    benchmarks, frameworks, constraints : list of str
        Names that AMLB knows now, or knew.
    notes : list of str
    dry_run : bool
    """

    action: Action
    name: str
    suite: str
    userdir: str
    diff: str
    benchmarks: list[str]
    frameworks: list[str]
    constraints: list[str]
    notes: list[str]
    dry_run: bool


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
    home = _user_home(userdir)
    suite = open_suite(directory)
    _check_home(home, suite)
    new = make_copies(suite, name)
    installed = read_installed(home)
    earlier = installed.get(new.name)
    others = [other for other in installed.values() if other.name != new.name]
    made = not home.root.exists() or any(other.made for other in installed.values())
    record = Installed(
        name=new.name,
        suite=str(directory.expanduser().absolute()),
        manifest=sha256_file(suite.layout.manifest),
        benchmarks=list(new.benchmarks),
        frameworks=list(new.frameworks),
        constraints=list(new.constraints),
        files={
            path: hashlib.sha256(content).hexdigest()
            for path, content in new.files.items()
        },
        made=made,
    )
    notes = _check_earlier(record, installed, home)

    # Names that another suite or the user has already.
    text = read_config_text(home.config)
    config = read_config(text or "")
    check_names(home, config, new, others)
    for constraint in list_overridden_constraints(home, config, new):
        notes.append(
            f"the constraint {constraint} is your own and stays; the suite's is not used"
        )
    seed = suite.manifest.seed
    notes.append(
        f"the suite's seed {seed} is not set in your configuration: add "
        f"-Xseed={seed} to runbenchmark.py for the runs that -u {directory} gives"
    )

    # The configuration with this suite beside the others.
    entries = wanted_entries([*others, record])
    wanted = set_entries(base_text(home, text) or "", entries)
    is_same = earlier == record and is_intact(home, record) and text == wanted
    if not is_same and not dry_run:
        check_writable(home)
        write_copies(home, new, record)
        write_config(home, text, wanted)
    action: Action = "installed"
    if earlier is not None:
        action = "unchanged" if is_same else "updated"
    return _make_change(
        action,
        record,
        home,
        text=text,
        wanted=wanted,
        notes=notes,
        dry_run=dry_run,
    )


def uninstall(
    directory: Path, userdir: Path | None = None, dry_run: bool = False
) -> Change:
    """Take a suite back; ``config.yaml`` is again what the user made it.

    Parameters
    ----------
    directory : Path
        The suite; it need not exist any more.
    userdir : Path, optional
    dry_run : bool

    Raises
    ------
    RunError
        It is not installed there, or its entries cannot be told from the user's own.
    """
    home = _user_home(userdir)
    installed = read_installed(home)
    record = _find_record(directory, installed)
    if record is None:
        suites = [f"{other.suite} (as {other.name})" for other in installed.values()]
        raise RunError(
            f"the suite {directory} is not installed in {home.root}",
            f"installed there: {', '.join(suites) or 'none'}; "
            "another user directory: --userdir DIR",
        )
    remaining = [other for other in installed.values() if other.name != record.name]
    text = read_config_text(home.config)
    # After the last suite the file is the user's own, byte for byte unless it was edited.
    wanted = base_text(home, text)
    if wanted is not None or remaining:
        wanted = set_entries(wanted or "", wanted_entries(remaining))
    notes: list[str] = []
    if not dry_run:
        check_writable(home)
        write_config(home, text, wanted)
        notes = remove_suite(home, record, is_last=not remaining)
    return _make_change(
        "uninstalled",
        record,
        home,
        text=text,
        wanted=wanted,
        notes=notes,
        dry_run=dry_run,
    )


def _user_home(userdir: Path | None) -> Home:
    return Home((userdir or Path(OWN_USER_DIRECTORY)).expanduser().absolute())


def _check_home(home: Home, suite: Suite) -> None:
    if home.root.exists() and not home.root.is_dir():
        raise RunError(
            f"{home.root} is a file, but AMLB's user directory must be a folder",
            "--userdir DIR",
        )
    if home.root.resolve() == suite.root.resolve():
        raise RunError(
            "this folder is the suite itself, which needs no installation",
            "name yours with --userdir, or use -u SUITE",
        )
    if Layout(home.root).manifest.is_file():
        raise RunError(
            f"{home.root} is a suite itself", "name your own user directory: --userdir"
        )


def _check_earlier(
    record: Installed, installed: dict[str, Installed], home: Home
) -> list[str]:
    """Return notes on an earlier installation; raise where it is in the way."""
    earlier = installed.get(record.name)
    undo = f"hardsynth uninstall --userdir {shlex.quote(str(home.root))}"
    for other in installed.values():
        if other.name != record.name and _is_same_folder(other.suite, record.suite):
            raise RunError(
                f"this suite is already installed, as {other.name}",
                f"first: {undo} {shlex.quote(record.suite)}",
            )
    if earlier is None or _is_same_folder(earlier.suite, record.suite):
        return []
    if Layout(Path(earlier.suite)).manifest.is_file():
        raise RunError(
            f"another suite is installed as {record.name}: {earlier.suite}",
            f"--name NAME for a second one, or first: {undo} {shlex.quote(earlier.suite)}",
        )
    return [f"the suite was moved: {earlier.suite} no longer holds it"]


def _is_same_folder(path: str, other: str) -> bool:
    return Path(path).resolve() == Path(other).resolve()


def _find_record(directory: Path, installed: dict[str, Installed]) -> Installed | None:
    """Return what is installed of a folder, or, of a suite that was moved, by its manifest."""
    path = str(directory.expanduser().absolute())
    for record in installed.values():
        if _is_same_folder(record.suite, path):
            return record
    manifest = Layout(Path(path)).manifest
    if not manifest.is_file():
        return None
    digest = sha256_file(manifest)
    for record in installed.values():
        # A copy of a suite that still stands where it was installed from is another suite.
        if record.manifest == digest and not Path(record.suite).exists():
            return record
    return None


def _make_change(
    action: Action,
    record: Installed,
    home: Home,
    *,
    text: str | None,
    wanted: str | None,
    notes: list[str],
    dry_run: bool,
) -> Change:
    # Without the line ends, which the diff would double.
    diff = difflib.unified_diff(
        (text or "").splitlines(),
        (wanted or "").splitlines(),
        fromfile=str(home.config),
        tofile=str(home.config),
        lineterm="",
    )
    return Change(
        action=action,
        name=record.name,
        suite=record.suite,
        userdir=str(home.root),
        diff="\n".join(diff),
        benchmarks=record.benchmarks,
        frameworks=record.frameworks,
        constraints=record.constraints,
        notes=notes,
        dry_run=dry_run,
    )


def describe_change(change: Change, userdir: str | None) -> str:
    """Return the diff of the configuration, what AMLB knows now, and how to undo it."""
    where = f"in {change.userdir}"
    lines = [change.diff or "config.yaml does not change"]
    if change.dry_run:
        lines.append(f"\ndry run: nothing was changed {where}")
    elif change.action == "unchanged":
        lines.append(f"\nalready installed as {change.name} {where}, nothing to change")
    else:
        lines.append(f"\n{change.action}: {change.name}, {where}")
    lines.append(f"  benchmarks:  {', '.join(change.benchmarks)}")
    lines.append(f"  frameworks:  {', '.join(change.frameworks)}")
    if change.constraints:
        lines.append(f"  constraints: {', '.join(change.constraints)}")
    if change.action != "uninstalled":
        # AMLB needs no -u for its own default directory
        folder = shlex.quote(userdir) if userdir else ""
        userdir_flag = f" -u {folder}" if folder else ""
        undo_flag = f" --userdir {folder}" if folder else ""
        benchmark = change.benchmarks[0]
        suite = shlex.quote(change.suite)
        lines.append(
            f"  run:         python runbenchmark.py FRAMEWORK {benchmark}{userdir_flag}"
        )
        lines.append(f"  take back:   hardsynth uninstall {suite}{undo_flag}")
    lines += [f"note: {note}" for note in change.notes]
    return "\n".join(lines)
