"""The genetic augmentation as one array computation (paper, section 4.3).

All populations of all bad points are one array, and each generation is one call of F's
``predict``: that call is the floor of the cost.

Notation
--------
bad : (n, d) bad points, encoded;  y : (n,) the targets their copies shall carry (y_ga)
P : (n, p, d) populations;  L : (n, p) fitness, to be maximised
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from amlb_ext.core.config import SearchConfig
from amlb_ext.core.rng import derive_seed
from amlb_ext.hardening.operators import cross, directions, distance, mutate, tournament

Predict = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Domain:
    """Where the search may go.

    Attributes
    ----------
    pools : list of ndarray
        Unique values of each encoded column (missing numbers included, as in the table).
    low, high : ndarray of shape (d,)
        Bounds of each column.
    omega : ndarray of shape (C or 1, d)
        Linear-regression coefficients of the target (one row per class) on the features.
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
    Z, y : ndarray of shape (n, d), (n,)
        Encoded training rows and targets.
    n_classes, n_categorical : int
    """
    filled = np.where(np.isnan(Z), 0.0, Z)
    centred = filled - filled.mean(axis=0)
    targets = np.eye(n_classes)[y.astype(int)] if n_classes else y[:, None]
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
    """Return L, ``(n, p)`` (paper, sections 4.3.1 and 4.3.2).

    Regression: ``kappa (y_ga - F(X_ga))^2 - distance``. Classification:
    ``-kappa p_{y_ga}(X_ga) - distance``. Given an oracle's predictions t, both:
    ``kappa sum_c (t - f)^2 - distance``, the reducible hardness, which ignores the label.

    NOTE[DIFF]: the printed formula for classes, ``kappa F(X_ga)``, pushes rows of one class
    only towards error; with the probability of the row's own label every class becomes harder.

    Parameters
    ----------
    f : ndarray of shape (n, p) or (n, p, C)
    y : ndarray of shape (n,)
    P : ndarray of shape (n, p, d)
    bad : ndarray of shape (n, d)
    t : ndarray of the shape of f, optional
    """
    if t is not None:
        gain = ((t - f) ** 2).reshape(*P.shape[:2], -1).sum(axis=2)
    elif f.ndim == 3:
        own = np.take_along_axis(f, y.astype(int)[:, None, None], axis=2)[..., 0]
        gain = -own
    else:
        gain = (y[:, None] - f) ** 2
    return kappa * gain - distance(P, bad, n_categorical)


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

    Each point draws from a stream of its own index, so neither ``chunk_rows`` nor the number
    of points changes its result.

    Parameters
    ----------
    predict : callable
        Encoded rows ``(m, d)`` to ``(m,)`` or ``(m, C)``.
    bad : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        Perturbed targets y_ga.
    domain : Domain
    config : SearchConfig
    seed : int
    oracle : callable, optional
        As ``predict``, of the oracle T: the fitness is then reducible hardness.

    Returns
    -------
    best : ndarray of shape (n, d)
    value : ndarray of shape (n,)
        Their fitness.
    """
    step = max(1, config.chunk_rows // config.population)
    best, value = np.empty_like(bad), np.empty(len(bad))
    for start in range(0, len(bad), step):
        part = slice(start, min(start + step, len(bad)))
        streams = [
            np.random.default_rng(derive_seed(seed, "point", i))
            for i in range(part.start, part.stop)
        ]
        best[part], value[part] = _search_chunk(
            predict, bad[part], y[part], domain, config, streams, oracle
        )
    return best, value


def _search_chunk(
    predict: Predict,
    bad: np.ndarray,
    y: np.ndarray,
    domain: Domain,
    config: SearchConfig,
    streams: list[np.random.Generator],
    oracle: Predict | None,
) -> tuple[np.ndarray, np.ndarray]:
    n, d = bad.shape
    p, m = config.population, domain.n_categorical
    frozen = config.categoricals == "frozen"

    def draw(*shape: int) -> np.ndarray:
        return np.stack([rng.random(shape) for rng in streams])

    def evaluate(P: np.ndarray) -> np.ndarray:
        rows = P.reshape(-1, d)
        f = predict(rows)
        shape = (n, p, *f.shape[1:])
        t = None if oracle is None else oracle(rows).reshape(shape)
        return fitness(f.reshape(shape), y, P, bad, config.pressure, m, t)

    zeta, omega = target_direction(predict, bad, y, domain)
    direction = directions(omega, zeta)
    P = initial_population(bad, draw(p, d), draw(p, d), direction, domain, config)
    L = evaluate(P)
    top = L.argmax(axis=1)
    rows = np.arange(n)
    best, value = P[rows, top].copy(), L[rows, top].copy()
    pairs = p // 2
    for _ in range(config.generations):
        u = draw(p * (3 + 2 * d) + pairs * (1 + d))
        cut = np.cumsum([p * 3, p * d, p * d, pairs])
        u_select, u_mask, u_value, u_pair, u_gene = np.split(u, cut, axis=1)
        winners = tournament(L, u_select.reshape(n, p, 3))
        P = np.take_along_axis(P, winners[..., None], axis=1)
        P = cross(P, u_pair, u_gene.reshape(n, pairs, d), config.crossover, m)
        P = mutate(
            P,
            u_mask.reshape(n, p, d),
            u_value.reshape(n, p, d),
            direction,
            domain.pools,
            config.mutation,
            config.strength,
            m,
            frozen,
        )
        P[..., m:] = np.clip(P[..., m:], domain.low[m:], domain.high[m:])
        P[:, 0] = best  # the best so far always survives
        L = evaluate(P)
        top = L.argmax(axis=1)
        better = L[rows, top] > value
        best[better] = P[rows, top][better]
        value[better] = L[rows, top][better]
    return best, value


def initial_population(
    bad: np.ndarray,
    u: np.ndarray,
    u_step: np.ndarray,
    direction: np.ndarray,
    domain: Domain,
    config: SearchConfig,
) -> np.ndarray:
    """Return the first populations, ``(n, p, d)``.

    ``unique`` draws each gene from the column's unique values (paper, section 4.3.1); ``near``
    mutates copies of the bad point. The bad point itself is always the first individual.
    """
    frozen = config.categoricals == "frozen"
    m = domain.n_categorical
    copies = np.repeat(bad[:, None, :], u.shape[1], axis=1)
    if config.start == "unique":
        P = copies.copy()
        for j in range(m if frozen else 0, P.shape[2]):
            pool = domain.pools[j]
            P[..., j] = pool[np.minimum((u[..., j] * len(pool)).astype(np.intp), len(pool) - 1)]
    else:
        P = mutate(
            copies,
            u,
            u_step,
            direction,
            domain.pools,
            config.mutation,
            config.strength,
            m,
            frozen,
        )
        P[..., m:] = np.clip(P[..., m:], domain.low[m:], domain.high[m:])
    P[:, 0] = bad
    return P


def target_direction(
    predict: Predict, bad: np.ndarray, y: np.ndarray, domain: Domain
) -> tuple[np.ndarray, np.ndarray]:
    """Return zeta and omega per point: +1 where y_ga >= F(X_b), else -1 (section 4.3.1)."""
    f = predict(bad)
    if f.ndim == 2:
        # y_ga as probability 1 of its class is never below p
        return np.ones(len(bad)), domain.omega[y.astype(int)]
    return np.where(y >= f, 1.0, -1.0), np.repeat(domain.omega, len(bad), axis=0)
