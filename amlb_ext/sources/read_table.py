"""A file on disk to a table: ``.csv``, ``.parquet``, ``.arff``."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from amlb_ext.core.errors import DataError, SourceError, is_utf8
from amlb_ext.core.missing import NA_TEXTS
from amlb_ext.core.numbers import (
    LONG_NUMBER,
    MAX_EXACT_INTEGER,
    holds_numbers,
    narrow_to_float64,
    parse_number,
    replace_as_objects,
)
from amlb_ext.core.task import ColumnType
from amlb_ext.sources.arff import not_utf8, read_arff
from amlb_ext.sources.odd_numbers import may_hold_odd_numbers
from amlb_ext.sources.table import Table

#: Most values of a Parquet file, which may say a thousand times "the same again" in a few bytes.
MAX_CELLS = 2_000_000_000

#: How a CSV file is read, whatever pandas is installed.
_CSV: dict[str, Any] = {
    "encoding": "utf-8-sig",
    "index_col": False,
    "keep_default_na": False,
    "na_values": sorted(NA_TEXTS),
}
_ROWS_AT_ONCE = 50_000
#: What pandas and Arrow raise for a damaged file, or for notes of pandas' own that lie about it.
_DAMAGED = (
    *(OSError, ValueError, NotImplementedError, LookupError, TypeError, AttributeError),
    ArithmeticError,
)


def read_table(path: Path) -> Table:
    """Read a table by its file ending.

    Parameters
    ----------
    path : Path
        ``.csv`` (comma, UTF-8, with a header), ``.parquet`` or ``.arff``.

    Returns
    -------
    Table
        CSV values are typed as pandas does, which is also how AMLB reads them: ``007`` is the
        number 7 (which is noted), and empty fields and the texts of
        :data:`~amlb_ext.core.missing.NA_TEXTS` are missing. Numbers that are different but the
        same in ``float64`` stay exact, as ``object``.

    Raises
    ------
    SourceError
        No such file, an unknown ending, an empty or damaged file, another encoding.
    DataError
        Column names that occur twice, fields beyond the header, values that are no scalars.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.csv"
    ...     _ = path.write_text("x,y\\n1,a\\n2,\\n")
    ...     read_table(path).frame["y"].isna().tolist()
    [False, True]
    """
    read = READERS.get(path.suffix.lower())
    if read is None:
        raise SourceError(
            f"{path.name} has the ending {path.suffix or 'none'!r}",
            f"tables end in {', '.join(READERS)}",
        )
    if not is_utf8(str(path)):
        raise SourceError(f"the name of the file {path} is not UTF-8", "rename the file or folder")
    if not path.exists():
        raise SourceError(f"no such file: {path}", "check the path")
    if not path.is_file():
        raise SourceError(f"{path} is no file", "give the path of one table")
    if path.stat().st_size == 0:
        raise SourceError(f"{path.name} is empty", "give a table with a header and rows")
    return read(path)


def _read_csv(path: Path) -> Table:
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            header = next(csv.reader(handle), [])
        _check_header(path, header)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(path, low_memory=False, **_CSV)
        frame, notes = _with_exact_numbers(_without_texts_for_missing(frame), path)
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except pd.errors.ParserWarning:
        raise DataError(
            f"{path.name} has rows with more fields than the header",
            "name every column in the first line",
        ) from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, csv.Error, ValueError) as error:
        said = str(error).strip().replace("\n", " ")
        raise SourceError(
            f"{path.name} is no valid CSV file: {said}",
            "use commas, one header line, and quotes around fields with commas",
        ) from None
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from None
    return Table(path.name, _plain(frame, path), notes=notes)


def _without_texts_for_missing(frame: pd.DataFrame) -> pd.DataFrame:
    """Mark empty fields as missing where pandas left them texts.

    It does so in a column of whole numbers up to 2**64 that also has gaps.
    """
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            gaps = frame[name].isin(NA_TEXTS)
            if gaps.any():
                frame[name] = frame[name].astype(object).where(~gaps, None)
    return frame


def _with_exact_numbers(frame: pd.DataFrame, path: Path) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Replace columns of numbers that ``float64`` makes equal, and name what was read otherwise.

    The file is read as text a second time only where it holds long numbers or leading zeros.
    """
    numbers = [
        position
        for position, dtype in enumerate(frame.dtypes)
        if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
    ]
    if not numbers or not may_hold_odd_numbers(path):
        return frame, ()
    long: dict[int, dict[int, int | float | Decimal]] = {position: {} for position in numbers}
    zeros: dict[int, list[str]] = {position: [] for position in numbers}
    chunks = pd.read_csv(path, usecols=numbers, dtype=str, chunksize=_ROWS_AT_ONCE, **_CSV)
    for chunk in chunks:
        for position, name in zip(numbers, chunk.columns, strict=True):
            texts = chunk[name].dropna()
            some = texts[texts.str.len() >= 16]
            some = some[some.str.contains(LONG_NUMBER.pattern)]
            if frame.dtypes.iloc[position] == "float64":
                long[position] |= {row: parse_number(text) for row, text in some.items()}
            zeros[position] += texts[texts.str.match(r"\s*[+-]?0\d")].tolist()
    notes = []
    for position, name in zip(numbers, frame.columns[numbers], strict=True):
        if long[position]:
            chosen = frame.index.to_series().isin(long[position].keys())
            exact = replace_as_objects(frame[name], chosen, list(long[position].values()))
            frame[name] = narrow_to_float64(exact)
        if zeros[position]:
            notes.append(
                f"column {name!r}: {len(zeros[position])} values with leading zeros, "
                f"{zeros[position][0].strip()!r} the first, are read as numbers, as AMLB reads "
                "them; put a letter before them to keep them as texts"
            )
    return frame, tuple(notes)


