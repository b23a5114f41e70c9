"""From bad rows to augmented and synthetic rows: one side (test or training) of one fold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.encode import TargetEncoder
from amlb_ext.hardening.judged_rows import Failures, FoldModels, MadeRows, Side, judge, screen
from amlb_ext.hardening.population_teacher import Teacher, expected_failures
from amlb_ext.hardening.search import Domain, genetic_search, learn_domain
from amlb_ext.hardening.taken_rows import TakenRows
from amlb_ext.suite.fold_notes import REASONS
from amlb_ext.synthesizers import make_synthesizer


def make_side(
    models: FoldModels,
    failures: Failures,
    pool: np.ndarray,
    y_pool: np.ndarray,
    side: str,
    taken: TakenRows | None = None,
) -> Side:
    """Augment the bad rows, learn their distribution, sample from it.

    Parameters
    ----------
    models : FoldModels
    failures : Failures
        At least one.
    pool, y_pool : ndarray of shape (m, d), (m,) or (m, k)
        All rows of this side: they bound columns and targets.
    side : str
        ``test`` or ``train``; part of the key of the random streams.
    taken : TakenRows, optional
        Rows that no made row may repeat; when omitted those the models were fitted on, and the
        pool.
    """
    if taken is None:
        taken = TakenRows((models.encoder.inverse(models.Z), models.encoder.inverse(pool)))
    notes: list[str] = []
    if models.least_support is not None and models.config.agreement.filter:
        notes.append(f"{side}: {least_support_note(models.least_support)}")
    augmented, asked, lost = _augment(models, failures, pool, y_pool, side, notes, taken)
    taken = taken.with_made(models.encoder.inverse(augmented.Z))
    synthetic, wanted, missed = synthesize(models, failures, augmented, side, notes, taken)
    dropped = {"augmented": _by_reason(lost), "synthetic": _by_reason(missed)}
    counts: dict[str, Any] = {
        "bad": len(failures),
        "augmented_asked": asked,
        "augmented": len(augmented),
        "synthetic_asked": wanted,
        "synthetic": len(synthetic),
        "dropped": dropped,
        "least_support": models.least_support,
    }
    return Side(augmented, synthetic, counts, notes)


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
        return (
            f"{text} must have a label that the oracle gives a probability of at least {least:.3g}"
        )
    return (
        f"{text} rests on the oracle's word for its label, and where F fails the oracle is right "
        "too seldom on the training rows: no label can be vouched for"
    )


def _by_reason(dropped: Mapping[str, int]) -> dict[str, int]:
    return {reason: int(dropped.get(reason, 0)) for reason in REASONS}


def perturb_targets(
    y: np.ndarray,
    y_pool: np.ndarray,
    target: TargetEncoder,
    sigma2: float,
    flip: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return y_ga (paper, sections 4.3.1 and 4.3.2).

    Regression: ``clip(y_b + xi, y_min, y_max)``, xi ~ N(0, sigma2), bounds from ``y_pool``;
    whole-numbered targets stay whole. Classification: another label with probability ``flip``.
    Several targets, ``(n, k)``: each is moved on its own.
    """
    if target.n_classes:
        other = (y + rng.integers(1, target.n_classes, size=len(y))) % target.n_classes
        return np.where(rng.random(len(y)) < flip, other, y)
    moved = y + rng.normal(0.0, np.sqrt(sigma2), size=y.shape)
    return target.snap(np.clip(moved, y_pool.min(axis=0), y_pool.max(axis=0)))


