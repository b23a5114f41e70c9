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
