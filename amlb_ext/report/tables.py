"""The tables of a report: as they are shown, grouped and pivoted, and as its files have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from amlb_ext.core.display import format_cell, format_percent, is_known
from amlb_ext.core.unit import ROW, Unit
from amlb_ext.report.compare import is_control_framework
from amlb_ext.report.metrics import VERDICT_METRIC
from amlb_ext.report.model import ReportSection, SuiteReport, TaskReport
from amlb_ext.report.parts import UNSELECTED
from amlb_ext.stats.window_losses import WINDOW_LOSSES
from amlb_ext.validity import Certificate

#: A row of a table, by column.
Record = dict[str, Any]

#: What each file holds, by name; the page lists them. Sections of a report have more.
TABLES = {
    "overall": "frameworks over all tasks",
    "contrasts": "each framework against F, per task",
    "pairs": "frameworks against each other, per task",
    "scores": "every metric on every part",
    "ranks": "mean ranks and the p-values between them",
    "slices": "where F fails",
    "slice_losses": "F and each candidate in these slices",
    "relations": "what made rows keep",
    "measures": "the certificates",
    "jobs": "jobs without a score",
    "frameworks": "what was run",
}
#: Files, without ending, that a suite has in one report and not in the next.
SOMETIMES = frozenset({"harm", "segments", "wins", "left_to_gain", "ranks"})
#: Tables of a task, which are stacked over the tasks.
_BY_TASK = ("contrasts", "pairs", "scores", "slices", "slice_losses", "relations")
#: Words of columns that are initials.
_INITIALS = (*WINDOW_LOSSES, "sd")


def part_texts(unit: Unit) -> dict[str, str]:
    """Return which units each part of a task holds, in the order in which parts are shown.

    Examples
    --------
    >>> from amlb_ext.core.unit import ROW
    >>> part_texts(ROW)["region"]
    'real rows, the fifth with the largest P(F fails | x)'
    """
    many = unit.many
    return {
        "full": f"real {many}: all of them",
        "region": f"real {many}, the fifth with the largest P(F fails | {unit.given})",
        "bad": f"real {many} on which F fails",
        "ga": "made of these: augmented",
        "synthetic": "made of these: synthetic",
        "evaluation": "the main task, as it was composed",
        "hard": f"after training on hard {many}",
    }


#: Parts in the order shown; clusters of failures follow.
PARTS = tuple(part_texts(ROW))


def ranking_sentence(task: TaskReport) -> str:
    """Return on which part to decide, and what the others are good for.

    Parameters
    ----------
    task : TaskReport

    Notes
    -----
    The whole test folds decide. Another part may rank models where it is shown to order them as
    well, by the certificate.
    """
    certificate = task.certificate
    ranked_parts = set(certificate.ranked_parts if certificate else ())
    shown, others = [], []
    for part in PARTS:
        if part in UNSELECTED or not (task.scores["part"] == part).any():
            continue
        holds = set(task.composition) if part == "evaluation" else {part}
        is_ranked = holds & ranked_parts and holds <= {"weighted", *ranked_parts}
        if is_ranked:
            shown.append(part)
        else:
            others.append(part)
    sentence = "Decide on full"
    if shown:
        verb = "is" if len(shown) == 1 else "are"
        sentence += f"; {', '.join(shown)} {verb} shown to order models as well"
    if others:
        sentence += f"; no ranking rests on {', '.join(others)}, which stress F and its successors"
    if certificate is not None and certificate.no_region:
        sentence += f"; there is no region to read: {certificate.no_region}"
    return f"{sentence}."


def table_records(frame: pd.DataFrame, **where: Any) -> list[Record]:
    """Return the rows of a table whose columns have the given values; all rows without any."""
    if frame.empty:
        return []
    for column, value in where.items():
        frame = frame[frame[column] == value]
    return frame.to_dict("records")


def percent_range(low: float, high: float, unit: str = "") -> str:
    """Return the limits of an interval of shares in percent.

    Examples
    --------
    >>> percent_range(0.3, 0.65), percent_range(0.3, 0.65, " %"), percent_range(0.3, float("nan"))
    ('30 to 65', '30 % to 65 %', 'no interval')
    """
    if not (is_known(low) and is_known(high)):
        return "no interval"
    return f"{format_percent(low, unit)} to {format_percent(high, unit)}"


def column_heading(column: str) -> str:
    """Return the name of a column as a heading.

    Examples
    --------
    >>> column_heading("max_on_test"), column_heading("mase_F")
    ('Max on test', 'MASE F')
    """
    words = [word.upper() if word in _INITIALS else word for word in column.split("_")]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


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
    rows of the part are there).
    """
    scores_by_metric: dict[str, list[Record]] = {}
    for score in table_records(task.scores):
        scores_by_metric.setdefault(score["metric"], []).append(score)
    # sorted() is stable: behind the main metric the others keep their order.
    main_metric = task.metric or VERDICT_METRIC.get(task.kind)
    for metric in sorted(scores_by_metric, key=lambda name: name != main_metric):
        yield _pivot_scores(scores_by_metric[metric], task.folds)


