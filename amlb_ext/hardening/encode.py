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

# Denser than other modules: most of its lines are arithmetic on arrays.

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from amlb_ext.amlb.coding import column_form, written_values
from amlb_ext.core.task import Column, Kind
from amlb_ext.relations.conditions import tolerance_at
from amlb_ext.relations.values import Rounding, learn_rounding


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
        category_codings = []
        number_scales = []
        for column in self.columns:
            values = features[column.name]
            known = np.zeros(0, dtype=int)
            if not column.is_numeric:
                known = np.arange(len(column.categories))
            if not column.is_numeric and self.known == "training":
                known = np.intersect1d(known, values.cat.codes.to_numpy())
            if len(known):
                self.categorical_.append(column)
                category_codings.append(CategoryCoding(column, known))
            else:
                # a text column without any training value is read as numbers, too
                self.numeric_.append(column)
                number_scales.append(NumberScale(column, values))
        # by encoded column, categories first
        coders: list[CategoryCoding | NumberScale] = [*category_codings, *number_scales]
        self._coders = {coder.column.name: coder for coder in coders}
        self.names_ = list(self._coders)
        self.values_ = [coding.values for coding in category_codings]
        self.cards_ = tuple(len(values) + 1 for values in self.values_)
        self.low_ = np.array([scale.low for scale in number_scales])
        self.span_ = np.array([scale.span for scale in number_scales])
        return self

    @property
    def n_categorical_(self) -> int:
        """M_c, the number of categorical columns."""
        return len(self.cards_)

    def transform(self, features: pd.DataFrame) -> np.ndarray:
        """Return the encoded rows, ``(n, d)``."""
        Z = np.empty((len(features), len(self._coders)))
        for position, (name, coder) in enumerate(self._coders.items()):
            Z[:, position] = coder.encode(features[name])
        return Z

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
            one_hot = np.eye(card)[encoded[:, j].astype(int)]
            # two one-hot rows that differ lie the root of 2 apart
            blocks.append(one_hot / np.sqrt(2))
        return np.hstack([*blocks, encoded[:, self.n_categorical_ :]])

    def decode_column(self, name: str, encoded: np.ndarray) -> pd.Series:
        """Return one column in canonical form, from its encoded values ``(n,)``."""
        return pd.Series(self._coders[name].decode_values(encoded))

    def encode_column(self, name: str, values: pd.Series) -> np.ndarray:
        """Return one encoded column, ``(n,)``, from its values in canonical form."""
        return self._coders[name].encode(values)

    def inverse(self, encoded: np.ndarray) -> pd.DataFrame:
        """Return rows in canonical form; integers are rounded, the column order is the task's.

        A category's last code becomes missing; of a column written as ``True``/``False`` it
        becomes the truth value that the training rows lack.
        """
        # arrays: pandas would align as many Series with each other
        decoded = {}
        for position, (name, coder) in enumerate(self._coders.items()):
            decoded[name] = coder.decode_values(encoded[:, position])
        return pd.DataFrame(
            {column.name: decoded[column.name] for column in self.columns}
        )


class CategoryCoding:
    """The codes of one categorical column: the known categories in text order, and a last one.

    Parameters
    ----------
    column : Column
    known : ndarray of int
        The table's codes of the categories that have a code of their own, at least one.

    Attributes
    ----------
    values : tuple of str
        Those categories, by our code.
    """

    def __init__(self, column: Column, known: np.ndarray) -> None:
        self.column = column
        # the integration sees what is written, and sorts that
        written = np.array(written_values(column), dtype=object)
        text_order = np.argsort(written, kind="stable")
        known = text_order[np.isin(text_order, known)]
        self.values = tuple(column.categories[code] for code in known)
        # one entry more than there are categories: pandas' -1 for a missing value is the last
        # entry, and so becomes the last code without a case of its own
        last_code = len(known)
        self._to_ours = np.full(len(column.categories) + 1, last_code)
        self._to_ours[known] = np.arange(last_code)
        # written as True or False, a column has no room for a missing value
        unknown = -1
        if column_form(column) == "boolean":
            absent = np.setdiff1d(np.arange(len(column.categories)), known)
            unknown = int(absent[0]) if len(absent) else -1
        self._to_table = np.append(known, unknown)

    def encode(self, values: pd.Series) -> np.ndarray:
        """Return the codes of values in canonical form, ``(n,)``."""
        table_codes = values.cat.codes.to_numpy()
        return self._to_ours[table_codes].astype(float)

    def decode_values(self, encoded: np.ndarray) -> pd.Categorical:
        """Return values in canonical form; what is no code is rounded to the nearest one."""
        codes = np.clip(np.rint(encoded).astype(int), 0, len(self.values))
        return _categories_from_codes(self.column, self._to_table[codes])


