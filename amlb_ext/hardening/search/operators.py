"""Operators of the search (paper, section 4.3 and Algorithm 1), on whole populations at once.

They take random integers, not a generator, so that a point's draws never depend on the others,
and those that change rows change them in place: passes over memory are what a generation costs.
The individuals are the first axis, so that what belongs to the points, or to their genes, lies
against the last axes in one piece.

Notation
--------
P : (p, n, d) populations of n bad points; the first M_c genes are category codes
f : (p, n) fitness
u : random integers below 2**16 or 2**32, see :mod:`amlb_ext.hardening.search.random_words`
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from amlb_ext.hardening.search.random_words import LEVELS, LEVELS_32

#: Blend crossover reaches this far outside the parents (Eshelman & Schaffer, 1993: BLX-.5).
BLEND = 0.5
#: Between the weights of two successive 16-bit draws. They span 2, so that the highest bit is 1.
WEIGHT = (1 + 2 * BLEND) / LEVELS


@dataclass(frozen=True)
class Genes:
    """What the operators know of the columns; ``(n, d)`` says it once for each point.

    Attributes
    ----------
    low, high : ndarray of shape (n, d)
        Bounds; infinite for categories.
    bits : ndarray of uint16 of shape (n, d)
        Which bits of a draw make the weight of a crossing: all for a number, and the highest
        alone for a category, whose weight is so 0 or 1: a swap.
    least : ndarray of shape (n, d)
        The smallest weight.
    values : ndarray
        The pools of all columns, one behind the other.
    first, size : ndarray of shape (d,)
        Where in ``values`` a column's pool begins, and how many values it has.
    """

    low: np.ndarray
    high: np.ndarray
    bits: np.ndarray
    least: np.ndarray
    values: np.ndarray
    first: np.ndarray
    size: np.ndarray

    @classmethod
    def of(
        cls, low: np.ndarray, high: np.ndarray, pools: list[np.ndarray], n_categorical: int, n: int
    ) -> Genes:
        """Prepare for ``n`` points; ``low`` and ``high`` are of shape ``(d,)``."""
        category = np.arange(len(low)) < n_categorical
        size = np.array([len(pool) for pool in pools])
        rows = (
            np.where(category, -np.inf, low),
            np.where(category, np.inf, high),
            np.where(category, LEVELS // 2, LEVELS - 1).astype(np.uint16),
            np.where(category, 0.0, WEIGHT / 2 - BLEND),  # in the middle of each level
        )
        low, high, bits, least = (np.repeat(row[None], n, axis=0) for row in rows)
        return cls(low, high, bits, least, np.concatenate(pools), np.cumsum(size) - size, size)

    def pick(self, u: np.ndarray, column: np.ndarray, below: int) -> np.ndarray:
        """Return a value of each ``column``'s pool, by ``u`` uniform in [0, below)."""
        place = (u * (self.size / below).take(column)).astype(np.intp)
        place += self.first.take(column)
        return self.values.take(place)


def distance_term(
    P: np.ndarray, bad: np.ndarray, n_categorical: int, scratch: np.ndarray | None = None
) -> np.ndarray:
    """Return the mean squared difference to the bad point, ``(p, n)``.

    NOTE[DIFF]: in the paper all genes are numbers; here a category counts 0 or 1, since with
    the squared difference of codes categories would never change. A gene missing on one side
    only counts 1.

    Parameters
    ----------
    P : ndarray of shape (p, n, d)
    bad : ndarray of shape (n, d)
    n_categorical : int
    scratch : ndarray of the shape of P, optional
        Memory to work in.

    Examples
    --------
    >>> distance_term(np.array([[[1.0, 0.5]]]), np.array([[0.0, 0.0]]), 1).tolist()
    [[0.625]]
    """
    difference = np.subtract(P, bad, out=scratch)
    if n_categorical:
        most = np.ones(bad.shape)  # codes are whole numbers: what differs, differs by 1 or more
        most[:, n_categorical:] = np.inf
        np.minimum(np.abs(difference, out=difference), most, out=difference)
    total = np.einsum("pnd,pnd->pn", difference, difference)
    if np.isnan(total).any():
        one_sided = np.isnan(P) != np.isnan(bad)
        np.copyto(difference, one_sided, where=np.isnan(difference))
        total = np.einsum("pnd,pnd->pn", difference, difference)
    total /= P.shape[2]
    return total


