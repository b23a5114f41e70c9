"""Columns that tell rows apart rather than describe them, and which columns a task keeps.

Where (almost) every row has a value of its own, as in a column of ids or names, hardly any test
row has a value that a model knows. Each such cell must be written as a value of the training rows,
so that the column is noise to every framework of AMLB, and the failures of a model that was
fitted on it are failures of the column. Such columns are therefore left out, unless the user keeps
them; whole numbers can be read for unseen rows, so a column of row numbers is named only.

Only the training rows are looked at, all folds together, so that every fold has the same columns.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import ConfigError, DataError, suggest_nearest
from amlb_ext.core.task import Task
from amlb_ext.hardening.split import PARTS
from amlb_ext.models.columns import are_same_column, columns_of_model
from amlb_ext.sources.reading import describe_texts

#: Largest share of out-of-fold training rows whose value the other parts may lack.
MOST_NEW = 0.05
#: A column with at least so many distinct values per value is said to have one per row.
ONE_PER_ROW = 0.95
#: The rows of a value that stands in more rows than this never all fall into one part (1e-13).
RARE = 20


@dataclass(frozen=True)
class IdentifierColumn:
    """A column whose values identify rows.

    Attributes
    ----------
    name : str
    share_new : float
        Expected share of training rows whose value stands in no other of the parts that models
        are cross-fitted on.
    per_value : float
        Distinct values per training row that has one.
    """

    name: str
    share_new: float
    per_value: float

    @property
    def reason(self) -> str:
        """Why the column is taken for an identifier, as the task's notes say it.

        Examples
        --------
        >>> IdentifierColumn("id", 1.0, 1.0).reason, IdentifierColumn("street", 0.23, 0.3).reason
        ('one value per row', '23 % of rows hold a value unknown to a model that was not fitted \
on them')
        """
        if self.per_value >= 1:
            return "one value per row"
        if self.per_value >= ONE_PER_ROW:
            return "almost one value per row"
        percent = f"{self.share_new:.0%}".replace("%", " %")
        return f"{percent} of rows hold a value unknown to a model that was not fitted on them"


@dataclass(frozen=True)
class RequiredColumns:
    """Columns that F, a model fitted elsewhere, was fitted on and so must be given.

    Attributes
    ----------
    file : str
        Name of the model's file; empty where F is no fitted model.
    names : frozenset of str, optional
        None where the model does not say.
    """

    file: str = ""
    names: frozenset[str] | None = frozenset()

    def needs(self, name: str) -> bool:
        """Whether F may have been fitted on the column."""
        return self.names is None or are_same_column(name, self.names)


def find_identifiers(task: Task) -> list[IdentifierColumn]:
    """Return the columns of a task that identify rows, in order.

    A categorical, text or date column does when more than :data:`MOST_NEW` of the training rows
    are expected to hold a value that no row outside their own part has, with the rows dealt into
    parts at random. A missing value is never a new one.

    Parameters
    ----------
    task : Task
        With folds.

    Examples
    --------
    >>> from amlb_ext.core.config import SplitConfig
    >>> from amlb_ext.core.tables import make_task
    >>> from amlb_ext.hardening.split import split_task
    >>> table = pd.DataFrame({"x": ["a", "b"] * 30, "y": [0, 1] * 30})
    >>> table["id"] = [f"row {k}" for k in range(60)]
    >>> task = split_task(make_task(table, "y", name="t"), SplitConfig(), seed=1)
    >>> [(column.name, column.share_new) for column in find_identifiers(task)]
    [('id', 1.0)]
    """
    identifiers = []
    for column in task.columns:
        if column.is_numeric or column.type == "boolean":
            continue
        codes = task.features[column.name].cat.codes.to_numpy()
        n_rows = n_known = n_distinct = 0
        n_new = 0.0
        for fold in task.folds:
            train_codes = codes[fold.train]
            # a missing value has the code -1 and is never a new one
            value_counts = np.bincount(train_codes[train_codes >= 0])
            value_counts = value_counts[value_counts > 0]
            chances = _chance_together(value_counts, len(train_codes))
            n_rows += len(train_codes)
            n_new += float((value_counts * chances).sum())
            n_known += int(value_counts.sum())
            n_distinct += len(value_counts)
        share_new = n_new / max(n_rows, 1)
        if share_new > MOST_NEW:
            per_value = n_distinct / max(n_known, 1)
            identifiers.append(IdentifierColumn(column.name, share_new, per_value))
    return identifiers


def _chance_together(counts: np.ndarray, rows: int) -> np.ndarray:
    """Return the chance that all rows of a value fall into one of the equal parts.

    Given one of its rows, the others must be among the ``rows / PARTS - 1`` places left in its
    part, out of ``rows - 1``.

    Examples
    --------
    >>> _chance_together(np.array([1, 2]), 101).round(3).tolist()
    [1.0, 0.192]
    """
    part_size = rows / PARTS
    chance = np.where(counts > min(part_size, RARE), 0.0, 1.0)
    # place the rows of a value one after the other: the next one finds as many places left in
    # the part, and in all, as rows were not placed before it; in a small table all are placed soon
    for n_placed in range(1, min(RARE, rows)):
        one_row_more = chance * (part_size - n_placed) / (rows - n_placed)
        chance = np.where(counts > n_placed, one_row_more, chance)
    return np.maximum(chance, 0.0)


def row_numbers(task: Task) -> list[str]:
    """Return numeric columns that only count the rows, in order or shuffled.

    Rows without a target are gone, so the numbers may have as many gaps as rows were dropped.
    """
    rows_of_table = int(task.row_ids.max(initial=-1)) + 1
    names = []
    for column in task.columns:
        if not column.is_numeric or column.has_missing:
            continue
        values = task.features[column.name].to_numpy()
        if values.max() - values.min() >= rows_of_table:
            continue
        are_whole = (values == np.rint(values)).all()
        if are_whole and len(np.unique(values)) == len(values):
            names.append(column.name)
    return names


def required_columns(file: str, model: Any) -> RequiredColumns:
    """Return the columns that F needs; none where it is no fitted model.

    Parameters
    ----------
    file : str
        Name of the model's file.
    model : object or None
        As :func:`amlb_ext.hardening.baseline.fitted.load_baseline_model` returns it.

    Examples
    --------
    >>> required_columns("", None).needs("id")
    False
    """
    if model is None:
        return RequiredColumns()
    # names are known only where a model was fitted on a frame
    names, _ = columns_of_model(model)
    return RequiredColumns(file, None if names is None else frozenset(names))


def columns_left_out(options: SourceConfig) -> list[str]:
    """Return the columns that the user leaves out, by ``drop`` or by ``read_as``."""
    ignored = [name for name, role in options.read_as.items() if role == "ignore"]
    return [*options.drop, *ignored]


def column_names(tasks: Sequence[Task]) -> set[str]:
    """Return the columns of all tasks, targets included."""
    targets = {task.target_name for task in tasks}
    return targets | {column.name for task in tasks for column in task.columns}


def split_column_lists(options: SourceConfig, known: Collection[str]) -> SourceConfig:
    """Return the options with ``a,b`` in ``keep`` and ``drop`` split where it is no column.

    Parameters
    ----------
    options : SourceConfig
    known : collection of str
        Columns of all tables, targets included.

    Examples
    --------
    >>> split_column_lists(SourceConfig(drop=["a,b"]), {"a", "b"}).drop
    ('a', 'b')
    >>> split_column_lists(SourceConfig(drop=["a,b"]), {"a,b", "a", "b"}).drop
    ('a,b',)
    """

    def split(names: Sequence[str]) -> tuple[str, ...]:
        columns = []
        for name in names:
            parts = [part.strip() for part in name.split(",")]
            is_list = name not in known and all(part in known for part in parts)
            columns += parts if is_list else [name]
        return tuple(columns)

    lists = {"keep": split(options.keep), "drop": split(options.drop)}
    return options.model_copy(update=lists)


def check_column_options(
    tasks: Sequence[Task], options: SourceConfig, all_read: bool = True
) -> None:
    """Raise for columns to keep or to leave out that contradict the tables.

    Parameters
    ----------
    tasks : sequence of Task
        All that were read; a column need be in one of them only.
    options : SourceConfig
    all_read : bool
        Whether these are all the tasks that were asked for: a table that could not be read may
        have had a column that no other has.

    Raises
    ------
    ConfigError
        A name that no table has, a target, a column both kept and left out, or every column of a
        table.
    """
    both = sorted(set(options.keep) & set(options.drop))
    if both:
        raise ConfigError(
            f"--keep and --drop both name {both[0]!r}",
            "name each column after one of the two",
        )
    known = {column.name for task in tasks for column in task.columns}
    is_read = {name for task in tasks for name in task.reading.named}
    unread = [name for name in options.read_as if name not in is_read]
    target_of = {task.target_name: task.name for task in reversed(tasks)}
    flags = {"as": unread, "keep": options.keep, "drop": options.drop}
    for flag, flagged in flags.items():
        for name in flagged:
            owner = target_of.get(name)
            if owner is not None and flag == "drop":
                raise ConfigError(
                    f"--drop names {name!r}, the target of {owner}",
                    "name a feature, or another target with --target",
                )
            # a table that could not be read may have the column
            if name in known or not (all_read or owner is not None):
                continue
            as_target = f", only as the target of {owner}" if owner is not None else ""
            raise ConfigError(
                f"--{flag} names {name!r}, but no table has such a column{as_target}",
                suggest_nearest(name, known),
            )
    for task in tasks:
        names = {column.name for column in task.columns}
        if names <= set(columns_left_out(options)):
            flag = "--drop" if names <= set(options.drop) else "--as ...=ignore"
            raise ConfigError(
                f"{flag} names every column of {task.name} but the target",
                "leave at least one feature",
            )


def select_columns(
    task: Task, options: SourceConfig, required: RequiredColumns
) -> Task:
    """Return a task without the columns that identify rows, and without those named.

    Parameters
    ----------
    task : Task
        With folds.
    options : SourceConfig
        ``keep``, ``drop`` and columns to ignore, see :func:`check_column_options`.
    required : RequiredColumns
        What F needs, see :func:`required_columns`.

    Returns
    -------
    Task
        With notes of what was left out, kept, or had better be left out.

    Raises
    ------
    ConfigError
        A column is to be left out that F was fitted on.
    DataError
        No column would be left.
    """
    names = [column.name for column in task.columns]
    asked = [name for name in names if name in columns_left_out(options)]
    for name in asked:
        if required.names is not None and name in required.names:
            flag = "--drop" if name in options.drop else "--as ...=ignore"
            raise ConfigError(
                f"{flag} names {name!r}, but F, the file {required.file}, was fitted on it",
                "keep the column, or fit F without it",
            )
    # what the user says comes first, then what F needs
    found = [column for column in find_identifiers(task) if column.name not in asked]
    kept = [column for column in found if column.name in options.keep]
    others = [column for column in found if column.name not in options.keep]
    needed = [column for column in others if required.needs(column.name)]
    left_out = [column for column in others if not required.needs(column.name)]
    dropped = {*asked, *(column.name for column in left_out)}
    if len(dropped) == len(names):
        raise DataError(
            f"{task.name}: every column looks like an identifier ({_listed(left_out)}), so no "
            "feature would be left",
            f"keep one: --keep {shlex.quote(left_out[0].name)}",
        )
    settled = {*dropped, *options.keep}
    counters = [name for name in row_numbers(task) if name not in settled]
    notes = _notes_left_out(left_out, task)
    if kept:
        notes.append(
            f"like identifiers, and kept because --keep says so: {_listed(kept)}"
        )
    if needed:
        why = "was fitted on it"
        if required.names is None:
            why = "does not say which columns it was fitted on"
        notes.append(
            f"like identifiers, and kept because F, the file {required.file}, {why}: "
            f"{_listed(needed)}"
        )
    if asked:
        notes.append(f"left out as you say: {', '.join(map(repr, asked))}")
    if counters:
        verb = "counts" if len(counters) == 1 else "count"
        notes.append(
            f"{', '.join(map(repr, counters))} only {verb} the rows; if that says nothing of the "
            f"target, leave it out: {_column_flags('--drop', counters)}"
        )
    reduced = drop_columns(task, dropped)
    return dataclasses.replace(reduced, notes=(*task.notes, *notes))


def drop_columns(task: Task, dropped: Collection[str]) -> Task:
    """Return a task without some of its columns; the others are not copied."""
    if not dropped:
        return task
    columns = tuple(column for column in task.columns if column.name not in dropped)
    kept = {column.name: task.features[column.name] for column in columns}
    # column by column, since picking columns of a wide DataFrame would copy them
    features = pd.DataFrame(kept, index=task.features.index, copy=False)
    return dataclasses.replace(task, columns=columns, features=features)


def _notes_left_out(columns: Sequence[IdentifierColumn], task: Task) -> list[str]:
    if not columns:
        return []
    names = {column.name for column in columns}
    notes = []
    for column in task.columns:
        if column.name not in names:
            continue
        looks = describe_texts(column, task.features[column.name].dropna())
        if looks:
            notes.append(f"column {column.name!r}, left out as it stands: {looks}")
    flags = _column_flags("--keep", [column.name for column in columns])
    n = len(columns)
    left_out, them = (
        f"{n} columns were left out because they look like identifiers",
        "them",
    )
    if n == 1:
        left_out, them = (
            "1 column was left out because it looks like an identifier",
            "it",
        )
    return [f"{left_out}: {_listed(columns)}; {flags} brings {them} back", *notes]


def _column_flags(flag: str, names: Sequence[str]) -> str:
    """Return the command-line arguments that name the first three columns."""
    arguments = [f"{flag} {shlex.quote(name)}" for name in names[:3]]
    return " ".join(arguments)


def _listed(columns: Sequence[IdentifierColumn]) -> str:
    described = [f"{column.name!r} ({column.reason})" for column in columns]
    return ", ".join(described)
