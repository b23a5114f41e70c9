"""Texts that are dates: recognised for a warning, and read where the user says so.

The parts of a date are those of pandas (``Series.dt``). NOTE[OWN] skrub's ``DatetimeEncoder`` gives
the same numbers; five lines of pandas are no reason for a dependency.
"""

from __future__ import annotations

import re
from datetime import date

import pandas as pd

from amlb_ext.core.errors import DataError

#: How dates are written, beside ISO 8601; each may be followed by a time of day.
_DAY_FORMATS = (
    "%d.%m.%Y",
    "%d.%m.%y",
    "%Y/%m/%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%b %d, %Y",
    "%d %B %Y",
    "%B %d, %Y",
)
_TIME_FORMATS = ("", " %H:%M", " %H:%M:%S")
#: What a text with a date begins with: three groups, of which one may be the name of a month.
_LIKE_A_DATE = (
    r"^\s*(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}"
    r"|\d{1,2}[ -][A-Za-z]{3,9}\.?[ -]\d{4}|[A-Za-z]{3,9} \d{1,2}, \d{4})(?:[T ].*)?\s*$"
)
#: A time of day in ISO 8601, and the distance from UTC behind it.
_OFFSET = re.compile(
    r"([T ]\d\d?(?::?\d\d){0,2}(?:[.,]\d+)?)\s*(?:[Zz]|[+-]\d\d(?::?\d\d)?)\s*$"
)
#: The numbers that a date is read as, in the order of their columns.
DATE_PARTS = ("year", "month", "day", "weekday", "seconds")


class AmbiguousDateError(ValueError):
    """Every date can be read in two ways: as day and month, and as month and day."""


def look_like_dates(texts: pd.Series) -> bool:
    """Whether every text is a date with year, month and day.

    Examples
    --------
    >>> look_like_dates(pd.Series(["2024-02-29", "2024-03-01 12:30"]))
    True
    >>> look_like_dates(pd.Series(["31.12.2024", "1.2.2025"]))
    True
    >>> look_like_dates(pd.Series(["1.2.3", "2024"]))
    False
    """
    if len(texts) == 0 or not texts.str.match(_LIKE_A_DATE).all():
        return False
    try:
        return bool(parse_dates(texts).notna().all())
    except AmbiguousDateError:
        return True


def parse_dates(texts: pd.Series) -> pd.Series:
    """Return texts as times in UTC; what is no date becomes missing.

    ISO 8601 comes first. Of the other formats the one that reads most texts decides for all of
    them, so that no column mixes days and months.

    Parameters
    ----------
    texts : Series of str

    Raises
    ------
    AmbiguousDateError
        Two formats read the same number of texts, as different dates.

    Examples
    --------
    >>> parse_dates(pd.Series(["1.2.2024", "31.12.2024"])).dt.month.tolist()
    [2, 12]
    >>> parse_dates(pd.Series(["1/2/2024", "2/3/2024"]))
    Traceback (most recent call last):
    ...
    amlb_ext.core.dates.AmbiguousDateError: 1/2/2024
    """
    stripped = texts.str.strip()
    iso = pd.to_datetime(stripped, format="ISO8601", errors="coerce", utc=True)
    if iso.notna().sum() >= texts.notna().sum() / 2:
        return iso
    best = iso
    rival = None
    for day_format in _DAY_FORMATS:
        times = _parse_format(stripped, day_format)
        n_read, n_best = times.notna().sum(), best.notna().sum()
        if n_read > n_best:
            best, rival = times, None
        elif n_read and n_read == n_best and not times.equals(best):
            rival = times
    if rival is not None:
        differs = (rival != best) & best.notna()
        raise AmbiguousDateError(str(texts[differs].iloc[0]))
    return best


def read_dates(texts: pd.Series, what: str) -> pd.Series:
    """Return texts as :func:`parse_dates` does; ``what`` is what an error calls them.

    Raises
    ------
    DataError
        Where each text can be read in two ways.
    """
    try:
        return parse_dates(texts)
    except AmbiguousDateError as error:
        raise DataError(
            f"{what} holds dates such as {str(error)!r}, of which nothing tells day and month "
            "apart",
            "write them as YEAR-MONTH-DAY",
        ) from None


def _parse_format(texts: pd.Series, day_format: str) -> pd.Series:
    """Return what one way of writing the day reads, with and without a time of day."""
    times: pd.Series | None = None
    for time_format in _TIME_FORMATS:
        read = pd.to_datetime(
            texts, format=day_format + time_format, errors="coerce", utc=True
        )
        times = read if times is None else times.fillna(read)
    assert times is not None
    return times


