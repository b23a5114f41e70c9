"""The gate: its numbers are those of the comparison, its status and files are what CI reads."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import yaml

from amlb_ext.cli import main
from amlb_ext.core.errors import ConfigError
from amlb_ext.gate.checks import check_gate, github_annotations, junit_xml
from amlb_ext.gate.pytest_plugin import hardsynth_gate

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "gate.md"

# what is decided matters here, not how well F's failures are foreseen
pytestmark = pytest.mark.usefixtures("light_models")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Rows of two classes; F knows half of the truth, G all of it, H as much as F."""
    folder = tmp_path_factory.mktemp("gate") / "gate"
    folder.mkdir()
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 400))
    table = pd.DataFrame({"a": a, "b": b})
    table["churn"] = np.where(a + b + 0.5 * rng.normal(size=400) > 0, "yes", "no")
    table.to_csv(folder / "new.csv", index=False)
    noise = 0.01 * rng.random(400)
    scores = {"f": 1 / (1 + np.exp(-a)), "g": 1 / (1 + np.exp(-3 * (a + b)))}
    scores["h"] = 0.98 * scores["f"] + noise
    for name, score in scores.items():
        pd.DataFrame({"score": score}).to_csv(folder / f"{name}.csv", index=False)
    return folder


def gate(files, *more):
    words = ["gate", str(files / "new.csv"), "--target", "churn"]
    return main([*words, "--baseline", str(files / "f.csv"), *more])


def candidate(files, name):
    return ["--candidate", str(files / f"{name}.csv")]


def test_statuses(files, capsys, monkeypatch):
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert gate(files, *candidate(files, "g")) == 0
    said = capsys.readouterr().out
    assert "gate passed: 1 of 1 check met" in said
    assert "::" not in said
    # as good as F is not better, but not worse
    assert gate(files, *candidate(files, "h")) == 1
    assert "gate not met: 0 of 1 check met" in capsys.readouterr().out
    # F as a file cannot be fitted again, so nothing is claimed where it fails
    assert gate(files, *candidate(files, "g"), "--where", "failures") == 3
    said = capsys.readouterr().out
    assert "no claim possible: 0 of 1 check met" in said
    assert "no claim where F fails: " in said


def contrast(**changes):
    row = {"task": "t", "framework": "G", "where": "all rows", "loss_f": 0.2}
    row |= {"difference": 0.0, "relative": 0.0, "low": -0.005, "high": 0.005}
    row |= {"verdict": "undecided", "reason": "no significant difference from F"}
    return pd.DataFrame([row | changes])


@pytest.mark.parametrize(
    ("changes", "margin", "outcome"),
    [
        # the interval ends at .005 / .2 = 2.5 % more loss
        ({}, 0.03, "met"),
        ({}, 0.02, "not met"),
        # shown to be worse, and by less than the margin
        ({"low": 0.001, "verdict": "worse"}, 0.03, "met"),
        ({"verdict": "incomplete", "reason": "G: fold 1 failed"}, 0.5, "no claim"),
        ({"high": np.nan, "reason": "too few rows"}, 0.5, "no claim"),
        ({"loss_f": 0.0, "relative": np.nan}, 0.5, "no claim"),
        # a share of no loss is none, but worse is worse
        ({"loss_f": 0.0, "relative": np.nan, "verdict": "worse"}, 0.5, "not met"),
    ],
)
def test_not_worse_is_decided_by_the_upper_limit(changes, margin, outcome):
    answer = contrast(**changes)
    assert check_gate(answer, need="not-worse", margin=margin).outcome == outcome


def test_all_checks_must_be_met():
    table = pd.concat(
        [
            contrast(verdict="better"),
            contrast(task="u"),
            contrast(task="w", verdict="no claim", reason="no certificate"),
            # F's own control is no candidate
            contrast(framework="HardsynthNull", verdict="worse"),
        ]
    )
    assert check_gate(table).outcome == "not met"
    assert check_gate(table, tasks=["t"]).outcome == "met"
    assert check_gate(table, tasks=["t", "w"]).outcome == "no claim"
    assert [check.data for check in check_gate(table).checks] == ["t", "u", "w"]
    with pytest.raises(ConfigError, match="no task is called 'v'"):
        check_gate(table, tasks=["v"])
    with pytest.raises(ConfigError, match="margin = 0: input should be greater than 0"):
        check_gate(table, need="not-worse", margin=0)


