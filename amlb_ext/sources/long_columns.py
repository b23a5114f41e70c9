"""Columns of a long table, of series or of forecasts, as times and numbers."""

from __future__ import annotations

import re

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
    named = [name for name in frame.index.names if name is not None]
    new = [name for name in named if name not in frame.columns]
    return frame.reset_index(level=new) if new else frame


def read_times(values: pd.Series, name: str) -> tuple[pd.DatetimeIndex, list[str]]:
    """Return times without a zone, and a note where they had one."""
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
        notes: list[str] = []
        if index.tz is not None:
            universal = index.tz_convert("UTC").tz_localize(None)
            index, notes = _take_clock(index.tz_localize(None), universal)
    else:
        # the same times recur in every series, so each is read once
        codes, distinct = pd.factorize(values)
        texts = pd.Series(distinct).astype("string").astype(object)
        texts = periods_as_dates(pd.Series(texts.to_numpy(), dtype="str"))
        try:
            universal = pd.DatetimeIndex(parse_dates(texts))
            clock = pd.DatetimeIndex(parse_dates(without_offsets(texts)))
        except AmbiguousDateError as error:
            raise DataError(
                f"{name}: the time {str(error)!r} may be read in two ways",
                "write times as 2024-01-31",
            ) from None
        index, notes = _take_clock(clock.tz_localize(None), universal.tz_localize(None))
        # a missing time has the code -1, for which there is no text
        index = index.append(pd.DatetimeIndex([pd.NaT]))[codes]
    missing = np.flatnonzero(index.isna())
    if len(missing):
        row = int(missing[0])
        text = str(values.iloc[row])[:60]
        # pandas before 3 cannot hold such a year, so its time is missing
        year = re.match(r"\s*(\d{4,})-", text)
        if year and not _FIRST_YEAR <= int(year[1]) <= _LAST_YEAR:
            raise _far_year(name, row, text)
        raise DataError(
            f"{name}, row {row + 1}: {text!r} is no time",
            "write times as 2024-01-31 or 2024-01-31 13:00",
        )
    if index.min().year < _FIRST_YEAR or index.max().year > _LAST_YEAR:
        years = index.year
        row = int(np.flatnonzero((years < _FIRST_YEAR) | (years > _LAST_YEAR))[0])
        raise _far_year(name, row, str(index[row]))
    return index.as_unit("ns"), notes


def _far_year(name: str, row: int, time: str) -> DataError:
    return DataError(
        f"{name}, row {row + 1}: the year of {time} is outside {_FIRST_YEAR} to {_LAST_YEAR}, "
        "which is as far as pandas and AMLB reach",
        "is the year mistyped? Otherwise leave the row out",
    )


def _take_clock(
    clock: pd.DatetimeIndex, universal: pd.DatetimeIndex
) -> tuple[pd.DatetimeIndex, list[str]]:
    """Return what the clock of a zone shows, or UTC where that would bend the steps of the series.

    Days, weeks and months begin by the local calendar, which a change of clocks leaves alone. Hours
    do not: one is missing, and another one occurs twice.
    """
    offsets = (clock - universal).dropna().unique()
    hours = (clock - clock.normalize()).dropna().unique()
    if len(offsets) > 1 and len(hours) > 1:
        return universal, [
            "times are written in UTC, since their offset changes within the table; days may "
            "begin at another hour then"
        ]
    if (offsets == pd.Timedelta(0)).all():
        return clock, []
    return clock, ["times are taken as their zone's clock shows them, without zone"]


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
    broken = np.flatnonzero(numbers.isna() & values.notna())
    if len(broken):
        row = int(broken[0])
        text = str(values.iloc[row])[:60]
        comma = "; --decimal , reads a decimal comma" if "," in text else ""
        raise DataError(
            f"{name}, row {row + 1}: {what} {text!r} is no number",
            f"give numbers, and leave a missing one empty{comma}",
        )
    return np.asarray(numbers, dtype=float)
