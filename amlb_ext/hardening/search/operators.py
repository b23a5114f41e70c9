"""Operators of the search on whole populations at once (paper, section 4.3 and Algorithm 1).

In the order in which a generation uses them: selection (:func:`tournament`), crossover
(:func:`cross_over`), mutation (:func:`mutate_numbers`, :func:`mutate_categories`) and
:func:`repair`, which brings the offspring back into the domain.

They take random integers, not a generator, so that a point's draws never depend on the others,
and those that change rows change them in place: passes over memory are what a generation costs.
The individuals are the first axis, so that what belongs to the points, or to their genes, lies
against the last axes in one piece.

Drawing was the largest part of a generation. So words are drawn for whole blocks of points at a
time. Sixteen bits, a quarter of what a float takes, decide a probability to 1/65,536
(``NOTE[DIFF]``: ``p_m`` and the rate of crossover are so rounded); where one of many values is
chosen, 32 are drawn.

Notation
--------
P : (p, n, d) populations of n bad points; the first M_c genes are category codes
L : (p, n) fitness, to be maximised
u : random integers below 2**16 or 2**32, see :class:`RandomWords`
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from amlb_ext.core.rng import derive_seed
from amlb_ext.hardening.search.domain import Domain

#: Genes of a block: many enough that a call of numpy costs little, few enough for the cache.
BLOCK_GENES = 40_960
#: Different values of a word of 16 and of 32 bits.
LEVELS_16, LEVELS_32 = 1 << 16, 1 << 32


def points_in_block(population: int, columns: int) -> int:
    """Return how many points share a stream.

    Examples
    --------
    >>> points_in_block(50, 16), points_in_block(10_000, 16)
    (51, 1)
    """
    genes_of_a_point = population * max(1, columns)
    return max(1, BLOCK_GENES // genes_of_a_point)


class RandomWords:
    """The stream of one block of points.

    Words are always drawn for a full block, also where the points run out, so that those of a
    point depend on its index alone.

    Parameters
    ----------
    seed : int
        The search's seed.
    block : int
        Index of the block.

    Examples
    --------
    >>> RandomWords(1, 0).bits16(2, 3).shape, RandomWords(1, 0).bits32(5).dtype
    ((2, 3), dtype('uint32'))
    """

    def __init__(self, seed: int, block: int) -> None:
        # the fastest of numpy's generators to give its raw 64-bit words
        self._generator = np.random.SFC64(derive_seed(seed, "block", block))

    def bits16(self, *shape: int) -> np.ndarray:
        """Return uniform integers below 65,536."""
        return self._draw(np.dtype(np.uint16), shape)

    def bits32(self, *shape: int) -> np.ndarray:
        """Return uniform integers below 2**32."""
        return self._draw(np.dtype(np.uint32), shape)

    def _draw(self, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        size = math.prod(shape)
        # raw words have eight bytes; round their number up, and drop what is left of the last
        n_raw = math.ceil(size * dtype.itemsize / 8)
        raw = self._generator.random_raw(n_raw)
        words = raw.view(dtype)
        return words[:size].reshape(shape)


@lru_cache(maxsize=8)
def mutation_steps(rate: float) -> np.ndarray:
    """Return the step of each 16-bit word: ``|N(0, 1)|`` with probability ``rate``, else 0.

    One word says both whether and how far a number mutates: the first ``rate`` x 65,536 entries
    are the quantiles of ``|N(0, 1)|`` in the middle of equal shares, the others are 0. With a
    rate of .2 there are 13,107 different steps up to 4.1, with one of .001 but 66 up to 2.7.

    Examples
    --------
    >>> steps = mutation_steps(0.2)
    >>> round(float(np.mean(steps > 0)), 4), round(float(np.mean(steps[steps > 0] ** 2)), 3)
    (0.2, 1.0)
    """
    steps = np.zeros(LEVELS_16)
    mutated = round(rate * LEVELS_16)
    # q / 2 for quantiles q in the middle of equal shares
    middles = np.arange(mutated) + 0.5
    half_ranks = 0.5 * middles / max(1, mutated)
    # the quantile q of |N(0, 1)| is the quantile (1 + q) / 2 of N(0, 1)
    steps[:mutated] = ndtri(0.5 + half_ranks)
    # cached: all searches of a process share it
    steps.flags.writeable = False
    return steps


#: Blend crossover reaches this far outside the parents (Eshelman & Schaffer, 1993: BLX-.5).
BLEND = 0.5
#: Between the weights of two successive 16-bit draws. They span 2, so that the highest bit is 1.
WEIGHT_STEP = (1 + 2 * BLEND) / LEVELS_16


@dataclass(frozen=True, kw_only=True)
class Genes:
    """What the operators know of the columns; ``(n, d)`` says it once for each point.

    Attributes
    ----------
    low, high : ndarray of shape (n, d)
        Bounds; infinite for categories.
    weight_bits : ndarray of uint16 of shape (n, d)
        Which bits of a draw make the weight of a crossover: all for a number, and the highest
        alone for a category, whose weight is so 0 or 1: a swap.
    least_weight : ndarray of shape (n, d)
        The smallest weight.
    pool_values : ndarray
        The pools of all columns, one behind the other.
    pool_start, pool_size : ndarray of shape (d,)
        Where in ``pool_values`` a column's pool begins, and how many values it has.
    """

    low: np.ndarray
    high: np.ndarray
    weight_bits: np.ndarray
    least_weight: np.ndarray
    pool_values: np.ndarray
    pool_start: np.ndarray
    pool_size: np.ndarray

    @classmethod
    def of(cls, domain: Domain, n: int) -> Genes:
        """Prepare the columns of a domain for ``n`` points."""
        is_category = np.arange(len(domain.low)) < domain.n_categorical

        def for_each_point(
            of_categories: ArrayLike, of_numbers: ArrayLike
        ) -> np.ndarray:
            row = np.where(is_category, of_categories, of_numbers)
            return np.repeat(row[None], n, axis=0)

        pool_size = np.array([len(pool) for pool in domain.pools])
        return cls(
            low=for_each_point(-np.inf, domain.low),
            high=for_each_point(np.inf, domain.high),
            weight_bits=for_each_point(LEVELS_16 // 2, LEVELS_16 - 1).astype(np.uint16),
            # half a step above -BLEND: weights stand in the middle of their levels
            least_weight=for_each_point(0.0, WEIGHT_STEP / 2 - BLEND),
            pool_values=np.concatenate(domain.pools),
            pool_start=np.cumsum(pool_size) - pool_size,
            pool_size=pool_size,
        )

    def first_points(self, n: int) -> Genes:
        """Return the same of the first ``n`` points alone."""
        return replace(
            self,
            low=self.low[:n],
            high=self.high[:n],
            weight_bits=self.weight_bits[:n],
            least_weight=self.least_weight[:n],
        )

    def draw_values(self, u: np.ndarray, column: np.ndarray, below: int) -> np.ndarray:
        """Return a value of each ``column``'s pool, by ``u`` uniform in [0, below)."""
        # u (size / below), rounded down, is uniform in 0 .. size - 1
        share = self.pool_size / below
        place = (u * share.take(column)).astype(np.intp)
        place += self.pool_start.take(column)
        return self.pool_values.take(place)


