"""The format of predictions, in a file or in memory; every command reads it here.

One row for each row of the table, in its order. What its columns are is told in
``docs/how-to/models.md``, section "The predictions file".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.errors import ModelError, SourceError
from amlb_ext.core.numbers import count_not_finite
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.model_columns import list_names
from amlb_ext.sources.read_table import read_table

#: Names of the column of a regression; the first is the documented one.
_PREDICTION_COLUMNS = ("prediction", "predictions")
#: Name of the one column of two classes: the probability of the second label.
_SCORE_COLUMN = "score"
#: Smallest and largest sum of the probabilities of a row.
_SUM_LOW, _SUM_HIGH = 0.99, 1.01
#: Most probabilities of a row that an error shows.
_MOST_SHOWN = 6


def read_predictions(path: Path, task: Task) -> np.ndarray:
    """Read predictions for every row of the source's table.

    Parameters
    ----------
    path : Path
        ``.csv`` or ``.parquet``.
    task : Task

    Returns
    -------
    ndarray of shape (n,) or (n, C)
        For the task's rows: numbers in the target's own unit, or probabilities.

    Raises
    ------
    ModelError
        Missing file or column, wrong number of rows, values that are no numbers or no
        probabilities.
    """
    table = read_predictions_table(path)
    # rows without a target are no rows of the task, but the file has predictions for them too
    n_rows = int(task.row_ids.max()) + 1
    if len(table) < n_rows:
        raise ModelError(
            f"{path.name} has {len(table)} rows, but the table of {task.name} has {n_rows}",
            "give one prediction per row of the table, in its order",
        )
    return interpret_predictions(table.iloc[task.row_ids], task.labels, path.name)


def read_predictions_table(path: Path) -> pd.DataFrame:
    """Read a file of predictions as it stands.

    Raises
    ------
    ModelError
        Missing or unreadable file.
    """
    if not path.is_file():
        raise ModelError(
            f"there is no file of predictions {path}", "check the path of the model"
        )
    try:
        return read_table(path).frame
    except SourceError as error:
        raise ModelError(error.message, error.remedy) from error


def interpret_predictions(given: Any, labels: Sequence[str], name: str) -> np.ndarray:
    """Return predictions as numbers: in the target's unit, or probabilities of the labels.

    Parameters
    ----------
    given : DataFrame, Series, array or sequence of n rows
        A DataFrame has the columns of a predictions file. Without column names it is one number
        per row, the prediction or the probability of the second of two labels; or one column for
        each label, in their order.
    labels : sequence of str
        In the task's order; empty for a regression.
    name : str
        For errors.

    Returns
    -------
    ndarray of shape (n,) or (n, C)

    Raises
    ------
    ModelError

    Examples
    --------
    >>> interpret_predictions(pd.DataFrame({"score": [0.2, 1.0]}), ("no", "yes"), "p.csv")
    array([[0.8, 0.2],
           [0. , 1. ]])
    """
    picked = given
    if isinstance(given, pd.DataFrame):
        picked = _pick_columns(given, labels, name)
    try:
        values = np.asarray(picked, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(
            f"the predictions of {name} are not numbers", _wanted(labels)
        ) from None
    n_not_finite = count_not_finite(values)
    if n_not_finite:
        raise ModelError(
            f"the predictions of {name} are no finite numbers in "
            f"{n_not_finite} of {len(values)} rows",
            "give a number for each row",
        )
    if not labels:
        if values.size != len(values):
            raise ModelError(
                f"the predictions of {name} have the shape {values.shape}",
                _wanted(labels),
            )
        return values.reshape(len(values))
    return _as_probabilities(values, labels, name)


def _pick_columns(table: pd.DataFrame, labels: Sequence[str], name: str) -> Any:
    """Return the columns of a predictions file that are read, in the order of the labels."""
    table = table.set_axis([str(column) for column in table.columns], axis=1)
    if not labels:
        for column in _PREDICTION_COLUMNS:
            if column in table:
                return table[column]
        missing = _PREDICTION_COLUMNS[0]
    else:
        if len(labels) == 2 and _SCORE_COLUMN in table:
            return table[_SCORE_COLUMN]
        absent = [label for label in labels if label not in table]
        if not absent:
            return table[list(labels)]
        missing = absent[0]
    has = f"it has {list_names(table.columns)}"
    if labels and (column := _column_of_labels(table, labels)):
        raise ModelError(
            f"{name} has predicted labels in the column {column!r}, but where F fails is seen in "
            "its probabilities",
            _wanted(labels),
        )
    if labels and _SCORE_COLUMN in table:
        raise ModelError(
            f"{name} has one column {_SCORE_COLUMN!r}, which is not enough for {len(labels)} "
            "classes",
            _wanted(labels),
        )
    raise ModelError(f"{name} lacks the column {missing!r} ({has})", _wanted(labels))


def _column_of_labels(table: pd.DataFrame, labels: Sequence[str]) -> str:
    """Return the name of a column that holds nothing but labels; empty where there is none."""
    for column in table.columns:
        texts = set(table[column].head(1000).astype(str))
        # numbers come back from a file as 1.0 where the label is 1
        if texts and texts <= {*labels, *(f"{label}.0" for label in labels)}:
            return str(column)
    return ""


def _as_probabilities(
    values: np.ndarray, labels: Sequence[str], name: str
) -> np.ndarray:
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim == 1 and len(labels) == 2:
        values = np.column_stack([1 - values, values])
    if values.shape != (len(values), len(labels)):
        raise ModelError(
            f"the predictions of {name} have the shape {values.shape}", _wanted(labels)
        )
    sums = values.sum(axis=1)
    is_wrong = (values < 0).any(axis=1) | (sums < _SUM_LOW) | (sums > _SUM_HIGH)
    if is_wrong.any():
        first = int(is_wrong.argmax())
        row = ", ".join(f"{value:.3g}" for value in values[first, :_MOST_SHOWN])
        more = ", ..." if values.shape[1] > _MOST_SHOWN else ""
        extent = f" in {is_wrong.sum()} of {len(values)} rows, first in row {first}"
        raise ModelError(
            f"the predictions of {name} are no probabilities"
            f"{extent if len(values) > 1 else ''}: {row}{more} sum to {sums[first]:.3g}",
            "give probabilities between 0 and 1 that sum to 1 in each row",
        )
    return values


def _wanted(labels: Sequence[str]) -> str:
    """Return what a predictions file must hold."""
    if not labels:
        return (
            f"write one column {_PREDICTION_COLUMNS[0]!r}, numbers in the target's unit"
        )
    columns = f"write one column of probabilities for each class: {list_names(labels)}"
    if len(labels) == 2:
        columns += f"; or one column {_SCORE_COLUMN!r}, the probability of {labels[1]}"
    return columns
