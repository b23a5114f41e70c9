"""Commands on a finished suite of forecasting tasks: check it, report on it, run it."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from amlb_ext.cli.display import print_json
from amlb_ext.core.display import text_table
from amlb_ext.core.errors import ConfigError

if TYPE_CHECKING:
    from amlb_ext.forecasting.suite_files import ForecastSuite
    from amlb_ext.forecasting.suite_report import ForecastReport


def show_series(arguments: argparse.Namespace) -> int:
    """Print the certificates of a suite of forecasting tasks."""
    from amlb_ext.core.errors import SuiteError, suggest_nearest
    from amlb_ext.forecasting.stored_certificates import read_certificates
    from amlb_ext.forecasting.suite_files import ForecastSuite
    from amlb_ext.forecasting.wording import of_windows
    from amlb_ext.validity import certificates_to_json

    stored = read_certificates(ForecastSuite.load(arguments.suite))
    if not stored:
        raise SuiteError(
            f"{arguments.suite} was written without certificates",
            "generate it again without --certificate none",
        )
    for task in arguments.task:
        if task not in stored:
            raise SuiteError(
                f"{arguments.suite} has no certificate of {task!r}",
                suggest_nearest(task, list(stored)),
            )
    shown = [stored[task] for task in arguments.task or stored]
    if arguments.json:
        print_json(certificates_to_json(shown))
    elif not arguments.quiet:
        print("\n".join(of_windows(certificate.text()) for certificate in shown))
    return 0


def report_series(
    arguments: argparse.Namespace, predictions: Mapping[str, Path]
) -> int:
    """Set forecasters against F; see :mod:`amlb_ext.forecasting.suite_report`.

    Parameters
    ----------
    arguments : Namespace
    predictions : mapping of str to path
        Made with fev, by the names that the report calls them.
    """
    from amlb_ext.forecasting.suite_report import report_forecasts

    if not arguments.results and not predictions:
        suite = shlex.quote(arguments.suite)
        raise ConfigError(
            "a report of forecasting tasks needs results",
            f"hardsynth run HardsynthForecast -u {suite} -r out, then --results out",
        )
    reports = report_forecasts(
        arguments.suite,
        arguments.results,
        predictions=predictions,
        level=arguments.level,
    )
    if arguments.json:
        _print_reports(reports)
    else:
        for table, report in reports.items():
            _show_report(arguments, report, table if len(reports) > 1 else "")
        if len(reports) > 1 and not arguments.quiet:
            print(_verdicts(reports))
    is_whole = all(
        report.comparison is not None and not report.incomplete
        for report in reports.values()
    )
    return 0 if is_whole else 1


def _print_reports(reports: Mapping[str, ForecastReport]) -> None:
    """Print the answers as JSON: of the only table itself, of several by their names."""
    from amlb_ext.core.json_values import to_json_values

    entries = {}
    for table, report in reports.items():
        comparison = report.comparison
        entry = {} if comparison is None else comparison.summary()
        made = report.made.to_dict("records")
        entries[table] = {**entry, "incomplete": report.incomplete, "made": made}
    only = next(iter(entries.values())) if len(entries) == 1 else {"tables": entries}
    print_json(to_json_values(only))


def _show_report(
    arguments: argparse.Namespace, report: ForecastReport, table: str
) -> None:
    """Print the answer of a table, or write its page; the only table needs no name."""
    from amlb_ext.core.files import write_text
    from amlb_ext.forecasting.made_report import made_text

    comparison = report.comparison
    if table and not arguments.quiet:
        print(f"== {table}")
    if comparison is not None and arguments.text:
        print(comparison.text(), made_text(report.made), sep="", end="")
    elif comparison is not None:
        own = Path(arguments.suite, "hardsynth")
        out = Path(arguments.out) if arguments.out else own
        page = out / "report" / f"{table}.html" if table else out / "report.html"
        comparison.to_html(page)
        csv = comparison.windows.to_csv(index=False, lineterminator="\n")
        name = f"{table}_windows.csv" if table else "windows.csv"
        write_text(out / "report" / name, csv)
        if not report.made.empty:
            csv = report.made.to_csv(index=False, lineterminator="\n")
            write_text(out / "report" / name.replace("windows", "made"), csv)
        if not arguments.quiet:
            print(*comparison.headline(), comparison.advice, sep="\n")
            print(made_text(report.made), end="")
            print(page)
    where = f" on {table}" if table else ""
    for framework, reason in report.incomplete.items():
        print(f"{framework} is not compared{where}: {reason}", file=sys.stderr)


def _verdicts(reports: Mapping[str, ForecastReport]) -> str:
    """Return each model's verdicts on all tables: on all windows, and where F fails."""
    verdicts: dict[str, dict[str, str]] = {}
    for table, report in reports.items():
        if report.comparison is None:
            continue
        for model, row in report.comparison.table.iterrows():
            verdict = f"{row['overall']} / {row['where_f_fails']}"
            verdicts.setdefault(str(model), {})[table] = verdict
    rows = []
    for model, by_table in verdicts.items():
        rows.append([model, *(by_table.get(table, "") for table in reports)])
    title = "than F, on all windows / where F fails:"
    return f"{title}\n{text_table(['model', *reports], rows)}"


def refuse_publishing(suite: str) -> None:
    """Refuse to publish a suite of forecasting tasks, and say why.

    Raises
    ------
    PublishError
        The suite holds forecasting tasks.
    """
    from amlb_ext.core.errors import PublishError
    from amlb_ext.suite.layout import holds_forecasts

    if holds_forecasts(suite):
        raise PublishError(
            f"{suite} holds forecasting tasks, and OpenML has no task type for them",
            "hand out the folder itself: hardsynth run works wherever it stands",
        )


def load_series_suite(userdir: Path) -> ForecastSuite | None:
    """Return the suite of forecasting tasks in a folder; None where it holds none."""
    from amlb_ext.suite.layout import holds_forecasts

    if not holds_forecasts(userdir):
        return None
    from amlb_ext.forecasting.suite_files import ForecastSuite

    return ForecastSuite.load(userdir)


def runnable_definitions(
    suite: ForecastSuite, benchmarks: Sequence[str], results: Path
) -> list[str]:
    """Return definitions that AMLB can run where the suite stands now.

    Those of a suite that was moved are put right, so AMLB started by hand finds its files, too.
    """
    from amlb_ext.forecasting.suite_verify import follow_move, runnable_definition

    if written := follow_move(suite):
        print(
            f"{suite.layout.root.name} was moved: {', '.join(written)} name its new place",
            file=sys.stderr,
        )
    return [runnable_definition(suite, name, results) for name in benchmarks]
