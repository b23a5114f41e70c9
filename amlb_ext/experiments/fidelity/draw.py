"""One repetition of the study: a small labelled set S, and a large held-out pool beside it.

Notation
--------
m : candidates;  the last model is always a twin of F, the null control
delta : (n, m + 1) loss of each model minus loss of F
S : labelled rows, the first n of them a "small test set";  U : unlabelled real rows
b : bad under the rule K;  w : P(bad | x) learnt on the training rows;  T : the teacher

A draw's references, all on the pool, which nothing else sees: ``realised`` rows that are bad,
``region`` rows weighted by P(bad | x) as learnt *on the pool itself*, out of fold, ``weighted``
rows weighted by w, ``all`` every row alike.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

from amlb_ext.core import row_losses
from amlb_ext.core.config import GenerateConfig, build_config
from amlb_ext.core.errors import DataError
from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.core.task import Fold, Task
from amlb_ext.experiments.fidelity.protocol import Protocol
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline, fill_missing
from amlb_ext.hardening.hardness import raw_hardness
from amlb_ext.hardening.made_rows.population_teacher import Teacher
from amlb_ext.hardening.prepare import Prepared, prepare
from amlb_ext.stats.weighted_mean import MeanEstimate, weighted_mean_interval
from amlb_ext.validity.candidates import candidate_zoo, fit_zoo
from amlb_ext.validity.refits import refit_baseline


@dataclass(frozen=True)
class Points:
    """Rows and all that depends on their features alone.

    Attributes
    ----------
    Z : ndarray of shape (n, d)
    f : ndarray of shape (n,) or (n, C)
        F's predictions.
    g : ndarray of shape (m + 1, n) or (m + 1, n, C)
        The models' predictions.
    outcomes, chance : ndarray of shape (n, q)
        What the teacher thinks the target may be, and how probable.
    t : ndarray of shape (n,) or (n, C)
        The teacher's mean.
    w : ndarray of shape (n,)
    """

    Z: np.ndarray
    f: np.ndarray
    g: np.ndarray
    outcomes: np.ndarray
    chance: np.ndarray
    t: np.ndarray
    w: np.ndarray

    def __len__(self) -> int:
        return len(self.Z)

    def take(self, rows: np.ndarray) -> Points:
        """Return some rows."""
        kept = {
            f.name: getattr(self, f.name)[rows]
            for f in dataclasses.fields(self)
            if f.name != "g"
        }
        return Points(g=self.g[:, rows], **kept)

    def delta(self, y: np.ndarray) -> np.ndarray:
        """Return ``(n, m + 1)`` differences of loss for targets y."""
        base = row_losses.row_loss(y, self.f)
        return np.column_stack([row_losses.row_loss(y, g) - base for g in self.g])


@dataclass(frozen=True)
class Draw:
    """Models and rows of one repetition; see the module's notation."""

    table: str
    seed: int
    baseline: str
    names: tuple[str, ...]
    task: Task
    config: GenerateConfig
    ready: Prepared
    models: tuple[EstimatorBaseline, ...]
    teacher: Teacher
    labelled: Points
    y: np.ndarray
    unlabelled: Points
    references: dict[str, np.ndarray]
    about: dict[str, float]
    shared: dict[str, Any] = field(default_factory=dict)

    def points(self, Z: np.ndarray) -> Points:
        """Score any encoded rows."""
        return _points(self.ready, self.models, self.teacher, Z)

    def bad(self, points: Points, y: np.ndarray) -> np.ndarray:
        """Return K of rows with targets y, ``(n,)`` bool."""
        rule = self.ready.models.rule
        return rule.select(
            rule.hardness(y[:, None], points.f[:, None], points.t[:, None])
        )


