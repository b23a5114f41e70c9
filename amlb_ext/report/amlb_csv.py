"""Our scores beside AMLB's own, in the shape of AMLB's ``results.csv``.

AMLB's rows come first and stay as they are; metrics that AMLB does not compute are added to
them as columns. Scores on rows that no job of AMLB tested as a task follow as rows of their
own, named like tasks: ``credit-g_weighted``, ``credit-g_bad`` and so on. AMLB's ``Scoreboard``
and ``amlb_report.prepare_results`` read the file.

Columns and number formats are those of ``Scoreboard.as_data_frame`` and
``as_printable_data_frame`` in ``amlb/results.py``, the same in AMLB v2.1.7 and on its
development branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.files import write_file
from amlb_ext.report.metrics import DIRECTION, MAIN
from amlb_ext.suite import amlb_name

#: AMLB's columns before the metrics, in AMLB's order.
FIXED = (
    "id",
    "task",
    "framework",
    "constraint",
    "fold",
    "type",
    "result",
    "metric",
    "mode",
    "version",
    "params",
    "app_version",
    "utc",
    "duration",
    "training_duration",
    "predict_duration",
    "models_count",
    "seed",
    "info",
)
#: Metrics that AMLB puts first, sorted; others follow, sorted too.
_AMLB_METRICS = {
    "acc",
    "auc",
    "auc_ovo",
    "auc_ovr",
    "balacc",
    "f05",
    "f1",
    "f2",
    "logloss",
    "max_pce",
    "mean_pce",
    "pr_auc",
    "mae",
    "mse",
    "msle",
    "r2",
    "rmse",
    "rmsle",
}
_WHOLE = {"fold", "models_count", "seed"}
_SECONDS = {"duration", "training_duration", "predict_duration"}
_TEXT = set(FIXED) - _WHOLE - _SECONDS - {"result"}
#: What a row of ours takes from the framework's own.
_COPIED = ("mode", "version", "params", "app_version", "utc", "seed")
#: How far a metric of ours may be from AMLB's six digits to be of the same predictions.
_TOLERANCE = 2e-5

#: AMLB's f1 of a multiclass task is the support-weighted mean.
_MULTICLASS_NAMES = {"f1": "f1_macro", "f1_weighted": "f1"}

#: A row of AMLB's results, by column.
_Row = dict[str, Any]
#: Task, framework, constraint and fold.
_Key = tuple[str, str, str, int]


def amlb_rows(results: pd.DataFrame, added: Iterable[ScoredJob]) -> pd.DataFrame:
    """Add our scores to AMLB's rows, and rows of our own behind them.

    Parameters
    ----------
    results : DataFrame
        AMLB's rows, as :func:`amlb_ext.runner.read_results` gives them.
    added : iterable of ScoredJob
        Of two versions of a framework, which AMLB names alike, the last counts.

    Returns
    -------
    DataFrame
        AMLB's columns in AMLB's order. AMLB's rows come first, changed only in that metrics
        AMLB has no column for stand beside them; where a metric that AMLB has too says that
        the scores are of other predictions (the job ran twice), not even that. Then one row
        per framework, fold and part that is no task of AMLB's and has a score: ``task`` is
        ``<amlb_task>_<part>``, ``id`` is ``hardsynth/<task>`` (one per task, for AMLB's report
        looks tasks up by it), ``result`` is higher-is-better, ``mode``, ``version``, ``params``,
        ``app_version``, ``utc`` and ``seed`` are the framework's own, times and ``info`` are
        missing. ``metric`` is that of AMLB's rows of the same source; where it is defined in
        some fold for no framework (AUC of one class), the task is told in log loss.

    Notes
    -----
    ``f1`` of a multiclass task is a support-weighted mean in AMLB's files: ``f1_weighted`` is
    written under that name there, and the macro mean as ``f1_macro``.

    Examples
    --------
    >>> own = {"id": "t", "task": "t", "framework": "F", "constraint": "c", "fold": 0}
    >>> own |= {"type": "regression", "result": -2.0, "metric": "neg_rmse", "rmse": 2.0}
    >>> job = {"source": "t", "framework": "F", "constraint": "c", "fold": 0, "kind": "regression"}
    >>> ours = [ScoredJob(part="", metrics={"mse": 4.0}, **job)]
    >>> ours += [ScoredJob(part="bad", metrics={"rmse": 3.0}, **job)]
    >>> rows = amlb_rows(pd.DataFrame([own]), ours)
    >>> print(rows[["id", "task", "result", "metric", "mse", "rmse"]].to_string())
                    id   task  result    metric  mse  rmse
    0                t      t    -2.0  neg_rmse  4.0   2.0
    1  hardsynth/t_bad  t_bad    -3.0  neg_rmse  NaN   3.0
    """
    jobs = {(job.task, job.framework, job.constraint, job.fold): job for job in added}
    amlb_results = results.drop(columns="run", errors="ignore")
    rows: list[_Row] = amlb_results.to_dict("records")
    amlb_columns = set(results.columns)
    amlb = _AmlbRows(rows)
    jobs_by_task: dict[str, list[ScoredJob]] = {}
    for job in jobs.values():
        own_rows = amlb.of_job(job, job.task)
        for row in own_rows:
            if not _are_same_predictions(row, job.scores):
                continue
            for name, score in job.scores.items():
                if name not in amlb_columns:
                    row[name] = score
        # A part that AMLB ran as a task of its own has its row already.
        if not own_rows and any(map(job.is_defined, job.scores)):
            jobs_by_task.setdefault(job.task, []).append(job)
    for task_jobs in jobs_by_task.values():
        metric = _result_metric(amlb, task_jobs)
        for job in task_jobs:
            rows.append(_result_row(job, metric, amlb.nearest(job)))
    return _in_amlb_order(rows, amlb_columns)


def write_amlb_csv(frame: pd.DataFrame, path: Path) -> str:
    """Write rows as AMLB writes its ``results.csv``.

    Scores have six significant digits, times one decimal (one digit below a second), counts
    none; what is missing is empty. AMLB's rows come out byte for byte as they were read.

    Parameters
    ----------
    frame : DataFrame
        As :func:`amlb_rows` gives it.
    path : Path

    Returns
    -------
    str
        The sha256 of the file.
    """
    printable = {}
    for name, values in frame.items():
        column = str(name)
        printable[column] = values
        if column not in _TEXT:
            numbers = [_printable_number(column, value) for value in values]
            printable[column] = pd.Series(numbers, dtype=object, index=values.index)
    # As objects, or pandas would give a column of whole numbers its decimals back.
    table = pd.DataFrame(printable, columns=list(printable), dtype=object)
    return write_file(
        path,
        lambda part: table.to_csv(
            part, index=False, lineterminator="\n", encoding="utf-8"
        ),
    )


@dataclass(frozen=True, kw_only=True)
class ScoredJob:
    """Scores of ours of one framework on one fold of one part.

    Attributes
    ----------
    source : str
        The source's AMLB task without suffix, ``credit-g``.
    part : str
        ``weighted`` (region weights on the untouched fold), ``full``, ``bad``, ``ga``,
        ``synthetic``, or empty for the rows of ``credit-g`` itself.
    framework, constraint : str
        As AMLB names them.
    fold : int
    kind : {'regression', 'binary', 'multiclass'}
    metrics : dict of str to float
        Those of :mod:`amlb_ext.report.metrics`.
    """

    source: str
    part: str
    framework: str
    constraint: str
    fold: int
    kind: str
    metrics: dict[str, float]

    @cached_property
    def scores(self) -> dict[str, float]:
        """The metrics under AMLB's names."""
        names = _MULTICLASS_NAMES if self.kind == "multiclass" else {}
        return {names.get(name, name): value for name, value in self.metrics.items()}

    @property
    def task(self) -> str:
        """The name of the part as a task, ``credit-g_bad``."""
        return amlb_name(self.source, self.part)

    def is_defined(self, metric: str) -> bool:
        """Whether a metric has a value on the rows of the job."""
        return bool(np.isfinite(self.scores.get(metric, np.nan)))


