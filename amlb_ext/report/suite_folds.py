"""Folds of a suite as data frames, and what a model predicts of them, in the form of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.errors import ModelError
from amlb_ext.core.numbers import count_not_finite
from amlb_ext.report.given_predictions import (
    PREDICTION_COLUMN,
    TRUTH_COLUMN,
    class_column,
)
from amlb_ext.suite import SuiteFiles, amlb_name
from amlb_ext.suite.coding import NUMBERS, Coding
from amlb_ext.suite.layout import SUFFIXES

#: Rows of these AMLB tasks are predicted: all that share the training rows.
_PARTS = tuple(suffix for suffix in SUFFIXES if suffix != "hard")


@dataclass(frozen=True, kw_only=True)
class SuiteFold:
    """One fold of a task: what a model is fitted on, and the test rows of every part.

    Attributes
    ----------
    task : str
        The suite's task.
    fold : int
        The source's number of the fold.
    kind : {'regression', 'binary', 'multiclass'}
    X : DataFrame of shape (n, d)
        Features of the training rows; texts are categories, the same in training and test rows.
    y : Series of shape (n,)
        Numbers, or labels as text.
    tests : dict of (str, int) to DataFrame
        Features and target of test rows, by AMLB task and AMLB's number of the fold.
    target : str
        Name of the target in ``tests``.
    labels : tuple of str
        Empty for a regression.
    """

    task: str
    fold: int
    kind: str
    X: pd.DataFrame
    y: pd.Series
    tests: dict[tuple[str, int], pd.DataFrame]
    target: str
    labels: tuple[str, ...]

    def predictions(self, model: Any) -> pd.DataFrame:
        """Return the predictions of a fitted model as rows of a file of predictions.

        Parameters
        ----------
        model : estimator
            Fitted on ``X`` and ``y``; with ``predict``, for classes with ``predict_proba`` and
            ``classes_``.

        Returns
        -------
        DataFrame
            ``task``, ``fold``, ``row``, ``truth``, and ``prediction`` or one column of
            probabilities for each class.

        Raises
        ------
        ModelError
            A model without probabilities, with a class that the task lacks, or that predicts
            something that is no number.
        """
        tables = []
        for (name, fold), test in self.tests.items():
            predicted = self._predict(model, test.drop(columns=self.target))
            n_not_finite = count_not_finite(predicted.to_numpy())
            if n_not_finite:
                raise ModelError(
                    f"the model predicts no finite number for {n_not_finite} of {len(test)} rows "
                    f"of {name}",
                    "mend the model",
                )
            key = pd.DataFrame(
                {
                    "task": name,
                    "fold": fold,
                    "row": np.arange(len(test)),
                    TRUTH_COLUMN: test[self.target].astype(str),
                }
            )
            tables.append(pd.concat([key, predicted], axis=1))
        return pd.concat(tables, ignore_index=True)

    def _predict(self, model: Any, X: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of predictions of some rows."""
        if not self.labels:
            f = np.asarray(model.predict(X), dtype=float).reshape(len(X))
            return pd.DataFrame({PREDICTION_COLUMN: f})
        if not hasattr(model, "predict_proba"):
            raise ModelError(
                f"a {type(model).__name__} has no predict_proba",
                "give a model with class probabilities, e.g. in a CalibratedClassifierCV",
            )
        known = [str(label) for label in model.classes_]
        unknown = [label for label in known if label not in self.labels]
        if unknown:
            raise ModelError(
                f"the model knows a class {unknown[0]!r}, which {self.task} lacks",
                "fit it on fold.X and fold.y",
            )
        probabilities = pd.DataFrame(model.predict_proba(X), columns=known)
        # a class that no training row has is given no chance
        probabilities = probabilities.reindex(columns=list(self.labels), fill_value=0.0)
        return probabilities.rename(columns=class_column)


def read_suite_folds(suite: SuiteFiles) -> Iterator[SuiteFold]:
    """Yield every fold of every task; see :class:`SuiteFold`.

    Raises
    ------
    SuiteError
        The suite is damaged.
    """
    for task, entry in suite.tasks.items():
        full = suite.amlb_task(amlb_name(task, "full"))
        coding = entry.coding
        for index, source_fold in enumerate(full.folds):
            train_file, _ = suite.pair(full.name, index)
            train = _read_frame(train_file, coding)
            tests = {}
            for suffix in _PARTS:
                part = suite.amlb_tasks.get(amlb_name(task, suffix))
                # a part has the folds in which it has rows
                if part is None or source_fold not in part.folds:
                    continue
                part_index = part.folds.index(source_fold)
                _, test_file = suite.pair(part.name, part_index)
                tests[part.name, part_index] = _read_frame(test_file, coding)
            yield SuiteFold(
                task=task,
                fold=source_fold,
                kind=entry.kind.value,
                X=train.drop(columns=coding.written_target),
                y=train[coding.written_target],
                tests=tests,
                target=coding.written_target,
                labels=coding.written_labels,
            )


def _read_frame(path: Path, coding: Coding) -> pd.DataFrame:
    """Read a file of a suite with the types of its coding."""
    texts = {column.written: str for column in coding.columns if column.form == "text"}
    if coding.written_labels:
        texts[coding.written_target] = str
    frame = pd.read_csv(path, dtype=texts)
    for column in coding.columns:
        if column.form in NUMBERS:
            # whole numbers and fractions alike: a test file may lack what a training file has
            frame[column.written] = frame[column.written].astype(float)
        else:
            values = frame[column.written]
            if column.form == "boolean":
                values = values.astype(str)
            frame[column.written] = pd.Categorical(values, categories=column.values)
    return frame
