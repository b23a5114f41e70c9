"""What models answer on labelled rows, and what F answers when it is fitted again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.core.losses import Loss, Predicted, read_loss
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.models.answers import Answers
from amlb_ext.models.checks import check_answers, unit_notes
from amlb_ext.models.columns import Align, align_rows
from amlb_ext.models.given_table import GivenTable, plain_targets, target_values
from amlb_ext.units.labelled import LabelledRows


def predict_rows(model: ModelAdapter, rows: LabelledRows) -> Answers:
    """Return what a model answers on the labelled rows, numbers in the target's own unit.

    The model is given the table whole, as it is: it may read the index, or look at other rows.

    Raises
    ------
    ModelError
        The model fails, lacks a column, or answers what is no prediction; or what is made of its
        answers contradicts them.
    """
    answers = model.answer(
        rows.table, rows.labels, rows.task.target_name, rows.task.row_ids
    )
    if rows.is_classification:
        check_answers(answers, rows.y, rows.y_given, model.name)
        return answers
    y = rows.task.target.to_numpy(dtype=float)
    check_answers(answers, y, rows.y_given, model.name)
    notes = (*answers.notes, *unit_notes(y, answers.f, model.name))
    return Answers(f=answers.f, raw=answers.raw, notes=notes)


def as_predicted(rows: LabelledRows, answers: Answers) -> Predicted:
    """Return answers as losses take them."""
    if rows.is_classification:
        return Predicted(
            y=rows.y,
            f=answers.f,
            decided=answers.decided,
            labels=rows.labels.names,
            given=rows.y_given,
            only_labels=answers.only_labels,
        )
    own = rows.task.target.to_numpy(dtype=float)
    return Predicted(y=own, f=answers.f, given=own)


def choose_loss(
    rows: LabelledRows, answers: Mapping[str, Answers], given: Any = None
) -> Loss:
    """Return the loss that all models are compared by.

    By default the Brier loss of probabilities; where a model names labels alone, what each model
    decides; and the squared error of numbers.

    Parameters
    ----------
    rows : LabelledRows
    answers : mapping of str to Answers
        Of F and of all candidates.
    given : optional
        See :func:`amlb_ext.core.losses.read_loss`.

    Raises
    ------
    ConfigError
        The loss does not fit the target, or needs probabilities that a model does not give.
    """
    name_labels = [name for name, said in answers.items() if said.only_labels]
    if given is None:
        given = "squared"
        if rows.is_classification:
            given = "zero_one" if name_labels else "brier"
    loss = read_loss(
        given, labels=rows.labels.names, is_classification=rows.is_classification
    )
    if loss.basis == "probabilities" and name_labels:
        raise ConfigError(
            f"the loss {loss.name} needs probabilities, and {name_labels[0]} names labels alone",
            "compare by loss zero_one or a cost matrix, or give a model with predict_proba",
        )
    return loss


def read_training_rows(
    train: Any, *, align: Align = "auto"
) -> tuple[GivenTable, np.ndarray]:
    """Return the training rows that have a target: features, and targets as given.

    Raises
    ------
    DataError
        Other lengths, or rows that cannot be matched.
    """
    table = GivenTable.of(train[0], "train")
    y = align_rows(
        train[1], table.rows, what="the targets of train", of="train", align=align
    )
    values = target_values(y)
    known = np.flatnonzero(values.notna().to_numpy())
    if len(known) < len(values):
        table = table.take(known)
    if not len(known):
        raise DataError(
            "train has no row with a target", "give the rows F was fitted on"
        )
    return table, plain_targets(values.iloc[known])
