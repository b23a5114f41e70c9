"""The real windows that others are made from: bad ones of a learning origin.

Their futures end at or before the cutoff of every test origin. So nothing that is made of them
holds a value that a forecaster on test windows must not know, and it may be learnt from, too. All
are of one origin, so that in a task of made windows no past holds the future of another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from amlb_ext.core.rng import random_stream
from amlb_ext.forecasting.failing_windows import FailingWindows
from amlb_ext.forecasting.origins import Windows
from amlb_ext.forecasting.panel import Panel

#: Fewer bad windows of an origin make nothing; with fewer than the second number a certificate
#: shows little, so that an earlier origin is looked at.
FEWEST_SOURCES, ENOUGH_SOURCES = 5, 10
#: More are drawn from: each costs forecasts of F.
MOST_SOURCES = 200


@dataclass(frozen=True, kw_only=True)
class SourceWindows:
    """Bad windows of one learning origin.

    Attributes
    ----------
    origin : Windows
        All windows there, the bad ones among them.
    items : ndarray of shape (n,), int
        Series of the bad windows, as positions in the panel.
    scale : ndarray of shape (n,)
    pasts : tuple of ndarray
    future : ndarray of shape (n, H)
    note : str
        What was left aside; empty where nothing was.
    """

    origin: Windows
    items: np.ndarray
    scale: np.ndarray
    pasts: tuple[np.ndarray, ...]
    future: np.ndarray
    note: str = ""

    def __len__(self) -> int:
        return len(self.items)

    @property
    def cutoff(self) -> int:
        """Calendar position of the last value of the pasts."""
        return self.origin.cutoff


def choose_sources(failing: FailingWindows, seed: int) -> SourceWindows | str:
    """Return the bad windows of the latest learning origin that has enough, or why there are none.

    Enough are ten; where no origin has as many, the most that one has, and at least five. At most
    200, drawn at random.
    """
    if failing.learning is None or not failing.learning.origins:
        return "there is no learning origin (--learning-origins)"
    most = -1
    for origin, is_bad in failing.learning.parts():
        # capped, so that the latest of those with enough is taken
        n_bad = min(int(is_bad.sum()), ENOUGH_SOURCES)
        if n_bad >= most:
            most, windows, chosen = n_bad, origin, np.flatnonzero(is_bad)
    if most < FEWEST_SOURCES:
        return (
            f"F fails on {most} windows of a learning origin at most, and {FEWEST_SOURCES} are "
            "needed"
        )
    note = ""
    if len(chosen) > MOST_SOURCES:
        note = f"windows are made of {MOST_SOURCES} of {len(chosen)} bad ones, drawn at random"
        rng = random_stream(seed, "forecasting", "source windows")
        chosen = np.sort(rng.choice(chosen, MOST_SOURCES, replace=False))
    items = windows.items[chosen]
    pasts = [past_until(failing.panel, int(item), windows.cutoff) for item in items]
    return SourceWindows(
        origin=windows,
        items=items,
        scale=windows.scale[chosen],
        pasts=tuple(pasts),
        future=windows.future[chosen].copy(),
        note=note,
    )


def past_until(panel: Panel, item: int, cutoff: int) -> np.ndarray:
    """Return a copy of a past: whoever holds a view of a series could look behind its end."""
    return panel.past(item, cutoff).copy()
