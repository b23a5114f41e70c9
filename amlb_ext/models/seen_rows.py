"""Rows on which a model was fitted, found among the rows on which it is judged."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from amlb_ext.core.equal_rows import number_rows
from amlb_ext.core.errors import DataError
from amlb_ext.models.given_table import GivenTable
from amlb_ext.models.labels import label_text

#: Where more rows than this share are training rows of F, beyond what chance repeats.
MOST_SEEN = 0.02
#: Significant digits that survive single precision and a text file.
_DIGITS = 5


def refuse_seen_rows(table: GivenTable, seen: GivenTable, what: str = "X") -> None:
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
    what : str
        What the table is called in errors.

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
    # halves of the training rows repeat each other as often as other rows repeat them
    half = len(others) // 2
    by_chance = _share_repeated(others.iloc[:half], others.iloc[half:])
    share = _share_repeated(given, others)
    if share > 2 * by_chance + MOST_SEEN:
        raise DataError(
            f"{round(share * len(given))} of {len(given)} rows of {what} are training rows of F",
            "give rows that F was not fitted on",
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
