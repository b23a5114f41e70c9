"""The format of predictions, in a file or in memory; every door reads it here.

One row for each row of the table. What its columns are is told in ``docs/how-to/models.md``,
section "The predictions file".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.errors import ModelError, SourceError
from amlb_ext.core.numbers import MAX_EXACT_INTEGER
from amlb_ext.core.paths import check_predictions_file
from amlb_ext.core.task import Task
from amlb_ext.models.answers import (
    Answers,
    Labels,
    RawAnswers,
    answers_of_numbers,
    flat_rows,
    label_text,
    order_labels,
    read_labels,
    read_probabilities,
    wanted_text,
    without_prefix,
)
from amlb_ext.models.checks import check_truth
from amlb_ext.models.columns import Align, align_rows, list_names

#: Names of the column of a regression, or of the labels that are named; the first is documented.
PREDICTION_COLUMNS = ("prediction", "predictions")
#: Name of the one column of two classes, the probability of the second; ``score:yes`` names it.
SCORE_COLUMN = "score"
#: What readers of CSV call the column of an index.
_INDEX = re.compile(r"Unnamed: \d+|index")
#: Name of the column in which AMLB writes the targets beside predictions.
TRUTH_COLUMN = "truth"


#: Types of predictions in hand; of pandas' arrays those of categories and of numbers with gaps.
_PREDICTIONS = (
    np.ndarray
    | pd.Series
    | pd.DataFrame
    | pd.Index
    | pd.api.extensions.ExtensionArray
    | list
    | tuple
)


def are_predictions(model: Any) -> bool:
    """Whether something stands for the answers of a model, and is no model."""
    if hasattr(model, "predict"):
        return False
    # a tensor of torch alone has "detach"
    return (
        isinstance(model, _PREDICTIONS)
        or type(model).__module__.partition(".")[0] in ("polars", "pyarrow")
        or hasattr(model, "detach")
    )


def read_predictions_table(path: Path) -> pd.DataFrame:
    """Read a file of predictions as it stands.

    Raises
    ------
    ModelError
        Missing or unreadable file.
    """
    check_predictions_file(path)
    try:
        # readers of files, which models in hand do without
        from amlb_ext.sources.read_table import read_table

        table = read_table(path)
    except SourceError as error:
        raise ModelError(error.message, error.remedy) from error
    if table.index is None:
        return table.frame
    # no RangeIndex: labels that the file keeps, even where they count its rows
    return table.frame.set_axis(pd.Index(table.index.to_numpy()), axis=0)


#: A number with a decimal comma, or a whole one; and one whose commas may be those of thousands.
_COMMA_NUMBER = r"[-+]?\d*,?\d+(?:[eE][-+]?\d+)?"
_MAYBE_THOUSANDS = r"[-+]?[1-9]\d{0,2}(?:,\d{3})+|[-+]?\d+"


def with_points(table: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Return a table whose columns of numbers with a decimal comma are numbers; no labels are."""
    found = {}
    for name in table.columns[~table.dtypes.map(pd.api.types.is_numeric_dtype)]:
        texts = table[name].astype(str)
        are_labels = len(labels) > 0 and (labels.codes(texts.unique()) >= 0).all()
        if are_labels or not texts.str.fullmatch(_COMMA_NUMBER).all():
            continue
        if not texts.str.fullmatch(_MAYBE_THOUSANDS).all():
            found[name] = pd.to_numeric(texts.str.replace(",", ".", regex=False))
    return table.assign(**found) if found else table


def read_predictions(path: Path, task: Task, index: pd.Index | None = None) -> Answers:
    """Read predictions for every row of the source's table from a file.

    Parameters
    ----------
    path : Path
        A file of any table that can be read.
    task : Task
    index : Index of shape (N,), optional
        Labels of all rows of the table; the task's own when omitted.

    Returns
    -------
    Answers
        For the task's rows.

    Raises
    ------
    ModelError
        Missing file or column, wrong number of rows, values that are no numbers or no
        probabilities.
    """
    table = read_predictions_table(path)
    labels = Labels(task.labels)
    given = with_truth(with_points(table, labels), task.target_name, labels)
    placed = join_by_shared_columns(
        given,
        task.features,
        path.name,
        labels,
        rows=task.row_ids,
        index=task.source_index if index is None else index,
    )
    answers = interpret_predictions(placed, labels, path.name)
    if answers.raw.truth is not None:
        check_truth(answers.raw.truth, task.target.to_numpy(dtype=object), path.name)
    return answers


