"""A table as it is read, before it becomes a task, and ways to join several tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError, SourceError
from amlb_ext.core.numbers import MAX_EXACT_INTEGER, is_numeric, narrow_to_float64
from amlb_ext.core.task import ColumnType, Fold

#: What the values of a declared type are, where it is not the type itself.
_CLASS_OF_TYPE = {"integer": "numeric", "categorical": "text"}


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
    named, dates : frozenset of str, dict of str to str
        As in :class:`amlb_ext.core.task.Reading`.
    folds : tuple of Fold
        Positions of the rows to train and to test on; empty where its files say nothing of them.
    index : Index or None
        Labels of the rows without a name, which a file of Parquet or Arrow keeps; None where a file
        keeps none.
    """

    name: str
    frame: pd.DataFrame
    types: dict[str, ColumnType] = field(default_factory=dict)
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()
    dates: dict[str, str] = field(default_factory=dict)
    folds: tuple[Fold, ...] = ()
    index: pd.Index | None = None


def stack_tables(tables: Sequence[Table]) -> Table:
    """Concatenate tables; their columns must agree in name, order and type.

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
    names = list(first.frame.columns)
    types = dict(first.types)
    categories = dict(first.categories)
    classes = {name: _classify_values(first, name) for name in names}
    for other in tables[1:]:
        _check_names(first, other)
        for name in names:
            value_class = classes[name]
            other_class = _classify_values(other, name)
            # an empty column agrees with any
            if value_class and other_class and value_class != other_class:
                raise DataError(
                    f"column {name!r} is {value_class} in {first.name} and {other_class} in "
                    f"{other.name}",
                    "write it in the same form in both files",
                )
            classes[name] = value_class or other_class
            if name in other.types:
                types.setdefault(name, other.types[name])
            if name in other.categories:
                united = (*categories.get(name, ()), *other.categories[name])
                categories[name] = tuple(dict.fromkeys(united))
    columns = {
        name: _stack_column([table.frame[name] for table in tables], value_class)
        for name, value_class in classes.items()
    }
    # All folds of a task tend to have the same notes, and one of each is enough.
    notes = dict.fromkeys(chain.from_iterable(table.notes for table in tables))
    return Table(first.name, pd.DataFrame(columns), types, categories, tuple(notes))


def read_fold(train: Sequence[int], test: Sequence[int]) -> Fold:
    """Return a fold from positions of rows.

    Raises
    ------
    TypeError, ValueError
        Something else than positions was given.
    """
    return Fold(np.asarray(train, dtype=np.int64), np.asarray(test, dtype=np.int64))


def check_folds(folds: Sequence[Fold], n_rows: int, spec: str, *, remedy: str) -> None:
    """Raise where a fold names a row that is not there, or twice.

    Raises
    ------
    SourceError
    """
    for number, fold in enumerate(folds):
        # A row on both sides would let models see what they are tested on.
        rows = np.concatenate([fold.train, fold.test])
        is_inside = len(rows) > 0 and rows.min() >= 0 and rows.max() < n_rows
        if not is_inside or len(set(rows)) < len(rows):
            raise SourceError(
                f"{spec}: fold {number} names rows twice or beyond the {n_rows} rows of the data",
                remedy,
            )


def join_folds(pairs: Sequence[tuple[Table, Table]]) -> Table:
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
    Table
        With one fold per pair.

    Raises
    ------
    DataError
        As :func:`stack_tables`.

    Examples
    --------
    >>> a, b = (Table(f"{x}.csv", pd.DataFrame({"x": [x, x + "!"]})) for x in "ab")
    >>> table = join_folds([(a, b), (b, a)])
    >>> len(table.frame), table.folds[1].train.tolist(), table.folds[1].test.tolist()
    (4, [2, 3], [0, 1])
    """
    tables = list(chain.from_iterable(pairs))
    sizes = [len(table.frame) for table in tables]
    table = stack_tables(tables)
    positions = np.arange(len(table.frame), dtype=np.int64)
    # A single fold has no rows in common with another.
    if len(pairs) > 1:
        fold_of_row = np.repeat(np.arange(len(tables)) // 2, sizes)
        table, positions = _merge_repeated_rows(table, fold_of_row)
    parts = np.split(positions, np.cumsum(sizes)[:-1])
    folds = map(Fold, parts[::2], parts[1::2])
    return replace(table, folds=tuple(folds))


def _merge_repeated_rows(
    table: Table, fold_of_row: np.ndarray
) -> tuple[Table, np.ndarray]:
    """Keep one of the rows that several folds share; return where each row went."""
    hashes = pd.util.hash_pandas_object(table.frame, index=False).to_numpy()
    keys = pd.DataFrame({"row": hashes, "fold": fold_of_row})
    # The second of two equal rows of a fold is another row than the first.
    keys["nth"] = keys.groupby(["row", "fold"]).cumcount()
    # Groups are numbered in order of appearance, so that merged rows keep the order of the files.
    groups = keys.groupby(["row", "nth"], sort=False)
    positions = groups.ngroup().to_numpy().astype(np.int64)
    _, first_of_each = np.unique(positions, return_index=True)
    merged = table.frame.iloc[first_of_each].reset_index(drop=True)
    # Hashes of 64 bits may collide; then nothing is merged.
    restored = merged.iloc[positions].reset_index(drop=True)
    if restored.equals(table.frame):
        return replace(table, frame=merged), positions
    return table, np.arange(len(table.frame), dtype=np.int64)


def _check_names(first: Table, other: Table) -> None:
    wanted = list(first.frame.columns)
    names = list(other.frame.columns)
    if names == wanted:
        return
    differing = {
        "lacks": [name for name in wanted if name not in names],
        "adds": [name for name in names if name not in wanted],
    }
    problems = [f"{verb} {found[:5]}" for verb, found in differing.items() if found]
    problem = " and ".join(problems) or "has them in another order"
    raise DataError(
        f"{other.name} must have the columns of {first.name}, but it {problem}",
        "give both files the same columns in the same order",
    )


def _classify_values(table: Table, name: str) -> str:
    """Return ``numeric``, ``boolean``, ``date`` or ``text``, or nothing for an empty column."""
    declared = table.types.get(name)
    if declared is not None:
        return _CLASS_OF_TYPE.get(declared, declared)
    values = table.frame[name]
    if not values.notna().any():
        return ""
    # Booleans with gaps have the dtype object.
    if all(isinstance(value, bool | np.bool_) for value in values.dropna()):
        return "boolean"
    if is_numeric(values):
        return "numeric"
    is_date = pd.api.types.is_datetime64_any_dtype(values)
    return "date" if is_date else "text"


def _stack_column(parts: Sequence[pd.Series], value_class: str) -> pd.Series:
    """Concatenate one column of all tables in one dtype that loses nothing."""
    parts = [_to_common_dtype(values, value_class) for values in parts]
    has_several_dtypes = len({str(values.dtype) for values in parts}) > 1
    is_converted = value_class == "numeric" and has_several_dtypes
    if is_converted and any(_may_be_inexact(values) for values in parts):
        # As Python's numbers, since pandas would make floats of integers and floats together.
        exact = [values.astype(object) for values in parts]
        return narrow_to_float64(pd.concat(exact, ignore_index=True))
    return pd.concat(parts, ignore_index=True)


def _may_be_inexact(values: pd.Series) -> bool:
    """Whether a column of numbers may change when it is converted to another dtype."""
    if pd.api.types.is_integer_dtype(values):
        is_above = values.max() > MAX_EXACT_INTEGER
        return bool(is_above or values.min() < -MAX_EXACT_INTEGER)
    return pd.api.types.is_object_dtype(values)


def _to_common_dtype(values: pd.Series, value_class: str) -> pd.Series:
    """Convert a column to a dtype that all tables share, so that pandas does not guess one."""
    if value_class == "numeric":
        # A column that is empty in one of the files may have any dtype there.
        return values if is_numeric(values) else values.astype("float64")
    if pd.api.types.is_datetime64_any_dtype(values):
        return values
    if value_class == "date" and not values.notna().any():
        return pd.to_datetime(values)
    return values.astype(object)
