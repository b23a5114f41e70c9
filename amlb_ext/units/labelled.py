"""The labelled rows on which models are compared: a table and its target, checked and encoded."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError
from amlb_ext.core.frames import with_columns
from amlb_ext.core.row_order import OrderedTable, RowOrder, read_order
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Kind, Task
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.models.answers import Labels, label_text, order_labels
from amlb_ext.models.checks import check_classes
from amlb_ext.models.columns import Align, align_rows
from amlb_ext.models.given_table import GivenTable, plain_targets, target_values
from amlb_ext.models.native import check_kind
from amlb_ext.sources.reading import tells_target

#: Fewer rows hold no answer.
LEAST_ROWS = 50


@dataclass(frozen=True, kw_only=True)
class LabelledRows:
    """Rows that no model has seen, with their targets.

    Attributes
    ----------
    table : GivenTable of N rows
        The features as the user gave them, for the user's models: rows without a target, too.
    task : Task
        The n labelled rows in canonical form.
    encoder : Encoder
    scale : TargetEncoder
        The range of a numeric target is that of these rows.
    labels : Labels
        The classes of the target, and those that only a model knows; empty for a regression.
    Z : ndarray of shape (n, d)
        Encoded features.
    y : ndarray of shape (n,)
        Scaled targets, or class codes.
    y_given : ndarray of shape (n,)
        Targets as the user gave them.
    notes : tuple of str
    """

    table: GivenTable
    task: Task
    encoder: Encoder
    scale: TargetEncoder
    labels: Labels
    Z: np.ndarray
    y: np.ndarray
    y_given: np.ndarray
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.y)

    def take(self, chosen: np.ndarray) -> LabelledRows:
        """Return some of the labelled rows, by position; the table stays whole."""
        return dataclasses.replace(
            self,
            task=_take_rows(self.task, chosen),
            Z=self.Z[chosen],
            y=self.y[chosen],
            y_given=self.y_given[chosen],
        )

    @property
    def is_classification(self) -> bool:
        """Whether the target is a class."""
        return self.task.kind.is_classification


def read_labelled_rows(
    X: Any,
    y: Any,
    *,
    models: Sequence[ModelAdapter] = (),
    kind: str | None = None,
    order: RowOrder | None = None,
    align: Align = "auto",
    left_out: Collection[str] = (),
    declared: Sequence[str] = (),
) -> LabelledRows:
    """Check a table and its target, and encode them.

    Parameters
    ----------
    X : DataFrame or array of shape (n, d)
    y : array-like of shape (n,)
    models : sequence of ModelAdapter
        F first: the first that says what it predicts settles the kind, and the classes of all are
        classes of the target.
    kind : {'classification', 'regression'}, optional
        Where the models do not tell.
    order : RowOrder, optional
        Groups and times of the rows of X.
    align : {'auto', 'index', 'position'}
        How the rows of y belong to those of X, see :mod:`amlb_ext.models.columns`.
    left_out : collection of str
        Columns that models may read, and that tell nothing of where F fails.
    declared : sequence of str
        Classes in the order in which the source lists them.

    Returns
    -------
    LabelledRows
        Rows without a target are left out; a note counts them.

    Raises
    ------
    DataError
        Lengths that differ, fewer than 50 rows, or a table that :func:`make_task` refuses.
    ModelError
        A model of classes where the target has numbers, or the reverse.

    Examples
    --------
    >>> X = pd.DataFrame({"age": np.arange(60.0)})
    >>> rows = read_labelled_rows(X, np.arange(60) % 2, kind="classification")
    >>> len(rows), rows.labels.names
    (60, ('0', '1'))
    """
    table = GivenTable.of(X)
    values = target_values(align_rows(y, table.rows, what="y", align=align))
    if isinstance(values.dtype, pd.PeriodDtype) or values.dtype.kind == "M":
        raise DataError(
            "y holds dates",
            "give numbers, e.g. (y - pd.Timestamp('2000-01-01')).dt.days",
        )
    if len(table) < LEAST_ROWS:
        raise DataError(
            f"{len(table)} rows are too few to compare models on",
            f"give at least {LEAST_ROWS} rows that no model was fitted on",
        )
    target_name = free_target_name(y, table.frame)
    frame = table.frame.reset_index(drop=True)
    named = repr(target_name)
    has_texts = kind is None and any(isinstance(value, str) for value in values)
    for model in models[:1] if has_texts else ():
        check_kind(model.model, model.name, target=named, is_classification=True)
    told = (model.kind for model in models)
    task = make_task(
        with_columns(frame, {target_name: values.array}),
        target_name,
        name="table",
        kind=kind or next((known for known in told if known is not None), None),
    )
    is_class = task.kind.is_classification
    for model in models:
        check_kind(model.model, model.name, target=named, is_classification=is_class)
    labels = Labels(())
    if is_class:
        task, labels = _with_all_classes(task, values, models, declared)
    if order is not None:
        task = dataclasses.replace(task, order=order.take(task.row_ids))
    return _encoded_rows(
        task,
        left_out,
        table=table,
        labels=labels,
        y_given=plain_targets(values.iloc[task.row_ids]),
        notes=task.notes,
    )


def _encoded_rows(
    task: Task, left_out: Collection[str], *, notes: Sequence[str], **known: Any
) -> LabelledRows:
    """Return a task's rows encoded, beside what is known.

    Without columns that tell nothing, or that tell the target itself.
    """
    telling = [
        column.name
        for column in task.columns
        if column.name not in left_out and tells_target(task, column.name)
    ]
    dropped = {*left_out, *telling}
    kept = tuple(column for column in task.columns if column.name not in dropped)
    if kept:
        features = task.features[[column.name for column in kept]]
        task = dataclasses.replace(task, columns=kept, features=features)
        notes = [
            *notes,
            *(
                f"column {name!r} tells the target of every row: it is left out of where F fails"
                for name in telling
            ),
        ]
    encoder = Encoder(task.columns, known="table").fit(task.features)
    scale = TargetEncoder(task.kind, task.labels, task.target)
    return LabelledRows(
        task=task,
        encoder=encoder,
        scale=scale,
        Z=encoder.transform(task.features),
        y=scale.transform(task.target),
        notes=tuple(notes),
        **known,
    )


def labelled_rows_of_task(task: Task, chosen: np.ndarray) -> LabelledRows:
    """Return some rows of a task as labelled rows; one that is chosen twice is one observation.

    Parameters
    ----------
    task : Task
    chosen : ndarray of shape (n,), int
        Positions in the task's table, a position again for each time that it is tested.

    Examples
    --------
    >>> from amlb_ext.sources import open_specs
    >>> task = next(open_specs(["bundled/wine"])).load()
    >>> rows = labelled_rows_of_task(task, np.arange(60))
    >>> len(rows), len(rows.labels)
    (60, 3)
    """
    tested = dataclasses.replace(_take_rows(task, chosen), folds=())
    if tested.order is None and len(np.unique(chosen)) < len(chosen):
        own_row = RowOrder(group=chosen, group_name="row of the source")
        tested = dataclasses.replace(tested, order=own_row)
    present = np.unique(tested.target.cat.codes).tolist() if tested.labels else ()
    return _encoded_rows(
        tested,
        (),
        table=GivenTable.of(tested.features),
        labels=Labels(tested.labels, present=present),
        y_given=plain_targets(tested.target),
        notes=(),
    )


def _take_rows(task: Task, chosen: np.ndarray) -> Task:
    """Return a task with some of its rows, by position."""
    return dataclasses.replace(
        task,
        features=task.features.iloc[chosen].reset_index(drop=True),
        target=task.target.iloc[chosen].reset_index(drop=True),
        row_ids=task.row_ids[chosen],
        order=None if task.order is None else task.order.take(chosen),
    )


def free_target_name(y: Any, frame: pd.DataFrame) -> str:
    """Return the target's own name, or one that no feature has."""
    name = str(getattr(y, "name", None) or "target")
    while name in frame.columns:
        name = f"{name}_"
    return name


