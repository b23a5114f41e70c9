"""``hardsynth report``: which framework improves on F where F fails."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amlb_ext.cli.command import Jobs, Suite, command
from amlb_ext.cli.display import print_json
from amlb_ext.cli.values import named_files
from amlb_ext.core.checked_call import Level
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import check_predictions_file, check_suite_folder


@command(group="benchmark")
def report(
    suite: Suite,
    *,
    results: Sequence[str] = (),
    predictions: Sequence[str] = (),
    text: bool = False,
    out: Path | None = None,
    level: Level = 0.95,
    jobs: Jobs = 0,
    quiet: bool = False,
    json: bool = False,
) -> int:
    """Compare frameworks where the baseline F fails.

    Join AMLB's predictions, or your own, to the suite row by row, compare every framework with F
    and with the others on the failure region, and write one page, hardsynth/report.html in the
    suite, with its tables beside it. Exit status 1: a job failed, has no result, or does not belong
    to the suite, or a verdict needs jobs that have not been run; the commands that run them are
    printed.

    Parameters
    ----------
    results : OUT
        output folders of AMLB, its option -o, and folders in which TabArena's models ran (default:
        none; the report then describes the suite alone)
    predictions : [NAME=]FILE
        predictions of the suite's test rows (.csv, .parquet, ...; docs/how-to/predictions.md has
        the format), which stand in the report beside AMLB's frameworks; of series, those that were
        made with fev, a .parquet file or a folder of them (docs/how-to/forecasting.md)
    text : bool
        print the report as text instead of writing files
    out : FOLDER
        folder to write to (default: in the suite)

    Examples
    --------
    $ hardsynth report hard --results results
    $ hardsynth report hard --predictions mine=mine.csv
    """
    check_suite_folder(suite)
    from amlb_ext.suite import open_suite
    from amlb_ext.suite.series_manifest import SeriesManifest
    from amlb_ext.suite.task_folder import TaskFolder

    named = named_files(predictions, "--predictions")
    files = {name: Path(file) for name, file in named.items()}
    shown: dict[str, Any] = {"text": text, "out": out, "quiet": quiet, "json": json}
    manifest = open_suite(suite).manifest
    if isinstance(manifest, SeriesManifest):
        return _report_series(suite, results, files, level=level, **shown)
    for path in files.values():
        check_predictions_file(path)
    if isinstance(manifest, TaskFolder):
        if files:
            raise ConfigError(
                f"--predictions: {suite} holds no suite of tables",
                "give AMLB's results with --results",
            )
        return _report_runs(suite, results, level=level, **shown)
    from amlb_ext.report import (
        build_report,
        report_as_json,
        report_summary,
        report_text,
        write_report,
    )
    from amlb_ext.suite import SuiteFiles

    # loaded first: a folder that is no suite is an error at once
    own = SuiteFiles.load(suite).layout.own
    built = build_report(
        suite,
        results,
        predictions=files,
        workers=jobs,
        level=level,
        # they take most of the time, and only the page shows them
        charts=not (text or json),
        quiet=quiet or json,
    )
    if json:
        print_json(report_as_json(built.report))
    elif text:
        print(report_text(built.report), end="")
    else:
        page = write_report(built, out or own)
        if not quiet:
            print(report_summary(built.report, page))
    return 0 if built.report.is_complete else 1


def _report_runs(
    root: Path,
    results: Sequence[str],
    *,
    level: float,
    text: bool,
    out: Path | None,
    quiet: bool,
    json: bool,
) -> int:
    """Report on a folder of tasks; see :mod:`amlb_ext.report.runs`."""
    from amlb_ext.core.json_values import to_json_values
    from amlb_ext.report.runs import build_run_report, run_report_text
    from amlb_ext.report.runs_page import write_run_report

    built = build_run_report(root, results, level=level)
    if json:
        print_json(to_json_values(vars(built)))
    elif not quiet:
        print(run_report_text(built), end="")
    if not (json or text):
        path = write_run_report(built, out or root / "hardsynth")
        if not quiet:
            print(f"\nreport: {path}")
    return 0 if built.is_complete else 1


def _report_series(
    suite: Path,
    results: Sequence[str],
    predictions: dict[str, Path],
    *,
    level: float,
    text: bool,
    out: Path | None,
    quiet: bool,
    json: bool,
) -> int:
    """Set forecasters against F; see :mod:`amlb_ext.forecasting.suite_report`."""
    from amlb_ext.core.json_values import to_json_values
    from amlb_ext.forecasting.report_files import (
        reports_as_json,
        verdict_table,
        write_answer,
    )
    from amlb_ext.forecasting.suite_report import report_forecasts

    if not results and not predictions:
        raise ConfigError(
            "a report of forecasting tasks needs results",
            f"hardsynth run HardsynthForecast -u {shlex.quote(str(suite))} -r out, then "
            "--results out",
        )
    reports = report_forecasts(suite, results, predictions=predictions, level=level)
    if json:
        print_json(to_json_values(reports_as_json(reports)))
    for name, answer in {} if json else reports.items():
        table = name if len(reports) > 1 else ""
        if table and not quiet:
            print(f"== {table}")
        if text:
            print(answer.text(), end="")
        elif answer.comparison is not None:
            page = write_answer(answer, out or suite / "hardsynth", table)
            if not quiet:
                print(answer.headline(), page, sep="\n")
        where = f" on {table}" if table else ""
        for framework, reason in answer.incomplete.items():
            print(f"{framework} is not compared{where}: {reason}", file=sys.stderr)
    if len(reports) > 1 and not (json or quiet):
        print(verdict_table(reports))
    return 0 if all(answer.is_whole for answer in reports.values()) else 1
