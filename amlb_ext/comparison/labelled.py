"""The labelled rows on which models are compared: a table and its target, checked and encoded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier, is_regressor

from amlb_ext.core.equal_rows import number_rows
from amlb_ext.core.errors import DataError
from amlb_ext.core.frames import with_columns
from amlb_ext.core.row_order import RowOrder
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Kind, Task
from amlb_ext.hardening.encode import Encoder, TargetEncoder

#: Fewer rows hold no answer.
LEAST_ROWS = 50
#: Where more rows of X than this share are training rows of F, beyond what chance repeats.
MOST_SEEN = 0.02


@dataclass(frozen=True, kw_only=True)
class LabelledRows:
    """Rows that no model has seen, with their targets.

    Attributes
    ----------
    frame : DataFrame of shape (n, d)
        The features as the user gave them, for the user's models.
    task : Task
        The same in canonical form.
    encoder : Encoder
    scale : TargetEncoder
        The range of a numeric target is that of these rows.
    Z : ndarray of shape (n, d)
        Encoded features.
    y : ndarray of shape (n,)
        Scaled targets, or class codes.
    notes : tuple of str
    n_given : int
        Rows that the user gave, those without a target included.
    """

    frame: pd.DataFrame
    task: Task
    encoder: Encoder
    scale: TargetEncoder
    Z: np.ndarray
    y: np.ndarray
    notes: tuple[str, ...]
    n_given: int

    def __len__(self) -> int:
        return len(self.y)

    @property
    def is_classification(self) -> bool:
        """Whether the target is a class."""
        return self.task.kind.is_classification

    @property
    def loss_name(self) -> str:
        """What the models are compared by."""
        if self.is_classification:
            return "Brier loss"
        return f"squared error of {self.task.target_name}, scaled to [0, 1]"


def read_labelled_rows(
    X: Any,
    y: Any,
    *,
    model: Any,
    kind: str | None = None,
    order: RowOrder | None = None,
) -> LabelledRows:
    """Check a table and its target, and encode them.

    Parameters
    ----------
    X : DataFrame or array of shape (n, d)
    y : array-like of shape (n,)
    model : object
        F: a scikit-learn classifier or regressor settles the kind, and its classes are the labels.
    kind : {'classification', 'regression'}, optional
        Where F does not tell.
    order : RowOrder, optional
        Groups and times of the rows of X.

    Returns
    -------
    LabelledRows
        Rows without a target are left out; a note counts them.

    Raises
    ------
    DataError
        Lengths that differ, fewer than 50 rows, or a table that :func:`make_task` refuses.

    Examples
    --------
    >>> X = pd.DataFrame({"age": np.arange(60.0)})
    >>> rows = read_labelled_rows(X, np.arange(60) % 2, model=None, kind="classification")
    >>> len(rows), rows.task.labels, rows.loss_name
    (60, ('0', '1'), 'Brier loss')
    """
    frame = as_frame(X)
    values = np.asarray(y)
    if values.shape != (len(frame),):
        raise DataError(
            f"X has {len(frame)} rows and y has the shape {values.shape}",
            "give one target for each row",
        )
    if len(frame) < LEAST_ROWS:
        raise DataError(
            f"{len(frame)} rows are too few to compare models on",
            f"give at least {LEAST_ROWS} rows that no model was fitted on",
        )
    target_name = free_target_name(y, frame)
    known_labels = {}
    if hasattr(model, "classes_"):
        known_labels[target_name] = [_as_label(label) for label in model.classes_]
    task = make_task(
        with_columns(frame, {target_name: values}),
        target_name,
        name="table",
        kind=_kind_of(model, kind),
        categories=known_labels,
    )
    if order is not None:
        task = dataclasses.replace(task, order=order.take(task.row_ids))
    encoder = Encoder(task.columns, known="table").fit(task.features)
    scale = TargetEncoder(task.kind, task.labels, task.target)
    return LabelledRows(
        frame=frame.iloc[task.row_ids].reset_index(drop=True),
        task=task,
        encoder=encoder,
        scale=scale,
        Z=encoder.transform(task.features),
        y=scale.transform(task.target),
        notes=task.notes,
        n_given=len(frame),
    )


def as_frame(X: Any) -> pd.DataFrame:
    """Return features as a table; columns of an array are called ``x0``, ``x1``, ...

    Raises
    ------
    DataError
        Neither a table nor an array with two dimensions.
    """
    if isinstance(X, pd.DataFrame):
        return X.set_axis([str(name) for name in X.columns], axis=1)
    values = np.asarray(X)
    if values.ndim != 2:
        raise DataError(
            f"X has the shape {values.shape}",
            "give a DataFrame, or an array of (rows, columns)",
        )
    return pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])


def refuse_seen_rows(rows: LabelledRows, seen: pd.DataFrame) -> None:
    """Refuse a table that holds rows on which F was fitted.

    Some rows repeat by chance where columns are coarse. How often the training rows repeat among
    themselves says how many.

    Parameters
    ----------
    rows : LabelledRows
    seen : DataFrame of shape (m, d)
        Features of the training rows.

    Raises
    ------
    DataError
    """
    common = [name for name in rows.frame.columns if name in seen.columns]
    if not common or len(seen) < 2:
        return
    given = rows.frame[common]
    # halves of the training rows repeat each other as often as other rows repeat them
    half = len(seen) // 2
    by_chance = _share_repeated(seen[common].iloc[:half], seen[common].iloc[half:])
    share = _share_repeated(given, seen[common])
    if share > 2 * by_chance + MOST_SEEN:
        raise DataError(
            f"{round(share * len(given))} of {len(given)} rows of X are training rows of F",
            "give rows that F was not fitted on",
        )


def _share_repeated(asked: pd.DataFrame, others: pd.DataFrame) -> float:
    """Return the share of rows that have the features of one of the others."""
    asked = asked.reset_index(drop=True)
    others = others.reset_index(drop=True)[asked.columns]
    numbers, other_numbers = number_rows(asked, others)
    return float(np.isin(numbers, other_numbers[other_numbers >= 0]).mean())


def _kind_of(model: Any, kind: str | None) -> str | None:
    """Return the kind that was asked for, else the model's own, else None."""
    if kind is not None:
        return kind
    if not hasattr(model, "predict"):
        # predictions: a column for each class says so; the targets tell of one column
        is_matrix = np.ndim(model) == 2 and np.shape(model)[1] > 1
        return "classification" if is_matrix else None
    if is_classifier(model) or hasattr(model, "classes_"):
        return "classification"
    return Kind.REGRESSION.value if is_regressor(model) else None


def free_target_name(y: Any, frame: pd.DataFrame) -> str:
    """Return the target's own name, or one that no feature has."""
    name = str(getattr(y, "name", None) or "target")
    while name in frame.columns:
        name = f"{name}_"
    return name


def _as_label(value: Any) -> str:
    """Return a class as a table has it: 1.0 and 1 are one class."""
    is_whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if is_whole else str(value)


def count_classes(rows: LabelledRows) -> Mapping[str, int]:
    """Return how many rows each class has."""
    counts = rows.task.target.value_counts()
    return {label: int(counts[label]) for label in rows.task.labels}
