"""Interactive charts: figures of plotly, as plain data.

The only module of the wing that needs plotly. Marks hold no colours: ``meta`` of a trace names
its role, and the page's script puts in what that role looks like now. Names of users are escaped
against plotly's pseudo-HTML, its templates and its formulas.
"""

from __future__ import annotations

import html
import re
import textwrap
from importlib.util import find_spec
from typing import Any

import numpy as np

from amlb_ext.core.display import shorten_text
from amlb_ext.report.inline import (
    axis_numbers,
    interval_bound,
    legend_names,
    rows_of_categories,
    wrap_category,
)
from amlb_ext.report.model import Chart, ChartSeries

#: Part of a figure, as plotly's schema names it.
_Spec = dict[str, Any]
#: Longest name in a legend or on an axis of categories.
_LONGEST_NAME = 32
#: Longest label of an axis, and longest line of it.
_LONGEST_LABEL = 70
_LONGEST_TITLE_LINE = 30
#: More points than this are drawn small and pale.
_CROWD = 300
# Told apart by their order among their kind, for those who cannot tell colours apart.
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down")
_DASHES = ("solid", "dash", "dot", "dashdot", "10px,3px,2px,3px,2px,3px", "longdash")
_PATTERNS = ("", "/", "-", "\\", "|", "x")


#: What to type for charts that react to the mouse.
INSTALL = "pip install 'hardsynth[interactive]'"


def has_plotly() -> bool:
    """Return whether plotly's library is installed, the extra ``interactive``."""
    return find_spec("plotly") is not None


def plotly_figure(chart: Chart) -> _Spec:
    """Return a chart as what ``Plotly.newPlot`` takes: ``data`` and ``layout``.

    Parameters
    ----------
    chart : Chart

    Returns
    -------
    dict
        Lists, strings and numbers; numbers have four significant digits, None is a gap.
        Every trace has ``meta: {"role": ROLE}``, every shape is to be drawn like text.

    Examples
    --------
    >>> loss = np.array([1, np.nan, 1 / 3])
    >>> line = ChartSeries("<loss>", "line", np.arange(3.0), loss, role="c0")
    >>> figure = plotly_figure(Chart("k", "Loss", "Falls.", "x", "loss", (line,)))
    >>> trace = figure["data"][0]
    >>> trace["name"], trace["meta"], trace["y"]
    ('&lt;loss&gt;', {'role': 'c0'}, [1.0, None, 0.3333])
    """
    n_drawn = {"points": 0, "line": 0, "bars": 0, "intervals": 0}
    names = legend_names(chart)
    traces = []
    for series in chart.series:
        order = n_drawn[series.kind]
        n_drawn[series.kind] += 1
        trace = {
            "name": _escape_text(series.name, _LONGEST_NAME),
            "meta": {"role": series.role},
            "showlegend": series.name in names,
            **_trace_marks(series, order, is_grouped=bool(chart.x_categories)),
        }
        traces.append(trace)
    return {"data": traces, "layout": _figure_layout(chart, has_legend=bool(names))}


def plotly_library() -> str:
    """Return plotly's script, fit to stand inside a ``<script>`` element.

    Returns
    -------
    str
        About 5 MB.

    Examples
    --------
    >>> "</script" in plotly_library().lower()
    False
    """
    from plotly.offline import get_plotlyjs

    return _embeddable_script(get_plotlyjs())


def _embeddable_script(script: str) -> str:
    """Break up what would end a script element, or keep it from ending, inside strings."""
    return re.sub(r"<(?=/script|!--)", r"\\x3c", script, flags=re.IGNORECASE)


def _trace_marks(series: ChartSeries, order: int, is_grouped: bool) -> _Spec:
    """Return what a trace needs for its kind of marks."""
    x = axis_numbers(series.x)
    y = axis_numbers(series.y)
    texts = [_hover_text(text) for text in series.text]
    if series.kind == "bars" and not is_grouped:
        heights = np.nan_to_num(y)
        return _step_trace(x, heights, texts=texts, order=order)
    trace: _Spec = {
        "type": "scatter",
        "x": _json_numbers(x),
        "y": _json_numbers(y),
    }
    if texts:
        trace["text"] = texts
        trace["hoverinfo"] = "text"
    else:
        trace["hoverinfo"] = "x+y+name" if series.name else "x+y"
    symbol = _SYMBOLS[series.symbol % len(_SYMBOLS)]
    if series.kind == "points":
        return trace | _point_marks(symbol, is_crowded=len(x) > _CROWD)
    if series.kind == "line":
        # A line through one point has no length: it gets a mark.
        return trace | {
            "mode": "lines" if len(x) > 1 else "markers",
            "line": {"dash": _DASHES[order % len(_DASHES)], "width": 2},
        }
    if series.kind == "bars":
        return trace | _bar_marks(order)
    return trace | _interval_marks(series, x, symbol)


