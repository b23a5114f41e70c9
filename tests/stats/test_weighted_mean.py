"""Intervals and rankings: numbers by hand, coverage by simulation, refusals."""

import numpy as np
import pytest

from amlb_ext.core.errors import DataError
from amlb_ext.stats.ranking import kendall_tau, mean_z2
from amlb_ext.stats.weighted_mean import (
    holm_adjusted,
    p_value,
    weighted_mean_interval,
)

DRAWS = 300


def covers(e, truth):
    return e.low <= truth <= e.high


def litter(rng, clusters=40, largest=9):
    """Rows that share most of their value with their cluster; mean .3, weights by cluster."""
    sizes = rng.integers(1, largest + 1, clusters)
    codes = np.repeat(np.arange(clusters), sizes)
    value = (
        0.3
        + rng.standard_normal(clusters)[codes]
        + 0.5 * rng.standard_normal(len(codes))
    )
    return value, np.exp(2 * rng.random(clusters))[codes], codes


class TestByHand:
    def test_weighted_mean_in_clusters(self):
        # Clusters a: (1, w 1), (3, w 1); b: (2, w 2); c: (6, w 4).
        # N = 4, 4, 24; W = 2, 2, 4; e = 32 / 8 = 4.
        # psi = (4 - 8)/8, (4 - 8)/8, (24 - 16)/8 = -.5, -.5, 1; sum of squares 1.5.
        # s^2 = 3/2 * 1.5 = 2.25, s = 1.5; df = 64 / (4 + 4 + 16) - 1 = 5/3.
        e = weighted_mean_interval(
            np.array([1.0, 3, 2, 6]),
            np.array([1.0, 1, 2, 4]),
            np.array(["a", "a", "b", "c"]),
        )
        assert (e.point, e.se, e.n, e.n_clusters) == (4.0, 1.5, 4, 3)
        assert e.df == pytest.approx(5 / 3)
        assert e.high - e.point == pytest.approx(e.point - e.low)

    def test_scale_of_weights_and_order_of_rows_do_not_matter(self):
        rng = np.random.default_rng(0)
        v, w, c = litter(rng)
        order = rng.permutation(len(v))
        a = weighted_mean_interval(v, w, c)
        b = weighted_mean_interval(v[order], 7 * w[order], c[order])
        assert (b.point, b.se, b.df) == pytest.approx((a.point, a.se, a.df))

    def test_copying_every_row_changes_nothing_when_clustered(self):
        v, w, c = litter(np.random.default_rng(1))
        once = weighted_mean_interval(v, w, c)
        thrice = weighted_mean_interval(np.tile(v, 3), np.tile(w, 3), np.tile(c, 3))
        assert (thrice.point, thrice.se) == pytest.approx((once.point, once.se))
        assert (
            weighted_mean_interval(np.tile(v, 3), np.tile(w, 3)).se
            < weighted_mean_interval(v, w).se
        )

    def test_rows_without_weight_are_no_clusters(self):
        e = weighted_mean_interval(
            np.array([1.0, 2, 3, np.nan]), np.array([1.0, 1, 1, 0])
        )
        assert (e.n, e.n_clusters, e.df) == (3, 3, 2.0)

    def test_holm_is_monotone_capped_and_skips_nan(self):
        # m = 3: .3*3 -> .9; .4*2 = .8 -> .9; .9*1 -> .9.  NaN is no test.
        assert holm_adjusted(np.array([0.4, np.nan, 0.3, 0.9])) == pytest.approx(
            [0.9, np.nan, 0.9, 0.9], nan_ok=True
        )
        assert holm_adjusted(np.array([0.7, 0.8])).tolist() == [1.0, 1.0]
        assert len(holm_adjusted(np.array([]))) == 0

    def test_p_value_and_interval_agree(self):
        rng = np.random.default_rng(2)
        for _ in range(50):
            e = weighted_mean_interval(rng.standard_normal(8) + 0.7)
            assert (p_value(e) < 0.05) == (not covers(e, 0.0))


