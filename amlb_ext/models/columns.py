"""Which columns of a table a fitted model is given: those that it was fitted on, in its order.

Libraries name them in different places, and some rename them while they fit. A model that saw
names gets a frame with its own names in its own order; one that saw an array gets an array; one
that says nothing gets the table whole, as the user gave it, index and all.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from amlb_ext.core.errors import ConfigError, DataError, ModelError
from amlb_ext.models.given_table import GivenTable
from amlb_ext.models.native import as_native

# Rows that belong together: targets, groups and predictions beside the rows of X.
#
# What has no index is meant by position. Two indexes in the same order, too. The same labels in
# another order are meant by label, unless one of the two indexes is a fresh 0 ... n-1: a frame
# that was shuffled, beside answers that were not, has the same set of labels and is meant by
# position. Which of the two it is only the user knows.


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
    has_doubles = not (ours.is_unique and theirs.is_unique)
    is_unclear = has_doubles or _is_fresh(ours) != _is_fresh(theirs)
    if align != "index" and is_unclear:
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
    lacking = theirs.difference(ours, sort=False).tolist()
    if lacking:
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
    # numbers of Python, which print without the type of numpy's
    own, other = ours.tolist()[differing], theirs.tolist()[differing]
    return DataError(
        f"{what} and {of} have different indexes: row {differing} of {of} is {other!r} and that of "
        f"{what} is {own!r}, so it is not clear which rows belong together",
        'give align="position" if both are in the same order, or align="index" if the labels of '
        "the index tell",
    )


#: Columns that a message lists by name.
MOST_NAMES = 8
#: What libraries call the columns of an array: ``0``, ``Column_0``, ``f0``.
_ARRAY_NAMES = ("{}", "Column_{}", "f{}")


def columns_of_model(model: Any) -> tuple[list[str] | None, int | None]:
    """Return the names of the columns that a model was fitted on, and their number.

    Parameters
    ----------
    model : object

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
    names = None
    model = as_native(model) or model
    # scikit-learn, CatBoost; LightGBM and XGBoost beside what scikit-learn calls it
    for attribute in ("feature_names_in_", "feature_names_", "feature_name_"):
        names = _attribute(model, attribute)
        if names is not None and len(names):
            break
    # CatBoost counts none after it was loaded
    count = _attribute(model, "n_features_in_") or None
    if names is None or not len(names):
        return None, None if count is None else int(count)
    names = [str(name) for name in names]
    if _are_array_names(names):
        return None, len(names)
    return names, len(names)


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
    if _is_skorch(model):
        return table.frame.to_numpy(dtype=np.float32)
    names, count = columns_of_model(model)
    if names is None and count is None:
        return table.copy_as_given()
    if names is None:
        if count != table.frame.shape[1]:
            raise ModelError(
                f"{name} was fitted on an array of {count} columns, and {what} has "
                f"{table.frame.shape[1]}: {list_names(table.frame.columns)}",
                "fit the model on a DataFrame, so that it knows the names of its columns, or give "
                "the table with those columns alone, in their order",
            )
        # whole numbers as names: scikit-learn does not keep these, so it may have seen a frame
        return table.copy_as_given() if table.is_unnamed else table.frame.to_numpy()
    if table.is_unnamed and len(names) == table.frame.shape[1]:
        # an array has nothing but the place of its columns
        return table.frame.set_axis(names, axis=1)
    places = _places_of(names, list(table.frame.columns))
    missing = [
        column for column, place in zip(names, places, strict=True) if place is None
    ]
    if missing:
        raise _missing_error(missing, names, table.frame, name=name, what=what)
    picked = table.frame.iloc[:, [place for place in places if place is not None]]
    # a frame of its own: some models write into what they are given
    return picked.set_axis(names, axis=1).copy()


def _places_of(wanted: Sequence[str], columns: Sequence[str]) -> list[int | None]:
    """Return the position of each wanted column; None for one that is not there.

    LightGBM writes ``customer_age`` for ``customer age``, and other libraries drop what JSON has
    a use for: where a name is not there, one that differs in such characters alone is meant.
    """
    by_name = {name: place for place, name in enumerate(columns)}
    by_letters: dict[str, list[int]] = {}
    for place, name in enumerate(columns):
        by_letters.setdefault(_letters(name), []).append(place)
    places: list[int | None] = []
    for name in wanted:
        alike = by_letters.get(_letters(name), [])
        renamed = alike[0] if len(alike) == 1 else None
        places.append(by_name.get(name, renamed))
    return places


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


def _attribute(model: Any, name: str) -> Any:
    """Return an attribute, or None where the model refuses it: before a fit, or of another kind."""
    try:
        return getattr(model, name, None)
    except Exception:
        return None


def _are_array_names(names: Sequence[str]) -> bool:
    """Whether names are what a library calls the columns of an array."""
    for pattern in _ARRAY_NAMES:
        if all(name == pattern.format(place) for place, name in enumerate(names)):
            return True
    return False


def _is_skorch(model: Any) -> bool:
    """Whether a model is a network of skorch, which reads a frame as a dict of its columns."""
    packages = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    return "skorch" in packages


def _missing_error(
    missing: Sequence[str],
    wanted: Sequence[str],
    frame: pd.DataFrame,
    *,
    name: str,
    what: str,
) -> ModelError:
    unused = [str(column) for column in frame.columns if str(column) not in wanted]
    message = f"{name} was fitted on the column {missing[0]!r}, which {what} lacks"
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