def _point_marks(symbol: str, is_crowded: bool) -> _Spec:
    marker = {
        "symbol": symbol,
        "size": 5 if is_crowded else 7,
        "opacity": 0.55 if is_crowded else 0.75,
    }
    return {"mode": "markers", "marker": marker}


def _bar_marks(order: int) -> _Spec:
    # A pattern replaces the filling, so that light and dark pages need no second colour.
    pattern = {
        "shape": _PATTERNS[order % len(_PATTERNS)],
        "size": 6,
        "solidity": 0.5,
    }
    return {
        "type": "bar",
        "textposition": "none",
        "marker": {"pattern": pattern, "line": {"width": 0}},
    }


def _interval_marks(series: ChartSeries, x: np.ndarray, symbol: str) -> _Spec:
    """Return open marks where there is no interval."""
    low = interval_bound(series.low, len(x))
    high = interval_bound(series.high, len(x))
    has_interval = np.isfinite(low) & np.isfinite(high)
    symbols = np.where(has_interval, symbol, f"{symbol}-open").tolist()
    # Plotly takes the lengths of the two halves of a bar, not its ends.
    length_above = np.where(has_interval, high - x, np.nan)
    length_below = np.where(has_interval, x - low, np.nan)
    return {
        "mode": "markers",
        "marker": {"symbol": symbols, "size": 9},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "thickness": 2,
            "width": 0,
            "array": _json_numbers(length_above),
            "arrayminus": _json_numbers(length_below),
        },
    }


def _step_trace(
    edges: np.ndarray, heights: np.ndarray, *, texts: list[str], order: int
) -> _Spec:
    """Return bins as an outline with a light filling: several can be seen through each other."""
    # An edge that is no number has no place: plotly would join its neighbours.
    has_edges = len(edges) == len(heights) + 1
    if not has_edges or not np.isfinite(edges).all():
        edges = heights = np.zeros(0)
    if not texts:
        for low, high, height in zip(edges[:-1], edges[1:], heights, strict=True):
            texts.append(f"{low:.4g} to {high:.4g}: {height:.4g}")
    # The outline goes up at the first edge, along each bin, and down at the last edge.
    outline_y = np.repeat(heights, 2)
    if len(edges):
        outline_y = np.pad(outline_y, 1)
    # Either corner of a bin tells of it; the two ends on the ground do not.
    outline_texts = np.repeat(texts, 2).tolist()
    if texts:
        outline_texts = ["", *outline_texts, ""]
    return {
        "type": "scatter",
        "mode": "lines",
        "fill": "tozeroy",
        "hoverinfo": "text",
        "x": _json_numbers(np.repeat(edges, 2)),
        "y": _json_numbers(outline_y),
        "text": outline_texts,
        "line": {"dash": _DASHES[order % len(_DASHES)], "width": 1.5},
    }


def _figure_layout(chart: Chart, has_legend: bool) -> _Spec:
    x_axis = _axis_layout(chart.x_label, chart.x_categories, chart.bare)
    y_axis = _axis_layout(chart.y_label, chart.y_categories, chart.bare)
    if chart.x_categories:
        x_axis["range"] = [-0.6, len(chart.x_categories) - 0.4]
        # What does not fit beside each other in a page is turned.
        lengths = [min(len(name), _LONGEST_NAME) for name in chart.x_categories]
        if sum(lengths) + 2 * len(lengths) > 60:
            x_axis["tickangle"] = -35
    if chart.y_categories:
        # From the larger to the smaller number: position 0 is at the top.
        y_axis["range"] = [len(chart.y_categories) - 0.4, -0.6]
    if chart.square:
        y_axis |= {"scaleanchor": "x", "scaleratio": 1}
        if "diagonal" in chart.guides:
            ends = _diagonal_ends(chart)
            x_axis |= {"range": ends, "constrain": "domain"}
            y_axis |= {"range": ends, "constrain": "domain"}
    annotations = []
    if not any(_has_marks(series) for series in chart.series):
        nothing = {
            "text": "nothing to show",
            "xref": "paper",
            "yref": "paper",
            "x": 0.5,
            "y": 0.5,
            "showarrow": False,
        }
        annotations.append(nothing)
    if chart.y_categories:
        height = 130 + round(30 * rows_of_categories(chart))
        # On a phone each entry of the legend has a line of its own.
        height += 22 * len(legend_names(chart))
    else:
        height = 480 if chart.square else 400
    return {
        "xaxis": x_axis,
        "yaxis": y_axis,
        "barmode": "group",
        "bargap": 0.2,
        "bargroupgap": 0.08,
        "height": height,
        "margin": {"l": 60, "r": 15, "t": 30, "b": 50},
        "hovermode": "closest",
        "hoverlabel": {"namelength": -1, "align": "left"},
        "showlegend": has_legend,
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
        },
        # A grey that is seen on light and on dark: plotly derives a wrong one from no background.
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#888", "activecolor": "#888"},
        "annotations": annotations,
        "shapes": _guide_shapes(chart),
    }


