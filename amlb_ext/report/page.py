"""A report on disk: one HTML document that loads nothing, and everything it shows as CSV and JSON.

Templates stand in ``resources/report``. They escape whatever they print; marked as safe are only
the drawings of :mod:`~amlb_ext.report.still` and our own style and script. One template serves all
kinds of suites: what a suite has not is not shown.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from datetime import date
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
from jinja2 import Environment
from markupsafe import Markup, escape

from amlb_ext.comparison.page import template_environment
from amlb_ext.core.assets import asset_path
from amlb_ext.core.display import format_cell, format_count
from amlb_ext.core.files import write_file, write_text
from amlb_ext.core.json_values import to_json_values
from amlb_ext.core.version import __version__
from amlb_ext.report.metrics import UNITS
from amlb_ext.report.model import SuiteReport
from amlb_ext.report.overall import answer_matrix
from amlb_ext.report.ranks import draw_rank_diagram
from amlb_ext.report.still import draw_chart
from amlb_ext.report.tables import (
    SOMETIMES,
    column_heading,
    job_groups,
    part_texts,
    ranking_sentence,
    report_tables,
    score_pivots,
    table_records,
    table_titles,
)
from amlb_ext.stats.claims import CONCENTRATIONS, verdict_text

#: Where a word ends inside a name.
_WORD_ENDS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=_)(?=\w)")
_COLOUR = re.compile(r"var\((--c-[\w-]+)\)")
#: The space before a percent sign.
_PERCENT = re.compile(r"(?<=\d) %")
#: A longer word is broken anywhere, or it would make its column wider than a screen.
_LONGEST_WORD = 18
#: More tasks than this are folded, with a box to filter them.
MANY_TASKS = 8
#: More jobs without a score than this are grouped.
MANY_JOBS = 30
#: What a spreadsheet takes for the start of a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
#: Colour of a badge, beside its words.
TONES = {
    **dict.fromkeys(("rank", "better", "pass"), "yes"),
    **dict.fromkeys(("describe", "incomplete", "missing", "not run"), "some"),
    **dict.fromkeys(("stress-test only", "worse", "FAIL", "failed", "refused"), "no"),
}


def write_report(report: SuiteReport, directory: Path) -> Path:
    """Write ``report.html`` and the folder ``report`` beside it.

    Every file is replaced as a whole; the page is written last.

    Parameters
    ----------
    report : SuiteReport
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
    titles = table_titles(report)
    tables = report_tables(report)
    # those of an earlier report would be taken for files of this
    for name in SOMETIMES:
        for ending in ("csv", "tex", "svg"):
            (folder / f"{name}.{ending}").unlink(missing_ok=True)
    for name, table in tables.items():
        file_name = f"{name}.csv"
        _write_csv(table, folder / file_name)
        links[f"{file_name}: {titles[name]}"] = f"report/{file_name}"
    for name, title, text in _paper_files(report):
        write_text(folder / name, text)
        links[f"{name}: {title}"] = f"report/{name}"
    content = json.dumps(report_as_json(report), indent=1)
    write_text(folder / "report.json", f"{content}\n")
    links["report.json: everything but the charts"] = "report/report.json"
    # Last, so that a page never shows links to files that are not there yet.
    page = directory / "report.html"
    write_text(page, render_page(report, links, directory))
    return page


def report_as_json(report: SuiteReport) -> dict[str, Any]:
    """Return the report as plain mappings and lists; numbers that are not finite are None."""
    # what is left out is shown otherwise, or said elsewhere
    omitted = {"charts", "unit", "glossary", "shown", "noun", "swap"}
    omitted.add("is_for_papers")
    # What is needed is told where anything is.
    if not report.needed:
        omitted.add("needed")
    out: dict[str, Any] = to_json_values(report, omit=omitted)
    return {"unit": report.unit.one, **out}


def _write_csv(frame: pd.DataFrame, path: Path) -> None:
    safe = frame.copy()
    for name in safe.columns:
        dtype = safe[name].dtype
        # Columns of text only; a number below zero is no formula.
        if pd.api.types.is_object_dtype(dtype) or isinstance(dtype, pd.StringDtype):
            safe[name] = safe[name].map(_no_formula)
    write_file(
        path, partial(safe.to_csv, index=False, encoding="utf-8", lineterminator="\n")
    )


