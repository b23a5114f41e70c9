"""From a finished suite back to what it was made of: its sources and settings.

A suite names its sources without local folders, and keeps the hash of their content, so that a
source that is found again can be held against it before anything is written. Suites without folds
are made again as a whole: the order of the command is carried out again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from amlb_ext.core.config import GenerateConfig, SourceConfig
from amlb_ext.core.display import redact_url
from amlb_ext.core.errors import (
    ConfigError,
    DataError,
    ModelError,
    SourceError,
    SuiteError,
)
from amlb_ext.core.files import sha256_file
from amlb_ext.core.parallel import Execution
from amlb_ext.core.paths import portable_spec, table_ending
from amlb_ext.core.task import Kind
from amlb_ext.hardening.split import Tasks, group_tasks
from amlb_ext.models.files import is_baseline_file
from amlb_ext.models.registry import check_model_listed
from amlb_ext.models.service import check_service, is_service
from amlb_ext.pipeline.folds import fold_keys
from amlb_ext.pipeline.generate import load_tasks
from amlb_ext.pipeline.generate_series import SeriesOrder, fulfil_order
from amlb_ext.pipeline.request import Request
from amlb_ext.pipeline.weird import WeirdOrder, write_weird_tasks
from amlb_ext.sources.reading import TableReading
from amlb_ext.suite import Layout, SuiteRequest, TableManifest
from amlb_ext.suite.read_record import record_from_json
from amlb_ext.suite.repeatable import StoredOrder
from amlb_ext.suite.series_manifest import SeriesManifest

Read = TypeVar("Read")


@dataclass(frozen=True)
class RepairOptions:
    """What the user says of a repair.

    Attributes
    ----------
    sources : tuple of str
        Specs that take the place of those of the same name in the suite's request.
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


@dataclass(frozen=True, kw_only=True)
class OriginalSources:
    """The sources of a suite, read again.

    Attributes
    ----------
    request : Request
        What :func:`amlb_ext.pipeline.generate_suite` makes the suite of.
    groups : list of tuple of Task
        Tasks that are hardened together.
    failures : list of str
        Why tasks could not be read.
    readings : list of TableReading
        How each table was read.
    """

    request: Request
    groups: list[Tasks]
    failures: list[str]
    readings: list[TableReading]


def keys_by_task(
    group: Tasks, fold: int, settings: Mapping[str, Any]
) -> dict[str, str]:
    """Return by task the key of a fold; none for a fold that the tasks do not have."""
    if fold >= len(group[0].folds):
        return {}
    names = [task.name for task in group]
    return dict(zip(names, fold_keys(group, fold, dict(settings)), strict=True))


def match_sources(
    suite_specs: Sequence[str], user_specs: Sequence[str]
) -> tuple[str, ...]:
    """Return the specs of a suite, each given one in the place of the one of the same name.

    Parameters
    ----------
    suite_specs : sequence of str
        As the suite names its sources, without local folders.
    user_specs : sequence of str

    Raises
    ------
    SourceError
        A spec under another name than any of the suite's.

    Examples
    --------
    >>> match_sources(("bundled/toy", "cars.csv"), ("/home/me/cars.csv",))
    ('bundled/toy', '/home/me/cars.csv')
    """
    specs = list(suite_specs)
    free = list(range(len(suite_specs)))
    for spec in user_specs:
        name = Path(spec).name
        matches = [at for at in free if Path(suite_specs[at]).name == name]
        if not matches:
            raise SourceError(
                f"the suite was made of {', '.join(suite_specs)}, but the source {spec!r} was "
                "given; nothing was changed",
                "give each source under the name that it has in the suite",
            )
        # Each takes one place: a suite may have two sources of the same name.
        free.remove(matches[0])
        specs[matches[0]] = spec
    return tuple(specs)


def read_sources(
    stored: SuiteRequest,
    specs: tuple[str, ...],
    *,
    settings: Mapping[str, Any],
    options: RepairOptions,
    out: Path,
) -> OriginalSources:
    """Read sources as they were read for the suite.

    Parameters
    ----------
    stored : SuiteRequest
    specs : tuple of str
        Where the sources stand now; all of the request's, or some.
    settings : mapping
        See :func:`amlb_ext.pipeline.request.result_settings`.
    options : RepairOptions
    out : Path
        Where folds are made again.

    Raises
    ------
    HardsynthError
        A source, the settings or the file that is F cannot be read.
    """
    # as the user says now, else as for the suite
    source = options.options
    if not (source.target or source.targets):
        kept = {
            "target": stored.target,
            "targets": tuple(stored.targets),
            "kind": source.kind or stored.kind,
        }
        source = source.model_copy(update=kept)
    config = restore_config(settings, source, options, near=specs)
    request = Request(
        specs,
        config,
        out,
        execution=options.execution,
        quiet=options.quiet,
        certificate="none",
        twin=stored.twin,
        # What the suite calls the sources can be assigned to them only where all are there.
        names=tuple(stored.sources) if len(stored.sources) == len(specs) else (),
    )
    loaded = load_tasks(request)
    return OriginalSources(
        request=request,
        groups=group_tasks(loaded.tasks),
        failures=[entry["reason"] for entry in loaded.failures],
        readings=loaded.readings,
    )


