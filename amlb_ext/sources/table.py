"""A table as it was read, before it becomes a task, and how several tables become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError
from amlb_ext.core.numbers import MAX_EXACT_INTEGER, holds_numbers, narrow_to_float64
from amlb_ext.core.task import ColumnType, Fold


@dataclass(frozen=True)
class Table:
    """A table and what its file declared about its columns.

    Attributes
    ----------
    name : str
        Name of the file, for messages.
    frame : DataFrame of shape (n, d + 1)
        Column names are ``str``; numbers are numpy numbers, all else is text or objects.
    types : dict of str to str
        Declared types; columns without one are inferred later.
    categories : dict of str to tuple of str
        Declared categories in the file's order.
    notes : tuple of str
        What the reader of the task should know of the reading, one sentence each.
    """

    name: str
    frame: pd.DataFrame
    types: dict[str, ColumnType] = field(default_factory=dict)
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def stack_tables(tables: Sequence[Table]) -> Table:
    """Put tables under each other; their columns must agree in name, order and type.

    Parameters
    ----------
    tables : sequence of Table
        At least one; declared categories are united in order of appearance.

    Returns
    -------
    Table
        All rows, in order.

    Raises
    ------
    DataError
        When columns are missing, added or permuted, or a column is numeric in one table and
        text in another.

    Examples
    --------
    >>> one = Table("a.csv", pd.DataFrame({"x": [1, 2]}))
    >>> stack_tables([one, Table("b.csv", pd.DataFrame({"x": [0.5]}))]).frame["x"].tolist()
    [1.0, 2.0, 0.5]
    """
    first = tables[0]
    types, categories = dict(first.types), dict(first.categories)
    classes = {name: _class_of(first, name) for name in first.frame.columns}
    for other in tables[1:]:
        _check_names(first, other)
        for name in first.frame.columns:
            was, now = classes[name], _class_of(other, name)
            if was and now and was != now:
                raise DataError(
                    f"column {name!r} is {was} in {first.name} and {now} in {other.name}",
                    "write it in the same form in both files",
                )
            classes[name] = was or now
            if name in other.types:
                types.setdefault(name, other.types[name])
            if name in other.categories:
                known = categories.get(name, ())
                categories[name] = tuple(dict.fromkeys((*known, *other.categories[name])))
    stacked = {
        name: _stacked([table.frame[name] for table in tables], classes[name]) for name in classes
    }
    notes = tuple(dict.fromkeys(note for table in tables for note in table.notes))
    return Table(first.name, pd.DataFrame(stacked), types, categories, notes)


def join_folds(pairs: Sequence[tuple[Table, Table]]) -> tuple[Table, tuple[Fold, ...]]:
    """Make one table with folds out of (train, test) tables.

    Files of a cross-validation repeat the same rows in every fold. A row is recognised by its
    values and by the number of equal rows before it in the same fold, so a table that holds
    the same row twice keeps it twice. When folds share no rows, all rows are kept.

    Parameters
    ----------
    pairs : sequence of (Table, Table)
        One pair per fold.

    Returns
    -------
    table : Table
    folds : tuple of Fold
        Positions in ``table``, one fold per pair.

    Raises
    ------
    DataError
        As :func:`stack_tables`.

    Examples
    --------
    >>> a, b = (Table(f"{x}.csv", pd.DataFrame({"x": [x, x + "!"]})) for x in "ab")
    >>> table, folds = join_folds([(a, b), (b, a)])
    >>> len(table.frame), folds[1].train.tolist(), folds[1].test.tolist()
    (4, [2, 3], [0, 1])
    """
    table = stack_tables([part for pair in pairs for part in pair])
    sizes = [(len(train.frame), len(test.frame)) for train, test in pairs]
    fold_of = np.repeat(np.arange(len(pairs)), [a + b for a, b in sizes])
    place = np.arange(len(table.frame), dtype=np.int64)
    if len(pairs) > 1:
        keys = pd.DataFrame(
            {
                "row": pd.util.hash_pandas_object(table.frame, index=False).to_numpy(),
                "fold": fold_of,
            }
        )
        keys["nth"] = keys.groupby(["row", "fold"]).cumcount()
        number = keys.groupby(["row", "nth"], sort=False).ngroup().to_numpy().astype(np.int64)
        first = np.unique(number, return_index=True)[1]
        kept = table.frame.iloc[first].reset_index(drop=True)
        # Hashes of 64 bits may collide; then nothing is merged.
        if kept.iloc[number].reset_index(drop=True).equals(table.frame):
            table = replace(table, frame=kept)
            place = number
    folds, start = [], 0
    for n_train, n_test in sizes:
        middle = start + n_train
        folds.append(Fold(place[start:middle], place[middle : middle + n_test]))
        start = middle + n_test
    return table, tuple(folds)


def _check_names(first: Table, other: Table) -> None:
    ours, theirs = list(first.frame.columns), list(other.frame.columns)
    if ours == theirs:
        return
    missing = [name for name in ours if name not in theirs]
    added = [name for name in theirs if name not in ours]
    parts = [f"lacks {missing[:5]}" if missing else "", f"adds {added[:5]}" if added else ""]
    what = " and ".join(part for part in parts if part) or "has them in another order"
    raise DataError(
        f"{other.name} must have the columns of {first.name} but {what}",
        "give both files the same columns in the same order",
    )


def _class_of(table: Table, name: str) -> str:
    """Return ``numeric``, ``boolean``, ``date`` or ``text``, or nothing for an empty column."""
    declared = table.types.get(name)
    if declared is not None:
        return {"integer": "numeric", "categorical": "text"}.get(declared, declared)
    values = table.frame[name]
    if not values.notna().any():
        return ""
    if pd.api.types.is_bool_dtype(values):
        return "boolean"
    if pd.api.types.is_numeric_dtype(values):
        return "numeric"
    if pd.api.types.is_datetime64_any_dtype(values):
        return "date"
    if holds_numbers(values):
        return "numeric"
    present = values.dropna()
    if all(isinstance(value, bool | np.bool_) for value in present):
        return "boolean"
    return "text"


def _stacked(parts: Sequence[pd.Series], final: str) -> pd.Series:
    """Put one column of all tables under each other, in one form, and lose nothing by that."""
    common = [_common(values, final) for values in parts]
    differ = final == "numeric" and len({str(values.dtype) for values in common}) > 1
    if differ and any(map(_may_be_inexact, common)):
        exact = [values.astype(object) for values in common]
        return narrow_to_float64(pd.concat(exact, ignore_index=True))
    return pd.concat(common, ignore_index=True)


def _may_be_inexact(values: pd.Series) -> bool:
    """Whether a column of numbers may change when another type than its own is taken for it."""
    if pd.api.types.is_integer_dtype(values):
        return bool((values.max() > MAX_EXACT_INTEGER) or (values.min() < -MAX_EXACT_INTEGER))
    return pd.api.types.is_object_dtype(values)


def _common(values: pd.Series, final: str) -> pd.Series:
    """Bring a column to the form that all tables share, so that concatenation does not guess."""
    if final == "numeric":
        is_number = pd.api.types.is_numeric_dtype(values) or holds_numbers(values)
        return values if is_number else values.astype("float64")
    if pd.api.types.is_datetime64_any_dtype(values):
        return values
    if final == "date" and not values.notna().any():
        return pd.to_datetime(values)
    return values.astype(object)