def interpret_predictions(
    given: Any,
    labels: Labels,
    name: str,
    *,
    n: int | None = None,
    beside: Any = None,
    features: pd.DataFrame | None = None,
    target: str = "",
    align: Align = "auto",
    rows: np.ndarray | None = None,
) -> Answers:
    """Return predictions as numbers: in the target's unit, or probabilities of the labels.

    Parameters
    ----------
    given : DataFrame, Series, array or sequence of n rows
        A frame has the columns of a predictions file. Without column names it is one number
        per row, the prediction or the probability of the second of two labels; one column for
        each label, in the order of scikit-learn's ``unique_labels``; or one label per row.
    labels : Labels
        Empty for a regression.
    name : str
        For errors.
    n : int, optional
        How many rows are wanted; as many as come when omitted.
    beside : object of n rows, optional
        The rows that are predicted, whose index may tell which is which.
    features : DataFrame of n rows, optional
        The same rows, of which a column that both have may tell which is which.
    target : str, optional
        Name of the target: a column of that name beside predictions holds what is true.
    align : {'auto', 'index', 'position'}
        See :mod:`amlb_ext.models.columns`.
    rows : ndarray of shape (m,), int, optional
        Positions of the rows whose predictions are asked for; the others may lack.

    Returns
    -------
    Answers

    Raises
    ------
    ModelError

    Examples
    --------
    >>> given = pd.DataFrame({"score": [0.2, 1.0]})
    >>> interpret_predictions(given, Labels(("no", "yes")), "p.csv").f
    array([[0.8, 0.2],
           [0. , 1. ]])
    """
    if (plain := as_rows(given)) is not given:
        # whose rows have their place alone
        given, align = plain, "position"
    if beside is not None:
        given = align_rows(
            given, beside, what=f"the predictions of {name}", align=align
        )
    if isinstance(given, pd.DataFrame):
        given = with_points(given, labels)
    elif isinstance(given, pd.Series):
        given = with_points(given.to_frame(0), labels)[0].rename(given.name)
    if isinstance(given, pd.DataFrame) and target:
        given = with_truth(given, target, labels)
    if isinstance(given, pd.DataFrame) and features is not None:
        given = join_by_shared_columns(given, features, name, labels)
    if rows is not None and n == len(given):
        if isinstance(given, pd.DataFrame | pd.Series):
            given = given.iloc[rows]
        elif isinstance(given, np.ndarray):
            given = given[rows]
        else:
            given = [given[row] for row in rows]
        n = len(rows)
    answers = _interpret(given, labels, name, len(given) if n is None else n)
    if not isinstance(given, pd.DataFrame) or TRUTH_COLUMN not in given:
        return answers
    if labels.code(TRUTH_COLUMN) >= 0:
        return answers
    truth = given[TRUTH_COLUMN].to_numpy(dtype=object)
    return replace(answers, raw=replace(answers.raw, truth=truth))


def as_rows(given: Any) -> Any:
    """Return a sparse matrix, a tensor, or a table of polars or pyarrow as numpy or pandas."""
    if hasattr(given, "toarray"):
        return given.toarray()
    if hasattr(given, "to_pandas"):
        return given.to_pandas()
    if hasattr(given, "detach"):
        # a tensor of torch may need a gradient, stand on another device, or have no type of numpy
        tensor = given.detach().cpu().to_dense()
        return (tensor.double() if tensor.is_floating_point() else tensor).numpy()
    return given


