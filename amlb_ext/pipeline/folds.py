"""All folds of all tasks: which are finished, which must be computed, on several processes.

A job is one fold of one task, or of all tasks of a group, which share their rows.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from amlb_ext.core.errors import HardsynthError, SuiteError
from amlb_ext.core.files import remove_file, remove_temporary_files, write_text
from amlb_ext.core.parallel import Unit, UnitOutcome, run_units
from amlb_ext.core.task import Task
from amlb_ext.core.version import __version__
from amlb_ext.pipeline.job import Tasks, send_job, write_job
from amlb_ext.pipeline.request import (
    GenerationReport,
    Request,
    result_settings,
    stored_settings,
)
from amlb_ext.suite import FoldRecord, Layout, begin_suite, read_finished_fold
from amlb_ext.suite.transfer import check_in_folds


@dataclass
class FoldResults:
    """What came of the folds.

    Attributes
    ----------
    records : dict of str to dict
        By task and fold.
    errors : dict of str to HardsynthError
        Tasks that cannot be made hard, and why.
    lost : list of dict
        Folds that were begun and not finished, by task, and why.
    notes : list of str
        Why folds were run again.
    """

    records: dict[str, dict[int, FoldRecord]]
    errors: dict[str, HardsynthError] = field(default_factory=dict)
    lost: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def keep(
        self, group: Tasks, fold: int, records: Sequence[FoldRecord | None]
    ) -> None:
        """Take the finished records of a fold, one for each task of its group."""
        for task, record in zip(group, records, strict=True):
            if record is not None:
                self.records[task.name][fold] = record

    def lose(self, group: Tasks, fold: int, reason: str) -> None:
        """Note that a fold was not finished."""
        for task in group:
            self.lost.append(
                {"task": task.name, "fold": fold, "reason": f"fold {fold}: {reason}"}
            )


def harden_all(
    layout: Layout, tasks: list[Task], request: Request, report: GenerationReport
) -> tuple[dict[str, dict[int, FoldRecord]], dict[str, list[dict[str, Any]]]]:
    """Run all folds that are not finished yet; drop tasks that failed or show no failure.

    A fold that came to a limit, or whose process died again and again, is left out and told of;
    the task's other folds stay.
    """
    if layout.root.exists():
        remove_temporary_files(layout.root)
    total = sum(len(task.folds) for task in tasks)
    with tqdm(total=total, desc="folds", unit="fold", disable=request.quiet) as bar:
        results = _run_folds(layout, tasks, request, bar)
    report.notes += results.notes
    if results.errors and len(results.errors) == len(tasks):
        withdraw(layout)
        raise next(iter(results.errors.values()))
    for name, error in results.errors.items():
        results.records.pop(name)
        report.failures.append({"task": name, "reason": str(error)})
    report.failures += results.lost
    summaries = {}
    for name, records in list(results.records.items()):
        summaries[name] = [records[fold].summary for fold in sorted(records)]
        if any(summary["bad"] for summary in summaries[name]):
            continue
        # Without a failure of F in any fold there is nothing to make hard.
        results.records.pop(name)
        if summaries[name]:
            largest = max(summaries[name], key=lambda summary: summary["test"])
            report.failures.append({"task": name, "reason": largest["no_failures"]})
    return results.records, summaries


def _run_folds(
    layout: Layout, tasks: list[Task], request: Request, bar: Any
) -> FoldResults:
    """Compute the folds that are not finished, and return the records of all."""
    results = FoldResults({task.name: {} for task in tasks})
    settings = result_settings(request.config)
    begun: list[tuple[Tasks, int]] = []
    # Workers that do not see the suite's folder send the files of a fold back.
    sends_files = bool(request.execution.cluster) and not request.execution.shared

    def unfinished_folds() -> Iterator[Unit]:
        # Asked for one by one while others run, so a task that failed is not begun again.
        for group in group_tasks(tasks):
            for fold in range(len(group[0].folds)):
                keys = fold_keys(group, fold, settings)
                records = [
                    read_finished_fold(layout, task.name, fold, key=key)
                    for task, key in zip(group, keys, strict=True)
                ]
                if all(records) or group[0].name in results.errors:
                    results.keep(group, fold, records)
                    bar.update(len(group))
                    continue
                _begin(layout, settings)
                begun.append((group, fold))
                name = f"{group[0].stream_name} fold {fold}"
                arguments = (group, fold, request.config, keys)
                if sends_files:
                    yield Unit(name, keys[0], send_job, arguments)
                else:
                    yield Unit(name, keys[0], write_job, (*arguments, str(layout.root)))

    for outcome in run_units(
        unfinished_folds(), request.execution, raises=(SuiteError,)
    ):
        group, fold = begun[outcome.index]
        bar.set_postfix_str(outcome.unit.name, refresh=False)
        bar.update(len(group))
        write_log(layout, request, group, fold, outcome)
        results.notes += [
            f"{outcome.unit.name}: run again, {why}" for why in outcome.attempts
        ]
        if outcome.lost:
            results.lose(group, fold, outcome.lost)
        elif isinstance(outcome.result, HardsynthError):
            for task in group:
                results.errors.setdefault(task.name, outcome.result)
        else:
            results.keep(group, fold, _checked_records(layout, request, outcome))
            remove_log(layout, group, fold)
    return results


def _checked_records(
    layout: Layout, request: Request, outcome: UnitOutcome
) -> Sequence[FoldRecord]:
    """Return the records of a fold whose files are what a cluster's worker says they are."""
    if outcome.unit.function is send_job:
        return check_in_folds(layout, *outcome.result)
    for record in outcome.result if request.execution.cluster else ():
        finished = read_finished_fold(layout, record.task, record.fold, key=record.key)
        if finished is None:
            raise SuiteError(
                f"the files of {outcome.unit.name} are not those its worker wrote",
                "let workers see the same folder, or leave --shared-files out",
            )
    records: Sequence[FoldRecord] = outcome.result
    return records


