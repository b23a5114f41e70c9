"""Where generators are compared: their rows, everybody's answers, the value of an objective.

All generators of a batch pass the takers and the teacher in one predict: with some 3 ms of fixed
cost per predict, a batch of eight takes a fraction of the time of eight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from amlb_ext.core.rng import random_stream
from amlb_ext.synthesizers.swarm.objectives import (
    Labels,
    MixedObjective,
    ScoredRows,
    SupportGuard,
    performance,
)
from amlb_ext.synthesizers.swarm.particles import (
    CmaSearch,
    CodeSwarm,
    PaperSwarm,
    RandomSoups,
    Search,
    SwarmSettings,
)
from amlb_ext.synthesizers.swarm.space import GeneratorSpace

SearchName = Literal["pso", "pso_code", "cma", "soups"]
#: Largest number of made rows in one predict.
MOST_ROWS_AT_ONCE = 50_000
#: Made rows of an evaluation; of the paper's, 200.
EVALUATION_ROWS: dict[Labels, int] = {"honest": 300, "literal": 200}
#: Mixtures that an honest search compares in the end, and fresh rows of each.
FINALISTS, FINAL_ROWS = 5, 2000


class MadeBatch(NamedTuple):
    """Rows of one generator with the generator's own labels, ``(n, d)`` and ``(n,)``."""

    X: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Arena:
    """Everything that a search asks.

    Honest labels are the teacher's, a row without support counts as answered right, and all
    generators get the same random numbers. Literal ones are the generator's own, without a guard.

    Attributes
    ----------
    seed : int
    key : tuple
        Of the random streams.
    space : GeneratorSpace
    ask : callable
        Rows ``(n, d)`` to the takers' labels ``(M, n)`` and the teacher's predictions.
    guard : SupportGuard
    labels : {'honest', 'literal'}
    objective : MixedObjective
    real : ndarray of shape (M, r)
        How the takers do on the guard's real rows, by true labels.
    variance : float
        Of a regression's target.
    n_rows : int
        Made rows of each evaluation.
    user_rows : ndarray of shape (u, e) or None
        Rows that made rows should resemble, in the guard's metric.
    """

    seed: int
    key: tuple[str | int, ...] = ()
    space: GeneratorSpace
    ask: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    guard: SupportGuard
    labels: Labels
    objective: MixedObjective
    real: np.ndarray
    variance: float = 1.0
    n_rows: int = EVALUATION_ROWS["honest"]
    user_rows: np.ndarray | None = None

    @property
    def is_honest(self) -> bool:
        """Whether labels are the teacher's."""
        return self.labels == "honest"

    def make_rows(
        self, theta: np.ndarray, n: int, rng: np.random.Generator
    ) -> MadeBatch:
        """Draw rows of a generator, ``theta`` of shape (D,), as they would be written."""
        return self.as_written(*self.space.sample(theta, n, rng))

    def as_written(self, X: np.ndarray, y: np.ndarray) -> MadeBatch:
        """Return rows with what writing changes: nothing here."""
        return MadeBatch(X, y)

    def values(
        self, thetas: np.ndarray, *, n_rows: int | None = None, stream: str = "search"
    ) -> np.ndarray:
        """Return the objective of each generator; parameters as in :meth:`scored`."""
        scored = self.scored(thetas, n_rows=n_rows, stream=stream)
        return np.array([self.objective(rows) for rows in scored])

    def scored(
        self, thetas: np.ndarray, *, n_rows: int | None = None, stream: str = "search"
    ) -> list[ScoredRows]:
        """Draw rows of each generator and let the takers answer them.

        Parameters
        ----------
        thetas : ndarray of shape (k, D)
        n_rows : int, optional
            Made rows of each; those of the search when omitted.
        stream : str
            Names the random numbers: common to all generators, or, of literal labels, each one's
            own.
        """
        made = []
        for number, theta in enumerate(thetas):
            own = () if self.is_honest else (number,)
            rng = random_stream(self.seed, *self.key, "rows", stream, *own)
            made.append(self.make_rows(theta, n_rows or self.n_rows, rng))
        return self.score(made)

    def score(
        self, made: Sequence[MadeBatch], labels: Labels | None = None
    ) -> list[ScoredRows]:
        """Let takers and teacher answer rows of several generators in one predict."""
        X = np.concatenate([rows.X for rows in made])
        y = np.concatenate([rows.y for rows in made])
        blocks = []
        for start in range(0, len(X), MOST_ROWS_AT_ONCE):
            part = slice(start, start + MOST_ROWS_AT_ONCE)
            predicted, t = self.ask(X[part])
            s = performance(
                predicted,
                labels or self.labels,
                y=y[part],
                t=t,
                variance=self.variance,
            )
            blocks.append(s)
        s = np.concatenate(blocks, axis=1)
        supported, nearest = self.guard.nearest(X)
        if self.is_honest:
            # a row where no real one is earns nothing, whatever takers say there
            s = np.where(supported, s, 1.0)
        scored = []
        start = 0
        for rows in made:
            own = slice(start, start + len(rows.X))
            start = own.stop
            scored.append(
                ScoredRows(
                    s=s[:, own],
                    real=self.real,
                    nearest=nearest[own],
                    supported=supported[own],
                    metric_rows=self.guard.metric(X[own]),
                    user_rows=self.user_rows,
                )
            )
        return scored

    def settle_units(self) -> None:
        """Measure the spread of several objectives over the initial generators."""
        # a single objective has no unit, so nothing is drawn for it
        if len(self.objective.weights) > 1:
            self.objective.settle_units(self.scored(self.space.initial, stream="units"))


