"""The points that share a stream, and how their populations go from generation to generation.

Notation
--------
bad : (n, d) bad points, encoded
P : (p, n, d) populations;  L : (p, n) fitness, to be maximised
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from amlb_ext.core.config import SearchConfig
from amlb_ext.hardening.draws import LEVELS_32, Draws, mutation_steps
from amlb_ext.hardening.operators import (
    Genes,
    clip,
    cross,
    distance,
    gain,
    mutate_categories,
    mutate_numbers,
    tournament,
)


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
        cross(P, u_pair, u_gene, config.crossover, genes, self.plan.missing, scratch)
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
        self.L = self.plan.config.pressure * gain(f.reshape(shape), self.y, t) - self._away
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
        self._away = distance(P, self.bad, m, scratch)
