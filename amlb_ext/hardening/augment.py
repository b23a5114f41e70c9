"""From bad rows to made rows: one side (test or training) of one fold.

Augmented rows are searched near each bad row (paper, section 4.3). Synthetic rows are sampled from
a synthesizer that learnt the bad and augmented rows (section 4.4), or the whole population of
training rows; of those :mod:`~amlb_ext.hardening.population_teacher` keeps the ones on which the
oracle expects F to fail, with targets of the oracle's own.

Notation as in :mod:`amlb_ext.hardening.judged_rows`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.config import SearchConfig, SynthesizerConfig
from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.judged_rows import (
    FoldModels,
    JudgedRows,
    MadeRows,
    MadeSide,
    TakenRows,
    judge_made_rows,
    no_made_rows,
    screen_made_rows,
)
from amlb_ext.hardening.population_teacher import Teacher, expected_failures
from amlb_ext.hardening.search import Domain, genetic_search, learn_domain
from amlb_ext.synthesizers import Synthesizer, make_synthesizer

#: Rows of the population proposed per failure wanted, and at most: about one in ten is bad.
PROPOSED_PER_ROW, MOST_PROPOSED = 15, 20_000
#: Rounds of sampling until as many synthetic rows passed K as were asked for.
SAMPLING_ROUNDS = 4
#: Rows that break a relation are rejected first, since rows that never did are nearer to real
#: failures; from this try, or round of sampling, on they are repaired, so that they do not run out.
REPAIRING_TRY, REPAIRING_ROUND = 1, 2


def make_side(
    models: FoldModels, real: JudgedRows, side: str, taken: TakenRows | None = None
) -> MadeSide:
    """Augment the bad rows, learn their distribution, sample from it.

    Parameters
    ----------
    models : FoldModels
    real : JudgedRows
        All real rows of this side, at least one of them bad: they bound columns and targets.
    side : str
        ``test`` or ``train``; part of the key of the random streams.
    taken : TakenRows, optional
        Rows that no made row may repeat; when omitted those the models were fitted on, and the
        real rows of this side.
    """
    if taken is None:
        # decoded, not as they came: rows of a study are known by their codes alone
        fitted, own = models.encoder.inverse(models.Z), models.encoder.inverse(real.Z)
        taken = TakenRows((fitted, own))
    notes: tuple[str, ...] = ()
    if models.least_support is not None and models.config.agreement.filter:
        notes = (f"{side}: {least_support_note(models.least_support)}",)
    augmented = augment_bad_rows(models, real, side, taken)
    taken = taken.with_made(augmented.rows)
    synthetic = sample_synthetic_rows(models, real, augmented.rows, side, taken)
    return MadeSide(
        augmented=augmented,
        synthetic=synthetic,
        bad=int(real.is_bad.sum()),
        least_support=models.least_support,
        notes=(*notes, *augmented.notes, *synthetic.notes),
    )


def least_support_note(least: float) -> str:
    """Say what a label needs where rows are cells of a table.

    Examples
    --------
    >>> least_support_note(0.7)
    'every column has few values, so a made row must have a label that the oracle gives a \
probability of at least 0.7'
    """
    text = "every column has few values, so a made row"
    if np.isfinite(least):
        return f"{text} must have a label that the oracle gives a probability of at least {least:.3g}"
    return (
        f"{text} rests on the oracle's word for its label, and where F fails the oracle is right "
        "too seldom on the training rows: no label can be vouched for"
    )


def find_parents(real: JudgedRows) -> np.ndarray:
    """Return the positions of the bad rows that rows may be made from: those that are feasible."""
    return np.flatnonzero(real.is_bad & real.is_feasible)


# Augmented rows: harder neighbours of the bad rows.


def augment_bad_rows(
    models: FoldModels, real: JudgedRows, side: str, taken: TakenRows
) -> MadeRows:
    """Make as many copies of each bad row as asked, in several tries: one row, one voice."""
    config = models.config.search
    bad = find_parents(real)
    if not len(bad):
        return MadeRows(rows=no_made_rows(models, real))
    copies = min(config.copies, max(1, config.max_rows // len(bad)))
    nothing = no_made_rows(models, real)
    reason = _why_no_search(models, copies)
    if reason is not None:
        return MadeRows(rows=nothing, notes=(f"{side}: {reason}",))

    rng = random_stream(models.config.seed, *models.key, side, "augment")
    notes: tuple[str, ...] = ()
    searched = bad
    if len(bad) > config.max_rows:
        searched = bad[np.sort(rng.choice(len(bad), config.max_rows, replace=False))]
        notes = (
            f"{side}: {len(searched)} of {len(bad)} bad rows were searched (max_rows)",
        )

    domain = learn_domain(
        real.Z,
        models.Z,
        without_single_axis(models.y),
        n_classes=models.n_classes,
        n_categorical=models.encoder.n_categorical_,
        **_bound_genes(models),
    )
    blocks = [nothing]
    dropped: Counter[str] = Counter()
    copies_so_far = np.zeros(len(real), dtype=int)
    for attempt in range(config.tries):
        # those short of copies get a full set again, of which the first that pass are kept
        parent = np.repeat(searched[copies_so_far[searched] < copies], copies)
        if not len(parent):
            break
        y = perturb_targets(
            real.y[parent], real.y, config, rng, n_classes=models.n_classes
        )
        y = models.snap_targets(y)
        neighbours = _search_neighbours(
            models, real.Z[parent], y, domain, side, attempt
        )
        Z = _jitter_numbers(neighbours, domain, config, rng)
        made = judge_made_rows(
            models,
            real,
            Z=Z,
            y=y,
            parent=parent,
            repairs=attempt >= REPAIRING_TRY or attempt == config.tries - 1,
        )
        kept, dropped_now = screen_made_rows(models, made, real, taken)
        dropped += dropped_now
        # without relations, where a whole try fails, the next would fail too
        if not len(kept) and models.relations is None:
            break
        missing = (copies - copies_so_far)[parent[kept]]
        kept = kept[_order_within(parent[kept]) < missing]
        copies_so_far += np.bincount(parent[kept], minlength=len(real))
        blocks.append(made.take(kept))
        # the next try must not repeat what this one made
        taken = taken.with_made(blocks[-1])
    return MadeRows(
        rows=JudgedRows.concatenate(blocks),
        asked=len(searched) * copies,
        dropped=dropped,
        notes=notes,
    )


def without_single_axis(values: np.ndarray) -> np.ndarray:
    """Return values of a single target without the axis of targets, those of several as they are.

    The search and the synthesizers read ``(n,)`` for one target and ``(n, k)`` for k.
    """
    return values[:, 0] if values.shape[1] == 1 else values


def _bound_genes(models: FoldModels) -> dict[str, Any]:
    """Return which genes keep the bad row's value, and what computes those that are determined."""
    if models.relations is None:
        return {}
    return {
        "frozen": models.relations.keeps_parent_value(models.encoder),
        "derive": models.relations.derive_encoded(models.encoder),
    }


