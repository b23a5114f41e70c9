"""The file of a long table: one row for each series and time."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd

from amlb_ext.core.config import SourceConfig
from amlb_ext.forecasting.panel import PanelRoles
from amlb_ext.sources.column_roles import csv_format
from amlb_ext.sources.read_table import check_table_file, read_table
from amlb_ext.sources.typed_files import read_parquet


def read_long_table(
    path: Path,
    roles: PanelRoles,
    options: SourceConfig,
    *,
    only_roles: bool = False,
) -> pd.DataFrame:
    """Read a file of series, or of forecasts.

    Parameters
    ----------
    path : Path
    roles : PanelRoles
    options : SourceConfig
    only_roles : bool
        Read only the columns of series, time and target, where the file can be read so (Parquet).

    Raises
    ------
    SourceError, DataError
        As :func:`amlb_ext.sources.read_table.read_table`.
    """
    if path.suffix.lower() == ".parquet" and only_roles:
        # what is wrong with the file is told as for any other
        check_table_file(path)
        columns = (roles.series, roles.time, roles.target)
        return read_parquet(
            path, columns, dictionaries=[roles.series, roles.time]
        ).frame
    # ids such as 007 stay as the file writes them
    how = dataclasses.replace(csv_format(options), texts=frozenset({roles.series}))
    return read_table(path, how).frame
