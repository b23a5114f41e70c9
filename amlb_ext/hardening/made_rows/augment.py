"""Augmented rows: harder neighbours of the bad rows, found by a genetic search.

Paper, section 4.3. Notation as in :mod:`amlb_ext.hardening.judged_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from amlb_ext.core.config import SearchConfig
from amlb_ext.core.notes import Note
from amlb_ext.hardening.judged_rows import FoldModels, JudgedRows, without_single_axis
from amlb_ext.hardening.made_rows.screening import (
    MadeRows,
    MadeRowsCollector,
    TakenRows,
    find_parents,
    no_made_rows,
)
from amlb_ext.hardening.search import Domain, genetic_search, learn_domain

#: Rows that break a relation are rejected at first, since rows that never did are nearer to real
#: failures. From this try on they are repaired, so that they do not run out.
REPAIRING_TRY = 1


def augment_bad_rows(
    models: FoldModels,
    real: JudgedRows,
    *,
    side: str,
    taken: TakenRows,
    seed: int,
    search_seeds: Sequence[int],
) -> MadeRows:
    """Make as many copies of each bad row as asked, in several tries: one row, one voice.

    Parameters
    ----------
    models : FoldModels
    real : JudgedRows
        The real rows of the side.
    side : str
        Its name in remarks.
    taken : TakenRows
        Rows that no made row may repeat.
    seed : int
        Of the targets and the jitter.
    search_seeds : sequence of int
        Of the search, one per try.
    """
    config = models.config.search
    bad = find_parents(real)
    # as many for each bad row as fit into max_rows, one at least
    affordable = config.max_rows // max(1, len(bad))
    copies = min(config.copies, max(1, affordable))
    reason = ""
    if not models.can_search:
        reason = "no search"
    elif copies and config.operators.categoricals == "frozen":
        has_numbers = models.encoder.n_categorical_ < models.Z.shape[1]
        reason = "" if has_numbers else "nothing to search"
    notes: tuple[Note, ...] = ()
    if reason or not len(bad):
        # of a side without bad rows there is nothing to remark
        if len(bad):
            notes = (Note(kind=reason, side=side),)
        return MadeRows(rows=no_made_rows(models, real), notes=notes)

    collector = MadeRowsCollector(models, real, taken)
    relations = models.relations
    bound_genes: dict[str, Any] = {}
    if relations is not None:
        # which genes keep the bad row's value, and what computes those that are determined
        bound_genes["frozen"] = relations.keeps_parent_value(models.encoder)
        bound_genes["derive"] = relations.derive_encoded(models.encoder)
    domain = learn_domain(
        real.Z,
        models.Z,
        without_single_axis(models.y),
        n_classes=models.n_classes,
        n_categorical=models.encoder.n_categorical_,
        omega=models.omega,
        **bound_genes,
    )
    numeric = slice(domain.n_categorical, None)
    rng = np.random.default_rng(seed)
    searched = bad
    if len(bad) > config.max_rows:
        drawn = rng.choice(len(bad), config.max_rows, replace=False)
        searched = bad[np.sort(drawn)]
        counts = {"searched": len(searched), "bad": len(bad)}
        notes = (Note(kind="not all searched", side=side, counts=counts),)

    copies_so_far = np.zeros(len(real), dtype=int)
    for attempt in range(config.operators.tries):
        # those short of copies get a full set again, of which the first that pass are kept
        parent = np.repeat(searched[copies_so_far[searched] < copies], copies)
        if not len(parent):
            break
        y = perturb_targets(
            real.y[parent], real.y, config, rng, n_classes=models.n_classes
        )
        y = models.snap_targets(y)
        neighbours = _search_neighbours(
            models, real.Z[parent], y, domain=domain, seed=search_seeds[attempt]
        )
        # numbers are moved by noise, within the bounds of the search
        moved = neighbours.copy()
        if config.operators.jitter:
            shape = moved[:, numeric].shape
            moved[:, numeric] += rng.normal(0.0, config.operators.jitter, size=shape)
        moved[:, numeric] = np.clip(
            moved[:, numeric], domain.low[numeric], domain.high[numeric]
        )
        passed = collector.screen(
            Z=moved,
            y=y,
            parent=parent,
            repairs=attempt >= REPAIRING_TRY or attempt == config.operators.tries - 1,
        )
        # without relations, where a whole try fails, the next would fail too
        if not len(passed) and relations is None:
            break
        missing = (copies - copies_so_far)[passed.parent]
        passed = passed.take(_order_within(passed.parent) < missing)
        copies_so_far += np.bincount(passed.parent, minlength=len(real))
        collector.keep(passed)
    return MadeRows(
        rows=collector.collected(),
        asked=len(searched) * copies,
        # "+" leaves out the reasons that no row was dropped for
        dropped=+collector.dropped,
        notes=notes,
    )


def perturb_targets(
    y: np.ndarray,
    y_pool: np.ndarray,
    config: SearchConfig,
    rng: np.random.Generator,
    *,
    n_classes: int,
) -> np.ndarray:
    """Return y_ga (paper, sections 4.3.1 and 4.3.2), each target moved on its own.

    Regression: ``clip(y_b + xi, y_min, y_max)``, xi ~ N(0, sigma2), bounds from ``y_pool``.
    Classification: another label with probability ``flip``.

    Parameters
    ----------
    y, y_pool : ndarray of shape (n, k), (m, k) or (n,), (m,)
        The bad rows' targets, and those of all rows of the side.
    config : SearchConfig
    rng : Generator
    n_classes : int
        C, or 0 for regression.
    """
    if n_classes:
        # a step of 1 to C - 1 round the classes ends at another one, each as likely
        step = rng.integers(1, n_classes, size=y.shape)
        other = (y + step) % n_classes
        is_flipped = rng.random(y.shape) < config.operators.flip
        return np.where(is_flipped, other, y)
    noise = rng.normal(0.0, np.sqrt(config.operators.sigma2), size=y.shape)
    low = y_pool.min(axis=0)
    high = y_pool.max(axis=0)
    return np.clip(y + noise, low, high)


def _search_neighbours(
    models: FoldModels, bad: np.ndarray, y: np.ndarray, *, domain: Domain, seed: int
) -> np.ndarray:
    """Search a harder neighbour of each point."""
    config = models.config.search
    if config.pressure == 0:
        # only the distance counts: the bad point itself is the optimum
        return bad

    def predict(Z: np.ndarray) -> np.ndarray:
        return without_single_axis(models.predict_baseline(Z))

    def predict_oracle(Z: np.ndarray) -> np.ndarray:
        return without_single_axis(models.predict_oracle(Z))

    best, _ = genetic_search(
        predict,
        bad,
        without_single_axis(y),
        domain=domain,
        config=config,
        seed=seed,
        oracle=predict_oracle if config.operators.fitness == "reducible" else None,
    )
    return best


def _order_within(groups: np.ndarray) -> np.ndarray:
    """Return each entry's position among the equal ones, which stand together.

    Examples
    --------
    >>> _order_within(np.array([3, 3, 5, 8, 8, 8])).tolist()
    [0, 1, 0, 0, 1, 2]
    """
    first = np.searchsorted(groups, groups)
    return np.arange(len(groups)) - first
