"""Predictions that were made with fev, read for the report.

A Parquet file for each task of ``fev/tasks.yaml``, as ``datasets.Dataset.to_parquet`` writes fev's
predictions: a row for each series in the task's order, ``predictions`` as a list of the horizon's
length, and a list for each quantile level (``0.1`` to ``0.9``) where there are quantiles. They
stand in a folder, ``<task>.parquet``; for a suite of one task the file itself will do.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from amlb_ext.core.errors import RunError, suggest_nearest
from amlb_ext.core.parquet import check_expansion
from amlb_ext.models.forecasters import LEVELS, Forecasts
from amlb_ext.suite.series_manifest import ITEM
from amlb_ext.units.failing_windows import FailingWindows
from amlb_ext.units.origins import Windows
from amlb_ext.units.stored_windows import ForecastSuite, ForecastTable, item_id

#: fev's name of the column of point forecasts.
_MEAN = "predictions"


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
        RunError
            A file does not fit its task; the message names the first series.
        """
        tasks = [task.name for task in table.main_tasks]
        missing = [name for name in tasks if name not in self.files]
        if missing:
            return f"no predictions of {', '.join(missing)}"
        answers = []
        for name, windows in zip(tasks, failing.tests, strict=True):
            series = [failing.panel.names[item] for item in windows.items]
            answers.append(_read_file(self.files[name], windows, series))
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


def _read_file(path: Path, windows: Windows, series: list[str]) -> Forecasts:
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
    table = _in_order(table, windows, path)
    mean = _read_lists(table, _MEAN, path, series=series, horizon=horizon)
    columns = [str(level) for level in LEVELS]
    if not set(columns) <= set(table.column_names):
        return Forecasts(mean=mean)
    quantiles = np.empty((n, horizon, len(columns)))
    for position, column in enumerate(columns):
        quantiles[:, :, position] = _read_lists(
            table, column, path, series=series, horizon=horizon
        )
    return Forecasts(mean=mean, quantiles=quantiles)


def _in_order(table: pa.Table, windows: Windows, path: Path) -> pa.Table:
    """Return the rows in the task's order, where they say which series they are of."""
    if ITEM not in table.column_names:
        return table
    wanted = [item_id(int(item)) for item in windows.items]
    places = {str(name): row for row, name in enumerate(table[ITEM].to_pylist())}
    missing = [name for name in wanted if name not in places]
    if missing:
        raise RunError(
            f"{path} has no prediction of series {missing[0]!r}, and lacks {len(missing)}",
            f"keep fev's own {ITEM}, or leave the column out",
        )
    return table.take([places[name] for name in wanted])


def _read_lists(
    table: pa.Table, column: str, path: Path, *, series: list[str], horizon: int
) -> np.ndarray:
    """Return a column of lists, ``(n, H)``."""
    lists = table[column].combine_chunks()
    remedy = f"save a list of {horizon} numbers for each series"
    try:
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    except pa.ArrowNotImplementedError:
        raise RunError(
            f"{path}: the column {column!r} holds {lists.type}, no lists", remedy
        ) from None
    wrong = np.flatnonzero(lengths != horizon)
    if len(wrong):
        row = int(wrong[0])
        raise RunError(
            f"{path}, row {row + 1} (series {series[row]!r}): {column!r} has {lengths[row]} "
            f"steps, the horizon is {horizon}",
            remedy,
        )
    flat = lists.flatten().to_numpy(zero_copy_only=False)
    try:
        values = np.asarray(flat, dtype=float).reshape(len(series), horizon)
    except ValueError:
        raise RunError(f"{path}: {column!r} holds {lists.type}", remedy) from None
    broken = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(broken):
        row = int(broken[0])
        raise RunError(
            f"{path}, row {row + 1} (series {series[row]!r}): {column!r} is NaN or infinite, and "
            f"for {len(broken) - 1} others",
            "predict numbers only; fev and AMLB give no score then",
        )
    return values
