"""F from a file: a fitted model, or predictions of the table's rows; and the choice of F."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import ModelError
from amlb_ext.core.task import Column, Task
from amlb_ext.hardening.baseline.estimator import (
    Baseline,
    CvSplits,
    EstimatorBaseline,
    describe_error,
)
from amlb_ext.hardening.baseline.registry import BASELINES, resolve_model
from amlb_ext.hardening.baseline.skops_files import load_skops
from amlb_ext.hardening.encode import Encoder, TargetEncoder

#: Ends of names of fitted models, and of files of predictions.
MODEL_SUFFIXES = (".skops", ".pkl", ".pickle", ".joblib")
PREDICTION_SUFFIXES = (".csv", ".parquet")


def make_baseline(
    config: BaselineConfig, task: Task, encoder: Encoder, target: TargetEncoder
) -> Baseline:
    """Return F for a fold, not yet fitted.

    Parameters
    ----------
    config : BaselineConfig
        A short name, an import path, a ``.skops`` model (or a pickle, when trusted), or a
        ``.csv`` or ``.parquet`` file of predictions, row for row with the table.
    task : Task
    encoder, target : Encoder, TargetEncoder
        Fitted on the fold's training rows.

    Raises
    ------
    ModelError
    """
    path = Path(config.model)
    if _has_suffix(config, MODEL_SUFFIXES):
        model = load_model(path, config.trust_pickle)
        return FittedBaseline(model, path.name, encoder=encoder, target=target)
    if _has_suffix(config, PREDICTION_SUFFIXES):
        return PredictionsBaseline(read_predictions(path, task), target)
    spec = resolve_model(config, task.kind)
    return EstimatorBaseline(spec, task.kind, target.n_classes, encoder.n_categorical_)


def is_baseline_file(config: BaselineConfig) -> bool:
    """Whether F is a file rather than a model to be fitted."""
    return _has_suffix(config, (*MODEL_SUFFIXES, *PREDICTION_SUFFIXES))


def _has_suffix(config: BaselineConfig, suffixes: Sequence[str]) -> bool:
    # a short name is no file, whatever stands in the folder
    if config.model in BASELINES:
        return False
    return Path(config.model).suffix.lower() in suffixes


class FittedBaseline(Baseline):
    """A model that was fitted elsewhere; it gets rows as a DataFrame with the source's columns.

    Its training rows may be among ours, so that it fails too rarely: the manifest says so.

    Parameters
    ----------
    model : object
        With ``predict``; for classification ``predict_proba`` and ``classes_`` too.
    name : str
        Of its file, for errors.
    encoder, target : Encoder, TargetEncoder
        Fitted on the fold's training rows.
    """

    can_refit = False

    def __init__(
        self, model: Any, name: str, encoder: Encoder, target: TargetEncoder
    ) -> None:
        self.model = model
        self.name = name
        self.encoder = encoder
        self.target = target
        if target.n_classes and not hasattr(model, "predict_proba"):
            raise ModelError(
                f"{name} has no predict_proba, which classification needs",
                "save a model with probabilities, e.g. a CalibratedClassifierCV",
            )

    def fit(self, Z: np.ndarray, y: np.ndarray, seed: int) -> FittedBaseline:
        """Keep the model as it came."""
        return self

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Decode the rows, ask the model, and scale its predictions or order its classes."""
        return self.predict_frame(decode_to_source_frame(self.encoder, Z))

    def predict_table(self, encoder: Encoder, features: pd.DataFrame) -> np.ndarray:
        """Predict rows in canonical form; the model may know values that our training rows lack."""
        return self.predict_frame(to_source_frame(encoder.columns, features))

    def predict_frame(self, frame: pd.DataFrame) -> np.ndarray:
        """Predict rows with the columns of the source."""
        try:
            if not self.target.n_classes:
                raw = np.asarray(self.model.predict(frame), dtype=float)
                # in the target's own unit, and perhaps a column
                raw = raw.reshape(len(frame))
                return (raw - self.target.low) / self.target.span
            p = np.asarray(self.model.predict_proba(frame), dtype=float)
        except Exception as error:
            raise ModelError(
                f"{self.name} failed in predict: {describe_error(error)}",
                "it must accept a DataFrame with the columns of the source",
            ) from error
        # the model has the order of its own classes, and perhaps not all of ours
        f = np.zeros((len(frame), self.target.n_classes))
        for j, model_class in enumerate(self.model.classes_):
            f[:, self._code_of_class(model_class)] = p[:, j]
        return f

    def _code_of_class(self, model_class: Any) -> int:
        """Return our code of one of the model's classes."""
        # a model fitted on numbers has the class 1.0 where the task has the label 1
        is_float = isinstance(model_class, float | np.floating)
        label = str(int(model_class)) if is_float else str(model_class)
        if label not in self.target.labels:
            raise ModelError(
                f"{self.name} predicts the class {label!r}, but the task's classes are "
                f"{', '.join(self.target.labels)}",
                "give the model that was fitted on this target",
            )
        return self.target.labels.index(label)

    def cross_fit(
        self, Z: np.ndarray, y: np.ndarray, rows: np.ndarray, parts: CvSplits, seed: int
    ) -> tuple[np.ndarray, list[Baseline]]:
        """Predict the training rows with the model as it is; it cannot be fitted again."""
        return self.predict(Z), []


