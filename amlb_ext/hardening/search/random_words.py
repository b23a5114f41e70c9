"""Random words for the search: whole blocks of points at a time, in 16 and 32 bits.

Drawing was the largest part of a generation. Sixteen bits, a quarter of what a float takes, decide
a probability to 1/65,536 (``NOTE[DIFF]``: ``p_m`` and the rate of crossover are so rounded); where
one of many values is chosen, 32 are drawn.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from amlb_ext.core.rng import derive_seed

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
