"""Which columns of a table a fitted model is given: those that it was fitted on, in its order.

Libraries name them in different places, and some rename them while they fit. A model that saw
names gets a frame with its own names in its own order; one that saw an array gets an array; one
that says nothing gets the table whole, as the user gave it, index and all.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable
from typing import Any, Literal

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError, ModelError
from amlb_ext.models.given_table import GivenTable
from amlb_ext.models.native import as_native, attribute_of

# Rows that belong together: targets, groups and predictions beside the rows of X.
#
# What has no index is meant by position. Two indexes in the same order, too. The same labels in
# another order are meant by label, unless one of the two indexes is a fresh 0 ... n-1: a frame
# that was shuffled, beside answers that were not, has the same set of labels and is meant by
# position. Which of the two it is only the user knows.


#: How rows are matched: by the rule of this module, by label, or by place.
Align = Literal["auto", "index", "position"]


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
    is_labelled = all(
        isinstance(rows, pd.Series | pd.DataFrame) for rows in (given, beside)
    )
    if align == "position" or not is_labelled or given.index.equals(beside.index):
        return given
    ours, theirs = given.index, beside.index
    are_unique = ours.is_unique and theirs.is_unique
    # an index counts from 0 where nobody set it
    fresh = pd.RangeIndex(len(ours))
    is_unclear = not are_unique or ours.equals(fresh) or theirs.equals(fresh)
    if align != "index" and is_unclear:
        row = int(np.argmax(np.asarray(ours != theirs)))
        # numbers of Python, which print without the type of numpy's
        own, other = ours.tolist()[row], theirs.tolist()[row]
        raise DataError(
            f"{what} and {of} have different indexes: row {row} of {of} is {other!r} and that of "
            f"{what} is {own!r}, so it is not clear which rows belong together",
            'give align="position" if both are in the same order, or align="index" if the labels '
            "of the index tell",
        )
    if not are_unique:
        doubled = theirs if ours.is_unique else ours
        raise DataError(
            f"the index of {of if ours.is_unique else what} has "
            f"{doubled[doubled.duplicated()][0]!r} twice, so rows cannot be matched by it",
            'give align="position" if both are in the same order',
        )
    lacking = theirs.difference(ours, sort=False).tolist()
    if lacking:
        raise DataError(
            f"{what} has no row {lacking[0]!r}, which {of} has ({len(lacking)} of {len(theirs)} "
            "labels are missing)",
            f'give {what} for the rows of {of}; align="position" if both are in the same order '
            "whatever their index",
        )
    return given.loc[theirs]


#: Columns that a message lists by name.
MOST_NAMES = 8


def _is_catboost(model: Any) -> bool:
    """Whether a model, or the first step of a pipeline, is one of CatBoost."""
    first = getattr(model, "steps", [(None, model)])[0][1]
    return type(getattr(first, "model", first)).__module__.startswith("catboost")


def columns_of_model(
    model: Any, among: Collection[str] = ()
) -> tuple[list[str] | None, int | None]:
    """Return the names of the columns that a model was fitted on, and their number.

    Parameters
    ----------
    model : object
    among : collection of str
        The columns of the table. Names that CatBoost and LightGBM give the columns of an array, as
        ``0``, are names where the table has these columns and no others.

    Returns
    -------
    names : list of str or None
        In the model's order; None where it saw an array, or does not tell.
    count : int or None
        None where it does not tell.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> columns_of_model(LinearRegression().fit([[1.0], [2.0]], [1.0, 2.0]))
    (None, 1)
    """
    model = as_native(model) or model
    # scikit-learn, CatBoost; LightGBM and XGBoost beside what scikit-learn calls it. Of an array's
    # columns CatBoost and LightGBM alone have names, and what searches around these repeats them
    for attribute in ("feature_names_in_", "feature_names_", "feature_name_"):
        given = attribute_of(model, attribute)
        if given is not None and len(given):
            names = [str(name) for name in given]
            places = range(len(names))
            form = "{}" if _is_catboost(model) else "Column_{}"
            is_array = names == [*map(form.format, places)]
            are_known = not is_array or set(names) == set(among)
            return names if are_known else None, len(names)
    # CatBoost counts none after it was loaded
    count = attribute_of(model, "n_features_in_")
    return None, int(count) if count else None


def select_features(
    model: Any, table: GivenTable, name: str, *, what: str = "the table"
) -> Any:
    """Return the rows as a model takes them, a copy that it may change.

    Parameters
    ----------
    model : object
    table : GivenTable of n rows
    name : str
        Of the model, for errors.
    what : str
        What errors call the table.

    Returns
    -------
    DataFrame, ndarray, or whatever the user gave

    Raises
    ------
    ModelError
        The table lacks a column, or has another number of columns.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = pd.DataFrame({"b": [1.0, 2.0], "a": [0.0, 1.0], "note": ["u", "v"]})
    >>> model = LinearRegression().fit(X[["a", "b"]], [1.0, 2.0])
    >>> list(select_features(model, GivenTable.of(X), "m.pkl").columns)
    ['a', 'b']
    """
    if any(base.__module__.startswith("skorch.") for base in type(model).__mro__):
        # whose networks read a frame as a dict of its columns
        try:
            return table.frame.to_numpy(dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"{name} is a network of skorch, which takes numbers alone: {error}",
                f"give {what} with the columns of numbers that it was fitted on",
            ) from None
    columns = pd.Series(table.frame.columns)
    names, count = columns_of_model(model, table.names)
    if names is None and count is None:
        return table.copy_as_given()
    if names is None:
        if count != table.frame.shape[1]:
            raise ModelError(
                f"{name} was fitted on an array of {count} columns, or on columns that are called "
                f"like those of one, and {what} has {table.frame.shape[1]}: "
                f"{list_names(table.frame.columns)}",
                "fit the model on a DataFrame, so that it knows the names of its columns, or give "
                "the table with those columns alone, in their order",
            )
        # whole numbers as names: scikit-learn does not keep these, so it may have seen a frame
        return table.copy_as_given() if table.is_unnamed else table.frame.to_numpy()
    is_known = set(names) <= set(table.names)
    if table.has_places and not is_known and len(names) == table.frame.shape[1]:
        return table.frame.set_axis(names, axis=1)
    # LightGBM writes customer_age for customer age, and other libraries drop what JSON has a use
    # for: where a name is not there, the one that differs in such characters alone is meant
    places = {_letters(column): place for place, column in columns.items()}
    for doubled in columns.map(_letters)[lambda letters: letters.duplicated()]:
        places.pop(doubled, None)
    own: dict[str, Any] = {column: place for place, column in columns.items()}
    found = [own.get(column, places.get(_letters(column))) for column in names]
    missing = [name for name, place in zip(names, found, strict=True) if place is None]
    if missing:
        unused = [column for column in columns if column not in names]
        others = f", as it lacks {len(missing) - 1} more ({list_names(missing[1:])})"
        # the nearest name is most often the same column, renamed
        nearest = difflib.get_close_matches(missing[0], unused, n=1, cutoff=0.5)
        hint = f"did you mean {nearest[0]!r}? " if nearest else ""
        known = "the model knows all columns that are there"
        if unused:
            known = f"columns that the model does not know: {list_names(unused)}"
        raise ModelError(
            f"{name} was fitted on the column {missing[0]!r}, which {what} lacks"
            f"{others if len(missing) > 1 else ''}",
            f"{hint}{known}",
        )
    picked = table.frame.iloc[:, found]
    # a frame of its own: some models write into what they are given
    return picked.set_axis(names, axis=1).copy()


def are_same_column(column: str, names: Collection[str]) -> bool:
    """Whether a column of a table is among those that a model names, in its own spelling.

    Examples
    --------
    >>> are_same_column("customer age", {"customer_age"})
    True
    """
    return column in names or _letters(column) in {_letters(name) for name in names}


def _letters(name: str) -> str:
    return re.sub(r"\W", "_", name)


def describe_expected(model: Any) -> str:
    """Return in words what columns a model was fitted on.

    Examples
    --------
    >>> describe_expected(object())
    'the model does not say which columns it was fitted on'
    """
    names, count = columns_of_model(model)
    if names is not None:
        return f"it was fitted on the columns {list_names(names)}"
    if count is not None:
        return f"it was fitted on an array of {count} columns"
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