def error_term(f: np.ndarray, y: np.ndarray, t: np.ndarray | None = None) -> np.ndarray:
    """Return how wrong F is, ``(p, n)``: the part of the fitness that kappa weighs.

    Of several targets it is the mean over them (paper, section 6).

    Parameters
    ----------
    f : ndarray of shape (p, n) or (p, n, C), or (p, n, k) for k targets
    y : ndarray of shape (n,), or (n, k) for k targets
    t : ndarray of the shape of f, optional

    Examples
    --------
    >>> f = np.array([[[0.0, 1.0]]])
    >>> error_term(f, np.array([0])).tolist(), error_term(f, np.array([[0.0, 0.0]])).tolist()
    ([[-0.0]], [[0.5]])
    """
    if y.ndim == 2:
        return (((y if t is None else t) - f) ** 2).mean(axis=2)
    if t is not None:
        squared = (t - f) ** 2
        return squared.sum(axis=2) if f.ndim == 3 else squared
    if f.ndim == 3:
        own = y.astype(np.intp)[None, :, None]
        return -np.take_along_axis(f, own, axis=2)[..., 0]
    return (y - f) ** 2


def tournament(f: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the winner among three drawn individuals, ``(p, n)``: its place in ``f.ravel()``.

    Parameters
    ----------
    f : ndarray of shape (p, n)
    u : ndarray of uint32 of shape (3, p, n)
    """
    p, n = f.shape
    drawn = u.astype(np.int64)
    drawn *= p
    drawn >>= 32
    drawn *= n
    drawn += np.arange(n)
    winner, second, third = drawn
    best, f_second, f_third = f.reshape(-1).take(drawn)
    # sums instead of np.where: which one wins is a coin toss that no processor can predict
    winner += (f_second > best) * (second - winner)
    np.maximum(best, f_second, out=best)
    winner += (f_third > best) * (third - winner)
    return winner


def cross_over(
    P: np.ndarray,
    u_pair: np.ndarray,
    u_gene: np.ndarray,
    rate: float,
    genes: Genes,
    missing: bool,
    scratch: np.ndarray | None = None,
) -> None:
    """Cross pairs in place: blend numbers, swap categories uniformly.

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
    missing : bool
        Whether a number may be missing in one parent only.
    scratch : ndarray of the shape of P, optional
        Memory to work in.
    """
    pairs = len(u_pair)
    scratch = np.empty_like(P) if scratch is None else scratch
    one, two = P[:pairs], P[pairs : 2 * pairs]
    weight, step = scratch[:pairs], scratch[pairs : 2 * pairs]
    np.bitwise_and(u_gene, genes.bits, out=u_gene)
    weight[...] = u_gene
    weight *= WEIGHT
    weight += genes.least
    weight *= (u_pair < round(rate * LEVELS)).astype(float)[..., None]
    np.subtract(two, one, out=step)
    step *= weight
    if missing:
        lost = np.isnan(step)
        step[lost] = 0.0
        swap = lost & (weight > 0.5)
        one[swap], two[swap] = two[swap], one[swap]
    # one + w (two - one) and two - w (two - one): where w is 0 not a bit changes
    one += step
    two -= step


def mutate_numbers(
    P: np.ndarray,
    u: np.ndarray,
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
        See :func:`amlb_ext.hardening.search.random_words.mutation_steps`.
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


def mutate_categories(P: np.ndarray, u: np.ndarray, rate: float, genes: Genes) -> None:
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
    d, m = P.shape[2], u.shape[2]
    u = u.reshape(-1)
    mutated = np.flatnonzero(u < below)
    # by place in one piece of memory: pairs of indices take three times as long
    row = mutated // m
    column = mutated - row * m
    P.reshape(-1)[row * d + column] = genes.pick(u.take(mutated), column, below)


def clip(P: np.ndarray, genes: Genes) -> None:
    """Bring numbers back into the domain, in place."""
    np.maximum(P, genes.low, out=P)  # np.clip takes three times as long as both
    np.minimum(P, genes.high, out=P)


def gene_directions(omega: np.ndarray, zeta: np.ndarray) -> np.ndarray:
    """Return ``zeta_hat``, +1 where ``omega_i zeta >= 0``, else -1 (Algorithm 1, lines 8 to 12).

    Parameters
    ----------
    omega : ndarray of shape (n, d)
        Linear-regression coefficients of the target on each feature.
    zeta : ndarray of shape (n,)
    """
    return np.where(omega * zeta[:, None] >= 0, 1.0, -1.0)
