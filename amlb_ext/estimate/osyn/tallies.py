"""Generated rows counted by region: all that the closed form of OSYN needs of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from amlb_ext.core.errors import DataError
from amlb_ext.estimate.osyn.regions import Regions
from amlb_ext.stats.bounded_loss import checked_losses

#: Encoded rows (n, d), class codes (n,) or none, losses (n,) or none.
Batch: TypeAlias = tuple[np.ndarray, np.ndarray | None, np.ndarray | None]
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


def drawn_batches(
    draw: Callable[[int], Batch], n: int, batch: int = 50_000
) -> Iterator[Batch]:
    """Return a stream of n rows from a function that draws a given number of rows.

    Examples
    --------
    >>> [len(l) for _, _, l in drawn_batches(lambda n: (np.zeros((n, 1)), None, np.zeros(n)), 7, 3)]
    [3, 3, 1]
    """
    # the last batch has what is left
    for start in range(0, n, batch):
        yield draw(min(batch, n - start))


def tally_regions(
    stream: Iterable[Batch], regions: Regions, C_h: float = 1.0
) -> RegionTally:
    """Count generated rows and their losses by region.

    Parameters
    ----------
    stream : iterable of (X, labels or None, losses or None)
        See :func:`drawn_batches`. A stream without losses needs no predictions.
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
    >>> tally_regions([(np.array([[0.1], [0.2], [2.0]]), None, np.array([1, 0, 1]))], cells).counts
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
            "generate more, or drop k and the labels of the regions",
        )
    return RegionTally(
        counts=counts,
        loss_sums=loss_sums if has_losses else None,
        outside=outside,
        zero_one=has_losses and zero_one,
    )


def place_rows(stream: Iterable[Batch], regions: Regions) -> Iterator[Placed]:
    """Yield the region of each row, or -1, and its loss."""
    for X, labels, losses in stream:
        yield regions.assign(X, labels), losses


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
