"""Synthetic rows of one side of a fold: what the synthesizer learns, and which samples are kept.

A synthesizer learns the bad and augmented rows, or the whole population of training rows; then
:mod:`~amlb_ext.hardening.population` keeps those on which the oracle expects F to fail. Their
targets are the oracle's own, so the agreement filter has nothing to say of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.rng import stream
from amlb_ext.hardening.baseline import fill_missing
from amlb_ext.hardening.made import Failures, FoldModels, MadeRows, judge, kept, repeats
from amlb_ext.hardening.population import Teacher, expected_failures
from amlb_ext.synthesizers import make_synthesizer

#: Rows of the population proposed per failure wanted, and at most: about one in ten is bad.
PROPOSED_PER_ROW, MOST_PROPOSED = 15, 20_000
#: Rounds of sampling until as many synthetic rows passed K as were asked for.
SAMPLING_ROUNDS = 4


def synthesize(
    models: FoldModels, failures: Failures, augmented: MadeRows, side: str, notes: list[str]
) -> tuple[MadeRows, int]:
    """Learn the distribution of hard rows and sample from it; return rows, and how many were asked.

    Parameters
    ----------
    models : FoldModels
    failures : Failures
    augmented : MadeRows
    side : str
    notes : list of str
        Remarks are added to it.
    """
    config, bad, y_bad = models.config.synthesizer, failures.Z, failures.y
    wanted = min(config.max_rows, round(config.times * max(len(augmented), len(bad))))
    if wanted == 0:
        nothing = np.zeros(0, dtype=int)
        return judge(models, bad[nothing], y_bad[nothing], nothing), 0
    Z = np.vstack([bad, augmented.Z])
    y = np.concatenate([y_bad, augmented.y])
    parent = np.concatenate([np.arange(len(bad)), augmented.parent])
    rng = stream(models.config.seed, *models.key, side, "synthesize")
    whole = from_population(models)
    draw = _proposals(models, Z, y, side, notes, rng)
    nearest = NearestNeighbors(n_neighbors=1).fit(fill_missing(Z))
    parts: list[MadeRows] = []
    have = 0
    for _ in range(SAMPLING_ROUNDS):
        new, labels = draw(wanted - have)
        if not len(new):
            break
        labels = models.target.snap(labels)
        closest = nearest.kneighbors(fill_missing(new), return_distance=False)[:, 0]
        made = judge(models, new, labels, parent[closest])
        keep = kept(models, made, failures, labels=not whole) & ~repeats(made.Z, made.y, bad, y_bad)
        parts.append(made.take(np.flatnonzero(keep)))
        have += len(parts[-1])
        if have >= wanted:
            break
    if not parts:
        nothing = np.zeros(0, dtype=int)
        return judge(models, bad[nothing], y_bad[nothing], nothing), wanted
    return MadeRows.merge(parts), wanted


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
) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
    """Fit the synthesizer and return how to draw rows from it: ``n -> (rows, targets)``."""
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
        return lambda n: synthesizer.sample(n, rng)
    teacher = Teacher(models.oracle, Z, y)

    def failing(n: int) -> tuple[np.ndarray, np.ndarray]:
        rows, _ = synthesizer.sample(min(MOST_PROPOSED, PROPOSED_PER_ROW * n), rng)
        rows = models.encoder.transform(models.encoder.inverse(rows))
        fresh = ~repeats(rows, np.zeros(len(rows)), Z, np.zeros(len(Z)))
        return expected_failures(
            models.baseline, models.rule, models.oracle, teacher, rows[fresh], n, rng
        )

    return failing