#: How a quarter, a month and a week are written; an ISO week may have a day.
_QUARTER = re.compile(r"(\d{4})[- ]?Q([1-4])|Q([1-4])[- ](\d{4})", re.I)
_MONTH = re.compile(r"(\d{4})[- ]?M(\d\d?)", re.I)
_WEEK = re.compile(r"(\d{4})-?W(\d\d)(?:-?([1-7]))?", re.I)
#: How many digits a number has that stands for a year, a month or a day, and how it is read.
_DIGITS = {4: "%Y", 6: "%Y%m", 8: "%Y%m%d"}


def periods_as_dates(texts: pd.Series) -> pd.Series:
    """Return texts with the first day of a quarter, month or week in its place; others stay.

    Parameters
    ----------
    texts : Series of str

    Examples
    --------
    >>> periods_as_dates(pd.Series(["2000Q2", "2000-W01", "2000M03", "2000-04-01"])).tolist()
    ['2000-04-01', '2000-01-03', '2000-03-01', '2000-04-01']
    """
    return texts.map(_first_day, na_action="ignore")


def _first_day(text: str) -> str:
    text = text.strip()
    if found := _QUARTER.fullmatch(text):
        year, quarter = found[1] or found[4], int(found[2] or found[3])
        return f"{year}-{3 * quarter - 2:02}-01"
    if found := _MONTH.fullmatch(text):
        return f"{found[1]}-{int(found[2]):02}-01"
    if found := _WEEK.fullmatch(text):
        try:
            day = date.fromisocalendar(int(found[1]), int(found[2]), int(found[3] or 1))
        except ValueError:  # a year without a week 53
            return text
        return day.isoformat()
    return text


def numbers_as_dates(values: pd.Series) -> pd.Series | None:
    """Return years, ``YYYYMM`` or ``YYYYMMDD`` as times; None where numbers are none of these.

    Examples
    --------
    >>> numbers_as_dates(pd.Series([199912, 200001])).dt.month.tolist()
    [12, 1]
    >>> numbers_as_dates(pd.Series([1, 2])) is None
    True
    """
    if values.isna().any() or (values % 1 != 0).any() or (values < 0).any():
        return None
    texts = values.astype("int64").astype(str)
    how = _DIGITS.get(len(texts.iloc[0]) if len(texts) else 0)
    if how is None or texts.str.len().nunique() > 1:
        return None
    times = pd.to_datetime(texts, format=how, errors="coerce")
    # a counter has four digits, too
    years = times.dt.year
    is_plausible = times.notna().all() and years.between(1678, 2261).all()
    return times if is_plausible else None


def without_offsets(texts: pd.Series) -> pd.Series:
    """Return texts of dates as the clock on their wall shows them: without a distance from UTC.

    Parameters
    ----------
    texts : Series of str

    Examples
    --------
    >>> without_offsets(pd.Series(["2024-03-31T00:00+01:00", "2024-03-31"])).tolist()
    ['2024-03-31T00:00', '2024-03-31']
    """
    return texts.str.replace(_OFFSET, r"\1", regex=True)


def split_dates(times: pd.Series, clock: pd.Series | None = None) -> pd.DataFrame:
    """Return the parts of times as numbers, one column each; missing stays missing.

    Parameters
    ----------
    times : Series of datetime64, with a time zone
    clock : Series of datetime64, optional
        What the clock showed, where it is not that of the times' zone.

    Returns
    -------
    DataFrame of shape (n, 5)
        ``year``, ``month``, ``day``, ``weekday`` (Monday is 0) by the local calendar, and
        ``seconds`` since 1970 in UTC.

    Examples
    --------
    >>> midnight = pd.to_datetime(pd.Series(["1970-01-02"])).dt.tz_localize("Europe/Berlin")
    >>> split_dates(midnight).iloc[0].tolist()
    [1970.0, 1.0, 2.0, 4.0, 82800.0]
    """
    clock = times if clock is None else clock
    since_1970 = times - pd.Timestamp(0, tz="UTC")
    parts = {
        "year": clock.dt.year,
        "month": clock.dt.month,
        "day": clock.dt.day,
        "weekday": clock.dt.day_of_week,
        "seconds": since_1970.dt.total_seconds(),
    }
    return pd.DataFrame({name: parts[name].astype("float64") for name in DATE_PARTS})
