"""Intervals beside each other, and the bound of OSYN against b."""

from __future__ import annotations

import io
import math
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from amlb_ext.core.display import format_level
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.files import write_file, write_text
from amlb_ext.estimate.answers import EstimateReport
from amlb_ext.stats.error_estimate import FAILED, ErrorEstimate
from amlb_ext.suite.sealed_json import json_text

#: Colours of the recommended estimate, of one whose check failed, and of any other.
GOOD = "#2e7d4f"
BAD = "#c2371e"
PLAIN = "#5b6772"


def draw_estimates(report: EstimateReport) -> bytes:
    """Return the picture as SVG.

    A green line with a dot is the recommended estimate, a red dashed line one whose check failed,
    and an arrow a lower bound.
    """
    rows = [row for row in report.rows if row.has_interval]
    has_curve = report.osyn is not None
    width = 9.5 if has_curve else 6.5
    # inches: room for title and axis, and a line for each estimate
    height = 1.2 + 0.38 * max(3, len(rows))
    figure = Figure((width, height), layout="constrained")
    # Without pyplot a figure has no canvas to draw on.
    FigureCanvasAgg(figure)
    if has_curve:
        intervals, curve = figure.subplots(1, 2, width_ratios=(2, 1))
        _draw_intervals(intervals, rows, report)
        _draw_curve(curve, report)
    else:
        _draw_intervals(figure.subplots(), rows, report)
    # A fixed salt and no date: the same report gives the same bytes.
    picture = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "estimate"}):
        figure.savefig(picture, format="svg", metadata={"Date": None})
    return picture.getvalue()


def _draw_intervals(
    ax: Axes, rows: list[ErrorEstimate], report: EstimateReport
) -> None:
    """Draw one line for each estimate, the first at the top."""
    axis_end = _axis_end(rows, report)
    names = []
    # The axis counts upwards.
    for height, row in enumerate(reversed(rows)):
        _draw_interval(ax, row, height, arrow_length=0.04 * axis_end)
        mark = " (recommended)" if row.recommended else ""
        names.append(row.name + mark)
    ax.set_yticks(range(len(rows)), names)
    ax.set_xlim(0, axis_end)
    ax.set_xlabel(f"true error: {report.loss}, {report.unit}")
    title = f"{format_level(report.level)} intervals from {report.n} labelled rows"
    ax.set_title(title, fontsize="medium")
    _hide_frame(ax)


def _draw_interval(
    ax: Axes, row: ErrorEstimate, height: int, arrow_length: float
) -> None:
    """Draw one interval, or an arrow from a lower bound."""
    has_failed = row.check == FAILED
    colour = BAD if has_failed else PLAIN
    if row.recommended:
        colour = GOOD
    style = "--" if has_failed else "-"
    # A bound has no point estimate.
    if math.isnan(row.point):
        ax.annotate(
            "",
            xy=(row.low + arrow_length, height),
            xytext=(row.low, height),
            arrowprops={"arrowstyle": "->", "color": colour, "linestyle": style},
        )
        ax.plot([row.low], [height], "|", color=colour, markersize=9)
        return
    ax.plot([row.low, row.high], [height, height], style, color=colour, linewidth=2)
    marker = "o" if row.recommended else "|"
    ax.plot([row.point], [height], marker, color=colour)


def _axis_end(rows: list[ErrorEstimate], report: EstimateReport) -> float:
    """Return the end of the axis, a little beyond the largest number that is drawn."""
    largest = 0.0
    for row in rows:
        # The high end of a lower bound is the bound of the loss, and not drawn.
        largest = max(largest, row.low if math.isnan(row.point) else row.high)
    if largest == 0:
        return report.bound
    return min(report.bound, 1.1 * largest)


def _draw_curve(ax: Axes, report: EstimateReport) -> None:
    """Draw the bound of OSYN against b, and the b that was chosen."""
    assert report.osyn is not None
    curve = report.osyn.curve
    ax.plot(curve["b"], curve["bound"], color=PLAIN)
    ax.axvline(report.osyn.choices.b, color=GOOD, linewidth=1)
    ax.set_xlabel("b")
    ax.set_ylabel("bound of OSYN, closed form")
    # From 0, since a bound near 0 says nothing, and must look so.
    ax.set_ylim(bottom=0)
    ax.set_title("chosen beforehand: the line", fontsize="medium")
    _hide_frame(ax)


def _hide_frame(ax: Axes) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


# The files of a report: a table, a JSON document, a picture.


def write_report(report: EstimateReport, folder: Path) -> None:
    """Write ``estimates.csv``, ``estimate.json`` and ``estimate.svg``.

    Raises
    ------
    ConfigError
        The folder is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file", "choose a folder with -o")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "estimates.csv", report.table().to_csv(index=False))
    write_text(folder / "estimate.json", json_text(report.to_json()))
    picture = draw_estimates(report)
    write_file(folder / "estimate.svg", lambda path: path.write_bytes(picture))
