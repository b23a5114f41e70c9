"""Tables as a model likes them, and back: compact codes, normal scores, no missing values.

Notation
--------
X : (n, d) rows as in :mod:`amlb_ext.synthesizers.base`
K : (n, m) int64, the modelled categories: column j runs over 0..cards_[j]-1, every code taken
V : (n, q) float64, the modelled numbers;  seen : (n, q) bool, False where the number is missing
u : mid-rank of a value among the fitted ones, in (0, 1);  z = Φ⁻¹(u) its normal score
"""

# Its lines stay dense: most of them read or write a column of a matrix by two indices.

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack
from scipy.special import ndtr, ndtri
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
        # the interval of u that each value owns, and its middle: the mid-rank
        shares = counts / len(values)
        above = np.cumsum(counts) / len(values)
        below = above - shares
        self.middle = (above + below) / 2
        is_atom = counts > 1
        # a value is flat down to its lower edge if it or its lower neighbour is an atom
        flat_below = is_atom.copy()
        flat_below[1:] |= is_atom[:-1]
        flat_above = is_atom.copy()
        flat_above[:-1] |= is_atom[1:]
        # two knots in u for each value: an atom's are the edges of its interval, so that every u
        # between them comes back on the atom; those of any other value meet in its middle
        lower_knots = np.where(flat_below, below, self.middle)
        upper_knots = np.where(flat_above, above, self.middle)
        knots = np.column_stack([lower_knots, upper_knots])
        self.knots = knots.ravel()

    def transform(self, values: np.ndarray) -> np.ndarray:
        """Return z; a value that was not fitted lies between its neighbours."""
        u = np.interp(values, self.values, self.middle)
        return ndtri(u)

    def inverse(self, z: np.ndarray) -> np.ndarray:
        """Return values within the fitted range."""
        value_of_knot = np.repeat(self.values, 2)
        return np.interp(ndtr(z), self.knots, value_of_knot)


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
        targets = y.reshape(len(y), -1)
        self.maps = [NormalScores(column) for column in targets.T]

    def transform(self, y: np.ndarray) -> np.ndarray:
        """Return scores of the shape of ``y``."""
        # the width is named, because -1 says nothing where there are no rows
        targets = y.reshape(len(y), len(self.maps))
        scores = np.empty(targets.shape)
        for j, target_map in enumerate(self.maps):
            scores[:, j] = target_map.transform(targets[:, j])
        return scores.reshape(y.shape)


class PreparedTable(NamedTuple):
    """The modelled part of a table: K, V and seen; a missing V holds 0 (or the column mean)."""

    codes: np.ndarray
    numbers: np.ndarray
    seen: np.ndarray


