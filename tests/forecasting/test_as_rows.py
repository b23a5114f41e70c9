"""Series as rows: what a lag holds, and that nothing looks ahead."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.cli import main
from amlb_ext.core.errors import DataError
from amlb_ext.sources.bundled_series import SIMULATED_ROLES, simulate_series
from amlb_ext.sources.panel import PanelRoles, read_panel
from amlb_ext.sources.series_as_rows import series_to_rows
from amlb_ext.suite import SuiteFiles

pytestmark = pytest.mark.usefixtures("light_models")


def panel_of(*series, horizon=2, season=3):
    parts = []
    for number, values in enumerate(series):
        times = pd.date_range("2020-01-01", periods=len(values), freq="D")
        parts.append(pd.DataFrame({"id": f"s{number}", "time": times, "y": values}))
    roles = PanelRoles(
        series="id", time="time", target="y", horizon=horizon, season=season
    )
    return read_panel(pd.concat(parts), roles)


def test_a_row_by_hand():
    y = np.array([1.0, 5, 2, 4, 8, 3, 9, 6, 7, 0, 4, 2, 8, 5, 1, 3])
    rows = series_to_rows(panel_of(y), lags=2)
    row = rows.frame.iloc[1]
    # t is the fifth value: the past is 1 5 2 4 8
    scale = (abs(4 - 1) + abs(8 - 5)) / 2
    centre = (2 + 4 + 8) / 3
    assert row["cutoff"] == 4
    assert row["lag_1"] == pytest.approx((8 - centre) / scale)
    assert row["lag_2"] == pytest.approx((4 - centre) / scale)
    assert row["ahead_2"] == pytest.approx((9 - centre) / scale)
    # the target is the seventh value, and a season before it stands the fourth
    assert row["season_before"] == pytest.approx((4 - centre) / scale)
    assert row["place_in_season"] == 6 % 3
    assert rows.gap == 4


def test_what_comes_behind_the_cutoff_changes_the_target_alone():
    table = simulate_series(3, 60)
    spike = table.copy()
    is_last = spike.groupby("item_id").cumcount() >= 50
    spike.loc[is_last, "target"] *= 1000
    frames = []
    for each in (table, spike):
        frames.append(series_to_rows(read_panel(each, SIMULATED_ROLES), lags=5).frame)
    before, after = (frame[frame["cutoff"] < 50] for frame in frames)
    features = [name for name in before if not name.startswith("ahead")]
    pd.testing.assert_frame_equal(before[features], after[features])
    assert (before["ahead_12"] != after["ahead_12"]).any()


def test_series_of_one_value_and_short_ones_are_counted():
    panel = panel_of(np.arange(30.0) % 7, np.ones(30), np.arange(4.0))
    rows = series_to_rows(panel, lags=2)
    assert rows.n_short == 1
    assert rows.n_constant == 30 - 2 - 3
    assert set(rows.frame["series"]) == {"s0"}
    with pytest.raises(DataError, match="needs 22"):
        series_to_rows(panel_of(np.arange(9.0)), lags=20)


def test_a_suite_of_rows_is_split_in_time_with_a_gap(tmp_path, capsys):
    path = tmp_path / "sales.csv"
    simulate_series(6, 90).to_csv(path, index=False)
    out = tmp_path / "rows"
    words = ["generate", str(path), "--series", "item_id", "--time", "timestamp"]
    words += ["--target", "target", "--horizon", "3", "--as-rows", "6", "--folds", "2"]
    words += ["--baseline", "ridge", "--rule", "quantile", "--certificate", "none"]
    assert main([*words, "-o", str(out)]) == 0
    assert "windows of 6 series are rows, 1 step apart" in capsys.readouterr().err
    suite = SuiteFiles.load(out)
    assert set(suite.amlb_tasks) == {
        "sales_ahead_3",
        *(f"sales_ahead_3_{part}" for part in ("full", "bad", "region")),
    }
    rows = pd.read_parquet(tmp_path / "rows_inputs" / "sales_ahead_3.parquet")
    for fold in range(2):
        tested = suite.provenance("sales_ahead_3_full", fold)
        learnt = suite.train_provenance("sales_ahead_3", fold)
        cutoffs = rows["cutoff"].to_numpy()
        newest = cutoffs[learnt["source_row"]].max()
        assert newest <= cutoffs[tested["source_row"]].min() - 9
        # intervals count series
        assert tested["group"].nunique() == 6
    assert main(["verify", str(out), "-q"]) == 0
