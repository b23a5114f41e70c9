"""The kappa of a fold: chosen on training rows alone, the largest that passes, else the floor."""

import dataclasses

import joblib
import numpy as np
import pandas as pd
import pytest
from exhaustive import first_of
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression

from amlb_ext.core.config import SearchConfig, build_config
from amlb_ext.core.tables import make_task
from amlb_ext.hardening.prepare import cross_fit
from amlb_ext.hardening.search import genetic_search, learn_domain
from amlb_ext.hardening.search.deap_engine import genetic_search_deap
from amlb_ext.hardening.split import split_task
from amlb_ext.validity import calibration as module
from amlb_ext.validity import held_out_parts
from amlb_ext.validity.calibration import LADDER, Rung, wants_calibration
from amlb_ext.validity.held_out_parts import HeldOutCandidates, hold_out_parts

# what is planted here is plain to a few trees, too
pytestmark = pytest.mark.usefixtures("light_models")

#: No filter and long steps: a row leaves its label behind, the farther the larger kappa is.
LOOSE = {
    "baseline": {"model": "ridge"},
    "search": {"operators": {"strength": 0.2, "sigma2": 0.0, "agreement": False}},
    "split": {"folds": 1},
    "seed": 5,
    "hardness": {"rule": "paper"},
}


def bent(n=500):
    """y = a + b, but 1 lower where a > .7 and the colour is red: ridge cannot see it."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((n, 4)), columns=list("abcd"))
    table["colour"] = rng.choice(["red", "green"], n)
    broken = (table["a"] > 0.7) & (table["colour"] == "red")
    table["y"] = table["a"] + table["b"] - 1.0 * broken + rng.normal(0, 0.02, n)
    return make_task(table, "y", name="bent")


def ready(task, *layers):
    config = build_config(LOOSE, *layers)
    return split_task(task, config.split, config.seed), 0, config


def calibrate(task, fold, config, held_out=None):
    """Calibrate a task on its own."""
    [calibration] = module.calibrate([task], fold, config, held_out)
    return calibration


@pytest.fixture(scope="module")
def held_out():
    """Parts and candidates of the bent task: fitting them takes most of a calibration's time."""
    task, fold, config = ready(bent())
    return HeldOutCandidates([task], config, cross_fit([task], fold, config))


@pytest.fixture(scope="module")
def found():
    return calibrate(*ready(bent()))


def test_the_same_again_whatever_the_test_rows(found):
    task, fold, config = ready(bent())
    test = task.folds[0].test
    features, target = task.features.copy(), task.target.copy()
    rng = np.random.default_rng(5)
    for name in "abcd":
        features.loc[test, name] = rng.normal(0, 100, len(test))
    features.loc[test, "colour"] = (
        features["colour"].iloc[rng.permutation(test)].to_numpy()
    )
    target.loc[test] = rng.normal(0, 100, len(test))
    altered = dataclasses.replace(task, features=features, target=target)
    assert calibrate(altered, fold, config) == found


def test_models_never_see_the_failures_they_judge(held_out):
    task = held_out.tasks[0]
    parts = held_out.unfitted
    rows = np.concatenate([part.rows.row for part in parts])
    assert sorted(rows) == sorted(
        task.folds[0].train
    )  # each training row left out once
    for part in parts:
        fitted = {tuple(row) for row in part.models.Z}
        assert not fitted & {tuple(row) for row in part.rows.Z}
        # the oracle that filters a part is the one that predicted it out of fold
        [own] = part.models.targets
        blind = own.oracle.predict(part.rows.Z)
        held = np.flatnonzero(np.isin(task.folds[0].train, part.rows.row))
        np.testing.assert_array_equal(blind, own.oracle.out_of_fold_[held])


def test_of_many_rows_some_are_drawn_and_all_failures_count(monkeypatch, held_out):
    monkeypatch.setattr(held_out_parts, "MOST_HELD", 30)
    monkeypatch.setattr(held_out_parts, "MOST_ROWS", 5)
    tasks, config, cross = held_out.tasks, held_out.config, held_out.cross
    drawn = HeldOutCandidates(tasks, config, cross)
    assert drawn.n_failures == held_out.n_failures
    for part, whole in zip(drawn.unfitted, held_out.unfitted, strict=True):
        assert len(part.rows) == len(part.held) == 30
        assert set(part.held) <= set(whole.held)
        assert set(part.held[part.rows.is_bad]) <= set(part.failures)


@pytest.mark.parametrize(
    ("passing", "chosen", "tried"),
    [
        ({0.5, 0.0}, 0.5, 1),
        ({0.02, 0.005, 0.0}, 0.02, 3),
        ({0.0}, 0.0, 5),
        (set(), 0.0, 5),
    ],
)
def test_the_largest_passing_rung_is_chosen(
    monkeypatch, held_out, passing, chosen, tried
):
    def planted(parts, kappa, *rest):
        why = "" if kappa in passing else "planted"
        return Rung(kappa=kappa, rows=9, passed=kappa in passing, why=why)

    monkeypatch.setattr(module, "try_rung", planted)
    made = calibrate(*ready(bent()), held_out)
    assert (made.kappa, made.passed) == (chosen, bool(passing))
    assert [rung.kappa for rung in made.rungs] == list(LADDER[:tried])
    assert (made.why is not None) == (not passing)


