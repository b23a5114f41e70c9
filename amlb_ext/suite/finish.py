"""Completes a suite: definitions, configuration, integrations, and last the manifest."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from amlb_ext.core.assets import asset_path
from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import (
    TEMPORARY_SUFFIX,
    explain_disk_errors,
    remove_file,
    remove_temporary_files,
    sha256_file,
    write_file,
    write_text,
)
from amlb_ext.suite.definition import amlb_configuration, benchmark_entries, metrics_for, yaml_text
from amlb_ext.suite.fold_notes import left_out_text
from amlb_ext.suite.fold_record import FoldRecord, PartRecord, SuiteTask
from amlb_ext.suite.layout import (
    MAIN_SUFFIXES,
    SUFFIXES,
    Layout,
    amlb_name,
    files_below,
    is_fold_file,
    safe_names,
)
from amlb_ext.suite.manifest import (
    AmlbTask,
    Manifest,
    Pair,
    SuiteRequest,
    TaskEntry,
    write_manifest,
)
from amlb_ext.suite.twin import Original, make_pair, pair_entries, twin_name

_WHAT = {
    "": "the evaluation set of the paper: hard rows of",
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
    constraints: str | None = None,
    original: Original | None = None,
    absent: Sequence[str] = (),
) -> Manifest:
    """Write everything beside the folds, remove what no longer belongs, then the manifest.

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
    constraints : str, optional
        Text of ``constraints.yaml``; the packaged one when omitted.
    original : Original, optional
        The benchmark to write a hard twin of.
    absent : sequence of str
        Names of tasks that could not be loaded this time. They are no part of the suite, but
        their finished folds stay until they can be.

    Returns
    -------
    Manifest

    Raises
    ------
    SuiteError
        No task has a part that AMLB could use, or the disk cannot be written.
    """
    if safe_names([name]) != [name]:
        raise SuiteError(
            f"the benchmark's name {name!r} cannot name a file for AMLB",
            f"use --name {safe_names([name])[0]}",
        )
    if original is not None:
        check_twin(original.name, name)
    amlb_tasks = [amlb_task for task in tasks for amlb_task in _amlb_tasks(task)]
    if not amlb_tasks:
        raise SuiteError(
            f"none of {len(tasks)} tasks has rows that AMLB could use, so there is no benchmark",
            "see the folds' notes and the failures; a larger --hardness.share or another "
            "baseline finds more hard rows",
        )
    ours = _previous_files(layout)
    files: dict[str, str] = {layout.relative(layout.request): sha256_file(layout.request)}
    for task in tasks:
        for fold in task.folds:
            files |= _fold_files(layout, fold)
    pair = None
    if original is not None:
        labels = {task.name: task.coding.labels for task in tasks}
        single = {task.name: _lacks_a_class(task) for task in tasks}
        pair = make_pair(original, amlb_tasks, labels, single)
    files |= write_beside(
        layout,
        name=name,
        seed=seed,
        amlb_tasks=amlb_tasks,
        pair=pair,
        integrations=integrations,
        constraints=constraints,
    )
    kept = {task.name for task in tasks}
    waiting = set(safe_names(absent)) - kept
    _remove_stale(layout, ours, files, {amlb_name(n, end) for n in waiting for end in SUFFIXES})
    for path in [*layout.own.glob("*/certificate.json"), *layout.own.glob("*/null.parquet")]:
        if path.parent.name not in kept | waiting:
            remove_file(path)
    manifest = Manifest(
        version=version,
        name=name,
        seed=seed,
        request=request,
        config=dict(config),
        tasks={task.name: _entry(task) for task in tasks},
        amlb_tasks={amlb_task.name: amlb_task for amlb_task in amlb_tasks},
        failures=[dict(failure) for failure in failures],
        files=files,
        pair=pair,
        order=[task.name for task in tasks],
    )
    write_manifest(manifest, layout.manifest)
    remove_file(layout.previous)
    return manifest


def check_twin(original: str, name: str) -> None:
    """Raise when a twin's definition would take the place of another of the suite."""
    twin = twin_name(original)
    if safe_names([twin]) != [twin]:
        raise SuiteError(
            f"the benchmark's name {original!r} cannot name a file for AMLB",
            "rename its file, to letters, digits, - and _",
        )
    if twin.lower() in (name.lower(), f"{name}_all".lower()):
        raise SuiteError(
            f"{twin} names the hard twin of {original} and, by --name {name}, another definition",
            f"choose another --name, e.g. --name hardsynth_{original}",
        )


