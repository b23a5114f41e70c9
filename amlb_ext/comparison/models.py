"""What a model predicts on labelled rows: from a fitted model, or from predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from amlb_ext.comparison.labelled import LabelledRows, as_frame
from amlb_ext.core.errors import DataError, HardsynthError, ModelError
from amlb_ext.core.rng import derive_seed
from amlb_ext.hardening.baseline.from_file import FittedBaseline

#: Smallest and largest sum of the probabilities of a row.
_SUM_LOW, _SUM_HIGH = 0.99, 1.01


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
        predictions = fitted.predict_frame(select_features(model, rows.frame, name))
    else:
        raise ModelError(
            f"{name} is a {type(model).__name__}, which has no predict",
            "give a fitted model, or an array of predictions",
        )
    is_finite = np.isfinite(predictions).reshape(len(rows), -1).all(axis=1)
    if not is_finite.all():
        raise ModelError(
            f"{name} predicts no finite number for {int((~is_finite).sum())} of {len(rows)} rows",
            "mend the model, or leave those rows out for all models",
        )
    return predictions


def select_features(model: Any, frame: pd.DataFrame, name: str) -> Any:
    """Return the columns that a model was fitted on, in its order.

    A model that was fitted on an array gets an array, so that scikit-learn does not warn.

    Raises
    ------
    ModelError
        The table lacks some of them.
    """
    wanted = getattr(model, "feature_names_in_", None)
    if wanted is None:
        n_wanted = getattr(model, "n_features_in_", None)
        if n_wanted is not None and n_wanted != frame.shape[1]:
            raise ModelError(
                f"{name} was fitted on {n_wanted} columns, X has {frame.shape[1]}",
                "give X with the columns that the model was fitted on, in their order",
            )
        return frame.to_numpy() if n_wanted is not None else frame
    missing = [str(column) for column in wanted if column not in frame.columns]
    if missing:
        extra = [column for column in frame.columns if column not in set(wanted)]
        has = (
            f"; X has, which it does not know: {', '.join(extra[:8])}" if extra else ""
        )
        raise ModelError(
            f"X lacks {len(missing)} of the {len(wanted)} columns that {name} was fitted on: "
            f"{', '.join(missing[:8])}{has}",
            "give X with the columns of the training table",
        )
    return frame[list(wanted)]


def refit_on_training_rows(
    model: Any, train: tuple[Any, Any], rows: LabelledRows, *, refits: int, seed: int
) -> list[np.ndarray]:
    """Return predictions of F fitted again on random parts of its training rows.

    Each re-fit sees a random 80 % of them, as in a suite (:mod:`amlb_ext.validity.refits`).

    Parameters
    ----------
    model : estimator
        F; it is cloned, never changed.
    train : tuple of (X, y)
    rows : LabelledRows
    refits : int
    seed : int

    Raises
    ------
    ModelError
        F cannot be cloned or fitted.
    """
    X, y = select_features(model, as_frame(train[0]), "F"), np.asarray(train[1])
    if len(X) != len(y):
        raise DataError(
            f"train has {len(X)} rows of features and {len(y)} targets",
            "give one target for each training row",
        )
    predictions = []
    for number in range(refits):
        rng = np.random.default_rng(derive_seed(seed, "compare", "null", number))
        part = np.sort(rng.choice(len(y), max(2, round(0.8 * len(y))), replace=False))
        twin = _fit_clone(model, _take(X, part), y[part], seed + number)
        predictions.append(predict_rows(twin, rows, "F fitted again"))
    return predictions


def refit_across_rows(
    model: Any, rows: LabelledRows, y: Any, *, refits: int, seed: int
) -> list[np.ndarray]:
    """Return cross-fitted predictions of F fitted again on the labelled rows themselves.

    For lack of training rows: each row is predicted by a clone that was fitted on the other half.

    Parameters
    ----------
    model : estimator
    rows : LabelledRows
    y : ndarray of shape (n,)
        Targets as the model knows them.
    refits : int
    seed : int
    """
    features = select_features(model, rows.frame, "F")
    predictions = []
    for number in range(refits):
        rng = np.random.default_rng(derive_seed(seed, "compare", "null", number))
        is_first = rng.permutation(len(rows)) < len(rows) // 2
        filled: np.ndarray | None = None
        for fitted_on in (is_first, ~is_first):
            part = np.flatnonzero(fitted_on)
            twin = _fit_clone(model, _take(features, part), y[part], seed + number)
            predicted = predict_rows(twin, rows, "F fitted again")
            filled = np.empty_like(predicted) if filled is None else filled
            filled[~fitted_on] = predicted[~fitted_on]
        assert filled is not None
        predictions.append(filled)
    return predictions


def can_refit(model: Any) -> bool:
    """Whether a model can be cloned and fitted again."""
    return hasattr(model, "get_params") and hasattr(model, "fit")


def _fit_clone(model: Any, X: Any, y: np.ndarray, seed: int) -> Any:
    try:
        twin = clone(model)
        seeds = {
            key: seed % 2**31
            for key, value in twin.get_params().items()
            if key.split("__")[-1] == "random_state"
            and not isinstance(value, np.random.Generator)
        }
        return twin.set_params(**seeds).fit(X, y)
    except HardsynthError:
        raise
    except Exception as error:
        raise ModelError(
            f"F could not be fitted again: {type(error).__name__}: {error}",
            "give null='none' to compare without re-fits of F; then no model is called better "
            "where F fails",
        ) from error


def _take(X: Any, positions: np.ndarray) -> Any:
    return X.iloc[positions] if hasattr(X, "iloc") else np.asarray(X)[positions]


def _are_predictions(model: Any) -> bool:
    return isinstance(model, (np.ndarray, pd.Series, pd.DataFrame, list, tuple))


def _read_predictions(given: Any, rows: LabelledRows, name: str) -> np.ndarray:
    if isinstance(given, pd.DataFrame) and rows.is_classification:
        given = _order_classes(given, rows, name)
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(
            f"the predictions of {name} are not numbers",
            "give probabilities for classes, numbers for a regression",
        ) from None
    if len(values) != len(rows):
        raise ModelError(
            f"{name} has {len(values)} predictions for {len(rows)} rows",
            "give one prediction for each row of X",
        )
    if not rows.is_classification:
        return (values.reshape(len(rows)) - rows.scale.low) / rows.scale.span
    n_classes = len(rows.task.labels)
    if values.ndim == 1 and n_classes == 2:
        # one score: the probability of the second label
        values = np.column_stack([1 - values, values])
    if values.shape != (len(rows), n_classes):
        raise ModelError(
            f"the predictions of {name} have the shape {values.shape}",
            f"give one column for each of the classes {', '.join(rows.task.labels)}",
        )
    sums = values.sum(axis=1)
    if values.min() < 0 or sums.min() < _SUM_LOW or sums.max() > _SUM_HIGH:
        raise ModelError(
            f"the predictions of {name} are no probabilities: rows sum to {sums.min():.3g} up to "
            f"{sums.max():.3g}",
            "give probabilities between 0 and 1",
        )
    return values


def _order_classes(table: pd.DataFrame, rows: LabelledRows, name: str) -> np.ndarray:
    table = table.set_axis([str(column) for column in table.columns], axis=1)
    missing = [label for label in rows.task.labels if label not in table.columns]
    if missing:
        raise ModelError(
            f"the predictions of {name} lack the class {missing[0]!r}",
            f"name the columns {', '.join(rows.task.labels)}",
        )
    return table[list(rows.task.labels)].to_numpy()
