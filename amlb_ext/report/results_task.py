"""One task of an ordinary benchmark: AMLB's predictions on its source's rows, one framework as F.

What F predicted is all that is known of it: it cannot be fitted again. So a change where F fails is
described and never judged, and neither is harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.comparison.out_of_fold import Folds, divide_into_repeats
from amlb_ext.comparison.place import describe_place
from amlb_ext.core.errors import DataError, RunError
from amlb_ext.core.task import Task
from amlb_ext.core.unit import ROW
from amlb_ext.models.answers import Answers
from amlb_ext.models.predictions import sure_notes
from amlb_ext.report.compare import compare_units
from amlb_ext.report.described import TaskSettings, describe_task, swap_rows
from amlb_ext.report.losses import (
    TaskLosses,
    measure_losses,
    predicted_by,
    unfit_loss,
)
from amlb_ext.report.model import BuiltTask
from amlb_ext.report.parts import report_parts, score_parts
from amlb_ext.report.predictions import ReadPredictions, TaskPredictions
from amlb_ext.report.task import draw_task_charts, incomplete_texts
from amlb_ext.runner.original_results import match_rows
from amlb_ext.runner.results import RowsDifferError, read_predictions
from amlb_ext.sources.base import TaskRef
from amlb_ext.units.judged import Judged
from amlb_ext.units.labelled import LEAST_ROWS, LabelledRows, labelled_rows_of_task
from amlb_ext.units.rows import hardness_config, judge_rows

#: Why F, a framework of AMLB, has no re-fits beside which harm is judged.
NO_REFITS = (
    "it is a framework of AMLB, which is not fitted here; hardsynth compare, with its training "
    "rows, fits a model again"
)
#: What a job without predictions is.
_WITHOUT = ("failed", "missing", "refused", "not run")
_RENAMED = (
    "AMLB has mixed the names of the classes up in {}, in the truth as well (it encodes them in "
    "OpenML's order and decodes them in alphabetical order): they were read by position"
)


def build_result_task(
    name: str,
    ref: TaskRef,
    task_ids: frozenset[str],
    jobs: pd.DataFrame,
    baseline: str,
    settings: TaskSettings,
) -> BuiltTask:
    """Read a task's rows and predictions, and judge the frameworks on it.

    Parameters
    ----------
    name : str
        AMLB's name of the task.
    ref : TaskRef
        Where its rows are.
    task_ids : frozenset of str
        OpenML's numbers of the task, as the results have them.
    jobs : DataFrame
        The rows of :func:`amlb_ext.runner.jobs.read_benchmark_jobs` that belong to the task.
    baseline : str
        The framework that is F.
    settings : TaskSettings

    Raises
    ------
    SourceError, NetworkError, DataError
        The task's rows cannot be read, or F predicted too few of them.
    RunError
        F has no predictions of the task, or the results are of another OpenML task.
    """
    task = ref.load().renamed(name)
    own_id = task.origin.ids.get("task_id")
    others = sorted(task_ids - {own_id})
    if own_id and others:
        raise RunError(
            f"its results are of the OpenML task {others[0]}, the definition has {own_id}"
        )
    read = _read_jobs(task, jobs, baseline)
    found = judge_predictions(task, read, baseline, settings.level, settings.loss)
    rows, full, judged = found.rows, found.full, found.judged
    comparison = compare_units(
        task.name,
        judged,
        found.measured.by_framework,
        fold_of=full.rows["fold"].to_numpy(),
        folds=len(read.folds),
        incomplete=_incomplete_results(read, jobs, baseline),
    )
    features, notes = rows.task.features, list(found.notes)
    built = describe_task(
        task.name,
        comparison,
        swap_rows(full, judged, features, found.measured.loss, no_refits=NO_REFITS),
        settings,
        columns=rows.task.columns,
        loss=found.measured.title,
        metric=found.measured.metric,
        predicted=partial(predicted_by, full),
    )
    parts = report_parts({"full": full}, judged.compared.weights)
    for name in sorted(full.f):
        if task.labels:
            notes += sure_notes(full.f[name][full.scored(name)], name)
    if read.renamed:
        notes.append(_RENAMED.format(", ".join(sorted(read.renamed))))
    absent = jobs[~jobs["fold"].isin(read.folds)]
    if len(absent):
        numbers = ", ".join(str(fold) for fold in sorted(absent["fold"].unique()))
        notes.append(f"without F's predictions, not compared: fold {numbers}")
    report = replace(
        built.report,
        kind=task.kind.value,
        target=task.target_name,
        labels=task.labels,
        rows={"full": len(full), "bad": int(judged.is_bad.sum())},
        folds=len(read.folds),
        scores=score_parts(task.name, parts, settings.level),
        charts=draw_task_charts(built.report, full, comparison, settings),
        warnings=(*built.report.warnings, *full.warnings),
        notes=(*built.report.notes, *task.notes, *rows.notes, *notes),
    )
    return replace(
        built,
        report=report,
        refused=read.refused,
        unfit=unfit_loss(
            settings.loss,
            labels=task.labels,
            is_classification=task.kind.is_classification,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class JudgedPredictions:
    """A task's test rows as F was judged on them, and what the others predict of them.

    Attributes
    ----------
    rows : LabelledRows
    full : TaskPredictions
        Without F, which stands in its rows as in the provenance of a suite.
    measured : TaskLosses
    judged : Judged
    notes : tuple of str
    """

    rows: LabelledRows
    full: TaskPredictions
    measured: TaskLosses
    judged: Judged
    notes: tuple[str, ...]


def judge_predictions(
    task: Task,
    read: ReadPredictions,
    baseline: str,
    level: float,
    loss: Any = None,
) -> JudgedPredictions:
    """Return the test rows of the folds that F predicted, one fold after another, judged by F.

    Parameters
    ----------
    task : Task
    read : ReadPredictions
    baseline : str
        F's name among them.
    level : float
    loss : optional
        See :func:`amlb_ext.report.losses.measure_losses`.

    Raises
    ------
    DataError
        Too few rows.
    ConfigError
        The loss needs probabilities, and a framework names labels alone.
    """
    full = _stack_folds(task, read)
    if len(full) < LEAST_ROWS:
        raise DataError(f"{len(full)} test rows are too few to compare models on")
    chosen = np.concatenate([task.folds[fold].test for fold in read.folds])
    rows = labelled_rows_of_task(task, chosen)
    f = full.f[baseline]
    said = Answers(f=f, decided=full.chosen.get(baseline))
    if not task.labels:
        said = Answers(f=(f - rows.scale.low) / rows.scale.span)
    full = _with_predictions_of_f(full, baseline)
    measured = measure_losses(full, loss)
    judged = judge_rows(
        rows,
        said,
        measured.f,
        hardness_config("auto", None),
        loss=measured.loss,
        level=level,
    )
    widening, notes = _division(task, read.folds)
    compared = replace(
        judged.compared, cap=measured.cap, span=measured.span, widening=widening
    )
    place = describe_place(judged, rows.task.features)
    if place is not None:
        notes.insert(0, place.sentence(ROW, judged.verb).rstrip("."))
    about = full.rows.assign(origin=np.where(judged.is_bad, "bad", "good"))
    if judged.compared.clusters is not None:
        about["group"] = judged.compared.clusters
    return JudgedPredictions(
        rows=rows,
        full=replace(full, rows=about),
        measured=measured,
        judged=replace(judged, compared=compared),
        notes=(f"what F does worst: {judged.rule}", *notes, *measured.notes),
    )


def _read_jobs(task: Task, jobs: pd.DataFrame, baseline: str) -> ReadPredictions:
    """Read the predictions of all jobs, F's first: the folds that it predicted are compared."""
    scored = jobs[jobs["status"] == "scored"]
    is_baseline = scored["framework"] == baseline
    read = ReadPredictions()
    for of_framework in (scored[is_baseline], scored[~is_baseline]):
        for index, job in of_framework.to_dict("index").items():
            framework, fold = str(job["framework"]), int(job["fold"])
            if framework != baseline and fold not in read.folds:
                continue
            try:
                table, is_renamed = _read_rows(task, job)
                read.add(framework, fold, table, task.labels, job)
            except RunError as error:
                read.refused[index] = str(error)
                continue
            if is_renamed:
                read.renamed.add(framework)
            if framework == baseline:
                read.folds.append(fold)
    if not read.folds:
        told = incomplete_texts(
            jobs[jobs["framework"] == baseline], read.refused, statuses=_WITHOUT
        )
        why = told.get(baseline, "it was not run")
        raise RunError(f"F, {baseline}, has no predictions of it: {why}")
    read.folds.sort()
    return read


