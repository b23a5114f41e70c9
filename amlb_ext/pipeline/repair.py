"""``hardsynth verify --repair``: what is missing or changed is made again, the rest is kept.

Whatever is made again is made beside the suite first, and must there have the sha256 that the
manifest promises; only then it takes its place. So a repair that is refused, at whatever stage,
has changed nothing. Where the manifest itself is damaged it is made again from the records of the
folds, whose keys hold the hash of the sources' content.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import HardsynthError, SuiteError
from amlb_ext.core.files import (
    TEMPORARY_SUFFIX,
    move_file,
    remove_file,
    remove_temporary_files,
    sha256_file,
    write_text,
)
from amlb_ext.core.locks import lock_folder
from amlb_ext.core.parallel import run_jobs
from amlb_ext.models.registry import check_model_listed
from amlb_ext.pipeline.folds import write_job
from amlb_ext.pipeline.origins import (
    RepairOptions,
    TaskGroup,
    find_groups,
    match_sources,
    read_sources,
    restore_config,
)
from amlb_ext.pipeline.rebuild import check_version, rebuild_suite, write_derived
from amlb_ext.sources.reading import reading_csv
from amlb_ext.suite import Layout, Manifest, begin_suite, read_manifest, verify_suite
from amlb_ext.suite.folder_faults import damaged_files
from amlb_ext.suite.layout import is_fold_file
from amlb_ext.suite.own_entries import read_own_entries
from amlb_ext.suite.reader import unfinished_error
from amlb_ext.suite.sealed_json import open_sealed
from amlb_ext.suite.verify import damaged_certificate
from amlb_ext.validity.certify import certify_suite, stored_how

#: Files of a fold, by the AMLB task or the task whose folder they stand in.
_FOLD_FILE = re.compile(
    r"(?:data/[^/]+/(?P<amlb_task>[^/]+)_(?:train|test)_|hardsynth/(?P<task>[^/]+)/fold_)"
    r"(?P<fold>\d+)[./].*"
)


@dataclass(frozen=True)
class RepairReport:
    """What a repair did.

    Attributes
    ----------
    mended : tuple of str
        Files that were made again.
    findings : tuple of str
        What :func:`amlb_ext.suite.verify_suite` says of the suite now.
    """

    mended: tuple[str, ...]
    findings: tuple[str, ...]


def repair_suite(
    directory: str | Path, options: RepairOptions | None = None
) -> RepairReport:
    """Make again what is missing or changed in a finished suite.

    Parameters
    ----------
    directory : str or Path
    options : RepairOptions, optional
        Where sources are found that the suite names without their folder.

    Returns
    -------
    RepairReport

    Raises
    ------
    HardsynthError
        A source that is not found or has other content, a suite of another version, or one that
        is damaged beyond repair; nothing was changed.
    """
    layout = Layout(Path(directory).absolute())
    options = options or RepairOptions()
    problem = unfinished_error(layout)
    # Without its manifest a suite looks unfinished; with the sources named it can be rebuilt.
    if problem is not None and not (layout.request.is_file() and options.sources):
        raise problem
    with lock_folder(layout.lock, layout.root):
        remove_temporary_files(layout.root)
        staging = Layout(layout.own / f"repair{TEMPORARY_SUFFIX}")
        try:
            mended = _repair(layout, staging, options)
        finally:
            with contextlib.suppress(OSError):
                shutil.rmtree(staging.root)
    return RepairReport(tuple(mended), tuple(verify_suite(directory)))


def _repair(layout: Layout, staging: Layout, options: RepairOptions) -> list[str]:
    """Make damaged files in the staging folder, move them home, and return their paths."""
    is_manifest_whole = open_sealed(layout.manifest) is not None
    if is_manifest_whole:
        manifest = read_manifest(layout.manifest)
    else:
        manifest = rebuild_suite(layout, staging, options)
    check_version(manifest.version)
    # Asked before anything is made: a certificate that cannot be made again refuses the repair.
    damaged_measures: list[str] = []
    certificate_settings: dict[str, dict[str, Any]] = {}
    for task in manifest.tasks:
        damaged_measures += damaged_certificate(layout, task)
        settings = _certificate_settings(layout, manifest, task, options)
        if settings:
            certificate_settings[task] = settings
    damaged = list(damaged_files(layout, manifest.files))
    # Whatever cannot be made again, or not as it was, ends here with the suite untouched.
    _make_again(staging, manifest, damaged, options)
    for relative in damaged:
        if not _is_as_promised(staging, manifest, relative):
            raise SuiteError(
                f"{relative} cannot be made again as it was: this machine or its numerical "
                "libraries give other values than those the suite was made with; nothing was "
                "changed",
                "repair it where it was made, or run the command that made the suite again",
            )
    # All are as they were: from here on the suite itself changes.
    for relative in damaged:
        if layout.at(relative) in (layout.frameworks, layout.constraints):
            # the user's entries stay behind those that were made again
            with staging.at(relative).open("a", encoding="utf-8", newline="") as file:
                file.write(read_own_entries(layout.at(relative)))
        move_file(staging.at(relative), layout.at(relative))
        if relative.endswith(".csv"):
            # AMLB would reuse what it made of the damaged file.
            for derived in (".parquet", ".arff"):
                remove_file(layout.at(relative).with_suffix(derived))
    if not is_manifest_whole:
        # Last, as when a suite is made: what it promises stands by then.
        move_file(staging.manifest, layout.manifest)
        damaged.append(layout.relative(layout.manifest))
    for task, settings in certificate_settings.items():
        certify_suite(
            layout.root,
            options.execution.processes,
            **settings,
            reuse=False,
            quiet=options.quiet,
            tasks=[task],
            trusted=options.trust_suite,
        )
    return damaged + damaged_measures


def _make_again(
    staging: Layout,
    manifest: Manifest,
    damaged: Collection[str],
    options: RepairOptions,
) -> None:
    """Make what is damaged and does not stand in the staging folder yet."""
    wanted = [path for path in damaged if not _is_as_promised(staging, manifest, path)]
    if wanted and not staging.root.exists():
        begin_suite(staging, {"settings": manifest.config, "version": manifest.version})
    if any(not is_fold_file(path) for path in wanted):
        config = restore_config(manifest.config, options.options, options)
        write_derived(staging, manifest, config)
    if staging.relative(staging.columns) in wanted:
        _read_columns_again(staging, manifest, options)
    folds: set[tuple[str, int]] = set()
    for path in wanted:
        task_and_fold = _fold_of(path, manifest)
        if task_and_fold is not None:
            folds.add(task_and_fold)
    if not folds:
        return
    tasks = {task for task, _ in folds}
    groups = find_groups(manifest, tasks, options, out=staging.root)
    # Whole folds: what is whole in them is made once more beside the suite, and not moved.
    jobs = list(_fold_jobs(staging, groups, folds, manifest))
    for _, result in run_jobs(write_job, jobs, options.execution.processes):
        if isinstance(result, HardsynthError):
            raise result


def _read_columns_again(
    staging: Layout, manifest: Manifest, options: RepairOptions
) -> None:
    """Write how the columns of all sources were read."""
    specs = match_sources(manifest.request.sources, options.sources)
    sources = read_sources(
        manifest.request,
        specs,
        settings=manifest.config,
        options=options,
        out=staging.root,
    )
    write_text(staging.columns, reading_csv(sources.readings))


def _fold_jobs(
    staging: Layout,
    groups: Iterable[TaskGroup],
    folds: Collection[tuple[str, int]],
    manifest: Manifest,
) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of :func:`amlb_ext.pipeline.folds.write_job` for each fold once."""
    for group in groups:
        folds_of_group = {fold for task, fold in folds if task in group.names}
        for fold in sorted(folds_of_group):
            keys = list(group.fold_keys(fold, manifest.config).values())
            yield group.tasks, fold, group.config, keys, str(staging.root)


