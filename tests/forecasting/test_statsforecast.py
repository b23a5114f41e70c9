"""Seasonal naive and Theta are those of statsforecast.

statsforecast wants pandas < 3, so it is tried in an environment of its own: ``pip install -e .
statsforecast pytest`` there, then ``pytest tests/forecasting/test_statsforecast.py``.
"""

import numpy as np
import pytest

from amlb_ext.models.local_methods import seasonal_naive, theta
from amlb_ext.sources.bundled_series import simulate_series
from amlb_ext.stats.window_losses import scaled_errors, seasonal_scale

models = pytest.importorskip(
    "statsforecast.models", reason="statsforecast is not installed"
)

HORIZON, SEASON = 12, 12


@pytest.fixture(scope="module")
def series():
    table = simulate_series(60, 120, seed=5)
    return [y.to_numpy() for _, y in table.groupby("item_id")["target"]]


def test_the_seasonal_naive_forecast_is_the_same(series):
    model = models.SeasonalNaive(season_length=SEASON)
    for y in series:
        theirs = model.forecast(y=y, h=HORIZON + 3)["mean"]
        ours, _ = seasonal_naive(y, HORIZON + 3, SEASON)
        assert ours == pytest.approx(theirs, rel=1e-6)


def test_theta_is_within_one_percent(series):
    gaps, ours_mase, theirs_mase = [], [], []
    for y in series:
        past, future = y[:-HORIZON], y[-HORIZON:]
        scale = np.array([seasonal_scale(past, SEASON)])
        model = models.Theta(season_length=SEASON)
        theirs = model.forecast(y=past, h=HORIZON)["mean"]
        ours, _ = theta(past, HORIZON, SEASON)
        gaps.append(np.abs(ours - theirs).mean() / np.abs(theirs).mean())
        ours_mase.append(scaled_errors(future[None], ours[None], scale)[0])
        theirs_mase.append(scaled_errors(future[None], theirs[None], scale)[0])
    assert np.median(gaps) < 0.01
    assert np.mean(ours_mase) == pytest.approx(np.mean(theirs_mase), rel=0.01)