def _no_formula(value: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would run as a formula."""
    # Names of columns and categories are the user's data, and may come from a stranger.
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return value


def render_page(
    report: SuiteReport, links: Mapping[str, str], directory: Path = Path()
) -> str:
    """Return the report as one self-contained HTML document.

    Parameters
    ----------
    report : SuiteReport
    links : dict of str to str
        Files to offer for download: their relative addresses by label.
    directory : Path
        Where the page will stand: what sections link to is addressed from there.
    """
    folder = asset_path("resources", "report")
    template = page_environment().get_template("page.html.j2")
    anchors = task_anchors([task.name for task in report.tasks])
    matrix = answer_matrix(report.tasks, report.overall, report.level)
    # tasks on which F is beaten come first, in the page as in its first table
    by_answer = [row.task.name for row in matrix.rows]
    tasks = sorted(
        report.tasks,
        key=lambda task: (
            by_answer.index(task.name) if task.name in by_answer else len(by_answer)
        ),
    )
    return template.render(
        report=report,
        tasks=tasks,
        matrix=matrix,
        unit=report.unit,
        parts=part_texts(report.unit),
        # of the page alone: the report's files have the same bytes on every day
        made=f"{date.today().isoformat()} by hardsynth {__version__}",
        links={label: quote(href, safe="/%#?=&") for label, href in links.items()},
        anchor_of={
            task.name: anchor
            for task, anchor in zip(report.tasks, anchors, strict=True)
        },
        address=partial(_relative_address, directory),
        many=len(report.tasks) > MANY_TASKS,
        style=Markup((folder / "report.css").read_text("utf-8")),
        script=Markup((folder / "report.js").read_text("utf-8")),
    )


def _relative_address(directory: Path, path: str) -> str:
    """Return the address of a file as a browser finds it from the page's folder."""
    relative = os.path.relpath(Path(path).resolve(), directory.resolve())
    return quote(Path(relative).as_posix(), safe="/")


@lru_cache(maxsize=1)
def page_environment() -> Environment:
    """Return the environment of the templates in ``resources/report``."""
    environment = template_environment("report", _keep_percents_whole)
    environment.filters.update(
        records=table_records,
        cell=format_cell,
        count=format_count,
        metric=lambda metric: UNITS.get(metric, metric),
        name=name_element,
        heading=column_heading,
        tone=lambda word: TONES.get(str(word), "none"),
    )
    environment.globals.update(
        MANY_JOBS=MANY_JOBS,
        CONCENTRATIONS=CONCENTRATIONS,
        still=lambda chart: Markup(chart.drawn or draw_chart(chart)),
        diagram=lambda ranks: Markup(draw_rank_diagram(ranks, "ranks")),
        pivots=score_pivots,
        ranking_sentence=ranking_sentence,
        verdict_text=verdict_text,
        job_groups=job_groups,
    )
    return environment


def _keep_percents_whole(value: Any) -> Any:
    """Return text in which no line ends between a number and its percent sign."""
    # What is marked as safe is ready: drawings, scripts, the library.
    if isinstance(value, str) and not isinstance(value, Markup):
        return _PERCENT.sub("\u00a0%", value)
    return value


def name_element(name: object) -> Markup:
    """Return a name that a browser may break between its words; inside one only if it must.

    Examples
    --------
    >>> name_element("HardsynthCandidate_x")
    Markup('<span class="name">Hardsynth<wbr>Candidate_<wbr>x</span>')
    """
    words = _WORD_ENDS.split(str(name))
    longest = max(len(word) for text in words for word in text.split() or [""])
    style = "name long" if longest > _LONGEST_WORD else "name"
    breakable = Markup("<wbr>").join(escape(word) for word in words)
    return Markup('<span class="{}">{}</span>').format(style, breakable)


def task_anchors(names: list[str]) -> list[str]:
    """Return one unique identifier per name, safe in an address.

    Examples
    --------
    >>> task_anchors(["Bank, 2011", "???", "bank-2011"])
    ['task-bank-2011', 'task', 'task-bank-2011-2']
    """
    used: list[str] = []
    for name in names:
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]
        stem = anchor = f"task-{slug}" if slug else "task"
        count = 1
        # Names that differ in their signs alone have one slug.
        while anchor in used:
            count += 1
            anchor = f"{stem}-{count}"
        used.append(anchor)
    return used


# What goes into a paper: tables as LaTeX, pictures as files of SVG.


def _paper_files(report: SuiteReport) -> Iterator[tuple[str, str, str]]:
    """Yield name, title and content of each file."""
    diagram = draw_rank_diagram(report.ranks, "ranks")
    if diagram:
        ranks = report.ranks.mean.rename("mean rank").rename_axis("framework")
        table = ranks.round(2).reset_index()
        yield "ranks.tex", "mean ranks", table_as_latex(table, "Mean ranks", "ranks")
        yield "ranks.svg", "mean ranks", standalone_svg(diagram)
    for section in report.sections:
        if not section.is_for_papers:
            continue
        text = table_as_latex(section.readable, section.title, section.key)
        yield f"{section.key}.tex", section.title, text
        for chart in section.charts:
            picture = standalone_svg(chart.drawn or draw_chart(chart))
            yield f"{chart.key}.svg", chart.title, picture


def table_as_latex(table: pd.DataFrame, caption: str, label: str) -> str:
    r"""Return a table for LaTeX with the package ``booktabs``; signs of LaTeX in it are escaped.

    Examples
    --------
    >>> print(table_as_latex(pd.DataFrame({"task": ["a_b"]}), "Tasks", "tasks").splitlines()[7])
    a\_b \\
    """
    # a minus sign of its own is no letter of LaTeX's fonts
    texts = table.map(lambda value: str(value).replace("−", "-").replace("–", "--"))
    return texts.to_latex(
        index=False, escape=True, caption=caption, label=f"tab:{label}"
    )


def standalone_svg(svg: str) -> str:
    """Return an ``<svg>`` element of a page as a file, in the page's colours for daylight.

    Examples
    --------
    >>> standalone_svg('<svg viewBox="0 0 9 4"><path style="fill:var(--c-ink)"/></svg>')
    '<svg width="9pt" height="4pt" font-family="sans-serif" viewBox="0 0 9 4"><path \
style="fill:#1b2025"/></svg>\\n'
    """
    colours = _daylight()
    text = _COLOUR.sub(lambda found: colours[found[1]], svg)
    width, height = re.search(r'viewBox="0 0 (\S+) (\S+)"', text).groups()  # type: ignore[union-attr]
    size = f'<svg width="{width}pt" height="{height}pt" font-family="sans-serif"'
    return text.replace("<svg", size, 1) + "\n"


@lru_cache(maxsize=1)
def _daylight() -> dict[str, str]:
    """Return the colours that the page's style sheet names first, those for a light page."""
    style = asset_path("resources", "report", "report.css").read_text("utf-8")
    colours: dict[str, str] = {}
    for name, value in re.findall(r"(--c-[\w-]+): (#\w+);", style):
        colours.setdefault(name, value)
    return colours
