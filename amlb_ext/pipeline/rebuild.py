"""A manifest made again, from the records of the folds and the sources.

A fold's key holds the hash of all that it was made of, so the sources can be held against it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from typing import Any

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import DataError, SourceError, SuiteError
from amlb_ext.core.files import explain_disk_errors
from amlb_ext.core.version import __version__
from amlb_ext.pipeline.generate import generate_suite
from amlb_ext.pipeline.origins import (
    RepairOptions,
    TaskGroup,
    match_sources,
    read_sources,
    unknown_sources_error,
)
from amlb_ext.pipeline.request import framework_definitions
from amlb_ext.pipeline.twin import benchmark_name
from amlb_ext.suite import (
    FoldRecord,
    Layout,
    Manifest,
    SuiteRequest,
    begin_suite,
    read_manifest,
)
from amlb_ext.suite.manifest import read_request
from amlb_ext.suite.shared_files import write_shared_files
from amlb_ext.suite.twin import twin_name


def rebuild_suite(layout: Layout, staging: Layout, options: RepairOptions) -> Manifest:
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
    Manifest
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
    return read_manifest(staging.manifest)


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


def write_derived(
    layout: Layout, manifest: Manifest, config: GenerateConfig
) -> dict[str, str]:
    """Write what follows from a manifest alone; return the sha256 of each file."""
    seeds = {
        name: [entry.folds[fold].summary["seed"] for fold in sorted(entry.folds)]
        for name, entry in manifest.tasks.items()
    }
    return write_shared_files(
        layout,
        name=manifest.name,
        seed=manifest.seed,
        amlb_tasks=manifest.listed,
        pair=manifest.pair,
        integrations=framework_definitions(config, seeds),
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
        try:
            record = FoldRecord.from_json(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a damaged record: its fold is made again
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
