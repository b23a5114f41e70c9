"""One task of a report, from its files and its results; made in a process of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.report import charts
from amlb_ext.report.compare import (
    TaskComparison,
    compare_frameworks,
    is_baseline_framework,
    is_control_framework,
)
from amlb_ext.report.failures import FailureDescription, find_failures
from amlb_ext.report.model import Chart, ColourRole, TaskReport
from amlb_ext.report.parts import fold_scores, report_parts, score_parts
from amlb_ext.report.predictions import TaskPredictions, read_task_predictions
from amlb_ext.report.still import draw_chart
from amlb_ext.runner.agreement import alarm_text
from amlb_ext.suite import Suite, amlb_name
from amlb_ext.suite.fold_notes import CELLS_REPLACED, ROWS_LEFT_OUT, fold_notes
from amlb_ext.suite.manifest import Manifest
from amlb_ext.validity import Certificate
from amlb_ext.validity.certificate_store import read_null

#: AMLB tasks that a report reads, by suffix.
READ = ("full", "", "ga", "synthetic", "hard")
#: Why nothing is claimed on a task whose F is not the one that was run.
NO_CLAIM = "the F that was run is not the F of this suite, whose failures the contrasts are on"
WHAT_TO_DO = (
    "hardsynth score DIR fits F here: where it raises no alarm, the environment that AMLB ran in "
    "is the cause, its scikit-learn or pandas first; where it does, generate the suite again with "
    "this version of hardsynth."
)
#: Those that are read even where nothing was run on them, for what F does there.
SHOWN = ("full", "", "ga")


@dataclass(frozen=True)
class TaskEvaluation:
    """A task's part of the report, and what goes into the whole.

    Attributes
    ----------
    report : TaskReport
    refused : dict of int to str
        Predictions that could not be used, by index in the table of jobs.
    added : list of dict
        Scores per fold for AMLB's ``results.csv``.
    losses : DataFrame of shape (n, frameworks)
        Losses of the candidates on the untouched test folds, NaN where they have none.
    loss_f, clusters : ndarray of shape (n,)
        F's losses, and the source row of each.
    weights : ndarray of shape (n,) or None
        P(F fails | x), where it is known.
    """

    report: TaskReport
    refused: dict[int, str]
    added: list[dict[str, Any]]
    losses: pd.DataFrame
    loss_f: np.ndarray
    clusters: np.ndarray
    weights: np.ndarray | None


def evaluate_task(
    directory: str,
    task: str,
    jobs: pd.DataFrame,
    certificate: Certificate | None,
    colours: Mapping[str, ColourRole],
    level: float,
    points: int,
) -> TaskEvaluation:
    """Report on one task.

    Parameters
    ----------
    directory : str
    task : str
    jobs : DataFrame
        The rows of :func:`amlb_ext.runner.read_jobs` that belong to it.
    certificate : Certificate or None
    colours : mapping of str to Role
        Of the frameworks.
    level : float
    points : int
        That a chart may have; 0 for no charts and no map.
    """
    suite = Suite.load(directory)
    entry = suite.tasks[task]
    summaries = [entry.folds[fold].get("summary", {}) for fold in sorted(entry.folds)]
    views: dict[str, TaskPredictions] = {}
    refused: dict[int, str] = {}
    for suffix in READ:
        name = amlb_name(task, suffix)
        if name in suite.amlb_tasks and (suffix in SHOWN or (jobs["amlb_task"] == name).any()):
            views[suffix], problems = read_task_predictions(suite, name, jobs)
            refused |= problems
    full = views["full"]
    folds = len(suite.amlb_task(amlb_name(task, "full")).folds)
    incomplete = _incomplete(jobs[jobs["amlb_task"] == full.name], refused)
    null = read_null(suite, task)
    alarm = _alarm(views)
    found = compare_frameworks(
        task, full, certificate, null, incomplete, folds, level, NO_CLAIM if alarm else ""
    )
    failures = find_failures(suite, task, full, points)
    parts = report_parts(views, failures.groups)
    order = _order(found.contrasts)
    names = {str(j["framework"]): (str(j["name"]), str(j["constraint"]))
             for j in jobs.to_dict("records")}  # fmt: skip
    candidates = [name for name in full.f if not is_control_framework(name)]
    losses = pd.DataFrame({name: full.loss(name) for name in candidates}, index=full.rows.index)
    report = TaskReport(
        name=task,
        title=entry.source_name or task,
        kind=entry.kind.value,
        target=entry.target,
        labels=entry.coding.labels,
        rows=_rows(suite, task),
        folds=folds,
        certificate=certificate,
        loss="Brier loss" if full.labels else "squared error of the scaled target",
        weighting=found.weighting,
        no_claim=found.no_claim,
        warnings=(*found.warnings, *(f"{name}: {why}." for name, why in incomplete.items())),
        contrasts=found.contrasts,
        pairs=found.pairs,
        scores=score_parts(task, parts, level),
        slices=failures.slices,
        clusters=failures.clusters,
        charts=_charts(task, views, failures, found, order, colours, points),
        notes=(*entry.notes, *_notes_of_folds(suite.manifest, task)),
        weighted=found.is_weighted,
        alarm=alarm,
        left_out=sum(sum(s.get("left_out", {}).values()) for s in summaries),
        replaced=dict(sum((Counter(s.get("replaced", {})) for s in summaries), Counter())),
    )
    return TaskEvaluation(
        report,
        refused,
        list(fold_scores(task, parts, names)),
        losses,
        full.rows["loss"].to_numpy(dtype=float),
        full.rows["source_row"].to_numpy(),
        found.weights,
    )


def _notes_of_folds(manifest: Manifest, task: str) -> list[str]:
    """Return what happened in the folds, but for rows and cells, which are counted elsewhere."""
    return [
        note.sentence
        for note in fold_notes(manifest, task)
        if note.kind not in (ROWS_LEFT_OUT, CELLS_REPLACED)
    ]


def _alarm(views: Mapping[str, TaskPredictions]) -> str:
    """Return where the F that AMLB ran is not the F of the suite; empty where it is."""
    told = []
    for suffix in ("full", ""):
        view = views.get(suffix)
        for name in sorted(view.f) if view is not None else ():
            found = (
                view.disagreements(name) if view is not None and is_baseline_framework(name) else []
            )
            if found:
                told.append(alarm_text(f"{name}, as it was run,", found))
        if told:
            break
    return " ".join(f"{text}. {WHAT_TO_DO}" for text in told)


def _incomplete(jobs: pd.DataFrame, refused: Mapping[int, str]) -> dict[str, str]:
    """Return why a framework's results on real rows are not whole; folds not asked for are."""
    out: dict[str, str] = {}
    for name, some in jobs.groupby("framework", sort=True):
        gone: dict[str, list[int]] = {}
        for index, job in zip(some.index, some.to_dict("records"), strict=True):
            reason = refused.get(int(index), str(job["reason"]))
            word = "refused" if int(index) in refused else str(job["status"])
            if word in ("failed", "missing", "refused"):
                gone.setdefault(f"{word} ({reason})", []).append(int(job["fold"]))
        if gone:
            out[str(name)] = "; ".join(
                f"fold{'s' if len(which) > 1 else ''} {', '.join(map(str, which))} {word}"
                for word, which in gone.items()
            )
    return out