def _lacks_a_class(task: SuiteTask) -> bool:
    parts = [fold.parts[""] for fold in task.folds if "" in fold.parts]
    return any(len(part.labels) < len(task.coding.labels) for part in parts)


def _amlb_tasks(task: SuiteTask) -> list[AmlbTask]:
    folds = sorted(task.folds, key=lambda record: record.fold)
    out = []
    for suffix in SUFFIXES:
        present: list[tuple[FoldRecord, PartRecord]] = [
            (fold, fold.parts[suffix]) for fold in folds if suffix in fold.parts
        ]
        if not present:
            continue
        parts = [part for _, part in present]
        source = task.origin.spec or task.source_name or task.name
        out.append(
            AmlbTask(
                name=amlb_name(task.name, suffix),
                task=task.name,
                suffix=suffix,
                type=task.kind,
                target=task.coding.written_target,
                description=_description(task, suffix, present, source),
                metric=metrics_for(task.kind, [p.labels for p in parts], task.coding.labels),
                folds=[fold.fold for fold, _ in present],
                train=[part.train for part in parts],
                test=[part.test for part in parts],
                provenance=[part.provenance for part in parts],
                train_rows=[part.train_rows for part in parts],
                test_rows=[part.test_rows for part in parts],
            )
        )
    return out


def _description(
    task: SuiteTask,
    suffix: str,
    present: Sequence[tuple[FoldRecord, PartRecord]],
    source: str,
) -> str:
    """Return what an AMLB task is, and last its source."""
    cells: Counter[str] = Counter()
    dropped = 0
    for fold, part in present:
        cells.update(part.substituted)
        dropped += part.dropped
        if suffix == "full":  # the other parts are choices of rows, and leave most of them out
            dropped += sum(fold.summary.get("left_out", {}).values())
    changed = left_out_text(dropped, cells)
    what = "the test folds of" if suffix == "full" and changed else _WHAT[suffix]
    what = f"{what} {task.source_name or task.name}"
    return f"{what}, {changed} ({source})" if changed else f"{what} ({source})"


def _entry(task: SuiteTask) -> TaskEntry:
    folds: dict[int, dict[str, Any]] = {}
    for record in sorted(task.folds, key=lambda record: record.fold):
        parts = {
            suffix: {"substituted": part.substituted, "dropped": part.dropped}
            for suffix, part in record.parts.items()
        }
        folds[record.fold] = {
            "key": record.key,
            "notes": list(record.notes),
            "summary": record.summary,
            "parts": parts,
        }
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


def _fold_files(layout: Layout, record: FoldRecord) -> dict[str, str]:
    files = dict(record.files)
    for path in (
        layout.record(record.task, record.fold),
        layout.certificate(record.task, record.fold),
    ):
        if path.exists():
            files[layout.relative(path)] = sha256_file(path)
    return files


def _previous_files(layout: Layout) -> dict[str, str]:
    """Files of the generation before, with their sha256."""
    for path in (layout.previous, layout.manifest):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return dict(json.loads(path.read_text(encoding="utf-8"))["files"])
    return {}