class _AmlbRows:
    """AMLB's rows by job, and what rows of ours take from them."""

    def __init__(self, rows: Iterable[_Row]) -> None:
        self._by_job: dict[_Key, list[_Row]] = {}
        self._first_by_framework: dict[tuple[str, str], _Row] = {}
        self._metric_by_task: dict[str, str] = {}
        for row in rows:
            task = str(row["task"])
            framework = str(row["framework"])
            constraint = str(row.get("constraint", ""))
            fold = int(row["fold"])
            key = (task, framework, constraint, fold)
            self._by_job.setdefault(key, []).append(row)
            self._first_by_framework.setdefault((framework, constraint), row)
            # A job that failed may have no metric: the task's is that of another one.
            if not self._metric_by_task.get(task):
                self._metric_by_task[task] = str(row.get("metric") or "")

    def of_job(self, job: ScoredJob, task: str) -> list[_Row]:
        """Return AMLB's rows of the same framework, constraint and fold on a task."""
        key = (task, job.framework, job.constraint, job.fold)
        return self._by_job.get(key, [])

    def nearest(self, job: ScoredJob) -> Mapping[str, Any]:
        """Return the framework's row of the same source and fold, else its first, else none."""
        for task in _source_tasks(job.source):
            rows = self.of_job(job, task)
            if rows:
                return rows[0]
        return self._first_by_framework.get((job.framework, job.constraint), {})

    def metric(self, source: str) -> str:
        """Return the metric of AMLB's ``result`` on a source, empty where it is not known."""
        for task in _source_tasks(source):
            metric = self._metric_by_task.get(task, "")
            if metric:
                return metric.removeprefix("neg_")
        return ""


