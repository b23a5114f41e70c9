"""Values of a column as small integers, so that rows can be compared by table look-ups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.relations.grammar import TOLERANCE


def holds_numbers(values: pd.Series) -> bool:
    """Return whether a column of a table in canonical form holds numbers."""
    return values.dtype.kind == "f"


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
    def of(cls, column: pd.Series) -> ValueIndex:
        """Learn the values of a column."""
        if holds_numbers(column):
            return cls(
                np.unique(column.dropna().to_numpy(dtype=float)), is_numeric=True
            )
        return cls(np.asarray(column.dropna().unique(), dtype=object), is_numeric=False)

    @property
    def missing(self) -> int:
        """The code of a missing value; ``missing + 1`` is that of an unknown one."""
        return len(self.values)

    @property
    def size(self) -> int:
        """How many codes there are, those of missing and unknown values included."""
        return len(self.values) + 2

    def codes(self, column: pd.Series) -> np.ndarray:
        """Return the code of each value, ``(n,)`` int64."""
        if not self.is_numeric:
            codes = pd.Index(self.values).get_indexer(column.astype(object))
            codes = np.where(codes < 0, self.missing + 1, codes)
            return np.where(column.isna().to_numpy(), self.missing, codes)
        numbers = column.to_numpy(dtype=float)
        if not len(self.values):
            return np.where(np.isnan(numbers), self.missing, self.missing + 1)
        nearest = self.nearest(numbers)
        distance = np.abs(self.values[nearest] - numbers)
        is_known = distance <= TOLERANCE * np.maximum(1.0, np.abs(numbers))
        codes = np.where(is_known, nearest, self.missing + 1)
        return np.where(np.isnan(numbers), self.missing, codes)

    def nearest(self, numbers: np.ndarray) -> np.ndarray:
        """Return the position of the value nearest to each number; the lower one of two."""
        right = np.clip(
            np.searchsorted(self.values, numbers), 1, max(len(self.values) - 1, 1)
        )
        if len(self.values) == 1:
            return np.zeros(len(numbers), dtype=np.int64)
        left = right - 1
        is_left = numbers - self.values[left] <= self.values[right] - numbers
        return np.where(is_left, left, right)
