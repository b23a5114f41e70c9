"""Columns read as the user says, other separators and decimal signs, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.sources import open_specs

N = 40


def load(path, **options):
    return next(open_specs([str(path)], SourceConfig(**options))).load()


def read(folder, frame, **options):
    frame.to_csv(folder / "a.csv", index=False)
    return load(folder / "a.csv", **options)


@pytest.fixture
def shop(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=N).round(3),
            "price": [f"{value:.2f}".replace(".", ",") for value in rng.random(N) * 9],
            "day": pd.date_range("2024-01-30", periods=N).strftime("%d.%m.%Y"),
            "zip": [f"{k:05d}" for k in range(N)],
            "width": ["n/a?" if k % 10 == 0 else str(k / 8) for k in range(N)],
            "y": ["u", "v"] * (N // 2),
        }
    )
    path = tmp_path / "shop.csv"
    frame.to_csv(path, index=False)
    return path


def test_a_date_becomes_five_numbers_and_the_last_column_stays_the_target(shop):
    task = load(shop, read_as={"day": "date"})
    assert task.target_name == "y"
    first = {name: task.features[f"day_{name}"].iloc[0] for name in ("year", "month")}
    assert first == {"year": 2024, "month": 1}
    assert task.features["day_day"].iloc[:3].tolist() == [30, 31, 1]
    assert task.features["day_weekday"].iloc[0] == 1  # a Tuesday
    assert task.features["day_seconds"].diff().dropna().eq(86400).all()
    assert "day" not in task.features


@pytest.mark.parametrize("decimal", [",", None], ids=["named", "found"])
def test_a_role_changes_its_column_and_no_other(shop, decimal):
    """A decimal comma is found where the column shows it."""
    read_as = {"price": "number", "zip": "category", "width": "number"}
    task, plain = load(shop, read_as=read_as, decimal=decimal), pd.read_csv(shop)
    expected = plain["price"].str.replace(",", ".").astype(float)
    np.testing.assert_allclose(task.features["price"], expected)
    np.testing.assert_allclose(task.features["size"], plain["size"])
    assert task.features["zip"].iloc[0] == "00000"
    assert task.features["width"].isna().sum() == 4
    assert any("4 values are no numbers" in note for note in task.notes)
    assert any("column 'price'" in note and "is read as" in note for note in task.notes)
    types = {column.name: column.type for column in load(shop).columns}
    assert types["price"] in ("categorical", "text")
    assert types["zip"] == "integer"


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"read_as": {"size": "date"}}, DataError, "are no dates"),
        ({"read_as": {"y": "ignore"}}, ConfigError, "names the target"),
        ({"sep": ";;"}, ConfigError, "is not one character"),
        ({"sep": ",", "decimal": ","}, ConfigError, "both ','"),
    ],
)
def test_refused_readings_say_what_to_type(shop, options, error, said):
    with pytest.raises(error, match=said):
        load(shop, **options)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (
            ["1,234", "5,678"],
            r"a\.csv: column 'c' holds '1,234', which is 1234 with .*--decimal",
        ),
        (["12 kg", "3 lb"], r"a\.csv: column 'c' holds '12 kg' and '3 lb'"),
        (
            ["7", "red", "blue"],
            r"but 40 of its 60 values are no numbers, 'red' the first",
        ),
    ],
)
def test_numbers_that_cannot_be_read_name_the_first(cells, said, tmp_path):
    cells = cells * 20
    frame = pd.DataFrame({"c": cells, "y": [0, 1] * (len(cells) // 2)})
    with pytest.raises(DataError, match=said):
        read(tmp_path, frame, read_as={"c": "number"})


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("zone", "first", "step"),
    [
        ("Europe/Berlin", "2024-03-01", "D"),
        ("Europe/Berlin", "2024-10-26", "h"),
        ("America/New_York", "2024-03-09", "h"),
        # a day that has no midnight
        ("America/Sao_Paulo", "2018-11-03", "h"),
        ("Asia/Kathmandu", "2024-01-01", "7h"),
        ("UTC", "2024-01-01", "7h"),
    ],
)
def test_dates_with_a_zone_are_of_its_calendar(zone, first, step, ending, tmp_path):
    times = pd.Series(pd.date_range(first, periods=N, freq=step, tz=zone))
    frame = pd.DataFrame({"when": times, "y": [0, 1] * (N // 2)})
    path = tmp_path / f"a.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    found = load(path, read_as={"when": "date"}).features
    assert found["when_day"].tolist() == times.dt.day.tolist()
    assert found["when_month"].tolist() == times.dt.month.tolist()
    assert found["when_weekday"].tolist() == times.dt.day_of_week.tolist()
    seconds = (times - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    assert found["when_seconds"].tolist() == seconds.tolist()
    # as categories, too, it is what the clock shows
    category = load(path).features["when"].astype(str).iloc[-1]
    assert category.startswith(times.iloc[-1].strftime("%Y-%m-%d"))


def test_each_text_has_the_calendar_of_its_own_offset(tmp_path):
    texts = ["2024-03-31T00:00+01:00", "2024-04-01 00:00:00+0200", "2024-04-01T23:00Z"]
    frame = pd.DataFrame({"when": texts * 20, "y": [0, 1] * 30})
    found = read(tmp_path, frame, read_as={"when": "date"}).features
    assert found["when_day"].tolist()[:3] == [31, 1, 1]
    assert found["when_seconds"].tolist()[:3] == [1711839600, 1711922400, 1712012400]


def test_days_and_months_that_nothing_tells_apart_are_refused(tmp_path):
    days = ["01/02/2024", "02/03/2024"] * 20
    frame = pd.DataFrame({"day": days, "y": [0, 1] * 20})
    with pytest.raises(DataError, match="tells day and month apart"):
        read(tmp_path, frame, read_as={"day": "date"})


def test_huge_whole_numbers_keep_their_digits_or_are_refused(tmp_path):
    ids = [10**25 + k for k in range(N)]
    frame = pd.DataFrame({"id": ids, "x": range(N), "y": [0, 1] * (N // 2)})
    assert read(tmp_path, frame).features["id"].nunique() == N
    as_text = load(tmp_path / "a.csv", read_as={"id": "category"})
    assert as_text.features["id"].iloc[1] == str(10**25 + 1)
    with pytest.raises(DataError, match="--as id=category"):
        load(tmp_path / "a.csv", read_as={"id": "number"})


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_are_found_and_said(tmp_path, separator):
    frame = pd.DataFrame(
        {
            "a": [f"{k},5" for k in range(N)],
            "b": ["007", *range(1, N)],
            "y": range(N),
        }
    )
    frame.to_csv(tmp_path / "a.csv", index=False, sep=separator)
    task = load(tmp_path / "a.csv", decimal=",")
    assert task.features["a"].tolist() == [k + 0.5 for k in range(N)]
    assert any("are separated by" in note for note in task.notes)
    # zeros at the start are noted, whatever stands around the field
    assert any("leading zeros" in note for note in task.notes)
    named = load(tmp_path / "a.csv", decimal=",", sep=separator)
    assert named.content_hash == task.content_hash


def test_long_numbers_with_a_comma_stay_exact(tmp_path):
    lines = ["a;y"] + [f"0,1000000000000000000{k:02d};{k}" for k in range(N)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    task = load(tmp_path / "a.csv", decimal=",")
    assert any("40 distinct numbers are 1 as 64-bit" in note for note in task.notes)
