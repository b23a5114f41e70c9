"""A suite of two tables of series, made once as the hard twin of a definition."""

import contextlib
import io
from types import SimpleNamespace

import pandas as pd
import pytest
from commands import words_of

from amlb_ext.cli import main
from amlb_ext.sources.bundled_series import simulate_series

#: Two tasks that can be made hard, and two that cannot.
DEFINITION = """\
- name: __defaults__
  cores: 2
- name: shops
  max_runtime_seconds: 60
  metric: [mase, smape]
  quantile_levels: [0.1, 0.9]
  folds: 2
  dataset:
    {path: a.csv, type: timeseries, freq: MS, forecast_horizon_in_steps: 3, seasonality: 12,
     target: target}
- name: stores no. 2
  dataset:
    {path: b.csv, type: timeseries, freq: MS, forecast_horizon_in_steps: 4, seasonality: 12,
     target: y, id_column: shop, timestamp_column: month}
- name: away
  dataset:
    {path: gone.csv, type: timeseries, freq: MS, forecast_horizon_in_steps: 4, seasonality: 12,
     target: y}
- name: endless
  dataset: {path: b.csv, type: timeseries, freq: MS, seasonality: 12, target: y}
"""


@pytest.fixture(scope="session")
def twin(tmp_path_factory):
    """Return the folder, the suite in it, and what the command printed on stderr."""
    folder = tmp_path_factory.mktemp("twin")
    simulate_series(32, 48, seed=2).to_csv(folder / "a.csv", index=False)
    names = {"target": "y", "item_id": "shop", "timestamp": "month"}
    other = simulate_series(32, 48, seed=3).rename(columns=names)
    other.to_csv(folder / "b.csv", index=False)
    definition = folder / "mine.yaml"
    definition.write_text(DEFINITION)
    suite = folder / "hard"
    words = ["harden", str(definition), "--baseline", "seasonal_naive"]
    words += words_of(
        "--certificate none --copies 0 --learning-origins 2 -o", suite, "-q"
    )
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        status = main(words)
    lines = errors.getvalue().splitlines()
    return SimpleNamespace(folder=folder, suite=suite, status=status, lines=lines)


@pytest.fixture(scope="session")
def wide(twin):
    """Return a Parquet file as fev keeps series: a row for each, times and values as lists."""
    table = pd.read_csv(twin.folder / "a.csv", parse_dates=["timestamp"])
    rows = table.groupby("item_id").agg(list).reset_index()
    path = twin.folder / "wide.parquet"
    rows.to_parquet(path, index=False)
    return path
