"""Models, predictions and labelled tables from files, for the command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.comparison.labelled import read_labelled_rows
from amlb_ext.core.config import BaselineConfig, SourceConfig, SplitConfig
from amlb_ext.core.errors import ConfigError, DataError, suggest_nearest
from amlb_ext.core.row_order import (
    OrderedTable,
    RowOrder,
    order_columns,
    read_order,
)
from amlb_ext.core.task import Reading
from amlb_ext.hardening.baseline.from_file import is_predictions_file, load_fitted_model
from amlb_ext.hardening.baseline.predictions_file import read_predictions_table
from amlb_ext.hardening.baseline.service import connect_service, is_service
from amlb_ext.hardening.identifiers import columns_left_out, split_column_lists
from amlb_ext.sources.column_roles import apply_roles, csv_format
from amlb_ext.sources.read_table import read_table
from amlb_ext.sources.reading import ColumnReading, TableReading, describe_reading


@dataclass(frozen=True, kw_only=True)
class LabelledTable:
    """A table from a file, as the models are given it.

    Attributes
    ----------
    name : str
    features : DataFrame of shape (n, d)
    target : Series of shape (n,)
    left_out : DataFrame of shape (n, c)
        Columns that the user leaves out.
    reading : Reading
    notes : tuple of str
    """

    name: str
    features: pd.DataFrame
    target: pd.Series
    left_out: pd.DataFrame
    reading: Reading
    notes: tuple[str, ...]


def read_labelled_table(
    path: Path, target: str, options: SourceConfig | None = None
) -> LabelledTable:
    """Read a table and its target as the user says.

    Parameters
    ----------
    path : Path
    target : str
    options : SourceConfig, optional
        ``read_as``, ``drop``, ``sep`` and ``decimal`` are used.

    Raises
    ------
    SourceError, DataError
        The file cannot be read, or has no such column.
    ConfigError
        An option names a column that the table lacks, or leaves out the target.
    """
    options = options or SourceConfig()
    table = read_table(path, csv_format(options))
    names = [str(name) for name in table.frame.columns]
    if target not in names:
        raise DataError(
            f"{path.name} has no column {target!r}", suggest_nearest(target, names)
        )
    options = split_column_lists(options, names)
    for flag, named in (("--drop", options.drop), ("--as", options.read_as)):
        for name in named:
            if name not in names:
                raise ConfigError(
                    f"{flag} names {name!r}, but {path.name} has no such column",
                    suggest_nearest(name, names),
                )
    left_out = columns_left_out(options)
    if target in options.drop:
        raise ConfigError(f"--drop names {target!r}, the target", "name a feature")
    left_out_columns = table.frame[left_out]
    table = apply_roles(table, options, [target])
    return LabelledTable(
        name=path.name,
        # a column that is both left out and read as a date has gone with the dates
        features=table.frame.drop(columns=[target, *left_out], errors="ignore"),
        target=table.frame[target],
        left_out=left_out_columns,
        reading=Reading("given", table.named, table.dates),
        notes=table.notes,
    )


def with_order(
    table: LabelledTable, split: SplitConfig, needed: Collection[str] = ()
) -> tuple[LabelledTable, RowOrder | None]:
    """Return a table without the columns that order its rows, and the order.

    Parameters
    ----------
    table : LabelledTable
    split : SplitConfig
        ``time``, ``group``, ``cluster_by`` and ``gap`` are used.
    needed : collection of str
        Columns that a model was fitted on, which stay.

    Raises
    ------
    ConfigError, DataError
        As :func:`amlb_ext.core.row_order.read_order`.
    """
    order = read_order(
        OrderedTable(
            name=table.name,
            frame=table.features,
            target=str(table.target.name),
            row_ids=np.arange(len(table.features)),
            dates=table.reading.dates,
        ),
        time=split.time,
        group=split.group,
        gap=split.gap,
        cluster_by=split.cluster_by,
    )
    names = (split.time, split.group, split.cluster_by)
    dropped = order_columns(list(table.features), names)
    features = table.features.drop(columns=sorted(dropped - set(needed)))
    return dataclasses.replace(table, features=features), order


def describe_table(
    table: LabelledTable, *, model: Any, kind: str | None
) -> TableReading:
    """Describe how a table was read; see :mod:`amlb_ext.sources.reading`."""
    rows = read_labelled_rows(table.features, table.target, model=model, kind=kind)
    task = dataclasses.replace(rows.task, reading=table.reading).renamed(table.name)
    reading = describe_reading(task)
    ignored = []
    for name, values in table.left_out.items():
        column = ColumnReading(
            name=str(name),
            read_as="ignored",
            levels=int(values.nunique()),
            missing=int(values.isna().sum()),
            example="",
            warning="left out, as you said",
        )
        ignored.append(column)
    return dataclasses.replace(reading, columns=(*reading.columns, *ignored))


def read_model(file: str, trust_pickle: bool) -> Any:
    """Return a fitted model, or predictions, from a file, or the model behind an address.

    Predictions are a table with one row for each row of the data, in its order, see
    :mod:`amlb_ext.hardening.baseline.predictions_file`.

    Raises
    ------
    ModelError
        The file cannot be read, holds no model, or is a pickle that nobody trusts; or what stands
        there is no address of a service.
    """
    if is_service(file):
        return connect_service(BaselineConfig(model=file))
    path = Path(file)
    if is_predictions_file(path.name):
        return read_predictions_table(path)
    return load_fitted_model(path, trust_pickle)
