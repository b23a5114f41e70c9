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

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

from amlb_ext.core import row_losses
from amlb_ext.core.config import BaselineConfig, GenerateConfig, build_config
from amlb_ext.core.errors import DataError
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.task import Fold, Task
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline, fill_missing
from amlb_ext.hardening.hardness import raw_hardness
from amlb_ext.hardening.made_rows.population_teacher import Teacher
from amlb_ext.hardening.prepare import CrossFit, Prepared, cross_fit, prepare
from amlb_ext.validity.candidates import candidate_zoo, fit_zoo
from amlb_ext.validity.task_rows import refit_baseline
from benchmarks.studies.fidelity.protocol import Protocol

Kept = TypeVar("Kept")


def once(shared: dict[Any, Any], key: Any, make: Callable[[], Kept]) -> Kept:
    """Return what several methods need, made by the first that asks."""
    if key not in shared:
        shared[key] = make()
    kept: Kept = shared[key]
    return kept


#: Added to P(bad | x) of the reference ``region``: a forest's 0 does not rule a failure out.
LEAST_CHANCE = 1e-4


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

    def take_rows(self, rows: np.ndarray) -> Points:
        """Return some rows, by position."""
        return Points(
            Z=self.Z[rows],
            f=self.f[rows],
            g=self.g[:, rows],  # its first axis is that of the models
            outcomes=self.outcomes[rows],
            chance=self.chance[rows],
            t=self.t[rows],
            w=self.w[rows],
        )

    def delta(self, y: np.ndarray) -> np.ndarray:
        """Return ``(n, m + 1)`` differences of loss for targets y."""
        loss_of_f = row_losses.row_loss(y, self.f)
        columns = [row_losses.row_loss(y, g) - loss_of_f for g in self.g]
        return np.column_stack(columns)


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Models and rows of one repetition; see the module's notation.

    Attributes
    ----------
    table : str
    seed : int
    baseline : str
        F and its settings, as results name it.
    names : tuple of str
        Of the models, the twin of F last.
    task : Task
        With one fold: the training rows, and S as the test rows.
    config : GenerateConfig
    cross : CrossFit
    prepared : Prepared
    models : tuple of EstimatorBaseline
    teacher : Teacher
    labelled : Points
    y : ndarray
        Targets of ``labelled``.
    unlabelled : Points
    references : dict of str to ndarray of shape (m + 1,)
    facts : dict of str to float
        What a record says of the draw itself.
    shared : dict
        What several samples of the draw compute once.
    """

    table: str
    seed: int
    baseline: str
    names: tuple[str, ...]
    task: Task
    config: GenerateConfig
    cross: CrossFit
    prepared: Prepared
    models: tuple[EstimatorBaseline, ...]
    teacher: Teacher
    labelled: Points
    y: np.ndarray
    unlabelled: Points
    references: dict[str, np.ndarray]
    facts: dict[str, float]
    shared: dict[str, Any] = field(default_factory=dict)

    def score_rows(self, Z: np.ndarray) -> Points:
        """Score any encoded rows."""
        return score_rows_by(self.prepared, self.models, self.teacher, Z)

    def is_bad(self, points: Points, y: np.ndarray) -> np.ndarray:
        """Return K of rows with targets y, ``(n,)`` bool."""
        return _is_bad(self.prepared, points, y)


def make_draw(task: Task, table: str, seed: int, protocol: Protocol) -> Draw:
    """Split a table, fit everything on the training rows, and compute the references.

    Parameters
    ----------
    task : Task
    table : str
    seed : int
    protocol : Protocol

    Raises
    ------
    DataError
        The table has too few rows.
    """
    train, near, far, pool = _split_rows(task, table, seed, protocol)
    split = task.with_folds((Fold(train, near),)).renamed(table)
    # the baselines of a protocol take turns, so that no result rests on one F
    chosen = protocol.baselines[seed % len(protocol.baselines)]
    config = _draw_config(task, chosen, seed, protocol)
    # F, T, the rule K and the region, from the training rows alone
    cross = cross_fit([split], 0, config)
    prepared = prepare([split], 0, config, cross)
    names, models = _fit_candidates(prepared, protocol, seed, table)
    [target_models] = prepared.models.targets
    teacher = Teacher(target_models.oracle, prepared.models.Z, prepared.models.y[:, 0])

    def score_real_rows(rows: np.ndarray) -> tuple[Points, np.ndarray]:
        Z = prepared.models.encoder.transform(split.features.iloc[rows])
        y = target_models.scale.transform(split.target.iloc[rows])
        return score_rows_by(prepared, models, teacher, Z), y

    # the references first, from rows that no method will see
    pool_points, pool_y = score_real_rows(pool)
    pool_is_bad = _is_bad(prepared, pool_points, pool_y)
    references = _reference_deltas(pool_points, pool_y, pool_is_bad, seed)
    labelled, labelled_y = score_real_rows(near)
    facts = {"pool": float(len(pool)), "bad_share": float(pool_is_bad.mean())}
    for name, reference in references.items():
        # the twin's distance from F in units of a candidate's: how much is chance
        candidate_size = np.abs(reference[:-1]).mean()
        facts[f"twin_{name}"] = float(reference[-1] / candidate_size)
    return Draw(
        table=table,
        seed=seed,
        baseline=_baseline_label(chosen),
        names=names,
        task=split,
        config=config,
        cross=cross,
        prepared=prepared,
        models=models,
        teacher=teacher,
        labelled=labelled,
        y=labelled_y,
        unlabelled=score_real_rows(far)[0],
        references=references,
        facts=facts,
    )


def reducible_gap(points: Points) -> np.ndarray:
    """Return v(x) = (T - F)^2."""
    # the kind "reducible" reads no label
    no_label = np.zeros(len(points.f))
    return raw_hardness("reducible", no_label, points.f, points.t)


def _split_rows(
    task: Task, table: str, seed: int, protocol: Protocol
) -> list[np.ndarray]:
    """Return positions of training, labelled, unlabelled and pool rows."""
    sizes = protocol.sizes
    labelled = max(sizes.labelled)
    n_needed = sizes.train + labelled + sizes.unlabelled + sizes.least_pool
    if len(task) < n_needed:
        raise DataError(
            f"{table} has {len(task)} rows; train, labelled, unlabelled and pool need "
            f"{n_needed}",
            "lower them under 'sizes' in a protocol of your own; copy one of "
            "benchmarks/studies/*.yaml",
        )
    order = random_stream(seed, table, "study split").permutation(len(task))
    cuts = np.cumsum([sizes.train, labelled, sizes.unlabelled, sizes.pool])
    # a fifth part, the rows beyond a full pool, is not used
    return np.split(order, cuts)[:4]


def _draw_config(
    task: Task, baseline: BaselineConfig, seed: int, protocol: Protocol
) -> GenerateConfig:
    rule = protocol.rules.regression
    if task.kind.is_classification:
        rule = protocol.rules.classification
    hardness = {"rule": rule, "share": protocol.share}
    return build_config(
        {"seed": seed, "baseline": baseline.model_dump(), "hardness": hardness}
    )


def _baseline_label(baseline: BaselineConfig) -> str:
    params = [f"{key}={value}" for key, value in sorted(baseline.params.items())]
    return "_".join([baseline.model, *params])


def _fit_candidates(
    prepared: Prepared, protocol: Protocol, seed: int, table: str
) -> tuple[tuple[str, ...], tuple[EstimatorBaseline, ...]]:
    """Return names and fits of all candidates, and of the twin of F as the last."""
    fold = prepared.models
    baseline = fold.targets[0].baseline
    # the twin is a re-fit of F, which a file of predictions does not allow
    assert isinstance(baseline, EstimatorBaseline)
    y = fold.y[:, 0]
    candidates, _ = fit_zoo(
        candidate_zoo(baseline.kind, protocol.zoo),
        kind=baseline.kind,
        n_classes=baseline.n_classes,
        n_categorical=baseline.n_categorical,
        Z=fold.Z,
        y=y,
        seed=derive_int_seed(seed, table, "study zoo"),
        most=None,
    )
    twins, _ = refit_baseline(
        baseline,
        fold.Z,
        y,
        refits=1,
        seed=seed,
        key=(table, "study"),
    )
    return (*candidates, "twin of F"), (*candidates.values(), *twins)


def score_rows_by(
    prepared: Prepared,
    models: tuple[EstimatorBaseline, ...],
    teacher: Teacher,
    Z: np.ndarray,
) -> Points:
    """Score encoded rows by F, the teacher and any models."""
    [target_models] = prepared.models.targets
    t = target_models.oracle.predict(Z)
    outcomes, chance = teacher.outcomes(Z, t)
    return Points(
        Z=Z,
        f=target_models.baseline.predict(Z),
        g=np.stack([model.predict(Z) for model in models]),
        outcomes=outcomes,
        chance=chance,
        t=t,
        w=prepared.region.weights(Z),
    )


def _is_bad(prepared: Prepared, points: Points, y: np.ndarray) -> np.ndarray:
    rule = prepared.models.rule
    # the rule reads rows with an axis of targets, and a study's task has one target
    hardness = rule.hardness(y[:, None], points.f[:, None], points.t[:, None])
    return rule.select(hardness)


def _reference_deltas(
    pool: Points, y: np.ndarray, is_bad: np.ndarray, seed: int
) -> dict[str, np.ndarray]:
    """Return each reference's delta per model, ``(m + 1,)``."""
    if not is_bad.any() or is_bad.all():
        raise DataError(
            "either no row of the pool is bad or all are",
            "choose another share or rule",
        )
    # P(bad | x) of the pool itself, out of fold, so that no row's own label weighs it
    forest = RandomForestClassifier(
        60, min_samples_leaf=25, max_features=0.5, random_state=seed
    )
    probabilities = cross_val_predict(
        forest,
        fill_missing(pool.Z),
        is_bad,
        cv=3,
        method="predict_proba",
    )
    weights = {
        "realised": is_bad.astype(float),
        "region": probabilities[:, 1] + LEAST_CHANCE,
        "weighted": pool.w,
        "all": np.ones(len(y)),
    }
    delta = pool.delta(y)
    return {name: w @ delta / w.sum() for name, w in weights.items()}