def _interpret(given: Any, labels: Labels, name: str, n: int) -> Answers:
    named: Any = None
    classes: list[Any] | None = None
    if isinstance(given, pd.DataFrame):
        given, named, classes = _pick_columns(given, labels, name)
    elif isinstance(given, pd.Series) and _is_called_by_class(given, labels):
        given, _, classes = _pick_columns(given.to_frame(), labels, name)
    elif (
        isinstance(given, pd.Series)
        and str(given.name) == "0"
        and len(labels) == 2
        and not _are_labels(given, labels)
    ):
        # probabilities of two classes that are called as a first column is
        raise ModelError(
            f"the predictions of {name} are called {given.name}, which may be the place of a "
            "column of predict_proba",
            f"call them score:{labels.names[1]} if they are the probability of {labels.names[1]}",
        )
    if not len(labels):
        return answers_of_numbers(given, n, name)
    if given is None or (classes is None and _are_labels(given, labels)):
        given = named if given is None else given
        return answers_of_labels(given, labels, n, name)
    f = read_probabilities(given, labels, n, name, classes=classes)
    notes = tuple(sure_notes(f, name))
    decided = f.argmax(axis=1)
    if named is not None:
        decided = read_labels(named, labels, n, name)
        check_order(f, decided, name, has_names=classes is not None)
        notes += decision_notes(f, decided, name)
    return Answers(f=f, decided=decided, notes=notes)


def sure_notes(f: np.ndarray, name: str) -> list[str]:
    """Return a note where a model is sure of every row, as one that names labels would be."""
    if not np.isin(f, (0.0, 1.0)).all():
        return []
    return [
        f"every probability of {name} is 0 or 1: if they are labels, a model with probabilities "
        "has the advantage in the Brier loss"
    ]


def answers_of_labels(values: Any, labels: Labels, n: int, name: str) -> Answers:
    """Return answers of a model that names labels and gives no probabilities."""
    flat = flat_rows(values, n, name)
    notes: tuple[str, ...] = (f"{name} names labels and gives no probabilities",)
    is_of_two = len(labels.present) == 2
    if is_of_two and (labels.codes(flat) < 0).any() and _are_truths(flat):
        # probabilities of the second class that are all 0 or 1
        codes = np.where(flat.astype(float) > 0, labels.present[1], labels.present[0])
        first, second = (labels.names[code] for code in labels.present)
        notes += (f"{name} answers 0 and 1, which are read as {first} and {second}",)
    else:
        codes = read_labels(flat, labels, n, name)
    return Answers(
        f=np.eye(len(labels))[codes],
        decided=codes,
        only_labels=True,
        raw=RawAnswers(decided=np.asarray(labels.names, dtype=object)[codes]),
        notes=notes,
    )


def with_truth(predictions: pd.DataFrame, name: str, labels: Labels) -> pd.DataFrame:
    """Return predictions whose copy of the target is called ``truth``, where others predict.

    Examples
    --------
    >>> predictions = pd.DataFrame({"price": [1.0, 2.0], "prediction": [1.5, 2.0]})
    >>> with_truth(predictions, "price", Labels(())).columns.tolist()
    ['truth', 'prediction']
    """
    others = [str(column) for column in predictions.columns if str(column) != name]
    predict = [
        column
        for column in others
        if column in PREDICTION_COLUMNS
        or column.partition(":")[0] == SCORE_COLUMN
        or labels.code(column) >= 0
    ]
    if not predict or TRUTH_COLUMN in others or len(others) == predictions.shape[1]:
        return predictions
    return predictions.rename(columns={name: TRUTH_COLUMN})


def check_same_order(path: Path, task: Task, chosen: Task) -> None:
    """Raise where predictions are joined to a table by columns that a suite leaves out.

    Parameters
    ----------
    path : Path
        The file of predictions.
    task, chosen : Task
        The table whole, and with the columns that the suite keeps.

    Raises
    ------
    ModelError
    """
    if task.features.columns.equals(chosen.features.columns):
        return
    whole, kept = (read_predictions(path, each).f for each in (task, chosen))
    if not np.array_equal(whole, kept, equal_nan=True):
        raise ModelError(
            f"{path.name} is in another order than the table, by a column that the suite leaves "
            "out",
            "write one prediction for each row of the table, in its order",
        )


