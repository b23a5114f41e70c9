"""All folds of all tasks: which are finished, which must be computed, on several processes."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

from amlb_ext import __version__
from amlb_ext.core.atomic import sweep
from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ConfigError, DataError, HardsynthError, ModelError
from amlb_ext.core.parallel import available_cores, run_jobs
from amlb_ext.core.task import Task
from amlb_ext.hardening.crossfit import cross_fit
from amlb_ext.hardening.fold import HardFold, harden_fold
from amlb_ext.pipeline.request import Report, Request, result_settings, stored_settings
from amlb_ext.suite import Coding, FoldRecord, Layout, begin, finished_fold, write_fold
from amlb_ext.validity.calibrate import calibrate, wants_calibration


def harden_all(
    layout: Layout, tasks: list[Task], request: Request, report: Report
) -> tuple[dict[str, dict[int, FoldRecord]], dict[str, list[dict[str, Any]]]]:
    """Run all folds that are not finished yet; drop tasks that failed or show no failure."""
    settings = result_settings(request.config)
    records: dict[str, dict[int, FoldRecord]] = {task.name: {} for task in tasks}
    places: list[tuple[str, int]] = []
    errors: dict[str, HardsynthError] = {}
    if layout.root.exists():
        sweep(layout.root)
    workers = request.workers if request.workers > 0 else available_cores()
    total = sum(len(task.folds) for task in tasks)
    bar = tqdm(total=total, desc="folds", unit="fold", disable=request.quiet)

    def jobs() -> Iterator[tuple[Any, ...]]:
        for task in tasks:
            for fold in range(len(task.folds)):
                key = fold_key(task, fold, settings)
                record = finished_fold(layout, task.name, fold, key)
                if record is not None:
                    records[task.name][fold] = record
                    bar.update()
                    continue
                if task.name in errors:
                    bar.update()
                    continue
                _begin(layout, settings)
                places.append((task.name, fold))
                yield str(layout.root), task, fold, request.config, key

    with bar:
        for index, result in run_jobs(_fold_job, jobs(), min(workers, total)):
            name, fold = places[index]
            bar.set_postfix_str(f"{name} {fold}", refresh=False)
            bar.update()
            if isinstance(result, HardsynthError):
                errors.setdefault(name, result)
            else:
                records[name][fold] = result
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


def fold_key(task: Task, fold: int, settings: dict[str, Any]) -> str:
    """Return the hash of everything a fold's files depend on."""
    parts = {
        "version": __version__,
        "settings": {k: v for k, v in settings.items() if k != "name"},
        "task": task.name,
        "content": task.content_hash,
        "fold": fold,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _fold_job(
    root: str, task: Task, fold: int, config: GenerateConfig, key: str
) -> FoldRecord | HardsynthError:
    """Harden one fold and write it; what the user can mend comes back as an error."""
    try:
        hard = _calibrated(task, fold, config)
    except (ModelError, ConfigError, DataError) as error:
        return error
    return write_fold(
        Layout(Path(root)),
        task.name,
        Coding.of(task),
        fold,
        hard.train,
        hard.parts,
        key,
        hard.summary,
    )


def _calibrated(task: Task, fold: int, config: GenerateConfig) -> HardFold:
    """Harden a fold, with a kappa settled on its training rows where the user named none."""
    cross = cross_fit(task, fold, config)
    if not wants_calibration(config):
        return harden_fold(task, fold, config, cross)
    found = calibrate(task, fold, config, cross)
    search = config.search.model_copy(update={"kappa": found.kappa})
    hard = harden_fold(task, fold, config.model_copy(update={"search": search}), cross)
    hard.summary["calibration"] = found.to_json()
    if hard.summary["bad"] and not found.passed:
        hard.summary["notes"].append(f"kappa 0, rows are jittered only: {found.reason}")
    return hard


def _begin(layout: Layout, settings: dict[str, Any]) -> None:
    """Mark the folder as ours before the first file, so that a killed run can continue."""
    if layout.manifest.exists() or stored_settings(layout) != settings:
        begin(layout, {"settings": settings, "version": __version__})


def withdraw(layout: Layout) -> None:
    """Remove a folder in which nothing was finished; a finished suite there stays."""
    if layout.root.exists() and layout.request.exists() and not layout.manifest.exists():
        shutil.rmtree(layout.root)