def test_where_labels_do_not_follow_a_large_kappa_fails(found):
    by_kappa = {rung.kappa: rung for rung in found.rungs}
    assert by_kappa[0.5].z2 > 4
    assert by_kappa[0.5].label_support < -0.1
    assert found.passed
    assert 0 < found.kappa < 0.5
    best = by_kappa[found.kappa]
    assert best.z2 <= 1
    assert best.tau >= 0.8
    assert best.label_support > by_kappa[0.5].label_support


@pytest.mark.exhaustive
def test_a_hopeless_rung_ends_early_and_changes_no_choice(found, monkeypatch):
    monkeypatch.setattr(module, "HOPELESS", 3.0)
    early = calibrate(*ready(bent()))
    assert early.kappa == found.kappa
    first, whole = early.rungs[0], found.rungs[0]
    assert not first.passed
    assert first.rows < whole.rows
    assert "first parts" in first.why
    assert early.rungs[-1] == found.rungs[-1]


@pytest.mark.parametrize("engine", [genetic_search, genetic_search_deap])
def test_without_pressure_a_search_returns_the_failure_itself(engine, held_out):
    # so the augmentation may skip it
    part = held_out.unfitted[0]
    models, bad = part.models, part.rows.take(np.flatnonzero(part.rows.is_bad)[:4])
    m = models.encoder.n_categorical_
    domain = learn_domain(
        part.rows.Z, models.Z, models.y[:, 0], n_classes=0, n_categorical=m
    )
    config = SearchConfig(kappa=0.0, operators={"categoricals": "free"})
    predict = models.targets[0].baseline.predict
    best, value = engine(
        predict, bad.Z, bad.y[:, 0], domain=domain, config=config, seed=1
    )
    np.testing.assert_array_equal(best, bad.Z)
    np.testing.assert_array_equal(value, np.zeros(4))


def test_few_failures_give_the_floor():
    made = calibrate(*ready(bent(), {"hardness": {"alpha": 5.0}}))
    assert (made.kappa, made.passed, made.rungs) == (0.0, False, ())
    assert made.why.kind == "kappa few failures"


def test_a_model_that_fits_no_part_gives_the_floor():
    model = "sklearn.neighbors.KNeighborsRegressor:n_neighbors=380"
    made = calibrate(*ready(bent(), {"baseline": {"model": model}}))
    assert (made.kappa, made.passed) == (0.0, False)
    assert "KNeighborsRegressor" in made.why.text


def test_clones_stand_in_for_a_model_that_came_fitted(tmp_path):
    task = bent()
    path = tmp_path / "f.pkl"
    joblib.dump(LinearRegression().fit(task.features[["a"]], task.target), path)
    file = {"baseline": {"model": str(path), "trust_pickle": True}}
    task, fold, config = ready(task, file)
    cross = cross_fit([task], fold, config)
    own = cross.targets[0].baseline.predict(cross.Z)
    # F judges the training rows as it came; where failures must be unseen, its clones do
    np.testing.assert_array_equal(cross.f[:, 0], own)
    for number, part in enumerate(hold_out_parts(task, config, cross)):
        twin = cross.targets[0].cross_fits[number]
        assert part.models.targets[0].baseline is twin
        np.testing.assert_array_equal(part.rows.f[:, 0], twin.predict(part.rows.Z))
        assert not np.allclose(part.rows.f[:, 0], own[cross.parts[number][1]])


def test_a_model_that_cannot_be_fitted_again_gives_the_floor(tmp_path):
    task = bent()
    frozen = FrozenEstimator(LinearRegression().fit(task.features[["a"]], task.target))
    path = tmp_path / "f.pkl"
    joblib.dump(frozen, path)
    file = {"baseline": {"model": str(path), "trust_pickle": True}}
    made = calibrate(*ready(task, file))
    assert (made.kappa, made.passed) == (0.0, False)
    assert made.why.kind == "kappa unseen"
    assert "does not learn" in made.why.text


def rare(n=90, minority=3):
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.random((n, 3)), columns=list("abc"))
    table["y"] = np.where(np.arange(n) < minority, "rare", "often")
    return make_task(table, "y", name="rare")


@pytest.mark.parametrize("minority", first_of([1, 2, 5], 1))
def test_a_rare_class_does_no_harm(minority):
    share = {"hardness": {"rule": "quantile", "share": 0.3}}
    few_trees = {"model": "random_forest", "params": {"n_estimators": 10}}
    forest = {"baseline": few_trees}
    made = calibrate(*ready(rare(minority=minority), forest, share))
    assert made.kappa in LADDER


@pytest.mark.parametrize(
    ("layer", "wanted"),
    [
        ({}, True),
        ({"preset": "stress"}, False),
        ({"preset": "literal"}, False),
        ({"search": {"kappa": 0.005}}, False),
        ({"search": {"kappa": 0.0}}, False),
        ({"search": {"copies": 0}}, False),
        ({"baseline": {"model": "p.csv"}}, False),
        ({"baseline": {"model": "f.skops"}}, True),
    ],
)
def test_an_explicit_kappa_turns_it_off(layer, wanted):
    assert wants_calibration(build_config(layer)) is wanted


def test_candidates_that_saw_all_rows_leave_their_losses(monkeypatch, held_out):
    assert held_out.parts  # fitted
    losses = held_out.unseen_losses(0)
    assert list(losses.index) == list(range(len(held_out.cross.Z)))
    assert not losses.isna().any(axis=None)
    assert "oof_loss_linear" in losses
    assert "judge" not in "".join(losses)
    monkeypatch.setattr(held_out_parts, "QUICK_ROWS", 100)
    assert held_out.unseen_losses(0) is None
