"""Local resampling, for one row and more: a row moves a little, partly towards a neighbour.

Notation
--------
a : the parent, a fitted row with (nearly) the wanted target, or vector of targets;  b : its mate,
    one of the nearest rows to a among those with nearly the same target
w ~ U(0, 1/2) : how far the new row moves from a towards b;  s_j : range of column j
"""

# Its lines stay dense: they mix columns of two rows, number by number.

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from amlb_ext.core.errors import ConfigError
from amlb_ext.synthesizers.base import Synthesizer

#: Most rows among which a mate is sought: drawn within the class, or nearest in the target.
CANDIDATES_CLASS, CANDIDATES_TARGET = 256, 32


def learn_parents(
    y: np.ndarray, n_classes: int
) -> ParentsByClass | ParentsByTarget | ParentsByTargets:
    """Return the search for parents that suits the fitted targets."""
    if y.ndim == 2:
        return ParentsByTargets(y)
    if n_classes:
        return ParentsByClass(y)
    return ParentsByTarget(y)


class _SortedTargets:
    """Rows in the order of their target.

    Parameters
    ----------
    y : ndarray of shape (n,)
    """

    def __init__(self, y: np.ndarray) -> None:
        self.rows = np.argsort(y, kind="stable")
        self.values = y[self.rows]

    def find_range(self, target: float) -> tuple[int, int]:
        """Return where the rows with exactly this target begin and end in the order."""
        first = np.searchsorted(self.values, target)
        last = np.searchsorted(self.values, target, "right")
        return int(first), int(last)


class ParentsByClass(_SortedTargets):
    """Rows of the class; all rows where the class has none."""

    def draw(
        self,
        target: int,
        rng: np.random.Generator,
    ) -> tuple[int, np.ndarray]:
        """Return a row of the class and others of it."""
        first, last = self.find_range(target)
        if first == last:
            first, last = 0, len(self.values)
        position = rng.integers(first, last)
        parent = int(self.rows[position])
        n_rows = last - first
        n_candidates = min(n_rows, CANDIDATES_CLASS)
        candidates = rng.choice(n_rows, size=n_candidates, replace=False)
        return parent, self.rows[first + candidates]


class ParentsByTarget(_SortedTargets):
    """Rows with the nearest number as their target."""

    def draw(
        self,
        target: float,
        rng: np.random.Generator,
    ) -> tuple[int, np.ndarray]:
        """Return a row with the nearest target, and the rows around it by target."""
        first, last = self.find_range(target)
        if first == last:
            first = self._find_nearest(target, first)
            last = first + 1
        position = int(rng.integers(first, last))
        # as many on either side, as far as the ends allow
        last_start = len(self.rows) - CANDIDATES_TARGET
        start = position - CANDIDATES_TARGET // 2
        start = max(0, min(start, last_start))
        candidates = self.rows[start : start + CANDIDATES_TARGET]
        return int(self.rows[position]), candidates

    def _find_nearest(self, target: float, right: int) -> int:
        """Return the closer of two neighbours, the lower one if both are as close.

        Parameters
        ----------
        target : float
            A target that no row has.
        right : int
            Where it would stand among the sorted ones.
        """
        left = right - 1
        if left < 0:
            return right
        if right == len(self.values):
            return left
        to_left = abs(self.values[left] - target)
        to_right = abs(self.values[right] - target)
        return left if to_left <= to_right else right