class PredictionsBaseline(Baseline):
    """F known only by its predictions of the table's rows; it cannot be searched with.

    Parameters
    ----------
    table : ndarray of shape (n,) or (n, C)
        As :func:`read_predictions` returns it.
    target : TargetEncoder
        Fitted on the fold's training rows.
    """

    can_search = False
    can_refit = False

    def __init__(self, table: np.ndarray, target: TargetEncoder) -> None:
        self.table = table
        self.target = target

    def fit(self, Z: np.ndarray, y: np.ndarray, seed: int) -> PredictionsBaseline:
        """Nothing to fit."""
        return self

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Refuse: only the table's rows have predictions."""
        raise ModelError(
            "the baseline is a file of predictions, which cannot predict new rows",
            "give --baseline a model, so that it can be searched with",
        )

    def predict_rows(self, Z: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Look the rows up."""
        f = self.table[rows]
        if self.target.n_classes:
            return f
        return (f - self.target.low) / self.target.span

    def cross_fit(
        self, Z: np.ndarray, y: np.ndarray, rows: np.ndarray, parts: CvSplits, seed: int
    ) -> tuple[np.ndarray, list[Baseline]]:
        """Look the training rows up."""
        return self.predict_rows(Z, rows), []


def decode_to_source_frame(encoder: Encoder, Z: np.ndarray) -> pd.DataFrame:
    """Return encoded rows as a user's model knows them: plain columns, integers as integers."""
    return to_source_frame(encoder.columns, encoder.inverse(Z))


def to_source_frame(columns: Sequence[Column], features: pd.DataFrame) -> pd.DataFrame:
    """Return rows in canonical form as a user's model knows them."""
    frame = features.copy()
    for column in columns:
        values = frame[column.name]
        if column.type == "integer" and not values.isna().any():
            frame[column.name] = values.astype("int64")
        elif column.type == "boolean" and not values.isna().any():
            frame[column.name] = values.astype(str) == "True"
        elif not column.is_numeric:
            plain = values.astype(object)
            frame[column.name] = plain.where(plain.notna(), None)
    return frame


def load_model(path: Path, trust_pickle: bool) -> Any:
    """Load a fitted model; pickles only when the user trusts them.

    Raises
    ------
    ModelError
        Missing or unreadable file, a skops file that names what is not on the list of
        :mod:`amlb_ext.hardening.baseline.skops_types`, or a pickle without
        ``--trust-pickle``: loading a pickle runs whatever code it holds.
    """
    if not path.is_file():
        raise ModelError(
            f"there is no model file {path}", "check the path of the model"
        )
    is_skops = path.suffix.lower() == ".skops"
    if not is_skops and not trust_pickle:
        raise ModelError(
            f"{path.name} is a pickle, and loading a pickle runs any code that is in it",
            "save the model with skops.io.dump, or add --trust-pickle if you made it yourself",
        )
    try:
        return load_skops(path, trust_pickle) if is_skops else _unpickle(path)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"cannot load {path.name}: {describe_error(error)}") from error


def _unpickle(path: Path) -> Any:
    if path.suffix.lower() == ".joblib":
        import joblib

        return joblib.load(path)
    with path.open("rb") as handle:
        return pickle.load(handle)


def read_predictions(path: Path, task: Task) -> np.ndarray:
    """Read predictions for every row of the source's table.

    Regression: a column ``prediction`` (or ``predictions``). Classification: one probability
    column per class label.

    Returns
    -------
    ndarray of shape (n,) or (n, C)
        For the task's rows, in the target's own units.

    Raises
    ------
    ModelError
        Missing file or column, wrong number of rows, values that are no numbers.
    """
    if not path.is_file():
        raise ModelError(
            f"there is no file of predictions {path}", "check the path of the model"
        )
    try:
        is_csv = path.suffix.lower() == ".csv"
        table = pd.read_csv(path) if is_csv else pd.read_parquet(path)
    except Exception as error:
        raise ModelError(f"cannot read {path.name}: {describe_error(error)}") from error
    table.columns = [str(name) for name in table.columns]
    # in the target's own unit, row for row with the source's table: rows without a target are no
    # rows of the task, but the file has predictions for them too
    n_rows = int(task.row_ids.max()) + 1
    if len(table) < n_rows:
        raise ModelError(
            f"{path.name} has {len(table)} rows, but the table of {task.name} has {n_rows}",
            "give one prediction per row of the table, in its order",
        )
    if task.kind.is_classification:
        names = list(task.labels)
    elif "prediction" in table:
        names = ["prediction"]
    else:
        names = ["predictions"]
    missing = [name for name in names if name not in table]
    if missing:
        first_columns = ", ".join(table.columns[:8])
        raise ModelError(
            f"{path.name} lacks the column {missing[0]!r} (it has {first_columns})",
            f"write the columns {', '.join(names)}",
        )
    try:
        values = table[names].to_numpy(dtype=float)[task.row_ids]
    except (TypeError, ValueError):
        # text is no finite number either, and gets the same message
        values = np.array([[np.nan]])
    if not np.isfinite(values).all():
        raise ModelError(f"{path.name} holds predictions that are not finite numbers")
    return values if task.kind.is_classification else values[:, 0]
