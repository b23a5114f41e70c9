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
        self.codes_ = X[:, :m]
        self.numbers_ = X[:, m:]
        self.seen_ = ~np.isnan(self.numbers_)
        self.span_ = self.high_ - self.low_
        self.free_ = self._free_numbers()
        if np.array_equal(X, np.tile(X[0], (len(X), 1)), equal_nan=True):
            self._widen_ranges()
        # several targets have no order: their nearest neighbours come from a tree
        self.tree_ = KDTree(y) if y.ndim == 2 else None
        if self.tree_ is None:
            self.order_ = np.argsort(y, kind="stable")  # rows by target
            self.by_target_ = y[self.order_]
        self.filled_ = np.where(self.seen_, self.numbers_, 0.0)

    def _free_numbers(self) -> np.ndarray:
        """Return which numbers, (n, q), are no atoms: these interpolate and jitter."""
        least = max(2, 0.1 * len(self.numbers_))
        is_free = self.seen_.copy()
        for j in range(self.numbers_.shape[1]):
            seen = self.seen_[:, j]
            _, value, counts = np.unique(
                self.numbers_[seen, j], return_inverse=True, return_counts=True
            )
            is_free[seen, j] = counts[value] < least
        return is_free

    def _widen_ranges(self) -> None:
        """Give identical rows the unit interval as their range, and room for the jitter."""
        self.free_[:] = self.seen_ & (self.numbers_ != 0) & (self.numbers_ != 1)
        self.span_ = np.ones(len(self.span_))
        reach = np.where(self.free_[0], 3 * self.jitter, 0.0)
        # widened, but not beyond the unit interval that the rows keep themselves
        self.low_ = np.maximum(self.low_ - reach, np.minimum(self.low_, 0.0))
        self.high_ = np.minimum(self.high_ + reach, np.maximum(self.high_, 1.0))

    def _sample(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        pairs = np.array([self._draw_pair(target, rng) for target in y])
        a, b = pairs[:, 0], pairs[:, 1]
        w = rng.random((len(y), 1)) / 2
        takes_mate_code = rng.random((len(y), len(self.cards_))) < w
        codes = np.where(takes_mate_code, self.codes_[b], self.codes_[a])
        A, B = self.numbers_[a], self.numbers_[b]  # (n, q)
        # between two free numbers the new one lies on the way; an atom or a missing number has
        # nothing on its way, so one of both is taken over as it stands
        is_between = self.free_[a] & self.free_[b]
        takes_mate = rng.random(A.shape) < w
        numbers = np.where(is_between, A + w * (B - A), np.where(takes_mate, B, A))
        is_free = is_between | np.where(takes_mate, self.free_[b], self.free_[a])
        noise = rng.standard_normal(A.shape)
        jittered = numbers + self.jitter * self.span_ * noise
        return np.hstack([codes, np.where(is_free, jittered, numbers)])

    def _draw_pair(self, target: Any, rng: np.random.Generator) -> tuple[int, int]:
        """Return the positions of parent and mate; both the same if there is only one row."""
        if self.tree_ is not None:
            parent, candidates = self._near_targets(self.tree_, target, rng)
        elif self.n_classes_:
            parent, candidates = self._of_class(target, rng)
        else:
            parent, candidates = self._near_target(target, rng)
        candidates = candidates[candidates != parent]
        if not len(candidates):
            return int(parent), int(parent)
        distance = self._distances(candidates, parent)
        closest = np.argsort(distance, kind="stable")[: self.neighbours]
        return int(parent), int(candidates[rng.choice(closest)])

    def _distances(self, rows: np.ndarray, parent: int) -> np.ndarray:
        """Return Σ |a_j - b_j| / s_j + the number of other codes, and of holes only one has."""
        span = np.where(self.span_ > 0, self.span_, 1.0)
        seen_by_both = self.seen_[rows] & self.seen_[parent]
        steps = np.abs(self.filled_[rows] - self.filled_[parent]) / span
        other_codes = (self.codes_[rows] != self.codes_[parent]).sum(axis=1)
        other_holes = (self.seen_[rows] != self.seen_[parent]).sum(axis=1)
        distance = other_codes + np.where(seen_by_both, steps, 0.0).sum(axis=1)
        return np.asarray(distance + other_holes)

    # Three ways to find a parent with nearly the wanted target, and the rows that may be its mate.

    def _near_targets(
        self, tree: KDTree, target: np.ndarray, rng: np.random.Generator
    ) -> tuple[int, np.ndarray]:
        """Return one of the rows with the nearest vector of targets, and rows near to it."""
        size = min(CANDIDATES_TARGET, len(self.codes_))
        distances, rows = tree.query(target, size)
        # scipy returns scalars, not arrays, where one neighbour is asked for
        distances, rows = np.atleast_1d(distances), np.atleast_1d(rows)
        n_nearest = (distances <= distances[0]).sum()
        parent = int(rows[rng.integers(n_nearest)])
        return parent, np.atleast_1d(tree.query(tree.data[parent], size)[1])

    def _of_class(self, code: int, rng: np.random.Generator) -> tuple[int, np.ndarray]:
        """Return a row of the class and others of it; of all rows where the class has none."""
        first, last = self._target_range(code)
        if first == last:
            first, last = 0, len(self.by_target_)
        parent = int(self.order_[rng.integers(first, last)])
        size = min(last - first, CANDIDATES_CLASS)
        mates = rng.choice(last - first, size=size, replace=False)
        return parent, self.order_[first + mates]

    def _near_target(
        self, target: float, rng: np.random.Generator
    ) -> tuple[int, np.ndarray]:
        """Return a row with the nearest target, and the rows around it by target."""
        by_target = self.by_target_
        n = len(by_target)
        first, last = self._target_range(target)
        if first == last:  # between two fitted targets: the closer one
            around = [i for i in (first - 1, first) if 0 <= i < n]
            first = min(around, key=lambda i: float(abs(by_target[i] - target)))
            last = first + 1
        position = int(rng.integers(first, last))
        # as many on either side, as far as the ends allow
        start = max(0, position - CANDIDATES_TARGET // 2)
        start = min(start, max(0, n - CANDIDATES_TARGET))
        return int(self.order_[position]), self.order_[
            start : start + CANDIDATES_TARGET
        ]

    def _target_range(self, target: float) -> tuple[int, int]:
        """Return where the rows with exactly this target begin and end in the order by target."""
        first = np.searchsorted(self.by_target_, target)
        last = np.searchsorted(self.by_target_, target, "right")
        return int(first), int(last)
