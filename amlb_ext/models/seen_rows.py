"""Rows on which a model was fitted, found among the rows on which it is judged."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from amlb_ext.core.equal_rows import number_rows
from amlb_ext.core.errors import DataError
from amlb_ext.core.task import Task
from amlb_ext.models.given_table import GivenTable
from amlb_ext.models.labels import label_text

#: Where more rows than this share are training rows of F, beyond what chance repeats.
MOST_SEEN = 0.02
#: Significant digits that survive single precision and a text file.
_DIGITS = 5


def refuse_seen_test_rows(task: Task) -> None:
    """Refuse a test file that holds rows of the table beside it, in whatever order.

    Raises
    ------
    DataError
    """
    for fold in task.folds:
        refuse_seen_rows(
            GivenTable.of_rows(task.features.iloc[fold.test]),
            GivenTable.of_rows(task.features.iloc[fold.train]),
            "the test file",
            what_seen="rows of the table, which F is fitted on",
            remedy="give a test file of other rows, or leave --test-file out",
        )


def refuse_seen_rows(
    table: GivenTable,
    seen: GivenTable,
    what: str = "X",
    *,
    what_seen: str = "training rows of F",
    remedy: str = "give rows that F was not fitted on",
) -> None:
    """Refuse a table that holds rows on which F was fitted.

    Rows are compared by their values, to five digits: single precision and a text file change no
    more. Some repeat by chance where columns are coarse. How often the training rows repeat among
    themselves says how many.

    Parameters
    ----------
    table : GivenTable of n rows
        Features of the rows on which a model is judged.
    seen : GivenTable of m rows
        Features of its training rows.
    what, what_seen, remedy : str
        What the table and those rows are called in errors, and what to do.

    Raises
    ------
    DataError
    """
    given, others = table.frame, seen.frame
    if table.is_unnamed or seen.is_unnamed:
        # one of them has nothing but the place of its columns
        if given.shape[1] != others.shape[1]:
            return
        others = others.set_axis(given.columns, axis=1)
    common = [name for name in given.columns if name in others.columns]
    if not common or len(others) < 2:
        return
    numeric = {
        name
        for name in common
        if pd.api.types.is_numeric_dtype(given[name])
        and pd.api.types.is_numeric_dtype(others[name])
    }
    given = _comparable(given[common], numeric)
    others = _comparable(others[common], numeric)
    # numbers and names of rows may have been given anew, and would tell equal rows apart
    numbered = {
        name
        for name in common
        if others[name].is_unique and not (name in numeric and (others[name] % 1).any())
    }
    half = len(others) // 2
    for names in (common, [name for name in common if name not in numbered]):
        if not names:
            continue
        # halves of the training rows repeat each other as often as other rows repeat them
        halves = others[names].iloc[:half], others[names].iloc[half:]
        share = _share_repeated(given[names], others[names])
        if share > 2 * _share_repeated(*halves) + MOST_SEEN:
            raise DataError(
                f"{round(share * len(given))} of {len(given)} rows of {what} are {what_seen}",
                remedy,
            )


def _comparable(frame: pd.DataFrame, numeric: Collection[str]) -> pd.DataFrame:
    """Return values that are equal where they were before they were written or rounded."""
    columns = {}
    for name, values in frame.items():
        if name in numeric:
            numbers = values.to_numpy(dtype=float, na_value=np.nan)
            with np.errstate(divide="ignore", invalid="ignore"):
                size = np.floor(np.log10(np.abs(numbers)))
            unit = 10.0 ** (np.where(np.isfinite(size), size, 0.0) - _DIGITS + 1)
            columns[name] = np.round(numbers / unit) * unit
        else:
            columns[name] = values.astype(object).map(label_text, na_action="ignore")
    return pd.DataFrame(columns).reset_index(drop=True)


def _share_repeated(asked: pd.DataFrame, others: pd.DataFrame) -> float:
    """Return the share of rows that have the features of one of the others."""
    asked = asked.reset_index(drop=True)
    others = others.reset_index(drop=True)[asked.columns]
    numbers, other_numbers = number_rows(asked, others)
    return float(np.isin(numbers, other_numbers[other_numbers >= 0]).mean())
