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
from amlb_ext.synthesizers.prep import NormalScores, PreparedTable, TablePrep, TargetScores

#: Most bytes of the correlation matrices. A limit of this machine's memory would let the same
#: request give other rows elsewhere.
MOST_BYTES = 4 << 30
#: Matrices that stand beside those that are kept, while a root is computed.
WORKING = 5
#: Rounds of reciprocal averaging; the order of the categories settles long before.
ROUNDS = 20


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
        table = self.prep_.transform(X)
        first = y.astype(float) if y.ndim == 1 else y.mean(axis=1)
        ranks = order_codes(table, self.prep_.cards_, first)
        self.codes_ = [np.argsort(rank) for rank in ranks]  # rank → code
        columns = np.full((len(X), len(ranks) + self.prep_.n_numbers_), np.nan)
        for j, rank in enumerate(ranks):
            columns[:, j] = rank[table.codes[:, j]]
        columns[:, len(ranks) :][table.seen] = table.numbers[table.seen]
        whole = [NormalScores(column[~np.isnan(column)]) for column in columns.T]
        # the margins and the root of the covariance for each class; -1: any other target
        self.margins_ = {-1: whole}
        if self.n_classes_ == 0:
            self.target_map_ = TargetScores(y)
            p, t = columns.shape[1], self.target_map_.transform(y)
            R = _correlation(np.column_stack([_scores(columns, whole), t]))
            r = R[:p, p:]
            self.r_ = r @ np.linalg.pinv(R[p:, p:], hermitian=True)
            self.roots_ = {-1: _root(R[:p, :p] - self.r_ @ r.T)}
            return
        self.r_ = np.zeros((columns.shape[1], 1))
        self.roots_ = {-1: _root(_correlation(_scores(columns, whole)))}
        within = np.zeros(columns.shape)
        for c in map(int, np.unique(y)):
            of_class = columns[y == c]
            self.margins_[c] = [
                NormalScores(column[~np.isnan(column)]) if (~np.isnan(column)).any() else margin
                for column, margin in zip(of_class.T, whole, strict=True)
            ]
            within[y == c] = _scores(of_class, self.margins_[c])
        pooled = _correlation(within)
        for c in map(int, np.unique(y)):
            n_c = (y == c).sum()
            own = n_c / (n_c + 2 * len(self.r_))  # the pooled matrix counts like 2p rows
            self.roots_[c] = _root(own * _correlation(within[y == c]) + (1 - own) * pooled)

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
            group = np.full(len(y), -1)
            centre = self.target_map_.transform(y).reshape(len(y), -1) @ self.r_.T
        else:
            group = np.where(np.isin(y, list(self.margins_)), y, -1)
            centre = np.zeros(V.shape)
        for c in map(int, np.unique(group)):
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
    counts = [np.bincount(codes[:, j], minlength=card) for j, card in enumerate(cards)]
    score = start if np.ptp(start) > 0 else np.arange(n, dtype=float)
    for _ in range(ROUNDS):
        score = score - score.mean()
        score = score / (score.std() or 1.0)
        new = numbers @ (numbers.T @ score) / n
        for j, count in enumerate(counts):
            new = new + (np.bincount(codes[:, j], score, len(count)) / count)[codes[:, j]]
        score = new
    return [
        np.argsort(np.argsort(np.bincount(codes[:, j], score, len(count)) / count, kind="stable"))
        for j, count in enumerate(counts)
    ]


def _scores(columns: np.ndarray, margins: list[NormalScores]) -> np.ndarray:
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
    Z = (V - V.mean(axis=0)) / np.where(scale > 1e-12, scale, 1.0)
    Z[:, scale <= 1e-12] = 0.0
    S = np.atleast_2d(ledoit_wolf(Z, assume_centered=True)[0])
    R = S / np.sqrt(np.outer(np.diag(S), np.diag(S)) + 1e-300)
    np.fill_diagonal(R, 1.0)
    return R


def _root(S: np.ndarray) -> np.ndarray:
    """Return A with A Aᵀ = S, negative eigenvalues (rounding) set to zero."""
    if not S.size:
        return S
    values, vectors = np.linalg.eigh(S)
    return vectors * np.sqrt(values.clip(0))
