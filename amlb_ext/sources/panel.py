"""A long table as series on one calendar: read, checked, and what was left out.

Notation
--------
y_1 .. y_n : one series; H : horizon, steps to forecast; m : season, steps of a period
calendar : all times of the panel, a step apart; a position is an index into it
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from pandas.tseries.offsets import BaseOffset

from amlb_ext.core.display import format_count, format_percent
from amlb_ext.core.errors import ConfigError, DataError, suggest_nearest
from amlb_ext.core.frequency import (
    default_season,
    infer_frequency,
    infer_frequency_with_gaps,
    old_spelling,
    parse_frequency,
)
from amlb_ext.core.windows import LeftOut
from amlb_ext.sources.long_columns import (
    Clock,
    index_as_columns,
    read_numbers,
    read_times,
)

#: Longest calendar, so that a mistyped year does not fill the memory.
MAX_STEPS = 5_000_000
#: What becomes of steps that a series lacks.
Gaps = Literal["refuse", "zero", "last", "trim"]
_HOW_TO_MEND = (
    "--gaps zero or --gaps last fills gaps, --gaps trim keeps what stands behind the "
    "last one"
)


@dataclass(frozen=True, kw_only=True)
class PanelRoles:
    """Which columns of a long table hold what, and how far to forecast.

    Attributes
    ----------
    series, time, target : str
        Columns: which series a row belongs to, when it was measured, and the value.
    horizon : int
        H.
    season : int, optional
        m; what is usual for the frequency when omitted.
    frequency : str, optional
        Spelled as pandas does; seen from the times when omitted.
    known : tuple of str
        Columns that are known beforehand, such as a price or a promotion: numbers. One that never
        changes within a series is a static feature.
    gaps : {'refuse', 'zero', 'last', 'trim'}
        What becomes of a step that a series lacks, or whose target is missing: a gap between rows
        is refused and a series with a missing target left out; or 0 or the value before it takes
        the place; or the series begins behind its last gap. But for ``refuse`` missing values at
        the ends of a series are cut off.
    """

    series: str
    time: str
    target: str
    horizon: int
    season: int | None = None
    frequency: str | None = None
    known: tuple[str, ...] = ()
    gaps: Gaps = "refuse"

    def __post_init__(self) -> None:
        if self.horizon < 1:
            raise ConfigError(f"horizon {self.horizon}", "give 1 step or more")
        if self.season is not None and self.season < 1:
            raise ConfigError(
                f"season {self.season}", "give 1 (no season) or more steps"
            )


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Series on one calendar.

    Attributes
    ----------
    names : tuple of str
        Of the series, in text order.
    values : tuple of ndarray
        y of each series, without gaps.
    starts : ndarray of int
        Calendar position of each series' first value.
    calendar : DatetimeIndex
    frequency : str
        As pandas 1.5 spells it.
    horizon, season : int
        H and m, in steps.
    left_out : tuple of LeftOut
    notes : tuple of str
        What a user should know of how the table was read.
    known : tuple of str
        Columns that are known beforehand.
    known_values : tuple of ndarray
        Their values for each series, ``(n, len(known))``; empty where there is no such column.
    clock : Clock, optional
        Whose times the calendar has, where the table writes zones.
    """

    names: tuple[str, ...]
    values: tuple[np.ndarray, ...]
    starts: np.ndarray
    calendar: pd.DatetimeIndex
    frequency: str
    horizon: int
    season: int
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    known_values: tuple[np.ndarray, ...] = ()
    clock: Clock | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def ends(self) -> np.ndarray:
        """Calendar position of each series' last value."""
        lengths = np.array([len(y) for y in self.values], dtype=int)
        return self.starts + lengths - 1

    def past(self, item: int, cutoff: int) -> np.ndarray:
        """Return the values of a series up to and with a calendar position."""
        return self.values[item][: cutoff - self.starts[item] + 1]

    def future(self, item: int, cutoff: int) -> np.ndarray:
        """Return the H values of a series behind a calendar position."""
        first = cutoff - self.starts[item] + 1
        return self.values[item][first : first + self.horizon]

    def known_at(self, item: int, cutoff: int) -> np.ndarray:
        """Return what is known of a past and of the H steps behind it, ``(n + H, len(known))``."""
        last = cutoff - self.starts[item] + self.horizon
        return self.known_values[item][: last + 1]

    def time_text(self, position: int) -> str:
        """Return a time of the calendar, without hours where no time of it has any."""
        has_hours = bool((self.calendar != self.calendar.normalize()).any())
        time = self.calendar[position]
        return str(time) if has_hours else str(time.date())

    def future_times(self, cutoff: int) -> pd.DatetimeIndex:
        """Return the H times behind a calendar position."""
        return self.calendar[cutoff + 1 : cutoff + 1 + self.horizon]


