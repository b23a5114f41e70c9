r"""A search for moves of a window under which F fails more: the paper's, on genes that keep time.

Each window has a population of moves. In each generation the fitter of three drawn ones becomes a
parent; groups of genes are taken from a move of another window, never lags; single genes mutate;
the fittest so far stays. The fitness is the paper's (section 4.3), error of F less distance,

.. math:: L = \kappa \, E_F - \frac{1}{t} \sum_u \left( (y'_u - y_u) / s \right)^2,

E_F being F's hardness on the moved window. With kappa 0 nothing is searched: a move is drawn, as
rows of tables are jittered only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from amlb_ext.forecasting.source_windows import SourceWindows
from amlb_ext.forecasting.window_moves import (
    GENE_GROUPS,
    WindowMove,
    draw_move,
    move_window,
)

#: Moves of each window, and generations: each is a forecast of F.
POPULATION, GENERATIONS = 6, 3
#: Chance that a group of genes comes from another window's move, and that a gene mutates.
_CROSSOVER, _MUTATION = 0.3, 0.3
#: Standard deviation of a mutation, in units of a gene.
_STRENGTH = 0.3

#: F's hardness on moved windows: pasts, futures and positions of their sources to ``(n,)``.
AskHardness = Callable[[Sequence[np.ndarray], np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class MovedWindows:
    """Moved windows, and how they were moved.

    Attributes
    ----------
    sources : ndarray of shape (n,), int
        Positions among the source windows.
    moves : tuple of WindowMove
    pasts : tuple of ndarray
    future : ndarray of shape (n, H)
    """

    sources: np.ndarray
    moves: tuple[WindowMove, ...]
    pasts: tuple[np.ndarray, ...]
    future: np.ndarray


def move_sources(
    windows: SourceWindows,
    sources: np.ndarray,
    moves: Sequence[WindowMove],
    season: int,
) -> MovedWindows:
    """Apply a move to each of some source windows."""
    pasts, futures = [], []
    for source, move in zip(sources, moves, strict=True):
        past, future = move_window(
            windows.pasts[source],
            windows.future[source],
            move,
            season=season,
            scale=float(windows.scale[source]),
        )
        pasts.append(past)
        futures.append(future)
    return MovedWindows(
        sources=sources,
        moves=tuple(moves),
        pasts=tuple(pasts),
        future=np.array(futures).reshape(len(moves), -1),
    )


def search_moves(
    windows: SourceWindows,
    sources: np.ndarray,
    ask: AskHardness,
    *,
    kappa: float,
    season: int,
    rng: np.random.Generator,
) -> MovedWindows:
    """Return a moved window for each of ``sources``, the fittest that was found.

    Parameters
    ----------
    windows : SourceWindows
    sources : ndarray of shape (n,), int
        Positions of windows to move; one may stand several times.
    ask : callable
    kappa : float
        Weight of F's error; 0 draws each move, and asks nothing.
    season : int
    rng : Generator
    """
    if kappa == 0:
        drawn = [draw_move(rng) for _ in sources]
        return move_sources(windows, sources, drawn, season)
    population = [[draw_move(rng) for _ in sources] for _ in range(POPULATION)]
    best: list[WindowMove] = []
    fitness = np.empty((POPULATION, len(sources)))
    for generation in range(GENERATIONS + 1):
        if generation:
            # the fittest so far stays
            population = [best, *_children(population, fitness, rng)]
        for member, moves in enumerate(population):
            moved = move_sources(windows, sources, moves, season)
            fitness[member] = _fitness(windows, moved, ask, kappa)
        leading = fitness.argmax(axis=0)
        best = [population[member][k] for k, member in enumerate(leading)]
    return move_sources(windows, sources, best, season)


def _fitness(
    windows: SourceWindows, moved: MovedWindows, ask: AskHardness, kappa: float
) -> np.ndarray:
    distance = np.empty(len(moved.sources))
    for k, source in enumerate(moved.sources):
        change = (moved.pasts[k] - windows.pasts[source]) / windows.scale[source]
        distance[k] = np.mean(change**2)
    hardness = ask(moved.pasts, moved.future, moved.sources)
    # a window without a scale has no hardness, and shall never lead
    return np.nan_to_num(kappa * hardness - distance, nan=-1e12)


def _children(
    population: list[list[WindowMove]], fitness: np.ndarray, rng: np.random.Generator
) -> list[list[WindowMove]]:
    """Return one move less for each window than the population has."""
    size, n = fitness.shape
    windows = np.arange(n)
    children = []
    for _ in range(size - 1):
        drawn = rng.integers(size, size=(3, n))
        fittest = fitness[drawn, windows].argmax(axis=0)
        parents = drawn[fittest, windows]
        row = []
        for window, parent in enumerate(parents):
            # of any window: genes have no unit
            other = population[rng.integers(size)][rng.integers(n)]
            row.append(_child(population[parent][window], other, rng))
        children.append(row)
    return children


def _child(
    parent: WindowMove, other: WindowMove, rng: np.random.Generator
) -> WindowMove:
    genes, noise_key = parent.genes.copy(), parent.noise_key
    for number, group in enumerate(GENE_GROUPS):
        if rng.random() < _CROSSOVER:
            genes[group] = other.genes[group]
            # noise comes with its stream
            noise_key = other.noise_key if number == 2 else noise_key
    mutates = rng.random(len(genes)) < _MUTATION
    genes = genes + mutates * rng.normal(0, _STRENGTH, len(genes))
    genes[2] = abs(genes[2])
    return WindowMove(genes=genes, noise_key=noise_key)
