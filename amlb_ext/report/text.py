"""The report as plain text, for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import pandas as pd

from amlb_ext.core.display import (
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    is_known,
    text_table,
)
from amlb_ext.report.inline import one_line
from amlb_ext.report.model import SuiteReport, TaskReport
from amlb_ext.report.parts import UNSELECTED
from amlb_ext.report.tables import PARTS, job_groups, score_pivots, table_records

WIDTH = 100
#: Reasons for jobs without a score that are listed, and jobs of each.
_MOST_GROUPS, _MOST_JOBS = 20, 4


def report_text(report: SuiteReport) -> str:
    """Return the whole report, about one screen and one screen per task.

    Names come from the user's data: control characters are taken out, so that none can move a
    terminal's cursor.
    """
    lines = [
        f"{one_line(report.name)}: which framework really improves where F fails?",
        "",
    ]
    for sentence in report.verdict:
        lines += _wrap_text(sentence)
    for warning in report.warnings:
        lines += _wrap_text(f"WARNING: {warning}")
    lines.append("")
    for label, value in report.about.items():
        lines.append(f"{label:<14}{one_line(value, 200)}")
    if len(report.overall):
        lines += [
            "",
            "Over all tasks (change of F's loss in its failure region, negative is better)",
            *_overall_lines(report.overall),
            "",
            *_wrap_text(f"Ranks. {report.ranks.about}"),
        ]
    for task in report.tasks:
        lines += ["", *_task_lines(task, report.level)]
    lines += _job_lines(report)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _overall_lines(overall: pd.DataFrame) -> list[str]:
    counted = ["tasks", "better", "worse", "undecided", "withheld"]
    rows = []
    for row in overall.to_dict("records"):
        counts = [int(row[name]) for name in counted]
        change = format_percent(row["relative"])
        mean_rank = format_number(row["mean_rank"])
        rows.append(
            [
                one_line(row["framework"]),
                *counts,
                change,
                _percent_range(row),
                mean_rank,
            ]
        )
    headers = ["framework", *counted, "change", "over tasks", "mean rank"]
    return text_table(headers, rows).splitlines()


def _task_lines(task: TaskReport, level: float) -> list[str]:
    """Return one task: what may be claimed, contrasts, pairs, slices and scores."""
    name = "" if task.title == task.name else f" ({task.name})"
    lines = [f"{one_line(task.title, 70)}{name}, {task.kind}"]
    if task.certificate is not None:
        lines += _wrap_text(f"{task.certificate.verdict}: {task.certificate.reason}", 2)
    if task.no_claim:
        lines += _wrap_text(f"No claim: {task.no_claim}", 2)
    for warning in task.warnings:
        lines += _wrap_text(f"WARNING: {warning}", 2)
    for note in task.notes:
        lines += _wrap_text(f"note: {note}", 2)
    n_rows = task.rows
    counts = (
        f"{n_rows.get('full', 0)} test rows, {n_rows.get('bad', 0)} bad, "
        f"{n_rows.get('ga', 0)} augmented, {n_rows.get('synthetic', 0)} synthetic"
    )
    lines += _wrap_text(f"{counts}, {task.folds} folds. {task.weighting}", 2)
    if task.changes:
        lines += _wrap_text(one_line(task.changes, 400), 2)
    if len(task.relations):
        lines += _wrap_text(
            f"Made rows keep {len(task.relations)} relations between columns; "
            f"{task.rejected} rows that broke one were rejected.",
            2,
        )
    return [
        *lines,
        *_contrast_lines(task, level),
        *_pair_lines(task),
        *_slice_lines(task),
        *_score_lines(task),
    ]


def _contrast_lines(task: TaskReport, level: float) -> list[str]:
    if not len(task.contrasts):
        return []
    rows = []
    for row in table_records(task.contrasts, where="region"):
        null_mean = format_number(row["null_difference"])
        null_error = format_number(row["null_se"])
        rows.append(
            [
                one_line(row["framework"]),
                row["folds"],
                _row_weighting(row),
                format_interval(row),
                format_p_value(row["p_holm"]),
                f"{null_mean} ± {null_error}",
                row["verdict"],
            ]
        )
    headers = [
        "framework",
        "folds",
        "rows count",
        "minus F",
        "p",
        "null ± s.e.",
        "verdict",
    ]
    return [
        f"  {task.loss} minus F's ({level:.0%} interval), p by Holm; null: F fitted again",
        *text_table(headers, rows, indent=2).splitlines(),
    ]


def _pair_lines(task: TaskReport) -> list[str]:
    """Return the pairs of frameworks that differ."""
    lines = []
    for row in table_records(task.pairs):
        if row["verdict"] not in ("better", "worse"):
            continue
        first, second = one_line(row["framework"]), one_line(row["other"])
        # By weight is the rule, so only the exception is told.
        weighting = "" if row["weighted"] else ", all rows alike"
        lines += _wrap_text(
            f"{first} is {row['verdict']} than {second} ({format_interval(row)}{weighting})",
            2,
        )
    return lines


def _slice_lines(task: TaskReport) -> list[str]:
    lines = []
    for row in table_records(task.slices):
        lines += _wrap_text(
            f"F fails where {one_line(row['slice'], 300)}: "
            f"{row['share']:.0%} of {row['rows']} rows ({_percent_range(row)}), "
            f"{row['base']:.0%} of all rows",
            2,
        )
    if lines:
        return lines
    return [
        "  No slice of few features was found in which F fails more often than elsewhere."
    ]


def _score_lines(task: TaskReport) -> list[str]:
    """Return the main metric, frameworks by parts."""
    pivot = next(score_pivots(task), None)
    if pivot is None:
        return []
    parts = [part for part in pivot["parts"] if part in PARTS]
    rows = []
    for framework, cells in pivot["rows"]:
        values = [
            format_number(cells[part]["value"]) if part in cells else ""
            for part in parts
        ]
        rows.append([one_line(framework), *values])
    direction = "lower" if pivot["lower"] else "higher"
    lines = [
        f"  {pivot['metric']}, {direction} is better",
        *text_table(["framework", *parts], rows, indent=2).splitlines(),
    ]
    selected = [part for part in parts if part not in UNSELECTED]
    if selected:
        lines.append(
            f"  chosen by F's errors, so do not rank on them: {', '.join(selected)}"
        )
    return lines


def _job_lines(report: SuiteReport) -> list[str]:
    """Return the jobs without a score, what runs them again, and notes."""
    lines = []
    if len(report.jobs):
        lines += ["", f"Jobs without a score: {len(report.jobs)}"]
        groups = job_groups(report.jobs)
        for group in groups[:_MOST_GROUPS]:
            jobs = ", ".join(group["jobs"][:_MOST_JOBS])
            n_more = len(group["jobs"]) - _MOST_JOBS
            more = f" and {n_more} more" if n_more > 0 else ""
            lines += _wrap_text(
                f"{one_line(group['framework'])}, {group['status']}: "
                f"{one_line(group['reason'], 300)}: {jobs}{more}",
                2,
            )
        if len(groups) > _MOST_GROUPS:
            lines.append(f"  and {len(groups) - _MOST_GROUPS} more reasons")
    if report.commands:
        lines.append("To run the failed, missing and refused jobs again:")
        lines += [f"  {command}" for command in report.commands]
    for note in report.notes:
        lines += _wrap_text(f"note: {note}")
    return lines


def _wrap_text(text: str, indent: int = 0) -> list[str]:
    margin = " " * indent
    return textwrap.wrap(
        one_line(text, 2000),
        WIDTH,
        initial_indent=margin,
        subsequent_indent=margin + "  ",
    )


def _row_weighting(row: Mapping[str, Any]) -> str:
    """Say whether the rows of a contrast count by their weight."""
    if not row["rows"]:
        return "-"
    return "by weight" if row["weighted"] else "alike"


def _percent_range(row: Mapping[str, Any]) -> str:
    if not (is_known(row["low"]) and is_known(row["high"])):
        return "no interval"
    return f"{format_percent(row['low'])} to {format_percent(row['high'])}"
