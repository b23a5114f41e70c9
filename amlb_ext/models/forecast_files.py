"""Forecasts that another program made, as people write them: ids, dates and numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.errors import ModelError, suggest_nearest
from amlb_ext.models.forecasters import (
    LEVELS,
    Forecaster,
    ForecastRequest,
    Forecasts,
)
from amlb_ext.sources.long_columns import (
    index_as_columns,
    read_numbers,
    read_times,
)

#: What the column of point forecasts may be called.
_MEAN_COLUMNS = ("mean", "prediction", "predictions", "forecast")


@dataclass(frozen=True)
class FileForecaster(Forecaster):
    """Forecasts that another program made, a row for each series and time.

    Parameters
    ----------
    name : str
    table : DataFrame
        Indexed by series and time; ``mean``, and a column for each quantile level, e.g. ``0.1``.

    Notes
    -----
    Programs write ids and times in their own ways. Where the file lacks a series by its name, ids
    that are whole numbers are compared as such (``1``, ``1.0`` and ``001`` are one); where it lacks
    a time of months, quarters or years, one that lies in the same month, quarter or year is taken.
    Neither is done where two rows would become one.
    """

    name: str
    table: pd.DataFrame

    def forecast(self, request: ForecastRequest) -> Forecasts:
        """Look the forecasts up."""
        names, times = self.table.index.levels
        index = self.table.index
        wanted_names: pd.Index = pd.Index(request.names, dtype=object)
        wanted_times: pd.Index = request.times
        if not wanted_names.isin(names).all():
            index, wanted_names = _match(index, 0, wanted_names, _whole_number)
        length = _PERIODS.get(request.frequency.partition("-")[0])
        if length and not wanted_times.isin(times).all():
            index, wanted_times = _match(
                index, 1, wanted_times, lambda labels: labels.to_period(length)
            )
        asked = pd.MultiIndex.from_product([wanted_names, wanted_times])
        places = index.get_indexer(asked)
        missing = np.flatnonzero(places < 0)
        if len(missing):
            series, step = divmod(int(missing[0]), request.horizon)
            raise ModelError(
                f"{self.name} has no forecast of series {request.names[series]!r} at "
                f"{request.times[step]}, and lacks {len(missing)} of {len(asked)} forecasts that "
                "are asked for",
                self._why_missing(index, wanted_names, wanted_times, series),
            )
        found = self.table.iloc[places]
        shape = (len(request.names), request.horizon)
        mean = found["mean"].to_numpy(dtype=float).reshape(shape)
        columns = [str(level) for level in request.levels]
        if not set(columns) <= set(found.columns):
            return Forecasts(mean=mean)
        quantiles = found[columns].to_numpy(dtype=float).reshape(*shape, len(columns))
        return Forecasts(mean=mean, quantiles=quantiles)

    def _why_missing(
        self, index: pd.MultiIndex, names: pd.Index, times: pd.Index, first: int
    ) -> str:
        """Return what to do about forecasts that are not there: names, times, or rows."""
        series, stamps = self.table.index.levels
        if not names.isin(index.levels[0]).any():
            return f"its series have other names, e.g. {series[0]!r}: write those of the table"
        shift = _find_shift(index, names[[first]], times)
        if shift is not None:
            hours = f"{abs(shift) / pd.Timedelta(hours=1):g} hours"
            way = "later" if shift > pd.Timedelta(0) else "earlier"
            return (
                f"all times of this series that are asked for are there {hours} {way}: is the file "
                "in UTC or another time zone? Write the clock of the table"
            )
        if not times.isin(index.levels[1]).any():
            return (
                f"none of its times is asked for: they are {stamps[0]} to {stamps[-1]}; write "
                "those of the table"
            )
        return "add them; F needs forecasts of earlier origins, too, to learn where it fails"

    def learn(self, request: ForecastRequest) -> None:
        """Return None: a file knows nothing of made pasts."""
        return


#: The period in which a step lies, by the frequency without its anchor: each holds one step.
_PERIODS = {
    **dict.fromkeys(("M", "MS", "BM", "BMS"), "M"),
    **dict.fromkeys(("Q", "QS", "BQ", "BQS"), "Q"),
    **dict.fromkeys(("A", "AS", "BA", "BAS"), "Y"),
}
_WHOLE_NUMBER = re.compile(r"([+-]?)0*(\d+)(?:\.0*)?")


def _whole_number(labels: pd.Index) -> pd.Index:
    """Return texts with whole numbers in one spelling: ``1``, ``1.0`` and ``001`` become ``1``."""
    return labels.str.strip().str.replace(_WHOLE_NUMBER, _as_whole, regex=True)


def _as_whole(found: re.Match[str]) -> str:
    is_all = found.start() == 0 and found.end() == len(found.string)
    return found[1] + found[2] if is_all else found[0]


def _match(
    index: pd.MultiIndex,
    level: int,
    wanted: pd.Index,
    respell: Callable[[Any], pd.Index],
) -> tuple[pd.MultiIndex, pd.Index]:
    """Return index and labels in another spelling of one level; unchanged where rows fall together.

    Parameters
    ----------
    index : MultiIndex
        Of a file's forecasts.
    level : int
    wanted : Index
        Labels that are asked for.
    respell : callable
        Returns labels in the other spelling.
    """
    respelled = respell(index.levels[level])
    asked = respell(wanted)
    labels = [index.get_level_values(number) for number in (0, 1)]
    labels[level] = respelled.take(index.codes[level])
    other = pd.MultiIndex.from_arrays(labels)
    if other.has_duplicates or asked.has_duplicates:
        return index, wanted
    return other, asked


def _find_shift(
    index: pd.MultiIndex, names: pd.Index, times: pd.Index
) -> pd.Timedelta | None:
    """Return by how much a clock in another zone differs, where all times are there by that."""
    if not isinstance(times, pd.DatetimeIndex):
        return None
    # zones differ by quarters of an hour, and by 14 hours from UTC at most
    for quarters in range(1, 4 * 14 + 1):
        for sign in (-1, 1):
            shift = pd.Timedelta(minutes=15 * sign * quarters)
            asked = pd.MultiIndex.from_product([names, times + shift])
            if asked.isin(index).all():
                return shift
    return None


def _with_level_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose quantile levels are headed ``0.1``, which may be written ``0.10``."""
    named = {}
    for column in frame.columns:
        try:
            level = str(float(column))
        except ValueError:
            continue
        if level in map(str, LEVELS) and level not in frame.columns:
            named[column] = level
    return frame.rename(columns=named)


