"""The report of a folder of tasks as one HTML document, in the frame of a suite's page.

What held-out training rows chose and what the labels of the test rows chose never stand in one
column, one chart or one sentence.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
from markupsafe import Markup

from amlb_ext.core.assets import asset_path
from amlb_ext.core.display import format_count, format_percent
from amlb_ext.core.files import write_file, write_text
from amlb_ext.core.json_values import to_json_values
from amlb_ext.report.charts import framework_colours
from amlb_ext.report.model import Chart, ChartSeries
from amlb_ext.report.page import page_environment
from amlb_ext.report.runs import RunReport, run_report_text
from amlb_ext.suite.sealed_json import json_text

#: What each table of a report holds, by the name of its file; the page lists them.
TABLES = {
    "headline": "means over the tasks",
    "scores": "every task and framework",
    "failures": "why submissions failed",
    "curve": "mean of the best of the first k submissions",
    "runs": "every run of a coder, with its transcript",
}
#: The framework that knows what each task is: what a little thought is worth.
REFERENCE = "HardsynthReader"
#: What a framework is, in the order of the page, with a word for each.
KINDS = {
    "coder": "a language model that writes the program",
    "system": "AutoML system or model of AMLB",
    "reference": "knows what each task is: what a little thought is worth",
}


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """A framework as the page shows it.

    Attributes
    ----------
    name : str
    kind : str
        A key of :data:`KINDS`.
    """

    name: str
    kind: str


def render_run_page(report: RunReport, page: Path) -> str:
    """Return the page.

    Parameters
    ----------
    report : RunReport
    page : Path
        Where it will stand: transcripts are linked from there.
    """
    folder = asset_path("resources", "report")
    links = {
        f"{name}.csv: {about}": f"report/{name}.csv" for name, about in TABLES.items()
    }
    links["report.txt: this page as text"] = "report/report.txt"
    links["report.json: all of it"] = "report/report.json"
    template = page_environment().get_template("runs.html.j2")
    return template.render(
        report=report,
        entrants=list_entrants(report),
        kinds=KINDS,
        cells=_cells_by_place(report.scores),
        sentences=answer_sentences(report),
        selected_charts=selected_charts(report),
        curve_charts=curve_charts(report),
        failures=wide_table(report.failures, "reason", "share"),
        curve=wide_table(report.curve, "k", "max_on_test"),
        transcripts=_transcript_links(report.runs, page.parent),
        links=links,
        style=Markup((folder / "report.css").read_text("utf-8")),
        script=Markup((folder / "report.js").read_text("utf-8")),
    )


def write_run_report(report: RunReport, out: Path) -> Path:
    """Write the tables as CSV, all of it as JSON and as text, and the page; return its path.

    Transcripts are linked, not copied: they hold what scripts printed of the data.
    """
    folder = out / "report"
    for name in TABLES:
        table = getattr(report, name)
        write = partial(table.to_csv, index=False, lineterminator="\n")
        write_file(folder / f"{name}.csv", write)
    write_text(folder / "report.json", json_text(to_json_values(vars(report))))
    write_text(folder / "report.txt", run_report_text(report))
    # last, so that a page never shows links to files that are not there yet
    page = out / "report.html"
    write_text(page, render_run_page(report, page))
    return page


def list_entrants(report: RunReport) -> list[Entrant]:
    """Return the frameworks of a report: coders, then AMLB's, then the reference."""
    coders = set() if report.runs.empty else set(report.runs["framework"])
    entrants = []
    for name in dict.fromkeys(report.scores["framework"]):
        kind = "coder" if name in coders else "system"
        if name == REFERENCE:
            kind = "reference"
        entrants.append(Entrant(name=name, kind=kind))
    return sorted(entrants, key=lambda entrant: list(KINDS).index(entrant.kind))


def answer_sentences(report: RunReport) -> list[str]:
    """Return one sentence for each coder: on how many tasks its mean is above the others'.

    By *selected* alone, which is what the other frameworks are scored by as well.
    """
    entrants = list_entrants(report)
    means = report.scores.pivot_table(
        index="task", columns="framework", values="mean", sort=False
    )
    systems = [entrant.name for entrant in entrants if entrant.kind == "system"]
    references = [entrant.name for entrant in entrants if entrant.kind == "reference"]
    sentences = []
    for entrant in entrants:
        if entrant.kind != "coder" or entrant.name not in means:
            continue
        own = means[entrant.name].dropna()
        parts = []
        for others, whom in (
            (systems, "every AutoML system"),
            (references, "the reference, which knows the tasks,"),
        ):
            theirs = means.reindex(index=own.index, columns=others).dropna(how="all")
            if theirs.empty:
                continue
            above = int((own.loc[theirs.index] > theirs.max(axis=1)).sum())
            parts.append(
                f"above {whom} on {above} of {format_count(len(theirs), 'task')}"
            )
        lines = report.scores[report.scores["framework"] == entrant.name]
        failed = format_percent(float(np.nanmean(lines["failure_rate"])))
        compared = f"mean accuracy {' and '.join(parts)}. " if parts else ""
        sentences.append(
            f"{entrant.name}: {compared}{failed} of its submissions failed."
        )
    return sentences


