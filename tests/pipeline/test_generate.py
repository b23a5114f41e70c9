"""The whole way as a user goes it: generate, continue, verify, and every bad input."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from commands import hardsynth
from folders import contents

from amlb_ext.cli import main
from amlb_ext.suite import SuiteFiles, verify_suite

# what is written and said matters here, not how good the models are
pytestmark = pytest.mark.usefixtures("light_models")

PLAIN = ["--baseline", "ridge", "--synthesizer", "local", "--folds", "2", "-j", "1"]
PLAIN += ["--times", "1", "--copies", "1"]
#: A kappa of one's own turns the calibration off, which would take most of the time here.
CORE = [*PLAIN, "--composition", "weighted", "--kappa", ".005"]
FAST = [*CORE, "--certificate", "none", "-q"]


def table(tmp_path, n=80, name="t.csv", **columns):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(n), "b": rng.choice(["u", "v"], n)})
    frame["y"] = frame["a"] * 3 + rng.normal(0, 0.3, n)
    frame = frame.assign(**columns)
    frame.to_csv(tmp_path / name, index=False)
    return str(tmp_path / name)


def never(*args):
    raise AssertionError("what is finished was made again")


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    root = tmp_path_factory.mktemp("certified") / "hard"
    assert main(["generate", "bundled/toy", "-o", str(root), *CORE, "-q"]) == 0
    return root


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    root = tmp_path_factory.mktemp("suite") / "hard"
    assert hardsynth("generate bundled/toy bundled/wine -o", root, FAST) == 0
    return root


def test_a_suite_is_what_the_design_says(suite):
    main_tasks = yaml.safe_load((suite / "benchmarks/hardsynth.yaml").read_text())
    # a main task is written where it is shown to order better; here that is so for one of two
    assert [t["name"] for t in main_tasks] == ["toy_full", "toy", "wine_full"]
    every = yaml.safe_load((suite / "benchmarks/hardsynth_all.yaml").read_text())
    names = [t["name"] for t in every if "toy" in t["name"]]
    suffixes = {name.removeprefix("toy").strip("_") for name in names}
    assert suffixes == {"", "full", "hard", "region", "bad", "ga", "synthetic"}
    assert verify_suite(suite) == []
    # an own kappa is used as it is
    opened = SuiteFiles.load(suite)
    assert opened.manifest.config["search"]["kappa"] == 0.005
    for fold in opened.tasks["toy"].folds.values():
        assert "calibration" not in fold.summary


def test_by_default_the_untouched_folds_are_the_benchmark(tmp_path, capsys):
    root = tmp_path / "hard"
    words = [table(tmp_path, n=200), *PLAIN, "--kappa", ".005", "--certificate", "none"]
    assert main(["generate", *words, "-o", str(root)]) == 0
    printed = capsys.readouterr()
    # before the work what it costs, after it what few folds can show
    assert "2 folds, the largest with 160 training rows" in printed.err
    said = " ".join(printed.out.split())
    assert "hard rows: hardsynth run FRAMEWORK -u" in said
    assert "--folds 2: " in said
    assert "times as large to be shown as on all of them" in said

    opened = SuiteFiles.load(root)
    [only] = yaml.safe_load((root / "benchmarks/hardsynth.yaml").read_text())
    assert only["name"] == "t_full"
    assert "t" not in opened.amlb_tasks
    assert {"t_hard", "t_bad"} <= set(opened.amlb_tasks)
    # _hard trains on other rows than the rest
    paths = [p for p in root.rglob("data/*/*_test_*.csv") if "t_hard" not in p.name]
    assert len(paths) == len({path.read_bytes() for path in paths}) >= 8
    assert verify_suite(root) == []


def test_nothing_is_computed_twice(suite, tmp_path, monkeypatch):
    copy = tmp_path / "copy"
    shutil.copytree(suite, copy)
    before = {p: p.stat().st_mtime_ns for p in copy.rglob("*_test_*.csv")}

    monkeypatch.setattr("amlb_ext.pipeline.folds.harden_group", never)
    assert hardsynth("generate bundled/toy bundled/wine -o", copy, FAST) == 0
    assert before == {p: p.stat().st_mtime_ns for p in copy.rglob("*_test_*.csv")}


def test_one_bad_task_is_reported_and_the_rest_goes_on(tmp_path, output_of):
    definition = tmp_path / "mine.yaml"
    good = table(tmp_path, name="good_train.csv")
    table(tmp_path, 20, name="good_test.csv")
    entries = [
        {"name": "good", "dataset": {"train": good, "test": good.replace("train", "test"),
                                     "target": "y"}},
        {"name": "gone", "dataset": {"train": "no.csv", "test": "no.csv", "target": "y"}},
    ]  # fmt: skip
    definition.write_text(yaml.safe_dump(entries))
    out = tmp_path / "hard"
    flags = [*CORE, "--certificate", "none", "--json"]
    report = json.loads(output_of("generate", definition, "-o", out, flags, status=1))
    assert [t["task"] for t in report["tasks"]] == ["good"]
    assert [t["task"] for t in report["failures"]] == ["gone"]
    assert verify_suite(out) == []


def test_no_failures_leaves_nothing_behind(tmp_path, output_of):
    out = tmp_path / "hard"
    source = table(tmp_path)
    flags = [*CORE, "--alpha", "9", "--json"]
    reason = json.loads(
        output_of("generate", [source], "--target y -o", out, flags, status=1)
    )["failures"][0]["reason"]
    assert "no failures found at alpha = 9" in reason
    assert "--alpha" in reason
    assert not out.exists()


BAD = {
    "unknown source": (["bundeld"], "no source understands"),
    "missing file": (["nothing.csv"], "nothing.csv"),
    "no target": (["t.csv", "--target", "price"], "no column 'price'"),
    "mostly missing target": (["missing.csv", "--target", "y"], "is missing in"),
    "one-class target": (["one.csv", "--target", "y"], "single value"),
    "too few rows": (["few.csv", "--target", "y"], "at least 20"),
    "duplicate columns": (["twice.csv", "--target", "y"], "more than once"),
    "infinite values": (["inf.csv", "--target", "y"], "finite"),
    "unknown baseline": (["t.csv", "--baseline", "rigde"], "did you mean 'ridge'"),
    "unfit baseline": (
        ["bundled/wine", "--baseline", "sklearn.svm.LinearSVC"],
        "predict_proba",
    ),
    "unknown key": (["t.csv", "--config", "wrong.yaml"], "did you mean 'search'"),
    "unknown flag value": (
        ["t.csv", "--composition", "weighted", "--kappa", "seven"],
        "kappa",
    ),
    "wrong rule": (
        ["bundled/wine", "--baseline", "ridge", "--rule", "absolute"],
        "serves regression",
    ),
    "bad name": (["t.csv", "--name", "a b"], "a_b"),
    "unknown synthesizer": (["t.csv", "--synthesizer", "vea"], "did you mean 'vae'"),
}


@pytest.fixture
def workbench(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(tmp_path)
    table(tmp_path, name="one.csv", y=1.0)
    table(tmp_path, 12, name="few.csv")
    table(tmp_path, name="inf.csv", a=np.r_[np.inf, np.zeros(79)])
    table(tmp_path, name="missing.csv", y=np.r_[np.full(60, np.nan), np.arange(20)])
    (tmp_path / "twice.csv").write_text("a,a,y\n" + "1,2,3\n" * 30)
    (tmp_path / "wrong.yaml").write_text("serch: {kappa: 1}\n")
    return tmp_path


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_line(case, workbench, refused):
    words, message = BAD[case]
    err = refused("generate", words, "-o hard -q -j 1")
    assert message in err
    assert not Path("hard").exists()


def test_other_settings_need_force(suite, tmp_path, refused):
    copy = tmp_path / "copy"
    shutil.copytree(suite, copy)
    before = contents(copy)
    words = ["generate", "bundled/toy", "bundled/wine", "-o", str(copy), *FAST]
    assert "seed: 1 there, 9 now" in refused(words, "--seed 9")
    assert contents(copy) == before
    words = ["generate", table(tmp_path), "--target", "y", "-o", str(copy), *FAST]
    assert main([*words, "--seed", "9", "--force"]) == 0
    assert verify_suite(copy) == []
    assert list(SuiteFiles.load(copy).tasks) == ["t"]
    assert not (copy / "data" / "toy").exists()


def test_generate_says_what_each_task_may_be_used_for(
    certified, tmp_path, output_of, capsys, monkeypatch
):
    out = tmp_path / "hard"
    shutil.copytree(certified, out)
    words = ["generate", "bundled/toy", "-o", str(out), *CORE, "--json"]
    # a certificate that still holds is kept
    with monkeypatch.context() as context:
        context.setattr(sys.modules["amlb_ext.validity.certify"], "certify_job", never)
        assert main(words) == 0
    verdict = json.loads(capsys.readouterr().out)["verdicts"]["toy"]
    assert verdict["verdict"] in ("rank", "describe", "stress-test only")
    assert verdict["reason"].endswith(".")
    path = out / "hardsynth/toy/certificate.json"
    before = path.read_bytes()
    assert (
        verify_suite(out) == []
    )  # a certificate may be written again, so no checksum binds it
    certificates = json.loads(
        output_of("certify", out, "--json --candidate ridge --candidate knn")
    )
    assert "ridge" in json.dumps(certificates)
    assert path.read_bytes() != before
    assert verify_suite(out) == []
    # the same command keeps the folds and makes the quick certificate again, byte for byte
    assert main(words) == 0
    capsys.readouterr()
    assert path.read_bytes() == before


def test_a_test_file_of_one_class_changes_the_metric_and_says_so(tmp_path, output_of):
    rng = np.random.default_rng(0)
    label = rng.choice(["no", "yes"], 120, p=[0.7, 0.3])
    source = table(tmp_path, 120, y=label)
    # F is unsure of every "yes" and of nothing else
    unsure = np.where(label == "yes", 0.5, 0.01)
    pd.DataFrame({"no": 1 - unsure, "yes": unsure}).to_csv(
        tmp_path / "p.csv", index=False
    )
    out = tmp_path / "hard"
    flags = [*PLAIN, "--alpha", ".505", "--certificate", "none", "--json"]
    flags += ["--baseline", str(tmp_path / "p.csv"), "--composition", "bad"]
    notes = json.loads(output_of("generate", [source], "--target y -o", out, flags))[
        "notes"
    ]
    assert any("one class only" in note and "logloss" in note for note in notes)
    entries = yaml.safe_load((out / "benchmarks/hardsynth.yaml").read_text())
    metrics = {entry["name"]: entry.get("metric") for entry in entries}
    assert metrics == {"t": ["logloss", "acc"], "t_full": None}
    assert verify_suite(out) == []
    # a file of predictions is enough, and is named without its folder
    suite = SuiteFiles.load(out)
    assert "t_ga" not in suite.amlb_tasks
    assert len(suite.provenance("t_synthetic", 0)) > 0
    assert "no search" in {n.kind for n in suite.tasks["t"].folds[0].notes}
    assert str(tmp_path) not in (out / "hardsynth/manifest.json").read_text()