def read_panel(frame: pd.DataFrame, roles: PanelRoles, name: str = "table") -> Panel:
    """Read a long table, one row for each series and time.

    Parameters
    ----------
    frame : DataFrame
    roles : PanelRoles
    name : str
        Of the table, for messages.

    Returns
    -------
    Panel
        Without the series that hold missing values; these are in ``left_out``.

    Raises
    ------
    DataError
        A column is missing; a time cannot be read, occurs twice in a series, or is off the
        calendar; a series has a gap; a target is no number. Messages name series and row, counted
        from 1 without the header.
    ConfigError
        The frequency is unknown, or has no usual season and none is given.

    Examples
    --------
    >>> times = pd.date_range("2020-01-01", periods=30, freq="MS")
    >>> frame = pd.DataFrame({"id": "a", "time": times, "y": range(30)})
    >>> panel = read_panel(frame, PanelRoles(series="id", time="time", target="y", horizon=6))
    >>> panel.frequency, panel.season, len(panel.values[0])
    ('MS', 12, 30)
    """
    frame = index_as_columns(frame)
    _check_columns(frame, roles, name)
    read = read_times(frame[roles.time], name)
    times, clock = read.times, read.clock()
    notes = [read.note] if read.note else []
    notes += unused_columns(map(str, frame.columns), roles)
    target = read_numbers(frame[roles.target], "the target", name)
    known = _read_known(frame, target, roles, name)
    series = frame[roles.series]
    if series.isna().any():
        row = int(np.flatnonzero(series.isna())[0]) + 1
        raise DataError(
            f"{name}, row {row}: no series",
            "fill the column, or drop the row; a series that is called NA stays one where the "
            "table is read with keep_default_na=False",
        )
    names, codes = _number_series(series, name)
    # the caller may have kept none: then the unsorted rows are gone before the sorted ones come
    del frame, series, read
    rows = np.lexsort((times.asi8, codes)).astype(np.int32)
    codes = codes[rows]
    times = times[rows]
    table = _SortedTable(name=name, names=names, codes=codes, times=times, rows=rows)
    _check_repeated(table)
    offset = _settle_frequency(table, roles.frequency)
    calendar, positions = _place_on_calendar(table, offset)
    if roles.gaps == "refuse":
        _check_gaps(table, positions, offset)
    parts = _SeriesParts(table, positions, target[rows], known[rows])
    for code in range(len(names)):
        parts.add(code, roles)
    return Panel(
        names=tuple(parts.names),
        values=tuple(parts.values),
        starts=np.array(parts.starts, dtype=int),
        calendar=calendar,
        frequency=old_spelling(offset),
        horizon=roles.horizon,
        season=roles.season or _usual_season(offset),
        left_out=tuple(parts.left_out),
        notes=(*notes, *parts.notes(roles.gaps)),
        known=roles.known,
        known_values=tuple(parts.known),
        clock=clock,
    )


