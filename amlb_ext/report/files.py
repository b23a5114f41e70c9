"""A report on disk: the page, and everything it shows as CSV and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.files import write_file, write_text
from amlb_ext.core.json_values import to_json_values
from amlb_ext.report.amlb_csv import amlb_rows, write_amlb_csv
from amlb_ext.report.build import BuiltReport
from amlb_ext.report.model import Chart, ChartSeries, FrameworkRanks, SuiteReport
from amlb_ext.report.page import render_page

#: What each file holds, by name; the page lists them.
TABLES = {
    "overall": "frameworks over all tasks",
    "contrasts": "each framework against F, per task",
    "pairs": "frameworks against each other, per task",
    "scores": "every metric on every part",
    "ranks": "mean ranks and the p-values between them",
    "slices": "where F fails",
    "slice_losses": "F and each candidate in these slices",
    "relations": "what made rows keep",
    "measures": "the certificates",
    "jobs": "jobs without a score",
    "frameworks": "what was run",
    "charts": "the points of every chart",
}
#: What a spreadsheet takes for the start of a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def write_report(built: BuiltReport, directory: Path) -> Path:
    """Write ``report.html`` and the folder ``report`` beside it.

    Every file is replaced as a whole; the page is written last.

    Parameters
    ----------
    built : BuiltReport
    directory : Path
        Folder to write to, usually ``hardsynth`` in the suite.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    SuiteError
        The folder cannot be written.
    """
    folder = directory / "report"
    links = {}
    for name, table in report_tables(built.report).items():
        file_name = f"{name}.csv"
        _write_csv(table, folder / file_name)
        links[f"{file_name}: {TABLES[name]}"] = f"report/{file_name}"
    write_text(
        folder / "report.json",
        json.dumps(report_as_json(built.report), indent=1) + "\n",
    )
    links["report.json: everything but the charts' points"] = "report/report.json"
    if len(built.results):
        write_amlb_csv(amlb_rows(built.results, built.added), folder / "results.csv")
        links[
            "results.csv: AMLB's rows, ours behind them, for AMLB's own reporting"
        ] = "report/results.csv"
    # Last, so that a page never shows links to files that are not there yet.
    page = directory / "report.html"
    write_text(page, render_page(built.report, links))
    return page


def report_tables(report: SuiteReport) -> dict[str, pd.DataFrame]:
    """Return all tables of a report by name, tasks stacked; see :data:`TABLES`."""
    stacked = {}
    by_task = ("contrasts", "pairs", "scores", "slices", "slice_losses")
    for name in (*by_task, "relations"):
        frames = [getattr(task, name) for task in report.tasks]
        filled = [frame for frame in frames if len(frame)]
        # Without any row the columns of the first task's table are kept.
        stacked[name] = pd.concat(filled or frames[:1], ignore_index=bool(filled))
    return {
        "overall": report.overall,
        **stacked,
        "ranks": _rank_table(report.ranks),
        "measures": _measure_table(report),
        "jobs": report.jobs,
        "frameworks": report.frameworks,
        "charts": _chart_points(report),
    }


def report_as_json(report: SuiteReport) -> dict[str, Any]:
    """Return the report as plain mappings and lists; numbers that are not finite are None."""
    # What is needed is told where anything is.
    omitted = ("charts",) if report.needed else ("charts", "needed")
    out: dict[str, Any] = to_json_values(report, omit=omitted)
    return out


def _rank_table(ranks: FrameworkRanks) -> pd.DataFrame:
    entrants = ranks.mean.index
    table = pd.DataFrame(
        {"entrant": list(entrants), "mean_rank": ranks.mean.to_numpy()}
    )
    for name in ranks.p.columns:
        table[f"p: {name}"] = ranks.p[name].reindex(entrants).to_numpy()
    return table


def _measure_table(report: SuiteReport) -> pd.DataFrame:
    rows = []
    for task in report.tasks:
        if task.certificate is None:
            continue
        for measure in task.certificate.measures:
            row = {
                "task": task.name,
                "verdict": task.certificate.verdict,
                **measure.to_json(),
            }
            rows.append(row)
    return pd.DataFrame(rows)


def _chart_points(report: SuiteReport) -> pd.DataFrame:
    """Return the points of every chart: those over all tasks first, their task is empty."""
    charts = [("", chart) for chart in report.charts]
    for task in report.tasks:
        charts += [(task.name, chart) for chart in task.charts]
    frames = []
    for task_name, chart in charts:
        frames += [_series_points(task_name, chart, series) for series in chart.series]
    if not frames:
        columns = ["task", "chart", "series", "kind", "x", "y", "low", "high", "text"]
        return pd.DataFrame(columns=columns)
    return pd.concat(frames, ignore_index=True)


def _series_points(task: str, chart: Chart, series: ChartSeries) -> pd.DataFrame:
    n_marks = len(series.y)
    x = np.asarray(series.x, dtype=float)
    has_texts = len(series.text) == n_marks
    frame = pd.DataFrame(
        {
            "task": task,
            "chart": chart.title,
            "series": series.name,
            "kind": series.kind,
            "x": x[:n_marks],  # of bins the left edges
            "y": np.asarray(series.y, dtype=float),
            "low": series.low if series.low is not None else np.nan,
            "high": series.high if series.high is not None else np.nan,
            "text": list(series.text) if has_texts else "",
        },
    )
    has_edges = len(x) == n_marks + 1
    if has_edges:
        frame["low"] = x[:-1]
        frame["high"] = x[1:]
    return frame


def _write_csv(frame: pd.DataFrame, path: Path) -> None:
    safe = frame.copy()
    for name in safe.columns:
        dtype = safe[name].dtype
        # Columns of text only; a number below zero is no formula.
        if pd.api.types.is_object_dtype(dtype) or isinstance(dtype, pd.StringDtype):
            safe[name] = safe[name].map(_no_formula)
    write_file(
        path,
        lambda part: safe.to_csv(
            part, index=False, encoding="utf-8", lineterminator="\n"
        ),
    )


def _no_formula(value: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would run as a formula."""
    # Names of columns and categories are the user's data, and may come from a stranger.
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return value
