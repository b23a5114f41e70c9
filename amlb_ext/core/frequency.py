"""How often a series is measured: as this pandas knows it, and as AMLB's older pandas does.

AMLB v2.1.7 runs with pandas 1.5, which writes hours as ``H`` and ends of months as ``M``; since
pandas 2.2 these are ``h`` and ``ME``. Suites have the old spelling, users may type either.
"""

from __future__ import annotations

import re
import warnings

import pandas as pd
from pandas.tseries.frequencies import to_offset
from pandas.tseries.offsets import BaseOffset

from amlb_ext.core.errors import ConfigError

#: The spelling of pandas 1.5 by that of pandas 2.2 and later, where they differ.
_OLD_BY_NEW = {
    "h": "H",
    "min": "T",
    "s": "S",
    "ms": "L",
    "us": "U",
    "ns": "N",
    "bh": "BH",
    "ME": "M",
    "BME": "BM",
    "QE": "Q",
    "BQE": "BQ",
    "YE": "A",
    "YS": "AS",
    "BYE": "BA",
    "BYS": "BAS",
}
_NEW_BY_OLD = {old: new for new, old in _OLD_BY_NEW.items()} | {"Y": "YE"}
#: How many steps make a season, by the old spelling without its anchor.
_SEASONS = {
    "H": 24,
    "D": 7,
    "B": 5,
    "W": 52,
    "M": 12,
    "MS": 12,
    "BM": 12,
    "BMS": 12,
    "Q": 4,
    "QS": 4,
    "BQ": 4,
    "BQS": 4,
    "A": 1,
    "AS": 1,
}
_PARTS = re.compile(r"(\d*)([A-Za-z]+)(-[A-Za-z]+)?")


def parse_frequency(text: str) -> BaseOffset:
    """Return the offset of a frequency in the spelling of any pandas.

    Raises
    ------
    ConfigError
        No pandas knows it.

    Examples
    --------
    >>> parse_frequency("H") == parse_frequency("h"), parse_frequency("MS").freqstr
    (True, 'MS')
    """
    parts = _PARTS.fullmatch(text.strip())
    spellings = [text]
    if parts is not None:
        count, name, anchor = parts.groups("")
        # the old spelling last: pandas before 2.2 knows no other, later ones warn of it
        names = (_NEW_BY_OLD.get(name, name), name, _OLD_BY_NEW.get(name, name))
        spellings = [f"{count}{each}{anchor}" for each in names]
    for spelling in spellings:
        try:
            return to_offset(spelling)
        except ValueError:
            continue
    raise ConfigError(
        f"the frequency {text!r} is unknown",
        "give one of pandas, e.g. MS (start of month), D, W-SUN, H, 15T",
    )


def old_spelling(offset: BaseOffset) -> str:
    """Return a frequency as pandas 1.5, and so AMLB v2.1.7, spells it.

    Examples
    --------
    >>> [old_spelling(parse_frequency(text)) for text in ("h", "ME", "QS", "15min", "W-MON")]
    ['H', 'M', 'QS-JAN', '15T', 'W-MON']
    """
    parts = _PARTS.fullmatch(offset.freqstr)
    if parts is None:
        return str(offset.freqstr)
    count, name, anchor = parts.groups("")
    return f"{count}{_OLD_BY_NEW.get(name, name)}{anchor}"


def default_season(offset: BaseOffset) -> int | None:
    """Return how many steps usually make a season; None where nothing is usual.

    Examples
    --------
    >>> [default_season(parse_frequency(text)) for text in ("MS", "H", "QE", "15min")]
    [12, 24, 4, None]
    """
    parts = _PARTS.fullmatch(old_spelling(offset))
    if parts is None or parts[1] not in ("", "1"):
        return None
    return _SEASONS.get(parts[2])


def infer_frequency(times: pd.DatetimeIndex) -> BaseOffset | None:
    """Return the frequency of ascending times; None where they have none.

    Examples
    --------
    >>> infer_frequency(pd.DatetimeIndex(["2020-01-01", "2020-02-01", "2020-03-01"])).freqstr
    'MS'
    """
    if len(times) < 3:
        return None
    with warnings.catch_warnings():
        # pandas 3.1 warns that it will return an offset; either will do here
        warnings.simplefilter("ignore")
        try:
            found = pd.infer_freq(times)
        except ValueError:  # times that repeat
            return None
    return None if found is None else to_offset(found)


#: Fewest times that tell a frequency where others are missing.
_FEWEST_TIMES = 4


def infer_frequency_with_gaps(times: pd.DatetimeIndex) -> BaseOffset | None:
    """Return the frequency of ascending times of which some are missing; None where none fits.

    It is that of the longest stretch that has one, and all other times must lie on its steps.

    Examples
    --------
    >>> days = pd.bdate_range("2024-01-01", "2024-03-29").drop(["2024-01-15", "2024-02-19"])
    >>> infer_frequency_with_gaps(days).freqstr
    'B'
    """
    size = len(times)
    while size >= _FEWEST_TIMES:
        # stretches overlap, so that one without a gap is not missed for where it begins
        for first in range(0, len(times) - size + 1, max(size // 4, 1)):
            offset = infer_frequency(times[first : first + size])
            if offset is None:
                continue
            if times.isin(pd.date_range(times[0], times[-1], freq=offset)).all():
                return offset
        size //= 2
    return None
