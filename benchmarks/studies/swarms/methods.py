"""Every way of the swarm paper to make rows, on one prepared fold and by one form.

What does not depend on the objective is made and answered once: real rows, rows of the initial
generators, of soups, of elicitation and breeder, and all mixtures that random searches draw. Only
the particle swarm and CMA-ES search anew for every objective, with the same budget. Rivals of the
swarm are a random search of mixtures, and three of the paper's that choose rows:

autobencher : ten subsets of twenty real rows; the best by the objective is grown by its nearest
    neighbours (Li et al., AutoBencher)
elicitation : ten rounds; P(a taker fails | x) is learnt on made rows, and rows of the one generator
    of all data are drawn again by it (Brown et al., Task elicitation)
breeder : ten rounds of crossovers of made rows, the fittest kept (Fernando et al., Promptbreeder)

The last three use rows that the generators may use. The value of a row is the least failure of any
taker on it, so that no single broken taker decides.

Notation
--------
N : initial generators;  E : evaluations of a search, N (1 + K);  c : (N,) coefficients
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.hardening.baseline.estimator import fill_missing
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

#: Spread of the signed part of :class:`RandomAffine`.
AFFINE_SPREAD = 0.5
#: Rounds of every rival; the subsets of ``autobencher`` and their rows.
ROUNDS, SUBSETS, SUBSET_ROWS = 10, 10, 20
#: Crossovers in a round of ``breeder``.
CROSSOVERS = 200
#: Rows among which ``elicitation`` draws, for each row that it returns.
POOL = 5


class RandomAffine(RandomSoups):
    """Mixtures with signed coefficients at random: in the hull, but not between the corners.

    Examples
    --------
    >>> search = RandomAffine(4, np.random.default_rng(0), evaluations=8)
    >>> _ = search.ask()
    >>> search.ask().sum(axis=1).round(12).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def _draw(self, n: int) -> np.ndarray:
        noise = self.rng.standard_normal((n, self.n_generators))
        # without its mean it leaves the sum of the coefficients alone
        centred = noise - noise.mean(axis=1, keepdims=True)
        return super()._draw(n) + AFFINE_SPREAD * centred


def row_values(arena: Arena, rows: MadeBatch) -> np.ndarray:
    """Return the least failure of any taker on each row, ``(n,)``; 0 where a guard refuses it."""
    [scored] = arena.score([rows])
    least = 1 - scored.s.max(axis=0)
    # ties, which labels of 0 and 1 have many of, are settled by the mean failure
    return least + 1e-3 * (1 - scored.s.mean(axis=0))


def autobencher(arena: Arena, Z: np.ndarray, y: np.ndarray, n: int) -> MadeBatch:
    """Return real rows around the subset that scores best.

    Parameters
    ----------
    arena : Arena
    Z, y : ndarray of shape (r, d), (r,)
        The generators' real rows with their labels.
    n : int
        Rows to return; not more than there are.
    """
    rng = random_stream(arena.seed, *arena.key, "autobencher")
    size = min(SUBSET_ROWS, len(Z))
    subsets = [rng.choice(len(Z), size, replace=False) for _ in range(SUBSETS)]
    made = [arena.as_written(Z[rows], y[rows]) for rows in subsets]
    values = [arena.objective(scored) for scored in arena.score(made)]
    best = subsets[int(np.argmax(values))]
    points = arena.guard.metric(Z)
    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(points[best])
    distance, _ = search.kneighbors(points)
    grown = np.argsort(distance[:, 0], kind="stable")[:n]
    # in random order, so that any part of them is a sample
    grown = rng.permutation(grown)
    return arena.as_written(Z[grown], y[grown])


def elicitation(arena: Arena, n: int) -> MadeBatch:
    """Return rows of the one generator, drawn by a learnt chance that takers fail."""
    rng = random_stream(arena.seed, *arena.key, "elicitation")
    asked = arena.make_rows(arena.space.base, n, rng)
    seen_Z, seen_values = asked.X, row_values(arena, asked)
    for number in range(ROUNDS):
        pool = arena.make_rows(arena.space.base, POOL * n, rng)
        failure = HistGradientBoostingRegressor(
            max_iter=40,
            max_leaf_nodes=12,
            early_stopping=False,
            random_state=derive_int_seed(arena.seed, *arena.key, "elicitation", number),
        ).fit(fill_missing(seen_Z), seen_values)
        # each round learns from what the one before drew, and trusts itself a little more
        chance = failure.predict(fill_missing(pool.X)).clip(1e-3) ** (number + 1)
        drawn = rng.choice(len(chance), n, replace=False, p=chance / chance.sum())
        asked = take_rows(pool, drawn)
        seen_Z = np.concatenate([seen_Z, asked.X])
        seen_values = np.concatenate([seen_values, row_values(arena, asked)])
    return asked


def breeder(arena: Arena, n: int) -> MadeBatch:
    """Return rows bred from those of the one generator, the fittest of each round kept."""
    rng = random_stream(arena.seed, *arena.key, "breeder")
    alive = arena.make_rows(arena.space.base, n, rng)
    values = row_values(arena, alive)
    for _ in range(ROUNDS):
        mothers, fathers = rng.integers(len(alive.X), size=(2, CROSSOVERS))
        from_mother = rng.random((CROSSOVERS, alive.X.shape[1])) < 0.5
        Z = np.where(from_mother, alive.X[mothers], alive.X[fathers])
        children = arena.as_written(Z, alive.y[mothers])
        everyone = MadeBatch(
            np.vstack([alive.X, children.X]), np.concatenate([alive.y, children.y])
        )
        values = np.concatenate([values, row_values(arena, children)])
        fittest = np.sort(np.argsort(-values, kind="stable")[:n])
        alive = take_rows(everyone, fittest)
        values = values[fittest]
    return take_rows(alive, rng.permutation(n))


def take_rows(rows: MadeBatch, positions: np.ndarray) -> MadeBatch:
    """Return the rows at these positions."""
    return MadeBatch(rows.X[positions], rows.y[positions])


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
