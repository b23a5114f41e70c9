"""The report as one HTML document that loads nothing, so that it opens from disk and prints.

Templates stand in ``resources/report``. They escape whatever they print; marked as safe are only
the drawings of :mod:`~amlb_ext.report.still` and our own style and script.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from amlb_ext.core.assets import asset_path
from amlb_ext.core.display import (
    format_cell,
    format_count,
    format_decimals,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    is_known,
)
from amlb_ext.core.version import __version__
from amlb_ext.report.glossary import GLOSSARY
from amlb_ext.report.matrix import answer_matrix
from amlb_ext.report.metrics import UNITS
from amlb_ext.report.model import SuiteReport
from amlb_ext.report.still import draw_chart, draw_rank_diagram
from amlb_ext.report.tables import (
    PARTS,
    job_groups,
    ranking_sentence,
    score_pivots,
    table_records,
)
from amlb_ext.stats.claims import CONCENTRATIONS, verdict_text

#: Where a word ends inside a name.
_WORD_ENDS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=_)(?=\w)")
#: The space before a percent sign.
_PERCENT = re.compile(r"(?<=\d) %")
#: A longer word is broken anywhere, or it would make its column wider than a screen.
_LONGEST_WORD = 18
#: More tasks than this are folded, with a box to filter them.
MANY_TASKS = 8
#: More jobs without a score than this are grouped.
MANY_JOBS = 30
#: Colour of a badge, beside its words.
TONES = {
    **dict.fromkeys(("rank", "better", "pass"), "yes"),
    **dict.fromkeys(("describe", "incomplete", "missing", "not run"), "some"),
    **dict.fromkeys(("stress-test only", "worse", "FAIL", "failed", "refused"), "no"),
}


def render_page(report: SuiteReport, links: Mapping[str, str]) -> str:
    """Return the report as one self-contained HTML document.

    Parameters
    ----------
    report : SuiteReport
    links : dict of str to str
        Files to offer for download: their relative addresses by label.
    """
    folder = asset_path("resources", "report")
    template = page_environment().get_template("page.html.j2")
    names = [task.name for task in report.tasks]
    anchors = task_anchors(names)
    return template.render(
        report=report,
        # of the page alone: the report's files have the same bytes on every day
        made=f"{date.today().isoformat()} by hardsynth {__version__}",
        links={label: quote(href, safe="/%#?=&") for label, href in links.items()},
        anchors=anchors,
        anchor_of=dict(zip(names, anchors, strict=True)),
        many=len(report.tasks) > MANY_TASKS,
        style=Markup((folder / "report.css").read_text("utf-8")),
        script=Markup((folder / "report.js").read_text("utf-8")),
    )


@lru_cache(maxsize=1)
def page_environment() -> Environment:
    """Return the environment of the templates in ``resources/report``."""
    environment = Environment(
        loader=FileSystemLoader(asset_path("resources", "report")),
        autoescape=True,
        # A name that a template has wrong is an error, not an empty place on the page.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_keep_percents_whole,
    )
    environment.filters.update(
        records=table_records,
        number=format_number,
        percent=format_percent,
        p_value=format_p_value,
        cell=format_cell,
        decimals=format_decimals,
        estimate=format_interval,
        known=is_known,
        count=format_count,
        unit=lambda metric: UNITS.get(metric, metric),
        name=name_element,
        tone=lambda word: TONES.get(str(word), "none"),
    )
    environment.globals.update(
        GLOSSARY=GLOSSARY,
        PARTS=PARTS,
        MANY_JOBS=MANY_JOBS,
        CONCENTRATIONS=CONCENTRATIONS,
        still=lambda chart: Markup(chart.drawn or draw_chart(chart)),
        diagram=lambda ranks: Markup(draw_rank_diagram(ranks, "ranks")),
        answer_matrix=answer_matrix,
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
