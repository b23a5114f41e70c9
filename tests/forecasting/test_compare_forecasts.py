"""Which forecaster is better, where F fails; and nothing of the future is looked at."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from amlb_ext.comparison.forecasts import answer_comparison, compare_forecasts
from amlb_ext.core.errors import ConfigError, DataError, ModelError
from amlb_ext.gate.checks import check_gate
from amlb_ext.models.forecast_files import forecasts_from_table
from amlb_ext.models.forecasters import (
    LEVELS,
    Forecaster,
    Forecasts,
    make_forecaster,
)
from amlb_ext.sources.bundled_series import SIMULATED_ROLES, simulate_series
from amlb_ext.sources.panel import read_panel
from amlb_ext.stats.contrasts import ComparedUnits
from amlb_ext.units.failing_windows import (
    describe_heavy_windows,
    describe_zeros,
    find_failing_windows,
    weigh_windows,
)
from amlb_ext.units.origins import plan_origins
from amlb_ext.units.rolling import request_at, roll_forecaster, score_forecasts
from amlb_ext.units.window_rules import settle_window_rule

COLUMNS = {"series": "item_id", "time": "timestamp", "target": "target"}


@pytest.fixture(scope="module")
def table():
    return simulate_series(150, 108)


@pytest.fixture(scope="module")
def failing(table):
    panel = read_panel(table, SIMULATED_ROLES)
    return find(panel)


def find(panel, rule="mase"):
    """Return the failing windows of a cheap F, without the jackknife's forests."""
    return find_failing_windows(
        make_forecaster("seasonal_naive"),
        panel,
        plan_origins(panel),
        rule=rule,
    )


@pytest.fixture(scope="module")
def result(failing):
    rolled = {}
    for name, word in (("theta", "theta"), ("same", "seasonal_naive")):
        forecaster = make_forecaster(word)
        rolled[name] = roll_forecaster(forecaster, failing.panel, failing.tests)
    twins = []
    for twin in make_forecaster("seasonal_naive").twins(2, 12):
        twins.append(roll_forecaster(twin, failing.panel, failing.tests))
    return answer_comparison(failing, rolled, twins)


@pytest.fixture(scope="module")
def few():
    """Return a panel of too few series to learn a region from, which costs no forests."""
    return read_panel(simulate_series(24, 96), SIMULATED_ROLES)


def test_planted_failures_are_found_and_foreseen(failing):
    windows = failing.table()
    unstable = windows["series"].str.startswith("unstable")
    assert (
        windows.loc[unstable, "bad"].mean() > 3 * windows.loc[~unstable, "bad"].mean()
    )
    weights = windows.groupby(unstable)["risk"].mean()
    assert weights[True] > 2 * weights[False]


def test_a_series_that_hardly_ever_moves_is_named_where_it_decides_the_mean():
    table = simulate_series(30, 96)
    still = pd.Series(0.0, index=range(96))
    still[[20, 90]] = 1.0, 40.0
    times = table["timestamp"].drop_duplicates().to_numpy()
    still = pd.DataFrame({"item_id": "still", "timestamp": times, "target": still})
    panel = read_panel(pd.concat([table, still]), SIMULATED_ROLES)
    failing = find_failing_windows(
        make_forecaster("seasonal_naive"),
        panel,
        plan_origins(panel),
        alpha=1.5,
    )
    # a model that knows the series but for one window of another
    mase = np.full(31, 0.1)
    mase[7] = 50.0
    model = replace(failing.forecasts, losses={"mase": mase})
    (sentence,) = describe_heavy_windows(failing, {"model": model})
    # its past of 84 values has two seasonal differences of 1 among 72, so the scale is 2/72;
    # the error of 40 in one of 12 steps is 120 scales
    assert "series 'still' the largest: MASE 120.0, scale 0.0278" in sentence
    assert sentence.startswith("1 window holds half of F's MASE over all 31")
    assert "1 window holds half of model's MASE over all 31" in sentence


def test_a_forecast_of_zeros_is_named_where_most_values_are_0():
    table = simulate_series(30, 96)
    is_sold = np.random.default_rng(0).random(len(table)) < 0.1
    table["target"] = table["target"].abs().where(is_sold, 0)
    panel = read_panel(table, SIMULATED_ROLES)
    failing = find_failing_windows(make_forecaster("drift"), panel, plan_origins(panel))
    shape = failing.forecasts.quantiles.shape
    nothing = score_forecasts(
        [Forecasts(mean=np.zeros(shape[:2]), quantiles=np.zeros(shape))], failing.tests
    )
    (sentence,) = describe_zeros(failing, {"nothing": nothing})
    assert "of the values to forecast are 0" in sentence
    assert sentence.endswith("nothing 1.00")


