"""Fits what a certificate needs on each fold's training file, and pools the losses over folds.

What is read are the suite's own files, as AMLB would give them to a candidate. The losses of F and
of its re-fits stand in the files' provenance; where they do not, F is fitted again here.

Notation
--------
m candidates, R twins of F; all losses are Brier or squared error on the scaled target, see
:mod:`amlb_ext.core.row_losses`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core import row_losses
from amlb_ext.core.parallel import run_jobs
from amlb_ext.core.rng import derive_int_seed
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.models.registry import ModelSpec
from amlb_ext.stats.bounded_loss import cap_from_baseline
from amlb_ext.stats.heavy_tails import contrast_plainly
from amlb_ext.suite import Rows
from amlb_ext.validity.candidates import (
    ALL_ROWS,
    JUDGES,
    MIN_CANDIDATES,
    QUICK_ROWS,
    STANDARD_ROUNDS,
    WHOLE,
    Size,
    candidate_zoo,
    candidates_beside,
    fit_zoo,
    names_like,
)
from amlb_ext.validity.measures import LabelOpinion, Losses, judge_labels
from amlb_ext.validity.realism_measures import ScaledTable
from amlb_ext.validity.reference import (
    PartLosses,
    Reference,
    ReferenceRows,
    TrainingRows,
    build_reference,
    choose_training_rows,
    score_training_part,
)
from amlb_ext.validity.refits import baseline_spec, refit_baseline
from amlb_ext.validity.task_rows import PARTS, REFIT_PREFIX, TaskRows
from amlb_ext.validity.unlabelled import FoldView, Unlabelled, view_fold


@dataclass(frozen=True, kw_only=True)
class ScoredRows:
    """Rows of one part, pooled over folds, with every loss; see the module's notation.

    Attributes
    ----------
    losses : Losses
        Of the candidates and of F.
    twins : ndarray of shape (n, R)
        Losses of F's re-fits.
    fold, weight, reducible, bad, recorded, y : ndarray of shape (n,)
        ``recorded`` is whether the generation's own oracle supported the label; ``y`` are class
        codes, or targets on each fold's own scale.
    labels : LabelOpinion
        What a fresh oracle says of the labels.
    table : ScaledTable
        The rows themselves.
    """

    losses: Losses
    twins: np.ndarray
    fold: np.ndarray
    weight: np.ndarray
    reducible: np.ndarray
    bad: np.ndarray
    recorded: np.ndarray
    y: np.ndarray
    labels: LabelOpinion
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
    reference : Reference
        What the order of candidates on made rows is held to.
    dropped : dict of str to str
        Why a candidate could not be fitted.
    notes : tuple of str
    views : tuple of FoldView
        Unlabelled rows as each fold's models see them; empty without any.
    capped : tuple of str
        Candidates that saw fewer training rows than F.
    has_match : bool
        Whether a candidate of F's own family saw as many training rows as F.
    capped_note : str
        Says which saw fewer; empty for none.
    """

    names: list[str]
    parts: dict[str, ScoredRows]
    reference: Reference
    dropped: dict[str, str]
    notes: tuple[str, ...]
    views: tuple[FoldView, ...]
    capped: tuple[str, ...]
    has_match: bool
    capped_note: str


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
    most_rows = max((len(train) for train, _ in rows.folds.values()), default=0)
    zoo = candidates_beside(
        f_spec,
        rows.kind,
        size,
        train_rows=most_rows,
        n_classes=len(rows.labels),
    )
    specs = dict(candidates or zoo)
    # a user's own candidates see all rows that F saw, whatever that costs
    whole = frozenset(specs if candidates else WHOLE)
    has_stored_refits = rows.holds_refits(refits)
    if f_spec is None:
        # the suite does not hold the file: no more re-fits than those that came with it
        refits = rows.count_refits(refits)
        has_stored_refits = refits > 0
    request = _FoldRequest(
        specs=specs,
        size=size,
        refits=refits,
        seed=seed,
        has_stored_refits=has_stored_refits,
        far=far,
        whole=whole,
    )
    # fewer candidates make no ranking, so nothing is held to the reference
    chosen, chosen_note = None, ""
    if len(specs) >= MIN_CANDIDATES:
        chosen, chosen_note = choose_training_rows(rows)
    folds = sorted(rows.folds)  # the order in which losses of folds are pooled
    jobs: list[tuple[Any, ...]] = []
    for fold in folds:
        # a job carries the rows of its own fold alone
        rows_of_fold = replace(rows, folds={fold: rows.folds[fold]})
        jobs.append((score_fold, rows_of_fold, fold, request))
    if chosen is not None:
        # beside the folds, so that no process waits for the last of them
        jobs += _reference_jobs(rows, chosen, request)
    # jobs end in any order, and an order that changed with it would change the pooled losses
    by_job = dict(run_jobs(_run_job, jobs, min(workers, len(jobs))))
    results = [by_job[number] for number in range(len(jobs))]
    scores = results[: len(folds)]

    dropped: dict[str, str] = {}
    notes = []
    if f_spec is None:
        notes.append(file_refits_note(rows, refits))
    if not candidates and "boosting" not in zoo:
        notes.append(
            f"boosting is no candidate: of {len(rows.labels)} classes it is worse than a forest"
        )
    elif not candidates and zoo["boosting"].params["max_iter"] < STANDARD_ROUNDS:
        rounds = zoo["boosting"].params["max_iter"]
        notes.append(
            f"boosting has {rounds} rounds, not {STANDARD_ROUNDS}: each is a tree for each of "
            f"{len(rows.labels)} classes"
        )
    views = []
    for fold_scores in scores:
        dropped.update(fold_scores.dropped)
        notes += fold_scores.notes
        views += fold_scores.views
    # a candidate that fails on one fold has no pooled losses, so it leaves all of them
    names = [name for name in specs if name not in dropped]
    columns = [list(specs).index(name) for name in names]
    fewer_rows: list[str] = []
    if size == "quick" and most_rows > QUICK_ROWS:
        fewer_rows = [name for name in specs if name not in whole]
    pooled = _pool_parts(rows, folds, scores, columns)
    if len(names) < MIN_CANDIDATES:
        chosen, chosen_note = None, ""
    reference = _join_reference(
        pooled,
        chosen=chosen,
        scored=results[len(folds) :] if chosen is not None else [],
        specs=specs,
        names=names,
        n_classes=len(rows.labels),
        note=chosen_note,
    )
    if reference.note:
        notes.append(reference.note)
    return TaskEvaluation(
        names=names,
        parts=pooled,
        reference=reference,
        dropped=dropped,
        notes=tuple(notes),
        views=tuple(views),
        capped=tuple(fewer_rows),
        has_match=any(name in names for name in names_like(f_spec)),
        capped_note=_capped_note(fewer_rows, most_rows),
    )


