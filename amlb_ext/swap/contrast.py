"""The change of loss from F to G over a group of rows, with the influence of each row.

Notation
--------
d : (n,) loss of G minus loss of F
w : (n,) 1 for the rows of a group, 0 for others
psi : (n,) influence of each row on a group's change; the variance is the sum of its squares, by
    cluster where rows come in groups
k : rows of a group; v_k, v : variance of its change, and of one row's change in the whole table

A group in which nearly nothing changes may hold a few rows that change much, and those at hand need
not show them. So a group counts as if :data:`MIXED_ROWS` rows of the whole table stood beside its
own, (k v_k + 20 v / k) / (k + 20), where that is more than v_k. Without it the intervals of the
foreseen worst fifth of a model that is better everywhere covered .73. For the same reason a group
in which nothing changes has no interval where fewer than ten rows change in the whole table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.stats import t as student

from amlb_ext.core.auc import misranked_by

#: Fewer rows or clusters that change tell nothing of their own spread.
FEWEST_CHANGED = 10
#: Rows of the whole table whose variance is mixed into that of a group.
MIXED_ROWS = 20


@dataclass(frozen=True, kw_only=True)
class Change:
    """How much the mean loss of a group changes where G replaces F.

    Attributes
    ----------
    value : float
        In the unit of the loss; below 0 the loss falls.
    se : float
        Standard error; infinite where the group is too small to tell.
    df : float
        Degrees of freedom of its t distribution.
    share : float
        Of all rows, that the group holds.
    """

    value: float
    se: float
    df: float
    share: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the two-sided interval; infinite limits where nothing is known."""
        half = float(student.ppf(0.5 + level / 2, self.df)) * self.se
        return self.value - half, self.value + half

    def upper(self, level: float = 0.95) -> float:
        """Return the one-sided upper limit."""
        return self.value + float(student.ppf(level, self.df)) * self.se

    def p_worse(self) -> float:
        """Return the one-sided p-value of "the loss does not rise"."""
        if self.se == 0:
            return 0.0 if self.value > 0 else 1.0
        return float(student.sf(self.value / self.se, self.df))


