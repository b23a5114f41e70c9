"""Results of the benchmark whose hard twin a suite holds, on the rows that both share.

The twin keeps the original's folds, so the suite's untouched test folds (``TASK_full``) are the
test rows of the original, row for row, and frameworks train on the same rows in both. What a
framework predicted there in a run of the original therefore stands for its run of ``TASK_full``.
That the rows are the same is not believed: each row's truth must agree, in order, and a result
for which it does not is left out with the reason.

AMLB itself mixes the names of OpenML's classes up where a framework asks for encoded ones: it
numbers them in OpenML's order and names them again in the order of their text, in the predictions
and in the truth alike. Scores are none the worse for it, and it can be undone: such a file is read
by the position of its classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from amlb_ext.amlb.definition import sanitize_name
from amlb_ext.amlb.safe_text import normalize_text
from amlb_ext.core.errors import RunError
from amlb_ext.runner.results import (
    NO_CLASSES,
    RowsDifferError,
    join_predictions,
    predictions_path,
    read_predictions,
)
from amlb_ext.runner.run_folder import RunFolder, job_of_row
from amlb_ext.suite import SuiteFiles
from amlb_ext.suite.layout import amlb_name
from amlb_ext.suite.manifest import Pair


@dataclass(frozen=True, kw_only=True)
class AdoptedJob:
    """A job of the original that stands for one of the suite's.

    Attributes
    ----------
    run : RunFolder
    row : dict
        AMLB's, with the names of the original.
    amlb_task : str
        The suite's.
    fold : int
        AMLB's number of the suite's fold.
    is_renamed : bool
        AMLB has mixed the names of the classes up, which is undone.
    """

    run: RunFolder
    row: Mapping[str, Any]
    amlb_task: str
    fold: int
    is_renamed: bool


def adopt_results(
    suite: SuiteFiles, pair: Pair, rows: pd.DataFrame, runs: Mapping[str, RunFolder]
) -> tuple[list[AdoptedJob], list[str]]:
    """Return the results of the original that are of the suite's untouched test folds.

    Parameters
    ----------
    suite : SuiteFiles
    pair : Pair
        What the suite's manifest says of the original.
    rows : DataFrame
        AMLB's rows of runs of the original.
    runs : mapping of str to RunFolder
        These runs, by path.

    Returns
    -------
    jobs : list of AdoptedJob
    notes : list of str
        What was used and what was left out, each one sentence.
    """
    tasks = {}
    for twin in pair.tasks:
        hard_task = suite.amlb_task(twin.task)
        tasks[sanitize_name(twin.name).lower()] = hard_task.task
    jobs = []
    refusals: list[str] = []
    changed: Counter[str] = Counter()
    for row in rows.to_dict("records"):
        run = runs[row["run"]]
        suite_task = tasks.get(str(row["task"]).lower(), "")
        try:
            adopted = _adopt_job(suite, suite_task, run, row)
        except RunError as error:
            refusals.append(f"{row['task']}, fold {row['fold']}: {error}")
            continue
        jobs.append(adopted)
        # cells in which the suite's test folds differ from the original's
        changed[suite_task] = sum(
            sum(fold.parts["full"].substituted.values())
            for fold in suite.tasks[suite_task].folds.values()
            if "full" in fold.parts
        )
    return jobs, _notes(pair, jobs, refusals, changed)


def read_job_predictions(suite: SuiteFiles, job: Mapping[str, Any]) -> pd.DataFrame:
    """Read a job's predictions as those of the suite's own task.

    Parameters
    ----------
    suite : SuiteFiles
    job : mapping
        A row of :attr:`amlb_ext.runner.jobs.JobTable.table`.

    Returns
    -------
    DataFrame
        As :func:`amlb_ext.runner.results.read_predictions` gives it; of a job of the original,
        with the suite's labels, and without the rows that the suite leaves out.

    Raises
    ------
    RunError
        No such file, one of another shape, or one of another framework.
    """
    amlb_task = str(job["amlb_task"])
    fold = int(job["fold"])
    original_task = str(job.get("original_task") or "")
    read = partial(
        read_predictions,
        str(job["run"]),
        framework=str(job["name"]),
        has_classes=bool(suite.coding(amlb_task).labels),
    )
    if not original_task:
        return read(amlb_task, fold)
    written = read(original_task, int(job["original_fold"]))
    in_suite_form, _ = _in_suite_form(written, suite, amlb_task, fold)
    return in_suite_form


def _adopt_job(
    suite: SuiteFiles, suite_task: str, run: RunFolder, row: Mapping[str, Any]
) -> AdoptedJob:
    """Return the job of the suite that a row of the original stands for.

    Raises
    ------
    RunError
        It stands for none, or its rows are others.
    """
    full_name = amlb_name(suite_task, "full")
    full = suite.amlb_tasks.get(full_name) if suite_task else None
    if full is None:
        raise RunError("the suite has no such task")
    if pd.isna(row["result"]):
        raise RunError("the job failed")
    task_id = suite.tasks[suite_task].origin.ids.get("task_id")
    _, is_of_openml, number = str(row.get("id") or "").rpartition("openml.org/t/")
    if task_id and is_of_openml and number != task_id:
        raise RunError(f"it is of the OpenML task {number}, the suite's is {task_id}")
    job = job_of_row(row)
    if job.fold not in full.folds:
        raise RunError("the suite has not this fold")
    if not predictions_path(run.path, job.task, job.fold).is_file():
        raise RunError("its predictions file is missing")
    fold = full.folds.index(job.fold)
    written = read_predictions(
        run.path,
        job.task,
        job.fold,
        framework=str(row["framework"]),
        has_classes=bool(suite.coding(full_name).labels),
    )
    _, is_renamed = _in_suite_form(written, suite, full_name, fold)
    return AdoptedJob(
        run=run, row=row, amlb_task=full_name, fold=fold, is_renamed=is_renamed
    )


def _in_suite_form(
    written: pd.DataFrame, suite: SuiteFiles, amlb_task: str, fold: int
) -> tuple[pd.DataFrame, bool]:
    """Return predictions of the original with the suite's labels and rows.

    Returns
    -------
    predictions : DataFrame
    is_renamed : bool
        Classes were read by position, since AMLB has mixed their names up.

    Raises
    ------
    RunError
        The rows are not those of the suite: their number or a truth differs.
    """
    coding = suite.coding(amlb_task)
    name = coding.written_target
    # No text is taken for a missing value: a class may be called "NA" or "None".
    trained, truth = [
        pd.read_csv(path, usecols=[name], dtype=str, keep_default_na=False)[name]
        for path in suite.pair(amlb_task, fold)
    ]
    try:
        return match_rows(
            written, truth, coding.labels, coding.written_labels, trained=trained
        )
    except RowsDifferError:
        raise RunError(
            "its test rows are not those of the suite, so the folds differ"
        ) from None


def match_rows(
    written: pd.DataFrame,
    truth: pd.Series,
    labels: Sequence[str],
    new_labels: Sequence[str],
    *,
    trained: Collection[str] | None = None,
) -> tuple[pd.DataFrame, bool]:
    """Return predictions with other labels, once each row's truth is found to be that of the rows.

    Parameters
    ----------
    written : DataFrame
        As :func:`amlb_ext.runner.results.read_predictions` gives it.
    truth : Series of str
        The target of each test row, by its new label.
    labels, new_labels : sequence of str
        Of the classes, in the source's order; empty for a regression.
    trained : collection of str, optional
        The new labels of all training rows. Where there are more predictions than rows, those of
        other classes are left out: AMLB cannot score them, and a suite leaves them out.

    Returns
    -------
    predictions : DataFrame
    is_renamed : bool
        Classes were read by position, since AMLB has mixed their names up.

    Raises
    ------
    RowsDifferError
        Another number of rows, or one whose truth differs: the first is named.
    RunError
        AMLB merges some of the classes.
    """
    candidates = [written]
    namings = _label_namings(written, labels, new_labels)
    if namings:
        candidates = [_translate(written, naming) for naming in namings]
    no_columns = pd.DataFrame(index=range(len(truth)))
    errors = []
    for position, candidate in enumerate(candidates):
        if namings and trained is not None and len(candidate) > len(truth):
            is_kept = candidate["truth"].isin(set(trained))
            candidate = candidate[is_kept].reset_index(drop=True)
        # The check that the rows are the same: as many, and each with the same truth.
        try:
            join_predictions(candidate, no_columns, truth)
        except RowsDifferError as error:
            errors.append(error)
            continue
        return candidate, position > 0
    raise errors[0]


def _label_namings(
    written: pd.DataFrame, labels: Sequence[str], new_labels: Sequence[str]
) -> list[dict[str, str]]:
    """Return the ways in which the labels that are written may stand for the new ones.

    By name, and by position where that is another way; none for regression.
    """
    if not labels:
        return []
    by_name = {}
    for label, new_label in zip(labels, new_labels, strict=True):
        by_name[normalize_text(label)] = new_label
    if len(by_name) < len(labels):
        raise RunError("its classes differ only by case or space, which AMLB merges")
    classes = [name for name in written.columns if name not in NO_CLASSES]
    names = [normalize_text(str(name)) for name in classes]
    # With a class that no row has, as OpenML may declare one, positions say nothing.
    if sorted(names) != sorted(by_name):
        return [by_name]
    by_position = dict(zip(names, new_labels, strict=True))
    return [by_name] if by_position == by_name else [by_name, by_position]


def _translate(written: pd.DataFrame, naming: Mapping[str, str]) -> pd.DataFrame:
    """Return predictions of classes with other labels; columns of no class keep their names."""

    def translate(label: object) -> str:
        return naming.get(normalize_text(str(label)), str(label))

    table = written.drop(columns=list(NO_CLASSES)).rename(columns=translate)
    return table.join(written[list(NO_CLASSES)].map(translate))


def _notes(
    pair: Pair,
    jobs: list[AdoptedJob],
    refusals: list[str],
    changed: Mapping[str, int],
) -> list[str]:
    """Return what was used and what was left out, each one sentence."""
    notes = []
    if jobs:
        notes.append(
            f"{len(jobs)} results of {pair.of}, the benchmark whose hard twin this suite holds, "
            "stand for its untouched test folds: the folds are the same, and the truth of every "
            "row agrees."
        )
    n_renamed = sum(job.is_renamed for job in jobs)
    if n_renamed:
        notes.append(
            f"In {n_renamed} of them AMLB has mixed the names of the classes up, in the truth as "
            "well (it encodes them in OpenML's order and decodes them in alphabetical order); they "
            "were read by position."
        )
    differing = [f"{count} of {task}" for task, count in changed.items() if count]
    if differing:
        notes.append(
            f"They were predicted from the cells of {pair.of} as they are; the suite's test files "
            f"have another value in some ({', '.join(differing)}), which no training row had."
        )
    if refusals:
        notes.append(
            f"{len(refusals)} results of {pair.of}, the benchmark whose hard twin this suite "
            f"holds, were left out. The first: {refusals[0]}."
        )
    return notes
