"""What a model predicts on labelled rows: from a fitted model, or from predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.comparison.labelled import LabelledRows, as_frame
from amlb_ext.core.errors import DataError, ModelError
from amlb_ext.core.numbers import count_not_finite
from amlb_ext.core.rng import derive_seed
from amlb_ext.core.row_order import RowOrder
from amlb_ext.hardening.baseline.clones import fit_clone
from amlb_ext.hardening.baseline.from_file import FittedBaseline
from amlb_ext.hardening.baseline.model_columns import select_features
from amlb_ext.hardening.baseline.predictions_file import interpret_predictions
from amlb_ext.hardening.ordered_split import blocks_left_out


def predict_rows(model: Any, rows: LabelledRows, name: str) -> np.ndarray:
    """Return predictions of the labelled rows, scaled or as class probabilities.

    Parameters
    ----------
    model : object
        With ``predict``, for classes with ``predict_proba``; or its predictions: an array of
        shape (n,) in the target's unit, or (n, C) probabilities in the order of the labels, or a
        DataFrame with one column for each label; for two classes also (n,), the probability of
        the second label.
    rows : LabelledRows
    name : str
        Of the model, for errors.

    Returns
    -------
    ndarray of shape (n,) or (n, C)

    Raises
    ------
    ModelError
        The model fails, lacks a column, or predicts something that is no number.
    """
    if _are_predictions(model):
        predictions = _read_predictions(model, rows, name)
    elif hasattr(model, "predict"):
        fitted = FittedBaseline(model, name, rows.encoder, rows.scale)
        predictions = fitted.predict_frame(rows.frame)
    else:
        raise ModelError(
            f"{name} is a {type(model).__name__}, which has no predict",
            "give a fitted model, or an array of predictions",
        )
    n_not_finite = count_not_finite(predictions)
    if n_not_finite:
        raise ModelError(
            f"{name} predicts no finite number for {n_not_finite} of {len(rows)} rows",
            "mend the model, or leave those rows out for all models",
        )
    return predictions


def refit_on_training_rows(
    model: Any,
    train: tuple[Any, Any],
    rows: LabelledRows,
    *,
    refits: int,
    seed: int,
    order: RowOrder | None = None,
) -> list[np.ndarray]:
    """Return predictions of F fitted again on parts of its training rows.

    Each re-fit sees a random 80 % of them, as in a suite (:mod:`amlb_ext.validity.refits`); of
    rows with an order, random 80 % of the groups, or all but one block of time.

    Parameters
    ----------
    model : estimator
        F; it is cloned, never changed.
    train : tuple of (X, y)
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
    X = select_features(model, as_frame(train[0]), "F", table="train")
    y = np.asarray(train[1])
    if len(X) != len(y):
        raise DataError(
            f"train has {len(X)} rows of features and {len(y)} targets",
            "give one target for each training row",
        )
    predictions = []
    for number, part in enumerate(_parts_of_training(len(y), refits, seed, order)):
        twin = _fit_again(model, _take(X, part), y[part], seed + number)
        predictions.append(predict_rows(twin, rows, "F fitted again"))
    return predictions


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
    model: Any, rows: LabelledRows, y: Any, *, refits: int, seed: int
) -> list[np.ndarray]:
    """Return cross-fitted predictions of F fitted again on the labelled rows themselves.

    For lack of training rows: each row is predicted by a clone that was fitted on the other half,
    which holds other groups where rows have any.

    Parameters
    ----------
    model : estimator
    rows : LabelledRows
    y : ndarray of shape (n,)
        Targets as the model knows them.
    refits : int
    seed : int
    """
    features = select_features(model, rows.frame, "F", table="X")
    predictions = []
    for number in range(refits):
        rng = np.random.default_rng(derive_seed(seed, "compare", "null", number))
        unit = np.arange(len(rows))
        if rows.task.order is not None and rows.task.order.group is not None:
            _, unit = np.unique(rows.task.order.group, return_inverse=True)
        n_units = int(unit.max()) + 1
        is_first = (rng.permutation(n_units) < n_units // 2)[unit]
        filled: np.ndarray | None = None
        for fitted_on in (is_first, ~is_first):
            part = np.flatnonzero(fitted_on)
            twin = _fit_again(model, _take(features, part), y[part], seed + number)
            predicted = predict_rows(twin, rows, "F fitted again")
            filled = np.empty_like(predicted) if filled is None else filled
            filled[~fitted_on] = predicted[~fitted_on]
        assert filled is not None
        predictions.append(filled)
    return predictions


def _fit_again(model: Any, X: Any, y: np.ndarray, seed: int) -> Any:
    try:
        return fit_clone(model, X, y, seed)
    except ModelError as error:
        raise ModelError(
            error.message,
            "give null='none' to compare without re-fits of F; then no model is called better "
            "where F fails",
        ) from error


def _take(X: Any, positions: np.ndarray) -> Any:
    return X.iloc[positions] if hasattr(X, "iloc") else np.asarray(X)[positions]


def _are_predictions(model: Any) -> bool:
    return isinstance(model, (np.ndarray, pd.Series, pd.DataFrame, list, tuple))


def _read_predictions(given: Any, rows: LabelledRows, name: str) -> np.ndarray:
    if len(given) != rows.n_given:
        raise ModelError(
            f"{name} has {len(given)} predictions for {rows.n_given} rows",
            "give one prediction for each row of X",
        )
    # rows of X without a target have predictions, too
    labelled = rows.task.row_ids
    if hasattr(given, "iloc"):
        picked = given.iloc[labelled]
    else:
        picked = [given[row] for row in labelled]
    values = interpret_predictions(picked, rows.task.labels, name)
    if rows.is_classification:
        return values
    return (values - rows.scale.low) / rows.scale.span
