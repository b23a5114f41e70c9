"""The genetic search for a harder neighbour of each bad point (paper, section 4.3, Algorithm 1).

Each point has a population of its own::

    initial population:  draws from the columns' values, or mutated copies of the point
    in each generation:  selection   three drawn individuals, the fittest becomes a parent
                         crossover   pairs of parents
                         mutation    of single genes
                         repair      back into the domain
                         elitism     the fittest so far takes the first place
                         evaluation  one call of F's ``predict``
    result:              the fittest individual of all generations

All populations of all points are one array, and each generation is one call of ``predict``: that
call is the floor of the cost. What happens between two calls is done block by block, in the
processor's cache; the points of a block share a stream of random words.

Notation
--------
bad : (n, d) bad points, encoded;  y : (n,) the targets their copies shall carry (y_ga), or (n, k)
    where each carries k targets; F then predicts (m, k)
P : (p, n, d) populations;  L : (p, n) fitness, to be maximised
"""

from __future__ import annotations

import numpy as np

from amlb_ext.core.config import SearchConfig
from amlb_ext.hardening.search.domain import (
    Domain,
    Predict,
    distance_term,
    error_term,
    target_slopes,
)
from amlb_ext.hardening.search.operators import (
    LEVELS_32,
    Genes,
    RandomWords,
    cross_over,
    gene_directions,
    mutate_categories,
    mutate_numbers,
    mutation_steps,
    points_in_block,
    repair,
    tournament,
)

