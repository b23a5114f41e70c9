"""Complete a suite: definitions, configuration, integrations, and last the manifest."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import (
    explain_disk_errors,
    remove_file,
    remove_temporary_files,
    sha256_file,
)
from amlb_ext.suite.definition import metrics_for
from amlb_ext.suite.fold_notes import left_out_text
from amlb_ext.suite.fold_record import FoldRecord, SuiteTask
from amlb_ext.suite.layout import (
    SUFFIXES,
    Layout,
    amlb_name,
    files_below,
    is_fold_file,
    is_written_later,
    safe_names,
)
from amlb_ext.suite.manifest import (
    AmlbTask,
    FoldEntry,
    PartChanges,
    SuiteRequest,
    TableManifest,
    TaskEntry,
    write_manifest,
)
from amlb_ext.suite.reader import Suite
from amlb_ext.suite.shared_files import write_shared_files
from amlb_ext.suite.twin import Original, pair_of_tables, twin_name

#: What the test rows of an AMLB task are, by its suffix.
_ROWS_OF_PART = {
    "": "a stress test of the baseline and its successors, which ranks no models: hard rows of",
    "full": "the untouched test folds of",
    "hard": "trained and tested on hard rows of",
    "region": "real test rows drawn from the hard region of",
    "bad": "real test rows on which the baseline fails, of",
    "ga": "augmented hard rows of",
    "synthetic": "synthetic hard rows of",
}


def finish_suite(
    layout: Layout,
    *,
    name: str,
    config: Mapping[str, Any],
    seed: int,
    tasks: Sequence[SuiteTask],
    failures: Sequence[Mapping[str, Any]],
    version: str,
    integrations: Mapping[str, Any],
    request: SuiteRequest,
    original: Original | None = None,
    absent: Sequence[str] = (),
) -> TableManifest:
    """Write the files that belong to no fold, remove stale ones, then write the manifest.

    Parameters
    ----------
    layout : Layout
    name : str
        Of the benchmark definition; ``<name>_all`` holds all AMLB tasks.
    config : mapping
        The configuration that decided what was written.
    seed : int
        For AMLB's runs too.
    tasks : sequence of SuiteTask
        With their finished folds, in the order of the definition.
    failures : sequence of mapping
        What could not be generated, with reasons.
    version : str
        The tool's.
    integrations : mapping
        Content of ``frameworks.yaml``; its modules are copied to ``extensions/``.
    request : SuiteRequest
        What the suite was made of; without absolute paths.
    original : Original, optional
        The benchmark to write a hard twin of; :func:`check_twin` has let its name pass.
    absent : sequence of str
        Names of tasks that could not be loaded this time. They are no part of the suite, but
        their finished folds stay until they can be.

    Returns
    -------
    TableManifest

    Raises
    ------
    SuiteError
        No task has a part that AMLB could use, or the disk cannot be written.
    """
    [safe_name] = safe_names([name])
    if safe_name != name:
        raise SuiteError(
            f"the benchmark name {name!r} cannot be the name of a file in AMLB",
            f"use --name {safe_name}",
        )
    amlb_tasks = [*chain.from_iterable(map(amlb_tasks_of, tasks))]
    if not amlb_tasks:
        raise SuiteError(
            f"AMLB can use no rows of any of the {len(tasks)} tasks, so there is no benchmark",
            "see the folds' notes and the failures; a larger --share or another "
            "baseline finds more hard rows",
        )
    previous: dict[str, str] = {}
    # a run that was killed left the manifest under its other name
    for path in (layout.manifest, layout.previous):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            previous = dict(json.loads(path.read_text(encoding="utf-8"))["files"])
    # what is listed here is checked by verify; certificates and reports come later and are not
    files: dict[str, str] = {}
    listed = [layout.request, layout.columns]
    lacks_a_class = set()
    for task in tasks:
        for fold in task.folds:
            files |= fold.files
            # a record cannot name its own checksum, and a fold's certificate may come after it
            listed.append(layout.record(task.name, fold.fold))
            listed.append(layout.certificate(task.name, fold.fold))
            for suffix, part in fold.parts.items():
                if len(part.labels) < len(task.coding.labels):
                    lacks_a_class.add(amlb_name(task.name, suffix))
    for path in listed:
        if path.is_file():
            files[layout.relative(path)] = sha256_file(path)
    pair = None
    if original is not None:
        pair = pair_of_tables(original, amlb_tasks, lacks_a_class=lacks_a_class)
    manifest = TableManifest(
        version=version,
        name=name,
        seed=seed,
        request=request,
        config=dict(config),
        tasks={task.name: task_entry_of(task) for task in tasks},
        amlb_tasks={amlb_task.name: amlb_task for amlb_task in amlb_tasks},
        failures=[dict(failure) for failure in failures],
        pair=pair,
        order=[task.name for task in tasks],
    )
    files |= write_shared_files(Suite(layout, manifest), frameworks=integrations)
    kept = {task.name for task in tasks}
    waiting = set(safe_names(absent)) - kept
    # every AMLB task of a waiting task has a folder of its own
    folders = {amlb_name(task, suffix) for task in waiting for suffix in SUFFIXES}
    _remove_stale_files(layout, files, previous=previous, waiting=folders)
    # certificates are in no manifest, so they are known by their places
    for file_name in ("certificate.json", "null.parquet"):
        for path in layout.own.glob(f"*/{file_name}"):
            if path.parent.name not in kept | waiting:
                remove_file(path)
    manifest = replace(manifest, files=files)
    write_manifest(manifest, layout.manifest)
    # it said which files may be removed, and is of no use once the new manifest stands
    remove_file(layout.previous)
    return manifest


def check_twin(original: str, name: str) -> None:
    """Raise when a twin's definition would take the place of another of the suite."""
    twin = twin_name(original)
    if safe_names([twin]) != [twin]:
        raise SuiteError(
            f"the benchmark name {original!r} cannot be the name of a file in AMLB",
            "rename its file; use letters, digits, - and _",
        )
    # in lower case: some file systems do not tell "A" from "a"
    if twin.lower() in (name.lower(), f"{name}_all".lower()):
        raise SuiteError(
            f"{twin} would name both the hard twin of {original} and, by --name {name}, another "
            "definition",
            f"choose another --name, e.g. --name hardsynth_{original}",
        )


