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
from dataclasses import dataclass

import numpy as np

from amlb_ext.core.config import SearchConfig
from amlb_ext.hardening.block import Block, Plan
from amlb_ext.hardening.draws import Draws, points_in_block
from amlb_ext.hardening.operators import Genes, directions, distance, gain

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


def make_domain(
    pool: np.ndarray, Z: np.ndarray, y: np.ndarray, n_classes: int, n_categorical: int
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
    return kappa * gain(f, y, t) - distance(P, bad, n_categorical)


def search(
    predict: Predict,
    bad: np.ndarray,
    y: np.ndarray,
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
        direction = directions(omega, zeta)
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
