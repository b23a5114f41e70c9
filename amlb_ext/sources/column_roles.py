"""Columns that are read as the user says: as numbers, categories, dates, or not at all.

Only columns that ``--as`` names are touched. A text that is no number, or no date, counts as
missing, and a note says how many there are; where most are, the table is refused.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.dates import read_dates, split_dates, without_offsets
from amlb_ext.core.display import format_count
from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.core.numbers import (
    convert_to_float64,
    is_numeric,
    read_written_numbers,
    replace_as_objects,
)
from amlb_ext.core.task import ColumnType
from amlb_ext.sources.read_table import CsvFormat
from amlb_ext.sources.reading import as_flag
from amlb_ext.sources.table import Table

#: A column of which a larger share cannot be read is not what the user says it is.
MOST_UNREAD = 0.5


def csv_format(options: SourceConfig) -> CsvFormat:
    """Return how a CSV file is read: columns of ``--as`` stay as they are written.

    Raises
    ------
    ConfigError
        A separator that is no single character.

    Examples
    --------
    >>> how = csv_format(SourceConfig(sep="tab", read_as={"zip": "category"}))
    >>> how.separator, how.texts
    ('\\t', frozenset({'zip'}))
    """
    separator = options.sep
    if separator in ("tab", "\\t"):
        separator = "\t"
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise ConfigError(
            f"--sep {options.sep!r} is not one character",
            "write the character between two fields, e.g. --sep ';' or --sep tab",
        )
    decimal = options.decimal or "."
    if decimal == separator:
        raise ConfigError(
            f"--sep and --decimal are both {decimal!r}",
            "leave out the one that the file does not have",
        )
    texts = [name for name, role in options.read_as.items() if role != "ignore"]
    return CsvFormat(
        separator=separator,
        decimal=decimal,
        texts=frozenset(texts),
        max_file_size=options.max_file_size,
    )


def apply_roles(table: Table, options: SourceConfig, targets: list[str]) -> Table:
    """Return a table whose columns are read as ``options.read_as`` says.

    Parameters
    ----------
    table : Table
        As its file was read, see :func:`csv_format`.
    options : SourceConfig
    targets : list of str
        Columns that are predicted: numbers or categories.

    Returns
    -------
    Table
        In place of a date stand the columns of :data:`~amlb_ext.core.dates.DATE_PARTS`, called
        ``NAME_year``, .... Columns to ignore are still there.

    Raises
    ------
    ConfigError
        A target that is to be a date, or to be ignored.
    DataError
        A column that is mostly something else, or numbers that ``float64`` makes equal.

    Examples
    --------
    >>> frame = pd.DataFrame({"price": ["1,5", "2"], "day": ["2024-02-01", "2024-02-02"]})
    >>> options = SourceConfig(read_as={"price": "number", "day": "date"}, decimal=",")
    >>> table = apply_roles(Table("a.csv", frame), options, [])
    >>> table.frame["price"].tolist(), table.frame["day_day"].tolist()
    ([1.5, 2.0], [1.0, 2.0])
    """
    roles = {name: options.read_as.get(name) for name in table.frame}
    for name in targets:
        if roles.get(name) in ("date", "ignore"):
            raise ConfigError(
                f"--as {name}={roles[name]} names the target",
                "a target is a number or a category; name another one with --target",
            )
    named = frozenset(name for name, role in roles.items() if role is not None)
    if not named:
        return table
    types: dict[str, ColumnType] = dict(table.types)
    categories = dict(table.categories)
    columns: dict[str, pd.Series] = {}
    dates = {}
    notes = []
    for name, values in table.frame.items():
        if roles[name] in ("number", "date"):
            # what the file declares of the column no longer holds
            types.pop(name, None)
            categories.pop(name, None)
        if roles[name] == "number":
            columns[name], column_notes = _read_numbers(values, table.name, options)
            notes += column_notes
        elif roles[name] == "date":
            parts, column_notes = _read_date_parts(values, table.name)
            notes += column_notes
            for part, part_values in parts.items():
                part_name = f"{name}_{part}"
                if part_name in table.frame.columns:
                    raise DataError(
                        f"{table.name}: --as {name}=date makes a column {part_name!r}, which the "
                        "table has",
                        "rename one of them",
                    )
                columns[part_name] = part_values.rename(part_name)
                dates[part_name] = str(name)
        else:
            columns[name] = values
            if roles[name] == "category":
                types[name] = "categorical"
    return replace(
        table,
        frame=pd.DataFrame(columns, index=table.frame.index),
        types=types,
        categories=categories,
        notes=(*table.notes, *notes),
        named=named,
        dates=dates,
    )


def _read_numbers(
    values: pd.Series, file: str, options: SourceConfig
) -> tuple[pd.Series, list[str]]:
    """Return a column as numbers, and a note on what is none."""
    name = str(values.name)
    if pd.api.types.is_bool_dtype(values):
        return values.astype("float64"), []
    if pd.api.types.is_datetime64_any_dtype(values):
        raise DataError(
            f"{file}: column {name!r} holds dates, not numbers",
            f"read it as {as_flag(name, 'date')}",
        )
    numbers = values
    notes = []
    if not is_numeric(values):
        texts = values.dropna().astype(str)
        written = read_written_numbers(
            texts.unique(), options.decimal, what=f"{file}: column {name!r}"
        )
        exact = [written.numbers[text] for text in texts]
        is_unread = np.array([number is None for number in exact], dtype=bool)
        notes = _check_unread(texts[is_unread], texts, file, "number")
        if written.note:
            notes.append(f"column {name!r}: {written.note}")
        numbers = replace_as_objects(values, values.notna(), exact)
    floats = convert_to_float64(numbers)
    if floats.lost and floats.is_whole:
        raise DataError(
            f"{file}: the {floats.before} distinct numbers of column {name!r} are "
            f"{floats.after} as 64-bit floats, which models compute with",
            f"keep all digits with {as_flag(name, 'category')}, or subtract a constant from the "
            "column",
        )
    return floats.values, notes


def _read_date_parts(values: pd.Series, file: str) -> tuple[pd.DataFrame, list[str]]:
    """Return the parts of a column of dates, and a note on what is no date."""
    name = str(values.name)
    if pd.api.types.is_datetime64_any_dtype(values):
        has_zone = values.dt.tz is not None
        return split_dates(values if has_zone else values.dt.tz_localize("UTC")), []
    present = values.dropna()
    if pd.api.types.is_float_dtype(present):
        # whole numbers with gaps, such as 20240131.0
        present = present.map(lambda value: f"{value:.0f}")
    texts = present.astype(str)
    what = f"{file}: column {name!r}"
    times = read_dates(texts, what)
    on_the_wall = without_offsets(texts)
    clock = times if on_the_wall.equals(texts) else read_dates(on_the_wall, what)
    notes = _check_unread(texts[times.isna()], texts, file, "date")
    return split_dates(times, clock).reindex(values.index), notes


def _check_unread(
    unread: pd.Series, present: pd.Series, file: str, role: str
) -> list[str]:
    """Return a note on texts that are not what they should be; refuse a column of them."""
    if unread.empty:
        return []
    name, example, count = str(present.name), unread.iloc[0], len(unread)
    if len(unread) > MOST_UNREAD * len(present):
        raise DataError(
            f"{file}: --as {name}={role}, but {count} of its {len(present)} values are no "
            f"{role}s, {example!r} the first",
            f"read it as {as_flag(name, 'category')}",
        )
    verb = f"is no {role} and counts" if count == 1 else f"are no {role}s and count"
    values = format_count(count, "value")
    return [f"column {name!r}: {values} {verb} as missing, e.g. {example!r}"]