class Contrast(ABC):
    """The losses of F and of G on the same rows.

    Attributes
    ----------
    d : ndarray of shape (n,)
        What is learnt: each row's own change.
    clusters : ndarray of shape (n,), int, or None
        Codes ``0..K-1`` of rows that belong together.
    is_of_rows : bool
        Whether a group's change is the mean of its rows' own d.
    """

    is_of_rows = True

    #: By how much variances grow where the rows were predicted out of fold.
    widening = 1.0

    def __init__(self, d: np.ndarray, clusters: np.ndarray | None) -> None:
        self.d = d
        self.clusters = clusters

    def __len__(self) -> int:
        return len(self.d)

    @abstractmethod
    def loss_of_f(self, inside: np.ndarray) -> float:
        """Return the mean loss of F over a group, on the scale of its change.

        Parameters
        ----------
        inside : ndarray of shape (n,), bool
        """

    @abstractmethod
    def mean(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the change of a group, and the influence of each row on it.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            0 or 1.
        """

    def change(self, weights: np.ndarray) -> Change:
        """Return the change of a group of rows."""
        value, influence = self.mean(weights)
        changed = (weights > 0) & (self.d != 0)
        se, df = standard_error(influence, self.clusters, changed)
        n_inside = float(weights.sum())
        if np.isfinite(se) and n_inside:
            se, df = self._mixed_error(se, df, n_inside)
        se *= float(np.sqrt(self.widening))
        return Change(value=value, se=se, df=df, share=float(weights.mean()))

    def _mixed_error(self, se: float, df: float, k: float) -> tuple[float, float]:
        """Return the error of a group with rows of the whole table in it, if that is larger.

        Its degrees of freedom are Satterthwaite's.
        """
        row_variance, df_of_rows = self._of_one_row
        if not np.isfinite(row_variance):
            # the whole table changes too little to tell what rows like these would do
            return float("inf"), 1.0
        own = k * se**2 / (k + MIXED_ROWS)
        other = MIXED_ROWS * row_variance / k / (k + MIXED_ROWS)
        if own + other <= se**2:
            return se, df
        df = (own + other) ** 2 / (own**2 / df + other**2 / df_of_rows)
        return float(np.sqrt(own + other)), float(df)

    @cached_property
    def _of_one_row(self) -> tuple[float, float]:
        """v and its degrees of freedom; infinite where the whole table does not tell it."""
        _, influence = self.mean(np.ones(len(self)))
        se, df = standard_error(influence, self.clusters, self.d != 0)
        return len(self) * se**2, df


class RowContrast(Contrast):
    """Losses of single rows."""

    def __init__(
        self,
        loss_f: np.ndarray,
        loss_g: np.ndarray,
        clusters: np.ndarray | None = None,
    ) -> None:
        super().__init__(np.asarray(loss_g - loss_f, dtype=float), clusters)
        self._loss_f = loss_f

    def loss_of_f(self, inside: np.ndarray) -> float:
        """Return the mean loss of F over a group; see :meth:`Contrast.loss_of_f`."""
        return float(self._loss_f[inside].mean())

    def mean(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean d of a group; see :meth:`Contrast.mean`."""
        total = weights.sum()
        if not total:
            return 0.0, np.zeros(len(self))
        mean = float((weights * self.d).sum() / total)
        return mean, weights * (self.d - mean) / total


class AucContrast(Contrast):
    """1 - AUC: the share of pairs of two classes that a model orders wrongly.

    A group's change is the chance that one of its rows is misranked with the rows of the other
    class in the whole table; each class of the group counts half, as in the AUC itself.
    """

    def __init__(
        self,
        is_positive: np.ndarray,
        scores_f: np.ndarray,
        scores_g: np.ndarray,
        clusters: np.ndarray | None = None,
    ) -> None:
        self.sides = (np.flatnonzero(is_positive), np.flatnonzero(~is_positive))
        # the larger score belongs to a positive row, so negatives are ranked upside down
        self.scores_f, self.scores_g = (
            np.where(is_positive, scores, -scores) for scores in (scores_f, scores_g)
        )
        by_f, by_g = np.empty((2, len(is_positive)))
        for own, other in (self.sides, self.sides[::-1]):
            by_f[own], by_g[own] = self._misranked(own, other)
        super().__init__(by_g - by_f, clusters)
        self._by_f = by_f

    def _misranked(
        self, rows: np.ndarray, others: np.ndarray, weights: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of the others that F and G misrank each row with."""
        by_f, by_g = (
            misranked_by(scores[rows], -scores[others], weights)
            for scores in (self.scores_f, self.scores_g)
        )
        return by_f, by_g

    def change(self, weights: np.ndarray) -> Change:
        """Return the change of a group; of few rows of a class its error is not known."""
        change = super().change(weights)
        n_of_sides = [np.count_nonzero(weights[own]) for own in self.sides]
        if any(0 < n < FEWEST_CHANGED for n in n_of_sides) and change.se:
            return replace(change, se=float("inf"), df=1.0)
        return change

    def loss_of_f(self, inside: np.ndarray) -> float:
        """Return the mean over classes of a group; see :meth:`Contrast.loss_of_f`."""
        of_sides = [own[inside[own]] for own in self.sides]
        return float(np.mean([self._by_f[own].mean() for own in of_sides if len(own)]))

    def mean(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean over classes of a group; see :meth:`Contrast.mean`."""
        influence = np.zeros(len(self))
        both = (self.sides, self.sides[::-1])
        present = [(own, other) for own, other in both if weights[own].sum()]
        change = 0.0
        for own, other in present:
            share = weights[own] / weights[own].sum()
            mean = float(share @ self.d[own])
            change += mean / len(present)
            influence[own] += share * (self.d[own] - mean) / len(present)
            # a row of the other class counts by the pairs that it makes with the group
            by_f, by_g = self._misranked(other, own, share)
            pairs = by_g - by_f - mean
            influence[other] += pairs / len(other) / len(present)
        return change, influence


def standard_error(
    influence: np.ndarray, clusters: np.ndarray | None, changed: np.ndarray
) -> tuple[float, float]:
    """Return the standard error of a change, and its degrees of freedom.

    0 where nothing changes at all; infinite where fewer than ten rows or clusters change, which
    tell nothing of how much others would.

    Parameters
    ----------
    influence : ndarray of shape (n,)
    clusters : ndarray of shape (n,), int, or None
    changed : ndarray of shape (n,), bool
        Rows of the group whose loss changes.

    Examples
    --------
    >>> standard_error(np.zeros(50), None, np.zeros(50, dtype=bool))
    (0.0, 1.0)
    >>> standard_error(np.array([0.1, -0.1]), None, np.array([True, True]))
    (inf, 1.0)
    """
    parts = influence
    n_changed = int(changed.sum())
    if clusters is not None:
        parts = np.bincount(clusters, influence)
        n_changed = len(np.unique(clusters[changed]))
    if n_changed == 0:
        return 0.0, 1.0
    if n_changed < FEWEST_CHANGED:
        return float("inf"), 1.0
    n_counted = int(np.count_nonzero(parts))
    variance = (parts**2).sum() * n_counted / max(1, n_counted - 1)
    return float(np.sqrt(variance)), n_changed - 1.0
