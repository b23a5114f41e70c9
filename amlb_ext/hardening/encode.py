"""Turn tables into matrices and back (paper, section 4.1).

The integration that runs F in AMLB (``frameworks/HardsynthSklearn/pipeline.py``) sees nothing but
the CSV files of a fold. So categories are numbered by what is *written* of them, in text order, and
by the training rows of the fold alone: both give the same matrix.

Notation
--------
Z : (n, d) float64, the encoded rows; the first M_c columns are category codes, the rest are
    numeric columns, min–max scaled by the training rows. ``NaN`` is a missing number; a category
    that is missing, or that no training row has, is the last code of its column.
y : (n,) float64, the scaled target (regression) or class codes 0..C-1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from amlb_ext.core.task import Column, Kind
from amlb_ext.suite.coding import column_form, written_values


class Encoder(BaseEstimator):
    """Min–max for numbers, ordinal codes for everything else; missing values survive.

    The codes of a column are its training categories in the text order of their written values,
    and a last one for a value that is missing or unknown to the training rows. A column without
    any training value is read as numbers by pandas, whatever its type in the source: it stands
    among the numeric columns and is missing everywhere.

    Parameters
    ----------
    columns : sequence of Column
        The task's columns.
    known : {'training', 'table'}
        Which categories have a code of their own: those of the training rows, or all that the
        columns name, for rows that no model of AMLB's will see.

    Attributes
    ----------
    categorical_, numeric_ : list of Column
        Columns encoded as codes and as numbers, each in the table's order.
    names_ : list of str
        Column names in encoded order, categories first.
    values_ : list of tuple of str
        Categories of the source by code, for each categorical column.
    cards_ : tuple of int
        Number of codes of each categorical column, the last code included.
    low_, span_ : ndarray of shape (d - M_c,)
        Minimum and range of each numeric column over the training rows; range 1 where constant.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = (Column("a", "integer"), Column("b", "categorical", ("y", "x", "w"), True))
    >>> dtype = pd.CategoricalDtype(columns[1].categories)
    >>> train = pd.DataFrame({"a": [0.0, 10.0], "b": pd.Series(["y", "x"], dtype=dtype)})
    >>> test = pd.DataFrame({"a": [5.0, 0.0], "b": pd.Series(["x", "w"], dtype=dtype)})
    >>> encoder = Encoder(columns).fit(train)
    >>> encoder.transform(train).tolist(), encoder.transform(test).tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.5], [2.0, 0.0]])
    >>> encoder.inverse(encoder.transform(train)).equals(train)
    True
    """

    def __init__(
        self,
        columns: Sequence[Column],
        known: Literal["training", "table"] = "training",
    ) -> None:
        self.columns = columns
        self.known = known

    def fit(self, features: pd.DataFrame) -> Encoder:
        """Learn categories and ranges from the training rows."""
        self.categorical_: list[Column] = []
        self.numeric_: list[Column] = []
        for column in self.columns:
            # a column without any training value is read as numbers, whatever its type
            if column.is_numeric or not len(self._known_codes(column, features)):
                self.numeric_.append(column)
            else:
                self.categorical_.append(column)
        self.names_ = [column.name for column in self.categorical_]
        self.names_ += [column.name for column in self.numeric_]
        self._learn_categories(features)
        self._learn_ranges(features)
        return self

    def _known_codes(self, column: Column, features: pd.DataFrame) -> np.ndarray:
        """Return the table's codes of the categories that get one of ours."""
        if self.known == "table":
            return np.arange(len(column.categories))
        codes = np.unique(_table_codes(column, features))
        # -1 is pandas' code of a missing value
        return codes[codes >= 0]

    def _learn_categories(self, features: pd.DataFrame) -> None:
        """Number the known categories of each column in text order, both ways."""
        self.values_: list[tuple[str, ...]] = []
        # per column, from the table's codes to ours and back; see _number_categories
        self._to_ours: list[np.ndarray] = []
        self._to_table: list[np.ndarray] = []
        for column in self.categorical_:
            known = self._known_codes(column, features)
            # the integration sees what is written, and sorts that
            written = np.array(written_values(column), dtype=object)
            text_order = np.argsort(written, kind="stable")
            known = text_order[np.isin(text_order, known)]
            unknown = len(known)
            # one entry more than there are categories: pandas' -1 for a missing value is the
            # last entry, and so becomes ``unknown`` without a case of its own
            to_ours = np.full(len(column.categories) + 1, unknown)
            to_ours[known] = np.arange(len(known))
            to_table = np.append(known, _code_for_unknown(column, known))
            self._to_ours.append(to_ours)
            self._to_table.append(to_table)
            self.values_.append(tuple(column.categories[code] for code in known))
        self.cards_ = tuple(len(values) + 1 for values in self.values_)

    def _learn_ranges(self, features: pd.DataFrame) -> None:
        """Learn where the numbers of each column begin, and how far they reach."""
        numbers = self._numeric_values(features)
        is_known = ~np.isnan(numbers)
        # infinite where no row has a value; ``initial`` serves a table without rows
        low = np.where(is_known, numbers, np.inf).min(axis=0, initial=np.inf)
        high = np.where(is_known, numbers, -np.inf).max(axis=0, initial=-np.inf)
        low = np.where(np.isfinite(low), low, 0.0)
        high = np.where(np.isfinite(high), high, 0.0)
        span = high - low
        self.low_ = low
        self.span_ = np.where(span > 0, span, 1.0)

    @property
    def n_categorical_(self) -> int:
        """M_c, the number of categorical columns."""
        return len(self.cards_)

    def _numeric_values(self, features: pd.DataFrame) -> np.ndarray:
        """Return the numeric columns as they stand in the table."""
        numbers = np.full((len(features), len(self.numeric_)), np.nan)
        for j, column in enumerate(self.numeric_):
            # a text column without any training value stands here too, missing everywhere
            if column.is_numeric:
                numbers[:, j] = features[column.name].to_numpy(dtype=float)
        return numbers

    def transform(self, features: pd.DataFrame) -> np.ndarray:
        """Return the encoded rows, ``(n, d)``."""
        codes = np.empty((len(features), self.n_categorical_))
        for j, column in enumerate(self.categorical_):
            codes[:, j] = self._to_ours[j][_table_codes(column, features)]
        numbers = self._numeric_values(features)
        scaled = (numbers - self.low_) / self.span_
        return np.hstack([codes, scaled])

    def metric(self, encoded: np.ndarray) -> np.ndarray:
        """Return rows in which two categories lie as far apart as a column's extremes.

        Each category is one-hot over the root of 2. Numbers stay as they are, ``NaN`` too.

        Examples
        --------
        >>> import pandas as pd
        >>> columns = (Column("a", "numeric"), Column("b", "categorical", ("x", "y")))
        >>> table = pd.DataFrame({"a": [0.0, 1.0], "b": pd.Categorical(["x", "y"])})
        >>> encoder = Encoder(columns).fit(table)
        >>> encoder.metric(encoder.transform(table)).round(2).tolist()
        [[0.71, 0.0, 0.0, 0.0], [0.0, 0.71, 0.0, 1.0]]
        """
        blocks = []
        for j, card in enumerate(self.cards_):
            codes = encoded[:, j].astype(int)
            one_hot = np.eye(card)[codes]
            # two one-hot rows that differ lie the root of 2 apart
            blocks.append(one_hot / np.sqrt(2))
        numbers = encoded[:, self.n_categorical_ :]
        return np.hstack([*blocks, numbers])

    def decode_column(self, name: str, encoded: np.ndarray) -> pd.Series:
        """Return one column in canonical form, from its encoded values ``(n,)``."""
        position = self.names_.index(name)
        if position < self.n_categorical_:
            column = self.categorical_[position]
            # a synthesizer's codes may be fractions, or lie outside
            last_code = self.cards_[position] - 1
            codes = np.clip(np.rint(encoded).astype(int), 0, last_code)
            return _categories_from_codes(column, self._to_table[position][codes])
        j = position - self.n_categorical_
        column = self.numeric_[j]
        if not column.is_numeric:
            all_missing = np.full(len(encoded), -1)
            return _categories_from_codes(column, all_missing)
        values = encoded * self.span_[j] + self.low_[j]
        if column.type == "integer":
            # adding 0 turns -0.0 into 0.0, which is written without a sign
            values = np.rint(values) + 0.0
        return pd.Series(values)

    def encode_column(self, name: str, values: pd.Series) -> np.ndarray:
        """Return one encoded column, ``(n,)``, from its values in canonical form."""
        position = self.names_.index(name)
        if position < self.n_categorical_:
            table_codes = values.cat.codes.to_numpy()
            return self._to_ours[position][table_codes].astype(float)
        j = position - self.n_categorical_
        if not self.numeric_[j].is_numeric:
            return np.full(len(values), np.nan)
        numbers = values.to_numpy(dtype=float)
        return np.asarray((numbers - self.low_[j]) / self.span_[j])

    def inverse(self, encoded: np.ndarray) -> pd.DataFrame:
        """Return rows in canonical form; integers are rounded, the column order is the task's.

        A category's last code becomes missing; of a column written as ``True``/``False`` it
        becomes the truth value that the training rows lack.
        """
        decoded = {}
        for position, name in enumerate(self.names_):
            decoded[name] = self.decode_column(name, encoded[:, position])
        return pd.DataFrame(
            {column.name: decoded[column.name] for column in self.columns}
        )


