"""Simulated monthly series with planted failures: no data of the world, and clearly marked so.

Most series have a level, a trend, a season and noise. Every third one is *unstable*: it grows, and
its level jumps by a part of what it is, in the past as behind the cutoff. So its jumps outgrow the
scale of its past: a forecaster fails there, the past shows it, and whoever finds these series has
found where F fails.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from amlb_ext.core.rng import random_stream
from amlb_ext.forecasting.panel import PanelRoles

#: The source's name on the command line.
SIMULATED = "bundled/series"
#: How the simulated table is read.
SIMULATED_ROLES = PanelRoles(
    series="item_id", time="timestamp", target="target", horizon=12, season=12
)
#: Every so-manieth series is unstable.
UNSTABLE_EVERY = 3


def simulate_series(
    n_series: int = 240, length: int = 132, seed: int = 0
) -> pd.DataFrame:
    """Return simulated monthly series as a long table.

    Parameters
    ----------
    n_series, length : int
    seed : int

    Returns
    -------
    DataFrame
        ``item_id``, ``timestamp``, ``target``; series 0, 3, 6, ... are unstable.

    Examples
    --------
    >>> simulate_series(2, 3)["item_id"].tolist()
    ['unstable_000', 'unstable_000', 'unstable_000', 'stable_001', 'stable_001', 'stable_001']
    """
    times = pd.date_range("2010-01-01", periods=length, freq="MS")
    parts = []
    for number in range(n_series):
        is_unstable = number % UNSTABLE_EVERY == 0
        name = f"{'unstable' if is_unstable else 'stable'}_{number:03d}"
        rng = random_stream(seed, "simulated series", number)
        values = _simulate_one(length, is_unstable, rng)
        parts.append(
            pd.DataFrame({"item_id": name, "timestamp": times, "target": values})
        )
    return pd.concat(parts, ignore_index=True)


def _simulate_one(
    length: int, is_unstable: bool, rng: np.random.Generator
) -> np.ndarray:
    time = np.arange(length)
    size = float(np.exp(rng.normal(4, 1)))
    phase = rng.uniform(0, 2 * np.pi)
    season = 0.2 * np.sin(2 * np.pi * time / 12 + phase)
    trend = rng.normal(0, 0.002) * time
    noise = rng.normal(0, 0.05, length)
    # noise carries on from month to month, as in most series
    for position in range(1, length):
        noise[position] += 0.5 * noise[position - 1]
    shifts = np.zeros(length)
    if is_unstable:
        # a jump in every third month on average, and growth by a factor of nine in ten years
        jumps = rng.normal(0, 0.2, length) * (rng.random(length) < 1 / 3)
        shifts = np.cumsum(jumps) + 0.018 * time
    return np.asarray(size * np.exp(season + trend + noise + shifts)).round(3)