def forecasts_from_table(
    frame: pd.DataFrame, name: str, *, series: str, time: str
) -> FileForecaster:
    """Return the forecaster of a table of forecasts.

    Parameters
    ----------
    frame : DataFrame
        The columns of series and time, a column ``mean`` (or ``prediction``), and one for each
        quantile level where there are quantiles.
    name : str
    series, time : str

    Raises
    ------
    ModelError
        A column is missing, a forecast is no number, a row has no series, or a series and time
        occurs twice.
    DataError
        A time cannot be read.
    """
    frame = _with_level_names(index_as_columns(frame).rename(columns=str))
    means = [column for column in _MEAN_COLUMNS if column in frame.columns]
    for column in (series, time):
        if column not in frame.columns:
            raise ModelError(
                f"the forecasts {name} have no column {column!r}",
                suggest_nearest(column, list(frame.columns)),
            )
    if not means:
        raise ModelError(
            f"the forecasts {name} have no column 'mean'",
            "name the column of point forecasts 'mean' or 'prediction'",
        )
    table = frame.rename(columns={means[0]: "mean"}).drop(columns=[series, time])
    levels = [column for column in map(str, LEVELS) if column in table.columns]
    numbers = {
        column: read_numbers(
            table[column], f"the forecast in {column!r}", f"forecasts {name}"
        )
        for column in ("mean", *levels)
    }
    if frame[series].isna().any():
        row = int(np.flatnonzero(frame[series].isna())[0]) + 1
        raise ModelError(
            f"the forecasts {name} have no series in row {row}",
            "fill the column; pandas reads a series that is called NA as missing, unless "
            "keep_default_na=False",
        )
    for other in means[1:]:
        rival = read_numbers(table[other], f"the forecast in {other!r}", name)
        if not np.array_equal(rival, numbers["mean"], equal_nan=True):
            raise ModelError(
                f"the forecasts {name} have two columns of point forecasts, {means[0]!r} and "
                f"{other!r}",
                "keep one of them",
            )
    times, _ = read_times(frame[time], f"forecasts {name}")
    index = pd.MultiIndex.from_arrays([frame[series].astype(str), times])
    if index.has_duplicates:
        twice = index[index.duplicated()][0]
        raise ModelError(
            f"the forecasts {name} have series {twice[0]!r} at {twice[1]} twice",
            "keep one forecast for each series and time; origins must not overlap",
        )
    return FileForecaster(name, pd.DataFrame(numbers, index=index))
