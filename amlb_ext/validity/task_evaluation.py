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
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core import row_losses
from amlb_ext.core.memory import release_memory
from amlb_ext.core.parallel import run_jobs
from amlb_ext.core.rng import derive_int_seed
from amlb_ext.core.unit import ROW
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.encode import TargetEncoder
from amlb_ext.models.registry import ModelSpec
from amlb_ext.stats.bounded_loss import cap_from_baseline
from amlb_ext.stats.heavy_tails import contrast_plainly
from amlb_ext.suite import Rows
from amlb_ext.suite.copy_counts import MADE_PARTS
from amlb_ext.validity.candidates import (
    ALL_ROWS,
    MIN_CANDIDATES,
    QUICK_ROWS,
    STANDARD_ROUNDS,
    WHOLE,
    Size,
    candidates_and_judges,
    candidates_beside,
    names_like,
)
from amlb_ext.validity.evaluation import Evaluation
from amlb_ext.validity.measures import LabelJudge, Losses, ScoredUnits
from amlb_ext.validity.reference import (
    PART,
    Reference,
    choose_training_rows,
    join_training_rows,
    score_training_part,
    stored_losses,
)
from amlb_ext.validity.task_rows import (
    PARTS,
    REFIT_PREFIX,
    EncodedFold,
    FoldRequest,
    TaskRows,
    baseline_spec,
    losses_of_candidates,
    refit_baseline,
)


def evaluate_task(
    rows: TaskRows,
    *,
    size: Size,
    refits: int,
    seed: int,
    candidates: Mapping[str, ModelSpec] | None = None,
    workers: int = 1,
) -> Evaluation:
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
    workers : int
        Processes, a fold each; they change nothing but time.

    Returns
    -------
    Evaluation
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
    request = FoldRequest(
        specs=specs,
        size=size,
        refits=refits,
        seed=seed,
        has_stored_refits=has_stored_refits,
        whole=whole,
    )
    # fewer candidates make no ranking, so nothing is held to the reference
    chosen, chosen_note = None, ""
    if len(specs) >= MIN_CANDIDATES:
        chosen, chosen_note = choose_training_rows(rows)
    stored = None
    if chosen is not None and not candidates and size == "quick" and seed == rows.seed:
        stored = stored_losses(chosen, _asked_candidates(specs))
    # jobs end in any order, and an order that changed with it would change the pooled losses
    jobs = _plan_jobs(rows, chosen if stored is None else None, request)
    by_job = dict(run_jobs(_run_job, jobs, min(workers, len(jobs))))
    results = [by_job[number] for number in range(len(jobs))]
    scores: list[_FoldScores] = results[: len(rows.folds)]

    dropped: dict[str, str] = {}
    notes = []
    no_twins = ""
    if f_spec is None:
        notes.append(file_refits_note(rows, refits))
        no_twins = notes[0]
    notes += _boosting_notes(rows, {} if candidates else zoo)
    for fold_scores in scores:
        dropped.update(fold_scores.dropped)
        if fold_scores.refit_problem:
            no_twins = no_twins or fold_scores.refit_problem
            notes.append(fold_scores.refit_problem)
    # a candidate that fails on one fold has no pooled losses, so it leaves all of them
    names = [name for name in specs if name not in dropped]
    columns = [list(specs).index(name) for name in names]
    pooled = _pool_parts(scores, columns)
    if len(names) < MIN_CANDIDATES:
        chosen, chosen_note = None, ""
    reference = _settle_reference(
        pooled["full"],
        names,
        request,
        chosen=chosen,
        scored=results[len(rows.folds) :] if stored is None else [stored],
        note=chosen_note,
    )
    if reference.note:
        notes.append(reference.note)
    fewer_rows: list[str] = []
    if size == "quick" and most_rows > QUICK_ROWS:
        fewer_rows = [name for name in specs if name not in whole]
    return Evaluation(
        name=rows.name,
        unit=ROW,
        names=names,
        parts=pooled,
        judge=LabelJudge.settle(pooled["full"], len(rows.labels)),
        tested_bad=pooled["bad"].losses if "bad" in pooled else None,
        from_failures=MADE_PARTS[::-1],
        reference=reference,
        n_classes=len(rows.labels),
        dropped=dropped,
        notes=tuple(notes),
        no_twins=no_twins,
        came_fitted=f_spec is None,
        capped=tuple(fewer_rows),
        has_match=any(name in names for name in names_like(f_spec)),
    )


