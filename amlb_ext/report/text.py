"""The report as plain text, for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from amlb_ext.core.display import (
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    is_known,
)
from amlb_ext.report.inline import one_line
from amlb_ext.report.model import SuiteReport, TaskReport
from amlb_ext.report.parts import UNSELECTED
from amlb_ext.report.tables import PARTS, job_groups, score_pivots

WIDTH = 100
#: Reasons for jobs without a score that are listed, and jobs of each.
_MOST_GROUPS, _MOST_JOBS = 20, 4


def report_text(report: SuiteReport) -> str:
    """Return the whole report, about one screen and one screen per task.

    Names come from the user's data: control characters are taken out, so that none can move a
    terminal's cursor.
    """
    lines = [f"{one_line(report.name)}: which framework really improves where F fails?", ""]
    for sentence in report.verdict:
        lines += _wrap(sentence)
    for warning in report.warnings:
        lines += _wrap(f"WARNING: {warning}")
    lines += [""] + [f"{label:<14}{one_line(value, 200)}" for label, value in report.about.items()]
    if len(report.overall):
        lines += [
            "",
            "Over all tasks (change of F's loss in its failure region, negative is better)",
        ]
        lines += _table(_overall(report.overall))
        lines += ["", *_wrap(f"Ranks. {report.ranks.about}")]
    for task in report.tasks:
        lines += ["", *_task(task, report.level)]
    lines += list(_jobs(report))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _overall(table: pd.DataFrame) -> list[list[str]]:
    counted = ["tasks", "better", "worse", "undecided", "withheld"]
    rows = [["framework", *counted, "change", "over tasks", "mean rank"]]
    for row in table.to_dict("records"):
        counts = [str(row[name]) for name in counted]
        rows.append(
            [one_line(row["framework"]), *counts, format_percent(row["relative"]), _between(row),
             format_number(row["mean_rank"])]
        )  # fmt: skip
    return rows


def _task(task: TaskReport, level: float) -> Iterator[str]:
    title = one_line(task.title, 70)
    yield f"{title}{'' if task.title == task.name else f' ({task.name})'}, {task.kind}"
    if task.certificate is not None:
        yield from _wrap(f"{task.certificate.verdict}: {task.certificate.reason}", 2)
    if task.no_claim:
        yield from _wrap(f"No claim: {task.no_claim}", 2)
    for warning in task.warnings:
        yield from _wrap(f"WARNING: {warning}", 2)
    for note in task.notes:
        yield from _wrap(f"note: {note}", 2)
    counts = task.rows
    yield from _wrap(
        f"{counts.get('full', 0)} test rows, {counts.get('bad', 0)} bad, {counts.get('ga', 0)} "
        f"augmented, {counts.get('synthetic', 0)} synthetic, {task.folds} folds. {task.weighting}",
        2,
    )
    if task.changes:
        yield from _wrap(one_line(task.changes, 400), 2)
    if len(task.contrasts):
        yield f"  {task.loss} minus F's ({level:.0%} interval), p by Holm; null: F fitted again"
        rows = [["framework", "folds", "rows count", "minus F", "p", "null ± s.e.", "verdict"]]
        for row in task.contrasts[task.contrasts["where"] == "region"].to_dict("records"):
            null = f"{format_number(row['null_difference'])} ± {format_number(row['null_se'])}"
            rows.append(
                [one_line(row["framework"]), row["folds"], _counting(row), format_interval(row),
                 format_p_value(row["p_holm"]), null, row["verdict"]]
            )  # fmt: skip
        yield from _table(rows, 2)
    for row in task.pairs.to_dict("records"):
        if row["verdict"] in ("better", "worse"):
            yield from _wrap(
                f"{one_line(row['framework'])} is {row['verdict']} than {one_line(row['other'])} "
                f"({format_interval(row)}{'' if row['weighted'] else ', all rows alike'})",
                2,
            )
    for row in task.slices.to_dict("records"):
        yield from _wrap(
            f"F fails where {one_line(row['slice'], 300)}: "
            f"{row['share']:.0%} of {row['rows']} rows "
            f"({_between(row)}), {row['base']:.0%} of all rows",
            2,
        )
    if not len(task.slices):
        yield "  No slice of few features was found in which F fails more often than elsewhere."
    yield from _scores(task)


def _scores(task: TaskReport) -> Iterator[str]:
    """Yield the main metric, frameworks by parts."""
    pivot = next(score_pivots(task), None)
    if pivot is None:
        return
    shown = [part for part in pivot["parts"] if part in PARTS]
    made = [part for part in shown if part not in UNSELECTED]
    yield f"  {pivot['metric']}, {'lower' if pivot['lower'] else 'higher'} is better"
    rows = [["framework", *shown]]
    for name, cells in pivot["rows"]:
        values = [format_number(cells[part]["value"]) if part in cells else "" for part in shown]
        rows.append([one_line(name), *values])
    yield from _table(rows, 2)
    if made:
        yield f"  chosen by F's errors, so do not rank on them: {', '.join(made)}"


def _jobs(report: SuiteReport) -> Iterator[str]:
    if len(report.jobs):
        yield ""
        yield f"Jobs without a score: {len(report.jobs)}"
        groups = job_groups(report.jobs)
        for group in groups[:_MOST_GROUPS]:
            jobs = group["jobs"]
            more = f" and {len(jobs) - _MOST_JOBS} more" if len(jobs) > _MOST_JOBS else ""
            yield from _wrap(
                f"{one_line(group['framework'])}, {group['status']}: "
                f"{one_line(group['reason'], 300)}: "
                f"{', '.join(jobs[:_MOST_JOBS])}{more}",
                2,
            )
        if len(groups) > _MOST_GROUPS:
            yield f"  and {len(groups) - _MOST_GROUPS} more reasons"
    if report.commands:
        yield "To run the failed, missing and refused jobs again:"
        yield from (f"  {command}" for command in report.commands)
    for note in report.notes:
        yield from _wrap(f"note: {note}")


def _wrap(text: str, indent: int = 0) -> list[str]:
    space = " " * indent
    return textwrap.wrap(
        one_line(text, 2000), WIDTH, initial_indent=space, subsequent_indent=space + "  "
    )


def _table(rows: Sequence[Sequence[str]], indent: int = 0) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        " " * indent + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        for row in rows
    ]


def _counting(row: Mapping[str, Any]) -> str:
    """Say whether the rows of a contrast count by their weight."""
    if not row["rows"]:
        return "-"
    return "by weight" if row["weighted"] else "alike"


def _between(row: Mapping[str, Any]) -> str:
    if not (is_known(row["low"]) and is_known(row["high"])):
        return "no interval"
    return f"{format_percent(row['low'])} to {format_percent(row['high'])}"
