"""The commands that take series: what they need, and what they refuse."""

import numpy as np
import pandas as pd
import pytest
import yaml

from amlb_ext.cli import main
from amlb_ext.sources.bundled_series import simulate_series


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("series") / "sales.csv"
    simulate_series(24, 96).to_csv(path, index=False)
    return str(path)


COLUMNS = ["--series", "item_id", "--time", "timestamp", "--target", "target"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--series", "item_id"], "series need --time and --horizon"),
        (["--season", "12"], "--season is for series"),
        ([*COLUMNS, "--horizon", "12", "--drop", "x"], "has no effect on series"),
        ([*COLUMNS, "--horizon", "12", "--kappa", "1"], "has no effect on series"),
        ([*COLUMNS, "--horizon", "12", "--baseline", "tetha"], "did you mean 'theta'"),
        ([*COLUMNS, "--horizon", "90"], "the longest series"),
        (
            [*COLUMNS, "--horizon", "3", "--series", "shop"],
            "no column 'shop', named by",
        ),
        ([*COLUMNS, "--horizon", "12", "--frequency", "moonly"], "'moonly' is unknown"),
        ([*COLUMNS, "--horizon", "12", "--rule", "band"], "no rule is called 'band'"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    words, message, table, tmp_path, refused
):
    out = tmp_path / "hard"
    error = refused("generate", [table], words, "-o", out)
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not out.exists()


def test_a_definition_says_what_the_flags_would(table, tmp_path, output_of):
    definition = tmp_path / "mine.yaml"
    dataset = (
        f"{{path: {table}, type: timeseries, freq: MS, forecast_horizon_in_steps: 2, "
        "seasonality: 12, target: target}"
    )
    definition.write_text(f"- name: shops\n  dataset: {dataset}\n  folds: 30\n")
    words = ["--step", "1", "--alpha", "1", "--baseline", "drift"]
    assert "30 test origins" in output_of(
        "compare", f"{definition}#shops", words, "--candidate seasonal_naive"
    )


def test_bundled_series_have_columns_and_any_horizon(refused, output_of):
    words = (
        "compare bundled/series --baseline drift --candidate seasonal_naive --horizon 3"
    )
    assert "better than F" in output_of(words, "--origins 2 --alpha 1 --refits 0")
    assert "--series has no effect on bundled/series" in refused(words, "--series x")


def test_series_and_tables_are_not_mixed(table, tmp_path, refused):
    words = ["generate", "bundled/series", table, "-o", str(tmp_path / "hard")]
    assert "is of series and" in refused(words)


def test_origins_are_for_benchmarks_of_series(tmp_path, refused):
    out = str(tmp_path / "hard")
    assert "--origins is for series" in refused("harden validation --origins 2 -o", out)
    assert "is no AMLB benchmark definition" in refused("harden nosuch -o", out)


def test_several_tables_make_one_suite_and_a_broken_one_is_left_out(
    table, tmp_path, refused, capsys
):
    other = tmp_path / "stock.csv"
    other.write_text("shop,timestamp,target\na,2020-01-01,1\n")
    out = tmp_path / "hard"
    words = [*COLUMNS, "--horizon", "2", "--baseline", "drift", "--alpha", "1"]
    words += ["--learning-origins", "1", "--certificate", "none", "--copies", "0"]
    assert main(["generate", table, str(other), *words, "-o", str(out)]) == 1
    answer = capsys.readouterr()
    assert "stock is left out: stock.csv has no column 'item_id'" in answer.err
    assert "sales_full" in answer.out
    assert (out / "hardsynth" / "series.parquet").is_file()
    file = tmp_path / "forecasts.csv"
    file.write_text("item_id,timestamp,mean\n")
    words[words.index("drift")] = str(file)
    assert "has forecasts of one table, and there are 2" in refused(
        "generate", [table], [table], words, "-o", tmp_path / "b"
    )


def test_gaps_and_known_columns_reach_the_suite(table, tmp_path, refused, output_of):
    frame = pd.read_csv(table, parse_dates=["timestamp"])
    frame = frame.assign(promo=frame.index % 2, other=1)
    path = tmp_path / "shop.csv"
    frame.drop(index=[20, 120]).to_csv(path, index=False)
    words = ["generate", str(path), *COLUMNS, "--horizon", "2", "--baseline", "drift"]
    words += ["--alpha", "1", "--certificate", "none", "--copies", "0"]
    out = tmp_path / "hard"
    words += ["-o", str(out)]
    assert "--gaps zero or --gaps last" in refused(words)
    never = tmp_path / "never.csv"
    frame.assign(promo=np.nan).to_csv(never, index=False)
    assert "'promo', known beforehand, is missing in row" in refused(
        "generate", never, words[2:], "--known promo"
    )
    text = output_of(words, "--gaps last --known promo")
    assert "2 missing steps of 2 series have the value before it" in text
    assert "1 further column is left out (other)" in text
    assert "known beforehand: promo; F does not look at them" in text
    data = pd.read_csv(out / "data" / "shop_full" / "shop_full.csv")
    assert list(data) == ["item_id", "timestamp", "target", "promo"]
    (entry,) = yaml.safe_load((out / "fev" / "tasks.yaml").read_text())["tasks"]
    assert entry["known_dynamic_columns"] == ["promo"]
    assert "promo" in pd.read_parquet(entry["dataset_path"])
    assert main(["verify", str(out)]) == 0


@pytest.mark.parametrize("flag", [["--gaps", "zero"], ["--known", "promo"]])
def test_gaps_and_known_columns_are_for_series(flag, tmp_path, refused):
    out = ["-o", str(tmp_path / "hard")]
    assert f"{flag[0]} is for series" in refused("generate bundled/bands", flag, out)
    assert f"{flag[0]} is for series" in refused("harden validation", flag, out)
