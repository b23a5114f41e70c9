"""``hardsynth report``: which framework improves on F where F fails."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from amlb_ext.cli.display import print_json, report_summary
from amlb_ext.cli.flags import (
    add_jobs_flag,
    add_level_flag,
    add_output_flags,
    add_results_flags,
    is_quiet,
    named_predictions,
)
from amlb_ext.cli.series_suites import report_series
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import check_predictions_file, check_suite_folder


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "report",
        help="compare frameworks where the baseline F fails",
        examples="hardsynth report hard --results results\n"
        "hardsynth report hard --predictions mine=mine.csv",
        description="Join AMLB's predictions, or your own, to the suite row by row, compare every "
        "framework with F and with the others on the failure region, and write one page, "
        "hardsynth/report.html in the suite, with its tables beside it. Exit status 1: a job "
        "failed, has no result, or does not belong to the suite, or a verdict needs jobs that "
        "have not been run; the commands that run them are printed.",
    )
    parser.add_suite(metavar="DIR", help="the suite's folder")
    add_results_flags(
        parser,
        results_help="output folders of AMLB, its option -o, and folders in which TabArena's "
        "models ran (default: none; the report then describes the suite alone)",
        predictions_help="predictions of the suite's test rows (.csv, .parquet, ...; "
        "docs/how-to/predictions.md has the format), which stand in the report beside AMLB's "
        "frameworks; of series, those that were made with fev, a .parquet file or a folder of "
        "them (docs/how-to/forecasting.md)",
    )
    parser.add_argument(
        "--text",
        action="store_true",
        help="print the report as text instead of writing files",
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="FOLDER",
        help="folder to write to (default: in the suite)",
    )
    add_level_flag(parser)
    add_jobs_flag(parser)
    add_output_flags(parser)
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Write a report; see :mod:`amlb_ext.report`."""
    check_suite_folder(Path(arguments.suite))
    from amlb_ext.suite.layout import holds_forecasts
    from amlb_ext.suite.task_folder import is_task_folder

    files = named_predictions(arguments)
    if holds_forecasts(arguments.suite):
        return report_series(arguments, files)
    for path in files.values():
        check_predictions_file(path)
    if files and is_task_folder(Path(arguments.suite)):
        raise ConfigError(
            f"--predictions: {arguments.suite} holds no suite of tables",
            "give AMLB's results with --results",
        )
    from amlb_ext.report import build_report, report_as_json, report_text, write_report
    from amlb_ext.suite import SuiteFiles

    if is_task_folder(Path(arguments.suite)):
        return _report_runs(arguments)
    # Loaded first: a folder that is no suite is an error at once.
    suite = SuiteFiles.load(arguments.suite)
    # Charts take most of the time, and only the page shows them.
    writes_page = not (arguments.text or arguments.json)
    built = build_report(
        arguments.suite,
        arguments.results,
        predictions=files,
        workers=arguments.jobs,
        level=arguments.level,
        charts=writes_page,
        quiet=is_quiet(arguments),
    )
    if arguments.json:
        print_json(report_as_json(built.report))
    elif arguments.text:
        print(report_text(built.report), end="")
    else:
        out = Path(arguments.out) if arguments.out else suite.layout.own
        path = write_report(built, out)
        if not arguments.quiet:
            print(report_summary(built.report, path))
    has_no_result = built.report.jobs["status"].isin(["failed", "missing", "refused"])
    is_complete = not has_no_result.any() and not built.report.needed
    return 0 if is_complete else 1


def _report_runs(arguments: argparse.Namespace) -> int:
    """Report on a folder of tasks; see :mod:`amlb_ext.report.runs`."""
    from amlb_ext.core.json_values import to_json_values
    from amlb_ext.report.runs import build_run_report, run_report_text
    from amlb_ext.report.runs_page import write_run_report

    root = Path(arguments.suite)
    report = build_run_report(root, arguments.results, level=arguments.level)
    if arguments.json:
        print_json(to_json_values(vars(report)))
    elif not arguments.quiet:
        print(run_report_text(report), end="")
    if not (arguments.json or arguments.text):
        out = Path(arguments.out) if arguments.out else root / "hardsynth"
        path = write_run_report(report, out)
        if not arguments.quiet:
            print(f"\nreport: {path}")
    return 0 if report.is_complete else 1