def selected_charts(report: RunReport) -> list[Chart]:
    """Return a chart for each task: the mean of every framework, with its interval over runs."""
    entrants = list_entrants(report)
    colours = framework_colours([entrant.name for entrant in entrants])
    charts = []
    for number, (task, group) in enumerate(report.scores.groupby("task", sort=False)):
        lines = {line["framework"]: line for line in group.to_dict("records")}
        shown = [entrant for entrant in entrants if entrant.name in lines]
        series = []
        for position, entrant in enumerate(shown):
            line = lines[entrant.name]
            series.append(
                ChartSeries(
                    name=entrant.name,
                    kind="intervals",
                    x=np.array([line["mean"]]),
                    y=np.array([float(position)]),
                    role="f" if entrant.kind == "reference" else colours[entrant.name],
                    low=np.array([line["low"]]),
                    high=np.array([line["high"]]),
                )
            )
        best = max(shown, key=lambda entrant: _or_lowest(lines[entrant.name]["mean"]))
        charts.append(
            Chart(
                key=f"selected-{number}",
                title=str(task),
                about=f"{best.name} has the highest mean.",
                x_label="accuracy, mean over runs",
                y_label="",
                series=tuple(series),
                y_categories=tuple(entrant.name for entrant in shown),
            )
        )
    return charts


def curve_charts(report: RunReport) -> list[Chart]:
    """Return a chart for each task: the best of the first k submissions by the test labels."""
    charts = []
    coders = [e.name for e in list_entrants(report) if e.kind == "coder"]
    colours = framework_colours(coders)
    for number, (task, group) in enumerate(report.curve.groupby("task", sort=False)):
        series = []
        for coder, line in group.groupby("framework", sort=False):
            series.append(
                ChartSeries(
                    name=str(coder),
                    kind="line",
                    x=line["k"].to_numpy(dtype=float) - 1,
                    y=line["max_on_test"].to_numpy(dtype=float),
                    role=colours[str(coder)],
                )
            )
        charts.append(
            Chart(
                key=f"curve-{number}",
                title=str(task),
                about="Best of the first k submissions by the labels of the test rows.",
                x_label="submissions k",
                y_label="max@k on test",
                series=tuple(series),
                x_categories=tuple(str(k) for k in range(1, group["k"].max() + 1)),
            )
        )
    return charts


def wide_table(table: pd.DataFrame, column: str, value: str) -> pd.DataFrame:
    """Return a table with a line for each task and coder, and a column for each value of another.

    Examples
    --------
    >>> lines = [["a", "c", 1, 0.5], ["a", "c", 2, 0.75]]
    >>> curve = pd.DataFrame(lines, columns=["task", "framework", "k", "best"])
    >>> wide_table(curve, "k", "best").to_dict("records")
    [{'task': 'a', 'framework': 'c', '1': 0.5, '2': 0.75}]
    """
    if table.empty:
        return pd.DataFrame(columns=["task", "framework"])
    keys = ["task", "framework"]
    wide = table.set_index([*keys, column])[value].unstack(column)
    # in the order of the page, not of the alphabet
    wide = wide.loc[
        list(dict.fromkeys(zip(table["task"], table["framework"], strict=True)))
    ]
    wide.columns = [str(name) for name in wide.columns]
    return wide.reset_index()


def _cells_by_place(scores: pd.DataFrame) -> dict[tuple[str, str], dict[str, object]]:
    """Return the line of each task and framework."""
    return {
        (str(line["task"]), str(line["framework"])): line
        for line in scores.to_dict("records")
    }


def _transcript_links(runs: pd.DataFrame, folder: Path) -> Sequence[str]:
    """Return the address of each run's transcript, as a browser finds it from a folder."""
    if runs.empty:
        return []
    addresses = []
    for transcript in runs["transcript"]:
        path = os.path.relpath(Path(transcript).resolve(), folder.resolve())
        addresses.append(quote(Path(path).as_posix(), safe="/"))
    return addresses


def _or_lowest(value: float) -> float:
    return value if np.isfinite(value) else -np.inf
