"""AMLB's rules for series: each case that it fails on or mis-scores is predicted."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.amlb.series_rules import check_series_task

HORIZON, SEASON = 6, 4


def long_table(n_series=3, length=30):
    parts = []
    for number in range(n_series):
        times = pd.date_range("2020-01-01", periods=length, freq="MS")
        values = np.sin(np.arange(length) * (number + 1)) + 10
        item = f"w{number:05d}"
        parts.append(
            pd.DataFrame({"item_id": item, "timestamp": times, "target": values})
        )
    return pd.concat(parts, ignore_index=True)


def task(path, **changes):
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


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("short", "empty in training"),
        ("no season", "scale becomes 1.0"),
        ("constant", "1 item repeats itself in training, 'w00000' the first"),
        ("rounding", "alike from season to season but for rounding"),
        ("missing", "predictions become NaN"),
        ("infinite", "the target is infinite"),
        ("texts", "holds texts: AMLB fails"),
        ("no times", "cannot be read: AMLB fails"),
        ("NA", "30 rows have no item"),
        ("gaps", "'w00000' has gaps, or times off"),
        ("further column", "'origin' is passed on"),
        ("cut twice", "'w00000' and 'w99999' are one series cut twice"),
        ("cut behind another", "'w00001' and 'w99999' are one series cut twice"),
        ("twice", "'w00000' has a time twice"),
    ],
)
def test_a_crafted_file_is_predicted(kind, message, tmp_path):
    path = tmp_path / "data.csv"
    crafted(kind).to_csv(path, index=False)
    (problem,) = check_series_task("mine", task(path))
    assert message in problem


def test_a_sound_file_has_no_finding(tmp_path):
    path = tmp_path / "data.csv"
    long_table().to_csv(path, index=False)
    assert check_series_task("mine", task(path)) == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("{user}/data.csv", "never runs, with exit status 0"),
        ("data.csv", "relative to the folder that AMLB is started in"),
        ("/no/such/data.csv", "there is no file"),
    ],
)
def test_paths_that_amlb_does_not_find_are_predicted(path, message):
    (problem,) = check_series_task("mine", task(path))
    assert message in problem


def test_addresses_are_left_to_amlb():
    assert check_series_task("mine", task("https://example.org/data.csv")) == []


def test_folds_names_and_frequencies_that_amlb_gets_wrong(tmp_path):
    path = tmp_path / "data.csv"
    long_table().to_csv(path, index=False)
    problems = check_series_task("nan", task(path, folds=2, freq="ME"))
    texts = " ".join(problems)
    assert "'nan' is read as missing" in texts
    assert "fold 1 leaves out two horizons" in texts
    assert "'ME' is unknown to pandas 1.5" in texts


def test_later_folds_lose_two_horizons(tmp_path):
    path = tmp_path / "data.csv"
    long_table(length=3 * HORIZON).to_csv(path, index=False)
    problems = check_series_task("mine", task(path, folds=2))
    assert any("empty in training in fold 1" in problem for problem in problems)
