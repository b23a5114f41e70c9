"""The real AMLB, end to end, on a user directory built by hand as a suite is."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from amlb_runs import run_benchmark
from exhaustive import first_of

from amlb_ext.core.assets import asset_path
from amlb_ext.runner.results import find_predictions, join_predictions, read_predictions

pytestmark = pytest.mark.amlb

FOLDS = 2
CONFIG = """\
benchmarks:
  definition_dir: ['{user}/benchmarks', '{root}/resources/benchmarks']
  constraints_file: ['{root}/resources/constraints.yaml', '{user}/constraints.yaml']
frameworks:
  definition_file: ['{root}/resources/frameworks.yaml', '{user}/frameworks.yaml']
seed: 7
"""
FRAMEWORKS = {
    "hardsynth_hist": {
        "module": "extensions.HardsynthSklearn",
        "version": "1",
        "params": {
            "classifier": "sklearn.ensemble.HistGradientBoostingClassifier",
            "classifier_params": {"max_iter": 50},
            "regressor": "sklearn.ensemble.HistGradientBoostingRegressor",
            "regressor_params": {"max_iter": 50},
            "encoding": "onehot",
            "seed_offset": 1,
        },
    },
    "hardsynth_wrong": {
        "module": "extensions.HardsynthSklearn",
        "version": "1",
        "params": {"classifier": "sklearn.ensemble.RandomForst"},
    },
}


def rows(kind, n, rng):
    """Rows of a task of each kind; labels coded so that their text order is their own."""
    x = rng.normal(size=n)
    frame = pd.DataFrame({"x": x, "noise": rng.normal(size=n)})
    if kind == "binary":  # separable: the order of the labels decides on AUC 1 or 0
        frame["flag"] = rng.random(n) < 0.5
        frame["y"] = np.where(x > 0, "c01_yes", "c00_no")
    elif kind == "multiclass":
        colour = rng.choice(["red", "green", "blue"], n).astype(object)
        frame["y"] = np.select([colour == "red", x > 0], ["c00_zero", "c01_b"], "c02_a")
        frame["colour"] = np.where(rng.random(n) < 0.2, None, colour)
        frame["noise"] = frame["noise"].where(rng.random(n) > 0.1)
        frame = frame[["x", "colour", "noise", "y"]]
    else:
        frame["y"] = 100 + 20 * x + rng.normal(size=n)
    return frame


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """A user directory with three tasks of two folds, a broken one and our integration."""
    user = tmp_path_factory.mktemp("suite")
    rng = np.random.default_rng(3)
    tasks = []
    for kind in ("binary", "multiclass", "regression"):
        folder = user / "data" / f"t_{kind}"
        folder.mkdir(parents=True)
        for k in range(FOLDS):
            rows(kind, 200, rng).to_csv(folder / f"t_{kind}_train_{k}.csv", index=False)
            rows(kind, 60, rng).to_csv(folder / f"t_{kind}_test_{k}.csv", index=False)
        paths = {
            part: [
                f"{{user}}/data/t_{kind}/t_{kind}_{part}_{k}.csv" for k in range(FOLDS)
            ]
            for part in ("train", "test")
        }
        dataset = {**paths, "target": "y", "type": kind}
        tasks.append({"name": f"t_{kind}", "folds": FOLDS, "dataset": dataset})
    gone = {"train": "{user}/data/gone.csv", "test": "{user}/data/gone.csv"}
    gone = {**gone, "target": "y", "type": "binary"}
    (user / "benchmarks").mkdir()
    (user / "benchmarks" / "hardsynth.yaml").write_text(yaml.safe_dump(tasks))
    tasks.append({"name": "gone", "folds": 1, "dataset": gone})
    (user / "benchmarks" / "broken.yaml").write_text(yaml.safe_dump(tasks))
    (user / "config.yaml").write_text(CONFIG)
    (user / "frameworks.yaml").write_text(yaml.safe_dump(FRAMEWORKS))
    shutil.copy(asset_path("resources", "constraints.yaml"), user / "constraints.yaml")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(
        asset_path("frameworks", "HardsynthSklearn"),
        user / "extensions" / "HardsynthSklearn",
        ignore=ignored,
    )
    return user


@pytest.mark.parametrize(
    "framework",
    first_of(["hardsynth_hist", "constantpredictor", "DecisionTree"], 1),
)
def test_every_fold_is_scored_and_joins(amlb, suite, tmp_path, framework):
    outcome = run_benchmark(
        framework,
        constraint="hardsynth_quick",
        userdir=suite,
        outdir=tmp_path,
        amlb=amlb,
        quiet=True,
    )
    assert outcome.ok, outcome.summary()
    assert len(outcome.rows) == 3 * FOLDS
    assert set(outcome.rows["seed"]) == {7.0}
    for found in find_predictions(tmp_path):
        assert found.framework == framework
        test = pd.read_csv(
            suite / "data" / found.task / f"{found.task}_test_{found.fold}.csv"
        )
        predictions = read_predictions(found.run_dir, found.task, found.fold)
        provenance = pd.DataFrame({"row": range(len(test))})
        assert len(join_predictions(predictions, provenance, test["y"])) == 60
    assert len(list(find_predictions(tmp_path))) == 3 * FOLDS
    scores = outcome.rows.groupby("task")["result"].min()
    if framework == "constantpredictor":
        assert scores["t_binary"] == 0.5
    else:
        assert scores["t_binary"] > 0.95  # AUC, the right way round
        assert (
            scores["t_regression"] > -10
        )  # negated RMSE; the target's deviation is 20
    if framework.startswith("hardsynth"):
        assert (
            scores["t_multiclass"] > -0.6
        )  # negated log loss; knowing nothing is -1.1


def test_what_amlb_does_not_tell_is_found(amlb, suite, tmp_path):
    outcome = run_benchmark(
        "hardsynth_wrong",
        "broken",
        userdir=suite,
        outdir=tmp_path,
        amlb=amlb,
        quiet=True,
        folds=[0],
        tasks=["t_binary", "t_regression", "gone"],
    )
    assert outcome.amlb_exit == 0  # AMLB thinks all is well
    assert not outcome.ok
    assert [(p.task, p.fold) for p in outcome.missing] == [("gone", 0)]
    assert "gone.csv" in outcome.missing[0].reason
    binary, regression = outcome.failed
    assert "cannot import the model 'sklearn.ensemble.RandomForst'" in binary.reason
    assert "params.regressor" in regression.reason
