"""Tables in memory, of any kind: as data frames, and in the few types that tasks are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from amlb_ext.core.errors import DataError, is_utf8
from amlb_ext.core.numbers import (
    MAX_EXACT_INTEGER,
    holds_numbers,
    narrow_to_float64,
    replace_as_objects,
)

#: Most values of a sparse matrix, which has room in memory for its zeros then.
MAX_SPARSE_CELLS = 500_000_000
#: What pandas calls the values of columns of objects that may stay as they are.
_PLAIN_OBJECTS = ("string", "boolean", "date", "empty")
_NESTED = (bytes, list, tuple, dict, set, frozenset, np.ndarray, pd.Series)


def with_columns(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """Return a frame with further columns at its end.

    ``frame.assign`` does the same, but warns the user of slow code where a hundred columns of the
    frame are categories.

    Parameters
    ----------
    frame : DataFrame of shape (n, d)
    columns : mapping of str to array-like of shape (n,)
        By name; a column of the frame that has one of the names is replaced.

    Examples
    --------
    >>> with_columns(pd.DataFrame({"a": [1, 2]}), {"y": [3, 4]}).to_dict("list")
    {'a': [1, 2], 'y': [3, 4]}
    """
    kept = frame.drop(columns=[name for name in columns if name in frame.columns])
    return pd.concat([kept, pd.DataFrame(dict(columns), index=frame.index)], axis=1)


# Any table as a data frame.


def to_pandas(table: Any, *, what: str = "X") -> pd.DataFrame:
    """Return a table of any library as a data frame, its types as they are.

    Parameters
    ----------
    table : table of shape (n, d)
        A data frame of pandas or polars (lazy ones, too), a pyarrow table, anything else with a
        ``to_pandas`` or an Arrow stream, an array, a sparse matrix, a mapping of columns, or a list
        of rows. A data frame of pandas keeps its index.
    what : str
        What the table is called in an error.

    Returns
    -------
    DataFrame of shape (n, d)
        Column names are ``str``; those of arrays and of rows are ``x0``, ``x1``, ...

    Raises
    ------
    DataError
        No table, or one whose columns have the same name.

    Examples
    --------
    >>> to_pandas(np.eye(2)).columns.tolist(), to_pandas({"a": [1, 2]}).shape
    (['x0', 'x1'], (2, 1))
    >>> to_pandas(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.DataError: X: the column name 'a' occurs more than once (rename one of \
them)
    """
    return to_named_frame(table, what=what)[0]


def to_named_frame(table: Any, *, what: str = "X") -> tuple[pd.DataFrame, bool]:
    """Return what :func:`to_pandas` does, and whether the table's columns have no names.

    Those of a data frame have none where all are whole numbers.
    """
    frame = _as_frame(table, what)
    if isinstance(table, pd.DataFrame | Mapping):
        is_unnamed = all(isinstance(name, int | np.integer) for name in frame.columns)
        names = [str(name) for name in frame.columns]
    else:
        is_unnamed = isinstance(frame.columns, pd.RangeIndex)
        letter = "x" if is_unnamed else ""
        names = [f"{letter}{name}" for name in frame.columns]
    check_names(names, what)
    # most frames have such names, and then nothing is made anew
    named = frame if names == list(frame.columns) else frame.set_axis(names, axis=1)
    return named, is_unnamed


def _as_frame(table: Any, what: str) -> pd.DataFrame:
    if isinstance(table, pd.DataFrame):
        return table
    # lazy frames of polars, and those of Dask
    if hasattr(table, "collect_schema") and hasattr(table, "collect"):
        table = table.collect()
    elif hasattr(table, "columns") and hasattr(table, "compute"):
        return _as_frame(table.compute(), what)
    shape = getattr(table, "shape", None)
    # an array of one dimension may have named columns
    has_fields = getattr(getattr(table, "dtype", None), "names", None) is not None
    if shape is not None and len(shape) != 2 and not has_fields:
        raise _no_table(f"has the shape {tuple(shape)}", what)
    if hasattr(table, "__arrow_c_stream__") and not hasattr(table, "to_pandas"):
        table = pa.table(table)
    if hasattr(table, "to_pandas"):
        frame = table.to_pandas()
        if not isinstance(frame, pd.DataFrame):
            raise _no_table(f"is a {type(table).__name__}", what)
        return _restore_exact_integers(frame, table)
    if hasattr(table, "toarray"):
        return pd.DataFrame(_dense(table, what))
    if isinstance(table, str | bytes) or not isinstance(table, Iterable):
        raise _no_table(f"is a {type(table).__name__}", what)
    if not isinstance(table, Mapping | list | tuple | np.ndarray):
        table = np.asarray(table)
        if table.ndim != 2:
            raise _no_table(f"has the shape {table.shape}", what)
    is_flat = isinstance(table, list | tuple) and any(map(np.isscalar, table))
    if is_flat or (not isinstance(table, np.ndarray) and not table):
        raise _no_table(f"has the shape ({len(table)},)", what)
    try:
        return pd.DataFrame(table)
    except (TypeError, ValueError) as error:
        raise _no_table(f"is no table: {error}", what) from None


def _no_table(problem: str, what: str) -> DataError:
    return DataError(
        f"{what} {problem}", "give a DataFrame, or an array of (rows, columns)"
    )


def _dense(matrix: Any, what: str) -> np.ndarray:
    n_rows, n_columns = matrix.shape
    if n_rows * n_columns > MAX_SPARSE_CELLS:
        raise DataError(
            f"{what} is a sparse matrix of {n_rows} rows and {n_columns} columns, but at most "
            f"{MAX_SPARSE_CELLS:,} values are read",
            "give fewer columns, e.g. by TruncatedSVD",
        )
    return np.asarray(matrix.toarray())


def _restore_exact_integers(frame: pd.DataFrame, table: Any) -> pd.DataFrame:
    """Return whole numbers with gaps, which pandas makes floats, as they stand in the table."""
    exact = {}
    for name, values in frame.items():
        if values.dtype != "float64" or not (values.abs() >= MAX_EXACT_INTEGER).any():
            continue
        # Arrow calls its columns by texts, whatever pandas makes of them
        column = table[str(name)]
        cells = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
        if any(isinstance(cell, int) for cell in cells):
            integers = pd.Series(cells, values.index, dtype=object, name=name)
            exact[name] = narrow_to_float64(integers)
    return frame.assign(**exact) if exact else frame


def check_names(names: Iterable[str], what: str) -> None:
    """Raise where two columns have the same name, or one has a name that no file could hold.

    Raises
    ------
    DataError
    """
    counts = Counter(names)
    for name, count in counts.items():
        if not is_utf8(name):
            raise DataError(
                f"{what}: the name of the column {name!r} is not UTF-8", "rename it"
            )
        if count > 1:
            raise DataError(
                f"{what}: the column name {name!r} occurs more than once",
                "rename one of them",
            )


# The types that tasks are made of.


def plain_frame(frame: pd.DataFrame, *, what: str) -> tuple[pd.DataFrame, list[str]]:
    """Return a frame in the few types that tasks are made of, all of which Parquet holds.

    Numbers become numpy's, or objects of exact numbers where ``float64`` makes different ones
    equal; durations become seconds, and periods the time at which they begin. Categories become
    texts in their order, intervals among them. Sparse columns become dense. A column of objects
    that are of several types, or of a type that no task knows, becomes texts.

    Parameters
    ----------
    frame : DataFrame of shape (n, d)
    what : str
        What the table is called in an error.

    Returns
    -------
    frame : DataFrame of shape (n, d)
        With names that are ``str``.
    notes : list of str
        Which columns became texts.

    Raises
    ------
    DataError
        Doubled names, complex numbers, values that are no scalars.

    Examples
    --------
    >>> mixed = pd.DataFrame({"a": [1, "x", None], "b": pd.cut([1, 2, 3], [0, 2, 4])})
    >>> plain, notes = plain_frame(mixed, what="X")
    >>> plain["a"].tolist(), plain["b"].tolist()
    (['1', 'x', None], ['(0, 2]', '(0, 2]', '(2, 4]'])
    >>> notes
    ["column 'a' holds int and str values, and is read as texts"]
    """
    names = [str(name) for name in frame.columns]
    # To pandas, 1 and "1" are two names; as texts they are one.
    check_names(names, what)
    frame = frame.set_axis(names, axis=1)
    columns = {}
    notes = []
    for name in names:
        values = frame[name]
        columns[name] = _plain_column(values, what)
        if values.dtype == object and _became_texts(values, columns[name]):
            types = sorted({type(value).__name__ for value in values.dropna()})
            listed = (
                f"{', '.join(types[:-1])} and {types[-1]}" if types[1:] else types[0]
            )
            notes.append(f"column {name!r} holds {listed} values, and is read as texts")
    # most columns are what they were: joining them into one block would copy all
    return pd.DataFrame(columns, index=frame.index, copy=False), notes


def _became_texts(before: pd.Series, after: pd.Series) -> bool:
    """Whether a column of objects has become texts and was none; the same object is unchanged."""
    if after is before or after.dtype != object or not after.notna().any():
        return False
    return isinstance(after.dropna().iloc[0], str)


def _plain_column(values: pd.Series, what: str) -> pd.Series:
    dtype = values.dtype
    if isinstance(dtype, pd.SparseDtype):
        dense = pd.Series(np.asarray(values), index=values.index, name=values.name)
        return _plain_column(dense, what)
    if isinstance(dtype, pd.CategoricalDtype):
        return _with_texts_as_categories(values)
    if isinstance(dtype, pd.IntervalDtype):
        return _as_texts(values)
    if isinstance(dtype, pd.PeriodDtype):
        return values.dt.to_timestamp()
    if pd.api.types.is_complex_dtype(dtype):
        raise _complex_error(values, what)
    if pd.api.types.is_bool_dtype(dtype):
        if values.hasnans:
            return values.astype(object).where(values.notna(), None)
        return values.astype(bool)
    if pd.api.types.is_numeric_dtype(dtype):
        is_plain = isinstance(dtype, np.dtype) and dtype.kind in "iu"
        if is_plain or dtype == np.float64:
            return values
        if dtype.kind == "f":
            return values.astype("float64")
        # what is left are the nullable and the Arrow dtypes of pandas
        if dtype.kind in "iu" and not values.hasnans:
            return values.astype("uint64" if dtype.kind == "u" else "int64")
        # integers with gaps and decimals: float64 may not hold them
        values = values.astype(object).where(values.notna(), None)
    elif isinstance(dtype, pd.ArrowDtype):
        arrow = values.array.__arrow_array__().to_pandas()
        return _plain_column(arrow.set_axis(values.index).rename(values.name), what)
    if pd.api.types.is_timedelta64_dtype(values.dtype):
        return _seconds(values)
    if pd.api.types.is_object_dtype(values.dtype):
        return _plain_objects(values, what)
    return values


def _plain_objects(values: pd.Series, what: str) -> pd.Series:
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if kind in _PLAIN_OBJECTS:
        return values
    present = values[values.notna()]
    if any(isinstance(value, complex | np.complexfloating) for value in present):
        raise _complex_error(values, what)
    if holds_numbers(values):
        try:
            return narrow_to_float64(values)
        except OverflowError:
            raise DataError(
                f"{what}: column {values.name!r} holds a whole number of more than 300 digits",
                "leave such values empty, or write them as text",
            ) from None
    # the types are those of nested and binary columns, of which no task can be made
    for value in present:
        if isinstance(value, _NESTED):
            raise DataError(
                f"{what}: column {values.name!r} holds {type(value).__name__} values",
                "keep numbers, texts, booleans and dates only",
            )
    # times, durations, periods, intervals that pandas has a type for
    inferred = values.infer_objects() if not kind.startswith("mixed") else values
    if inferred.dtype != object:
        return _plain_column(inferred, what)
    return _as_texts(values)


def _complex_error(values: pd.Series, what: str) -> DataError:
    return DataError(
        f"{what}: column {values.name!r} holds complex numbers", "split it in two"
    )


def text_of(value: Any) -> str:
    """Return the text of a value; 1.0 and 1 are one value.

    Examples
    --------
    >>> text_of(1.0), text_of(0.5), text_of(True)
    ('1', '0.5', 'True')
    """
    is_whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if is_whole else str(value)


def _as_texts(values: pd.Series) -> pd.Series:
    present = values.notna()
    return replace_as_objects(
        values, present, [text_of(value) for value in values[present]]
    )


def _with_texts_as_categories(values: pd.Series) -> pd.Series:
    """Return categories as texts, in their order; those of one text become one."""
    categories = values.cat.categories
    if all(isinstance(category, str) for category in categories):
        return values
    texts = [text_of(category) for category in categories]
    distinct = list(dict.fromkeys(texts))
    # the last entry serves code -1, missing
    codes = np.array([*map(distinct.index, texts), -1])[values.cat.codes.to_numpy()]
    categorical = pd.Categorical.from_codes(
        codes, categories=distinct, ordered=values.cat.ordered
    )
    return pd.Series(categorical, index=values.index, name=values.name)


def _seconds(durations: pd.Series) -> pd.Series:
    """Return durations in seconds, exact where ``float64`` would make different ones equal."""
    seconds = durations.dt.total_seconds()
    if seconds.nunique() == durations.nunique():
        return seconds
    present = durations.notna()
    # pandas counts in units of a second, a millisecond, ...; its value is in nanoseconds
    nanoseconds = pd.Timedelta(1, unit=durations.dt.unit).value
    unit_seconds = Decimal(nanoseconds) / 10**9
    counts = durations[present].astype("int64")
    exact = [int(count) * unit_seconds for count in counts]
    return narrow_to_float64(replace_as_objects(durations, present, exact))


# Which texts of a CSV file stand for a missing value, as AMLB reads them.
#
# AMLB 2.1 pins pandas 1.5.3 and reads CSV with its defaults. Later versions of pandas read None
# as missing too, so the defaults of the version installed here could lose a class or a category of
# that name.


#: Texts that pandas 1.5.3, AMLB's, reads as missing: its ``pandas._libs.parsers.STR_NA_VALUES``.
NA_TEXTS = frozenset(
    [
        "",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
        "N/A",
        "NA",
        "NULL",
        "NaN",
        "n/a",
        "nan",
        "null",
    ]
)
#: In lower case, the texts that some version of pandas, or a reader that ignores case, takes for
#: missing.
_LOWER_CASE_LOOKALIKES = {text.lower() for text in NA_TEXTS} | {"none", "nat"}


def reads_as_missing(text: str) -> bool:
    """Whether some version of pandas may read the text as missing.

    Examples
    --------
    >>> [reads_as_missing(text) for text in ("", "NA", "None", " nan ", "nano")]
    [True, True, True, True, False]
    """
    return text.strip().lower() in _LOWER_CASE_LOOKALIKES


def missing_lookalikes(texts: Iterable[str]) -> list[str]:
    """Return, sorted, the texts that are values here but may be missing to another reader.

    Examples
    --------
    >>> missing_lookalikes(["red", "None", "NaT"])
    ['NaT', 'None']
    """
    return sorted(filter(reads_as_missing, texts))


# Which rows of tables have the same values: column by column, without hashing whole rows.
#
# Rows are compared one column at a time, and a row that differs from every row in question is put
# aside at once. So the cost grows with the number of rows, never with the number of pairs, and
# nothing depends on a hash.


#: Numbers count as equal within this many units in the last place of the largest value of their
#: column: scaling a number to [0, 1] and back moves it by a few.
ULPS = 16


def number_rows(asked: pd.DataFrame, *others: pd.DataFrame) -> tuple[np.ndarray, ...]:
    """Number rows so that those with the same values, in whichever table, share a number.

    A missing value equals a missing value.

    Parameters
    ----------
    asked : DataFrame of shape (n, d)
    *others : DataFrame of shape (m, d)
        With the columns of ``asked``.

    Returns
    -------
    tuple of ndarray
        Of ``asked`` (n,) and of each of the others (m,); -1 for a row of the others that equals
        no row of ``asked``.

    Examples
    --------
    >>> asked = pd.DataFrame({"a": [0.1 + 0.2, 1.0, 0.3], "b": ["x", "x", "x"]})
    >>> numbers, other = number_rows(asked, asked.iloc[[1]].assign(b=["x"]))
    >>> bool(numbers[0] == numbers[2]), bool(other[0] == numbers[1])
    (True, True)
    """
    tables = (asked, *others)
    # Positions run through all tables; those of table k end before ends[k].
    ends = np.cumsum([len(table) for table in tables])
    n_rows = ends[-1]
    numbers = np.zeros(n_rows, dtype=np.int64)
    # Rows that equal a row of `asked` in every column so far.
    undecided = np.arange(n_rows)
    # Floats first: a continuous column separates all rows at once.
    for name in sorted(asked, key=lambda name: asked[name].dtype.kind != "f"):
        columns = [table[name] for table in tables]
        codes = _encode_column(columns, undecided, ends)
        n_codes = int(codes.max(initial=0)) + 1
        # Rows that were equal so far stay equal if this column agrees as well.
        pairs = numbers[undecided] * n_codes + codes
        new_numbers, distinct = pd.factorize(pairs)
        numbers[undecided] = new_numbers

        # Put aside the rows whose number no row of `asked` has.
        is_of_asked = undecided < len(asked)
        occurs_in_asked = np.zeros(len(distinct), dtype=bool)
        occurs_in_asked[new_numbers[is_of_asked]] = True
        equals_asked = occurs_in_asked[new_numbers]
        numbers[undecided[~equals_asked]] = -1
        undecided = undecided[equals_asked]

        # No further column matters once each row of `asked` equals itself alone.
        n_distinct_asked = occurs_in_asked.sum()
        if len(undecided) == len(asked) == n_distinct_asked:
            break
    return tuple(np.split(numbers, ends[:-1]))


def repeats_earlier(numbers: np.ndarray) -> np.ndarray:
    """Return which rows have the number of an earlier one.

    Examples
    --------
    >>> repeats_earlier(np.array([4, 7, 4, 4])).tolist()
    [False, False, True, True]
    """
    is_repeated = np.ones(len(numbers), dtype=bool)
    first_of_each = np.unique(numbers, return_index=True)[1]
    is_repeated[first_of_each] = False
    return is_repeated


def _encode_column(
    columns: Sequence[pd.Series], rows: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """Return codes of the values in selected rows of a column; equal values have equal codes.

    Parameters
    ----------
    columns : sequence of Series
        The same column of each table.
    rows : ndarray
        Positions, ascending, which run through all tables.
    ends : ndarray
        Where the rows of each table end.
    """
    if all(pd.api.types.is_numeric_dtype(column) for column in columns):
        floats = [column.to_numpy(dtype=float) for column in columns]
        # Of all rows, so that the tolerance does not depend on which are still undecided.
        largest = max(np.nanmax(np.abs(values), initial=0.0) for values in floats)
        tolerance = ULPS * np.spacing(largest)
        return _encode_numbers(_take_rows(floats, rows, ends), tolerance)
    # A missing value has the code -1 below, and every code must be 0 or more.
    if all(_shares_categories(column, columns[0]) for column in columns):
        codes = [column.cat.codes.to_numpy(dtype=np.int64) for column in columns]
        return _take_rows(codes, rows, ends) + 1
    objects = [column.astype(object).to_numpy() for column in columns]
    codes_of_objects, _ = pd.factorize(_take_rows(objects, rows, ends))
    return codes_of_objects + 1


def _take_rows(
    parts: Sequence[np.ndarray], rows: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """Return rows of several arrays by positions that run through all, without joining them."""
    cuts = np.searchsorted(rows, ends[:-1])
    rows_of_parts = np.split(rows, cuts)
    taken = []
    for part, end, part_rows in zip(parts, ends, rows_of_parts, strict=True):
        begin = end - len(part)
        taken.append(part[part_rows - begin])
    return np.concatenate(taken)


def _shares_categories(column: pd.Series, other: pd.Series) -> bool:
    for dtype in (column.dtype, other.dtype):
        if not isinstance(dtype, pd.CategoricalDtype):
            return False
    return bool(column.cat.categories.equals(other.cat.categories))


def _encode_numbers(values: np.ndarray, tolerance: float) -> np.ndarray:
    """Return one code for each run of sorted values without a gap beyond the tolerance."""
    if len(values) == 0:
        return np.empty(0, dtype=np.int64)
    order = np.argsort(values, kind="stable")  # missing values come last
    ordered = values[order]
    # Not "greater than": a gap to a missing value is NaN, and opens a new run.
    opens_run = ~(np.diff(ordered) <= tolerance)
    is_missing = np.isnan(ordered)
    opens_run &= ~(is_missing[1:] & is_missing[:-1])
    codes = np.empty(len(values), dtype=np.int64)
    codes[order[0]] = 0
    codes[order[1:]] = np.cumsum(opens_run)
    return codes
