"""Every forecaster keeps the protocol; scores are those of the formulas and of AMLB."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.errors import DataError, ModelError
from amlb_ext.core.frequency import parse_frequency
from amlb_ext.models.forecast_files import forecasts_from_table
from amlb_ext.models.forecasters import (
    GLOBAL_NAMES,
    LEVELS,
    ForecastRequest,
    ImportedForecaster,
    _first_half,
    checked_forecasts,
    forecaster_of,
    make_forecaster,
)
from amlb_ext.models.local_methods import METHODS, theta
from amlb_ext.sources.long_columns import read_times
from amlb_ext.stats.window_losses import (
    scaled_errors,
    scaled_quantile_losses,
    seasonal_scale,
)

HORIZON, SEASON = 3, 4
TIMES = pd.date_range("2020-01-01", periods=HORIZON, freq="QS")


def pasts(n=12, length=41):
    rng = np.random.default_rng(0)
    waves = 10 + np.arange(length) % SEASON + 0.05 * np.arange(length)
    return tuple(waves + rng.normal(0, 0.2, length) for _ in range(n))


def request(values=None, names=None):
    values = pasts() if values is None else values
    names = tuple(f"s{k}" for k in range(len(values))) if names is None else names
    return ForecastRequest(names=names, pasts=values, times=TIMES, season=SEASON)


class Repeat:
    """A forecaster as a user writes it."""

    def fit(self, past):
        self.last = past[-1]
        past[:] = 0  # must not reach the series

    def predict(self, horizon):
        return np.full(horizon, self.last)


def forecaster(word):
    if word == "imported":
        return ImportedForecaster("repeat", Repeat)
    if word == "file":
        index = pd.MultiIndex.from_product([[f"s{k}" for k in range(12)], TIMES])
        table = pd.DataFrame(index=index).reset_index(names=["id", "when"])
        table["prediction"] = 1.0
        table[[str(level) for level in LEVELS]] = 1.0
        return forecasts_from_table(table, "mine", series="id", time="when")
    return make_forecaster(word)


EVERY = [*METHODS, *GLOBAL_NAMES, "imported", "file"]


@pytest.mark.parametrize("word", EVERY)
def test_a_forecaster_keeps_the_protocol(word):
    values = pasts()
    before = [past.copy() for past in values]
    answer = checked_forecasts(forecaster(word), request(values))
    again = checked_forecasts(forecaster(word), request(values))
    assert np.array_equal(answer.mean, again.mean)
    assert all(map(np.array_equal, values, before))
    if answer.quantiles is not None:
        # the file's forecasts are all alike, so its quantiles may be
        assert (np.diff(answer.quantiles, axis=2) >= -1e-9).all()


@pytest.mark.parametrize("word", [*METHODS, *GLOBAL_NAMES])
def test_forecasts_move_with_the_unit(word):
    plain = make_forecaster(word).forecast(request())
    scaled = make_forecaster(word).forecast(request(tuple(7 * p for p in pasts())))
    assert scaled.mean == pytest.approx(7 * plain.mean, rel=1e-4)


@pytest.mark.parametrize("word", METHODS)
def test_local_methods_see_one_series_alone(word):
    values = list(pasts())
    plain = make_forecaster(word).forecast(request(tuple(values)))
    values[1] = values[1] * 100
    moved = make_forecaster(word).forecast(request(tuple(values)))
    assert np.array_equal(plain.mean[0], moved.mean[0])


@pytest.mark.parametrize("word", [*METHODS, *GLOBAL_NAMES])
def test_a_season_is_forecast_better_than_by_the_last_value(word):
    values = pasts(length=45)
    shown = tuple(past[:-HORIZON] for past in values)
    future = np.array([past[-HORIZON:] for past in values])
    answer = make_forecaster(word).forecast(request(shown))
    error = np.abs(answer.mean - future).mean()
    last = np.array([past[-1] for past in shown])[:, None]
    if word != "drift":  # which knows no season
        assert error < np.abs(last - future).mean() / 2


@pytest.mark.parametrize("word", METHODS)
@pytest.mark.parametrize("length", [5, 6, 9, 13])
def test_short_pasts_have_finite_forecasts(word, length):
    short = tuple(past[:length] for past in pasts())
    checked_forecasts(make_forecaster(word), request(short))


def test_theta_goes_on_with_half_the_slope_of_a_straight_line():
    mean, _ = theta(np.arange(30.0), 3, 1)
    assert np.diff(mean) == pytest.approx([0.5, 0.5])
    assert mean[0] == pytest.approx(29.5, abs=0.1)


def test_twins_differ_from_f_and_from_each_other():
    values = request(pasts(length=41))
    for word in ("ets", "ridge"):
        own = make_forecaster(word)
        twins = own.twins(2, SEASON)
        means = [twin.forecast(values).mean for twin in [own, *twins]]
        assert not np.allclose(means[0], means[1])
        assert not np.allclose(means[1], means[2])


class Broken(Repeat):
    def predict(self, horizon):
        return np.full(horizon, np.nan)


def amlb_scores(y, mean, quantiles, past):
    """MASE and SQL as ``amlb/results.py`` of v2.1.7 computes them, a row for each step."""
    n, horizon = y.shape
    items = np.repeat(np.arange(n), horizon)
    error = pd.concat(
        [pd.Series(p).diff(SEASON).abs().groupby(lambda _: 0).mean() for p in past]
    ).fillna(1.0)
    error = np.repeat(error.to_numpy(), horizon)
    truth, quantile = y.ravel(), quantiles.reshape(n * horizon, -1)
    mase = pd.Series(np.abs(truth - mean.ravel()) / error).groupby(items).mean()
    gap = (quantile >= truth[:, None]) - np.array(LEVELS)
    losses = 2 * np.abs((quantile - truth[:, None]) * gap)
    sql = pd.Series(losses.mean(axis=1) / error).groupby(items).mean()
    return mase.to_numpy(), sql.to_numpy()


def test_losses_equal_amlbs_per_item():
    values = pasts(length=45)
    shown = tuple(past[:-HORIZON] for past in values)
    y = np.array([past[-HORIZON:] for past in values])
    answer = make_forecaster("theta").forecast(request(shown))
    mase, sql = amlb_scores(y, answer.mean, answer.quantiles, shown)
    scale = np.array([seasonal_scale(past, SEASON) for past in shown])
    assert scaled_errors(y, answer.mean, scale) == pytest.approx(mase, abs=1e-12)
    got = scaled_quantile_losses(y, answer.quantiles, np.array(LEVELS), scale)
    assert got == pytest.approx(sql, abs=1e-12)


def forecasts_of(ids, times):
    """Return the forecaster of a file that holds its row numbers."""
    index = pd.MultiIndex.from_product([ids, times], names=["id", "when"])
    table = pd.DataFrame({"mean": np.arange(len(index))}, index=index).reset_index()
    return forecasts_from_table(table, "mine", series="id", time="when")


QUARTERS = ("2020-01-01", "2020-04-01", "2020-07-01")


@pytest.mark.parametrize(
    ("ids", "times"),
    [
        ((1, 2), QUARTERS),
        ((1.0, 2.0), QUARTERS),
        (("001", "002"), QUARTERS),
        (("1", "2.0"), QUARTERS),
        (("1", "2"), ("2020-03-31", "2020-06-30", "2020-09-30")),
        (("1", "2"), ("2020-02-15", "2020-05-15", "2020-08-15")),
        (("1", "2"), ("2020Q1", "2020Q2", "2020Q3")),
        (("1", "2"), tuple(f"{day}T00:00Z" for day in QUARTERS)),
    ],
)
def test_forecasts_are_found_however_ids_and_times_are_written(ids, times):
    asked = replace(request(pasts(2), names=("1", "2")), frequency="QS-JAN")
    answer = forecasts_of(ids, times).forecast(asked)
    assert answer.mean.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("ids", "times", "message"),
    [
        (("a", "b"), QUARTERS, "its series have other names, e.g. 'a'"),
        # two rows would become one
        (("1.0", "01"), QUARTERS, "its series have other names, e.g. '01'"),
        (("1", "2"), ("2019-01-01",), "none of its times is asked for"),
        (("1",), QUARTERS, "series '2' at .* lacks 3 of 6 .*add them"),
    ],
)
def test_forecasts_that_are_not_there_are_explained(ids, times, message):
    asked = replace(request(pasts(2), names=("1", "2")), frequency="QS-JAN")
    with pytest.raises(ModelError, match=message):
        forecasts_of(ids, times).forecast(asked)


@pytest.mark.parametrize(
    ("frequency", "asked_for", "times"),
    [
        ("QS-FEB", "2000-02-01", ("2000-04-30", "2000-07-31", "2000-10-31")),
        ("Q-JAN", "2000-01-31", ("1999-11-15", "2000-02-15", "2000-05-15")),
        ("BQS-FEB", "2000-02-01", ("2000-02-03", "2000-05-03", "2000-08-03")),
        ("AS-APR", "2000-04-01", ("2001-03-31", "2002-03-31", "2003-03-31")),
        ("A-MAR", "2000-03-31", ("1999-04-01", "2000-04-01", "2001-04-01")),
        ("AS-JAN", "2000-01-01", ("2000", "2001", "2002")),
        ("QS-OCT", "2000-01-01", ("2000Q1", "2000Q2", "2000Q3")),
        # pandas says in which month the year of a period ends
        ("QS-FEB", "2000-02-01", pd.period_range("2001Q1", freq="Q-JAN", periods=3)),
    ],
)
def test_any_day_of_a_fiscal_quarter_or_year_will_do(frequency, asked_for, times):
    wanted = pd.date_range(asked_for, periods=3, freq=parse_frequency(frequency))
    asked = replace(request(pasts(2)), frequency=frequency, times=wanted)
    forecast = forecasts_of(("s0", "s1"), times).forecast(asked)
    assert forecast.mean.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("frequency", "asked_for", "times"),
    [
        ("QS-FEB", "2000-02-01", ("2000Q1", "2000Q2", "2000Q3", "2000Q4")),
        ("AS-APR", "2000-04-01", ("2000", "2001", "2002", "2003")),
    ],
)
def test_names_of_calendar_quarters_are_refused_beside_fiscal_ones(
    frequency, asked_for, times
):
    wanted = pd.date_range(asked_for, periods=3, freq=parse_frequency(frequency))
    asked = replace(request(pasts(1)), frequency=frequency, times=wanted)
    with pytest.raises(ModelError, match="begin calendar years or quarters"):
        forecasts_of(("s0",), times).forecast(asked)


#: Hours of Berlin over a change of clocks, behind which nothing changes.
BERLIN = pd.date_range("2024-03-30", "2024-04-03", freq="h", tz="Europe/Berlin")
TOKYO = pd.date_range("2024-03-30", periods=72, freq="h", tz="Asia/Tokyo")
MONTHS = pd.date_range("2023-01-01", periods=24, freq="MS", tz="Europe/Berlin")


def asked_behind(times, frequency):
    """Return what is asked for the last times of a table, as the panel reads them."""
    clock = read_times(pd.Series(times), "table").clock()
    shown = times.tz_localize(None)
    if clock is not None:
        shown = clock.show(times.tz_convert("UTC").tz_localize(None))
    return replace(
        request(pasts(1)),
        times=shown[-HORIZON:],
        frequency=frequency,
        clock=clock,
        cutoff=shown[-HORIZON - 1],
    )


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize(
    ("table", "frequency"), [(BERLIN, "H"), (TOKYO, "H"), (MONTHS, "MS")]
)
def test_a_file_is_read_on_the_clock_of_the_table(table, frequency, as_text, zone):
    """Same instants are the same times, whichever part of them the file has."""
    for n_rows in (HORIZON, 20):
        times = table[-n_rows:].tz_convert(zone or table.tz)
        given = times.map(str) if as_text else times
        mine = forecasts_of(("s0",), given)
        forecast = mine.forecast(asked_behind(table, frequency))
        assert forecast.mean[0].tolist() == list(range(n_rows - HORIZON, n_rows))


def test_hours_of_which_one_side_has_a_zone_are_refused():
    asked = asked_behind(TOKYO, "H")
    naive = TOKYO.tz_localize(None)
    with pytest.raises(ModelError, match="of the table have a time zone and those of"):
        forecasts_of(("s0",), naive).forecast(asked)
    with pytest.raises(ModelError, match="of mine have a time zone and those of the t"):
        forecasts_of(("s0",), TOKYO).forecast(asked_behind(naive, "H"))
    # UTC is a zone, too, of the file and of the table
    utc = tuple(f"{hour.isoformat()}Z" for hour in naive)
    with pytest.raises(ModelError, match="of mine have a time zone"):
        forecasts_of(("s0",), utc).forecast(asked_behind(naive, "H"))
    universal = TOKYO.tz_convert("UTC")
    with pytest.raises(ModelError, match="of the table have a time zone"):
        forecasts_of(("s0",), naive).forecast(asked_behind(universal, "H"))


def test_the_end_of_a_month_in_utc_is_not_taken_for_the_month():
    months = MONTHS.tz_localize(None)
    kolkata = months.tz_localize("Asia/Kolkata").tz_convert("UTC")
    with pytest.raises(ModelError, match="hold hours at the end of a step"):
        forecasts_of(("s0",), kolkata[-20:]).forecast(asked_behind(months, "MS"))
    ends = months + pd.offsets.MonthEnd(0) + pd.Timedelta("23:59:59")
    forecast = forecasts_of(("s0",), ends).forecast(asked_behind(months, "MS"))
    assert len(forecast.mean) == 1


def with_cutoffs(*cutoffs):
    """Return the forecaster of a file with forecasts from several origins."""
    parts = [
        pd.DataFrame({"id": "s0", "when": TIMES, "cutoff": cutoff, "mean": number})
        for number, cutoff in enumerate(cutoffs)
    ]
    return forecasts_from_table(pd.concat(parts), "mine", series="id", time="when")


def test_a_cutoff_tells_forecasts_of_one_time_apart():
    asked = replace(request(pasts(1)), frequency="QS-JAN")
    mine = with_cutoffs("2019-07-01", "2019-12-31")
    for number, cutoff in enumerate(("2019-07-01", "2019-10-01")):
        answer = mine.forecast(replace(asked, cutoff=pd.Timestamp(cutoff)))
        assert (answer.mean == number).all()
    with pytest.raises(ModelError, match=r"none from the origin .*: its cutoffs are"):
        mine.forecast(replace(asked, cutoff=pd.Timestamp("2019-04-01")))
    with pytest.raises(ModelError, match="add a column 'cutoff'"):
        forecasts_of(("s0", "s0"), QUARTERS)


class Promoted(Repeat):
    """A forecaster that takes what is known beforehand."""

    def fit(self, past, known):
        assert len(known) == len(past)
        super().fit(past)

    def predict(self, horizon, known):
        return known[:, 0]


def test_a_forecaster_may_take_what_is_known_beforehand():
    known = tuple(np.full((len(past) + HORIZON, 1), 7.0) for past in pasts(2))
    asked = replace(request(pasts(2)), known=("promo",), known_values=known)
    promoted = ImportedForecaster("promoted", Promoted)
    assert promoted.takes_known
    assert (promoted.forecast(asked).mean == 7).all()
    assert not ImportedForecaster("repeat", Repeat).takes_known
    assert (ImportedForecaster("repeat", Repeat).forecast(asked).mean != 7).all()


class Mean:
    """A forecaster whose ``predict`` does not look at what is known beforehand."""

    def fit(self, past, known):
        self.mean = past.mean()

    def predict(self, horizon):
        return np.full(horizon, self.mean)


class Needy(Mean):
    """A forecaster that cannot be made without arguments."""

    def __init__(self, window):
        self.window = window


def test_what_is_known_is_given_to_those_methods_that_take_it():
    known = tuple(np.ones((len(past) + HORIZON, 1)) for past in pasts(2))
    asked = replace(request(pasts(2)), known=("promo",), known_values=known)
    answer = forecaster_of(Mean, "mean", "Mean").forecast(asked)
    assert answer.mean[:, 0].tolist() == [past.mean() for past in asked.pasts]
    with pytest.raises(ModelError, match="cannot be made without arguments"):
        forecaster_of(Needy, "needy", "Needy")
    made = forecaster_of(Needy(3), "needy", "Needy").forecast(asked)
    assert (made.mean == answer.mean).all()


def quantiles_headed(head, mean=0.5):
    """Return the forecaster of a file with quantiles under the heads that ``head`` makes."""
    index = pd.MultiIndex.from_product([[f"s{k}" for k in range(30)], TIMES])
    table = pd.DataFrame({"mean": mean}, index=index).rename_axis(["id", "when"])
    table = table.assign(**{str(level): level for level in LEVELS})
    table = table.rename(columns={str(level): head(level) for level in LEVELS})
    return forecasts_from_table(table, "mine", series="id", time="when")


@pytest.mark.parametrize(
    "head",
    [
        str,
        "{:.2f}".format,
        lambda level: f"{level}"[1:],
        lambda level: f"q{level * 100:.0f}",
        lambda level: f"P{level * 100:.0f}",
        "{:.0%}".format,
        "quantile_{}".format,
        lambda level: level + 1e-17,
    ],
)
def test_levels_are_read_as_numbers(head):
    asked = request(pasts(1))
    assert (checked_forecasts(quantiles_headed(head), asked).quantiles == LEVELS).all()


class Backwards(Repeat):
    def predict(self, horizon):
        return pd.Series(range(horizon))[::-1]


class Headed(Repeat):
    """Quantiles as a frame, headed by what a subclass makes of the levels."""

    heads = staticmethod(list)

    def predict_quantiles(self, horizon, levels):
        frame = pd.DataFrame({level: [self.last + level] * horizon for level in levels})
        order = [0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 0.4, 0.6, 0.5]
        return self.heads(frame[order])


class Nameless(Headed):
    @staticmethod
    def heads(frame):
        return frame.set_axis(list("abcdefghi"), axis=1)


class Swapped(Headed):
    """Levels by position, of which the outer ones and most of the others are in order."""

    @staticmethod
    def heads(frame):
        order = [0.1, 0.2, 0.3, 0.5, 0.4, 0.6, 0.7, 0.8, 0.9]
        return frame[order].to_numpy()


@pytest.mark.parametrize(
    "heads",
    [
        lambda frame: frame,
        lambda frame: frame.T,
        lambda frame: frame.rename(columns="{:.2f}".format),
        lambda frame: pd.concat({"sales": frame}, axis=1),
    ],
)
def test_a_frame_of_quantiles_is_read_by_its_heads(heads):
    headed = type("Named", (Headed,), {"heads": staticmethod(heads)})
    answer = checked_forecasts(ImportedForecaster("mine", headed), request(pasts(1)))
    assert (answer.quantiles - answer.mean[..., None]) == pytest.approx(
        np.tile(LEVELS, (1, HORIZON, 1))
    )


class Imaginary(Repeat):
    def predict(self, horizon):
        return np.full(horizon, 1j)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: ImportedForecaster("mine", Backwards), "steps are not in order"),
        (lambda: ImportedForecaster("mine", Broken), "NaN or infinity for series 's0'"),
        (lambda: ImportedForecaster("mine", Imaginary), "no real numbers"),
        (
            lambda: quantiles_headed(lambda level: round(1 - level, 1)),
            "a quantile at 0.9 below that at 0.1 in 90 of 90 steps",
        ),
        (
            lambda: ImportedForecaster("mine", Swapped),
            "a quantile at 0.5 below that at 0.4 in 90 of 90 steps",
        ),
        (lambda: ImportedForecaster("mine", Nameless), "columns a, b, c, .*, wanted"),
        (
            lambda: quantiles_headed(str, mean=50.0),
            "a mean far outside its own quantiles in 90 of 90 steps, e.g. 50 where",
        ),
    ],
)
def test_forecasts_in_another_form_are_refused(made, message):
    with pytest.raises(ModelError, match=message):
        checked_forecasts(made(), request(pasts(30)))


def test_quantiles_that_cross_by_chance_are_taken():
    """Those of separate regressions do so in nearly every step."""
    chance = np.random.default_rng(0)
    columns = {str(level): level + chance.normal(0, 0.06, 60) for level in LEVELS}
    crosses = (np.diff(np.stack(list(columns.values())), axis=0) < 0).any(axis=0)
    assert crosses.mean() > 0.5
    ids = [f"s{k}" for k in range(60 // HORIZON) for _ in TIMES]
    when = list(TIMES) * (60 // HORIZON)
    table = pd.DataFrame({"id": ids, "when": when, "mean": 0.5, **columns})
    mine = forecasts_from_table(table, "mine", series="id", time="when")
    answer = checked_forecasts(mine, request(pasts(60 // HORIZON)))
    assert answer.quantiles.shape[1] == HORIZON


def test_a_mean_of_rare_demand_may_lie_above_its_quantiles():
    rare = tuple(np.where(np.arange(40) % 20, 0.0, 8.0) for _ in range(2))
    table = pd.DataFrame({"id": "s0", "when": TIMES, "mean": 0.4})
    table = table.assign(**{str(level): 0.0 for level in LEVELS})
    mine = forecasts_from_table(table, "mine", series="id", time="when")
    assert checked_forecasts(mine, request(rare[:1])).quantiles is not None


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"prediction": 2.0}, ModelError, "two columns of point forecasts, 'mean' and"),
        ({"q10": 1, "0.1": 2}, ModelError, r"two columns of quantiles at 0\.1, one of"),
        ({"mean": ["1", "2,5", "3"]}, DataError, "row 2: .* 'mean' '2,5' .*--decimal"),
    ],
)
def test_a_file_that_can_be_read_in_two_ways_is_refused(columns, error, message):
    table = pd.DataFrame({"id": "1", "when": QUARTERS, "mean": 1.0}).assign(**columns)
    with pytest.raises(error, match=message):
        forecasts_from_table(table, "mine", series="id", time="when")


@pytest.mark.parametrize("lost", ["id", "when", "mean"])
def test_a_column_that_a_file_lacks_is_named_with_its_own_remedy(lost):
    table = pd.DataFrame({"id": "1", "when": QUARTERS, "mean": 1.0}).drop(columns=lost)
    with pytest.raises(ModelError, match=f"no column '{lost}'") as caught:
        forecasts_from_table(table, "mine", series="id", time="when")
    assert ("'prediction'" in caught.value.remedy) == (lost == "mean")


@pytest.mark.parametrize("n", [2, 3])
def test_no_half_is_empty(n):
    names = tuple(f"s{k}" for k in range(n))
    for seed in range(20):
        assert 0 < _first_half(names, seed, 0).sum() < n


def test_a_forecast_that_is_not_finite_is_refused_with_its_series():
    with pytest.raises(ModelError, match="forecasts NaN or infinity for series 's0'"):
        checked_forecasts(ImportedForecaster("broken", Broken), request())
