"""What one way of building a benchmark says of each model: delta, with or without an interval.

Notation
--------
m : candidates;  delta : loss of a model minus loss of F, so that negative is better than F
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from amlb_ext.stats.weighted_mean import MeanEstimate, weighted_mean_interval


@dataclass(frozen=True)
class Answer:
    """What one way of building a benchmark says of each model.

    Attributes
    ----------
    point : ndarray of shape (m + 1,)
        Estimated delta; the last model is the twin of F.
    low, high : ndarray of shape (m + 1,)
        95 % interval; NaN where the method has none.
    rows : int
        Rows that the answer rests on.
    """

    point: np.ndarray
    low: np.ndarray
    high: np.ndarray
    rows: int

    @classmethod
    def from_estimates(cls, estimates: Sequence[MeanEstimate], rows: int) -> Answer:
        """Return the answer that has one estimate per model."""
        return cls(
            point=np.array([estimate.point for estimate in estimates]),
            low=np.array([estimate.low for estimate in estimates]),
            high=np.array([estimate.high for estimate in estimates]),
            rows=rows,
        )


def average_rows(
    delta: np.ndarray,
    weights: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
) -> Answer | None:
    """Return weighted means with intervals clustered by the real row; None without rows.

    Parameters
    ----------
    delta : ndarray of shape (n, m + 1)
    weights : ndarray of shape (n,), optional
    clusters : ndarray of shape (n,), optional
        The real row that each row comes from; every row is its own when omitted.
    """
    if not len(delta):
        return None
    # one column per model, each with an interval of its own
    estimates = [
        weighted_mean_interval(model_delta, weights, clusters)
        for model_delta in delta.T
    ]
    return Answer.from_estimates(estimates, len(delta))


def without_interval(point: np.ndarray, rows: int) -> Answer:
    """Return a score that has no interval."""
    # NaN, not the point: an interval of no width would claim that it is sure
    no_limit = np.full(len(point), np.nan)
    return Answer(point=point, low=no_limit, high=no_limit, rows=rows)
