"""A file on disk to a table: ``.csv``, ``.parquet``, ``.arff``."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from amlb_ext.core.errors import DataError, SourceError
from amlb_ext.sources.arff import not_utf8, read_arff
from amlb_ext.sources.table import Table

#: Most values of a Parquet file, which may say a thousand times "the same again" in a few bytes.
MAX_CELLS = 2_000_000_000

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
        number 7, and ``NA``, ``null``, ``nan`` and empty fields are missing.

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
            frame = pd.read_csv(path, encoding="utf-8-sig", low_memory=False, index_col=False)
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
    return Table(path.name, _plain(frame, path))


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
        frame = pd.read_parquet(path)
    except _DAMAGED as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0][:500]
        raise SourceError(
            f"{path.name} is no valid Parquet file: {said}", "write it again, or as .csv"
        ) from None
    named = [level for level in frame.index.names if level is not None]
    frame = _plain(frame.reset_index() if named else frame.reset_index(drop=True), path)
    categories = {
        name: tuple(map(str, frame[name].cat.categories))
        for name in frame.columns
        if isinstance(frame[name].dtype, pd.CategoricalDtype)
    }
    return Table(path.name, frame, dict.fromkeys(categories, "categorical"), categories)


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
        return values.dt.total_seconds()
    if pd.api.types.is_complex_dtype(dtype):
        raise DataError(f"{file}: column {values.name!r} holds complex numbers", "split it in two")
    if pd.api.types.is_bool_dtype(dtype):
        if values.hasnans:
            return values.astype(object).where(values.notna(), None)
        return values.astype(bool)
    if pd.api.types.is_numeric_dtype(dtype):
        if isinstance(dtype, np.dtype):
            return values.astype("float64") if dtype.kind == "f" else values
        return values.astype("float64" if values.hasnans or dtype.kind == "f" else "int64")
    if not pd.api.types.is_object_dtype(dtype):
        return values
    present = values.dropna()
    if len(present) and all(_is_number(value) for value in present):
        try:
            return values.astype("float64")
        except OverflowError:
            raise DataError(
                f"{file}: column {values.name!r} holds a whole number of more than 300 digits",
                "leave such values empty, or write them as text",
            ) from None
    for value in present:
        if isinstance(value, bytes | list | tuple | dict | set | np.ndarray):
            raise DataError(
                f"{file}: column {values.name!r} holds {type(value).__name__} values",
                "keep numbers, texts, booleans and dates only",
            )
    return values


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal | np.number) and not isinstance(value, bool)


#: File ending to reader.
READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": _read_csv,
    ".parquet": read_parquet,
    ".arff": read_arff,
}
