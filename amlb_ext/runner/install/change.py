"""Adds a suite to a user directory, and takes it back.

The configuration is always made anew from the user's own text (the backup, or, when the user has
edited since, the text less our entries) and the suites that are installed, so that suites may be
taken back in any order.
"""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from amlb_ext.core.errors import RunError
from amlb_ext.core.files import sha256_file
from amlb_ext.runner.install.config_edit import insert, read_config
from amlb_ext.runner.install.copies import copies
from amlb_ext.runner.install.state import (
    Home,
    Installed,
    State,
    added_entries,
    check_names,
    check_writable,
    own_constraints,
    read_installed,
    read_state,
    read_texts,
    remove,
    stands,
    write_config,
    write_copies,
    write_json,
)
from amlb_ext.suite import Suite

#: AMLB's own, used where ``runbenchmark.py`` gets no ``-u``.
DEFAULT_USERDIR = "~/.config/automlbenchmark"


@dataclass(frozen=True)
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

    action: Literal["installed", "updated", "unchanged", "uninstalled"]
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
    home = _home(userdir)
    suite = Suite.load(directory)
    _check_home(home, suite)
    new = copies(suite, name)
    known = read_installed(home)
    record = Installed(
        name=new.name,
        suite=str(directory.expanduser().absolute()),
        manifest=sha256_file(suite.layout.manifest),
        benchmarks=list(new.benchmarks),
        frameworks=list(new.frameworks),
        constraints=list(new.constraints),
        files={
            path: hashlib.sha256(text).hexdigest() for path, text in new.files.items()
        },
    )
    notes = _check_known(record, known)
    own, text = read_texts(home)
    config = read_config(own)
    check_names(
        home, config, new, [other for other in known.values() if other.name != new.name]
    )
    for taken in own_constraints(home, config, new):
        notes.append(
            f"the constraint {taken} is your own and stays; the suite's is not used"
        )
    state = read_state(home)
    kept = {**known, new.name: record}
    names = _ordered(state, kept)
    wanted, inline = insert(own, _added(names, kept))
    notes.append(
        f"the suite's seed {suite.manifest.seed} is not set in your configuration: add "
        f"-Xseed={suite.manifest.seed} to runbenchmark.py for the runs that -u {directory} gives"
    )
    same = known.get(new.name) == record and stands(home, record) and text == wanted
    action: Literal["installed", "updated", "unchanged"] = "installed"
    if new.name in known:
        action = "unchanged" if same else "updated"
    if not same and not dry_run:
        check_writable(home)
        made = state.made or not home.root.exists()
        write_copies(home, new, known.get(new.name))
        write_json(home.record(new.name), record)
        write_config(
            home, own, text, wanted, State(names, inline=list(inline), made=made)
        )
    return _change(action, record, home, text, wanted, notes, dry_run)


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
    home = _home(userdir)
    known = read_installed(home)
    record = _find(directory, known)
    if record is None:
        listed = ", ".join(f"{e.suite} (as {e.name})" for e in known.values()) or "none"
        raise RunError(
            f"the suite {directory} is not installed in {home.root}",
            f"installed there: {listed}; another user directory: --userdir DIR",
        )
    own, text = read_texts(home)
    state = read_state(home)
    left = {name: entry for name, entry in known.items() if name != record.name}
    names = _ordered(state, left)
    wanted, inline = insert(own, _added(names, left)) if names else (own, ())
    notes: list[str] = []
    if not dry_run:
        check_writable(home)
        write_config(
            home, own, text, wanted, State(names, inline=list(inline), made=state.made)
        )
        notes += remove(home, record, bool(names))
    return _change("uninstalled", record, home, text, wanted, notes, dry_run)


def _home(userdir: Path | None) -> Home:
    return Home((userdir or Path(DEFAULT_USERDIR)).expanduser().absolute())


def _check_home(home: Home, suite: Suite) -> None:
    if home.root.exists() and not home.root.is_dir():
        raise RunError(
            f"{home.root} is a file, but AMLB's user directory must be a folder",
            "--userdir DIR",
        )
    if home.root.resolve() == suite.layout.root.resolve():
        raise RunError(
            "this folder is the suite itself, which needs no installation",
            "name yours with --userdir, or use -u SUITE",
        )
    if home.root.joinpath("hardsynth", "manifest.json").is_file():
        raise RunError(
            f"{home.root} is a suite itself", "name your own user directory: --userdir"
        )


def _check_known(record: Installed, known: dict[str, Installed]) -> list[str]:
    """Return what to say of an earlier installation; raise where it is another suite's."""
    earlier = known.get(record.name)
    again = f"hardsynth uninstall {record.suite}"
    for other in known.values():
        if other.name != record.name and _same_folder(other.suite, record.suite):
            raise RunError(
                f"this suite is already installed, as {other.name}", f"first: {again}"
            )
    if earlier is None or _same_folder(earlier.suite, record.suite):
        return []
    if Path(earlier.suite, "hardsynth", "manifest.json").is_file():
        raise RunError(
            f"another suite is installed as {record.name}: {earlier.suite}",
            f"--name NAME for a second one, or first: hardsynth uninstall {earlier.suite}",
        )
    return [f"the suite was moved: {earlier.suite} no longer holds it"]


def _same_folder(one: str, other: str) -> bool:
    return Path(one).resolve() == Path(other).resolve()


def _find(directory: Path, known: dict[str, Installed]) -> Installed | None:
    """Return what is installed of a folder, or, of a suite that was moved, by its manifest."""
    path = str(directory.expanduser().absolute())
    for entry in known.values():
        if _same_folder(entry.suite, path):
            return entry
    manifest = Path(path, "hardsynth", "manifest.json")
    if manifest.is_file():
        digest = sha256_file(manifest)
        for entry in known.values():
            if entry.manifest == digest and not Path(entry.suite).exists():
                return entry
    return None


def _ordered(state: State, known: dict[str, Installed]) -> list[str]:
    """Return the names of installed suites in the order in which they were installed."""
    first = [name for name in state.suites if name in known]
    return [*first, *(name for name in known if name not in first)]


def _added(
    names: list[str], known: dict[str, Installed]
) -> dict[tuple[str, str], list[str]]:
    return added_entries(names, {name: bool(known[name].constraints) for name in names})


def _change(
    action: Literal["installed", "updated", "unchanged", "uninstalled"],
    record: Installed,
    home: Home,
    text: str | None,
    wanted: str,
    notes: list[str],
    dry_run: bool,
) -> Change:
    label = str(home.config)
    shown = difflib.unified_diff(
        (text or "").splitlines(), wanted.splitlines(), label, label, lineterm=""
    )
    return Change(
        action=action,
        name=record.name,
        suite=record.suite,
        userdir=str(home.root),
        diff="\n".join(shown),
        benchmarks=record.benchmarks,
        frameworks=record.frameworks,
        constraints=record.constraints,
        notes=notes,
        dry_run=dry_run,
    )
