"""From a finished suite back to what it was made of: its sources and settings.

A suite names its sources without local folders, and keeps the hash of their content, so that a
source that is found again can be held against it before anything is written.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from amlb_ext.core.config import GenerateConfig, SourceConfig
from amlb_ext.core.errors import DataError, ModelError, SourceError, SuiteError
from amlb_ext.core.files import sha256_file
from amlb_ext.core.parallel import Execution
from amlb_ext.core.task import Kind, Task
from amlb_ext.hardening.baseline.from_file import is_baseline_file
from amlb_ext.hardening.baseline.registry import check_model_listed
from amlb_ext.pipeline.folds import fold_keys, group_tasks
from amlb_ext.pipeline.generate import load_tasks
from amlb_ext.pipeline.request import (
    Command,
    GenerationReport,
    Request,
    portable_spec,
    told_sources,
)
from amlb_ext.suite import Manifest


@dataclass(frozen=True)
class RepairOptions:
    """How a repair was asked for.

    Attributes
    ----------
    sources : tuple of str
        Specs that take the place of those of the same name in the suite's command.
    options : SourceConfig
        How they are read; a target and kind that are not given are the suite's own.
    execution : Execution
    quiet : bool
    trust_pickle : bool
        Load F where it is a pickle, whatever the suite says.
    trust_suite : bool
        Build whatever class the suite names.
    """

    sources: tuple[str, ...] = ()
    options: SourceConfig = field(default_factory=SourceConfig)
    execution: Execution = field(default_factory=Execution)
    quiet: bool = False
    trust_pickle: bool = False
    trust_suite: bool = False


def config_of(
    settings: Mapping[str, Any],
    options: SourceConfig,
    asked: RepairOptions,
    near: Sequence[str] = (),
) -> GenerateConfig:
    """Return the configuration of a suite's settings.

    Parameters
    ----------
    settings : mapping
        See :func:`amlb_ext.pipeline.request.result_settings`.
    options : SourceConfig
        How sources are read; of that the settings hold the columns kept and left out alone.
    asked : Asked
        What the user permits; what the settings say of it is not read.
    near : sequence of str
        Sources, in whose folders a file that is F is looked for, after the current one.

    Raises
    ------
    SuiteError
        Settings that this version does not understand, or that name a model that is not on the
        list, where that is not permitted.
    """
    entry = copy.deepcopy(dict(settings))
    try:
        digest = entry["baseline"].pop("sha256", "")
        entry["baseline"]["trust_pickle"] = asked.trust_pickle
        named = {key: names for key, names in entry.pop("source", {}).items() if names}
        given = options.model_dump(exclude_defaults=True)
        config = GenerateConfig.model_validate({**entry, "source": {**named, **given}})
    except (ValidationError, KeyError, TypeError, AttributeError):
        raise SuiteError(
            "the suite's settings cannot be read; nothing was changed",
            "run the command that made the suite again, with --force",
        ) from None
    if is_baseline_file(config.baseline):
        if not digest or Path(config.baseline.model).name != config.baseline.model:
            raise SuiteError(
                f"the suite's settings name the file {config.baseline.model} without its sha256, "
                "or in a folder; nothing was changed",
                "run the command that made the suite again, with --force",
            )
    elif not asked.trust_suite:
        for kind in (Kind.BINARY, Kind.REGRESSION):
            check_model_listed("the suite's baseline", config.baseline, kind)
    for folder in [Path(), *(Path(spec).parent for spec in near)] if digest else []:
        path = folder / config.baseline.model
        if path.is_file() and sha256_file(path) == digest:
            baseline = config.baseline.model_copy(update={"model": str(path)})
            return config.model_copy(update={"baseline": baseline})
    return config


def check_baseline(settings: Mapping[str, Any], config: GenerateConfig) -> None:
    """Raise where F is a file that :func:`config_of` did not find."""
    path = Path(config.baseline.model)
    digest = settings["baseline"].get("sha256")
    if digest and not (path.is_file() and sha256_file(path) == digest):
        raise ModelError(
            f"F is the file {path.name}, which is not here, or another one; nothing was changed",
            f"run the same command in the folder that holds the {path.name} of the suite",
        )


def find_groups(manifest: Manifest, needed: Collection[str], asked: RepairOptions) -> list[Group]:
    """Return the tasks whose folds must be made again, beside those they share rows with.

    Parameters
    ----------
    manifest : Manifest
    needed : collection of str
        Names of tasks.
    asked : Asked

    Returns
    -------
    list of Group

    Raises
    ------
    SourceError
        A source that is not found, or that holds something else than the suite was made of.
    """
    command = Command.parse(manifest.command) or Command(asked.sources)
    if not command.sources:
        raise unknown_sources()
    specs = told_sources(command.sources, asked.sources)
    own = tuple(
        spec
        for spec, said in zip(specs, command.sources, strict=True)
        if any(_is_of(manifest.tasks[task].origin.spec, said) for task in needed)
    )
    entries = [manifest.tasks[task] for task in needed]
    why = ""
    for options in ways(asked, command, [e.target for e in entries], [e.kind for e in entries]):
        for chosen in dict.fromkeys((own or specs, specs)):
            config = config_of(manifest.config, options, asked, chosen)
            check_baseline(manifest.config, config)
            request = Request(chosen, config, Path(), quiet=asked.quiet)
            report = GenerationReport("")
            try:
                tasks, _ = load_tasks(request, report)
            except (SourceError, DataError) as error:
                why = why or str(error)
                continue
            groups = [Group(group, config) for group in group_tasks(tasks)]
            odd = _odd(manifest, needed, groups, report)
            if not odd:
                return [group for group in groups if group.names & set(needed)]
            why = odd
    named = ", ".join(sorted({manifest.tasks[task].origin.spec for task in needed}))
    raise SourceError(
        f"{why}; nothing was changed",
        f"give what the suite was made of ({named}): "
        "hardsynth verify DIR --repair --source SPEC, with --target and the like as then",
    )


@dataclass(frozen=True)
class Group:
    """Tasks that are hardened together, and the configuration they were read with."""

    tasks: tuple[Task, ...]
    config: GenerateConfig

    @property
    def names(self) -> set[str]:
        """The tasks' names."""
        return {task.name for task in self.tasks}

    def keys(self, fold: int, settings: Mapping[str, Any]) -> dict[str, str]:
        """Return by task the key of a fold; none for a fold that the tasks do not have."""
        if fold >= len(self.tasks[0].folds):
            return {}
        found = fold_keys(self.tasks, fold, dict(settings))
        return {task.name: key for task, key in zip(self.tasks, found, strict=True)}


