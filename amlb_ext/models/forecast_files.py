"""Forecasts that another program made, as people write them: ids, dates and numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
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
    name_levels,
)
from amlb_ext.sources.long_columns import (
    index_as_columns,
    read_numbers,
    read_times,
)

#: What the column of point forecasts may be called.
_MEAN_COLUMNS = ("mean", "prediction", "predictions", "forecast")

#: The column that tells from which origin a forecast was made.
_CUTOFF = "cutoff"


@dataclass(frozen=True)
class FileForecaster(Forecaster):
    """Forecasts that another program made, a row for each series and time.

    Parameters
    ----------
    name : str
    table : DataFrame
        Indexed by series, time and, where the file has it, cutoff; ``mean``, a column for each
        quantile level, e.g. ``0.1``, and ``truth``, where the file has what came.
    in_utc : MultiIndex, optional
        The same index with times in UTC, where the file writes zones.
    unread : tuple of str
        Columns of the file that nothing was read from.

    Notes
    -----
    Programs write ids and times in their own ways. Where the file lacks a series by its name, ids
    that are whole numbers are compared as such (``1``, ``1.0`` and ``001`` are one); where it lacks
    a time of months, quarters or years, one that lies in the same month, quarter or year is taken.
    Neither is done where two rows would become one. Where table and file write zones, the file is
    read on the table's clock.
    """

    name: str
    table: pd.DataFrame
    in_utc: pd.MultiIndex | None = None
    unread: tuple[str, ...] = ()

    @property
    def knows_origins(self) -> bool:
        """Whether the file has a column of cutoffs."""
        return self.table.index.nlevels > 2

    def forecast(self, request: ForecastRequest) -> Forecasts:
        """Look the forecasts up."""
        index = self._on_clock_of(request)
        wanted = [pd.Index(request.names, dtype=object), request.times]
        if self.knows_origins:
            wanted.append(pd.DatetimeIndex([request.cutoff]))
        if not wanted[0].isin(index.levels[0]).all():
            index, wanted[0] = _match(index, 0, wanted[0], _whole_number)
        period = _period_of(request.frequency)
        for level in range(1, index.nlevels):
            times = index.levels[level]
            if not period or wanted[level].isin(times).all():
                continue
            if _are_of_calendar(times, period):
                raise ModelError(
                    f"the times of {self.name} begin calendar years or quarters, e.g. "
                    f"{times[0].date()}, and those of the table others, e.g. "
                    f"{wanted[level][0].date()}: nothing tells which of them are meant",
                    "write the dates of the table",
                )
            moved = times[_may_begin_next(times, period)]
            if len(moved):
                raise ModelError(
                    f"the times of {self.name} hold hours at the end of a step, e.g. {moved[0]}, "
                    "which may be the beginning of the next one by another clock",
                    "write the dates of the table, without hours",
                )
            index, wanted[level] = _match(
                index, level, wanted[level], lambda labels: labels.to_period(period)
            )
        asked = pd.MultiIndex.from_product(wanted)
        places = index.get_indexer(asked)
        missing = np.flatnonzero(places < 0)
        if len(missing):
            series, step = divmod(int(missing[0]), request.horizon)
            raise ModelError(
                f"{self.name} has no forecast of series {request.names[series]!r} at "
                f"{request.times[step]}, and lacks {len(missing)} of {len(asked)} forecasts that "
                "are asked for",
                self._why_missing(index, wanted),
            )
        found = self.table.iloc[places]

        def read(columns: Any, *more: int) -> Any:
            shape = (len(request.names), request.horizon, *more)
            return found[columns].to_numpy(dtype=float).reshape(shape)

        columns = [str(level) for level in request.levels]
        has_quantiles = set(columns) <= set(found.columns)
        return Forecasts(
            mean=read("mean"),
            quantiles=read(columns, len(columns)) if has_quantiles else None,
            truth=read("truth") if "truth" in found else None,
            unread=self.unread,
        )

    def _on_clock_of(self, request: ForecastRequest) -> pd.MultiIndex:
        """Return the index with times as the table's clock shows them.

        Raises
        ------
        ModelError
            Only one side writes zones, and hours may be meant by either clock.
        """
        index, clock = self.table.index, request.clock
        if clock is not None and self.in_utc is not None:
            index = self.in_utc
            for level in range(1, index.nlevels):
                index = _respelled(index, level, clock.show)
            return index
        times = index.levels[1]
        # days and longer steps begin by the local calendar on either side
        has_hours = len((times - times.normalize()).unique()) > 1
        if has_hours and (clock is not None or self.in_utc is not None):
            with_zone, without = self.name, "the table"
            if self.in_utc is None:
                with_zone, without = without, with_zone
            raise ModelError(
                f"the times of {with_zone} have a time zone and those of {without} have none, so "
                "hours can be read by two clocks",
                f"write the zone of the times in {without}, too, e.g. 2024-01-31 13:00+01:00, or "
                "both in UTC",
            )
        return index

    def _why_missing(self, index: pd.MultiIndex, wanted: Sequence[pd.Index]) -> str:
        """Return what to do about forecasts that are not there: names, times, or rows."""
        series, stamps, *cutoffs = self.table.index.levels
        known = [
            asked.isin(labels).any()
            for asked, labels in zip(wanted, index.levels, strict=True)
        ]
        if not known[0]:
            return f"its series have other names, e.g. {series[0]!r}: write those of the table"
        if not known[1]:
            return (
                f"none of its times is asked for: they are {stamps[0]} to {stamps[-1]}; write "
                "those of the table"
            )
        if not all(known):
            return (
                f"it has none from the origin {wanted[2][0]}: its cutoffs are {cutoffs[0][0]} to "
                f"{cutoffs[0][-1]}; a cutoff is the last time that is seen"
            )
        return (
            "add them, by the clock of the table (is the file in UTC?); F needs forecasts of "
            "earlier origins, too, to learn where it fails"
        )

    def learn(self, request: ForecastRequest) -> None:
        """Return None: a file knows nothing of made pasts."""
        return


#: The period in which a step lies, by the frequency without its anchor: each holds one step.
_PERIODS = {
    **dict.fromkeys(("M", "MS", "BM", "BMS"), "M"),
    **dict.fromkeys(("Q", "QS", "BQ", "BQS"), "Q"),
    **dict.fromkeys(("A", "AS", "BA", "BAS"), "Y"),
}
_MONTHS = re.findall("...", "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC")
_WHOLE_NUMBER = re.compile(r"\A([+-]?)0*(\d+)(?:\.0*)?\Z")


def _period_of(frequency: str) -> str:
    """Return the period in which a step lies; empty where steps are shorter than a month.

    Examples
    --------
    >>> [_period_of(frequency) for frequency in ("MS", "QS-FEB", "A-MAR", "D")]
    ['M', 'Q-JAN', 'Y-MAR', '']
    """
    name, _, anchor = frequency.partition("-")
    length = _PERIODS.get(name, "")
    if length in ("", "M") or not anchor:
        return length
    # a year that begins in February ends in January
    last = _MONTHS.index(anchor) - name.endswith("S")
    return f"{length}-{_MONTHS[last]}"


def _are_of_calendar(times: pd.DatetimeIndex, period: str) -> bool:
    """Whether all times begin calendar quarters or years, and none begins one of the periods.

    2000Q1 and 2000 are read as such, and mean other months where a year begins in February.
    """
    if period == "M":
        return False
    months = 3 if period.startswith("Q") else 12
    begins = (times.day == 1) & ((times.month - 1) % months == 0)
    own = times.to_period(period).start_time
    return bool(begins.all() and not (times.normalize() == own).any())


def _may_begin_next(times: pd.DatetimeIndex, period: str) -> np.ndarray:
    """Whether each time may be the beginning of the next period, written in UTC.

    Zones are up to 14 hours ahead, by quarters of an hour; the last second of a month is none.
    """
    is_quarter = (times.minute % 15 == 0) & (times.second == 0) & (times.hour > 0)
    ahead = times + pd.Timedelta(hours=14)
    return np.asarray(is_quarter & (ahead.to_period(period) != times.to_period(period)))


def _whole_number(labels: pd.Index) -> pd.Index:
    """Return texts with whole numbers in one spelling: ``1``, ``1.0`` and ``001`` become ``1``."""
    return labels.str.strip().str.replace(_WHOLE_NUMBER, r"\1\2", regex=True)


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
    asked = respell(wanted)
    other = _respelled(index, level, respell)
    if other.has_duplicates or asked.has_duplicates:
        return index, wanted
    return other, asked


def _respelled(
    index: pd.MultiIndex, level: int, respell: Callable[[Any], pd.Index]
) -> pd.MultiIndex:
    labels = [index.get_level_values(number) for number in range(index.nlevels)]
    labels[level] = respell(index.levels[level]).take(index.codes[level])
    return pd.MultiIndex.from_arrays(labels)


def forecasts_from_table(
    frame: pd.DataFrame,
    name: str,
    *,
    series: str,
    time: str,
    target: str | None = None,
) -> FileForecaster:
    """Return the forecaster of a table of forecasts.

    Parameters
    ----------
    frame : DataFrame
        The columns of series and time, a column ``mean`` (or ``prediction``), and one for each
        quantile level where there are quantiles. ``cutoff``, the last time that was seen, tells
        forecasts of one time from several origins apart.
    name : str
    series, time : str
    target : str, optional
        Column that holds what came, where the file has it.

    Raises
    ------
    ModelError
        A column is missing, a forecast is no number, a row has no series, or a series and time
        occurs twice.
    DataError
        A time cannot be read.
    """
    frame = index_as_columns(frame).rename(columns=str)
    try:
        frame = frame.rename(columns=name_levels(frame.columns))
    except ValueError as error:
        raise ModelError(
            f"the forecasts {name} have {error}", "keep one of them"
        ) from None
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
    keys = [series, time, *([_CUTOFF] if _CUTOFF in frame.columns else [])]
    levels = [str(level) for level in LEVELS]
    if not set(levels) <= set(frame.columns):
        levels = []
    used = {*keys, *means, *levels}
    sources = {"mean": means[0], **dict(zip(levels, levels, strict=True))}
    if target is not None and target in frame.columns and target not in used:
        used.add(target)
        sources["truth"] = target
    numbers = {}
    for column, source in sources.items():
        what = "target" if column == "truth" else "forecast in"
        numbers[column] = read_numbers(
            frame[source], f"the {what} {source!r}", f"forecasts {name}"
        )
    if frame[series].isna().any():
        row = int(np.flatnonzero(frame[series].isna())[0]) + 1
        raise ModelError(
            f"the forecasts {name} have no series in row {row}",
            "fill the column; pandas reads a series that is called NA as missing, unless "
            "keep_default_na=False",
        )
    for other in means[1:]:
        rival = read_numbers(frame[other], f"the forecast in {other!r}", name)
        if not np.array_equal(rival, numbers["mean"], equal_nan=True):
            raise ModelError(
                f"the forecasts {name} have two columns of point forecasts, {means[0]!r} and "
                f"{other!r}",
                "keep one of them",
            )
    read = [read_times(frame[column], f"forecasts {name}") for column in keys[1:]]
    ids = frame[series].astype(str)
    index = keyed = pd.MultiIndex.from_arrays([ids, *(each.times for each in read)])
    in_utc = None
    if read[0].instants is not None:
        zoned = [
            each.times if each.instants is None else each.instants for each in read
        ]
        in_utc = keyed = pd.MultiIndex.from_arrays([ids, *zoned])
    if keyed.has_duplicates:
        twice = keyed[keyed.duplicated()][0]
        raise ModelError(
            f"the forecasts {name} have series {twice[0]!r} at {twice[1]} twice",
            f"keep one forecast for each series and time, or add a column {_CUTOFF!r}: the last "
            "time seen before each forecast",
        )
    return FileForecaster(
        name,
        pd.DataFrame(numbers, index=index),
        in_utc=in_utc,
        unread=tuple(column for column in frame.columns if column not in used),
    )