def _certificate_settings(
    layout: Layout, manifest: Manifest, task: str, options: RepairOptions
) -> dict[str, Any] | None:
    """Return how a damaged certificate is made again; None where it is whole."""
    if not damaged_certificate(layout, task):
        return None
    settings = stored_how(layout, task)
    for other in manifest.tasks:
        # One damaged too far to say how it was made was most likely made as the others.
        if not settings:
            settings = stored_how(layout, other)
    settings = settings or {"size": "quick"}
    if settings.pop("unlabelled", None):
        raise SuiteError(
            f"the damaged certificate of {task} was made with rows without labels; nothing was "
            "changed",
            f"run first: hardsynth certify DIR --unlabelled {task}=FILE",
        )
    # Candidates are built by name, and a suite may be anybody's.
    if not options.trust_suite:
        for model in settings.get("candidates", ()):
            candidate = BaselineConfig(model=str(model))
            check_model_listed(
                f"the certificate of {task}", candidate, manifest.tasks[task].kind
            )
    return settings


def _is_as_promised(layout: Layout, manifest: Manifest, relative: str) -> bool:
    path = layout.at(relative)
    return path.is_file() and sha256_file(path) == manifest.files[relative]


def _fold_of(relative: str, manifest: Manifest) -> tuple[str, int] | None:
    """Return task and fold of a fold's file."""
    if not is_fold_file(relative):
        return None
    match = _FOLD_FILE.fullmatch(relative)
    if match is None:
        return None
    name = match["amlb_task"] or match["task"]
    amlb_task = manifest.amlb_tasks.get(name)
    task = name if amlb_task is None else amlb_task.task
    return task, int(match["fold"])
