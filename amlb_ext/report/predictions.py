"""Test rows of an AMLB task, where each comes from, and what every framework predicted.

Notation
--------
n : rows of all folds together;  C : classes
y : (n,) truth, class codes or the target in its own unit
f : (n,) or (n, C) predictions, NaN where a framework has none
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.amlb.safe_text import normalize_text
from amlb_ext.core import row_losses
from amlb_ext.core.errors import RunError
from amlb_ext.core.task import Kind
from amlb_ext.runner import join_predictions, read_predictions
from amlb_ext.runner.agreement import (
    ComparedRows,
    Disagreement,
    find_disagreements,
    stored_predictions,
    stored_refits,
)
from amlb_ext.suite import Suite
from amlb_ext.suite.coding import Coding


@dataclass(frozen=True, kw_only=True)
class TaskPredictions:
    """One AMLB task.

    Attributes
    ----------
    name, suffix : str
    kind : Kind
    labels : tuple of str
        Class labels in the task's order; empty for regression.
    rows : DataFrame of shape (n, p)
        ``fold`` (the source's number), ``amlb_fold`` (AMLB's), ``row`` (position in the test
        file), then the provenance.
    y : ndarray of shape (n,)
    low, span : ndarray of shape (n,)
        Smallest target of each row's training file, and its range; 0 and 1 for classes.
    f : dict of str to ndarray of shape (n,) or (n, C)
        Predictions by framework.
    chosen : dict of str to ndarray of shape (n,)
        The class each framework names, -1 where none; empty for regression.
    """

    name: str
    suffix: str
    kind: Kind
    labels: tuple[str, ...]
    rows: pd.DataFrame
    y: np.ndarray
    low: np.ndarray
    span: np.ndarray
    f: dict[str, np.ndarray] = field(default_factory=dict)
    chosen: dict[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def scored(self, framework: str) -> np.ndarray:
        """Return which rows a framework predicted, bool of shape (n,)."""
        return has_prediction(self.f[framework])

    def loss(self, framework: str) -> np.ndarray:
        """Return Brier losses, or squared errors of the scaled target; NaN where none, (n,)."""
        f = self.f[framework]
        if f.ndim == 2:
            return row_losses.brier_loss(self.y, f)
        return row_losses.squared_error(
            (self.y - self.low) / self.span, (f - self.low) / self.span
        )

    def own(self) -> np.ndarray | None:
        """Return F's predictions as the provenance has them; None in suites that lack them."""
        return stored_predictions(self.rows, len(self.labels))

    def disagreements(self, framework: str) -> list[Disagreement]:
        """Return where a framework that is F is not the F that the provenance keeps."""
        own, is_scored = self.own(), self.scored(framework)
        if own is None or not is_scored.any():
            return []
        compared = ComparedRows(
            fold=self.rows["amlb_fold"].to_numpy(),
            f=self.f[framework],
            own=own,
            loss=self.loss(framework),
            loss_f=self.rows["loss"].to_numpy(dtype=float),
            null=stored_refits(self.rows),
            span=self.span,
        )
        return find_disagreements(self.name, compared.take(is_scored))


def has_prediction(f: np.ndarray) -> np.ndarray:
    """Return which rows of ``(n,)`` or ``(n, C)`` predictions are not NaN, bool of shape (n,)."""
    return ~np.isnan(f if f.ndim == 1 else f[:, 0])


def region_weights(predictions: TaskPredictions) -> np.ndarray | None:
    """Return P(F fails | x) of each row; None where it is not known."""
    weights = predictions.rows["weight"].to_numpy(dtype=float)
    is_usable = np.isfinite(weights).all() and weights.sum() > 0
    return weights if is_usable else None


def read_task_predictions(
    suite: Suite, name: str, jobs: pd.DataFrame
) -> tuple[TaskPredictions, dict[int, str]]:
    """Read the rows of an AMLB task and join each framework's predictions to them.

    Parameters
    ----------
    suite : Suite
    name : str
        The AMLB task's.
    jobs : DataFrame
        Rows of :func:`amlb_ext.runner.read_jobs`; those of this task that are scored are read.

    Returns
    -------
    predictions : TaskPredictions
    refused : dict of int to str
        By index in ``jobs``: predictions that cannot be used, and why; the first row whose
        truth differs is named.

    Raises
    ------
    SuiteError
        A damaged suite.
    """
    task = suite.amlb_task(name)
    coding = suite.coding(name)
    folds = []
    for index, source_fold in enumerate(task.folds):
        folds.append(_read_fold(suite, name, index, source_fold))
    # Folds are stacked: fold k takes the rows from ends[k] to ends[k + 1].
    n_rows = sum(len(fold.y) for fold in folds)
    ends = np.cumsum([0] + [len(fold.y) for fold in folds])
    shape = (n_rows, len(coding.labels)) if coding.labels else (n_rows,)

    f_by_framework: dict[str, np.ndarray] = {}
    chosen_by_framework: dict[str, np.ndarray] = {}
    refused = {}
    scored_jobs = jobs[(jobs["amlb_task"] == name) & (jobs["status"] == "scored")]
    for job_index, job in zip(
        scored_jobs.index, scored_jobs.to_dict("records"), strict=True
    ):
        index, framework = int(job["fold"]), str(job["framework"])
        if not 0 <= index < len(folds):
            refused[job_index] = (
                f"the suite has {len(folds)} folds of {name}, this is fold {index}"
            )
            continue
        fold = folds[index]
        # Without columns of the provenance, for a class may have the name of one.
        no_columns = fold.rows[[]]
        try:
            written = read_predictions(str(job["run"]), name, index)
            table = join_predictions(written, no_columns, fold.target_text)
            f, chosen = _parse_predictions(table, coding)
        except RunError as error:
            refused[job_index] = str(error)
            continue
        rows = slice(ends[index], ends[index + 1])
        f_by_framework.setdefault(framework, np.full(shape, np.nan))[rows] = f
        if coding.labels:
            chosen_by_framework.setdefault(framework, np.full(n_rows, -1))[rows] = (
                chosen
            )
    predictions = TaskPredictions(
        name=name,
        suffix=task.suffix,
        kind=task.type,
        labels=coding.labels,
        rows=pd.concat([fold.rows for fold in folds], ignore_index=True),
        y=np.concatenate([fold.y for fold in folds]),
        low=np.concatenate([np.full(len(fold.y), fold.low) for fold in folds]),
        span=np.concatenate([np.full(len(fold.y), fold.span) for fold in folds]),
        f=f_by_framework,
        chosen=chosen_by_framework,
    )
    return predictions, refused


