"""AMLB's rules for series: each case that it fails on or mis-scores is predicted."""

import pytest
from crafted_series import HORIZON, crafted, long_table, task

from amlb_ext.amlb.series_rules import check_series_task


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("short", "empty in training"),
        ("no season", "scale becomes 1.0"),
        ("constant", "item 'w00000' is the same from season to season"),
        ("rounding", "alike from season to season but for rounding"),
        ("missing", "predictions become NaN"),
        ("missing in training", "predictions become NaN"),
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


def test_folds_names_and_frequencies_that_amlb_gets_wrong(tmp_path):
    path = tmp_path / "data.csv"
    long_table().to_csv(path, index=False)
    assert check_series_task("mine", task(path)) == []
    # addresses are left to AMLB
    assert check_series_task("mine", task("https://example.org/data.csv")) == []
    texts = " ".join(check_series_task("nan", task(path, folds=2, freq="ME")))
    assert "'nan' is read as missing" in texts
    assert "fold 1 leaves out two horizons" in texts
    assert "'ME' is unknown to pandas 1.5" in texts
    # later folds lose two horizons
    long_table(length=3 * HORIZON).to_csv(path, index=False)
    assert "in training in fold 1" in " ".join(
        check_series_task("mine", task(path, folds=2))
    )
