"""Charts, drawn as inline SVG: for the page, for print and for mail.

The only module of the wing that needs matplotlib. A colour is drawn as a stand-in and becomes
``var(--c-ROLE)``, so that the page decides what it looks like, in light and in dark; text,
axes and frames are ``var(--c-ink)``, helping lines ``var(--c-grid)``. One unit of the ``viewBox``
is a point: a chart shown 460 pixels wide has text of 10 pixels.
"""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from scipy.stats import gaussian_kde

from amlb_ext.core.display import shorten_text
from amlb_ext.report.inline import COLOUR, inline_svg
from amlb_ext.report.model import Chart, ChartSeries

INK = COLOUR["ink"]
_GRID = COLOUR["grid"]
POINTS_PER_INCH = 72
#: Of a chart, in inches; sets how large the text is compared to the rest.
_WIDTH = 6.4
_MARKS = ("o", "s", "D", "^", "X", "v")
#: Keyword arguments of matplotlib.
_Look = dict[str, Any]
#: Up to how many points, how they look: smaller and paler, so that single ones are still seen.
_CROWDS: tuple[tuple[float, _Look], ...] = (
    (60, {"markersize": 5.5, "alpha": 0.85}),
    (300, {"markersize": 4.5, "alpha": 0.7}),
    (math.inf, {"markersize": 3.6, "alpha": 0.55}),
)
_DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1, 1.4)),
    (0, (6, 2, 1, 2)),
    (0, (3, 1, 1, 1)),
)
#: Fewer runs than these have no violin around them.
FEWEST_IN_VIOLIN = 5
#: Longest line of a category's name.
_LONGEST_LINE = 32
_SETTINGS: Any = {
    # Text stays text, to be found and read aloud, and takes the page's font.
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 10,
    "axes.labelsize": 10,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "legend.fontsize": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.7,
    "grid.color": _GRID,
    "grid.linewidth": 0.6,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.formatter.offset_threshold": 5,
    "axes.formatter.limits": (-4, 6),
}


def draw_chart(chart: Chart) -> str:
    """Return a chart as an ``<svg>`` element to be put into a page.

    The title is for those who cannot see the picture and is not drawn. The same chart gives the
    same text.

    Parameters
    ----------
    chart : Chart

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
    legend_columns, legend_lines = _legend_shape(chart)
    # a diagonal runs from corner to corner, so its units are equally long
    is_square = "diagonal" in chart.guides
    height = 0.2 * legend_lines
    if chart.y_categories:
        height += 0.75 + 0.27 * len(chart.y_categories)
    else:
        height += (0.75 if is_square else 0.52) * _WIDTH
    with canvas(chart.key):
        figure = Figure((_WIDTH, height), dpi=POINTS_PER_INCH)
        axes = figure.subplots()
        _draw_frame(axes, chart)
        told: dict[str, Sequence[str]] = {}
        entries = _draw_series(axes, chart, told)
        if is_square:
            ends = (*axes.get_xlim(), *axes.get_ylim())
            limits = (min(ends), max(ends))
            axes.set(xlim=limits, ylim=limits)
            axes.set_aspect("equal", adjustable="box")
        if entries:
            legend = figure.legend(
                list(entries.values()),
                ["name"] * len(entries),
                frameon=False,
                loc="outside lower center",
                ncols=legend_columns,
                handlelength=2.4,
            )
            # Set afterwards: a leading "_" would hide the entry.
            for text, name in zip(legend.get_texts(), entries, strict=True):
                text.set_text(shorten_text(name))
        return figure_to_svg(figure, chart, told)


@contextmanager
def canvas(key: str) -> Iterator[None]:
    """Draw with our settings, whatever the user's are, and without warnings of missing glyphs.

    A glyph that matplotlib's font lacks is drawn by the browser, from its own fonts.
    """
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS | {"svg.hashsalt": key})
        yield


def _legend_shape(chart: Chart) -> tuple[int, int]:
    """Return columns and lines: one line where it fits, else columns as wide as the longest."""
    # In points: a letter takes about 5.6, the mark and the gap beside it 50.
    entry_widths = []
    for name in legend_names(chart):
        n_letters = len(shorten_text(name))
        entry_widths.append(5.6 * n_letters + 50)
    n_entries = len(entry_widths)
    if not n_entries:
        return 1, 0
    room = _WIDTH * POINTS_PER_INCH
    per_line = n_entries
    if sum(entry_widths) > room:
        per_line = max(1, int(room // max(entry_widths)))
    # As many columns as the lines need: 4 entries, 3 to a line, stand in 2 lines of 2.
    n_lines = math.ceil(n_entries / per_line)
    n_columns = math.ceil(n_entries / n_lines)
    return n_columns, n_lines


def axis_numbers(values: object) -> np.ndarray:
    """Return a flat array of floats, NaN for what is too large for an axis.

    Examples
    --------
    >>> axis_numbers([1, np.inf, -1e308])
    array([ 1., nan, nan])
    """
    flat = np.asarray(values, dtype=float).ravel()
    # Beyond this the span of an axis, and so the place of every mark, would overflow.
    is_drawable = np.abs(flat) < 1e300
    return np.where(is_drawable, flat, np.nan)


def interval_bound(bound: np.ndarray | None, length: int) -> np.ndarray:
    """Return one side of a series' intervals, NaN where there is none."""
    if bound is None:
        return np.full(length, np.nan)
    return axis_numbers(bound)


