"""Rows that belong together: checked arrays, and sums per originating real row."""

from __future__ import annotations

import numpy as np

from amlb_ext.core.errors import DataError


def checked_rows(
    values: np.ndarray, weights: np.ndarray | None, clusters: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values, weights and cluster codes ``0..K-1`` of the rows with positive weight.

    Raises
    ------
    DataError
        When lengths differ, a value is not finite or a weight is negative or not finite.

    Examples
    --------
    >>> v, w, c = checked_rows(np.array([5.0, 6.0]), np.array([0.0, 2.0]), np.array(["a", "b"]))
    >>> v.tolist(), w.tolist(), c.tolist()
    ([6.0], [2.0], [0])
    """
    v = np.asarray(values, dtype=float)
    w = np.ones(len(v)) if weights is None else np.asarray(weights, dtype=float)
    c = np.arange(len(v)) if clusters is None else np.asarray(clusters)
    if v.ndim != 1 or w.shape != v.shape or c.shape != v.shape:
        raise DataError(
            f"values, weights and clusters have shapes {v.shape}, {w.shape} and {c.shape}",
            "give three one-dimensional arrays with one entry per row",
        )
    if not (np.isfinite(w).all() and (w >= 0).all()):
        raise DataError("a weight is negative or not finite", "weights are P(bad | x) or counts")
    keep = w > 0
    if not np.isfinite(v[keep]).all():
        raise DataError(
            f"{int((~np.isfinite(v[keep])).sum())} of {int(keep.sum())} values are not finite",
            "leave out a model whose predictions are missing, not single rows of it",
        )
    codes = np.unique(c[keep], return_inverse=True)[1].reshape(-1)
    return v[keep], w[keep], codes


def cluster_sums(
    values: np.ndarray, weights: np.ndarray, codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``N_k``, the sums of w v, and ``W_k``, the sums of w, per cluster.

    Examples
    --------
    >>> sums = cluster_sums(np.array([1.0, 2.0]), np.array([1.0, 3.0]), np.array([0, 0]))
    >>> [s.tolist() for s in sums]
    [[7.0], [4.0]]
    """
    return np.bincount(codes, weights * values), np.bincount(codes, weights)
