"""The gate holds segments, harm and flips against a need, and its record can be repeated."""

import json

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import amlb_ext as hs
from amlb_ext.cli.main import main
from amlb_ext.core.errors import ConfigError

# what is decided matters here, not how well F's failures are foreseen
pytestmark = pytest.mark.usefixtures("light_models")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, F, a model that errs in one region, and their files."""
    folder = tmp_path_factory.mktemp("gate")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1400, 2)), columns=["a", "b"])
    X["sea"] = (rng.random(1400) < 0.3).astype(int)
    y = np.where(X["a"] + rng.logistic(size=1400) / 3 > 0, "yes", "no")
    table = X.assign(y=y)
    table.iloc[:700].to_csv(folder / "old.csv", index=False)
    table.iloc[700:].to_csv(folder / "new.csv", index=False)
    F = LogisticRegression().fit(X[:700], y[:700])
    # the other way round at sea
    turned = np.where(X["sea"] == 1, np.where(y == "yes", "no", "yes"), y)
    G = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X[:700], turned[:700])
    for name, model in {"F": F, "G": G}.items():
        joblib.dump(model, folder / f"{name}.joblib")
    return folder


@pytest.fixture(scope="module")
def answer(folder):
    old, new = (pd.read_csv(folder / f"{name}.csv") for name in ("old", "new"))
    F, G = (joblib.load(folder / f"{name}.joblib") for name in "FG")
    return hs.compare(
        F,
        {"G": G, "same": F},
        new.drop(columns="y"),
        new["y"],
        train=(old.drop(columns="y"), old["y"]),
        segments="sea",
        refits=3,
    )


def test_segments_harm_and_flips_are_checks_of_their_own(answer):
    gate = hs.check_gate(
        answer, need="not-worse", margin=0.5, no_harm=True, max_flips=0.05
    )
    outcomes = {
        (c.candidate, c.data, c.needed.split()[0]): c.outcome for c in gate.checks
    }
    with pytest.raises(ConfigError, match=r"level is 0\.9, .* of 0\.95"):
        hs.check_gate(answer, level=0.9)
    assert outcomes[("G", "the table, sea = 1", "not")] == "not met"
    assert outcomes[("same", "the table, sea = 1", "not")] == "met"
    assert outcomes[("G", "the table", "a")] == "not met"
    assert outcomes[("same", "the table", "a")] == "met"
    assert outcomes[("G", "the table", "at")] == "not met"
    assert outcomes[("same", "the table", "at")] == "met"


def run(folder, *more):
    words = ["gate", "new.csv", "--target", "y", "--baseline", "F.joblib"]
    words += ["--candidate", "G=G.joblib", "--train", "old.csv", "--trust-pickle"]
    return main([*words, "--refits", "2", *more])


def test_a_record_is_repeated_and_a_changed_file_shows(
    folder, monkeypatch, refused, output_of
):
    monkeypatch.chdir(folder)
    flags = ("--max-flips", "2%", "--segment", "sea", "--need", "not-worse", "-q")
    monkeypatch.setenv("HARDSYNTH_GATE_KEY", "secret")
    assert run(folder, *flags, "--record", "signed.json") == 1
    assert "as recorded: files, outcomes and figures are the same" in output_of(
        "gate signed.json --check", status=1
    )
    with monkeypatch.context() as other:
        other.setenv("HARDSYNTH_GATE_KEY", "another")
        assert "was not signed with this key" in refused("gate signed.json --check")
    record = json.loads((folder / "signed.json").read_text())
    record["outcome"] = "met"
    (folder / "changed.json").write_text(json.dumps(record))
    assert main(["gate", "changed.json", "--check"]) == 2
    old = (folder / "old.csv").read_text()
    (folder / "old.csv").write_text(old.replace("yes", "no", 1))
    assert "train is not the file" in refused("gate signed.json --check")
    (folder / "old.csv").write_text(old)
