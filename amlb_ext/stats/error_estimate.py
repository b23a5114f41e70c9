"""What an estimator of the true error answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

NOT_CHECKED = "not checked"
PASSED = "passed"
FAILED = "failed"


@dataclass(frozen=True)
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
        Why the check failed or there is no interval; what was found otherwise.
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
        >>> no_estimate("wilson", 0.95, 0, "", "no row").has_interval
        False
        """
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def width(self) -> float:
        """``high - low``."""
        return self.high - self.low

    def checked(self, passed: bool, reason: str = "") -> ErrorEstimate:
        """Return the same with the outcome of the check of its assumption."""
        return replace(self, check=PASSED if passed else FAILED, reason=reason or self.reason)


def no_estimate(name: str, level: float, n: int, assumes: str, reason: str) -> ErrorEstimate:
    """Return an answer without any number, and why."""
    nan = math.nan
    return ErrorEstimate(name, nan, nan, nan, level, n, assumes, reason=reason)
