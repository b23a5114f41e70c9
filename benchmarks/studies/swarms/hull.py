"""All mixtures of three generators, and the pictures of swarms.

With N = 3 the hull is a plane, so it can be drawn whole. The table is simulated, so that beside the
objectives stands what the truth says of each mixture.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from amlb_ext.core.task import Task
from amlb_ext.synthesizers.swarm.objectives import performance
from benchmarks.studies.engine import Rows, flat_rows
from benchmarks.studies.swarms.choices import FORMS, SwarmChoice
from benchmarks.studies.swarms.methods import search_for
from benchmarks.studies.swarms.populations import TrueTeacher
from benchmarks.studies.swarms.prepare import StudyArena, prepare_draw

#: A plane has two free coefficients, the third is what is left of one.
GENERATORS = 3
#: Edges of the drawn square, and points along each.
LOW, HIGH, POINTS = -1.5, 2.5, 17
#: Rows of each point.
POINT_ROWS = 300
#: Points that are answered at once.
BATCH = 32


def draw_hull(choice: SwarmChoice, task: Task | None, *, data: str, draw: int) -> Rows:
    """Return a grid of coefficients with both objectives, support and the truth's excess.

    Parameters
    ----------
    choice : SwarmChoice
        ``generators`` is not read: it is three.
    task : Task or None
    data : str
        Of a simulated table.
    draw : int

    Returns
    -------
    list of dict
        At each point of the grid both objectives, the share of supported rows, and excess, what
        the best taker loses to the truth; for each form the points that the particle swarm
        visited, and the one it reports.
    """
    choice = choice.model_copy(update={"generators": GENERATORS})
    prepared = prepare_draw(task, data, draw, choice, user=False)
    arenas = {
        form: prepared.arena.settle(form, choice, {"difficult": 1.0}) for form in FORMS
    }
    truth = TrueTeacher(data, prepared.arena.encoder, prepared.arena.scale)
    axis = np.linspace(LOW, HIGH, POINTS)
    points = np.array([[c1, c2, 1 - c1 - c2] for c2 in axis for c1 in axis])
    rows: Rows = []
    for start in range(0, len(points), BATCH):
        batch = points[start : start + BATCH]
        values = {
            form: arena.values(
                batch @ arena.space.initial, n_rows=POINT_ROWS, stream="hull"
            )
            for form, arena in arenas.items()
        }
        known = _known_figures(arenas["honest"], truth, batch)
        for position, (c1, c2, _) in enumerate(batch):
            supported, excess = known[position]
            figures = {"supported": supported, "excess": excess}
            figures |= {str(form): float(values[form][position]) for form in FORMS}
            rows += flat_rows(figures, "figure", c1=c1, c2=c2, form="")
    for form, arena in arenas.items():
        trace = search_for(arena, "pso", choice)
        for c1, c2, *_ in trace.points:
            rows += flat_rows({"visited": 0}, "figure", c1=c1, c2=c2, form=form)
        c1, c2, *_ = trace.chosen
        reported = {"reported": trace.values.max()}
        rows += flat_rows(reported, "figure", c1=c1, c2=c2, form=form)
    return rows


def summarize_hull(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what the grid says of each form's objective.

    Returns
    -------
    DataFrame
        ``reported`` by the particle swarm; over the grid ``truth``, the correlation of the
        objective with the excess by the truth; ``soups`` and ``anywhere``, its largest value
        inside the triangle and in the whole square.
    """
    grid = hull_grid(rows)
    c1, c2 = (grid.index.get_level_values(name).astype(float) for name in ("c1", "c2"))
    is_soup = (c1 >= 0) & (c2 >= 0) & (c1 + c2 <= 1)
    lines = []
    for form in FORMS:
        told = rows[(rows["figure"] == "reported") & (rows["form"] == form)]
        lines.append(
            {
                "objective": f"difficult, {form}",
                "reported": told["value"].iloc[0],
                "soups": grid.loc[is_soup, form].max(),
                "anywhere": grid[form].max(),
                "truth": grid[form].corr(grid["excess"]),
            }
        )
    return pd.DataFrame(lines)


def hull_grid(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the figures of every point of the grid, in the order in which they were computed."""
    return rows[rows["form"] == ""].pivot_table(
        index=["c1", "c2"], columns="figure", values="value", sort=False
    )


def _known_figures(
    arena: StudyArena, truth: TrueTeacher, batch: np.ndarray
) -> list[tuple[float, float]]:
    """Return of each mixture the share of supported rows, and the excess by the truth."""
    figures = []
    for c in batch:
        # the same random numbers for every mixture
        rng = np.random.default_rng(arena.seed)
        made = arena.make_rows(c @ arena.space.initial, POINT_ROWS, rng)
        t = truth.predict(made.X)
        excess = performance(arena.panel.predict(made.X), "honest", y=made.y, t=t)
        supported, _ = arena.guard.nearest(made.X)
        figures.append((float(supported.mean()), float(1 - excess.mean(axis=1).max())))
    return figures


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
#: What is set side by side, by form: figure of Table 2 → label. Of excess, what a region of real
#: rows has is the auditor's gain there.
STAGES = {
    "literal": {
        "reported": "reported",
        "fresh": "fresh",
        "refits": "re-fits",
        "unseen": "unseen",
        "real": "real rows",
    },
    "honest": {
        "reported": "reported",
        "fresh": "fresh",
        "refits excess": "re-fits",
        "unseen excess": "unseen",
        "real gain": "real rows",
    },
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
    places = np.arange(5)
    for axis, form in zip(axes, STAGES, strict=True):
        here = swarm[swarm["form"] == form]
        # of one draw there is no error to show
        groups = here.groupby(["data", "figure"], sort=False)["value"]
        worth = groups.agg(["mean", "sem"])
        data_names = dict.fromkeys(here["data"])
        for colour, data in zip(COLOURS, data_names, strict=False):
            own = worth.loc[data].reindex(list(STAGES[form]))
            axis.errorbar(
                places,
                own["mean"],
                yerr=own["sem"],
                color=colour,
                marker="o",
                markersize=4,
                linewidth=1.2,
                capsize=2,
                label=data,
            )
        axis.axhline(0, color="grey", linewidth=0.6)
        axis.set_xticks(places, list(STAGES[form].values()))
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_title(form)
        axis.set_ylabel(
            "difficulty: 1 − accuracy" if form == "literal" else "excess error"
        )
    axes[1].legend(fontsize=8, frameon=False)
    return figure
