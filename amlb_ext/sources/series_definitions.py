"""Forecasting tasks of a definition: those of ``type: timeseries`` of AMLB's, or those of fev's.

fev (https://github.com/autogluon/fev) keeps a ``tasks.yaml``, and one row for each series, its
times and values as lists, or a long table. Its own windows are cut at a number of steps from the
end of each series, or at a time; an origin here is a time, the same for all series.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from amlb_ext.amlb.configuration import resolve_directories, search_definition
from amlb_ext.amlb.definition import is_series_task, read_definition
from amlb_ext.amlb.series_rules import NEEDED
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import DefinitionError, SourceError, suggest_nearest
from amlb_ext.core.parquet import check_expansion
from amlb_ext.core.yaml_reader import read_yaml
from amlb_ext.sources.base import choose_names, whole_number
from amlb_ext.sources.dataset_files import Place
from amlb_ext.sources.panel import PanelRoles
from amlb_ext.sources.series_tasks import (
    SeriesReading,
    SeriesTable,
    SeriesTask,
    read_series_table,
)

#: Names that fev's settings had before.
_OLD_NAMES = {
    "num_rolling_windows": "num_windows",
    "rolling_step_size": "window_step_size",
    "cutoff": "initial_cutoff",
    "target_column": "target",
    "multiple_target_columns": "generate_univariate_targets_from",
}
#: Settings of columns that are known beforehand.
_KNOWN = ("known_dynamic_columns", "static_columns")


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
    _, _, only = spec.partition("#")
    path = _definition_path(spec, options)
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
        read = partial(_open_amlb_entry, name, entry, path, options, reading)
        source = f"{path.name}#{name}"
        tasks.append(SeriesTask(name=name, source=source, open=read, entry=entry))
    return tasks


def is_fev_definition(spec: str, options: SourceConfig) -> bool:
    """Return whether a spec names a definition of fev's."""
    path = _definition_path(spec, options)
    return path is not None and read_fev_definition(path) is not None


def _definition_path(spec: str, options: SourceConfig) -> Path | None:
    base = spec.partition("#")[0]
    try:
        path = None if "://" in base else search_definition(base, options)
    except SourceError:
        return None
    return path if path is not None and path.is_file() else None


def _open_amlb_entry(
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


# Definitions and files of fev.


def read_fev_definition(path: Path) -> dict[str, Any] | None:
    """Return the content of fev's definition; None where a file is something else."""
    try:
        content = read_yaml(path, DefinitionError)
    except (OSError, DefinitionError):  # whoever reads it as AMLB's says what is wrong
        return None
    return content if isinstance(content, dict) and "tasks" in content else None


def fev_tasks(
    content: Mapping[str, Any],
    path: Path,
    options: SourceConfig,
    reading: SeriesReading,
) -> list[SeriesTask]:
    """Return the tasks of a definition of fev's.

    Parameters
    ----------
    content : mapping
    path : Path
        Of the definition.
    options : SourceConfig
    reading : SeriesReading
        Columns known beforehand come beside those that the definition names.

    Raises
    ------
    DefinitionError
        ``tasks`` is no list of settings.
    """
    entries = content["tasks"]
    if not isinstance(entries, list) or not entries:
        raise DefinitionError(
            f"{path.name}: 'tasks' is no list of tasks",
            "start each task with '- dataset_path: ...'",
        )
    tasks = []
    taken: set[str] = set()
    for number, given in enumerate(entries, start=1):
        if not isinstance(given, dict):
            raise DefinitionError(
                f"{path.name}: task {number} is {str(given)[:50]!r}, no settings",
                "write '- dataset_path: ...'",
            )
        entry = {_OLD_NAMES.get(str(key), str(key)): given[key] for key in given}
        named = entry.get("task_name") or entry.get("dataset_config")
        name = str(named or Path(str(entry.get("dataset_path", "task"))).stem)
        # fev lets several tasks of one file go without a name
        if name.lower() in taken:
            name = f"{name}_{number}"
        taken.add(name.lower())
        read = partial(_open_fev_entry, name, entry, path, options, reading)
        tasks.append(SeriesTask(name=name, source=f"{path.name}#{name}", open=read))
    return tasks


def _open_fev_entry(
    name: str,
    entry: dict[str, Any],
    path: Path,
    options: SourceConfig,
    reading: SeriesReading,
) -> SeriesTable:
    where = f"{path.name}: task {name!r}"
    _check_entry(entry, where)
    declared = [column for key in _KNOWN for column in _named_columns(entry, key)]
    roles = PanelRoles(
        series=str(entry.get("id_column") or "id"),
        time=str(entry.get("timestamp_column") or "timestamp"),
        target=str(entry.get("target") or "target"),
        horizon=whole_number(entry, "horizon", where),
        season=_optional_number(entry, "seasonality", where) or 1,
        known=tuple(dict.fromkeys((*declared, *reading.columns))),
        gaps=reading.gaps,
    )
    origins = _optional_number(entry, "num_windows", where) or 1
    step = _optional_number(entry, "window_step_size", where)
    cutoff = entry.get("initial_cutoff")
    notes = []
    if isinstance(cutoff, int):
        if cutoff != -roles.horizon - (origins - 1) * (step or roles.horizon):
            notes.append(
                f"initial_cutoff {cutoff} counts steps of each series, and is not used: origins "
                "are times, the latest that keep most series"
            )
        cutoff = None
    if past := _named_columns(entry, "past_dynamic_columns"):
        notes.append(
            f"{', '.join(past[:5])} left out: what is known of the past alone is not used"
        )
    if (length := entry.get("max_context_length")) is not None:
        notes.append(f"max_context_length {length} is not used: all of a past is seen")
    place = Place(name, path.parent, resolve_directories(options), options)
    file = place.resolve_file(entry["dataset_path"])
    frame, roles, more = _read_with_known(file, roles, required=reading.columns)
    return SeriesTable(
        frame=frame[[roles.series, roles.time, roles.target, *roles.known]],
        roles=roles,
        origins=origins,
        step=step,
        first_cutoff=None if cutoff is None else str(cutoff),
        notes=(*notes, *more),
    )


def _named_columns(entry: Mapping[str, Any], key: str) -> list[str]:
    given = entry.get(key) or []
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list):
        raise SourceError(
            f"{key} is {str(given)[:50]!r}", "write a list of columns: [price, promo]"
        )
    return [str(name) for name in given]


