"""Series that need no file: simulated ones, and twelve of the United States' economy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from amlb_ext.core.assets import asset_path
from amlb_ext.forecasting.panel import PanelRoles
from amlb_ext.forecasting.simulator import SIMULATED_ROLES, simulate_series

#: How :func:`read_macrodata` is read.
MACRODATA_ROLES = PanelRoles(
    series="item_id",
    time="timestamp",
    target="target",
    horizon=4,
    season=4,
    frequency="QS",
)


@dataclass(frozen=True, kw_only=True)
class BundledSeries:
    """A long table that comes with the installation.

    Attributes
    ----------
    read : callable
        Returns the table.
    roles : PanelRoles
    """

    read: Callable[[], pd.DataFrame]
    roles: PanelRoles


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


#: By the part of their name behind ``bundled/``.
BUNDLED_SERIES = {
    "series": BundledSeries(read=simulate_series, roles=SIMULATED_ROLES),
    "macrodata": BundledSeries(read=read_macrodata, roles=MACRODATA_ROLES),
}
