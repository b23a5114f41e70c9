"""Predictions that were made with fev, read for the report.

A Parquet file for each task of ``fev/tasks.yaml``, as ``datasets.Dataset.to_parquet`` writes fev's
predictions: a row for each series in the task's order, ``predictions`` as a list of the horizon's
length, and a list for each quantile level (``0.1`` to ``0.9``) where there are quantiles. Ids of
the series, and lists of times, tell of another order. They stand in a folder, ``<task>.parquet``;
for a suite of one task the file itself will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from amlb_ext.core.errors import RunError, suggest_nearest
from amlb_ext.core.parquet import check_expansion
from amlb_ext.models.forecasters import (
    LEVELS,
    ForecastRequest,
    Forecasts,
    check_forecasts,
    name_levels,
)
from amlb_ext.sources.long_columns import read_times
from amlb_ext.suite.series_manifest import ITEM, TARGET, TIME
from amlb_ext.units.failing_windows import FailingWindows
from amlb_ext.units.origins import Windows
from amlb_ext.units.rolling import request_at
from amlb_ext.units.stored_windows import ForecastSuite, ForecastTable, item_id

#: fev's name of the column of point forecasts.
_MEAN = "predictions"
_LISTS = "save a list of one number for each step of the horizon, for each series"


@dataclass(frozen=True, kw_only=True)
class FevPredictions:
    """Files of predictions by the task that they are of."""

    files: dict[str, Path]

    def read(
        self, table: ForecastTable, failing: FailingWindows
    ) -> list[Forecasts] | str:
        """Return the forecasts of each task of a table, or why there are none.

        Raises
        ------
        RunError, ModelError
            A file does not fit its task; the message names the first series.
        """
        tasks = [task.name for task in table.main_tasks]
        missing = [name for name in tasks if name not in self.files]
        if missing:
            return f"no predictions of {', '.join(missing)}"
        answers = []
        for name, windows in zip(tasks, failing.tests, strict=True):
            request = request_at(failing.panel, windows)
            answers.append(_read_file(self.files[name], windows, request))
        return answers


def open_fev_predictions(path: Path, suite: ForecastSuite) -> FevPredictions:
    """Find the files of predictions; what is in them is not looked at yet.

    Raises
    ------
    RunError
        There is no such file or folder, or it is of no task of the suite.
    """
    tasks = [task.name for table in suite.tables for task in table.main_tasks]
    if path.is_dir():
        files = {name: path / f"{name}.parquet" for name in tasks}
        files = {name: file for name, file in files.items() if file.is_file()}
        if not files:
            raise RunError(
                f"{path} holds no predictions of the suite's tasks",
                f"save those of each task as {path.name}/{tasks[0]}.parquet",
            )
        return FevPredictions(files=files)
    if not path.is_file():
        raise RunError(
            f"there is no file or folder of predictions {path}", "check the path"
        )
    if len(tasks) > 1:
        raise RunError(
            f"{path} is one file, and the suite has {len(tasks)} tasks",
            f"give a folder with {tasks[0]}.parquet, {tasks[1]}.parquet, ...",
        )
    return FevPredictions(files={tasks[0]: path})


def _read_file(path: Path, windows: Windows, request: ForecastRequest) -> Forecasts:
    n, horizon = windows.future.shape
    try:
        check_expansion(path)
        table = pq.read_table(path)
    except (OSError, ValueError) as error:
        raise RunError(
            f"{path} is no Parquet file: {str(error).strip().splitlines()[0]}",
            "save fev's predictions with to_parquet",
        ) from None
    if _MEAN not in table.column_names:
        raise RunError(
            f"{path} has no column {_MEAN!r}",
            suggest_nearest(_MEAN, table.column_names),
        )
    if table.num_rows != n:
        raise RunError(
            f"{path} has {table.num_rows} rows, the task has {n} series",
            "save a row for each series, in the order in which fev gives them",
        )
    try:
        levels = name_levels(table.column_names)
    except ValueError as error:
        raise RunError(f"{path} has {error}", "keep one of them") from None
    table = table.rename_columns(
        [levels.get(name, name) for name in table.column_names]
    )
    table = _in_order(table, windows, path, request.names)
    read = partial(_read_lists, table, path=path, series=request.names, horizon=horizon)
    steps = _order_of_steps(table, path, request)
    mean = np.take_along_axis(read(_MEAN), steps, axis=1)
    columns = [str(level) for level in LEVELS]
    quantiles = None
    if set(columns) <= set(table.column_names):
        quantiles = np.empty((n, horizon, len(columns)))
        for position, column in enumerate(columns):
            quantiles[:, :, position] = np.take_along_axis(read(column), steps, axis=1)
    used = {_MEAN, TIME, TARGET, *(columns if quantiles is not None else ())}
    unread = tuple(
        field.name
        for field in table.schema
        if field.name not in used and not _holds_times(field.type)
    )
    answer = Forecasts(mean=mean, quantiles=quantiles, unread=unread)
    return check_forecasts(answer, request, str(path))


def _in_order(
    table: pa.Table, windows: Windows, path: Path, series: Sequence[str]
) -> pa.Table:
    """Return the rows in the task's order, where a column says which series they are of.

    It has the ids of the task's data, or the names of the series, whatever it is called.

    Raises
    ------
    RunError
        The column of ids has others, or another column tells of an order that is not known.
    """
    ids = [item_id(int(item)) for item in windows.items]
    # fev's own column first
    for column in sorted(table.column_names, key=lambda name: name.casefold() != ITEM):
        kind = table[column].type
        if pa.types.is_nested(kind):
            continue
        values = table[column].to_pylist()
        places = {str(value): row for row, value in enumerate(values)}
        for wanted in (ids, series):
            if set(wanted) <= set(places):
                rows = [places[name] for name in wanted]
                return table.take(rows).drop_columns([column])
        if column.casefold() == ITEM:
            missing = [name for name in ids if name not in places]
            raise RunError(
                f"{path} has no prediction of series {missing[0]!r}, and lacks {len(missing)}",
                f"keep fev's own {ITEM}, or leave the column out",
            )
        # numbers with a fraction, such as a time of computing, are no ids
        tells_apart = len(places) == len(values) and not pa.types.is_floating(kind)
        if tells_apart and not pd.Index(values).is_monotonic_increasing:
            raise RunError(
                f"{path} has a column {column!r} that tells its rows apart, e.g. {values[0]!r}, "
                "and by no name of the task's series",
                f"write fev's {ITEM} in it, e.g. {ids[0]}, or leave it out where the rows are in "
                "the order in which fev gives them",
            )
    return table


def _order_of_steps(
    table: pa.Table, path: Path, request: ForecastRequest
) -> np.ndarray:
    """Return where the steps of each row stand, ``(n, H)``: by its times, if it has them.

    Raises
    ------
    RunError
        Times are others than those to forecast, and not those of the past either.
    """
    n, horizon = len(request.names), request.horizon
    order = np.tile(np.arange(horizon), (n, 1))
    for column in table.column_names:
        if column.casefold() != TIME and not _holds_times(table[column].type):
            continue
        flat = _flat_lists(table, column, path)
        times = read_times(flat.to_pandas(), f"{path}, column {column!r}").times
        # the past, which fev hands out beside what it asks
        if times.max() <= request.cutoff:
            continue
        _check_lengths(table, column, path, series=request.names, horizon=horizon)
        stamps = times.to_numpy().reshape(n, horizon)
        order = np.argsort(stamps, axis=1)
        others = np.take_along_axis(stamps, order, axis=1) != request.times.to_numpy()
        if others.any():
            row = int(np.argmax(others.any(axis=1)))
            came = pd.DatetimeIndex(stamps[row])
            raise RunError(
                f"{path}, row {row + 1} (series {request.names[row]!r}): {column!r} is "
                f"{came.min()} to {came.max()}, the task asks for {request.times[0]} to "
                f"{request.times[-1]}",
                "predict the times that the task asks for",
            )
    return order


def _holds_times(kind: pa.DataType) -> bool:
    """Whether a column is of lists of times."""
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return is_list and pa.types.is_temporal(kind.value_type)


def _flat_lists(table: pa.Table, column: str, path: Path) -> pa.Array:
    """Return what the lists of a column hold, one after another."""
    lists = table[column].combine_chunks()
    if not pa.types.is_nested(lists.type):
        raise RunError(
            f"{path}: the column {column!r} holds {lists.type}, no lists", _LISTS
        )
    return lists.flatten()


def _check_lengths(
    table: pa.Table, column: str, path: Path, *, series: Sequence[str], horizon: int
) -> None:
    lengths = pc.fill_null(pc.list_value_length(table[column]), 0).to_numpy()
    wrong = np.flatnonzero(lengths != horizon)
    if len(wrong):
        row = int(wrong[0])
        raise RunError(
            f"{path}, row {row + 1} (series {series[row]!r}): {column!r} has {lengths[row]} "
            f"steps, the horizon is {horizon}",
            _LISTS,
        )


def _read_lists(
    table: pa.Table, column: str, *, path: Path, series: Sequence[str], horizon: int
) -> np.ndarray:
    """Return a column of lists of numbers, ``(n, H)``."""
    flat = _flat_lists(table, column, path)
    _check_lengths(table, column, path, series=series, horizon=horizon)
    try:
        values = np.asarray(flat.to_numpy(zero_copy_only=False), dtype=float)
    except ValueError:
        raise RunError(
            f"{path}: {column!r} holds {table[column].type}", _LISTS
        ) from None
    values = values.reshape(len(series), horizon)
    broken = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(broken):
        row = int(broken[0])
        raise RunError(
            f"{path}, row {row + 1} (series {series[row]!r}): {column!r} is NaN or infinite, and "
            f"for {len(broken) - 1} others",
            "predict numbers only; fev and AMLB give no score then",
        )
    return values
