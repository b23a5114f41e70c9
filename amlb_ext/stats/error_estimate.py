"""What an estimator of the true error answers: a point, an interval, and what it assumes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import binom

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.stats.bounded_loss import checked_losses

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
    point: float = math.nan
    low: float = math.nan
    high: float = math.nan
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
        >>> ErrorEstimate(name="wilson", level=0.95, n=0, assumes="", reason="none").has_interval
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


@dataclass(frozen=True, kw_only=True)
class LossSample:
    """The losses of labelled rows as an estimator sees them; make one with :meth:`checked`.

    Attributes
    ----------
    name : str
        The estimator.
    losses : ndarray of shape (n,)
        In [0, bound].
    level, bound : float
    assumes : str
    """

    name: str
    losses: np.ndarray
    level: float
    bound: float
    assumes: str

    @classmethod
    def checked(
        cls,
        name: str,
        losses: np.ndarray,
        level: float,
        *,
        assumes: str,
        bound: float = 1.0,
        binary: bool = False,
    ) -> LossSample:
        """Return the losses as ``(n,)`` floats, or raise where they or the level are not usable."""
        if not 0 < level < 1:
            raise ConfigError(
                f"level {level}", "give a level between 0 and 1, e.g. 0.95"
            )
        v = checked_losses(losses, bound)
        if binary and not np.isin(v, (0.0, 1.0)).all():
            raise DataError(
                "a loss other than 0 or 1", "use t_interval or empirical_bernstein"
            )
        return cls(name=name, losses=v, level=level, bound=bound, assumes=assumes)

    def interval(
        self, low: float, high: float, point: float | None = None
    ) -> ErrorEstimate:
        """Return the mean loss, or another point, with its limits, all of them in [0, bound].

        Examples
        --------
        >>> sample = LossSample.checked("t", np.array([0.0, 0.2]), 0.9, assumes="")
        >>> sample.interval(-0.2, 0.4).low, sample.interval(-0.2, 0.4).high
        (0.0, 0.4)
        """

        def clip_to_bound(value: float) -> float:
            return min(max(float(value), 0.0), self.bound)

        # the true error lies in [0, bound], so clipping loses no coverage
        return ErrorEstimate(
            name=self.name,
            point=clip_to_bound(self.losses.mean() if point is None else point),
            low=clip_to_bound(low),
            high=clip_to_bound(high),
            level=self.level,
            n=len(self.losses),
            assumes=self.assumes,
        )

    def without_interval(
        self, reason: str, point: float | None = None
    ) -> ErrorEstimate:
        """Return the mean loss, or another point, with the reason why it has no interval."""
        if point is None:
            # the mean of no losses is no number, and numpy would warn of it
            point = float(self.losses.mean()) if len(self.losses) else math.nan
        return ErrorEstimate(
            name=self.name,
            point=point,
            level=self.level,
            n=len(self.losses),
            assumes=self.assumes,
            reason=reason,
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
    median = float(np.median(ascending))
    if below < 1:
        return median, 0.0, float("inf")
    return median, float(ascending[below - 1]), float(ascending[n - below])
