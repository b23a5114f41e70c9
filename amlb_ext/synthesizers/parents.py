"""Fitted rows with nearly a wanted target, for :mod:`~amlb_ext.synthesizers.local`.

Each class here learns the fitted rows' targets. Its ``draw`` returns the position of a *parent*, a
row with nearly the wanted target, and the positions of rows among which a mate may be sought; the
parent may be one of them.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.spatial import KDTree

#: Most rows among which a mate is sought: drawn within the class, or nearest in the target.
CANDIDATES_CLASS, CANDIDATES_TARGET = 256, 32


class Parents(Protocol):
    """What :class:`~amlb_ext.synthesizers.local.LocalResampler` asks of the classes below."""

    def draw(
        self,
        target: Any,
        rng: np.random.Generator,
    ) -> tuple[int, np.ndarray]:
        """Return a parent and the rows that may be its mate."""


def learn_parents(y: np.ndarray, n_classes: int) -> Parents:
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
