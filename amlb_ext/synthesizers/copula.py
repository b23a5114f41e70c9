"""Gaussian copula: exact margins and one correlation matrix, conditioned on the target.

Notation
--------
V : (n, p) normal scores of ordered categories and of numbers, p = m + q
R : (p, p) their correlation, shrunk (Ledoit & Wolf 2004, J. Multivariate Analysis 88)
t : (n, k) normal scores of the regression targets, mostly one;  r = corr(V, t);  S = corr(t)
"""

from __future__ import annotations

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

    def __init__(self, max_categories: int = 100) -> None:
        self.max_categories = max_categories

    def _fit(self, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> None:
        self.prep_ = TablePrep(self.max_categories).fit(X, len(self.cards_), rng)
        self._check_memory(len(np.unique(y)) if self.n_classes_ else 1)
        columns = self._ordered_columns(X, y)
        margins = [NormalScores(column[~np.isnan(column)]) for column in columns.T]
        # the margins and the root of the covariance for each class
        self.margins_ = {ANY_CLASS: margins}
        if self.n_classes_ == 0:
            self._fit_regression(columns, y)
        else:
            self._fit_classes(columns, y)

    def _ordered_columns(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return ranks of categories beside numbers, (n, p), where NaN is a missing number."""
        table = self.prep_.transform(X)
        first_score = y.astype(float) if y.ndim == 1 else y.mean(axis=1)
        ranks = order_codes(table, self.prep_.cards_, first_score)
        m = len(ranks)
        self.codes_ = [np.argsort(rank) for rank in ranks]  # rank → code
        columns = np.full((len(X), m + self.prep_.n_numbers_), np.nan)
        for j, rank in enumerate(ranks):
            columns[:, j] = rank[table.codes[:, j]]
        columns[:, m:][table.seen] = table.numbers[table.seen]
        return columns

    def _fit_regression(self, columns: np.ndarray, y: np.ndarray) -> None:
        """Learn r S⁻¹ and the root of R - r S⁻¹ rᵀ."""
        p = columns.shape[1]
        self.target_map_ = TargetScores(y)
        scores = _normal_scores(columns, self.margins_[ANY_CLASS])
        joint = _correlation(np.column_stack([scores, self.target_map_.transform(y)]))
        R, r, S = joint[:p, :p], joint[:p, p:], joint[p:, p:]
        # pseudo-inverse: two targets may be copies of each other
        self.r_ = r @ np.linalg.pinv(S, hermitian=True)
        self.roots_ = {ANY_CLASS: _matrix_root(R - self.r_ @ r.T)}

    def _fit_classes(self, columns: np.ndarray, y: np.ndarray) -> None:
        """Learn the margins and the root of each class, and those of all rows."""
        p = columns.shape[1]
        all_margins = self.margins_[ANY_CLASS]
        self.r_ = np.zeros((p, 1))
        all_scores = _normal_scores(columns, all_margins)
        self.roots_ = {ANY_CLASS: _matrix_root(_correlation(all_scores))}
        classes = [int(c) for c in np.unique(y)]
        scores = np.zeros(columns.shape)  # each row's by the margins of its own class
        for c in classes:
            rows = columns[y == c]
            self.margins_[c] = _class_margins(rows, all_margins)
            scores[y == c] = _normal_scores(rows, self.margins_[c])
        pooled = _correlation(scores)
        for c in classes:
            n_c = (y == c).sum()
            share = n_c / (n_c + 2 * p)  # the pooled matrix counts like 2p rows
            class_correlation = _correlation(scores[y == c])
            self.roots_[c] = _matrix_root(
                share * class_correlation + (1 - share) * pooled
            )

    def _check_memory(self, roots: int) -> None:
        """Refuse a table whose correlations would not fit, before anything is allocated."""
        p = len(self.prep_.cards_) + self.prep_.n_numbers_
        needed = 8 * p**2 * (WORKING + roots)
        if needed > MOST_BYTES:
            raise ConfigError(
                f"the correlations of {p:,} columns need {needed / 2**30:,.1f} GiB in a copula, "
                f"more than {MOST_BYTES / 2**30:.0f} GiB",
                "use --synthesizer local or vae, or leave out columns",
            )

    def _sample(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        V = rng.standard_normal((len(y), len(self.r_)))
        if self.n_classes_ == 0:
            group = np.full(len(y), ANY_CLASS)
            t = self.target_map_.transform(y).reshape(len(y), -1)
            centre = t @ self.r_.T
        else:
            group = np.where(np.isin(y, list(self.margins_)), y, ANY_CLASS)
            centre = np.zeros(V.shape)
        for c in (int(value) for value in np.unique(group)):
            rows = group == c
            V[rows] = centre[rows] + V[rows] @ self.roots_[c].T
            for j, margin in enumerate(self.margins_[c]):
                V[rows, j] = margin.inverse(V[rows, j])
        m = len(self.codes_)
        codes = np.empty((len(y), m), dtype=np.int64)
        for j, code in enumerate(self.codes_):
            codes[:, j] = code[np.rint(V[:, j]).astype(int)]
        return self.prep_.inverse(codes, V[:, m:], rng)


def order_codes(
    table: PreparedTable, cards: tuple[int, ...], start: np.ndarray
) -> list[np.ndarray]:
    """Order the codes of each category along the first axis of the mixed table.

    Reciprocal averaging (Hill 1973, J. Ecology 61): rows get the sum of their columns' scores;
    a code gets the mean score of its rows, a number its regression on the score.

    Parameters
    ----------
    table : Prepared
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
    codes, numbers, _ = table
    n = len(codes)

    def code_means(j: int, score: np.ndarray) -> np.ndarray:
        """Return the mean score of each code's rows; every code has one (:mod:`.prep`)."""
        counts = np.bincount(codes[:, j], minlength=cards[j])
        return np.bincount(codes[:, j], score, cards[j]) / counts

    score = start if np.ptp(start) > 0 else np.arange(n, dtype=float)
    for _ in range(ROUNDS):
        score = score - score.mean()
        score = score / (score.std() or 1.0)
        total = numbers @ (numbers.T @ score) / n
        for j in range(len(cards)):
            total = total + code_means(j, score)[codes[:, j]]
        score = total
    ranks = []
    for j in range(len(cards)):
        order = np.argsort(code_means(j, score), kind="stable")
        ranks.append(np.argsort(order))  # the inverse of a permutation
    return ranks


def _class_margins(
    rows: np.ndarray, all_margins: list[NormalScores]
) -> list[NormalScores]:
    """Return the margins of one class; a column that it lacks has the margin of all rows."""
    margins = []
    for column, all_rows in zip(rows.T, all_margins, strict=True):
        seen = column[~np.isnan(column)]
        margins.append(NormalScores(seen) if len(seen) else all_rows)
    return margins


def _normal_scores(columns: np.ndarray, margins: list[NormalScores]) -> np.ndarray:
    """Return V; a missing number scores 0, the middle."""
    V = np.zeros(columns.shape)
    for j, margin in enumerate(margins):
        seen = ~np.isnan(columns[:, j])
        V[seen, j] = margin.transform(columns[seen, j])
    return V


def _correlation(V: np.ndarray) -> np.ndarray:
    """Return the shrunk correlation of the columns of V; constant columns correlate with none."""
    p = V.shape[1]
    if len(V) < 2 or p == 0:
        return np.eye(p)
    scale = V.std(axis=0)
    is_constant = scale <= 1e-12
    Z = (V - V.mean(axis=0)) / np.where(is_constant, 1.0, scale)
    Z[:, is_constant] = 0.0
    S = np.atleast_2d(ledoit_wolf(Z, assume_centered=True)[0])
    variances = np.diag(S)
    # 1e-300: the variance of a constant column is 0, and 0 / 0 would spread as NaN
    R = S / np.sqrt(np.outer(variances, variances) + 1e-300)
    np.fill_diagonal(R, 1.0)
    return R


def _matrix_root(S: np.ndarray) -> np.ndarray:
    """Return A with A Aᵀ = S, negative eigenvalues (rounding) set to zero."""
    if not S.size:
        return S
    values, vectors = np.linalg.eigh(S)
    return vectors * np.sqrt(values.clip(0))