@dataclass(frozen=True, kw_only=True)
class _SortedTable:
    """The rows of a long table by series and time.

    Attributes
    ----------
    name : str
    names : ndarray of str
        Of the series.
    codes : ndarray of shape (n,), int
        Series of each row.
    times : DatetimeIndex of shape (n,)
    rows : ndarray of shape (n,), int
        Where each row stands in the table as it was given.
    """

    name: str
    names: np.ndarray
    codes: np.ndarray
    times: pd.DatetimeIndex
    rows: np.ndarray

    def place(self, position: int) -> str:
        """Return how a message names a row."""
        series = self.names[self.codes[position]]
        time = self.times[position]
        return f"{self.name}, series {series!r}, row {self.row(position)} ({time})"

    def row(self, position: int) -> int:
        """Return the number of a row in the table as it was given, counted from 1."""
        return int(self.rows[position]) + 1

    def within_series(self) -> np.ndarray:
        """Return which neighbours, k and k + 1, belong to one series."""
        return self.codes[1:] == self.codes[:-1]


def _number_series(series: pd.Series, table: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the names of the series in text order, and the position of each row's among them.

    Names that differ by outer blanks alone are halves of one series, and refused.

    NOTE: no text is made for a row, only for a series: a long table has hundreds of rows of each.
    """
    codes, distinct = pd.factorize(series)
    texts = pd.Series(distinct).astype(str).to_numpy(dtype=object)
    # two values may be one text, such as 1 and "1"
    names, positions = np.unique(texts, return_inverse=True)
    stripped: dict[str, str] = {}
    for name in names:
        other = stripped.setdefault(name.strip(), name)
        if other != name:
            raise DataError(
                f"{table}: the series {other!r} and {name!r} differ by blanks alone",
                "write the name of a series in one way",
            )
    return names, positions.reshape(-1).astype(np.int32)[codes]


def _check_columns(frame: pd.DataFrame, roles: PanelRoles, name: str) -> None:
    columns = [str(column) for column in frame.columns]
    main = {"series": roles.series, "time": roles.time, "target": roles.target}
    named = [*main.items(), *(("known", column) for column in roles.known)]
    for flag, column in named:
        if column not in columns:
            raise DataError(
                f"{name} has no column {column!r}, named by --{flag}",
                suggest_nearest(column, columns),
            )
    if len({column for _, column in named}) < len(named):
        raise ConfigError(
            "--series, --time, --target and --known name one column twice",
            "give each column one role",
        )
    if frame.empty:
        raise DataError(f"{name} has no rows", "give a table with series")


def unused_columns(columns: Iterable[str], roles: PanelRoles) -> list[str]:
    """Return a sentence on the columns that nobody named; none where there are none."""
    used = {roles.series, roles.time, roles.target, *roles.known}
    unused = [column for column in columns if column not in used]
    if not unused:
        return []
    shown = ", ".join(unused[:5]) + (", ..." if len(unused) > 5 else "")
    count = format_count(len(unused), "further column")
    verb = "is" if len(unused) == 1 else "are"
    return [
        f"{count} {verb} left out ({shown}); --known names those that are known beforehand"
    ]


def _read_known(
    frame: pd.DataFrame, target: np.ndarray, roles: PanelRoles, name: str
) -> np.ndarray:
    """Return the columns that are known beforehand, ``(n, k)``."""
    known = np.empty((len(frame), len(roles.known)))
    for number, column in enumerate(roles.known):
        known[:, number] = read_numbers(frame[column], f"the column {column!r}", name)
        if np.array_equal(known[:, number], target, equal_nan=True):
            raise DataError(
                f"{name}: {column!r}, named by --known, has the values of the target",
                "name what is known before the target is",
            )
    return known


def _check_repeated(table: _SortedTable) -> None:
    same_time = table.times.asi8[1:] == table.times.asi8[:-1]
    repeated = np.flatnonzero(table.within_series() & same_time)
    if len(repeated):
        raise DataError(
            f"{table.place(repeated[0] + 1)}: this time occurs twice in the series",
            "keep one row for each series and time; name another --series column if several "
            "series share a name",
        )


def _settle_frequency(table: _SortedTable, text: str | None) -> BaseOffset:
    if text is not None:
        return parse_frequency(text)
    lengths = np.bincount(table.codes)
    # the longest series knows best; a broken one must not decide for all others
    longest = np.argsort(-lengths, kind="stable")[:20]
    for infer in (infer_frequency, infer_frequency_with_gaps):
        for code in longest:
            offset = infer(table.times[table.codes == code])
            if offset is not None:
                return offset
    raise DataError(
        f"{table.name}: the times of series {table.names[longest[0]]!r} are not a step apart",
        "give --frequency, e.g. MS, D or H",
    )


def _place_on_calendar(
    table: _SortedTable, offset: BaseOffset
) -> tuple[pd.DatetimeIndex, np.ndarray]:
    """Return the calendar of all series, and the position of each row in it."""
    first, last = table.times.min(), table.times.max()
    spelling = old_spelling(offset)
    steps_per_row = (last - first) / max(offset + first - first, pd.Timedelta(1))
    if steps_per_row > MAX_STEPS:
        raise DataError(
            f"{table.name}: from {first} to {last} there are {steps_per_row:,.0f} steps of "
            f"{spelling}",
            "is a year mistyped? Otherwise give another --frequency",
        )
    calendar = pd.date_range(first, last, freq=offset).as_unit("ns")
    if len(calendar) == 0 or calendar[0] != first:
        position = int(np.argmin(table.times.asi8))
        raise DataError(
            f"{table.place(position)}: not a time of frequency {spelling}",
            "give the frequency that the times have with --frequency",
        )
    positions = calendar.get_indexer(table.times).astype(np.int32)
    off = np.flatnonzero(positions < 0)
    if len(off):
        _refuse_other_frequency(table, off[0], spelling)
        raise DataError(
            f"{table.place(off[0])}: not a step of {spelling} from the others",
            "move the time to the series' steps, or give another --frequency",
        )
    return calendar, positions


def _refuse_other_frequency(table: _SortedTable, position: int, spelling: str) -> None:
    """Raise where the series of a row has a frequency of its own."""
    code = table.codes[position]
    own = infer_frequency(table.times[table.codes == code])
    if own is not None and old_spelling(own) != spelling:
        raise DataError(
            f"{table.place(position)}: this series has frequency {old_spelling(own)}, and not "
            f"{spelling}",
            "give each frequency as a table of its own, or another --frequency",
        )


def _check_gaps(table: _SortedTable, positions: np.ndarray, offset: BaseOffset) -> None:
    gaps = np.flatnonzero(table.within_series() & (np.diff(positions) != 1))
    if not len(gaps):
        return
    _refuse_other_frequency(table, gaps[0] + 1, old_spelling(offset))
    missing = int(positions[gaps[0] + 1] - positions[gaps[0]]) - 1
    raise DataError(
        f"{table.place(gaps[0] + 1)}: {format_count(missing, 'step')} missing before it; AMLB "
        "would score such a series as if there were no gap",
        _HOW_TO_MEND,
    )


def _usual_season(offset: BaseOffset) -> int:
    usual = default_season(offset)
    if usual is None:
        raise ConfigError(
            f"no season is usual for the frequency {old_spelling(offset)}",
            "give --season, the steps of a period; 1 for none",
        )
    return usual


class _SeriesParts:
    """The series of a sorted table, one after another, with their gaps mended or left out.

    Parameters
    ----------
    table : _SortedTable
    positions : ndarray of shape (n,), int
        Of each row in the calendar.
    target : ndarray of shape (n,)
    known : ndarray of shape (n, k)
        What is known beforehand.
    """

    def __init__(
        self,
        table: _SortedTable,
        positions: np.ndarray,
        target: np.ndarray,
        known: np.ndarray,
    ) -> None:
        self._table = table
        self._positions = positions
        self._target = target
        self._known = known
        counts = np.bincount(table.codes, minlength=len(table.names))
        self._bounds = np.r_[0, np.cumsum(counts)]
        self.names: list[str] = []
        self.values: list[np.ndarray] = []
        self.starts: list[int] = []
        self.known: list[np.ndarray] = []
        self.left_out: list[LeftOut] = []
        self._filled: list[int] = []
        self._trimmed: list[int] = []

    def add(self, code: int, roles: PanelRoles) -> None:
        """Add a series, or a reason why it takes part in nothing."""
        rows = np.arange(self._bounds[code], self._bounds[code + 1])
        reason = self._fault(rows, roles)
        if roles.gaps != "refuse" and not reason:
            rows = self._without_ends(rows, roles.gaps)
            reason = "" if len(rows) else "all values are missing"
        name = str(self._table.names[code])
        if reason:
            self.left_out.append(LeftOut(series=name, reason=reason))
            return
        places = self._positions[rows]
        values = self._target[rows]
        # where each step takes what is known from: its row, or the last one before it
        source = rows
        if places[-1] - places[0] >= len(rows) or np.isnan(values).any():
            steps = np.arange(places[0], places[-1] + 1)
            source = rows[np.searchsorted(places, steps, side="right") - 1]
            gappy = pd.Series(values, places).reindex(steps)
            self._filled.append(int(gappy.isna().sum()))
            filled = gappy.fillna(0.0) if roles.gaps == "zero" else gappy.ffill()
            values = filled.to_numpy()
        self.names.append(name)
        self.values.append(values)
        self.starts.append(int(places[0]))
        if roles.known:
            self.known.append(self._known[source])

    def _fault(self, rows: np.ndarray, roles: PanelRoles) -> str:
        """Return why a series cannot take part; empty where it can."""
        target = self._target[rows]
        is_broken = np.isinf(target) if roles.gaps != "refuse" else ~np.isfinite(target)
        if is_broken.any():
            row = self._table.row(rows[np.argmax(is_broken)])
            remedy = " (--gaps fills or trims them)" if np.isnan(target).any() else ""
            count = int(is_broken.sum())
            return f"{count} missing or infinite values, the first in row {row}{remedy}"
        for place, column in np.argwhere(~np.isfinite(self._known[rows])):
            row = self._table.row(rows[place])
            return f"{roles.known[column]!r}, known beforehand, is missing in row {row}"
        return ""

    def _without_ends(self, rows: np.ndarray, gaps: Gaps) -> np.ndarray:
        """Return the rows from the first to the last that has a value, or from the last gap on."""
        is_seen = ~np.isnan(self._target[rows])
        seen = np.flatnonzero(is_seen)
        if not len(seen):
            return seen
        first = seen[0]
        if gaps == "trim":
            breaks = np.flatnonzero(np.diff(self._positions[rows[seen]]) != 1)
            first = seen[breaks[-1] + 1] if len(breaks) else first
        # what is not there needs no mention
        self._trimmed.append(int(is_seen[:first].sum()))
        return rows[first : seen[-1] + 1]

    def notes(self, gaps: Gaps) -> list[str]:
        """Return a sentence on the gaps that were mended; none where there were none."""
        filled, trimmed = sum(self._filled), sum(self._trimmed)
        total = sum(map(len, self.values))
        if gaps == "trim" and trimmed:
            return [
                f"{np.count_nonzero(self._trimmed)} series begin behind their last gap: "
                f"{trimmed:,} of {trimmed + total:,} values are not used"
            ]
        if not self._filled:
            return []
        what = "0" if gaps == "zero" else "the value before it"
        known = ""
        if self.known:
            known = "; what is known beforehand is taken from the step before"
        return [
            f"{filled:,} missing steps of {len(self._filled)} series have {what} in their place "
            f"({format_percent(filled / total)} of all values); they are scored like measured ones"
            f"{known}"
        ]