class TablePrep:
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
    n_modelled_ : int
        m + q, 0 where all columns are constant or copied.

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

    def __init__(
        self,
        max_categories: int = 100,
        normalise: bool = True,
    ) -> None:
        self.max_categories = max_categories
        self.normalise = normalise

    def fit(
        self,
        X: np.ndarray,
        n_categorical: int,
        rng: np.random.Generator,
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
        own_codes = X[:, :n_categorical]
        self._sort_categories(own_codes)
        self._sort_numbers(X, n_categorical)
        cards = [len(present) for present in self.codes_.values()]
        # "is missing" has two codes: no and yes
        cards += [2] * len(self.missing_)
        self.cards_ = tuple(cards)
        self.n_numbers_ = len(self.maps_)
        self.n_modelled_ = len(self.cards_) + self.n_numbers_
        self.neighbours_: NearestNeighbors | None = None
        if self.copied_:
            self._learn_copies(X, rng)
        return self

    def _sort_categories(self, codes: np.ndarray) -> None:
        """Settle which categories are modelled, copied, or constant."""
        # column → the codes that fitted rows have
        self.codes_: dict[int, np.ndarray] = {}
        self.copied_: list[int] = []
        for j, column in enumerate(codes.T):
            present = np.unique(column)
            if len(present) > self.max_categories:
                self.copied_.append(j)
            elif len(present) > 1:
                self.codes_[j] = present

    def _sort_numbers(self, X: np.ndarray, n_categorical: int) -> None:
        """Settle which numbers are modelled, and which need "is missing" as a category."""
        self.maps_: dict[int, NormalScores] = {}
        self.missing_: list[int] = []
        for j in range(n_categorical, X.shape[1]):
            column = X[:, j]
            seen = column[~np.isnan(column)]
            if not len(seen):
                continue
            if len(seen) < len(X):
                self.missing_.append(j)
                # row 0 may be one of those without the number
                self.template_[j] = seen[0]
            if seen.min() < seen.max():
                self.maps_[j] = NormalScores(seen)

    def _learn_copies(
        self,
        X: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        """Keep rows whose codes are copied, and index them by the modelled columns."""
        sources = X[np.sort(rng.permutation(len(X))[:COPY_ROWS])]
        self.source_ = sources[:, self.copied_]
        # without a modelled column no row is nearer than another
        if self.n_modelled_:
            nearest = NearestNeighbors(n_neighbors=min(COPY_NEAREST, len(sources)))
            self.neighbours_ = nearest.fit(self.metric_rows(sources))

    def transform(self, X: np.ndarray) -> PreparedTable:
        """Return K, V and seen for rows whose codes were all fitted."""
        # the table's own categories, then those that say "is missing"
        codes = np.empty((len(X), len(self.cards_)), dtype=np.int64)
        for k, j in enumerate(self.codes_):
            codes[:, k] = np.searchsorted(self.codes_[j], X[:, j])
        codes[:, len(self.codes_) :] = np.isnan(X[:, self.missing_])
        raw = X[:, list(self.maps_)]
        seen = ~np.isnan(raw)
        # a missing number gets 0, which among normal scores is the middle
        numbers = np.zeros(raw.shape)
        for k, scores in enumerate(self.maps_.values()):
            is_seen = seen[:, k]
            values = raw[is_seen, k]
            if self.normalise:
                numbers[is_seen, k] = scores.transform(values)
                continue
            numbers[is_seen, k] = values
            if len(values):
                numbers[~is_seen, k] = values.mean()
        return PreparedTable(codes, numbers, seen)

    def inverse(
        self,
        codes: np.ndarray,
        numbers: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Return rows as they were given to :meth:`fit`.

        Parameters
        ----------
        codes : ndarray of shape (n, m)
        numbers : ndarray of shape (n, q)
        rng : numpy.random.Generator
            Chooses among the nearest rows where a column is copied.
        """
        n = len(codes)
        X = np.tile(self.template_, (n, 1))
        for k, j in enumerate(self.codes_):
            present = self.codes_[j]
            X[:, j] = present[codes[:, k]]
        for k, j in enumerate(self.maps_):
            values = numbers[:, k]
            if self.normalise:
                values = self.maps_[j].inverse(values)
            X[:, j] = values
        # last: a number that is missing has a value until here
        for k, j in enumerate(self.missing_, start=len(self.codes_)):
            is_missing = codes[:, k] == 1
            X[is_missing, j] = np.nan
        if self.copied_:
            rows = self._copied_rows(codes, numbers, rng)
            X[:, self.copied_] = self.source_[rows]
        return X

    def _copied_rows(
        self,
        codes: np.ndarray,
        numbers: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Return, for each new row, the source row that gives its copied columns."""
        n = len(codes)
        if self.neighbours_ is None:
            return rng.integers(len(self.source_), size=n)
        metric_rows = self._metric_rows(codes, numbers)
        nearest = self.neighbours_.kneighbors(metric_rows, return_distance=False)
        drawn = rng.integers(nearest.shape[1], size=n)
        return nearest[np.arange(n), drawn]

    def metric_rows(self, X: np.ndarray) -> csr_matrix:
        """Return rows as vectors in which distance is meant, ``(n, e)``.

        Squared distances are Σ (z - z')² over the modelled numbers, plus the number of modelled
        categories that differ.
        """
        codes, numbers, _ = self.transform(X)
        return self._metric_rows(codes, numbers)

    def _metric_rows(
        self,
        codes: np.ndarray,
        numbers: np.ndarray,
    ) -> csr_matrix:
        """Return vectors whose squared distance is Σ (z - z')² + the number of other codes."""
        n, m = codes.shape
        # one-hot codes in CSR form: m entries a row, each in the block of its column; two rows
        # that differ in a code differ in two entries of √½, whose squares add up to 1
        cards = np.array(self.cards_, dtype=np.int64)
        block_starts = np.cumsum(cards) - cards
        indices = (codes + block_starts).ravel()
        values = np.full(n * m, 0.5**0.5)
        one_hot = csr_matrix(
            (values, indices, np.arange(n + 1) * m),
            shape=(n, sum(self.cards_)),
        )
        return hstack([one_hot, csr_matrix(numbers)], format="csr")
