"""Rows of another table in the canonical form of a task that is there already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError
from amlb_ext.core.tables import MIN_ROWS, make_task
from amlb_ext.core.task import Column
from amlb_ext.sources.read_table import read_table


def read_features(
    path: Path, columns: Sequence[Column], target: str
) -> tuple[pd.DataFrame, list[str]]:
    """Read a table's feature columns in a task's canonical form.

    Parameters
    ----------
    path : Path
        ``.csv``, ``.parquet`` or ``.arff``.
    columns : sequence of Column
        The task's.
    target : str
        Ignored where the table has it.

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
    frame = read_table(path).frame
    names = [column.name for column in columns]
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise DataError(
            f"{path.name} lacks the feature {absent[0]!r} (it has {', '.join(frame.columns[:8])})",
            "name the columns as the task's own table does",
        )
    if len(frame) < MIN_ROWS:
        raise DataError(
            f"{path.name} has {len(frame)} rows, at least {MIN_ROWS} are needed", "give more rows"
        )
    notes = []
    if target in frame.columns:
        notes.append(f"{path.name}: the target {target!r} was not looked at")
    more = [name for name in frame.columns if name not in (*names, target)]
    if more:
        notes.append(f"{path.name}: {len(more)} other columns ignored: {', '.join(more[:5])}")
    for column in columns:
        if column.is_numeric:
            _check_numbers(frame[column.name], path)
    # a made-up target lends the rows of a task's table their way to canonical form
    made = make_task(
        frame[names].assign(**{target: np.arange(len(frame)) % 2}),
        target,
        name=path.name,
        kind="binary",
        types={c.name: "numeric" if c.is_numeric else "categorical" for c in columns},
        categories={c.name: c.categories for c in columns if not c.is_numeric},
    ).features
    for column in columns:
        if not column.is_numeric:
            known = made[column.name].cat.set_categories(list(column.categories))
            lost = known.isna() & made[column.name].notna()
            if lost.any():
                shown = made[column.name][lost].iloc[0]
                notes.append(
                    f"{path.name}: {int(lost.sum())} values of {column.name!r} are unknown to the "
                    f"task and count as missing, the first is {shown!r}"
                )
            made[column.name] = known
    return made, notes


def _check_numbers(values: pd.Series, path: Path) -> None:
    wrong = pd.to_numeric(values, errors="coerce").isna() & values.notna()
    if wrong.any():
        row = int(np.flatnonzero(wrong.to_numpy())[0])
        raise DataError(
            f"{path.name}: column {values.name!r} holds {values.iloc[row]!r} in row {row}, "
            "the task has numbers there",
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

    def keys(table: pd.DataFrame) -> pd.MultiIndex:
        row = pd.Series(pd.util.hash_pandas_object(table, index=False).to_numpy())
        return pd.MultiIndex.from_arrays([row, row.groupby(row).cumcount()])

    own, found = keys(features), np.zeros(len(features), dtype=bool)
    for table in tables:
        found |= own.isin(keys(table))
    return found
