"""``hardsynth show``: the certificates that a suite has, without measuring anything."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from amlb_ext.cli.display import print_json
from amlb_ext.cli.flags import add_output_flags
from amlb_ext.cli.series_suites import show_series
from amlb_ext.core.errors import SuiteError
from amlb_ext.core.paths import check_suite_folder


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "show",
        help="print a suite's stored certificates",
        examples="hardsynth show hard --task toy",
        description="Print what each task of a suite may be used for and the numbers behind that "
        "verdict, as 'generate' or 'certify' stored them. Nothing is measured.",
    )
    parser.add_suite(metavar="DIR", help="the suite's folder")
    parser.add_argument(
        "-t",
        "--task",
        action="append",
        default=[],
        metavar="TASK",
        help="show this task only; repeat the flag for several",
    )
    add_output_flags(parser)
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Print the certificates; see :func:`amlb_ext.validity.read_certificates`."""
    check_suite_folder(Path(arguments.suite))
    from amlb_ext.suite.layout import holds_forecasts

    if holds_forecasts(arguments.suite):
        return show_series(arguments)
    from amlb_ext.core.errors import suggest_nearest
    from amlb_ext.suite import SuiteFiles
    from amlb_ext.validity import certificates_to_json, read_certificates

    suite = SuiteFiles.load(arguments.suite)
    for task in arguments.task:
        if task not in suite.tasks:
            raise SuiteError(
                f"{arguments.suite} has no task {task!r}",
                suggest_nearest(task, suite.tasks),
            )
    stored = read_certificates(suite)
    wanted = arguments.task or list(suite.tasks)
    shown = [stored[task] for task in wanted if task in stored]
    missing = [task for task in wanted if task not in stored]
    if not shown:
        raise SuiteError(
            f"{arguments.suite} has no stored certificate of {', '.join(missing)}",
            f"measure them: hardsynth certify {shlex.quote(arguments.suite)}",
        )
    if arguments.json:
        print_json(certificates_to_json(shown))
    elif not arguments.quiet:
        print("\n".join(certificate.text() for certificate in shown))
        for task in missing:
            print(f"{task}: no certificate is stored; 'hardsynth certify' measures it")
    return 0
