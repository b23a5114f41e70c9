"""Files that say the types of their columns: Parquet, Arrow (Feather), workbooks, lines of JSON."""

from __future__ import annotations

import json
import re
import warnings
import zipfile
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from amlb_ext.core.errors import DataError, SourceError
from amlb_ext.core.frames import NA_TEXTS, check_names, plain_frame, to_pandas
from amlb_ext.core.numbers import parse_number
from amlb_ext.core.packed import COPY_BYTES, UnpackLimits, open_zip
from amlb_ext.core.parquet import check_expansion
from amlb_ext.core.task import ColumnType
from amlb_ext.sources.arff import not_utf8
from amlb_ext.sources.table import Table

#: Most values of a table that a short file can pad: a line may lack most of the columns.
MAX_CELLS = 500_000_000
#: Most values of a sheet, which is padded to its last row and column.
MAX_SHEET_CELLS = 50_000_000
_CELL = re.compile(rb"""\br\s?=\s?["']([A-Z]{1,3})(\d{1,7})["']""")
#: The longest text that it finds.
_CELL_BYTES = 16
_TEXT_TYPES = (pa.string(), pa.large_string())
#: What pandas and Arrow raise for a damaged file, or for metadata of pandas that lie about it.
_DAMAGED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    NotImplementedError,
    OSError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
)


def read_parquet(
    path: Path,
    columns: Sequence[str] | None = None,
    dictionaries: Sequence[str] = (),
    limits: UnpackLimits | None = None,
) -> Table:
    """Read a Parquet file of any ending; named index levels become columns.

    Parameters
    ----------
    path : Path
    columns : sequence of str, optional
        Read these of its columns only; all where it lacks one, so that the caller can say what
        there is in place of it.
    dictionaries : sequence of str
        Columns of texts to read as categories, a number for each row: texts that recur in
        hundreds of rows are in memory once.
    limits : UnpackLimits, optional
        How much it may stand for.

    Raises
    ------
    SourceError, DataError
        As :func:`~amlb_ext.sources.read_table.read_table`.
    """
    try:
        stored = pq.read_schema(path)
        if columns is not None:
            columns = list(columns) if {*columns} <= {*stored.names} else None
        check_expansion(path, columns, limits)
        texts = [field.name for field in stored if field.type in _TEXT_TYPES]
        # named nowhere, so that it is gone when the frame stands
        frame = to_pandas(
            pq.read_table(
                path,
                columns=columns,
                # a folder called year=2024 would add a column
                partitioning=None,
                read_dictionary=[name for name in dictionaries if name in texts],
                # a file read ahead is in memory twice
                pre_buffer=False,
            ),
            what=path.name,
        )
    except _DAMAGED as error:
        raise _invalid_file(path, "Parquet file", error) from None
    return _typed_table(frame, path)


def read_arrow(path: Path, limits: UnpackLimits | None = None) -> Table:
    """Read an Arrow file, Feather's or a stream's; named index levels become columns.

    Raises
    ------
    SourceError, DataError
        As :func:`~amlb_ext.sources.read_table.read_table`.
    """
    try:
        arrow = _open_arrow(path, limits or UnpackLimits())
        frame = to_pandas(arrow, what=path.name)
    except _DAMAGED as error:
        raise _invalid_file(path, "Arrow file", error) from None
    return _typed_table(frame, path)


def _open_arrow(path: Path, limits: UnpackLimits) -> pa.Table:
    with path.open("rb") as file:
        start = file.read(6)
    packed = path.stat().st_size
    with pa.OSFile(str(path)) as stream:
        # a stream has no mark of its own
        if start.startswith(b"ARROW1"):
            reader = pa.ipc.open_file(stream)
            batches = map(reader.get_batch, range(reader.num_record_batches))
        else:
            batches = reader = pa.ipc.open_stream(stream)
        kept = []
        for batch in batches:
            kept.append(batch)
            size = sum(part.nbytes for part in kept)
            limits.check_bytes(path.name, size, packed)
    return pa.Table.from_batches(kept, reader.schema)


def read_excel(path: Path, limits: UnpackLimits | None = None) -> Table:
    """Read the first sheet of a workbook; a note tells where it has more.

    Raises
    ------
    SourceError, DataError
        As :func:`~amlb_ext.sources.read_table.read_table`; openpyxl is not installed.
    """
    try:
        # a workbook is a zip file
        with (
            open_zip(path, limits or UnpackLimits()) as parts,
            warnings.catch_warnings(),
        ):
            _check_sheets(path, parts)
            # of styles, charts and other things that are no part of the table
            warnings.simplefilter("ignore", UserWarning)
            with pd.ExcelFile(path, engine="openpyxl") as book:
                sheets = book.sheet_names
                header = pd.read_excel(book, header=None, nrows=1)
                names = [] if header.empty else header.iloc[0].dropna().astype(str)
                # looked at before pandas does, which would rename the second one, "a.1"
                check_names(names, path.name)
                frame = pd.read_excel(
                    book,
                    dtype=object,
                    keep_default_na=False,
                    na_values=sorted(NA_TEXTS),
                )
    except ImportError:
        raise SourceError(
            f"{path.name} is a workbook, and openpyxl, which reads it, is not installed",
            "pip install 'hardsynth[excel]', or save the sheet as .csv",
        ) from None
    except _DAMAGED as error:
        raise _invalid_file(path, "workbook", error) from None
    notes: tuple[str, ...] = ()
    if len(sheets) > 1:
        notes = (
            f"{path.name} has {len(sheets)} sheets; {sheets[0]!r}, the first, is read",
        )
    return _typed_table(frame, path, notes)


