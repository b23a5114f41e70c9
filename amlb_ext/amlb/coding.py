"""How a task's values are written for AMLB, and the way back.

The coding is fixed once per *task*, so that a column has one type in every fold, in train and
test, and in every part: an integer column is written as integers only where no row of the
task lacks it, numbers always with a point, booleans as ``True``/``False`` only where none is
missing, and every other column as texts that pandas cannot mistake for anything else
(:mod:`amlb_ext.amlb.safe_text`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from amlb_ext.amlb.safe_text import safe_columns, safe_labels, safe_values
from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import write_file
from amlb_ext.core.tables import MAX_ABS
from amlb_ext.core.task import Column, ColumnType, Kind, Task

#: How a column is written.
Form = Literal["float", "integer", "boolean", "text"]
#: Forms that are read as numbers.
NUMBERS = ("float", "integer")
#: Rows of a file that are held as texts at once.
BLOCK_ROWS = 5_000


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
    # pandas reads True and False as booleans only where no row of the file lacks a value
    values = set(column.categories)
    has_truth_values = bool(values) and values <= {"False", "True"}
    if column.type == "boolean" and has_truth_values and not column.has_missing:
        return "boolean"
    return "text"


def written_values(column: Column) -> tuple[str, ...]:
    """Return what is written for each category of a column."""
    if column_form(column) == "text":
        return safe_values(column.categories)
    return column.categories


@dataclass(frozen=True)
class ColumnCoding:
    """One feature's way to the file and back.

    Attributes
    ----------
    name, written : str
        The column's name in the source and in the file.
    form : str
        ``float``, ``integer``, ``boolean`` or ``text``.
    categories, values : tuple of str
        Categories in the source's order, and what is written for each.

    Examples
    --------
    >>> column = Column("colour", "categorical", ("red", "NA"))
    >>> coding = ColumnCoding.of(column, "colour")
    >>> coding.values
    ('red', 'c1_na')
    >>> list(coding.decode(coding.encode(pd.Series(["NA", None]))))
    ['NA', nan]
    """

    name: str
    written: str
    form: Form
    categories: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, column: Column, written: str) -> ColumnCoding:
        """Return the coding of a column that has this name in the file."""
        return cls(
            name=column.name,
            written=written,
            form=column_form(column),
            categories=column.categories,
            values=written_values(column),
        )

    def as_column(self) -> Column:
        """Return the column as the files hold it.

        The source may have had another type: a file does not tell a date from a text, nor whole
        numbers with gaps from fractions. It is written back in the same form.

        Examples
        --------
        >>> truth = Column("b", "boolean", ("False", "True"))
        >>> ColumnCoding.of(truth, "b").as_column() == truth
        True
        """
        # integers and booleans are written as such only where no row lacks the value
        if self.form == "integer" or self.form == "boolean":
            return Column(self.name, self.form, self.categories)
        type_: ColumnType = "numeric" if self.form == "float" else "categorical"
        return Column(self.name, type_, self.categories, has_missing=True)

    def encode(self, values: pd.Series) -> pd.Series:
        """Return a canonical column as it is written.

        Raises
        ------
        SuiteError
            Its form cannot hold a value.
        """
        if self.form == "float":
            return _as_floats(self.name, values)
        if self.form == "text":
            return _recode(
                values,
                name=self.name,
                known=self.categories,
                recoded=self.values,
            )
        # neither integers nor booleans have a place for missing values
        if values.isna().any():
            row = _first_position(values.isna())
            raise SuiteError(
                f"column {self.name!r} has no value in row {row}, "
                "but in the source's table every row has one",
                "fill the missing values before writing",
            )
        if self.form == "boolean":
            return values.astype(object) == "True"
        floats = _as_floats(self.name, values)
        is_fraction = floats != np.floor(floats)
        if is_fraction.any():
            fraction = floats[is_fraction].iloc[0]
            raise SuiteError(
                f"column {self.name!r} of whole numbers holds {fraction}",
                "round its values before writing",
            )
        return floats.astype("int64")

    def decode(self, values: pd.Series) -> pd.Series:
        """Return a written column in canonical form."""
        if self.form in NUMBERS:
            return values.astype("float64").rename(self.name)
        # pandas may have read booleans as such
        if self.form == "boolean":
            values = values.astype(str)
        return _recode(
            values,
            name=self.name,
            known=self.values,
            recoded=self.categories,
        )


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
        # all names at once: two that differ in the source may be the same once they are safe
        names = [column.name for column in task.columns]
        *written_names, written_target = safe_columns([*names, task.target_name])
        columns = []
        for column, written in zip(task.columns, written_names, strict=True):
            columns.append(ColumnCoding.of(column, written))
        return cls(
            columns=tuple(columns),
            target=task.target_name,
            written_target=written_target,
            kind=task.kind,
            labels=task.labels,
            written_labels=safe_labels(task.labels) if task.labels else (),
        )

    @property
    def _target_column(self) -> ColumnCoding:
        return ColumnCoding(
            name=self.target,
            written=self.written_target,
            form="text" if self.kind.is_classification else "float",
            categories=self.labels,
            values=self.written_labels,
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
        names = [column.name for column in self.columns]
        if list(features.columns) != names:
            raise SuiteError(
                f"the columns are {list(features.columns)[:10]}, but the task's are {names[:10]}",
                "pass the task's own columns, in their order",
            )
        frame = {}
        for column in self.columns:
            frame[column.written] = column.encode(features[column.name])
        written = self._target_column.encode(target)
        if written.isna().any():
            row = _first_position(written.isna())
            raise SuiteError(
                f"the target {self.target!r} is missing in row {row}",
                "drop rows without a target",
            )
        frame[self.written_target] = written.set_axis(features.index)
        return pd.DataFrame(frame, index=features.index)

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
        features = {}
        for column in self.columns:
            features[column.name] = column.decode(frame[column.written])
        target = self._target_column.decode(frame[self.written_target])
        return pd.DataFrame(features, index=frame.index), target

    def read_csv(self, path: Path) -> pd.DataFrame:
        """Read a file of this coding, every column in its form, for :meth:`decode`.

        Raises
        ------
        SuiteError
            The file has other columns.
        ValueError
            A text where a number is wanted.
        """
        # as texts: pandas would take a column of "007" or "NA" for numbers or missing values
        blocks = pd.read_csv(
            path,
            dtype=str,
            keep_default_na=False,
            na_values=[""],
            encoding="utf-8",
            # a number takes eight bytes, and its text ten times as many
            chunksize=BLOCK_ROWS,
        )
        read = []
        with blocks:
            for block in blocks:
                frame = block.astype(object)
                self._check_columns(list(frame.columns))
                for column in (*self.columns, self._target_column):
                    if column.form in NUMBERS:
                        # numpy converts objects with Python's float, which is exact; the parser
                        # of pandas is not always
                        texts = frame[column.written].to_numpy()
                        frame[column.written] = texts.astype("float64")
                read.append(frame)
        return pd.concat(read, ignore_index=True)

    def _check_columns(self, came: list[str]) -> None:
        wanted = [*(column.written for column in self.columns), self.written_target]
        if came != wanted:
            difference = f"{len(came)} columns instead of {len(wanted)}"
            for name, wanted_name in zip(came, wanted, strict=False):
                if name != wanted_name:
                    difference = f"{name!r} instead of {wanted_name!r}"
                    break
            raise SuiteError(
                f"the file's columns are not the task's: {difference}",
                "generate the suite again",
            )


def write_csv(frame: pd.DataFrame, path: Path) -> str:
    """Write an encoded frame; the same frame gives the same bytes everywhere.

    UTF-8, Unix line ends, shortest text of each float, nothing for missing, quotes only
    where needed.

    Returns
    -------
    str
        The sha256 of the file.
    """
    write = partial(frame.to_csv, index=False, encoding="utf-8", lineterminator="\n")
    return write_file(path, write)


def _as_floats(name: str, values: pd.Series) -> pd.Series:
    """Return numbers as ``float64``; ``SuiteError`` where one is too large for AMLB."""
    floats = values.astype("float64")
    is_too_large = floats.abs() > MAX_ABS
    if is_too_large.any():
        number = floats[is_too_large].iloc[0]
        raise SuiteError(
            f"column {name!r} holds {number}, but AMLB reads numbers up to {MAX_ABS:.2g}",
            "leave such values missing",
        )
    return floats


def _recode(
    values: pd.Series,
    *,
    name: str,
    known: tuple[str, ...],
    recoded: tuple[str, ...],
) -> pd.Series:
    """Map categories position by position; missing stays missing, unknown is a ``SuiteError``."""
    if len(set(known)) != len(known):
        raise SuiteError(
            f"column {name!r} names one of its values twice", "generate the suite again"
        )
    index = pd.Index(known, dtype=object)
    if isinstance(values.dtype, pd.CategoricalDtype):
        # look up each category once, not each row; the last entry serves code -1, missing
        texts = [str(category) for category in values.cat.categories]
        positions = index.get_indexer(pd.Index(texts, dtype=object))
        code_of_category = np.append(positions, -1)
        codes = code_of_category[values.cat.codes.to_numpy()]
    else:
        codes = index.get_indexer(pd.Index(values.astype(object)))
    is_unknown = (codes < 0) & values.notna().to_numpy()
    if is_unknown.any():
        first_row = np.flatnonzero(is_unknown)[0]
        came = values.iloc[int(first_row)]
        raise SuiteError(
            f"column {name!r} holds {came!r}, which is not one of its {len(known)} values",
            "use the values of the task's own table",
        )
    categories = pd.Categorical.from_codes(codes, categories=list(recoded))
    return pd.Series(categories, index=values.index, name=name)


def _first_position(mask: pd.Series) -> int:
    """Return the position of the first true value."""
    return int(np.flatnonzero(mask.to_numpy())[0])
