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
#: A text of fewer characters has no number that :data:`LONG_NUMBER` finds.
_SHORTEST_LONG_NUMBER = 16
#: What pandas and Arrow raise for a damaged file, or for metadata of pandas that lie about it.
_DAMAGED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    NotImplementedError,
    OSError,
    TypeError,
    ValueError,
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
        raise SourceError(
            f"the name of the file {path} is not UTF-8", "rename the file or folder"
        )
    if not path.exists():
        raise SourceError(f"no such file: {path}", "check the path")
    if not path.is_file():
        raise SourceError(f"{path} is not a file", "give the path of one table")
    if path.stat().st_size == 0:
        raise SourceError(
            f"{path.name} is empty", "give a table with a header and rows"
        )
    return read(path)


def _read_csv(path: Path) -> Table:
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            header = next(csv.reader(handle), [])
        _check_header(path, header)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(path, low_memory=False, **_CSV)
        frame = _mark_missing_texts(frame)
        frame, notes = _restore_exact_numbers(frame, path)
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except pd.errors.ParserWarning:
        raise DataError(
            f"{path.name} has rows with more fields than the header",
            "name every column in the first line",
        ) from None
    except (
        pd.errors.ParserError,
        pd.errors.EmptyDataError,
        csv.Error,
        ValueError,
    ) as error:
        problem = str(error).strip().replace("\n", " ")
        raise SourceError(
            f"{path.name} is not a valid CSV file: {problem}",
            "use commas, one header line, and quotes around fields with commas",
        ) from None
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from None
    return Table(path.name, _to_plain_dtypes(frame, path), notes=notes)


def _mark_missing_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Mark empty fields as missing where pandas left them texts.

    It does so in a column of whole numbers up to 2**64 that also has gaps.
    """
    for name in frame.columns:
        if pd.api.types.is_numeric_dtype(frame[name]):
            continue
        is_missing = frame[name].isin(NA_TEXTS)
        if is_missing.any():
            frame[name] = frame[name].astype(object).where(~is_missing, None)
    return frame


def _restore_exact_numbers(
    frame: pd.DataFrame, path: Path
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Replace columns of numbers that ``float64`` makes equal, and note numbers that lost zeros.

    The file is read as text a second time only where it holds long numbers or leading zeros.
    """
    positions = [k for k, dtype in enumerate(frame.dtypes) if _is_number_dtype(dtype)]
    if not positions or not may_hold_odd_numbers(path):
        return frame, ()
    long_numbers: dict[int, dict[int, int | float | Decimal]] = {
        k: {} for k in positions
    }
    leading_zeros: dict[int, list[str]] = {k: [] for k in positions}
    chunks = pd.read_csv(
        path, usecols=positions, dtype=str, chunksize=_ROWS_AT_ONCE, **_CSV
    )
    for chunk in chunks:
        for position, name in zip(positions, chunk.columns, strict=True):
            texts = chunk[name].dropna()
            # pandas keeps whole numbers exact, so only columns of floats have lost anything.
            if frame.dtypes.iloc[position] == "float64":
                candidates = texts[texts.str.len() >= _SHORTEST_LONG_NUMBER]
                is_long = candidates.str.contains(LONG_NUMBER.pattern)
                for row, text in candidates[is_long].items():
                    long_numbers[position][row] = parse_number(text)
            has_zeros = texts.str.match(r"\s*[+-]?0\d")
            leading_zeros[position] += texts[has_zeros].tolist()
    notes = []
    for position, name in zip(positions, frame.columns[positions], strict=True):
        exact = long_numbers[position]
        if exact:
            is_long = frame.index.to_series().isin(exact.keys())
            restored = replace_as_objects(frame[name], is_long, list(exact.values()))
            frame[name] = narrow_to_float64(restored)
        zeros = leading_zeros[position]
        if zeros:
            notes.append(
                f"column {name!r}: {len(zeros)} values with leading zeros, "
                f"{zeros[0].strip()!r} the first, are read as numbers, as AMLB reads "
                "them; put a letter before them to keep them as texts"
            )
    return frame, tuple(notes)


def _is_number_dtype(dtype: Any) -> bool:
    """Whether a column is of numbers; to pandas, booleans are numbers too."""
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(
        dtype
    )


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
        metadata = pq.read_metadata(path)
        if metadata.num_rows * metadata.num_columns > MAX_CELLS:
            raise DataError(
                f"{path.name} stands for {metadata.num_rows} rows of {metadata.num_columns} "
                f"columns, but at most {MAX_CELLS:,} values are read",
                "give fewer rows or columns",
            )
        # Without partitioning: a folder called year=2024 would add a column.
        frame = pd.read_parquet(path, partitioning=None)
    except _DAMAGED as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise SourceError(
            f"{path.name} is not a valid Parquet file: {lines[0][:500]}",
            "write it again, or as .csv",
        ) from None
    frame, notes = _move_index_to_columns(frame)
    frame = _restore_exact_integers(_to_plain_dtypes(frame, path), path)
    categories = {}
    for name in frame.columns:
        if isinstance(frame[name].dtype, pd.CategoricalDtype):
            categories[name] = tuple(map(str, frame[name].cat.categories))
    types: dict[str, ColumnType] = dict.fromkeys(categories, "categorical")
    return Table(path.name, frame, types, categories, notes)


def _move_index_to_columns(frame: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Make columns of named index levels; an index without a name is dropped, with a note."""
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


def _restore_exact_integers(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Read again whole numbers with gaps, which pandas makes floats, where these are too short."""
    names = []
    for field in pq.read_schema(path):
        if (
            field.type not in (pa.int64(), pa.uint64())
            or field.name not in frame.columns
        ):
            continue
        values = frame[field.name]
        if values.dtype == "float64" and (values.abs() >= MAX_EXACT_INTEGER).any():
            names.append(field.name)
    if names:
        columns = pq.read_table(path, columns=names, partitioning=None)
        for name in names:
            exact = columns.column(name).to_pylist()
            frame[name] = narrow_to_float64(
                pd.Series(exact, index=frame.index, name=name, dtype=object)
            )
    return frame


def _to_plain_dtypes(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Column names as ``str``, numbers as numpy numbers, booleans with gaps as objects."""
    frame.columns = pd.Index([str(name) for name in frame.columns])
    doubled = sorted(set(frame.columns[frame.columns.duplicated()]))
    if doubled:
        raise DataError(
            f"{path.name}: the column name {doubled[0]!r} occurs more than once",
            "rename one of them",
        )
    columns = {name: _to_plain_dtype(frame[name], path.name) for name in frame.columns}
    return pd.DataFrame(columns, index=frame.index)


def _to_plain_dtype(values: pd.Series, file: str) -> pd.Series:
    dtype = values.dtype
    if isinstance(dtype, pd.SparseDtype):
        return pd.Series(np.asarray(values), index=values.index, name=values.name)
    if pd.api.types.is_timedelta64_dtype(dtype):
        return _seconds(values)
    if pd.api.types.is_complex_dtype(dtype):
        raise DataError(
            f"{file}: column {values.name!r} holds complex numbers", "split it in two"
        )
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
