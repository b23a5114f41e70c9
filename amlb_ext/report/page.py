"""The report as one HTML document that loads nothing: it opens from disk, on a phone, on paper.

Templates stand in ``resources/report``. They escape whatever they print; marked as safe are only
the drawings of :mod:`~amlb_ext.report.still`, the plotly library, our own style and script, and
figures as JSON without ``<``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from amlb_ext.core.assets import asset
from amlb_ext.report.compare import is_control
from amlb_ext.report.interactive import figure, library
from amlb_ext.report.metrics import MAIN
from amlb_ext.report.model import Chart, Report, TaskReport
from amlb_ext.report.parts import UNSELECTED
from amlb_ext.report.still import rank_diagram, svg

#: More tasks than this are folded, with a box to filter them.
MANY_TASKS = 8
#: More jobs without a score than this are grouped.
MANY_JOBS = 30
#: Parts in the order shown, and which rows they are; clusters of failures follow.
PARTS = {
    "full": "real rows: the whole test folds",
    "region": "real rows, weighted by P(F fails | x)",
    "bad": "chosen by F's errors: do not rank on these",
    "ga": "chosen by F's errors: do not rank on these",
    "synthetic": "chosen by F's errors: do not rank on these",
    "evaluation": "chosen by F's errors: do not rank on these",
    "hard": "after training on hard rows: do not rank on these",
}
#: Colour of a badge, beside its words.
TONES = {
    "rank": "yes", "better": "yes", "pass": "yes",
    "describe": "some", "incomplete": "some", "missing": "some", "not run": "some",
    "stress-test only": "no", "worse": "no", "FAIL": "no", "failed": "no", "refused": "no",
}  # fmt: skip


def page(report: Report, links: Mapping[str, str], interactive: bool = True) -> str:
    """Return the report as one self-contained HTML document.

    Parameters
    ----------
    report : Report
    links : dict of str to str
        Files to offer for download: their relative addresses by label.
    interactive : bool
        Whether charts become plotly figures where scripts run; 5 MB more.
    """
    folder = asset("resources", "report")
    drawn = interactive and bool(report.charts or any(task.charts for task in report.tasks))
    template = _environment().get_template("page.html.j2")
    return template.render(
        report=report,
        links={label: quote(href, safe="/%#?=&") for label, href in links.items()},
        anchors=anchors([task.name for task in report.tasks]),
        many=len(report.tasks) > MANY_TASKS,
        interactive=drawn,
        library=Markup(library()) if drawn else "",
        style=Markup((folder / "report.css").read_text("utf-8")),
        script=Markup((folder / "report.js").read_text("utf-8")),
    )


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(asset("resources", "report")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        records=records,
        number=number,
        percent=percent,
        p_value=p_value,
        cell=cell,
        estimate=estimate,
        known=known,
        tone=lambda word: TONES.get(str(word), "none"),
    )
    environment.globals.update(
        PARTS=PARTS,
        MANY_JOBS=MANY_JOBS,
        still=lambda chart: Markup(svg(chart)),
        diagram=lambda ranks: Markup(rank_diagram(ranks, "ranks")),
        data=lambda chart: Markup(embedded(chart)),
        best=best,
        pivots=pivots,
        job_groups=job_groups,
    )
    return environment


def anchors(names: list[str]) -> list[str]:
    """Return one identifier per name, safe in an address and unlike all others.

    Examples
    --------
    >>> anchors(["Bank, 2011", "???", "bank-2011"])
    ['task-bank-2011', 'task', 'task-bank-2011-2']
    """
    made: list[str] = []
    for name in names:
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]
        stem = anchor = f"task-{slug}" if slug else "task"
        count = 1
        while anchor in made:
            count += 1
            anchor = f"{stem}-{count}"
        made.append(anchor)
    return made


def known(value: Any) -> bool:
    """Return whether there is a value: not None, not NaN, not empty text."""
    if value is None or value is pd.NA or value is pd.NaT:
        return False
    if isinstance(value, (float, np.floating)):
        return math.isfinite(value)
    return value != "" if isinstance(value, str) else True


def number(value: Any, sign: bool = False, digits: int = 3) -> str:
    """Return a number with the digits that count, a dash where there is none.

    Examples
    --------
    >>> number(-0.012345), number(12345), number(float("nan")), number(0.5, sign=True)
    ('−0.0123', '12 345', '–', '+0.5')
    """
    if not known(value):
        return "–"
    if isinstance(value, (int, np.integer)) or abs(value) >= 1000:
        text = f"{value:,.0f}".replace(",", " ")
    else:
        text = f"{value:.{digits}g}".replace("e-0", "e-")
    return ("+" if sign and value > 0 else "") + text.replace("-", "−")


def percent(value: Any, unit: str = " %") -> str:
    """Return a share in percent.

    Examples
    --------
    >>> percent(-0.1834), percent(0.004), percent(None)
    ('−18 %', '0.4 %', '–')
    """
    if not known(value):
        return "–"
    digits = 0 if abs(value) >= 0.0995 or value == 0 else 1
    return f"{100 * value:.{digits}f}{unit}".replace("-", "−")


def estimate(row: Mapping[str, Any]) -> str:
    """Return a difference and its interval, with the digits that the interval's width allows.

    Examples
    --------
    >>> estimate({"difference": -0.04051, "low": -0.0463, "high": -0.0346})
    '−0.0405 (−0.0463 to −0.0346)'
    >>> estimate({"difference": 0.2, "low": float("nan"), "high": float("nan")})
    '+0.2 (no interval)'
    """
    value, low, high = row["difference"], row["low"], row["high"]
    if not (known(low) and known(high) and known(value)):
        return f"{number(value, sign=True)} (no interval)" if known(value) else "no estimate"
    half = max((high - low) / 2, 1e-9)
    digits = min(max(1 - math.floor(math.log10(half)), 0), 9)
    text = f"{value:+.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
    return text.replace("-", "−")


def p_value(value: Any) -> str:
    """Return a p-value; tiny ones are only said to be tiny.

    Examples
    --------
    >>> p_value(0.0312), p_value(1e-9), p_value(float("nan"))
    ('0.031', '< 0.001', '–')
    """
    if not known(value):
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.2g}"


def cell(value: Any) -> str:
    """Return any value of a table as plain text.

    Examples
    --------
    >>> cell(True), cell(("a", 0.25)), cell(None), cell("x")
    ('yes', 'a, 0.25', '–', 'x')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {cell(inner)}" for key, inner in value.items())
    if isinstance(value, (list, tuple, np.ndarray)):
        return ", ".join(cell(inner) for inner in value)
    if not known(value):
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    return number(value) if isinstance(value, (int, float, np.number)) else str(value)