class NumberScale:
    """The min–max scale of one numeric column, or of a column without any training value.

    Parameters
    ----------
    column : Column
    values : Series
        The training rows' values, in canonical form.

    Attributes
    ----------
    low, span : float
        Minimum and range; 0 and 1 where no row has a value, range 1 where all have the same.
    """

    def __init__(self, column: Column, values: pd.Series) -> None:
        self.column = column
        self.low = 0.0
        self.span = 1.0
        if not column.is_numeric:
            return
        numbers = values.to_numpy(dtype=float)
        present = numbers[~np.isnan(numbers)]
        if len(present):
            self.low = float(present.min())
            # a constant column has no range, and must not divide by zero
            self.span = float(present.max() - self.low) or 1.0

    def encode(self, values: pd.Series) -> np.ndarray:
        """Return scaled values, ``(n,)``."""
        if not self.column.is_numeric:
            return np.full(len(values), np.nan)
        numbers = values.to_numpy(dtype=float)
        return np.asarray((numbers - self.low) / self.span)

    def decode_values(self, encoded: np.ndarray) -> np.ndarray | pd.Categorical:
        """Return values in canonical form, whole numbers where the column has them."""
        if not self.column.is_numeric:
            return _categories_from_codes(self.column, np.full(len(encoded), -1))
        values = encoded * self.span + self.low
        if self.column.type == "integer":
            # adding 0 turns -0.0 into 0.0, which is written without a sign
            values = np.rint(values) + 0.0
        return values


def _categories_from_codes(column: Column, codes: np.ndarray) -> pd.Categorical:
    dtype = pd.CategoricalDtype(list(column.categories))
    return pd.Categorical.from_codes(codes, dtype=dtype)


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
    rounding : Rounding or None
        How the training rows' target is rounded; None where it is not, and for classes.
    """

    def __init__(self, kind: Kind, labels: Sequence[str], train: pd.Series) -> None:
        self.kind = kind
        self.labels = tuple(labels)
        self.low = 0.0
        self.span = 1.0
        self.has_whole_numbers = False
        self.rounding: Rounding | None = None
        if kind is Kind.REGRESSION:
            values = train.to_numpy(dtype=float)
            self.low = float(values.min())
            # a constant target has no range, and must not divide by zero
            self.span = float(values.max() - self.low) or 1.0
            are_whole = values == np.rint(values)
            self.has_whole_numbers = bool(are_whole.all())
            self.rounding = learn_rounding(np.unique(values))

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

    def round_decimals(self, y: np.ndarray) -> np.ndarray:
        """Return scaled targets with no more digits than those of the training rows.

        Examples
        --------
        >>> target = TargetEncoder(Kind.REGRESSION, (), pd.Series([0.0, 2.5, 10.0]))
        >>> target.round_decimals(np.array([0.234567])).round(6).tolist()
        [0.23]
        """
        if self.rounding is None:
            return y
        rounded = self.rounding.round(y * self.span + self.low)
        return (rounded - self.low) / self.span

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
        values = y * self.span + self.low
        if self.rounding is not None:
            # scaling there and back leaves 254.99999999999997 where 255 stood
            rounded = self.rounding.round(values)
            is_noise = np.abs(values - rounded) <= tolerance_at(values)
            values = np.where(is_noise, rounded, values)
        return pd.Series(values, name=name)
