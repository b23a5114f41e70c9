"""Rivals of a swarm: a random search of mixtures, and three of the paper's that choose rows.

autobencher : ten subsets of twenty real rows; the best by the objective is grown by its nearest
    neighbours (Li et al., AutoBencher)
elicitation : ten rounds; P(a taker fails | x) is learnt on made rows, and rows of the one generator
    of all data are drawn again by it (Brown et al., Task elicitation)
breeder : ten rounds of crossovers of made rows, the fittest kept (Fernando et al., Promptbreeder)

The last three use rows that the generators may use. The value of a row is the least failure of any
taker on it, so that no single broken taker decides.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.synthesizers.swarm.arena import Arena, MadeBatch
from amlb_ext.synthesizers.swarm.particles import RandomSoups

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