def join_by_shared_columns(
    predictions: pd.DataFrame,
    table: pd.DataFrame,
    name: str,
    labels: Labels | None = None,
    *,
    rows: np.ndarray | None = None,
    index: pd.Index | None = None,
) -> pd.DataFrame:
    """Return predictions in the order of a table that shares columns with them.

    Where the shared columns are alike row by row, the order is the table's. Else one of them must
    tell the rows apart: an id. Where no name is shared, an id whose name differs in case does. What
    shares nothing has the table's order, unless a column or an index tells of another.

    Parameters
    ----------
    predictions : DataFrame
    table : DataFrame of n rows
    name : str
        Of the file of predictions, for errors.
    labels : Labels, optional
        Classes, whose columns are predictions whatever the table calls its own.
    rows : ndarray of shape (n,), int, optional
        Positions of the table's rows among those that are predicted; all when omitted.
    index : Index of shape (N,), optional
        Labels of all rows that are predicted, as their file has them.

    Raises
    ------
    ModelError
        The shared columns tell of another order, and none of them is an id of the same rows; a
        column that is not shared counts the rows in another order; another number of rows.

    Examples
    --------
    >>> predictions = pd.DataFrame({"id": [2, 1], "prediction": [0.5, 0.1]})
    >>> table = pd.DataFrame({"id": [1, 2], "age": [39, 50]})
    >>> join_by_shared_columns(predictions, table, "p.csv")["prediction"].tolist()
    [0.1, 0.5]
    """
    said = (*PREDICTION_COLUMNS, SCORE_COLUMN, TRUTH_COLUMN)
    others = [
        column
        for column in predictions.columns
        if column not in said and (labels is None or labels.code(column) < 0)
    ]
    n_rows = len(table) if index is None else len(index)
    shared = {column: column for column in others if column in table.columns}
    shared = shared or _alike_ids(others, predictions, table)
    if shared and len(predictions) == n_rows:
        placed = predictions if rows is None else predictions.iloc[rows]
        if all(_are_alike(placed[ours], table[own]) for ours, own in shared.items()):
            return placed
    if ids := _places_by_id(predictions, table, shared, name):
        (column, place), *others_ids = ids.items()
        for other, of_other in others_ids:
            if not np.array_equal(place, of_other):
                raise ModelError(
                    f"{name} has {column!r} and {other!r}, and each tells of another order",
                    "leave out the one that is no id of the rows",
                )
        return predictions.iloc[place].reset_index(drop=True)
    if shared:
        column, own = next(iter(shared.items()))
        doubled = predictions[column][predictions[column].duplicated()]
        if len(doubled) and _may_be_id(table[own]):
            raise ModelError(
                f"{name} has more than one row whose {column} is {label_text(doubled.iloc[0])}",
                f"give one prediction for each {column} of the table",
            )
        raise ModelError(
            f"{name} shares the column {column!r} with the table, and its rows are in another "
            "order",
            "add a column that tells the rows apart to both, e.g. id, or leave out of the "
            "predictions what the table has too",
        )
    if len(predictions) != n_rows:
        raise ModelError(
            f"{name} has {len(predictions)} rows, but the table has {n_rows}",
            "give one prediction per row of the table, in its order, or an id that both have",
        )
    ours = predictions.index
    theirs = ours if index is None else index
    # an index that the file does not keep, or labels of other rows, tell nothing
    is_told = not isinstance(ours, pd.RangeIndex) and set(ours) == set(theirs)
    if is_told and not ours.equals(theirs):
        _check_fresh(_keys(pd.Series(ours)), _keys(pd.Series(theirs)), name)
        predictions = predictions.loc[theirs].reset_index(drop=True)
    placed = predictions if rows is None else predictions.iloc[rows]
    _check_other_ids(others, placed, table, name)
    return placed


def _places_by_id(
    predictions: pd.DataFrame,
    table: pd.DataFrame,
    shared: Mapping[Any, Any],
    name: str,
) -> dict[Any, np.ndarray]:
    """Return where each row of the table stands among the predictions, by every shared id."""
    places = {}
    for column, own in shared.items():
        if not (_may_be_id(predictions[column]) and _may_be_id(table[own])):
            continue
        ours, theirs = _keys(predictions[column]), _keys(table[own])
        if not (ours.is_unique and theirs.is_unique):
            continue
        if _INDEX.fullmatch(str(column)):
            _check_fresh(ours, theirs, name)
        place = pd.Index(ours).get_indexer(pd.Index(theirs))
        if (place < 0).any():
            missing = label_text(table[own].iloc[int(np.argmax(place < 0))])
            raise ModelError(
                f"{name} has no row whose {column} is {missing}, which the table has",
                f"give one prediction for each {column} of the table",
            )
        places[column] = place
    return places