class SearchTrace(NamedTuple):
    """All mixtures that a search evaluated.

    Attributes
    ----------
    points : ndarray of shape (E, N)
        Coefficients.
    values : ndarray of shape (E,)
        As the search saw them: the largest is the luckiest.
    chosen : ndarray of shape (N,)
    """

    points: np.ndarray
    values: np.ndarray
    chosen: np.ndarray


def make_search(
    name: SearchName,
    n_generators: int,
    rng: np.random.Generator,
    settings: SwarmSettings,
) -> Search:
    """Return a search among coefficients, by name; all have the budget of a particle swarm."""
    start = np.eye(n_generators)
    if name == "pso":
        return PaperSwarm(start, rng, settings)
    if name == "pso_code":
        return CodeSwarm(start, rng, settings)
    evaluations = n_generators * (1 + settings.iterations)
    if name == "cma":
        return CmaSearch(n_generators, rng, evaluations)
    return RandomSoups(n_generators, rng, evaluations)


def search_generators(arena: Arena, name: str, search: Search) -> SearchTrace:
    """Search the arena.

    Parameters
    ----------
    arena : Arena
    name : str
        Of the search, for streams that are not common.
    search : Search
    """
    points: list[np.ndarray] = []
    values: list[np.ndarray] = []
    while len(batch := search.ask()):
        stream = "search" if arena.is_honest else f"{name} {len(points)}"
        batch_values = arena.values(batch @ arena.space.initial, stream=stream)
        search.tell(batch_values)
        points.append(batch)
        values.append(batch_values)
    all_points = np.concatenate(points)
    all_values = np.concatenate(values)
    chosen = choose_point(arena, all_points, all_values)
    return SearchTrace(all_points, all_values, chosen)


def choose_point(arena: Arena, points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the best point; of an honest search the best of five on fresh rows.

    The best value of a noisy search is the luckiest one.
    """
    order = np.argsort(-values, kind="stable")
    if not arena.is_honest:
        return points[order[0]]
    _, first = np.unique(points[order], axis=0, return_index=True)
    finalists = points[order][np.sort(first)[:FINALISTS]]
    fresh = arena.values(
        finalists @ arena.space.initial, n_rows=FINAL_ROWS, stream="final"
    )
    return finalists[int(fresh.argmax())]