def _why_no_search(models: FoldModels, copies: int) -> str | None:
    """Return why no bad row can be augmented; None where nothing is in the way."""
    if not models.can_search:
        return "no search, since F is a file of predictions and cannot be asked"
    nothing_numeric = models.encoder.n_categorical_ == models.Z.shape[1]
    if copies and nothing_numeric and models.config.search.categoricals == "frozen":
        return (
            "no row was augmented: no column is numeric and categories stay as they are, "
            "so every augmented row would repeat the features of its bad row"
        )
    return None


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
        other = (y + rng.integers(1, n_classes, size=y.shape)) % n_classes
        return np.where(rng.random(y.shape) < config.flip, other, y)
    moved = y + rng.normal(0.0, np.sqrt(config.sigma2), size=y.shape)
    return np.clip(moved, y_pool.min(axis=0), y_pool.max(axis=0))


def _search_neighbours(
    models: FoldModels,
    bad: np.ndarray,
    y: np.ndarray,
    domain: Domain,
    side: str,
    attempt: int,
) -> np.ndarray:
    """Search a harder neighbour of each point."""
    config = models.config.search
    if (
        config.pressure == 0
    ):  # only the distance counts: the bad point itself is the optimum
        return bad
    engine = genetic_search
    if config.engine == "deap":
        from amlb_ext.hardening.search.deap_engine import genetic_search_deap

        engine = genetic_search_deap
    # the first try keeps the key it had before there were several
    attempt_key = (attempt,) if attempt else ()
    seed = derive_seed(models.config.seed, *models.key, side, "search", *attempt_key)

    def predict(Z: np.ndarray) -> np.ndarray:
        return without_single_axis(models.predict_baseline(Z))

    def predict_oracle(Z: np.ndarray) -> np.ndarray:
        return without_single_axis(models.predict_oracle(Z))

    oracle = predict_oracle if config.fitness == "reducible" else None
    best, _ = engine(
        predict,
        bad,
        without_single_axis(y),
        domain=domain,
        config=config,
        seed=seed,
        oracle=oracle,
    )
    return best


