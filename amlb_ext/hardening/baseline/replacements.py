"""The test rows of a fold as they are written, and what that took: left out, replaced.

AMLB cannot score a class that no training row has, and its frameworks fail on a category that no
training row has. Both are settled here, before F is asked, so that F is scored on the rows that
AMLB scores, and nothing of a test fold changes in silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.amlb.safe_text import safe_columns
from amlb_ext.core.errors import DataError, ModelError
from amlb_ext.core.notes import Note
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.estimator import Baseline
from amlb_ext.hardening.encode import Encoder
from amlb_ext.suite import FittedRows, fit_to_train

#: A column with a larger share of replaced test cells is named in a note.
TELLING_SHARE = 0.01


@dataclass(frozen=True)
class Chooser:
    """F, or the F of each of several targets, as the judge of replacements.

    Attributes
    ----------
    baselines : tuple of Baseline
        Fitted.
    encoder : Encoder
        Of the fold.
    """

    baselines: tuple[Baseline, ...]
    encoder: Encoder

    @property
    def can_judge(self) -> bool:
        """Whether all of F predict rows that are not in the table, at little cost."""
        return all(
            baseline.can_search and baseline.ledger is None
            for baseline in self.baselines
        )

    def __call__(self, features: pd.DataFrame) -> np.ndarray:
        """Return predictions of rows in canonical form, side by side, ``(n, ...)``."""
        # so that a replacement is judged by all targets at once
        return np.column_stack(
            [each.predict_table(self.encoder, features) for each in self.baselines]
        )

    def fit(
        self, train: pd.DataFrame, test: pd.DataFrame, task: Task
    ) -> tuple[FittedRows, bool]:
        """Replace what the training rows do not know where that changes F least.

        A file of predictions cannot be asked, a fitted model may refuse what it does not know, and
        of some models the answers cost: then the most frequent training value is taken.

        Returns
        -------
        fitted : FittedRows
        judged : bool
            Whether F was asked.
        """
        if self.can_judge:
            try:
                return fit_to_train(train, test, task.columns, self), True
            except ModelError:
                # a model fitted here reads whatever its encoder gives: its error is a real one
                if not any(baseline.comes_fitted for baseline in self.baselines):
                    raise
        return fit_to_train(train, test, task.columns), False


@dataclass(frozen=True, kw_only=True)
class WrittenRows:
    """The test rows of a fold as they are written, and what was left out and replaced.

    Attributes
    ----------
    rows : ndarray of int
        Positions in the table.
    features : DataFrame
        In canonical form.
    substituted : ndarray of str
        For each row the written names of the columns whose cells were replaced, with commas
        between.
    left_out : dict of str to int
        Test rows left out, by reason: ``unknown_class``.
    replaced : dict of str to int
        Replaced cells by column, under the source's names.
    copies : int
        Rows with replaced cells that repeat the features of a training row all the same.
    judged : bool
        Whether F chose the replacements; else the most frequent training values stand there.
    """

    rows: np.ndarray
    features: pd.DataFrame
    substituted: np.ndarray
    left_out: Mapping[str, int]
    replaced: Mapping[str, int]
    copies: int
    judged: bool

    def to_json(self) -> dict[str, Any]:
        """Return the counts for the fold's summary."""
        return {
            "left_out": dict(self.left_out),
            "replaced": dict(self.replaced),
            "replaced_copies": self.copies,
        }

    def notes(self) -> list[Note]:
        """Return what the counts alone do not tell a reader of the fold."""
        notes = []
        for name, count in self.replaced.items():
            share = count / len(self.rows)
            if share > TELLING_SHARE:
                counts = {"cells": count, "rows": len(self.rows), "share": share}
                notes.append(
                    Note(kind="column replaced", counts=counts, words={"column": name})
                )
        if self.replaced and not self.judged:
            notes.append(Note(kind="replaced unasked"))
        if self.copies:
            notes.append(Note(kind="replaced copies", counts={"rows": self.copies}))
        return notes


def known_classes(task: Task, fold: int) -> tuple[np.ndarray, dict[str, int]]:
    """Return the test rows whose class some training row has, and how many others there are.

    Raises
    ------
    DataError
        No test row is left.
    """
    rows = task.folds[fold].test
    if not task.kind.is_classification:
        return rows, {}
    codes = task.target.cat.codes.to_numpy()
    train_codes = codes[task.folds[fold].train]
    is_known = np.isin(codes[rows], train_codes)
    if is_known.all():
        return rows, {}
    kept = rows[is_known]
    if not len(kept):
        raise DataError(
            f"{task.name}, fold {fold}: no training row has a class of the {len(rows)} test rows",
            "use folds in which the classes of the test rows are among those of the training rows",
        )
    return kept, {"unknown_class": len(rows) - len(kept)}


def write_test_rows(task: Task, fold: int, chooser: Chooser) -> WrittenRows:
    """Return the test rows of a fold as they are written beside its training rows.

    Raises
    ------
    DataError
        No test row has a class that a training row has.
    """
    rows, left_out = known_classes(task, fold)
    train = task.features.iloc[task.folds[fold].train]
    test = task.features.iloc[rows]
    fitted, judged = chooser.fit(train, test, task)
    return WrittenRows(
        rows=rows,
        features=fitted.features,
        substituted=substituted_names(task, fitted.cells, len(rows)),
        left_out=left_out,
        replaced=Counter(name for _, name in fitted.cells),
        copies=len(fitted.copies),
        judged=judged,
    )


def substituted_names(
    task: Task, cells: Sequence[tuple[int, str]], n: int
) -> np.ndarray:
    """Return per row the written names of the columns with replaced cells, ``(n,)``."""
    sources = [column.name for column in task.columns]
    # the target's name has a say in how the others are made safe, but no cells
    safe_names = safe_columns([*sources, task.target_name])
    written = dict(zip(sources, safe_names, strict=False))
    names = np.full(n, "", dtype=object)
    for row, source in cells:
        # a row may have several replaced cells
        separator = "," if names[row] else ""
        names[row] += separator + written[source]
    return names
