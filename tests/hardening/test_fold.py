"""Planted truth: the region in which F must fail is known, and the hard rows must be in it."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.config import build_config
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Fold
from amlb_ext.hardening.fold import harden_fold
from amlb_ext.hardening.split import split_task
from amlb_ext.hardening.weights import draw_region
from amlb_ext.stats.weighted_mean import kish_size

# what is planted here is plain to a few trees, too
pytestmark = pytest.mark.usefixtures("light_models")

QUICK = {
    "synthesizer": {"epochs": 30},
    "split": {"folds": 1, "test_size": 0.3},
    "seed": 4,
}


def planted_regression(n=600):
    """y = x0 + x1, but 1 lower where x0 > .7 and color is red: ridge cannot see it."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 6))
    color = rng.choice(["red", "green", "blue"], n)
    broken = (X[:, 0] > 0.7) & (color == "red")
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)])
    table["color"] = color
    table["y"] = X[:, 0] + X[:, 1] - 1.0 * broken + rng.normal(0, 0.02, n)
    return make_task(table, "y", name="planted")


def planted_classes(n=900, labels=("no", "yes")):
    """The class follows x0, except where x1 > .75: there it is the other one."""
    rng = np.random.default_rng(1)
    X = rng.random((n, 5))
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(5)])
    code = (X[:, 0] * len(labels)).astype(int)
    code = np.where(X[:, 1] > 0.75, (code + 1) % len(labels), code)
    table["y"] = np.array(labels)[code]
    return make_task(table, "y", name="classes")


def harden(task, **layer):
    config = build_config(QUICK, layer)
    return harden_fold(split_task(task, config.split, config.seed), 0, config)


@pytest.fixture(scope="module")
def regression():
    task = planted_regression()
    return harden(
        task, baseline={"model": "ridge"}, hardness={"rule": "absolute", "alpha": 0.25}
    )


def in_region(rows):
    return ((rows.features["x0"] > 0.65) & (rows.features["color"] == "red")).to_numpy()


@pytest.mark.parametrize("part", ["bad", "ga", "synthetic"])
def test_hard_rows_stay_in_the_planted_region(regression, part):
    rows = regression.parts[part].test
    # .65 rather than .7: the faithful preset moves a number by a few hundredths
    assert in_region(rows).mean() > 0.9, part
    assert len(rows) >= 5


def test_every_made_row_is_bad_and_has_a_bad_parent(regression):
    bad_ids = set(regression.parts["bad"].test.provenance["source_row"])
    for part in ("ga", "synthetic"):
        provenance = regression.parts[part].test.provenance
        assert (provenance["hardness"] >= 0.25 - 1e-9).all()
        assert set(provenance["parent_row"]) <= bad_ids
        assert (provenance["source_row"] == -1).all()


def test_region_weights_find_the_region(regression):
    full = regression.parts["full"].test
    weight = full.provenance["weight"].to_numpy()
    inside = in_region(full)
    assert weight[inside].mean() > 3 * weight[~inside].mean()


def test_training_rows_say_what_fits_without_them_lose(regression):
    rows = regression.train
    about = rows.provenance
    assert list(about) == [
        "source_row",
        "oof_part",
        "oof_loss",
        "oof_bad",
        "oof_weight",
    ]
    assert about["oof_part"].value_counts().size == 5
    # errors of .25 of the scaled target are bad, and most of them stand in the corner
    assert (about["oof_bad"] == (about["oof_loss"] >= 0.25**2 - 1e-9)).all()
    assert in_region(rows)[about["oof_bad"]].mean() > 0.8
    inside = in_region(rows)
    weight = about["oof_weight"].to_numpy()
    assert weight[inside].mean() > 3 * weight[~inside].mean()


def test_no_real_row_on_both_sides_of_hard(regression):
    part = regression.parts["hard"]
    train, test = part.train.provenance, part.test.provenance
    assert not set(train["parent_row"]) & set(test["parent_row"])


@pytest.mark.parametrize("labels", [("no", "yes"), ("a", "b", "c")])
def test_classes_fail_where_planted(labels):
    hard = harden(
        planted_classes(labels=labels),
        baseline={"model": "logistic"},
        hardness={"rule": "wrong", "alpha": 0.3},
        train_hard=False,
    )
    for part in ("bad", "ga", "synthetic"):
        rows = hard.parts[part].test
        assert (rows.features["x1"] > 0.7).mean() > 0.75, part
    counts = hard.parts["synthetic"].test.target.value_counts()
    assert (counts[list(labels)] > 0).sum() >= 2


def test_every_preset_and_rule_runs():
    task = planted_classes(300)
    for preset in ("stress", "literal"):
        hard = harden(
            task,
            preset=preset,
            baseline={"model": "logistic"},
            search={"operators": {"population": 8, "generations": 3}},
            synthesizer={"epochs": 5},
            train_hard=False,
        )
        assert hard.summary["bad"] > 0
    for rule in ("band", "wrong", "quantile", "reducible"):
        hard = harden(
            task,
            baseline={"model": "logistic"},
            hardness={"rule": rule},
            search={"operators": {"population": 8, "generations": 3}},
            synthesizer={"name": "local"},
            train_hard=False,
        )
        assert hard.summary["rule"] == rule
        assert len(hard.parts["bad"].test) == hard.summary["bad"] > 0


