"""The report as plain text, for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amlb_ext.core.display import (
    format_cell,
    format_count,
    format_interval,
    format_level,
    format_number,
    format_percent,
    shorten_text,
    text_table,
)
from amlb_ext.report.metrics import UNITS
from amlb_ext.report.model import ReportSection, SuiteReport, TaskReport
from amlb_ext.report.overall import answer_matrix
from amlb_ext.report.tables import (
    PARTS,
    column_heading,
    job_groups,
    percent_range,
    ranking_sentence,
    score_pivots,
    table_records,
)
from amlb_ext.stats.claims import verdict_text

WIDTH = 100
#: Of more tasks each has its certificate alone below the first table; the page has them whole.
MANY_TASKS = 8
#: Reasons for jobs without a score that are listed.
_MOST_GROUPS = 20
#: Jobs that are listed of each reason.
_MOST_JOBS = 4
#: Rows of a task's own tables that are listed.
_MOST_ROWS = 8
#: Notes of a task that are listed.
_MOST_NOTES = 5


def report_text(report: SuiteReport) -> str:
    """Return the whole report, about one screen and one screen per task; of many tasks less.

    Names come from the user's data: control characters are taken out, so that none can move a
    terminal's cursor.
    """
    lines = [f"{shorten_text(report.name)}: {report.question}", ""]
    # The answer first, then what must be known before it is believed.
    for sentence in report.verdict:
        lines += _wrap_text(sentence)
    lines += _matrix_lines(report)
    for section in report.sections:
        lines += ["", *_section_lines(section)]
    for warning in report.warnings:
        lines += _wrap_text(f"WARNING: {warning}")
    for sentence in report.caveats:
        lines += _wrap_text(sentence)
    lines.append("")
    # The suite at a glance.
    for label, value in report.about.items():
        lines.append(f"{label:<14}{shorten_text(value, 200)}")
    if len(report.overall):
        mean_ranks = [f"{name} {rank:.2f}" for name, rank in report.ranks.mean.items()]
        told = ["Ranks", ", ".join(mean_ranks), report.ranks.about]
        lines += ["", *_wrap_text(". ".join(filter(None, told)))]
    # The evidence, task by task, and the jobs that left none.
    is_short = len(report.tasks) > MANY_TASKS
    for task in report.tasks:
        lines += ["", *_task_lines(task, report, is_short)]
    lines += _job_lines(report)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _matrix_lines(report: SuiteReport) -> list[str]:
    """Return the first table of the page: how each candidate changes F's loss on each task."""
    matrix = answer_matrix(report.tasks, report.overall, report.level)
    if not (matrix.rows and matrix.frameworks):
        return []
    rows = []
    for row in matrix.rows:
        cells = [shorten_text(row.task.shown_name, 40)]
        for framework in matrix.frameworks:
            cell = row.cells.get(framework)
            answer = f"{cell.overall.mark.sign} {cell.overall.shown()}" if cell else "–"
            cells.append(answer)
        rows.append(cells)
    if len(rows) > 1:
        means = [matrix.means[name]["overall_relative"] for name in matrix.frameworks]
        rows.append(
            ["mean of all", *(format_percent(mean, sign=True) for mean in means)]
        )
    headers = ["task", *(shorten_text(name) for name in matrix.frameworks)]
    legend = [f"{mark.sign} {mark.words}" for mark in matrix.verdicts.values()]
    return [
        "",
        f"Change of F's loss on all {report.unit.many}; negative is better",
        *text_table(headers, rows).splitlines(),
        *_wrap_text("; ".join(legend)),
        "",
    ]


def _section_lines(section: ReportSection, indent: int = 0) -> list[str]:
    """Return what one kind of suite has beside what all have, a task's indented and shortened."""
    margin = " " * indent
    most = min(section.most, _MOST_ROWS) if indent else section.most
    lines = [margin + section.title, *_wrap_text(section.about, indent)]
    columns = [name for name in section.readable.columns if name != section.links]
    if indent:
        # the task's name stands above
        columns = [name for name in columns if name != "task"]
    rows = []
    for record in section.readable.head(most).to_dict("records"):
        row = []
        for name in columns:
            show = format_percent if name in section.percents else format_cell
            row.append(shorten_text(show(record[name]), 60))
        rows.append(row)
    if rows:
        headers = []
        for name in columns:
            is_name = name in section.verbatim
            headers.append(shorten_text(name) if is_name else column_heading(name))
        lines += text_table(headers, rows, indent=indent).splitlines()
    n_more = len(section.table) - most
    if n_more > 0:
        lines.append(f"{margin}and {n_more} more in {section.key}.csv")
    return lines