class ParentsByTargets:
    """Rows with the nearest vector of targets. Vectors have no order: they are found by a tree.

    Parameters
    ----------
    y : ndarray of shape (n, k)
    """

    def __init__(self, y: np.ndarray) -> None:
        self.tree = KDTree(y)
        self.n_candidates = min(CANDIDATES_TARGET, len(y))

    def draw(
        self,
        target: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[int, np.ndarray]:
        """Return one of the rows with the nearest vector of targets, and rows near to it."""
        distances, rows = self._query_tree(target)
        n_nearest = (distances <= distances[0]).sum()
        drawn = rng.integers(n_nearest)
        parent = int(rows[drawn])
        parent_target = self.tree.data[parent]
        _, candidates = self._query_tree(parent_target)
        return parent, candidates

    def _query_tree(self, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the distances of the nearest rows, and these rows."""
        distances, rows = self.tree.query(target, k=self.n_candidates)
        # scipy returns scalars, not arrays, where one neighbour is asked for
        return np.atleast_1d(distances), np.atleast_1d(rows)


# The synthesizer.


#: A value is an atom from this many rows on, as a count and as a share of the rows.
ATOM_ROWS, ATOM_SHARE = 2, 0.1
#: Identical rows give no range: theirs reaches this many standard deviations of the jitter.
REACH = 3


@dataclass(eq=False, repr=False)
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

    jitter: float = 0.025
    neighbours: int = 5

    def _fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        if self.jitter < 0:
            raise ConfigError(f"jitter must be at least 0, got {self.jitter}")
        if self.neighbours < 1:
            raise ConfigError(f"neighbours must be at least 1, got {self.neighbours}")
        n_categorical = len(self.cards_)
        self.codes_ = X[:, :n_categorical]
        self.numbers_ = X[:, n_categorical:]
        self.seen_ = ~np.isnan(self.numbers_)
        # with a 0 in place of a hole, since a difference of NaN is NaN
        self.filled_ = np.where(self.seen_, self.numbers_, 0.0)
        self.span_ = self.high_ - self.low_
        self.free_ = self._free_numbers()
        # holes included
        if np.array_equal(X, np.broadcast_to(X[0], X.shape), equal_nan=True):
            self._widen_ranges()
        self.parents_ = learn_parents(y, self.n_classes_)

    def _free_numbers(self) -> np.ndarray:
        """Return which numbers, (n, q), are no atoms: these interpolate and jitter."""
        n_rows, n_numbers = self.numbers_.shape
        least = max(ATOM_ROWS, ATOM_SHARE * n_rows)
        is_free = self.seen_.copy()
        for j in range(n_numbers):
            seen = self.seen_[:, j]
            _, value_of_row, counts = np.unique(
                self.numbers_[seen, j],
                return_inverse=True,
                return_counts=True,
            )
            is_rare = counts < least
            is_free[seen, j] = is_rare[value_of_row]
        return is_free

    def _widen_ranges(self) -> None:
        """Give identical rows the unit interval as their range, and room for the jitter."""
        # an exact 0 or 1 may well be a constant
        is_bound = np.isin(self.numbers_, (0, 1))
        self.free_ = self.seen_ & ~is_bound
        self.span_ = np.ones(len(self.span_))
        reach = REACH * self.jitter * self.free_[0]
        # widened, but not beyond the unit interval that the rows keep themselves
        lowest = np.minimum(self.low_, 0.0)
        highest = np.maximum(self.high_, 1.0)
        self.low_ = np.maximum(self.low_ - reach, lowest)
        self.high_ = np.minimum(self.high_ + reach, highest)

    def _sample(
        self,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        n = len(y)
        # positions of the parents and of their mates
        a = np.empty(n, dtype=np.int64)
        b = np.empty(n, dtype=np.int64)
        for i, target in enumerate(y):
            a[i], b[i] = self._draw_pair(target, rng)
        # how far the new row moves towards its mate
        w = rng.random((n, 1)) / 2
        # each code of the parent or, with probability w, of the mate
        parent_codes = self.codes_[a]
        takes_mate = rng.random(parent_codes.shape) < w
        codes = np.where(takes_mate, self.codes_[b], parent_codes)
        # numbers between those of parent and mate, and jittered: (n, q)
        A = self.numbers_[a]
        B = self.numbers_[b]
        # between two free numbers the new one lies on the way; an atom or a missing number has
        # nothing on its way, so one of both is taken over as it stands
        A_is_free, B_is_free = self.free_[a], self.free_[b]
        is_between = A_is_free & B_is_free
        takes_mate = rng.random(A.shape) < w
        taken = np.where(takes_mate, B, A)
        numbers = np.where(is_between, A + w * (B - A), taken)
        is_free = is_between | np.where(takes_mate, B_is_free, A_is_free)
        noise = self.jitter * self.span_ * rng.standard_normal(A.shape)
        return np.hstack([codes, np.where(is_free, numbers + noise, numbers)])

    def _draw_pair(
        self,
        target: Any,
        rng: np.random.Generator,
    ) -> tuple[int, int]:
        """Return the positions of parent and mate; both the same if there is only one row."""
        parent, candidates = self.parents_.draw(target, rng)
        candidates = candidates[candidates != parent]
        if not len(candidates):
            return parent, parent
        distance = self._mate_distances(candidates, parent)
        closest = np.argsort(distance, kind="stable")[: self.neighbours]
        return parent, int(candidates[rng.choice(closest)])

    def _mate_distances(self, rows: np.ndarray, parent: int) -> np.ndarray:
        """Return Σ |a_j - b_j| / s_j + the number of other codes, and of holes only one has."""
        # the range of a constant column is 0, and so are its steps
        span = np.where(self.span_ <= 0, 1.0, self.span_)
        seen, parent_seen = self.seen_[rows], self.seen_[parent]
        steps = np.abs(self.filled_[rows] - self.filled_[parent]) / span
        known_steps = np.where(seen & parent_seen, steps, 0.0)
        is_other_code = self.codes_[rows] != self.codes_[parent]
        distance = is_other_code.sum(axis=1) + known_steps.sum(axis=1)
        return distance + (seen != parent_seen).sum(axis=1)
