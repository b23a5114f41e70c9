"""Synthetic rows: a sample of what a synthesizer learnt of the hard rows, or of all rows.

A synthesizer learns the bad and the augmented rows of a side (paper, section 4.4), or the whole
population of training rows. Of the latter
:mod:`~amlb_ext.hardening.made_rows.population_teacher` keeps the ones on which the oracle expects F
to fail, with targets of the oracle's own, unless labels are to be literal. A synthesizer that
searches asks F and the oracle about its rows while it learns.

Notation as in :mod:`amlb_ext.hardening.judged_rows`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.notes import Note
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.judged_rows import FoldModels, JudgedRows, without_single_axis
from amlb_ext.hardening.made_rows.population_teacher import (
    Sample,
    Sampler,
    sample_expected_failures,
)
from amlb_ext.hardening.made_rows.screening import (
    MadeRows,
    MadeRowsCollector,
    TakenRows,
    find_parents,
    no_made_rows,
)
from amlb_ext.synthesizers import make_synthesizer
from amlb_ext.synthesizers.base import Judges, best_labels

#: Rounds of sampling until as many synthetic rows passed K as were asked for.
SAMPLING_ROUNDS = 4
#: Rows that break a relation are rejected at first, since rows that never did are nearer to real
#: failures. From this round on they are repaired, so that they do not run out.
REPAIRING_ROUND = 2

#: Fewest rows that a model of a distribution learns from.
FEWEST_ROWS = 11
#: Largest number of synthetic rows in a fold; a test file of more would tell nothing more.
MOST_ROWS = 10_000


def sample_synthetic_rows(
    models: FoldModels,
    real: JudgedRows,
    *,
    augmented: JudgedRows,
    side: str,
    taken: TakenRows,
    seed: int,
    surplus: float = 1.0,
) -> MadeRows:
    """Learn the distribution of hard rows and sample from it until enough rows are kept.

    Parameters
    ----------
    models : FoldModels
    real, augmented : JudgedRows
        The real rows of the side, and those that were augmented from them.
    side : str
        Its name in remarks.
    taken : TakenRows
        Rows that no made row may repeat.
    seed : int
    surplus : float
        So many times more rows than are asked for: those that F must yet confirm.
    """
    config = models.config.synthesizer
    bad = find_parents(real)
    n_hard = max(len(augmented), len(bad))
    asked = min(MOST_ROWS, round(config.times * n_hard))
    if not len(bad) or asked == 0:
        return MadeRows(rows=no_made_rows(models, real))
    wanted = round(surplus * asked)

    collector = MadeRowsCollector(models, real, taken)
    hard_Z = np.vstack([real.Z[bad], augmented.Z])
    parents = np.concatenate([bad, augmented.parent])
    learnt = _learnt_columns(models)
    find_nearest_parents = _parent_finder(hard_Z, parents, learnt)
    Z, y = hard_Z, np.concatenate([real.y[bad], augmented.y])
    notes = []
    learns_population = config.learn_from == "population"
    if learns_population and models.can_search:
        Z, y = models.Z, models.y
    elif learns_population:
        learns_population = False
        notes.append(Note(kind="learnt from failures", side=side))
    # a model of a distribution needs more rows; "local" moves rows towards their neighbours
    if len(Z) < FEWEST_ROWS and config.name != "local":
        note = Note(
            kind="few to learn from",
            side=side,
            counts={"rows": len(Z), "least": FEWEST_ROWS},
            words={"synthesizer": config.name},
        )
        notes.append(note)
        config = config.model_copy(update={"name": "local", "params": {}})
    rng = np.random.default_rng(seed)
    synthesizer = make_synthesizer(config)
    judges = None
    if synthesizer.asks_judges:
        judges = _call_judges(models, real, hard_Z, learnt, find_nearest_parents)
    is_categorical = learnt[: models.encoder.n_categorical_]
    cards = np.array(models.encoder.cards_, dtype=int)[is_categorical]
    synthesizer.fit(
        Z[:, learnt],
        without_single_axis(y),
        cards=tuple(cards.tolist()),
        n_classes=models.n_classes,
        rng=rng,
        judges=judges,
    )
    notes += [replace(note, side=side) for note in synthesizer.notes_]

    def draw_learnt(n: int) -> Sample:
        sampled, targets = synthesizer.sample(n, rng)
        # the other columns are computed later, or the parent's: any values will do until then
        rows = np.tile(Z[0], (len(sampled), 1))
        rows[:, learnt] = sampled
        return Sample(rows, targets.reshape(len(rows), y.shape[1]), {})

    draw: Sampler = draw_learnt
    asks_teacher = learns_population and config.labels == "honest"
    if asks_teacher:
        draw = sample_expected_failures(
            draw_learnt,
            models,
            real,
            taken=taken,
            find_nearest_parents=find_nearest_parents,
            rng=rng,
        )

    n_kept = 0
    n_rounds = SAMPLING_ROUNDS
    sampling_round = 0
    while sampling_round < n_rounds and n_kept < wanted:
        sample = draw(wanted - n_kept)
        collector.dropped.update(sample.dropped)
        if not len(sample.Z):
            break
        repairs = sampling_round >= REPAIRING_ROUND
        n_rejected = collector.dropped["relation"]
        passed = collector.screen(
            Z=sample.Z,
            y=models.snap_targets(sample.y),
            parent=find_nearest_parents(sample.Z),
            repairs=repairs,
            # where targets are the oracle's own, its filter has nothing to say
            asks_oracle=not asks_teacher,
        )
        collector.keep(passed)
        n_kept += len(passed)
        if not repairs and collector.dropped["relation"] > n_rejected:
            # a round that rejected rows for a relation gave fewer than a round should
            n_rounds += 1
        sampling_round += 1
    return MadeRows(
        rows=collector.collected(),
        asked=asked,
        dropped=collector.dropped,
        notes=tuple(notes),
    )


def _parent_finder(
    hard_Z: np.ndarray, parents: np.ndarray, learnt: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that finds, for sampled rows, the parent of the nearest hard row."""
    # only by what is learnt: the other columns of a sampled row say nothing yet
    learnt_rows = fill_missing(hard_Z[:, learnt])
    nearest = NearestNeighbors(n_neighbors=1).fit(learnt_rows)

    def find_nearest_parents(rows: np.ndarray) -> np.ndarray:
        filled = fill_missing(rows[:, learnt])
        closest = nearest.kneighbors(filled, return_distance=False)[:, 0]
        return parents[closest]

    return find_nearest_parents