def _check_sheets(path: Path, parts: zipfile.ZipFile) -> None:
    """Refuse a workbook whose sheet is padded to its last cell, and that cell is far away."""
    for part in parts.namelist():
        # a sheet may have any name
        if not part.lower().endswith(".xml"):
            continue
        n_rows = n_columns = 0
        with parts.open(part) as stream:
            rest = b""
            while block := stream.read(COPY_BYTES):
                for letters, row in _CELL.findall(rest + block):
                    n_rows = max(n_rows, int(row))
                    column = reduce(lambda high, low: 26 * high + low - 64, letters, 0)
                    n_columns = max(n_columns, column)
                rest = block[-_CELL_BYTES:]
        check_cells(path, n_rows, n_columns, MAX_SHEET_CELLS)


def read_json_lines(path: Path) -> Table:
    """Read a file with one JSON object on each line; a column that a line lacks is missing there.

    Raises
    ------
    SourceError, DataError
        As :func:`~amlb_ext.sources.read_table.read_table`; with the line.
    """
    columns: dict[str, list[Any]] = {}
    n_rows = 0
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                for name, value in _parse_line(line, number, path).items():
                    column = columns.setdefault(name, [])
                    # what earlier lines lack
                    column += [None] * (n_rows - len(column))
                    column.append(value)
                n_rows += 1
                check_cells(path, n_rows, len(columns))
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from None
    for column in columns.values():
        column += [None] * (n_rows - len(column))
    return _typed_table(pd.DataFrame(columns, dtype=object), path)


def _parse_line(line: str, number: int, path: Path) -> dict[str, Any]:
    try:
        row = json.loads(line, parse_float=parse_number, object_pairs_hook=_as_row)
        if isinstance(row, dict):
            return row
        problem = f"it is a {type(row).__name__}"
    except (ValueError, RecursionError) as error:
        problem = str(error)[:200]
    raise SourceError(
        f"{path.name}: line {number} cannot be read: {problem}",
        'write one object on each line: {"age": 41, "city": "Oslo"}',
    )


def _as_row(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("it has a name twice")
    return row


def check_cells(path: Path, n_rows: int, n_columns: int, most: int = MAX_CELLS) -> None:
    """Refuse a table of more than ``most`` values, unless its file has a byte for each.

    Raises
    ------
    DataError
    """
    if n_rows * n_columns > max(most, path.stat().st_size):
        raise DataError(
            f"{path.name} stands for {n_rows:,} rows of {n_columns:,} columns, but at most "
            f"{most:,} values are read",
            "give fewer rows or columns",
        )


def _invalid_file(path: Path, form: str, error: Exception) -> SourceError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return SourceError(
        f"{path.name} is not a valid {form}: {lines[0][:500]}",
        "write it again, or as .csv",
    )


def _typed_table(frame: pd.DataFrame, path: Path, notes: tuple[str, ...] = ()) -> Table:
    """Return a table whose categories are those that the file declares."""
    frame, index, index_notes = _without_index(frame)
    frame, plain_notes = plain_frame(frame, what=path.name)
    declared = frame.select_dtypes("category")
    categories = {
        str(name): tuple(values.cat.categories) for name, values in declared.items()
    }
    types: dict[str, ColumnType] = dict.fromkeys(categories, "categorical")
    return Table(
        name=path.name,
        frame=frame,
        types=types,
        categories=categories,
        notes=(*notes, *index_notes, *plain_notes),
        index=index,
    )


def _without_index(
    frame: pd.DataFrame,
) -> tuple[pd.DataFrame, pd.Index | None, tuple[str, ...]]:
    """Make columns of named index levels; return an index without a name apart, and a note."""
    names = [level for level in frame.index.names if level is not None]
    for name in frame.columns.intersection(names):
        raise DataError(
            f"the index and a column are both called {name!r}",
            "rename one of them, or write the file without its index",
        )
    if names:
        return frame.reset_index(), None, ()
    # Row numbers are what pandas writes where nobody set an index.
    notes: tuple[str, ...] = ()
    if not pd.api.types.is_integer_dtype(frame.index.dtype):
        notes = ("the unnamed index was dropped; name it to keep it as a column",)
    return frame.reset_index(drop=True), frame.index, notes
