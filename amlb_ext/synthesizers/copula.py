"""Gaussian copula: exact margins and one correlation matrix, conditioned on the target.

Notation
--------
V : (n, p) normal scores of ordered categories and of numbers, p = m + q
R : (p, p) their correlation, shrunk (Ledoit & Wolf 2004, J. Multivariate Analysis 88)
t : (n, k) normal scores of the regression targets, mostly one;  r = corr(V, t);  S = corr(t)
"""

# Its lines stay dense: they are the formulas of the notation above.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.covariance import ledoit_wolf

from amlb_ext.core.errors import ConfigError
from amlb_ext.synthesizers.base import Synthesizer
from amlb_ext.synthesizers.prep import (
    NormalScores,
    PreparedTable,
    TablePrep,
    TargetScores,
)

#: Most bytes of the correlation matrices. A limit of this machine's memory would let the same
#: request give other rows elsewhere.
MOST_BYTES = 4 << 30
#: Matrices that stand beside those that are kept, while a root is computed.
WORKING = 5
#: Rounds of reciprocal averaging; the order of the categories settles long before.
ROUNDS = 20
#: Key of what holds for a regression, and for a class that no fitted row has.
ANY_CLASS = -1


@dataclass(eq=False, repr=False)
class GaussianCopula(Synthesizer):
    """Ranks to normal scores, their correlation, and back.

    Regression: the target's score is one more coordinate of the Gaussian, and rows are drawn
    from V | t ~ N(r S⁻¹ t, R - r S⁻¹ rᵀ), S being 1 for one target. Classification: margins and
    correlation are the class's own; the correlation of a small class leans on the one pooled over
    classes.

    A category is a Gaussian cut at thresholds, its codes ordered along the first axis of the
    mixed table (:func:`order_codes`).

    Parameters
    ----------
    max_categories : int
        See :class:`~amlb_ext.synthesizers.prep.TablePrep`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(300)
    >>> X = np.column_stack([y > 0.5, y + 0.01 * rng.standard_normal(300)]).astype(float)
    >>> model = GaussianCopula().fit(X, y, cards=(2,), n_classes=0, rng=rng)
    >>> new, _ = model.sample(3, rng, y=np.array([0.1, 0.5, 0.9]))
    >>> bool(np.abs(new[:, 1] - [0.1, 0.5, 0.9]).max() < 0.15)
    True
    """

    max_categories: int = 100

    def _fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        self.prep_ = TablePrep(self.max_categories)
        self.prep_.fit(X, len(self.cards_), rng)
        n_fitted_classes = len(np.unique(y)) if self.n_classes_ else 1
        self._check_memory(n_roots=n_fitted_classes)
        columns = self._ordered_columns(X, y)
        # the margins and the root of the covariance, for all rows and for each class
        all_margins = [NormalScores(column[~np.isnan(column)]) for column in columns.T]
        self.margins_ = {ANY_CLASS: all_margins}
        self.roots_: dict[int, np.ndarray] = {}
        if self.n_classes_ == 0:
            self._fit_regression(columns, y)
        else:
            self._fit_classes(columns, y)

    def _ordered_columns(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return ranks of categories beside numbers, (n, p), where NaN is a missing number."""
        table = self.prep_.transform(X)
        # several targets start from their mean
        first_score = y.reshape(len(y), -1).mean(axis=1)
        ranks = order_codes(table, self.prep_.cards_, first_score)
        # the way back: rank → code
        self.codes_ = [np.argsort(rank) for rank in ranks]
        ordered = np.empty(table.codes.shape)
        for j, rank in enumerate(ranks):
            ordered[:, j] = rank[table.codes[:, j]]
        numbers = np.where(table.seen, table.numbers, np.nan)
        return np.hstack([ordered, numbers])

    def _fit_regression(self, columns: np.ndarray, y: np.ndarray) -> None:
        """Learn r S⁻¹ and the root of R - r S⁻¹ rᵀ."""
        p = columns.shape[1]
        self.target_map_ = TargetScores(y)
        V = _normal_scores(columns, self.margins_[ANY_CLASS])
        t = self.target_map_.transform(y)
        coordinates = np.column_stack([V, t])
        joint = _shrunk_correlation(coordinates)
        R, r, S = joint[:p, :p], joint[:p, p:], joint[p:, p:]
        # pseudo-inverse: two targets may be copies of each other
        self.r_ = r @ np.linalg.pinv(S, hermitian=True)
        self.roots_[ANY_CLASS] = _matrix_root(R - self.r_ @ r.T)

    def _fit_classes(self, columns: np.ndarray, y: np.ndarray) -> None:
        """Learn the margins and the root of each class, and those of all rows."""
        p = columns.shape[1]
        self.r_ = np.zeros((p, 1))
        all_margins = self.margins_[ANY_CLASS]
        all_scores = _normal_scores(columns, all_margins)
        all_rows = _shrunk_correlation(all_scores)
        self.roots_[ANY_CLASS] = _matrix_root(all_rows)
        # each row's scores by the margins of its own class
        scores = np.zeros(columns.shape)
        classes = np.unique(y).tolist()
        for c in classes:
            is_class = y == c
            rows = columns[is_class]
            margins = []
            for column, of_all_rows in zip(rows.T, all_margins, strict=True):
                seen = column[~np.isnan(column)]
                # a column that the class lacks has the margin of all rows
                margins.append(NormalScores(seen) if len(seen) else of_all_rows)
            scores[is_class] = _normal_scores(rows, margins)
            self.margins_[c] = margins
        pooled = _shrunk_correlation(scores)
        for c in classes:
            is_class = y == c
            class_correlation = _shrunk_correlation(scores[is_class])
            n_c = is_class.sum()
            # the pooled matrix counts like 2p rows
            share = n_c / (n_c + 2 * p)
            mixed = share * class_correlation + (1 - share) * pooled
            self.roots_[c] = _matrix_root(mixed)

    def _check_memory(self, n_roots: int) -> None:
        """Refuse a table whose correlations would not fit, before anything is allocated."""
        p = self.prep_.n_modelled_
        matrix_bytes = 8 * p**2
        needed = matrix_bytes * (WORKING + n_roots)
        if needed > MOST_BYTES:
            needed_gib = needed / 2**30
            most_gib = MOST_BYTES / 2**30
            raise ConfigError(
                f"the correlations of {p:,} columns need {needed_gib:,.1f} GiB in a copula, "
                f"more than {most_gib:.0f} GiB",
                "use --synthesizer local or vae, or leave out columns",
            )

    def _sample(
        self,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        n = len(y)
        p, _ = self.r_.shape
        noise = rng.standard_normal((n, p))
        if self.n_classes_ == 0:
            group = np.full(n, ANY_CLASS)
            t = self.target_map_.transform(y)
            centre = t.reshape(n, -1) @ self.r_.T
        else:
            is_fitted = np.isin(y, list(self.margins_))
            group = np.where(is_fitted, y, ANY_CLASS)
            centre = np.zeros((n, p))
        columns = np.empty((n, p))
        for c in np.unique(group).tolist():
            rows = group == c
            root = self.roots_[c]
            V = centre[rows] + noise[rows] @ root.T
            for j, margin in enumerate(self.margins_[c]):
                columns[rows, j] = margin.inverse(V[:, j])
        m = len(self.codes_)
        codes = np.empty((n, m), dtype=np.int64)
        for j, code_of_rank in enumerate(self.codes_):
            # what a margin gives back for a category is a rank
            ranks = np.rint(columns[:, j])
            codes[:, j] = code_of_rank[ranks.astype(int)]
        numbers = columns[:, m:]
        return self.prep_.inverse(codes, numbers, rng)


def order_codes(
    table: PreparedTable,
    cards: tuple[int, ...],
    start: np.ndarray,
) -> list[np.ndarray]:
    """Order the codes of each category along the first axis of the mixed table.

    Reciprocal averaging (Hill 1973, J. Ecology 61): rows get the sum of their columns' scores;
    a code gets the mean score of its rows, a number its regression on the score.

    Parameters
    ----------
    table : PreparedTable
    cards : tuple of int
    start : ndarray of shape (n,)
        First guess of the rows' scores, e.g. the target; a constant one is replaced.

    Returns
    -------
    list of ndarray
        ``rank[j][code]``, a permutation of 0..cards[j]-1.

    Examples
    --------
    >>> import numpy as np
    >>> v = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> table = PreparedTable(np.array([[2], [0], [1], [1]]), v - v.mean(), np.ones(v.shape, bool))
    >>> [rank.tolist() for rank in order_codes(table, (3,), v[:, 0])]
    [[1, 2, 0]]
    """
    n = len(table.codes)
    # each column's codes, and how many rows have each code
    columns = list(table.codes.T)
    pairs = zip(columns, cards, strict=True)
    counts = [np.bincount(column, minlength=card) for column, card in pairs]

    def code_means(j: int, score: np.ndarray) -> np.ndarray:
        """Return the mean score of each code's rows; every code has one (:mod:`.prep`)."""
        sums = np.bincount(columns[j], weights=score, minlength=cards[j])
        return sums / counts[j]

    score = start
    if np.ptp(start) == 0:
        score = np.arange(n, dtype=float)
    for _ in range(ROUNDS):
        score = score - score.mean()
        score = score / (score.std() or 1.0)
        # of a number: its regression on the score
        slopes = table.numbers.T @ score
        total = table.numbers @ slopes / n
        for j, column in enumerate(columns):
            total = total + code_means(j, score)[column]
        score = total
    orders = [
        np.argsort(code_means(j, score), kind="stable") for j in range(len(cards))
    ]
    # the inverse of a permutation
    return [np.argsort(order) for order in orders]


def _normal_scores(
    columns: np.ndarray,
    margins: list[NormalScores],
) -> np.ndarray:
    """Return V; a missing number scores 0, the middle."""
    V = np.zeros(columns.shape)
    for j, margin in enumerate(margins):
        column = columns[:, j]
        seen = ~np.isnan(column)
        V[seen, j] = margin.transform(column[seen])
    return V


def _shrunk_correlation(V: np.ndarray) -> np.ndarray:
    """Return the shrunk correlation of the columns of V; constant columns correlate with none."""
    p = V.shape[1]
    if len(V) < 2 or p == 0:
        return np.eye(p)
    scale = V.std(axis=0)
    is_constant = scale <= 1e-12
    centred = V - V.mean(axis=0)
    scale[is_constant] = 1.0
    Z = centred / scale
    Z[:, is_constant] = 0.0
    covariance, _ = ledoit_wolf(Z, assume_centered=True)
    # scikit-learn returns a number for a single column
    S = np.atleast_2d(covariance)
    variances = np.diag(S)
    # 1e-300: the variance of a constant column is 0, and 0 / 0 would spread as NaN
    products = np.outer(variances, variances) + 1e-300
    R = S / np.sqrt(products)
    np.fill_diagonal(R, 1.0)
    return R


def _matrix_root(S: np.ndarray) -> np.ndarray:
    """Return A with A Aᵀ = S, negative eigenvalues (rounding) set to zero."""
    if not S.size:
        return S
    values, vectors = np.linalg.eigh(S)
    scale = np.sqrt(values.clip(0))
    return vectors * scale
