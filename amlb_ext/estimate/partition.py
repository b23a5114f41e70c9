r"""A sound lower bound of the true error, from cells that do not depend on the labelled rows.

Notation
--------
Z_1..Z_m : cells, fixed before seeing S;  w_i = P0(Z_i) their masses in the population
a_i = E[l | Z_i], so that the true error is E = Σ w_i a_i;  l in [0, C_h]
n_i : labelled rows in Z_i;  ā_i : their mean loss
L = Σ_{n_i > 0} w_i ā_i;  B² = C_h² ½ ln(1/δ) Σ_{n_i > 0} w_i² / n_i

Why it holds. Given the counts n_i, let the labelled rows of a cell be independent draws from P0
within that cell. Then E[L | n] = Σ_{n_i > 0} w_i a_i <= E, since a cell without rows counts 0,
and L is a sum of Σ n_i independent terms, of which those of cell i lie in [0, C_h w_i / n_i].
Hoeffding: P(L >= E[L | n] + t | n) <= exp(-2 t² / (C_h² Σ w_i² / n_i)), which is δ for t = B. So
L - B <= E with probability 1 - δ for any counts, and hence unconditionally.

When it applies. To independent draws from P0, and to any design in which the probability of a row
depends on its cell alone, however unequal the cells. It does not apply if the probability depends
on the class or the loss within a cell, or if cells were merged after seeing S.

What it costs. With rows in every cell Σ w_i² / n_i >= 1 / n (Cauchy), with equality for
n_i = n w_i: if cells were sampled equally, a single cell, which is Hoeffding's bound on S, has the
smallest B. Cells only help against a bias between them, so a few are enough.

Masses counted on N rows of the population: Σ ŵ_i a_i is a mean of N independent terms in
[0, C_h], which exceeds E by more than C_h sqrt(½ ln(1/δ') / N) with probability at most δ'. If N
is given, δ' is a tenth of δ, and the term is added to B. The N rows must differ from those that
made the cells.

References
----------
Hoeffding (1963), JASA 58, 13-30, Theorem 2. It follows Theorem 1 of the seed paper, whose cells
are centred on the labelled rows themselves.
"""

from __future__ import annotations

import math

import numpy as np
from sklearn.cluster import KMeans

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.estimate.osyn.bound import checked_masses
from amlb_ext.estimate.osyn.regions import Regions
from amlb_ext.stats.bounded_loss import checked_losses
from amlb_ext.stats.error_estimate import ErrorEstimate

#: Largest number of rows for k-means; more hardly move the centres.
KMEANS_ROWS = 20_000
#: Share of δ for the error of estimated masses, which many unlabelled rows make small anyway.
MASS_SHARE = 0.1

#: What the bound assumes, for the table of estimates.
ASSUMES = (
    "cells were fixed without the labelled rows; their masses are the population's; labelled rows "
    "of one cell are independent draws from the population within it (cells may be sampled "
    "unequally)"
)


def independent_cells(rows: np.ndarray, m: int, rng: np.random.Generator) -> Regions:
    """Return m cells of k-means on generated or unlabelled rows; never pass labelled ones.

    Parameters
    ----------
    rows : ndarray of shape (N, d)
        Encoded.
    m : int
        Number of cells; few, so that each gets labelled rows.
    rng : Generator

    Returns
    -------
    Regions

    Raises
    ------
    ConfigError
        m is not in 1..N.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> cells = independent_cells(rng.random((500, 2)), 4, rng)
    >>> len(np.unique(cells.assign(rng.random((100, 2)))))
    4
    """
    rows = np.asarray(rows, dtype=float)
    if not 1 <= m <= len(rows):
        raise ConfigError(
            f"m = {m} cells from {len(rows)} rows", f"choose m in 1..{len(rows)}"
        )
    n_rows = max(KMEANS_ROWS, m)
    if len(rows) > n_rows:
        rows = rows[rng.choice(len(rows), n_rows, replace=False)]
    # Any cells are valid, so one start is enough.
    seed = int(rng.integers(2**31))
    kmeans = KMeans(m, n_init=1, random_state=seed).fit(rows)
    return Regions(kmeans.cluster_centers_)