def _check_fresh(ours: pd.Series, theirs: pd.Series, name: str) -> None:
    """Refuse two indexes in different orders of which one counts its rows; see ``align_rows``."""
    fresh = _keys(pd.Series(range(len(theirs))))
    is_unclear = fresh.equals(ours) or fresh.equals(theirs) or not theirs.is_unique
    if is_unclear and not ours.equals(theirs):
        raise ModelError(
            f"{name} and the table number the same rows in different orders, so it is not clear "
            "which rows belong together",
            "write both files without an index if they are in one order, or give both an id",
        )


def _check_other_ids(
    columns: Sequence[Any], predictions: pd.DataFrame, table: pd.DataFrame, name: str
) -> None:
    """Refuse a column that holds each row's number or id once, under another name or none.

    Such a column tells of an order; a rank may look alike, and must be left out.
    """
    suspects = [column for column in columns if _may_be_id(predictions[column])]
    if not suspects:
        return
    n = len(table)
    ids = {
        "the numbers of the rows": pd.Series(range(n)),
        "the numbers of the rows from 1": pd.Series(range(1, n + 1)),
        "the index of the rows": pd.Series(table.index),
        **{f"the values of {own!r}": table[own] for own in table.columns},
    }
    known = {what: _keys(values) for what, values in ids.items() if _may_be_id(values)}
    for column in suspects:
        ours = _keys(predictions[column])
        for what, theirs in known.items():
            if set(ours) == set(theirs) and not ours.equals(theirs):
                raise ModelError(
                    f"the column {str(column)!r} of {name} holds {what} of the table, in another "
                    "order",
                    "sort the predictions into the table's order and leave that column out, or "
                    "give both an id of one name; leave it out if it is a rank",
                )


def _may_be_id(values: pd.Series) -> bool:
    """Whether each value is there once, and none has a fraction."""
    if not values.is_unique:
        return False
    is_float = pd.api.types.is_float_dtype(values.dtype)
    return not is_float or bool((values % 1 == 0).all())


def _are_alike(ours: pd.Series, theirs: pd.Series) -> bool:
    """Whether two columns hold the same values row by row; numbers with fractions may be rounded.

    Rounded to a thousandth of their spread, so that no other order passes for rounding; ids not.
    """
    are_floats = all(pd.api.types.is_float_dtype(each.dtype) for each in (ours, theirs))
    if not are_floats or _may_be_id(theirs):
        return _keys(ours).equals(_keys(theirs))
    one, other = (each.to_numpy(float, na_value=np.nan) for each in (ours, theirs))
    spread = float(np.nanstd(other)) if len(other) else 0.0
    return bool(np.allclose(one, other, rtol=0, atol=1e-3 * spread, equal_nan=True))


def _alike_ids(
    columns: Sequence[Any], predictions: pd.DataFrame, table: pd.DataFrame
) -> dict[Any, Any]:
    """Return columns that hold each value of a table's column of nearly the same name once."""
    by_spelling = {str(own).strip().casefold(): own for own in table.columns}
    found = {}
    for column in columns:
        own = by_spelling.get(str(column).strip().casefold())
        if own is None:
            continue
        ours, theirs = _keys(predictions[column]), _keys(table[own])
        if ours.is_unique and set(theirs) <= set(ours):
            found[column] = own
    return found


def _keys(values: pd.Series) -> pd.Series:
    """Return values as texts that are equal where the values are: 1 and 1.0, or one instant."""
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        values = values.dt.tz_convert("UTC")
    numbers = pd.to_numeric(values.astype(object), errors="coerce").astype(float)
    # of longer numbers several are one as a float
    is_exact = numbers.abs() < MAX_EXACT_INTEGER
    texts = values.astype(str).where(~is_exact, numbers.astype(str))
    return texts.reset_index(drop=True)


