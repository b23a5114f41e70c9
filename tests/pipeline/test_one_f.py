"""The F that a suite speaks of is the F that AMLB runs, on the rows that AMLB scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import yaml
from amlb_runs import run_benchmark
from amlb_scripts import read_as_amlb
from commands import BRIEF, words_of
from exhaustive import first_of
from imported_files import sklearn_pipeline

from amlb_ext.cli import main
from amlb_ext.core.rng import derive_seed
from amlb_ext.runner import find_predictions, read_predictions
from amlb_ext.suite import SuiteFiles, verify_suite

# F is as it is; the oracle matters little here
pytestmark = pytest.mark.usefixtures("light_models")


SEED = 42
LEVELS = ["very low", "low", "middling", "high", "very high"]  # not their text order
EXACT = {"rtol": 1e-6, "atol": 1e-6}


@pytest.fixture(scope="module")
def pipeline():
    return sklearn_pipeline()


def planted(folder, kind="class"):
    """A table with a declared order of levels, rare towns, and a class of two rows."""
    rng = np.random.default_rng(5)
    n = 260
    level = rng.integers(0, 5, n)
    town = np.where(rng.random(n) < 0.75, rng.integers(0, 6, n), rng.integers(6, 90, n))
    x = rng.normal(size=n)
    signal = x + (level == 1) + 2 * (level == 3) + 1.5 * (town % 3 == 0)
    signal = signal + rng.normal(size=n) / 2
    frame = pd.DataFrame(
        {
            "x": x,
            "level": pd.Categorical.from_codes(level, LEVELS, ordered=True),
            "town": [f"town {k}" for k in town],
            "sunny": rng.random(n) < 0.5,
            "seen": pd.Series(rng.choice(["a", "B", "c"], n)).mask(
                pd.Series(rng.random(n) < 0.1)
            ),
            "y": np.where(signal > 1.2, "tall", "short") if kind == "class" else signal,
        }
    )
    if kind == "class":
        # one class of two rows: the split puts one of them among the test rows, or none
        frame.loc[[7, 130], "y"] = "odd"
    path = folder / "planted.parquet"
    frame.to_parquet(path)
    return path, frame


def folds_file(folder, frame):
    """An AMLB definition whose test file has a class and towns that its training file lacks."""
    test = frame.index % 3 == 1  # rows 7 and 130
    frame[~test].to_csv(folder / "train.csv", index=False)
    frame[test].to_csv(folder / "test.csv", index=False)
    entry = {
        "name": "planted",
        "dataset": {
            "train": str(folder / "train.csv"),
            "test": str(folder / "test.csv"),
            "target": "y",
            "type": "multiclass",
        },
    }
    (folder / "planted.yaml").write_text(yaml.safe_dump([entry]))
    return folder / "planted.yaml"


def generated(source, out, model, *words):
    command = words_of("generate", source, "-o", out, "--seed", SEED, BRIEF)
    command += words_of("--baseline", model, "--kappa .005 --folds 1")
    few = {"random_forest": "n_estimators=20", "hist_gradient_boosting": "max_iter=20"}
    command += ["--baseline-params", few[model]] if model in few else []
    command += ["--keep", "town"]  # new towns in 14 % of the rows: left out by default
    assert main([*command, *words]) == 0
    assert verify_suite(out) == []
    return SuiteFiles.load(out)


def run_integration(pipeline, suite, task, part="full"):
    """Return what the integration predicts from the CSV files, with the stored F's own seed."""
    name = f"{task}_{part}"
    files = suite.pair(name, 0)
    coding = suite.coding(name)
    classes = coding.kind.is_classification
    train, test = read_as_amlb(*files)
    params = yaml.safe_load((suite.layout.root / "frameworks.yaml").read_text())
    settings = pipeline.Settings.from_params(params["HardsynthBaseline"]["params"])
    seed = derive_seed(SEED, task, 0, "fit") % 2**31
    model = pipeline.Model(settings, classes=classes, seed=seed)
    model.fit(train.iloc[:, :-1], train.iloc[:, -1])
    predictions, p = model.predict(test.iloc[:, :-1])
    return predictions if p is None else in_task_order(p, model.labels_, coding), test


def in_task_order(p, labels, coding):
    out = np.zeros((len(p), len(coding.labels)))
    for j, label in enumerate(labels):
        out[:, coding.written_labels.index(label)] = p[:, j]
    return out


