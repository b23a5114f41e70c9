"""A table of features as the user gave it, beside the same as a frame of pandas."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError
from amlb_ext.core.frames import to_named_frame


@dataclass(frozen=True, kw_only=True)
class GivenTable:
    """Rows of features, for models that each look for their own columns.

    Attributes
    ----------
    given : object
        What the user gave: a frame of pandas or polars, an array, ...
    frame : DataFrame of shape (n, d)
        The same, with the user's types and index; names of columns are texts, of an array
        ``x0``, ``x1``, ...
    is_unnamed : bool
        Whether the columns have no names: those of an array, or whole numbers.
    """

    given: Any
    frame: pd.DataFrame
    is_unnamed: bool

    @classmethod
    def of(cls, given: Any, what: str = "X") -> GivenTable:
        """Read what the user gave.

        Parameters
        ----------
        given : DataFrame, array of shape (n, d), or another table
        what : str
            For errors.

        Raises
        ------
        DataError
            Neither a table nor an array with two dimensions.

        Examples
        --------
        >>> GivenTable.of(np.zeros((2, 2))).frame.columns.tolist()
        ['x0', 'x1']
        """
        frame, is_unnamed = to_named_frame(given, what=what)
        return cls(given=given, frame=frame, is_unnamed=is_unnamed)

    @classmethod
    def of_rows(cls, frame: pd.DataFrame) -> GivenTable:
        """Return rows that were made here, which nobody gave."""
        return cls(given=frame, frame=frame, is_unnamed=False)

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def names(self) -> list[str]:
        """The names of the columns as the user gave them, whole numbers too; an array has none."""
        is_array = self.is_unnamed and not isinstance(
            self.given, pd.DataFrame | Mapping
        )
        return [] if is_array else list(self.frame.columns)

    @property
    def has_places(self) -> bool:
        """Whether columns have nothing but their place: an array's, or 0, 1, ... in order."""
        places = [*map(str, range(self.frame.shape[1]))]
        return self.is_unnamed and self.names in ([], places)

    @property
    def rows(self) -> Any:
        """What other rows are matched with: a frame of pandas by its index, all else by place."""
        is_indexed = isinstance(self.given, pd.DataFrame)
        return self.given if is_indexed else range(len(self.frame))

    def copy_as_given(self) -> Any:
        """Return a copy of what the user gave: some models change the rows they are given."""
        if isinstance(self.given, list | tuple | dict):
            return self.frame.copy()
        # polars; pandas, numpy and scipy, whose sparse matrices copy.copy() would share
        for method in ("clone", "copy"):
            if hasattr(self.given, method):
                return getattr(self.given, method)()
        return copy.copy(self.given)

    def take(self, rows: np.ndarray) -> GivenTable:
        """Return some of the rows, by position."""
        picked = self.frame.iloc[rows]
        given: Any = picked
        if isinstance(self.given, np.ndarray):
            given = self.given[rows]
        elif isinstance(self.given, pd.DataFrame):
            given = self.given.iloc[rows]
        return GivenTable(given=given, frame=picked, is_unnamed=self.is_unnamed)


def target_values(y: Any) -> pd.Series:
    """Return targets as a Series that counts from 0.

    Raises
    ------
    DataError
        More than one value for each row, or durations.
    """
    if pd.api.types.is_timedelta64_dtype(getattr(y, "dtype", None)):
        raise DataError(
            "y holds durations", "give numbers in one unit, e.g. y.dt.total_seconds()"
        )
    if isinstance(y, pd.Series):
        return y.reset_index(drop=True)
    keeps_gaps = isinstance(y, pd.Categorical | pd.Index | np.ma.MaskedArray)
    values = y if keeps_gaps else np.asarray(y)
    if getattr(values, "ndim", 1) == 2 and values.shape[1] == 1:
        values = values[:, 0]
    fields = getattr(getattr(values, "dtype", None), "names", None)
    if getattr(values, "ndim", 1) != 1 or fields:
        form = (
            f"the fields {', '.join(fields)}"
            if fields
            else f"the shape {np.shape(values)}"
        )
        raise DataError(f"y has {form}", "give one target for each row")
    return pd.Series(values)


def plain_targets(values: pd.Series) -> np.ndarray:
    """Return targets, none of them missing, in a type of numpy's own.

    Models and losses take whole numbers and truth values, and refuse objects that are such.

    Examples
    --------
    >>> plain_targets(pd.Series([1, 0], dtype="Int64")).dtype, plain_targets(pd.Series(["a"])).dtype
    (dtype('int64'), dtype('O'))
    """
    return values.astype(object).infer_objects().to_numpy()