def test_the_answer_names_what_is_better_and_what_is_f_again(result):
    assert result.table.loc["theta", "overall"] == "better"
    assert result.table.loc["same", "overall"] == "undecided"
    # a fifth of 150 windows
    assert result.contrasts["effective_size"].min() == 30
    assert "over all windows" in result.text()
    assert "rows" not in result.text()
    assert "rows" not in check_gate(result).text()
    assert result.scores.loc["theta", "mase"] < result.scores.loc["F", "mase"]


def test_the_page_holds_the_windows_and_loads_nothing(result, tmp_path):
    page = result.to_html(tmp_path / "answer.html")
    assert page.count("<svg") == 4
    assert "http-equiv" in page
    assert "<script" not in page
    worst = result.windows.sort_values("hardness").iloc[-1]
    assert f"{worst['series']}: MASE of F" in page
    assert "p against F’s twins" in page
    # its sentences are on windows
    shown = re.sub(r"<(style|svg).*?</\1>|<[^>]+>", " ", page, flags=re.S)
    assert not re.search(r"\brows?\b", shown)


def with_spike(table, from_position):
    """Return the table with absurd values of every other series from one time on."""
    times = np.sort(table["timestamp"].unique())
    spiked = table.copy()
    is_late = spiked["timestamp"] >= times[from_position]
    is_even = spiked["item_id"].str[-1].isin(list("02468"))
    spiked.loc[is_late & is_even, "target"] *= 1e3
    return spiked


def test_nothing_behind_the_cutoff_moves_forecasts_rule_or_weights(table, failing):
    panel = read_panel(with_spike(table, failing.origins.test[0] + 1), SIMULATED_ROLES)
    assert plan_origins(panel) == failing.origins
    again = find(panel)
    assert not np.array_equal(again.is_bad, failing.is_bad)
    assert np.array_equal(again.forecasts.mean, failing.forecasts.mean)
    assert again.rule == failing.rule
    assert np.array_equal(again.weighting.weights, failing.weighting.weights)


def test_pasts_that_forecasters_see_end_at_the_cutoff(few):
    seen = {}

    class Witness(Forecaster):
        name = "witness"

        def forecast(self, request):
            lengths = {len(past) for past in request.pasts}
            seen[request.times[0]] = lengths
            # a view would let a forecaster look behind its end
            assert all(past.base is None for past in request.pasts)
            return Forecasts(mean=make_forecaster("drift").forecast(request).mean)

    panel = few
    origins = plan_origins(panel, test=2, learning=2)
    find_failing_windows(Witness(), panel, origins)
    wanted = {panel.calendar[c + 1]: {c + 1} for c in origins.all}
    assert seen == wanted


def test_weights_of_a_series_do_not_come_from_its_own_windows():
    rng = np.random.default_rng(0)
    n = 120
    features = np.tile(rng.random((n, 2)), (2, 1))
    series = np.tile(np.arange(n), 2)
    cutoffs = np.repeat([0, 10], n)
    is_bad = np.r_[features[:n, 0] > 0.7, np.zeros(n, dtype=bool)]
    how = {"test_cutoffs": (10,), "horizon": 10}
    plain = weigh_windows(features, series, cutoffs, is_bad, **how).weights
    # neither its own earlier window, nor anything behind the test cutoff, is looked at
    flipped = is_bad.copy()
    flipped[0] = not flipped[0]
    flipped[n:] = True
    moved = weigh_windows(features, series, cutoffs, flipped, **how).weights
    assert plain[0] == moved[0]
    assert not np.array_equal(plain, moved)


@pytest.mark.parametrize("rule", ["sql", "quantile", "reducible"])
def test_every_rule_finds_windows(rule, few):
    found = find(few, rule)
    assert 0 < found.is_bad.sum() < len(found.is_bad)


def few_series(n_series, origins, step):
    table = simulate_series(n_series, 160)
    return compare_forecasts(
        table,
        "drift",
        {"theta": "theta"},
        horizon=4,
        season=12,
        origins=origins,
        step=step,
        learning=5,
        **COLUMNS,
    )


