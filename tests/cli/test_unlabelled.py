"""hardsynth certify DIR --unlabelled FILE."""

import json

import numpy as np
import pandas as pd
import pytest

from amlb_ext.cli.main import main

# what is written and said matters here, not how good the models are
pytestmark = pytest.mark.usefixtures("light_models")


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    for name, n in (("one", 300), ("two", 300), ("more", 800)):
        X = rng.random((n, 2))
        is_noise = rng.random(n) < 0.05
        is_p = (X[:, 0] > 0.5) ^ ((X[:, 1] > 0.7) | is_noise)
        table = pd.DataFrame(X, columns=["a", "b"]).assign(y=np.where(is_p, "p", "q"))
        table.to_csv(folder / f"{name}.csv", index=False)
    tables = [str(folder / "one.csv"), str(folder / "two.csv")]
    flags = (
        "--target y --baseline ridge --rule wrong --folds 1 --synthesizer local --times 1 "
        "--composition weighted --kappa 0 --no-train-hard --certificate none -j 1 -q"
    )
    assert main(["generate", *tables, "-o", str(folder / "s"), *flags.split()]) == 0
    return folder


FAST = ["--candidate", "knn", "--refits", "1", "-j", "1"]


def test_a_file_for_one_of_two_tasks(suite, output_of):
    words = ["certify", str(suite / "s"), *FAST, "--json"]
    found = json.loads(output_of(words, "--unlabelled", f"one={suite / 'more.csv'}"))
    assert set(found["one"]["powered"]) == {"knn"}
    assert found["two"]["powered"] == {}
    assert any("'y' is ignored" in note for note in found["one"]["notes"])


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("more.csv", "one of one, two"),
        ("on=more.csv", "did you mean 'one'"),
        ("one=gone.csv", "no such file: gone.csv"),
    ],
)
def test_a_wrong_flag_is_one_clear_line(suite, refused, word, message):
    assert message in refused("certify", suite / "s", FAST, "-q --unlabelled", [word])
