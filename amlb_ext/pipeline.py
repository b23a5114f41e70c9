"""``hardsynth generate``: the only module that knows the order of the stages.

Sources give tasks, each task its folds; every fold is hardened and written by one job, in
whatever order jobs finish; last the definitions and the manifest. A fold that stands finished
under the same key is not computed again, so a killed run continues.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from amlb_ext import __version__
from amlb_ext.core.assets import asset
from amlb_ext.core.atomic import sha256_file, sweep, write_text
from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import (
    ConfigError,
    DataError,
    HardsynthError,
    ModelError,
    SourceError,
    SuiteError,
)
from amlb_ext.core.parallel import available_cores, run_jobs
from amlb_ext.core.task import Kind, Task
from amlb_ext.hardening.fold import harden_fold
from amlb_ext.hardening.given import is_file
from amlb_ext.hardening.hardness import RULES
from amlb_ext.hardening.models import resolve_model
from amlb_ext.hardening.split import split_task
from amlb_ext.sources import open_specs
from amlb_ext.suite import (
    Coding,
    FoldRecord,
    Layout,
    SuiteTask,
    finish,
    finished_fold,
    safe_names,
    write_fold,
)

#: How far the null's seed stands from F's.
NULL_OFFSET = 1000
#: Part of the training rows that the null is fitted on.
NULL_SHARE = 0.8


@dataclass(frozen=True)
class Request:
    """What the user asked for.

    Attributes
    ----------
    sources : tuple of str
    config : GenerateConfig
    out : Path
        The suite's folder.
    workers : int
        Processes; 0 for every core.
    force : bool
        Replace a suite made with other settings.
    dry_run : bool
        Load the sources, write nothing.
    quiet : bool
        No progress bars.
    """

    sources: tuple[str, ...]
    config: GenerateConfig
    out: Path
    workers: int = 0
    force: bool = False
    dry_run: bool = False
    quiet: bool = False


@dataclass
class Report:
    """What was made; the command prints it.

    Attributes
    ----------
    out : str
    written : bool
        Whether a finished suite stands in ``out``.
    tasks : list of dict
        Per task: kind, rows, folds, counts, F's scores.
    failures : list of dict
        Per task that was left out: its name and why.
    notes : list of str
    """

    out: str
    written: bool = False
    tasks: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def generate_suite(request: Request) -> Report:
    """Generate a suite, or continue one.

    Raises
    ------
    HardsynthError
        Bad input; nothing was written and nothing that was there is lost.
    """
    layout = Layout(request.out.absolute())
    settings = result_settings(request.config)
    check_output(layout, settings, request.force)
    check_settings(request.config)
    report = Report(out=str(request.out))
    tasks = load_tasks(request, report)
    if request.dry_run:
        report.tasks = [_planned(task) for task in tasks]
        return report
    records, summaries = _harden_all(layout, tasks, request, report)
    made = [task for task in tasks if records.get(task.name)]
    if not made:
        _withdraw(layout)
        return report
    _finish(layout, made, records, request, settings, report)
    report.tasks = [_summary(task, summaries[task.name]) for task in made]
    report.written = True
    return report


def result_settings(config: GenerateConfig) -> dict[str, Any]:
    """Return the settings that decide a result, as JSON values, free of local paths.

    Sources are identified by their content, a model file by its sha256.
    """
    settings = json.loads(config.model_dump_json(exclude={"source"}))
    if is_file(config.baseline) and Path(config.baseline.model).is_file():
        path = Path(config.baseline.model)
        settings["baseline"]["model"] = path.name
        settings["baseline"]["sha256"] = sha256_file(path)
    return dict(settings)


def check_settings(config: GenerateConfig) -> None:
    """Raise early for settings that no task could satisfy."""
    if not config.composition:
        raise ConfigError("the composition is empty", "--composition bad,synthetic")
    if safe_names([config.name]) != [config.name]:
        raise ConfigError(
            f"{config.name!r} is no name AMLB can load",
            f"use letters, digits, - and _, e.g. --name {safe_names([config.name])[0]}",
        )
    if is_file(config.baseline):
        if not Path(config.baseline.model).is_file():
            raise ModelError(f"no file {config.baseline.model}", "check the path of --baseline")
        return
    serves = _refitted_as(config)
    if not serves:
        resolve_model(config.baseline, Kind.REGRESSION)
    if config.hardness.rule != "auto" and config.hardness.rule not in RULES:
        raise ConfigError(f"unknown rule {config.hardness.rule!r}")


def check_output(layout: Layout, settings: dict[str, Any], force: bool) -> None:
    """Raise when the output folder is not ours, or holds a suite of other settings.

    Raises
    ------
    SuiteError
    """
    root = layout.root
    if root.is_file():
        raise SuiteError(f"{root} is a file", "choose a folder with -o")
    if not root.exists() or not any(root.iterdir()):
        return
    if not layout.request.is_file():
        raise SuiteError(
            f"{root} is not empty and holds no suite of ours", "choose another folder with -o"
        )
    try:
        known = json.loads(layout.request.read_text(encoding="utf-8"))["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        known = None
    if known != settings and not force:
        different = _difference(known or {}, settings)
        raise SuiteError(
            f"{root} holds a suite made with other settings ({different})",
            "choose another folder with -o, or --force to replace it",
        )


def _difference(known: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> str:
    for key in sorted({*known, *wanted}):
        old, new = known.get(key), wanted.get(key)
        if isinstance(old, dict) and isinstance(new, dict) and old != new:
            return _difference(old, new, f"{prefix}{key}.")
        if old != new:
            return f"{prefix}{key}: {old!r} there, {new!r} now"
    return "unreadable"


def load_tasks(request: Request, report: Report) -> list[Task]:
    """Load all tasks with their folds; a bad one among several is reported.

    Raises
    ------
    HardsynthError
        A spec that no source knows, or no task that could be loaded.
    """
    refs = list(open_specs(request.sources, request.config.source))
    tasks: list[Task] = []
    first: HardsynthError | None = None
    for ref in tqdm(refs, desc="sources", disable=request.quiet, leave=False):
        try:
            tasks.append(ref.load())
        except (SourceError, DataError) as error:
            first = first or error
            report.failures.append({"task": ref.name, "reason": str(error)})
    if not tasks:
        raise first or SourceError("the sources hold no task", "name another source")
    names = safe_names([task.name for task in tasks])
    config = request.config
    return [
        split_task(task.renamed(name), config.split, config.seed)
        for task, name in zip(tasks, names, strict=True)
    ]


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
        hard = harden_fold(task, fold, config)
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


def _harden_all(
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
        _withdraw(layout)
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


def _begin(layout: Layout, settings: dict[str, Any]) -> None:
    """Mark the folder as ours before the first file, so that a killed run can continue."""
    if not layout.request.exists() or _stored(layout) != settings:
        layout.manifest.unlink(missing_ok=True)
        text = json.dumps({"settings": settings, "version": __version__}, indent=1, sort_keys=True)
        write_text(layout.request, text + "\n")


def _stored(layout: Layout) -> Any:
    try:
        return json.loads(layout.request.read_text(encoding="utf-8"))["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _withdraw(layout: Layout) -> None:
    """Remove a folder in which nothing was finished; a finished suite there stays."""
    if layout.root.exists() and layout.request.exists() and not layout.manifest.exists():
        shutil.rmtree(layout.root)


def _finish(
    layout: Layout,
    made: list[Task],
    records: dict[str, dict[int, FoldRecord]],
    request: Request,
    settings: dict[str, Any],
    report: Report,
) -> None:
    suite_tasks = [
        SuiteTask(
            name=task.name,
            kind=task.kind,
            coding=Coding.of(task),
            origin=task.origin,
            content_hash=task.content_hash,
            notes=task.notes,
            records=tuple(records[task.name][k] for k in sorted(records[task.name])),
        )
        for task in made
    ]
    if is_file(request.config.baseline):
        report.notes.append(
            "F is a file: AMLB cannot fit it, so frameworks.yaml offers the candidate only"
        )
    for task in made:
        report.notes += [f"{task.name}: {note}" for note in task.notes]
    finish(
        layout,
        name=request.config.name,
        config=settings,
        seed=request.config.seed,
        tasks=suite_tasks,
        failures=report.failures,
        version=__version__,
        integrations=integrations(request.config),
        constraints=asset("resources", "constraints.yaml").read_text(encoding="utf-8"),
    )


def _refitted_as(config: GenerateConfig) -> dict[str, Any]:
    """Return AMLB parameters of F for each family of tasks that it serves."""
    params: dict[str, Any] = {}
    for kind, name in ((Kind.BINARY, "classifier"), (Kind.REGRESSION, "regressor")):
        try:
            spec = resolve_model(config.baseline, kind)
        except ModelError:
            continue
        params |= {name: spec.path, f"{name}_params": spec.params, "encoding": spec.encoding}
    return params


def integrations(config: GenerateConfig) -> dict[str, Any]:
    """Return ``frameworks.yaml``: F itself, its re-seeded null, and a candidate to begin with."""
    entry = {"module": "extensions.HardsynthSklearn", "version": "stable"}
    candidate = {
        "classifier": "sklearn.ensemble.HistGradientBoostingClassifier",
        "regressor": "sklearn.ensemble.HistGradientBoostingRegressor",
        "encoding": "ordinal",
    }
    frameworks: dict[str, Any] = {}
    if not is_file(config.baseline):
        params = _refitted_as(config)
        null = params | {"seed_offset": NULL_OFFSET, "train_share": NULL_SHARE}
        frameworks["HardsynthBaseline"] = entry | {
            "description": "the baseline F of this suite",
            "params": params,
        }
        frameworks["HardsynthNull"] = entry | {
            "description": "F again, other seed, another part of the training rows: the null",
            "params": null,
        }
    frameworks["HardsynthCandidate"] = entry | {
        "description": "a candidate to compare with: histogram gradient boosting",
        "params": candidate,
    }
    return frameworks


def _planned(task: Task) -> dict[str, Any]:
    return {
        "task": task.name,
        "kind": task.kind.value,
        "rows": len(task),
        "folds": len(task.folds),
        "folds_with_failures": "?",
        "bad": None,
        "augmented": None,
        "synthetic": None,
        "score_name": "-",
        "score": {},
    }


def _summary(task: Task, summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up counts over folds and average F's scores."""
    names = {name for summary in summaries for name in summary["score"]}
    scores = {}
    for name in sorted(names):
        values = [s["score"][name] for s in summaries if name in s["score"]]
        scores[name] = sum(values) / len(values)
    return {
        "task": task.name,
        "kind": task.kind.value,
        "rows": len(task),
        "folds": len(summaries),
        "folds_with_failures": sum(bool(s["bad"]) for s in summaries),
        "bad": sum(s["bad"] for s in summaries),
        "augmented": sum(s["augmented"] for s in summaries),
        "synthetic": sum(s["synthetic"] for s in summaries),
        "score_name": "acc" if task.kind.is_classification else "rmse",
        "score": scores,
        "alpha": sorted({round(s["alpha"], 6) for s in summaries}),
        "rule": summaries[0]["rule"],
        "notes": sorted({note for s in summaries for note in s["notes"]}),
    }
