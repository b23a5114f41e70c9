"""The search written with DEAP, one bad point and one ``predict`` at a time: the reference.

It defines what the batched engine must find (a test holds both to the same fitness) and what
it is measured against. Use it for small numbers of points.

Source: DEAP documentation, https://deap.readthedocs.io (``algorithms.eaSimple``).
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import numpy as np
from deap import algorithms, base, tools

from amlb_ext.core.config import SearchConfig
from amlb_ext.core.rng import derive_seed
from amlb_ext.hardening.search.operators import BLEND, gene_directions
from amlb_ext.hardening.search.search import Domain, Predict, fitness, target_direction


class _Fitness(base.Fitness):
    """One objective, maximised."""

    weights = (1.0,)


class _Individual(list):
    """A row as DEAP wants it: a list with a fitness."""

    def __init__(self, genes: list[float]) -> None:
        super().__init__(genes)
        self.fitness = _Fitness()


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Lend DEAP the global ``random``, which it insists on, and give it back as it was."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)


def genetic_search_deap(
    predict: Predict,
    bad: np.ndarray,
    y: np.ndarray,
    *,
    domain: Domain,
    config: SearchConfig,
    seed: int,
    oracle: Predict | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Search with DEAP; same parameters and result as :func:`.search.genetic_search`."""
    zeta, omega = target_direction(predict, bad, y, domain)
    direction = gene_directions(omega, zeta)
    best, value = np.empty_like(bad), np.empty(len(bad))
    for i in range(len(bad)):
        with _seeded(derive_seed(seed, "deap", i)):
            row = _search_one(predict, bad[i], y[i : i + 1], direction[i], domain, config, oracle)
        best[i], value[i] = row, row.fitness.values[0]
    return best, value


def _search_one(
    predict: Predict,
    bad: np.ndarray,
    y: np.ndarray,
    direction: np.ndarray,
    domain: Domain,
    config: SearchConfig,
    oracle: Predict | None,
) -> _Individual:
    m, d = domain.n_categorical, len(bad)
    frozen = config.categoricals == "frozen"

    def evaluate(row: _Individual) -> tuple[float]:
        Z = np.asarray(row, dtype=float)[None, :]
        f = predict(Z)[None, ...]
        t = None if oracle is None else oracle(Z)[None, ...]
        return (float(fitness(f, y, Z[None, ...], bad[None, :], config.pressure, m, t)[0, 0]),)

    def mutation(row: _Individual) -> tuple[_Individual]:
        for j in range(d):
            if random.random() >= config.mutation:
                continue
            if j < m:
                if not frozen:
                    row[j] = float(random.choice(domain.pools[j]))
            else:
                moved = row[j] + direction[j] * abs(random.gauss(0, config.strength))
                row[j] = float(np.clip(moved, domain.low[j], domain.high[j]))
        return (row,)

    def mate(one: _Individual, two: _Individual) -> tuple[_Individual, _Individual]:
        for j in range(d):
            a, b = one[j], two[j]
            if j < m or np.isnan(a) or np.isnan(b):
                if random.random() < 0.5:
                    one[j], two[j] = b, a
                continue
            w = random.random() * (1 + 2 * BLEND) - BLEND
            one[j] = float(np.clip(w * a + (1 - w) * b, domain.low[j], domain.high[j]))
            two[j] = float(np.clip((1 - w) * a + w * b, domain.low[j], domain.high[j]))
        return one, two

    def individual() -> _Individual:
        if config.start == "near":
            return mutation(_Individual(bad.tolist()))[0]
        genes = [float(random.choice(pool)) for pool in domain.pools]
        if frozen:
            genes[:m] = bad[:m].tolist()
        return _Individual(genes)

    toolbox = base.Toolbox()
    toolbox.register("evaluate", evaluate)
    toolbox.register("mate", mate)
    toolbox.register("mutate", mutation)
    toolbox.register("select", tools.selTournament, tournsize=3)
    population = [_Individual(bad.tolist())]
    population += [individual() for _ in range(config.population - 1)]
    hall = tools.HallOfFame(1)
    algorithms.eaSimple(
        population,
        toolbox,
        cxpb=config.crossover,
        mutpb=1.0,
        ngen=config.generations,
        halloffame=hall,
        verbose=False,
    )
    return hall[0]