def read_row_order(
    table: GivenTable,
    groups: Any,
    time: Any,
    *,
    align: Align = "auto",
    what: str = "X",
) -> tuple[RowOrder | None, set[str]]:
    """Return groups and times of the rows of a table, and the columns that hold them.

    Parameters
    ----------
    table : GivenTable of n rows
    groups, time : str or array-like of shape (n,), optional
        A column of the table, or values.
    align : {'auto', 'index', 'position'}
    what : str
        What the table is called in errors.

    Raises
    ------
    ConfigError, DataError
        As :func:`amlb_ext.core.row_order.read_order`.

    Examples
    --------
    >>> table = GivenTable.of(pd.DataFrame({"shop": [1, 1, 2], "x": [0.1, 0.2, 0.3]}))
    >>> order, columns = read_row_order(table, "shop", None)
    >>> order.group.tolist(), columns
    ([0, 0, 1], {'shop'})
    """
    frame = table.frame.reset_index(drop=True)
    names = {"groups": groups, "time": time}
    columns = {name for name in names.values() if isinstance(name, str)}
    columns &= set(frame.columns)
    for word, given in names.items():
        if given is not None and not isinstance(given, str):
            aligned = align_rows(given, table.rows, what=word, of=what, align=align)
            frame = with_columns(frame, {word: target_values(aligned).array})
            names[word] = word
    order = read_order(
        OrderedTable(
            name=what, frame=frame, target="", row_ids=np.arange(len(frame)), dates={}
        ),
        time=names["time"],
        group=names["groups"],
    )
    if order is not None and order.group is not None:
        # where values have an order, splitters of scikit-learn go by it
        with contextlib.suppress(TypeError):
            codes, _ = pd.factorize(frame[names["groups"]], sort=True)
            order = dataclasses.replace(order, group=codes)
    return order, columns


def _with_all_classes(
    task: Task,
    values: pd.Series,
    models: Sequence[ModelAdapter],
    declared: Sequence[str],
) -> tuple[Task, Labels]:
    """Return the task with the classes that only a model knows, in one order for all doors."""
    known = Labels(task.labels)
    names = list(task.labels)
    for model in models:
        check_classes(model.classes or (), known, model.name, has_codes=model.has_codes)
    for model in models:
        for value in model.classes or ():
            if known.code(value) < 0:
                names.append(label_text(value))
                known = Labels(names)
    ordered = order_labels(names, values.dropna())
    own_order = [label for label in declared if label in names]
    task = dataclasses.replace(
        task,
        labels=ordered,
        target=task.target.cat.set_categories(list(ordered)),
        kind=Kind.BINARY if len(ordered) == 2 else Kind.MULTICLASS,
    )
    declared = own_order if len(own_order) == len(ordered) else ()
    present = np.unique(task.target.cat.codes).tolist()
    return task, Labels(ordered, declared, present)
