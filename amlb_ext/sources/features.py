"""Read another table in the canonical form of an existing task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError
from amlb_ext.core.frames import with_columns
from amlb_ext.core.tables import MIN_ROWS, make_task
from amlb_ext.core.task import Column, ColumnType
from amlb_ext.sources.read_table import read_table
from amlb_ext.sources.table import Table


def read_features(
    given: Path | Table,
    columns: Sequence[Column],
    target: str,
    *,
    has_target: bool = False,
) -> tuple[pd.DataFrame, list[str]]:
    """Read a table's feature columns in a task's canonical form.

    Parameters
    ----------
    given : Path or Table
        A file of any table that can be read, or one that was read.
    columns : sequence of Column
        The task's.
    target : str
        Ignored where the table has it.
    has_target : bool
        Whether the table should have the target: no note is then taken of it.

    Returns
    -------
    features : DataFrame
    notes : list of str

    Raises
    ------
    SourceError, DataError
        As :func:`~amlb_ext.sources.read_table.read_table`; a missing column, a text among numbers,
        a number beyond AMLB's range, too few rows.
    """
    table = given if isinstance(given, Table) else read_table(given)
    frame, path = table.frame, Path(table.name)
    names = [column.name for column in columns]
    missing = [name for name in names if name not in frame.columns]
    if missing:
        shown = ", ".join(frame.columns[:8])
        raise DataError(
            f"{path.name} lacks the feature {missing[0]!r} (its columns: {shown})",
            "name the columns as the task's own table does",
        )
    if len(frame) < MIN_ROWS:
        raise DataError(
            f"{path.name} has {len(frame)} rows, but at least {MIN_ROWS} are needed",
            "give more rows",
        )
    types: dict[str, ColumnType] = {}
    categories = {}
    # The task's types, whatever this table looks like: a column of 0 and 1 may be any of three.
    for column in columns:
        types[column.name] = "numeric" if column.is_numeric else "categorical"
        if column.is_numeric:
            _check_is_numeric(frame[column.name], path)
        else:
            categories[column.name] = column.categories
    # A task needs a target, and these rows have none: any column of two values will do.
    placeholder = np.arange(len(frame)) % 2
    features = make_task(
        with_columns(frame[names], {target: placeholder}),
        target,
        name=path.name,
        kind="binary",
        types=types,
        categories=categories,
    ).features
    notes = []
    if not has_target and target in frame.columns:
        notes.append(f"{path.name}: the target {target!r} is ignored")
    others = frame.columns.difference([*names, target], sort=False)
    if len(others):
        shown = ", ".join(others[:5])
        notes.append(f"{path.name}: {len(others)} other columns ignored: {shown}")
    for name, known in categories.items():
        # The conversion added the categories that the task does not have.
        values = features[name]
        features[name] = values.cat.set_categories(list(known))
        lost = values[features[name].isna() & values.notna()]
        if len(lost):
            notes.append(
                f"{path.name}: {len(lost)} values of {name!r} are unknown to the task and "
                f"count as missing, the first is {lost.iloc[0]!r}"
            )
    return features, notes


def _check_is_numeric(values: pd.Series, path: Path) -> None:
    # Coerced to numbers, texts become missing, and they alone.
    numbers = pd.to_numeric(values, errors="coerce")
    for row in np.flatnonzero(numbers.isna() & values.notna()):
        raise DataError(
            f"{path.name}: column {values.name!r} holds {values.iloc[row]!r} in row {row}, "
            "but the task has numbers there",
            "write a number, or leave the field empty",
        )


def find_copies(features: pd.DataFrame, tables: Sequence[pd.DataFrame]) -> np.ndarray:
    """Return which rows also occur in one of the tables, ``(N,)`` bool.

    The second of two equal rows is a copy only where a table holds the row twice, so rows that
    agree by chance in coarse columns are not all taken for copies.

    Examples
    --------
    >>> features, test_rows = pd.DataFrame({"a": [1.0, 1.0, 2.0]}), pd.DataFrame({"a": [1.0, 3.0]})
    >>> find_copies(features, [test_rows]).tolist()
    [True, False, False]
    """
    keys = _row_keys(features)
    is_copy = np.zeros(len(features), dtype=bool)
    for table in tables:
        is_copy |= keys.isin(_row_keys(table))
    return is_copy


def _row_keys(table: pd.DataFrame) -> pd.MultiIndex:
    """Return a key of each row: the hash of its values, and how many equal rows came before."""
    # Both tables are in canonical form, so equal values have equal hashes.
    values = pd.util.hash_pandas_object(table, index=False).to_numpy()
    hashes = pd.Series(values)
    earlier_copies = hashes.groupby(hashes).cumcount()
    return pd.MultiIndex.from_arrays([hashes, earlier_copies])
