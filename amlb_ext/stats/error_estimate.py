"""What an estimator of the true error answers: a point, an interval, and what it assumes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import binom

#: What became of the check of an assumption.
NOT_CHECKED = "not checked"
PASSED = "passed"
FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class ErrorEstimate:
    """One estimator's answer: a row of the table of ``hardsynth estimate``.

    Attributes
    ----------
    name : str
        The estimator, e.g. ``wilson``.
    point : float
        Of the true error, in units of the loss; NaN for a bound alone.
    low, high : float
        NaN when there is no interval; ``reason`` says why. A lower bound has ``high`` equal to
        the bound of the loss.
    level : float
        Nominal coverage.
    n : int
        Labelled rows it rests on.
    assumes : str
        What must hold for the interval to cover.
    check : str
        ``passed``, ``failed`` or ``not checked``.
    reason : str
        Why the check failed or there is no interval; otherwise the finding of the check.
    recommended : bool
        The one to quote.
    """

    name: str
    point: float
    low: float
    high: float
    level: float
    n: int
    assumes: str
    check: str = NOT_CHECKED
    reason: str = ""
    recommended: bool = False

    @property
    def has_interval(self) -> bool:
        """Whether ``low`` and ``high`` are numbers.

        Examples
        --------
        >>> no_estimate("wilson", level=0.95, n=0, assumes="", reason="no row").has_interval
        False
        """
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def width(self) -> float:
        """``high - low``."""
        return self.high - self.low

    def with_check(self, passed: bool, reason: str = "") -> ErrorEstimate:
        """Return the estimate with the outcome of the check of its assumption."""
        return replace(
            self, check=PASSED if passed else FAILED, reason=reason or self.reason
        )


def no_estimate(
    name: str, *, level: float, n: int, assumes: str, reason: str
) -> ErrorEstimate:
    """Return an estimate without any number, with the reason."""
    return ErrorEstimate(
        name=name,
        point=math.nan,
        low=math.nan,
        high=math.nan,
        level=level,
        n=n,
        assumes=assumes,
        reason=reason,
    )


def mean_without_interval(
    name: str, losses: np.ndarray, *, level: float, assumes: str, reason: str
) -> ErrorEstimate:
    """Return the mean loss alone, with the reason why it has no interval."""
    estimate = no_estimate(
        name, level=level, n=len(losses), assumes=assumes, reason=reason
    )
    # the mean of no losses is no number, and numpy would warn of it
    if len(losses):
        estimate = replace(estimate, point=float(losses.mean()))
    return estimate


def clipped_estimate(
    name: str,
    point: float,
    limits: tuple[float, float],
    *,
    level: float,
    n: int,
    assumes: str,
    bound: float = 1.0,
) -> ErrorEstimate:
    """Return an estimate whose numbers all lie in [0, bound].

    Examples
    --------
    >>> e = clipped_estimate("t", 0.1, (-0.2, 0.4), level=0.9, n=5, assumes="")
    >>> e.low, e.high
    (0.0, 0.4)
    """

    def clip_to_bound(value: float) -> float:
        return min(max(float(value), 0.0), bound)

    low, high = limits
    # the true error lies in [0, bound], so clipping loses no coverage
    return ErrorEstimate(
        name=name,
        point=clip_to_bound(point),
        low=clip_to_bound(low),
        high=clip_to_bound(high),
        level=level,
        n=n,
        assumes=assumes,
    )


def median_interval(
    losses: np.ndarray, level: float = 0.95
) -> tuple[float, float, float]:
    """Return the median of some losses with an interval that holds for every distribution.

    Its limits are order statistics whose ranks are quantiles of a binomial of n and one half, so
    no rare large loss moves them. Source: David & Nagaraja (2003), *Order Statistics*, section 7.1.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        Of independent rows.
    level : float

    Returns
    -------
    median, low, high : float
        ``high`` is infinite and ``low`` 0 where n is too small for the level.

    Examples
    --------
    >>> median_interval(np.arange(1.0, 101.0))
    (50.5, 40.0, 61.0)
    """
    ascending = np.sort(np.asarray(losses, dtype=float))
    n = len(ascending)
    below = int(binom.ppf((1 - level) / 2, n, 0.5))
    if below < 1:
        return float(np.median(ascending)), 0.0, float("inf")
    median = float(np.median(ascending))
    return median, float(ascending[below - 1]), float(ascending[n - below])
