"""F from a file is tried on a few rows before any work is done with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import ModelError
from amlb_ext.core.paths import check_pickle_trusted
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.fitted import (
    FittedBaseline,
    check_probabilities_given,
    to_source_frame,
)
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.models.files import (
    is_model_file,
    is_predictions_file,
    load_fitted_model,
)
from amlb_ext.models.native import check_kind
from amlb_ext.models.predictions import read_predictions
from amlb_ext.models.service import (
    check_service,
    connect_service,
    is_service,
)

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
        As :func:`~amlb_ext.hardening.baseline.fitted.load_fitted_model`.
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
        check_probabilities_given(read_predictions(path, task), path.name)
    if model is None:
        return
    name = config.model if is_service(config.model) else path.name
    if not is_service(config.model):
        check_kind(
            model,
            name,
            target=f"{task.target_name!r} of {task.name}",
            is_classification=task.kind.is_classification,
        )
    n_missing = task.features.isna().sum(axis=1).to_numpy()
    most_missing = np.argsort(-n_missing, kind="stable")[:_MISSING_ROWS]
    first = np.arange(len(task))[: TRIAL_ROWS - _MISSING_ROWS]
    rows = task.features.iloc[np.union1d(first, most_missing)]
    target = TargetEncoder(task.kind, task.labels, task.target)
    encoder = Encoder(task.columns)
    baseline = FittedBaseline(model, name, encoder, target, task.dtypes)
    frame = to_source_frame(task.columns, rows, task.dtypes)
    check_probabilities_given(baseline.answer_frame(frame), name)
