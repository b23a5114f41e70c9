"""Squared errors with a cap, so that the t interval of their mean covers.

Notation
--------
l_F : (n,) squared errors of F on real, labelled rows
k : distinct rows whose errors reach the cap, ``max(10, 2 %)`` of all, at most a fifth

One row in a thousand may hold most of a mean squared error. While that row is not among those that
were drawn, nothing in them says how far off the mean is: t intervals of 95 % then cover down to
46 % (``tests/benchmarks/coverage_tails.py``). So errors beyond the k-th largest of F count as if
they were that large, for F, its re-fits and every candidate alike. What is estimated is the mean of
that capped loss: k rows of F reach the cap, so its size is well known, and no single row
outweighs the others. The cap rests on F alone, so no candidate can move it. Where the rows beyond
it would decide, nothing is claimed by the capped loss (:mod:`amlb_ext.stats.heavy_tails`).

Brier losses are at most 2 and need no cap.

References
----------
Huber (1964), Ann. Math. Statist. 35, 73-101, for errors that count no more beyond a limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_number, format_percent
from amlb_ext.stats.weighted_mean import ROUNDING

Losses = TypeVar("Losses", np.ndarray, pd.DataFrame)

#: Rows of F that reach the cap: this share of all rows, ...
SHARE_AT_CAP = 0.02
#: ... at least so many, for the size of fewer is chance, ...
FEWEST_AT_CAP = 10
#: ... and never more than this share of a small table.
MOST_AT_CAP = 0.2
#: The square of a larger loss, which a variance needs, is no number.
LARGEST_LOSS = 1e100
#: A squared error of a target scaled to its range that is smaller than this is rounding.
ROUNDING_LOSS = ROUNDING**2


@dataclass(frozen=True, kw_only=True)
class ErrorCap:
    """The largest squared error that counts.

    Attributes
    ----------
    loss : float
        In units of the squared error; infinite for no cap.
    at_cap, n : int
        Rows on which F's error reaches the cap, of all rows.
    """

    loss: float = np.inf
    at_cap: int = 0
    n: int = 0

    def apply(self, losses: Losses) -> Losses:
        """Return the losses, none larger than the cap; NaN stays NaN.

        Parameters
        ----------
        losses : ndarray or DataFrame of any shape

        Examples
        --------
        >>> ErrorCap(loss=4.0).apply(np.array([1.0, 9.0])).tolist()
        [1.0, 4.0]
        """
        return np.minimum(losses, min(self.loss, LARGEST_LOSS))

    def sentence(self, span: float | np.ndarray | None = None) -> str:
        """Return what the cap does, in words; empty for no cap.

        Parameters
        ----------
        span : float or ndarray, optional
            Length of 1 of the scaled target in the target's own unit; of each row or fold, where
            these differ. Without it the cap is told in percent of the target's range.

        Examples
        --------
        >>> ErrorCap(loss=0.04, at_cap=20, n=1000).sentence(216.0)
        'errors beyond 43.2 count as 43.2 (F errs by as much on 20 of 1 000 rows)'
        """
        if not np.isfinite(self.loss):
            return ""
        largest_error = float(np.sqrt(self.loss))
        counts = f"{format_number(self.at_cap)} of {format_number(self.n)}"
        reached = f"(F errs by as much on {counts} rows)"
        if span is None:
            size = f"{format_percent(largest_error)} of the target's range"
            return f"errors beyond {size} count as that {reached}"
        low = format_number(largest_error * float(np.min(span)))
        high = format_number(largest_error * float(np.max(span)))
        # each fold scales its target by its own training rows
        if low != high:
            return f"errors beyond {low} to {high}, by fold, count as that {reached}"
        return f"errors beyond {low} count as {low} {reached}"


#: Every loss counts as it is.
NO_CAP = ErrorCap()


def cap_from_baseline(
    loss_f: np.ndarray, clusters: np.ndarray | None = None
) -> ErrorCap:
    """Return the cap for squared errors: the k-th largest of F.

    Parameters
    ----------
    loss_f : ndarray of shape (n,)
        Squared errors of F on all real test rows of the task, the target scaled to its range.
    clusters : ndarray of shape (n,), optional
        The real row that each row came from; k counts these.

    Returns
    -------
    ErrorCap
        No cap for fewer than five distinct rows, and where the k-th largest error is 0 but for
        rounding: F that is exact on most rows says nothing of what a large error is.

    Examples
    --------
    >>> cap = cap_from_baseline(np.arange(1000.0))  # the 20th largest
    >>> cap.loss, cap.at_cap
    (980.0, 20)
    >>> cap_from_baseline(np.zeros(1000)).loss
    inf
    """
    losses = np.asarray(loss_f, dtype=float)
    largest = losses
    if clusters is not None:
        # a row that stands in several folds counts once, with its largest error
        by_row = np.unique(clusters, return_inverse=True)[1].reshape(-1)
        largest = np.zeros(by_row.max(initial=-1) + 1)
        np.maximum.at(largest, by_row, losses)
    n_distinct = len(largest)
    wanted = max(FEWEST_AT_CAP, int(np.ceil(SHARE_AT_CAP * n_distinct)))
    k = min(wanted, int(MOST_AT_CAP * n_distinct))
    if k == 0:
        return NO_CAP
    cap = float(np.sort(largest)[-k])
    largest_known = largest.max(initial=0.0, where=np.isfinite(largest))
    if not cap > max(ROUNDING_LOSS, ROUNDING * largest_known):
        return NO_CAP
    return ErrorCap(loss=cap, at_cap=int((losses >= cap).sum()), n=len(losses))
