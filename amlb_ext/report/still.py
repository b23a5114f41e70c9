"""Charts that stand still: inline SVG for print, for mail and for pages without scripts.

The only module of the wing that needs matplotlib. A colour is drawn as a stand-in and becomes
``var(--c-ROLE)``, so that the page decides what it looks like, in light and in dark; text,
axes and frames are ``var(--c-ink)``, helping lines ``var(--c-grid)``. One unit of the ``viewBox``
is a point: at ``width=6.4`` a chart shown 460 pixels wide has text of 10 pixels.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from amlb_ext.report.inline import COLOUR, axis_numbers, inline_svg, legend_names, one_line
from amlb_ext.report.model import Chart, ChartSeries, FrameworkRanks

_INK, _GRID = COLOUR["ink"], COLOUR["grid"]
_MARKS = ("o", "s", "D", "^", "X", "v")
#: Size and opacity of points, up to how many.
_CROWDS = ((60, (5.5, 0.85)), (300, (4.5, 0.7)), (np.inf, (3.6, 0.55)))
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.4)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1)))
_HATCHES = ("", "////", "----", "\\\\\\\\", "||||", "xxxx")
_SETTINGS: Any = {
    "svg.fonttype": "none", "text.parse_math": False, "font.size": 10, "axes.labelsize": 10,
    "xtick.labelsize": 9.5, "ytick.labelsize": 9.5, "legend.fontsize": 9.5,
    "text.color": _INK, "axes.labelcolor": _INK, "axes.edgecolor": _INK, "xtick.color": _INK,
    "ytick.color": _INK, "axes.linewidth": 0.7, "grid.color": _GRID, "grid.linewidth": 0.6,
    "xtick.major.width": 0.7, "ytick.major.width": 0.7, "xtick.major.size": 3,
    "ytick.major.size": 3, "axes.spines.top": False, "axes.spines.right": False,
    "axes.axisbelow": True, "axes.formatter.offset_threshold": 5, "axes.formatter.limits": (-4, 6),
    "hatch.linewidth": 0.7,
}  # fmt: skip


def draw_chart(chart: Chart, width: float = 6.4, height: float | None = None) -> str:
    """Return a chart as an ``<svg>`` element to be put into a page.

    The title is for those who cannot see the picture and is not drawn. The same chart gives the
    same text.

    Parameters
    ----------
    chart : Chart
    width : float
        In inches; sets how large the text is compared to the rest.
    height : float, optional
        In inches; without it, what the chart needs.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        When a series' arrays do not fit together.

    Examples
    --------
    >>> line = ChartSeries("loss", "line", np.arange(3.0), np.ones(3), role="c0")
    >>> text = draw_chart(Chart("k", "Loss", "Stays at 1.", "x", "loss", (line,)))
    >>> text.startswith("<svg"), "var(--c-c0)" in text
    (True, True)
    """
    columns, lines = _legend_shape(chart, width)
    with _canvas(chart.key):
        figure = Figure((width, height or _height(chart, width) + 0.2 * lines), dpi=72)
        axes = figure.subplots()
        _frame(axes, chart, width)
        handles = _draw(axes, chart)
        if chart.square:
            _square(axes, chart)
        if handles:
            box = figure.legend(
                [handle for handle, _ in handles], ["name"] * len(handles), frameon=False,
                loc="outside lower center", ncols=columns, handlelength=2.4,
            )  # fmt: skip
            # Set afterwards: a leading "_" would hide the entry.
            for shown, (_, name) in zip(box.get_texts(), handles, strict=True):
                shown.set_text(one_line(name))
        return _written(figure, chart.key, chart.title, chart.about)


def draw_rank_diagram(ranks: FrameworkRanks, key: str, alpha: float = 0.05) -> str:
    """Return the critical difference diagram of mean ranks; empty when there is none.

    Bars join entrants that cannot be told apart (Demšar 2006).

    Parameters
    ----------
    ranks : Ranks
    key : str
        Unique in the page.
    alpha : float
        Entrants with a larger p-value are joined.

    Returns
    -------
    str

    Examples
    --------
    >>> import pandas as pd
    >>> no_ranks = pd.Series(dtype=float)
    >>> nothing = FrameworkRanks(no_ranks, (), {}, np.nan, pd.DataFrame(), "no task")
    >>> draw_rank_diagram(nothing, "ranks")
    ''
    """
    mean = ranks.mean.dropna()
    if ranks.p.empty or len(mean) < 2:
        return ""
    from scikit_posthocs import critical_difference_diagram

    # Numbered, not named: sets of names have another order in each process.
    p = ranks.p.reindex(index=mean.index, columns=mean.index).fillna(1.0)
    p = p.set_axis(range(len(mean)), axis=0).set_axis(range(len(mean)), axis=1)
    names = [one_line(name, 24) for name in mean.index]
    numbered = mean.set_axis(range(len(mean)))
    width = float(np.clip(3.6 + 0.15 * (max(map(len, names)) + 7), 6.4, 9.0))
    unit = 0.015 * (len(mean) - 1)  # of ranks
    with _canvas(key):
        figure = Figure((width, 3.0), dpi=72)
        axes = figure.subplots()
        found = critical_difference_diagram(
            numbered, p, ax=axes, alpha=alpha, label_fmt_left="{label}", label_fmt_right="{label}",
            text_h_margin=2 * unit, label_props={"size": 9.5},
            elbow_props={"color": _INK, "linewidth": 0.8}, marker_props={"s": 16},
            crossbar_props={"color": COLOUR["c0"], "linewidth": 3.5, "zorder": 2},
        )  # fmt: skip
        for label in found["labels"]:
            place = int(label.get_text())
            label.set_text(f"{names[place]} ({mean.iloc[place]:.2f})")
            label.set_x(label.get_position()[0] + (-unit if label.get_ha() == "right" else unit))
        for mark in (*axes.lines, *axes.collections):
            mark.set_clip_on(False)
        axes.spines["top"].set_visible(True)
        axes.set_xlim(1, len(mean))
        axes.set_xticks(range(1, len(mean) + 1))
        axes.set_xlabel("mean rank (1 is best)")
        axes.xaxis.set_label_position("top")
        depth = -axes.get_ylim()[0]
        figure.set_size_inches(width, 0.6 + 0.2 * depth)
        best = f"{names[0]} has the best mean rank, {mean.iloc[0]:.2f}. {ranks.about}"
        return _written(figure, key, "Mean ranks and critical differences", best)


@contextmanager
def _canvas(key: str) -> Iterator[None]:
    """Draw with our settings, whatever the user's are, and without a word on missing glyphs.

    A glyph that matplotlib's font lacks is drawn by the browser, from its own fonts.
    """
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS | {"svg.hashsalt": key})
        yield


def _height(chart: Chart, width: float) -> float:
    if chart.y_categories:
        return 0.75 + 0.27 * len(chart.y_categories)
    return width * (0.75 if chart.square else 0.52)


def _legend_shape(chart: Chart, width: float) -> tuple[int, int]:
    """Return columns and lines: one line where it fits, else columns as wide as the longest."""
    wide = [len(one_line(name)) * 5.6 + 50 for name in legend_names(chart)]
    if not wide:
        return 1, 0
    most = len(wide) if sum(wide) <= width * 72 else max(1, int(width * 72 // max(wide)))
    lines = -(-len(wide) // most)
    return -(-len(wide) // lines), lines


def _frame(axes: Axes, chart: Chart, width: float) -> None:
    """Draw what stands around the marks."""
    axes.set_xlabel(one_line(chart.x_label, 70))
    axes.set_ylabel(one_line(chart.y_label, 44))
    if chart.bare:
        axes.tick_params(length=0, labelbottom=False, labelleft=False)
        axes.spines[:].set(visible=True, color=_GRID)
    if chart.x_categories:
        names = [one_line(name, 22) for name in chart.x_categories]
        every = -(-len(names) // 25)
        wide = max(map(len, names)) * 5.8 + 8 > (width * 72 - 60) / len(names) * every
        turned: Any = {"rotation": 38, "ha": "right", "rotation_mode": "anchor"} if wide else {}
        axes.set_xticks(range(0, len(names), every), names[::every], **turned)
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.tick_params("x", length=0, pad=5)
    if chart.y_categories:
        axes.set_yticks(range(len(chart.y_categories)), map(one_line, chart.y_categories))
        axes.set_ylim(len(chart.y_categories) - 0.4, -0.6)
        axes.tick_params("y", length=0, pad=7)
    if not chart.bare:
        axes.grid(axis="y" if chart.x_categories else "x" if chart.y_categories else "both")
    if "zero" in chart.guides:
        axes.axvline(0, color=_INK, linewidth=0.9)
    if "diagonal" in chart.guides:
        axes.axline((0, 0), slope=1, color=_INK, linewidth=0.9, linestyle=(0, (4, 3)), alpha=0.6)


def _draw(axes: Axes, chart: Chart) -> list[tuple[Artist, str]]:
    """Draw all series; return what stands in the legend, if there is one."""
    handles: list[tuple[Artist, str]] = []
    drawn, names = {"line": 0, "bars": 0}, legend_names(chart)
    grouped = sum(series.kind == "bars" for series in chart.series) if chart.x_categories else 0
    for series in chart.series:
        x, y = (axis_numbers(values) for values in (series.x, series.y))
        edges = series.kind == "bars" and not grouped
        if len(x) != len(y) + edges and len(x) + len(y):
            raise ValueError(
                f"chart {chart.key!r}, series {series.name!r}: {len(x)} x and {len(y)} y; give "
                + ("one x more than y, the edges of the bins" if edges else "as many of each")
            )
        order = drawn.get(series.kind, 0)
        drawn[series.kind] = order + 1
        if not np.isfinite(y).any() or not np.isfinite(x).any():
            continue
        handle = _marks(axes, series, x, y, order, grouped)
        if series.name in names:
            handles.append((handle, series.name))
        axes.set_label("drawn")
    if axes.get_label() != "drawn":
        axes.text(0.5, 0.5, "nothing to show", transform=axes.transAxes, ha="center", va="center")
        axes.tick_params(length=0, labelbottom=False, labelleft=bool(chart.y_categories))
    return handles


def _marks(
    axes: Axes, series: ChartSeries, x: np.ndarray, y: np.ndarray, order: int, grouped: int
) -> Artist:
    colour = COLOUR[series.role]
    mark = _MARKS[series.symbol % len(_MARKS)]
    if series.kind == "points":
        kept = np.isfinite(x) & np.isfinite(y)
        size, alpha = next(look for most, look in _CROWDS if kept.sum() <= most)
        look: dict[str, Any] = {"marker": mark, "linestyle": "none", "color": colour, "mew": 0}
        axes.plot(x[kept], y[kept], markersize=size, alpha=alpha, **look)
        return Line2D([], [], markersize=6, **look)
    if series.kind == "line":
        single = "o" if np.isfinite(x + y).sum() == 1 else ""
        dashes = _DASHES[order % len(_DASHES)]
        return axes.plot(
            x, y, color=colour, linestyle=dashes, marker=single, linewidth=1.6, dash_capstyle="butt"
        )[0]
    if series.kind == "bars" and grouped:
        wide = 0.8 / grouped
        x = x + (order - (grouped - 1) / 2) * wide
        y = np.nan_to_num(y)
        hatch = _HATCHES[order % len(_HATCHES)] if len(x) <= 30 else ""  # not seen if narrow
        axes.bar(x, y, 0.92 * wide, facecolor=colour, alpha=0.4 if hatch else 0.8, linewidth=0)
        if not hatch:
            return Patch(facecolor=colour, alpha=0.8)
        box: dict[str, Any] = {"facecolor": "none", "edgecolor": colour, "linewidth": 0.9}
        axes.bar(x, y, 0.92 * wide, hatch=hatch, **box)
        return Patch(hatch=hatch, **box)
    if series.kind == "bars":
        look = {"linewidth": 1.3, "linestyle": _DASHES[order % len(_DASHES)], "edgecolor": colour}
        axes.stairs(y, x, fill=True, facecolor=(colour, 0.28), **look)
        return Patch(facecolor=(colour, 0.28), **look)
    low, high = (np.full(len(x), np.nan) if side is None else axis_numbers(side)
                 for side in (series.low, series.high))  # fmt: skip
    known = np.isfinite(low) & np.isfinite(high) & np.isfinite(y)
    axes.hlines(y[known], low[known], high[known], color=colour, linewidth=1.8)
    look = {"marker": mark, "color": colour, "linewidth": 1.8, "markersize": 6, "mew": 1.3}
    axes.plot(x[known], y[known], **{**look, "linestyle": "none"})
    axes.plot(x[~known], y[~known], **{**look, "linestyle": "none"}, fillstyle="none")
    return Line2D([], [], **look)


def _square(axes: Axes, chart: Chart) -> None:
    """Make units equally long; a diagonal runs from corner to corner."""
    if "diagonal" in chart.guides:
        ends = (*axes.get_xlim(), *axes.get_ylim())
        axes.set(xlim=(min(ends), max(ends)), ylim=(min(ends), max(ends)))
        axes.set_aspect("equal", adjustable="box")
    else:
        axes.set_aspect("equal", adjustable="datalim")


def _written(figure: Figure, key: str, title: str, about: str) -> str:
    # an engine of the figure's own would draw everything once more
    FigureCanvasSVG(figure)
    ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06).execute(figure)
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None})
    return inline_svg(drawn.getvalue(), key, title, about)
