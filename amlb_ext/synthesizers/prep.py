"""Tables as a model likes them, and back: compact codes, normal scores, no missing values.

Notation
--------
X : (n, d) rows as in :mod:`amlb_ext.synthesizers.base`
K : (n, m) int64, the modelled categories: column j runs over 0..cards_[j]-1, every code taken
V : (n, q) float64, the modelled numbers;  seen : (n, q) bool, False where the number is missing
u : mid-rank of a value among the fitted ones, in (0, 1);  z = Φ⁻¹(u) its normal score
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors

#: Fitted rows among which the nearest is sought for columns that are copied, and how many of
#: the nearest take part in the draw.
COPY_ROWS, COPY_NEAREST = 5000, 3


class NormalScores:
    """Monotone map of one column to normal scores and back, by its empirical distribution.

    A value that repeats is an atom: it owns the whole interval of u that its share deserves, so
    integers, flags and zero-inflated columns come back on values that were seen, each as often
    as it was seen. Between two neighbours seen once each the way back is linear, so continuous
    columns are not limited to fitted values.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Without missing values.

    Examples
    --------
    >>> import numpy as np
    >>> scores = NormalScores(np.array([0.0, 0.0, 0.0, 0.4, 0.8]))
    >>> scores.inverse(scores.transform(np.array([0.0, 0.4, 0.8]))).round(12).tolist()
    [0.0, 0.4, 0.8]
    >>> scores.inverse(np.array([-3.0, 0.2, 3.0])).tolist()
    [0.0, 0.0, 0.8]
    """

    def __init__(self, values: np.ndarray) -> None:
        self.values, counts = np.unique(values, return_counts=True)
        above = np.cumsum(counts) / len(values)
        below = above - counts / len(values)
        self.middle = (above + below) / 2
        atom = counts > 1
        # a value is flat down to its lower edge if it or its lower neighbour is an atom
        flat_below = atom | np.r_[False, atom[:-1]]
        flat_above = atom | np.r_[atom[1:], False]
        self.knots = np.column_stack(
            [np.where(flat_below, below, self.middle), np.where(flat_above, above, self.middle)]
        ).ravel()

    def transform(self, values: np.ndarray) -> np.ndarray:
        """Return z; a value that was not fitted lies between its neighbours."""
        return ndtri(np.interp(values, self.values, self.middle))

    def inverse(self, z: np.ndarray) -> np.ndarray:
        """Return values within the fitted range."""
        return np.interp(ndtr(z), self.knots, np.repeat(self.values, 2))


class TargetScores:
    """Normal scores of a regression target, or of each of several.

    Parameters
    ----------
    y : ndarray of shape (n,) or (n, k)

    Examples
    --------
    >>> y = np.array([[0.0, 3.0], [1.0, 2.0]])
    >>> TargetScores(y).transform(y).round(2).tolist()
    [[-0.67, 0.67], [0.67, -0.67]]
    """

    def __init__(self, y: np.ndarray) -> None:
        self.maps = [NormalScores(column) for column in y.reshape(len(y), -1).T]

    def transform(self, y: np.ndarray) -> np.ndarray:
        """Return scores of the shape of ``y``."""
        columns = y.reshape(len(y), len(self.maps)).T
        scores = [one.transform(column) for one, column in zip(self.maps, columns, strict=True)]
        return np.column_stack(scores).reshape(y.shape)


class PreparedTable(NamedTuple):
    """The modelled part of a table: K, V and seen; a missing V holds 0 (or the column mean)."""

    codes: np.ndarray
    numbers: np.ndarray
    seen: np.ndarray


class TablePrep(BaseEstimator):
    """Turn rows into categories and numbers that are worth modelling, and back.

    - Codes are compacted to those the fitted rows have: a text column of 5,000 values of which
      the fitted rows hold 40 becomes a category of 40.
    - A number with missing values gains a category "is missing", after the table's own.
    - Constant columns are not modelled, they come back as they were.
    - A category with more than ``max_categories`` codes in the fitted rows is not modelled:
      its code is copied from one of the three nearest fitted rows by the modelled columns.

    Parameters
    ----------
    max_categories : int
    normalise : bool
        Normal scores for numbers (see :class:`NormalScores`), or numbers as they came.

    Attributes
    ----------
    cards_ : tuple of int
        Number of codes of each column of K.
    n_numbers_ : int
        q, the number of columns of V.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[7.0, 0.1, 0.5], [3.0, np.nan, 0.5], [7.0, 0.3, 0.5]])
    >>> rng = np.random.default_rng(0)
    >>> prep = TablePrep().fit(X, 1, rng)
    >>> prep.cards_, prep.n_numbers_
    ((2, 2), 1)
    >>> codes, numbers, _ = prep.transform(X)
    >>> codes.tolist()
    [[1, 0], [0, 1], [1, 0]]
    >>> bool(np.allclose(prep.inverse(codes, numbers, rng), X, equal_nan=True))
    True
    """

    def __init__(self, max_categories: int = 100, normalise: bool = True) -> None:
        self.max_categories = max_categories
        self.normalise = normalise

    def fit(self, X: np.ndarray, n_categorical: int, rng: np.random.Generator) -> TablePrep:
        """Learn which columns are modelled, and how.

        Parameters
        ----------
        X : ndarray of shape (n, d)
        n_categorical : int
            M_c.
        rng : numpy.random.Generator
            Draws the rows that copied columns are copied from.
        """
        self.template_ = X[0].copy()
        self.codes_: dict[int, np.ndarray] = {}
        self.copied_: list[int] = []
        for j in range(n_categorical):
            present = np.unique(X[:, j])
            if len(present) > self.max_categories:
                self.copied_.append(j)
            elif len(present) > 1:
                self.codes_[j] = present
        self.maps_: dict[int, NormalScores] = {}
        self.missing_: list[int] = []
        for j in range(n_categorical, X.shape[1]):
            seen = X[~np.isnan(X[:, j]), j]
            if 0 < len(seen) < len(X):
                self.missing_.append(j)
                self.template_[j] = seen[0]
            if len(seen) and seen.min() < seen.max():
                self.maps_[j] = NormalScores(seen)
        self.cards_ = tuple(map(len, self.codes_.values())) + (2,) * len(self.missing_)
        self.n_numbers_ = len(self.maps_)
        self.neighbours_ = None
        if self.copied_:
            keep = np.sort(rng.permutation(len(X))[:COPY_ROWS])
            self.source_ = X[keep][:, self.copied_]
            if self.cards_ or self.maps_:
                nearest = NearestNeighbors(n_neighbors=min(COPY_NEAREST, len(keep)))
                codes, numbers, _ = self.transform(X[keep])
                self.neighbours_ = nearest.fit(self._space(codes, numbers))
        return self

    def transform(self, X: np.ndarray) -> PreparedTable:
        """Return K, V and seen for rows whose codes were all fitted."""
        codes = [np.searchsorted(present, X[:, j]) for j, present in self.codes_.items()]
        codes += [np.isnan(X[:, j]).astype(int) for j in self.missing_]
        raw = X[:, list(self.maps_)]
        seen = ~np.isnan(raw)
        numbers = np.zeros(raw.shape)
        for k, scores in enumerate(self.maps_.values()):
            there = seen[:, k]
            if self.normalise:
                numbers[there, k] = scores.transform(raw[there, k])
            else:
                numbers[there, k] = raw[there, k]
                numbers[~there, k] = raw[there, k].mean() if there.any() else 0.0
        return PreparedTable(_columns(codes, len(X), np.int64), numbers, seen)

    def inverse(
        self, codes: np.ndarray, numbers: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return rows as they were given to :meth:`fit`.

        Parameters
        ----------
        codes : ndarray of shape (n, m)
        numbers : ndarray of shape (n, q)
        rng : numpy.random.Generator
            Chooses among the nearest rows where a column is copied.
        """
        X = np.tile(self.template_, (len(codes), 1))
        for k, (j, present) in enumerate(self.codes_.items()):
            X[:, j] = present[codes[:, k]]
        for k, (j, scores) in enumerate(self.maps_.items()):
            X[:, j] = scores.inverse(numbers[:, k]) if self.normalise else numbers[:, k]
        for k, j in enumerate(self.missing_, start=len(self.codes_)):
            X[codes[:, k] == 1, j] = np.nan
        if self.copied_:
            if self.neighbours_ is None:
                row = rng.integers(len(self.source_), size=len(X))
            else:
                near = self.neighbours_.kneighbors(
                    self._space(codes, numbers), return_distance=False
                )
                row = near[np.arange(len(X)), rng.integers(near.shape[1], size=len(X))]
            X[:, self.copied_] = self.source_[row]
        return X

    def _space(self, codes: np.ndarray, numbers: np.ndarray) -> csr_matrix:
        """Return vectors whose squared distance is Σ (z - z')² + the number of other codes."""
        hot = (codes + np.cumsum((0, *self.cards_[:-1]))[: codes.shape[1]]).ravel()
        start = np.arange(len(codes) + 1) * codes.shape[1]
        value = np.full(len(hot), 0.5**0.5)
        one_hot = csr_matrix((value, hot, start), shape=(len(codes), sum(self.cards_)))
        return hstack([one_hot, csr_matrix(numbers)], format="csr")


def _columns(columns: list[np.ndarray], n: int, dtype: type) -> np.ndarray:
    return np.column_stack(columns).astype(dtype) if columns else np.empty((n, 0), dtype=dtype)