def _read_rows(task: Task, job: Mapping[str, object]) -> tuple[pd.DataFrame, bool]:
    """Return the predictions of a job once their truth is found to be the source's, row by row."""
    fold = int(str(job["fold"]))
    if not 0 <= fold < len(task.folds):
        raise RunError(
            f"the task has {len(task.folds)} folds, this is fold {fold}",
            "name the definition that was run with --benchmark",
        )
    written = read_predictions(
        str(job["run"]),
        str(job["amlb_task"]),
        fold,
        framework=str(job["name"]),
        has_classes=bool(task.labels),
    )
    truth = task.target.iloc[task.folds[fold].test].reset_index(drop=True)
    if task.labels:
        truth = truth.astype(str)
    try:
        return match_rows(written, truth, task.labels, task.labels)
    except RowsDifferError as error:
        raise RunError(
            f"{error.message}; they were cut off or stand in another order, or are of another "
            "definition or of other folds"
        ) from None


def _stack_folds(task: Task, read: ReadPredictions) -> TaskPredictions:
    """Return the test rows of the folds, one fold after another, with all predictions of them."""
    folds = [task.folds[fold] for fold in read.folds]
    rows_of = {fold: len(task.folds[fold].test) for fold in read.folds}
    lengths = list(rows_of.values())
    chosen_rows = np.concatenate([fold.test for fold in folds])
    if task.labels:
        codes = task.target.cat.set_categories(list(task.labels)).cat.codes
        y = codes.to_numpy(dtype=np.int64)
    else:
        y = task.target.to_numpy(dtype=float)
    low, span = [0.0] * len(folds), [1.0] * len(folds)
    if not task.labels:
        trained = [y[fold.train] for fold in folds]
        low = [float(values.min()) for values in trained]
        # a constant target has no range to divide by
        span = [float(np.ptp(values)) or 1.0 for values in trained]
    return TaskPredictions(
        name=task.name,
        suffix="full",
        kind=task.kind,
        labels=task.labels,
        rows=pd.DataFrame(
            {
                "fold": np.repeat(read.folds, lengths),
                "amlb_fold": np.repeat(read.folds, lengths),
                "row": np.concatenate([np.arange(n) for n in lengths]),
                "source_row": task.row_ids[chosen_rows],
            }
        ),
        y=y[chosen_rows],
        low=np.repeat(low, lengths),
        span=np.repeat(span, lengths),
        **read.stacked(rows_of),
    )


