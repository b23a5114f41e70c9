"""Prediction-powered means: truth planted and found, and held to ``ppi_py``."""

import numpy as np
import pytest

from amlb_ext.stats.prediction_powered import prediction_powered_mean

DRAWS = 300


def region(x):
    return 1 / (1 + np.exp(-2 * x))


def planted_mean():
    """Return E[w x] / E[w] for x standard normal, w = region(x), by quadrature."""
    x = np.linspace(-8, 8, 20_001)
    mass = np.exp(-(x**2) / 2) * region(x)
    return (mass * x).sum() / mass.sum()


class TestPoweredMean:
    # Deterministic data; golden values from ppi-python 0.2.3 (numpy 2.4):
    # ppi_py.ppi_mean_ci(d, t, tu, alpha=.05, lam=lam), printed to 8 digits.
    i, j = np.arange(400), np.arange(3000)
    d = np.sin(i * 1.7) + 0.3 * np.cos(i * 5.1) - 0.1
    t, tu = np.sin(i * 1.7) + 0.05, np.sin(j * 2.3) + 0.02

    @pytest.mark.parametrize(
        ("lam", "low", "high"),
        [
            (0.0, -0.17158176, -0.02694679),
            (0.5, -0.15651789, -0.07181170),
            (1.0, -0.16182202, -0.09630861),
        ],
    )
    def test_against_ppi_py(self, lam, low, high):
        got = prediction_powered_mean(self.d, self.t, self.tu, lam=lam).estimate
        assert got.point == pytest.approx((low + high) / 2, abs=2e-8)
        # It divides by n where we divide by n - 1: at most 1 / 800 of the width.
        assert got.se * 2 * 1.9599640 == pytest.approx(high - low, rel=1.5e-3)
        assert got.df == 399

    def test_tuned_against_ppi_py(self):
        got = prediction_powered_mean(self.d, self.t, self.tu).estimate
        assert got.point == pytest.approx(
            -0.12551239, abs=2e-4
        )  # it pools var(t), we do not
        assert got.se * 2 * 1.9599640 == pytest.approx(
            -0.09391588 + 0.15710890, rel=3e-3
        )

    def test_weighted_point_against_ppi_py(self):
        # ppi_mean_pointestimate(d + 3, t, tu, lam=.5, w=w, w_unlabeled=wu); its interval is not
        # that of a ratio: adding 3 to every d would more than double it.
        w, wu = 1 + 0.9 * np.sin(self.i * 0.37), 1 + 0.9 * np.sin(self.j * 0.37)
        shifted = prediction_powered_mean(
            self.d + 3, self.t, self.tu, weights=w, weights_unlabelled=wu, lam=0.5
        )
        assert shifted.estimate.point == pytest.approx(2.885579, abs=2e-7)
        plain = prediction_powered_mean(
            self.d, self.t, self.tu, weights=w, weights_unlabelled=wu, lam=0.5
        )
        assert shifted.estimate.se == pytest.approx(plain.estimate.se)

    @pytest.mark.parametrize(("noise", "narrow"), [(0.5, 0.7), (2.0, 1.0)])
    def test_covers_and_narrows_in_the_region(self, noise, narrow):
        rng = np.random.default_rng(6)
        truth, hit, ratio = planted_mean(), [], []
        for _ in range(DRAWS):
            x, far = rng.standard_normal(200), rng.standard_normal(3000)
            d = x + noise * rng.standard_normal(200)
            got = prediction_powered_mean(
                d, x, far, weights=region(x), weights_unlabelled=region(far)
            )
            hit.append(got.estimate.low <= truth <= got.estimate.high)
            ratio.append(got.width_ratio)
        assert 0.95 - 3 * 0.0126 <= np.mean(hit) <= 0.95 + 3 * 0.0126
        assert np.mean(ratio) < narrow

    def test_covers_with_clusters_and_a_biased_teacher(self):
        # Every labelled row four times; the teacher is off by 5 and half asleep.
        rng = np.random.default_rng(7)
        hit = []
        for _ in range(DRAWS):
            x, far = np.repeat(rng.standard_normal(100), 4), rng.standard_normal(3000)
            d = x + np.repeat(0.5 * rng.standard_normal(100), 4)
            got = prediction_powered_mean(
                d, x / 2 + 5, far / 2 + 5, clusters=np.arange(400) // 4
            )
            hit.append(got.estimate.low <= 0 <= got.estimate.high)
        assert 0.95 - 3 * 0.0126 <= np.mean(hit) <= 0.95 + 3 * 0.0126

    def test_a_useless_teacher_costs_nothing(self):
        d = np.random.default_rng(8).standard_normal(50)
        got = prediction_powered_mean(d, np.ones(50), np.ones(900))
        assert (got.lam, got.width_ratio) == (0.0, 1.0)
        assert (got.estimate.low, got.estimate.high) == pytest.approx(
            (got.classical.low, got.classical.high)
        )

    def test_a_perverse_teacher_is_not_believed(self):
        x = np.random.default_rng(9).standard_normal(50)
        assert prediction_powered_mean(x, -x, np.zeros(9)).lam == 0.0

    def test_one_cluster_has_no_interval(self):
        x = np.arange(9.0)
        got = prediction_powered_mean(x, x, x, clusters=np.zeros(9))
        assert not got.estimate.has_interval
        assert "only 1 cluster" in got.estimate.reason
        assert np.isnan(got.width_ratio)

    def test_no_unlabelled_rows(self):
        x = np.arange(9.0)
        got = prediction_powered_mean(x, x, np.array([]))
        assert "0 unlabelled rows" in got.estimate.reason
        assert got.classical.has_interval


def test_small_samples_are_covered():
    """Twenty labelled rows need the quantile of t; with the normal one intervals are too short."""
    rng = np.random.default_rng(11)
    hit, hit_normal = [], []
    for _ in range(1000):
        tau, far = rng.standard_normal(20), rng.standard_normal(400)
        values = tau + rng.standard_normal(20)
        got = prediction_powered_mean(values, tau, far).estimate
        hit.append(got.low <= 0 <= got.high)
        hit_normal.append(abs(got.point) <= 1.959964 * got.se)
    # one standard error of a share of .95 in 1,000 draws is .0069
    assert np.mean(hit) >= 0.95 - 3 * 0.0069
    assert np.mean(hit_normal) < np.mean(hit)


def test_against_the_package_itself():
    ppi_py = pytest.importorskip(
        "ppi_py", reason="ppi-python is not installed: pip install it"
    )
    rng = np.random.default_rng(12)
    tau, far = rng.random(800), rng.random(4000)
    values = tau + 0.3 * rng.random(800)
    low, high = (
        float(np.ravel(end)[0])
        for end in ppi_py.ppi_mean_ci(values, tau, far, alpha=0.05)
    )
    got = prediction_powered_mean(values, tau, far).estimate
    assert (got.low, got.high) == pytest.approx((low, high), abs=0.02 * (high - low))
