"""A forecasting task before its table is read: of an AMLB definition, of fev, of a long table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from amlb_ext.core.config import SourceConfig
from amlb_ext.sources.column_roles import csv_format
from amlb_ext.sources.panel import Gaps, PanelRoles, unused_columns
from amlb_ext.sources.read_table import check_table_file, read_table
from amlb_ext.sources.typed_files import read_parquet


@dataclass(frozen=True, kw_only=True)
class SeriesReading:
    """What becomes of gaps and further columns, of any source of series.

    Attributes
    ----------
    known : COLUMN
        Numbers that are known beforehand, such as prices or promotions (default: those that a
        definition of fev's names); --known A,B for several.
    gaps : {'refuse', 'zero', 'last', 'trim'}
        What becomes of missing steps and values: refused, 0, the value before, or the series begins
        behind its last gap.
    """

    known: Sequence[str] = ()
    gaps: Gaps = "refuse"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are known beforehand, one by one."""
        return tuple(name.strip() for word in self.known for name in word.split(","))


@dataclass(frozen=True, kw_only=True)
class SeriesTable:
    """A long table, how it is read, and which origins its definition asks for.

    Attributes
    ----------
    frame : DataFrame
        One row for each series and time.
    roles : PanelRoles
    origins, step : int, optional
        Test origins, and steps between two of them.
    first_cutoff : str, optional
        Time of the last value that is seen at the first test origin.
    notes : tuple of str
        What of the definition is not used.
    """

    frame: pd.DataFrame
    roles: PanelRoles
    origins: int | None = None
    step: int | None = None
    first_cutoff: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SeriesTask:
    """A forecasting task by its name; :meth:`open` downloads and reads its table.

    Attributes
    ----------
    name : str
        As its definition spells it, or the table's.
    source : str
        Where it comes from, for the manifest.
    open : callable
        Returns a :class:`SeriesTable`; raises what is wrong with this task.
    entry : mapping
        The keys of an AMLB definition, for a hard twin.
    """

    name: str
    source: str
    open: Callable[[], SeriesTable]
    entry: Mapping[str, Any] = field(default_factory=dict)


# The file of a long table: one row for each series and time.


def read_series_table(
    path: Path, roles: PanelRoles, options: SourceConfig, *, origins: int | None = None
) -> SeriesTable:
    """Read a file of series; of a Parquet file only the columns that have a role.

    Parameters
    ----------
    path : Path
    roles : PanelRoles
    options : SourceConfig
    origins : int, optional
        Test origins that a definition asks for.

    Raises
    ------
    SourceError, DataError
        As :func:`amlb_ext.sources.read_table.read_table`.
    """
    if path.suffix.lower() != ".parquet":
        frame = read_long_table(path, roles, options)
        return SeriesTable(frame=frame, roles=roles, origins=origins)
    # what is wrong with the file is told as for any other
    check_table_file(path)
    columns = (roles.series, roles.time, roles.target, *roles.known)
    frame = read_parquet(path, columns, dictionaries=[roles.series, roles.time]).frame
    notes: tuple[str, ...] = ()
    if len(frame.columns) == len(columns):
        notes = tuple(unused_columns(pq.read_schema(path).names, roles))
    return SeriesTable(frame=frame, roles=roles, origins=origins, notes=notes)


def read_long_table(
    path: Path, roles: PanelRoles, options: SourceConfig
) -> pd.DataFrame:
    """Read all columns of a file of series, or of forecasts.

    Parameters
    ----------
    path : Path
    roles : PanelRoles
    options : SourceConfig

    Raises
    ------
    SourceError, DataError
        As :func:`amlb_ext.sources.read_table.read_table`.
    """
    # ids such as 007 and NA stay as the file writes them
    ids = frozenset({roles.series})
    how = dataclasses.replace(csv_format(options), texts=ids, names=ids)
    return read_table(path, how).frame
