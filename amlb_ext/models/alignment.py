"""Rows that belong together: targets, groups and predictions beside the rows of X.

What has no index is meant by position. Two indexes in the same order, too. The same labels in
another order are meant by label, unless one of the two indexes is a fresh ``0 ... n-1``: a frame
that was shuffled, beside answers that were not, has the same set of labels and is meant by
position. Which of the two it is only the user knows.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from amlb_ext.core.errors import ConfigError, DataError

#: How rows are matched: by the rule of this module, by label, or by place.
Align = Literal["auto", "index", "position"]


def check_align(align: str) -> None:
    """Raise for a way to match rows that does not exist.

    Raises
    ------
    ConfigError
    """
    if align not in get_args(Align):
        raise ConfigError(f"align is {align!r}", "give 'auto', 'index' or 'position'")


def align_rows(
    given: Any, beside: Any, *, what: str, of: str = "X", align: Align = "auto"
) -> Any:
    """Return rows in the order of the rows beside them.

    Parameters
    ----------
    given : object of n rows
        With an index where it is a Series or a frame of pandas.
    beside : object of n rows
        The rows that it belongs to.
    what, of : str
        What both are called in errors.
    align : {'auto', 'index', 'position'}

    Returns
    -------
    object of n rows
        As given, or its rows in another order.

    Raises
    ------
    DataError
        Other lengths, labels that differ, or labels that can be read in two ways.

    Examples
    --------
    >>> X = pd.DataFrame({"age": [39, 50]}, index=["a", "b"])
    >>> align_rows(pd.Series([1, 2], index=["b", "a"]), X, what="y").tolist()
    [2, 1]
    """
    if not hasattr(given, "__len__"):
        raise DataError(
            f"{what} is a {type(given).__name__}",
            f"give one value for each row of {of}",
        )
    if len(given) != len(beside):
        raise DataError(
            f"{what} has {len(given)} rows and {of} has {len(beside)}",
            f"give one for each row of {of}",
        )
    ours, theirs = _index_of(given), _index_of(beside)
    if align == "position" or ours is None or theirs is None or ours.equals(theirs):
        return given
    if align == "index":
        _check_same_labels(ours, theirs, what=what, of=of)
        return given.loc[theirs]
    has_doubles = not (ours.is_unique and theirs.is_unique)
    if has_doubles or _is_fresh(ours) != _is_fresh(theirs):
        raise _ambiguous_error(ours, theirs, what=what, of=of)
    _check_same_labels(ours, theirs, what=what, of=of)
    return given.loc[theirs]


def _index_of(rows: Any) -> pd.Index | None:
    is_labelled = isinstance(rows, pd.Series | pd.DataFrame)
    return rows.index if is_labelled else None


def _is_fresh(index: pd.Index) -> bool:
    """Whether an index counts from 0, as one does that nobody set."""
    return index.equals(pd.RangeIndex(len(index)))


def _check_same_labels(ours: pd.Index, theirs: pd.Index, *, what: str, of: str) -> None:
    if not (ours.is_unique and theirs.is_unique):
        doubled = ours if not ours.is_unique else theirs
        label = doubled[doubled.duplicated()][0]
        raise DataError(
            f"the index of {what if doubled is ours else of} has {label!r} twice, so rows cannot "
            "be matched by it",
            'give align="position" if both are in the same order',
        )
    lacking = theirs.difference(ours, sort=False)
    if len(lacking):
        raise DataError(
            f"{what} has no row {lacking[0]!r}, which {of} has ({len(lacking)} of {len(theirs)} "
            "labels are missing)",
            f'give {what} for the rows of {of}; align="position" if both are in the same order '
            "whatever their index",
        )


def _ambiguous_error(
    ours: pd.Index, theirs: pd.Index, *, what: str, of: str
) -> DataError:
    differing = int(np.argmax(np.asarray(ours != theirs)))
    return DataError(
        f"{what} and {of} have different indexes: row {differing} of {of} is {theirs[differing]!r} "
        f"and that of {what} is {ours[differing]!r}, so it is not clear which rows belong together",
        'give align="position" if both are in the same order, or align="index" if the labels of '
        "the index tell",
    )
