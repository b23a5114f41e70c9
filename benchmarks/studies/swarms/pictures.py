"""Two pictures of swarms: the hull in two coefficients, and reported against fresh against real."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.studies.swarms.hull import HIGH, LOW, POINTS, hull_grid

HULL_CAPTION = (
    "All mixtures of three generators; inside the triangle lie the soups, its corners are "
    "the generators. Dots: the points that the particle swarm visited, red: its choice"
)
WORTH_CAPTION = (
    "What the particle swarm found: as the search reports it, on fresh rows, to "
    "re-fits, to families never seen, and on real rows of the same region with true labels "
    "(missing: too few real rows are there). Left difficulty, right what a better model could mend"
)
#: Panels of the hull: figure → title.
PANELS = {
    "literal": "literal difficulty",
    "honest": "honest difficulty",
    "supported": "rows with support",
    "excess": "excess by the truth",
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


def draw_hull_figure(rows: pd.DataFrame) -> Figure:
    """Return the figures of the grid, with the way of the swarm."""
    grid = hull_grid(rows)
    figure = Figure(figsize=(8.0, 7.0), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True, sharey=True)
    edge = (HIGH - LOW) / (POINTS - 1) / 2
    extent = (LOW - edge, HIGH + edge, LOW - edge, HIGH + edge)
    for axis, (column, title) in zip(axes.flat, PANELS.items(), strict=True):
        values = grid[column].to_numpy().reshape(POINTS, POINTS)
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
        _add_path(axis, rows, "literal" if column == "literal" else "honest")
    for axis in axes[1]:
        axis.set_xlabel("coefficient of generator 1")
    for axis in axes[:, 0]:
        axis.set_ylabel("coefficient of generator 2")
    return figure


def _add_path(axis: Axes, rows: pd.DataFrame, form: str) -> None:
    """Draw the points that the particle swarm visited by a form, and its choice."""
    of_form = rows[rows["form"] == form]
    points = of_form[["c1", "c2"]].astype(float)
    visited = points[of_form["figure"] == "visited"]
    axis.scatter(
        visited["c1"], visited["c2"], s=7, color="white", linewidths=0, alpha=0.7
    )
    chosen = points[of_form["figure"] == "reported"]
    axis.scatter(
        chosen["c1"], chosen["c2"], s=45, color="#e0442e", edgecolors="white", zorder=3
    )
    axis.set_xlim(LOW, HIGH)
    axis.set_ylim(LOW, HIGH)


def draw_worth(figures: pd.DataFrame) -> Figure:
    """Return what the swarm found, step by step from its report to real rows."""
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
                label=data,
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
