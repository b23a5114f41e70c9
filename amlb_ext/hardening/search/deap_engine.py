"""The search written with DEAP, one bad point and one ``predict`` at a time: the reference.

It defines what the batched engine must find (a test holds both to the same fitness) and what
it is measured against. Use it for small numbers of points.

Source: DEAP documentation, https://deap.readthedocs.io (``algorithms.eaSimple``).
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from deap import algorithms, base, tools

from amlb_ext.core.config import SearchConfig
from amlb_ext.core.rng import derive_seed
from amlb_ext.hardening.search.domain import Domain, Predict, fitness, target_slopes
from amlb_ext.hardening.search.operators import BLEND, gene_directions


class _Fitness(base.Fitness):
    """One objective, maximised."""

    weights = (1.0,)


class _Individual(list):
    """A row as DEAP wants it: a list with a fitness."""

    def __init__(self, genes: list[float]) -> None:
        super().__init__(genes)
        self.fitness = _Fitness()


@contextlib.contextmanager
def _seeded_global_random(seed: int) -> Iterator[None]:
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
    directions = gene_directions(target_slopes(predict, bad, y, domain))
    best = np.empty_like(bad)
    value = np.empty(len(bad))
    for i in range(len(bad)):
        point = _PointSearch(
            bad=bad[i],
            y=y[i : i + 1],
            direction=directions[i],
            predict=predict,
            oracle=oracle,
            domain=domain,
            config=config,
        )
        with _seeded_global_random(derive_seed(seed, "deap", i)):
            fittest = point.run()
        best[i] = fittest
        value[i] = fittest.fitness.values[0]
    return best, value


@dataclass(frozen=True, kw_only=True)
class _PointSearch:
    """The search of one point, and the operators that DEAP's toolbox asks for."""

    bad: np.ndarray
    y: np.ndarray
    direction: np.ndarray
    predict: Predict
    oracle: Predict | None
    domain: Domain
    config: SearchConfig

    def run(self) -> _Individual:
        """Return the fittest individual of all generations."""
        toolbox = base.Toolbox()
        toolbox.register("evaluate", self.evaluate)
        toolbox.register("mate", self.mate)
        toolbox.register("mutate", self.mutate)
        toolbox.register("select", tools.selTournament, tournsize=3)
        # the bad point itself is the first, as in the batched engine
        population = [_Individual(self.bad.tolist())]
        population += [
            self.make_individual() for _ in range(self.config.operators.population - 1)
        ]
        hall_of_fame = tools.HallOfFame(1)
        algorithms.eaSimple(
            population,
            toolbox,
            cxpb=self.config.operators.crossover,
            # ``mutate`` itself leaves most genes as they are
            mutpb=1.0,
            ngen=self.config.operators.generations,
            halloffame=hall_of_fame,
            verbose=False,
        )
        return hall_of_fame[0]

    @property
    def freezes_categories(self) -> bool:
        """Whether categories keep the bad point's value."""
        return self.config.operators.categoricals == "frozen"

    def make_individual(self) -> _Individual:
        """Return an individual of the initial population."""
        if self.config.operators.start == "near":
            return self.mutate(_Individual(self.bad.tolist()))[0]
        # ``unique``: each gene is drawn from its column's values (paper, section 4.3.1)
        genes = [float(random.choice(pool)) for pool in self.domain.pools]
        if self.freezes_categories:
            n_categorical = self.domain.n_categorical
            genes[:n_categorical] = self.bad[:n_categorical].tolist()
        return _Individual(genes)

    def evaluate(self, row: _Individual) -> tuple[float]:
        """Return the fitness of one individual; DEAP wants a tuple, one value per objective."""
        # F, the domain and the fitness know arrays: here populations of one, of one point
        Z = np.asarray(row, dtype=float)[None, :]
        frozen = self.domain.frozen
        Z[:, frozen] = self.bad[frozen]
        if self.domain.derive is not None:
            self.domain.derive(Z)
        row[:] = Z[0].tolist()
        t = None
        if self.oracle is not None:
            t = self.oracle(Z)[None, ...]
        L = fitness(
            self.predict(Z)[None, ...],
            self.y,
            Z[None, ...],
            bad=self.bad[None, :],
            kappa=self.config.pressure,
            n_categorical=self.domain.n_categorical,
            t=t,
        )
        return (float(L[0, 0]),)

    def mutate(self, row: _Individual) -> tuple[_Individual]:
        """Mutate single genes in place (Algorithm 1, lines 5 to 14)."""
        for j in range(len(row)):
            if random.random() >= self.config.operators.mutation:
                continue
            if j >= self.domain.n_categorical:
                length = abs(random.gauss(0, self.config.operators.strength))
                step = self.direction[j] * length
                row[j] = self.clip_gene(row[j] + step, j)
            elif not self.freezes_categories:
                row[j] = float(random.choice(self.domain.pools[j]))
        return (row,)

    def mate(
        self, one: _Individual, other: _Individual
    ) -> tuple[_Individual, _Individual]:
        """Cross two individuals in place: blend numbers, swap categories and missing numbers."""
        for j in range(len(one)):
            a = one[j]
            b = other[j]
            # neither codes nor a missing number can be blended
            if j < self.domain.n_categorical or np.isnan(a) or np.isnan(b):
                if random.random() < 0.5:
                    one[j], other[j] = b, a
                continue
            w = random.random() * (1 + 2 * BLEND) - BLEND
            first = w * a + (1 - w) * b
            second = (1 - w) * a + w * b
            one[j] = self.clip_gene(first, j)
            other[j] = self.clip_gene(second, j)
        return one, other

    def clip_gene(self, number: float, j: int) -> float:
        """Return a number within the bounds of gene ``j``."""
        low = self.domain.low[j]
        high = self.domain.high[j]
        return float(np.clip(number, low, high))
