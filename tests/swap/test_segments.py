"""A user's segments: every form is read, what names no rows is refused, and intervals hold."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.unit import ROW, WINDOW
from amlb_ext.swap.contrast import AucContrast, RowContrast
from amlb_ext.swap.flips import count_flips
from amlb_ext.swap.segments import judge_segments, read_segments, unjudged_text

TABLE = pd.DataFrame(
    {
        "age": np.arange(100.0),
        "region": ["north", "south", None, "sea side"] * 25,
        "day": pd.date_range("2024-01-01", periods=100),
        "code": [1, 2, 3, 4] * 25,
        "supply and <demand>": [0, 1, 2, 3] * 25,
        "1": [1, 2, 3, 4] * 25,
        " blank": [1, 2, 3, 4] * 25,
    }
)


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        ("code", {f"code = {k}": 25 for k in (1, 2, 3, 4)}),
        (
            "region",
            {
                "region = north": 25,
                "region = sea side": 25,
                "region = south": 25,
                "region is missing": 25,
            },
        ),
        ("age < 25", {"age < 25": 25}),
        ("age <= 25 and region = north", {"age <= 25 and region = north": 7}),
        ("10 <= age < 20", {"10 <= age < 20": 10}),
        ("region != 'north'", {"region != 'north'": 50}),
        ("region == sea side", {"region == sea side": 25}),
        ("day >= 2024-04-01", {"day >= 2024-04-01": 9}),
        ("25 > age", {"25 > age": 25}),
        ("1 < 1 <= 4", {"1 < 1 <= 4": 75}),
        ("blank = 3", {"blank = 3": 25}),
        ("20 > age >= 10", {"20 > age >= 10": 10}),
        (
            "age < 50 and supply and <demand> >= 3",
            {"age < 50 and supply and <demand> >= 3": 12},
        ),
        (
            "supply and <demand> = 3 and 90 <= age",
            {"supply and <demand> = 3 and 90 <= age": 3},
        ),
        ({"old": "age > 89"}, {"old": 10}),
        ({"age": [50]}, {"age < 50": 50, "age >= 50": 50}),
        ({"mine": (TABLE["age"] < 5).to_numpy()}, {"mine": 5}),
        ([TABLE["age"] < 5, "age > 97"], {"age": 5, "age > 97": 2}),
        (TABLE["age"].rename(None) < 5, {"segment 1": 5}),
        # columns that the table does not have
        (pd.Series(["a", "b"] * 50, name="team"), {"team = a": 50, "team = b": 50}),
        ({"team": np.array(["a", "b"] * 50)}, {"team = a": 50, "team = b": 50}),
        (
            pd.DataFrame({"mine": TABLE["age"] < 5, "team": ["a", "b"] * 50}),
            {"mine": 5, "team = a": 50, "team = b": 50},
        ),
        # masks in other types
        ({"mine": (TABLE["age"] < 5).astype(object)}, {"mine": 5}),
        ({"mine": (TABLE["age"] < 5).astype("boolean")}, {"mine": 5}),
        (
            {"mine": (TABLE["age"] < 5).astype("boolean").where(TABLE["age"] > 0)},
            {"mine = False": 95, "mine = True": 4, "mine is missing": 1},
        ),
        (np.array(["age < 5", "age > 97"]), {"age < 5": 5, "age > 97": 2}),
        (None, {}),
    ],
)
def test_every_form_of_a_segment_is_read(given, sizes):
    segments = read_segments(given, TABLE)
    assert {each.name: int(each.inside.sum()) for each in segments} == sizes


@pytest.mark.parametrize(
    ("given", "culprit"),
    [
        ("height", "height"),
        ("hieght < 3", "hieght"),
        ("age < 5 and hieght < 3", "hieght"),
        ("age and code = 1", "age"),
        ("age < old", "age"),
        ("region < north", "region"),
        ("age > 1000", "none"),
        ("age >= 0", "all"),
        ({"mine": np.ones(3, dtype=bool)}, "mine"),
        ({"mine": np.zeros(100)}, "mine"),
        ({"mine": lambda table: table["age"] < 5}, "mine"),
        (5, "int"),
        ({"region": [3]}, "region"),
        ({"age": [5, 5]}, "age"),
        (["age < 5", "age < 5"], "age < 5"),
        ("day", "day"),
    ],
)
def test_what_names_no_rows_is_refused(given, culprit):
    with pytest.raises(HardsynthError) as caught:
        read_segments(given, TABLE)
    assert culprit in caught.value.message
    assert caught.value.remedy


def test_intervals_of_ten_segments_hold_together_and_planted_harm_is_told():
    held, told = [], []
    for draw in range(150):
        rng = np.random.default_rng(draw)
        n = 600
        segment = rng.integers(0, 10, n)
        truth = np.where(segment == 3, 0.8, 0.0)
        d = truth + rng.standard_t(5, n)
        masks = {f"s{k}": segment == k for k in range(10)}
        table = pd.DataFrame(index=range(n))
        contrast = RowContrast(np.zeros(n), d)
        judged = judge_segments(read_segments(masks, table), {"G": contrast})
        true = np.where(judged["segment"] == "s3", 0.8, 0.0)
        held.append(((judged["low"] <= true) & (true <= judged["high"])).all())
        told.append(judged.set_index("segment").loc["s3", "verdict"] == "worse")
    assert np.mean(held) >= 0.9
    assert np.mean(told) >= 0.7


def test_of_rows_in_groups_as_many_are_needed_as_thirty_groups_have():
    rng = np.random.default_rng(0)
    shop = np.repeat(np.arange(40), 10)
    judged = judge_segments(
        read_segments({"some": shop < 20}, pd.DataFrame(index=range(400))),
        {"G": RowContrast(np.zeros(400), rng.normal(size=400), shop)},
    )
    assert judged["verdict"].tolist() == ["too few groups"]
    assert judged["rows_needed"].tolist() == [300]
    told = unjudged_text(judged.iloc[0].to_dict(), WINDOW)
    assert told == "too few series: 30 are needed"


def test_where_few_rows_change_nothing_is_known_of_a_group_without_change():
    """Its change is no exact 0: rows like these change in one of a hundred cases."""
    d = np.zeros(600)
    d[:6] = 1.0
    masks = {"some": np.arange(600) < 300, "none": np.arange(600) >= 300}
    judged = judge_segments(
        read_segments(masks, pd.DataFrame(index=range(600))),
        {"G": RowContrast(np.zeros(600), d), "same": RowContrast(d, d)},
    ).set_index(["model", "segment"])
    assert judged.loc["G", "verdict"].tolist() == ["too few changes"] * 2
    assert judged.loc["G", "low"].isna().all()
    assert judged.loc[("G", "some"), "rows_needed"] == 500
    assert np.isnan(judged.loc[("G", "none"), "rows_needed"])
    assert "some 500 rows" in unjudged_text(judged.loc[("G", "some")], ROW)
    # models that are the same on all rows change nothing
    assert judged.loc["same", "high"].tolist() == [0.0, 0.0]


def test_flips_are_counted_over_all_rows_and_by_segment():
    right_f = np.array([True] * 60 + [False] * 40)
    right_g = np.array([True] * 50 + [False] * 10 + [True] * 5 + [False] * 35)
    segments = read_segments(
        {"first": np.arange(100) < 60}, pd.DataFrame(index=range(100))
    )
    table = count_flips(right_f, {"G": right_g}, segments, [right_f, right_g])
    assert table[["segment", "negative", "positive"]].values.tolist() == [
        ["all rows", 10, 5],
        ["first", 10, 0],
    ]
    assert table["refits"].tolist() == pytest.approx([0.05, 10 / 60 / 2])
    assert table["p"].iloc[1] < 0.01


SEGMENTED = pd.DataFrame(
    {
        "code": ["01", "1", "2"] * 40,
        "band": ["rock and roll", "jazz"] * 60,
        "height": ["5'", "6'", "5'10\"", None] * 30,
        "account": [2**60, 2**60 + 1] * 60,
        "gain": np.where(np.arange(120) % 9, 0.0, np.arange(120)),
        "ts": 1_700_000_000 + 7.0 * np.arange(120),
        "when": pd.date_range("2024-01-01", periods=120, freq="h", tz="Europe/Berlin"),
    }
)


def test_every_segment_holds_the_same_rows_when_its_name_is_typed():
    for column in ("code", "band", "height", "account", "gain", "ts"):
        for segment in read_segments(column, SEGMENTED):
            [typed] = read_segments(segment.name, SEGMENTED)
            np.testing.assert_array_equal(typed.inside, segment.inside, segment.name)
    names = [segment.name for segment in read_segments("gain", SEGMENTED)]
    assert names == ["gain = 0", "gain > 0"]
    given = {"ts": [1_700_000_021, 1_700_000_028]}
    _, between, _ = read_segments(given, SEGMENTED)
    assert between.name == "1700000021 <= ts < 1700000028"
    assert between.inside.sum() == 1


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("code = 01", 40),
        ("code != 1", 80),
        ("gain = 0.0", 107),
        ("when > 2024-01-02", 95),
        ("when = 2024-01-02", 1),
        ("when >= 2024-01-02 00:00+00:00", 95),
        ("band = 'rock and roll' and gain > 0", 6),
        ("height != 5' and height != 6'", 30),
        (f"account >= {2**60 + 1}", 60),
    ],
)
def test_conditions_compare_by_what_a_column_holds(condition, rows):
    [segment] = read_segments(condition, SEGMENTED)
    assert segment.inside.sum() == rows


@pytest.mark.parametrize("joined", ["or", "AND", "&", ","])
def test_conditions_that_are_not_joined_by_and_are_refused(joined):
    for first in ("code != 1", "gain < 5"):
        with pytest.raises(HardsynthError, match="joined by 'and' alone"):
            read_segments(f"{first} {joined} band = jazz", SEGMENTED)


def test_the_auc_of_a_segment_is_on_the_scale_of_its_change():
    rng = np.random.default_rng(0)
    y = rng.random(400) < 0.3
    f, g = rng.normal(size=(2, 400)) + y
    inside = rng.random(400) < 0.5
    segment = read_segments({"some": inside}, pd.DataFrame(index=range(400)))
    one = judge_segments(segment, {"G": AucContrast(y, f, g)}).iloc[0]
    back = judge_segments(segment, {"F": AucContrast(y, g, f)}).iloc[0]
    assert one["loss"] == pytest.approx(back["loss_f"])
    assert one["loss_f"] == pytest.approx(back["loss"])
    shares = [(f[~y][:, None] > f[y & inside]).mean()]
    shares += [(f[~y & inside][:, None] > f[y]).mean()]
    assert one["loss_f"] == pytest.approx(np.mean(shares))


def test_a_number_with_many_values_is_cut_into_quarters():
    assert [each.inside.sum() for each in read_segments("age", TABLE)] == [25] * 4


def test_few_rows_are_not_judged_and_an_undecided_segment_says_how_many_would_do():
    rng = np.random.default_rng(0)
    d = 0.1 + rng.normal(size=400)
    masks = {"few": np.arange(400) < 10, "half": np.arange(400) < 200}
    judged = judge_segments(
        read_segments(masks, pd.DataFrame(index=range(400))),
        {"G": RowContrast(np.zeros(400), d)},
    ).set_index("segment")
    assert judged.loc["few", "verdict"] == "too few rows"
    assert judged.loc["few", "rows_needed"] == 30
    assert judged.loc["half", "verdict"] == "not shown"
    assert judged.loc["half", "rows_needed"] > 200


DAYS = pd.Series(pd.date_range("2024-01-01", periods=240))


@pytest.mark.parametrize(
    "column",
    [
        DAYS,
        DAYS.dt.tz_localize("Europe/Berlin"),
        DAYS.dt.date,
        DAYS.dt.strftime("%Y-%m-%d"),
        DAYS.astype("date32[pyarrow]"),
        DAYS.astype("timestamp[ns][pyarrow]"),
    ],
    ids=lambda column: str(column.dtype),
)
def test_a_day_is_a_day_whatever_holds_it(column):
    table = pd.DataFrame({"q": column})
    [segment] = read_segments("2024-02-01 <= q < 2024-03-01", table)
    assert segment.inside.tolist() == (DAYS.dt.month == 2).tolist()
    for read_in_two_ways in ("q < 01.03.2024", "q < today"):
        with pytest.raises(HardsynthError, match="write a date as 2024-03-31"):
            read_segments(read_in_two_ways, table)


@pytest.mark.parametrize(
    "dtype",
    ["float", "Int64", "int64[pyarrow]", "string", "string[pyarrow]", "category"],
)
def test_missing_values_meet_no_condition(dtype):
    values = pd.Series([None, 1, 2, 3] * 30)
    if "string" in dtype:
        values = values.map({1: "1", 2: "2", 3: "3"})
    table = pd.DataFrame({"q": values.astype(dtype)})
    for condition, rows in (("q = 2", 30), ("q != 2", 60), ("q is missing", 30)):
        [segment] = read_segments(condition, table)
        assert segment.inside.sum() == rows


def test_whole_numbers_as_text_are_compared_to_the_last_digit():
    table = pd.DataFrame({"q": [str(2**60 + k) for k in range(100)]})
    [segment] = read_segments(f"q < {2**60 + 40}", table)
    assert segment.inside.sum() == 40


def test_a_series_belongs_to_the_rows_as_y_does():
    table = pd.DataFrame({"a": range(100)})
    mask = pd.Series(np.arange(100) < 30, name="m")
    permuted = mask.set_axis(np.random.default_rng(0).permutation(100))
    with pytest.raises(HardsynthError, match="segment 'm' and X have different index"):
        read_segments(permuted, table)
    [placed] = read_segments(permuted, table, align="position")
    assert placed.inside.tolist() == mask.tolist()
    [by_label] = read_segments(permuted, table, align="index")
    assert by_label.inside.tolist() == permuted.loc[table.index].tolist()