def restore_config(
    settings: Mapping[str, Any],
    source: SourceConfig,
    options: RepairOptions,
    *,
    near: Sequence[str] | None = None,
) -> GenerateConfig:
    """Return the configuration of a suite's settings.

    Parameters
    ----------
    settings : mapping
        See :func:`amlb_ext.pipeline.request.result_settings`.
    source : SourceConfig
        How sources are read; of that the settings hold the columns kept and left out alone.
    options : RepairOptions
        What the user permits; what the settings say of it is not read.
    near : sequence of str, optional
        Sources, in whose folders a file that is F is looked for, after the current one; where they
        are named it must be there.

    Raises
    ------
    ModelError
        F is a file that is not there.
    SuiteError
        Settings that this version does not understand, or that name a model that is not on the
        list, where that is not permitted.
    """
    entry = copy.deepcopy(dict(settings))
    # The settings come from a suite, which may be anybody's.
    try:
        digest = entry["baseline"].pop("sha256", "")
        entry["baseline"]["trust_pickle"] = options.trust_pickle
        # What the user says now counts before what the suite keeps.
        said = source.model_dump(exclude_defaults=True)
        entry["source"] = entry.get("source", {}) | said
        config = GenerateConfig.model_validate(entry)
    except (ValidationError, KeyError, TypeError, AttributeError):
        raise SuiteError(
            "the suite's settings cannot be read; nothing was changed",
            "run the command that made the suite again, with --force",
        ) from None
    if is_baseline_file(config.baseline):
        # A folder in the settings would let a foreign suite name any file of this machine.
        if not digest or Path(config.baseline.model).name != config.baseline.model:
            raise SuiteError(
                f"the suite's settings name the file {config.baseline.model} without its sha256, "
                "or in a folder; nothing was changed",
                "run the command that made the suite again, with --force",
            )
    elif is_service(config.baseline.model):
        # rows would be sent to whatever address a foreign suite names
        if not options.trust_suite:
            raise SuiteError(
                f"the suite's F is the service {redact_url(config.baseline.model)}; nothing was "
                "sent to it",
                "add --trust-suite to send it rows",
            )
        check_service(config.baseline)
    elif not options.trust_suite:
        for kind in (Kind.BINARY, Kind.REGRESSION):
            check_model_listed("the suite's baseline", config.baseline, kind)
    if not digest:
        return config
    for spec in ("", *(near or ())):
        path = Path(spec).parent / config.baseline.model
        if path.is_file() and sha256_file(path) == digest:
            baseline = config.baseline.model_copy(update={"model": str(path)})
            return config.model_copy(update={"baseline": baseline})
    if near is None:
        return config  # without the file, which only folds need
    raise ModelError(
        f"F is the file {config.baseline.model}, which is not here or has other content; nothing "
        "was changed",
        f"run the same command in the folder that holds the {config.baseline.model} of the suite",
    )


def find_sources(
    manifest: TableManifest,
    needed: Collection[str],
    options: RepairOptions,
    *,
    out: Path,
) -> OriginalSources:
    """Return the sources of tasks whose folds must be made again.

    Parameters
    ----------
    manifest : TableManifest
    needed : collection of str
        Names of tasks.
    options : RepairOptions
    out : Path
        Where folds are made again.

    Raises
    ------
    SourceError
        A source that is not found, or that holds something else than the suite was made of.
    """
    named = manifest.request.sources or [*map(portable_spec, options.sources)]
    if not named:
        raise unknown_sources_error()
    specs = match_sources(named, options.sources)
    # Other sources need not be here, unless a task owes its name or group to its neighbours.
    origins = {manifest.tasks[task].origin.spec for task in needed}
    # The origin of a task of several is SOURCE#TASK.
    sources_of = {origin.partition("#")[0] for origin in origins} | origins
    own = [spec for spec, name in zip(specs, named, strict=True) if name in sources_of]
    reason = ""
    # First the sources of the damaged tasks, then all: once where these are the same.
    for chosen in dict.fromkeys((tuple(own) or specs, specs)):
        try:
            sources = read_sources(
                manifest.request,
                chosen,
                settings=manifest.config,
                options=options,
                out=out,
            )
        except (SourceError, DataError) as error:
            reason = reason or str(error)
            continue
        reason = _find_difference(manifest, needed, sources)
        if not reason:
            return sources
    raise SourceError(
        f"{reason}; nothing was changed",
        f"give what the suite was made of ({', '.join(sorted(origins))}): "
        "hardsynth verify DIR --repair --source SPEC, with --target and the like as then",
    )


