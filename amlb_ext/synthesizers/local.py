"""Local resampling, for one row and more: a row moves a little, partly towards a neighbour.

Notation
--------
a : the parent, a fitted row with (nearly) the wanted target, or vector of targets;  b : its mate,
    one of the nearest rows to a among those with nearly the same target
w ~ U(0, 1/2) : how far the new row moves from a towards b;  s_j : range of column j
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import KDTree

from amlb_ext.core.errors import ConfigError
from amlb_ext.synthesizers.base import Synthesizer

#: Most rows among which a mate is sought: drawn within the class, or nearest in the target.
CANDIDATES_CLASS, CANDIDATES_TARGET = 256, 32


class LocalResampler(Synthesizer):
    """x_j = a_j + w (b_j - a_j) + jitter s_j N(0, 1) for numbers; categories from a or b.

    A value that a tenth of the rows share (at least two) is an atom, e.g. the zero of a
    zero-inflated column: it is kept or taken over from b (with probability w) as it stands, like
    a category, and so is a missing number. Constant columns stay constant.

    If all fitted rows are the same, or there is but one, the ranges are unknown: numbers are
    jittered by ``jitter`` of the unit interval, to which X is scaled, and ``low_``, ``high_``
    widen by three times that. A value of exactly 0 or 1 stays: it may well be a constant.

    Parameters
    ----------
    jitter : float
        Standard deviation of the noise, in column ranges.
    neighbours : int
        Nearest rows among which the mate is drawn.

    Raises
    ------
    ConfigError
        At ``fit``: a negative jitter, or no neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = np.array([[1.0, 0.2], [0.0, 0.3], [2.0, 0.8]]), np.array([0, 0, 1])
    >>> model = LocalResampler().fit(X, y, cards=(3,), n_classes=2, rng=rng)
    >>> new, _ = model.sample(50, rng, y=np.zeros(50))
    >>> set(new[:, 0].tolist()) == {0.0, 1.0}, bool(new[:, 1].max() < 0.5)
    (True, True)
    """

    def __init__(self, jitter: float = 0.025, neighbours: int = 5) -> None:
        self.jitter = jitter
        self.neighbours = neighbours

    def _fit(self, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> None:
        if self.jitter < 0 or self.neighbours < 1:
            raise ConfigError(
                f"jitter = {self.jitter}, neighbours = {self.neighbours}: "
                "at least 0 and at least 1 wanted"
            )
        m = len(self.cards_)
        self.codes_, self.numbers_ = X[:, :m], X[:, m:]
        self.seen_ = ~np.isnan(self.numbers_)
        self.span_ = self.high_ - self.low_
        least = max(2, 0.1 * len(X))
        self.free_ = self.seen_.copy()  # numbers that are not atoms: they interpolate and jitter
        for j in range(self.numbers_.shape[1]):
            seen = self.seen_[:, j]
            _, which, counts = np.unique(
                self.numbers_[seen, j], return_inverse=True, return_counts=True
            )
            self.free_[seen, j] = counts[which] < least
        if np.array_equal(X, np.tile(X[0], (len(X), 1)), equal_nan=True):
            self.free_[:] = self.seen_ & (self.numbers_ != 0) & (self.numbers_ != 1)
            self.span_ = np.ones(len(self.span_))
            reach = np.where(self.free_[0], 3 * self.jitter, 0.0)
            # widened, but not beyond the unit interval that the rows keep themselves
            self.low_ = np.maximum(self.low_ - reach, np.minimum(self.low_, 0.0))
            self.high_ = np.minimum(self.high_ + reach, np.maximum(self.high_, 1.0))
        self.tree_ = KDTree(y) if y.ndim == 2 else None
        if self.tree_ is None:
            self.order_ = np.argsort(y, kind="stable")  # rows by target
            self.by_target_ = y[self.order_]
        self.filled_ = np.where(self.seen_, self.numbers_, 0.0)

    def _sample(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        pairs = np.array([self._pair(target, rng) for target in y])
        a, b = pairs[:, 0], pairs[:, 1]
        w = rng.random((len(y), 1)) / 2
        codes = np.where(rng.random((len(y), len(self.cards_))) < w, self.codes_[b], self.codes_[a])
        A, B = self.numbers_[a], self.numbers_[b]
        free = self.free_[a] & self.free_[b]
        taken = rng.random(A.shape) < w
        numbers = np.where(free, A + w * (B - A), np.where(taken, B, A))
        free |= np.where(taken, self.free_[b], self.free_[a])
        noise = rng.standard_normal(A.shape)
        numbers = np.where(free, numbers + self.jitter * self.span_ * noise, numbers)
        return np.hstack([codes, numbers])

    def _pair(self, target: Any, rng: np.random.Generator) -> tuple[int, int]:
        """Return the positions of parent and mate; both the same if there is only one row."""
        near_target = self._by_target if self.tree_ is None else self._by_targets
        parent, near = near_target(target, rng)
        near = near[near != parent]
        if not len(near):
            return int(parent), int(parent)
        span = np.where(self.span_ > 0, self.span_, 1.0)
        both = self.seen_[near] & self.seen_[parent]
        apart = np.where(both, np.abs(self.filled_[near] - self.filled_[parent]) / span, 0.0)
        distance = (self.codes_[near] != self.codes_[parent]).sum(axis=1) + apart.sum(axis=1)
        distance += (self.seen_[near] != self.seen_[parent]).sum(axis=1)
        closest = np.argsort(distance, kind="stable")[: self.neighbours]
        return int(parent), int(near[rng.choice(closest)])

    def _by_targets(self, target: np.ndarray, rng: np.random.Generator) -> tuple[int, np.ndarray]:
        """Return a parent with the nearest vector of targets, and rows with targets near it."""
        assert self.tree_ is not None
        most = min(CANDIDATES_TARGET, len(self.codes_))
        away, near = (np.atleast_1d(found) for found in self.tree_.query(target, most))
        parent = near[rng.integers((away <= away[0]).sum())]
        return int(parent), np.atleast_1d(self.tree_.query(self.tree_.data[parent], most)[1])

    def _by_target(self, target: float, rng: np.random.Generator) -> tuple[int, np.ndarray]:
        """Return a parent with the target's class or the nearest target, and its possible mates."""
        by_target = self.by_target_
        n = len(by_target)
        first = int(np.searchsorted(by_target, target))
        last = int(np.searchsorted(by_target, target, "right"))
        if self.n_classes_:
            if first == last:  # a class without rows: any row
                first, last = 0, n
            parent = self.order_[rng.integers(first, last)]
            size = min(last - first, CANDIDATES_CLASS)
            near = self.order_[first + rng.choice(last - first, size=size, replace=False)]
        else:
            if first == last:  # between two fitted targets: the closer one
                around = [i for i in (first - 1, first) if 0 <= i < n]
                first = min(around, key=lambda i: float(abs(by_target[i] - target)))
                last = first + 1
            position = int(rng.integers(first, last))
            parent = self.order_[position]
            start = min(max(0, position - CANDIDATES_TARGET // 2), max(0, n - CANDIDATES_TARGET))
            near = self.order_[start : start + CANDIDATES_TARGET]
        return int(parent), near
