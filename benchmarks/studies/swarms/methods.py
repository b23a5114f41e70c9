"""Every way of the swarm paper to make rows, on one prepared fold and by one form.

What does not depend on the objective is made and answered once: real rows, rows of the initial
generators, of soups, of elicitation and breeder, and all mixtures that random searches draw. Only
the particle swarm and CMA-ES search anew for every objective, with the same budget.

Notation
--------
N : initial generators;  E : evaluations of a search, N (1 + K);  c : (N,) coefficients
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from amlb_ext.core.rng import random_stream
from amlb_ext.synthesizers.swarm.arena import (
    Arena,
    MadeBatch,
    SearchName,
    SearchTrace,
    choose_point,
    make_search,
    search_generators,
)
from amlb_ext.synthesizers.swarm.objectives import ScoredRows
from amlb_ext.synthesizers.swarm.particles import RandomSoups, Search, SwarmSettings
from benchmarks.studies.swarms.choices import FormName, SwarmChoice
from benchmarks.studies.swarms.prepare import PreparedDraw, StudyArena
from benchmarks.studies.swarms.rivals import (
    RandomAffine,
    autobencher,
    breeder,
    elicitation,
)

#: Method → name for people; in the order of Table 1, ours after the paper's.
METHODS = {
    "dev": "dev set",
    "held_out": "held-out set",
    "initial": "initial generators, a share from each",
    "soup": "uniform soup",
    "base": "one generator of all rows (self-instruct)",
    "autobencher": "autobencher",
    "elicitation": "task elicitation",
    "breeder": "prompt breeder",
    "pso": "Data Swarms (particle swarm)",
    "best_initial": "best initial generator",
    "soups": "random soups",
    "affine": "random affine",
    "cma": "CMA-ES",
    "regret": "rows of all generators, redrawn by regret",
    "by_x": "real rows chosen by features alone",
}
#: Of the paper, by the groups of its section 3.
AGNOSTIC = ("dev", "held_out", "initial", "soup")
GUIDED = ("base", "autobencher", "elicitation", "breeder")
#: Methods that choose a mixture, which alone can report a best value.
SEARCHED = ("pso", "best_initial", "soups", "affine", "cma")
#: Real rows are no sample of a generator, so the paper prints no consistency of theirs.
STATIC = ("dev", "held_out")


class Found(NamedTuple):
    """What a search chose.

    Attributes
    ----------
    coefficients : ndarray of shape (N,)
    reported : float
        The best value that the search saw.
    """

    coefficients: np.ndarray
    reported: float


class FormRun:
    """All methods by one form.

    Parameters
    ----------
    prepared : PreparedDraw
    form : {'literal', 'honest'}
    choice : SwarmChoice

    Attributes
    ----------
    arena : StudyArena
        By the form.
    fixed : dict of str to MadeBatch
        Rows of the methods that need no objective.
    """

    def __init__(
        self, prepared: PreparedDraw, form: FormName, choice: SwarmChoice
    ) -> None:
        self.prepared = prepared
        self.form = form
        self.choice = choice
        self.arena = self.for_objective({"difficult": 1.0})
        self.fixed = self._make_fixed_rows()
        scored = self.arena.score(list(self.fixed.values()))
        self.fixed_scored = dict(zip(self.fixed, scored, strict=True))
        self._tried: dict[str, tuple[np.ndarray, list[ScoredRows]]] = {}

    def stream(self, *stage: str | int) -> np.random.Generator:
        """Return the random stream of a stage."""
        return random_stream(self.arena.seed, *self.arena.key, "swarm tables", *stage)

    def for_objective(self, weights: dict[str, float]) -> StudyArena:
        """Return the arena for objectives."""
        return self.prepared.arena.settle(self.form, self.choice, weights)

    def find(self, method: str, arena: StudyArena) -> Found:
        """Return the mixture that a searching method chooses for the arena's objective."""
        if method in ("pso", "cma"):
            name: SearchName = "pso" if method == "pso" else "cma"
            trace = search_for(arena, name, self.choice)
            return Found(trace.chosen, float(trace.values.max()))
        # random searches begin with the corners, the initial generators themselves
        points, scored = self._tried_points("soups" if method == "soups" else "affine")
        if method == "best_initial":
            points, scored = points[: points.shape[1]], scored[: points.shape[1]]
        values = np.array([arena.objective(rows) for rows in scored])
        chosen = points[int(values.argmax())]
        if method != "best_initial":
            chosen = choose_point(arena, points, values)
        return Found(chosen, float(values.max()))

    def fresh_rows(self, found: Found, method: str, objective: str) -> MadeBatch:
        """Draw rows of a mixture that no search has seen."""
        theta = found.coefficients @ self.arena.space.initial
        rng = self.stream("fresh", self.form, method, objective)
        return self.arena.make_rows(theta, self.choice.rows, rng)

    def autobencher_rows(self, arena: StudyArena) -> MadeBatch:
        """Return real rows around the subset that is best by the arena's objective."""
        Z, y = self.prepared.rows_of("generator")
        return autobencher(arena, Z, y, min(self.choice.rows, len(y) // 2))

    def _tried_points(self, name: str) -> tuple[np.ndarray, list[ScoredRows]]:
        """Return all mixtures of a random search with their rows, answered."""
        if name not in self._tried:
            random_search = RandomSoups if name == "soups" else RandomAffine
            space = self.arena.space
            search = random_search(
                space.n_generators, self.stream("search", name), self.choice.budget
            )
            batches = []
            while len(batch := search.ask()):
                batches.append(batch)
            points = np.concatenate(batches)
            # an honest one sees the same random numbers as every other search
            stream = "search" if self.arena.is_honest else name
            scored = self.arena.scored(points @ space.initial, stream=stream)
            self._tried[name] = points, scored
        return self._tried[name]

    def _make_fixed_rows(self) -> dict[str, MadeBatch]:
        arena, n = self.arena, self.choice.rows
        space, court = arena.space, self.prepared.court
        Z, y = self.prepared.rows_of("generator")
        dev = self.stream("dev").permutation(len(y))[:n]
        kept = self.prepared.held_out[:n]
        shares = np.array_split(np.arange(n), space.n_generators)
        parts = []
        for number, share in enumerate(shares):
            rng = self.stream("initial", number)
            parts.append(space.sample(space.initial[number], len(share), rng))
        X, own = map(np.concatenate, zip(*parts, strict=True))
        # shuffled, so that any part of them is a sample
        order = self.stream("initial order").permutation(n)
        uniform = space.initial.mean(axis=0)
        return {
            "dev": arena.as_written(Z[dev], y[dev]),
            "held_out": arena.as_written(court.Z[kept], court.y[kept]),
            "initial": arena.as_written(X[order], own[order]),
            "soup": arena.make_rows(uniform, n, self.stream("soup")),
            "base": arena.make_rows(space.base, n, self.stream("base")),
            "elicitation": elicitation(arena, n),
            "breeder": breeder(arena, n),
        }


def search_for(arena: Arena, name: SearchName, choice: SwarmChoice) -> SearchTrace:
    """Search for the arena's objective."""
    search: Search = make_search(
        name,
        arena.space.n_generators,
        random_stream(arena.seed, *arena.key, "search", name),
        SwarmSettings(iterations=choice.iterations),
    )
    return search_generators(arena, name, search)


def measure_objective(
    run: FormRun, name: str, weights: dict[str, float]
) -> dict[str, dict[str, float | None]]:
    """Return what every method reports and gets on fresh rows, by one objective.

    Parameters
    ----------
    run : FormRun
    name : str
        Of the objective.
    weights : dict of str to float

    Returns
    -------
    dict
        Method → ``reported`` (None for a method that searches nothing) and ``fresh``; for
        ``personalised`` also ``copies``, the share of rows nearer to a user's row than
        nineteen in twenty real rows are to each other.
    """
    arena = run.for_objective(weights)
    results: dict[str, dict[str, float | None]] = {}

    def add(method: str, scored: ScoredRows, reported: float | None) -> None:
        entry = {"reported": reported, "fresh": float(arena.objective(scored))}
        if name == "personalised":
            entry["copies"] = share_of_copies(arena, scored)
        results[method] = entry

    for method, scored in run.fixed_scored.items():
        if method in STATIC and "consistent" in weights:
            continue
        add(method, scored, None)
    [grown] = arena.score([run.autobencher_rows(arena)])
    add("autobencher", grown, None)
    for method in SEARCHED:
        found = run.find(method, arena)
        [scored] = arena.score([run.fresh_rows(found, method, name)])
        add(method, scored, found.reported)
    return results


def share_of_copies(arena: Arena, scored: ScoredRows) -> float | None:
    """Return the share of made rows that stand nearer to a user's row than real rows do."""
    if scored.user_rows is None:
        return None
    both = scored.metric_rows, scored.user_rows
    squared = (both[0] ** 2).sum(axis=1)[:, None] + (both[1] ** 2).sum(axis=1)
    distance = np.sqrt((squared - 2 * both[0] @ both[1].T).clip(0)).min(axis=1)
    return float((distance <= arena.guard.copy_radius).mean())
