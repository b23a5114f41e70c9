"""Contrasts and levels of a study as pictures; the only module here that needs matplotlib."""

from __future__ import annotations

import io
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.studies.fidelity.judge import ALL_TABLES

_STRONG = "#14365c"
#: One mark and shade per table, light beside the mean over all.
_MARKS = "osD^vPX*"
_LIGHT = (
    "#e08a3c",
    "#5fa88f",
    "#a98bc9",
    "#d56b83",
    "#8aa23c",
    "#6fa5d8",
    "#b08968",
    "#999999",
)
#: Sizes of marks: of all tables together, and of one.
_STRONG_SIZE, _LIGHT_SIZE = 6.0, 4.0
#: The same bytes every time, and letters that stay text.
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "hardsynth",
    "svg.fonttype": "none",
    "font.size": 9,
}

#: What a reader who has not read the protocol calls a method; others keep their names.
_TITLES = {
    "few_bad": "bad rows",
    "faithful_vae": "bad and synthetic rows",
    "whole": "whole test fold",
    "weighted": "test fold, weighted",
    "repeated": "test fold, repeated by half its weight",
    "repeated_and_made": "the same, and population rows",
    "composed": "main task of generate",
}

#: A contrast: method, against, reference.
_Key = tuple[str, str, str]


def forest_plot(contrasts: pd.DataFrame, title: str) -> str:
    """Return a forest plot of paired differences ± 1.96 s.e. as SVG.

    One panel per n; the mean over all tables in strong, each table in light marks. The same
    frame gives the same bytes.

    Parameters
    ----------
    contrasts : DataFrame
        From :func:`~benchmarks.studies.fidelity.summary.paired_contrasts`.
    title : str

    Returns
    -------
    str

    Examples
    --------
    >>> row = {"table": ALL_TABLES, "n": 200, "method": "half", "against": "few_bad",
    ...        "reference": "realised", "difference": 0.1, "se": 0.02}
    >>> "half − few_bad" in forest_plot(pd.DataFrame([row]), "study")
    True
    """
    sizes = sorted(contrasts["n"].unique())
    keys = list(dict.fromkeys(_contrast_keys(contrasts)))
    tables = list(dict.fromkeys(contrasts["table"]))
    tables = [table for table in tables if table != ALL_TABLES]
    if len(tables) == 1:
        tables = []  # it is the mean over all
    with matplotlib.rc_context(_STYLE):
        figure = _empty_figure(n_panels=len(sizes), n_keys=len(keys), tables=tables)
        # x and y are shared, so that effects compare across n and the labels stand once
        [panels] = figure.subplots(
            1,
            len(sizes),
            sharex=True,
            sharey=True,
            squeeze=False,
        )
        for axes, n in zip(panels, sizes, strict=True):
            _draw_panel(axes, contrasts[contrasts["n"] == n], keys, tables)
            axes.set_title(f"n = {n}", fontsize=9)
            axes.set_xlabel("difference in Kendall's tau, ± 1.96 s.e.", fontsize=8)
        labels = [
            f"{method} − {against}\non {reference}"
            for method, against, reference in keys
        ]
        panels[0].set_yticks(np.arange(len(keys)), labels)
        # from the first contrast at the top to the last
        panels[0].set_ylim(len(keys) - 0.4, -0.6)
        figure.suptitle(title, fontsize=10)
        if tables:
            _add_legend(figure, tables)
        text = io.StringIO()
        # a date would make every file another one
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def levels_plot(levels: pd.DataFrame, title: str) -> str:
    """Return each method's mean tau on each table, ± 1.96 s.e., as SVG.

    One panel per n, one line per table, all tables together first. The same frame gives the same
    bytes.

    Parameters
    ----------
    levels : DataFrame
        From :func:`~benchmarks.studies.fidelity.summary.summarize_levels`.
    title : str

    Examples
    --------
    >>> row = {"reference": "region", "table": ALL_TABLES, "n": 200, "method": "few_bad",
    ...        "figure": "tau", "mean": 0.4, "se": 0.1}
    >>> "bad rows" in levels_plot(pd.DataFrame([row]), "study")
    True
    """
    levels = levels[levels["figure"] == "tau"]
    sizes = sorted(levels["n"].unique())
    tables = list(dict.fromkeys(levels["table"]))
    methods = list(dict.fromkeys(levels["method"]))
    # the marks of one line stand below each other, so that intervals can be told apart
    offsets = np.linspace(-0.3, 0.3, len(methods)) if len(methods) > 1 else [0.0]
    with matplotlib.rc_context(_STYLE):
        height = 1.4 + (0.2 + 0.08 * len(methods)) * len(tables)
        figure = Figure(figsize=(1.6 + 3.4 * len(sizes), height), layout="constrained")
        [panels] = figure.subplots(
            1, len(sizes), sharex=True, sharey=True, squeeze=False
        )
        for axes, n in zip(panels, sizes, strict=True):
            of_size = levels[levels["n"] == n]
            for index, method in enumerate(methods):
                of_method = of_size[of_size["method"] == method].set_index("table")
                mark, colour = _method_style(method, index)
                means = of_method["mean"].reindex(tables).to_numpy(dtype=float)
                errors = of_method["se"].reindex(tables).to_numpy(dtype=float)
                axes.errorbar(
                    means,
                    np.arange(len(tables)) + offsets[index],
                    # one draw has no spread
                    xerr=1.96 * np.nan_to_num(errors),
                    fmt=mark,
                    color=colour,
                    markersize=_LIGHT_SIZE,
                    linewidth=1.0,
                )
            axes.set_title(f"n = {n}", fontsize=9)
            axes.set_xlabel("Kendall's tau with the pool, ± 1.96 s.e.", fontsize=8)
            axes.grid(axis="x", color="#e4e4e4", linewidth=0.6)
            axes.set_axisbelow(True)
            for line in np.arange(len(tables) - 1) + 0.5:
                axes.axhline(line, color="#eeeeee", linewidth=0.6)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
        panels[0].set_yticks(np.arange(len(tables)), tables)
        panels[0].set_ylim(len(tables) - 0.5, -0.5)
        figure.suptitle(title, fontsize=10)
        handles = []
        for index, method in enumerate(methods):
            mark, colour = _method_style(method, index)
            label = _TITLES.get(method, method)
            handles.append(_legend_mark(label, mark, colour=colour, size=_LIGHT_SIZE))
        figure.legend(
            handles=handles,
            loc="outside lower center",
            ncols=min(3, len(handles)),
            frameon=False,
        )
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _method_style(method: str, index: int) -> tuple[str, str]:
    """Return mark and colour of a method; what generate makes stands out."""
    mark, colour = _table_style(index)
    return mark, _STRONG if method == "composed" else colour