def _learnt_columns(models: FoldModels) -> np.ndarray:
    """Return which encoded columns a synthesizer learns, ``(d,)`` bool.

    Columns that others determine are computed, so that they cannot be broken, and frozen ones are
    the parent's. At least one column is learnt: synthesizers need something to learn.
    """
    everything = np.ones(models.Z.shape[1], dtype=bool)
    if models.relations is None:
        return everything
    bound = models.relations.keeps_parent_value(models.encoder)
    bound = bound | models.relations.is_computed(models.encoder)
    return everything if bound.all() else ~bound


def _call_judges(
    models: FoldModels,
    real: JudgedRows,
    hard_Z: np.ndarray,
    learnt: np.ndarray,
    find_nearest_parents: Callable[[np.ndarray], np.ndarray],
) -> Judges | None:
    """Return F, the oracle and real rows; None where F cannot be asked, or may know the rows."""
    if not models.can_search or models.f is None or models.t is None:
        return None
    judged = np.flatnonzero(~np.isnan(models.f[:, 0]).reshape(len(models.f), -1)[:, 0])

    def ask(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # F sees rows as they would be written: with computed columns, and with those of a parent
        rows = np.tile(hard_Z[0], (len(X), 1))
        rows[:, learnt] = X
        features = models.encoder.inverse(rows)
        if models.relations is not None:
            parent = find_nearest_parents(rows)
            corrected = models.correct(
                features, real.y[parent], real=real, parent=parent, repairs=False
            )
            features = corrected.features
        Z = models.encoder.transform(features)
        t = models.predict_oracle(Z)[:, 0]
        return best_labels(models.predict_baseline(Z)[:, 0]), t

    return Judges(
        X=models.Z[judged][:, learnt],
        y=models.y[judged, 0],
        f=best_labels(models.f[judged, 0]),
        t=models.t[judged, 0],
        ask=ask,
        user_rows=hard_Z[:, learnt],
    )
