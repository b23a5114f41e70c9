"""Synthetic rows of one side of a fold: what the synthesizer learns, and which samples are kept.

A synthesizer learns the bad and augmented rows, or the whole population of training rows; then
:mod:`~amlb_ext.hardening.population` keeps those on which the oracle expects F to fail. Their
targets are the oracle's own, so the agreement filter has nothing to say of them.

No synthetic row repeats the features of a real row, an augmented one or another synthetic one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.rng import stream
from amlb_ext.hardening.baseline import fill_missing
from amlb_ext.hardening.made import Failures, FoldModels, MadeRows, judge, screen
from amlb_ext.hardening.population import Teacher, expected_failures
from amlb_ext.hardening.taken import TakenRows
from amlb_ext.synthesizers import make_synthesizer

#: Rows of the population proposed per failure wanted, and at most: about one in ten is bad.
PROPOSED_PER_ROW, MOST_PROPOSED = 15, 20_000
#: Rounds of sampling until as many synthetic rows passed K as were asked for.
SAMPLING_ROUNDS = 4


class Draw(NamedTuple):
    """Encoded rows from a synthesizer, their targets, and what was dropped before any target."""

    Z: np.ndarray
    y: np.ndarray
    dropped: Mapping[str, int]


def synthesize(
    models: FoldModels,
    failures: Failures,
    augmented: MadeRows,
    side: str,
    notes: list[str],
    taken: TakenRows,
) -> tuple[MadeRows, int, Counter[str]]:
    """Learn the distribution of hard rows and sample from it.

    Parameters
    ----------
    models : FoldModels
    failures : Failures
    augmented : MadeRows
    side : str
    notes : list of str
        Remarks are added to it.
    taken : TakenRows
        Rows that no synthetic row may repeat.

    Returns
    -------
    made : MadeRows
    wanted : int
        How many were asked.
    dropped : Counter
        Rows that were tried and not kept, by :data:`amlb_ext.suite.fold_notes.REASONS`.
    """
    config, bad, y_bad = models.config.synthesizer, failures.Z, failures.y
    wanted = min(config.max_rows, round(config.times * max(len(augmented), len(bad))))
    dropped: Counter[str] = Counter()
    parts = [judge(models, bad[:0], y_bad[:0], np.zeros(0, dtype=int))]
    if wanted == 0:
        return parts[0], 0, dropped
    Z = np.vstack([bad, augmented.Z])
    y = np.concatenate([y_bad, augmented.y])
    parent = np.concatenate([np.arange(len(bad)), augmented.parent])
    rng = stream(models.config.seed, *models.key, side, "synthesize")
    whole = from_population(models)
    draw = _proposals(models, Z, y, side, notes, rng, taken)
    nearest = NearestNeighbors(n_neighbors=1).fit(fill_missing(Z))
    have = 0
    for _ in range(SAMPLING_ROUNDS):
        new, labels, unused = draw(wanted - have)
        dropped.update(unused)
        if not len(new):
            break
        labels = models.target.snap(labels)
        closest = nearest.kneighbors(fill_missing(new), return_distance=False)[:, 0]
        made = judge(models, new, labels, parent[closest])
        screened = screen(models, made, failures, taken, labels=not whole)
        dropped.update(screened.dropped)
        parts.append(made.take(screened.rows))
        taken = taken.with_made(models.encoder.inverse(parts[-1].Z))
        have += len(parts[-1])
        if have >= wanted:
            break
    return MadeRows.merge(parts), wanted, dropped


def from_population(models: FoldModels) -> bool:
    """Whether rows are learnt from all training rows; F must then predict rows never seen."""
    return models.config.synthesizer.learn_from == "population" and models.baseline.can_search


def _proposals(
    models: FoldModels,
    Z: np.ndarray,
    y: np.ndarray,
    side: str,
    notes: list[str],
    rng: np.random.Generator,
    taken: TakenRows,
) -> Callable[[int], Draw]:
    """Fit the synthesizer and return how to draw so many rows from it."""
    config = models.config.synthesizer
    whole = from_population(models)
    if config.learn_from == "population" and not whole:
        notes.append(f"{side}: F is a file of predictions, so rows are learnt from its failures")
    if whole:
        Z, y = models.Z, models.y
    if len(Z) < config.min_rows and config.name != "local":
        notes.append(
            f"{side}: {len(Z)} rows to learn from, fewer than {config.min_rows}: "
            f"the synthesizer 'local' stood in for {config.name!r}"
        )
        config = config.model_copy(update={"name": "local"})
    synthesizer = make_synthesizer(config)
    synthesizer.fit(Z, y, cards=models.encoder.cards_, n_classes=models.target.n_classes, rng=rng)
    if not whole:
        return lambda n: Draw(*synthesizer.sample(n, rng), {})
    teacher = Teacher(models.oracle, Z, y)

    def failing(n: int) -> Draw:
        rows, _ = synthesizer.sample(min(MOST_PROPOSED, PROPOSED_PER_ROW * n), rng)
        features = models.encoder.inverse(rows)
        real, made = taken.repeated(features)
        # a copy must not take the place of a row that may be kept, so it is not even drawn
        rows = models.encoder.transform(features)[~real & ~made]
        drawn = expected_failures(
            models.baseline, models.rule, models.oracle, teacher, rows, n, rng
        )
        return Draw(*drawn, {"real_row": int(real.sum()), "made_row": int((made & ~real).sum())})

    return failing