@dataclass(frozen=True, kw_only=True)
class _TestFold:
    """The test rows of one fold.

    Attributes
    ----------
    rows : DataFrame of shape (n, p)
        Folds and position, then the provenance.
    target_text : Series of str
        The target as the test file has it.
    y : ndarray of shape (n,)
    low, span : float
        Smallest target of the training file, and its range; 0 and 1 for classes.
    """

    rows: pd.DataFrame
    target_text: pd.Series
    y: np.ndarray
    low: float
    span: float


def _read_fold(suite: Suite, name: str, index: int, source_fold: int) -> _TestFold:
    coding = suite.coding(name)
    train_file, test_file = suite.pair(name, index)
    rows = suite.provenance(name, index)
    rows.insert(0, "row", np.arange(len(rows)))
    rows.insert(0, "amlb_fold", index)
    rows.insert(0, "fold", source_fold)
    target_text = _read_target(test_file, coding)
    if coding.labels:
        code_of_label = {
            label: code for code, label in enumerate(coding.written_labels)
        }
        y = target_text.map(code_of_label).to_numpy(dtype=np.int64)
        return _TestFold(rows=rows, target_text=target_text, y=y, low=0.0, span=1.0)
    training_targets = _read_target(train_file, coding).to_numpy(dtype=float)
    low = float(training_targets.min())
    span = float(training_targets.max()) - low
    return _TestFold(
        rows=rows,
        target_text=target_text,
        y=target_text.to_numpy(dtype=float),
        low=low,
        span=span or 1.0,  # a constant target has no range to divide by
    )


def _read_target(path: Path, coding: Coding) -> pd.Series:
    """Return the target column of a file, as text."""
    name = coding.written_target
    return pd.read_csv(path, usecols=[name], dtype=str, keep_default_na=False)[name]


def _parse_predictions(
    table: pd.DataFrame, coding: Coding
) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions, and the codes of the classes that are named.

    Raises
    ------
    RunError
        A prediction that is no number, or names no class of the task.
    """
    if not coding.labels:
        f = table["predictions"].to_numpy(dtype=float)
        _check_finite(f)
        return f, np.empty(0)
    # Frameworks that encode labels may write a label's text with other case or space.
    codes = {
        normalize_text(label): code for code, label in enumerate(coding.written_labels)
    }
    columns = {normalize_text(str(column)): column for column in table.columns}
    f = np.zeros((len(table), len(codes)))
    for label, code in codes.items():
        # A class that never occurred in training may have no column: its probability is 0.
        if label in columns:
            f[:, code] = table[columns[label]].to_numpy(dtype=float)
    _check_finite(f)
    chosen = table["predictions"].map(
        lambda text: codes.get(normalize_text(str(text)), -1)
    )
    if (chosen < 0).any():
        row = int(np.flatnonzero(chosen < 0)[0])
        named = table["predictions"].iloc[row]
        raise RunError(
            f"row {row} predicts {named!r}, which is no class of the task",
            "run that fold again",
        )
    total = f.sum(axis=1)
    is_invalid = (f < 0).any(axis=1) | (total <= 0)
    if is_invalid.any():
        row = int(np.flatnonzero(is_invalid)[0])
        raise RunError(
            f"the probabilities of row {row} are negative or all zero",
            "run that fold again",
        )
    # Rounded in the file, probabilities need not sum to 1.
    return f / total[:, None], chosen.to_numpy(dtype=np.int64)


def _check_finite(f: np.ndarray) -> None:
    is_finite = np.isfinite(f) if f.ndim == 1 else np.isfinite(f).all(axis=1)
    if not is_finite.all():
        row = int(np.flatnonzero(~is_finite)[0])
        raise RunError(
            f"{int((~is_finite).sum())} of {len(f)} predictions are no finite numbers, "
            f"the first in row {row}",
            "run that fold again",
        )