def group_tasks(tasks: Sequence[Task]) -> list[Tasks]:
    """Return the tasks of each group together, the others alone, in order.

    Examples
    --------
    >>> from types import SimpleNamespace as T
    >>> tasks = [T(name="a"), T(name="t_x", group="t"), T(name="t_y", group="t")]
    >>> tasks[0].group = ""
    >>> [[task.name for task in group] for group in group_tasks(tasks)]
    [['a'], ['t_x', 't_y']]
    """
    groups: dict[tuple[str, str], list[Task]] = {}
    for task in tasks:
        groups.setdefault((task.group, "" if task.group else task.name), []).append(
            task
        )
    return [tuple(group) for group in groups.values()]


def fold_keys(group: Tasks, fold: int, settings: dict[str, Any]) -> list[str]:
    """Return per task the hash of everything a fold's files depend on, the other targets too."""
    keys = [fold_key(task, fold, settings) for task in group]
    if len(group) == 1:
        return keys
    together = json.dumps([group[0].group, *keys])
    return [hashlib.sha256(f"{key}{together}".encode()).hexdigest() for key in keys]


def fold_key(task: Task, fold: int, settings: dict[str, Any]) -> str:
    """Return the hash of a task, a fold and the settings that decide it.

    How rows were split and columns chosen counts by what came of it: the columns and rows.
    """
    parts = {
        "version": __version__,
        "settings": {
            k: v for k, v in settings.items() if k not in ("name", "split", "source")
        },
        "task": task.name,
        "content": task.table_hash,
        "rows": task.rows_hash(fold),
        "fold": fold,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _begin(layout: Layout, settings: dict[str, Any]) -> None:
    """Mark the folder as ours before the first file, so that a killed run can continue."""
    if layout.manifest.exists() or stored_settings(layout) != settings:
        begin_suite(layout, {"settings": settings, "version": __version__})


def withdraw(layout: Layout) -> None:
    """Remove a folder in which nothing was finished; a finished suite there stays."""
    has_logs = layout.logs.exists()  # of lost folds, which the user is told to read
    if layout.request.exists() and not layout.manifest.exists() and not has_logs:
        shutil.rmtree(layout.root)


# Logs of folds: what became of each, where, how long, and what it printed.


def write_log(
    layout: Layout, request: Request, group: Tasks, fold: int, outcome: UnitOutcome
) -> None:
    """Write the log of a fold, where one is wanted."""
    name = _log_name(group, fold)
    if request.logs is not None:
        write_text(request.logs / name, _log_text(outcome))
    if outcome.lost:
        write_text(layout.logs / name, _log_text(outcome))


def remove_log(layout: Layout, group: Tasks, fold: int) -> None:
    """Remove the log of a fold that was lost before and is now finished."""
    path: Path = layout.logs / _log_name(group, fold)
    if path.exists():
        remove_file(path)
        if not any(layout.logs.iterdir()):
            layout.logs.rmdir()


def _log_name(group: Tasks, fold: int) -> str:
    return f"{group[0].name}_fold_{fold}.log"


def _log_text(outcome: UnitOutcome) -> str:
    report = outcome.report
    lines = [outcome.unit.name, f"key: {outcome.unit.key}"]
    lines += [
        f"attempt {number}: {why}" for number, why in enumerate(outcome.attempts, 1)
    ]
    if outcome.lost:
        lines.append(f"lost: {outcome.lost}")
    elif report is not None:
        peak = f", at most {report.peak / 1e6:,.0f} MB" if report.peak else ""
        where = f", {report.where}" if report.where else ""
        lines.append(f"finished in {report.seconds:.1f} s{peak}{where}")
    if report is not None and report.log:
        lines += ["", report.log.rstrip()]
    return "\n".join(lines) + "\n"
