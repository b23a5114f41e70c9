"""From bad rows to augmented and synthetic rows: one side (test or training) of one fold."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from amlb_ext.core.rng import derive_seed, stream
from amlb_ext.hardening.encode import TargetEncoder
from amlb_ext.hardening.genetic import Domain, make_domain, search
from amlb_ext.hardening.made import Failures, FoldModels, MadeRows, judge, kept, repeats
from amlb_ext.hardening.synthesis import synthesize


@dataclass
class Side:
    """Augmented and synthetic rows of one side, with counts and remarks for the manifest."""

    augmented: MadeRows
    synthetic: MadeRows
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def of_target(self, j: int) -> Side:
        """Return the same rows with one of their k targets."""
        return replace(
            self, augmented=self.augmented.of_target(j), synthetic=self.synthetic.of_target(j)
        )


def make_side(
    models: FoldModels, failures: Failures, pool: np.ndarray, y_pool: np.ndarray, side: str
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
    """
    notes: list[str] = []
    augmented, asked = _augment(models, failures, pool, y_pool, side, notes)
    synthetic, wanted = synthesize(models, failures, augmented, side, notes)
    counts = {
        "bad": len(failures),
        "augmented_asked": asked,
        "augmented": len(augmented),
        "synthetic_asked": wanted,
        "synthetic": len(synthetic),
    }
    for kind in ("augmented", "synthetic"):
        if counts[kind] < counts[f"{kind}_asked"]:
            notes.append(
                f"{side}: {counts[kind]} of {counts[f'{kind}_asked']} {kind} rows were had; the "
                "others were good for F, or repeated a row, or their label was refuted"
            )
    return Side(augmented, synthetic, counts, notes)


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
) -> tuple[MadeRows, int]:
    """Make as many copies of each bad row as asked, in several tries: one row, one voice."""
    config, bad = models.config.search, failures.Z
    nothing = judge(models, bad[:0], failures.y[:0], np.zeros(0, dtype=int))
    if not models.baseline.can_search:
        notes.append(f"{side}: no search, since F is a file of predictions and cannot be asked")
        return nothing, 0
    copies = min(config.copies, max(1, config.max_rows // len(bad)))
    rng = stream(models.config.seed, *models.key, side, "augment")
    chosen = np.arange(len(bad))
    if len(bad) > config.max_rows:
        chosen = np.sort(rng.choice(len(bad), config.max_rows, replace=False))
        notes.append(f"{side}: {len(chosen)} of {len(bad)} bad rows were searched (max_rows)")
    target, m = models.target, models.encoder.n_categorical_
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
        before = MadeRows.merge(parts)
        known = np.vstack([bad, before.Z]), np.concatenate([failures.y, before.y])
        rows = np.flatnonzero(kept(models, made, failures) & ~repeats(made.Z, made.y, *known))
        if not len(rows):
            break
        rows = rows[_order_within(parent[rows]) < (copies - have)[parent[rows]]]
        have += np.bincount(parent[rows], minlength=len(bad))
        parts.append(made.take(rows))
    return MadeRows.merge(parts), len(chosen) * copies


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
