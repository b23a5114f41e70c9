"""Files of series that AMLB fails on or mis-scores."""

import numpy as np
import pandas as pd

HORIZON, SEASON = 6, 4


def long_table(n_series=5, length=30):
    parts = []
    rng = np.random.default_rng(0)
    for number in range(n_series):
        times = pd.date_range("2020-01-01", periods=length, freq="MS")
        values = rng.normal(100, 10, length).round(3)
        item = f"w{number:05d}"
        parts.append(
            pd.DataFrame({"item_id": item, "timestamp": times, "target": values})
        )
    return pd.concat(parts, ignore_index=True)


def task(path, **changes):
    """Return the definition of a task whose file this is."""
    dataset = {
        "path": str(path),
        "type": "timeseries",
        "freq": "MS",
        "forecast_horizon_in_steps": HORIZON,
        "seasonality": SEASON,
        "id_column": "item_id",
        "timestamp_column": "timestamp",
        "target": "target",
    }
    folds = changes.pop("folds", 1)
    return {"dataset": {**dataset, **changes}, "folds": folds}


def crafted(kind):
    """Return a table with the fault of one row of the note's list."""
    table = long_table()
    first = table["item_id"] == "w00000"
    if kind == "short":
        return table.groupby("item_id").tail(HORIZON)
    if kind == "no season":
        return table.groupby("item_id").tail(HORIZON + SEASON)
    if kind == "constant":
        table.loc[first, "target"] = [*[5.0] * 24, *range(6)]
    if kind == "rounding":
        table.loc[first, "target"] = [*[0.3] * 12, *[0.1 + 0.2] * 12, *range(6)]
    if kind == "missing":
        table.loc[26, "target"] = np.nan
    if kind == "missing in training":
        table.loc[4, "target"] = np.nan
    if kind == "infinite":
        table.loc[4, "target"] = np.inf
    if kind == "texts":
        return table.assign(target="much")
    if kind == "no times":
        return table.assign(timestamp="soon")
    if kind == "NA":
        return table.replace({"item_id": {"w00001": "NA"}})
    if kind == "gaps":
        return table.drop(index=[5, 6])
    if kind == "further column":
        return table.assign(origin="bad")
    if kind == "cut twice":
        cut = table[first].head(20).assign(item_id="w99999")
        return pd.concat([table, cut])
    if kind == "cut behind another":
        table.loc[first, "target"] = [*table.loc[first, "target"][:8], *range(22)]
        others = table[table["item_id"] == "w00001"]
        table.loc[others.index[:8], "target"] = table["target"][:8].to_numpy()
        return pd.concat([table, table.loc[others.index[:20]].assign(item_id="w99999")])
    if kind == "twice":
        table.loc[7, "timestamp"] = table.loc[6, "timestamp"]
    return table
