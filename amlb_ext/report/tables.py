"""A report's tables as they are shown: grouped, pivoted, the best ones marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from amlb_ext.core.display import format_cell, is_known
from amlb_ext.report.compare import is_control_framework
from amlb_ext.report.metrics import MAIN
from amlb_ext.report.model import TaskReport
from amlb_ext.report.parts import UNSELECTED

#: Parts in the order shown, and which rows they are; clusters of failures follow.
PARTS = {
    "full": "real rows: the whole test folds",
    "region": "real rows, weighted by P(F fails | x)",
    "bad": "chosen by F's errors: do not rank on these",
    "ga": "chosen by F's errors: do not rank on these",
    "synthetic": "chosen by F's errors: do not rank on these",
    "evaluation": "chosen by F's errors: do not rank on these",
    "hard": "after training on hard rows: do not rank on these",
}


def table_records(frame: pd.DataFrame, **where: Any) -> list[dict[str, Any]]:
    """Return the rows of a table, or those whose columns have the values given."""
    if frame.empty:
        return []
    rows = frame.to_dict("records")
    return [
        row for row in rows if all(row[key] == value for key, value in where.items())
    ]


def best_contrast(task: TaskReport) -> dict[str, Any] | None:
    """Return the contrast in the region with the smallest difference; F itself does not count."""
    if task.no_claim:
        return None
    candidates = []
    for row in table_records(task.contrasts, where="region"):
        is_judged = row["verdict"] in ("better", "worse", "undecided")
        is_compared = is_judged and is_known(row["difference"])
        if is_compared and not is_control_framework(row["framework"]):
            candidates.append(row)
    return min(candidates, key=lambda row: row["difference"], default=None)


def job_groups(jobs: pd.DataFrame) -> list[dict[str, Any]]:
    """Return jobs without a score, those alike in framework, status and reason together."""
    groups: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in table_records(jobs):
        key = (row["framework"], row["status"], row["reason"])
        group = groups.setdefault(
            key, {"framework": key[0], "status": key[1], "reason": key[2], "jobs": []}
        )
        group["jobs"].append(f"{row['amlb_task']} (fold {format_cell(row['fold'])})")
    return list(groups.values())


def score_pivots(task: TaskReport) -> Iterator[dict[str, Any]]:
    """Yield a table per metric, the main one first: frameworks by parts, the best marked.

    Each table has ``metric``, ``lower``, ``parts`` and ``rows``: pairs of a framework and its
    cells by part, each with ``value``, ``low``, ``high``, ``best`` and ``folds`` (0 when all
    folds are there).
    """
    scores_by_metric: dict[str, list[dict[str, Any]]] = {}
    for score in table_records(task.scores):
        scores_by_metric.setdefault(score["metric"], []).append(score)
    # sorted() is stable: behind the main metric the others keep their order.
    main_metric = MAIN.get(task.kind)
    for metric in sorted(scores_by_metric, key=lambda name: name != main_metric):
        scores = scores_by_metric[metric]
        lower_is_better = scores[0]["direction"] == "lower"
        rows_by_part: dict[str, int] = {}
        for score in scores:
            most = rows_by_part.get(score["part"], 0)
            rows_by_part[score["part"]] = max(most, score["rows"])
        # The best is marked only where every candidate was scored on the same rows.
        best_by_part = _best_values(scores, task.folds, lower_is_better)
        cells_by_framework: dict[str, dict[str, dict[str, Any]]] = {}
        for score in scores:
            part = score["part"]
            is_best = _may_be_best(score, task.folds) and score[
                "value"
            ] == best_by_part.get(part)
            cells_by_framework.setdefault(score["framework"], {})[part] = {
                "value": score["value"],
                "low": score["low"],
                "high": score["high"],
                "best": is_best,
                "folds": score["folds"] if score["folds"] < task.folds else 0,
            }
        parts = [part for part in PARTS if part in rows_by_part]
        parts += [part for part in rows_by_part if part not in PARTS]
        yield {
            "metric": metric,
            "lower": lower_is_better,
            "parts": {part: rows_by_part[part] for part in parts},
            "rows": cells_by_framework.items(),
        }


def _best_values(
    scores: list[dict[str, Any]], folds: int, lower_is_better: bool
) -> dict[str, float]:
    """Return the best value of one metric on each part where there may be one."""
    values_by_part: dict[str, list[float]] = {}
    for score in scores:
        if _may_be_best(score, folds) and is_known(score["value"]):
            values_by_part.setdefault(score["part"], []).append(score["value"])
    choose = min if lower_is_better else max
    return {part: choose(values) for part, values in values_by_part.items()}


def _may_be_best(score: Mapping[str, Any], folds: int) -> bool:
    """Whether a score may be called the best: a candidate's or F's, on all folds of a part
    that was not chosen by F's errors."""
    is_fair = score["part"] in UNSELECTED and score["folds"] == folds
    return is_fair and not is_control_framework(score["framework"])
