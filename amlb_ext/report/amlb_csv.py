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

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError
from amlb_ext.core.files import write_file
from amlb_ext.report.metrics import DIRECTION, MAIN
from amlb_ext.suite import amlb_name

#: AMLB's columns before the metrics, in AMLB's order.
FIXED = (
    *("id", "task", "framework", "constraint", "fold", "type", "result", "metric", "mode"),
    *("version", "params", "app_version", "utc", "duration", "training_duration"),
    *("predict_duration", "models_count", "seed", "info"),
)
#: Metrics that AMLB puts first, sorted; others follow, sorted too.
_AMLB_METRICS = {
    *("acc", "auc", "auc_ovo", "auc_ovr", "balacc", "f05", "f1", "f2", "logloss", "max_pce"),
    *("mean_pce", "pr_auc", "mae", "mse", "msle", "r2", "rmse", "rmsle"),
}
_WHOLE = {"fold", "models_count", "seed"}
_SECONDS = {"duration", "training_duration", "predict_duration"}
_TEXT = set(FIXED) - _WHOLE - _SECONDS - {"result"}
#: What a row of ours takes from the framework's own.
_COPIED = ("mode", "version", "params", "app_version", "utc", "seed")
#: How far a metric of ours may be from AMLB's six digits to be of the same predictions.
_TOLERANCE = 2e-5
_JOB = ["amlb_task", "part", "framework", "constraint", "fold"]
_WANTED = (*_JOB, "type", "metric", "value")

_Key = tuple[str, str, str, int]


def amlb_rows(results: pd.DataFrame, added: pd.DataFrame) -> pd.DataFrame:
    """Put scores of ours behind and beside AMLB's.

    Parameters
    ----------
    results : DataFrame
        AMLB's rows, as :func:`amlb_ext.runner.read_results` gives them.
    added : DataFrame
        One score per row: ``amlb_task`` (the source's AMLB task without suffix, ``credit-g``),
        ``fold``, ``framework``, ``constraint``, ``part``, ``type``, ``metric``, ``value``. The
        metrics are those of :mod:`amlb_ext.report.metrics`; the part is ``weighted`` (region
        weights on the untouched fold), ``full``, ``bad``, ``ga``, ``synthetic``, or empty for
        the rows of ``credit-g`` itself. May be empty.

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

    Raises
    ------
    DataError
        A column is missing, a metric is unknown, or a score stands twice.

    Notes
    -----
    ``f1`` of a multiclass task is a support-weighted mean in AMLB's files: ``f1_weighted`` is
    written under that name there, and the macro mean as ``f1_macro``.

    Examples
    --------
    >>> own = {"id": "t", "task": "t", "framework": "F", "constraint": "c", "fold": 0}
    >>> own |= {"type": "regression", "result": -2.0, "metric": "neg_rmse", "rmse": 2.0}
    >>> names = ["amlb_task", "fold", "framework", "constraint", "part", "type", "metric", "value"]
    >>> ours = [("t", 0, "F", "c", "", "regression", "mse", 4.0)]
    >>> ours += [("t", 0, "F", "c", "bad", "regression", "rmse", 3.0)]
    >>> rows = amlb_rows(pd.DataFrame([own]), pd.DataFrame(ours, columns=names))
    >>> print(rows[["id", "task", "result", "metric", "mse", "rmse"]].to_string())
                    id   task  result    metric  mse  rmse
    0                t      t    -2.0  neg_rmse  4.0   2.0
    1  hardsynth/t_bad  t_bad    -3.0  neg_rmse  NaN   3.0
    """
    if len(added):
        _check(added)
    rows: list[dict[str, Any]] = results.drop(columns="run", errors="ignore").to_dict("records")
    theirs = set(results.columns)
    own = _Own(rows)
    others: dict[str, list[dict[str, Any]]] = {}
    for job, scores in _jobs(added) if len(added) else ():
        task = amlb_name(job["amlb_task"], job["part"])
        same = own.jobs.get(_key(job, task), [])
        for row in same:
            if _same_predictions(row, scores):
                row.update({name: v for name, v in scores.items() if name not in theirs})
        if not same and np.isfinite(list(scores.values())).any():
            others.setdefault(task, []).append(job | {"scores": scores})
    for task, jobs in others.items():
        metric = _result_metric(own, jobs)
        rows += [_row(own.nearest(job), task, job, metric) for job in jobs]
    return _framed(rows, theirs)


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
    out = {str(name): _printable(str(name), frame[name]) for name in frame.columns}
    table = pd.DataFrame(out, columns=list(out), dtype=object)
    return write_file(
        path, lambda part: table.to_csv(part, index=False, lineterminator="\n", encoding="utf-8")
    )