class TestRefusals:
    @pytest.mark.parametrize("clusters", [1, 2])
    def test_too_few_clusters(self, clusters):
        e = weighted_mean_interval(np.arange(10.0), clusters=np.arange(10) % clusters)
        assert e.point == 4.5
        assert np.isnan([e.low, e.high, e.se, e.df]).all()
        assert not e.has_interval
        assert f"only {clusters} cluster" in e.reason
        assert np.isnan(p_value(e))

    def test_one_cluster_with_nearly_all_weight(self):
        e = weighted_mean_interval(np.arange(20.0), np.r_[1000.0, np.ones(19)])
        assert not e.has_interval
        assert "98% of the weight" in e.reason

    def test_no_spread_is_no_certainty(self):
        e = weighted_mean_interval(np.full(4, -1.0))
        assert not e.has_interval
        assert "one value stands everywhere" in e.reason

    def test_equal_models_do_not_differ(self):
        e = weighted_mean_interval(np.zeros(4))
        assert (e.low, e.high, p_value(e)) == (0.0, 0.0, 1.0)

    def test_nothing_to_average(self):
        e = weighted_mean_interval(np.ones(3), np.zeros(3))
        assert np.isnan(e.point)
        assert e.reason == "no row has any weight"

    @pytest.mark.parametrize(
        ("values", "weights", "message"),
        [
            (np.array([1.0, np.nan]), None, "1 of 2 values"),
            (np.ones(2), np.array([1.0, -1.0]), "negative"),
            (np.ones(2), np.ones(3), "shapes"),
        ],
    )
    def test_bad_input(self, values, weights, message):
        with pytest.raises(DataError, match=message):
            weighted_mean_interval(values, weights)


class TestCoverage:
    # s.e. of a coverage of .95 in 300 draws is .0126; .92 to .98 is about +-2.4 of them.
    def test_clustered_covers_and_naive_does_not(self):
        rng = np.random.default_rng(3)
        clustered, naive = [], []
        for _ in range(DRAWS):
            v, w, c = litter(rng)
            clustered.append(covers(weighted_mean_interval(v, w, c), 0.3))
            naive.append(covers(weighted_mean_interval(v, w), 0.3))
        assert 0.92 <= np.mean(clustered) <= 0.98
        assert np.mean(naive) < 0.75

    def test_clustered_covers_with_ten_clusters(self):
        rng = np.random.default_rng(4)
        hit = [
            covers(weighted_mean_interval(*litter(rng, 10, 30)), 0.3)
            for _ in range(DRAWS)
        ]
        assert 0.91 <= np.mean(hit) <= 0.985

    def test_weights_that_go_with_the_value(self):
        # v = x + noise, x uniform, w = x: E[w v] / E[w] = (1/3) / (1/2) = 2/3.
        rng = np.random.default_rng(5)
        hit = []
        for _ in range(DRAWS):
            x = rng.random(200)
            hit.append(
                covers(weighted_mean_interval(x + rng.standard_normal(200), x), 2 / 3)
            )
        assert 0.92 <= np.mean(hit) <= 0.98


class TestRanking:
    def test_tau_b_with_ties(self):
        # a 1 1 2, b 1 2 3: P 2, Q 0, one pair tied in a only: 2 / sqrt(3 * 2).
        assert kendall_tau(np.array([1, 1, 2]), np.array([1, 2, 3])) == pytest.approx(
            2 / 6**0.5
        )

    @pytest.mark.parametrize("side", [np.ones(3), np.zeros(3)])
    def test_no_ranking_agrees_with_none(self, side):
        assert kendall_tau(side, np.arange(3.0)) == 0.0
        assert kendall_tau(np.arange(3.0), side) == 0.0
        assert kendall_tau(np.ones(1), np.ones(1)) == 0.0

    def test_a_missing_score_is_an_error(self):
        with pytest.raises(DataError, match="no score"):
            kendall_tau(np.array([1.0, np.nan]), np.ones(2))

    def test_mean_z2(self):
        # z = 1 and -2: (1 + 4) / 2.
        assert (
            mean_z2(np.array([2.0, 0]), np.array([1.0, 4]), np.array([1.0, 2])) == 2.5
        )
        assert mean_z2(np.ones(2), np.ones(2), np.zeros(2)) == 0.0
        assert mean_z2(np.array([2.0]), np.ones(1), np.zeros(1)) == np.inf
        assert np.isnan(mean_z2(np.array([2.0]), np.ones(1), np.array([np.nan])))
