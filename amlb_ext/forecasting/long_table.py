"""The file of a long table: one row for each series and time."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd

from amlb_ext.core.config import SourceConfig
from amlb_ext.forecasting.panel import PanelRoles
from amlb_ext.sources.column_roles import csv_format
from amlb_ext.sources.read_table import read_table


def read_long_table(
    path: Path, roles: PanelRoles, options: SourceConfig
) -> pd.DataFrame:
    """Read a CSV or Parquet file of series, or of forecasts.

    Raises
    ------
    SourceError, DataError
        As :func:`amlb_ext.sources.read_table.read_table`.
    """
    # ids such as 007 stay as the file writes them
    how = dataclasses.replace(csv_format(options), texts=frozenset({roles.series}))
    return read_table(path, how).frame
