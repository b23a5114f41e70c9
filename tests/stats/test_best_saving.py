"""The interval of the best candidate's saving, where the truth is known."""

import numpy as np
import pytest

from amlb_ext.stats.best_saving import best_saving, ratio_limits
from amlb_ext.stats.weighted_mean import weighted_mean_interval
from benchmarks.claims.planted_saving import CASES, Planted


def interval(planted, rows, seed):
    G, F, w = planted.draw(rows, seed)
    return best_saving(G, F, w, np.arange(rows), np.random.default_rng(seed))


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
def test_the_interval_covers_the_best_saving(kind):
    """Some 30 failures; the full table is that of benchmarks/claims/solvability.py."""
    covered = []
    for case in CASES:
        planted = Planted(case, kind)
        truth = planted.truth(20_000)
        for seed in range(16):
            e = interval(planted, 240, seed)
            assert 0 <= e.low <= e.point <= e.high <= 1
            covered.append(e.low <= truth + 0.005 and truth - 0.005 <= e.high)
    assert np.mean(covered) >= 0.9  # .95 of 80 less two standard errors


def test_rows_that_come_again_are_one_row():
    """The same rows in three folds tell no more than in one."""
    G, F, w = Planted("little", "binary").draw(300, 1)
    rng = np.random.default_rng(0)
    once = best_saving(G, F, w, np.arange(300), rng)
    again = np.repeat(np.arange(300), 3)
    thrice = best_saving(G[again], F[again], w[again], again, np.random.default_rng(0))
    assert (once.low, once.high) == pytest.approx((thrice.low, thrice.high))


def test_weights_that_rest_on_one_row_say_nothing():
    G, F, w = Planted("much", "binary").draw(100, 0)
    w = np.where(np.arange(100) == 7, 1e6, w)
    F[7] = 1.0
    e = best_saving(G, F, w, np.arange(100), np.random.default_rng(0))
    assert (e.low, e.high) == (0.0, 1.0)
    assert "one real row holds 100% of F's loss" in e.reason


def test_fiellers_limits_are_the_roots_of_the_t_test():
    rng = np.random.default_rng(0)
    D = 1 + rng.random(40)
    N = 0.3 * D + 0.2 * rng.normal(size=40)
    for theta in ratio_limits(N[None, :], D, 2.0):
        e = weighted_mean_interval(N - theta * D)
        assert abs(e.point / e.se) == pytest.approx(2.0)
    assert ratio_limits(N[None, :], D - D.mean(), 2.0) == (-np.inf, np.inf)
