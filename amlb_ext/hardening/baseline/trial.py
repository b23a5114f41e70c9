"""F from a file is tried on a few rows before any work is done with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import ModelError
from amlb_ext.core.numbers import count_not_finite
from amlb_ext.core.paths import check_pickle_trusted
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.from_file import (
    FittedBaseline,
    is_model_file,
    is_predictions_file,
    load_fitted_model,
    to_source_frame,
)
from amlb_ext.hardening.baseline.predictions_file import read_predictions
from amlb_ext.hardening.baseline.service import (
    check_service,
    connect_service,
    is_service,
)
from amlb_ext.hardening.encode import Encoder, TargetEncoder

#: Rows that a model is tried on, and how many of them are those with most missing values.
TRIAL_ROWS = 5
_MISSING_ROWS = 2


def check_baseline_file(config: BaselineConfig) -> None:
    """Raise for a file of F that is missing, or may not be loaded; nothing is loaded.

    For a service, raise for an address that cannot be one; nothing is sent.

    Raises
    ------
    ModelError
    """
    if is_service(config.model):
        check_service(config)
        return
    path = Path(config.model)
    if not path.is_file():
        raise ModelError(f"no file {config.model}", "check the path of --baseline")
    if is_model_file(config.model):
        check_pickle_trusted(path, config.trust_pickle)


def load_baseline_model(config: BaselineConfig) -> Any:
    """Return the fitted model that F is, or None where F is neither a file of one nor a service.

    Raises
    ------
    ModelError
        As :func:`~amlb_ext.hardening.baseline.from_file.load_fitted_model`.
    """
    if is_service(config.model):
        return connect_service(config)
    if not is_model_file(config.model):
        return None
    return load_fitted_model(Path(config.model), config.trust_pickle)


def try_baseline(config: BaselineConfig, model: Any, task: Task) -> None:
    """Raise where F from a file cannot predict rows of a task; a short name passes.

    Parameters
    ----------
    config : BaselineConfig
    model : object or None
        As :func:`load_baseline_model` returns it.
    task : Task
        A file of predictions is read as a whole; a model is tried on five rows, among them the
        two with most missing values.

    Raises
    ------
    ModelError
        With what F expects, and what the table has.
    """
    path = Path(config.model)
    if is_predictions_file(config.model):
        read_predictions(path, task)
    if model is None:
        return
    name = config.model if is_service(config.model) else path.name
    if not is_service(config.model):
        _check_kind(model, name, task)
    n_missing = task.features.isna().sum(axis=1).to_numpy()
    most_missing = np.argsort(-n_missing, kind="stable")[:_MISSING_ROWS]
    first = np.arange(len(task))[: TRIAL_ROWS - _MISSING_ROWS]
    rows = task.features.iloc[np.union1d(first, most_missing)]
    target = TargetEncoder(task.kind, task.labels, task.target)
    baseline = FittedBaseline(model, name, Encoder(task.columns), target)
    f = baseline.predict_frame(to_source_frame(task.columns, rows))
    n_not_finite = count_not_finite(f)
    if n_not_finite:
        raise ModelError(
            f"{name} predicts no finite number for {n_not_finite} of the "
            f"{len(rows)} rows of {task.name} that it was tried on",
            "give a model that predicts every row, those with missing values too",
        )


def _check_kind(model: Any, name: str, task: Task) -> None:
    is_classification = task.kind.is_classification
    if is_classification and is_regressor(model):
        has, needs = "a regressor", "classes"
    elif not is_classification and is_classifier(model):
        has, needs = "a classifier", "numbers"
    else:
        return
    flag = "regression" if is_classification else "classification"
    raise ModelError(
        f"{name} is {has}, but the target {task.target_name!r} of {task.name} has {needs}",
        f"name the column that the model predicts with --target, or add --kind {flag}",
    )