def _boosting_notes(rows: TaskRows, zoo: Mapping[str, ModelSpec]) -> list[str]:
    """Return what is to be said of the zoo's boosting; nothing of a user's own candidates."""
    if not zoo:
        return []
    n_classes = len(rows.labels)
    if "boosting" not in zoo:
        return [
            f"boosting is no candidate: of {n_classes} classes it is worse than a forest"
        ]
    rounds = zoo["boosting"].params["max_iter"]
    if rounds >= STANDARD_ROUNDS:
        return []
    return [
        f"boosting has {rounds} rounds, not {STANDARD_ROUNDS}: each is a tree for each of "
        f"{n_classes} classes"
    ]


def _plan_jobs(
    rows: TaskRows,
    chosen: pd.DataFrame | None,
    request: FoldRequest,
) -> list[tuple[Any, ...]]:
    """Return the jobs of an evaluation: one a fold, and one a part of the training rows asked."""
    jobs: list[tuple[Any, ...]] = []
    folds = sorted(rows.folds)  # the order in which losses of folds are pooled
    for fold in folds:
        # a job carries the rows of its own fold alone
        rows_of_fold = replace(rows, folds={fold: rows.folds[fold]})
        jobs.append((score_fold, rows_of_fold, fold, request))
    if chosen is None:
        return jobs
    # beside the folds, so that no process waits for the last of them
    first_fold = replace(rows, folds={folds[0]: rows.folds[folds[0]]})
    specs = {name: request.specs[name] for name in _asked_candidates(request.specs)}
    of_asked = replace(request, specs=specs)
    for part in chosen[PART].unique():
        jobs.append((score_training_part, first_fold, chosen, int(part), of_asked))
    return jobs


