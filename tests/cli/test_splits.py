"""--time, --group and --gap of generate and compare, as a user types them."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.cli import main
from amlb_ext.suite import SuiteFiles

pytestmark = pytest.mark.usefixtures("light_models")

#: What a test of splits does not look at.
LIGHT = ["--baseline", "ridge", "--composition", "bad", "--certificate", "none"]
LIGHT += ["--kappa", "0.5", "--copies", "1", "--times", "0", "-q"]


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 240
    patient = rng.integers(0, 40, n)
    x = rng.random((n, 2))
    table = pd.DataFrame(
        {
            "patient": [f"p{number:02}" for number in patient],
            "day": pd.date_range("2023-01-01", periods=n).strftime("%d.%m.%Y"),
            "a": x[:, 0],
            "b": x[:, 1],
            "cost": x[:, 0] + (x[:, 1] > 0.8) + rng.normal(0, 0.1, n),
        }
    )
    path = tmp_path_factory.mktemp("visits") / "visits.csv"
    table.to_csv(path, index=False)
    return path


def test_a_suite_says_how_its_rows_were_split_and_keeps_the_groups(visits, tmp_path):
    out = tmp_path / "hard"
    flags = ["--target", "cost", "--group", "patient", "--folds", "1", *LIGHT]
    assert main(["generate", str(visits), *flags, "-o", str(out)]) == 0
    suite = SuiteFiles.load(out)
    assert suite.manifest.config["split"]["group"] == "patient"
    notes = suite.manifest.tasks["visits"].notes
    assert "split by groups of 'patient': no group is on both sides" in notes
    tested = set(suite.provenance("visits_full", 0)["group"])
    learnt = set(suite.train_provenance("visits", 0)["group"])
    assert tested
    assert not tested & learnt
    # the id is no feature of the files
    _, test_file = suite.pair("visits_full", 0)
    assert list(pd.read_csv(test_file)) == ["a", "b", "cost"]
    assert main(["verify", str(out), "-q"]) == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--time", "dey"], "did you mean 'day'"),
        (["--gap", "3D"], "add --time COLUMN"),
        (["--series", "patient", "--group", "day"], "--group has no effect on series"),
        (["--horizon", "3"], "series need --series and --time, too"),
    ],
)
def test_a_slip_is_one_clear_line(flags, message, visits, tmp_path, refused):
    words = ["generate", str(visits), "--target", "cost", "-q", *flags]
    assert message in refused(words, "-o", tmp_path / "hard")
    assert not (tmp_path / "hard").exists()