class _Own:
    """AMLB's rows by job, and what rows of ours take from them."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self.jobs: dict[_Key, list[dict[str, Any]]] = {}
        self.metrics: dict[str, str] = {}
        self._first: dict[tuple[str, str], dict[str, Any]] = {}
        for row in rows:
            key = _key(row, row["task"])
            self.jobs.setdefault(key, []).append(row)
            self._first.setdefault(key[1:3], row)
            self.metrics[key[0]] = self.metrics.get(key[0]) or str(row.get("metric") or "")

    def nearest(self, job: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the framework's row of the same source and fold, else its first, else none."""
        for task in _sources(job["amlb_task"]):
            if same := self.jobs.get(_key(job, task)):
                return same[0]
        return self._first.get(_key(job, "")[1:3], {})


def _sources(name: str) -> tuple[str, str]:
    return name, amlb_name(name, "full")


def _check(added: pd.DataFrame) -> None:
    for name in _WANTED:
        if name not in added.columns:
            raise DataError(f"the scores have no column {name!r}", f"they need {_WANTED}")
    unknown = sorted(set(added["metric"]) - set(DIRECTION))
    if unknown:
        raise DataError(f"unknown metric {unknown[0]!r}", f"known: {', '.join(DIRECTION)}")
    double = added.duplicated([*_JOB, "metric"])
    if double.any():
        where = added.loc[double, [*_JOB, "metric"]].iloc[0].to_dict()
        raise DataError(f"a score stands twice: {where}", "keep one run per job")


def _jobs(added: pd.DataFrame) -> Iterable[tuple[dict[str, Any], dict[str, float]]]:
    """Yield each job and part with its scores under AMLB's names."""
    named = {name: "" for name in _JOB if name != "fold"}
    for key, group in added.fillna(named).groupby(_JOB, sort=False):
        job = dict(zip(_JOB, key, strict=True)) | {"type": str(group["type"].iloc[0])}
        values = dict(zip(group["metric"], map(float, group["value"]), strict=True))
        if job["type"] == "multiclass":
            names = {"f1": "f1_macro", "f1_weighted": "f1"}
            values = {names.get(name, name): value for name, value in values.items()}
        yield job, values


def _key(row: Mapping[str, Any], task: str) -> _Key:
    return str(task), str(row["framework"]), str(row.get("constraint", "")), int(row["fold"])


def _same_predictions(row: Mapping[str, Any], scores: Mapping[str, float]) -> bool:
    pairs = [(row.get(name, np.nan), value) for name, value in scores.items()]
    known = [(a, b) for a, b in pairs if np.isfinite(a) and np.isfinite(b)]
    return all(abs(a - b) <= _TOLERANCE * max(abs(a), abs(b), 1e-4) for a, b in known)


def _result_metric(own: _Own, jobs: list[dict[str, Any]]) -> str:
    """Return what one task's ``result`` is made of, the same for every framework and fold."""
    kind, source = jobs[0]["type"], jobs[0]["amlb_task"]
    told = (own.metrics.get(task, "") for task in _sources(source))
    main = next((name.removeprefix("neg_") for name in told if name), MAIN[kind])
    folds = {job["fold"] for job in jobs}
    wanted = (main, MAIN[kind], "rmse" if kind == "regression" else "logloss")
    for name in wanted:
        good = {job["fold"] for job in jobs if np.isfinite(job["scores"].get(name, np.nan))}
        if good == folds:
            return name
    return wanted[-1]


def _row(own: Mapping[str, Any], task: str, job: Mapping[str, Any], metric: str) -> dict[str, Any]:
    sign = -1.0 if DIRECTION[metric] == "lower" else 1.0
    return {
        "id": f"hardsynth/{task}",
        "task": task,
        "framework": job["framework"],
        "constraint": job["constraint"],
        "fold": job["fold"],
        "type": job["type"],
        "result": sign * job["scores"].get(metric, np.nan),
        "metric": f"neg_{metric}" if sign < 0 else metric,
        **{name: own[name] for name in _COPIED if name in own},
        **job["scores"],
    }


def _framed(rows: list[dict[str, Any]], theirs: set[str]) -> pd.DataFrame:
    names = (theirs - {"run"}).union(*map(set, rows)) - set(FIXED)
    order = [*FIXED, *sorted(names & _AMLB_METRICS), *sorted(names - _AMLB_METRICS)]
    out = {}
    for name in order:
        values = [row.get(name) for row in rows]
        if name in _TEXT:
            text = ["" if pd.isna(value) else str(value) for value in values]
            out[name] = pd.Series(text, dtype=object)
        elif name == "fold":
            out[name] = pd.Series(values, dtype="int64")
        else:
            out[name] = pd.Series(values, dtype="float64")
    return pd.DataFrame(out, columns=order)


def _printable(name: str, values: pd.Series) -> pd.Series:
    if name in _TEXT:
        return values
    return pd.Series([_number(name, value) for value in values], dtype=object, index=values.index)


def _number(name: str, value: float) -> float | int | str:
    if pd.isna(value):
        return ""
    if name in _WHOLE:
        return int(value)
    if name in _SECONDS:
        return float(f"{value:.1g}" if value < 1 else f"{value:.1f}")
    return float(f"{value:.6g}")