def _are_labels(given: Any, labels: Labels) -> bool:
    """Whether one value for each row is a label rather than a probability."""
    array = np.asarray(given)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        return False
    # of two classes 0 and 1 are the labels, or probabilities that say as much
    if _are_truths(array) and len(labels.present) == 2:
        return True
    if array.dtype.kind not in "fiub":
        try:
            array = array.astype(float)
        except (TypeError, ValueError):
            return True
    return bool((labels.codes(array) >= 0).all())


def _are_truths(array: np.ndarray) -> bool:
    """Whether all values are 0 or 1."""
    return array.dtype.kind in "fiub" and bool(np.isin(array, (0, 1)).all())


def _pick_columns(
    table: pd.DataFrame, labels: Labels, name: str
) -> tuple[Any, Any, list[Any] | None]:
    """Return probabilities or numbers, the labels that are named beside them, and the classes.

    The first is None where labels are named alone.
    """
    columns = [str(column) for column in table.columns]
    by_name = dict(zip(columns, table.columns, strict=True))
    predicted = next((c for c in PREDICTION_COLUMNS if c in by_name), None)
    if not len(labels):
        if predicted is None and len(columns) == 1:
            predicted = columns[0]
        if predicted is not None:
            return table[by_name[predicted]], None, None
        raise ModelError(
            f"{name} lacks the column {PREDICTION_COLUMNS[0]!r} (it has {list_names(columns)})",
            wanted_text(()),
        )
    # by place: a list of truth values would be a mask
    found = {code: place for place, code in enumerate(labels.codes(columns).tolist())}
    is_class = predicted is None or labels.code(predicted) >= 0
    named = None if is_class else table[predicted]
    missing = [label for code, label in enumerate(labels.names) if code not in found]
    if not missing:
        ordered = [found[code] for code in range(len(labels))]
        return table.iloc[:, ordered].to_numpy(), named, list(labels.names)
    scores = [column for column in columns if column.partition(":")[0] == SCORE_COLUMN]
    if not scores and len(columns) == 1 and _holds_numbers(table.iloc[:, 0]):
        scores = [column for column in columns if _class_in_name(column, labels)]
    if scores and len(labels) == 2:
        classes = _classes_of_score(scores[0], labels, name)
        score = table[by_name[scores[0]]]
        for column in table.columns if scores[0] == SCORE_COLUMN else ():
            if str(column).casefold() in _LABEL_COLUMNS:
                check_whose_score(score, table[column], labels, name)
        return score, named, classes
    if scores:
        raise ModelError(
            f"{name} has one column {scores[0]!r}, which is not enough for {len(labels)} classes",
            wanted_text(labels.names),
        )
    if len(missing) == len(labels):
        of_labels = [
            column
            for column in table.columns
            if len(table) and (labels.codes(table[column].head(1000)) >= 0).all()
        ]
        if named is None and len(of_labels) == 1:
            named = table[of_labels[0]]
        if named is not None:
            return None, named, None
    raise ModelError(
        f"{name} lacks the column {missing[0]!r} (it has {list_names(columns)})",
        wanted_text(labels.names),
    )


def _class_in_name(column: Any, labels: Labels) -> str | None:
    """Return the class whose probability a column is said to have: ``yes``, ``proba_yes``.

    None for ``score``, which is that of the second class; empty for a name that tells nothing.
    """
    if column is None or not len(labels):
        return ""
    text = str(column)
    if text == SCORE_COLUMN:
        return None
    label = without_prefix(text)
    if text.startswith(f"{SCORE_COLUMN}:"):
        return label
    return label if labels.code(label) >= 0 else ""


def _is_called_by_class(given: pd.Series, labels: Labels) -> bool:
    """Whether a Series is called ``score``, or after one of two classes whose probability it has.

    Labels may have any name: that of a column without one is the number of its place.
    """
    if (label := _class_in_name(given.name, labels)) == "":
        return False
    if label is None or str(given.name).startswith(f"{SCORE_COLUMN}:"):
        return True
    is_place = str(given.name).isdecimal() and _are_labels(given, labels)
    return len(labels) == 2 and _holds_numbers(given) and not is_place


def _holds_numbers(values: pd.Series) -> bool:
    """Whether a column may hold probabilities."""
    return pd.to_numeric(values, errors="coerce").notna().all()


