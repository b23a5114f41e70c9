"""A manifest made again, from the records of the folds and the sources.

A fold's key holds the hash of all that it was made of, so the sources can be held against it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import HardsynthError, SourceError, SuiteError
from amlb_ext.core.files import explain_disk_errors
from amlb_ext.core.version import __version__
from amlb_ext.pipeline.folds import group_tasks
from amlb_ext.pipeline.generate import generate_suite, load_tasks
from amlb_ext.pipeline.integrations import framework_definitions
from amlb_ext.pipeline.origins import (
    Group,
    RepairOptions,
    check_baseline,
    config_of,
    unknown_sources,
    ways,
)
from amlb_ext.pipeline.request import (
    Command,
    GenerationReport,
    Request,
    as_said,
    command_text,
    portable_spec,
    told_sources,
)
from amlb_ext.pipeline.twin import benchmark_name
from amlb_ext.suite import FoldRecord, Layout, Manifest, begin_suite, read_manifest
from amlb_ext.suite.finish import write_beside
from amlb_ext.suite.manifest import write_manifest
from amlb_ext.suite.twin import twin_name


def rebuild(layout: Layout, staging: Layout, asked: RepairOptions) -> Manifest:
    """Generate a suite again beside a suite whose manifest is lost, with the folds that stand.

    Parameters
    ----------
    layout : Layout
        The damaged suite; nothing in it is changed.
    staging : Layout
        Holds a whole suite then.
    asked : Asked

    Returns
    -------
    Manifest
        That of the suite in the staging folder.

    Raises
    ------
    HardsynthError
        The request is damaged too, or the sources are unknown or others.
    """
    text = _text(layout.manifest)
    try:
        request = json.loads(_text(layout.request))
        settings, version = dict(request["settings"]), str(request["version"])
    except (ValueError, KeyError, TypeError):
        raise SuiteError(
            "hardsynth/manifest.json and hardsynth/request.json are both damaged or missing; "
            "nothing was changed",
            "run the command that made the suite again, with --force",
        ) from None
    check_version(version)
    command = Command.find(text)
    if command is None:
        if not asked.sources:
            raise unknown_sources()
        command = Command(asked.sources, asked.options.targets, _is_twin(layout, asked.sources))
    specs = told_sources(command.sources, asked.sources)
    entries = text.partition('\n "tasks": {')[2]
    targets = re.findall(r'^   "target": "(.*)",?$', entries, re.M)
    kinds = re.findall(r'^   "kind": "(.*)",?$', entries, re.M)
    why = ""
    for options in ways(asked, command, targets, kinds):
        config = config_of(settings, options, asked, specs)
        check_baseline(settings, config)
        ask = Request(specs, config, staging.root, asked.execution, quiet=True, certificate="none")
        try:
            tasks, _ = load_tasks(ask, GenerationReport(""))
        except HardsynthError as error:
            why = why or str(error)
            continue
        groups = [Group(group, config) for group in group_tasks(tasks)]
        records, why = _records(layout, groups, settings)
        if not why:
            break
    if why:
        raise SourceError(
            f"{why}; nothing was changed",
            "give what the suite was made of: hardsynth verify DIR --repair --source SPEC, with "
            "--target and the like as then; or run the command that made the suite again",
        )
    begin_suite(staging, {"settings": settings, "version": version})
    for record in records:
        own = layout.relative(layout.record(record.task, record.fold))
        for relative in [own, *record.files]:
            _link(layout, staging, relative)
    generate_suite(Request(**{**vars(ask), "twin": command.twin}))
    manifest = read_manifest(staging.manifest)
    names = {portable_spec(spec): said for spec, said in zip(specs, command.sources, strict=True)}
    if any(portable_spec(name) != portable_spec(said) for name, said in names.items()):
        manifest = _renamed(staging, manifest, names, command, config_of(settings, options, asked))
    return manifest


def _is_twin(layout: Layout, specs: tuple[str, ...]) -> bool:
    names = [twin_name(benchmark_name(spec)) for spec in specs]
    return len(names) == 1 and layout.definition(names[0]).is_file()


def _renamed(
    staging: Layout, manifest: Manifest, names: dict[str, str], command: Command, config: Any
) -> Manifest:
    """Write a manifest, and what follows from it, with the sources' earlier names."""
    word = "harden" if command.twin else "generate"
    text = command_text(command.sources, word, command.targets)
    manifest = as_said(manifest, {name: portable_spec(said) for name, said in names.items()})
    files = write_derived(staging, manifest, config)
    about = {**vars(manifest), "command": text, "files": manifest.files | files}
    write_manifest(Manifest(**about), staging.manifest)
    return Manifest(**about)


def write_derived(layout: Layout, manifest: Manifest, config: GenerateConfig) -> dict[str, str]:
    """Write what follows from a manifest alone; return the sha256 of each file."""
    return write_beside(
        layout,
        name=manifest.name,
        seed=manifest.seed,
        amlb_tasks=manifest.listed,
        pair=manifest.pair,
        integrations=framework_definitions(config),
    )


def _records(
    layout: Layout, groups: Iterable[Group], settings: dict[str, Any]
) -> tuple[list[FoldRecord], str]:
    """Return the records of folds made of these tasks, and why they are not all of the suite's."""
    made, known, strange = [], {}, {}
    for group in groups:
        for fold in range(len(group.tasks[0].folds)):
            for task, key in group.keys(fold, settings).items():
                known[task, fold] = key
    for path in sorted(layout.own.glob("*/fold_*/record.json")):
        try:
            record = FoldRecord.from_json(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if known.get((record.task, record.fold)) == record.key:
            made.append(record)
        else:
            strange[record.task] = record.fold
    proven = {record.task for record in made}
    odd = sorted(set(strange) - proven)
    if odd:
        return [], f"the sources or settings are not what {odd[0]} was made of"
    if not made:
        return [], "no fold of the suite was made of these sources"
    return made, ""


def _link(layout: Layout, staging: Layout, relative: str) -> None:
    """Let a file stand in the staging folder too, where it stands at all."""
    path, home = layout.at(relative), staging.at(relative)
    if not path.is_file() or home.exists():
        return
    with explain_disk_errors(home):
        home.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, home)
        except OSError:  # a file system without such links
            shutil.copyfile(path, home)


def check_version(version: str) -> None:
    """Raise where a suite was made by another version than this one."""
    if version != __version__:
        named = re.fullmatch(r"[0-9][0-9A-Za-z.]{0,30}", version)  # no other text for a shell
        install = f"pip install hardsynth=={version}, or " if named else ""
        raise SuiteError(
            f"the suite was made by hardsynth {version}, this is {__version__}, which makes other "
            "folds of the same sources; nothing was changed",
            f"{install}run the command that made the suite again: every fold is then made anew",
        )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