def legend_names(chart: Chart) -> list[str]:
    """Return the names that a legend tells apart; none when the axis names the series.

    Examples
    --------
    >>> from amlb_ext.report.model import ChartSeries
    >>> spot = np.zeros(1)
    >>> a, b = (ChartSeries(name, "intervals", spot, spot) for name in "ab")
    >>> legend_names(Chart("k", "t", "", "x", "", (a, b)))
    ['a', 'b']
    >>> legend_names(Chart("k", "t", "", "x", "", (a, b), y_categories=("b", "a")))
    []
    """
    if chart.y_categories:
        return []
    names = [series.name for series in chart.series if series.name]
    # A single name has nothing to be told apart from; the title says what the chart shows.
    return names if len(names) > 1 else []


def wrap_category(name: str) -> list[str]:
    """Return the name of a category in two lines at most, each as long as a name may be.

    Examples
    --------
    >>> wrap_category("age > 60 and balance <= 0 and housing is yes")
    ['age > 60 and balance <= 0 and', 'housing is yes']
    """
    lines = textwrap.wrap(shorten_text(name, 2 * _LONGEST_LINE - 4), _LONGEST_LINE)
    return lines or [""]


def _draw_frame(axes: Axes, chart: Chart) -> None:
    """Draw what stands around the marks."""
    axes.set_xlabel(shorten_text(chart.x_label, 70))
    axes.set_ylabel(shorten_text(chart.y_label, 44))
    if chart.y_categories:
        names = ["\n".join(wrap_category(name)) for name in chart.y_categories]
        axes.set_yticks(range(len(names)), names)
        # From the larger to the smaller number: position 0 is at the top.
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.tick_params("y", length=0, pad=7)
    # Lines across the marks help to read numbers; there are none to read along categories.
    axes.grid(axis="x" if chart.y_categories else "both")
    if "zero" in chart.guides:
        axes.axvline(0, color=INK, linewidth=0.9)
    if "level" in chart.guides:
        axes.axhline(0, color=INK, linewidth=0.9)
    for guide, slope in (("diagonal", 1), ("break-even", -1)):
        if guide not in chart.guides:
            continue
        axes.axline(
            (0, 0),
            slope=slope,
            color=INK,
            linewidth=0.9,
            linestyle=(0, (4, 3)),
            alpha=0.6,
        )


@dataclass(frozen=True, kw_only=True)
class _Marks:
    """A series as it is drawn.

    Attributes
    ----------
    series : ChartSeries
    x, y : ndarray
        Numbers that fit on an axis, NaN for others.
    order : int
        Position in the chart: lines are told apart by it, not by colour alone.
    told : dict of str to sequence of str
        What the marks of each artist are called, by its gid: filled while they are drawn.
    """

    series: ChartSeries
    x: np.ndarray
    y: np.ndarray
    order: int
    told: dict[str, Sequence[str]]

    def tell(self, artist: Artist, is_shown: np.ndarray) -> None:
        """Remember what an artist's marks are called; it draws those of some rows."""
        if not self.series.text:
            return
        gid = f"marks-{len(self.told)}"
        artist.set_gid(gid)
        names = np.asarray(self.series.text, dtype=object)
        self.told[gid] = names[is_shown].tolist()

    @property
    def colour(self) -> str:
        return COLOUR[self.series.role]

    @property
    def symbol(self) -> str:
        return _MARKS[self.series.symbol % len(_MARKS)]


