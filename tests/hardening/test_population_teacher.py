"""Rows learnt from the whole population, and rare classes."""

import numpy as np
import pandas as pd
import pytest
from exhaustive import first_of

from amlb_ext.core.config import build_config
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Origin
from amlb_ext.hardening import oracle as oracle_module
from amlb_ext.hardening.fold import harden_fold
from amlb_ext.hardening.hardness import BadRule
from amlb_ext.hardening.made_rows.population_teacher import (
    Teacher,
    draw_outcomes,
    failing_chance,
)
from amlb_ext.hardening.oracle import Oracle
from amlb_ext.hardening.split import cross_folds, split_task

# what is planted here is plain to a few trees, too
pytestmark = pytest.mark.usefixtures("light_models")


def table(n=400, classes=True, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((n, 3))
    score = (
        x[:, 0]
        + np.where(x[:, 1] > 0.7, -2 * x[:, 0], 0.0)
        + 0.05 * rng.standard_normal(n)
    )
    frame = pd.DataFrame(x, columns=list("abc"))
    frame["d"] = rng.choice(["u", "v"], n)
    frame["y"] = np.where(score > 0.2, "yes", "no") if classes else score
    return frame


def task_of(frame, config):
    task = make_task(frame, "y", name="planted", origin=Origin("planted"))
    return split_task(task, config.split, config.seed)


def config_of(**layers):
    base = {
        "baseline": {"model": "ridge"},
        "split": {"folds": 1},
        "search": {"kappa": 0.0},
        "synthesizer": {"name": "local", "learn_from": "population", "times": 2},
        "train_hard": False,
    }
    return build_config(base, layers)


@pytest.mark.parametrize("classes", first_of([True, False], 1))
def test_rows_of_the_population_fail_and_descend_from_a_real_bad_row(classes):
    frame = table(classes=classes)
    config = config_of()
    hard = harden_fold(task_of(frame, config), 0, config)
    made = hard.parts["synthetic"].test
    again = harden_fold(task_of(frame, config), 0, config).parts["synthetic"].test
    pd.testing.assert_frame_equal(made.features, again.features)
    bad = hard.parts["bad"].test.provenance["source_row"]
    assert len(made) > 20
    assert set(made.provenance["parent_row"]) <= set(bad)
    # K calls every one bad, by the rule's own threshold
    alpha = hard.summary["alpha"]
    threshold = 1 - alpha if hard.summary["rule"] == "band" else alpha
    assert made.provenance["hardness"].min() >= threshold - 1e-9
    rows = pd.concat([hard.train.features, made.features]).duplicated()
    assert not rows[
        len(hard.train.features) :
    ].any()  # no training row stands in the test file


def test_teacher_is_a_distribution_around_the_oracle():
    rng = np.random.default_rng(0)
    Z = rng.random((500, 2))
    y = Z[:, 0] + (0.02 + 0.2 * Z[:, 1]) * rng.standard_normal(500)
    oracle = Oracle(0, 0).fit(Z, y, cross_folds(y, 0, 3, seed=0))
    teacher = Teacher(oracle, Z, y)
    t = oracle.predict(Z)
    outcomes, chance = teacher.outcomes(Z, t)
    assert outcomes.shape == chance.shape == (500, 41)
    np.testing.assert_allclose(chance.sum(axis=1), 1)
    assert abs((outcomes.mean(axis=1) - t).mean()) < 0.02
    width = np.quantile(outcomes, 0.9, axis=1) - np.quantile(outcomes, 0.1, axis=1)
    assert width[Z[:, 1] > 0.8].mean() > 2 * width[Z[:, 1] < 0.2].mean()


def test_only_outcomes_under_which_f_fails_are_drawn_and_rows_in_proportion():
    f = np.tile([0.9, 0.1], (1000, 1))
    t = np.tile([0.8, 0.2], (1000, 1))
    t[500:] = [0.4, 0.6]
    codes = np.tile([0, 1], (1000, 1))
    rule = BadRule(rule="wrong", threshold=0.5, alpha=0.5, reason="given")
    chance = failing_chance(rule, f, t, codes, t)
    np.testing.assert_array_equal(chance[:, 0], 0.0)
    np.testing.assert_array_equal(chance[:, 1], t[:, 1])
    rows, y = draw_outcomes(codes, chance, np.random.default_rng(0), 10_000)
    assert set(y.tolist()) == {1}
    assert len(np.unique(rows)) == len(rows)
    assert (rows >= 500).sum() == pytest.approx(3 * (rows < 500).sum(), rel=0.02)
    assert len(draw_outcomes(codes, 0 * chance, np.random.default_rng(0), 5)[0]) == 0


def test_a_file_of_predictions_cannot_judge_the_population(tmp_path):
    frame = table()
    predictions = tmp_path / "f.csv"
    p = np.clip(frame["a"], 0.05, 0.95)
    pd.DataFrame({"no": 1 - p, "yes": p}).to_csv(predictions, index=False)
    config = config_of(baseline={"model": str(predictions)})
    hard = harden_fold(task_of(frame, config), 0, config)
    assert "learnt from failures" in {note.kind for note in hard.notes}


@pytest.mark.parametrize(
    ("minority", "model"),
    first_of(
        [
            (1, "ridge"),
            (3, "hist_gradient_boosting"),
            (3, "ridge"),
            (1, "hist_gradient_boosting"),
        ],
        2,
    ),
)
def test_a_class_of_one_to_three_rows_is_no_crash(minority, model):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(90), "b": rng.random(90), "y": "no"})
    frame.loc[: minority - 1, "y"] = "yes"
    config = config_of(
        baseline={"model": model}, synthesizer={"learn_from": "failures"}
    )
    task = make_task(frame, "y", name="rare", origin=Origin("rare"))
    from amlb_ext.core.task import Fold

    rows = np.arange(90)
    hard = harden_fold(task.with_folds((Fold(rows[:70], rows[70:]),)), 0, config)
    assert len(hard.parts["full"].test) == 20


