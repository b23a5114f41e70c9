"""Fits what a certificate needs on each fold's training file, and pools the losses over folds.

What is read are the suite's own files, as AMLB would give them to a candidate. The losses of F and
of its re-fits stand in the files' provenance; where they do not, F is fitted again here.

Notation
--------
m candidates, R twins of F; all losses are Brier or squared error on the scaled target, see
:mod:`amlb_ext.core.row_losses`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial

import numpy as np
import pandas as pd

from amlb_ext.core import row_losses
from amlb_ext.core.config import AgreementConfig
from amlb_ext.core.parallel import run_jobs
from amlb_ext.core.rng import derive_seed
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.baseline.registry import ModelSpec
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.suite import Rows
from amlb_ext.validity.candidates import (
    JUDGES,
    QUICK_ROWS,
    WHOLE,
    Size,
    candidate_zoo,
    candidates_beside,
    fit_zoo,
)
from amlb_ext.validity.label_measures import judge_labels
from amlb_ext.validity.measures import Losses
from amlb_ext.validity.realism_measures import ScaledTable
from amlb_ext.validity.refits import baseline_spec, refit_baseline, stored_refits
from amlb_ext.validity.task_rows import PARTS, TaskRows
from amlb_ext.validity.unlabelled import FoldView, Unlabelled, view_fold


@dataclass(frozen=True, kw_only=True)
class ScoredRows:
    """Rows of one part, pooled over folds, with every loss; see the module's notation.

    Attributes
    ----------
    losses : Losses
        G (n, m), F (n,), c (n,).
    twins : ndarray of shape (n, R)
    fold, weight, reducible, bad, recorded, support, agrees : ndarray of shape (n,)
        ``recorded`` is the generation's own opinion of the label, ``agrees`` a fresh oracle's;
        ``support`` see :func:`amlb_ext.validity.label_measures.judge_labels`.
    table : ScaledTable
    """

    losses: Losses
    twins: np.ndarray
    fold: np.ndarray
    weight: np.ndarray
    reducible: np.ndarray
    bad: np.ndarray
    recorded: np.ndarray
    support: np.ndarray
    agrees: np.ndarray
    table: ScaledTable

    def __len__(self) -> int:
        return len(self.fold)


@dataclass(frozen=True, kw_only=True)
class TaskEvaluation:
    """All parts of a task with the losses of all models.

    Attributes
    ----------
    names : list of str
        Candidates that could be fitted on every fold.
    parts : dict of str to ScoredRows
        By suffix.
    dropped : dict of str to str
        Why a candidate could not be fitted.
    notes : tuple of str
    views : tuple of FoldView
        Unlabelled rows as each fold's models see them; empty without any.
    capped : str
        Which candidates saw fewer training rows than F; empty for none.
    """

    names: list[str]
    parts: dict[str, ScoredRows]
    dropped: dict[str, str]
    notes: tuple[str, ...]
    views: tuple[FoldView, ...]
    capped: str


def evaluate_task(
    rows: TaskRows,
    *,
    size: Size,
    refits: int,
    seed: int,
    candidates: Mapping[str, ModelSpec] | None = None,
    far: Unlabelled | None = None,
    workers: int = 1,
) -> TaskEvaluation:
    """Fit candidates, F and its twins on every fold and score all parts.

    Parameters
    ----------
    rows : TaskRows
    size : {'quick', 'full'}
    refits : int
        R.
    seed : int
    candidates : mapping of str to ModelSpec, optional
        In place of the zoo.
    far : Unlabelled, optional
        Real rows without labels.
    workers : int
        Processes, a fold each; they change nothing but time.
    """
    f_spec = baseline_spec(rows.settings, rows.kind)
    specs = dict(candidates or candidates_beside(f_spec, rows.kind, size))
    # a user's own candidates see all rows that F saw, whatever that costs
    whole = frozenset(specs if candidates else WHOLE)
    request = _FoldRequest(
        specs=specs,
        size=size,
        refits=refits,
        seed=seed,
        has_stored_refits=stored_refits(rows, refits),
        far=far,
        whole=whole,
    )
    folds = sorted(rows.folds)  # the order in which losses of folds are pooled
    # a job carries the rows of its own fold alone
    jobs = [
        (replace(rows, folds={fold: rows.folds[fold]}), fold, request) for fold in folds
    ]
    by_job = dict(run_jobs(score_fold, jobs, min(workers, len(jobs))))
    scores = [by_job[number] for number in range(len(jobs))]

    dropped: dict[str, str] = {}
    notes = []
    if f_spec is None:
        notes.append("F is a file and cannot be fitted again: there is no null control")
    views = []
    for fold_scores in scores:
        dropped.update(fold_scores.dropped)
        notes += fold_scores.notes
        views += fold_scores.views
    names = [name for name in specs if name not in dropped]
    return TaskEvaluation(
        names=names,
        parts=_pooled_parts(
            rows, folds, scores, kept=[list(specs).index(name) for name in names]
        ),
        dropped=dropped,
        notes=tuple(notes),
        views=tuple(views),
        capped=_capped_note(rows, [name for name in specs if name not in whole], size),
    )


def _capped_note(rows: TaskRows, fewer: Sequence[str], size: Size) -> str:
    """Return which candidates saw fewer training rows than F; empty for none."""
    most = max((len(train) for train, _ in rows.folds.values()), default=0)
    if size != "quick" or not fewer or most <= QUICK_ROWS:
        return ""
    return (
        f"{', '.join(fewer)} saw at most {QUICK_ROWS} training rows, the other candidates as "
        f"many as F (up to {most}); 'hardsynth certify DIR --size full' gives all rows to all"
    )


def _pooled_parts(
    rows: TaskRows, folds: Sequence[int], scores: Sequence[_FoldScores], kept: list[int]
) -> dict[str, ScoredRows]:
    """Pool each part over the folds that have it, with the losses of the candidates kept."""
    # one scale for all parts: how far the judges are off on all real rows
    rmse = 0.0
    if not rows.labels:
        full = _stacked([fold_scores.parts["full"] for fold_scores in scores])
        rmse = float(np.sqrt(((full.oracle - full.y) ** 2).mean()))
    agreement = AgreementConfig(**rows.settings["agreement"])
    scaler = _TableScaler(rows)
    pooled = {}
    for part in PARTS:
        present = [
            number for number, answer in enumerate(scores) if part in answer.parts
        ]
        if not present:
            continue
        stacked = _stacked([scores[number].parts[part] for number in present])
        tests = [rows.folds[folds[number]][1][part] for number in present]
        support, agrees = judge_labels(
            stacked.oracle, stacked.y, rmse, agreement, len(rows.labels)
        )
        pooled[part] = ScoredRows(
            losses=Losses(stacked.G[:, kept], stacked.F, stacked.clusters),
            twins=stacked.twins,
            fold=stacked.fold,
            weight=stacked.weight,
            reducible=stacked.reducible,
            bad=stacked.bad,
            recorded=stacked.recorded,
            support=support,
            agrees=agrees,
            # the parts are scored on each fold's own scale, but looked at on one
            table=scaler.table(tests, stacked.clusters),
        )
    return pooled


class _TableScaler:
    """Real and made rows as numbers on one scale, that of all real test rows of the task."""

    def __init__(self, rows: TaskRows) -> None:
        tests = [parts["full"] for _, parts in rows.folds.values()]
        features = pd.concat([test.features for test in tests])
        target = pd.concat([test.target for test in tests])
        self.encoder = Encoder(rows.columns, known="table").fit(features)
        self.target = TargetEncoder(rows.kind, rows.labels, target)
        # categories come first, the target last
        self.codes = (
            np.arange(len(self.encoder.names_) + 1) < self.encoder.n_categorical_
        )
        self.codes[-1] = rows.kind.is_classification

    def table(self, tests: Sequence[Rows], clusters: np.ndarray) -> ScaledTable:
        """Return the rows of several folds as one table."""
        blocks = []
        for test in tests:
            Z, y = (
                self.encoder.transform(test.features),
                self.target.transform(test.target),
            )
            blocks.append(np.column_stack([Z, y]))
        return ScaledTable(np.concatenate(blocks), clusters, self.codes)


@dataclass(frozen=True, kw_only=True)
class _FoldRequest:
    """What every fold is asked.

    ``has_stored_refits`` when the losses of F's re-fits stand in the files; ``whole`` are the
    candidates that see all training rows.
    """

    specs: Mapping[str, ModelSpec]
    size: Size
    refits: int
    seed: int
    has_stored_refits: bool
    far: Unlabelled | None
    whole: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class _PartScores:
    """One part in one fold, row for row; see the module's notation and :class:`ScoredRows`.

    ``oracle`` is the mean prediction of the judges, T.
    """

    G: np.ndarray
    F: np.ndarray
    twins: np.ndarray
    oracle: np.ndarray
    y: np.ndarray
    clusters: np.ndarray
    fold: np.ndarray
    weight: np.ndarray
    reducible: np.ndarray
    bad: np.ndarray
    recorded: np.ndarray


def _stacked(parts: Sequence[_PartScores]) -> _PartScores:
    columns = {}
    for column in fields(_PartScores):
        columns[column.name] = np.concatenate(
            [getattr(part, column.name) for part in parts]
        )
    return _PartScores(**columns)


@dataclass(frozen=True, kw_only=True)
class _FoldScores:
    """What one fold answers, by part of the task."""

    parts: dict[str, _PartScores]
    dropped: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    views: tuple[FoldView, ...] = ()


def score_fold(rows: TaskRows, fold: int, request: _FoldRequest) -> _FoldScores:
    """Fit the models of one fold and score its parts; a job of :func:`evaluate_task`."""
    train, parts = rows.folds[fold]
    models = _FoldScorer(rows, fold, train, request)
    views = []
    far = request.far
    if far is not None and models.baseline is not None and not far.support.refused:
        views.append(
            view_fold(
                rows, fold, train=train, test=parts["full"], far=far, models=models
            )
        )
    return _FoldScores(
        parts={part: models.score(test) for part, test in parts.items() if len(test)},
        dropped=models.dropped,
        notes=(models.refit_problem,) if models.refit_problem else (),
        views=tuple(views),
    )


class _FoldScorer:
    """The models of one fold: candidates, judges, F and its twins."""

    def __init__(
        self, rows: TaskRows, fold: int, train: Rows, request: _FoldRequest
    ) -> None:
        f_spec = baseline_spec(rows.settings, rows.kind)
        self.fold = fold
        self.names = list(request.specs)
        self.refits = request.refits if f_spec else 0
        self.has_stored_refits = request.has_stored_refits and f_spec is not None
        self.encoder = Encoder(rows.columns).fit(train.features)
        self.target = TargetEncoder(rows.kind, rows.labels, train.target)
        Z, y = (
            self.encoder.transform(train.features),
            self.target.transform(train.target),
        )
        # the limits on labels were set with these judges, so they do not follow F's rounds
        zoo = candidate_zoo(rows.kind, request.size)
        judges = {name: spec for name, spec in zoo.items() if name in JUDGES}
        extra = {
            f"judge:{name}": spec
            for name, spec in judges.items()
            if request.specs.get(name) != spec
        }
        self.models, self.dropped = fit_zoo(
            extra | dict(request.specs),
            kind=rows.kind,
            n_classes=self.target.n_classes,
            n_categorical=self.encoder.n_categorical_,
            Z=Z,
            y=y,
            seed=derive_seed(request.seed, rows.name, fold, "zoo") % 2**31,
            most=QUICK_ROWS if request.size == "quick" else None,
            whole=request.whole,
        )
        self.judges: list[EstimatorBaseline] = []
        for name in judges:
            judge = self.models.get(f"judge:{name}", self.models.get(name))
            if judge is not None:
                self.judges.append(judge)
        self.twins: list[EstimatorBaseline] = []
        self.refit_problem = ""
        self._fit_baseline: Callable[[], EstimatorBaseline] | None = None
        if f_spec is not None:
            F = EstimatorBaseline(
                f_spec, rows.kind, self.target.n_classes, self.encoder.n_categorical_
            )
            f_seed = derive_seed(rows.seed, rows.name, fold, "fit") % 2**31
            self._fit_baseline = partial(F.fit, Z, y, f_seed)
            if not self.has_stored_refits:
                self.twins, self.refit_problem = refit_baseline(
                    F,
                    Z,
                    y,
                    refits=request.refits,
                    seed=request.seed,
                    key=(rows.name, fold),
                )

    @cached_property
    def baseline(self) -> EstimatorBaseline | None:
        """F, fitted again at the first use; None where it is a file."""
        return self._fit_baseline() if self._fit_baseline else None

    def score(self, test: Rows) -> _PartScores:
        """Return losses and provenance of one part, row for row."""
        Z, y = self.encoder.transform(test.features), self.target.transform(test.target)
        provenance = test.provenance
        unknown = np.full(len(y), np.nan)
        predicted = {name: model.predict(Z) for name, model in self.models.items()}
        candidate_losses = [
            row_losses.row_loss(y, predicted[name]) if name in predicted else unknown
            for name in self.names
        ]
        if self.has_stored_refits:
            twins = [
                _floats(provenance, f"null_{number}") for number in range(self.refits)
            ]
        else:
            twins = [row_losses.row_loss(y, twin.predict(Z)) for twin in self.twins]
            twins += [unknown] * (self.refits - len(twins))
        F = _floats(provenance, "loss")
        if not self.has_stored_refits and self.baseline is not None:
            F = row_losses.row_loss(y, self.baseline.predict(Z))
        # a judge may be a candidate too: no model is asked twice
        by_model = {id(model): predicted[name] for name, model in self.models.items()}
        oracle = np.mean([by_model[id(judge)] for judge in self.judges], axis=0)
        return _PartScores(
            G=np.column_stack(candidate_losses),
            F=F,
            twins=np.column_stack(twins) if twins else np.empty((len(y), 0)),
            oracle=oracle,
            y=y,
            clusters=provenance["parent_row"].to_numpy(),
            fold=np.full(len(y), self.fold),
            weight=_floats(provenance, "weight"),
            reducible=_floats(provenance, "reducible"),
            bad=(provenance["origin"] == "bad").to_numpy(),
            recorded=provenance["label_agrees"].to_numpy(dtype=bool),
        )


def _floats(provenance: pd.DataFrame, column: str) -> np.ndarray:
    return provenance[column].to_numpy(dtype=float)