def _remove_stale(
    layout: Layout, ours: Mapping[str, str], files: Mapping[str, str], waiting: set[str]
) -> None:
    """Remove files of an earlier generation that this one has not, and folders left empty.

    Ours are files of folds, by their names, and what the earlier manifest lists and nobody
    changed since. Those of AMLB tasks in ``waiting`` stay.
    """
    remove_temporary_files(layout.root)
    for relative in files_below(layout.root):
        if relative in files:
            continue
        path = layout.at(relative)
        csv = str(Path(relative).with_suffix(".csv"))
        if is_fold_file(relative):
            # what AMLB derived from a present file stays
            stale = csv not in files and relative.split("/")[1] not in waiting
        else:
            stale = relative in ours and sha256_file(path) == ours[relative]
        if stale:
            remove_file(path)
    for top in ("data", "hardsynth", "extensions", "benchmarks"):
        for folder in sorted(layout.root.joinpath(top).rglob("*"), reverse=True):
            if folder.is_dir() and not any(folder.iterdir()):
                with explain_disk_errors(folder):
                    folder.rmdir()


# What stands beside the folds: definitions, configuration, frameworks, constraints, code.
#
# All of it follows from the manifest's entries, so it can be written again without any source.


def write_beside(
    layout: Layout,
    *,
    name: str,
    seed: int,
    amlb_tasks: Sequence[AmlbTask],
    pair: Pair | None,
    integrations: Mapping[str, Any],
    constraints: str | None = None,
) -> dict[str, str]:
    """Write every file of a suite that belongs to no fold, but the manifest and the request.

    Parameters
    ----------
    layout : Layout
    name : str
        Of the benchmark definition.
    seed : int
        Of AMLB's runs.
    amlb_tasks : sequence of AmlbTask
        In the definition's order.
    pair : Pair, optional
        The benchmark that the suite is the hard twin of.
    integrations : mapping
        Content of ``frameworks.yaml``; its modules are copied to ``extensions/``.
    constraints : str, optional
        Text of ``constraints.yaml``; the packaged one when omitted.

    Returns
    -------
    dict of str to str
        The sha256 of each file, by relative path.

    Raises
    ------
    SuiteError
        The disk cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> about = {"name": "mine", "seed": 1, "amlb_tasks": [], "pair": None, "integrations": {}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = write_beside(Layout(Path(folder)), **about)
    >>> [path for path in sorted(files) if path.endswith(".yaml")]
    ['benchmarks/mine.yaml', 'benchmarks/mine_all.yaml', 'config.yaml', 'constraints.yaml', \
'frameworks.yaml']
    """
    if constraints is None:
        packaged = _packaged("resources", "constraints.yaml")
        constraints = packaged.read_text(encoding="utf-8") if packaged else None
    texts: dict[Path, Any] = {
        layout.config: amlb_configuration(seed, constraints=constraints is not None),
        layout.frameworks: dict(integrations),
        layout.definition(name): benchmark_entries(
            t for t in amlb_tasks if t.suffix in MAIN_SUFFIXES
        ),
        layout.definition_all(name): benchmark_entries(amlb_tasks),
    }
    if pair is not None:
        entries = pair_entries(pair, {task.name: task for task in amlb_tasks})
        texts[layout.definition(pair.name)] = entries
    files = {
        layout.relative(path): write_text(path, yaml_text(content))
        for path, content in texts.items()
    }
    if constraints is not None:
        files[layout.relative(layout.constraints)] = write_text(layout.constraints, constraints)
    return files | _copy_integrations(layout)


def _packaged(*parts: str) -> Path | None:
    try:
        return asset_path(*parts)
    except FileNotFoundError:
        return None


def _copy_integrations(layout: Layout) -> dict[str, str]:
    source = _packaged("frameworks")
    files: dict[str, str] = {}
    if source is None:
        return files
    for relative in files_below(source):
        steps = relative.split("/")
        if "__pycache__" in steps or any(step.startswith(".") for step in steps):
            continue
        if relative.endswith((".pyc", TEMPORARY_SUFFIX)):
            continue
        home = layout.extensions.joinpath(*steps)
        copy = partial(shutil.copyfile, source.joinpath(*steps))
        files[layout.relative(home)] = write_file(home, copy)
    return files
