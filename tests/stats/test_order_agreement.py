"""Made rows with a known order, held to a sample of a population whose order is known."""

import numpy as np
import pytest

from amlb_ext.core.errors import DataError
from amlb_ext.stats import ranking as module
from amlb_ext.stats.ranking import kendall_tau, order_agreement

#: Mean contrasts of six candidates in the population; a row's own contrasts scatter by 1.
TRUTH = np.array([-0.5, -0.3, -0.1, 0.1, 0.3, 0.5])


def sample(n, seed, truth=TRUTH):
    return truth + np.random.default_rng(seed).normal(size=(n, len(truth)))


def agreement(judged, D, clusters=None, weights=None, as_many=None, seed=0):
    if clusters is None:
        clusters = np.arange(len(D))
    if as_many is None:
        as_many = len(np.unique(clusters))
    rng = np.random.default_rng(seed)
    return order_agreement(
        judged, D, clusters=clusters, weights=weights, as_many=as_many, rng=rng
    )


def test_a_few_rows_show_less_of_the_same_order():
    few, many = agreement(TRUTH, sample(15, 1)), agreement(TRUTH, sample(1500, 1))
    assert many.relative == pytest.approx(1, abs=0.05)
    assert many.low > 0.8
    assert few.reached < many.reached
    assert few.low < 0.65


def test_what_so_many_real_rows_reach():
    """Told from samples, it is what fresh rows reach with the population, or a little less."""
    for n in (8, 60):
        fresh = [
            kendall_tau(sample(n, seed).mean(axis=0), TRUTH)
            for seed in range(1000, 1100)
        ]
        told = [
            agreement(TRUTH, sample(150, seed), as_many=n).reached for seed in range(20)
        ]
        assert -0.08 < np.mean(told) - np.mean(fresh) < 0.05
    D = sample(150, 6)
    assert agreement(TRUTH, D, as_many=0).reached == 0


def test_reversed_and_shuffled_orders_are_far_from_it():
    D = sample(400, 2)
    assert agreement(-TRUTH, D).relative == pytest.approx(-1, abs=0.05)
    shuffled = agreement(TRUTH[[3, 0, 5, 1, 4, 2]], D)
    assert shuffled.low <= shuffled.relative < 0.5


def test_the_limit_allows_for_clusters_and_reads_weights():
    D = np.repeat(sample(60, 3), 10, axis=0)
    alone, together = agreement(TRUTH, D), agreement(TRUTH, D, np.arange(600) // 10)
    assert together.low < alone.low
    # rows of weight 0 have no say
    mixed = np.concatenate([sample(300, 4), sample(300, 5, -TRUTH)])
    weights = np.repeat([1.0, 0.0], 300)
    weighted = agreement(TRUTH, mixed, weights=weights)
    assert weighted.relative > 0.9 > agreement(TRUTH, mixed).relative


def test_the_limit_holds_in_repeated_samples():
    """The share that many rows would show lies above the limit in about 95 % of samples."""
    judged = TRUTH[[1, 0, 2, 3, 5, 4]]
    truth = np.sign(np.subtract.outer(judged, judged)) * np.sign(
        np.subtract.outer(TRUTH, TRUTH)
    )
    expected = truth[np.triu_indices(6, 1)].mean()
    below = [
        agreement(judged, sample(60, seed), seed=seed).low <= expected
        for seed in range(100)
    ]
    assert np.mean(below) >= 0.9


def test_no_order_at_all_has_no_share():
    D = np.zeros((30, 4))
    found = agreement(np.arange(4.0), D)
    assert np.isnan(found.relative)
    assert np.isnan(found.low)


@pytest.mark.parametrize(
    ("judged", "D"),
    [
        (np.arange(3.0), np.zeros((5, 4))),
        (np.arange(1.0), np.zeros((5, 1))),
        (np.arange(3.0), np.zeros((0, 3))),
        (np.array([0.0, np.nan]), np.zeros((5, 2))),
    ],
)
def test_candidates_that_do_not_match_are_refused(judged, D):
    with pytest.raises(DataError):
        agreement(judged, D)


def test_clusters_that_are_counted_are_drawn_as_by_a_multinomial(monkeypatch):
    D = sample(150, 3)
    multinomial = agreement(TRUTH, D, as_many=20)
    monkeypatch.setattr(module, "COUNTED_BEYOND", 0)
    counted = agreement(TRUTH, D, as_many=20)
    # other draws of the same distribution: the standard error of a mean of 300 is about .01
    assert counted != multinomial
    for name in ("relative", "reached"):
        assert getattr(counted, name) == pytest.approx(
            getattr(multinomial, name), abs=0.04
        )
