"""Rows that stand for the test fold, with the labels that the oracle expects: they may rank.

A small test fold orders models by the luck of its few rows. More rows of the same population, with
the target that the oracle T expects, say the same with less noise. Rows are moved a little from
real *test* rows, which neither T nor any candidate was fitted on. Moved from training rows they
lose the order of models, most of all in regression: there T and every flexible candidate remember
the targets they have seen (docs/evidence/fidelity.md has the figures).

Such rows carry what T does not know as an error that no number of rows removes. They rank beside
real rows; they give no interval.

Notation
--------
u(x) : how much a row counts, see :func:`amlb_ext.hardening.weights.mixed_weights`
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.judged_rows import FoldModels, JudgedRows
from amlb_ext.hardening.made_rows.population_teacher import Teacher, draw_outcomes
from amlb_ext.hardening.made_rows.screening import (
    MadeRows,
    MadeRowsCollector,
    TakenRows,
    no_made_rows,
)

#: Neighbours that a row may move towards.
NEIGHBOURS = 10
#: How far it moves at most, as a share of the way, round by round. The shortest moves keep the
#: order of models best; where whole numbers bring a row back to where it was, it must go further.
LONGEST_STEPS = (0.1, 0.2, 0.4)
#: Rows proposed per row wanted, so that they can be drawn by u(x) without repeats.
PROPOSED_PER_ROW = 4


def make_region_rows(
    models: FoldModels,
    real: JudgedRows,
    *,
    importance: Callable[[np.ndarray], np.ndarray],
    wanted: int,
    taken: TakenRows,
    seed: int,
) -> MadeRows:
    """Move test rows towards their neighbours, draw them by u(x), and let T label them.

    Parameters
    ----------
    models : FoldModels
        Of a single target; the oracle has not seen the real rows.
    real : JudgedRows
        All test rows.
    importance : callable
        u: encoded rows ``(n, d)`` to ``(n,)``.
    wanted : int
        Rows asked for.
    taken : TakenRows
        Rows that no made row may repeat.
    seed : int

    Returns
    -------
    MadeRows
        Fewer rows than wanted where moves end at real rows, as in tables without numbers.
    """
    movable = np.flatnonzero(real.is_feasible)
    if not wanted or not len(movable) or not models.can_search:
        return MadeRows(rows=no_made_rows(models, real))
    rng = np.random.default_rng(seed)
    [target] = models.targets
    teacher = Teacher(target.oracle, models.Z, models.y[:, 0])
    # these rows stand for all rows and not for failures: K has no say in them
    collector = MadeRowsCollector(models, real, taken, holds_to_rule=False)
    n_kept = 0
    for longest_step in LONGEST_STEPS:
        n_missing = wanted - n_kept
        if n_missing <= 0:
            break
        proposed, parent = move_towards_neighbours(
            real.Z[movable],
            n_categorical=models.encoder.n_categorical_,
            n_rows=PROPOSED_PER_ROW * n_missing,
            longest_step=longest_step,
            rng=rng,
        )
        # as they will be written: T must label the very row that is kept
        proposed = models.encoder.transform(models.encoder.inverse(proposed))
        t = models.predict_oracle(proposed)[:, 0]
        outcomes, chance = teacher.outcomes(proposed, t)
        drawn, y = draw_outcomes(
            outcomes, chance, rng, most=n_missing, mass=importance(proposed)
        )
        passed = collector.screen(
            Z=proposed[drawn],
            y=models.snap_targets(y[:, None]),
            parent=movable[parent[drawn]],
            repairs=False,
            # the labels are the oracle's own: its filter has nothing to say
            asks_oracle=False,
        )
        collector.keep(passed)
        n_kept += len(passed)
    return MadeRows(rows=collector.collected(), asked=wanted, dropped=collector.dropped)


def move_towards_neighbours(
    Z: np.ndarray,
    *,
    n_categorical: int,
    n_rows: int,
    longest_step: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows between a real row and one of its neighbours, nearer to the real row.

    All numbers of a row move by the same share of the way, so that columns that go together go on
    doing so. Categories stay, and so do missing numbers.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Encoded rows, categories first.
    n_categorical : int
    n_rows : int
    longest_step : float
        At most this share of the way.
    rng : Generator

    Returns
    -------
    moved : ndarray of shape (n_rows, d)
    parent : ndarray of shape (n_rows,), int
        Positions in Z.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = np.array([[0.0, 0.1], [0.0, 0.2], [1.0, 0.9]])
    >>> moved, parent = move_towards_neighbours(
    ...     Z, n_categorical=1, n_rows=50, longest_step=0.2, rng=rng
    ... )
    >>> bool((moved[:, 0] == Z[parent, 0]).all()), bool((moved[:, 1] < 0.1).any())
    (True, False)
    """
    parent = rng.integers(0, len(Z), n_rows)
    if len(Z) < 2:
        return Z[parent], parent
    filled = fill_missing(Z)
    spread = filled.std(axis=0)
    # a constant column keeps no two rows apart
    standardised = filled / np.where(spread > 0, spread, 1.0)
    n_neighbours = min(NEIGHBOURS + 1, len(Z))
    search = NearestNeighbors(n_neighbors=n_neighbours).fit(standardised)
    # the nearest row is the row itself, or one that is alike
    groups = search.kneighbors(standardised, return_distance=False)[:, 1:]
    mate = groups[parent, rng.integers(0, groups.shape[1], n_rows)]
    share = rng.uniform(0.0, longest_step, size=(n_rows, 1))
    moved = Z[parent].copy()
    numbers = moved[:, n_categorical:]
    way = Z[mate, n_categorical:] - numbers
    # NaN where either is missing: the parent's value, or its hole, stays
    step = np.where(np.isnan(way), 0.0, share * way)
    moved[:, n_categorical:] = numbers + step
    return moved, parent
