"""AMLB itself loads and scores series as the rules say, and as our losses do.

Skips where AMLB cannot be had. It is never imported here: a script runs in its own Python.
"""

from __future__ import annotations

import numpy as np
import pytest
from amlb_scripts import ask_amlb
from crafted_series import HORIZON, SEASON, crafted, long_table, task

from amlb_ext.amlb.series_rules import check_series_task
from amlb_ext.models.forecasters import LEVELS, Forecasts
from amlb_ext.stats.window_losses import WINDOW_LOSSES, ForecastWindows

pytestmark = pytest.mark.amlb

KINDS = ("sound", "no season", "short", "constant", "missing", "gaps", "further column")

SCRIPT = r"""
from amlb.results import TimeSeriesResult

answers = {}
for name, case in cases.items():
    try:
        dataset = ns(**case["dataset"], name=name, features=None)
        loaded = FileLoader(tempfile.mkdtemp()).load(dataset, fold=0)
        test = loaded.test.data
        target = case["dataset"]["target"]
        truth = test[target].to_numpy(float)
        # the same forecasts as in the test: the truth moved on
        frame = pd.DataFrame({"truth": truth, "predictions": truth + 1.0})
        frame["repeated_item_id"] = loaded.repeated_item_id
        frame["repeated_abs_seasonal_error"] = loaded.repeated_abs_seasonal_error
        for level in case["levels"]:
            frame[str(level)] = truth + level - 0.3
        result = TimeSeriesResult(frame)
        error = (frame.truth - frame.predictions).abs() / frame.repeated_abs_seasonal_error
        answers[name] = {
            "scale": loaded.repeated_abs_seasonal_error[::6].tolist(),
            "items": error.groupby(frame.repeated_item_id).mean().tolist(),
            "mase": float(result.mase()), "sql": float(result.sql()),
            "wql": float(result.wql()), "crps": float(result.mql()),
            "columns": list(loaded.train.data.columns),
        }
    except Exception as error:
        answers[name] = {"error": type(error).__name__ + ": " + str(error)}
"""


@pytest.fixture(scope="module")
def cases(amlb, tmp_path_factory):
    """Return what AMLB makes of each crafted table, and what the rules say of it."""
    folder = tmp_path_factory.mktemp("series")
    told, findings = {}, {}
    for kind in KINDS:
        path = folder / f"{len(told)}.csv"
        crafted(kind).to_csv(path, index=False)
        told[kind] = {"dataset": task(path)["dataset"], "levels": list(LEVELS)}
        findings[kind] = check_series_task("mine", task(path))
    answers = ask_amlb(amlb, SCRIPT, told, folder)
    return answers, findings


def test_scores_equal_ours_per_item(cases):
    answers, findings = cases
    answer = answers["sound"]
    assert findings["sound"] == []
    groups = [rows["target"].to_numpy() for _, rows in long_table().groupby("item_id")]
    future = np.array([y[-HORIZON:] for y in groups])
    scale = np.array(
        [np.abs(y[SEASON:-HORIZON] - y[: -HORIZON - SEASON]).mean() for y in groups]
    )
    quantiles = future[:, :, None] + np.array(LEVELS) - 0.3
    windows = ForecastWindows(
        y=future,
        forecast=Forecasts(mean=future + 1.0, quantiles=quantiles),
        levels=np.array(LEVELS),
        scale=scale,
        # AMLB has no loss of this scale
        rms_scale=scale,
        mean_size=np.abs(future).mean(),
    )
    ours = {name: loss(windows) for name, loss in WINDOW_LOSSES.items()}
    assert answer["items"] == pytest.approx(ours["mase"], abs=1e-6)
    for name in ("mase", "sql", "wql", "crps"):
        assert answer[name] == pytest.approx(ours[name].mean(), abs=1e-6)


def test_what_amlb_mis_scores_is_predicted(cases):
    answers, findings = cases
    # no longer than the season: errors are in the target's own unit
    assert set(answers["no season"]["scale"]) == {1.0}
    assert "scale becomes 1.0" in findings["no season"][0]
    # constant in training: left out of the mean
    kept = [error for error in answers["constant"]["items"] if np.isfinite(error)]
    assert len(kept) == 4
    assert answers["constant"]["mase"] == pytest.approx(np.mean(kept))
    assert "left out of the mean in silence" in findings["constant"][0]
    assert "origin" in answers["further column"]["columns"]
    assert "covariate" in findings["further column"][0]
    assert "error" not in answers["gaps"]
    assert "has gaps" in findings["gaps"][0]


def test_what_amlb_fails_on_is_predicted(cases):
    answers, findings = cases
    assert "error" in answers["short"]
    assert "fails" in findings["short"][0]
    assert "NaN" in answers["missing"]["error"]
    assert "NaN" in findings["missing"][0]
