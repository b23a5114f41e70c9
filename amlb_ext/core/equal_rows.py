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
    number = np.zeros(ends[-1], dtype=np.int64)
    undecided = np.arange(ends[-1])
    for name in _most_telling_first(asked):
        codes = _codes([table[name] for table in tables], undecided, ends)
        joint = number[undecided] * (int(codes.max(initial=0)) + 1) + codes
        number[undecided], distinct = pd.factorize(joint)
        is_asked = np.zeros(len(distinct), dtype=bool)
        is_asked[number[undecided[undecided < len(asked)]]] = True
        left = is_asked[number[undecided]]
        number[undecided[~left]] = -1
        undecided = undecided[left]
        if len(undecided) == len(asked) == is_asked.sum():
            break  # nothing equals a row asked about but that row itself
    return tuple(np.split(number, ends[:-1]))


def repeats_earlier(numbers: np.ndarray) -> np.ndarray:
    """Return which rows have the number of an earlier one.

    Examples
    --------
    >>> repeats_earlier(np.array([4, 7, 4, 4])).tolist()
    [False, False, True, True]
    """
    repeated = np.ones(len(numbers), dtype=bool)
    repeated[np.unique(numbers, return_index=True)[1]] = False
    return repeated


def _most_telling_first(table: pd.DataFrame) -> list[str]:
    """Numeric columns first: where they are continuous the first one tells all rows apart."""
    return sorted(table.columns, key=lambda name: not pd.api.types.is_float_dtype(table[name]))


def _codes(columns: Sequence[pd.Series], chosen: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return codes of one column's values, all tables one after the other, of the chosen rows."""
    if all(pd.api.types.is_numeric_dtype(column) for column in columns):
        values = [column.to_numpy(dtype=float) for column in columns]
        largest = max((np.nanmax(np.abs(v), initial=0.0) for v in values), default=0.0)
        return _number_codes(_take(values, chosen, ends), ULPS * np.spacing(largest))
    if all(_has_categories_of(column, columns[0]) for column in columns):
        codes = [column.cat.codes.to_numpy(dtype=np.int64) for column in columns]
        return _take(codes, chosen, ends) + 1
    texts = _take([column.astype(object).to_numpy() for column in columns], chosen, ends)
    return pd.factorize(texts)[0] + 1


def _take(parts: Sequence[np.ndarray], chosen: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return chosen entries of arrays that stand one after the other; ``chosen`` ascends."""
    begins = ends - [len(part) for part in parts]
    cuts = np.searchsorted(chosen, ends[:-1])
    pieces = np.split(chosen, cuts)
    return np.concatenate([p[i - b] for p, i, b in zip(parts, pieces, begins, strict=True)])


def _has_categories_of(column: pd.Series, other: pd.Series) -> bool:
    both = (column.dtype, other.dtype)
    if not all(isinstance(dtype, pd.CategoricalDtype) for dtype in both):
        return False
    return bool(column.cat.categories.equals(other.cat.categories))


def _number_codes(values: np.ndarray, tolerance: float) -> np.ndarray:
    """Return one code for each run of sorted values without a gap beyond the tolerance."""
    order = np.argsort(values, kind="stable")  # missing values come last
    ordered = values[order]
    apart = ~(np.diff(ordered) <= tolerance)
    apart &= ~(np.isnan(ordered[1:]) & np.isnan(ordered[:-1]))
    codes = np.empty(len(values), dtype=np.int64)
    codes[order] = np.concatenate([[0], np.cumsum(apart)]) if len(values) else order
    return codes
