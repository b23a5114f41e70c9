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
from collections.abc import Collection, Iterable
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
)
from amlb_ext.core.locks import lock_folder
from amlb_ext.core.parallel import run_jobs
from amlb_ext.hardening.baseline.registry import check_model_listed
from amlb_ext.pipeline.job import write_job
from amlb_ext.pipeline.origins import Group, RepairOptions, config_of, find_groups
from amlb_ext.pipeline.rebuild import check_version, rebuild, write_derived
from amlb_ext.suite import Layout, Manifest, begin_suite, read_manifest, verify_suite
from amlb_ext.suite.layout import is_fold_file
from amlb_ext.suite.manifest import open_manifest
from amlb_ext.suite.reader import unfinished_error
from amlb_ext.suite.verify import damaged_certificate, damaged_files
from amlb_ext.validity.certificate_store import certify_suite, stored_how

_PLACE = re.compile(r"(?:data/[^/]+/([^/]+)_(?:train|test)_|hardsynth/([^/]+)/fold_)(\d+)[./].*")


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


def repair_suite(directory: str | Path, asked: RepairOptions | None = None) -> RepairReport:
    """Make again what is missing or changed in a finished suite.

    Parameters
    ----------
    directory : str or Path
    asked : Asked, optional
        Where sources are found that the suite names without their folder.

    Returns
    -------
    Repair

    Raises
    ------
    HardsynthError
        A source that is not found or has other content, a suite of another version, or one that
        is damaged beyond repair; nothing was changed.
    """
    layout, asked = Layout(Path(directory).absolute()), asked or RepairOptions()
    problem = unfinished_error(layout)
    if problem is not None and not (layout.request.is_file() and asked.sources):
        raise problem
    with lock_folder(layout.lock, layout.root):
        remove_temporary_files(layout.root)
        staging = Layout(layout.own / f"repair{TEMPORARY_SUFFIX}")
        try:
            mended = _mend(layout, staging, asked)
        finally:
            with contextlib.suppress(OSError):
                shutil.rmtree(staging.root)
    return RepairReport(tuple(mended), tuple(verify_suite(directory)))


def _mend(layout: Layout, staging: Layout, asked: RepairOptions) -> list[str]:
    whole = open_manifest(layout.manifest).content is not None
    manifest = read_manifest(layout.manifest) if whole else rebuild(layout, staging, asked)
    check_version(manifest.version)
    beside = [path for task in manifest.tasks for path in damaged_certificate(layout, task)]
    certificates = {
        task: how for task in manifest.tasks if (how := _how(layout, manifest, task, asked))
    }
    damaged = list(damaged_files(layout, manifest))
    _make(staging, manifest, damaged, asked)
    for relative in damaged:
        if not _holds(staging, manifest, relative):
            raise SuiteError(
                f"{relative} cannot be made again as it was: this machine or its numerical "
                "libraries give other values than those the suite was made with; nothing was "
                "changed",
                "repair it where it was made, or run the command that made the suite again",
            )
    for relative in damaged:
        move_file(staging.at(relative), layout.at(relative))
        if relative.endswith(".csv"):  # AMLB would reuse what it made of the damaged file
            for derived in (".parquet", ".arff"):
                remove_file(layout.at(relative).with_suffix(derived))
    if not whole:
        move_file(staging.manifest, layout.manifest)
        damaged.append(layout.relative(layout.manifest))
    for task, how in certificates.items():
        certify_suite(
            layout.root,
            asked.execution,
            **how,
            reuse=False,
            quiet=asked.quiet,
            tasks=[task],
            trusted=asked.trust_suite,
        )
    return damaged + beside


def _make(
    staging: Layout, manifest: Manifest, damaged: Collection[str], asked: RepairOptions
) -> None:
    """Make what is damaged and does not stand in the staging folder yet."""
    wanted = [path for path in damaged if not _holds(staging, manifest, path)]
    if wanted and not staging.root.exists():
        begin_suite(staging, {"settings": manifest.config, "version": manifest.version})
    if any(not is_fold_file(path) for path in wanted):
        write_derived(staging, manifest, config_of(manifest.config, asked.options, asked))
    folds = {place for path in wanted if (place := _place(path, manifest)) is not None}
    if folds:
        groups = find_groups(manifest, {task for task, _ in folds}, asked)
        jobs = list(_jobs(staging, groups, folds, manifest))
        for _, result in run_jobs(write_job, jobs, asked.execution):
            if isinstance(result, HardsynthError):
                raise result


def _jobs(
    staging: Layout, groups: Iterable[Group], folds: set[tuple[str, int]], manifest: Manifest
) -> Iterable[tuple[Any, ...]]:
    for group in groups:
        for fold in sorted({fold for task, fold in folds if task in group.names}):
            keys = list(group.keys(fold, manifest.config).values())
            yield group.tasks, fold, group.config, keys, str(staging.root)


def _how(
    layout: Layout, manifest: Manifest, task: str, asked: RepairOptions
) -> dict[str, Any] | None:
    """Return how a damaged certificate is made again, else None."""
    if not damaged_certificate(layout, task):
        return None
    others = (stored_how(layout, other) for other in manifest.tasks if other != task)
    how = stored_how(layout, task) or next((how for how in others if how), {})
    if how.pop("unlabelled", None):
        raise SuiteError(
            f"the damaged certificate of {task} was made with rows without labels; nothing was "
            "changed",
            f"run first: hardsynth certify DIR --unlabelled {task}=FILE",
        )
    for word in () if asked.trust_suite else how.get("candidates", ()):
        named = BaselineConfig(model=str(word))
        check_model_listed(f"the certificate of {task}", named, manifest.tasks[task].kind)
    return how or {"size": "quick"}


def _holds(layout: Layout, manifest: Manifest, relative: str) -> bool:
    path = layout.at(relative)
    return path.is_file() and sha256_file(path) == manifest.files[relative]


def _place(relative: str, manifest: Manifest) -> tuple[str, int] | None:
    """Return task and fold of a fold's file."""
    found = _PLACE.fullmatch(relative) if is_fold_file(relative) else None
    if found is None:
        return None
    name = found[1] or found[2]
    entry = manifest.amlb_tasks.get(name)
    return (entry.task if entry else name), int(found[3])