def tournament(L: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the winner among three drawn individuals, ``(p, n)``: its place in ``L.ravel()``.

    Parameters
    ----------
    L : ndarray of shape (p, n)
    u : ndarray of uint32 of shape (3, p, n)
    """
    p, n = L.shape
    # u p / 2^32, rounded down, is uniform in 0 .. p - 1
    drawn = u.astype(np.int64)
    drawn *= p
    drawn >>= 32
    # from an individual's number to its place in L.ravel()
    drawn *= n
    drawn += np.arange(n)
    winner, second, third = drawn
    best, L_second, L_third = L.reshape(-1).take(drawn)
    # sums instead of np.where: which one wins is a coin toss that no processor can predict
    winner += (L_second > best) * (second - winner)
    np.maximum(best, L_second, out=best)
    winner += (L_third > best) * (third - winner)
    return winner


def cross_over(
    P: np.ndarray,
    u_pair: np.ndarray,
    u_gene: np.ndarray,
    *,
    rate: float,
    genes: Genes,
    mixes_missing: bool,
    scratch: np.ndarray | None = None,
) -> None:
    """Cross pairs of parents in place: blend numbers, swap categories uniformly.

    A number that is missing in one parent is swapped, not blended.

    Parameters
    ----------
    P : ndarray of shape (p, n, d)
        Parents; i and i + p // 2 are a pair, an odd last one stays as it is. Which are neighbours
        says nothing: each was drawn by a tournament of its own.
    u_pair : ndarray of uint16 of shape (p // 2, n)
    u_gene : ndarray of uint16 of shape (p // 2, n, d)
        Used up.
    rate : float
        Probability that a pair is crossed.
    genes : Genes
    mixes_missing : bool
        Whether a number may be missing in one parent only.
    scratch : ndarray of the shape of P, optional
        Memory to work in.
    """
    pairs = len(u_pair)
    one = P[:pairs]
    other = P[pairs : 2 * pairs]
    scratch = np.empty_like(P) if scratch is None else scratch
    weight = scratch[:pairs]
    step = scratch[pairs : 2 * pairs]
    # a word becomes a weight: from -BLEND to 1 + BLEND for numbers, 0 or 1 for categories
    np.bitwise_and(u_gene, genes.weight_bits, out=u_gene)
    weight[...] = u_gene
    weight *= WEIGHT_STEP
    weight += genes.least_weight
    is_crossed = u_pair < round(rate * LEVELS_16)
    # pairs that are not crossed have the weight 0, which is cheaper than leaving them out
    weight *= is_crossed.astype(float)[..., None]
    np.subtract(other, one, out=step)
    step *= weight
    if mixes_missing:
        is_missing = np.isnan(step)
        step[is_missing] = 0.0
        swap = is_missing & (weight > 0.5)
        one[swap], other[swap] = other[swap], one[swap]
    # one + w (other - one) and other - w (other - one): where w is 0 not a bit changes
    one += step
    other -= step


def mutate_numbers(
    P: np.ndarray,
    u: np.ndarray,
    *,
    steps: np.ndarray,
    direction: np.ndarray,
    scratch: np.ndarray | None = None,
) -> None:
    """Move numbers in place by ``zeta_hat |kappa|``, kappa ~ N(0, s_m) (Algorithm 1, 8 to 14).

    A missing number stays missing.

    Parameters
    ----------
    P : ndarray of shape (p, n, d)
    u : ndarray of uint16 of shape (p, n, d)
    steps : ndarray of shape (65536,)
        See :func:`amlb_ext.hardening.search.operators.mutation_steps`.
    direction : ndarray of shape (n, d)
        ``s_m zeta_hat`` per gene, 0 for categories.
    scratch : ndarray of the shape of P, optional
        Memory to work in.
    """
    step = np.empty_like(P) if scratch is None else scratch
    # every index exists; "wrap" is the mode that asks for no second copy
    np.take(steps, u, out=step, mode="wrap")
    step *= direction
    P += step


def mutate_categories(
    P: np.ndarray, u: np.ndarray, *, rate: float, genes: Genes
) -> None:
    """Draw categories anew from their columns' pools, in place (Algorithm 1, line 6).

    Parameters
    ----------
    P : ndarray of shape (p, n, d), contiguous
    u : ndarray of uint32 of shape (p, n, M_c)
        Says with probability ``rate`` that a gene mutates, and then to which value.
    rate : float
    genes : Genes
    """
    below = round(rate * LEVELS_32)
    if not below:
        return
    d = P.shape[2]
    n_categorical = u.shape[2]
    u = u.reshape(-1)
    mutated = np.flatnonzero(u < below)
    # by place in one piece of memory: pairs of indices take three times as long
    row = mutated // n_categorical
    column = mutated - row * n_categorical
    place = row * d + column
    # a word below ``below`` is uniform there, so it can choose the value too
    words = u.take(mutated)
    P.reshape(-1)[place] = genes.draw_values(words, column, below)


def repair(P: np.ndarray, genes: Genes) -> None:
    """Bring offspring back into the domain, in place: numbers are clipped to their bounds.

    What every gene must satisfy before F is asked, whatever crossover and mutation made of it,
    belongs here.
    """
    # np.clip takes three times as long as both
    np.maximum(P, genes.low, out=P)
    np.minimum(P, genes.high, out=P)


def gene_directions(slopes: np.ndarray) -> np.ndarray:
    """Return ``zeta_hat``, +1 where ``omega_i zeta >= 0``, else -1 (Algorithm 1, lines 8 to 12).

    Parameters
    ----------
    slopes : ndarray of shape (n, d)
        See :func:`amlb_ext.hardening.search.domain.target_slopes`.
    """
    return np.where(slopes >= 0, 1.0, -1.0)
