"""One search among generators: which search, how it is run, and what is chosen in the end.

The best value of a noisy search is the luckiest one, so an honest preset chooses among its five
best on fresh rows; what is *reported* of the choice comes from yet other rows
(:mod:`amlb_ext.swarm.audit`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, cast, get_args

import numpy as np

from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.core.rng import random_stream
from amlb_ext.swarm.arena import Arena
from amlb_ext.swarm.cma_search import CmaSearch
from amlb_ext.swarm.labels import Labels, check_labels_name
from amlb_ext.swarm.objectives import Form
from amlb_ext.swarm.particles import (
    CodeSwarm,
    PaperSwarm,
    RandomAffine,
    RandomSoups,
    Search,
    SwarmSettings,
)

Preset = Literal["honest", "literal", "literal_code"]
SearchName = Literal["affine", "cma", "pso", "code", "soups"]
#: Fresh rows on which the finalists of an honest search are compared.
FINAL_ROWS = 2000
#: Hyper-parameters of the authors' code where it differs from the paper.
CODE_SETTINGS = SwarmSettings(patience=10, iterations=200)


@dataclass(frozen=True, kw_only=True)
class SwarmPlan:
    """How a swarm is searched; :func:`make_plan` knows the presets.

    Attributes
    ----------
    preset : {'honest', 'literal', 'literal_code'}
    labels : Labels
    is_guarded : bool
    form : {'literal', 'honest'}
        Of the objectives.
    searches : tuple of str
        Run one after the other, on equal shares of the budget.
    settings : SwarmSettings
        Of particle swarms; their number of iterations sets the budget of all searches.
    n_rows : int
        Made rows of each evaluation.
    common_numbers : bool
    finalists : int
        Mixtures compared on fresh rows in the end; 1 takes the search's word.
    """

    preset: Preset = "honest"
    labels: Labels = "excess"
    is_guarded: bool = True
    form: Form = "honest"
    searches: tuple[SearchName, ...] = ("affine", "cma")
    settings: SwarmSettings = field(default_factory=SwarmSettings)
    n_rows: int = 300
    common_numbers: bool = True
    finalists: int = 5

    def budget(self, n_generators: int) -> int:
        """Return how many generators a search evaluates: the start, and K moves of N particles."""
        return n_generators * (1 + self.settings.iterations)


def make_plan(
    preset: str = "honest",
    *,
    labels: str | None = None,
    search: str | None = None,
    iterations: int | None = None,
) -> SwarmPlan:
    """Return the plan of a preset, with what the user names in its place.

    Raises
    ------
    ConfigError
        An unknown preset, search or kind of labels.

    Examples
    --------
    >>> make_plan("literal").labels, make_plan(search="pso").searches
    ('own', ('pso',))
    """
    literal = SwarmPlan(
        preset="literal",
        labels="own",
        is_guarded=False,
        form="literal",
        searches=("pso",),
        n_rows=200,
        common_numbers=False,
        finalists=1,
    )
    plans = {
        "honest": SwarmPlan(),
        "literal": literal,
        "literal_code": replace(
            literal,
            preset="literal_code",
            searches=("code",),
            settings=CODE_SETTINGS,
        ),
    }
    if preset not in plans:
        raise ConfigError(f"no preset {preset!r}", suggest_nearest(preset, plans))
    plan = plans[preset]
    if labels is not None:
        plan = replace(plan, labels=check_labels_name(labels))
    if search is not None:
        known = get_args(SearchName)
        if search not in known:
            raise ConfigError(f"no search {search!r}", suggest_nearest(search, known))
        plan = replace(plan, searches=(cast("SearchName", search),))
    if iterations is not None:
        plan = replace(plan, settings=replace(plan.settings, iterations=iterations))
    return plan


def make_search(
    name: SearchName,
    n_generators: int,
    rng: np.random.Generator,
    *,
    settings: SwarmSettings,
    evaluations: int,
) -> Search:
    """Return a search among coefficients, by name."""
    if name == "pso":
        return PaperSwarm(np.eye(n_generators), rng, settings)
    if name == "code":
        return CodeSwarm(np.eye(n_generators), rng, settings)
    if name == "cma":
        return CmaSearch(n_generators, rng, evaluations)
    if name == "soups":
        return RandomSoups(n_generators, rng, evaluations)
    return RandomAffine(n_generators, rng, evaluations)


@dataclass(frozen=True, kw_only=True)
class SearchTrace:
    """All mixtures that a search evaluated.

    Attributes
    ----------
    points : ndarray of shape (E, N)
        Coefficients.
    values : ndarray of shape (E,)
        As the search saw them.
    chosen : ndarray of shape (N,)
    reported : float
        The best value the search saw, which is the luckiest.
    """

    points: np.ndarray
    values: np.ndarray
    chosen: np.ndarray
    reported: float


def search_generators(
    arena: Arena,
    plan: SwarmPlan,
    *,
    searches: tuple[SearchName, ...] = (),
    evaluations: int = 0,
) -> SearchTrace:
    """Search the arena.

    Parameters
    ----------
    arena : Arena
    plan : SwarmPlan
    searches : tuple of str, optional
        Instead of the plan's.
    evaluations : int, optional
        Instead of the plan's budget.
    """
    names = searches or plan.searches
    total = evaluations or plan.budget(arena.space.n_generators)
    points, values = [], []
    for name in names:
        search = make_search(
            name,
            arena.space.n_generators,
            random_stream(arena.seed, *arena.key, "search", name),
            settings=plan.settings,
            evaluations=total // len(names),
        )
        iteration = 0
        while len(batch := search.ask()):
            # the common stream is the same for all; fresh ones are keyed by search and iteration
            stream = "search" if arena.common_numbers else f"{name} {iteration}"
            batch_values = arena.values(batch, stream=stream)
            search.tell(batch_values)
            points.append(batch)
            values.append(batch_values)
            iteration += 1
    all_points = np.concatenate(points)
    all_values = np.concatenate(values)
    return SearchTrace(
        points=all_points,
        values=all_values,
        chosen=choose_point(arena, plan, all_points, all_values),
        reported=float(all_values.max()),
    )


def choose_point(
    arena: Arena, plan: SwarmPlan, points: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Return the best point, or the best of the finalists on fresh rows."""
    order = np.argsort(-values, kind="stable")
    finalists: list[np.ndarray] = []
    for position in order:
        point = points[position]
        # several searches begin at the same corners
        if not any(np.array_equal(point, other) for other in finalists):
            finalists.append(point)
        if len(finalists) == plan.finalists:
            break
    if len(finalists) == 1:
        return finalists[0]
    fresh = arena.values(np.array(finalists), n_rows=FINAL_ROWS, stream="final")
    return finalists[int(fresh.argmax())]