def _augment(
    models: FoldModels,
    failures: Failures,
    pool: np.ndarray,
    y_pool: np.ndarray,
    side: str,
    notes: list[str],
    taken: TakenRows,
) -> tuple[MadeRows, int, Counter[str]]:
    """Make as many copies of each bad row as asked, in several tries: one row, one voice."""
    config, bad = models.config.search, failures.Z
    dropped: Counter[str] = Counter()
    nothing = judge(models, bad[:0], failures.y[:0], np.zeros(0, dtype=int))
    if not models.baseline.can_search:
        notes.append(f"{side}: no search, since F is a file of predictions and cannot be asked")
        return nothing, 0, dropped
    copies = min(config.copies, max(1, config.max_rows // len(bad)))
    m = models.encoder.n_categorical_
    if copies and m == bad.shape[1] and config.categoricals == "frozen":
        notes.append(
            f"{side}: no row was augmented: no column is numeric and categories stay as they are, "
            "so every augmented row would repeat the features of its bad row"
        )
        return nothing, 0, dropped
    rng = random_stream(models.config.seed, *models.key, side, "augment")
    chosen = np.arange(len(bad))
    if len(bad) > config.max_rows:
        chosen = np.sort(rng.choice(len(bad), config.max_rows, replace=False))
        notes.append(f"{side}: {len(chosen)} of {len(bad)} bad rows were searched (max_rows)")
    target = models.target
    domain = learn_domain(pool, models.Z, models.y, n_classes=target.n_classes, n_categorical=m)
    parts, have = [nothing], np.zeros(len(bad), dtype=int)
    for attempt in range(config.tries):
        parent = np.repeat(chosen[have[chosen] < copies], copies)
        if not len(parent):
            break
        y = perturb_targets(failures.y[parent], y_pool, target, config.sigma2, config.flip, rng)
        best = _searched(models, bad[parent], y, domain, side, attempt)
        noise = rng.normal(0.0, config.jitter, size=best[:, m:].shape) if config.jitter else 0.0
        best[:, m:] = np.clip(best[:, m:] + noise, domain.low[m:], domain.high[m:])
        made = judge(models, best, y, parent)
        screened = screen(models, made, failures, taken)
        dropped += screened.dropped
        rows = screened.rows
        if not len(rows):
            break
        rows = rows[_order_within(parent[rows]) < (copies - have)[parent[rows]]]
        have += np.bincount(parent[rows], minlength=len(bad))
        parts.append(made.take(rows))
        taken = taken.with_made(models.encoder.inverse(parts[-1].Z))
    return MadeRows.merge(parts), len(chosen) * copies, dropped


def _searched(
    models: FoldModels, bad: np.ndarray, y: np.ndarray, domain: Domain, side: str, attempt: int
) -> np.ndarray:
    """Search a harder neighbour of each point."""
    config = models.config.search
    if config.pressure == 0:  # only the distance counts: the bad point itself is the optimum
        return bad
    engine = genetic_search
    if config.engine == "deap":
        from amlb_ext.hardening.search.deap_engine import genetic_search_deap

        engine = genetic_search_deap
    again = (attempt,) if attempt else ()
    seed = derive_seed(models.config.seed, *models.key, side, "search", *again)
    oracle = models.oracle.predict if config.fitness == "reducible" else None
    return engine(
        models.baseline.predict, bad, y, domain=domain, config=config, seed=seed, oracle=oracle
    )[0]


def _order_within(groups: np.ndarray) -> np.ndarray:
    """Return each entry's position among the equal ones, which stand together.

    Examples
    --------
    >>> _order_within(np.array([3, 3, 5, 8, 8, 8])).tolist()
    [0, 1, 0, 0, 1, 2]
    """
    first = np.searchsorted(groups, groups)
    return np.arange(len(groups)) - first


# Synthetic rows of one side of a fold: what the synthesizer learns, and which samples are kept.
#
# A synthesizer learns the bad and augmented rows, or the whole population of training rows; then
# :mod:`~amlb_ext.hardening.population_teacher` keeps those on which the oracle expects F to fail.
# Their targets are the oracle's own, so the agreement filter has nothing to say of them.
#
# No synthetic row repeats the features of a real row, an augmented one or another synthetic one.

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
    rng = random_stream(models.config.seed, *models.key, side, "synthesize")
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
