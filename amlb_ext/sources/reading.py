"""How a table was read, for people: its target, and the role of each column with a warning.

A warning says what the column looks like and what to type if that is what it is. Nothing here
changes a task: whoever is warned decides.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
import pandas as pd

from amlb_ext.core.dates import look_like_dates
from amlb_ext.core.display import format_count, shorten_text, text_table
from amlb_ext.core.errors import DataError
from amlb_ext.core.numbers import (
    MAX_EXACT_INTEGER,
    AmbiguousNumberError,
    read_written_numbers,
)
from amlb_ext.core.tables import label_notes
from amlb_ext.core.task import Column, TargetChoice, Task

#: A larger table is shown by its columns with a warning, and a few of the others.
MAX_COLUMNS_SHOWN = 30
#: How many columns without a warning are shown of such a table.
FEW_COLUMNS = 5
#: Where there are more tables, columns without a warning are not shown.
MAX_TABLES_SHOWN = 6
#: With fewer values than this one value per row says nothing.
MIN_ID_ROWS = 20
#: Where at least this share of a column's values are numbers, all were probably meant as such.
MOSTLY_NUMBERS = 0.8
#: With fewer distinct numbers than this they may well be categories: "1", "2", "3+".
MIN_NUMBERS = 10
#: Where so many texts have no digit, the others are not looked at.
FEW_TEXTS = 200
#: Fewer rows per class than this on average are too few to learn the classes from.
MIN_ROWS_PER_CLASS = 5
#: Columns of the table of roles.
HEADERS = ("column", "read as", "levels", "missing", "example", "warning")
_EXAMPLE_WIDTH = 20
_WARNING_WIDTH = 160


@dataclass(frozen=True, kw_only=True)
class ColumnReading:
    """How one column was read, in the order of :data:`HEADERS`.

    Attributes
    ----------
    name : str
    read_as : str
        ``number``, ``category``, ``date`` (a number made of one) or ``ignored``.
    levels : int
        Distinct values, missing ones not counted.
    missing : int
    example : str
        The first value; of a column that is ignored, none.
    warning : str
        What it may be in truth, and what to type then.
    """

    name: str
    read_as: str
    levels: int
    missing: int
    example: str
    warning: str = ""


@dataclass(frozen=True, kw_only=True)
class TableReading:
    """How one table was read.

    Attributes
    ----------
    name : str
        Of the task, or of the group of tasks that share the table.
    rows : int
    targets : tuple of str
    kind : str
    classes : int
        0 for a regression.
    target_choice : str
        See :class:`amlb_ext.core.task.Reading`.
    target_warning : str
    columns : tuple of ColumnReading
    """

    name: str
    rows: int
    targets: tuple[str, ...]
    kind: str
    classes: int
    target_choice: TargetChoice
    target_warning: str
    columns: tuple[ColumnReading, ...]


def as_flag(name: str, role: str) -> str:
    """Return the flag that reads a column in a role."""
    return "--as " + shlex.quote(f"{name}={role}")


def describe_reading(
    task: Task,
    *,
    kept: Collection[str] | None = None,
    dropped: Collection[str] = (),
    targets: Sequence[str] = (),
) -> TableReading:
    """Describe how the table of a task was read.

    Parameters
    ----------
    task : Task
        With all columns that its table has.
    kept : collection of str, optional
        Columns that models are given; all by default. Others are ignored.
    dropped : collection of str
        Those of the others that the user left out.
    targets : sequence of str
        Targets of a table with several; the task's own by default.

    Examples
    --------
    >>> from amlb_ext.core.tables import make_task
    >>> table = pd.DataFrame({"price": ["1,5", "2,25"] * 15, "y": [0, 1, 1] * 10})
    >>> reading = describe_reading(make_task(table, "y", name="t"))
    >>> reading.columns[0].read_as, reading.columns[0].warning
    ('category', 'numbers with a decimal comma? --as price=number --decimal ,')
    """
    columns = [
        _describe_column(
            task,
            column,
            is_kept=kept is None or column.name in kept,
            is_dropped=column.name in dropped,
        )
        for column in task.columns
    ]
    return TableReading(
        name=task.group or task.name,
        rows=len(task),
        targets=tuple(targets) or (task.target_name,),
        kind=task.kind.value,
        classes=len(task.labels),
        target_choice=task.reading.target_choice,
        target_warning=_target_warning(task),
        columns=tuple(columns),
    )


def _describe_column(
    task: Task, column: Column, *, is_kept: bool, is_dropped: bool
) -> ColumnReading:
    values = task.features[column.name]
    present = values.dropna()
    levels = int(present.nunique())
    read_as = "number" if column.is_numeric else "category"
    if column.name in task.reading.dates:
        read_as = "date"
    is_named = column.name in task.reading.named or read_as == "date"
    warning = ""
    if is_dropped:
        warning = "left out, as you said"
    elif not is_kept:
        looks = "" if is_named else describe_texts(column, present)
        keep = f"an id? --keep {shlex.quote(column.name)} brings it back"
        warning = f"left out; {looks or keep}"
    elif tells_target(task, column.name):
        warning = (
            "tells the target of every row; if it is not known before the target is: --drop "
            + shlex.quote(column.name)
        )
    elif not is_named:
        warning = _column_warning(column, present, levels, n_rows=len(values))
    # what was left out may be private, and this table is written into the suite
    example = ""
    if is_kept and len(present):
        value = present.iloc[0]
        # whole numbers are kept as floats
        text = str(int(value)) if column.type == "integer" else str(value)
        if column.type == "numeric":
            text = f"{value:g}"
        example = shorten_text(text, _EXAMPLE_WIDTH)
    return ColumnReading(
        name=column.name,
        read_as=read_as if is_kept else "ignored",
        levels=levels,
        missing=int(len(values) - len(present)),
        example=example,
        warning=warning,
    )


# Warnings: the first that applies.


def _column_warning(
    column: Column, present: pd.Series, levels: int, *, n_rows: int
) -> str:
    drop = f"--drop {shlex.quote(column.name)}"
    if levels == 0:
        return f"no value at all: {drop}"
    if levels == 1:
        if column.is_numeric and abs(present.iloc[0]) >= MAX_EXACT_INTEGER:
            return (
                "one number beyond 2**53: digits were lost where the file was written; write them "
                f"as texts, or {drop}"
            )
        return f"constant: {drop}"
    if not column.is_numeric:
        looks = describe_texts(column, present)
        if looks:
            return looks
    values = {"categorical": "value", "text": "value", "integer": "whole number"}
    is_one_per_row = levels == n_rows and n_rows >= MIN_ID_ROWS
    if is_one_per_row and column.type in values:
        return f"one {values[column.type]} per row, an id? {drop}"
    return ""


def tells_target(task: Task, name: str) -> bool:
    """Whether a column is the target, a code of it, or a line through it.

    Parameters
    ----------
    task : Task
    name : str
        Of a feature.

    Examples
    --------
    >>> from amlb_ext.core.tables import make_task
    >>> table = pd.DataFrame({"paid": [0, 1], "x": [1, 1], "y": ["a", "b"]})
    >>> table = pd.concat([table] * 10)
    >>> task = make_task(table, "y", name="t")
    >>> tells_target(task, "paid"), tells_target(task, "x")
    (True, False)
    """
    values = task.features[name]
    if values.isna().any():
        return False
    if task.kind.is_classification:
        codes, distinct = pd.factorize(values)
        n_classes = task.target.nunique()
        if len(distinct) != n_classes:
            return False
        pairs = codes * (len(task.labels) + 1) + task.target.cat.codes.to_numpy()
        return len(np.unique(pairs)) == n_classes
    if not pd.api.types.is_numeric_dtype(values):
        return False
    x, y = values.to_numpy(dtype=float), task.target.to_numpy(dtype=float)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return False
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    # either sign: a target may be turned around
    return bool(min(np.abs(x - y).max(), np.abs(x + y).max()) < 1e-6)


def describe_texts(column: Column, present: pd.Series) -> str:
    """Return what the texts of a column look like, and how to read them as that; else nothing.

    Parameters
    ----------
    column : Column
    present : Series
        Its values in canonical form, without missing ones.
    """
    if column.type == "boolean":
        return ""
    is_date = column.type == "date"
    if not is_date:
        counts = present.value_counts()
        counts = counts[counts > 0]
        rows_of_text = {str(text): int(n_rows) for text, n_rows in counts.items()}
        looks = _describe_numbers(rows_of_text, as_flag(column.name, "number"))
        if looks:
            return looks
        is_date = look_like_dates(pd.Series(list(rows_of_text), dtype=object))
    return f"dates, each a category: {as_flag(column.name, 'date')}" if is_date else ""


def _describe_numbers(rows_of_text: Mapping[str, int], as_number: str) -> str:
    """Return what to type for texts that are numbers, or most of them; else nothing."""
    texts = list(rows_of_text)
    # most columns of texts are no numbers, which the first ones show
    if not any(any(map(str.isdigit, text)) for text in texts[:FEW_TEXTS]):
        return ""
    is_ambiguous = False
    try:
        written = read_written_numbers(texts)
    except AmbiguousNumberError:
        is_ambiguous = True
        written = read_written_numbers(texts, ".")
    except DataError:
        return ""
    others = [text for text in texts if written.numbers[text] is None]
    n_rows = sum(rows_of_text.values())
    n_others = sum(rows_of_text[text] for text in others)
    is_enough = len(texts) - len(others) >= MIN_NUMBERS
    if n_rows - n_others < MOSTLY_NUMBERS * n_rows:
        return ""
    example = shorten_text(written.example, _EXAMPLE_WIDTH)
    if is_ambiguous:
        return (
            f"numbers such as {example!r}, with thousands or a decimal comma? {as_number} and "
            "--decimal . or --decimal ,"
        )
    if not written.unit and written.decimal == ",":
        as_number += " --decimal ,"
    if others and is_enough:
        other = shorten_text(others[0], _EXAMPLE_WIDTH)
        return (
            f"numbers, but for {format_count(n_others, 'value')} such as {other!r}? {as_number} "
            "makes the latter missing"
        )
    if others:
        return ""
    if not written.example:
        # codes have leading zeros, and few values
        is_code = any(re.match(r"0\d", text) for text in texts)
        is_number = is_enough and not is_code
        return f"numbers, each a category: {as_number}" if is_number else ""
    if not written.unit and written.decimal == ",":
        return f"numbers with a decimal comma? {as_number}"
    if not is_enough:
        return ""
    what = "times of day" if written.is_time else "numbers"
    return f"{what} such as {example!r}? {as_number}"


def _target_warning(task: Task) -> str:
    """Return why the target may be the wrong column, or read the wrong way."""
    other = "name another column with --target"
    if not task.kind.is_classification:
        span = np.ptp(task.target.to_numpy())
        is_counter = task.target.is_unique and span == len(task) - 1
        return f"it only counts the rows; {other}" if is_counter else ""
    looks = describe_target_texts(task)
    if looks:
        return f"{looks}; or {other}"
    notes = label_notes(task.labels)
    if notes:
        return f"it {notes[0]}"
    per_class = len(task) / len(task.labels)
    if per_class >= MIN_ROWS_PER_CLASS:
        return ""
    n_alone = int((task.target.value_counts() == 1).sum())
    return (
        f"{len(task.labels)} classes in {len(task)} rows, {per_class:.1f} rows per class, "
        f"{n_alone} classes of a single row: too few to learn from; {other}"
    )


def describe_target_texts(task: Task) -> str:
    """Return what the classes of a target look like, if not like classes; else nothing."""
    if not task.kind.is_classification or task.target_name in task.reading.named:
        return ""
    target = Column(task.target_name, "categorical", task.labels)
    return describe_texts(target, task.target)


# As text and as a file.


def reading_text(readings: Sequence[TableReading], full_table: str = "") -> str:
    """Return how tables were read, each with its target and its table of roles.

    Parameters
    ----------
    readings : sequence of TableReading
    full_table : str
        Where all columns are listed; named where some are not shown.
    """
    is_short = len(readings) > MAX_TABLES_SHOWN
    lines: list[str] = []
    for reading in readings:
        lines.append(_target_line(reading))
        if reading.target_warning:
            warning = shorten_text(reading.target_warning, _WARNING_WIDTH)
            lines.append(f"  warning: the target: {warning}")
        shown = _shown_columns(reading.columns, only_warnings=is_short)
        rows = []
        for column in shown:
            # a foreign name or value may hold line ends, or act on the terminal
            name, *counts, warning = astuple(column)
            short_warning = shorten_text(warning, _WARNING_WIDTH)
            rows.append([shorten_text(name), *counts, short_warning])
        if rows:
            lines.append(text_table(HEADERS, rows, indent=2))
        hidden = [column for column in reading.columns if column not in shown]
        if hidden:
            n_warned = sum(bool(column.warning) for column in hidden)
            where = f"; all are in {full_table}" if full_table else ""
            lines.append(
                f"  ... and {format_count(len(hidden), 'more column')}, {n_warned} of them with a "
                f"warning{where}"
            )
    return "\n".join(lines)


def _target_line(reading: TableReading) -> str:
    listed = ", ".join(repr(target) for target in reading.targets)
    plural = "" if len(reading.targets) == 1 else "s"
    what = reading.kind
    if reading.classes:
        what += f", {reading.classes} classes"
    chosen = {"last column": "the last column", "by name": "chosen by its name"}
    how = ""
    if reading.target_choice in chosen:
        how = f": {chosen[reading.target_choice]}, since --target names none"
    return (
        f"{shorten_text(reading.name)}: {reading.rows} rows, {len(reading.columns)} columns; "
        f"target{plural} {listed} ({what}){how}"
    )


def _shown_columns(
    columns: Sequence[ColumnReading], *, only_warnings: bool
) -> list[ColumnReading]:
    """Return the columns to print, in the table's order."""
    if len(columns) <= MAX_COLUMNS_SHOWN and not only_warnings:
        return list(columns)
    warned = [column for column in columns if column.warning]
    shown = warned[: MAX_COLUMNS_SHOWN - FEW_COLUMNS]
    if not only_warnings:
        plain = [column for column in columns if not column.warning]
        shown += plain[:FEW_COLUMNS]
    return [column for column in columns if column in shown]


def reading_csv(readings: Iterable[TableReading]) -> str:
    """Return all columns of all tables as CSV, targets included.

    Examples
    --------
    >>> column = ColumnReading(name="x", read_as="number", levels=9, missing=0, example="1")
    >>> reading = TableReading(
    ...     name="t", rows=9, targets=("y",), kind="regression", classes=0,
    ...     target_choice="given", target_warning="", columns=(column,),
    ... )
    >>> print(reading_csv([reading]), end="")
    table,column,read as,levels,missing,example,warning
    t,y,target,,,,
    t,x,number,9,0,1,
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["table", *HEADERS])
    for reading in readings:
        for target in reading.targets:
            cells = ["target", reading.classes or "", "", "", reading.target_warning]
            writer.writerow([reading.name, target, *cells])
        for column in reading.columns:
            writer.writerow([reading.name, *astuple(column)])
    return text.getvalue()
