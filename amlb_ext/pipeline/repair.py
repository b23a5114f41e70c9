"""``hardsynth verify --repair``: what is missing or changed is made again, the rest is kept.

Whatever is made again is made beside the suite first, and must there have the sha256 that the
manifest promises; only then it takes its place. So a repair that is refused, at whatever stage,
has changed nothing. Where the manifest itself is damaged it is made again from the records of the
folds, whose keys hold the hash of the sources' content. Series and weird tasks have no such folds:
their suite is made again as a whole, by the order that it keeps twice, see
:mod:`amlb_ext.suite.repeatable`.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import (
    ConfigError,
    DataError,
    HardsynthError,
    SourceError,
    SuiteError,
)
from amlb_ext.core.files import (
    TEMPORARY_SUFFIX,
    explain_disk_errors,
    move_file,
    remove_file,
    remove_temporary_files,
    sha256_file,
    write_text,
)
from amlb_ext.core.locks import lock_folder
from amlb_ext.core.parallel import run_jobs
from amlb_ext.core.version import __version__
from amlb_ext.models.registry import check_model_listed
from amlb_ext.pipeline.folds import write_job
from amlb_ext.pipeline.generate import generate_suite
from amlb_ext.pipeline.origins import (
    RepairOptions,
    TaskGroup,
    find_groups,
    match_sources,
    read_sources,
    restore_config,
    unknown_sources_error,
)
from amlb_ext.pipeline.repeat import repeat_order
from amlb_ext.pipeline.request import framework_definitions
from amlb_ext.pipeline.twin import benchmark_name
from amlb_ext.sources.reading import reading_csv
from amlb_ext.suite import (
    FoldRecord,
    Layout,
    SuiteFiles,
    SuiteRequest,
    TableManifest,
    begin_suite,
    open_suite,
    verify_suite,
)
from amlb_ext.suite.folder_faults import damaged_files
from amlb_ext.suite.layout import is_fold_file
from amlb_ext.suite.manifest import read_request
from amlb_ext.suite.own_entries import read_own_entries
from amlb_ext.suite.place import place_definitions
from amlb_ext.suite.reader import unfinished_error
from amlb_ext.suite.repeatable import RepeatableManifest, StoredOrder
from amlb_ext.suite.sealed_json import open_sealed
from amlb_ext.suite.shared_files import write_shared_files
from amlb_ext.suite.twin import twin_name
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
    # Without its manifest a suite looks unfinished; it can be rebuilt by an order that it keeps, or
    # with the sources named.
    has_order = layout.order.is_file() and not layout.started.is_file()
    is_known = has_order or (layout.request.is_file() and options.sources)
    if problem is not None and not is_known:
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
        opened = open_suite(layout.root).manifest
        if isinstance(opened, RepeatableManifest):
            stored = StoredOrder.of(opened)
            return _repair_by_order(
                layout, staging, stored, options, is_manifest_whole=True
            )
        assert isinstance(opened, TableManifest)
        manifest = opened
    elif layout.order.is_file():
        stored = StoredOrder.read(layout)
        return _repair_by_order(
            layout, staging, stored, options, is_manifest_whole=False
        )
    else:
        manifest = _rebuild_suite(layout, staging, options)
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
    _check_promised(staging, manifest.files, damaged)
    _bring_home(layout, staging, damaged)
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


def _check_promised(
    staging: Layout, files: Mapping[str, str], wanted: Iterable[str], cause: str = ""
) -> None:
    """Raise where a file that was made again has not the sha256 that it must have."""
    for relative in wanted:
        if not _is_as_promised(staging, files, relative):
            raise SuiteError(
                f"{relative} cannot be made again as it was: {cause}this machine or its numerical "
                "libraries give other values than those the suite was made with; nothing was "
                "changed",
                "repair it where it was made, or run the command that made the suite again",
            )


def _bring_home(layout: Layout, staging: Layout, damaged: Collection[str]) -> None:
    """Move what was made again, and is as it was, to its place."""
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


def _repair_by_order(
    layout: Layout,
    staging: Layout,
    stored: StoredOrder,
    options: RepairOptions,
    *,
    is_manifest_whole: bool,
) -> list[str]:
    """Make damaged files of a suite without folds again, put paths right; return what changed."""
    if options.sources and not stored.order:
        raise ConfigError(
            f"the order of these {stored.holds} was not kept, so no source makes them again",
            "run the command that made the suite again; --repair puts paths right",
        )
    damaged = list(damaged_files(layout, stored.files))
    if damaged and not stored.order:
        raise SuiteError(
            f"{min(damaged)} is missing or changed, and the order of these {stored.holds} was not "
            "kept; nothing was changed",
            "run the command that made the suite again",
        )
    if damaged or not is_manifest_whole:
        check_version(stored.version)
        repeat_order(stored, staging, options)
        # the new manifest names all files, so without the old one all must be as they were
        wanted = damaged if is_manifest_whole else stored.files
        _check_promised(
            staging, stored.files, wanted, "what it was made of has changed, or "
        )
    _bring_home(layout, staging, damaged)
    if not is_manifest_whole:
        move_file(staging.manifest, layout.manifest)
        damaged.append(layout.relative(layout.manifest))
    return damaged + place_definitions(open_suite(layout.root))


def _make_again(
    staging: Layout,
    manifest: TableManifest,
    damaged: Collection[str],
    options: RepairOptions,
) -> None:
    """Make what is damaged and does not stand in the staging folder yet."""
    files = manifest.files
    wanted = [path for path in damaged if not _is_as_promised(staging, files, path)]
    if wanted and not staging.root.exists():
        begin_suite(staging, {"settings": manifest.config, "version": manifest.version})
    if any(not is_fold_file(path) for path in wanted):
        config = restore_config(manifest.config, options.options, options)
        seeds = {
            name: [entry.folds[fold].summary["seed"] for fold in sorted(entry.folds)]
            for name, entry in manifest.tasks.items()
        }
        write_shared_files(
            SuiteFiles(staging, manifest),
            frameworks=framework_definitions(config, seeds),
        )
    if staging.relative(staging.columns) in wanted:
        specs = match_sources(manifest.request.sources, options.sources)
        sources = read_sources(
            manifest.request,
            specs,
            settings=manifest.config,
            options=options,
            out=staging.root,
        )
        write_text(staging.columns, reading_csv(sources.readings))
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
    jobs = []
    for group in groups:
        folds_of_group = {fold for task, fold in folds if task in group.names}
        for fold in sorted(folds_of_group):
            keys = list(group.fold_keys(fold, manifest.config).values())
            jobs.append((group.tasks, fold, group.config, keys, str(staging.root)))
    for _, result in run_jobs(write_job, jobs, options.execution.processes):
        if isinstance(result, HardsynthError):
            raise result


def _certificate_settings(
    layout: Layout, manifest: TableManifest, task: str, options: RepairOptions
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
    # Candidates are built by name, and a suite may be anybody's.
    if not options.trust_suite:
        for model in settings.get("candidates", ()):
            candidate = BaselineConfig(model=str(model))
            check_model_listed(
                f"the certificate of {task}", candidate, manifest.tasks[task].kind
            )
    return settings


def _is_as_promised(layout: Layout, files: Mapping[str, str], relative: str) -> bool:
    path = layout.at(relative)
    return path.is_file() and sha256_file(path) == files[relative]


def _fold_of(relative: str, manifest: TableManifest) -> tuple[str, int] | None:
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


# A manifest made again, from the records of the folds and the sources. A fold's key holds the hash
# of all that it was made of, so the sources can be held against it.


def _rebuild_suite(
    layout: Layout, staging: Layout, options: RepairOptions
) -> TableManifest:
    """Generate a suite again beside a suite whose manifest is lost, with the folds that stand.

    Parameters
    ----------
    layout : Layout
        The damaged suite; nothing in it is changed.
    staging : Layout
        Holds a whole suite then.
    options : RepairOptions

    Returns
    -------
    TableManifest
        That of the suite in the staging folder.

    Raises
    ------
    HardsynthError
        The settings are damaged too, or the sources are unknown or others.
    """
    settings = _stored_settings(layout)
    request = read_request(layout.manifest) or _request_from_options(layout, options)
    specs = match_sources(request.sources, options.sources)
    try:
        sources = read_sources(
            request, specs, settings=settings, options=options, out=staging.root
        )
        records = _matching_records(layout, sources.groups, settings)
    except (SourceError, DataError) as error:
        raise SourceError(
            f"{error}; nothing was changed",
            "give what the suite was made of: hardsynth verify DIR --repair --source SPEC, with "
            "--target and the like as then; or run the command that made the suite again",
        ) from None
    # A suite that looks like a run that was killed: folds that stand whole are not made again.
    begin_suite(staging, {"settings": settings, "version": __version__})
    for record in records:
        record_file = layout.relative(layout.record(record.task, record.fold))
        for relative in [record_file, *record.files]:
            _copy_file(layout, staging, relative)
    generate_suite(sources.request)
    return SuiteFiles.load(staging.root).manifest


def _stored_settings(layout: Layout) -> dict[str, Any]:
    """Return the settings of a suite of this version, by its other record of them."""
    try:
        entry = json.loads(layout.request.read_text(encoding="utf-8", errors="replace"))
        settings, version = dict(entry["settings"]), str(entry["version"])
    except (OSError, ValueError, KeyError, TypeError):
        raise SuiteError(
            "hardsynth/manifest.json and hardsynth/request.json are both damaged or missing; "
            "nothing was changed",
            "run the command that made the suite again, with --force",
        ) from None
    check_version(version)
    return settings


def _request_from_options(layout: Layout, options: RepairOptions) -> SuiteRequest:
    """Return the request of a suite whose sources the user names, all of them and in order."""
    if not options.sources:
        raise unknown_sources_error()
    # Nothing but its definition tells that the suite is a benchmark's hard twin.
    twins = [twin_name(benchmark_name(spec)) for spec in options.sources]
    return SuiteRequest(
        command="",
        sources=list(options.sources),
        target=options.options.target,
        targets=list(options.options.targets),
        kind=options.options.kind,
        twin=len(twins) == 1 and layout.definition(twins[0]).is_file(),
    )


def _matching_records(
    layout: Layout, groups: Sequence[TaskGroup], settings: dict[str, Any]
) -> list[FoldRecord]:
    """Return the records of folds that were made of these tasks.

    Raises
    ------
    SourceError
        There are none, or a task has records of other content only.
    """
    keys: dict[tuple[str, int], str] = {}
    for group in groups:
        for fold in range(len(group.tasks[0].folds)):
            for task, key in group.fold_keys(fold, settings).items():
                keys[task, fold] = key
    matching: list[FoldRecord] = []
    tasks_of_others: set[str] = set()
    for path in sorted(layout.own.glob("*/fold_*/record.json")):
        record = FoldRecord.read(path)
        if record is None:
            continue  # damaged: its fold is made again
        # The key hashes the rows: where it agrees, the sources are those of the suite.
        if keys.get((record.task, record.fold)) == record.key:
            matching.append(record)
        else:
            tasks_of_others.add(record.task)
    # Folds of one task that agree prove its source; the others may have been damaged.
    unproven = sorted(tasks_of_others - {record.task for record in matching})
    if unproven:
        raise SourceError(
            f"the sources or settings are not what {unproven[0]} was made of"
        )
    if not matching:
        raise SourceError("no fold of the suite was made of these sources")
    return matching


def _copy_file(layout: Layout, staging: Layout, relative: str) -> None:
    """Let a file stand in the staging folder too, where it stands at all."""
    path, home = layout.at(relative), staging.at(relative)
    if not path.is_file() or home.exists():
        return
    with explain_disk_errors(home):
        home.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, home)


def check_version(version: str) -> None:
    """Raise where a suite was made by another version than this one."""
    if version != __version__:
        # The text comes from a suite, and is shown as a command for a shell: only a plain version.
        is_plain = re.fullmatch(r"[0-9][0-9A-Za-z.]{0,30}", version)
        install = f"pip install hardsynth=={version}, or " if is_plain else ""
        raise SuiteError(
            f"the suite was made by hardsynth {version}, this is {__version__}, which makes other "
            "folds of the same sources; nothing was changed",
            f"{install}run the command that made the suite again: every fold is then made anew",
        )