def test_what_ci_reads():
    table = pd.concat(
        [
            contrast(verdict="better"),
            contrast(framework="G\x1b[31m <&>"),
            contrast(framework="H", verdict="no claim", reason="100 % noise"),
        ]
    )
    result = check_gate(table)
    root = ElementTree.fromstring(junit_xml(result))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == (
        "3",
        "1",
        "1",
    )
    cases = list(root.iter("testcase"))
    assert [case[0].tag for case in cases] == ["system-out", "failure", "error"]
    assert cases[0].get("name") == "G is better than F over all rows"
    passed, failed, undecided = github_annotations(result)
    assert passed.startswith("::notice title=hardsynth gate met::G on t: better")
    assert failed.startswith("::error title=hardsynth gate not met::")
    assert "100 %25 noise" in undecided
    assert not re.search(r"[\x00-\x1f]", passed + failed + undecided)


def test_annotations_are_for_github(files, capsys, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    gate(files, *candidate(files, "g"), "-q")
    assert capsys.readouterr().out.startswith("::notice title=hardsynth gate met::")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--candidate", "g", "--task", "t"], "--task has no effect on a table"),
        ([], "a table needs --candidate"),
        (["--segment", "a"], "--segment has no effect with --need better"),
    ],
)
def test_wrong_use_is_one_line(files, capsys, more, message):
    assert gate(files, *more) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_fixture_fails_a_test_in_words():
    check = hardsynth_gate.__wrapped__()
    assert check(contrast(verdict="better")).outcome == "met"
    with pytest.raises(pytest.fail.Exception, match="not met  G on t: undecided"):
        check(contrast())


def test_the_workflow_of_the_page_runs(files, monkeypatch, output_of):
    """The command of its step *Gate*, with hardsynth installed already."""
    (block,) = re.findall(
        r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S
    )
    steps = yaml.safe_load(block)["jobs"]["gate"]["steps"]
    install, _, words = [step["run"] for step in steps if "run" in step]
    assert install == "pip install hardsynth"
    monkeypatch.chdir(files.parent)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    said = output_of(words.removeprefix("hardsynth "))
    assert "::notice title=hardsynth gate met::new on new.csv" in said
    assert ElementTree.parse(files / "junit.xml").getroot().get("tests") == "1"


@pytest.fixture(scope="module")
def heavy(tmp_path_factory):
    """Costs of which few rows hold most: F, ``finds`` has them, ``misses`` is near on the rest."""
    folder = tmp_path_factory.mktemp("gate") / "heavy"
    folder.mkdir()
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=500), "b": rng.normal(size=500)})
    y = rng.exponential(2.0, size=500)
    y[:8] = 3000.0
    table["cost"] = y
    table.to_csv(folder / "new.csv", index=False)
    light = y + rng.normal(size=500)
    predictions = {
        "f": np.where(y > 2999, 2600.0, y + 2 * rng.normal(size=500)),
        "finds": np.where(y > 2999, 2990.0, light + 5),
        "misses": np.where(y > 2999, 20.0, light),
    }
    for name, f in predictions.items():
        pd.DataFrame({"prediction": f}).to_csv(folder / f"{name}.csv", index=False)
    return folder


def test_a_capped_loss_passes_no_gate_that_the_largest_errors_decide(
    heavy, capsys, tmp_path
):
    words = ["gate", str(heavy / "new.csv"), "--target", "cost", "--need", "not-worse"]
    words += ["--baseline", str(heavy / "f.csv"), *candidate(heavy, "misses")]
    words += [*candidate(heavy, "finds"), "--junit", str(tmp_path / "gate.xml")]
    assert main([*words, "--json"]) == 3
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert {check["outcome"] for check in checks} == {"no claim"}
    by_name = {check["candidate"]: check for check in checks}
    assert by_name["misses"]["rmse"] > by_name["misses"]["rmse_f"] > 50
    assert by_name["finds"]["change"] < -0.9
    assert by_name["finds"]["low"] is None
    for case in ElementTree.parse(tmp_path / "gate.xml").iter("error"):
        assert "the largest errors decide" in case.text
        assert "; RMSE " in case.text


def test_not_worse_by_capped_errors_must_not_be_worse_by_plain_ones():
    row = {"relative": 0.01, "low": -0.002, "high": 0.006, "rmse": 11.0, "rmse_f": 10.0}
    table = contrast(**row)
    result = check_gate(table, need="not-worse", margin=0.05)
    assert result.outcome == "no claim"
    assert "but +21 % without a cap" in result.checks[0].sentence
    lighter = check_gate(table.assign(rmse=10.1), need="not-worse", margin=0.05)
    assert lighter.outcome == "met"
    assert "RMSE 10.1, F 10" in lighter.checks[0].sentence