def _jitter_numbers(
    Z: np.ndarray, domain: Domain, config: SearchConfig, rng: np.random.Generator
) -> np.ndarray:
    """Move the numeric columns of encoded rows by noise, within the bounds of the search."""
    numeric = slice(domain.n_categorical, None)
    numbers = Z[:, numeric]
    if config.jitter:
        numbers = numbers + rng.normal(0.0, config.jitter, size=numbers.shape)
    moved = Z.copy()
    moved[:, numeric] = np.clip(numbers, domain.low[numeric], domain.high[numeric])
    return moved


def _order_within(groups: np.ndarray) -> np.ndarray:
    """Return each entry's position among the equal ones, which stand together.

    Examples
    --------
    >>> _order_within(np.array([3, 3, 5, 8, 8, 8])).tolist()
    [0, 1, 0, 0, 1, 2]
    """
    first = np.searchsorted(groups, groups)
    return np.arange(len(groups)) - first


# Synthetic rows: a sample of what a synthesizer learnt.


def sample_synthetic_rows(
    models: FoldModels,
    real: JudgedRows,
    augmented: JudgedRows,
    side: str,
    taken: TakenRows,
) -> MadeRows:
    """Learn the distribution of hard rows and sample from it until enough rows are kept."""
    config = models.config.synthesizer
    bad = find_parents(real)
    if not len(bad):
        return MadeRows(rows=no_made_rows(models, real))
    wanted = min(config.max_rows, round(config.times * max(len(augmented), len(bad))))
    blocks = [no_made_rows(models, real)]
    if wanted == 0:
        return MadeRows(rows=blocks[0])

    # what is sampled descends from the nearest of the rows that are learnt
    Z = np.vstack([real.Z[bad], augmented.Z])
    y = np.concatenate([real.y[bad], augmented.y])
    parent = np.concatenate([bad, augmented.parent])
    learnt = _learnt_columns(models)
    nearest = NearestNeighbors(n_neighbors=1).fit(fill_missing(Z[:, learnt]))

    def find_parents_of(rows: np.ndarray) -> np.ndarray:
        closest = nearest.kneighbors(
            fill_missing(rows[:, learnt]), return_distance=False
        )[:, 0]
        return parent[closest]

    rng = random_stream(models.config.seed, *models.key, side, "synthesize")
    draw, notes = _fit_synthesizer(
        models,
        real,
        Z=Z,
        y=y,
        side=side,
        rng=rng,
        taken=taken,
        find_parents_of=find_parents_of,
    )
    dropped: Counter[str] = Counter()
    n_kept = 0
    for sampling_round in range(SAMPLING_ROUNDS):
        # feasible rows first; later those that are not get values of their parents
        repairs = sampling_round >= REPAIRING_ROUND
        sample = draw(wanted - n_kept)
        dropped.update(sample.dropped)
        if not len(sample.Z):
            break
        made = judge_made_rows(
            models,
            real,
            Z=sample.Z,
            y=models.snap_targets(sample.y),
            parent=find_parents_of(sample.Z),
            repairs=repairs,
        )
        # targets of the population are the oracle's own: its filter has nothing to say of them
        own_targets = learns_population(models)
        kept, dropped_now = screen_made_rows(
            models, made, real, taken, asks_oracle=not own_targets
        )
        dropped.update(dropped_now)
        blocks.append(made.take(kept))
        taken = taken.with_made(blocks[-1])
        n_kept += len(kept)
        if n_kept >= wanted:
            break
    return MadeRows(
        rows=JudgedRows.concatenate(blocks),
        asked=wanted,
        dropped=dropped,
        notes=tuple(notes),
    )


class Sample(NamedTuple):
    """Encoded rows from a synthesizer, their targets, and what was dropped before any target."""

    Z: np.ndarray
    y: np.ndarray
    dropped: Mapping[str, int]


