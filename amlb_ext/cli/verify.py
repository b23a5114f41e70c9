"""``hardsynth verify``: check a suite, and restore what is missing or changed."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from amlb_ext.cli.display import print_json
from amlb_ext.cli.flags import (
    add_jobs_flag,
    add_output_flags,
    add_setting_flags,
    add_trust_flag,
    is_quiet,
    layer_from,
)
from amlb_ext.core.config import build_config
from amlb_ext.core.display import escape_controls
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import check_suite_folder, is_export_folder


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "verify",
        help="check a suite, or repair it",
        examples="hardsynth verify hard\n"
        "hardsynth verify hard --repair --source data/prices.csv",
        description="Check every checksum and AMLB's rules for loading data, without AMLB. With "
        "--repair, restore what is missing or changed from the suite's own sources and settings, "
        "keep everything else, and check the suite once more. A repair that cannot restore the "
        "same bytes is refused and changes nothing. Files that are not part of the suite stay. "
        "Exit status 1: the suite has a problem.",
    )
    parser.add_suite(metavar="DIR", help="the suite's folder")
    parser.add_argument(
        "--repair", action="store_true", help="restore missing or changed files"
    )
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="SPEC",
        help="with --repair: present place of a source of the suite, whose name must be the same; "
        "repeat the flag for several",
    )
    parser.add_argument(
        "--trust-pickle",
        action="store_true",
        help="with --repair: load F from a pickle; a pickle can run any code, so use this for your "
        "own only",
    )
    add_trust_flag(parser)
    add_jobs_flag(parser)
    add_output_flags(parser)
    add_setting_flags(parser, only_stage="source")
    parser.show_first(
        {
            "the suite": ("suite",),
            "repair": ("--repair", "--source", "--trust-suite", "--trust-pickle"),
            "run and output": ("--jobs", "-q", "--json"),
        }
    )
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Check a suite of any kind, and repair it on request."""
    root = Path(arguments.suite)
    if not is_export_folder(root):
        check_suite_folder(root)
    from amlb_ext.suite.folder_faults import WARNING

    layer = layer_from(arguments)
    mended: tuple[str, ...] = ()
    if arguments.repair:
        mended, findings = _repair(arguments, layer)
    elif arguments.source or layer:
        raise ConfigError(
            "a source was named, but verify reads sources only with --repair",
            f"hardsynth verify {shlex.quote(arguments.suite)} --repair --source SPEC",
        )
    else:
        findings = verify_folder(root)
    warnings = [finding for finding in findings if finding.startswith(WARNING)]
    problems = [finding for finding in findings if not finding.startswith(WARNING)]
    if arguments.json:
        entry: dict[str, Any] = {
            "suite": arguments.suite,
            "problems": problems,
            "warnings": warnings,
        }
        if arguments.repair:
            entry["mended"] = list(mended)
        print_json(entry)
    else:
        _print_findings(arguments, mended, findings)
        if not problems and not arguments.quiet:
            suite = shlex.quote(arguments.suite)
            print(f"{suite}: checksums, provenance and AMLB's rules hold")
    return 1 if problems else 0


def verify_folder(root: Path, *, where_it_stands: bool = True) -> list[str]:
    """Return what is wrong with a suite of tables or of series, a folder of tasks or an export.

    Parameters
    ----------
    root : Path
    where_it_stands : bool
        Whether definitions of series must name the place where the suite stands now.

    Raises
    ------
    SuiteError
        There is none of them, or its manifest cannot be used.
    """
    from amlb_ext.publish.export.folder import verify_export
    from amlb_ext.suite import SuiteFiles, verify_suite
    from amlb_ext.suite.layout import Layout, holds_forecasts
    from amlb_ext.suite.task_folder import (
        is_task_folder,
        read_task_folder,
        verify_task_folder,
    )

    if holds_forecasts(root):
        from amlb_ext.forecasting.suite_verify import verify_forecasts

        return verify_forecasts(root, where_it_stands=where_it_stands)
    if is_task_folder(root):
        read_task_folder(root)
        return verify_task_folder(root)
    if is_export_folder(root):
        return verify_export(root)
    # an unfinished suite is a finding, a manifest that cannot be used an error
    if Layout(root).manifest.exists():
        SuiteFiles.load(root)
    return verify_suite(root)


def _repair(
    arguments: argparse.Namespace, layer: dict[str, Any]
) -> tuple[tuple[str, ...], list[str]]:
    """Return the files that were restored, and what is wrong with the folder after that."""
    from amlb_ext.suite.layout import holds_forecasts
    from amlb_ext.suite.task_folder import is_task_folder

    root = Path(arguments.suite)
    if is_task_folder(root) or is_export_folder(root):
        raise ConfigError(
            f"{root} is a folder of tasks or an export, which is not repaired but written again",
            "hardsynth tasks weird or hardsynth export, with the flags it was written with",
        )
    if not holds_forecasts(root):
        return _repair_suite(arguments, layer)
    if arguments.source:
        raise ConfigError(
            "forecasting tasks are not made again from a source",
            "run hardsynth generate again; --repair puts paths right",
        )
    from amlb_ext.forecasting.suite_verify import repair_forecasts

    mended = repair_forecasts(root)
    return tuple(mended), verify_folder(root)


def _repair_suite(
    arguments: argparse.Namespace, layer: dict[str, Any]
) -> tuple[tuple[str, ...], list[str]]:
    """Return the files that were restored, and what is wrong with the suite after that."""
    # Verifying needs neither of these, and starts sooner without them.
    from amlb_ext.core.parallel import Execution
    from amlb_ext.pipeline import RepairOptions, repair_suite

    options = RepairOptions(
        sources=tuple(arguments.source),
        options=build_config(layer).source,
        execution=Execution(workers=arguments.jobs),
        quiet=is_quiet(arguments),
        trust_pickle=arguments.trust_pickle,
        trust_suite=arguments.trust_suite,
    )
    repair = repair_suite(Path(arguments.suite), options)
    return repair.mended, list(repair.findings)


def _print_findings(
    arguments: argparse.Namespace, mended: tuple[str, ...], findings: list[str]
) -> None:
    """Print what was restored and what is wrong; with ``--quiet`` errors only."""
    if not arguments.quiet:
        for path in mended:
            print(f"{path} was made again.")
    stream = sys.stderr if arguments.quiet else sys.stdout
    for finding in findings:
        print(escape_controls(finding), file=stream)
