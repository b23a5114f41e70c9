"""Two pictures of swarms: the hull in two coefficients, and reported against fresh against real."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from amlb_ext.core.files import write_text
from benchmarks.studies.swarms.cells import list_figures
from benchmarks.studies.swarms.data import TEXT
from benchmarks.studies.swarms.hull import HIGH, LOW, POINTS
from benchmarks.studies.swarms.run import DrawResult

HULL, WORTH = "hull.svg", "worth.svg"
CAPTIONS = {
    HULL: "All mixtures of three generators; inside the triangle lie the soups, its corners are "
    "the generators. Line: the points that the particle swarm visited, dot: its choice",
    WORTH: "What the particle swarm found: as the search reports it, on fresh rows, to "
    "re-fits, to families never seen, and on real rows of the same region with true labels "
    "(missing: too few real rows are there). Left difficulty, right what a better model could mend",
}
#: Panels of the hull: column of the grid → title.
PANELS = {
    2: "literal difficulty",
    3: "honest difficulty",
    4: "rows with support",
    5: "excess by the truth",
}
#: What is set side by side: figure of Table 2 → label.
STAGES = {
    "reported": "reported",
    "fresh": "fresh",
    "refits": "re-fits",
    "unseen": "unseen",
    "real": "real rows",
}
COLOURS = ("#4a6fa5", "#1b7f5c", "#b3452c", "#7740a8", "#8a6d1a")


def draw_pictures(table: str, done: Sequence[DrawResult], folder: Path) -> list[Path]:
    """Draw the picture that belongs to a table, where it has one and there are draws.

    Returns
    -------
    list of Path
        SVG files in ``folder``.
    """
    if not done:
        return []
    if table == "swarm-hull":
        return [_save(_draw_hull(done[0]), folder / HULL)]
    if table == "swarm-table-2":
        return [_save(_draw_worth(list_figures(table, done)), folder / WORTH)]
    return []


def _save(figure: Figure, path: Path) -> Path:
    buffer = io.StringIO()
    # a fixed salt and no date: the same numbers give the same bytes
    with matplotlib.rc_context({"svg.hashsalt": "hardsynth", "svg.fonttype": "none"}):
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None})
    write_text(path, buffer.getvalue())
    return path


def _draw_hull(draw: DrawResult) -> Figure:
    grid = np.array(draw.rows["grid"])
    figure = Figure(figsize=(8.0, 7.0), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True, sharey=True)
    edge = (HIGH - LOW) / (POINTS - 1) / 2
    extent = (LOW - edge, HIGH + edge, LOW - edge, HIGH + edge)
    for axis, (column, title) in zip(axes.flat, PANELS.items(), strict=True):
        values = grid[:, column].reshape(POINTS, POINTS)
        image = axis.imshow(
            values,
            origin="lower",
            extent=extent,
            cmap="viridis",
            vmin=0,
            aspect="equal",
        )
        figure.colorbar(image, ax=axis, shrink=0.8)
        axis.set_title(title, fontsize=10)
        axis.plot([0, 1, 0, 0], [0, 0, 1, 0], color="white", linewidth=1.2)
        _add_path(axis, draw, "literal" if column == 2 else "honest")
    for axis in axes[1]:
        axis.set_xlabel("coefficient of generator 1")
    for axis in axes[:, 0]:
        axis.set_ylabel("coefficient of generator 2")
    return figure


def _add_path(axis: Axes, draw: DrawResult, form: str) -> None:
    """Draw the points that the particle swarm visited by a form, and its choice."""
    path = np.array(draw.rows[form]["path"])
    axis.scatter(path[:, 0], path[:, 1], s=7, color="white", linewidths=0, alpha=0.7)
    c1, c2 = draw.rows[form]["choice"]
    axis.scatter([c1], [c2], s=45, color="#e0442e", edgecolors="white", zorder=3)
    axis.set_xlim(LOW, HIGH)
    axis.set_ylim(LOW, HIGH)


def _draw_worth(figures: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    axes = figure.subplots(1, 2)
    swarm = figures[figures["method"] == "pso"]
    places = np.arange(len(STAGES))
    for axis, form in zip(axes, ("literal", "honest"), strict=True):
        here = swarm[swarm["form"] == form]
        # excess: what a region of real rows has of it is the auditor's gain there
        names = dict(STAGES)
        if form == "honest":
            names = {
                "reported": "reported",
                "fresh": "fresh",
                "refits excess": "re-fits",
                "unseen excess": "unseen",
                "real gain": "real rows",
            }
        for colour, data in zip(COLOURS, dict.fromkeys(here["data"]), strict=False):
            of_data = here[here["data"] == data]
            means, errors = [], []
            for name in names:
                values = of_data[of_data["figure"] == name]["value"]
                means.append(values.mean() if len(values) else np.nan)
                # of one draw there is no error to show
                errors.append(values.sem() if len(values) > 1 else np.nan)
            axis.errorbar(
                places,
                means,
                yerr=errors,
                color=colour,
                marker="o",
                markersize=4,
                linewidth=1.2,
                capsize=2,
                label=TEXT[data].split(" (")[0],
            )
        axis.axhline(0, color="grey", linewidth=0.6)
        axis.set_xticks(places, list(names.values()))
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_title(form)
        axis.set_ylabel(
            "difficulty: 1 − accuracy" if form == "literal" else "excess error"
        )
    axes[1].legend(fontsize=8, frameon=False)
    return figure
