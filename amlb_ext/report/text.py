"""The report as plain text, for a terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from amlb_ext.report.inline import plain
from amlb_ext.report.model import Report, TaskReport

WIDTH = 100
#: Jobs without a score that are listed one by one.
_MOST_JOBS = 20


def report_text(report: Report) -> str:
    """Return the whole report, about one screen and one screen per task.

    Names come from the user's data: control characters are taken out, so that none can move a
    terminal's cursor.
    """
    lines = [f"{plain(report.name)}: which framework really improves where F fails?", ""]
    for sentence in report.verdict:
        lines += _wrap(sentence)
    for warning in report.warnings:
        lines += _wrap(f"WARNING: {warning}")
    lines += [""] + [f"{label:<14}{plain(value, 200)}" for label, value in report.about.items()]
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
            [plain(row["framework"]), *counts, _percent(row["relative"]), _between(row, _percent),
             _number(row["mean_rank"])]
        )  # fmt: skip
    return rows


def _task(task: TaskReport, level: float) -> Iterator[str]:
    title = plain(task.title, 70)
    yield f"{title}{'' if task.title == task.name else f' ({task.name})'}, {task.kind}"
    if task.certificate is not None:
        yield from _wrap(f"{task.certificate.verdict}: {task.certificate.reason}", 2)
    if task.no_claim:
        yield from _wrap(f"No claim: {task.no_claim}", 2)
    for warning in task.warnings:
        yield from _wrap(f"WARNING: {warning}", 2)
    counts = task.rows
    yield from _wrap(
        f"{counts.get('full', 0)} test rows, {counts.get('bad', 0)} bad, {counts.get('ga', 0)} "
        f"augmented, {counts.get('synthetic', 0)} synthetic, {task.folds} folds; {task.weighting}",
        2,
    )
    if len(task.contrasts):
        yield f"  {task.loss} minus F's, {level:.0%} interval, p by Holm; null: F fitted again"
        rows = [["framework", "folds", "minus F", "interval", "p", "null +- se", "verdict"]]
        for row in task.contrasts[task.contrasts["where"] == "region"].to_dict("records"):
            null = "-"
            if math.isfinite(row["null_difference"]):
                null = f"{_number(row['null_difference'])} +- {_number(row['null_se'])}"
            rows.append(
                [plain(row["framework"]), row["folds"], _number(row["difference"]),
                 _between(row, _number), _p(row["p_holm"]), null, row["verdict"]]
            )  # fmt: skip
        yield from _table(rows, 2)
    for row in task.pairs.to_dict("records"):
        if row["verdict"] in ("better", "worse"):
            yield from _wrap(
                f"{plain(row['framework'])} is {row['verdict']} than {plain(row['other'])} "
                f"({_number(row['difference'])}, {_between(row, _number)})",
                2,
            )
    for row in task.slices.to_dict("records"):
        yield from _wrap(
            f"F fails where {plain(row['slice'], 300)}: {row['share']:.0%} of {row['rows']} rows "
            f"({_between(row, _percent_plain)}), {row['base']:.0%} of all rows",
            2,
        )
    if not len(task.slices):
        yield "  No few features separate the rows on which F fails from the others."


def _jobs(report: Report) -> Iterator[str]:
    if len(report.jobs):
        yield ""
        yield f"Jobs without a score: {len(report.jobs)}"
        for row in report.jobs.head(_MOST_JOBS).to_dict("records"):
            yield from _wrap(
                f"{plain(row['framework'])}, {row['amlb_task']}, fold {row['fold']}: "
                f"{row['status']} ({plain(row['reason'], 300)})",
                2,
            )
        if len(report.jobs) > _MOST_JOBS:
            yield f"  and {len(report.jobs) - _MOST_JOBS} more"
    if report.commands:
        yield "To run the failed, missing and refused jobs again:"
        yield from (f"  {command}" for command in report.commands)
    for note in report.notes:
        yield from _wrap(f"note: {note}")


def _wrap(text: str, indent: int = 0) -> list[str]:
    space = " " * indent
    return textwrap.wrap(
        plain(text, 2000), WIDTH, initial_indent=space, subsequent_indent=space + "  "
    )


def _table(rows: Sequence[Sequence[str]], indent: int = 0) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        " " * indent + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        for row in rows
    ]


def _number(value: Any) -> str:
    return f"{value:.3g}" if value is not None and math.isfinite(value) else "-"


def _percent(value: Any) -> str:
    return f"{value:+.0%}" if value is not None and math.isfinite(value) else "-"


def _percent_plain(value: Any) -> str:
    return f"{value:.0%}" if value is not None and math.isfinite(value) else "-"


def _p(value: Any) -> str:
    if value is None or not math.isfinite(value):
        return "-"
    return "<.001" if value < 0.001 else f"{value:.3f}"


def _between(row: dict[str, Any], show: Any) -> str:
    if not (math.isfinite(row["low"]) and math.isfinite(row["high"])):
        return "no interval"
    return f"{show(row['low'])} to {show(row['high'])}"
