"""The order of the stages: sources, folds, definitions and manifest."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from amlb_ext.core.config import (
    BaselineConfig,
    GenerateConfig,
    SourceConfig,
    SplitConfig,
)
from amlb_ext.core.errors import (
    ConfigError,
    DataError,
    HardsynthError,
    ModelError,
    SourceError,
)
from amlb_ext.core.files import write_text
from amlb_ext.core.locks import lock_folder
from amlb_ext.core.paths import portable_spec
from amlb_ext.core.progress import Bar
from amlb_ext.core.row_order import OrderedTable, order_columns, read_order
from amlb_ext.core.spill import Spill
from amlb_ext.core.task import Origin, Task
from amlb_ext.core.version import __version__
from amlb_ext.hardening.baseline.fitted import load_baseline_model, try_baseline
from amlb_ext.hardening.feasibility import check_declared_relations
from amlb_ext.hardening.hardness import check_alpha, check_rule
from amlb_ext.hardening.identifiers import (
    check_column_options,
    column_names,
    columns_left_out,
    drop_columns,
    required_columns,
    select_columns,
    split_column_lists,
)
from amlb_ext.hardening.split import group_tasks, split_task
from amlb_ext.models.checks import refuse_seen_test_rows
from amlb_ext.models.files import comes_fitted, is_predictions_file
from amlb_ext.models.predictions import check_same_order
from amlb_ext.models.registry import resolve_model
from amlb_ext.models.service import is_service
from amlb_ext.pipeline.cost import cost_text
from amlb_ext.pipeline.folds import (
    HardenedTasks,
    harden_all,
    withdraw,
)
from amlb_ext.pipeline.request import (
    GenerationReport,
    Request,
    check_output,
    check_settings,
    check_tables,
    fold_seeds,
    framework_definitions,
    result_settings,
    suite_request,
)
from amlb_ext.pipeline.summary import kappa_note
from amlb_ext.pipeline.twin import find_original, twin_notes
from amlb_ext.sources import open_specs
from amlb_ext.sources.reading import (
    TableReading,
    describe_reading,
    reading_csv,
    reading_text,
)
from amlb_ext.suite import (
    MAIN_SUFFIXES,
    Coding,
    Layout,
    SuiteTask,
    TableManifest,
    finish_suite,
    safe_names,
)
from amlb_ext.suite.fold_notes import fold_notes, grouped_notes
from amlb_ext.validity.certify import certify_suite


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
    loaded = load_tasks(request)
    report.failures += loaded.failures
    report.absent += loaded.absent
    report.readings += loaded.readings
    if request.dry_run:
        for task in loaded.tasks:
            about = {
                "task": task.name,
                "kind": task.kind.value,
                "rows": len(task),
                "columns": len(task.columns),
                "classes": len(task.labels) or None,
                "missing": int(task.features.isna().to_numpy().sum()),
                "folds": len(task.folds),
            }
            report.tasks.append(about)
            report.notes += [f"{task.name}: {note}" for note in task.notes]
        return report
    check_tables(layout, loaded.tasks, request.force)
    if not request.quiet:
        # Before the work begins, so that a column that was read wrongly costs no time.
        full_table = str(Layout(request.out).columns)
        tqdm.write(reading_text(loaded.readings, full_table), file=sys.stderr)
        words = cost_text(loaded.tasks, request.config, request.certificate)
        tqdm.write(words, file=sys.stderr)
    with lock_folder(layout.lock, layout.root):
        # Again, as it stands now that no other process writes there.
        check_output(layout, settings, request.force)
        hardened = harden_all(layout, loaded.tasks, request)
        report.notes += hardened.notes
        report.failures += hardened.failures
        tasks = [task for task in loaded.tasks if hardened.records.get(task.name)]
        if not tasks:
            withdraw(layout)
            return report
        write_text(layout.columns, reading_csv(loaded.readings))
        # Last, definitions and manifest: they make the folder a suite.
        original = None
        if request.twin:
            original = find_original(request, loaded.source_names)
        suite_tasks = _suite_tasks(tasks, loaded, hardened, request=request)
        manifest = finish_suite(
            layout,
            name=request.config.name,
            config=settings,
            seed=request.config.seed,
            tasks=suite_tasks,
            failures=report.failures,
            version=__version__,
            integrations=framework_definitions(
                request.config, fold_seeds({t.name: t.folds for t in suite_tasks})
            ),
            request=suite_request(request),
            original=original,
            absent=[*report.absent, *hardened.waiting],
        )
        report.written = True
        report.benchmark = manifest.name
        if original is not None and manifest.pair is not None:
            report.twin = manifest.pair.name

        # What the command prints of it.
        notes = {task.name: fold_notes(manifest, task.name) for task in tasks}
        for task in tasks:
            summaries = [record.summary for record in hardened.finished(task.name)]
            entry = _summarise_task(task, summaries)
            entry["notes"] = [note.sentence for note in notes[task.name]]
            report.tasks.append(entry)
        report.notes += _suite_notes(tasks, request.config, manifest)
        if original is not None:
            report.notes += twin_notes(original, manifest)
        report.notes += grouped_notes(notes)
        report.notes += shared_notes(tasks, request.config)
        for entry in report.tasks:
            records = hardened.finished(entry["task"])
            if note := kappa_note([record.summary for record in records]):
                report.notes.append(f"{entry['task']}: {note}")
        write_text(layout.notes, "".join(f"{note}\n" for note in report.notes))
        # certificates read the suite's own files: the tables need not stay beside them
        del loaded, tasks, suite_tasks, task
        if request.certificate != "none":
            certificates = certify_suite(
                layout.root,
                request.execution.processes,
                size="full" if request.certificate == "full" else "quick",
                quiet=request.quiet,
                trusted=True,  # the user named the models in this very command
            )
            for certificate in certificates:
                report.verdicts[certificate.task] = {
                    "verdict": certificate.verdict,
                    "reason": certificate.reason,
                    "checks": certificate.checks,
                }
    return report


# Sources to tasks.


@dataclass(frozen=True, kw_only=True)
class LoadedTasks:
    """Tasks with their folds, and why others could not be loaded.

    Attributes
    ----------
    tasks : list of Task
        Under safe, unique names.
    source_names : dict of str to str
        The sources' own names by safe name.
    failures : list of dict
        Tasks that could not be loaded or have no column to keep, and why.
    readings : list of TableReading
        How each table was read.
    """

    tasks: list[Task]
    source_names: dict[str, str]
    failures: list[dict[str, Any]]
    readings: list[TableReading]

    @property
    def absent(self) -> list[str]:
        """The names of the tasks that could not be loaded."""
        return [failure["task"] for failure in self.failures]


def load_tasks(request: Request) -> LoadedTasks:
    """Load all tasks with their folds; a bad one among several is left out and reported.

    Raises
    ------
    HardsynthError
        A spec that no source knows, no task that could be loaded, or a declared relation, a
        threshold or a named column that does not fit a table.
    """
    config = request.config
    refs = list(open_specs(request.sources, config.source))
    # Tables beyond some size wait on disk, so that any number of tasks fits into memory.
    spill = Spill(request.out.absolute().parent)
    bar = Bar(refs, desc="sources", disable=request.quiet, leave=False)
    left_out = _LeftOut()
    tasks = left_out.sift(bar, lambda ref: spill.keep(ref.load()))
    # A column that no table has is a slip of the user's, unless a table that was not read has it.
    source = split_column_lists(config.source, column_names(tasks))
    check_column_options(tasks, source, all_read=not left_out.errors)
    unfit = {}
    for task in tasks:
        check_alpha(config.hardness, task.kind)
        try:
            check_rule(config.hardness, task.kind, task.labels)
        except ConfigError as error:
            # others of the sources may be of the kind that the rule is for
            unfit[task.name] = error
    if len(unfit) == len(tasks):
        raise next(iter(unfit.values()))
    left_out.errors += unfit.items()
    tasks = [task for task in tasks if task.name not in unfit]
    tasks = left_out.sift(tasks, partial(_with_model, config.baseline))
    tasks = left_out.sift(tasks, lambda task: order_task(task, config.split, source))
    tasks = _share_tables(tasks)
    # Under names that AMLB can load, with folds, with the columns that they keep.
    names = safe_names([task.name for task in tasks])
    source_names = {name: task.name for name, task in zip(names, tasks, strict=True)}
    grouped = rename_repeated_groups(tasks)
    tasks = [task.renamed(name) for task, name in zip(grouped, names, strict=True)]
    split = left_out.sift(
        tasks, lambda task: split_task(task, config.split, config.seed)
    )
    config = config.model_copy(update={"source": source})
    without_columns = _LeftOut()
    chosen = _share_tables(without_columns.sift(split, _column_choice(config)))
    for task in chosen if source.test_file else ():
        refuse_seen_test_rows(task)
    check_declared_relations(chosen, config.relations)
    kept = [spill.keep_folds(task) for task in chosen]
    errors = left_out.errors + without_columns.errors
    return LoadedTasks(
        tasks=kept,
        source_names={task.name: source_names[task.name] for task in kept},
        failures=[{"task": name, "reason": str(error)} for name, error in errors],
        readings=_describe_readings(split, chosen, source),
    )


def _with_model(config: BaselineConfig, task: Task) -> Task:
    """Return a task that F can be fitted on, of its kind and with its parameters."""
    if not comes_fitted(config):
        resolve_model(config, task.kind)
    return task


class _LeftOut:
    """Tasks that a stage refuses, by name, with its errors."""

    def __init__(self) -> None:
        self.errors: list[tuple[str, HardsynthError]] = []

    def sift(self, items: Iterable[Any], stage: Callable[[Any], Task]) -> list[Task]:
        """Return what a stage makes of each item that it does not refuse.

        Raises
        ------
        HardsynthError
            It leaves no task: the first one's reason, or that there was none.
        """
        tasks = []
        for item in items:
            try:
                tasks.append(stage(item))
            except (SourceError, DataError, ModelError) as error:
                self.errors.append((item.name, error))
        if not tasks and self.errors:
            _, first_error = self.errors[0]
            raise first_error
        if not tasks:
            raise SourceError("the sources hold no task", "name another source")
        return tasks


def order_task(task: Task, split: SplitConfig, source: SourceConfig) -> Task:
    """Return a task with its rows' groups and times.

    The columns of groups and times are no features, unless the user keeps them: an id that no
    test row shares with a training row says nothing, and neither does a date of its own.

    Raises
    ------
    ConfigError
        A column that the table does not have.
    DataError
        Groups or times that cannot be read, or no feature beside them.
    """
    order = read_order(
        OrderedTable.of_task(task),
        time=split.time,
        group=split.group,
        gap=split.gap,
        cluster_by=split.cluster_by,
    )
    # a source may know the order of its rows itself; the user's word goes before it
    order = order or task.order
    if order is None:
        return task
    names = (order.time_name, order.group_name, order.cluster_name)
    dropped = order_columns(list(task.features), names) - set(source.keep)
    notes = [f"split {order.text}"]
    if order.cluster_text:
        notes.append(order.cluster_text)
    for name in sorted(dropped):
        keep = f"--keep {shlex.quote(name)}"
        if dropped == {column.name for column in task.columns}:
            listed = " and ".join(map(repr, sorted(dropped)))
            raise DataError(f"{task.name}: without {listed} there is no feature", keep)
        notes.append(
            f"{name!r} tells which rows belong together and is no feature; {keep} makes it one"
        )
    return dataclasses.replace(
        drop_columns(task, dropped), order=order, notes=(*task.notes, *notes)
    )


def _share_tables(tasks: list[Task]) -> list[Task]:
    """Return the tasks, those of a group with one table.

    Equal copies would be sent to workers for each target.
    """
    shared: list[Task] = []
    for task in tasks:
        if task.group and shared and shared[-1].group == task.group:
            task = dataclasses.replace(task, features=shared[-1].features)
        shared.append(task)
    return shared


def _describe_readings(
    tasks: list[Task], chosen: list[Task], source: SourceConfig
) -> list[TableReading]:
    """Return how each table was read: once for the tasks of a group, which share theirs."""
    kept = {task.name: {column.name for column in task.columns} for task in chosen}
    readings = []
    for group in group_tasks(tasks):
        # the first task of a group speaks for all; one without columns is reported as left out
        first = group[0]
        if first.name in kept:
            reading = describe_reading(
                first,
                kept=kept[first.name],
                dropped=columns_left_out(source),
                targets=[task.target_name for task in group],
            )
            readings.append(reading)
    return readings


def _column_choice(config: GenerateConfig) -> Callable[[Task], Task]:
    """Return what gives a task the columns that it keeps; F from a file is tried on them."""
    model = load_baseline_model(config.baseline)
    demand = required_columns(Path(config.baseline.model).name, model)

    def choose(task: Task) -> Task:
        chosen = select_columns(task, config.source, demand)
        # Now, rather than after an hour of other folds.
        try_baseline(config.baseline, model, chosen)
        if is_predictions_file(config.baseline.model):
            check_same_order(Path(config.baseline.model), task, chosen)
        return chosen

    return choose


def rename_repeated_groups(tasks: list[Task]) -> list[Task]:
    """Return the tasks with other names for groups of the same name, e.g. a/cars and b/cars.

    A group has a target once, so what has it a second time is the second group.
    """
    counts: Counter[tuple[str, str]] = Counter()
    renamed = []
    for task in tasks:
        counts[task.group, task.target_name] += 1
        number = counts[task.group, task.target_name]
        # Tasks without a group stand alone, whatever their names.
        if task.group and number > 1:
            task = dataclasses.replace(task, group=f"{task.group}_{number}")
        renamed.append(task)
    return renamed


# Finished folds to a suite.


def _suite_tasks(
    tasks: list[Task], loaded: LoadedTasks, hardened: HardenedTasks, *, request: Request
) -> list[SuiteTask]:
    """Return the tasks as the suite keeps them."""
    # No local folders: the same sources give the same bytes wherever they stand.
    specs = [portable_spec(source) for source in request.sources]
    names = dict(zip(specs, request.source_names, strict=True))
    return [
        SuiteTask(
            name=task.name,
            kind=task.kind,
            target=task.target_name,
            coding=Coding.of(task),
            origin=portable_origin(task.origin, names),
            content_hash=task.content_hash,
            notes=task.notes,
            folds=tuple(hardened.finished(task.name)),
            source_name=loaded.source_names[task.name],
        )
        for task in tasks
    ]


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
    name = names.get(spec)
    if not name:
        # A task of a source of several: the source's name changes, the task's stays.
        source, sign, task = spec.partition("#")
        name = names.get(source, source) + sign + task
    return dataclasses.replace(origin, spec=name)


# What the command prints.


def _summarise_task(task: Task, summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up counts over folds and average F's scores."""
    # A fold without failures of F has no hard rows, so it lacks the scores on those.
    scores = pd.DataFrame([summary["score"] for summary in summaries])
    counts = pd.DataFrame(summaries)[["bad", "augmented", "synthetic"]]
    # kept by their reason, or by column
    changes = {
        name: sum(sum(summary.get(name, {}).values()) for summary in summaries)
        for name in ("left_out", "replaced")
    }
    return {
        "task": task.name,
        "kind": task.kind.value,
        "rows": len(task),
        "folds": len(summaries),
        "folds_with_failures": int((counts["bad"] > 0).sum()),
        **{name: int(total) for name, total in counts.sum().items()},
        **changes,
        "score_name": "brier" if task.kind.is_classification else "rmse",
        "score": {name: float(scores[name].mean()) for name in sorted(scores)},
        "alpha": sorted({round(summary["alpha"], 6) for summary in summaries}),
        "rule": summaries[0]["rule"],
        "kappa": [s.get("calibration", {}).get("kappa") for s in summaries],
    }