def _task_lines(task: TaskReport, report: SuiteReport, is_short: bool) -> list[str]:
    """Return one task: what may be claimed, contrasts, pairs, slices and scores."""
    # The suite's name of a task, which commands take, where the source's is another one.
    name = "" if task.title == task.name else f" ({task.name})"
    lines = [f"{shorten_text(task.title, 70)}{name}, {task.kind}"]
    certificate = task.certificate
    if certificate is not None:
        why = "" if is_short else f": {certificate.reason}"
        lines += _wrap_text(f"{certificate.verdict}{why}", 2)
    if task.no_claim and not (is_short and certificate is not None):
        lines += _wrap_text(f"No claim where F fails: {task.no_claim}", 2)
    if task.heavy_tail:
        lines += _wrap_text(f"No verdict by capped errors. {task.heavy_tail}", 2)
    for warning in task.warnings:
        lines += _wrap_text(f"WARNING: {warning}", 2)
    if is_short:
        return lines
    for note in task.notes[:_MOST_NOTES]:
        lines += _wrap_text(f"note: {note}", 2)
    if len(task.notes) > _MOST_NOTES:
        lines.append(f"  and {len(task.notes) - _MOST_NOTES} more notes, on the page")
    lines += _count_lines(task)
    lines += _contrast_lines(task, report.level)
    lines += _pair_lines(task)
    if len(task.slices.columns):
        lines += _slice_lines(task)
    lines += _score_lines(task, report.has_baseline)
    for section in task.sections:
        lines += _section_lines(section, 2)
    return lines


def _count_lines(task: TaskReport) -> list[str]:
    """Return what was counted, and how it counts."""
    kinds = {
        "full": f"test {task.unit.many}",
        "bad": "bad",
        "ga": "augmented",
        "synthetic": "synthetic",
    }
    counts = []
    for part, count in task.rows.items():
        counts.append(f"{format_number(count)} {kinds.get(part, part)}")
    counts.append(format_count(task.folds, task.unit.fold))
    lines = _wrap_text(f"{', '.join(counts)}. {task.weighting}", 2)
    if task.capping:
        lines += _wrap_text(f"In contrasts {task.capping}.", 2)
    # What was left out and replaced has names of columns in it, perhaps many.
    if task.changes:
        lines += _wrap_text(shorten_text(task.changes, 400), 2)
    if len(task.relations):
        lines += _wrap_text(
            f"Made rows keep {format_count(len(task.relations), 'relation')} between columns; "
            f"rows rejected since they broke one: {task.rejected}.",
            2,
        )
    return lines


def _contrast_lines(task: TaskReport, level: float) -> list[str]:
    """Return frameworks against F."""
    region = {row["framework"]: row for row in table_records(task.asked("region"))}
    larger = {}
    for row in table_records(task.asked("region minus elsewhere")):
        larger[row["framework"]] = row["verdict"]
    rows = []
    for overall in table_records(task.asked("all rows")):
        framework = overall["framework"]
        there = region[framework]
        null_mean = format_number(there["null_difference"])
        null_error = format_number(there["null_se"])
        cells = [
            shorten_text(framework),
            overall["folds"],
            format_interval(overall),
            _verdict_text(task, overall, level),
            format_interval(there),
            _verdict_text(task, there, level),
            f"{null_mean} ± {null_error}",
            larger.get(framework, "-"),
        ]
        rows.append(cells)
    if not rows:
        return []
    unit = task.unit
    headers = ["framework", unit.fold + "s", f"minus F, all {unit.many}", "verdict"]
    headers += ["where F fails", "verdict", "null ± s.e.", "there"]
    title = f"  {task.loss} minus F's ({format_level(level)} interval)"
    title += f"; null: {unit.refits} of F, where F fails"
    return [title, *text_table(headers, rows, indent=2).splitlines()]


