"""Charts that answer to the pointer: figures of plotly, as plain data.

The only module of the wing that needs plotly. Marks hold no colours: ``meta`` of a trace names
its role, and the page's script puts in what that role looks like now. Names of users are escaped
against plotly's pseudo-HTML, its templates and its formulas.
"""

from __future__ import annotations

import html
import re
import textwrap
from typing import Any

import numpy as np

from amlb_ext.report.inline import LONGEST, axis_numbers, legend_names, one_line
from amlb_ext.report.model import Chart, ChartSeries

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down")
_DASHES = ("solid", "dash", "dot", "dashdot", "10px,3px,2px,3px,2px,3px", "longdash")
_PATTERNS = ("", "/", "-", "\\", "|", "x")


def plotly_figure(chart: Chart) -> dict[str, Any]:
    """Return a chart as what ``Plotly.newPlot`` takes: ``data`` and ``layout``.

    Parameters
    ----------
    chart : Chart

    Returns
    -------
    dict
        Of lists, strings and numbers; numbers have four digits that count, None is a gap.
        Every trace has ``meta: {"role": ROLE}``, every shape is to be drawn like text.

    Examples
    --------
    >>> loss = np.array([1, np.nan, 1 / 3])
    >>> line = ChartSeries("<loss>", "line", np.arange(3.0), loss, role="c0")
    >>> found = plotly_figure(Chart("k", "Loss", "Falls.", "x", "loss", (line,)))
    >>> trace = found["data"][0]
    >>> trace["name"], trace["meta"], trace["y"]
    ('&lt;loss&gt;', {'role': 'c0'}, [1.0, None, 0.3333])
    """
    order = {"points": 0, "line": 0, "bars": 0, "intervals": 0}
    names = legend_names(chart)
    data = []
    for series in chart.series:
        trace = {
            "name": _escaped(series.name, LONGEST),
            "meta": {"role": series.role},
            "showlegend": series.name in names,
            **_marks(series, order[series.kind], bool(chart.x_categories)),
        }
        order[series.kind] += 1
        data.append(trace)
    return {"data": data, "layout": _layout(chart, bool(names))}


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

    return _embeddable(get_plotlyjs())


def _embeddable(script: str) -> str:
    """Break up what would end a script element, or keep it from ending, inside strings."""
    return re.sub(r"<(?=/script|!--)", r"\\x3c", script, flags=re.IGNORECASE)


def _marks(series: ChartSeries, order: int, grouped: bool) -> dict[str, Any]:
    """Return what is particular to a kind of marks."""
    x, y = (axis_numbers(values) for values in (series.x, series.y))
    shown = [_hover(line) for line in series.text]
    symbol = _SYMBOLS[series.symbol % len(_SYMBOLS)]
    if series.kind == "bars" and not grouped:
        return _steps(x, np.nan_to_num(y), shown, order)
    trace: dict[str, Any] = {"type": "scatter", "x": _numbers(x), "y": _numbers(y)}
    if shown:
        trace |= {"text": shown, "hoverinfo": "text"}
    else:
        trace["hoverinfo"] = "x+y+name" if series.name else "x+y"
    if series.kind == "points":
        few = len(x) <= 300
        marker = {"symbol": symbol, "size": 7 if few else 5, "opacity": 0.75 if few else 0.55}
        return trace | {"mode": "markers", "marker": marker}
    if series.kind == "line":
        line = {"dash": _DASHES[order % len(_DASHES)], "width": 2}
        return trace | {"mode": "lines" if len(x) > 1 else "markers", "line": line}
    if series.kind == "bars":
        # A pattern replaces the filling, so that light and dark pages need no second colour.
        shape = {"shape": _PATTERNS[order % len(_PATTERNS)], "size": 6, "solidity": 0.5}
        return trace | {
            "type": "bar",
            "textposition": "none",
            "marker": {"pattern": shape, "line": {"width": 0}},
        }
    low, high = (np.full(len(x), np.nan) if side is None else axis_numbers(side)
                 for side in (series.low, series.high))  # fmt: skip
    known = np.isfinite(low) & np.isfinite(high)
    symbols = [symbol if bar else f"{symbol}-open" for bar in known]
    bars = {
        "type": "data", "symmetric": False, "thickness": 2, "width": 0,
        "array": _numbers(np.where(known, high - x, np.nan)),
        "arrayminus": _numbers(np.where(known, x - low, np.nan)),
    }  # fmt: skip
    return trace | {
        "mode": "markers", "marker": {"symbol": symbols, "size": 9}, "error_x": bars,
    }  # fmt: skip