def _suite_notes(
    tasks: list[Task], config: GenerateConfig, manifest: TableManifest
) -> list[str]:
    """Return what the user should know of the suite's definitions."""
    notes = []
    if comes_fitted(config.baseline):
        what = "a service" if is_service(config.baseline.model) else "a file"
        notes.append(
            f"F is {what}: AMLB cannot fit it, so frameworks.yaml offers the candidate only"
        )
    for task in tasks:
        # the same in every fold of a task
        for entry in manifest.tasks[task.name].folds.values():
            problem = entry.summary.get("refits", {}).get("problem")
            if problem and comes_fitted(config.baseline):
                notes.append(
                    f"{task.name}: F cannot be fitted again ({problem}), so there is no null "
                    "control"
                )
                break
    for task in tasks:
        notes += [f"{task.name}: {note}" for note in task.notes]
    for amlb_task in manifest.amlb_tasks.values():
        if amlb_task.metric and amlb_task.suffix in MAIN_SUFFIXES:
            notes.append(
                f"{amlb_task.name}: a test file holds one class only, so AMLB is told to score "
                f"it by {amlb_task.metric[0]} instead of auc"
            )
    return notes


def shared_notes(tasks: list[Task], config: GenerateConfig) -> list[str]:
    """Return for each group of tasks what they share, and by which residual its rows are bad."""
    residual = {
        "mean": "the mean residual over the targets",
        "intersection": "every target's residual",
        "union": "any target's residual",
    }[config.hardness.over]
    notes = []
    for group in group_tasks(tasks):
        if group[0].group:
            names = ", ".join(task.name for task in group)
            notes.append(
                f"{names}: the same rows in every part, bad by {residual}; "
                "F is fitted for each target"
            )
    return notes
