"""Intervals beside each other, and the bound of OSYN against b."""

from __future__ import annotations

import io

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
    curve = report.osyn is not None
    rows = [row for row in report.rows if row.has_interval]
    size = (9.5 if curve else 6.5, 1.2 + 0.38 * max(3, len(rows)))
    figure = Figure(size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 2 if curve else 1, squeeze=False, width_ratios=(2, 1)[: 1 + curve])[0]
    _intervals(axes[0], rows, report)
    if report.osyn is not None:
        _curve(axes[1], report)
    out = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "estimate"}):
        figure.savefig(out, format=form, dpi=140, metadata={"Date": None} if form == "svg" else {})
    return out.getvalue()


def _intervals(ax: Axes, rows: list[ErrorEstimate], report: EstimateReport) -> None:
    for place, row in enumerate(reversed(rows)):
        failed = row.check == FAILED
        colour = GOOD if row.recommended else BAD if failed else PLAIN
        style = "--" if failed else "-"
        one_sided = row.point != row.point
        high = row.low if one_sided else row.high
        if one_sided:
            ax.annotate(
                "",
                (row.low + 0.04 * _span(rows, report), place),
                (row.low, place),
                arrowprops={"arrowstyle": "->", "color": colour, "linestyle": style},
            )
            ax.plot([row.low], [place], "|", color=colour, markersize=9)
        else:
            ax.plot([row.low, high], [place, place], style, color=colour, linewidth=2)
            ax.plot([row.point], [place], "o" if row.recommended else "|", color=colour)
    ax.set_yticks(
        range(len(rows)),
        [f"{row.name}{' (recommended)' if row.recommended else ''}" for row in reversed(rows)],
    )
    ax.set_xlim(0, _span(rows, report))
    ax.set_xlabel(f"true error: {report.loss}, {report.unit}")
    ax.set_title(f"{report.level:.0%} intervals from {report.n} labelled rows", fontsize="medium")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _span(rows: list[ErrorEstimate], report: EstimateReport) -> float:
    ends = [row.high for row in rows if row.point == row.point] + [row.low for row in rows]
    return min(report.bound, 1.1 * max(ends, default=report.bound) or report.bound)


def _curve(ax: Axes, report: EstimateReport) -> None:
    assert report.osyn is not None
    curve, asked = report.osyn.curve, report.osyn.asked
    ax.plot(curve["b"], curve["bound"], color=PLAIN)
    ax.axvline(asked.b, color=GOOD, linewidth=1)
    ax.set_xlabel("b")
    ax.set_ylabel("bound of OSYN, closed form")
    ax.set_ylim(bottom=0)
    ax.set_title("chosen beforehand: the line", fontsize="medium")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