def make_draw(task: Task, table: str, seed: int, protocol: Protocol) -> Draw:
    """Split a table, fit everything on the training rows, and compute the references.

    Raises
    ------
    DataError
        The table has too few rows.
    """
    sizes = protocol.sizes
    labelled = max(sizes.labelled)
    need = sizes.train + labelled + sizes.unlabelled + sizes.least_pool
    if len(task) < need:
        raise DataError(
            f"{table} has {len(task)} rows; train, labelled, unlabelled and pool need {need}",
            "lower them under 'sizes' in a protocol of your own; hardsynth study protocol prints "
            "one to start from",
        )
    order = random_stream(seed, table, "study split").permutation(len(task))
    cuts = np.cumsum([sizes.train, labelled, sizes.unlabelled, sizes.pool])
    train, near, far, pool = np.split(order, cuts)[:4]
    split = task.with_folds((Fold(train, near),)).renamed(table)
    chosen = protocol.baselines[seed % len(protocol.baselines)]
    rule = protocol.rules.classification
    if not task.kind.is_classification:
        rule = protocol.rules.regression
    config = build_config(
        {
            "seed": seed,
            "baseline": chosen.model_dump(),
            "hardness": {"rule": rule, "share": protocol.share, "floor": 1.0},
        }
    )
    ready = prepare([split], 0, config)
    names, models = _models(ready, protocol, seed, table)
    [own_models] = ready.models.targets
    teacher = Teacher(own_models.oracle, ready.models.Z, ready.models.y[:, 0])
    encoder, target = ready.models.encoder, own_models.scale

    def known(rows: np.ndarray) -> tuple[Points, np.ndarray]:
        Z = encoder.transform(split.features.iloc[rows])
        return _points(ready, models, teacher, Z), target.transform(
            split.target.iloc[rows]
        )

    on_pool, y_pool = known(pool)
    rule_k = ready.models.rule
    bad = rule_k.select(
        rule_k.hardness(y_pool[:, None], on_pool.f[:, None], on_pool.t[:, None])
    )
    references = _references(on_pool, y_pool, bad, seed)
    near_points, y = known(near)
    about = {"pool": float(len(pool)), "bad_share": float(bad.mean())}
    about |= {
        f"twin_{name}": float(r[-1] / np.abs(r[:-1]).mean())
        for name, r in references.items()
    }
    label = "_".join(
        [chosen.model, *(f"{k}={v}" for k, v in sorted(chosen.params.items()))]
    )
    return Draw(table, seed, label, names, split, config, ready, models, teacher, near_points, y,
                known(far)[0], references, about)  # fmt: skip


def _models(
    ready: Prepared, protocol: Protocol, seed: int, table: str
) -> tuple[tuple[str, ...], tuple[EstimatorBaseline, ...]]:
    fold = ready.models
    base = fold.targets[0].baseline
    assert isinstance(base, EstimatorBaseline)
    shape = (base.kind, base.n_classes, base.n_categorical)
    key = derive_seed(seed, table, "study zoo") % 2**31
    specs = candidate_zoo(base.kind, protocol.zoo)
    y = fold.y[:, 0]
    fitted, _ = fit_zoo(specs, *shape, fold.Z, y, key, most=None)
    twins, _ = refit_baseline(base, fold.Z, y, 1, seed, (table, "study"))
    return (*fitted, "twin of F"), (*fitted.values(), *twins)


def _points(
    ready: Prepared,
    models: tuple[EstimatorBaseline, ...],
    teacher: Teacher,
    Z: np.ndarray,
) -> Points:
    [own_models] = ready.models.targets
    f = own_models.baseline.predict(Z)
    g = np.stack([model.predict(Z) for model in models])
    t = own_models.oracle.predict(Z)
    outcomes, chance = teacher.outcomes(Z, t)
    return Points(Z, f, g, outcomes, chance, t, ready.region.weights(Z))


def _references(
    pool: Points, y: np.ndarray, bad: np.ndarray, seed: int
) -> dict[str, np.ndarray]:
    delta = pool.delta(y)
    if not bad.any() or bad.all():
        raise DataError(
            "no row of the pool is bad, or every one", "choose another share or rule"
        )
    forest = RandomForestClassifier(
        60, min_samples_leaf=25, max_features=0.5, random_state=seed
    )
    own = cross_val_predict(
        forest, fill_missing(pool.Z), bad, cv=3, method="predict_proba"
    )[:, 1]
    weights = {
        "realised": bad.astype(float),
        "region": own + 1e-4,
        "weighted": pool.w,
        "all": np.ones(len(y)),
    }
    return {name: w @ delta / w.sum() for name, w in weights.items()}


@dataclass(frozen=True)
class Answer:
    """What one way of building a benchmark says of each model.

    Attributes
    ----------
    point : ndarray of shape (m + 1,)
        Estimated delta.
    low, high : ndarray of shape (m + 1,)
        95 % interval; NaN where the method has none.
    rows : int
    """

    point: np.ndarray
    low: np.ndarray
    high: np.ndarray
    rows: int

    @classmethod
    def of(cls, each: Sequence[MeanEstimate], rows: int) -> Answer:
        """Return the answer of one estimate per model."""
        point, low, high = (
            np.array([getattr(e, name) for e in each])
            for name in ("point", "low", "high")
        )
        return cls(point, low, high, rows)


def from_rows(
    delta: np.ndarray,
    weights: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
) -> Answer | None:
    """Return weighted means with intervals clustered by the real row; None without rows."""
    if not len(delta):
        return None
    each = [weighted_mean_interval(column, weights, clusters) for column in delta.T]
    return Answer.of(each, len(delta))


def without_interval(point: np.ndarray, rows: int) -> Answer:
    """Return a score that has no interval."""
    nothing = np.full(len(point), np.nan)
    return Answer(point, nothing, nothing, rows)


def reducible_gap(points: Points) -> np.ndarray:
    """Return v(x) = (T - F)^2."""
    no_label = np.zeros(len(points.f))
    return raw_hardness("reducible", no_label, points.f, points.t)
