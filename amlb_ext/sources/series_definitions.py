"""Forecasting tasks of a definition: those of ``type: timeseries`` of AMLB's, or those of fev's."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from amlb_ext.amlb.configuration import resolve_directories, search_definition
from amlb_ext.amlb.definition import is_series_task, read_definition
from amlb_ext.amlb.series_rules import NEEDED
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import DefinitionError, SourceError, suggest_nearest
from amlb_ext.sources.base import choose_names
from amlb_ext.sources.dataset_files import Place
from amlb_ext.sources.fev import fev_tasks, read_fev_definition
from amlb_ext.sources.panel import PanelRoles
from amlb_ext.sources.series_tasks import (
    SeriesReading,
    SeriesTable,
    SeriesTask,
    read_series_table,
    whole_number,
)


def find_series_tasks(
    spec: str, options: SourceConfig, reading: SeriesReading | None = None
) -> list[SeriesTask] | None:
    """Return the forecasting tasks that a spec stands for; nothing is downloaded yet.

    Parameters
    ----------
    spec : str
        A definition's path or name, with ``#TASK`` for one of its tasks.
    options : SourceConfig
    reading : SeriesReading, optional

    Returns
    -------
    list of SeriesTask or None
        None where the spec is no definition, or not all of its tasks are of series.

    Raises
    ------
    DefinitionError
        A definition of fev's that cannot be used.
    SourceError
        The definition of series has no such task.
    """
    base, _, only = spec.partition("#")
    path = _definition_path(base, options)
    if path is None:
        return None
    reading = reading or SeriesReading()
    content = read_fev_definition(path)
    if content is not None:
        tasks = fev_tasks(content, path, options, reading)
        names = choose_names([task.name for task in tasks], only, path.name)
        return [task for task in tasks if task.name in names]
    try:
        entries = dict(read_definition(path))
    except DefinitionError:  # whoever reads definitions of tables says what is wrong
        return None
    named = {name: entries[name] for name in entries if name.lower() == only.lower()}
    wanted = named or entries
    if not wanted or not all(map(is_series_task, wanted.values())):
        return None
    tasks = []
    for name in choose_names(list(wanted), only, path.name):
        entry = {**entries[name], "name": name}
        read = partial(_open_entry, name, entry, path, options, reading)
        source = f"{path.name}#{name}"
        tasks.append(SeriesTask(name=name, source=source, open=read, entry=entry))
    return tasks


def is_fev_definition(spec: str, options: SourceConfig) -> bool:
    """Return whether a spec names a definition of fev's."""
    path = _definition_path(spec.partition("#")[0], options)
    return path is not None and read_fev_definition(path) is not None


def _definition_path(base: str, options: SourceConfig) -> Path | None:
    if "://" in base:
        return None
    try:
        path = search_definition(base, options)
    except SourceError:
        return None
    return path if path is not None and path.is_file() else None


def _open_entry(
    name: str,
    entry: dict[str, Any],
    path: Path,
    options: SourceConfig,
    reading: SeriesReading,
) -> SeriesTable:
    """Read a task of AMLB's; its file is downloaded where it must be.

    Raises
    ------
    SourceError, NetworkError
        A setting is missing or no whole number, or there is no such file.
    """
    dataset = entry["dataset"]
    where = f"{path.name}: task {name!r}"
    for key in ("path", "target", *NEEDED):
        if dataset.get(key) is None:
            raise SourceError(
                f"{where} has no {key!r}",
                f"add it; {suggest_nearest(key, [str(known) for known in dataset])}",
            )
    roles = PanelRoles(
        series=str(dataset.get("id_column") or "item_id"),
        time=str(dataset.get("timestamp_column") or "timestamp"),
        target=str(dataset["target"]),
        horizon=whole_number(dataset, "forecast_horizon_in_steps", where),
        season=whole_number(dataset, "seasonality", where),
        frequency=str(dataset["freq"]),
        known=reading.columns,
        gaps=reading.gaps,
    )
    folds = whole_number(entry, "folds", where) if entry.get("folds") else 1
    place = Place(name, path.parent, resolve_directories(options), options)
    file = place.resolve(dataset["path"])
    return read_series_table(file, roles, options, origins=folds)