def records(frame: pd.DataFrame, **where: Any) -> list[dict[str, Any]]:
    """Return the rows of a table, or those whose columns have the values given."""
    if frame.empty:
        return []
    rows = frame.to_dict("records")
    return [row for row in rows if all(row[key] == value for key, value in where.items())]


def best(task: TaskReport) -> dict[str, Any] | None:
    """Return the contrast in the region with the smallest difference; F itself does not count."""
    if task.no_claim:
        return None
    rows = [
        row
        for row in records(task.contrasts, where="region")
        if row["verdict"] in ("better", "worse", "undecided")
        and known(row["difference"])
        and not is_control(row["framework"])
    ]
    return min(rows, key=lambda row: row["difference"], default=None)


def job_groups(jobs: pd.DataFrame) -> list[dict[str, Any]]:
    """Return jobs without a score, those alike in framework, status and reason together."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for row in records(jobs):
        key = (row["framework"], row["status"], row["reason"])
        groups.setdefault(key, []).append(f"{row['amlb_task']} (fold {cell(row['fold'])})")
    return [
        {"framework": key[0], "status": key[1], "reason": key[2], "jobs": jobs}
        for key, jobs in groups.items()
    ]


def pivots(task: TaskReport) -> Iterator[dict[str, Any]]:
    """Yield a table per metric, the main one first: frameworks by parts, the best marked.

    Each table has ``metric``, ``lower``, ``parts`` and ``rows``: pairs of a framework and its
    cells by part, each with ``value``, ``best`` and ``folds`` (0 when all folds are there).
    """
    rows = records(task.scores)
    metrics = dict.fromkeys(row["metric"] for row in rows)
    for metric in sorted(metrics, key=lambda name: name != MAIN.get(task.kind)):
        mine = [row for row in rows if row["metric"] == metric]
        lower = mine[0]["direction"] == "lower"
        held = dict.fromkeys(row["part"] for row in mine)
        parts = [part for part in PARTS if part in held] + [p for p in held if p not in PARTS]
        table: dict[str, dict[str, dict[str, Any]]] = {}
        for row in mine:
            values = [r["value"] for r in mine if r["part"] == row["part"] and known(r["value"])]
            top = (min if lower else max)(values, default=None)
            table.setdefault(row["framework"], {})[row["part"]] = {
                "value": row["value"],
                "best": row["part"] in UNSELECTED and row["value"] == top,
                "folds": row["folds"] if row["folds"] < task.folds else 0,
            }
        counts = {part: max(r["rows"] for r in mine if r["part"] == part) for part in parts}
        yield {"metric": metric, "lower": lower, "parts": counts, "rows": table.items()}


def embedded(chart: Chart) -> str:
    """Return a chart's figure as JSON that cannot end the script element that holds it."""
    return json.dumps(_plain(figure(chart)), separators=(",", ":")).replace("<", "\\u003c")


def _plain(value: Any) -> Any:
    """Return what JSON knows; numbers with five digits that count, null for what is none."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(inner) for inner in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value
