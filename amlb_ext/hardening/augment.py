"""From bad rows to augmented and synthetic rows: one side (test or training) of one fold.

Everything made here is *snapped* first: decoded to the table's own form (whole numbers,
categories) and encoded again, so that F and K judge the very row that is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.rng import derive_seed, stream
from amlb_ext.hardening.baseline import Baseline, fill_missing
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.genetic import make_domain, search
from amlb_ext.hardening.hardness import BadRule, raw_hardness
from amlb_ext.hardening.oracle import Oracle, check_labels
from amlb_ext.synthesizers import make_synthesizer

#: Rounds of sampling until as many synthetic rows passed K as were asked for.
SAMPLING_ROUNDS = 4


@dataclass(frozen=True)
class FoldModels:
    """What both sides of a fold share, fitted on its training rows.

    ``Z, y`` are the encoded training rows and targets; ``key`` names the fold's streams.
    """

    encoder: Encoder
    target: TargetEncoder
    baseline: Baseline
    rule: BadRule
    oracle: Oracle
    Z: np.ndarray
    y: np.ndarray
    config: GenerateConfig
    key: tuple[str | int, ...]


@dataclass
class MadeRows:
    """Rows that were made, encoded, with what is known of each.

    Attributes
    ----------
    Z, y : ndarray of shape (n, d), (n,)
    parent : ndarray of shape (n,), int
        Position of the bad row each came from, among the bad rows given.
    f : ndarray
        F's predictions; empty when F cannot predict new rows.
    hardness, reducible, support, agrees : ndarray of shape (n,)
        Under the fold's rule; ``(T - F)^2``; the oracle on the label.
    """

    Z: np.ndarray
    y: np.ndarray
    parent: np.ndarray
    f: np.ndarray
    hardness: np.ndarray
    reducible: np.ndarray
    support: np.ndarray
    agrees: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: np.ndarray) -> MadeRows:
        """Return some of the rows."""
        return MadeRows(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


@dataclass
class Side:
    """Augmented and synthetic rows of one side, with counts and remarks for the manifest."""

    augmented: MadeRows
    synthetic: MadeRows
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def make_side(
    models: FoldModels,
    bad: np.ndarray,
    y_bad: np.ndarray,
    pool: np.ndarray,
    y_pool: np.ndarray,
    side: str,
) -> Side:
    """Augment the bad rows, learn their distribution, sample from it.

    Parameters
    ----------
    models : FoldModels
    bad, y_bad : ndarray of shape (n, d), (n,)
        Bad rows, encoded, at least one.
    pool, y_pool : ndarray of shape (m, d), (m,)
        All rows of this side: they bound columns and targets.
    side : str
        ``test`` or ``train``; part of the key of the random streams.
    """
    notes: list[str] = []
    augmented, asked = _augment(models, bad, y_bad, pool, y_pool, side, notes)
    synthetic, wanted = _synthesize(models, bad, y_bad, augmented, side, notes)
    counts = {
        "bad": len(bad),
        "augmented_asked": asked,
        "augmented": len(augmented),
        "synthetic_asked": wanted,
        "synthetic": len(synthetic),
    }
    for kind in ("augmented", "synthetic"):
        if counts[kind] < counts[f"{kind}_asked"]:
            notes.append(
                f"{side}: {counts[kind]} of {counts[f'{kind}_asked']} {kind} rows were kept; on "
                "the others F turned out good, or they repeated a row, or their label was refuted"
            )
    return Side(augmented, synthetic, counts, notes)


def judge(models: FoldModels, Z: np.ndarray, y: np.ndarray, parent: np.ndarray) -> MadeRows:
    """Snap made rows and let F, K and the oracle judge them."""
    Z = models.encoder.transform(models.encoder.inverse(Z))
    t = models.oracle.predict(Z) if len(Z) else np.zeros((0, *models.oracle.out_of_fold_.shape[1:]))
    support, agrees = check_labels(models.oracle, t, y, models.config.agreement)
    if models.baseline.can_search and len(Z):
        f = models.baseline.predict(Z)
        hardness = models.rule.hardness(y, f, t)
        reducible = raw_hardness("reducible", y, f, t)
    else:
        f = np.full((len(Z), *models.oracle.out_of_fold_.shape[1:]), np.nan)
        hardness = np.full(len(Z), np.nan)
        reducible = hardness
    return MadeRows(Z, y, parent, f, hardness, reducible, support, agrees)


def _kept(models: FoldModels, made: MadeRows) -> np.ndarray:
    keep = np.ones(len(made), dtype=bool)
    if models.config.search.reapply and models.baseline.can_search:
        keep &= models.rule.select(made.hardness)
    if models.config.agreement.filter:
        keep &= made.agrees
    return keep


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
    """
    if target.n_classes:
        other = (y + rng.integers(1, target.n_classes, size=len(y))) % target.n_classes
        return np.where(rng.random(len(y)) < flip, other, y)
    moved = y + rng.normal(0.0, np.sqrt(sigma2), size=len(y))
    moved = np.clip(moved, y_pool.min(), y_pool.max())
    if target.whole:
        moved = (np.rint(moved * target.span + target.low) - target.low) / target.span
    return moved