def unknown_sources_error() -> SuiteError:
    """Return the error of a suite that does not say what it was made of."""
    return SuiteError(
        "hardsynth/manifest.json is damaged or missing, so what the suite was made of is unknown; "
        "nothing was changed",
        "name it: hardsynth verify DIR --repair --source SPEC; or run the command that made the "
        "suite again",
    )


def _find_difference(
    manifest: TableManifest, needed: Collection[str], sources: OriginalSources
) -> str:
    """Return in what the sources are not those of the suite, or nothing."""
    groups = {task.name: group for group in sources.groups for task in group}
    for name in sorted(needed):
        if name not in groups:
            return next(iter(sources.failures), f"the sources hold no task {name}")
        entry, group = manifest.tasks[name], groups[name]
        [task] = [task for task in group if task.name == name]
        if task.content_hash != entry.content_hash:
            return (
                f"{task.origin.spec} is not what {name} was made of: its content has the sha256 "
                f"{task.content_hash[:12]}..., the suite's {entry.content_hash[:12]}..."
            )
        # Folds and settings are held against the suite by the key of each fold.
        for fold, stored in entry.folds.items():
            if keys_by_task(group, fold, manifest.config).get(name) != stored.key:
                return f"{task.origin.spec} or its settings are not what {name} was made of"
    return ""


def repeat_order(stored: StoredOrder, staging: Layout, options: RepairOptions) -> None:
    """Make the suite of an order once more.

    Parameters
    ----------
    stored : StoredOrder
    staging : Layout
        Where it is made; empty.
    options : RepairOptions

    Raises
    ------
    HardsynthError
        A source that is not found, an order that this version does not understand, or code of
        somebody's that would be imported.
    """
    is_series = stored.holds == SeriesManifest.holds
    repeat = _repeat_series if is_series else _repeat_weird_tasks
    try:
        repeat(stored.order, staging.root, options)
    except (ConfigError, DataError, SourceError) as error:
        raise SourceError(
            f"{error}; nothing was changed",
            "give what the suite was made of: hardsynth verify DIR --repair --source FILE",
        ) from None


def _repeat_series(entry: Mapping[str, Any], out: Path, options: RepairOptions) -> None:
    order = _read(partial(record_from_json, SeriesOrder), entry)
    written = _read(SourceConfig.model_validate, entry.get("written", {}))
    word = order.baseline
    if ":" in word:
        _check_trusted(f"the suite's F is the class {word}", options)
    sources = match_sources(order.sources, options.sources)
    if table_ending(word):
        # beside the sources that are named, or here
        places = [Path(source).with_name(word) for source in options.sources]
        word = str(next((path for path in places if path.is_file()), Path(word)))
    # what the user says now counts before what the suite keeps
    said = written.model_dump(exclude_defaults=True)
    said |= options.options.model_dump(exclude_defaults=True)
    fulfil_order(
        replace(order, sources=sources, baseline=word),
        out,
        SourceConfig.model_validate(said),
    )


def _repeat_weird_tasks(
    entry: Mapping[str, Any], out: Path, options: RepairOptions
) -> None:
    order = _read(partial(record_from_json, WeirdOrder), entry)
    for word in order.tasks:
        if ":" in word:
            _check_trusted(f"the suite has the task {word}", options)
    files = match_sources(tuple(order.data.values()), options.sources)
    order = replace(order, data=dict(zip(order.data, files, strict=True)))
    write_weird_tasks(out, order.find_tasks(), order.request, order)


def _read(reader: Callable[[Any], Read], entry: object) -> Read:
    """Return what the suite keeps, as this version understands it."""
    try:
        return reader(entry)
    except ValueError as error:
        raise SuiteError(
            f"what the suite was made of cannot be read ({error}); nothing was changed",
            "run the command that made the suite again, in another folder",
        ) from None


def _check_trusted(what: str, options: RepairOptions) -> None:
    """Refuse what would be imported, whosever it is, where the user does not vouch for it."""
    if not options.trust_suite:
        raise ModelError(
            f"{what}; nothing was imported", "add --trust-suite if the suite is yours"
        )
