"""Tables to matrices and back (paper, section 4.1).

Notation
--------
Z : (n, d) float64, the encoded rows; the first M_c columns are category codes, the rest are
    numeric columns, min–max scaled by the training rows. ``NaN`` is a missing number; a missing
    category is the last code of its column.
y : (n,) float64, the scaled target (regression) or class codes 0..C-1; of a group of tasks
    (n, k), the scaled targets of k regressions side by side
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from amlb_ext.core.task import Column, Kind


class Encoder(BaseEstimator):
    """Min–max for numbers, ordinal codes for everything else; missing values survive.

    A category that the training rows lack keeps its own code (codes follow the task's category
    list), so unseen categories need no special case. Constant and empty columns are carried.

    Parameters
    ----------
    columns : sequence of Column
        The task's columns.

    Attributes
    ----------
    names_ : list of str
        Column names in encoded order, categories first.
    cards_ : tuple of int
        Number of codes of each categorical column, the missing code included.
    low_, span_ : ndarray of shape (d - M_c,)
        Minimum and range of each numeric column over the training rows; range 1 where constant.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = (Column("a", "integer"), Column("b", "categorical", ("x", "y"), True))
    >>> table = pd.DataFrame({"a": [0.0, 10.0], "b": pd.Categorical(["y", None], ["x", "y"])})
    >>> encoder = Encoder(columns).fit(table)
    >>> encoder.transform(table).tolist()
    [[1.0, 0.0], [2.0, 1.0]]
    >>> encoder.inverse(encoder.transform(table)).equals(table)
    True
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns

    def fit(self, features: pd.DataFrame) -> Encoder:
        """Learn the range of each numeric column from the training rows."""
        self.categorical_ = [c for c in self.columns if not c.is_numeric]
        self.numeric_ = [c for c in self.columns if c.is_numeric]
        self.names_ = [c.name for c in (*self.categorical_, *self.numeric_)]
        self.cards_ = tuple(
            max(1, len(c.categories) + int(c.has_missing)) for c in self.categorical_
        )
        values = self._numbers(features)
        seen = ~np.isnan(values)
        low = np.where(seen, values, np.inf).min(axis=0, initial=np.inf)
        high = np.where(seen, values, -np.inf).max(axis=0, initial=-np.inf)
        self.low_ = np.where(np.isfinite(low), low, 0.0)
        span = np.where(np.isfinite(high), high, 0.0) - self.low_
        self.span_ = np.where(span > 0, span, 1.0)
        return self

    @property
    def n_categorical_(self) -> int:
        """M_c, the number of categorical columns."""
        return len(self.cards_)

    def _numbers(self, features: pd.DataFrame) -> np.ndarray:
        names = [c.name for c in self.numeric_]
        return features[names].to_numpy(dtype=float).reshape(len(features), len(names))

    def transform(self, features: pd.DataFrame) -> np.ndarray:
        """Return the encoded rows, ``(n, d)``."""
        codes = np.empty((len(features), self.n_categorical_))
        for j, column in enumerate(self.categorical_):
            code = features[column.name].cat.codes.to_numpy()
            codes[:, j] = np.where(code < 0, self.cards_[j] - 1, code)
        return np.hstack([codes, (self._numbers(features) - self.low_) / self.span_])

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
        [[0.71, 0.0, 0.0], [0.0, 0.71, 1.0]]
        """
        parts = [
            np.eye(card)[encoded[:, j].astype(int)] / np.sqrt(2)
            for j, card in enumerate(self.cards_)
        ]
        return np.hstack([*parts, encoded[:, self.n_categorical_ :]])

    def inverse(self, encoded: np.ndarray) -> pd.DataFrame:
        """Return rows in canonical form; integers are rounded, the column order is the task's."""
        out: dict[str, pd.Series | np.ndarray] = {}
        for j, column in enumerate(self.categorical_):
            code = np.rint(encoded[:, j]).astype(int)
            code = np.where(code >= len(column.categories), -1, code)
            dtype = pd.CategoricalDtype(list(column.categories))
            out[column.name] = pd.Series(pd.Categorical.from_codes(code, dtype=dtype))
        for j, column in enumerate(self.numeric_):
            values = encoded[:, self.n_categorical_ + j] * self.span_[j] + self.low_[j]
            out[column.name] = np.rint(values) + 0.0 if column.type == "integer" else values
        return pd.DataFrame({c.name: out[c.name] for c in self.columns})


class TargetEncoder:
    """Scale a regression target by the training rows, or turn labels into codes.

    Parameters
    ----------
    kind : Kind
    labels : sequence of str
        Class labels in the task's order; empty for regression.
    train : Series
        The training rows' target, in canonical form.
    """

    def __init__(self, kind: Kind, labels: Sequence[str], train: pd.Series) -> None:
        self.kind = kind
        self.labels = tuple(labels)
        # numbers; arrays (k,) in the encoder of several targets, see ``beside``
        self.low: Any = 0.0
        self.span: Any = 1.0
        self.whole: Any = False
        if kind is Kind.REGRESSION:
            values = train.to_numpy(dtype=float)
            self.low = float(values.min())
            self.span = float(values.max() - values.min()) or 1.0
            self.whole = bool(np.all(values == np.rint(values)))

    @classmethod
    def beside(cls, encoders: Sequence[TargetEncoder]) -> TargetEncoder:
        """Return the encoder of several regression targets side by side, y being ``(n, k)``."""
        out = copy(encoders[0])
        for name in ("low", "span", "whole"):
            setattr(out, name, np.array([getattr(encoder, name) for encoder in encoders]))
        return out

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
        if not np.any(self.whole):
            return y
        whole = (np.rint(y * self.span + self.low) - self.low) / self.span
        return np.where(self.whole, whole, y)

    def transform(self, target: pd.Series) -> np.ndarray:
        """Return y: float64 scaled values, or int64 codes."""
        if self.kind.is_classification:
            return target.cat.codes.to_numpy().astype(np.int64)
        return (target.to_numpy(dtype=float) - self.low) / self.span

    def inverse(self, y: np.ndarray, name: str) -> pd.Series:
        """Return targets in canonical form."""
        if self.kind.is_classification:
            dtype = pd.CategoricalDtype(list(self.labels))
            return pd.Series(pd.Categorical.from_codes(y.astype(int), dtype=dtype), name=name)
        return pd.Series(y * self.span + self.low, name=name)
