"""F is one of our own readers of weird tasks: the suite brings its code and needs nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import yaml
from commands import words_of

from amlb_ext.cli import main
from amlb_ext.runner.install.copies import with_installed_module
from amlb_ext.runner.score import compare_scores
from amlb_ext.suite.verify import verify_suite

pytestmark = pytest.mark.usefixtures("light_models")

PATH = "extensions.WeirdReader.readers.OutlineReader"


@pytest.fixture(scope="module")
def suite(light_models, tmp_path_factory):
    """A suite of 200 samples of 12 points: in class a they lie on a circle."""
    folder = tmp_path_factory.mktemp("shapes")
    rng = np.random.default_rng(0)
    points = rng.random((200, 12, 2))
    label = np.where(rng.random(200) < 0.5, "a", "b")
    angle = rng.random((200, 12)) * 2 * np.pi
    circle = 0.5 + 0.2 * np.stack([np.cos(angle), np.sin(angle)], axis=2)
    points[label == "a"] = circle[label == "a"]
    # some labels are wrong, so that F fails on some rows
    label[:30] = np.where(label[:30] == "a", "b", "a")
    columns = [f"{axis}{k:03d}" for k in range(12) for axis in "xy"]
    table = pd.DataFrame(points.reshape(200, 24).round(4), columns=columns)
    table.assign(shape=label).to_csv(folder / "shapes.csv", index=False)
    words = words_of("generate", folder / "shapes.csv", "--target shape --folds 1")
    words += ["--baseline", "outline_reader:grid=12", "-o", str(folder / "hard")]
    words += ["--composition", "bad", "--certificate", "none", "--times", "1"]
    words += ["--kappa", "0", "--synthesizer", "local", "--no-train-hard"]
    assert main([*words, "--copies", "1", "-j", "1", "--quiet"]) == 0
    return folder / "hard"


def test_the_suite_holds_the_readers_code(suite):
    frameworks = yaml.safe_load((suite / "frameworks.yaml").read_text())
    params = frameworks["HardsynthBaseline"]["params"]
    assert params["classifier"] == PATH
    assert params["classifier_params"] == {"grid": 12}
    assert (suite / "extensions" / "WeirdReader" / "readers.py").is_file()
    assert not (suite / "extensions" / "LLMCoder").exists()
    assert verify_suite(suite) == []


def test_the_integration_of_the_suite_is_the_f_that_made_it(suite):
    # without --trust-suite: the code of this installation runs, not that of the suite
    scores = compare_scores(suite, workers=1)
    assert "HardsynthBaseline" in set(scores.table["framework"])
    assert scores.disagreements == ()


def test_an_installed_suite_names_its_own_copy():
    entry = {"module": "extensions.HardsynthSklearn", "params": {"classifier": PATH}}
    installed = with_installed_module(entry, "hard")
    assert installed["params"]["classifier"] == f"hardsynth_suites.hard.{PATH}"
    plain = {"module": "extensions.HardsynthSklearn", "params": {"classifier": "a.B"}}
    assert with_installed_module(plain, "hard")["params"] == {"classifier": "a.B"}
