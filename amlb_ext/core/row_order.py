"""What keeps the rows of a table together or in order when they are split: groups, and time.

Rows of one group (a patient, a machine, a shop) resemble each other, and so do rows of one week.
Where such rows stand on both sides of a split, a model is tested on what it has almost seen, and
looks better than it will be. A :class:`RowOrder` says which rows must not be parted, and which must
not be learnt from before their time; :mod:`amlb_ext.hardening.split` obeys it.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.dates import read_dates
from amlb_ext.core.errors import ConfigError, DataError, suggest_nearest
from amlb_ext.core.task import Task


@dataclass(frozen=True, kw_only=True)
class RowOrder:
    """Groups and times of rows.

    Attributes
    ----------
    time : ndarray of shape (n,) or None
        Seconds since 1970 of a column of dates, else the column's own numbers.
    group : ndarray of shape (n,), int, or None
    cluster : ndarray of shape (n,), int, or None
        Groups that a split may part, as those of many series in time: intervals alone count them.
    gap : float
        Smallest distance in time between a row that is learnt from and one that is tested on.
    time_name, group_name, cluster_name : str
        The columns; empty where there is none.
    groups : frozenset
        What the groups of ``group`` are called in the table.
    """

    time: np.ndarray | None = None
    group: np.ndarray | None = None
    cluster: np.ndarray | None = None
    gap: float = 0.0
    gap_text: str = ""
    time_name: str = ""
    group_name: str = ""
    cluster_name: str = ""
    groups: frozenset[Any] = field(default=frozenset(), repr=False)

    def take(self, rows: np.ndarray) -> RowOrder:
        """Return the order of some of the rows, by position."""
        arrays = self._arrays.items()
        return replace(self, **{name: values[rows] for name, values in arrays})

    @property
    def _arrays(self) -> dict[str, np.ndarray]:
        """Times, groups and clusters, those that there are."""
        arrays = {"time": self.time, "group": self.group, "cluster": self.cluster}
        return {name: values for name, values in arrays.items() if values is not None}

    @property
    def splits(self) -> bool:
        """Whether rows are split otherwise than at random."""
        return self.time is not None or self.group is not None

    @property
    def clusters(self) -> np.ndarray | None:
        """What rows depend on each other by, ``(n,)``; None where nothing is known."""
        return self.group if self.cluster is None else self.cluster

    def may_teach(self, held: np.ndarray) -> np.ndarray:
        """Return which rows may be learnt from before the held ones are predicted, ``(n,)`` bool.

        They are older than the oldest held row, by the gap at least, and of no group of the held
        ones.

        Parameters
        ----------
        held : ndarray of int
            Positions.

        Examples
        --------
        >>> order = RowOrder(time=np.arange(5.0), group=np.array([0, 1, 0, 1, 0]), gap=2)
        >>> order.may_teach(np.array([3])).tolist()
        [True, False, False, False, False]
        """
        n = len(self.time) if self.time is not None else len(self.group)  # type: ignore[arg-type]
        allowed = np.ones(n, dtype=bool)
        allowed[held] = False
        if self.time is not None:
            first = self.time[held].min()
            allowed &= (self.time < first) & (self.time <= first - self.gap)
        if self.group is not None:
            allowed &= ~np.isin(self.group, self.group[held])
        return allowed

    @property
    def text(self) -> str:
        """How rows are split, in words.

        Examples
        --------
        >>> RowOrder(time=np.arange(2.0), time_name="day").text
        "forward in time by 'day': training rows are older than test rows"
        """
        sentences = []
        if self.time is not None:
            sentence = f"forward in time by {self.time_name!r}: "
            sentence += "training rows are older than test rows"
            if self.gap:
                sentence += f", by at least {self.gap_text or f'{self.gap:g}'}"
            sentences.append(sentence)
        if self.group is not None:
            sentences.append(
                f"by groups of {self.group_name!r}: no group is on both sides"
            )
        return "; ".join(sentences) or "at random"

    @property
    def cluster_text(self) -> str:
        """What intervals count, in words; empty where they count rows."""
        if self.clusters is None:
            return ""
        n_groups = len(np.unique(self.clusters))
        name = self.cluster_name or self.group_name
        return f"intervals are clustered by the {n_groups} groups of {name!r}"

    @property
    def digest(self) -> str:
        """The sha256 of times, groups and gap."""
        digest = hashlib.sha256(f"{self.gap!r}".encode())
        for name, values in self._arrays.items():
            # the same bytes on every machine
            kind = "<f8" if name == "time" else "<i8"
            digest.update(name.encode() + np.asarray(values, dtype=kind).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class OrderedTable:
    """A table some columns of which order or group its rows.

    Attributes
    ----------
    name : str
        For messages.
    frame : DataFrame
        The features.
    target : str
    row_ids : ndarray of shape (n,), int
        Position of each row in the file.
    dates : mapping of str to str
        By column made of a date: the column that held the date.
    """

    name: str
    frame: pd.DataFrame
    target: str
    row_ids: np.ndarray
    dates: Mapping[str, str]

    @classmethod
    def of_task(cls, task: Task) -> OrderedTable:
        """Return the table of a task."""
        return cls(
            name=task.name,
            frame=task.features,
            target=task.target_name,
            row_ids=task.row_ids,
            dates=task.reading.dates,
        )


def read_order(
    table: OrderedTable,
    *,
    time: str | None = None,
    group: str | None = None,
    gap: str | None = None,
    cluster_by: str | None = None,
) -> RowOrder | None:
    """Return the order of a table's rows from the columns that the user names.

    Parameters
    ----------
    table : OrderedTable
    time, group, cluster_by : str, optional
        Columns among the features. A column that was read as a date is found by its parts.
    gap : str, optional
        A number in the unit of the times, or of dates a duration such as ``7D`` or ``12h``.

    Returns
    -------
    RowOrder or None
        None where no column is named.

    Raises
    ------
    ConfigError
        No such column, or a gap that does not fit.
    DataError
        A column that cannot order or group the rows; the message names the row.

    Examples
    --------
    >>> from amlb_ext.core.tables import make_task
    >>> days = pd.date_range("2024-01-01", periods=30).strftime("%Y-%m-%d")
    >>> table = pd.DataFrame({"day": days, "x": range(30), "y": [0.5, 1, 2] * 10})
    >>> table = OrderedTable.of_task(make_task(table, "y", name="t"))
    >>> order = read_order(table, time="day", gap="2D")
    >>> np.diff(order.time)[:2].tolist(), order.gap
    ([86400.0, 86400.0], 172800.0)
    """
    if time is None and gap is not None:
        raise ConfigError(
            f"--gap {gap} is a distance in time, and no column of times is named",
            "add --time COLUMN, or leave --gap out",
        )
    if time is None and group is None and cluster_by is None:
        return None
    if group is not None and cluster_by is not None:
        raise ConfigError(
            "--group and --cluster-by are both given, and rows of a group count as one already",
            "leave one out",
        )
    times, are_dates = _read_times(table, time) if time is not None else (None, False)
    codes, groups = _read_groups(table, group, "group")
    cluster, _ = _read_groups(table, cluster_by, "cluster-by")
    return RowOrder(
        time=times,
        group=codes,
        cluster=cluster,
        gap=0.0 if gap is None else _read_gap(gap, are_dates=are_dates),
        gap_text=gap or "",
        time_name=time or "",
        group_name=group or "",
        cluster_name=cluster_by or "",
        groups=groups,
    )


def order_columns(columns: Collection[str], names: Sequence[str | None]) -> set[str]:
    """Return the columns that hold times and groups as they were written.

    Examples
    --------
    >>> order_columns(["day_year", "shop"], ("day", "shop"))
    {'shop'}
    """
    return {name for name in names if name is not None and name in columns}


def _read_times(table: OrderedTable, name: str) -> tuple[np.ndarray, bool]:
    """Return the times of all rows, and whether they are dates."""
    seconds = f"{name}_seconds"
    if name not in table.frame and table.dates.get(seconds) == name:
        # read by --as NAME=date: its parts stand in its place
        values, are_dates = table.frame[seconds], True
    else:
        column = _find_column(table, name, "time")
        are_dates = not pd.api.types.is_numeric_dtype(column)
        values = column
        if are_dates:
            values, are_dates = _parse_times(table, column)
    _refuse_missing(table, values, f"--time {name}", "time")
    times = values.to_numpy(dtype=float)
    if times.min() == times.max():
        raise DataError(
            f"{table.name}: --time {name}, but all rows have the same time",
            "name another column, or leave --time out",
        )
    return times, are_dates


def _parse_times(table: OrderedTable, column: pd.Series) -> tuple[pd.Series, bool]:
    """Return a column of dates as seconds since 1970, or one of written numbers; and which."""
    texts = column.astype(object)
    written = texts.astype("str").where(texts.notna())
    times = read_dates(written, f"{table.name}: --time {column.name}")
    is_unread = times.isna() & texts.notna()
    if is_unread.any():
        numbers = pd.to_numeric(written, errors="coerce")
        if numbers.notna().equals(texts.notna()):
            return numbers, False
        row = int(np.flatnonzero(is_unread)[0])
        raise DataError(
            f"{table.name}: --time {column.name}, but row {table.row_ids[row] + 1} has "
            f"{texts.iloc[row]!r}, which is no date and no number",
            "name a column of dates or numbers",
        )
    return (times - pd.Timestamp(0, tz="UTC")).dt.total_seconds(), True


def _read_groups(
    table: OrderedTable, name: str | None, flag: str
) -> tuple[np.ndarray | None, frozenset[Any]]:
    """Return the group of each row as a number, and what the groups are called."""
    if name is None:
        return None, frozenset()
    column = _find_column(table, name, flag)
    _refuse_missing(table, column, f"--{flag} {name}", "group")
    codes, groups = pd.factorize(column)
    if len(groups) in (1, len(codes)):
        problem = "all rows are of one group"
        if len(groups) > 1:
            problem = "each row has a group of its own, so nothing is kept together"
        raise DataError(
            f"{table.name}: --{flag} {name}, but {problem}",
            f"name another column, or leave --{flag} out",
        )
    return np.asarray(codes, dtype=np.int64), frozenset(groups)


def _find_column(table: OrderedTable, name: str, flag: str) -> pd.Series:
    if name == table.target:
        raise ConfigError(
            f"--{flag} names {name!r}, the target of {table.name}", "name a feature"
        )
    if name not in table.frame:
        raise ConfigError(
            f"--{flag} names {name!r}, but {table.name} has no such column",
            suggest_nearest(name, map(str, table.frame.columns)),
        )
    return table.frame[name]


def _refuse_missing(
    table: OrderedTable, values: pd.Series, flag: str, what: str
) -> None:
    is_missing = values.isna().to_numpy()
    if is_missing.any():
        row = int(table.row_ids[np.flatnonzero(is_missing)[0]]) + 1
        raise DataError(
            f"{table.name}: {flag}, but {int(is_missing.sum())} rows have no {what}, the first is "
            f"row {row}",
            "fill them in, or leave these rows out",
        )


def _read_gap(gap: str, *, are_dates: bool) -> float:
    """Return a distance in the unit of the times."""
    # pandas takes a bare number for nanoseconds
    is_bare = gap.strip().replace(".", "", 1).isdigit()
    distance = -1.0
    with contextlib.suppress(ValueError):
        if not are_dates:
            distance = float(gap)
        elif not is_bare:
            distance = pd.Timedelta(gap).total_seconds()
    if not (distance >= 0 and np.isfinite(distance)):
        wanted = "a duration such as 7D or 12h" if are_dates else "a number, 0 or more"
        raise ConfigError(
            f"--gap {gap!r} is no distance between these times", f"give {wanted}"
        )
    return distance