def _run_job(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a job of :func:`evaluate_task`, which has two kinds of them."""
    return function(*arguments)


def _asked_candidates(names: Iterable[str]) -> list[str]:
    """Return the candidates that made rows are to order."""
    # a match of F is there for what can be mended: fitted on all rows, it costs as much as F
    return [name for name in names if not name.endswith(ALL_ROWS)]


def _settle_reference(
    full: ScoredUnits,
    names: Sequence[str],
    request: FoldRequest,
    *,
    chosen: pd.DataFrame | None,
    scored: Sequence[np.ndarray],
    note: str,
) -> Reference:
    """Return what made rows are held to: the test folds, and training rows where any are chosen.

    ``scored`` are the losses on the chosen rows, part by part.
    """
    asked = _asked_candidates(names)
    positions = np.array([names.index(name) for name in asked], int)
    reference = Reference.of_tests(full, positions, note)
    if chosen is None:
        return reference
    # a candidate that failed on some fold was asked about training rows all the same
    all_asked = _asked_candidates(request.specs)
    columns = [all_asked.index(name) for name in asked]
    of_training = np.concatenate(scored)[:, columns]
    return join_training_rows(reference, chosen, of_training, asked)


def cap_errors(rows: TaskRows, evaluation: Evaluation) -> tuple[Evaluation, list[str]]:
    """Return the evaluation with the squared errors of a regression capped, and notes that say how.

    The cap comes from F's errors on all untouched test rows and holds for every model and part:
    a made row's loss is set against a real one's. Classes have bounded losses and no cap.
    """
    if rows.labels:
        return evaluation, []
    full = evaluation.parts["full"].losses
    cap = cap_from_baseline(full.baseline, full.clusters)

    def apply(losses: Losses) -> Losses:
        candidates = cap.apply(losses.candidates)
        return Losses(candidates, cap.apply(losses.baseline), losses.clusters)

    parts = {}
    for part, scored in evaluation.parts.items():
        parts[part] = replace(
            scored, losses=apply(scored.losses), twins=cap.apply(scored.twins)
        )
    bad = evaluation.tested_bad
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
    tested_bad = None if bad is None else apply(bad)
    return replace(evaluation, parts=parts, tested_bad=tested_bad), notes


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


def describe_capped(rows: TaskRows, evaluation: Evaluation) -> list[str]:
    """Return a note on the candidates that saw fewer training rows than F; none without such."""
    if not evaluation.capped:
        return []
    most_rows = max(len(train) for train, _ in rows.folds.values())
    return [
        f"{', '.join(evaluation.capped)} saw at most {QUICK_ROWS} training rows, the other "
        f"candidates as many as F (up to {most_rows}); 'hardsynth certify DIR --size full' gives "
        "all rows to all"
    ]


def _pool_parts(
    scores: Sequence[_FoldScores], columns: Sequence[int]
) -> dict[str, ScoredUnits]:
    """Return the rows of each part, fold after fold, with the losses of some candidates."""
    pooled = {}
    for part in PARTS:
        # a fold whose F makes no error has no bad rows, and nothing made from them
        of_folds = [each.parts[part] for each in scores if part in each.parts]
        if of_folds:
            units = ScoredUnits.join(of_folds)
            losses = units.losses.with_candidates(np.array(columns, dtype=int))
            pooled[part] = replace(units, losses=losses)
    return pooled


@dataclass(frozen=True, kw_only=True)
class _FoldScores:
    """The scores of one fold, by part of the task."""

    parts: dict[str, ScoredUnits]
    dropped: dict[str, str] = field(default_factory=dict)
    refit_problem: str = ""


def score_fold(rows: TaskRows, fold: int, request: FoldRequest) -> _FoldScores:
    """Fit the models of one fold and score its parts; a job of :func:`evaluate_task`."""
    _, parts = rows.folds[fold]
    models = _FoldModels(rows, fold, request)
    scored = {}
    for part, test in parts.items():
        # a fold may have no row of a part, and models refuse to predict none
        if len(test):
            scored[part] = models.score(test)
            if len(test) > QUICK_ROWS:
                release_memory()
    return _FoldScores(
        parts=scored,
        dropped=models.dropped,
        refit_problem=models.refit_problem,
    )


class _FoldModels(EncodedFold):
    """The models of one fold: candidates, judges, F and its twins."""

    def __init__(self, rows: TaskRows, fold: int, request: FoldRequest) -> None:
        super().__init__(rows, fold, request)
        # the candidates, and those judges that are not candidates as they stand
        specs, judges = candidates_and_judges(
            request.specs, rows.kind, request.size, n_classes=len(rows.labels)
        )
        self.models, self.dropped = self.fit_zoo(specs)
        self.judge_names = [name for name in judges if name in self.models]
        self.twins: list[EstimatorBaseline] = []
        self.refit_problem = ""
        self.unfitted: EstimatorBaseline | None = None  # F; None where it is a file
        spec = baseline_spec(rows.settings, rows.kind)
        if spec is not None:
            n_categorical = self.encoder.n_categorical_
            self.unfitted = EstimatorBaseline(
                spec, rows.kind, self.target.n_classes, n_categorical
            )
        if self.unfitted is not None and not request.has_stored_refits:
            self.twins, self.refit_problem = refit_baseline(
                self.unfitted,
                self.Z,
                self.y,
                refits=request.refits,
                seed=request.seed,
                key=(rows.name, fold),
            )

    @cached_property
    def baseline(self) -> EstimatorBaseline | None:
        """F, fitted again at the first use; None where it is a file."""
        if self.unfitted is None:
            return None
        # the seed of the generation: the same F comes again
        rows = self.rows
        seed = derive_int_seed(rows.seed, rows.name, self.fold, "fit")
        return self.unfitted.fit(self.Z, self.y, seed)

    def score(self, test: Rows) -> ScoredUnits:
        """Return losses and provenance of one part, row for row."""
        request, about = self.request, test.provenance
        Z = self.encoder.transform(test.features)
        y = self.target.transform(test.target)
        predicted = {name: model.predict(Z) for name, model in self.models.items()}
        candidate_losses = losses_of_candidates(request.specs, predicted, y)
        loss_f = about["loss"].to_numpy(dtype=float)
        # a twin that could not be fitted keeps its column, too
        twins = np.full((len(y), request.refits), np.nan)
        if request.has_stored_refits:
            names = [f"{REFIT_PREFIX}{number}" for number in range(request.refits)]
            twins = about[names].to_numpy(dtype=float)
        elif self.baseline is not None:
            # F and its twins must be of one kind: fitted here
            loss_f = row_losses.row_loss(y, self.baseline.predict(Z))
            for column, twin in enumerate(self.twins):
                twins[:, column] = row_losses.row_loss(y, twin.predict(Z))
        clusters = about["parent_row"].to_numpy()
        return ScoredUnits(
            losses=Losses(candidate_losses, loss_f, clusters),
            # a judge may be a candidate too: no model is asked twice
            judged=np.mean([predicted[name] for name in self.judge_names], axis=0),
            y=y,
            twins=twins,
            fold=np.full(len(y), self.fold),
            weight=about["weight"].to_numpy(dtype=float),
            reducible=about["reducible"].to_numpy(dtype=float),
            bad=(about["origin"] == "bad").to_numpy(),
            recorded=about["label_agrees"].to_numpy(dtype=bool),
        )