def _augment(
    models: FoldModels,
    bad: np.ndarray,
    y_bad: np.ndarray,
    pool: np.ndarray,
    y_pool: np.ndarray,
    side: str,
    notes: list[str],
) -> tuple[MadeRows, int]:
    config = models.config.search
    nothing = np.zeros(0, dtype=int)
    if not models.baseline.can_search:
        notes.append(f"{side}: no search, since F is a file of predictions and cannot be asked")
        return judge(models, bad[nothing], y_bad[nothing], nothing), 0
    copies = min(config.copies, max(1, config.max_rows // len(bad)))
    rng = stream(models.config.seed, *models.key, side, "augment")
    chosen = np.arange(len(bad))
    if len(bad) > config.max_rows:
        chosen = np.sort(rng.choice(len(bad), config.max_rows, replace=False))
        notes.append(f"{side}: {len(chosen)} of {len(bad)} bad rows were searched (max_rows)")
    parent = np.repeat(chosen, copies)
    if len(parent) == 0:
        return judge(models, bad[nothing], y_bad[nothing], nothing), 0
    target = models.target
    y = perturb_targets(y_bad[parent], y_pool, target, config.sigma2, config.flip, rng)
    m = models.encoder.n_categorical_
    domain = make_domain(pool, models.Z, models.y, target.n_classes, m)
    best = bad[parent]
    if config.pressure > 0:  # at 0 only the distance counts: the bad point itself is the optimum
        engine = search
        if config.engine == "deap":
            from amlb_ext.hardening.deap_engine import search_deap

            engine = search_deap
        seed = derive_seed(models.config.seed, *models.key, side, "search")
        oracle = models.oracle.predict if config.fitness == "reducible" else None
        best, _ = engine(models.baseline.predict, best, y, domain, config, seed, oracle)
    noise = rng.normal(0.0, config.jitter, size=best[:, m:].shape) if config.jitter else 0.0
    best[:, m:] = np.clip(best[:, m:] + noise, domain.low[m:], domain.high[m:])
    made = judge(models, best, y, parent)
    keep = _kept(models, made) & ~_repeats(made.Z, made.y, bad, y_bad)
    return made.take(np.flatnonzero(keep)), len(parent)


def _repeats(Z: np.ndarray, y: np.ndarray, bad: np.ndarray, y_bad: np.ndarray) -> np.ndarray:
    """Which made rows repeat a bad row or an earlier made row, features and target."""
    rows = np.vstack([np.column_stack([bad, y_bad]), np.column_stack([Z, y])])
    rows = np.round(np.where(np.isnan(rows), -9e9, rows), 12)
    _, first = np.unique(rows, axis=0, return_index=True)
    fresh = np.zeros(len(rows), dtype=bool)
    fresh[first] = True
    return ~fresh[len(bad) :]


def _synthesize(
    models: FoldModels,
    bad: np.ndarray,
    y_bad: np.ndarray,
    augmented: MadeRows,
    side: str,
    notes: list[str],
) -> tuple[MadeRows, int]:
    config = models.config.synthesizer
    wanted = min(config.max_rows, round(config.times * max(len(augmented), len(bad))))
    if wanted == 0:
        nothing = np.zeros(0, dtype=int)
        return judge(models, bad[nothing], y_bad[nothing], nothing), 0
    Z = np.vstack([bad, augmented.Z])
    y = np.concatenate([y_bad, augmented.y])
    parent = np.concatenate([np.arange(len(bad)), augmented.parent])
    if len(Z) < config.min_rows and config.name != "local":
        notes.append(
            f"{side}: {len(Z)} rows to learn from, fewer than {config.min_rows}: "
            f"the synthesizer 'local' stood in for {config.name!r}"
        )
        config = config.model_copy(update={"name": "local"})
    rng = stream(models.config.seed, *models.key, side, "synthesize")
    synthesizer = make_synthesizer(config)
    synthesizer.fit(Z, y, cards=models.encoder.cards_, n_classes=models.target.n_classes, rng=rng)
    nearest = NearestNeighbors(n_neighbors=1).fit(fill_missing(Z))
    parts: list[MadeRows] = []
    have = 0
    for _ in range(SAMPLING_ROUNDS):
        new, labels = synthesizer.sample(wanted - have, rng)
        if models.target.whole:
            labels = np.rint(labels * models.target.span + models.target.low)
            labels = (labels - models.target.low) / models.target.span
        closest = nearest.kneighbors(fill_missing(new), return_distance=False)[:, 0]
        made = judge(models, new, labels, parent[closest])
        keep = _kept(models, made) & ~_repeats(made.Z, made.y, bad, y_bad)
        parts.append(made.take(np.flatnonzero(keep)))
        have += len(parts[-1])
        if have >= wanted:
            break
    merged = MadeRows(
        *(np.concatenate([getattr(p, n) for p in parts]) for n in MadeRows.__dataclass_fields__)
    )
    return merged, wanted
