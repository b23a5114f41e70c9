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
        is_atom = counts > 1
        # a value is flat down to its lower edge if it or its lower neighbour is an atom
        flat_below = is_atom | np.r_[False, is_atom[:-1]]
        flat_above = is_atom | np.r_[is_atom[1:], False]
        # two knots in u for each value: an atom's are the edges of its interval, so that every u
        # between them comes back on the atom; those of any other value meet in its middle
        lower_knots = np.where(flat_below, below, self.middle)
        upper_knots = np.where(flat_above, above, self.middle)
        self.knots = np.column_stack([lower_knots, upper_knots]).ravel()

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
        scores = []
        for normal_scores, column in zip(self.maps, columns, strict=True):
            scores.append(normal_scores.transform(column))
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

    def fit(
        self, X: np.ndarray, n_categorical: int, rng: np.random.Generator
    ) -> TablePrep:
        """Learn which columns are modelled, and how.

        Parameters
        ----------
        X : ndarray of shape (n, d)
        n_categorical : int
            M_c.
        rng : numpy.random.Generator
            Draws the rows that copied columns are copied from.
        """
        # row 0 fills the constant columns of every made row
        self.template_ = X[0].copy()
        self._sort_categories(X[:, :n_categorical])
        self._sort_numbers(X, n_categorical)
        cards = [len(present) for present in self.codes_.values()]
        self.cards_ = (*cards, *(2 for _ in self.missing_))  # "is missing": no or yes
        self.n_numbers_ = len(self.maps_)
        self.neighbours_ = None
        if self.copied_:
            kept = np.sort(rng.permutation(len(X))[:COPY_ROWS])
            self.source_ = X[kept][:, self.copied_]
            if self.cards_ or self.maps_:
                codes, numbers, _ = self.transform(X[kept])
                nearest = NearestNeighbors(n_neighbors=min(COPY_NEAREST, len(kept)))
                self.neighbours_ = nearest.fit(self._metric_rows(codes, numbers))
        return self

    def _sort_categories(self, codes: np.ndarray) -> None:
        """Settle which categories are modelled, copied, or constant."""
        self.codes_: dict[
            int, np.ndarray
        ] = {}  # column → the codes that fitted rows have
        self.copied_: list[int] = []
        for j in range(codes.shape[1]):
            present = np.unique(codes[:, j])
            if len(present) > self.max_categories:
                self.copied_.append(j)
            elif len(present) > 1:
                self.codes_[j] = present

    def _sort_numbers(self, X: np.ndarray, n_categorical: int) -> None:
        """Settle which numbers are modelled, and which need "is missing" as a category."""
        self.maps_: dict[int, NormalScores] = {}
        self.missing_: list[int] = []
        for j in range(n_categorical, X.shape[1]):
            seen = X[~np.isnan(X[:, j]), j]
            if 0 < len(seen) < len(X):
                self.missing_.append(j)
                self.template_[j] = seen[
                    0
                ]  # row 0 may be one of those without the number
            if len(seen) and seen.min() < seen.max():
                self.maps_[j] = NormalScores(seen)

    def transform(self, X: np.ndarray) -> PreparedTable:
        """Return K, V and seen for rows whose codes were all fitted."""
        codes = np.empty((len(X), len(self.cards_)), dtype=np.int64)
        for k, (j, present) in enumerate(self.codes_.items()):
            codes[:, k] = np.searchsorted(present, X[:, j])
        for k, j in enumerate(self.missing_, start=len(self.codes_)):
            codes[:, k] = np.isnan(X[:, j])
        raw = X[:, list(self.maps_)]
        seen = ~np.isnan(raw)
        numbers = np.zeros(raw.shape)
        for k, scores in enumerate(self.maps_.values()):
            is_seen = seen[:, k]
            values = raw[is_seen, k]
            if self.normalise:
                numbers[is_seen, k] = scores.transform(
                    values
                )  # missing: 0, the middle score
            else:
                numbers[is_seen, k] = values
                numbers[~is_seen, k] = values.mean() if len(values) else 0.0
        return PreparedTable(codes, numbers, seen)

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
            X[:, self.copied_] = self.source_[self._copied_rows(codes, numbers, rng)]
        return X

    def _copied_rows(
        self, codes: np.ndarray, numbers: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return, for each new row, the source row that gives its copied columns."""
        n = len(codes)
        if (
            self.neighbours_ is None
        ):  # no column is modelled, so no row is nearer than another
            return rng.integers(len(self.source_), size=n)
        near = self.neighbours_.kneighbors(
            self._metric_rows(codes, numbers), return_distance=False
        )
        return near[np.arange(n), rng.integers(near.shape[1], size=n)]

    def _metric_rows(self, codes: np.ndarray, numbers: np.ndarray) -> csr_matrix:
        """Return vectors whose squared distance is Σ (z - z')² + the number of other codes."""
        n, m = codes.shape
        # one-hot codes in CSR form: m entries a row, each in the block of its column; two rows
        # that differ in a code differ in two entries of √½, whose squares add up to 1
        offsets = np.cumsum((0, *self.cards_[:-1]))[:m]
        indices = (codes + offsets).ravel()
        row_starts = np.arange(n + 1) * m
        values = np.full(len(indices), 0.5**0.5)
        one_hot = csr_matrix((values, indices, row_starts), shape=(n, sum(self.cards_)))
        return hstack([one_hot, csr_matrix(numbers)], format="csr")
