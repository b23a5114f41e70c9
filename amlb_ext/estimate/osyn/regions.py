"""The cells around labelled rows: which labelled row is the nearest to a generated one.

Notation
--------
s_1..s_K : (K, d) the labelled rows, or any other centres
x : (d,) a row to place;  h_i = |s_i|² / 2
r_i : distance of s_i to its k-th nearest other centre

argmin_i |x - s_i|² = argmax_i (x·s_i - h_i), one matrix product. A million rows at K = 500 take
3.2 s of one thread on 102 mostly one-hot columns (scikit-learn by brute force 5.5 s, k-d trees
35 s and more) and 1.6 s on two (a k-d tree 1.0 s), with ties settled, which none of those does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.stats.bounded_loss import checked_losses

#: Entries of a temporary array: products of 2 MB stay in the cache, twice as fast as 64 MB.
CHUNK = 2**19
#: Largest error of single precision in x·s_i - h_i, over max|s| (|x| + max|s|).
SLACK = 16 * float(np.finfo(np.float32).eps)
#: Squared distances this near to each other, relatively, count as equal.
TIE = 1e-9


class Regions:
    """Places rows in the cell of the nearest centre.

    Single precision finds the candidates; if there are several, double precision decides between
    them. Of centres at equal distance (to 1e-9) the first one gets the row, so that neither
    rounding nor the size of a batch matters.

    Parameters
    ----------
    SX : ndarray of shape (K, d)
        Encoded centres. Numbers should be scaled, and one-hot columns divided by the root of 2,
        so that two categories have distance 1.
    k : int, optional
        If given, a row is outside when it is farther from its centre than the k-th nearest other
        centre is (seed paper, section 4, "sphere").

    Raises
    ------
    DataError
        No centre, or numbers that are not finite.
    ConfigError
        k is not in 1..K-1.

    Examples
    --------
    >>> cells = Regions(np.array([[0.0], [1.0], [4.0]]), k=1)
    >>> cells.assign(np.array([[0.4], [1.5], [2.4], [4.1], [8.0]]))  # radii 1, 1, 3
    array([ 0,  1, -1,  2, -1])
    """

    def __init__(self, SX: np.ndarray, k: int | None = None) -> None:
        S = np.asarray(SX, dtype=float)
        is_finite = bool(np.isfinite(S).all())
        if S.ndim != 2 or len(S) == 0 or not is_finite:
            raise DataError(
                f"centres of shape {S.shape}, finite: {is_finite}",
                "give one encoded row or more, missing numbers filled",
            )
        self.n_regions, self.n_columns = S.shape
        # Single precision loses less of small numbers.
        self._shift = S.mean(axis=0)
        self._S = S - self._shift
        self._search = _NearestCentre(self._S)
        self._radius = None if k is None else self._sphere_radius(k)

    def _sphere_radius(self, k: int) -> np.ndarray:
        """Return r_i, the distance of each centre to its k-th nearest other one."""
        if not 1 <= k < self.n_regions:
            raise ConfigError(
                f"k = {k} for {self.n_regions} centres",
                f"choose k from 1 to {self.n_regions - 1}, or none",
            )
        search = NearestNeighbors(n_neighbors=k, n_jobs=1).fit(self._S)
        # Without rows to ask about, each centre is left out of its own neighbours.
        distances, _ = search.kneighbors(None)
        # Distances of equal rows may differ in the last bits.
        return distances[:, -1] * (1 + TIE) + 1e-12

    def assign(self, X: np.ndarray) -> np.ndarray:
        """Return the region of each row, or -1.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Encoded as the centres are; single precision is enough.

        Returns
        -------
        ndarray of shape (n,), int64

        Raises
        ------
        DataError
            The columns differ from those of the centres, or numbers are not finite.
        """
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_columns:
            raise DataError(
                f"rows of shape {X.shape} for centres of {self.n_columns} columns",
                "encode both with the same encoder",
            )
        regions = np.full(len(X), -1, dtype=np.int64)
        # the product of a chunk has a column for each centre
        step = max(64, CHUNK // max(self.n_regions, self.n_columns))
        for start in range(0, len(X), step):
            chunk = slice(start, start + step)
            centred = X[chunk] - self._shift
            region = self._search.find(centred)
            if self._radius is not None:
                distance = np.linalg.norm(centred - self._S[region], axis=1)
                region[distance > self._radius[region]] = -1
            regions[chunk] = region
        return regions


class _NearestCentre:
    """Finds the nearest of several centres S, in single precision and, if it must, in double.

    Attributes
    ----------
    S : ndarray of shape (m, d)
    S32 : ndarray of shape (d, m), float32
    h : ndarray of shape (m,), float32
        |s_i|² / 2.
    largest_norm : float
        max |s_i|.
    """

    def __init__(self, S: np.ndarray) -> None:
        self.S = S
        self.S32 = np.ascontiguousarray(S.T, dtype=np.float32)
        self.h = (self.S32**2).sum(axis=0) / 2
        self.largest_norm = float(np.sqrt(2 * self.h.max()))

    def find(self, X: np.ndarray) -> np.ndarray:
        """Return the index of the nearest centre for each row of X."""
        X32 = X.astype(np.float32)
        # x·s_i - h_i, to be maximised; see the top of the module
        score = X32 @ self.S32
        score -= self.h
        best = score.max(axis=1)
        if not np.isfinite(best).all():
            raise DataError(
                "rows to place have numbers that are missing, infinite or huge",
                "fill missing numbers and scale large ones first",
            )
        # Rounding may have put the true best below the best score: all within reach of it are
        # candidates as well.
        norms = np.sqrt(np.einsum("ij,ij->i", X32, X32))
        reach = np.float32(SLACK * self.largest_norm) * (norms + self.largest_norm)
        best -= reach
        candidates = np.flatnonzero(score >= best[:, None])
        row, centre = np.divmod(candidates, len(self.S))
        has_one_candidate_each = len(row) == len(X)
        if has_one_candidate_each:
            return centre

        nearest = np.empty(len(X), dtype=np.int64)
        n_candidates = np.bincount(row, minlength=len(X))
        is_alone = n_candidates[row] == 1
        nearest[row[is_alone]] = centre[is_alone]
        tied_row = row[~is_alone]
        tied_centre = centre[~is_alone]
        first = self._first_of_nearest(X, tied_row, tied_centre)
        nearest[tied_row[first]] = tied_centre[first]
        return nearest

    def _first_of_nearest(
        self, X: np.ndarray, row: np.ndarray, centre: np.ndarray
    ) -> np.ndarray:
        """Return the position of each row's nearest candidate, the first of those equally near.

        Parameters
        ----------
        X : ndarray of shape (n, d)
        row, centre : ndarray of shape (m,)
            Candidates, sorted by row and then by centre.
        """
        squares = np.empty(len(row))
        step = max(1, CHUNK // self.S.shape[1])
        for start in range(0, len(row), step):
            chunk = slice(start, start + step)
            gap = X[row[chunk]] - self.S[centre[chunk]]
            squares[chunk] = np.einsum("ij,ij->i", gap, gap)
        # The candidates of a row are one run of positions.
        starts = np.flatnonzero(np.diff(row, prepend=-1))
        run_lengths = np.diff(starts, append=len(row))
        least_of_row = np.minimum.reduceat(squares, starts)
        limit = np.repeat(least_of_row, run_lengths) * (1 + TIE) + 1e-24
        near = np.flatnonzero(squares <= limit)
        is_first_of_row = np.diff(row[near], prepend=-1) != 0
        return near[is_first_of_row]


# Generated rows counted by region: all that the closed form of OSYN needs of them.


#: Encoded rows (n, d), losses (n,) or none.
Batch: TypeAlias = tuple[np.ndarray, np.ndarray | None]
#: Region of each row, -1 for none (n,), losses (n,) or none.
Placed: TypeAlias = tuple[np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class RegionTally:
    """Counts and losses of a stream of generated rows by region.

    Attributes
    ----------
    counts : ndarray of shape (K,)
        Number of rows.
    loss_sums : ndarray of shape (K,) or None
        Sums of their losses, which for 0-1 loss is the number of wrong rows; None for a stream
        without losses.
    outside : int
        Number of rows in no region.
    zero_one : bool
        Whether every loss was 0 or 1.
    """

    counts: np.ndarray
    loss_sums: np.ndarray | None
    outside: int
    zero_one: bool

    @property
    def masses(self) -> np.ndarray:
        """Shares of the rows inside, shape (K,)."""
        return self.counts / self.counts.sum()

    @property
    def means(self) -> np.ndarray | None:
        """Mean losses, shape (K,); 0 for a region without rows, None without losses."""
        if self.loss_sums is None:
            return None
        return self.loss_sums / np.maximum(self.counts, 1)

    def rows(self) -> Iterator[Placed]:
        """Yield the region and the loss of each row inside, of a 0-1 loss: the counts say all."""
        assert self.loss_sums is not None
        n_wrong = self.loss_sums.astype(np.int64)
        for loss, n in ((1.0, n_wrong), (0.0, self.counts - n_wrong)):
            yield np.repeat(np.arange(len(n)), n), np.full(n.sum(), loss)


def tally_regions(
    stream: Iterable[Batch], regions: Regions, C_h: float = 1.0
) -> RegionTally:
    """Count generated rows and their losses by region.

    Parameters
    ----------
    stream : iterable of (X, losses or None)
        A stream without losses needs no predictions.
    regions : Regions
    C_h : float

    Returns
    -------
    RegionTally

    Raises
    ------
    DataError
        No row inside any region, or a loss outside 0..C_h.

    Examples
    --------
    >>> cells = Regions(np.array([[0.0], [1.0]]))
    >>> tally_regions([(np.array([[0.1], [0.2], [2.0]]), np.array([1, 0, 1]))], cells).counts
    array([2, 1])
    """
    K = regions.n_regions
    counts = np.zeros(K, dtype=np.int64)
    loss_sums = np.zeros(K)
    outside = 0
    has_losses = True
    zero_one = True
    for region, loss, missed in rows_inside(place_rows(stream, regions), C_h):
        counts += np.bincount(region, minlength=K)
        outside += missed
        # A stream has losses in all batches or in none.
        if loss is None:
            has_losses = False
        else:
            loss_sums += np.bincount(region, loss, minlength=K)
            zero_one = zero_one and is_zero_one(loss)
    if not counts.any():
        raise DataError(
            f"none of {outside} generated rows lies in a region",
            "generate more, or drop k",
        )
    return RegionTally(
        counts=counts,
        loss_sums=loss_sums if has_losses else None,
        outside=outside,
        zero_one=has_losses and zero_one,
    )


def place_rows(stream: Iterable[Batch], regions: Regions) -> Iterator[Placed]:
    """Yield the region of each row, or -1, and its loss."""
    for X, losses in stream:
        yield regions.assign(X), losses


def rows_inside(
    stream: Iterable[Placed], C_h: float
) -> Iterator[tuple[np.ndarray, np.ndarray | None, int]]:
    """Yield region and loss of the rows inside, and the number of those outside."""
    for region, losses in stream:
        is_inside = region >= 0
        missed = int((~is_inside).sum())
        if losses is None:
            yield region[is_inside], None, missed
            continue
        # Also outside: a bad loss there is as much an error of the stream.
        loss = checked_losses(losses, C_h)
        if len(loss) != len(region):
            raise DataError(
                f"{len(loss)} losses for {len(region)} rows", "give one loss a row"
            )
        yield region[is_inside], loss[is_inside], missed


def is_zero_one(loss: np.ndarray) -> bool:
    """Return whether every loss is 0 or 1."""
    is_valid = (loss == 0) | (loss == 1)
    return bool(is_valid.all())