def _read_with_known(
    file: Path, roles: PanelRoles, *, required: Collection[str]
) -> tuple[pd.DataFrame, PanelRoles, list[str]]:
    """Return series with those columns known beforehand that are numbers, and a note on others.

    A column that the user names in ``required`` must be one; of those that the definition names
    some may be texts, or columns that another file has.
    """
    optional = [name for name in roles.known if name not in required]
    left_out = sorted({*optional}.difference(_read_schema(file).names))
    there = tuple(name for name in roles.known if name not in left_out)
    frame = read_fev_series(file, replace(roles, known=there))
    for name in optional:
        if name in frame and not pd.api.types.is_numeric_dtype(frame[name]):
            left_out.append(name)
    known = tuple(name for name in there if name not in left_out)
    shown = ", ".join(left_out[:5])
    note = f"{shown} left out: not columns of numbers in {file.name}"
    return frame, replace(roles, known=known), [note] if left_out else []


def _optional_number(entry: Mapping[str, Any], key: str, where: str) -> int | None:
    return None if entry.get(key) is None else whole_number(entry, key, where)


def _check_entry(entry: Mapping[str, Any], where: str) -> None:
    """Refuse a task whose windows would be other ones here, or that is of another kind."""
    if entry.get("dataset_config") is not None:
        raise SourceError(
            f"{where}: the data set {str(entry['dataset_config'])[:80]!r} stands on the Hugging "
            "Face Hub",
            "save it as Parquet, and give dataset_path: FILE.parquet without dataset_config",
        )
    for key in ("dataset_path", "horizon"):
        if entry.get(key) is None:
            raise SourceError(
                f"{where} has no {key!r}", f"add it; {suggest_nearest(key, entry)}"
            )
    is_list = isinstance(entry.get("target"), list)
    if is_list or entry.get("generate_univariate_targets_from"):
        raise SourceError(
            f"{where} has several targets",
            "make a task of each target column; one column is forecast at a time",
        )


def read_fev_series(path: Path, roles: PanelRoles) -> pd.DataFrame:
    """Return a Parquet file of fev's as a long table.

    Parameters
    ----------
    path : Path
        A row for each series, times and values as lists; or a long table.
    roles : PanelRoles

    Raises
    ------
    SourceError
        The file is no Parquet, lacks a column, or has lists of unequal length.
    """
    columns = [roles.series, roles.time, roles.target, *roles.known]
    schema = _read_schema(path)
    missing = [name for name in columns if name not in schema.names]
    if missing:
        raise SourceError(
            f"{path.name} has no column {missing[0]!r}",
            suggest_nearest(missing[0], schema.names),
        )
    check_expansion(path, columns)
    try:
        table = pq.read_table(path, columns=columns)
    except (OSError, ValueError) as error:
        raise _no_parquet(path, error) from None
    if not _is_list(table.schema.field(roles.time).type):
        return table.to_pandas()
    lengths = _list_lengths(table[roles.time])
    flat = {
        roles.series: np.repeat(table[roles.series].to_numpy(), lengths),
        roles.time: _flatten(table[roles.time]).to_pandas(),
    }
    for name in (roles.target, *roles.known):
        column = table[name]
        if not _is_list(column.type):
            if name == roles.target:
                raise SourceError(
                    f"{path.name}: {roles.time!r} holds lists, {roles.target!r} does not",
                    "give both as lists, or one row for each series and time",
                )
            # a static column has one value for each series
            flat[name] = np.repeat(column.to_numpy(), lengths)
            continue
        others = _list_lengths(column)
        for row in np.flatnonzero(lengths != others).tolist():
            raise SourceError(
                f"{path.name}, series {table[roles.series][row]}: {lengths[row]} times and "
                f"{others[row]} values of {name!r}",
                "give a value for each time",
            )
        flat[name] = _flatten(column).to_numpy(zero_copy_only=False)
    return pd.DataFrame(flat)


def _read_schema(path: Path) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except (OSError, ValueError) as error:
        raise _no_parquet(path, error) from None


def _no_parquet(path: Path, error: Exception) -> SourceError:
    problem = str(error).strip().splitlines()[0]
    return SourceError(
        f"{path.name} is no Parquet file: {problem}",
        "give the Parquet file of the series as dataset_path",
    )


def _flatten(lists: pa.ChunkedArray) -> pa.Array:
    return lists.combine_chunks().flatten()


def _list_lengths(lists: pa.ChunkedArray) -> np.ndarray:
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), dtype=int)


def _is_list(kind: pa.DataType) -> bool:
    return (
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
    )
