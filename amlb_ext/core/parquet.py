"""Parquet files that are whole or absent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from amlb_ext.core.files import write_file
from amlb_ext.core.frames import plain_frame
from amlb_ext.core.numbers import holds_numbers, replace_as_objects

#: Rows of a row group where each holds a long list: a group is in memory until it is written.
ROWS_AT_ONCE = 500


def write_frame(frame: pd.DataFrame, path: Path, *, what: str = "X") -> str:
    """Write any data frame, in the types that tasks are made of, without its index.

    Parameters
    ----------
    frame : DataFrame
        As :func:`amlb_ext.core.frames.plain_frame` takes it.
    path : Path
    what : str
        What the table is called in an error.

    Returns
    -------
    str
        The sha256 of the file.

    Raises
    ------
    DataError
        As :func:`amlb_ext.core.frames.plain_frame`.
    SuiteError
        As :func:`write_parquet`.

    Examples
    --------
    >>> import tempfile
    >>> mixed = pd.DataFrame({"a": [1, "x"], "b": [2**70, 0.5]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.parquet")
    ...     digest = write_frame(mixed, path)
    ...     pd.read_parquet(path)["a"].tolist()
    ['1', 'x']
    """
    plain, _ = plain_frame(frame, what=what)
    for name, values in plain.items():
        if holds_numbers(values):
            plain[name] = _of_one_type(values)
    return write_file(path, lambda part: plain.to_parquet(part, index=False))


def _of_one_type(values: pd.Series) -> pd.Series:
    """Return exact numbers as decimals, since Arrow takes no mixture of types."""
    present = values.notna()
    decimals = [Decimal(str(value)) for value in values[present]]
    return replace_as_objects(values, present, decimals)


def write_parquet(table: pa.Table, path: Path, **options: Any) -> str:
    """Write a table whole or not at all, and leave no file open if that fails.

    Parameters
    ----------
    table : pyarrow.Table
        With the metadata of the file.
    path : Path
        Place of the file; its folder is made if missing.
    **options
        For :func:`pyarrow.parquet.write_table`.

    Returns
    -------
    str
        The sha256 of the file, as 64 hexadecimal digits.

    Raises
    ------
    SuiteError
        When the disk or the quota is full or the folder cannot be written; nothing is left
        behind.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.parquet")
    ...     digest = write_parquet(pa.table({"a": [1, 2]}), path)
    ...     pq.read_table(path).to_pydict()
    {'a': [1, 2]}
    """

    def write(part: Path) -> None:
        # Opened here: if not even the first bytes find room, a file that pyarrow opened itself
        # stays open as long as the error lives.
        with part.open("wb") as file:
            pq.write_table(table, file, **options)

    return write_file(path, write)


def write_parquet_parts(parts: Iterable[pa.Table], path: Path) -> str:
    """Write tables of one schema as one file, whole or not at all, each as a row group.

    Only one of them is in memory at a time where they are made one by one.

    Parameters
    ----------
    parts : iterable of pyarrow.Table
        One or more.
    path : Path
        As in :func:`write_parquet`.

    Returns
    -------
    str
        The sha256 of the file, as 64 hexadecimal digits.

    Raises
    ------
    SuiteError
        As :func:`write_parquet`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.parquet")
    ...     digest = write_parquet_parts([pa.table({"a": [1]}), pa.table({"a": [2]})], path)
    ...     pq.read_table(path).to_pydict()
    {'a': [1, 2]}
    """

    def write(file_path: Path) -> None:
        tables = iter(parts)
        first = next(tables)
        with (
            file_path.open("wb") as file,
            pq.ParquetWriter(file, first.schema) as writer,
        ):
            writer.write_table(first)
            for table in tables:
                writer.write_table(table)

    return write_file(path, write)


def list_array(parts: Sequence[np.ndarray]) -> pa.Array:
    """Return arrays as one column of lists, without a Python object for each number.

    Parameters
    ----------
    parts : sequence of ndarray
        One-dimensional, one or more, of one type.

    Examples
    --------
    >>> list_array([np.array([1.0, 2.0]), np.array([3.0])]).to_pylist()
    [[1.0, 2.0], [3.0]]
    """
    ends = np.cumsum([0, *(len(part) for part in parts)])
    values = pa.array(np.concatenate(parts))
    return pa.ListArray.from_arrays(pa.array(ends, type=pa.int32()), values)
