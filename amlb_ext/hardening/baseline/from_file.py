"""F that was fitted elsewhere: a model in a file or behind an address, or predictions of the
table's rows; and the choice of F."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import HardsynthError, ModelError
from amlb_ext.core.paths import (
    PREDICTION_ENDINGS,
    check_model_file,
    check_pickle_trusted,
    has_model_ending,
)
from amlb_ext.core.rng import derive_seed
from amlb_ext.core.task import Column, Task
from amlb_ext.hardening.baseline.clones import can_clone, fit_clone
from amlb_ext.hardening.baseline.estimator import (
    Baseline,
    CvSplits,
    EstimatorBaseline,
    describe_error,
)
from amlb_ext.hardening.baseline.model_columns import (
    describe_expected,
    list_names,
    select_features,
)
from amlb_ext.hardening.baseline.predictions_file import read_predictions
from amlb_ext.hardening.baseline.registry import BASELINES, resolve_model
from amlb_ext.hardening.baseline.service import (
    RemoteModel,
    connect_service,
    is_service,
)
from amlb_ext.hardening.baseline.skops_files import load_skops
from amlb_ext.hardening.encode import Encoder, TargetEncoder


def make_baseline(
    config: BaselineConfig, task: Task, encoder: Encoder, target: TargetEncoder
) -> Baseline:
    """Return F for a fold, not yet fitted.

    Parameters
    ----------
    config : BaselineConfig
        A short name, an import path, a ``.skops`` model (or a pickle, when trusted), the address
        of a service, or a ``.csv`` or ``.parquet`` file of predictions, row for row with the
        table.
    task : Task
    encoder, target : Encoder, TargetEncoder
        Fitted on the fold's training rows.

    Raises
    ------
    ModelError
    """
    if is_service(config.model):
        service = connect_service(config)
        return FittedBaseline(service, config.model, encoder=encoder, target=target)
    path = Path(config.model)
    if is_model_file(config.model):
        model = load_fitted_model(path, config.trust_pickle)
        return FittedBaseline(model, path.name, encoder=encoder, target=target)
    if is_predictions_file(config.model):
        return PredictionsBaseline(read_predictions(path, task), target)
    spec = resolve_model(config, task.kind)
    return EstimatorBaseline(spec, task.kind, target.n_classes, encoder.n_categorical_)


def is_baseline_file(config: BaselineConfig) -> bool:
    """Whether F is a file rather than a model to be fitted."""
    return is_model_file(config.model) or is_predictions_file(config.model)


def comes_fitted(config: BaselineConfig) -> bool:
    """Whether F is a file or a service, so that nothing here can fit it.

    Examples
    --------
    >>> [comes_fitted(BaselineConfig(model=word)) for word in ("m.pkl", "http://m.org/f", "ridge")]
    [True, True, False]
    """
    return is_baseline_file(config) or is_service(config.model)


def is_model_file(model: str) -> bool:
    """Whether a word names the file of a fitted model, by its ending alone.

    Whatever stands on the disk, so that the settings of a suite mean the same everywhere.

    Examples
    --------
    >>> [is_model_file(word) for word in ("m.skops", "m.pkl", "m.joblib.gz", "p.csv", "ridge")]
    [True, True, True, False, False]
    """
    # a short name is no file, whatever stands in the folder
    if model in BASELINES or is_service(model):
        return False
    return has_model_ending(model)


def is_predictions_file(model: str) -> bool:
    """Whether a word names a file of predictions, by its ending alone.

    Examples
    --------
    >>> is_predictions_file("p.parquet"), is_predictions_file("m.pkl")
    (True, False)
    """
    if model in BASELINES or is_service(model):
        return False
    return Path(model).suffix.lower() in PREDICTION_ENDINGS


class FittedBaseline(Baseline):
    """A model that was fitted elsewhere; it gets rows as a DataFrame with the source's columns.

    Its training rows may be among ours, so that it fails too rarely: the manifest says so. It is
    fitted again by cloning it, and its clones are fitted on our training rows: where they differ
    from it, the difference of the training rows is part of that.

    Parameters
    ----------
    model : object
        With ``predict``; for classification ``predict_proba`` and ``classes_`` too. It is given
        the columns that it was fitted on, see
        :func:`~amlb_ext.hardening.baseline.model_columns.select_features`.
    name : str
        Of its file, for errors.
    encoder, target : Encoder, TargetEncoder
        Fitted on the fold's training rows.
    """

    comes_fitted = True

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
        features = select_features(self.model, frame, self.name)
        try:
            if not self.target.n_classes:
                raw = np.asarray(self.model.predict(features), dtype=float)
                # in the target's own unit, and perhaps a column
                raw = raw.reshape(len(frame))
                return (raw - self.target.low) / self.target.span
            p = np.asarray(self.model.predict_proba(features), dtype=float)
        except NotFittedError:
            raise ModelError(
                f"{self.name} holds an estimator that was never fitted",
                "fit it, and save it then",
            ) from None
        except HardsynthError:
            # of a service: it says already what was wrong
            raise
        except Exception as error:
            raise ModelError(
                f"{self.name} failed in predict: {describe_error(error)}",
                f"{describe_expected(self.model)}; the table has "
                f"{list_names(frame.columns)}",
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
        """Predict the training rows with the model as it is, and fit its clones on the parts.

        No clone is returned where scikit-learn cannot clone the model, where a clone cannot be
        fitted or refuses rows that the model takes, and where the clones learn nothing (a frozen
        model): ``refit_problem_`` says why.
        """
        frame = decode_to_source_frame(self.encoder, Z)
        f = self.predict_frame(frame)
        self.refit_problem_ = ""
        if isinstance(self.model, RemoteModel):
            self.refit_problem_ = "it is a service, which nothing here can fit"
            return f, []
        if not can_clone(self.model):
            self.refit_problem_ = f"{self.name} is no model that scikit-learn can clone"
            return f, []
        try:
            twins = self._fit_clones(frame, y, parts, seed)
            # on all training rows: one without a category of theirs may refuse them
            by_twin = [twin.predict_frame(frame) for twin in twins]
        except ModelError as error:
            self.refit_problem_ = error.message
            return f, []
        if all(np.array_equal(f_twin, f) for f_twin in by_twin):
            self.refit_problem_ = (
                "fitted again, it predicts the same: it does not learn"
            )
            return f, []
        fits: list[Baseline] = [*twins]
        return f, fits

    def _fit_clones(
        self, frame: pd.DataFrame, y: np.ndarray, parts: CvSplits, seed: int
    ) -> list[FittedBaseline]:
        features = select_features(self.model, frame, self.name)
        targets, is_known = self._targets_of_model(y)
        twins = []
        for number, (train, _) in enumerate(parts):
            # F never predicts a class that it does not know, so its clones are not shown one
            rows = train[is_known[train]]
            twin = fit_clone(
                self.model,
                _take_rows(features, rows),
                targets[rows],
                derive_seed(seed, number),
                n_jobs=1,  # workers fill the cores
            )
            name = f"{self.name}, fitted again,"
            twins.append(FittedBaseline(twin, name, self.encoder, self.target))
        return twins

    def _targets_of_model(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return targets in the model's own classes or unit, and which rows have one."""
        if not self.target.n_classes:
            return y * self.target.span + self.target.low, np.ones(len(y), dtype=bool)
        classes = np.asarray(self.model.classes_)
        position = np.full(self.target.n_classes, -1)
        for number, model_class in enumerate(classes):
            position[self._code_of_class(model_class)] = number
        numbers = position[y.astype(int)]
        return classes[numbers], numbers >= 0


