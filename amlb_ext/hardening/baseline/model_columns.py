"""Which columns of a table a fitted model is given: those that it was fitted on, in its order."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from amlb_ext.core.errors import ModelError

#: Columns that a message lists by name.
MOST_NAMES = 8


def select_features(
    model: Any, frame: pd.DataFrame, name: str, *, table: str = "the table"
) -> Any:
    """Return the columns that a model was fitted on, in its order.

    A model that was fitted on an array gets an array, so that scikit-learn does not warn.

    Parameters
    ----------
    model : object
        Its ``feature_names_in_`` name the columns, else its ``n_features_in_`` counts them; a
        model with neither gets the frame as it is.
    frame : DataFrame of shape (n, d)
    name : str
        Of the model, for errors.
    table : str
        What errors call the frame.

    Returns
    -------
    DataFrame or ndarray

    Raises
    ------
    ModelError
        The frame lacks a column, or has another number of columns.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = pd.DataFrame({"b": [1.0, 2.0], "a": [0.0, 1.0], "note": ["u", "v"]})
    >>> model = LinearRegression().fit(X[["a", "b"]], [1.0, 2.0])
    >>> list(select_features(model, X, "m.pkl").columns)
    ['a', 'b']
    """
    wanted = getattr(model, "feature_names_in_", None)
    if wanted is not None:
        missing = [str(column) for column in wanted if column not in frame.columns]
        if missing:
            raise _missing_error(missing, wanted, frame, name=name, table=table)
        return frame[list(wanted)]
    n_wanted = getattr(model, "n_features_in_", None)
    if n_wanted is None:
        return frame
    if n_wanted != frame.shape[1]:
        raise ModelError(
            f"{name} was fitted on an array of {n_wanted} columns, and {table} has "
            f"{frame.shape[1]}: {list_names(frame.columns)}",
            "fit the model on a DataFrame, so that it knows the names of its columns, or give "
            "the table with those columns alone, in their order",
        )
    return frame.to_numpy()


def _missing_error(
    missing: Sequence[str],
    wanted: Iterable[Any],
    frame: pd.DataFrame,
    *,
    name: str,
    table: str,
) -> ModelError:
    known = {str(column) for column in wanted}
    unused = [str(column) for column in frame.columns if str(column) not in known]
    message = f"{name} was fitted on the column {missing[0]!r}, which {table} lacks"
    if len(missing) > 1:
        others = list_names(missing[1:])
        message += f", as it lacks {len(missing) - 1} more ({others})"
    # the nearest name is most often the same column, renamed
    nearest = difflib.get_close_matches(missing[0], unused, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    if unused:
        others = f"columns that the model does not know: {list_names(unused)}"
    else:
        others = "the model knows all columns that are there"
    return ModelError(message, f"{hint}{others}")


def describe_expected(model: Any) -> str:
    """Return in words what columns a model was fitted on.

    Examples
    --------
    >>> describe_expected(object())
    'the model does not say which columns it was fitted on'
    """
    wanted = getattr(model, "feature_names_in_", None)
    if wanted is not None:
        return f"it was fitted on the columns {list_names(wanted)}"
    n_wanted = getattr(model, "n_features_in_", None)
    if n_wanted is not None:
        return f"it was fitted on an array of {n_wanted} columns"
    return "the model does not say which columns it was fitted on"


def list_names(names: Iterable[Any]) -> str:
    """Return the first names of some columns, and how many more there are.

    Examples
    --------
    >>> list_names(["a", "b"]), list_names(range(10))
    ('a, b', '0, 1, 2, 3, 4, 5, 6, 7 and 2 more')
    """
    texts = [str(name) for name in names]
    more = len(texts) - MOST_NAMES
    listed = ", ".join(texts[:MOST_NAMES])
    return f"{listed} and {more} more" if more > 0 else listed
