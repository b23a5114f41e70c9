"""All mixtures of three generators: with N = 3 the hull is a plane, so it can be drawn whole.

The table is simulated, so that beside the objectives stands what the truth says of each mixture.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from amlb_ext.core.task import Task
from benchmarks.studies.swarms.choices import FORMS, FormName, SwarmChoice
from benchmarks.studies.swarms.draw import prepare_draw
from benchmarks.studies.swarms.methods import form_plan
from benchmarks.studies.swarms.populations import TrueTeacher
from amlb_ext.swarm.arena import Arena
from amlb_ext.swarm.labels import performance
from amlb_ext.swarm.prepare import settle_arena
from amlb_ext.swarm.search import search_generators

#: A plane has two free coefficients, the third is what is left of one.
GENERATORS = 3
#: Edges of the drawn square, and points along each.
LOW, HIGH, POINTS = -1.5, 2.5, 17
#: Rows of each point.
POINT_ROWS = 300
#: Points that are answered at once.
BATCH = 32


def draw_hull(
    task: Task | None, name: str, number: int, choice: SwarmChoice
) -> dict[str, Any]:
    """Return a grid of coefficients with both objectives, support and the truth's excess.

    Parameters
    ----------
    task : Task or None
    name : str
        Of a simulated table.
    number : int
    choice : SwarmChoice
        ``generators`` is not read: it is three.

    Returns
    -------
    dict
        ``grid``, a list of ``[c_1, c_2, literal, honest, supported, excess]``, where excess is
        what the best taker loses to the truth; and for each form the ``path`` of all points that
        the particle swarm visited, and its ``choice``.
    """
    choice = dataclasses.replace(choice, generators=GENERATORS)
    prepared, _ = prepare_draw(task, name, number, choice, user=False)
    arenas = {
        form: settle_arena(prepared.arena, form_plan(form, choice), {"difficult": 1.0})
        for form in FORMS
    }
    truth = TrueTeacher(name, prepared.arena.encoder, prepared.arena.scale)
    axis = np.linspace(LOW, HIGH, POINTS)
    points = np.array([[c1, c2, 1 - c1 - c2] for c2 in axis for c1 in axis])
    grid = []
    for start in range(0, len(points), BATCH):
        batch = points[start : start + BATCH]
        values = {
            form: arena.values(batch, n_rows=POINT_ROWS, stream="hull")
            for form, arena in arenas.items()
        }
        known = _known_figures(arenas["honest"], truth, batch)
        for position, c in enumerate(batch):
            own = [float(values[form][position]) for form in FORMS]
            grid.append([float(c[0]), float(c[1]), *own, *known[position]])
    rows: dict[str, Any] = {"grid": grid}
    for form, arena in arenas.items():
        trace = search_generators(
            arena, form_plan(form, choice), searches=("pso",), evaluations=choice.budget
        )
        rows[form] = {
            "path": trace.points[:, :2].tolist(),
            "choice": trace.chosen[:2].tolist(),
            "reported": trace.reported,
        }
    return rows


def summarise_hull(rows: Mapping[str, Any], form: FormName) -> dict[str, float]:
    """Return what the grid says of a form's objective.

    Parameters
    ----------
    rows : mapping
        As :func:`draw_hull` returns it.
    form : {'literal', 'honest'}

    Returns
    -------
    dict
        ``reported`` by the particle swarm; over the grid ``truth``, the correlation of the
        objective with the excess by the truth; ``soups`` and ``anywhere``, its largest value
        inside the triangle and in the whole square.
    """
    grid = np.array(rows["grid"])
    objective = grid[:, 2 + FORMS.index(form)]
    is_soup = (grid[:, 0] >= 0) & (grid[:, 1] >= 0) & (grid[:, :2].sum(axis=1) <= 1)
    return {
        "reported": float(rows[form]["reported"]),
        "truth": float(np.corrcoef(objective, grid[:, 5])[0, 1]),
        "soups": float(objective[is_soup].max()),
        "anywhere": float(objective.max()),
    }


def _known_figures(
    arena: Arena, truth: TrueTeacher, batch: np.ndarray
) -> list[list[float]]:
    """Return of each mixture the share of supported rows, and the excess by the truth."""
    figures = []
    for c in batch:
        # the same random numbers for every mixture
        rng = np.random.default_rng(arena.seed)
        made = arena.make_rows(c @ arena.space.initial, POINT_ROWS, rng)
        t = truth.predict(made.Z)
        excess = performance(arena.panel.predict(made.Z), "excess", y=made.y, t=t)
        supported, _ = arena.guard.nearest(made.Z)
        figures.append([float(supported.mean()), float(1 - excess.mean(axis=1).max())])
    return figures