def _steps(edges: np.ndarray, heights: np.ndarray, shown: list[str], order: int) -> dict[str, Any]:
    """Return bins as an outline with a light filling: several can be seen through each other."""
    if len(edges) != len(heights) + 1 or not np.isfinite(edges).all():
        edges = heights = np.zeros(0)
    if not shown:
        spans = zip(edges[:-1], edges[1:], heights, strict=True)
        shown = [f"{low:.4g} to {high:.4g}: {height:.4g}" for low, high, height in spans]
    twice = np.repeat(heights, 2)
    text = [line for line in shown for _ in range(2)]
    return {
        "type": "scatter", "mode": "lines", "fill": "tozeroy", "hoverinfo": "text",
        "x": _numbers(np.repeat(edges, 2)),
        "y": _numbers(np.concatenate([[0.0], twice, [0.0]]) if len(edges) else twice),
        "text": ["", *text, ""] if text else [],
        "line": {"dash": _DASHES[order % len(_DASHES)], "width": 1.5},
    }  # fmt: skip


def _layout(chart: Chart, named: bool) -> dict[str, Any]:
    x = _axis(chart.x_label, chart.x_categories, chart.bare)
    y = _axis(chart.y_label, chart.y_categories, chart.bare)
    if chart.x_categories:
        x |= {"range": [-0.6, len(chart.x_categories) - 0.4]}
        if sum(min(len(name), LONGEST) + 2 for name in chart.x_categories) > 60:
            x |= {"tickangle": -35}
    if chart.y_categories:
        y |= {"range": [len(chart.y_categories) - 0.4, -0.6]}
    ends = _ends(chart)
    if chart.square:
        y |= {"scaleanchor": "x", "scaleratio": 1}
        if "diagonal" in chart.guides:
            x |= {"range": ends, "constrain": "domain"}
            y |= {"range": ends, "constrain": "domain"}
    shapes = []
    if "zero" in chart.guides:
        up = {"x0": 0, "x1": 0, "y0": 0, "y1": 1, "yref": "paper"}
        shapes.append({**up, "layer": "above", "line": {"width": 1}})
    if "diagonal" in chart.guides:
        line = {"width": 1, "dash": "dash"}
        shapes.append({"x0": ends[0], "x1": ends[1], "y0": ends[0], "y1": ends[1], "line": line})
    rows = len(chart.y_categories)
    shown = any(all(map(_any, (series.x, series.y))) for series in chart.series)
    return {
        "xaxis": x, "yaxis": y, "barmode": "group", "bargap": 0.2, "bargroupgap": 0.08,
        "height": 130 + 30 * rows if rows else 480 if chart.square else 400,
        "margin": {"l": 60, "r": 15, "t": 30, "b": 50}, "hovermode": "closest",
        "hoverlabel": {"namelength": -1, "align": "left"}, "showlegend": named,
        "legend": {"orientation": "h", "x": 0, "xanchor": "left",
                   "y": 0, "yref": "container", "yanchor": "bottom"},
        # A grey that is seen on light and on dark: plotly derives a wrong one from no background.
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#888", "activecolor": "#888"},
        "annotations": [] if shown else [{
            "text": "nothing to show", "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5,
            "showarrow": False,
        }],
        "shapes": [{"type": "line", "layer": "below", **shape} for shape in shapes],
    }  # fmt: skip


def _axis(label: str, categories: tuple[str, ...], bare: bool) -> dict[str, Any]:
    axis: dict[str, Any] = {
        "title": {"text": _escaped(label, 70), "standoff": 12}, "automargin": True,
        "zeroline": False, "showgrid": not (bare or categories), "showticklabels": not bare,
        "ticks": "" if bare or categories else "outside", "ticklen": 4,
    }  # fmt: skip
    if categories:
        names = [_escaped(name, LONGEST) for name in categories]
        axis |= {"tickmode": "array", "tickvals": list(range(len(names))), "ticktext": names}
    return axis


def _ends(chart: Chart) -> list[float]:
    """Return the ends of a diagonal: what both axes show, and a little more."""
    values = [axis_numbers(part) for s in chart.series for part in (s.x, s.y)]
    values = [part[np.isfinite(part)] for part in values]
    found = np.concatenate([*values, np.zeros(0)])
    low, high = (float(found.min()), float(found.max())) if len(found) else (0.0, 1.0)
    wide = 0.03 * ((high - low) or 1.0)
    return [low - wide, high + wide]


def _any(values: np.ndarray) -> bool:
    return bool(np.isfinite(axis_numbers(values)).any())


def _numbers(values: np.ndarray) -> list[float | None]:
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]


def _hover(text: str) -> str:
    lines = textwrap.wrap(one_line(text, 300), 60) or [""]
    return "<br>".join(_escaped(line, 60) for line in lines)


def _escaped(text: str, longest: int) -> str:
    """Return text that plotly shows as it is: no tags, no entities, no template, no formula."""
    shown = html.escape(one_line(text, longest))
    return shown.replace("$", "&#36;").replace("%{", "&#37;{")
