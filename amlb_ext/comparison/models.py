"""What models answer on labelled rows, and what F answers when it is fitted again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.core.losses import Loss, Predicted, read_loss
from amlb_ext.core.rng import derive_seed
from amlb_ext.core.row_order import RowOrder
from amlb_ext.hardening.split import blocks_left_out
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.models.answers import Answers
from amlb_ext.models.checks import check_answers
from amlb_ext.models.columns import Align, align_rows
from amlb_ext.models.given_table import GivenTable, target_values
from amlb_ext.units.labelled import LabelledRows


def predict_rows(model: ModelAdapter, rows: LabelledRows) -> Answers:
    """Return what a model answers on the labelled rows, scaled or as class probabilities.

    The model is given the table whole, as it is: it may read the index, or look at other rows.

    Raises
    ------
    ModelError
        The model fails, lacks a column, or answers what is no prediction; or what is made of its
        answers contradicts them.
    """
    whole = model.answer(rows.table, rows.labels, present=rows.present)
    answers = whole.take(rows.task.row_ids)
    if rows.is_classification:
        check_answers(answers, rows.y, rows.y_given, model.name)
        return answers
    y = rows.scale.inverse(rows.y, "y").to_numpy(dtype=float)
    check_answers(answers, y, rows.y_given, model.name)
    scaled = (answers.f - rows.scale.low) / rows.scale.span
    return Answers(f=scaled, raw=answers.raw, notes=answers.notes)


def as_predicted(rows: LabelledRows, answers: Answers) -> Predicted:
    """Return answers as losses take them: numbers in the target's own unit."""
    if rows.is_classification:
        return Predicted(
            y=rows.y,
            f=answers.f,
            decided=answers.decided,
            labels=rows.labels.names,
            given=rows.y_given,
            only_labels=answers.only_labels,
        )
    own = rows.scale.inverse(rows.y, "y").to_numpy(dtype=float)
    f = answers.f * rows.scale.span + rows.scale.low
    return Predicted(y=own, f=f, given=own)


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
    return table, values.iloc[known].to_numpy()


def refit_on_training_rows(
    model: ModelAdapter,
    train: tuple[GivenTable, np.ndarray],
    rows: LabelledRows,
    *,
    refits: int,
    seed: int,
    order: RowOrder | None = None,
) -> list[Answers]:
    """Return answers of F fitted again on parts of its training rows.

    Each re-fit sees a random 80 % of them, as in a suite (:mod:`amlb_ext.validity.task_rows`); of
    rows with an order, random 80 % of the groups, or all but one block of time.

    Parameters
    ----------
    model : ModelAdapter
        F; it is cloned, never changed.
    train : tuple of (GivenTable, ndarray)
    rows : LabelledRows
    refits : int
    seed : int
    order : RowOrder, optional
        Groups and times of the training rows.

    Raises
    ------
    ModelError
        F cannot be cloned or fitted.
    """
    table, y = train
    answers = []
    for number, part in enumerate(_parts_of_training(len(y), refits, seed, order)):
        twin = model.fit_again(table.take(part), y[part], seed + number)
        answers.append(predict_rows(twin, rows))
    return answers


def refit_on_bootstrap_samples(
    model: ModelAdapter,
    train: tuple[GivenTable, np.ndarray],
    rows: LabelledRows,
    *,
    refits: int,
    seed: int,
    order: RowOrder | None = None,
) -> list[Answers]:
    """Return answers of F fitted again on bootstrap samples of its training rows.

    They show what training again does by itself (:mod:`amlb_ext.swap.harm`); of rows with groups,
    groups are drawn.

    Parameters
    ----------
    model : ModelAdapter
    train : tuple of (GivenTable, ndarray)
    rows : LabelledRows
    refits : int
    seed : int
    order : RowOrder, optional
        Groups of the training rows.
    """
    table, y = train
    unit = np.arange(len(y))
    if order is not None and order.group is not None:
        unit = np.unique(order.group, return_inverse=True)[1].reshape(-1)
    answers = []
    for number in range(refits):
        rng = np.random.default_rng(derive_seed(seed, "compare", "bootstrap", number))
        drawn = rng.integers(0, unit.max() + 1, unit.max() + 1)
        times = np.bincount(drawn, minlength=unit.max() + 1)[unit]
        part = np.repeat(np.arange(len(y)), times)
        twin = model.fit_again(table.take(part), y[part], seed + number)
        answers.append(predict_rows(twin, rows))
    return answers


def _parts_of_training(
    n: int, refits: int, seed: int, order: RowOrder | None
) -> list[np.ndarray]:
    """Return the positions that each re-fit sees."""
    if order is not None and order.time is not None:
        # fewer where there are few times
        return [kept for kept, _ in blocks_left_out(order, refits)]
    parts = []
    for number in range(refits):
        rng = np.random.default_rng(derive_seed(seed, "compare", "null", number))
        if order is None or order.group is None:
            part = rng.choice(n, max(2, round(0.8 * n)), replace=False)
        else:
            groups = np.unique(order.group)
            size = max(1, round(0.8 * len(groups)))
            chosen = rng.choice(groups, size, replace=False)
            part = np.flatnonzero(np.isin(order.group, chosen))
        parts.append(np.sort(part))
    return parts


def refit_across_rows(
    model: ModelAdapter, rows: LabelledRows, *, refits: int, seed: int
) -> list[Answers]:
    """Return cross-fitted answers of F fitted again on the labelled rows themselves.

    For lack of training rows: each row is predicted by a clone that was fitted on the other half,
    which holds other groups where rows have any.

    Parameters
    ----------
    model : ModelAdapter
    rows : LabelledRows
    refits : int
    seed : int
    """
    labelled = rows.task.row_ids
    y = target_values(rows.y_given.tolist()).to_numpy()
    predictions = []
    for number in range(refits):
        rng = np.random.default_rng(derive_seed(seed, "compare", "null", number))
        unit = np.arange(len(rows))
        if rows.task.order is not None and rows.task.order.group is not None:
            _, unit = np.unique(rows.task.order.group, return_inverse=True)
        n_units = int(unit.max()) + 1
        is_first = (rng.permutation(n_units) < n_units // 2)[unit]
        by_half = []
        for fitted_on in (is_first, ~is_first):
            part = np.flatnonzero(fitted_on)
            table = rows.table.take(labelled[part])
            twin = model.fit_again(table, y[part], seed + number)
            by_half.append(predict_rows(twin, rows))
        predictions.append(_join_halves(by_half[1], by_half[0], is_first))
    return predictions


def _join_halves(first: Answers, second: Answers, is_first: np.ndarray) -> Answers:
    """Return the answers of one model on some rows, and of the other on the rest."""
    f = first.f.copy()
    f[~is_first] = second.f[~is_first]
    if first.decided is None or second.decided is None:
        return Answers(f=f)
    return Answers(
        f=f,
        decided=np.where(is_first, first.decided, second.decided),
        only_labels=first.only_labels,
    )