def _division(task: Task, folds: list[int]) -> tuple[float, list[str]]:
    """Return by how much variances grow since fits share training rows, and what is claimed."""
    splits = [(task.folds[fold].train, task.folds[fold].test) for fold in folds]
    if len(splits) < 2 or not len(np.intersect1d(splits[0][0], splits[1][0])):
        return 1.0, []
    everywhere = np.ones(len(task), dtype=bool)
    division = Folds(repeats=divide_into_repeats(splits, len(task)), tested=everywhere)
    return division.widening, [division.text]


def _with_predictions_of_f(full: TaskPredictions, baseline: str) -> TaskPredictions:
    """Return the rows with F's predictions and losses, as the provenance of a suite has them."""
    own = full.f[baseline]
    columns = {"f": own}
    if full.labels:
        columns = {f"f_{code}": own[:, code] for code in range(len(full.labels))}
    return replace(
        full,
        rows=full.rows.assign(loss=full.loss(baseline), **columns),
        f={name: f for name, f in full.f.items() if name != baseline},
        only_labels=full.only_labels - {baseline},
    )


def _incomplete_results(
    read: ReadPredictions, jobs: pd.DataFrame, baseline: str
) -> dict[str, str]:
    """Return why the results of other frameworks, or those of F, are not whole, by framework."""
    of_folds = jobs[jobs["fold"].isin(read.folds)]
    incomplete = incomplete_texts(of_folds, read.refused, statuses=_WITHOUT)
    is_baseline = jobs["framework"] == baseline
    # a fold that F failed on may be the one that would have told against it
    told = incomplete_texts(jobs[is_baseline], read.refused)
    if told:
        without = f"F, {baseline}, lacks {told[baseline]}"
        names = jobs.loc[~is_baseline, "framework"].unique()
        incomplete |= dict.fromkeys(names, without)
    incomplete.pop(baseline, None)
    return incomplete