def _contrast_keys(contrasts: pd.DataFrame) -> list[_Key]:
    methods = contrasts["method"].astype(str)
    against = contrasts["against"].astype(str)
    references = contrasts["reference"].astype(str)
    return list(zip(methods, against, references, strict=True))


def _empty_figure(*, n_panels: int, n_keys: int, tables: list[str]) -> Figure:
    """Return a figure with room for each contrast's marks; sizes in inches."""
    height = 1.3 + (0.3 + 0.07 * len(tables)) * n_keys
    if tables:
        height += 0.2  # the legend
    return Figure(figsize=(2.6 + 3.0 * n_panels, height), layout="constrained")


def _draw_panel(
    axes: Axes, contrasts: pd.DataFrame, keys: list[_Key], tables: list[str]
) -> None:
    """Draw the contrasts of one n."""
    lines = {key: line for line, key in enumerate(keys)}
    axes.axvline(0, color="#555555", linewidth=0.8)
    # tables stand below the mean over all, spread over what is left of the line
    offsets = np.array([0.25])
    if len(tables) > 1:
        offsets = np.linspace(0.14, 0.4, len(tables))
    for key, row in zip(_contrast_keys(contrasts), contrasts.itertuples(), strict=True):
        if not np.isfinite(row.difference):
            continue
        line = float(lines[key])
        if row.table == ALL_TABLES:
            _draw_mean(axes, row, line - 0.1 if tables else line)
        elif row.table in tables:
            index = tables.index(row.table)
            _draw_table(axes, row, line + float(offsets[index]), index)
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _draw_mean(axes: Axes, row: Any, y: float) -> None:
    """Draw the mean over all tables."""
    axes.errorbar(
        row.difference,
        y,
        xerr=_half_width(row),
        fmt="o",
        color=_STRONG,
        markersize=_STRONG_SIZE,
        linewidth=2.2,
        zorder=3,
        alpha=1.0,
    )


def _draw_table(axes: Axes, row: Any, y: float, index: int) -> None:
    """Draw one table's mean, behind that over all."""
    mark, colour = _table_style(index)
    axes.errorbar(
        row.difference,
        y,
        xerr=_half_width(row),
        fmt=mark,
        color=colour,
        markersize=_LIGHT_SIZE,
        linewidth=1.0,
        zorder=2,
        alpha=0.75,
    )


def _half_width(row: Any) -> float | None:
    """Return half of the interval; None for one draw, which has no spread."""
    return 1.96 * row.se if np.isfinite(row.se) else None


def _add_legend(figure: Figure, tables: list[str]) -> None:
    handles = [_legend_mark(ALL_TABLES, "o", colour=_STRONG, size=_STRONG_SIZE)]
    for index, table in enumerate(tables):
        mark, colour = _table_style(index)
        handles.append(_legend_mark(table, mark, colour=colour, size=_LIGHT_SIZE))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=min(4, len(handles)),
        frameon=False,
    )


def _table_style(index: int) -> tuple[str, str]:
    """Return mark and colour of a table; they repeat after eight."""
    return _MARKS[index % len(_MARKS)], _LIGHT[index % len(_LIGHT)]


def _legend_mark(label: str, mark: str, *, colour: str, size: float) -> Line2D:
    return Line2D(
        [],
        [],
        marker=mark,
        color=colour,
        markersize=size,
        linestyle="-",
        label=label,
    )
