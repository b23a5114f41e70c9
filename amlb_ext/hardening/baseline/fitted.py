"""F that was fitted elsewhere: a model, or predictions of the table's rows; and the choice of F.

Such an F is tried on a few rows before any work is done with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.errors import ModelError
from amlb_ext.core.numbers import MAX_EXACT_INTEGER
from amlb_ext.core.paths import check_pickle_trusted
from amlb_ext.core.rng import derive_seed
from amlb_ext.core.task import Column, Task
from amlb_ext.hardening.baseline.estimator import (
    Baseline,
    CvSplits,
    EstimatorBaseline,
)
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.hardness import decide, find_cut
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.models.answers import Answers, Labels
from amlb_ext.models.checks import check_answers
from amlb_ext.models.columns import columns_of_model
from amlb_ext.models.files import (
    is_model_file,
    is_predictions_file,
    load_fitted_model,
)
from amlb_ext.models.given_table import GivenTable
from amlb_ext.models.native import check_kind
from amlb_ext.models.predictions import read_predictions
from amlb_ext.models.registry import resolve_model
from amlb_ext.models.service import (
    RemoteModel,
    check_service,
    connect_service,
    is_service,
)


def make_baseline(
    config: BaselineConfig, task: Task, encoder: Encoder, target: TargetEncoder
) -> Baseline:
    """Return F for a fold, not yet fitted.

    Parameters
    ----------
    config : BaselineConfig
        A short name, an import path, a ``.skops`` model (or a pickle, when trusted), the address
        of a service, or a file of predictions, row for row with the table.
    task : Task
    encoder, target : Encoder, TargetEncoder
        Fitted on the fold's training rows.

    Raises
    ------
    ModelError
    """
    path = Path(config.model)
    model = load_baseline_model(config)
    if model is not None:
        name = config.model if is_service(config.model) else path.name
        return FittedBaseline(
            model, name, encoder=encoder, target=target, dtypes=task.dtypes
        )
    if is_predictions_file(config.model):
        answers = read_predictions(path, task)
        check_probabilities_given(answers, path.name)
        return PredictionsBaseline(answers, target)
    spec = resolve_model(config, task.kind)
    return EstimatorBaseline(spec, task.kind, target.n_classes, encoder.n_categorical_)


def check_probabilities_given(answers: Answers, name: str) -> None:
    """Raise where F names labels alone: a suite keeps its losses, which are of probabilities.

    Raises
    ------
    ModelError
    """
    if answers.only_labels:
        raise ModelError(
            f"{name} names labels and gives no probabilities, which a suite compares",
            "give a model with predict_proba, e.g. a CalibratedClassifierCV; or a file of one "
            "column of probabilities for each class, or of one column 'score:LABEL'",
        )


class FittedBaseline(Baseline):
    """A model that was fitted elsewhere; it gets rows as a DataFrame with the source's columns.

    Its training rows may be among ours, so that it fails too rarely: the manifest says so. It is
    fitted again by cloning it, and its clones are fitted on our training rows: where they differ
    from it, the difference of the training rows is part of that.

    Parameters
    ----------
    model : object
        See :class:`~amlb_ext.models.adapter.ModelAdapter`.
    name : str
        Of its file, for errors.
    encoder, target : Encoder, TargetEncoder
        Fitted on the fold's training rows.
    dtypes : mapping of str to dtype
        Types of the source's columns, see :class:`~amlb_ext.core.task.Task`.
    """

    comes_fitted = True

    def __init__(
        self,
        model: Any,
        name: str,
        encoder: Encoder,
        target: TargetEncoder,
        dtypes: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.name = name
        self.encoder = encoder
        self.target = target
        self.dtypes = dtypes or {}
        self.adapter = ModelAdapter(model, name)

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Decode the rows, ask the model, and scale its predictions or order its classes."""
        return self.answer_frame(self._source_frame(Z)).f

    def predict_table(self, encoder: Encoder, features: pd.DataFrame) -> np.ndarray:
        """Predict rows in canonical form; the model may know values that our training rows lack."""
        frame = to_source_frame(encoder.columns, features, self.dtypes)
        return self.answer_frame(frame).f

    def answer_frame(self, frame: pd.DataFrame) -> Answers:
        """Return what the model answers to rows with the columns of the source, scaled."""
        labels = Labels(self.target.labels)
        answers = self.adapter.answer(GivenTable.of_rows(frame), labels)
        if self.target.n_classes:
            return answers
        scaled = (answers.f - self.target.low) / self.target.span
        return Answers(f=scaled, raw=answers.raw, notes=answers.notes)

    def decide_rows(self, Z: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Ask ``predict`` where no cut of the probabilities tells what it decides."""
        if not self._decides_apart:
            return None
        return self.answer_frame(self._source_frame(Z)).decided

    #: Whether the model decides otherwise than its probabilities tell.
    _decides_apart = False

    def cross_fit(
        self, Z: np.ndarray, y: np.ndarray, rows: np.ndarray, parts: CvSplits, seed: int
    ) -> tuple[np.ndarray, list[Baseline]]:
        """Predict the training rows with the model as it is, and fit its clones on the parts.

        No clone is returned where scikit-learn cannot clone the model, where a clone cannot be
        fitted or refuses rows that the model takes, and where the clones learn nothing (a frozen
        model): ``refit_problem_`` says why.
        """
        frame = self._source_frame(Z)
        answers = self.answer_frame(frame)
        check_probabilities_given(answers, self.name)
        self._check_answers(answers, y)
        f = answers.f
        self.decided_ = answers.decided
        if answers.decided is not None:
            told = decide(f, find_cut(f, answers.decided))
            self._decides_apart = not np.array_equal(told, answers.decided)
        fits: list[Baseline] = []
        self.refit_problem_ = ""
        try:
            twins = self._fit_clones(frame, y, parts, seed)
            # on all training rows: one without a category of theirs may refuse them
            by_twin = [twin.answer_frame(frame).f for twin in twins]
            if all(np.array_equal(f_twin, f) for f_twin in by_twin):
                raise ModelError(
                    "fitted again, it predicts the same: it does not learn"
                )
            fits += twins
        except ModelError as error:
            self.refit_problem_ = error.message
        return f, fits

    def _check_answers(self, answers: Answers, y: np.ndarray) -> None:
        """Hold what a suite is about to say of F against what F said."""
        if self.target.n_classes:
            given = np.asarray(self.target.labels, dtype=object)[y.astype(int)]
            check_answers(answers, y, given, self.name)
            return
        own_unit = answers.f * self.target.span + self.target.low
        given = y * self.target.span + self.target.low
        in_unit = Answers(f=own_unit, raw=answers.raw)
        check_answers(in_unit, given, given, self.name)

    def _source_frame(self, Z: np.ndarray) -> pd.DataFrame:
        return to_source_frame(
            self.encoder.columns, self.encoder.inverse(Z), self.dtypes
        )

    def _fit_clones(
        self, frame: pd.DataFrame, y: np.ndarray, parts: CvSplits, seed: int
    ) -> list[FittedBaseline]:
        if isinstance(self.model, RemoteModel):
            raise ModelError("it is a service, which nothing here can fit")
        if not self.adapter.can_fit_again:
            raise ModelError(f"{self.name} is no model that scikit-learn can clone")
        table = GivenTable.of_rows(frame)
        targets, is_known = self._targets_of_model(y)
        twins = []
        for number, (train, _) in enumerate(parts):
            # F never predicts a class that it does not know, so its clones are not shown one
            rows = train[is_known[train]]
            twin = self.adapter.fit_again(
                table.take(rows),
                targets[rows],
                derive_seed(seed, number),
                n_jobs=1,  # workers fill the cores
            )
            twins.append(
                FittedBaseline(
                    twin.model, twin.name, self.encoder, self.target, self.dtypes
                )
            )
        return twins

    def _targets_of_model(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return targets in the model's own classes or unit, and which rows have one."""
        n_classes = self.target.n_classes
        if not n_classes:
            own_unit = y * self.target.span + self.target.low
            return own_unit, np.ones(len(y), dtype=bool)
        labels = Labels(self.target.labels)
        classes = np.asarray(self.adapter.classes or self.target.labels)
        # where each of our classes stands among the model's; -1 for one that it lacks
        position = np.full(n_classes, -1)
        codes = labels.codes(classes)
        position[codes] = np.arange(len(classes))
        numbers = position[y.astype(int)]
        return classes[numbers], numbers >= 0


class PredictionsBaseline(Baseline):
    """F known only by its predictions of the table's rows; it cannot be searched with.

    Parameters
    ----------
    answers : Answers
        As :func:`~amlb_ext.models.predictions.read_predictions` returns it.
    target : TargetEncoder
        Fitted on the fold's training rows.
    """

    can_search = False
    comes_fitted = True
    refit_problem_ = "F is a file of predictions, and no model"

    def __init__(self, answers: Answers, target: TargetEncoder) -> None:
        self.answers = answers
        self.target = target

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Refuse: only the table's rows have predictions."""
        raise ModelError(
            "the baseline is a file of predictions, which cannot predict new rows",
            "give --baseline a model, so that it can be searched with",
        )

    def predict_rows(self, Z: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Look the rows up."""
        f = self.answers.f[rows]
        if self.target.n_classes:
            return f
        return (f - self.target.low) / self.target.span

    def decide_rows(self, Z: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Look the decisions up, where the file names labels."""
        return None if self.answers.decided is None else self.answers.decided[rows]

    def cross_fit(
        self, Z: np.ndarray, y: np.ndarray, rows: np.ndarray, parts: CvSplits, seed: int
    ) -> tuple[np.ndarray, list[Baseline]]:
        """Look the training rows up."""
        self.decided_ = self.decide_rows(Z, rows)
        return self.predict_rows(Z, rows), []


def to_source_frame(
    columns: Sequence[Column],
    features: pd.DataFrame,
    dtypes: Mapping[str, Any],
) -> pd.DataFrame:
    """Return rows in canonical form as a user's model knows them.

    Parameters
    ----------
    columns : sequence of Column
    features : DataFrame of shape (n, d)
    dtypes : mapping of str to dtype
        Types of the source's columns; a column without one stays plain, integers as integers.
    """
    frame = features.copy()
    for column in columns:
        values = frame[column.name]
        frame[column.name] = _as_source(values, column, dtypes.get(column.name))
    return frame


def _as_source(values: pd.Series, column: Column, dtype: Any) -> pd.Series:
    if isinstance(dtype, pd.CategoricalDtype) and not column.is_numeric:
        by_text = {str(category): category for category in dtype.categories}
        return values.astype(object).map(by_text).astype(dtype)
    if isinstance(dtype, pd.DatetimeTZDtype) or getattr(dtype, "kind", "") == "M":
        return _as_times(values, dtype)
    if column.is_numeric:
        return _as_numbers(values, column, dtype)
    if column.type == "boolean":
        truths = values.astype(object).map({"True": True, "False": False})
        if isinstance(dtype, pd.BooleanDtype):
            return truths.astype(dtype)
        if not values.isna().any():
            return truths.astype(bool)
    plain = values.astype(object)
    # as pandas reads a missing text: an imputer of the model would overlook None
    plain = plain.where(plain.notna(), np.nan)
    return plain.astype(dtype) if isinstance(dtype, pd.StringDtype) else plain


def _as_times(values: pd.Series, dtype: Any) -> pd.Series:
    texts = values.astype(object)
    times = pd.to_datetime(texts, format="ISO8601", utc=True)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return times.dt.tz_convert(dtype.tz).astype(dtype)
    return times.dt.tz_localize(None).astype(dtype)


def _as_numbers(values: pd.Series, column: Column, dtype: Any) -> pd.Series:
    has_missing = bool(values.isna().any())
    if column.type == "integer" and not has_missing:
        values = values.astype("int64")
    if dtype is None or not pd.api.types.is_numeric_dtype(dtype):
        return values
    is_nullable = pd.api.types.is_extension_array_dtype(dtype)
    # whole numbers of numpy have no room for a missing one
    lacks_room = has_missing and dtype.kind in "iub"
    return values.astype(dtype) if is_nullable or not lacks_room else values


# F from a file, tried before any work.


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
    check_exact(model, name, task)
    n_missing = task.features.isna().sum(axis=1).to_numpy()
    most_missing = np.argsort(-n_missing, kind="stable")[:_MISSING_ROWS]
    first = np.arange(len(task))[: TRIAL_ROWS - _MISSING_ROWS]
    rows = task.features.iloc[np.union1d(first, most_missing)]
    target = TargetEncoder(task.kind, task.labels, task.target)
    encoder = Encoder(task.columns)
    baseline = FittedBaseline(model, name, encoder, target, task.dtypes)
    frame = to_source_frame(task.columns, rows, task.dtypes)
    check_probabilities_given(baseline.answer_frame(frame), name)


def check_exact(model: Any, name: str, task: Task) -> None:
    """Raise where F was fitted on whole numbers that a task's 64-bit floats do not hold.

    Raises
    ------
    ModelError
    """
    wanted = columns_of_model(model, task.features.columns)[0]
    for column in task.columns:
        is_wanted = wanted is None or column.name in wanted
        kind = getattr(task.dtypes.get(column.name), "kind", "")
        if not is_wanted or kind not in ("i", "u", "O"):
            continue
        # where different numbers would become equal, a task has texts in their place
        is_other = kind != "O"
        if column.is_numeric:
            is_other = task.features[column.name].abs().max() > MAX_EXACT_INTEGER
        if is_other:
            raise ModelError(
                f"{name} was fitted on the column {column.name!r}, whose whole numbers beyond "
                "2**53 are others as 64-bit floats, so it would be asked about other rows",
                "fit F on short numbers or texts that stand for them, and give a table with those",
            )
