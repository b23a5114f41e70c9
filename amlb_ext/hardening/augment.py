"""From bad rows to augmented and synthetic rows: one side (test or training) of one fold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from amlb_ext.core.rng import derive_seed, stream
from amlb_ext.hardening.encode import TargetEncoder
from amlb_ext.hardening.genetic import Domain, make_domain, search
from amlb_ext.hardening.made import Failures, FoldModels, MadeRows, judge, screen
from amlb_ext.hardening.synthesis import synthesize
from amlb_ext.hardening.taken import TakenRows
from amlb_ext.suite.fold_notes import REASONS


@dataclass
class Side:
    """Augmented and synthetic rows of one side, with counts and remarks for the manifest.

    ``counts["dropped"]`` says per kind of row how many that were tried were dropped, by
    :data:`amlb_ext.suite.fold_notes.REASONS`.
    """

    augmented: MadeRows
    synthetic: MadeRows
    counts: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def of_target(self, j: int) -> Side:
        """Return the same rows with one of their k targets."""
        return replace(
            self, augmented=self.augmented.of_target(j), synthetic=self.synthetic.of_target(j)
        )

    def taken_after(self, taken: TakenRows, models: FoldModels) -> TakenRows:
        """Return what is taken, with the rows of this side."""
        for made in (self.augmented, self.synthetic):
            taken = taken.with_made(models.encoder.inverse(made.Z))
        return taken


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
    rng = stream(models.config.seed, *models.key, side, "augment")
    chosen = np.arange(len(bad))
    if len(bad) > config.max_rows:
        chosen = np.sort(rng.choice(len(bad), config.max_rows, replace=False))
        notes.append(f"{side}: {len(chosen)} of {len(bad)} bad rows were searched (max_rows)")
    target = models.target
    domain = make_domain(pool, models.Z, models.y, target.n_classes, m)
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
    engine = search
    if config.engine == "deap":
        from amlb_ext.hardening.deap_engine import search_deap

        engine = search_deap
    again = (attempt,) if attempt else ()
    seed = derive_seed(models.config.seed, *models.key, side, "search", *again)
    oracle = models.oracle.predict if config.fitness == "reducible" else None
    return engine(models.baseline.predict, bad, y, domain, config, seed, oracle)[0]


def _order_within(groups: np.ndarray) -> np.ndarray:
    """Return each entry's position among the equal ones, which stand together.

    Examples
    --------
    >>> _order_within(np.array([3, 3, 5, 8, 8, 8])).tolist()
    [0, 1, 0, 0, 1, 2]
    """
    first = np.searchsorted(groups, groups)
    return np.arange(len(groups)) - first
