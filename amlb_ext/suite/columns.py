"""One column's way to the file and back: its form, its written values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.tables import MAX_ABS
from amlb_ext.core.task import Column
from amlb_ext.suite.texts import safe_values

Form = Literal["float", "integer", "boolean", "text"]
NUMBERS = ("float", "integer")


def form_of(column: Column) -> Form:
    """Return how a column is written.

    Examples
    --------
    >>> form_of(Column("n", "integer")), form_of(Column("n", "integer", has_missing=True))
    ('integer', 'float')
    >>> form_of(Column("b", "boolean", ("False", "True"))), form_of(Column("b", "boolean", ("f",)))
    ('boolean', 'text')
    """
    if column.type == "integer" and not column.has_missing:
        return "integer"
    if column.is_numeric:
        return "float"
    truth = column.type == "boolean" and set(column.categories) <= {"False", "True"}
    return "boolean" if truth and not column.has_missing and column.categories else "text"


@dataclass(frozen=True)
class ColumnCoding:
    """One feature's way to the file.

    Attributes
    ----------
    name, written : str
        The column's name in the source and in the file.
    form : str
        ``float``, ``integer``, ``boolean`` or ``text``.
    categories, values : tuple of str
        Categories in the source's order, and what is written for each.
    """

    name: str
    written: str
    form: Form
    categories: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


def written_values(column: Column) -> tuple[str, ...]:
    """Return what is written for each category of a column."""
    return safe_values(column.categories) if form_of(column) == "text" else column.categories


def encode_column(column: ColumnCoding, values: pd.Series) -> pd.Series:
    """Return a canonical column as it is written; ``SuiteError`` where its form cannot hold it."""
    if column.form == "float":
        return as_floats(column.name, values)
    if column.form == "text":
        return recode(column.name, values, column.categories, column.values)
    if values.isna().any():
        raise SuiteError(
            f"column {column.name!r} is missing in row {first(values.isna())}, "
            f"but no row of the source's table lacks it",
            "fill such values before writing",
        )
    if column.form == "boolean":
        return values.astype(object) == "True"
    floats = as_floats(column.name, values)
    fraction = floats != np.floor(floats)
    if fraction.any():
        raise SuiteError(
            f"column {column.name!r} holds whole numbers, {floats[fraction].iloc[0]} came",
            "round its values before writing",
        )
    return floats.astype("int64")


def decode_column(column: ColumnCoding, values: pd.Series) -> pd.Series:
    """Return a written column in canonical form."""
    if column.form in NUMBERS:
        return values.astype("float64").rename(column.name)
    if column.form == "boolean":
        values = values.astype(str)
    return recode(column.name, values, column.values, column.categories).rename(column.name)


def as_floats(name: str, values: pd.Series) -> pd.Series:
    """Return numbers as ``float64``; ``SuiteError`` where one is too large for AMLB."""
    floats = values.astype("float64")
    bad = floats.abs() > MAX_ABS
    if bad.any():
        raise SuiteError(
            f"column {name!r} holds {floats[bad].iloc[0]}, AMLB needs numbers up to {MAX_ABS:.2g}",
            "leave such values missing",
        )
    return floats


def recode(name: str, values: pd.Series, known: tuple[str, ...], new: tuple[str, ...]) -> pd.Series:
    """Map categories position by position; missing stays missing, unknown is a ``SuiteError``."""
    if len(set(known)) != len(known):
        raise SuiteError(f"column {name!r} has doubled categories", "generate the suite again")
    if isinstance(values.dtype, pd.CategoricalDtype):
        texts = [str(category) for category in values.cat.categories]
        lookup = pd.Index(known, dtype=object).get_indexer(pd.Index(texts, dtype=object))
        own = values.cat.codes.to_numpy()
        codes = np.where(own >= 0, np.append(lookup, -1)[own], -1)
    else:
        codes = pd.Index(known, dtype=object).get_indexer(pd.Index(values.astype(object)))
    unknown = (codes < 0) & values.notna().to_numpy()
    if unknown.any():
        came = values.iloc[int(np.flatnonzero(unknown)[0])]
        raise SuiteError(
            f"column {name!r} holds {came!r}, which is none of its {len(known)} values",
            "use the values of the task's own table",
        )
    dtype = pd.CategoricalDtype(list(new))
    recoded = pd.Categorical.from_codes(np.asarray(codes, dtype=np.int64), dtype=dtype)
    return pd.Series(recoded, index=values.index, name=name)


def first(mask: pd.Series) -> int:
    """Return the position of the first true value."""
    return int(np.flatnonzero(mask.to_numpy())[0])
