"""Logs of folds: what became of each, where, how long, and what it printed."""

from __future__ import annotations

from pathlib import Path

from amlb_ext.core.atomic import remove, write_text
from amlb_ext.core.parallel import Outcome
from amlb_ext.pipeline.job import Tasks
from amlb_ext.pipeline.request import Request
from amlb_ext.suite import Layout


def tell(layout: Layout, request: Request, group: Tasks, fold: int, outcome: Outcome) -> None:
    """Write the log of a fold, where one is wanted."""
    name = _name(group, fold)
    if request.logs is not None:
        write_text(request.logs / name, _text(outcome))
    if outcome.lost:
        write_text(layout.logs / name, _text(outcome))


def forget(layout: Layout, group: Tasks, fold: int) -> None:
    """Remove the log of a fold that was lost before and is now finished."""
    path: Path = layout.logs / _name(group, fold)
    if path.exists():
        remove(path)
        if not any(layout.logs.iterdir()):
            layout.logs.rmdir()


def _name(group: Tasks, fold: int) -> str:
    return f"{group[0].name}_fold_{fold}.log"


def _text(outcome: Outcome) -> str:
    report = outcome.report
    lines = [outcome.unit.name, f"key: {outcome.unit.key}"]
    lines += [f"attempt {number}: {why}" for number, why in enumerate(outcome.attempts, 1)]
    if outcome.lost:
        lines.append(f"lost: {outcome.lost}")
    elif report is not None:
        peak = f", at most {report.peak / 1e6:,.0f} MB" if report.peak else ""
        where = f", {report.where}" if report.where else ""
        lines.append(f"finished in {report.seconds:.1f} s{peak}{where}")
    if report is not None and report.log:
        lines += ["", report.log.rstrip()]
    return "\n".join(lines) + "\n"
