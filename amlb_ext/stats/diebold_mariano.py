r"""Two forecasters on one series, or on a few: the Diebold-Mariano test over many origins.

Notation
--------
d_1 .. d_n : difference of two forecasters' losses, origin by origin, in time
h : how many neighbouring origins have windows that overlap; windows apart have h = 1
gamma_k : autocovariance of d at lag k

References
----------
Diebold & Mariano (1995), J. Business & Economic Statistics 13, 253-263; Harvey, Leybourne & Newbold
(1997), Int. J. Forecasting 13, 281-291, equation 9; Newey & West (1987), Econometrica 55, 703-708.
"""

from __future__ import annotations

import numpy as np

from amlb_ext.stats.weighted_mean import MeanEstimate

#: Fewer origins say too little of how differences follow each other, ...
FEWEST_ORIGINS = 30
#: ... and so do fewer times as many as have windows that overlap.
FEWEST_PER_OVERLAP = 3


def fewest_origins(overlap: int) -> int:
    """Return how many origins the test needs.

    Parameters
    ----------
    overlap : int
        h, see :func:`diebold_mariano`.

    Examples
    --------
    >>> fewest_origins(1), fewest_origins(12)
    (30, 36)
    """
    return max(FEWEST_ORIGINS, FEWEST_PER_OVERLAP * overlap)


def diebold_mariano(
    differences: np.ndarray, overlap: int, level: float = 0.95
) -> MeanEstimate:
    r"""Return the mean difference of losses with its interval.

    .. math::
        V = \gamma_0 + 2 \sum_{k=1}^{h-1} \gamma_k, \quad
        s^2 = \frac{V}{n + 1 - 2h + h (h - 1) / n}

    and the interval is :math:`\bar d \pm t_{n-1} s`. Where V is not positive, which its equal
    weights allow, lags count by Bartlett's falling weights instead. It covers where differences of
    losses are stationary, and windows apart do not depend on each other.

    Parameters
    ----------
    differences : ndarray of shape (n,)
        In time; loss of a candidate minus loss of F.
    overlap : int
        h: windows of H steps that begin ``step`` apart overlap with ``ceil(H / step) - 1`` others.
    level : float

    Returns
    -------
    MeanEstimate
        Without an interval for fewer than 30 origins, or where all differences are equal.

    Examples
    --------
    >>> d = np.tile([1.0, 3.0], 20)
    >>> e = diebold_mariano(d, 1)
    >>> e.point, round(e.se, 4)  # sqrt(1 / (40 - 1))
    (2.0, 0.1601)
    >>> diebold_mariano(d[:10], 1).reason
    '10 origins, a test over time needs at least 30'
    """
    d = np.asarray(differences, dtype=float)
    n = len(d)
    point = float(d.mean()) if n else float("nan")
    reason = ""
    if n < FEWEST_ORIGINS:
        reason = f"{n} origins, a test over time needs at least {FEWEST_ORIGINS}"
    elif n < FEWEST_PER_OVERLAP * overlap:
        reason = (
            f"{n} origins of windows that overlap with {overlap - 1} others are too few"
        )
    elif np.ptp(d) == 0 and point != 0:
        reason = "all origins agree on one difference; their spread cannot be estimated"
    estimate = MeanEstimate(point=point, n=n, n_clusters=n, level=level)
    if reason:
        return estimate.without_interval(reason)
    centred = d - point
    covariances = [centred[lag:] @ centred[: n - lag] / n for lag in range(overlap)]
    gamma = np.array(covariances)
    variance = gamma[0] + 2 * gamma[1:].sum()
    if not variance > 0:
        falling = 1 - np.arange(1, overlap) / overlap
        variance = gamma[0] + 2 * (falling * gamma[1:]).sum()
    corrected = n + 1 - 2 * overlap + overlap * (overlap - 1) / n
    se = float(np.sqrt(max(variance, 0.0) / corrected))
    return estimate.with_error(se, float(n - 1))