def _source_tasks(source: str) -> tuple[str, str]:
    """Return the AMLB tasks whose rows stand for a source."""
    return source, amlb_name(source, "full")


def _are_same_predictions(row: Mapping[str, Any], scores: Mapping[str, float]) -> bool:
    """Whether the metrics that AMLB has too are equal, but for its six digits."""
    for name, ours in scores.items():
        theirs = row.get(name, np.nan)
        if not np.isfinite(theirs) or not np.isfinite(ours):
            continue
        scale = max(abs(theirs), abs(ours), 1e-4)  # six digits of 0 say nothing
        if abs(theirs - ours) > _TOLERANCE * scale:
            return False
    return True


def _result_metric(amlb: _AmlbRows, jobs: Sequence[ScoredJob]) -> str:
    """Return what one task's ``result`` is made of, the same for every framework and fold."""
    kind = jobs[0].kind
    folds = {job.fold for job in jobs}
    # The metric of AMLB's own rows, so that its report sets ours beside them.
    own_metric = amlb.metric(jobs[0].source) or MAIN[kind]
    for metric in (own_metric, MAIN[kind]):
        defined_folds = {job.fold for job in jobs if job.is_defined(metric)}
        if defined_folds == folds:
            return metric
    # These two are defined for any rows.
    return "rmse" if kind == "regression" else "logloss"


def _result_row(job: ScoredJob, metric: str, framework_row: Mapping[str, Any]) -> _Row:
    """Return a row of ours; ``framework_row`` is AMLB's own that lends it the version."""
    # AMLB's ``result`` is higher-is-better throughout.
    is_negated = DIRECTION[metric] == "lower"
    score = job.scores.get(metric, np.nan)
    copied = {}
    for name in _COPIED:
        if name in framework_row:
            copied[name] = framework_row[name]
    return {
        "id": f"hardsynth/{job.task}",
        "task": job.task,
        "framework": job.framework,
        "constraint": job.constraint,
        "fold": job.fold,
        "type": job.kind,
        "result": -score if is_negated else score,
        "metric": f"neg_{metric}" if is_negated else metric,
        **copied,
        **job.scores,
    }


def _in_amlb_order(rows: list[_Row], amlb_columns: set[str]) -> pd.DataFrame:
    """Return the rows with AMLB's columns first, in AMLB's order and types."""
    # "run" is this project's own column, not AMLB's.
    names = (amlb_columns - {"run"}).union(*rows)
    metrics = names - set(FIXED)
    amlb_metrics = sorted(metrics & _AMLB_METRICS)
    other_metrics = sorted(metrics - _AMLB_METRICS)
    order = [*FIXED, *amlb_metrics, *other_metrics]
    columns = {}
    for name in order:
        values = [row.get(name) for row in rows]
        if name in _TEXT:
            text = ["" if pd.isna(value) else str(value) for value in values]
            columns[name] = pd.Series(text, dtype=object)
        else:
            dtype = "int64" if name == "fold" else "float64"
            columns[name] = pd.Series(values, dtype=dtype)
    return pd.DataFrame(columns, columns=order)


def _printable_number(name: str, value: float) -> float | int | str:
    """Round as AMLB's ``as_printable_data_frame`` does."""
    if pd.isna(value):
        return ""
    if name in _WHOLE:
        return int(value)
    if name not in _SECONDS:
        return float(f"{value:.6g}")
    if value < 1:
        return float(f"{value:.1g}")
    return float(f"{value:.1f}")
