"""Series that need no file: simulated ones, and twelve of the United States' economy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from amlb_ext.core.assets import asset_path
from amlb_ext.core.rng import random_stream
from amlb_ext.sources.panel import PanelRoles

#: How :func:`read_macrodata` is read.
MACRODATA_ROLES = PanelRoles(
    series="item_id",
    time="timestamp",
    target="target",
    horizon=4,
    season=4,
    frequency="QS",
)


def read_macrodata() -> pd.DataFrame:
    """Return twelve quarterly series of the United States' economy, 1959 to 2009, as a long table.

    Public domain: compiled by Skipper Seabold from the Federal Reserve Bank of St. Louis and the
    Bureau of Labor Statistics, as statsmodels distributes it (``statsmodels.datasets.macrodata``).

    Returns
    -------
    DataFrame
        ``item_id``, ``timestamp``, ``target``; 203 quarters of each series.

    Examples
    --------
    >>> table = read_macrodata()
    >>> len(table), table["item_id"].nunique(), float(table["target"].iloc[0])
    (2436, 12, 28.98)
    """
    wide = pd.read_csv(asset_path("resources", "series", "macrodata.csv"))
    month = 3 * wide["quarter"] - 2
    parts = {"year": wide["year"].astype(int), "month": month.astype(int), "day": 1}
    wide["timestamp"] = pd.to_datetime(pd.DataFrame(parts))
    wide = wide.drop(columns=["year", "quarter"])
    table = wide.melt("timestamp", var_name="item_id", value_name="target")
    table = table.sort_values(["item_id", "timestamp"], ignore_index=True)
    return table[["item_id", "timestamp", "target"]]


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


#: By the part of their name behind ``bundled/``: what reads the table, and how it is read.
BUNDLED_SERIES: dict[str, tuple[Callable[[], pd.DataFrame], PanelRoles]] = {
    "series": (simulate_series, SIMULATED_ROLES),
    "macrodata": (read_macrodata, MACRODATA_ROLES),
}