def _guide_shapes(chart: Chart) -> list[_Spec]:
    """Return guide lines: a vertical zero, a diagonal."""
    shapes: list[_Spec] = []
    if "zero" in chart.guides:
        # Above the marks, for bars end at it.
        zero = {
            "type": "line",
            "layer": "above",
            "x0": 0,
            "x1": 0,
            "y0": 0,
            "y1": 1,
            "yref": "paper",
            "line": {"width": 1},
        }
        shapes.append(zero)
    if "level" in chart.guides:
        level = {
            "type": "line",
            "layer": "below",
            "x0": 0,
            "x1": 1,
            "xref": "paper",
            "y0": 0,
            "y1": 0,
            "line": {"width": 1},
        }
        shapes.append(level)
    for guide, slope in (("diagonal", 1), ("break-even", -1)):
        if guide not in chart.guides:
            continue
        # Below the marks, which may be many points.
        low, high = _diagonal_ends(chart)
        diagonal = {
            "type": "line",
            "layer": "below",
            "x0": low,
            "x1": high,
            "y0": slope * low,
            "y1": slope * high,
            "line": {"width": 1, "dash": "dash"},
        }
        shapes.append(diagonal)
    return shapes


def _axis_layout(label: str, categories: tuple[str, ...], bare: bool) -> _Spec:
    axis: _Spec = {
        "title": {"text": _axis_title(label), "standoff": 12},
        "automargin": True,
        "zeroline": False,
        "showgrid": not (bare or categories),
        "showticklabels": not bare,
        "ticks": "" if bare or categories else "outside",
        "ticklen": 4,
    }
    if categories:
        axis["tickmode"] = "array"
        axis["tickvals"] = list(range(len(categories)))
        axis["ticktext"] = [_category_text(name) for name in categories]
    return axis


def _axis_title(label: str) -> str:
    # Beside long names little room is left for an axis: a longer title would be cut.
    lines = textwrap.wrap(shorten_text(label, _LONGEST_LABEL), _LONGEST_TITLE_LINE)
    return "<br>".join(_escape_text(line, _LONGEST_LABEL) for line in lines)


def _category_text(name: str) -> str:
    lines = wrap_category(name)
    return "<br>".join(_escape_text(line, _LONGEST_LABEL) for line in lines)


def _diagonal_ends(chart: Chart) -> list[float]:
    """Return the ends of a diagonal: what both axes show, and a little more."""
    shown = [np.zeros(0)]
    for series in chart.series:
        for numbers in (axis_numbers(series.x), axis_numbers(series.y)):
            shown.append(numbers[np.isfinite(numbers)])
    all_numbers = np.concatenate(shown)
    low, high = 0.0, 1.0
    if len(all_numbers):
        low = float(all_numbers.min())
        high = float(all_numbers.max())
    # A single number has no span to take a share of.
    span = (high - low) or 1.0
    margin = 0.03 * span
    return [low - margin, high + margin]


def _has_marks(series: ChartSeries) -> bool:
    has_x = np.isfinite(axis_numbers(series.x)).any()
    has_y = np.isfinite(axis_numbers(series.y)).any()
    return bool(has_x and has_y)


def _json_numbers(values: np.ndarray) -> list[float | None]:
    # Four digits are a tenth of a pixel on any screen, and keep the page small.
    numbers: list[float | None] = []
    for value in values:
        is_number = np.isfinite(value)
        numbers.append(float(f"{value:.4g}") if is_number else None)
    return numbers


def _hover_text(text: str) -> str:
    # An empty text has no line, but the pointer needs one per mark.
    lines = textwrap.wrap(shorten_text(text, 300), 60) or [""]
    return "<br>".join(_escape_text(line, 60) for line in lines)


def _escape_text(text: str, longest: int) -> str:
    """Return text that plotly shows as it is: no tags, no entities, no template, no formula."""
    escaped = html.escape(shorten_text(text, longest))
    return escaped.replace("$", "&#36;").replace("%{", "&#37;{")
