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
    return [row for row in rows if all(row[key] == value for key, value in where.items())]


def best_contrast(task: TaskReport) -> dict[str, Any] | None:
    """Return the contrast in the region with the smallest difference; F itself does not count."""
    if task.no_claim:
        return None
    rows = [
        row
        for row in table_records(task.contrasts, where="region")
        if row["verdict"] in ("better", "worse", "undecided")
        and is_known(row["difference"])
        and not is_control_framework(row["framework"])
    ]
    return min(rows, key=lambda row: row["difference"], default=None)


def job_groups(jobs: pd.DataFrame) -> list[dict[str, Any]]:
    """Return jobs without a score, those alike in framework, status and reason together."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for row in table_records(jobs):
        key = (row["framework"], row["status"], row["reason"])
        groups.setdefault(key, []).append(f"{row['amlb_task']} (fold {format_cell(row['fold'])})")
    return [
        {"framework": key[0], "status": key[1], "reason": key[2], "jobs": jobs}
        for key, jobs in groups.items()
    ]


def score_pivots(task: TaskReport) -> Iterator[dict[str, Any]]:
    """Yield a table per metric, the main one first: frameworks by parts, the best marked.

    Each table has ``metric``, ``lower``, ``parts`` and ``rows``: pairs of a framework and its
    cells by part, each with ``value``, ``low``, ``high``, ``best`` and ``folds`` (0 when all
    folds are there).
    """
    rows = table_records(task.scores)
    metrics = dict.fromkeys(row["metric"] for row in rows)
    for metric in sorted(metrics, key=lambda name: name != MAIN.get(task.kind)):
        mine = [row for row in rows if row["metric"] == metric]
        lower = mine[0]["direction"] == "lower"
        held = dict.fromkeys(row["part"] for row in mine)
        parts = [part for part in PARTS if part in held] + [p for p in held if p not in PARTS]
        table: dict[str, dict[str, dict[str, Any]]] = {}
        for row in mine:
            rivals = (r for r in mine if r["part"] == row["part"] and _rival(r, task.folds))
            values = [r["value"] for r in rivals if is_known(r["value"])]
            top = (min if lower else max)(values, default=None)
            table.setdefault(row["framework"], {})[row["part"]] = {
                "value": row["value"],
                "low": row["low"],
                "high": row["high"],
                "best": row["part"] in UNSELECTED
                and row["value"] == top
                and _rival(row, task.folds),
                "folds": row["folds"] if row["folds"] < task.folds else 0,
            }
        counts = {part: max(r["rows"] for r in mine if r["part"] == part) for part in parts}
        yield {"metric": metric, "lower": lower, "parts": counts, "rows": table.items()}


def _rival(row: Mapping[str, Any], folds: int) -> bool:
    """Whether a score may be the best one: a candidate's or F's, on all folds."""
    return row["folds"] == folds and not is_control_framework(row["framework"])