def _run_job(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a job of :func:`evaluate_task`, which has two kinds of them."""
    return function(*arguments)


def _asked_candidates(names: Iterable[str]) -> list[str]:
    """Return the candidates that made rows are to order."""
    # a match of F is there for what can be mended: fitted on all rows, it costs as much as F
    return [name for name in names if not name.endswith(ALL_ROWS)]


def _reference_jobs(
    rows: TaskRows, chosen: TrainingRows, request: _FoldRequest
) -> list[tuple[Any, ...]]:
    """Return the jobs that score the training rows on which F fails out of fold."""
    asked = _asked_candidates(request.specs)
    specs = {name: request.specs[name] for name in asked}
    rows_of_fold = replace(rows, folds={chosen.fold: rows.folds[chosen.fold]})
    jobs = []
    for part in chosen.parts:
        jobs.append(
            (
                score_training_part,
                rows_of_fold,
                chosen,
                part,
                specs,
                request.whole,
                request.most_rows,
                request.seed,
            )
        )
    return jobs


def _join_reference(
    pooled: Mapping[str, ScoredRows],
    *,
    chosen: TrainingRows | None,
    scored: Sequence[PartLosses],
    specs: Mapping[str, ModelSpec],
    names: Sequence[str],
    n_classes: int,
    note: str,
) -> Reference:
    """Join the training rows on which F fails out of fold to the test rows."""
    asked = _asked_candidates(names)
    # a candidate that failed on some fold was asked about training rows all the same
    all_asked = _asked_candidates(specs)
    columns = [all_asked.index(name) for name in asked]
    scored = [replace(part, candidates=part.candidates[:, columns]) for part in scored]
    full = pooled["full"]
    test = ReferenceRows(losses=full.losses, weights=full.weight, y=full.y)
    failures = test.take(np.zeros(0, dtype=int))
    if "bad" in pooled:
        bad = pooled["bad"]
        failures = ReferenceRows(losses=bad.losses, weights=bad.weight, y=bad.y)
    return build_reference(
        test,
        failures,
        chosen=chosen,
        scored=scored,
        names=names,
        asked=np.array([names.index(name) for name in asked], dtype=int),
        n_classes=n_classes,
        note=note,
    )


def cap_errors(
    rows: TaskRows, evaluation: TaskEvaluation
) -> tuple[TaskEvaluation, list[str]]:
    """Return the evaluation with the squared errors of a regression capped, and notes that say how.

    The cap comes from F's errors on all untouched test rows and holds for every model and part:
    a made row's loss is set against a real one's. Classes have bounded losses and no cap.
    """
    if rows.labels:
        return evaluation, []
    full = evaluation.parts["full"].losses
    cap = cap_from_baseline(full.baseline, full.clusters)
    parts = {}
    for part, scored in evaluation.parts.items():
        losses = Losses(
            cap.apply(scored.losses.candidates),
            cap.apply(scored.losses.baseline),
            scored.losses.clusters,
        )
        parts[part] = replace(scored, losses=losses, twins=cap.apply(scored.twins))
    spans = []
    for train, _ in rows.folds.values():
        spans.append(TargetEncoder(rows.kind, rows.labels, train.target).span)
    text = cap.sentence(np.array(spans))
    notes = [f"in the measures {text}; mean losses are not capped"] if text else []
    f = contrast_plainly(full.baseline, full.baseline, cap=cap).f
    if f.is_tail:
        holders = f.holders("F's")
        notes.append(
            f"{holders}, and the measures say little of these: compare models by another loss, too"
        )
    return replace(evaluation, parts=parts), notes


def file_refits_note(rows: TaskRows, refits: int) -> str:
    """Return what the re-fits of an F that came as a file are, or why there are none.

    Parameters
    ----------
    rows : TaskRows
    refits : int
        Those that the suite holds.
    """
    facts = [summary.get("refits", {}) for summary in rows.summaries]
    if not refits:
        problems = [fact["problem"] for fact in facts if fact.get("problem")]
        why = f" ({problems[0]})" if problems else ""
        return f"F is a file and cannot be fitted again{why}: there is no null control"
    sizes = [fact["rows"] for fact in facts if fact.get("rows")]
    low, high = min(sizes, default=0), max(sizes, default=0)
    size = f"{low}" if low == high else f"{low} to {high}"
    return (
        f"F is a file, fitted elsewhere; its {refits} re-fits are clones of it, each fitted on "
        f"{size} training rows of this table, so the null control includes the difference "
        "between F's training rows and these"
    )


def _capped_note(fewer: Sequence[str], most_rows: int) -> str:
    """Return which candidates saw fewer training rows than F; empty for none."""
    if not fewer:
        return ""
    return (
        f"{', '.join(fewer)} saw at most {QUICK_ROWS} training rows, the other candidates as "
        f"many as F (up to {most_rows}); 'hardsynth certify DIR --size full' gives all rows to all"
    )


def _pool_parts(
    rows: TaskRows,
    folds: Sequence[int],
    scores: Sequence[_FoldScores],
    columns: Sequence[int],
) -> dict[str, ScoredRows]:
    """Pool each part over the folds that have it, with the losses of some candidates."""
    # one scale for all parts: how far the judges are off on all real rows
    rmse = 0.0
    if not rows.labels:
        full = _stack_folds([fold_scores.parts["full"] for fold_scores in scores])
        mean_squared_error = ((full.oracle - full.y) ** 2).mean()
        rmse = float(np.sqrt(mean_squared_error))
    scaler = _TableScaler(rows)  # of all folds, so that one table can hold them
    pooled = {}
    for part in PARTS:
        # a fold whose F makes no error has no bad rows, and nothing made from them
        parts_of_folds, tests = [], []
        for fold, fold_scores in zip(folds, scores, strict=True):
            if part in fold_scores.parts:
                parts_of_folds.append(fold_scores.parts[part])
                tests.append(rows.folds[fold][1][part])
        if not tests:
            continue
        stacked = _stack_folds(parts_of_folds)
        support, agrees = judge_labels(
            stacked.oracle,
            stacked.y,
            rmse=rmse,
            n_classes=len(rows.labels),
        )
        clusters = stacked.clusters
        pooled[part] = ScoredRows(
            losses=Losses(
                stacked.candidate_losses[:, columns], stacked.loss_f, clusters
            ),
            twins=stacked.twins,
            fold=stacked.fold,
            weight=stacked.weight,
            reducible=stacked.reducible,
            bad=stacked.bad,
            recorded=stacked.recorded,
            y=stacked.y,
            labels=LabelOpinion(support=support, agrees=agrees, clusters=clusters),
            # the parts are scored on each fold's own scale, but looked at on one
            table=scaler.build_table(tests, clusters),
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
        # the encoder puts categories first; the target is the last column
        n_features = len(self.encoder.names_)
        self.is_category = np.arange(n_features + 1) < self.encoder.n_categorical_
        self.is_category[-1] = rows.kind.is_classification

    def build_table(self, tests: Sequence[Rows], clusters: np.ndarray) -> ScaledTable:
        """Return the rows of several folds as one table."""
        blocks = []
        for test in tests:
            Z = self.encoder.transform(test.features)
            y = self.target.transform(test.target)
            blocks.append(np.column_stack([Z, y]))
        return ScaledTable(np.concatenate(blocks), clusters, self.is_category)


@dataclass(frozen=True, kw_only=True)
class _FoldRequest:
    """Settings that all folds of an evaluation share.

    ``has_stored_refits`` says that the files hold the losses of F's re-fits; ``whole`` are the
    candidates that see all training rows.
    """

    specs: Mapping[str, ModelSpec]
    size: Size
    refits: int
    seed: int
    has_stored_refits: bool
    far: Unlabelled | None
    whole: frozenset[str]

    @property
    def most_rows(self) -> int | None:
        """Training rows that the other candidates see at most."""
        return QUICK_ROWS if self.size == "quick" else None


@dataclass(frozen=True, kw_only=True)
class _PartScores:
    """One part in one fold, row for row; see the module's notation and :class:`ScoredRows`.

    ``oracle`` is the mean prediction of the judges, T.
    """

    candidate_losses: np.ndarray
    loss_f: np.ndarray
    twins: np.ndarray
    oracle: np.ndarray
    y: np.ndarray
    clusters: np.ndarray
    fold: np.ndarray
    weight: np.ndarray
    reducible: np.ndarray
    bad: np.ndarray
    recorded: np.ndarray


def _stack_folds(parts: Sequence[_PartScores]) -> _PartScores:
    """Return a part's rows of several folds as one, fold after fold."""
    columns = {}
    for column in fields(_PartScores):
        blocks = [getattr(part, column.name) for part in parts]
        columns[column.name] = np.concatenate(blocks)
    return _PartScores(**columns)


@dataclass(frozen=True, kw_only=True)
class _FoldScores:
    """The scores of one fold, by part of the task."""

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
    # in this order: asking for the baseline fits F
    if far is not None and not far.support.refused and models.baseline is not None:
        view = view_fold(
            rows, fold, train=train, test=parts["full"], far=far, models=models
        )
        views.append(view)
    scored = {}
    for part, test in parts.items():
        # a fold may have no row of a part, and models refuse to predict none
        if len(test):
            scored[part] = models.score(test)
    return _FoldScores(
        parts=scored,
        dropped=models.dropped,
        notes=(models.refit_problem,) if models.refit_problem else (),
        views=tuple(views),
    )


class _FoldScorer:
    """The models of one fold: candidates, judges, F and its twins."""

    def __init__(
        self, rows: TaskRows, fold: int, train: Rows, request: _FoldRequest
    ) -> None:
        self.rows = rows
        self.fold = fold
        self.request = request
        self.encoder = Encoder(rows.columns).fit(train.features)
        self.target = TargetEncoder(rows.kind, rows.labels, train.target)
        self.Z = self.encoder.transform(train.features)
        self.y = self.target.transform(train.target)
        self.judge_names: list[str] = []
        self._fit_candidates_and_judges()

        self.f_spec = baseline_spec(rows.settings, rows.kind)
        self.refits = request.refits
        self.has_stored_refits = request.has_stored_refits
        self.twins: list[EstimatorBaseline] = []
        self.refit_problem = ""
        if self.f_spec is not None and not self.has_stored_refits:
            self.twins, self.refit_problem = refit_baseline(
                self._unfitted_baseline(self.f_spec),
                self.Z,
                self.y,
                refits=request.refits,
                seed=request.seed,
                key=(rows.name, fold),
            )

    def _fit_candidates_and_judges(self) -> None:
        """Fit the candidates, and those judges that are not candidates as they stand."""
        rows, request = self.rows, self.request
        # the limits on labels were set with these judges, so they do not follow F's rounds
        zoo = candidate_zoo(rows.kind, request.size, n_classes=len(rows.labels))
        judges = {name: spec for name, spec in zoo.items() if name in JUDGES}
        extra = {}
        for name, spec in judges.items():
            if request.specs.get(name) != spec:
                extra[f"judge:{name}"] = spec
        self.models, self.dropped = fit_zoo(
            extra | dict(request.specs),
            kind=rows.kind,
            n_classes=self.target.n_classes,
            n_categorical=self.encoder.n_categorical_,
            Z=self.Z,
            y=self.y,
            seed=derive_int_seed(request.seed, rows.name, self.fold, "zoo"),
            most=request.most_rows,
            whole=request.whole,
        )
        for name in judges:
            judge = f"judge:{name}" if f"judge:{name}" in self.models else name
            if judge in self.models:
                self.judge_names.append(judge)

    def _unfitted_baseline(self, spec: ModelSpec) -> EstimatorBaseline:
        return EstimatorBaseline(
            spec, self.rows.kind, self.target.n_classes, self.encoder.n_categorical_
        )

    @property
    def judges(self) -> list[EstimatorBaseline]:
        """The models whose mean prediction is T."""
        return [self.models[name] for name in self.judge_names]

    @cached_property
    def baseline(self) -> EstimatorBaseline | None:
        """F, fitted again at the first use; None where it is a file."""
        if self.f_spec is None:
            return None
        # the seed of the generation: the same F comes again
        rows = self.rows
        seed = derive_int_seed(rows.seed, rows.name, self.fold, "fit")
        return self._unfitted_baseline(self.f_spec).fit(self.Z, self.y, seed)

    def score(self, test: Rows) -> _PartScores:
        """Return losses and provenance of one part, row for row."""
        Z = self.encoder.transform(test.features)
        y = self.target.transform(test.target)
        provenance = test.provenance
        unknown = np.full(len(y), np.nan)
        predicted = {name: model.predict(Z) for name, model in self.models.items()}
        # a candidate that failed here keeps its column, or columns of folds would not match
        candidate_losses = []
        for name in self.request.specs:
            loss = unknown
            if name in predicted:
                loss = row_losses.row_loss(y, predicted[name])
            candidate_losses.append(loss)
        twins = self._twin_losses(Z, y, provenance)
        loss_f = _floats(provenance, "loss")
        # without the stored re-fits, F and its twins must be of one kind: fitted here
        if not self.has_stored_refits and self.baseline is not None:
            loss_f = row_losses.row_loss(y, self.baseline.predict(Z))
        # a judge may be a candidate too: no model is asked twice
        judgements = [predicted[name] for name in self.judge_names]
        oracle = np.mean(judgements, axis=0)
        return _PartScores(
            candidate_losses=np.column_stack(candidate_losses),
            loss_f=loss_f,
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

    def _twin_losses(
        self, Z: np.ndarray, y: np.ndarray, provenance: pd.DataFrame
    ) -> list[np.ndarray]:
        """Return the losses of each re-fit, NaN for those that could not be fitted."""
        if self.has_stored_refits:
            return [
                _floats(provenance, f"{REFIT_PREFIX}{number}")
                for number in range(self.refits)
            ]
        losses = [row_losses.row_loss(y, twin.predict(Z)) for twin in self.twins]
        n_missing = self.refits - len(losses)
        return losses + [np.full(len(y), np.nan)] * n_missing


def _floats(provenance: pd.DataFrame, column: str) -> np.ndarray:
    return provenance[column].to_numpy(dtype=float)