def stored_f(suite, name):
    about = suite.provenance(name, 0)
    if "f" in about:
        return about["f"].to_numpy()
    labels = suite.coding(name).labels
    return about[[f"f_{code}" for code in range(len(labels))]].to_numpy()


@pytest.mark.parametrize(
    "model", first_of(["ridge", "random_forest", "hist_gradient_boosting"], 2)
)
def test_the_integration_predicts_what_the_suite_says_of_f(
    pipeline, tmp_path, capsys, model
):
    source = folds_file(tmp_path, planted(tmp_path)[1])
    suite = generated(source, tmp_path / "hard", model)
    summary = suite.tasks["planted"].folds[0].summary
    assert summary["left_out"] == {"unknown_class": 2}
    assert summary["replaced"]["town"] > 0
    for part in ("full", "bad", "synthetic"):
        predicted, test = run_integration(pipeline, suite, "planted", part)
        np.testing.assert_allclose(
            stored_f(suite, f"planted_{part}"), predicted, **EXACT
        )
        if part == "full":
            coding = suite.coding("planted_full")
            truth = [
                coding.written_labels.index(label) for label in test["y"].astype(str)
            ]
            brier = ((predicted - np.eye(predicted.shape[1])[truth]) ** 2).sum(axis=1)
            assert summary["score"]["brier"] == pytest.approx(brier.mean())
            assert summary["test"] == len(test) == 85
    printed = capsys.readouterr().out
    assert "left out  replaced" in printed
    entry = yaml.safe_load(
        (tmp_path / "hard" / "benchmarks" / "hardsynth.yaml").read_text()
    )[0]
    assert "the test folds of planted" in entry["description"]
    assert "2 rows of classes without training rows left out" in entry["description"]
    assert (
        f"{summary['replaced']['town']} cells replaced (town)" in entry["description"]
    )
    notes = suite.tasks["planted"].folds[0].notes
    assert {"column": "town"} in [note.words for note in notes]


@pytest.mark.parametrize("model", first_of(["ridge", "random_forest"], 1))
def test_regression_with_a_declared_order(pipeline, tmp_path, model):
    source, _ = planted(tmp_path, "numbers")
    suite = generated(source, tmp_path / "hard", model, "--target", "y")
    assert suite.coding("planted_full").columns[1].categories == tuple(LEVELS)
    predicted, test = run_integration(pipeline, suite, "planted")
    np.testing.assert_allclose(stored_f(suite, "planted_full"), predicted, **EXACT)
    rmse = np.sqrt(((predicted - test["y"]) ** 2).mean())
    assert suite.tasks["planted"].folds[0].summary["score"]["rmse"] == pytest.approx(
        rmse
    )


def test_several_targets_have_one_replacement_for_all(pipeline, tmp_path):
    path, frame = planted(tmp_path, "numbers")
    frame.assign(z=frame["x"] - frame["y"] ** 2).to_parquet(path)
    suite = generated(path, tmp_path / "hard", "ridge", "--targets", "y,z")
    features = []
    for task in ("planted_y", "planted_z"):
        assert suite.tasks[task].folds[0].summary["replaced"]["town"] > 0
        features.append(pd.read_csv(suite.pair(f"{task}_full", 0)[1]).iloc[:, :-1])
    pd.testing.assert_frame_equal(*features)


@pytest.mark.amlb
def test_amlbs_run_of_the_baseline_agrees_row_by_row(amlb, tmp_path):
    source = folds_file(tmp_path, planted(tmp_path)[1])
    suite = generated(source, tmp_path / "hard", "ridge")
    outcome = run_benchmark(
        "HardsynthBaseline",
        "hardsynth",
        "hardsynth_quick",
        userdir=tmp_path / "hard",
        outdir=tmp_path / "out",
        tasks=["planted_full"],
        amlb=amlb,
        quiet=True,
    )
    assert outcome.ok, outcome.summary()
    (found,) = find_predictions(outcome.run_dir)
    table = read_predictions(outcome.run_dir, found.task, found.fold)
    coding = suite.coding("planted_full")
    for code, label in enumerate(coding.written_labels):
        if label in table:  # the class of no training row is not among them
            ours = stored_f(suite, "planted_full")[:, code]
            # another scikit-learn stops its solver elsewhere
            np.testing.assert_allclose(ours, table[label].astype(float), atol=2e-3)
