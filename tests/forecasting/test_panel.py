"""A long table becomes series on one calendar, or a line that names series and row."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import DataError
from amlb_ext.core.frequency import old_spelling, parse_frequency
from amlb_ext.sources.panel import PanelRoles, read_panel
from amlb_ext.sources.series_tasks import read_series_table
from amlb_ext.units.origins import cut_windows, plan_origins

ROLES = PanelRoles(series="id", time="when", target="y", horizon=3, season=4)


def long_table(lengths=(20, 20), freq="QS", start="2010-01-01"):
    parts = []
    for number, length in enumerate(lengths):
        times = pd.date_range(start, periods=length, freq=freq)
        values = np.arange(length) % 4 + np.sin(np.arange(length) * (number + 1))
        parts.append(pd.DataFrame({"id": f"s{number}", "when": times, "y": values}))
    return pd.concat(parts, ignore_index=True)


def with_text_times(frame):
    return frame.assign(when=frame["when"].astype(str))


#: What pandas turns into numbers of its own without a word.
UNREADABLE = {
    "dates": pd.to_datetime,
    "durations": pd.to_timedelta,
    "complex numbers": lambda y: y + 1j,
}


def broken(kind):
    """Return a table with one fault, and what its message must say."""
    frame = long_table()
    if kind == "duplicate":
        frame.loc[7, "when"] = frame.loc[6, "when"]
        return frame, "series 's0', row 8 .*occurs twice"
    if kind == "gap":
        return frame.drop(index=5), "series 's0', row 6 .*1 step missing"
    if kind == "off the calendar":
        frame.loc[30, "when"] += pd.Timedelta(days=3)
        return frame, "series 's1', row 31 .*not a step of QS"
    if kind == "mixed":
        monthly = long_table(lengths=(20,), freq="MS").assign(id="m")
        message = "series '.*this series has frequency .*, and not "
        return pd.concat([frame, monthly]), message
    if kind == "text":
        return frame.assign(y=["oops", *frame["y"][1:]]), "row 1: the target 'oops'"
    if kind == "no time":
        frame = with_text_times(frame)
        frame.loc[2, "when"] = "soon"
        return frame, "row 3: 'soon' is no time"
    if kind == "mistyped year":
        frame = with_text_times(frame)
        frame.loc[2, "when"] = "9999-12-31"
        return frame, "row 3: the year of 9999-12-31 .*outside 1678 to 2261"
    if kind == "numbers for times":
        return frame.assign(when=range(len(frame))), "times are numbers"
    if kind == "decimal comma":
        return frame.assign(y="1,5"), "row 1: the target '1,5' .*--decimal ,"
    if kind in UNREADABLE:
        return frame.assign(y=UNREADABLE[kind](frame["y"])), "the target is of type"
    if kind == "blanks":
        halves = np.where(frame.index < 10, "s0 ", frame["id"])
        return frame.assign(id=halves), "'s0' and 's0 ' differ by blanks alone"
    if kind == "no series":
        return frame.assign(id=[None, *frame["id"][1:]]), "row 1: no series"
    return frame.drop(columns="y"), "no column 'y', named by --target"


@pytest.mark.parametrize(
    "kind",
    [
        "duplicate",
        "gap",
        "off the calendar",
        "mixed",
        "text",
        "no time",
        "mistyped year",
        "numbers for times",
        "decimal comma",
        "blanks",
        *UNREADABLE,
        "no series",
        "no column",
    ],
)
def test_a_fault_is_refused_with_series_and_row(kind):
    frame, message = broken(kind)
    with pytest.raises(DataError, match=message):
        read_panel(frame, ROLES)


def test_rows_may_stand_in_any_order_and_be_named_by_the_index():
    panel = read_panel(long_table(), ROLES)
    shuffled = long_table().sample(frac=1, random_state=0).set_index(["id", "when"])
    again = read_panel(shuffled, ROLES)
    assert again.names == panel.names
    assert all(map(np.array_equal, again.values, panel.values))


def test_what_is_known_beforehand_is_not_the_target():
    frame = long_table().assign(later=lambda table: table["y"])
    with pytest.raises(DataError, match="'later', named by --known, has the values"):
        read_panel(frame, dataclasses.replace(ROLES, known=("later",)))


def test_missing_values_leave_their_series_out_and_say_so():
    frame = long_table()
    frame.loc[25, "y"] = np.nan
    panel = read_panel(frame, ROLES)
    assert panel.names == ("s0",)
    assert panel.left_out[0].series == "s1"
    assert "row 26" in panel.left_out[0].reason


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("frequency", ["MS", "D", "W-MON", "h"])
def test_a_change_of_clocks_leaves_days_alone_and_hours_are_in_utc(frequency, as_text):
    times = pd.date_range("2023-03-24", periods=60, freq=frequency, tz="Europe/Berlin")
    frame = pd.DataFrame({"id": "a", "when": times, "y": range(60)})
    if as_text:
        frame["when"] = frame["when"].astype(str)
    panel = read_panel(frame, ROLES)
    shown, said = times.tz_localize(None), "without zone"
    if frequency == "h":
        shown, said = times.tz_convert("UTC").tz_localize(None), "in UTC"
    assert panel.calendar.equals(shown)
    assert said in panel.notes[0]


@pytest.mark.parametrize(
    "text", ["H", "h", "T", "min", "M", "ME", "QS", "W-MON", "15T"]
)
def test_old_and_new_spellings_of_a_frequency_are_one(text):
    offset = parse_frequency(text)
    assert parse_frequency(old_spelling(offset)) == offset
    assert old_spelling(offset) not in ("h", "min", "ME")


def test_windows_without_a_scale_take_part_in_nothing():
    frame = long_table(lengths=(20, 20, 6, 20))
    # past repeats itself from season to season, future does not
    frame.loc[frame["id"] == "s1", "y"] = [1.0, 2.0, 3.0, 4.0] * 4 + [1, 9, 9, 9]
    frame.loc[frame["id"] == "s2", "when"] = pd.date_range(
        "2013-07-01", periods=6, freq="QS"
    )
    panel = read_panel(frame, ROLES)
    windows = cut_windows(panel, plan_origins(panel, learning=0).test[0])
    assert [panel.names[item] for item in windows.items] == ["s0", "s3"]
    reasons = {entry.series: entry.reason for entry in windows.left_out}
    assert "repeats itself" in reasons["s1"]
    assert "3 values" in reasons["s2"]


def test_learning_futures_end_before_every_test_cutoff():
    panel = read_panel(long_table(lengths=(60, 60)), ROLES)
    origins = plan_origins(panel, test=3, learning=2, step=1)
    assert origins.test == (54, 55, 56)
    assert origins.learning == (48, 51)
    assert max(origins.learning) + panel.horizon <= min(origins.test)


def test_a_parquet_file_is_read_by_its_roles_alone(tmp_path):
    roles = PanelRoles(series="id", time="time", target="y", horizon=6)
    times = pd.date_range("2020-01-01", periods=30, freq="MS").astype(str)
    frame = pd.concat(
        pd.DataFrame({"id": name, "time": times, "y": range(30), "other": 1.0})
        for name in ("b", "a", "10", "9")
    )
    path = tmp_path / "long.parquet"
    frame.to_parquet(path, index=False)
    table = read_series_table(path, roles, SourceConfig())
    read = table.frame
    assert "1 further column is left out (other)" in table.notes[0]
    assert set(read.columns) == {"id", "time", "y"}
    # texts that recur in every row are in memory once
    assert isinstance(read["id"].dtype, pd.CategoricalDtype)
    short, whole = read_panel(read, roles), read_panel(frame, roles)
    assert short.names == whole.names == ("10", "9", "a", "b")
    assert short.calendar.equals(whole.calendar)
    assert all(map(np.array_equal, short.values, whole.values))
    missing = PanelRoles(series="id", time="time", target="z", horizon=6)
    everything = read_series_table(path, missing, SourceConfig()).frame
    assert "other" in everything


def gappy(kind):
    """Return daily series of 60 steps that lack some, and how many steps they lack."""
    times = pd.date_range("2024-01-01", periods=60, freq="D")
    if kind == "holidays":
        times = pd.bdate_range("2024-01-01", periods=60)
    parts = [
        pd.DataFrame(
            {"id": name, "when": times, "y": 1.0 + np.arange(60), "promo": 2.0}
        )
        for name in ("a", "b")
    ]
    frame = pd.concat(parts, ignore_index=True)
    is_gone = frame.index.isin([30, 41])
    if kind == "closed days":
        is_gone = frame["when"].dt.day_name() == "Sunday"
    if kind == "missing values":
        return frame.assign(y=frame["y"].mask(is_gone))
    if kind == "leading":
        return frame.assign(y=frame["y"].mask(frame.index < 5))
    return frame[~is_gone]


@pytest.mark.parametrize(
    ("kind", "frequency", "lengths"),
    [
        ("holidays", "B", (60, 18)),
        ("closed days", "D", (60, 4)),
        ("missing values", "D", (60, 18)),
        ("leading", "D", (55, 55)),
    ],
)
def test_gaps_are_filled_or_cut_off_where_this_is_asked_for(kind, frequency, lengths):
    frame = gappy(kind)
    roles = dataclasses.replace(ROLES, season=7, known=("promo",))
    for gaps, length in zip(("zero", "trim"), lengths, strict=True):
        panel = read_panel(frame, dataclasses.replace(roles, gaps=gaps))
        assert panel.frequency == frequency
        assert panel.names == ("a", "b")
        assert len(panel.values[0]) == length
        assert len(panel.known_values[0]) == length
        assert panel.values[0][-1] == 60
        assert len(panel.notes) == (kind != "leading")
        if (kind, gaps) == ("holidays", "zero"):
            assert panel.notes[0].startswith("2 missing steps of 1 series have 0 in th")
    last = read_panel(frame, dataclasses.replace(roles, gaps="last"))
    zero = read_panel(frame, dataclasses.replace(roles, gaps="zero"))
    is_filled = zero.values[0] == 0
    previous = np.r_[0, last.values[0][:-1]]
    assert np.array_equal(last.values[0][is_filled], previous[is_filled])
    assert (last.known_values[0] == 2).all()


def test_a_series_without_values_or_known_ones_is_left_out():
    frame = gappy("leading")
    frame.loc[frame["id"] == "a", "y"] = np.nan
    frame.loc[70, "promo"] = np.nan
    frame = pd.concat([frame, frame[frame["id"] == "b"].assign(id="c", promo=0.0)])
    roles = dataclasses.replace(ROLES, gaps="last", season=7, known=("promo",))
    panel = read_panel(frame, roles)
    assert panel.names == ("c",)
    assert [one.reason for one in panel.left_out] == [
        "all values are missing",
        "'promo', known beforehand, is missing in row 71",
    ]


@pytest.mark.parametrize(
    ("times", "frequency"),
    [
        (
            [
                f"{year}Q{quarter}"
                for year in range(2000, 2006)
                for quarter in range(1, 5)
            ],
            "QS-JAN",
        ),
        (
            [f"{year}M{month:02}" for year in (2000, 2001) for month in range(1, 13)],
            "MS",
        ),
        ([f"2000-W{week:02}" for week in range(1, 25)], "W-MON"),
        (list(range(1980, 2004)), "AS-JAN"),
        ([str(year) for year in range(1980, 2004)], "AS-JAN"),
        ([100 * year + month for year in (2000, 2001) for month in range(1, 13)], "MS"),
        (list(range(20240101, 20240125)), "D"),
    ],
)
def test_times_are_read_as_people_write_them(times, frequency):
    frame = pd.DataFrame({"id": "a", "when": times, "y": range(24)})
    assert read_panel(frame, ROLES).frequency == frequency


def test_one_series_that_ended_long_ago_does_not_move_the_cutoff():
    frame = long_table(lengths=(40,) * 20 + (15,))
    panel = read_panel(frame, ROLES)
    assert plan_origins(panel, learning=1).test == (40 - 1 - 3,)


def test_a_series_may_be_called_na(tmp_path):
    path = tmp_path / "long.csv"
    frame = long_table().replace({"id": {"s0": "NA", "s1": "007"}})
    frame.to_csv(path, index=False)
    table = read_series_table(path, ROLES, SourceConfig())
    assert read_panel(table.frame, ROLES).names == ("007", "NA")
