"""Intervals beside each other, and the bound of OSYN against b."""

from __future__ import annotations

import io
import math

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from amlb_ext.estimate.answers import EstimateReport
from amlb_ext.stats.error_estimate import FAILED, ErrorEstimate

GOOD, BAD, PLAIN = "#2e7d4f", "#c2371e", "#5b6772"


def draw_estimates(report: EstimateReport, form: str = "svg") -> bytes:
    """Return the picture, ``svg`` or ``png``.

    A filled dot with a green line is the recommended estimate; a red dashed line one whose check
    failed; an arrow a bound from below.
    """
    rows = [row for row in report.rows if row.has_interval]
    has_curve = report.osyn is not None
    height = 1.2 + 0.38 * max(3, len(rows))
    figure = Figure((9.5 if has_curve else 6.5, height), layout="constrained")
    FigureCanvasAgg(figure)
    if has_curve:
        intervals, curve = figure.subplots(1, 2, width_ratios=(2, 1))
        _draw_intervals(intervals, rows, report)
        _draw_curve(curve, report)
    else:
        _draw_intervals(figure.subplots(), rows, report)
    # A fixed salt and no date: the same report gives the same bytes.
    metadata = {"Date": None} if form == "svg" else {}
    out = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "estimate"}):
        figure.savefig(out, format=form, dpi=140, metadata=metadata)
    return out.getvalue()


def _draw_intervals(
    ax: Axes, rows: list[ErrorEstimate], report: EstimateReport
) -> None:
    largest = _largest_shown(rows, report)
    upwards = rows[::-1]  # the first row of the table stands on top
    for place, row in enumerate(upwards):
        _draw_interval(ax, row, place, arrow=0.04 * largest)
    names = [
        f"{row.name}{' (recommended)' if row.recommended else ''}" for row in upwards
    ]
    ax.set_yticks(range(len(rows)), names)
    ax.set_xlim(0, largest)
    ax.set_xlabel(f"true error: {report.loss}, {report.unit}")
    ax.set_title(
        f"{report.level:.0%} intervals from {report.n} labelled rows", fontsize="medium"
    )
    _hide_frame(ax)


def _draw_interval(ax: Axes, row: ErrorEstimate, place: int, arrow: float) -> None:
    """Draw one interval, or an arrow of that length from a bound."""
    failed = row.check == FAILED
    colour = BAD if failed else PLAIN
    if row.recommended:
        colour = GOOD
    style = "--" if failed else "-"
    if math.isnan(row.point):
        properties = {"arrowstyle": "->", "color": colour, "linestyle": style}
        ax.annotate(
            "", (row.low + arrow, place), (row.low, place), arrowprops=properties
        )
        ax.plot([row.low], [place], "|", color=colour, markersize=9)
        return
    ax.plot([row.low, row.high], [place, place], style, color=colour, linewidth=2)
    ax.plot([row.point], [place], "o" if row.recommended else "|", color=colour)


def _largest_shown(rows: list[ErrorEstimate], report: EstimateReport) -> float:
    """Return the end of the axis; a bound from below reaches to its low end alone."""
    ends = [row.low if math.isnan(row.point) else row.high for row in rows]
    largest = 1.1 * max(ends, default=report.bound)
    return min(report.bound, largest or report.bound)


def _draw_curve(ax: Axes, report: EstimateReport) -> None:
    assert report.osyn is not None
    curve, asked = report.osyn.curve, report.osyn.asked
    ax.plot(curve["b"], curve["bound"], color=PLAIN)
    ax.axvline(asked.b, color=GOOD, linewidth=1)
    ax.set_xlabel("b")
    ax.set_ylabel("bound of OSYN, closed form")
    ax.set_ylim(bottom=0)
    ax.set_title("chosen beforehand: the line", fontsize="medium")
    _hide_frame(ax)


def _hide_frame(ax: Axes) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