def learns_population(models: FoldModels) -> bool:
    """Whether rows are learnt from all training rows; F must then predict rows never seen."""
    return models.config.synthesizer.learn_from == "population" and models.can_search


def _fit_synthesizer(
    models: FoldModels,
    real: JudgedRows,
    *,
    Z: np.ndarray,
    y: np.ndarray,
    side: str,
    rng: np.random.Generator,
    taken: TakenRows,
    find_parents_of: Callable[[np.ndarray], np.ndarray],
) -> tuple[Callable[[int], Sample], list[str]]:
    """Fit the synthesizer; return how to draw so many rows from it, and remarks."""
    config = models.config.synthesizer
    notes = []
    if learns_population(models):
        Z, y = models.Z, models.y
    elif config.learn_from == "population":
        notes.append(
            f"{side}: F is a file of predictions, so rows are learnt from its failures"
        )
    # a model of a distribution needs more rows; "local" moves rows towards their neighbours
    if len(Z) < config.min_rows and config.name != "local":
        notes.append(
            f"{side}: {len(Z)} rows to learn from, fewer than {config.min_rows}: "
            f"the synthesizer 'local' stood in for {config.name!r}"
        )
        config = config.model_copy(update={"name": "local"})
    learnt = _learnt_columns(models)
    synthesizer = _fitted_synthesizer(config, models, Z[:, learnt], y, learnt, rng)
    # what is not learnt is computed later, or the parent's: any value will do until then
    filling = Z[0]

    def draw_rows(n: int) -> tuple[np.ndarray, np.ndarray]:
        sampled, targets = synthesizer.sample(n, rng)
        rows = np.tile(filling, (len(sampled), 1))
        rows[:, learnt] = sampled
        return rows, targets

    def draw_learnt(n: int) -> Sample:
        rows, targets = draw_rows(n)
        return Sample(rows, targets.reshape(len(rows), y.shape[1]), {})

    if not learns_population(models):
        return draw_learnt, notes
    # a group of tasks never comes here: the teacher knows the spread of one target
    teacher = Teacher(models.targets[0].oracle, Z, y[:, 0])

    def draw_expected_failures(n: int) -> Sample:
        rows, _ = draw_rows(min(MOST_PROPOSED, PROPOSED_PER_ROW * n))
        features, n_broken = _feasible_features(
            models, real, rows, find_parents_of(rows)
        )
        repeats_real, repeats_made = taken.repeated(features)
        # a copy must not take the place of a row that may be kept, so it is not even drawn
        rows = models.encoder.transform(features)[~repeats_real & ~repeats_made]
        rows, targets = expected_failures(models, teacher, rows, n, rng)
        dropped = {
            "real_row": int(repeats_real.sum()),
            "made_row": int((repeats_made & ~repeats_real).sum()),
        }
        if models.relations is not None:
            dropped["relation"] = n_broken
        return Sample(rows, targets[:, None], dropped)

    return draw_expected_failures, notes


def _feasible_features(
    models: FoldModels, real: JudgedRows, Z: np.ndarray, parent: np.ndarray
) -> tuple[pd.DataFrame, int]:
    """Return the features of rows that break no relation, and how many rows do.

    The rows have no targets yet; those of their parents stand in.
    """
    features = models.encoder.inverse(Z)
    if models.relations is None or not len(Z):
        return features, 0
    corrected = models.relations.correct(
        features,
        real.y[parent],
        parent_features=real.features.iloc[parent].reset_index(drop=True),
        parent_y=real.y[parent],
        repairs=False,
    )
    kept = corrected.features[~corrected.is_broken].reset_index(drop=True)
    return kept, int(corrected.is_broken.sum())


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


def _fitted_synthesizer(
    config: SynthesizerConfig,
    models: FoldModels,
    Z: np.ndarray,
    y: np.ndarray,
    learnt: np.ndarray,
    rng: np.random.Generator,
) -> Synthesizer:
    is_categorical = learnt[: models.encoder.n_categorical_]
    cards = np.array(models.encoder.cards_, dtype=int)[is_categorical]
    synthesizer = make_synthesizer(config)
    synthesizer.fit(
        Z,
        without_single_axis(y),
        cards=tuple(cards.tolist()),
        n_classes=models.n_classes,
        rng=rng,
    )
    return synthesizer