def _order(contrasts: pd.DataFrame) -> list[str]:
    """Return candidates by their contrast on the region, the best first."""
    table = contrasts[contrasts["where"] == "region"] if len(contrasts) else contrasts
    if len(table):
        table = table.dropna(subset=["difference"]).sort_values("difference", kind="stable")
    return [str(name) for name in table.get("framework", ()) if not is_control_framework(str(name))]


def _rows(suite: Suite, task: str) -> dict[str, int]:
    out = {}
    for suffix in ("full", "bad", "ga", "synthetic"):
        entry = suite.amlb_tasks.get(amlb_name(task, suffix))
        out[suffix] = sum(entry.test_rows) if entry is not None else 0
    return out


def _charts(
    task: str,
    views: Mapping[str, TaskPredictions],
    failures: FailureDescription,
    found: TaskComparison,
    order: Sequence[str],
    colours: Mapping[str, ColourRole],
    points: int,
) -> tuple[Chart, ...]:
    if points <= 0:
        return ()
    full, main = views["full"], views.get("")
    everything = np.ones(len(full), dtype=bool)
    each = max(40, points // 4)
    out = [
        charts.contrast_chart(f"{task}-contrasts", found.contrasts, colours),
        failures.chart,
        charts.target_chart(f"{task}-target", views),
    ]
    if full.labels:
        weights = found.weights if found.is_weighted else None
        title = "ROC on the failure region (real rows, weighted)"
        if weights is None:
            title = "ROC on all real rows, each counting alike"
        out.append(charts.roc_chart(f"{task}-roc-region", title, full, everything, weights, order,
                                  colours))  # fmt: skip
    else:
        out.append(
            charts.truth_chart(f"{task}-truth", "Prediction against truth, real rows", full,
                             everything, order, colours, each)
        )  # fmt: skip
    if main is not None:
        made = np.ones(len(main), dtype=bool)
        title = "bad and synthetic rows (chosen by F's errors)"
        if full.labels:
            out.append(
                charts.roc_chart(
                    f"{task}-roc-evaluation", f"ROC on {title}", main, made, None, order, colours
                )
            )
        else:
            out.append(charts.truth_chart(f"{task}-truth-evaluation",
                                        f"Prediction against truth, {title}", main, made, order,
                                        colours, each))  # fmt: skip
    # drawn here, in a process of the task's own
    return tuple(replace(chart, drawn=draw_chart(chart)) for chart in out if chart is not None)