def test_labels_stay_true_in_faithful_and_drift_in_literal():
    """The true function is known: how far is each augmented label from it?"""
    task = planted_regression(400)
    layer = {
        "baseline": {"model": "ridge"},
        "hardness": {"rule": "absolute", "alpha": 0.25},
    }
    drift = {}
    for preset in ("faithful", "literal"):
        layer["synthesizer"] = {"name": "local"}
        hard = harden(task, preset=preset, train_hard=False, **layer)
        rows = hard.parts["ga"].test
        x = rows.features
        broken = (x["x0"] > 0.7) & (x["color"] == "red")
        drift[preset] = (rows.target - (x["x0"] + x["x1"] - 1.0 * broken)).abs().mean()
    # noise .02, steps and jitter of .025 in two columns that count: below .1; the printed
    # settings move a label by sqrt(.02) of the range alone
    assert drift["faithful"] < 0.1
    assert drift["literal"] > 2 * drift["faithful"]


def test_no_failures_suggests_an_alpha_that_gives_rows():
    task = planted_regression(200)
    layer = {
        "baseline": {"model": "ridge"},
        "synthesizer": {"name": "local"},
        "train_hard": False,
    }
    none = harden(task, hardness={"rule": "absolute", "alpha": 5.0}, **layer)
    # all rows are as likely to fail: a region would be the whole fold again
    assert sorted(none.parts) == ["full"]
    [note] = none.notes
    assert (note.kind, note.counts["alpha"]) == ("no failures", 5.0)
    alpha = float(f"{note.counts['enough']:.4g}")
    some = harden(task, hardness={"rule": "absolute", "alpha": alpha}, **layer)
    assert 10 <= some.summary["bad"] <= 11  # four digits of alpha may let one more in


def test_region_is_drawn_in_proportion_to_the_weights():
    # 3 rows weigh 2, 60 weigh 1: floor(66 / 2) = 33 rows, inclusion 1 and .5
    weights = np.r_[np.full(3, 2.0), np.ones(60)]
    counts = np.zeros(63)
    for seed in range(400):
        rows, replaced = draw_region(weights, np.random.default_rng(seed), smallest=10)
        assert not replaced
        assert len(rows) == len(set(rows)) == 33
        counts[rows] += 1
    np.testing.assert_allclose(counts[:3] / 400, 1.0)
    assert abs(counts[3:].mean() / 400 - 0.5) < 0.01  # 30 of 60 are always drawn
    rows, replaced = draw_region(np.r_[100.0, np.ones(50)], np.random.default_rng(0))
    assert replaced
    assert len(rows) == 30
    assert kish_size(np.ones(7)) == 7


def test_test_rows_are_judged_as_amlb_gives_them():
    """A category that no training row has is replaced in the file: F must judge what is there."""
    rng = np.random.default_rng(5)
    x = rng.random(200)
    y = np.where(rng.random(200) < 0.5, "yes", "no")
    # the code of a name gives the class away, so F looks at it
    names = sorted(f"a{i}" for i in range(200)), sorted(f"z{i}" for i in range(200))
    name = [names[int(label == "yes")][i] for i, label in enumerate(y)]
    table = pd.DataFrame({"x": x, "name": name, "y": y})
    table.loc[:1, "x"], table.loc[:1, "y"] = (
        0.4,
        "yes",
    )  # two rows that differ in name alone,
    table.loc[:1, "name"] = ["a999", "z999"]  # and no training row has either name
    task = make_task(table, "y", name="names")
    cheap = {
        "synthesizer": {"name": "local"},
        "search": {"kappa": 0.0, "operators": {"generations": 1}},
    }
    config = build_config(QUICK, {"baseline": {"model": "random_forest"}, **cheap})
    task = split_task(task, config.split, config.seed)
    rest = np.arange(2, 200)
    task = task.with_folds((Fold(rest[:140], np.r_[0, 1, rest[140:]]),))
    rows = harden_fold(task, 0, config).parts["full"].test.provenance
    twins = rows[rows["source_row"].isin([0, 1])]
    assert len(twins) == 2
    for column in ("f_0", "f_1", "weight", "reducible"):
        assert twins[column].nunique() == 1, column
    # the columns f_... are F's probabilities, in the order of the labels: Brier over both
    hit = (table["y"] == "yes").to_numpy()[rows["source_row"]]
    brier = (rows["f_0"] - ~hit) ** 2 + (rows["f_1"] - hit) ** 2
    assert brier.to_numpy() == pytest.approx(rows["loss"].to_numpy(), abs=1e-12)


def test_full_is_the_untouched_test_fold(regression):
    config = build_config(QUICK)
    task = split_task(planted_regression(), config.split, config.seed)
    full = regression.parts["full"].test
    test = task.folds[0].test
    pd.testing.assert_frame_equal(
        full.features, task.features.iloc[test].reset_index(drop=True)
    )
    assert full.provenance["source_row"].tolist() == test.tolist()


def test_same_key_same_rows_other_seed_other_rows():
    task = planted_regression(200)
    layer = {"baseline": {"model": "ridge"}, "synthesizer": {"name": "local"}}
    one, two = harden(task, **layer), harden(task, **layer)
    for name in one.parts:
        pd.testing.assert_frame_equal(
            one.parts[name].test.features, two.parts[name].test.features
        )
    other = harden(task, seed=5, **layer)
    assert not one.parts["synthetic"].test.features.equals(
        other.parts["synthetic"].test.features
    )
