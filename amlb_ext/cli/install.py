"""``hardsynth install`` and ``uninstall``: a suite in the user's own AMLB configuration."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amlb_ext.runner.install import Change

Add = Callable[[argparse.ArgumentParser], None]


def add_install(commands: Any, jobs: Add, output: Add) -> None:
    """Add both commands to the parser of all commands.

    Parameters
    ----------
    commands : argparse's subparsers
    jobs, output : callable
        Add the flags that every command shares.
    """
    install = commands.add_parser(
        "install",
        help="add a suite to your AMLB configuration",
        description="Add a suite's benchmarks, frameworks and constraints to an AMLB user "
        "directory, so that 'runbenchmark.py FRAMEWORK hardsynth' works beside what you have "
        "there. Shows how config.yaml changes and keeps a backup; 'uninstall' takes it back.",
    )
    install.add_argument(
        "--name",
        metavar="NAME",
        help="install benchmarks as NAME, NAME_all, frameworks with NAME appended (default: the "
        "suite's own name)",
    )
    uninstall = commands.add_parser(
        "uninstall",
        help="take a suite out of your AMLB configuration",
        description="Take back exactly what 'install' added; the suite itself stays.",
    )
    for parser in (install, uninstall):
        parser.add_argument("suite", metavar="DIR", help="the suite")
        parser.add_argument(
            "--userdir", metavar="USERDIR", help="(default: ~/.config/automlbenchmark, AMLB's own)"
        )
        parser.add_argument("--dry-run", action="store_true", help="show the changes, make none")
        output(parser)


def install(arguments: argparse.Namespace) -> int:
    """Install a suite; see :mod:`amlb_ext.runner.install`."""
    from amlb_ext.runner.install import install as add

    change = add(Path(arguments.suite), _userdir(arguments), arguments.name, arguments.dry_run)
    return _show(change, arguments)


def uninstall(arguments: argparse.Namespace) -> int:
    """Take a suite back; see :mod:`amlb_ext.runner.install`."""
    from amlb_ext.runner.install import uninstall as take_back

    return _show(
        take_back(Path(arguments.suite), _userdir(arguments), arguments.dry_run), arguments
    )


def _userdir(arguments: argparse.Namespace) -> Path | None:
    return Path(arguments.userdir) if arguments.userdir else None


def _show(change: Change, arguments: argparse.Namespace) -> int:
    if arguments.json:
        print(json.dumps(dataclasses.asdict(change), indent=2, sort_keys=True))
    elif not arguments.quiet:
        print(text(change, arguments.userdir))
    return 0


def text(change: Change, userdir: str | None) -> str:
    """Return what a command prints: the diff of the configuration, and what AMLB knows now."""
    tail = f" --userdir {shlex.quote(userdir)}" if userdir else ""
    where = f"in {change.userdir}"
    lines = [change.diff] if change.diff else ["config.yaml stays as it is"]
    if change.dry_run:
        lines.append(f"\ndry run: nothing was changed {where}")
    elif change.action == "unchanged":
        lines.append(f"\ninstalled as {change.name} {where} already, nothing to change")
    else:
        lines.append(f"\n{change.action}: {change.name}, {where}")
    lines.append(f"  benchmarks:  {', '.join(change.benchmarks)}")
    lines.append(f"  frameworks:  {', '.join(change.frameworks)}")
    if change.constraints:
        lines.append(f"  constraints: {', '.join(change.constraints)}")
    if change.action != "uninstalled":
        flag = f" -u {shlex.quote(userdir)}" if userdir else ""
        lines.append(
            f"  run:         python runbenchmark.py FRAMEWORK {change.benchmarks[0]}{flag}"
        )
        lines.append(f"  take back:   hardsynth uninstall {shlex.quote(change.suite)}{tail}")
    lines += [f"note: {note}" for note in change.notes]
    return "\n".join(lines)
