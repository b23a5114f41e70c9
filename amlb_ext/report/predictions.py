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


@dataclass(frozen=True)
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
        f = self.f[framework]
        return ~np.isnan(f if f.ndim == 1 else f[:, 0])

    def loss(self, framework: str) -> np.ndarray:
        """Return Brier losses, or squared errors of the scaled target; NaN where none, (n,)."""
        f = self.f[framework]
        if f.ndim == 2:
            return row_losses.brier_loss(self.y, f)
        return row_losses.squared_error((self.y - self.low) / self.span, (f - self.low) / self.span)

    def own(self) -> np.ndarray | None:
        """Return F's predictions as the provenance has them; None in suites that lack them."""
        return stored_predictions(self.rows, len(self.labels))

    def disagreements(self, framework: str) -> list[Disagreement]:
        """Return where a framework that is F is not the F that the provenance keeps."""
        own, rows = self.own(), self.scored(framework)
        if own is None or not rows.any():
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
        return find_disagreements(self.name, compared.take(rows))


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
    predicted : Predicted
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
    tables, targets, lows, spans, raw = [], [], [], [], []
    for index, fold in enumerate(task.folds):
        train, test = suite.pair(name, index)
        about = suite.provenance(name, index)
        text = _target(test, coding)
        raw.append(text)
        about.insert(0, "row", np.arange(len(about)))
        about.insert(0, "amlb_fold", index)
        about.insert(0, "fold", fold)
        tables.append(about)
        y, low, span = _truth(text, train, coding)
        targets.append(y)
        lows.append(np.full(len(y), low))
        spans.append(np.full(len(y), span))
    ends = np.cumsum([0, *map(len, targets)])
    out = TaskPredictions(
        name,
        task.suffix,
        task.type,
        coding.labels,
        pd.concat(tables, ignore_index=True),
        np.concatenate(targets),
        np.concatenate(lows),
        np.concatenate(spans),
    )
    shape = (len(out), len(coding.labels)) if coding.labels else (len(out),)
    refused = {}
    here = jobs[(jobs["amlb_task"] == name) & (jobs["status"] == "scored")]
    for index, job in zip(here.index, here.to_dict("records"), strict=True):
        k, label = int(job["fold"]), str(job["framework"])
        if not 0 <= k < len(task.folds):
            refused[index] = f"the suite has {len(task.folds)} folds of {name}, this is fold {k}"
            continue
        try:
            # no column of the provenance, for a class may have the name of one
            table = join_predictions(
                read_predictions(str(job["run"]), name, k), tables[k][[]], raw[k]
            )
            f, chosen = _predictions(table, coding)
        except RunError as error:
            refused[index] = str(error)
            continue
        at = slice(ends[k], ends[k + 1])
        out.f.setdefault(label, np.full(shape, np.nan))[at] = f
        if coding.labels:
            out.chosen.setdefault(label, np.full(len(out), -1))[at] = chosen
    return out, refused


def _target(path: Path, coding: Coding) -> pd.Series:
    """Return the target column of a file, as text."""
    name = coding.written_target
    return pd.read_csv(path, usecols=[name], dtype=str, keep_default_na=False)[name]


def _truth(text: pd.Series, train: Path, coding: Coding) -> tuple[np.ndarray, float, float]:
    if coding.labels:
        codes = {label: code for code, label in enumerate(coding.written_labels)}
        return text.map(codes).to_numpy(dtype=np.int64), 0.0, 1.0
    known = _target(train, coding).to_numpy(dtype=float)
    low = float(known.min())
    return text.to_numpy(dtype=float), low, float(known.max()) - low or 1.0


def _predictions(table: pd.DataFrame, coding: Coding) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions, and the codes of the classes that are named.

    Raises
    ------
    RunError
        A prediction that is no number, or names no class of the task.
    """
    if not coding.labels:
        f = table["predictions"].to_numpy(dtype=float)
        _finite(f)
        return f, np.empty(0)
    n = len(table)
    codes = {normalize_text(label): code for code, label in enumerate(coding.written_labels)}
    columns = {normalize_text(str(c)): c for c in table.columns}
    f = np.zeros((n, len(codes)))
    for label, code in codes.items():
        if label in columns:
            f[:, code] = table[columns[label]].to_numpy(dtype=float)
    _finite(f)
    # encoded frameworks may write the label's text with other case or space
    chosen = table["predictions"].map(lambda text: codes.get(normalize_text(str(text)), -1))
    if (chosen < 0).any():
        row = int(np.flatnonzero(chosen < 0)[0])
        named = table["predictions"].iloc[row]
        raise RunError(
            f"row {row} predicts {named!r}, which is no class of the task", "run that fold again"
        )
    total = f.sum(axis=1)
    if (f < 0).any() or (total <= 0).any():
        row = int(np.flatnonzero((f < 0).any(axis=1) | (total <= 0))[0])
        raise RunError(
            f"the probabilities of row {row} are negative or all zero", "run that fold again"
        )
    return f / total[:, None], chosen.to_numpy(dtype=np.int64)


def _finite(f: np.ndarray) -> None:
    good = np.isfinite(f) if f.ndim == 1 else np.isfinite(f).all(axis=1)
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        raise RunError(
            f"{int((~good).sum())} of {len(good)} predictions are no finite numbers, "
            f"the first in row {row}",
            "run that fold again",
        )
