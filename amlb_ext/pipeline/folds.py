"""All folds of all tasks: which are finished, which must be computed, on several processes.

A job is one fold of one task, or of all tasks of a group, which share their rows.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from amlb_ext import __version__
from amlb_ext.core.atomic import sweep
from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ConfigError, DataError, HardsynthError, ModelError
from amlb_ext.core.parallel import available_cores, run_jobs
from amlb_ext.core.task import Task
from amlb_ext.hardening.crossfit import CrossFit, cross_fit
from amlb_ext.hardening.fold import HardFold, harden_fold
from amlb_ext.hardening.shared import harden_shared
from amlb_ext.pipeline.request import Report, Request, result_settings, stored_settings
from amlb_ext.suite import Coding, FoldRecord, Layout, begin, finished_fold, write_fold
from amlb_ext.validity.calibrate import calibrate, wants_calibration
from amlb_ext.validity.calibrate_shared import calibrate_shared

#: Tasks whose folds are hardened by one job.
Tasks = tuple[Task, ...]


def harden_all(
    layout: Layout, tasks: list[Task], request: Request, report: Report
) -> tuple[dict[str, dict[int, FoldRecord]], dict[str, list[dict[str, Any]]]]:
    """Run all folds that are not finished yet; drop tasks that failed or show no failure."""
    settings = result_settings(request.config)
    records: dict[str, dict[int, FoldRecord]] = {task.name: {} for task in tasks}
    places: list[tuple[Tasks, int]] = []
    errors: dict[str, HardsynthError] = {}
    if layout.root.exists():
        sweep(layout.root)
    workers = request.workers if request.workers > 0 else available_cores()
    total = sum(len(task.folds) for task in tasks)
    bar = tqdm(total=total, desc="folds", unit="fold", disable=request.quiet)

    def jobs() -> Iterator[tuple[Any, ...]]:
        for group in grouped(tasks):
            for fold in range(len(group[0].folds)):
                keys = fold_keys(group, fold, settings)
                done = [
                    finished_fold(layout, task.name, fold, key)
                    for task, key in zip(group, keys, strict=True)
                ]
                if all(done):
                    keep(group, fold, done)
                    continue
                if group[0].name in errors:
                    bar.update(len(group))
                    continue
                _begin(layout, settings)
                places.append((group, fold))
                yield str(layout.root), group, fold, request.config, keys

    def keep(group: Tasks, fold: int, found: Sequence[FoldRecord | None]) -> None:
        bar.update(len(group))
        for task, record in zip(group, found, strict=True):
            if record is not None:
                records[task.name][fold] = record

    with bar:
        for index, result in run_jobs(_fold_job, jobs(), min(workers, total)):
            group, fold = places[index]
            bar.set_postfix_str(f"{group[0].stream_name} {fold}", refresh=False)
            if isinstance(result, HardsynthError):
                bar.update(len(group))
                for task in group:
                    errors.setdefault(task.name, result)
            else:
                keep(group, fold, result)
    if errors and len(errors) == len(tasks):
        withdraw(layout)
        raise next(iter(errors.values()))
    for name, error in errors.items():
        records.pop(name)
        report.failures.append({"task": name, "reason": str(error)})
    summaries = {}
    for name in list(records):
        summaries[name] = [records[name][k].summary for k in sorted(records[name])]
        if not any(summary["bad"] for summary in summaries[name]):
            records.pop(name)
            closest = max(summaries[name], key=lambda s: s["test"])["notes"][0]
            report.failures.append({"task": name, "reason": closest})
    return records, summaries


def grouped(tasks: Sequence[Task]) -> list[Tasks]:
    """Return the tasks of each group together, the others alone, in order.

    Examples
    --------
    >>> from types import SimpleNamespace as T
    >>> tasks = [T(name="a"), T(name="t_x", group="t"), T(name="t_y", group="t")]
    >>> tasks[0].group = ""
    >>> [[task.name for task in group] for group in grouped(tasks)]
    [['a'], ['t_x', 't_y']]
    """
    groups: dict[tuple[str, str], list[Task]] = {}
    for task in tasks:
        groups.setdefault((task.group, "" if task.group else task.name), []).append(task)
    return [tuple(group) for group in groups.values()]


def fold_keys(group: Tasks, fold: int, settings: dict[str, Any]) -> list[str]:
    """Return per task the hash of everything a fold's files depend on, the other targets too."""
    keys = [fold_key(task, fold, settings) for task in group]
    if len(group) == 1:
        return keys
    together = json.dumps([group[0].group, *keys])
    return [hashlib.sha256(f"{key}{together}".encode()).hexdigest() for key in keys]


def fold_key(task: Task, fold: int, settings: dict[str, Any]) -> str:
    """Return the hash of a task, a fold and the settings."""
    parts = {
        "version": __version__,
        "settings": {k: v for k, v in settings.items() if k != "name"},
        "task": task.name,
        "content": task.content_hash,
        "fold": fold,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _fold_job(
    root: str, group: Tasks, fold: int, config: GenerateConfig, keys: list[str]
) -> list[FoldRecord] | HardsynthError:
    """Harden one fold and write it; what the user can mend comes back as an error."""
    try:
        made = _calibrated(group, fold, config)
    except (ModelError, ConfigError, DataError) as error:
        return error
    return [
        write_fold(
            Layout(Path(root)),
            task.name,
            Coding.of(task),
            fold,
            hard.train,
            hard.parts,
            key,
            hard.summary,
        )
        for task, hard, key in zip(group, made, keys, strict=True)
    ]


def _calibrated(group: Tasks, fold: int, config: GenerateConfig) -> list[HardFold]:
    """Harden a fold, with a kappa settled on its training rows where the user named none."""
    crosses = [cross_fit(task, fold, config) for task in group]
    if not wants_calibration(config):
        return _hardened(group, fold, config, crosses)
    if group[0].group:
        found = calibrate_shared(group, fold, config, crosses)
    else:
        found = [calibrate(group[0], fold, config, crosses[0])]
    search = config.search.model_copy(update={"kappa": found[0].kappa})
    made = _hardened(group, fold, config.model_copy(update={"search": search}), crosses)
    for hard, one in zip(made, found, strict=True):
        hard.summary["calibration"] = one.to_json()
        if hard.summary["bad"] and not one.passed:
            hard.summary["notes"].append(f"kappa 0, rows are jittered only: {one.reason}")
    return made


def _hardened(
    group: Tasks, fold: int, config: GenerateConfig, crosses: list[CrossFit]
) -> list[HardFold]:
    if group[0].group:
        return harden_shared(group, fold, config, crosses)
    return [harden_fold(group[0], fold, config, crosses[0])]


def _begin(layout: Layout, settings: dict[str, Any]) -> None:
    """Mark the folder as ours before the first file, so that a killed run can continue."""
    if layout.manifest.exists() or stored_settings(layout) != settings:
        begin(layout, {"settings": settings, "version": __version__})


def withdraw(layout: Layout) -> None:
    """Remove a folder in which nothing was finished; a finished suite there stays."""
    if layout.root.exists() and layout.request.exists() and not layout.manifest.exists():
        shutil.rmtree(layout.root)
