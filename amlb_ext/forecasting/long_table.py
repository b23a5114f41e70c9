"""The file of a long table: one row for each series and time."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from amlb_ext.core.config import SourceConfig
from amlb_ext.forecasting.panel import PanelRoles, unused_columns
from amlb_ext.forecasting.series_tasks import SeriesTable
from amlb_ext.sources.column_roles import csv_format
from amlb_ext.sources.read_table import check_table_file, read_table
from amlb_ext.sources.typed_files import read_parquet


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
