"""How a task's values are written for AMLB, and the way back.

The coding is fixed once per *task*, so that a column has one type in every fold, in train and
test, and in every part: an integer column is written as integers only where no row of the
task lacks it, numbers always with a point, booleans as ``True``/``False`` only where none is
missing, and every other column as texts that pandas cannot mistake for anything else
(:mod:`amlb_ext.amlb.safe_text`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from amlb_ext.amlb.safe_text import safe_columns, safe_labels, safe_values
from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import write_file
from amlb_ext.core.tables import MAX_ABS
from amlb_ext.core.task import Column, Kind, Task


@dataclass(frozen=True)
class Coding:
    """A task's way to the file and back; make one with :meth:`of`.

    Attributes
    ----------
    columns : tuple of ColumnCoding
        One per feature, in order; the target is the last column of the file.
    target, written_target : str
        The target's name in the source and in the file.
    kind : Kind
    labels, written_labels : tuple of str
        Class labels in the source's order, and what is written for each; empty for regression.

    Examples
    --------
    >>> import pandas as pd
    >>> from amlb_ext.core.tables import make_task
    >>> table = pd.DataFrame({"a[1]": range(20), "b": ["x", None] * 10, "c": ["Y", "n"] * 10})
    >>> task = make_task(table, "c", name="small")
    >>> coding = Coding.of(task)
    >>> coding.encode(task.features, task.target).head(2).to_csv(index=False).split()
    ['a_1_,b,c', '0,x,c0_y', '1,,c1_n']
    >>> Coding.from_json(coding.to_json()) == coding
    True
    """

    columns: tuple[ColumnCoding, ...]
    target: str
    written_target: str
    kind: Kind
    labels: tuple[str, ...] = ()
    written_labels: tuple[str, ...] = ()

    @classmethod
    def of(cls, task: Task) -> Coding:
        """Return the coding of a task; it depends on the whole table, not on a fold."""
        written = safe_columns([column.name for column in task.columns] + [task.target_name])
        columns = tuple(
            ColumnCoding(
                name=column.name,
                written=name,
                form=column_form(column),
                categories=column.categories,
                values=written_values(column),
            )
            for column, name in zip(task.columns, written[:-1], strict=True)
        )
        return cls(
            columns=columns,
            target=task.target_name,
            written_target=written[-1],
            kind=task.kind,
            labels=task.labels,
            written_labels=safe_labels(task.labels) if task.kind.is_classification else (),
        )

    def encode(self, features: pd.DataFrame, target: pd.Series) -> pd.DataFrame:
        """Return the frame to write.

        Parameters
        ----------
        features : DataFrame of shape (n, d)
            In canonical form.
        target : Series of shape (n,)
            In canonical form.

        Returns
        -------
        DataFrame of shape (n, d + 1)
            ``float64``, ``int64``, ``bool`` and ``category`` columns under their written names.

        Raises
        ------
        SuiteError
            A value that the column's form cannot hold: a fraction or a missing value among
            integers, an unknown category, an infinite number, a missing target.
        """
        if list(features.columns) != [column.name for column in self.columns]:
            raise SuiteError(
                f"columns {list(features.columns)[:10]} came, "
                f"{[column.name for column in self.columns][:10]} were wanted",
                "hand in the task's own columns, in order",
            )
        out = {
            column.written: encode_column(column, features[column.name]) for column in self.columns
        }
        if self.kind.is_classification:
            written = recode_categories(self.target, target, self.labels, self.written_labels)
        else:
            written = as_floats(self.target, target)
        if written.isna().any():
            raise SuiteError(
                f"the target {self.target!r} is missing in row {first_position(written.isna())}",
                "drop rows without a target",
            )
        out[self.written_target] = written.set_axis(features.index)
        return pd.DataFrame(out, index=features.index)

    def decode(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
        """Return features and target in canonical form; the inverse of :meth:`encode`.

        Parameters
        ----------
        frame : DataFrame of shape (n, d + 1)
            As :meth:`read_csv` or :meth:`encode` gives it.

        Raises
        ------
        SuiteError
            Other columns than the coding's, or an unknown category or label.
        """
        self._check_columns(list(frame.columns))
        features = {c.name: decode_column(c, frame[c.written]) for c in self.columns}
        target = frame[self.written_target]
        if self.kind.is_classification:
            back = recode_categories(self.target, target, self.written_labels, self.labels)
        else:
            back = target.astype("float64")
        return pd.DataFrame(features, index=frame.index), back.rename(self.target)

    def read_csv(self, path: Path) -> pd.DataFrame:
        """Read a file of this coding, every column in its form, for :meth:`decode`.

        Raises
        ------
        SuiteError
            The file has other columns.
        ValueError
            A text where a number is wanted.
        """
        frame = pd.read_csv(
            path, dtype=str, keep_default_na=False, na_values=[""], encoding="utf-8"
        ).astype(object)
        self._check_columns(list(frame.columns))
        numbers = [column.written for column in self.columns if column.form in NUMBERS]
        if not self.kind.is_classification:
            numbers.append(self.written_target)
        for name in numbers:
            frame[name] = frame[name].to_numpy().astype("float64")  # exact, by Python's float
        return frame

    def to_json(self) -> dict[str, Any]:
        """Return the coding as plain mappings and lists; ``values`` only where they differ."""
        columns = []
        for column in self.columns:
            entry: dict[str, Any] = {"name": column.name, "form": column.form}
            if column.written != column.name:
                entry["written"] = column.written
            if column.categories:
                entry["categories"] = list(column.categories)
            if column.values != column.categories:
                entry["values"] = list(column.values)
            columns.append(entry)
        return {
            "columns": columns,
            "target": self.target,
            "written_target": self.written_target,
            "kind": self.kind.value,
            "labels": list(self.labels),
            "written_labels": list(self.written_labels),
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Coding:
        """Return the coding that :meth:`to_json` wrote."""
        return cls(
            columns=tuple(
                ColumnCoding(
                    name=column["name"],
                    written=column.get("written", column["name"]),
                    form=column["form"],
                    categories=tuple(column.get("categories", ())),
                    values=tuple(column.get("values", column.get("categories", ()))),
                )
                for column in entry["columns"]
            ),
            target=entry["target"],
            written_target=entry["written_target"],
            kind=Kind(entry["kind"]),
            labels=tuple(entry["labels"]),
            written_labels=tuple(entry["written_labels"]),
        )

    def _check_columns(self, came: list[str]) -> None:
        wanted = [*(column.written for column in self.columns), self.written_target]
        if came != wanted:
            odd = next(
                (f"{c!r} instead of {w!r}" for c, w in zip(came, wanted, strict=False) if c != w),
                f"{len(came)} columns instead of {len(wanted)}",
            )
            raise SuiteError(f"the file's columns are not the task's: {odd}", "generate it again")


def write_csv(frame: pd.DataFrame, path: Path) -> str:
    """Write an encoded frame; the same frame gives the same bytes everywhere.

    UTF-8, Unix line ends, shortest text of each float, nothing for missing, quotes only
    where needed.

    Returns
    -------
    str
        The sha256 of the file.
    """

    def write(part: Path) -> None:
        frame.to_csv(part, index=False, encoding="utf-8", lineterminator="\n", na_rep="")

    return write_file(path, write)


# One column's way to the file and back: its form, its written values.

Form = Literal["float", "integer", "boolean", "text"]
NUMBERS = ("float", "integer")


def column_form(column: Column) -> Form:
    """Return how a column is written.

    Examples
    --------
    >>> column_form(Column("n", "integer"))
    'integer'
    >>> column_form(Column("n", "integer", has_missing=True))
    'float'
    >>> column_form(Column("b", "boolean", ("False", "True")))
    'boolean'
    >>> column_form(Column("b", "boolean", ("f",)))
    'text'
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
    return safe_values(column.categories) if column_form(column) == "text" else column.categories


def encode_column(column: ColumnCoding, values: pd.Series) -> pd.Series:
    """Return a canonical column as it is written; ``SuiteError`` where its form cannot hold it."""
    if column.form == "float":
        return as_floats(column.name, values)
    if column.form == "text":
        return recode_categories(column.name, values, column.categories, column.values)
    if values.isna().any():
        raise SuiteError(
            f"column {column.name!r} is missing in row {first_position(values.isna())}, "
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
    return recode_categories(column.name, values, column.values, column.categories).rename(
        column.name
    )


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


def recode_categories(
    name: str, values: pd.Series, known: tuple[str, ...], new: tuple[str, ...]
) -> pd.Series:
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


def first_position(mask: pd.Series) -> int:
    """Return the position of the first true value."""
    return int(np.flatnonzero(mask.to_numpy())[0])