def _draw_series(
    axes: Axes, chart: Chart, told: dict[str, Sequence[str]]
) -> dict[str, Artist]:
    """Draw all series; return what stands in the legend by name, if there is one."""
    entries: dict[str, Artist] = {}
    names = legend_names(chart)
    is_empty = True
    for order, series in enumerate(chart.series):
        marks = _Marks(
            series=series,
            x=axis_numbers(series.x),
            y=axis_numbers(series.y),
            order=order,
            told=told,
        )
        if not (np.isfinite(marks.x).any() and np.isfinite(marks.y).any()):
            continue
        is_empty = False
        handle = _DRAW[series.kind](axes, marks)
        if series.name in names:
            entries[series.name] = handle
    if is_empty:
        axes.text(
            0.5,
            0.5,
            "nothing to show",
            transform=axes.transAxes,
            ha="center",
            va="center",
        )
        # without numbers; the names of rows may stay
        axes.tick_params(
            length=0, labelbottom=False, labelleft=bool(chart.y_categories)
        )
    return entries


def _draw_points(axes: Axes, marks: _Marks) -> Artist:
    is_shown = np.isfinite(marks.x + marks.y)
    n_shown = is_shown.sum()
    crowd_look = next(look for most, look in _CROWDS if n_shown <= most)
    look: _Look = {
        "marker": marks.symbol,
        "linestyle": "none",
        "color": marks.colour,
        "mew": 0,
    }
    [points] = axes.plot(marks.x[is_shown], marks.y[is_shown], **crowd_look, **look)
    marks.tell(points, is_shown)
    # In the legend one size, or a chart of many points would have marks too small to tell apart.
    return Line2D([], [], markersize=6, **look)


def _draw_line(axes: Axes, marks: _Marks) -> Artist:
    # A line through one point has no length: it gets a mark.
    n_points = np.isfinite(marks.x + marks.y).sum()
    lines = axes.plot(
        marks.x,
        marks.y,
        color=marks.colour,
        linestyle=_DASHES[marks.order % len(_DASHES)],
        marker="o" if n_points == 1 else "",
        linewidth=1.6,
        dash_capstyle="butt",
    )
    return lines[0]


def _draw_intervals(axes: Axes, marks: _Marks) -> Artist:
    x = marks.x
    y = marks.y
    low = interval_bound(marks.series.low, len(x))
    high = interval_bound(marks.series.high, len(x))
    has_ends = np.isfinite(low) & np.isfinite(high)
    has_interval = has_ends & np.isfinite(y)
    axes.hlines(
        y[has_interval],
        low[has_interval],
        high[has_interval],
        color=marks.colour,
        linewidth=1.8,
    )
    look: _Look = {
        "marker": marks.symbol,
        "color": marks.colour,
        "linewidth": 1.8,
        "markersize": 6,
        "mew": 1.3,
    }
    mark_look = look | {"linestyle": "none"}
    [closed] = axes.plot(x[has_interval], y[has_interval], **mark_look)
    # An open mark says that there is no interval.
    is_open = ~has_interval
    [opened] = axes.plot(x[is_open], y[is_open], **mark_look, fillstyle="none")
    is_drawn = np.isfinite(x + y)
    marks.tell(closed, has_interval & is_drawn)
    marks.tell(opened, is_open & is_drawn)
    return Line2D([], [], **look)


def _draw_violin(axes: Axes, marks: _Marks) -> Artist:
    is_shown = np.isfinite(marks.x)
    values = marks.x[is_shown]
    # a kernel's density of few values, or of equal ones, shows the kernel
    if len(values) >= FEWEST_IN_VIOLIN and np.ptp(values) > 0:
        grid = np.linspace(values.min(), values.max(), 100)
        density = gaussian_kde(values)(grid)
        half_width = 0.4 * density / density.max()
        axes.fill_between(
            grid,
            marks.y[0] - half_width,
            marks.y[0] + half_width,
            color=marks.colour,
            alpha=0.2,
            linewidth=0,
        )
    return _draw_points(axes, marks)


_DRAW: dict[str, Callable[[Axes, _Marks], Artist]] = {
    "points": _draw_points,
    "line": _draw_line,
    "intervals": _draw_intervals,
    "violin": _draw_violin,
}


def figure_to_svg(
    figure: Figure, chart: Chart, told: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Return a figure as an ``<svg>`` element for the page; see :func:`inline_svg`."""
    # An engine of the figure's own would draw everything once more.
    FigureCanvasSVG(figure)
    ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06).execute(figure)
    drawing = io.StringIO()
    # Without the date the same chart gives the same bytes.
    figure.savefig(drawing, format="svg", transparent=True, metadata={"Date": None})
    return inline_svg(drawing.getvalue(), chart, told)