def _pivot_scores(scores: list[Record], folds: int) -> Record:
    """Return the table of one metric; ``folds`` is how many the task has."""
    lower_is_better = scores[0]["direction"] == "lower"
    choose = min if lower_is_better else max
    best_by_part: dict[str, float] = {}
    rows_by_part: dict[str, int] = {}
    for score in scores:
        part, value = score["part"], score["value"]
        # Frameworks without some folds have fewer rows: the part has those of the others.
        rows_by_part[part] = max(rows_by_part.get(part, 0), score["rows"])
        if is_known(value) and _may_be_best(score, folds):
            best_by_part[part] = choose(best_by_part.get(part, value), value)
    cells_by_framework: dict[str, dict[str, Record]] = {}
    for score in scores:
        part = score["part"]
        is_best = score["value"] == best_by_part.get(part)
        cells = cells_by_framework.setdefault(score["framework"], {})
        cells[part] = {
            "value": score["value"],
            "low": score["low"],
            "high": score["high"],
            "best": is_best and _may_be_best(score, folds),
            # a part may have rows in some folds alone
            "folds": score["folds"] if score["rows"] < rows_by_part[part] else 0,
        }
    parts = [part for part in PARTS if part in rows_by_part]
    # Parts of one kind of suite, or groups of failures.
    parts += [part for part in rows_by_part if part not in PARTS]
    return {
        "metric": scores[0]["metric"],
        "lower": lower_is_better,
        "parts": {part: rows_by_part[part] for part in parts},
        "rows": cells_by_framework.items(),
    }


def _may_be_best(score: Mapping[str, Any], folds: int) -> bool:
    """Whether a score may be called the best of its part.

    It may where it is a candidate's or F's, on all folds, and where F's errors did not choose
    the rows. Only then was every candidate scored on the same rows.
    """
    if is_control_framework(score["framework"]):
        return False
    return score["part"] in UNSELECTED and score["folds"] == folds


def report_tables(report: SuiteReport) -> dict[str, pd.DataFrame]:
    """Return all tables of a report by name, tasks stacked; see :data:`TABLES`.

    A table that the kind of suite does not have is left out.
    """
    stacked = {}
    for name in _BY_TASK:
        frames = [getattr(task, name) for task in report.tasks]
        filled = [frame for frame in frames if len(frame)]
        # Without any row the columns of the first task's table are kept.
        stacked[name] = pd.concat(filled or frames[:1], ignore_index=bool(filled))
    certificates = {
        task.name: task.certificate
        for task in report.tasks
        if task.certificate is not None
    }
    tables = {
        "overall": report.overall,
        **stacked,
        "ranks": _rank_table(report),
        "measures": certificate_table(certificates),
        "jobs": report.jobs,
        "frameworks": report.frameworks,
    }
    sections: dict[str, list[pd.DataFrame]] = {}
    for section in _all_sections(report):
        sections.setdefault(section.key, []).append(section.table)
    for key, frames in sections.items():
        tables[key] = pd.concat(frames, ignore_index=True)
    return {name: table for name, table in tables.items() if len(table.columns)}


def certificate_table(certificates: Mapping[str, Certificate]) -> pd.DataFrame:
    """Return the measures of certificates, a row for each task and measure."""
    rows = []
    for task, certificate in certificates.items():
        shared = {"task": task, "verdict": certificate.verdict}
        rows += [shared | vars(measure) for measure in certificate.measures]
    return pd.DataFrame(rows)


def table_titles(report: SuiteReport) -> dict[str, str]:
    """Return what each table holds, by the name of its file."""
    return TABLES | {section.key: section.title for section in _all_sections(report)}


def _all_sections(report: SuiteReport) -> Iterator[ReportSection]:
    """Yield the sections over all tasks, then those of each task."""
    yield from report.sections
    for task in report.tasks:
        yield from task.sections


def _rank_table(report: SuiteReport) -> pd.DataFrame:
    if not report.has_baseline:
        return pd.DataFrame()
    ranks = report.ranks
    entrants = ranks.mean.index
    table = pd.DataFrame(
        {"entrant": list(entrants), "mean_rank": ranks.mean.to_numpy()}
    )
    for name in ranks.p.columns:
        table[f"p: {name}"] = ranks.p[name].reindex(entrants).to_numpy()
    return table
