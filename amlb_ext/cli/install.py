"""``hardsynth install`` and ``uninstall``: a suite in the user's own AMLB configuration."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.display import print_json
from amlb_ext.cli.flags import add_output_flags
from amlb_ext.core.paths import check_suite_folder

if TYPE_CHECKING:
    from amlb_ext.runner.install import Change


def add_parser(commands: Any) -> None:
    """Add both commands to the parser of all commands."""
    install = commands.add_parser(
        "install",
        help="add a suite to your AMLB configuration",
        examples="hardsynth install hard --dry-run",
        description="Add a suite's benchmarks, frameworks and constraints to an AMLB user "
        "directory, so that 'runbenchmark.py FRAMEWORK hardsynth' works beside what is already "
        "there. The command shows how config.yaml changes and keeps a backup; 'uninstall' removes "
        "the suite again.",
    )
    install.add_argument(
        "--name",
        metavar="NAME",
        help="install the benchmarks as NAME and NAME_all, and append NAME to the names of the "
        "frameworks (default: the suite's own name)",
    )
    uninstall = commands.add_parser(
        "uninstall",
        help="remove a suite from your AMLB configuration",
        examples="hardsynth uninstall hard",
        description="Remove exactly what 'install' added. The suite itself stays.",
    )
    # Both take the same flags but for --name.
    for parser in (install, uninstall):
        parser.add_argument("suite", metavar="DIR", help="the suite's folder")
        parser.refuse_flags(
            {
                "-u": "the suite has no flag here, and your AMLB user directory is --userdir"
            }
        )
        parser.add_argument(
            "--userdir",
            metavar="USERDIR",
            help="your AMLB user directory (default: ~/.config/automlbenchmark, AMLB's own)",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="show the changes without making them",
        )
        add_output_flags(parser)
    install.set_defaults(run_command=run_install)
    uninstall.set_defaults(run_command=run_uninstall)


def run_install(arguments: argparse.Namespace) -> int:
    """Install a suite; see :mod:`amlb_ext.runner.install`."""
    return _print_change(_install(arguments), arguments)


def _install(arguments: argparse.Namespace) -> Change:
    """Install a suite of tables or of series."""
    suite, userdir = Path(arguments.suite), _userdir(arguments)
    check_suite_folder(suite)
    from amlb_ext.suite.layout import holds_forecasts

    if holds_forecasts(arguments.suite):
        from amlb_ext.forecasting.suite_transfer import install_forecasts

        return install_forecasts(
            suite, userdir, name=arguments.name, dry_run=arguments.dry_run
        )
    from amlb_ext.runner.install import install

    return install(suite, userdir, name=arguments.name, dry_run=arguments.dry_run)


def run_uninstall(arguments: argparse.Namespace) -> int:
    """Remove a suite; see :mod:`amlb_ext.runner.install`."""
    from amlb_ext.runner.install import uninstall

    change = uninstall(Path(arguments.suite), _userdir(arguments), arguments.dry_run)
    return _print_change(change, arguments)


def _userdir(arguments: argparse.Namespace) -> Path | None:
    return Path(arguments.userdir) if arguments.userdir else None


def _print_change(change: Change, arguments: argparse.Namespace) -> int:
    if arguments.json:
        print_json(dataclasses.asdict(change))
    elif not arguments.quiet:
        print(describe_change(change, arguments.userdir))
    return 0


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
