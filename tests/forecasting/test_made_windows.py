"""Made windows: from failures of earlier origins alone, kept where F still fails, certified."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hostile_files import reseal

from amlb_ext.cli import main
from amlb_ext.cli.verify import verify_folder
from amlb_ext.making.made_windows import make_windows
from amlb_ext.models.forecast_files import forecasts_from_table
from amlb_ext.models.forecasters import Forecasts, make_forecaster
from amlb_ext.pipeline.series_suite import SuitePart, write_suite
from amlb_ext.report.series import score_made_windows
from amlb_ext.sources.bundled_series import SIMULATED_ROLES, simulate_series
from amlb_ext.sources.panel import read_panel
from amlb_ext.suite.shared_files import place_definitions
from amlb_ext.units.failing_windows import find_failing_windows
from amlb_ext.units.origins import plan_origins
from amlb_ext.units.stored_windows import ForecastSuite
from amlb_ext.validity import read_certificates
from amlb_ext.validity.window_certificate import certify_windows

ROLES = replace(SIMULATED_ROLES, horizon=6)
COPIES = 2
#: So that a third of the windows are bad, of series too few for the forests of a region.
ALPHA = 1.2


@pytest.fixture(scope="module")
def table():
    return simulate_series(29, 84)


@pytest.fixture(scope="module")
def naive():
    return make_forecaster("seasonal_naive")


def find(table, forecaster):
    panel = read_panel(table, ROLES)
    return find_failing_windows(forecaster, panel, plan_origins(panel), alpha=ALPHA)


@pytest.fixture(scope="module")
def failing(table, naive):
    return find(table, naive)


@pytest.fixture(scope="module")
def made(failing, naive):
    return make_windows(naive, failing, COPIES)


def write(failing, made, certificates, out):
    part = SuitePart(
        task="toy",
        failing=failing,
        twins=[],
        about={"source": "simulated", "baseline": "seasonal_naive"},
        made=made,
        certificates=certificates,
    )
    write_suite(out, [part], name="hardsynth", seed=0)
    return out


@pytest.fixture(scope="module")
def suite(failing, naive, made, tmp_path_factory):
    out = tmp_path_factory.mktemp("made") / "hard"
    certificates = certify_windows(naive, failing, made, [])
    return write(failing, made, certificates, out)


def test_windows_are_made_of_bad_ones_whose_futures_ended_before_the_test(
    made, failing
):
    (part,) = made.parts
    assert made.windows.cutoff + 6 <= min(failing.origins.test)
    bad = dict((w.cutoff, w.items[b]) for w, b in failing.learning.parts())
    assert set(part.sources) <= set(bad[made.windows.cutoff])
    assert np.bincount(part.sources).max() <= 2
    assert (part.judged.hardness >= failing.rule.alpha).all()
    assert np.isfinite(part.judged.scale).all()
    # a view would let a forecaster look behind its end
    assert all(past.base is None for past in part.pasts)


def with_spike(table, cutoff, names):
    """Return the table with absurd values of some series behind a calendar position."""
    times = np.sort(table["timestamp"].unique())
    spiked = table.copy()
    is_behind = spiked["timestamp"] > times[cutoff]
    spiked.loc[is_behind & spiked["item_id"].isin(names), "target"] *= 1e6
    return spiked


def test_a_spike_behind_the_cutoff_is_in_no_made_window(table, made, failing, naive):
    # of every series but two, for F may not fail everywhere
    spiked = with_spike(table, failing.origins.test[0], table["item_id"].unique()[2:])
    (part,) = make_windows(naive, find(spiked, naive), COPIES).parts
    (before,) = made.parts
    assert np.array_equal(part.sources, before.sources)
    assert np.array_equal(part.future, before.future)
    for one, other in zip(part.pasts, before.pasts, strict=True):
        assert np.array_equal(one, other)


def test_a_spike_behind_a_sources_own_cutoff_is_in_no_made_past(
    table, made, failing, naive
):
    """Its label moves with it, and nothing that a forecaster sees."""
    names = [failing.panel.names[item] for item in made.parts[0].sources]
    spiked = with_spike(table, made.windows.cutoff, names)
    (part,) = make_windows(naive, find(spiked, naive), COPIES).parts
    assert part.future.max() > 1e6
    assert max(past.max() for past in part.pasts) < 3 * table["target"].max()


def test_the_suite_holds_made_windows_that_verify_makes_again(suite):
    assert verify_folder(suite) == []
    loaded = ForecastSuite.load(suite)
    manifest = loaded.tables[0].entry.made
    (task,) = [task for task in loaded.manifest.listed if task.kind == "ga"]
    assert task.name == "toy_ga"
    written = pd.read_csv(suite / task.path)
    assert list(written) == ["item_id", "timestamp", "target"]
    assert written["item_id"].nunique() == len(task.items)
    assert manifest["parts"][0]["windows"] == len(task.items)
    ends = written.groupby("item_id")["timestamp"].max()
    assert set(ends) == {manifest["last_used"]}
    assert manifest["last_used"] <= "2016-06-01"  # the test's cutoff


@pytest.fixture
def changed(suite, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(suite, copy)
    place_definitions(ForecastSuite.load(copy))
    return copy


def write_csv(folder, table):
    table.to_csv(folder / "data/toy_ga/toy_ga.csv", index=False)
    reseal(folder)


def made_csv(folder):
    return pd.read_csv(folder / "data/toy_ga/toy_ga.csv")


def test_verify_finds_a_value_that_no_move_makes(changed):
    table = made_csv(changed)
    table.loc[10, "target"] += 5
    write_csv(changed, table)
    (finding,) = verify_folder(changed)
    assert "w00000" in finding
    assert "is not what its move makes" in finding or "scale" in finding


def test_verify_finds_windows_that_reach_behind_the_test_cutoff(changed):
    path = changed / "hardsynth" / "made.parquet"
    rows = pd.read_parquet(path)
    rows.assign(cutoff=rows["cutoff"] + 6).to_parquet(path, index=False)
    reseal(changed)
    (finding,) = verify_folder(changed)
    assert "6 steps behind the cutoff of the first test origin" in finding


def test_verify_finds_shifted_times_missing_values_and_other_ids(changed):
    table = made_csv(changed)
    times = pd.to_datetime(table["timestamp"]) - pd.DateOffset(months=1)
    write_csv(changed, table.assign(timestamp=times.dt.date))
    assert "does not lie at the" in verify_folder(changed)[0]
    write_csv(changed, table.iloc[1:])
    assert "values, and" in verify_folder(changed)[0]
    ids = table["item_id"].replace("w00001", "w99999")
    write_csv(changed, table.assign(item_id=ids))
    assert "ids are others" in verify_folder(changed)[0]


def test_the_certificate_says_what_made_windows_are_for(suite, output_of):
    (certificate,) = read_certificates(ForecastSuite.load(suite)).values()
    # bad windows are those of the test origins, as generate and report count them
    [table] = ForecastSuite.load(suite).tables
    n_bad = int(table.read_failing_windows().is_bad.sum())
    assert certificate.rows["bad"] == n_bad
    assert certificate.task == "toy_ga"
    assert certificate["time order"].passed
    assert certificate["AMLB's scale"].value == 1
    assert certificate["exact copies"].value == 0
    assert certificate.verdict != "rank" or certificate["ga: order"].passed
    assert "time order" in output_of("show", suite)


def test_the_report_sets_a_framework_on_made_windows_beside_f(suite, failing):
    loaded = ForecastSuite.load(suite)
    asked = {}

    def answer_rightly(task, windows):
        asked[task] = windows
        return Forecasts(mean=windows.future)

    runs = {"toy_ga": suite}
    entrants = {
        "Right": SimpleNamespace(runs=runs, answer=answer_rightly),
        "Drops": SimpleNamespace(
            runs=runs, answer=lambda *_: "it predicts 3 of 9 series"
        ),
        # fev's predictions are of no made task
        "Fev": SimpleNamespace(runs={}),
    }
    scores = score_made_windows(loaded, loaded.tables[0], entrants, 0.95)
    row, dropped = scores.to_dict("records")
    # nothing is said of some of the windows, but that they are not all
    assert dropped["use"] == "it predicts 3 of 9 series"
    assert np.isnan(dropped["mase"])
    written = made_csv(suite).groupby("item_id").tail(6)["target"]
    assert asked["toy_ga"].future.ravel() == pytest.approx(written.to_numpy())
    assert (row["task"], row["framework"], row["mase"]) == ("toy_ga", "Right", 0)
    assert row["mase_f"] > failing.rule.alpha
    assert row["high"] < 0
    assert row["use"] in ("rank", "describe", "stress-test only")


def test_nothing_is_made_where_f_cannot_be_asked_or_never_failed_enough(failing, naive):
    file = forecasts_from_table(
        pd.DataFrame({"s": ["a"], "t": ["2020-01-01"], "mean": [1.0]}),
        "file",
        series="s",
        time="t",
    )
    assert "file of forecasts" in make_windows(file, failing, COPIES).notes[0]
    none_bad = replace(
        failing,
        learning=replace(
            failing.learning, is_bad=np.zeros_like(failing.learning.is_bad)
        ),
    )
    assert "0 windows of a learning" in make_windows(naive, none_bad, COPIES).notes[0]
    assert make_windows(naive, failing, copies=0).parts == ()


@pytest.fixture
def few(tmp_path):
    """Return the file of too few series for a region, two of them zeros: no forest grows."""
    table = simulate_series(26, 72)
    is_zero = table["item_id"].isin(["stable_001", "unstable_003"])
    path = tmp_path / "few.csv"
    table.assign(target=table["target"].where(~is_zero, 0.0)).to_csv(path, index=False)
    return path


def generate(path, out, *flags):
    roles = ["--series", "item_id", "--time", "timestamp", "--target", "target"]
    how = ["--horizon", "6", "--baseline", "seasonal_naive", "--alpha", "1.2"]
    return main(["generate", str(path), *roles, *how, "-o", str(out), *flags])


def test_series_of_zeros_take_part_in_nothing_and_are_counted(few, tmp_path, capsys):
    """MASE has no scale there; AMLB would leave them out of its mean without a word."""
    out = tmp_path / "zeros"
    assert generate(few, out, "--copies", "1") == 0
    printed = capsys.readouterr().out
    assert "2 series have no scale" in printed
    # whether failures are foreseen is for the certificate to say
    assert "foreseen" not in printed
    assert "few_ga: describe" in printed
    assert verify_folder(out) == []
    loaded = ForecastSuite.load(out)
    names = {entry.series for entry in loaded.tables[0].entry.left_out}
    assert names == {"stable_001", "unstable_003"}
    rows = pd.read_parquet(out / "hardsynth" / "made.parquet")
    assert not set(rows["series_name"]) & names


def test_made_windows_can_be_left_out_and_settings_of_rows_are_refused(
    few, tmp_path, capsys
):
    out = tmp_path / "plain"
    assert generate(few, out, "--copies", "0", "--certificate", "none") == 0
    kinds = {task.kind for task in ForecastSuite.load(out).manifest.listed}
    assert kinds == {"full", "bad"}
    for flag, value in (
        ("--synthesizer", "copula"),
        ("--preset", "stress"),
        ("--kappa", ".5"),
    ):
        assert generate(few, tmp_path / "a", flag, value) == 2
        assert f"{flag} has no effect on series" in capsys.readouterr().err