def partition_bound(
    losses: np.ndarray,
    cells: np.ndarray,
    masses: np.ndarray,
    delta: float = 0.1,
    C_h: float = 1.0,
    n_masses: int | None = None,
) -> ErrorEstimate:
    """Return the sound bound of the true error; see the top of the module.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        Of the labelled rows.
    cells : ndarray of shape (n,)
        Cell of each, 0..m-1.
    masses : ndarray of shape (m,)
        Masses of the cells in the population, or counts of unlabelled rows; scaled to sum 1.
    delta : float
        Probability of failing.
    C_h : float
        Bound of the loss.
    n_masses : int, optional
        Number of rows of the population on which the masses were counted, others than those that
        made the cells. By default the masses are exact.

    Returns
    -------
    ErrorEstimate
        L - B; no point, and the bound of the loss as upper limit.

    Raises
    ------
    DataError
        No labelled row, a cell outside 0..m-1, or losses outside 0..C_h.
    ConfigError
        A delta outside 0..1, or n_masses below 1.

    Examples
    --------
    Cells of masses .5, .25, .25 with mean losses .5 (4 rows), 1 (1 row), none:
    L = .25 + .25 = .5, B = sqrt(.5 * 2 * (.25 / 4 + .0625 / 1)) = sqrt(.125) = .3536.

    >>> cells, masses = np.array([0, 0, 0, 0, 1]), np.array([2, 1, 1])
    >>> r = partition_bound(np.array([1, 0, 1, 0, 1]), cells, masses, delta=np.exp(-2))
    >>> round(r.low, 4), r.high, r.reason
    (0.1464, 1.0, '1 of 3 cells without labelled rows, 25% of the population')
    """
    if not 0 < delta < 1 or (n_masses is not None and n_masses < 1):
        raise ConfigError(
            f"delta = {delta}, n_masses = {n_masses}",
            "choose delta in 0..1 and n_masses >= 1",
        )
    w = checked_masses(masses)
    loss = checked_losses(losses, C_h)
    cell = np.asarray(cells)
    if len(loss) == 0 or cell.shape != loss.shape:
        raise DataError(
            f"{len(cell)} cells for {len(loss)} losses", "give one cell a labelled row"
        )
    if cell.min() < 0 or cell.max() >= len(w):
        raise DataError(
            f"cells {cell.min()}..{cell.max()} with {len(w)} masses",
            "use cells that cover the whole space, without k",
        )
    m = len(w)
    n = np.bincount(cell, minlength=m)
    loss_sums = np.bincount(cell, loss, minlength=m)
    has_rows = n > 0
    means = loss_sums[has_rows] / n[has_rows]
    L = float(w[has_rows] @ means)
    # Estimated masses take their share of the probability of failing.
    delta_rows = delta if n_masses is None else (1 - MASS_SHARE) * delta
    sum_of_squares = float((w[has_rows] ** 2 / n[has_rows]).sum())
    B = C_h * math.sqrt(0.5 * math.log(1 / delta_rows) * sum_of_squares)
    if n_masses is not None:
        delta_masses = MASS_SHARE * delta
        B += C_h * math.sqrt(0.5 * math.log(1 / delta_masses) / n_masses)
    reason = ""
    if not has_rows.all():
        reason = (
            f"{(~has_rows).sum()} of {m} cells without labelled rows, "
            f"{w[~has_rows].sum():.0%} of the population"
        )
    return ErrorEstimate(
        name="partition",
        low=max(0.0, L - B),
        high=C_h,
        level=1 - delta,
        n=len(loss),
        assumes=ASSUMES,
        reason=reason,
    )