def amlb_tasks_of(task: SuiteTask) -> list[AmlbTask]:
    """Return the AMLB tasks of a task, one for each part that some fold has."""
    amlb_tasks = []
    for suffix in SUFFIXES:
        folds = [fold for fold in task.folds if suffix in fold.parts]
        folds.sort(key=lambda fold: fold.fold)
        if not folds:
            continue
        parts = [fold.parts[suffix] for fold in folds]
        labels = [part.labels for part in parts]
        amlb_tasks.append(
            AmlbTask(
                name=amlb_name(task.name, suffix),
                task=task.name,
                suffix=suffix,
                type=task.kind,
                target=task.coding.written_target,
                description=_description(task, suffix, folds),
                metric=metrics_for(task.kind, labels, task.coding.labels),
                folds=[fold.fold for fold in folds],
                train=[part.train for part in parts],
                test=[part.test for part in parts],
                provenance=[part.provenance for part in parts],
                train_rows=[part.train_rows for part in parts],
                test_rows=[part.test_rows for part in parts],
            )
        )
    return amlb_tasks


def _description(task: SuiteTask, suffix: str, folds: Sequence[FoldRecord]) -> str:
    """Return the description of an AMLB task in the definition.

    The source comes last: a suite that is given another spec has it replaced there.
    """
    cells: Counter[str] = Counter()
    dropped = 0
    for fold in folds:
        cells.update(fold.parts[suffix].substituted)
        dropped += fold.parts[suffix].dropped
        # the other parts are choices of rows, and leave most of them out
        if suffix == "full":
            dropped += sum(fold.summary.get("left_out", {}).values())
    changes = left_out_text(dropped, cells)
    rows = _ROWS_OF_PART[suffix]
    if not suffix and "weighted" in folds[0].summary.get("composition", ()):
        rows = "all test rows, more often where the baseline is likely to fail, of"
    # test folds with changes are no longer untouched
    if suffix == "full" and changes:
        rows = "the test folds of"
    name = task.source_name or task.name
    about = f"{name}, {changes}" if changes else name
    return f"{rows} {about} ({task.origin.spec or name})"


def task_entry_of(task: SuiteTask) -> TaskEntry:
    """Return what the manifest keeps of a task."""
    folds = {}
    for record in sorted(task.folds, key=lambda record: record.fold):
        parts = {
            suffix: PartChanges(substituted=part.substituted, dropped=part.dropped)
            for suffix, part in record.parts.items()
        }
        folds[record.fold] = FoldEntry(
            key=record.key, notes=record.notes, summary=record.summary, parts=parts
        )
    return TaskEntry(
        source_name=task.source_name or task.name,
        target=task.target,
        kind=task.kind,
        origin=task.origin,
        content_hash=task.content_hash,
        coding=task.coding,
        notes=list(task.notes),
        folds=folds,
    )


def _remove_stale_files(
    layout: Layout,
    files: Mapping[str, str],
    *,
    previous: Mapping[str, str],
    waiting: Collection[str],
) -> None:
    """Remove files of an earlier generation that this one does not have, and empty folders.

    Files of folds are known by their names; all others must stand in the earlier manifest and be
    as it says, so that nothing goes that a user put there or changed. Those of the AMLB tasks in
    ``waiting`` stay.
    """
    remove_temporary_files(layout.root)
    are_other_rows = any(
        is_fold_file(relative) and files.get(relative) != digest
        for relative, digest in previous.items()
    )
    for relative in files_below(layout.root):
        if relative in files:
            continue
        path = layout.at(relative)
        if is_fold_file(relative):
            table = str(Path(relative).with_suffix(".csv"))
            # what AMLB derived from a table of this suite stays
            is_stale = table not in files and relative.split("/")[1] not in waiting
        elif relative.startswith("hardsynth/report") and is_written_later(relative):
            # a report would seem to be of these rows
            is_stale = are_other_rows
        else:
            is_stale = relative in previous and sha256_file(path) == previous[relative]
        if is_stale:
            remove_file(path)
    for top in ("data", "hardsynth", "extensions", "benchmarks"):
        # the deepest folders come first, so that their parents may be empty by then
        for folder in sorted(layout.root.joinpath(top).rglob("*"), reverse=True):
            if folder.is_dir() and not any(folder.iterdir()):
                with explain_disk_errors(folder):
                    folder.rmdir()