def _table_codes(column: Column, features: pd.DataFrame) -> np.ndarray:
    """Return a column's codes in the table, ``(n,)``; -1 is a missing value."""
    codes: np.ndarray = features[column.name].cat.codes.to_numpy()
    return codes


def _code_for_unknown(column: Column, known: np.ndarray) -> int:
    """Return the table's code for a column's last code: -1, missing, where there is a choice."""
    if column_form(column) != "boolean":
        return -1
    # written as True or False, a column has no room for a missing value
    absent = np.setdiff1d(np.arange(len(column.categories)), known)
    return int(absent[0]) if len(absent) else -1


def _categories_from_codes(column: Column, codes: np.ndarray) -> pd.Series:
    dtype = pd.CategoricalDtype(list(column.categories))
    categories = pd.Categorical.from_codes(codes, dtype=dtype)
    return pd.Series(categories)


class TargetEncoder:
    """Scale a regression target by the training rows, or turn labels into codes.

    Parameters
    ----------
    kind : Kind
    labels : sequence of str
        Class labels in the task's order; empty for regression.
    train : Series
        The training rows' target, in canonical form.

    Attributes
    ----------
    low, span : float
        Minimum and range of the training rows' target; 0 and 1 for classes.
    has_whole_numbers : bool
        Whether every training row's target is a whole number.
    """

    def __init__(self, kind: Kind, labels: Sequence[str], train: pd.Series) -> None:
        self.kind = kind
        self.labels = tuple(labels)
        self.low = 0.0
        self.span = 1.0
        self.has_whole_numbers = False
        if kind is Kind.REGRESSION:
            values = train.to_numpy(dtype=float)
            self.low = float(values.min())
            # a constant target has no range, and must not divide by zero
            self.span = float(values.max() - self.low) or 1.0
            self.has_whole_numbers = bool(np.all(values == np.rint(values)))

    @property
    def n_classes(self) -> int:
        """C, or 0 for regression."""
        return len(self.labels)

    def snap(self, y: np.ndarray) -> np.ndarray:
        """Return scaled targets as they will be written: whole numbers where all are whole.

        Examples
        --------
        >>> target = TargetEncoder(Kind.REGRESSION, (), pd.Series([2.0, 6.0]))
        >>> target.snap(np.array([0.3, 0.4])).tolist()
        [0.25, 0.5]
        """
        if not self.has_whole_numbers:
            return y
        whole = np.rint(y * self.span + self.low)
        return (whole - self.low) / self.span

    def transform(self, target: pd.Series) -> np.ndarray:
        """Return y: float64 scaled values, or int64 codes."""
        if self.kind.is_classification:
            return target.cat.codes.to_numpy().astype(np.int64)
        values = target.to_numpy(dtype=float)
        return np.asarray((values - self.low) / self.span)

    def inverse(self, y: np.ndarray, name: str) -> pd.Series:
        """Return targets in canonical form."""
        if self.kind.is_classification:
            dtype = pd.CategoricalDtype(list(self.labels))
            labels = pd.Categorical.from_codes(y.astype(int), dtype=dtype)
            return pd.Series(labels, name=name)
        return pd.Series(y * self.span + self.low, name=name)
