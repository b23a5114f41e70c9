"""Arithmetic by hand and planted truth for single measures."""

import numpy as np
import pytest
from exhaustive import count_of
from sklearn.metrics import roc_auc_score

from amlb_ext.core.unit import ROW
from amlb_ext.validity import measures, ranking_measures, realism_measures
from amlb_ext.validity.measures import LabelOpinion, Losses, measure_labels
from amlb_ext.validity.realism_measures import ScaledTable


def rng(seed=0):
    return np.random.default_rng(seed)


def test_auc_is_that_of_scikit_learn_with_ties():
    score = rng().integers(0, 6, 200).astype(float)
    positive = rng(1).random(200) < 0.3
    assert measures.clustered_auc(
        score, positive, np.arange(200)
    ).point == pytest.approx(roc_auc_score(positive, score))


def test_auc_interval_covers():
    inside = 0
    for seed in range(100):
        r = rng(seed)
        positive = np.arange(200) < 60
        e = measures.clustered_auc(
            r.normal(size=200) + positive, positive, np.arange(200)
        )
        inside += e.low <= 0.760250 <= e.high  # Phi(1 / sqrt 2)
    assert inside >= 88  # .95 of 100 less three standard errors


@pytest.mark.parametrize("n_good", [0, 3])
def test_a_model_that_fails_everywhere_has_no_region(n_good):
    bad = np.arange(100) >= n_good
    region = measures.measure_region(rng().random(100), bad, np.arange(100), ROW)
    assert (region.value, region.passed) == (None, False)
    assert f"{n_good} distinct real rows that are not bad" in region.text


def test_solvability_knows_no_winners_curse():
    # 50 candidates of pure noise around F: the best on all rows looks better, honestly none is
    shown = 0
    for seed in range(20):
        r = rng(seed)
        F = np.ones(200)
        noise = Losses(1 + r.normal(0, 1, (200, 50)), F, np.arange(200))
        found = measures.measure_solvability(
            noise, F, [str(k) for k in range(50)], r, ROW
        )
        shown += found.finding == "mendable"
    assert shown <= 2  # .025 of 20 and two standard errors


def test_effective_size_counts_real_rows_once():
    c = np.repeat(np.arange(60), 3)  # three folds
    found = measures.measure_effective_size(np.ones(180), c, ROW)
    assert (found.value, found.passed) == (60.0, True)
    assert (
        measures.measure_effective_size(np.ones(49), np.arange(49), ROW).passed is False
    )


def test_fidelity_of_the_same_rows_is_perfect():
    r = rng()
    bad = Losses(r.random((80, 8)) + np.arange(8) / 8, r.random(80), np.arange(80))
    z2, tau = ranking_measures.measure_fidelity(bad, bad, r, "synthetic", ROW)
    assert z2.value == 0.0
    assert tau.value == pytest.approx(1.0)
    reverse = Losses(bad.candidates[:, ::-1], bad.baseline, bad.clusters)
    z2, tau = ranking_measures.measure_fidelity(reverse, bad, r, "synthetic", ROW)
    assert tau.value < -0.8
    assert not z2.passed


def test_null_by_hand():
    # two folds, one twin, gaps of -1 and +1 in turn: mean 0
    F = np.full(40, 2.0)
    gap = np.where(np.arange(40) % 2 == 0, -1.0, 1.0)
    rows = {
        "clusters": np.arange(40),
        "fold": np.repeat([0, 1], 20),
        "weights": np.ones(40),
        "where": "region",
        "unit": ROW,
    }
    found = ranking_measures.measure_null((F + gap)[:, None], F, **rows)
    assert found.value == 0.0
    assert found.passed
    better = ranking_measures.measure_null((F - 1 + 0.1 * gap)[:, None], F, **rows)
    assert better.value < -50  # mean -1, se .1 / sqrt 40
    assert better.passed is False
    assert "win 2 and lose 0 of 2" in better.text


