"""The cells around labelled rows: which labelled row is nearest to a generated one.

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

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.errors import ConfigError, DataError

#: Numbers of a temporary array: products of 2 MB stay in the cache, twice as fast as of 64.
CHUNK = 2**19
#: What single precision may get wrong in x·s_i - h_i, over max|s| (|x| + max|s|).
SLACK = 16 * float(np.finfo(np.float32).eps)
#: Squared distances this near to each other, relatively, count as equal.
TIE = 1e-9


class Regions:
    """Places rows in the cell of the nearest centre.

    Candidates come from single precision, and where there are several, double precision
    decides between them. Of centres equally near (to 1e-9) the first one gets the row, so that
    neither rounding nor the size of a batch matters.

    Parameters
    ----------
    SX : ndarray of shape (K, d)
        Encoded centres; scale numbers, and divide one-hot columns by the root of 2, so that two
        categories are one apart.
    labels : ndarray of shape (K,), optional
        Class codes; with them a row goes to the nearest centre of its own class.
    k : int, optional
        With it a row farther from its centre than that centre's k-th nearest other one is
        outside (seed paper, section 4, "sphere").

    Raises
    ------
    DataError
        No centre, numbers that are not finite, or labels of another length.
    ConfigError
        k is not in 1..K-1.

    Examples
    --------
    >>> cells = Regions(np.array([[0.0], [1.0], [4.0]]), k=1)
    >>> cells.assign(np.array([[0.4], [1.5], [2.4], [4.1], [8.0]]))  # radii 1, 1, 3
    array([ 0,  1, -1,  2, -1])
    """

    def __init__(
        self, SX: np.ndarray, labels: np.ndarray | None = None, k: int | None = None
    ) -> None:
        S = np.asarray(SX, dtype=float)
        if S.ndim != 2 or len(S) == 0 or not np.isfinite(S).all():
            raise DataError(
                f"centres of shape {S.shape}, finite: {bool(np.isfinite(S).all())}",
                "give one encoded row or more, missing numbers filled",
            )
        self.n_regions, self.n_columns = S.shape
        self._shift = S.mean(axis=0)  # smaller numbers lose less in single precision
        self._S = S - self._shift
        everyone = np.arange(self.n_regions)
        self.labelled = labels is not None
        self._groups: list[tuple[int, np.ndarray]] = [(-1, everyone)]
        if labels is not None:
            codes = np.asarray(labels)
            if codes.shape != (self.n_regions,):
                raise DataError(
                    f"labels of shape {codes.shape} for {self.n_regions} centres",
                    "give one class code for each centre",
                )
            self._groups = [
                (c, np.flatnonzero(codes == c)) for c in np.unique(codes).tolist()
            ]
        self._radius: np.ndarray | None = None
        if k is not None:
            if not 1 <= k < self.n_regions:
                raise ConfigError(
                    f"k = {k} for {self.n_regions} centres",
                    f"choose k from 1 to {self.n_regions - 1}, or none",
                )
            search = NearestNeighbors(n_neighbors=k, n_jobs=1).fit(self._S)
            # Distances of equal rows may differ in the last bits.
            self._radius = search.kneighbors(None)[0][:, -1] * (1 + TIE) + 1e-12

    def assign(self, X: np.ndarray, labels: np.ndarray | None = None) -> np.ndarray:
        """Return the region of each row, -1 for none.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Encoded as the centres were; single precision is welcome.
        labels : ndarray of shape (n,), optional
            Class codes, read only when the centres have some. A class without a centre
            gives -1.

        Returns
        -------
        ndarray of shape (n,), int64

        Raises
        ------
        DataError
            Other columns than the centres', numbers that are not finite, no labels.
        """
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_columns:
            raise DataError(
                f"rows of shape {X.shape} for centres of {self.n_columns} columns",
                "encode both with the same encoder",
            )
        codes = None if labels is None else np.asarray(labels)
        if self.labelled and (codes is None or codes.shape != (len(X),)):
            raise DataError(
                "the centres have labels, the rows none or too few",
                "give a class code for each row, or build the regions without labels",
            )
        out = np.full(len(X), -1, dtype=np.int64)
        for code, members in self._groups:
            rows = np.flatnonzero(codes == code) if self.labelled else np.arange(len(X))
            search = _NearestCentre(self._S[members])
            step = max(64, CHUNK // max(len(members), self.n_columns))
            for start in range(0, len(rows), step):
                chunk = rows[start : start + step]
                centred = X[chunk] - self._shift
                region = members[search.find(centred)]
                if self._radius is not None:
                    distance = np.linalg.norm(centred - self._S[region], axis=1)
                    region[distance > self._radius[region]] = -1
                out[chunk] = region
        return out


class _NearestCentre:
    """Finds the nearest of some centres S, in single precision and, where it must, in double."""

    def __init__(self, S: np.ndarray) -> None:
        self.S = S
        self.S32 = np.ascontiguousarray(S.T, dtype=np.float32)
        self.h = (self.S32**2).sum(axis=0) / 2
        self.largest_norm = float(np.sqrt(2 * self.h.max()))

    def find(self, X: np.ndarray) -> np.ndarray:
        """Return the index of the nearest centre for each row of X."""
        X32 = X.astype(np.float32)
        score = (
            X32 @ self.S32
        )  # x·s_i - h_i, to be maximised; see the top of the module
        score -= self.h
        best = score.max(axis=1)
        if not np.isfinite(best).all():
            raise DataError(
                "rows to place have numbers that are missing, infinite or huge",
                "fill missing numbers and scale large ones first",
            )
        norms = np.sqrt(np.einsum("ij,ij->i", X32, X32))
        # Whatever rounding may have put below the best score is a candidate as well.
        best -= np.float32(SLACK * self.largest_norm) * (norms + self.largest_norm)
        row, centre = np.divmod(np.flatnonzero(score >= best[:, None]), len(self.S))
        if len(row) == len(X):  # one candidate each
            return centre
        nearest = np.empty(len(X), dtype=np.int64)
        is_alone = np.bincount(row, minlength=len(X))[row] == 1
        nearest[row[is_alone]] = centre[is_alone]
        row, centre = row[~is_alone], centre[~is_alone]
        first = self._first_of_nearest(X, row, centre)
        nearest[row[first]] = centre[first]
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
        square = np.empty(len(row))
        step = max(1, CHUNK // self.S.shape[1])
        for start in range(0, len(row), step):
            chunk = slice(start, start + step)
            gap = X[row[chunk]] - self.S[centre[chunk]]
            square[chunk] = np.einsum("ij,ij->i", gap, gap)
        starts = np.flatnonzero(np.diff(row, prepend=-1))
        candidates = np.diff(starts, append=len(row))
        least = np.repeat(np.minimum.reduceat(square, starts), candidates)
        near = np.flatnonzero(square <= least * (1 + TIE) + 1e-24)
        return near[np.flatnonzero(np.diff(row[near], prepend=-1))]
