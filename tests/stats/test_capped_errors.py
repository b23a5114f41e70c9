"""Which errors count in full, and what is said of those that do not."""

import numpy as np
import pytest

from amlb_ext.stats.bounded_loss import NO_CAP, cap_from_baseline
from amlb_ext.stats.weighted_mean import weighted_mean_interval


@pytest.mark.parametrize(
    ("n", "k"), [(4, 0), (5, 1), (20, 4), (50, 10), (400, 10), (2000, 40)]
)
def test_the_cap_is_the_kth_largest_error_of_f(n, k):
    cap = cap_from_baseline(np.random.default_rng(0).permutation(n) + 1.0)
    assert cap.loss == (n - k + 1 if k else np.inf)
    assert cap.at_cap == k


@pytest.mark.parametrize("tiny", [0.0, 1e-30])
def test_an_exact_f_caps_nothing(tiny):
    """A cap of 0 would make every candidate as good as F."""
    loss = np.full(1000, tiny)
    assert cap_from_baseline(loss) == NO_CAP
    loss[:15] = 1.0  # fewer than 2 % of the rows
    assert cap_from_baseline(loss) == NO_CAP
    assert NO_CAP.sentence(2.0) == ""


def test_ties_at_the_cap_are_all_counted():
    cap = cap_from_baseline(np.r_[np.zeros(400), np.full(600, 0.25)])
    assert (cap.loss, cap.at_cap) == (0.25, 600)
    assert cap.sentence(10.0) == (
        "errors beyond 5 count as 5 (F errs by as much on 600 of 1 000 rows)"
    )


def test_a_row_in_several_folds_counts_once():
    loss = np.arange(1.0, 101.0)
    once = cap_from_baseline(loss)
    thrice = cap_from_baseline(np.tile(loss, 3), np.tile(np.arange(100), 3))
    assert thrice.loss == once.loss
    assert (thrice.at_cap, thrice.n) == (30, 300)


def test_the_interval_of_capped_errors_covers_where_that_of_raw_ones_does_not():
    """One row in 1,000 errs by ten times as much: few samples of 300 hold one."""
    rng = np.random.default_rng(0)
    y = rng.standard_normal(100_000)
    y[rng.random(len(y)) < 0.001] *= 30
    f, g = y**2, (y - 0.02 * y * np.abs(y)) ** 2
    hits = {"raw": 0, "capped": 0}
    for _ in range(200):
        rows = rng.integers(0, len(y), 300)
        for name, cap in (("raw", NO_CAP), ("capped", cap_from_baseline(f[rows]))):
            truth = (cap.apply(g) - cap.apply(f)).mean()
            found = weighted_mean_interval(cap.apply(g[rows]) - cap.apply(f[rows]))
            hits[name] += found.low <= truth <= found.high
    assert hits["raw"] < 0.6 * 200
    assert hits["capped"] > 0.9 * 200


def test_every_model_is_capped_alike_and_a_missing_loss_stays_missing():
    cap = cap_from_baseline(np.arange(100.0))
    got = cap.apply(np.array([[1.0, 95.0], [np.nan, np.inf]]))
    np.testing.assert_array_equal(got, [[1.0, 90.0], [np.nan, 90.0]])