def _take_rows(features: Any, rows: np.ndarray) -> Any:
    return features.iloc[rows] if hasattr(features, "iloc") else features[rows]


class PredictionsBaseline(Baseline):
    """F known only by its predictions of the table's rows; it cannot be searched with.

    Parameters
    ----------
    table : ndarray of shape (n,) or (n, C)
        As :func:`~amlb_ext.hardening.baseline.predictions_file.read_predictions` returns it.
    target : TargetEncoder
        Fitted on the fold's training rows.
    """

    can_search = False
    comes_fitted = True
    refit_problem_ = "F is a file of predictions, and no model"

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
            # as pandas reads a missing text: an imputer of the model would overlook None
            frame[column.name] = plain.where(plain.notna(), np.nan)
    return frame


def load_fitted_model(path: Path, trust_pickle: bool) -> Any:
    """Load a model with ``predict``.

    Raises
    ------
    ModelError
        As :func:`load_model`; or the file holds something else than a model.
    """
    model = load_model(path, trust_pickle)
    if isinstance(model, type):
        raise _no_model_error(path, f"the class {model.__name__}")
    if not hasattr(model, "predict"):
        raise _no_model_error(path, _with_article(type(model).__name__))
    return model


def load_model(path: Path, trust_pickle: bool) -> Any:
    """Load whatever a model file holds; pickles only when the user trusts them.

    Raises
    ------
    ModelError
        Missing or unreadable file, a skops file that names what is not on the list of
        :mod:`amlb_ext.hardening.baseline.skops_types`, or a pickle without
        ``--trust-pickle``: loading a pickle runs whatever code it holds.
    """
    check_model_file(path)
    check_pickle_trusted(path, trust_pickle)
    try:
        if path.suffix.lower() == ".skops":
            return load_skops(path, trust_pickle)
        # it reads plain pickles, too, and whatever joblib has compressed
        return joblib.load(path)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"cannot load {path.name}: {describe_error(error)}",
            "save the fitted model with skops.io.dump or joblib.dump, with the packages that are "
            "installed here",
        ) from error


def _no_model_error(path: Path, held: str) -> ModelError:
    return ModelError(
        f"{path.name} holds {held}, not a fitted model",
        "save the estimator itself, the object with predict",
    )


def _with_article(noun: str) -> str:
    return f"an {noun}" if noun[0].lower() in "aeiou" else f"a {noun}"
