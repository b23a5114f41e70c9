"""Parquet files: written whole or not at all, and read within limits.

A Parquet file may say a million times "the same again" in a few bytes, so that what comes out of
one is counted first, as for any packed file (:class:`~amlb_ext.core.packed.UnpackLimits`).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from amlb_ext.core.files import write_file
from amlb_ext.core.frames import plain_frame
from amlb_ext.core.numbers import holds_numbers, replace_as_objects
from amlb_ext.core.packed import UnpackLimits

#: Rows of a row group where each holds a long list: a group is in memory until it is written.
ROWS_AT_ONCE = 500
#: Bytes of a value in memory, by Parquet's physical type; of an entry of the others, its place.
_VALUE_BYTES = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT96": 12}
_TEXTS = "BYTE_ARRAY"
#: Rows whose texts are counted at once.
_COUNTED_ROWS = 1 << 16


def read_frame(path: Path, **options: Any) -> pd.DataFrame:
    """Read a Parquet file of our own making, which somebody may have changed since.

    Parameters
    ----------
    path : Path
    **options
        For :func:`pandas.read_parquet`.

    Raises
    ------
    SourceError
        It stands for too much.
    OSError, ValueError
        It is missing or damaged.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.parquet")
    ...     _ = write_parquet(pa.table({"a": [1, 2]}), path)
    ...     len(read_frame(path))
    2
    """
    check_expansion(path)
    return pd.read_parquet(path, **options)


def check_expansion(
    path: Path,
    columns: Collection[str] | None = None,
    limits: UnpackLimits | None = None,
) -> None:
    """Refuse a Parquet file that stands for much more than its size, before it is read.

    Parameters
    ----------
    path : Path
    columns : collection of str, optional
        Those that will be read; all by default.
    limits : UnpackLimits, optional

    Raises
    ------
    SourceError
        What it stands for, in bytes, is beyond the limits.
    OSError, ValueError
        It is no Parquet file.
    """
    limits = limits or UnpackLimits()
    packed = path.stat().st_size
    metadata = pq.read_metadata(path)
    size = 0
    most_text = 0
    text_paths: dict[str, None] = {}
    for group in range(metadata.num_row_groups):
        for position in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(position)
            name = chunk.path_in_schema
            if columns is not None and name.split(".")[0] not in columns:
                continue
            kind = chunk.physical_type
            length = metadata.schema.column(position).length
            size += chunk.num_values * max(_VALUE_BYTES.get(kind, 8), length)
            if kind == _TEXTS:
                text_paths[name] = None
                # each value may be the one entry of a dictionary
                most_text += chunk.num_values * chunk.total_uncompressed_size
    limits.check_bytes(path.name, size, packed)
    if size + most_text <= limits.ratio_from:
        return
    # as numbers of entries of a dictionary, which is as small as the file
    with pq.ParquetFile(path, read_dictionary=list(text_paths)) as file:
        batches = file.iter_batches(_COUNTED_ROWS, columns=list(text_paths))
        for batch in batches:
            size += sum(_text_bytes(column) for column in batch.columns)
            limits.check_bytes(path.name, size, packed)


def _text_bytes(values: pa.Array) -> int:
    """Return the bytes of all texts in a column, which may stand in lists and structures."""
    if pa.types.is_struct(values.type):
        return sum(_text_bytes(part) for part in values.flatten())
    if hasattr(values, "flatten") and pa.types.is_nested(values.type):
        return _text_bytes(values.flatten())
    if not pa.types.is_dictionary(values.type):
        return int(values.nbytes)
    lengths = pc.binary_length(values.dictionary.cast(pa.large_binary()))
    return int(pc.sum(pc.take(lengths, values.indices)).as_py() or 0)


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
            # exact numbers as decimals, since Arrow takes no mixture of types
            present = values.notna()
            decimals = [Decimal(str(value)) for value in values[present]]
            plain[name] = replace_as_objects(values, present, decimals)
    return write_file(path, lambda part: plain.to_parquet(part, index=False))


def write_parquet(table: pa.Table, path: Path, **options: Any) -> str:
    """Write a table whole or not at all, and leave no file open if that fails.

    Parameters
    ----------
    table : pyarrow.Table
        With the metadata of the file.
    path : Path
        Place of the file; its folder is made if missing.
    **options
        As of :func:`write_parquet_parts`.

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

    return write_parquet_parts([table], path, **options)


def write_parquet_parts(
    parts: Iterable[pa.Table],
    path: Path,
    *,
    row_group_size: int | None = None,
    **options: Any,
) -> str:
    """Write tables of one schema as one file, whole or not at all, each as a row group.

    Only one of them is in memory at a time where they are made one by one.

    Parameters
    ----------
    parts : iterable of pyarrow.Table
        One or more.
    path : Path
        As in :func:`write_parquet`.
    row_group_size : int, optional
        Most rows of a group.
    **options
        For :class:`pyarrow.parquet.ParquetWriter`.

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
        # Opened here: if not even the first bytes find room, a file that pyarrow opened itself
        # stays open as long as the error lives.
        with (
            file_path.open("wb") as file,
            pq.ParquetWriter(file, first.schema, **options) as writer,
        ):
            for table in itertools.chain([first], tables):
                writer.write_table(table, row_group_size)

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
