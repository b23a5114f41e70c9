"""Prediction-powered means: truth planted and found, and held to ``ppi_py``."""

import numpy as np
import pytest

from amlb_ext.stats.prediction_powered import prediction_powered_mean
from amlb_ext.stats.weighted_mean import weighted_mean_interval

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

    def test_tuned_against_ppi_py(self):
        got = prediction_powered_mean(self.d, self.t, self.tu)
        assert got.point == pytest.approx(
            -0.12551239, abs=2e-4
        )  # it pools var(t), we do not
        assert got.se * 2 * 1.9599640 == pytest.approx(
            -0.09391588 + 0.15710890, rel=3e-3
        )

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
            hit.append(got.low <= truth <= got.high)
            classical = weighted_mean_interval(d, region(x))
            ratio.append(got.width / classical.width)
        assert 0.95 - 3 * 0.0126 <= np.mean(hit) <= 0.95 + 3 * 0.0126
        assert np.mean(ratio) < narrow


def test_small_samples_are_covered():
    """Twenty labelled rows need the quantile of t; with the normal one intervals are too short."""
    rng = np.random.default_rng(11)
    hit, hit_normal = [], []
    for _ in range(1000):
        tau, far = rng.standard_normal(20), rng.standard_normal(400)
        values = tau + rng.standard_normal(20)
        got = prediction_powered_mean(values, tau, far)
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
    got = prediction_powered_mean(values, tau, far)
    assert (got.low, got.high) == pytest.approx((low, high), abs=0.02 * (high - low))