#: What columns of labels are called that stand beside the score of the label.
_LABEL_COLUMNS = {*PREDICTION_COLUMNS, "label", "labels", "class", "predicted", "pred"}


def check_whose_score(
    score: pd.Series, named: pd.Series, labels: Labels, name: str
) -> None:
    """Refuse a score that seems to be that of the label beside it, not of the second class.

    Parameters
    ----------
    score, named : Series of shape (n,)
        A probability, and the label that is named beside it.
    labels : Labels
        Two.
    name : str

    Raises
    ------
    ModelError
    """
    numbers = pd.to_numeric(score, errors="coerce")
    if set(labels.codes(named)) == {0, 1} and numbers.min() >= 0.5:
        raise ModelError(
            f"{name} has {SCORE_COLUMN!r} of at least .5 in every row, those that {named.name!r} "
            f"calls {labels.names[0]} among them: it seems to be that of the label beside it",
            f"give score:{labels.names[1]}, the probability of {labels.names[1]} in every row",
        )


def _classes_of_score(column: str, labels: Labels, name: str) -> list[str]:
    """Return the two classes with the one last whose probability a column has.

    A source may list its classes in another order than scikit-learn's, and then "the second" is
    one or the other.
    """
    if label := _class_in_name(column, labels):
        code = labels.code(label)
        if column.isdecimal() and code == 0:
            raise ModelError(
                f"the one column of {name} is called {column!r}, which may be the class or a place",
                f"call it score:{labels.names[0]} or score:{labels.names[1]}",
            )
        if code < 0:
            raise ModelError(
                f"{name} has the column {column!r}, and the classes are "
                f"{list_names(labels.names)}",
                f"write score:{labels.names[1]}",
            )
        return [labels.names[1 - code], labels.names[code]]
    sorted_names = order_labels(labels.names)
    if sorted_names != labels.declared:
        first, second = labels.declared[1], sorted_names[1]
        raise ModelError(
            f"the column {SCORE_COLUMN!r} of {name} can be read in two ways: the source lists its "
            f"classes as {', '.join(labels.declared)}, so the second is {first}; in sorted order "
            f"it is {second}",
            f"call the column score:{first} or score:{second}",
        )
    return list(labels.names)


# Labels that are named beside probabilities, by ``predict`` or by a column.


#: A class within so much of the most probable one is a tie, which may be broken at will.
_TIE = 1e-9


def decision_notes(f: np.ndarray, decided: np.ndarray, name: str) -> tuple[str, ...]:
    """Return a note where a model decides against its own largest probability."""
    own = f[np.arange(len(f)), decided]
    n_other = int((own < f.max(axis=1) - _TIE).sum())
    said = (
        f"{name} decides for another class than its most probable one on {n_other} of "
        f"{len(f)} rows: a row is wrong where predict is"
    )
    return (said,) if n_other else ()


#: A class that a model names is so much less probable where the model decides for it than
#: elsewhere, if probabilities and names are in different orders; chance and costs do less.
_CONTRADICTED = 0.1


def check_order(
    f: np.ndarray, decided: np.ndarray, name: str, *, has_names: bool
) -> None:
    """Refuse probabilities whose order the decisions contradict.

    Each class that a model decides for must be more probable where it does. Of classes that the
    model names only a clear contradiction counts, and one in all of them.

    Raises
    ------
    ModelError
    """
    gains = {}
    for code in np.unique(decided):
        chosen = decided == code
        if not chosen.all():
            given = f[chosen, code].mean()
            gains[given - f[~chosen, code].mean()] = given
    if not gains:
        return
    if has_names and max(gains) < -_CONTRADICTED:
        raise ModelError(
            f"the probabilities of {name} contradict its predict: each class is less probable "
            f"where {name} predicts it than elsewhere",
            "give probabilities in the order of classes_, one column for each class",
        )
    if not has_names and min(gains) < 0:
        raise ModelError(
            f"{name} does not name its classes, and its probabilities in sorted order contradict "
            f"its predict: where it predicts a class it gives that class "
            f"{gains[min(gains)]:.2g}",
            "give it the attribute classes_, the classes in the order of predict_proba's columns",
        )
