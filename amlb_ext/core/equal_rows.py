"""Which rows of tables have the same values: column by column, without hashing whole rows.

Rows are compared one column at a time, and a row that differs from every row in question is put
aside at once. So the cost grows with the number of rows, never with the number of pairs, and
nothing depends on a hash.
"""

# Dense for its size: each line is one step of numpy on all rows at once.

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

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
    for name in _sort_numeric_first(asked):
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


def _sort_numeric_first(table: pd.DataFrame) -> list[str]:
    """Return the columns, floats first: a continuous one separates all rows at once."""

    def is_no_float(name: str) -> bool:
        return not pd.api.types.is_float_dtype(table[name])

    # sorted() keeps the order of equal keys, and False comes before True
    return sorted(table.columns, key=is_no_float)


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
