"""The data model: a task is a table, a target, a kind and folds.

Canonical form of a table, the only one that later stages see:

* numeric and integer columns are ``float64`` with ``NaN`` for missing;
* every other column (categorical, boolean, text, date) is an unordered pandas ``category``
  whose categories are ``str``;
* a regression target is ``float64``, a class target a ``category`` of ``str``.

:class:`Column` keeps what the canonical form loses, so that values can be written back as the
source wrote them.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from amlb_ext.core.unit import Kind

if TYPE_CHECKING:
    from amlb_ext.core.row_order import RowOrder

ColumnType = Literal["numeric", "integer", "categorical", "boolean", "text", "date"]


@dataclass(frozen=True)
class Column:
    """One feature: its name, type and categories, and whether any value is missing.

    Attributes
    ----------
    name : str
        Name in the source.
    type : str
        ``numeric``, ``integer``, ``categorical``, ``boolean``, ``text`` or ``date``.
    categories : tuple of str
        All categories in the source's own order; empty for numeric and integer columns.
    has_missing : bool
        Whether any row of the table lacks this value.
    """

    name: str
    type: ColumnType
    categories: tuple[str, ...] = ()
    has_missing: bool = False

    @property
    def is_numeric(self) -> bool:
        """Whether the canonical column is ``float64``."""
        return self.type in ("numeric", "integer")


@dataclass(frozen=True)
class Fold:
    """Positions of the training and test rows in the task's table, each ``(n,)`` int64."""

    train: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class Origin:
    """Where a task comes from, for the manifest.

    Attributes
    ----------
    spec : str
        The source spec that names the task, e.g. ``openml/t/31``.
    ids : dict of str to str
        Identifiers at the source (OpenML task and data id, file paths by base name, sha256).
    licence, citation, url : str
        As the source states them; empty if it states none.
    """

    spec: str
    ids: dict[str, str] = field(default_factory=dict)
    licence: str = ""
    citation: str = ""
    url: str = ""


#: Who chose the target: the user or the source, its name (``target``, ``class``), or its place.
TargetChoice = Literal["given", "by name", "last column"]


@dataclass(frozen=True)
class Reading:
    """How a table was read, for people; no part of what a task is, nor of its hashes.

    Attributes
    ----------
    target_choice : str
        ``given``, ``by name`` or ``last column``.
    named : frozenset of str
        Columns of the table whose reading the user named.
    dates : dict of str to str
        By column made of a date: the column that held the date.
    """

    target_choice: TargetChoice = "given"
    named: frozenset[str] = frozenset()
    dates: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """A prediction task in canonical form; build one with :func:`amlb_ext.core.tables.make_task`.

    Attributes
    ----------
    name : str
        The task's name, as the source gives it.
    kind : Kind
    features : DataFrame of shape (n, d)
        In canonical form, index 0..n-1.
    target : Series of shape (n,)
        In canonical form.
    target_name : str
    columns : tuple of Column
        One per feature, in order.
    labels : tuple of str
        The class labels in the source's order; empty for regression.
    row_ids : ndarray of shape (n,), int64
        Position of each row in the source's table, before rows were dropped.
    source_index : Index of shape (N,)
        Labels of all rows of the source's table; 0..N-1 where it has none.
    folds : tuple of Fold
        Empty when the source has none.
    origin : Origin
    notes : tuple of str
        What was changed while reading, one sentence each, for the manifest.
    group : str
        Name that the tasks of one table with several targets share: they have the same features
        and folds, and are hardened together. Empty for a task on its own.
    reading : Reading
        How the table was read, to be shown.
    order : RowOrder or None
        Groups and times of the rows, which every split keeps to; see
        :mod:`amlb_ext.core.row_order`. None where rows are split at random.
    dtypes : mapping of str to dtype
        Types of the features in the table as it was read, for models that were fitted on such a
        table; no part of what a task is, nor of its hashes.
    """

    name: str
    kind: Kind
    features: pd.DataFrame
    target: pd.Series
    target_name: str
    columns: tuple[Column, ...]
    labels: tuple[str, ...]
    row_ids: np.ndarray
    folds: tuple[Fold, ...]
    origin: Origin
    notes: tuple[str, ...] = ()
    group: str = ""
    reading: Reading = field(default_factory=Reading)
    order: RowOrder | None = None
    source_index: pd.Index = field(default_factory=lambda: pd.RangeIndex(0))
    dtypes: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.features)

    @property
    def stream_name(self) -> str:
        """Name that keys the random streams: the group's, or that of a task on its own."""
        return self.group or self.name

    def with_folds(self, folds: tuple[Fold, ...]) -> Task:
        """Return the same task with these folds."""
        return dataclasses.replace(self, folds=folds)

    def renamed(self, name: str) -> Task:
        """Return the same task under another name."""
        return dataclasses.replace(self, name=name)

    @property
    def content_hash(self) -> str:
        """The sha256 of values, target, schema and folds (not of name or origin)."""
        return self._hashes[1]

    @property
    def table_hash(self) -> str:
        """The sha256 of values, target and schema."""
        return self._hashes[0]

    def rows_hash(self, fold: int) -> str:
        """Return the sha256 of the rows of one fold."""
        return hashlib.sha256(_fold_bytes(self.folds[fold])).hexdigest()

    @cached_property
    def _hashes(self) -> tuple[str, str]:
        """The table's hashes without and with the folds.

        Cached as texts, since a digest could not be sent to a worker process with the task.
        """
        digest = hashlib.sha256()
        schema = repr((self.kind.value, self.columns, self.labels))
        digest.update(schema.encode())
        for column in self.columns:
            values = self.features[column.name]
            digest.update(_column_bytes(values))
        digest.update(_column_bytes(self.target))
        table_hash = digest.hexdigest()
        for fold in self.folds:
            digest.update(_fold_bytes(fold))
        return table_hash, digest.hexdigest()


def _fold_bytes(fold: Fold) -> bytes:
    """Return the positions of a fold's rows as bytes, the same on every machine."""
    train = np.asarray(fold.train, dtype="<i8").tobytes()
    test = np.asarray(fold.test, dtype="<i8").tobytes()
    return train + b"|" + test + b"#"


def _column_bytes(values: pd.Series) -> bytes:
    """Return a canonical column as bytes: values, or codes (the schema holds the categories)."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return np.asarray(values.cat.codes, dtype="<i8").tobytes()
    return np.asarray(values, dtype="<f8").tobytes()
