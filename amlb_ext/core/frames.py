"""Data frames with further columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd


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


def to_pandas(table: Any, *, what: str = "X") -> pd.DataFrame:
    """Return a table as a frame of pandas."""
    if isinstance(table, pd.DataFrame):
        return table.set_axis([str(name) for name in table.columns], axis=1)
    if hasattr(table, "to_pandas"):
        return table.to_pandas()
    import numpy as np

    from amlb_ext.core.errors import DataError

    values = np.asarray(table)
    if values.ndim != 2:
        raise DataError(
            f"{what} has the shape {values.shape}",
            "give a DataFrame, or an array of (rows, columns)",
        )
    return pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])
