"""Models, predictions and labelled tables from files, for the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.core.errors import DataError, suggest_nearest
from amlb_ext.hardening.baseline.from_file import PREDICTION_SUFFIXES, load_model
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

    Predictions are a table with one row for each row of the data, in its order: a column
    ``prediction`` for a regression, one column of probabilities for each class, or one column
    ``score``, the probability of the second of two classes.

    Raises
    ------
    ModelError, SourceError
        The file cannot be read, or is a pickle that nobody trusts.
    """
    if path.suffix.lower() not in PREDICTION_SUFFIXES:
        return load_model(path, trust_pickle)
    table = read_table(path).frame
    for name in ("prediction", "predictions", "score"):
        if name in table.columns:
            return table[name].to_numpy()
    return table
