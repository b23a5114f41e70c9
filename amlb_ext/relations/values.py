"""Values of a column as small integers, so that rows can be compared by table look-ups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.relations.conditions import tolerance_at


def holds_numbers(values: pd.Series) -> bool:
    """Return whether a column of a table in canonical form holds numbers."""
    return values.dtype.kind == "f"


def numeric_columns(rows: pd.DataFrame) -> dict[str, bool]:
    """Return for each column whether it holds numbers."""
    return {name: holds_numbers(rows[name]) for name in rows}


def read_numbers(rows: pd.DataFrame, name: str) -> np.ndarray:
    """Return the numbers of a column, ``(n,)`` float, NaN where one is missing."""
    return rows[name].to_numpy(dtype=float)


class ColumnReader:
    """Rows for the conditions of many relations: a column is looked up once, not by each of them.

    Parameters
    ----------
    rows : DataFrame of shape (n, d)

    Examples
    --------
    >>> reader = ColumnReader(pd.DataFrame({"a": [1.0, 2.0]}))
    >>> len(reader), reader["a"] is reader["a"]
    (2, True)
    """

    def __init__(self, rows: pd.DataFrame) -> None:
        self._rows = rows
        self._columns: dict[str, pd.Series] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, name: str) -> pd.Series:
        if name not in self._columns:
            self._columns[name] = self._rows[name]
        return self._columns[name]


@dataclass(frozen=True)
class ValueIndex:
    """The distinct values of a column, each with its code.

    Attributes
    ----------
    values : ndarray of shape (m,)
        Sorted numbers, or texts in order of appearance.
    is_numeric : bool
    """

    values: np.ndarray
    is_numeric: bool

    @classmethod
    def learn(cls, column: pd.Series) -> ValueIndex:
        """Learn the values of a column."""
        known_values = column.dropna()
        if holds_numbers(column):
            numbers = np.unique(known_values.to_numpy(dtype=float))
            return cls(numbers, is_numeric=True)
        texts = np.asarray(known_values.unique(), dtype=object)
        return cls(texts, is_numeric=False)

    @property
    def missing(self) -> int:
        """The code of a missing value."""
        return len(self.values)

    @property
    def unknown(self) -> int:
        """The code of a value that the column does not have."""
        return self.missing + 1

    @property
    def size(self) -> int:
        """How many codes there are, those of missing and unknown values included."""
        return len(self.values) + 2

    def codes(self, column: pd.Series) -> np.ndarray:
        """Return the code of each value, ``(n,)`` int64."""
        if self.is_numeric:
            return self.number_codes(column.to_numpy(dtype=float))
        texts = column.astype(object)
        index = pd.Index(self.values)
        positions = index.get_indexer(texts)
        # the index has -1 for a text that it does not hold
        codes = np.where(positions < 0, self.unknown, positions)
        is_missing = column.isna().to_numpy()
        return np.where(is_missing, self.missing, codes)

    def number_codes(self, numbers: np.ndarray) -> np.ndarray:
        """Return the code of each number, ``(n,)`` int64."""
        is_missing = np.isnan(numbers)
        if not len(self.values):
            return np.where(is_missing, self.missing, self.unknown)
        nearest = self.nearest(numbers)
        distance = np.abs(self.values[nearest] - numbers)
        # a number that went through the scaling of its column and back is the same number
        room = tolerance_at(numbers)
        codes = np.where(distance <= room, nearest, self.unknown)
        return np.where(is_missing, self.missing, codes)

    def nearest(self, numbers: np.ndarray) -> np.ndarray:
        """Return the position of the value nearest to each number; the lower one of two."""
        if len(self.values) == 1:
            return np.zeros(len(numbers), dtype=np.int64)
        last = len(self.values) - 1
        right = np.searchsorted(self.values, numbers)
        # both neighbours exist also for numbers outside the range
        right = np.clip(right, 1, last)
        left = right - 1
        to_left = numbers - self.values[left]
        to_right = self.values[right] - numbers
        return np.where(to_left <= to_right, left, right)