def ways(
    asked: RepairOptions, command: Command, targets: Sequence[str], kinds: Sequence[Any]
) -> Iterator[SourceConfig]:
    """Yield how sources may have been read: as asked, else with the suite's target and kind."""
    options = asked.options
    if not (options.target or options.targets) and command.targets:
        yield options.model_copy(update={"targets": command.targets})
        return
    if options.target or options.targets or len(set(targets)) != 1:
        yield options
        return
    own = options.model_copy(update={"target": targets[0]})
    yield own
    if options.kind is None and len(set(kinds)) == 1:
        yield own.model_copy(update={"kind": str(kinds[0])})


def unknown_sources() -> SuiteError:
    """Return the error of a suite whose command cannot be read."""
    return SuiteError(
        "hardsynth/manifest.json is damaged or missing, so what the suite was made of is unknown; "
        "nothing was changed",
        "name it: hardsynth verify DIR --repair --source SPEC; or run the command that made the "
        "suite again",
    )


def _is_of(spec: str, said: str) -> bool:
    return spec == portable_spec(said) or spec.startswith(f"{portable_spec(said)}#")


def _odd(
    manifest: Manifest, needed: Collection[str], groups: Sequence[Group], report: GenerationReport
) -> str:
    """Return in what the sources are not those of the suite, or nothing."""
    home = {name: group for group in groups for name in group.names}
    left_out = [entry["reason"] for entry in report.failures]
    for name in sorted(needed):
        entry = manifest.tasks[name]
        if name not in home:
            return left_out[0] if left_out else f"the sources hold no task {name}"
        task = next(task for task in home[name].tasks if task.name == name)
        if task.content_hash != entry.content_hash:
            return (
                f"{task.origin.spec} is not what {name} was made of: its content has the sha256 "
                f"{task.content_hash[:12]}..., the suite's {entry.content_hash[:12]}..."
            )
        for fold, about in entry.folds.items():
            if home[name].keys(fold, manifest.config).get(name) != about["key"]:
                return f"{task.origin.spec} or its settings are not what {name} was made of"
    return ""
