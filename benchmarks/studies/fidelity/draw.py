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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

from amlb_ext.core import row_losses
from amlb_ext.core.config import build_config
from amlb_ext.core.errors import DataError
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.task import Fold, Task
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline, fill_missing
from amlb_ext.hardening.made_rows.population_teacher import Teacher
from amlb_ext.hardening.prepare import cross_fit, prepare
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
        taken = {name: own[rows] for name, own in vars(self).items() if name != "g"}
        # its first axis is that of the models
        return Points(**taken, g=self.g[:, rows])

    def delta(self, y: np.ndarray) -> np.ndarray:
        """Return ``(n, m + 1)`` differences of loss for targets y."""
        loss_of_f = row_losses.row_loss(y, self.f)
        columns = [row_losses.row_loss(y, g) - loss_of_f for g in self.g]
        return np.column_stack(columns)


class Draw:
    """Models and rows of one repetition; see the module's notation.

    Everything is fitted on the training rows; the references come from rows that no method sees.

    Parameters
    ----------
    task : Task
    table : str
    seed : int
    protocol : Protocol

    Attributes
    ----------
    baseline : str
        F and its settings, as results name it.
    task : Task
        With one fold: the training rows, and S as the test rows.
    config : GenerateConfig
    cross : CrossFit
    prepared : Prepared
    models : dict of str to EstimatorBaseline
        The twin of F last.
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

    Raises
    ------
    DataError
        The table has too few rows.
    """

    def __init__(self, task: Task, table: str, seed: int, protocol: Protocol) -> None:
        self.table, self.seed = table, seed
        self.shared: dict[str, Any] = {}
        train, near, far, pool = _split_rows(task, table, seed, protocol)
        self.task = task.with_folds((Fold(train, near),)).renamed(table)
        # the baselines of a protocol take turns, so that no result rests on one F
        chosen = protocol.baselines[seed % len(protocol.baselines)]
        params = [f"{key}={value}" for key, value in sorted(chosen.params.items())]
        self.baseline = "_".join([chosen.model, *params])
        rules = protocol.rules
        is_class = task.kind.is_classification
        rule = rules.classification if is_class else rules.regression
        hardness = {"rule": rule, "share": protocol.share}
        self.config = build_config(
            {"seed": seed, "baseline": chosen.model_dump(), "hardness": hardness}
        )
        # F, T, the rule K and the region, from the training rows alone
        self.cross = cross_fit([self.task], 0, self.config)
        self.prepared = prepare([self.task], 0, self.config, self.cross)
        fold = self.prepared.models
        self.models = self._fit_candidates(protocol)
        self.teacher = Teacher(fold.targets[0].oracle, fold.Z, fold.y[:, 0])

        pool_points, pool_y = self._score_real_rows(pool)
        is_bad = self.is_bad(pool_points, pool_y)
        self.references = _reference_deltas(pool_points, pool_y, is_bad, seed)
        self.labelled, self.y = self._score_real_rows(near)
        self.unlabelled, _ = self._score_real_rows(far)
        self.facts = {"pool": float(len(pool)), "bad_share": float(is_bad.mean())}
        for name, reference in self.references.items():
            # the twin's distance from F in units of a candidate's: how much is chance
            candidate_size = np.abs(reference[:-1]).mean()
            self.facts[f"twin_{name}"] = float(reference[-1] / candidate_size)

    def score_rows(
        self, Z: np.ndarray, models: Sequence[EstimatorBaseline] = ()
    ) -> Points:
        """Score any encoded rows by F, the teacher and the draw's models, or by others."""
        [target_models] = self.prepared.models.targets
        t = target_models.oracle.predict(Z)
        outcomes, chance = self.teacher.outcomes(Z, t)
        asked = models or self.models.values()
        return Points(
            Z=Z,
            f=target_models.baseline.predict(Z),
            g=np.stack([model.predict(Z) for model in asked]),
            outcomes=outcomes,
            chance=chance,
            t=t,
            w=self.prepared.region.weights(Z),
        )

    def is_bad(self, points: Points, y: np.ndarray) -> np.ndarray:
        """Return K of rows with targets y, ``(n,)`` bool."""
        rule = self.prepared.models.rule
        # the rule reads rows with an axis of targets, and a study's task has one target
        hardness = rule.hardness(y[:, None], points.f[:, None], points.t[:, None])
        return rule.select(hardness)

    def _score_real_rows(self, rows: np.ndarray) -> tuple[Points, np.ndarray]:
        fold = self.prepared.models
        Z = fold.encoder.transform(self.task.features.iloc[rows])
        y = fold.targets[0].scale.transform(self.task.target.iloc[rows])
        return self.score_rows(Z), y

    def _fit_candidates(self, protocol: Protocol) -> dict[str, EstimatorBaseline]:
        """Return fits of all candidates, and of the twin of F as the last."""
        fold = self.prepared.models
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
            seed=derive_int_seed(self.seed, self.table, "study zoo"),
            most=None,
        )
        key = (self.table, "study")
        [twin], _ = refit_baseline(
            baseline, fold.Z, y, refits=1, seed=self.seed, key=key
        )
        return {**candidates, "twin of F": twin}


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
