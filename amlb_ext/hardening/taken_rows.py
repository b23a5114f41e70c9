"""Rows that no made row may repeat: the real ones on both sides of a fold, and those made before.

Rows are compared by their features as they are written, without the target. The real rows are those
of the whole table, and the test rows as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from amlb_ext.core.equal_rows import number_rows, repeats_earlier
from amlb_ext.core.task import Task
from amlb_ext.suite import FittedRows, Part, Rows
from amlb_ext.suite.copy_counts import is_made


@dataclass(frozen=True)
class TakenRows:
    """Features that are taken, in canonical form.

    Attributes
    ----------
    real, made : tuple of DataFrame
        Of real rows, and of rows made before.
    """

    real: tuple[pd.DataFrame, ...]
    made: tuple[pd.DataFrame, ...] = ()

    @classmethod
    def of_fold(cls, task: Task, written: pd.DataFrame) -> TakenRows:
        """Return the rows of the table, and the fold's test rows as they are written."""
        return cls((task.features, written))

    def with_made(self, features: pd.DataFrame) -> TakenRows:
        """Return these rows and others that were made."""
        return replace(self, made=(*self.made, features))

    def repeated(self, features: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows repeat a real row, and which one that was made before."""
        asked, *others = number_rows(features, *self.real, *self.made)
        real, made = others[: len(self.real)], others[len(self.real) :]
        return tuple(
            np.isin(asked, np.concatenate(numbers)) if numbers else np.zeros(len(asked), dtype=bool)
            for numbers in (real, made)
        )  # type: ignore[return-value]


def repeated_within(features: pd.DataFrame) -> np.ndarray:
    """Return which rows repeat the features of an earlier one."""
    return repeats_earlier(number_rows(features)[0])


def part_sides(
    train: Rows,
    test: Rows,
    *,
    real: Sequence[pd.DataFrame],
    tested: Sequence[pd.DataFrame],
    fit: Callable[[pd.DataFrame, pd.DataFrame], FittedRows],
) -> tuple[Part, dict[str, int]]:
    """Take the rows of ``_hard`` apart that would stand on both its sides, or twice.

    Real rows can have the same features on both sides of a fold. And the test rows of ``_hard`` are
    fitted to its own training rows, so that two of them can become alike there, or like a
    training row, that are not so anywhere else. A test row that is real always stays.

    Parameters
    ----------
    train, test : Rows
        Hard rows of either side; ``origin`` in their provenance tells real from made.
    real : sequence of DataFrame
        Features of all real rows, as they came and as they are written.
    tested : sequence of DataFrame
        The same of the fold's test rows alone.
    fit : callable
        ``(training features, test features)`` -> the latter as AMLB can read them beside the
        former.

    Returns
    -------
    pair : Part
        Its test rows are not yet fitted to its training rows.
    left_out : dict of str to int
        ``train_real``, ``train_made``: training rows with the features of a test row;
        ``test_made``: made test rows that repeat another row as they are written there.
    """
    before = len(train), int(is_made(train).sum())
    fitted = FittedRows(test.features, [], np.zeros(0, dtype=int))
    while len(train):
        fitted = fit(train.features, test.features)
        asked, *others = number_rows(train.features, *tested, test.features, fitted.features)
        clash = np.isin(asked, np.concatenate(others))
        if not clash.any():
            break
        train = train.take(~clash)  # what is known may become less, and the fitted rows others
    made = is_made(train).sum()
    left_out = {"train_made": before[1] - int(made)}
    left_out["train_real"] = before[0] - len(train) - left_out["train_made"]
    changed = np.zeros(len(test), dtype=bool)
    changed[[row for row, _ in fitted.cells]] = True
    own, *others = number_rows(fitted.features, *real, fitted.features[~is_made(test)])
    # rows that stand as they were made come first, so that it is the changed ones that repeat
    order = np.lexsort([np.arange(len(test)), changed])
    again = np.zeros(len(test), dtype=bool)
    again[order] = repeats_earlier(own[order])
    repeats = is_made(test) & changed & (again | np.isin(own, np.concatenate(others)))
    left_out["test_made"] = int(repeats.sum())
    if repeats.any():
        test = test.take(~repeats)
    return Part(test, train), left_out
