"""Operators of the search (paper, section 4.3 and Algorithm 1), on whole populations at once.

Notation
--------
P : (n, p, d) populations, one per bad point; the first M_c genes are category codes
f : (n, p) fitness
u : uniform random numbers in [0, 1), handed in so that a point's stream never depends on
    the other points
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

#: Blend crossover reaches this far outside the parents (Eshelman & Schaffer, 1993: BLX-.5).
BLEND = 0.5


def distance(P: np.ndarray, bad: np.ndarray, n_categorical: int) -> np.ndarray:
    """Return the mean squared difference to the bad point, ``(n, p)``.

    NOTE[DIFF]: in the paper all genes are numbers; here a category counts 0 or 1, since with
    the squared difference of codes categories would never change. A gene missing on one side
    only counts 1.

    Parameters
    ----------
    P : ndarray of shape (n, p, d)
    bad : ndarray of shape (n, d)
    n_categorical : int

    Examples
    --------
    >>> distance(np.array([[[1.0, 0.5]]]), np.array([[0.0, 0.0]]), 1).tolist()
    [[0.625]]
    """
    difference = P - bad[:, None, :]
    m = n_categorical
    total = (difference[..., :m] != 0).sum(axis=2).astype(float)
    numeric = difference[..., m:]
    lost = np.isnan(numeric)
    if lost.any():
        one_sided = np.isnan(P[..., m:]) != np.isnan(bad[:, None, m:])
        numeric = np.where(lost, one_sided.astype(float), numeric)
    return (total + np.einsum("npd,npd->np", numeric, numeric)) / P.shape[2]


def tournament(f: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the index of each winner among three drawn individuals, ``(n, p)``.

    Parameters
    ----------
    f : ndarray of shape (n, p)
    u : ndarray of shape (n, p, 3)
    """
    p = f.shape[1]
    drawn = np.minimum((u * p).astype(np.intp), p - 1)
    rank = np.take_along_axis(f[:, :, None], drawn.reshape(len(f), -1, 1), axis=1)
    best = rank.reshape(drawn.shape).argmax(axis=2)
    return np.take_along_axis(drawn, best[..., None], axis=2)[..., 0]


def cross(
    P: np.ndarray, u_pair: np.ndarray, u_gene: np.ndarray, rate: float, n_categorical: int
) -> np.ndarray:
    """Cross neighbours: blend numbers, swap categories uniformly.

    A number that is missing in one parent is swapped, not blended.

    Parameters
    ----------
    P : ndarray of shape (n, p, d)
        Parents; 2i and 2i + 1 are a pair, an odd last one passes through.
    u_pair : ndarray of shape (n, p // 2)
    u_gene : ndarray of shape (n, p // 2, d)
    rate : float
        Probability that a pair is crossed.
    n_categorical : int

    Returns
    -------
    ndarray of shape (n, p, d)
    """
    pairs = P.shape[1] // 2
    first, second = P[:, 0 : 2 * pairs : 2], P[:, 1 : 2 * pairs : 2]
    weight = u_gene * (1 + 2 * BLEND) - BLEND
    one = weight * first + (1 - weight) * second
    two = (1 - weight) * first + weight * second
    swapped = np.isnan(first) | np.isnan(second)
    swapped[..., :n_categorical] = True
    swap = swapped & (u_gene < 0.5)
    one = np.where(swapped, np.where(swap, second, first), one)
    two = np.where(swapped, np.where(swap, first, second), two)
    crossed = (u_pair < rate)[..., None]
    children = P.copy()
    children[:, 0 : 2 * pairs : 2] = np.where(crossed, one, first)
    children[:, 1 : 2 * pairs : 2] = np.where(crossed, two, second)
    return children


def mutate(
    P: np.ndarray,
    u_mask: np.ndarray,
    u_value: np.ndarray,
    direction: np.ndarray,
    pools: list[np.ndarray],
    rate: float,
    strength: float,
    n_categorical: int,
    frozen: bool,
) -> np.ndarray:
    """Mutate each gene with probability ``rate`` (Algorithm 1).

    Categories: a value drawn from the column's pool (line 6). Numbers: move by
    ``zeta_hat |kappa|``, kappa ~ N(0, s_m) (lines 8 to 14). A missing number stays missing.

    Parameters
    ----------
    P : ndarray of shape (n, p, d)
    u_mask, u_value : ndarray of shape (n, p, d)
    direction : ndarray of shape (n, d)
        ``zeta_hat`` per gene, +1 or -1.
    pools : list of ndarray
        Values of each column that may be drawn.
    rate, strength : float
        ``p_m`` and ``s_m``.
    n_categorical : int
    frozen : bool
        Leave categories alone.
    """
    mutated = u_mask < rate
    children = P.copy()
    if not frozen:
        for j in range(n_categorical):
            pool = pools[j]
            drawn = pool[np.minimum((u_value[..., j] * len(pool)).astype(np.intp), len(pool) - 1)]
            children[..., j] = np.where(mutated[..., j], drawn, P[..., j])
    index = np.nonzero(mutated[..., n_categorical:])
    # |N(0, s)| by inversion: only mutated genes pay for it
    step = strength * np.abs(ndtri(0.5 + 0.5 * u_value[..., n_categorical:][index]))
    children[..., n_categorical:][index] += direction[index[0], n_categorical + index[2]] * step
    return children


def directions(omega: np.ndarray, zeta: np.ndarray) -> np.ndarray:
    """Return ``zeta_hat``, +1 where ``omega_i zeta >= 0``, else -1 (Algorithm 1, lines 8 to 12).

    Parameters
    ----------
    omega : ndarray of shape (n, d)
        Linear-regression coefficients of the target on each feature.
    zeta : ndarray of shape (n,)
    """
    return np.where(omega * zeta[:, None] >= 0, 1.0, -1.0)
