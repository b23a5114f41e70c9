"""Tables of a report as they are shown: grouped, pivoted, the best values marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from amlb_ext.core.display import format_cell, is_known
from amlb_ext.report.compare import is_control_framework
from amlb_ext.report.metrics import VERDICT_METRIC
from amlb_ext.report.model import TaskReport
from amlb_ext.report.parts import UNSELECTED

#: A row of a table, by column.
Record = dict[str, Any]

#: Parts in the order shown, and which rows they are; clusters of failures follow.
PARTS = {
    "full": "real rows: the whole test folds",
    "region": "real rows, weighted by P(F fails | x)",
    "bad": "real rows on which F fails",
    "ga": "made of these: augmented",
    "synthetic": "made of these: synthetic",
    "evaluation": "the main task, as it was composed",
    "hard": "after training on hard rows",
}


def ranking_sentence(task: TaskReport) -> str:
    """Return on which parts models may be ranked, and on which not.

    Parameters
    ----------
    task : TaskReport
    """
    parts = [part for part in PARTS if (task.scores["part"] == part).any()]
    by_certificate: set[str] = set()
    no_region = ""
    if task.certificate is not None:
        no_region = task.certificate.no_region
        if task.certificate.ranked_parts:
            by_certificate = {"evaluation", *task.certificate.ranked_parts}
    ranks = [part for part in parts if part in (*UNSELECTED, *by_certificate)]
    others = [part for part in parts if part not in ranks]
    if no_region and "region" in ranks:
        ranks.remove("region")
    sentence = f"Models may be ranked on {', '.join(ranks)}"
    if by_certificate & set(ranks):
        sentence += " (made rows since the certificate says so)"
    if others:
        sentence += f"; not on {', '.join(others)}, which F's errors chose"
    if no_region:
        sentence += f"; not by region: {no_region}"
    return f"{sentence}."


def table_records(frame: pd.DataFrame, **where: Any) -> list[Record]:
    """Return the rows of a table whose columns have the given values; all rows without any."""
    if frame.empty:
        return []
    for column, value in where.items():
        frame = frame[frame[column] == value]
    return frame.to_dict("records")


def job_groups(jobs: pd.DataFrame) -> list[Record]:
    """Return jobs without a score, those alike in framework, status and reason together."""
    groups: dict[tuple[str, ...], Record] = {}
    for row in table_records(jobs):
        shared = {name: row[name] for name in ("framework", "status", "reason")}
        group = groups.setdefault(tuple(shared.values()), {**shared, "jobs": []})
        fold = format_cell(row["fold"])
        group["jobs"].append(f"{row['amlb_task']} (fold {fold})")
    return list(groups.values())


def score_pivots(task: TaskReport) -> Iterator[Record]:
    """Yield a table per metric, the main one first: frameworks by parts, the best marked.

    Each table has ``metric``, ``lower``, ``parts`` and ``rows``: pairs of a framework and its
    cells by part, each with ``value``, ``low``, ``high``, ``best`` and ``folds`` (0 when all
    folds are there).
    """
    scores_by_metric: dict[str, list[Record]] = {}
    for score in table_records(task.scores):
        scores_by_metric.setdefault(score["metric"], []).append(score)
    # sorted() is stable: behind the main metric the others keep their order.
    main_metric = VERDICT_METRIC.get(task.kind)
    for metric in sorted(scores_by_metric, key=lambda name: name != main_metric):
        yield _pivot_scores(scores_by_metric[metric], task.folds)


def _pivot_scores(scores: list[Record], folds: int) -> Record:
    """Return the table of one metric; ``folds`` is how many the task has."""
    lower_is_better = scores[0]["direction"] == "lower"
    best_by_part = _best_values(scores, folds, lower_is_better)
    rows_by_part: dict[str, int] = {}
    cells_by_framework: dict[str, dict[str, Record]] = {}
    for score in scores:
        part = score["part"]
        # Frameworks without some folds have fewer rows: the part has those of the others.
        most_rows = rows_by_part.get(part, 0)
        rows_by_part[part] = max(most_rows, score["rows"])
        has_best_value = score["value"] == best_by_part.get(part)
        has_all_folds = score["folds"] >= folds
        cells = cells_by_framework.setdefault(score["framework"], {})
        cells[part] = {
            "value": score["value"],
            "low": score["low"],
            "high": score["high"],
            "best": has_best_value and _may_be_best(score, folds),
            "folds": 0 if has_all_folds else score["folds"],
        }
    parts = [part for part in PARTS if part in rows_by_part]
    # Clusters of failures, whose number differs from task to task.
    parts += [part for part in rows_by_part if part not in PARTS]
    return {
        "metric": scores[0]["metric"],
        "lower": lower_is_better,
        "parts": {part: rows_by_part[part] for part in parts},
        "rows": cells_by_framework.items(),
    }


def _best_values(
    scores: list[Record], folds: int, lower_is_better: bool
) -> dict[str, float]:
    """Return the best value of one metric on each part where there may be one."""
    choose = min if lower_is_better else max
    best_by_part: dict[str, float] = {}
    for score in scores:
        part = score["part"]
        value = score["value"]
        if is_known(value) and _may_be_best(score, folds):
            best_so_far = best_by_part.get(part, value)
            best_by_part[part] = choose(best_so_far, value)
    return best_by_part


def _may_be_best(score: Mapping[str, Any], folds: int) -> bool:
    """Whether a score may be called the best of its part.

    It may where it is a candidate's or F's, on all folds, and where F's errors did not choose
    the rows. Only then was every candidate scored on the same rows.
    """
    if is_control_framework(score["framework"]):
        return False
    return score["part"] in UNSELECTED and score["folds"] == folds
