"""What `generate` prints of a table before it works, keeps of it, and refuses."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import BRIEF, words_of

from amlb_ext.cli.main import main
from amlb_ext.suite import verify_suite

QUICK = words_of(BRIEF, "--baseline ridge --folds 1 --kappa 0")
N = 200


@pytest.fixture
def shop(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 2)).round(1), columns=["u", "v"])
    frame["price"] = [f"{value:.1f}".replace(".", ",") for value in rng.random(N) * 9]
    frame["day"] = pd.date_range("2024-01-01", periods=N).strftime("%Y-%m-%d")
    frame["who"] = [f"person {k}" for k in range(N)]
    frame["y"] = np.where(frame["u"] + frame["v"] ** 2 > 1, "yes", "no")
    path = tmp_path / "shop.csv"
    frame.to_csv(path, index=False)
    return path


def test_roles_are_kept_for_a_repair_and_nothing_private_is(shop, tmp_path, capsys):
    out = tmp_path / "hard"
    roles = ["--as", "price=number,day=date", "--decimal", ",", "--as", "who=ignore"]
    words = ["generate", str(shop), "-o", str(out), *QUICK, *roles]
    assert main(words) == 0
    shown = capsys.readouterr()
    assert "day_weekday" in shown.err
    columns = (out / "hardsynth/columns.csv").read_text()
    assert "shop,who,ignored,200,0,," in columns
    assert "person" not in columns
    assert verify_suite(out) == []
    damaged = next((out / "data").glob("shop_full/*_test_0.csv"))
    content = damaged.read_bytes()
    damaged.unlink()
    assert main(["verify", str(out), "--repair", "--source", str(shop)]) == 0
    assert damaged.read_bytes() == content


def test_drop_takes_a_list(shop, tmp_path, output_of):
    words = ["generate", str(shop), "-o", str(tmp_path / "o"), "--dry-run", "--json"]
    planned = json.loads(output_of(words, "--drop who,day --drop price"))
    assert planned["tasks"][0]["columns"] == 2
    roles = {c["name"]: c["read_as"] for c in planned["readings"][0]["columns"]}
    assert roles == {
        "u": "number",
        "v": "number",
        "price": "ignored",
        "day": "ignored",
        "who": "ignored",
    }


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--target", "who"], "200 rows are alone in their class"),
        (["--target", "u", "--alpha", "-1"], "--alpha -1 is no threshold"),
        (["--rule", "wrong", "--alpha", "7"], "give a number from 0 to 1"),
        (["--rule", "wrong", "--class-alpha", "yes=2"], "is no probability"),
        (["--as", "prise=number"], "did you mean 'price'"),
        (["--as", "price=numbr"], "'number', 'category', 'date' or 'ignore'"),
    ],
)
@pytest.mark.parametrize("dry", [["--dry-run"], []])
def test_what_makes_no_sense_is_one_line(shop, tmp_path, refused, more, said, dry):
    out = tmp_path / "o"
    words = ["generate", str(shop), "-o", str(out), *QUICK, "-q", *dry]
    assert said in refused(words, more)
    assert not out.exists()
