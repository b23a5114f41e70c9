"""The genetic augmentation as one array computation (paper, section 4.3).

All populations of all bad points are one array, and each generation is one call of F's
``predict``: that call is the floor of the cost. What happens between two calls is done block by
block, in the processor's cache.

Notation
--------
bad : (n, d) bad points, encoded;  y : (n,) the targets their copies shall carry (y_ga), or (n, k)
    where each carries k targets; F then predicts (m, k)
P : (p, n, d) populations;  L : (p, n) fitness, to be maximised
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from amlb_ext.core.config import SearchConfig
from amlb_ext.hardening.search.operators import (
    Genes,
    clip,
    cross_over,
    distance_term,
    error_term,
    gene_directions,
    mutate_categories,
    mutate_numbers,
    tournament,
)
from amlb_ext.hardening.search.random_words import LEVELS_32, Draws, mutation_steps, points_in_block

Predict = Callable[[np.ndarray], np.ndarray]
#: Most genes of a chunk, however wide its rows: 128 MB, twice.
CHUNK_GENES = 1 << 24


@dataclass(frozen=True)
class Domain:
    """Where the search may go.

    Attributes
    ----------
    pools : list of ndarray
        Unique values of each encoded column (missing numbers included, as in the table).
    low, high : ndarray of shape (d,)
        Bounds of each column.
    omega : ndarray of shape (C, k or 1, d)
        Linear-regression coefficients of the target (one row per class, or per target) on the
        features.
    n_categorical : int
        M_c.
    """

    pools: list[np.ndarray]
    low: np.ndarray
    high: np.ndarray
    omega: np.ndarray
    n_categorical: int


def learn_domain(
    pool: np.ndarray, Z: np.ndarray, y: np.ndarray, *, n_classes: int, n_categorical: int
) -> Domain:
    """Learn the domain: values from ``pool`` (the rows searched among), omega from training rows.

    Parameters
    ----------
    pool : ndarray of shape (m, d)
    Z, y : ndarray of shape (n, d), (n,) or (n, k)
        Encoded training rows and targets.
    n_classes, n_categorical : int
    """
    filled = np.where(np.isnan(Z), 0.0, Z)
    centred = filled - filled.mean(axis=0)
    targets = np.eye(n_classes)[y.astype(int)] if n_classes else y.reshape(len(y), -1)
    omega = np.linalg.lstsq(centred, targets - targets.mean(axis=0), rcond=None)[0].T
    known = (
        np.where(np.isnan(pool), np.inf, pool).min(axis=0),
        np.where(np.isnan(pool), -np.inf, pool).max(axis=0),
    )
    low = np.where(np.isfinite(known[0]), known[0], 0.0)
    high = np.where(np.isfinite(known[1]), known[1], 0.0)
    pools = [np.unique(pool[:, j]) for j in range(pool.shape[1])]
    return Domain(pools, low, high, omega, n_categorical)


def fitness(
    f: np.ndarray,
    y: np.ndarray,
    P: np.ndarray,
    bad: np.ndarray,
    kappa: float,
    n_categorical: int,
    t: np.ndarray | None = None,
) -> np.ndarray:
    """Return L, ``(p, n)`` (paper, sections 4.3.1 and 4.3.2).

    Regression: ``kappa (y_ga - F(X_ga))^2 - distance``. Classification:
    ``-kappa p_{y_ga}(X_ga) - distance``. Given an oracle's predictions t, both:
    ``kappa sum_c (t - f)^2 - distance``, the reducible hardness, which ignores the label.

    NOTE[DIFF]: the printed formula for classes, ``kappa F(X_ga)``, pushes rows of one class
    only towards error; with the probability of the row's own label every class becomes harder.

    Parameters
    ----------
    f : ndarray of shape (p, n) or (p, n, C)
    y : ndarray of shape (n,)
    P : ndarray of shape (p, n, d)
    bad : ndarray of shape (n, d)
    t : ndarray of the shape of f, optional
    """
    return kappa * error_term(f, y, t) - distance_term(P, bad, n_categorical)


def genetic_search(
    predict: Predict,
    bad: np.ndarray,
    y: np.ndarray,
    *,
    domain: Domain,
    config: SearchConfig,
    seed: int,
    oracle: Predict | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Search a harder neighbour of each bad point.

    Each point draws from the stream of its block, as many numbers as if the block were full, so
    neither ``chunk_rows`` nor the number of points changes its result.

    Parameters
    ----------
    predict : callable
        Encoded rows ``(m, d)`` to ``(m,)`` or ``(m, C)``.
    bad : ndarray of shape (n, d)
    y : ndarray of shape (n,) or (n, k)
        Perturbed targets y_ga.
    domain : Domain
    config : SearchConfig
        A chunk holds whole blocks, so one at least, whatever ``chunk_rows``.
    seed : int
    oracle : callable, optional
        As ``predict``, of the oracle T: the fitness is then reducible hardness.

    Returns
    -------
    best : ndarray of shape (n, d)
    value : ndarray of shape (n,)
        Their fitness.
    """
    bad = np.asarray(bad, dtype=float)
    size = points_in_block(config.population, bad.shape[1])
    plan = _plan(bad, domain, config, size)
    rows = min(config.chunk_rows, CHUNK_GENES // max(1, bad.shape[1]))
    step = size * max(1, rows // (size * config.population))
    best, value = np.empty_like(bad), np.empty(len(bad))
    for start in range(0, len(bad), step):
        chunk = slice(start, start + step)
        zeta, omega = target_direction(predict, bad[chunk], y[chunk], domain)
        direction = gene_directions(omega, zeta)
        blocks = [
            Block(
                bad[chunk][i : i + size],
                y[chunk][i : i + size],
                direction[i : i + size],
                plan,
                Draws(seed, (start + i) // size),
            )
            for i in range(0, len(direction), size)
        ]
        _search_chunk(predict, blocks, config, oracle)
        best[chunk] = np.concatenate([block.best for block in blocks])
        value[chunk] = np.concatenate([block.value for block in blocks])
    return best, value


def _search_chunk(
    predict: Predict, blocks: list[Block], config: SearchConfig, oracle: Predict | None
) -> None:
    """Let all blocks evolve together, with one ``predict`` a generation."""
    p, d = config.population, blocks[0].bad.shape[1]
    ends = np.cumsum([p * len(block.bad) for block in blocks])
    rows = [slice(end - p * len(block.bad), end) for end, block in zip(ends, blocks, strict=True)]
    parents, children = np.empty((2, ends[-1], d))
    scratch = np.empty((ends[0], d))
    for generation in range(config.generations + 1):
        for block, part in zip(blocks, rows, strict=True):
            P = children[part].reshape(p, -1, d)
            work = scratch[: part.stop - part.start].reshape(P.shape)
            if generation:
                block.breed(parents[part], P, work)
            else:
                block.start(P, work)
        f = predict(children)
        t = None if oracle is None else oracle(children)
        for block, part in zip(blocks, rows, strict=True):
            P = children[part].reshape(p, -1, d)
            block.judge(P, f[part], None if t is None else t[part])
        parents, children = children, parents


def _plan(bad: np.ndarray, domain: Domain, config: SearchConfig, points: int) -> Plan:
    m = domain.n_categorical
    genes = Genes.of(domain.low, domain.high, domain.pools, m, points)
    # mutated copies of a bad point miss what it misses
    mixed = config.start == "unique"
    missing = mixed and bool(np.isnan(bad).any() or np.isnan(genes.values).any())
    return Plan(config, genes, points, m, missing)


def target_direction(
    predict: Predict, bad: np.ndarray, y: np.ndarray, domain: Domain
) -> tuple[np.ndarray, np.ndarray]:
    """Return zeta and omega per point: +1 where y_ga >= F(X_b), else -1 (section 4.3.1).

    NOTE[DIFF]: the paper names no direction for several targets. Here a gene follows the sum of
    ``omega_j (y_j - F_j(X_b))`` over the targets j, so that the target on which F is most wrong
    says most; of a single target the sign of that sum is the paper's.
    """
    f = predict(bad)
    if y.ndim == 2:
        return np.ones(len(bad)), (y - f) @ domain.omega
    if f.ndim == 2:
        # y_ga as probability 1 of its class is never below p
        return np.ones(len(bad)), domain.omega[y.astype(int)]
    return np.where(y >= f, 1.0, -1.0), np.repeat(domain.omega, len(bad), axis=0)


# The points that share a stream, and how their populations go from generation to generation.
#
# Notation
# --------
# bad : (n, d) bad points, encoded
# P : (p, n, d) populations;  L : (p, n) fitness, to be maximised


@dataclass(frozen=True)
class Plan:
    """What all blocks of a search share.

    Attributes
    ----------
    config : SearchConfig
    genes : Genes
        Prepared for a full block.
    points : int
        Points of a full block.
    n_categorical : int
        M_c.
    missing : bool
        Whether a number may be missing in some individuals of a point and known in others.
    """

    config: SearchConfig
    genes: Genes
    points: int
    n_categorical: int
    missing: bool

    @property
    def frozen(self) -> bool:
        """Whether categories stay as they are."""
        return self.config.categoricals == "frozen" or not self.n_categorical

    def part(self, n: int) -> Plan:
        """Return the plan of a block of ``n`` points."""
        if n == self.points:
            return self
        g = self.genes
        low, high, bits, least = g.low[:n], g.high[:n], g.bits[:n], g.least[:n]
        return replace(self, genes=replace(g, low=low, high=high, bits=bits, least=least))


class Block:
    """The search of the points of one stream.

    Parameters
    ----------
    bad : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    direction : ndarray of shape (n, d)
        ``zeta_hat`` per gene, +1 or -1.
    plan : Plan
    draws : Draws

    Attributes
    ----------
    best : ndarray of shape (n, d)
        The fittest individual so far of each point.
    value : ndarray of shape (n,)
        Their fitness.
    """

    def __init__(
        self, bad: np.ndarray, y: np.ndarray, direction: np.ndarray, plan: Plan, draws: Draws
    ) -> None:
        self.bad, self.y, self.plan, self.draws = bad, y, plan.part(len(bad)), draws
        self.best, self.value = bad.copy(), np.full(len(bad), -np.inf)
        self._step = plan.config.strength * direction
        self._step[:, : plan.n_categorical] = 0.0
        self._steps = mutation_steps(plan.config.mutation)

    def start(self, P: np.ndarray, scratch: np.ndarray) -> None:
        """Fill P with the first populations.

        ``unique`` draws each gene from the column's unique values (paper, section 4.3.1);
        ``near`` mutates copies of the bad point. The bad point itself is always the first.
        """
        (p, n, d), m = P.shape, self.plan.n_categorical
        P[...] = self.bad
        if self.plan.config.start == "unique":
            since = m if self.plan.frozen else 0
            u = self.draws.bits32(p, self.plan.points, d)[:, :n, since:]
            P[..., since:] = self.plan.genes.pick(u, np.arange(since, d), LEVELS_32)
        else:
            self._mutate(P, scratch)
        self._finish(P, scratch)

    def breed(self, parents: np.ndarray, P: np.ndarray, scratch: np.ndarray) -> None:
        """Fill P with the next generation: tournament, crossing, mutation, the best so far."""
        config, genes, full = self.plan.config, self.plan.genes, self.plan.points
        p, n, d = P.shape
        winners = tournament(self.L, self.draws.bits32(3, p, full)[..., :n])
        rows = parents.reshape(-1, d)
        np.take(rows, winners.reshape(-1), axis=0, out=P.reshape(-1, d), mode="wrap")
        u_pair = self.draws.bits16(p // 2, full)[:, :n]
        u_gene = self.draws.bits16(p // 2, full, d)[:, :n]
        cross_over(P, u_pair, u_gene, config.crossover, genes, self.plan.missing, scratch)
        self._mutate(P, scratch)
        self._finish(P, scratch)

    def judge(self, P: np.ndarray, f: np.ndarray, t: np.ndarray | None) -> None:
        """Learn the fitness of P from F's predictions, and an oracle's, and keep the best.

        Parameters
        ----------
        P : ndarray of shape (p, n, d)
        f : ndarray of shape (p n,) or (p n, C)
        t : ndarray of the shape of f, optional
        """
        shape = (*P.shape[:2], *f.shape[1:])
        t = None if t is None else t.reshape(shape)
        self.L = self.plan.config.pressure * error_term(f.reshape(shape), self.y, t) - self._away
        top, points = self.L.argmax(axis=0), np.arange(len(self.bad))
        fittest = self.L[top, points]
        better = np.flatnonzero(fittest > self.value)
        self.best[better] = P[top[better], better]
        self.value[better] = fittest[better]

    def _mutate(self, P: np.ndarray, scratch: np.ndarray) -> None:
        (p, n, d), full, m = P.shape, self.plan.points, self.plan.n_categorical
        u = self.draws.bits16(p, full, d)[:, :n]
        mutate_numbers(P, u, self._steps, self._step, scratch)
        if not self.plan.frozen:
            u = self.draws.bits32(p, full, m)[:, :n]
            mutate_categories(P, u, self.plan.config.mutation, self.plan.genes)

    def _finish(self, P: np.ndarray, scratch: np.ndarray) -> None:
        clip(P, self.plan.genes)
        P[0] = self.best  # the best so far always survives, at first the bad point
        # frozen categories differ nowhere
        m = 0 if self.plan.frozen else self.plan.n_categorical
        self._away = distance_term(P, self.bad, m, scratch)