def test_few_series_are_compared_over_time_or_refused():
    with pytest.raises(DataError, match="4 series at 3 origins: nothing valid"):
        few_series(4, 3, 1)
    result = few_series(4, 40, 1)
    assert result.table.loc["theta", "overall"] == "better"
    assert result.table.loc["theta", "where_f_fails"] == "no claim"
    assert "too few to learn where F fails" in result.weighting


class LastSeason:
    """A forecaster as a user writes it: the seasonal naive one."""

    def fit(self, past):
        self.season = past[-12:]

    def predict(self, horizon):
        return self.season[:horizon]


@pytest.mark.parametrize(("alpha", "n_bad"), [(1e9, 0), (1e-9, 36)])
@pytest.mark.parametrize("given", [LastSeason, LastSeason()])
def test_all_windows_are_compared_wherever_f_fails(alpha, n_bad, given):
    result = compare_forecasts(
        simulate_series(36, 60),
        "seasonal_naive",
        {"own": given, "drift": "drift"},
        horizon=6,
        alpha=alpha,
        learning=1,
        twins=0,
        **COLUMNS,
    )
    assert result.rows["bad"].sum() == n_bad
    assert result.row("own", "overall")["difference"] == pytest.approx(0)
    assert result.table.loc["drift", "overall"] == "worse"
    assert set(result.table["where_f_fails"]) == {"no claim"}


def single_series(origins):
    return compare_forecasts(
        simulate_series(1, 132),
        "seasonal_naive",
        {"theta": "theta"},
        horizon=12,
        origins=origins,
        step=1,
        **COLUMNS,
    )


def test_a_single_series_is_answered_at_as_many_origins_as_the_advice_names():
    """Windows of 12 steps overlap with 11 others, and 30 origins would tell too little of that."""
    with pytest.raises(DataError, match="ask for 36 or more test origins"):
        single_series(30)
    result = single_series(36)
    row = result.row("theta", "overall")
    assert row["low"] < row["difference"] < row["high"]
    assert 0 < row["p_adjusted"] < 1
    # three windows before them tell no threshold, and none is needed
    assert "of these windows" in result.rule


@pytest.fixture(scope="module")
def own_file():
    """Return a table, and a file with a forecast for each row of it."""
    table = simulate_series(32, 48)
    file = table.rename(columns={"target": "mean"})
    return table, file.assign(mean=file["mean"] + 0.1)


def compare_file(table, file, **how):
    return compare_forecasts(
        table,
        "seasonal_naive",
        {"file": file},
        horizon=6,
        learning=1,
        twins=0,
        **COLUMNS,
        **how,
    )


def test_a_file_needs_a_cutoff_where_origins_overlap(own_file):
    table, file = own_file
    assert compare_file(table, file, origins=2).table["overall"].tolist() == ["better"]
    with pytest.raises(
        ModelError, match=r"are 2 apart .* to its file a column 'cutoff'"
    ):
        compare_file(table, file, origins=3, step=2)
    months = pd.DatetimeIndex(table["timestamp"].unique())
    files = []
    for cutoff in months[-30:-6]:
        files.append(file[file["timestamp"] > cutoff].assign(cutoff=cutoff))
    given = compare_file(table, pd.concat(files), origins=3, step=2)
    assert given.table["overall"].tolist() == ["better"]


def test_a_copy_of_the_target_must_be_that_of_the_table(own_file):
    table, file = own_file
    file = file.assign(target=table["target"].round(2))
    # what is not known yet says nothing
    for given in (file, file.assign(target=np.nan)):
        assert compare_file(table, given).table["overall"].tolist() == ["better"]
    late = file.assign(timestamp=file["timestamp"] + pd.offsets.MonthBegin(1))
    with pytest.raises(
        ModelError, match=r"which differ from the table's in \d+ of 192"
    ):
        compare_file(table, late)


def test_columns_that_nothing_is_read_from_are_named(own_file):
    table, file = own_file
    levels = {str(level): file["mean"] for level in LEVELS[1:]}
    lacking = file.assign(**levels, lo=1.0)
    notes = compare_file(table, lacking).notes
    told = (
        "file: nothing is read from its columns 0.2, 0.3, .* 1 more; .* all 9 of them"
    )
    assert any(re.match(told, note) for note in notes)
    with pytest.raises(DataError, match=r"no quantiles in its columns lo, 0\.2,"):
        compare_file(table, file.assign(lo=1.0, **{"0.2": 1}), loss="sql")