def _check_header(path: Path, header: list[str]) -> None:
    doubled = sorted({name for name in header if name and header.count(name) > 1})
    if doubled:
        raise DataError(
            f"{path.name}: the column name {doubled[0]!r} occurs more than once",
            "rename one of them",
        )
    if len(header) == 1:
        for sign, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if sign in header[0]:
                raise SourceError(
                    f"{path.name} seems to be separated by {word}",
                    "separate its fields by commas and write decimals with a point",
                )


def read_parquet(path: Path) -> Table:
    """Read a Parquet file of any ending; named index levels become columns.

    Raises
    ------
    SourceError, DataError
        As :func:`read_table`.
    """
    try:
        about = pq.read_metadata(path)
        if about.num_rows * about.num_columns > MAX_CELLS:
            raise DataError(
                f"{path.name} stands for {about.num_rows} rows of {about.num_columns} columns, at "
                f"most {MAX_CELLS:,} values are read",
                "give fewer rows or columns",
            )
        # without partitioning: a folder called year=2024 would add a column
        frame = pd.read_parquet(path, partitioning=None)
    except _DAMAGED as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0][:500]
        raise SourceError(
            f"{path.name} is no valid Parquet file: {said}", "write it again, or as .csv"
        ) from None
    frame, notes = _without_index(frame)
    frame = _with_exact_gaps(_plain(frame, path), path)
    categories = {
        name: tuple(map(str, frame[name].cat.categories))
        for name in frame.columns
        if isinstance(frame[name].dtype, pd.CategoricalDtype)
    }
    types: dict[str, ColumnType] = dict.fromkeys(categories, "categorical")
    return Table(path.name, frame, types, categories, notes)


def _without_index(frame: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Make columns of named index levels; an index without a name is dropped, and named."""
    names = [level for level in frame.index.names if level is not None]
    doubled = [name for name in names if name in frame.columns]
    if doubled:
        raise DataError(
            f"the index and a column are both called {doubled[0]!r}",
            "rename one of them, or write the file without its index",
        )
    if names:
        return frame.reset_index(), ()
    if pd.api.types.is_integer_dtype(frame.index.dtype):
        return frame.reset_index(drop=True), ()
    note = "the index has no name and was left out; name it to make a column of it"
    return frame.reset_index(drop=True), (note,)


def _with_exact_gaps(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Read again whole numbers with gaps, which pandas makes floats, where these are too short."""
    integers = (pa.int64(), pa.uint64())
    names = [
        field.name
        for field in pq.read_schema(path)
        if field.type in integers
        and field.name in frame.columns
        and frame[field.name].dtype == "float64"
        and (frame[field.name].abs() >= MAX_EXACT_INTEGER).any()
    ]
    if names:
        columns = pq.read_table(path, columns=names, partitioning=None)
        for name in names:
            exact = columns.column(name).to_pylist()
            frame[name] = narrow_to_float64(
                pd.Series(exact, index=frame.index, name=name, dtype=object)
            )
    return frame


def _plain(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Column names as ``str``, numbers as numpy numbers, booleans with gaps as objects."""
    frame.columns = pd.Index([str(name) for name in frame.columns])
    doubled = sorted(set(frame.columns[frame.columns.duplicated()]))
    if doubled:
        raise DataError(
            f"{path.name}: the column name {doubled[0]!r} occurs more than once",
            "rename one of them",
        )
    return pd.DataFrame(
        {name: _plain_column(frame[name], path.name) for name in frame.columns}, index=frame.index
    )


def _plain_column(values: pd.Series, file: str) -> pd.Series:
    dtype = values.dtype
    if isinstance(dtype, pd.SparseDtype):
        return pd.Series(np.asarray(values), index=values.index, name=values.name)
    if pd.api.types.is_timedelta64_dtype(dtype):
        return _seconds(values)
    if pd.api.types.is_complex_dtype(dtype):
        raise DataError(f"{file}: column {values.name!r} holds complex numbers", "split it in two")
    if pd.api.types.is_bool_dtype(dtype):
        if values.hasnans:
            return values.astype(object).where(values.notna(), None)
        return values.astype(bool)
    if pd.api.types.is_numeric_dtype(dtype):
        if isinstance(dtype, np.dtype):
            return values.astype("float64") if dtype.kind == "f" else values
        if dtype.kind == "f":
            return values.astype("float64")
        if dtype.kind in "iu" and not values.hasnans:
            return values.astype("uint64" if dtype.kind == "u" else "int64")
        values = values.astype(object).where(values.notna(), None)
    if not pd.api.types.is_object_dtype(values.dtype):
        return values
    if holds_numbers(values):
        try:
            return narrow_to_float64(values)
        except OverflowError:
            raise DataError(
                f"{file}: column {values.name!r} holds a whole number of more than 300 digits",
                "leave such values empty, or write them as text",
            ) from None
    present = values[values.notna()]
    for value in present:
        if isinstance(value, bytes | list | tuple | dict | set | np.ndarray):
            raise DataError(
                f"{file}: column {values.name!r} holds {type(value).__name__} values",
                "keep numbers, texts, booleans and dates only",
            )
    return values


def _seconds(durations: pd.Series) -> pd.Series:
    """Return durations in seconds, exact where ``float64`` would make different ones equal."""
    seconds = durations.dt.total_seconds()
    if seconds.nunique() == durations.nunique():
        return seconds
    present = durations.notna()
    unit = Decimal(pd.Timedelta(1, unit=durations.dt.unit).value) / 10**9
    exact = [int(count) * unit for count in durations[present].astype("int64")]
    return narrow_to_float64(replace_as_objects(durations, present, exact))


#: File ending to reader.
READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": _read_csv,
    ".parquet": read_parquet,
    ".arff": read_arff,
}
