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
from functools import partial
from itertools import chain
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
    move_file,
    remove_temporary_files,
    sha256_file,
    write_file,
    write_text,
)
from amlb_ext.core.locks import lock_folder
from amlb_ext.core.parallel import run_jobs
from amlb_ext.core.version import __version__
from amlb_ext.hardening.split import Tasks
from amlb_ext.models.registry import check_model_listed
from amlb_ext.pipeline.folds import write_job
from amlb_ext.pipeline.generate import generate_suite
from amlb_ext.pipeline.origins import (
    RepairOptions,
    find_sources,
    keys_by_task,
    match_sources,
    read_sources,
    repeat_order,
    restore_config,
    unknown_sources_error,
)
from amlb_ext.pipeline.request import fold_seeds, framework_definitions
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
from amlb_ext.suite.reader import unfinished_error
from amlb_ext.suite.repeatable import RepeatableManifest, StoredOrder
from amlb_ext.suite.sealed_json import open_sealed
from amlb_ext.suite.shared_files import (
    place_definitions,
    read_own_entries,
    write_shared_files,
)
from amlb_ext.suite.twin import twin_name
from amlb_ext.suite.verify import damaged_certificate
from amlb_ext.suite.writer import remove_derived
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
    opened = open_suite(layout.root).manifest if is_manifest_whole else None
    stored = None
    if isinstance(opened, RepeatableManifest):
        stored = StoredOrder.of(opened)
    elif opened is None and layout.order.is_file():
        stored = StoredOrder.read(layout)
    if stored is not None:
        return _repair_by_order(
            layout, staging, stored, options, is_manifest_whole=is_manifest_whole
        )
    manifest = opened or _rebuild_suite(layout, staging, options)
    assert isinstance(manifest, TableManifest)
    check_version(manifest.version)
    # Asked before anything is made: a certificate that cannot be made again refuses the repair.
    damaged_measures: list[str] = []
    certificate_settings: dict[str, dict[str, Any]] = {}
    for task in manifest.tasks:
        if damaged_measure := damaged_certificate(layout, task):
            damaged_measures += damaged_measure
            settings = _certificate_settings(layout, manifest, task, options)
            certificate_settings[task] = settings
    damaged = list(damaged_files(layout, manifest.files))
    # Whatever cannot be made again, or not as it was, ends here with the suite untouched.
    _make_again(staging, manifest, damaged, options)
    _check_promised(staging, manifest.files, damaged)
    _bring_home(layout, staging, damaged, is_manifest_whole=is_manifest_whole)
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


def _bring_home(
    layout: Layout, staging: Layout, damaged: list[str], *, is_manifest_whole: bool
) -> None:
    """Move what was made again, and is as it was, to its place."""
    for relative in damaged:
        if layout.at(relative) in (layout.frameworks, layout.constraints):
            # the user's entries stay behind those that were made again
            with staging.at(relative).open("a", encoding="utf-8", newline="") as file:
                file.write(read_own_entries(layout.at(relative)))
        move_file(staging.at(relative), layout.at(relative))
        if relative.endswith(".csv"):
            remove_derived(layout.at(relative))
    if not is_manifest_whole:
        # Last, as when a suite is made: what it promises stands by then.
        move_file(staging.manifest, layout.manifest)
        damaged.append(layout.relative(layout.manifest))


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
    _bring_home(layout, staging, damaged, is_manifest_whole=is_manifest_whole)
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
        entries = {
            name: [folds for _, folds in sorted(entry.folds.items())]
            for name, entry in manifest.tasks.items()
        }
        write_shared_files(
            SuiteFiles(staging, manifest),
            frameworks=framework_definitions(config, fold_seeds(entries)),
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
    folds: dict[str, set[int]] = {}
    for path in filter(is_fold_file, wanted):
        match = _FOLD_FILE.fullmatch(path)
        if match is not None:
            name = match["amlb_task"] or match["task"]
            amlb_task = manifest.amlb_tasks.get(name)
            task = name if amlb_task is None else amlb_task.task
            folds.setdefault(task, set()).add(int(match["fold"]))
    if not folds:
        return
    # Whole folds: what is whole in them is made once more beside the suite, and not moved.
    jobs = []
    sources = find_sources(manifest, folds, options, out=staging.root)
    for group in sources.groups:
        of_group = chain.from_iterable(folds.get(task.name, ()) for task in group)
        for fold in sorted(set(of_group)):
            keys = list(keys_by_task(group, fold, manifest.config).values())
            config = sources.request.config
            jobs.append((group, fold, config, keys, str(staging.root)))
    for _, result in run_jobs(write_job, jobs, options.execution.processes):
        if isinstance(result, HardsynthError):
            raise result


def _certificate_settings(
    layout: Layout, manifest: TableManifest, task: str, options: RepairOptions
) -> dict[str, Any]:
    """Return how a damaged certificate is made again."""
    # One damaged too far to say how it was made was most likely made as the others.
    stored = (stored_how(layout, name) for name in (task, *manifest.tasks))
    settings = next(filter(None, stored), {"size": "quick"})
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
        for relative in record.files:
            if layout.at(relative).is_file():
                copy = partial(shutil.copyfile, layout.at(relative))
                write_file(staging.at(relative), copy)
        write_text(staging.record(record.task, record.fold), record.json())
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
    layout: Layout, groups: Sequence[Tasks], settings: dict[str, Any]
) -> list[FoldRecord]:
    """Return the records of folds that were made of these tasks.

    Raises
    ------
    SourceError
        There are none, or a task has records of other content only.
    """
    keys: dict[tuple[str, int], str] = {}
    for group in groups:
        for fold in range(len(group[0].folds)):
            for task, key in keys_by_task(group, fold, settings).items():
                keys[task, fold] = key
    paths = sorted(layout.own.glob("*/fold_*/record.json"))
    # one that is damaged has its fold made again
    records = [*filter(None, map(FoldRecord.read, paths))]
    # The key hashes the rows: where it agrees, the sources are those of the suite.
    matching = [r for r in records if keys.get((r.task, r.fold)) == r.key]
    # Folds of one task that agree prove its source; the others may have been damaged.
    unproven = {record.task for record in records} - {r.task for r in matching}
    if unproven:
        raise SourceError(
            f"the sources or settings are not what {min(unproven)} was made of"
        )
    if not matching:
        raise SourceError("no fold of the suite was made of these sources")
    return matching


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
