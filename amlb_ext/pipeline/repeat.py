"""Suites without folds are made again as a whole: the order of the command is carried out again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import (
    ConfigError,
    DataError,
    ModelError,
    SourceError,
    SuiteError,
)
from amlb_ext.core.paths import table_ending
from amlb_ext.pipeline.generate_series import SeriesOrder, fulfil_order
from amlb_ext.pipeline.origins import RepairOptions, match_sources
from amlb_ext.pipeline.weird import WeirdOrder, write_weird_tasks
from amlb_ext.suite.layout import Layout
from amlb_ext.suite.read_record import record_from_json
from amlb_ext.suite.repeatable import StoredOrder
from amlb_ext.suite.series_manifest import SeriesManifest
from amlb_ext.suite.task_folder import TaskFolder

Read = TypeVar("Read")


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
    try:
        _REPEATED[stored.holds](stored.order, staging.root, options)
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


#: How the order of a suite is carried out, by what the suite holds.
_REPEATED: Mapping[str, Callable[[Mapping[str, Any], Path, RepairOptions], None]] = {
    SeriesManifest.holds: _repeat_series,
    TaskFolder.holds: _repeat_weird_tasks,
}
