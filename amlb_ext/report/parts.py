"""Scores of every framework, and of F, on each part of a task.

Parts on real rows: ``full`` (the untouched test folds), ``region`` (the same, weighted by
P(F fails | x)) and ``bad`` (those on which F fails).
Made of failures: ``ga`` and ``synthetic``; ``evaluation`` is the main task, where there is one, and
``hard`` are models trained on hard rows, on their own test rows. All folds are pooled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from amlb_ext.core.row_losses import brier_loss, true_probability
from amlb_ext.core.unit import F
from amlb_ext.report.metrics import DIRECTION, score_rows
from amlb_ext.report.predictions import (
    TaskPredictions,
    has_prediction,
    row_clusters,
)
from amlb_ext.stats.weighted_mean import weighted_mean_interval

#: Parts chosen without looking at F's errors: all that models may be ranked on.
UNSELECTED = ("full", "region")
COLUMNS = (
    "task",
    "framework",
    "part",
    "metric",
    "value",
    "low",
    "high",
    "rows",
    "folds",
    "direction",
)
#: Smallest and largest value of each metric that is a mean over rows.
_RANGES = {
    "acc": (0.0, 1.0),
    "brier": (0.0, 2.0),
    "logloss": (0.0, np.inf),
    "mse": (0.0, np.inf),
    "mae": (0.0, np.inf),
}


@dataclass(frozen=True, kw_only=True)
class ReportPart:
    """Some rows of an AMLB task, on which every framework is scored.

    Attributes
    ----------
    predictions : TaskPredictions
    rows : ndarray of shape (n,), bool
    weights : ndarray of shape (n,) or None
        None where all rows count alike.
    """

    predictions: TaskPredictions
    rows: np.ndarray
    weights: np.ndarray | None = None

    @classmethod
    def whole(
        cls, predictions: TaskPredictions, weights: np.ndarray | None = None
    ) -> ReportPart:
        """Return all rows of an AMLB task."""
        every_row = np.ones(len(predictions), dtype=bool)
        return cls(predictions=predictions, rows=every_row, weights=weights)

    @classmethod
    def of_origin(cls, predictions: TaskPredictions, origin: str) -> ReportPart:
        """Return the rows of one origin: ``bad``, ``ga`` or ``synthetic``."""
        rows = (predictions.rows["origin"] == origin).to_numpy()
        return cls(predictions=predictions, rows=rows)

    def scores(self, name: str, f: np.ndarray) -> dict[str, float]:
        """Return the metrics of a framework on the part, whose rows all have a prediction."""
        rows = self.rows
        # The class that a framework names need not be the most probable one.
        chosen = self.predictions.chosen.get(name)
        return score_rows(
            self.predictions.y[rows],
            f[rows],
            weights=None if self.weights is None else self.weights[rows],
            predicted=None if chosen is None else chosen[rows],
        )

    def intervals(
        self, name: str, f: np.ndarray, level: float
    ) -> dict[str, tuple[float, float]]:
        """Return intervals of the metrics that are means over rows, clustered as the rows are."""
        rows = self.rows
        # Occurrences of a source row in several folds are one observation.
        clusters = row_clusters(self.predictions.rows)[rows]
        weights = None if self.weights is None else self.weights[rows]
        intervals = {}
        for metric, values in _row_metrics(self.predictions, name, f, rows).items():
            mean = weighted_mean_interval(values, weights, clusters, level=level)
            least, most = _RANGES[metric]
            intervals[metric] = (max(mean.low, least), min(mean.high, most))
        if "mse" in intervals:
            # A monotone function of the mean has its ends at those of the mean.
            low, high = intervals["mse"]
            intervals["rmse"] = (float(np.sqrt(low)), float(np.sqrt(high)))
        return intervals


def _row_metrics(
    predictions: TaskPredictions, name: str, f: np.ndarray, rows: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the metrics that are means over rows, row by row."""
    y, f = predictions.y[rows], f[rows]
    if not predictions.labels:
        error = f - y
        return {"mse": error**2, "mae": np.abs(error)}
    chosen = f.argmax(axis=1)
    if name in predictions.chosen:
        chosen = predictions.chosen[name][rows]
    tiny = np.finfo(float).eps
    # The logarithm of 0 is no loss: clipped as the metric does.
    of_true_class = np.clip(true_probability(y, f), tiny, 1 - tiny)
    return {
        "acc": (chosen == y).astype(float),
        "brier": brier_loss(y, f),
        "logloss": -np.log(of_true_class),
    }


def report_parts(
    views: Mapping[str, TaskPredictions], place: np.ndarray | None
) -> dict[str, ReportPart]:
    """Return the parts of a task that have rows, by name.

    Parameters
    ----------
    views : mapping of str to TaskPredictions
        The AMLB tasks that were read, by suffix.
    place : ndarray of shape (n,) or None
        Which rows of ``full`` are where F fails, as contrasts have it; None without a region.
    """
    parts: dict[str, ReportPart] = {}
    full = views.get("full")
    main = views.get("")
    if full is not None:
        parts["full"] = ReportPart.whole(full)
        if place is not None:
            parts["region"] = ReportPart.whole(full, place)
        bad = ReportPart.of_origin(full, "bad")
        if bad.rows.any():
            parts["bad"] = bad
    for origin in ("ga", "synthetic"):
        # Their own AMLB task first; older suites have these rows in the main one only.
        for predictions in (views.get(origin), main):
            if predictions is None or origin in parts:
                continue
            made = ReportPart.of_origin(predictions, origin)
            if made.rows.any():
                parts[origin] = made
    if main is not None:
        parts["evaluation"] = ReportPart.whole(main)
    if "hard" in views:
        parts["hard"] = ReportPart.whole(views["hard"])
    return parts


def score_parts(
    task: str, parts: Mapping[str, ReportPart], level: float = 0.95
) -> pd.DataFrame:
    """Return every metric of every framework on every part; NaN where it is undefined.

    Returns
    -------
    DataFrame
        ``task``, ``framework``, ``part``, ``metric``, ``value``, ``low``, ``high``, ``rows``,
        ``folds``, ``direction``. A framework is scored on the folds it has; ``rows`` and
        ``folds`` say how many those are. There is an interval for metrics that are means over
        rows, on the parts that were not chosen by F's errors; elsewhere it is NaN.
    """
    scores = []
    for part_name, part in parts.items():
        folds = part.predictions.rows["fold"]
        f_by_name = dict(sorted(part.predictions.f.items()))
        own = part.predictions.own()
        # On the rows of `hard` the provenance holds F trained on other rows: no fair neighbour.
        if own is not None and part_name != "hard":
            f_by_name = {F: own, **f_by_name}
        for name, f in f_by_name.items():
            scored = replace(part, rows=part.rows & has_prediction(f))
            if not scored.rows.any():
                continue
            # Rows that F's errors chose flatter every other model: no interval says so.
            intervals = {}
            if part_name in UNSELECTED:
                intervals = scored.intervals(name, f, level)
            for metric, value in scored.scores(name, f).items():
                low, high = intervals.get(metric, (np.nan, np.nan))
                row = {
                    "task": task,
                    "framework": name,
                    "part": part_name,
                    "rows": int(scored.rows.sum()),
                    "folds": int(folds[scored.rows].nunique()),
                    "metric": metric,
                    "value": value,
                    "low": low,
                    "high": high,
                    "direction": DIRECTION[metric],
                }
                scores.append(row)
    return pd.DataFrame(scores, columns=list(COLUMNS))