def test_very_many_classes_leave_the_forest_alone():
    """Of 199 classes boosting has too few rounds to be worth a tree for each of them."""
    rng = np.random.default_rng(0)
    y = np.arange(800) % 199
    rng.shuffle(y)
    Z = rng.normal(size=(199, 4))[y] + 0.3 * rng.normal(size=(800, 4))
    half = np.arange(400)
    parts = [(half + 400, half), (half, half + 400)]
    oracle = Oracle(199, 0).fit(Z, y, parts)
    assert [boosting for boosting, _ in oracle.members_] == [None, None]
    assert oracle.predict(Z[:5]).sum(axis=1) == pytest.approx(1)
    few = Oracle(3, 0).fit(Z, y % 3, parts)
    assert all(boosting is not None for boosting, _ in few.members_)


def test_the_forest_reads_the_columns_that_boosting_uses_where_there_are_many(
    monkeypatch,
):
    rng = np.random.default_rng(0)
    Z = rng.random((200, 30))
    y = Z[:, 7] + 0.01 * rng.standard_normal(200)
    half = np.arange(100)
    parts = [(half + 100, half), (half, half + 100)]
    plain = Oracle(0, 0).fit(Z, y, parts).predict(Z)
    monkeypatch.setattr(oracle_module, "MANY_COLUMNS", 30)
    picked = Oracle(0, 0).fit(Z, y, parts)
    assert all(7 in list(used_by(forest)) for _, forest in picked.members_)
    assert np.corrcoef(picked.predict(Z), y)[0, 1] > 0.95
    assert (picked.predict(Z) != plain).any()
    # boosting that finds nothing to split on leaves the forest all columns
    nothing = Oracle(0, 0).fit(Z, np.ones(200), parts)
    assert nothing.predict(Z[:3]).tolist() == [1, 1, 1]


def used_by(forest):
    return forest[0].kw_args["indices"]