def test_a_shock_that_all_series_share_widens_the_interval_from_ten_origins_on():
    rng = np.random.default_rng(0)
    series, origin = np.repeat(np.arange(40), 12), np.tile(np.arange(12), 40)
    losses = rng.normal(0, 1, 480) + rng.normal(0, 1, 12)[origin]
    rows = ComparedUnits(loss_f=np.zeros(480), clusters=series, calendar=origin)
    one_way = replace(rows, calendar=None).contrast(losses, np.zeros(480))
    two_way = rows.contrast(losses, np.zeros(480))
    assert two_way.width > 2 * one_way.width
    assert two_way.df <= 11
    few = replace(rows, calendar=origin // 2).contrast(losses, np.zeros(480))
    assert few == one_way


def test_thresholds_are_those_computed_by_hand():
    earlier = np.arange(1.0, 101.0)
    assert settle_window_rule("mase", None, earlier).alpha == pytest.approx(90.1)
    assert settle_window_rule("quantile", 0.5, earlier).alpha == pytest.approx(50.5)
    assert settle_window_rule("mase", 1.4, earlier).alpha == 1.4
    with pytest.raises(DataError, match="3 windows of earlier origins"):
        settle_window_rule("mase", None, earlier[:3])
    with pytest.raises(ConfigError, match="alpha 2 is no share"):
        settle_window_rule("quantile", 2.0, earlier)


def test_an_absurd_forecast_is_told_in_few_digits(failing):
    absurd = failing.forecasts.mean.copy()
    absurd[0, 0] = 1e300
    rolled = score_forecasts([Forecasts(mean=absurd)], failing.tests)
    text = answer_comparison(failing, {"absurd": rolled}, []).text()
    assert "so large that its square is no number" in text
    long = [word for word in text.split() if len(word) > 60 and word.strip("-")]
    assert not long, long


def test_quantiles_that_cross_are_told(failing):
    mean = failing.forecasts.mean
    quantiles = mean[..., None] + np.array(LEVELS)
    # in every step of the first half of the windows
    quantiles[: len(mean) // 2, :, [3, 4]] = quantiles[: len(mean) // 2, :, [4, 3]]
    forecasts = Forecasts(mean=mean, quantiles=quantiles)
    rolled = score_forecasts([forecasts], failing.tests)
    said = answer_comparison(failing, {"crossed": rolled}, []).notes
    assert any("crossed: quantiles cross in 50 % of the steps" in note for note in said)


def test_a_file_of_forecasts_gives_the_answer_of_the_forecaster(failing):
    panel = failing.panel
    request = request_at(panel, failing.tests[0])
    mean = make_forecaster("theta").forecast(request).mean
    index = pd.MultiIndex.from_product([request.names, request.times])
    table = pd.DataFrame({"mean": mean.ravel()}, index=index)
    table = table.reset_index(names=["item_id", "timestamp"])
    file = forecasts_from_table(table, "file", series="item_id", time="timestamp")
    rolled = {}
    for forecaster in (file, make_forecaster("theta")):
        rolled[forecaster.name] = roll_forecaster(forecaster, panel, failing.tests)
    result = answer_comparison(failing, rolled, [])
    named, from_file = result.row("theta", "overall"), result.row("file", "overall")
    assert named["difference"] == from_file["difference"]
    # F has no twin here
    assert result.row("file", "where F fails")["verdict"] == "no claim"


def test_a_copy_of_the_target_may_be_rounded_and_not_revised(failing):
    panel, tests = failing.panel, failing.tests
    request = request_at(panel, tests[0])
    index = pd.MultiIndex.from_product([request.names, request.times])
    table = pd.DataFrame({"mean": 1.0}, index=index)
    table = table.reset_index(names=["item_id", "timestamp"])
    future = tests[0].future.ravel()
    columns = {"series": "item_id", "time": "timestamp", "target": "truth"}
    four_digits = [float(f"{value:.4g}") for value in future]
    scale = np.repeat(tests[0].scale, tests[0].future.shape[1])
    zeros = np.where(np.arange(len(future)) % 2, future + 1e-8 * scale, future)
    for copied in (future.astype(np.float32), four_digits, zeros):
        given = table.assign(truth=copied)
        file = forecasts_from_table(given, "f", **columns)
        assert len(roll_forecaster(file, panel, tests).mean) == len(request.names)
    # a later vintage of the data
    given = table.assign(truth=future + 0.05 * scale)
    file = forecasts_from_table(given, "f", **columns)
    with pytest.raises(ModelError, match="targets of its own, which differ"):
        roll_forecaster(file, panel, tests)
