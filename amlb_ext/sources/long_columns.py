"""Columns of a long table, of series or of forecasts, as times and numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.core.dates import (
    AmbiguousDateError,
    numbers_as_dates,
    parse_dates,
    periods_as_dates,
    without_offsets,
)
from amlb_ext.core.errors import DataError

#: Whole years that a time in nanoseconds may be of.
_FIRST_YEAR, _LAST_YEAR = 1678, 2261


def index_as_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the parts of its index that have names as columns.

    Libraries of forecasting keep series and time there.

    Examples
    --------
    >>> times = pd.Index([2020, 2021], name="year")
    >>> index_as_columns(pd.DataFrame({"y": [1, 2]}, index=times)).columns.tolist()
    ['year', 'y']
    """
    new = [name for name in frame.index.names if name not in (None, *frame.columns)]
    return frame.reset_index(level=new) if new else frame


@dataclass(frozen=True, kw_only=True)
class Clock:
    """What the clock of a table shows at a time in UTC.

    Attributes
    ----------
    changes : DatetimeIndex of shape (n,)
        In UTC and ascending: when its distance from UTC changes.
    offsets : TimedeltaIndex of shape (n,)
        The distance from then on.
    """

    changes: pd.DatetimeIndex
    offsets: pd.TimedeltaIndex

    def show(self, instants: pd.DatetimeIndex) -> pd.DatetimeIndex:
        """Return times in UTC as the clock shows them."""
        places = self.changes.searchsorted(instants, side="right") - 1
        return instants + self.offsets[np.maximum(places, 0)]


@dataclass(frozen=True, kw_only=True)
class ReadTimes:
    """A column of times, without zones.

    Attributes
    ----------
    times : DatetimeIndex of shape (n,)
        As a clock shows them, or in UTC.
    instants : DatetimeIndex of shape (n,) or None
        The same in UTC; None where the column has no zones.
    note : str
        How zones were read; empty where nothing was to be chosen.
    """

    times: pd.DatetimeIndex
    instants: pd.DatetimeIndex | None = None
    note: str = ""

    def clock(self) -> Clock | None:
        """Return the clock that the times were taken from; None where they have no zones."""
        if self.instants is None:
            return None
        offsets = pd.Series(self.times - self.instants, self.instants).sort_index()
        offsets = offsets[offsets != offsets.shift()]
        return Clock(
            changes=pd.DatetimeIndex(offsets.index),
            offsets=pd.TimedeltaIndex(offsets),
        )


def read_times(values: pd.Series, name: str) -> ReadTimes:
    """Return a column of times.

    Raises
    ------
    DataError
        A value is no time, or may be read as two; the message names its row.
    """
    if isinstance(values.dtype, pd.PeriodDtype):
        # as a text, a quarter does not say in which month its year begins
        values = values.dt.start_time
    instants, note = None, ""
    if pd.api.types.is_numeric_dtype(values):
        dates = numbers_as_dates(values)
        if dates is None:
            raise DataError(
                f"{name}: the times are numbers, e.g. {values.iloc[0]}",
                "write dates, e.g. 2024-01-31, so that AMLB and forecasters can read them",
            )
        values = dates
    if pd.api.types.is_datetime64_any_dtype(values):
        index = pd.DatetimeIndex(values)
        if index.tz is not None:
            instants = index.tz_convert("UTC").tz_localize(None)
            index, note = _take_clock(index.tz_localize(None), instants)
    else:
        # the same times recur in every series, so each is read once
        codes, distinct = pd.factorize(values)
        texts = pd.Series(distinct).astype("string").astype(object)
        texts = periods_as_dates(pd.Series(texts.to_numpy(), dtype="str"))
        clocks = without_offsets(texts)
        try:
            universal = pd.DatetimeIndex(parse_dates(texts)).tz_localize(None)
            index = pd.DatetimeIndex(parse_dates(clocks)).tz_localize(None)
        except AmbiguousDateError as error:
            raise DataError(
                f"{name}: the time {str(error)!r} may be read in two ways",
                "write times as 2024-01-31",
            ) from None
        # a missing time has the code -1, for which there is no text
        missing_time = pd.DatetimeIndex([pd.NaT])
        if not clocks.equals(texts):
            index, note = _take_clock(index, universal)
            instants = universal.append(missing_time)[codes]
        index = index.append(missing_time)[codes]
    # a missing time has no year
    is_in_reach = (index.year >= _FIRST_YEAR) & (index.year <= _LAST_YEAR)
    for row in np.flatnonzero(~is_in_reach).tolist():
        text = str(values.iloc[row])[:60]
        # pandas before 3 cannot hold a far year, so its time is missing
        year = re.match(r"\s*(\d{4,})-", text)
        if index[row] is not pd.NaT or (
            year and not _FIRST_YEAR <= int(year[1]) <= _LAST_YEAR
        ):
            raise DataError(
                f"{name}, row {row + 1}: the year of {text} is outside {_FIRST_YEAR} to "
                f"{_LAST_YEAR}, which is as far as pandas and AMLB reach",
                "is the year mistyped? Otherwise leave the row out",
            )
        raise DataError(
            f"{name}, row {row + 1}: {text!r} is no time",
            "write times as 2024-01-31 or 2024-01-31 13:00",
        )
    if instants is not None:
        instants = instants.as_unit("ns")
    return ReadTimes(times=index.as_unit("ns"), instants=instants, note=note)


def _take_clock(
    clock: pd.DatetimeIndex, universal: pd.DatetimeIndex
) -> tuple[pd.DatetimeIndex, str]:
    """Return what the clock of a zone shows, or UTC where that would bend the steps of the series.

    Days, weeks and months begin by the local calendar, which a change of clocks leaves alone. Hours
    do not: one is missing, and another one occurs twice.
    """
    offsets = (clock - universal).dropna().unique()
    hours = (clock - clock.normalize()).dropna().unique()
    if len(offsets) > 1 and len(hours) > 1:
        return universal, (
            "times are written in UTC, since their offset changes within the table; days may "
            "begin at another hour then"
        )
    if (offsets == pd.Timedelta(0)).all():
        return clock, ""
    return clock, "times are taken as their zone's clock shows them, without zone"


def read_numbers(values: pd.Series, what: str, name: str) -> np.ndarray:
    """Return a column as numbers; ``what`` is what a message calls it, ``name`` is the table's.

    Raises
    ------
    DataError
        A value is no number; the message names its row.
    """
    # pandas would count dates and durations in nanoseconds, and drop imaginary parts
    if values.dtype.kind in "cmM" or pd.api.types.is_datetime64_any_dtype(values):
        raise DataError(
            f"{name}: {what} is of type {values.dtype}",
            "give numbers in one unit, e.g. hours",
        )
    numbers = pd.to_numeric(values, errors="coerce")
    for row in np.flatnonzero(numbers.isna() & values.notna()).tolist():
        text = str(values.iloc[row])[:60]
        comma = "; --decimal , reads a decimal comma" if "," in text else ""
        raise DataError(
            f"{name}, row {row + 1}: {what} {text!r} is no number",
            f"give numbers, and leave a missing one empty{comma}",
        )
    return np.asarray(numbers, dtype=float)
