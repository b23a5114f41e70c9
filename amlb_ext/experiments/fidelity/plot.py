"""The declared contrasts as a picture; the only module here that needs matplotlib."""

from __future__ import annotations

import io

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from amlb_ext.experiments.fidelity.judge import ALL_TABLES

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


def forest_plot(found: pd.DataFrame, title: str) -> str:
    """Return a forest plot of paired differences ± 1.96 s.e. as SVG.

    One panel per n; the mean over all tables in strong, each table in light marks. The same
    frame gives the same bytes.

    Parameters
    ----------
    found : DataFrame
        From :func:`~amlb_ext.experiments.fidelity.summary.paired_contrasts`.
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
    sizes = sorted(found["n"].unique())
    keys = list(dict.fromkeys(_keys(found)))
    tables = [table for table in dict.fromkeys(found["table"]) if table != ALL_TABLES]
    if len(tables) == 1:
        tables = []  # it is the mean over all
    with matplotlib.rc_context(
        {"svg.hashsalt": "hardsynth", "svg.fonttype": "none", "font.size": 9}
    ):
        gap = 0.2
        height = 1.3 + (0.3 + 0.07 * len(tables)) * len(keys) + gap * (len(tables) > 0)
        figure = Figure(figsize=(2.6 + 3.0 * len(sizes), height), layout="constrained")
        panels = figure.subplots(
            1, len(sizes), sharex=True, sharey=True, squeeze=False
        )[0]
        for axes, n in zip(panels, sizes, strict=True):
            _panel(axes, found[found["n"] == n], keys, tables)
            axes.set_title(f"n = {n}", fontsize=9)
            axes.set_xlabel("difference in Kendall's tau, ± 1.96 s.e.", fontsize=8)
        labels = [
            f"{method} − {against}\non {reference}"
            for method, against, reference in keys
        ]
        panels[0].set_yticks(np.arange(len(keys)), labels)
        panels[0].set_ylim(len(keys) - 0.4, -0.6)
        figure.suptitle(title, fontsize=10)
        if tables:
            shown = [_mark(ALL_TABLES, "o", _STRONG, 6.0)]
            shown += [_mark(t, *_style(i), 4.0) for i, t in enumerate(tables)]
            figure.legend(handles=shown, loc="outside lower center", ncols=min(4, len(shown)),
                          frameon=False)  # fmt: skip
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _keys(found: pd.DataFrame) -> list[tuple[str, str, str]]:
    columns = (found[name].astype(str) for name in ("method", "against", "reference"))
    return list(zip(*columns, strict=True))


def _panel(
    axes: Axes, part: pd.DataFrame, keys: list[tuple[str, str, str]], tables: list[str]
) -> None:
    place = {key: i for i, key in enumerate(keys)}
    axes.axvline(0, color="#555555", linewidth=0.8)
    spread = (
        np.linspace(0.14, 0.4, len(tables)) if len(tables) > 1 else np.array([0.25])
    )
    for key, row in zip(_keys(part), part.itertuples(), strict=True):
        if row.table == ALL_TABLES:
            mark, colour, size, y, order = "o", _STRONG, 6.0, float(place[key]), 3
            y -= 0.1 if tables else 0.0
        elif row.table in tables:
            i = tables.index(row.table)
            mark, colour = _style(i)
            size, y, order = 4.0, place[key] + float(spread[i]), 2
        else:
            continue
        if not np.isfinite(row.difference):
            continue
        wide = 1.96 * row.se if np.isfinite(row.se) else None
        axes.errorbar(row.difference, y, xerr=wide, fmt=mark, color=colour, markersize=size,
                      linewidth=2.2 if row.table == ALL_TABLES else 1.0, zorder=order,
                      alpha=1.0 if row.table == ALL_TABLES else 0.75)  # fmt: skip
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _style(i: int) -> tuple[str, str]:
    return _MARKS[i % len(_MARKS)], _LIGHT[i % len(_LIGHT)]


def _mark(label: str, mark: str, colour: str, size: float) -> Line2D:
    return Line2D(
        [], [], marker=mark, color=colour, markersize=size, linestyle="-", label=label
    )