def real_rows(seed, n=150):
    r = rng(seed)
    x = r.normal(size=n)
    X = np.column_stack([r.integers(0, 3, n), x, x + 0.1 * r.normal(size=n)])
    return ScaledTable(X, np.arange(n), np.array([True, False, False]))


def test_real_rows_pass_as_synthetic_ones():
    passed = []
    for seed in range(count_of(8, 20)):
        made, bad = real_rows(1000 + seed, 300), real_rows(seed)
        made = ScaledTable(made.X, np.arange(300) + 1000, made.is_category)
        measures = realism_measures.measure_realism(made, bad, rng(), ROW)
        passed.append([measure.passed for measure in measures])
        closest = realism_measures.measure_closest_record(made, bad, rng(), ROW)
        assert 0.5 < closest.value < 2.0
    told, *distances = np.mean(passed, axis=0)
    assert told == 1
    # limits come from random halves, so one draw in five may miss one of them by chance
    assert min(distances) > 0.6


def test_shifted_and_shuffled_rows_are_told_apart():
    bad, made = real_rows(1), real_rows(2, 300)
    X = made.X.copy()
    X[:, 2] = rng().permutation(
        X[:, 2]
    )  # every column is right, their relation is gone
    told, w1, tv, corr = realism_measures.measure_realism(
        ScaledTable(X, made.clusters + 1000, made.is_category), bad, rng(), ROW
    )
    assert (told.passed, w1.passed, tv.passed, corr.passed) == (
        False,
        True,
        True,
        False,
    )
    assert corr.value > 0.9
    X = made.X + np.array([0, 0.5, 0])
    assert realism_measures.mean_wasserstein(
        ScaledTable(X, made.clusters, made.is_category), made
    ) == pytest.approx(0.25)


def test_copies_and_near_copies_are_too_close():
    bad = real_rows(1)
    closest = realism_measures.measure_closest_record(bad, bad, rng(), ROW)
    assert (closest.value, closest.passed) == (0.0, False)
    near = ScaledTable(bad.X + np.array([0, 1e-4, 1e-4]), bad.clusters, bad.is_category)
    assert (
        realism_measures.measure_closest_record(near, bad, rng(), ROW).passed is False
    )


def two_class_labels(p, clusters):
    """Labels to which an oracle of two classes gives probability p; it supports .25 and more."""
    support = p - (p**2 + (1 - p) ** 2)
    return LabelOpinion(support=support, agrees=p >= 0.25, clusters=clusters)


def test_labels_that_are_wrong_are_caught():
    # honest: the oracle says .9 for every label of 100 bad rows, made rows inherit them
    parents = np.repeat(np.arange(100), 5)
    p = np.clip(0.85 + 0.05 * rng().normal(size=100), 0, 1)
    bad = two_class_labels(p, np.arange(100))
    others = {"all_agree": np.ones(300, dtype=bool), "recorded": 1.0, "n_classes": 2}
    honest = two_class_labels(p[parents], parents)
    assert all(m.passed for m in measure_labels(honest, bad, ROW, **others))
    wrong = rng(1).random(500) < 0.5
    flipped = two_class_labels(np.where(wrong, 1 - p[parents], p[parents]), parents)
    agreement, support = measure_labels(flipped, bad, ROW, **others)
    assert agreement.value == pytest.approx(0.5, abs=0.06)
    assert (agreement.passed, support.passed) == (False, False)


def test_equal_weights_are_no_region():
    bad = np.arange(100) < 30
    assert (
        measures.measure_region(np.ones(100), bad, np.arange(100), ROW).passed is False
    )


def test_solvability_by_hand():
    # candidate 0 halves F's loss everywhere, candidate 1 doubles it
    F = rng().random(400) + 0.5
    noise = rng(1).normal(0, 0.01, 400)
    losses = Losses(
        np.column_stack([F / 2 + noise - noise.mean(), 2 * F]), F, np.arange(400)
    )
    found = measures.measure_solvability(
        losses, np.ones(400), ["half", "double"], rng(), ROW
    )
    assert found.value == pytest.approx(0.5)
    assert found.passed
    assert "half" in found.text
    assert "double" not in found.text
