"""Scores of every framework, and of F, on each part of a task.

Parts on real rows: ``full`` (the untouched test folds), ``region`` (the same, weighted by
P(F fails | x)), ``bad`` (those on which F fails) and ``group 1``, ... (the failure clusters).
Made of failures: ``ga``, ``synthetic``, and ``evaluation``, the paper's set of bad and synthetic
rows; ``hard`` are models trained on hard rows, on their own test rows. All folds are pooled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.row_losses import brier_loss
from amlb_ext.report.metrics import DIRECTION, score_rows
from amlb_ext.report.predictions import TaskPredictions
from amlb_ext.stats.weighted_mean import weighted_mean_interval

#: What F is called among frameworks.
F = "F"
#: Parts chosen without looking at F's errors: all that models may be ranked on.
UNSELECTED = ("full", "region")
COLUMNS = (
    *("task", "framework", "part", "metric", "value", "low", "high", "rows", "folds", "direction"),
)
#: AMLB does not report these by default, and they are slow.
_NOT_PER_FOLD = ("auc_ovo", "auc_ovr", "rmsle")

_View = tuple[TaskPredictions, np.ndarray, np.ndarray | None]


def report_parts(
    views: Mapping[str, TaskPredictions], groups: np.ndarray | None
) -> dict[str, _View]:
    """Return each part as an AMLB task, its rows (bool) and their weights.

    Parameters
    ----------
    views : mapping of str to Predicted
        By suffix of the AMLB task; those that were read.
    groups : ndarray of shape (n,), int, optional
        The failure cluster of each row of ``full``, -1 for none.
    """
    out: dict[str, _View] = {}
    full, main = views.get("full"), views.get("")
    if full is not None:
        everything, bad = np.ones(len(full), bool), (full.rows["origin"] == "bad").to_numpy()
        out["full"] = (full, everything, None)
        w = full.rows["weight"].to_numpy(dtype=float)
        if np.isfinite(w).all() and w.sum() > 0:
            out["region"] = (full, everything, w)
        if bad.any():
            out["bad"] = (full, bad, None)
    for origin in ("ga", "synthetic"):
        for view in (views.get(origin), main):
            if view is not None and (view.rows["origin"] == origin).any() and origin not in out:
                out[origin] = (view, (view.rows["origin"] == origin).to_numpy(), None)
    if main is not None:
        out["evaluation"] = (main, np.ones(len(main), bool), None)
    if (hard := views.get("hard")) is not None:
        out["hard"] = (hard, np.ones(len(hard), bool), None)
    if full is not None and groups is not None and groups.max(initial=-1) > 0:
        for group in range(groups.max() + 1):
            out[f"group {group + 1}"] = (full, groups == group, None)
    return out


def score_parts(task: str, parts: Mapping[str, _View], level: float = 0.95) -> pd.DataFrame:
    """Return every metric of every framework on every part; NaN where it is undefined.

    Returns
    -------
    DataFrame
        ``task``, ``framework``, ``part``, ``metric``, ``value``, ``low``, ``high``, ``rows``,
        ``folds``, ``direction``. A framework is scored on the folds it has; ``rows`` and
        ``folds`` say how many those are. There is an interval for metrics that are means over
        rows, on the parts that were not chosen by F's errors; elsewhere it is NaN.
    """
    out = []
    for part, (view, rows, weights) in parts.items():
        for name, f in _entrants(view, part).items():
            keep = rows & ~np.isnan(f if f.ndim == 1 else f[:, 0])
            if not keep.any():
                continue
            about = {
                "task": task,
                "framework": name,
                "part": part,
                "rows": int(keep.sum()),
                "folds": int(view.rows.loc[keep, "fold"].nunique()),
            }
            known = {}
            if part in UNSELECTED:
                known = _intervals(view, name, f, keep, weights, level)
            for metric, value in _scores(view, name, f, keep, weights).items():
                low, high = known.get(metric, (np.nan, np.nan))
                out.append(about | {"metric": metric, "value": value, "low": low, "high": high,
                                    "direction": DIRECTION[metric]})  # fmt: skip
    return pd.DataFrame(out, columns=list(COLUMNS))


def _intervals(
    view: TaskPredictions,
    name: str,
    f: np.ndarray,
    keep: np.ndarray,
    weights: np.ndarray | None,
    level: float,
) -> dict[str, tuple[float, float]]:
    """Return intervals of the metrics that are means over rows, clustered by source row."""
    y, f = view.y[keep], f[keep]
    if view.labels:
        chosen = view.chosen[name][keep] if name in view.chosen else f.argmax(axis=1)
        tiny = np.finfo(float).eps
        own = np.clip(f[np.arange(len(y)), y], tiny, 1 - tiny)
        values = {
            "acc": (chosen == y).astype(float),
            "brier": brier_loss(y, f),
            "logloss": -np.log(own),
        }
    else:
        values = {"mse": (f - y) ** 2, "mae": np.abs(f - y)}
    w = None if weights is None else weights[keep]
    clusters = view.rows["source_row"].to_numpy()[keep]
    out = {}
    for metric, each in values.items():
        found = weighted_mean_interval(each, w, clusters, level)
        out[metric] = (found.low, found.high)
    if "mse" in out:  # a monotone function of the mean has its ends at those of the mean
        low, high = out["mse"]
        out["rmse"] = (float(np.sqrt(max(low, 0.0))), float(np.sqrt(high)))
    return out


def fold_scores(
    task: str, parts: Mapping[str, _View], jobs: Mapping[str, tuple[str, str]]
) -> Iterator[dict[str, Any]]:
    """Yield scores per fold, as :func:`amlb_ext.report.amlb_csv.amlb_rows` takes them.

    Parameters
    ----------
    task : str
    parts : mapping
        See :func:`report_parts`.
    jobs : mapping of str to (str, str)
        AMLB's name and constraint of each framework.
    """
    named = {"evaluation": "", "full": "full", "region": "weighted"}
    named |= {part: part for part in ("bad", "ga", "synthetic")}
    for part, (view, rows, weights) in parts.items():
        if part not in named:
            continue
        folds = view.rows["amlb_fold"].to_numpy()
        for name, f in view.f.items():
            known = rows & view.scored(name)
            for fold in np.unique(folds[known]):
                keep = known & (folds == fold)
                scores = _scores(view, name, f, keep, weights, _NOT_PER_FOLD)
                for metric, value in scores.items():
                    yield {
                        "amlb_task": task,
                        "fold": int(fold),
                        "framework": jobs[name][0],
                        "constraint": jobs[name][1],
                        "part": named[part],
                        "type": view.kind.value,
                        "metric": metric,
                        "value": value,
                    }


def _entrants(view: TaskPredictions, part: str) -> dict[str, np.ndarray]:
    own = view.own()
    # on the rows of `hard` the provenance holds F trained on other rows: no fair neighbour
    return ({} if own is None or part == "hard" else {F: own}) | dict(sorted(view.f.items()))


def _scores(
    view: TaskPredictions,
    name: str,
    f: np.ndarray,
    keep: np.ndarray,
    weights: np.ndarray | None,
    leave_out: Collection[str] = (),
) -> dict[str, float]:
    chosen = view.chosen.get(name)
    return score_rows(
        view.y[keep],
        f[keep],
        None if weights is None else weights[keep],
        len(view.labels),
        None if chosen is None else chosen[keep],
        leave_out,
    )
