"""What is settled of the windows of a panel: as it is used, and as a manifest keeps it.

A *window* is a series at an origin: its past up to the cutoff, and the H values behind it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A series that takes part in nothing, and why."""

    series: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Origins:
    """Calendar positions of the last values that are seen.

    Attributes
    ----------
    test, learning : tuple of int
        Ascending; each of ``learning`` is H or more steps before the first of ``test``.
    step : int
        Between two test origins.
    """

    test: tuple[int, ...]
    learning: tuple[int, ...]
    step: int

    def __post_init__(self) -> None:
        if not self.test or min(self.all) < 0 or self.step < 1:
            raise ValueError("origins: there are none, or none of a calendar")

    @property
    def all(self) -> tuple[int, ...]:
        """Learning origins, then test origins."""
        return (*self.learning, *self.test)


@dataclass(frozen=True, kw_only=True)
class WindowRule:
    """The rule by which windows are bad, with its threshold.

    Attributes
    ----------
    rule : str
        See :data:`amlb_ext.units.window_rules.RULES`.
    alpha : float
        Windows at least as hard are bad.
    reason : str
        Where alpha comes from.
    """

    rule: str
    alpha: float
    reason: str

    def select(self, hardness: np.ndarray) -> np.ndarray:
        """Return which windows are bad, ``(n,)``."""
        return np.asarray(hardness >= self.alpha)
