"""The answers on a suite of forecasting tasks: as JSON, as a table, and written as pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amlb_ext.core.display import text_table
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.files import write_text
from amlb_ext.forecasting.suite_report import ForecastReport


def reports_as_json(reports: Mapping[str, ForecastReport]) -> dict[str, Any]:
    """Return the answers: of the only table itself, of several by their names."""
    entries = {}
    for table, report in reports.items():
        comparison = report.comparison
        entry = {} if comparison is None else comparison.summary()
        made = report.made.to_dict("records")
        entries[table] = {**entry, "incomplete": report.incomplete, "made": made}
    return next(iter(entries.values())) if len(entries) == 1 else {"tables": entries}


def write_answer(report: ForecastReport, out: Path, table: str = "") -> Path:
    """Write the page of a table, and its windows and made windows beside it.

    Parameters
    ----------
    report : ForecastReport
        With a comparison.
    out : Path
    table : str
        Where the suite has several.

    Returns
    -------
    Path
        Of the page.
    """
    comparison = report.comparison
    if comparison is None:
        raise ConfigError(
            "no forecaster is compared", "see which predictions are missing"
        )
    page = out / "report" / f"{table}.html" if table else out / "report.html"
    comparison.to_html(page)
    csv = comparison.windows.to_csv(index=False, lineterminator="\n")
    name = f"{table}_windows.csv" if table else "windows.csv"
    write_text(out / "report" / name, csv)
    if not report.made.empty:
        csv = report.made.to_csv(index=False, lineterminator="\n")
        write_text(out / "report" / name.replace("windows", "made"), csv)
    return page


def verdict_table(reports: Mapping[str, ForecastReport]) -> str:
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
