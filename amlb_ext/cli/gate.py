"""``hardsynth gate``: may a candidate replace F? An exit status for CI."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.compare import add_comparison_flags, compare_files
from amlb_ext.cli.display import print_json
from amlb_ext.cli.flags import (
    ORDER_SETTINGS,
    READING_SETTINGS,
    add_jobs_flag,
    add_level_flag,
    add_output_flags,
    add_results_flags,
    add_setting_flags,
    is_quiet,
    named_predictions,
)
from amlb_ext.cli.numbers import real_number
from amlb_ext.cli.terminal import print_commands
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import check_file, check_predictions_file, check_suite_folder

if TYPE_CHECKING:
    from amlb_ext.gate.checks import GateResult


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "gate",
        help="decide in CI, by an exit status, whether a candidate may replace F",
        description="Compare a candidate with F, on a table as 'hardsynth compare' does, or on a "
        "suite as 'hardsynth report' does. Exit status 0: the candidate passes. 1: it fails. "
        "3: no claim is possible on these rows. 2: wrong usage.",
        examples="hardsynth gate new.csv --target churn --baseline deployed.skops "
        "--candidate boosting=boosting.skops --need not-worse --junit gate.xml\n"
        "hardsynth gate hard --predictions boosting=boosting.csv --need better --where failures",
    )
    parser.add_suite(
        "table",
        metavar="SUITE|TABLE",
        help="a suite's folder, or a file of labelled rows that no model has seen",
    )
    parser.add_argument(
        "--baseline",
        metavar="FILE",
        help="the current model F, or its predictions, as in 'hardsynth compare'; not for a "
        "suite, which has its own F",
    )
    parser.add_argument(
        "--candidate",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="a model that might replace F, or its predictions; for a suite, the name of a "
        "framework in its results or predictions (default: all); repeat the flag for several",
    )
    parser.add_argument(
        "--need",
        choices=("better", "not-worse"),
        default="better",
        help="better: shown to be better than F; not-worse: shown to be worse by less than the "
        "margin (default: better)",
    )
    parser.add_argument(
        "--where",
        choices=("overall", "failures"),
        default="overall",
        help="over all rows, or where F fails (default: overall)",
    )
    parser.add_argument(
        "--margin",
        type=real_number(0, 1),
        default=0.05,
        metavar="X",
        help="how much more loss counts as not worse, as a share of F's loss (default: 0.05)",
    )
    add_level_flag(parser)
    parser.add_argument(
        "--junit", metavar="FILE", help="also write the checks as a JUnit XML file"
    )
    parser.add_argument(
        "--annotate",
        action="store_true",
        help="print annotations for GitHub Actions (default: if GITHUB_ACTIONS is set)",
    )
    _add_suite_flags(parser)
    parser.add_argument(
        "--target", metavar="NAME", help="for a table: column to predict"
    )
    add_comparison_flags(parser)
    add_setting_flags(parser, only=READING_SETTINGS | ORDER_SETTINGS)
    add_jobs_flag(parser)
    add_output_flags(parser)
    parser.show_first(
        {
            "what is needed": ("--need", "--where", "--margin", "--candidate"),
            "on a table": ("table", "--target", "--baseline", "--train"),
            "on a suite": ("--results", "--predictions", "--task"),
            "output": ("--junit", "--annotate", "-q", "--json"),
        }
    )
    parser.set_defaults(run_command=run_command)


def _add_suite_flags(parser: argparse.ArgumentParser) -> None:
    add_results_flags(
        parser,
        results_help="for a suite: output folders of AMLB",
        predictions_help="for a suite: predictions for its test rows, as in 'hardsynth report'",
    )
    parser.add_argument(
        "-t",
        "--task",
        action="append",
        default=[],
        metavar="NAME",
        help="for a suite: a task on which the candidate must pass (default: all); repeat the flag",
    )


def run_command(arguments: argparse.Namespace) -> int:
    """Compare, hold the answer against the need, and return its exit status."""
    data = Path(arguments.table)
    check_file(data)
    commands: tuple[str, ...] = ()
    if data.is_dir():
        gate, commands = _gate_of_suite(arguments)
    else:
        gate = _gate_of_table(arguments)
    from amlb_ext.core.files import write_text
    from amlb_ext.core.json_values import to_json_values
    from amlb_ext.gate.outputs import (
        EXIT_STATUS,
        github_annotations,
        junit_xml,
    )

    if arguments.junit:
        write_text(Path(arguments.junit), junit_xml(gate))
    if arguments.json:
        entry = {"outcome": gate.outcome, **to_json_values(gate)}
        print_json({**entry, "commands": list(commands)} if commands else entry)
    elif not arguments.quiet:
        print(gate.text(), end="")
        for command in commands:
            print(f"results are missing: {command}")
    if arguments.annotate or os.environ.get("GITHUB_ACTIONS") == "true":
        # JSON on standard output stays JSON; the runner reads both streams
        stream = sys.stderr if arguments.json else sys.stdout
        print_commands(github_annotations(gate), stream)
    return EXIT_STATUS[gate.outcome]


def _gate_of_table(arguments: argparse.Namespace) -> GateResult:
    """Compare models on a table, and hold them against the need."""
    for flag in ("results", "predictions", "task"):
        if getattr(arguments, flag):
            raise ConfigError(
                f"--{flag} is for a suite, and {arguments.table} is a table",
                "name models or predictions with --baseline and --candidate",
            )
    for flag in ("target", "baseline", "candidate"):
        if not getattr(arguments, flag):
            raise ConfigError(
                f"a table needs --{flag}",
                "hardsynth gate TABLE --target NAME --baseline FILE --candidate FILE",
            )
    from amlb_ext.gate.checks import check_gate, check_settings

    # before the comparison, which takes a while
    check_settings(arguments.need, arguments.where, arguments.margin)
    answer = compare_files(arguments, level=arguments.level)
    return check_gate(
        answer,
        need=arguments.need,
        where=arguments.where,
        margin=arguments.margin,
        data=Path(arguments.table).name,
    )


def _gate_of_suite(
    arguments: argparse.Namespace,
) -> tuple[GateResult, tuple[str, ...]]:
    """Hold results on a suite against the need; return the commands that complete them, too."""
    root = Path(arguments.table)
    check_suite_folder(root)
    files = named_predictions(arguments)
    for path in files.values():
        check_predictions_file(path)
    if not (arguments.results or files):
        raise ConfigError(
            "a suite needs results or predictions of a candidate",
            "add --results OUT or --predictions NAME=FILE",
        )
    from amlb_ext.gate.checks import check_gate, check_settings
    from amlb_ext.report import build_report
    from amlb_ext.report.files import report_tables
    from amlb_ext.suite import SuiteFiles

    check_settings(arguments.need, arguments.where, arguments.margin)
    suites_own = SuiteFiles.load(root).manifest.config["baseline"]["model"]
    if arguments.baseline not in (None, suites_own):
        raise ConfigError(
            f"--baseline {arguments.baseline}: the suite has its own F, {suites_own}",
            "leave --baseline out",
        )
    built = build_report(
        root,
        arguments.results,
        predictions=files,
        workers=arguments.jobs,
        level=arguments.level,
        charts=False,
        quiet=is_quiet(arguments),
    )
    gate = check_gate(
        report_tables(built.report)["contrasts"],
        need=arguments.need,
        where=arguments.where,
        margin=arguments.margin,
        candidates=arguments.candidate,
        tasks=arguments.task,
        level=arguments.level,
    )
    return gate, (*built.report.commands, *built.report.needed)