#: Individuals that F predicts at once; never changes a result.
CHUNK_ROWS = 200_000
#: Most genes of a chunk, however wide its rows: 128 MB, twice.
CHUNK_GENES = 1 << 24


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
    neither :data:`CHUNK_ROWS` nor the number of points changes its result.

    Parameters
    ----------
    predict : callable
        Encoded rows ``(m, d)`` to ``(m,)``, ``(m, C)`` or ``(m, k)``.
    bad : ndarray of shape (n, d)
    y : ndarray of shape (n,) or (n, k)
        Perturbed targets y_ga.
    domain : Domain
    config : SearchConfig
        A chunk holds whole blocks, so one at least, whatever :data:`CHUNK_ROWS`.
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
    plan = SearchPlan(bad, domain, config)
    full = plan.block_points
    best = np.empty_like(bad)
    value = np.empty(len(bad))
    # a chunk is what fits into memory at once, a block what fits into the processor's cache: whole
    # blocks, one at least
    rows_in_memory = CHUNK_GENES // max(1, bad.shape[1])
    chunk_rows = min(CHUNK_ROWS, rows_in_memory)
    chunk_points = full * max(1, chunk_rows // (full * config.operators.population))
    for start in range(0, len(bad), chunk_points):
        end = min(start + chunk_points, len(bad))
        chunk = slice(start, end)
        slopes = target_slopes(predict, bad[chunk], y[chunk], domain)
        directions = gene_directions(slopes)
        blocks = []
        for first in range(start, end, full):
            members = slice(first, min(first + full, end))
            block = Block(
                bad[members],
                y[members],
                directions[members.start - start : members.stop - start],
                plan=plan,
                # numbered through the whole search, not the chunk: chunks must not change a draw
                words=RandomWords(seed, block=first // full),
            )
            blocks.append(block)
        _evolve(predict, blocks, config, oracle)
        best[chunk] = np.concatenate([block.best for block in blocks])
        value[chunk] = np.concatenate([block.value for block in blocks])
    return best, value


def _evolve(
    predict: Predict, blocks: list[Block], config: SearchConfig, oracle: Predict | None
) -> None:
    """Let the populations of all blocks evolve together, with one ``predict`` a generation."""
    p = config.operators.population
    d = blocks[0].bad.shape[1]
    # each block has rows of its own in the array of a generation
    parts = []
    end = 0
    for block in blocks:
        start = end
        end += p * len(block.bad)
        parts.append(slice(start, end))
    # two generations that change places, and room for one block to work in: nothing else of their
    # size is allocated. The first block is the largest.
    parents, offspring = np.empty((2, end, d))
    scratch = np.empty((parts[0].stop, d))
    for generation in range(config.operators.generations + 1):
        for block, part in zip(blocks, parts, strict=True):
            # a view: the block fills its rows in place
            P = offspring[part].reshape(p, -1, d)
            n_rows = part.stop - part.start
            work = scratch[:n_rows].reshape(P.shape)
            if generation == 0:
                block.initialise(P, work)
            else:
                block.breed(parents[part], P, work)
        # the one call of F in a generation, for all points
        f = predict(offspring)
        t = oracle(offspring) if oracle is not None else None
        for block, part in zip(blocks, parts, strict=True):
            P = offspring[part].reshape(p, -1, d)
            block_t = t[part] if t is not None else None
            block.evaluate(P, f[part], block_t)
        parents, offspring = offspring, parents


class SearchPlan:
    """What all blocks of a search share.

    Parameters
    ----------
    bad : ndarray of shape (n, d)
    domain : Domain
    config : SearchConfig

    Attributes
    ----------
    block_points : int
        Points of a full block.
    genes : Genes
        Prepared for a full block.
    freezes_categories : bool
        Whether categories keep the bad point's value, if there are any.
    mixes_missing : bool
        Whether a number may be missing in some individuals of a point and known in others.
    """

    def __init__(self, bad: np.ndarray, domain: Domain, config: SearchConfig) -> None:
        self.domain = domain
        self.config = config
        operators = config.operators
        self.block_points = points_in_block(operators.population, bad.shape[1])
        self.genes = Genes.of(domain, self.block_points)
        is_frozen = operators.categoricals == "frozen"
        self.freezes_categories = is_frozen or not domain.n_categorical
        has_missing = np.isnan(bad).any() or np.isnan(self.genes.pool_values).any()
        # mutated copies of a bad point miss what it misses; only draws from the columns can mix
        self.mixes_missing = operators.start == "unique" and bool(has_missing)


class Block:
    """The populations of the points that share a stream.

    The arrays P that the methods are given hold the block's share of a generation; they are
    filled and changed in place. ``scratch`` is memory of P's shape to work in.

    Parameters
    ----------
    bad : ndarray of shape (n, d)
    y : ndarray of shape (n,) or (n, k)
    direction : ndarray of shape (n, d)
        ``zeta_hat`` per gene, +1 or -1.
    plan : SearchPlan
    words : RandomWords

    Attributes
    ----------
    best : ndarray of shape (n, d)
        The elite: the fittest individual so far of each point.
    value : ndarray of shape (n,)
        Their fitness.
    """

    def __init__(
        self,
        bad: np.ndarray,
        y: np.ndarray,
        direction: np.ndarray,
        *,
        plan: SearchPlan,
        words: RandomWords,
    ) -> None:
        self.bad = bad
        self.y = y
        self.plan = plan
        self.words = words
        self.genes = plan.genes.first_points(len(bad))
        self.best = bad.copy()
        self.value = np.full(len(bad), -np.inf)
        self._step_lengths = plan.config.operators.strength * direction
        # categories do not step: they are drawn anew
        self._step_lengths[:, : plan.domain.n_categorical] = 0.0
        self._steps = mutation_steps(plan.config.operators.mutation)
        # of the present generation, (p, n); until there is one, of no individuals
        nobody = np.empty((0, len(bad)))
        self._fitness = nobody
        self._distance = nobody

    def initialise(self, P: np.ndarray, scratch: np.ndarray) -> None:
        """Fill P with the initial populations.

        ``unique`` draws each gene from the column's unique values (paper, section 4.3.1);
        ``near`` mutates copies of the bad point. The bad point itself is always the first.
        """
        p, n, d = P.shape
        P[...] = self.bad
        if self.plan.config.operators.start == "unique":
            n_frozen = self.plan.domain.n_categorical
            first_gene = n_frozen if self.plan.freezes_categories else 0
            # words are drawn for a full block; points beyond the block's own n leave theirs unused
            words = self.words.bits32(p, self.plan.block_points, d)
            u = words[:, :n, first_gene:]
            columns = np.arange(first_gene, d)
            P[..., first_gene:] = self.genes.draw_values(u, columns, LEVELS_32)
        else:
            self._mutate(P, scratch)
        self._complete(P, scratch)

    def breed(self, parents: np.ndarray, P: np.ndarray, scratch: np.ndarray) -> None:
        """Fill P with the offspring of ``parents``: selection, crossover, mutation, repair."""
        p, n, d = P.shape
        full = self.plan.block_points
        # selection: the winners' rows become P, without a copy of the parents
        u_draw = self.words.bits32(3, p, full)
        winners = tournament(self._fitness, u_draw[..., :n])
        np.take(
            parents.reshape(-1, d),
            winners.reshape(-1),
            axis=0,
            out=P.reshape(-1, d),
            # every index exists; "wrap" is the mode that asks for no second copy
            mode="wrap",
        )
        cross_over(
            P,
            self.words.bits16(p // 2, full)[:, :n],
            self.words.bits16(p // 2, full, d)[:, :n],
            rate=self.plan.config.operators.crossover,
            genes=self.genes,
            mixes_missing=self.plan.mixes_missing,
            scratch=scratch,
        )
        self._mutate(P, scratch)
        self._complete(P, scratch)

    def evaluate(self, P: np.ndarray, f: np.ndarray, t: np.ndarray | None) -> None:
        """Learn the fitness of P from F's predictions, and an oracle's, and keep the elite.

        Parameters
        ----------
        P : ndarray of shape (p, n, d)
        f : ndarray of shape (p n,), (p n, C) or (p n, k)
        t : ndarray of the shape of f, optional
        """
        # (p n, ...) as F knows them to (p, n, ...) as operators do
        p, n, _ = P.shape
        shape = (p, n, *f.shape[1:])
        f = f.reshape(shape)
        if t is not None:
            t = t.reshape(shape)
        error = error_term(f, self.y, t)
        self._fitness = self.plan.config.pressure * error - self._distance

        fittest = self._fitness.argmax(axis=0)
        points = np.arange(len(self.bad))
        value = self._fitness[fittest, points]
        improved = np.flatnonzero(value > self.value)
        self.best[improved] = P[fittest[improved], improved]
        self.value[improved] = value[improved]

    def _mutate(self, P: np.ndarray, scratch: np.ndarray) -> None:
        p, n, d = P.shape
        full = self.plan.block_points
        mutate_numbers(
            P,
            self.words.bits16(p, full, d)[:, :n],
            steps=self._steps,
            direction=self._step_lengths,
            scratch=scratch,
        )
        if not self.plan.freezes_categories:
            u_category = self.words.bits32(p, full, self.plan.domain.n_categorical)
            mutate_categories(
                P,
                u_category[:, :n],
                rate=self.plan.config.operators.mutation,
                genes=self.genes,
            )

    def _complete(self, P: np.ndarray, scratch: np.ndarray) -> None:
        """Make P ready for F: repair it, let the elite survive, and measure the distances."""
        domain = self.plan.domain
        repair(P, self.genes)
        if domain.frozen.any():
            P[..., domain.frozen] = self.bad[:, domain.frozen]
        # last, since it computes from what the other steps left
        if domain.derive is not None:
            d = P.shape[-1]
            domain.derive(P.reshape(-1, d))
        # elitism; in the initial population it is the bad point itself
        P[0] = self.best
        # frozen categories differ nowhere, so none need be looked at
        n_categorical = 0 if self.plan.freezes_categories else domain.n_categorical
        self._distance = distance_term(P, self.bad, n_categorical, scratch)
