"""Which rows of tables have the same values: column by column, without hashing whole rows.

Rows are told apart one column at a time, and a row that equals none of the rows asked about is
put aside at once. So the cost grows with the number of rows, never with the number of pairs,
and nothing rests on a hash.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

#: Numbers are the same within this many units in the last place of their column's largest value:
#: scaling a number to [0, 1] and back moves it by a few.
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
    ends = np.cumsum([len(table) for table in tables])
    # Rows of all tables are counted through; those of table k end before ends[k].
    numbers = np.zeros(ends[-1], dtype=np.int64)
    undecided = np.arange(ends[-1])
    for name in _sort_numeric_first(asked):
        codes = _encode_column([table[name] for table in tables], undecided, ends)
        n_codes = int(codes.max(initial=0)) + 1
        # Rows that were equal so far stay equal where this column agrees as well.
        numbers[undecided], distinct = pd.factorize(
            numbers[undecided] * n_codes + codes
        )
        is_asked = np.zeros(len(distinct), dtype=bool)
        undecided_asked = undecided[undecided < len(asked)]
        is_asked[numbers[undecided_asked]] = True
        equals_asked = is_asked[numbers[undecided]]
        numbers[undecided[~equals_asked]] = -1
        undecided = undecided[equals_asked]
        if len(undecided) == len(asked) == is_asked.sum():
            break  # nothing equals a row asked about but that row itself
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


def _sort_numeric_first(table: pd.DataFrame) -> list[str]:
    """Return the columns, numeric ones first: a continuous one tells all rows apart at once."""
    return sorted(
        table.columns, key=lambda name: not pd.api.types.is_float_dtype(table[name])
    )


def _encode_column(
    columns: Sequence[pd.Series], rows: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """Return codes of the values in some rows of a column; equal values have equal codes.

    Parameters
    ----------
    columns : sequence of Series
        The same column of each table.
    rows : ndarray
        Ascending, counted through all tables.
    ends : ndarray
        Where the rows of each table end.
    """
    if all(pd.api.types.is_numeric_dtype(column) for column in columns):
        floats = [column.to_numpy(dtype=float) for column in columns]
        largest = max(
            (np.nanmax(np.abs(values), initial=0.0) for values in floats), default=0.0
        )
        return _encode_numbers(
            _take_rows(floats, rows, ends), ULPS * np.spacing(largest)
        )
    if all(_shares_categories(column, columns[0]) for column in columns):
        codes = [column.cat.codes.to_numpy(dtype=np.int64) for column in columns]
        return _take_rows(codes, rows, ends) + 1  # a missing value has the code -1
    objects = [column.astype(object).to_numpy() for column in columns]
    return pd.factorize(_take_rows(objects, rows, ends))[0] + 1


def _take_rows(
    parts: Sequence[np.ndarray], rows: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """Return rows of arrays that are counted through, without joining the arrays."""
    begins = ends - [len(part) for part in parts]
    rows_of_parts = np.split(rows, np.searchsorted(rows, ends[:-1]))
    pieces = []
    for part, begin, part_rows in zip(parts, begins, rows_of_parts, strict=True):
        pieces.append(part[part_rows - begin])
    return np.concatenate(pieces)


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
    are_both_missing = np.isnan(ordered[1:]) & np.isnan(ordered[:-1])
    opens_run &= ~are_both_missing
    codes = np.empty(len(values), dtype=np.int64)
    codes[order] = np.concatenate([[0], np.cumsum(opens_run)])
    return codes
