"""The order of the stages: sources, folds, definitions and manifest."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tqdm import tqdm

from amlb_ext.core.assets import asset_path
from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import DataError, HardsynthError, SourceError
from amlb_ext.core.locks import lock_folder
from amlb_ext.core.spill import Spill
from amlb_ext.core.task import Origin, Task
from amlb_ext.core.version import __version__
from amlb_ext.hardening.baseline.from_file import is_baseline_file
from amlb_ext.hardening.feasibility import check_declared_relations
from amlb_ext.hardening.identifiers import (
    check_column_options,
    read_required_columns,
    select_columns,
)
from amlb_ext.hardening.split import split_task
from amlb_ext.pipeline.folds import group_tasks, harden_all, withdraw
from amlb_ext.pipeline.integrations import framework_definitions
from amlb_ext.pipeline.request import (
    GenerationReport,
    Request,
    check_output,
    check_settings,
    portable_spec,
    result_settings,
    suite_request,
)
from amlb_ext.pipeline.twin import find_original, twin_notes
from amlb_ext.sources import open_specs
from amlb_ext.suite import (
    MAIN_SUFFIXES,
    Coding,
    FoldRecord,
    Layout,
    Manifest,
    SuiteTask,
    finish_suite,
    safe_names,
)
from amlb_ext.suite.fold_notes import fold_notes, grouped_notes
from amlb_ext.validity.candidates import Size
from amlb_ext.validity.certificate_store import certify_suite


def generate_suite(request: Request) -> GenerationReport:
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
    if request.twin:
        find_original(request, {})  # raises what is wrong with it before any work
    report = GenerationReport(out=str(request.out))
    tasks, source_names = load_tasks(request, report)
    if request.dry_run:
        report.tasks = [_planned(task) for task in tasks]
        report.notes = [f"{task.name}: {note}" for task in tasks for note in task.notes]
        return report
    with lock_folder(layout.lock, layout.root):
        check_output(
            layout, settings, request.force
        )  # as it stands now that no other writes
        records, summaries = harden_all(layout, tasks, request, report)
        made = [task for task in tasks if records.get(task.name)]
        if not made:
            withdraw(layout)
            return report
        manifest = _finish(
            layout, made, source_names, records, request, settings, report
        )
        report.tasks = [_summary(task, summaries[task.name]) for task in made]
        told = [note for task in made for note in fold_notes(manifest, task.name)]
        for entry in report.tasks:
            entry["notes"] = [
                note.sentence for note in told if note.task == entry["task"]
            ]
        report.notes += grouped_notes(told)
        report.notes += shared_notes(made, request.config)
        said = {task.name: kappa_note(summaries[task.name]) for task in made}
        report.notes += [f"{name}: {note}" for name, note in said.items() if note]
        report.written = True
        if request.certificate != "none":
            size: Size = "full" if request.certificate == "full" else "quick"
            for certificate in certify_suite(
                layout.root,
                request.execution,
                size=size,
                quiet=request.quiet,
                trusted=True,
            ):
                report.verdicts[certificate.task] = {
                    "verdict": certificate.verdict,
                    "reason": certificate.reason,
                    "checks": certificate.checks,
                }
    return report


def load_tasks(
    request: Request, report: GenerationReport
) -> tuple[list[Task], dict[str, str]]:
    """Load all tasks with their folds; a bad one among several is reported.

    Returns
    -------
    tasks : list of Task
        Under safe, unique names.
    source_names : dict
        The sources' own names by safe name.

    Raises
    ------
    HardsynthError
        A spec that no source knows, no task that could be loaded, or a declared relation that does
        not fit a table.
    """
    refs = list(open_specs(request.sources, request.config.source))
    spill = Spill(request.out.absolute().parent)
    tasks: list[Task] = []
    first: HardsynthError | None = None
    for ref in tqdm(refs, desc="sources", disable=request.quiet, leave=False):
        try:
            tasks.append(spill.keep(ref.load()))
        except (SourceError, DataError) as error:
            first = first or error
            report.failures.append({"task": ref.name, "reason": str(error)})
            report.absent.append(ref.name)
    if not tasks:
        raise first or SourceError("the sources hold no task", "name another source")
    config = request.config
    check_column_options(tasks, config.source, all_read=not report.failures)
    names = safe_names([task.name for task in tasks])
    tasks = rename_repeated_groups(tasks)
    renamed = [task.renamed(name) for task, name in zip(tasks, names, strict=True)]
    source_names = {name: task.name for task, name in zip(tasks, names, strict=True)}
    split = [split_task(task, config.split, config.seed) for task in renamed]
    chosen = _choose(split, config, report)
    check_declared_relations(chosen, config.relations)
    kept = [spill.keep_folds(task) for task in chosen]
    return kept, {task.name: source_names[task.name] for task in kept}


def _choose(
    tasks: list[Task], config: GenerateConfig, report: GenerationReport
) -> list[Task]:
    """Return the tasks with the columns that they keep; one without any among several is told of.

    The tasks of a group share one table, which stays one.
    """
    demand = read_required_columns(config.baseline)
    shared: tuple[str, Task] | None = None
    out: list[Task] = []
    first: DataError | None = None
    for task in tasks:
        try:
            chosen = select_columns(task, config.source, demand)
        except DataError as error:
            first = first or error
            report.failures.append({"task": task.name, "reason": str(error)})
            report.absent.append(task.name)
            continue
        if task.group and shared is not None and shared[0] == task.group:
            chosen = dataclasses.replace(chosen, features=shared[1].features)
        shared = task.group, chosen
        out.append(chosen)
    if not out:
        raise first or SourceError("the sources hold no task", "name another source")
    return out


def rename_repeated_groups(tasks: list[Task]) -> list[Task]:
    """Return the tasks with other names for groups of the same name, e.g. a/cars and b/cars.

    A group has a target once, so what has it a second time is the second group.
    """
    counts: Counter[tuple[str, str]] = Counter()
    out = []
    for task in tasks:
        counts[task.group, task.target_name] += 1
        number = counts[task.group, task.target_name]
        apart = task.group and number > 1
        out.append(
            dataclasses.replace(task, group=f"{task.group}_{number}") if apart else task
        )
    return out


def _finish(
    layout: Layout,
    made: list[Task],
    source_names: dict[str, str],
    records: dict[str, dict[int, FoldRecord]],
    request: Request,
    settings: dict[str, Any],
    report: GenerationReport,
) -> Manifest:
    names = dict(
        zip(map(portable_spec, request.sources), request.source_names, strict=True)
    )
    suite_tasks = [
        SuiteTask(
            name=task.name,
            kind=task.kind,
            target=task.target_name,
            coding=Coding.of(task),
            origin=portable_origin(task.origin, names),
            content_hash=task.content_hash,
            notes=task.notes,
            folds=tuple(records[task.name][k] for k in sorted(records[task.name])),
            source_name=source_names[task.name],
        )
        for task in made
    ]
    if is_baseline_file(request.config.baseline):
        report.notes.append(
            "F is a file: AMLB cannot fit it, so frameworks.yaml offers the candidate only"
        )
    for task in made:
        report.notes += [f"{task.name}: {note}" for note in task.notes]
    original = find_original(request, source_names) if request.twin else None
    manifest = finish_suite(
        layout,
        name=request.config.name,
        config=settings,
        seed=request.config.seed,
        tasks=suite_tasks,
        failures=report.failures,
        version=__version__,
        integrations=framework_definitions(request.config),
        request=suite_request(request),
        constraints=asset_path("resources", "constraints.yaml").read_text(
            encoding="utf-8"
        ),
        original=original,
        absent=report.absent,
    )
    changed = [
        t
        for t in manifest.amlb_tasks.values()
        if t.metric and t.suffix in MAIN_SUFFIXES
    ]
    for entry in changed:
        report.notes.append(
            f"{entry.name}: a test file holds one class only, so AMLB is told to score it by "
            f"{(entry.metric or [])[0]} instead of auc"
        )
    if original is not None and manifest.pair is not None:
        report.twin = manifest.pair.name
        report.notes += twin_notes(original, manifest)
    return manifest


def portable_origin(origin: Origin, names: Mapping[str, str]) -> Origin:
    """Return the origin without local folders: an absolute path is cut to its last part.

    Parameters
    ----------
    origin : Origin
    names : mapping of str to str
        What the suite calls sources, by their specs without local folders.

    Examples
    --------
    >>> portable_origin(Origin("/home/me/data.csv"), {}).spec
    'data.csv'
    >>> portable_origin(Origin("new/mine.yaml#flats"), {"new/mine.yaml": "mine.yaml"}).spec
    'mine.yaml#flats'
    """
    spec = portable_spec(origin.spec)
    source, sign, task = spec.partition("#")
    name = names.get(spec) or names.get(source, source) + sign + task
    return dataclasses.replace(origin, spec=name)


def _planned(task: Task) -> dict[str, Any]:
    return {
        "task": task.name,
        "kind": task.kind.value,
        "rows": len(task),
        "columns": len(task.columns),
        "classes": len(task.labels) or None,
        "missing": int(task.features.isna().to_numpy().sum()),
        "folds": len(task.folds),
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
        "left_out": sum(sum(s.get("left_out", {}).values()) for s in summaries),
        "replaced": sum(sum(s.get("replaced", {}).values()) for s in summaries),
        "score_name": "acc" if task.kind.is_classification else "rmse",
        "score": scores,
        "alpha": sorted({round(s["alpha"], 6) for s in summaries}),
        "rule": summaries[0]["rule"],
        "kappa": [
            s["calibration"]["kappa"] if "calibration" in s else None for s in summaries
        ],
    }


def shared_notes(tasks: list[Task], config: GenerateConfig) -> list[str]:
    """Return for each group of tasks what they share, and by which residual its rows are bad."""
    words = {
        "mean": "the mean residual over the targets",
        "intersection": "every target's residual",
        "union": "any target's residual",
    }
    groups = [group for group in group_tasks(tasks) if group[0].group]
    return [
        f"{', '.join(task.name for task in group)}: the same rows in every part, bad by "
        f"{words[config.hardness.over]}; F is fitted for each target"
        for group in groups
    ]


def kappa_note(summaries: list[dict[str, Any]]) -> str:
    """Return the sentence that names each fold's calibrated kappa; empty where none was.

    Examples
    --------
    >>> kappa_note([{"calibration": {"kappa": 0.02, "passed": True}}])
    'kappa 0.02 by fold, calibrated on the training rows'
    >>> nothing = {"calibration": {"kappa": 0, "passed": False}, "jittered": False}
    >>> kappa_note([nothing])
    'kappa 0 by fold, calibrated on the training rows; in 1 no kappa passed'
    """
    found = [s for s in summaries if "calibration" in s]
    if not found:
        return ""
    words = ", ".join(f"{entry['calibration']['kappa']:g}" for entry in found)
    floor = [entry for entry in found if not entry["calibration"]["passed"]]
    tail = f"; in {len(floor)} no kappa passed" if floor else ""
    jittered = sum(bool(entry.get("jittered")) for entry in floor)
    if jittered:
        tail += (
            ", so rows are jittered only"
            if jittered == len(floor)
            else (f", so rows of {jittered} are jittered only")
        )
    return f"kappa {words} by fold, calibrated on the training rows{tail}"
