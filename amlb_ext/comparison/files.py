"""Models, predictions and labelled tables from files, for the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.core.errors import DataError, suggest_nearest
from amlb_ext.hardening.baseline.from_file import is_predictions_file, load_fitted_model
from amlb_ext.hardening.baseline.predictions_file import read_predictions_table
from amlb_ext.sources.read_table import read_table


def read_labelled_table(path: Path, target: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return the features and the target of a table.

    Raises
    ------
    SourceError, DataError
        The file cannot be read, or has no such column.
    """
    frame = read_table(path).frame
    if target not in frame.columns:
        raise DataError(
            f"{path.name} has no column {target!r}",
            suggest_nearest(target, map(str, frame.columns)),
        )
    return frame.drop(columns=target), frame[target]


def read_model(path: Path, trust_pickle: bool) -> Any:
    """Return a fitted model, or predictions, from a file.

    Predictions are a table with one row for each row of the data, in its order, see
    :mod:`amlb_ext.hardening.baseline.predictions_file`.

    Raises
    ------
    ModelError
        The file cannot be read, holds no model, or is a pickle that nobody trusts.
    """
    if is_predictions_file(path.name):
        return read_predictions_table(path)
    return load_fitted_model(path, trust_pickle)