def _verdict_text(task: TaskReport, row: Mapping[str, Any], level: float) -> str:
    """Return a verdict, and by which losses where those of some rows may be capped."""
    by = f" ({row['by']})" if task.capping and row["by"] else ""
    return f"{verdict_text(row, level)}{by}"


def _pair_lines(task: TaskReport) -> list[str]:
    """Return the pairs of frameworks that differ; the page has the others."""
    lines = []
    for row in table_records(task.pairs):
        if row["verdict"] not in ("better", "worse"):
            continue
        first, second = shorten_text(row["framework"]), shorten_text(row["other"])
        # By weight is the rule, so only the exception is told.
        weighting = "" if row["weighted"] else f", all {task.unit.many} alike"
        told = f"{format_interval(row)}{weighting}"
        lines += _wrap_text(f"{first} is {row['verdict']} than {second} ({told})", 2)
    return lines


def _slice_lines(task: TaskReport) -> list[str]:
    lines = []
    for row in table_records(task.slices):
        condition = shorten_text(row["slice"], 300)
        share = f"{row['share']:.0%} of {format_count(row['rows'], task.unit.one)}"
        inside = f"{share} ({percent_range(row['low'], row['high'], ' %')})"
        lines += _wrap_text(
            f"F fails where {condition}: {inside}, {row['base']:.0%} of all {task.unit.many}",
            2,
        )
    if lines:
        return lines
    return [
        "  No slice of few features was found in which F fails more often than elsewhere."
    ]


def _score_lines(task: TaskReport, has_baseline: bool) -> list[str]:
    """Return the main metric, frameworks by parts."""
    # The main metric comes first; the page has the others.
    pivot = next(score_pivots(task), None)
    if pivot is None:
        return []
    # Groups of failures are left to the page: a terminal has no room for their columns.
    parts = [p for p in pivot["parts"] if p in PARTS or not has_baseline]
    rows = []
    for framework, cells in pivot["rows"]:
        row = [shorten_text(framework)]
        for part in parts:
            # A framework that did not run on a part has no cell.
            cell = cells.get(part)
            text = format_number(cell["value"]) if cell else ""
            if cell and cell["folds"]:
                text += (
                    f" ({cell['folds']} of {format_count(task.folds, task.unit.fold)})"
                )
            row.append(text)
        rows.append(row)
    direction = "lower" if pivot["lower"] else "higher"
    lines = [
        f"  {UNITS.get(pivot['metric'], pivot['metric'])}, {direction} is better",
        *text_table(["framework", *parts], rows, indent=2).splitlines(),
    ]
    if has_baseline:
        lines += _wrap_text(ranking_sentence(task), 2)
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
            framework = shorten_text(group["framework"])
            reason = shorten_text(group["reason"], 300)
            lines += _wrap_text(
                f"{framework}, {group['status']}: {reason}: {jobs}{more}", 2
            )
        if len(groups) > _MOST_GROUPS:
            lines.append(f"  and {len(groups) - _MOST_GROUPS} more reasons")
    lines += _command_lines(report)
    for note in report.notes:
        lines += _wrap_text(f"note: {note}")
    return lines


def _command_lines(report: SuiteReport) -> list[str]:
    lines = []
    if report.commands:
        lines.append("To run the failed, missing and refused jobs again:")
        lines += [f"  {command}" for command in report.commands]
    if report.needed:
        lines.append("To run what the verdict needs:")
        lines += [f"  {command}" for command in report.needed]
    return lines


def _wrap_text(text: str, indent: int = 0) -> list[str]:
    margin = " " * indent
    return textwrap.wrap(
        shorten_text(text, 2000),
        WIDTH,
        initial_indent=margin,
        subsequent_indent=margin + "  ",
    )


def report_summary(report: SuiteReport, path: Path) -> str:
    """Return what ``hardsynth report`` prints when it has written its page."""
    lines = [*report.verdict, *_matrix_lines(report)]
    lines += report.caveats
    lines += [f"warning: {warning}" for warning in report.warnings]
    lines += _command_lines(report)
    lines += [f"note: {note}" for note in report.notes]
    lines += ["", f"report: {path}", f"  its tables: {path.parent / 'report'}"]
    return "\n".join(lines)
