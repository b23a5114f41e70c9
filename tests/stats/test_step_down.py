"""What tests on the same rows cost each other."""

import numpy as np
import pytest
from scipy.stats import norm

from amlb_ext.core.errors import DataError
from amlb_ext.stats.step_down import step_down_adjusted
from amlb_ext.stats.weighted_mean import holm_adjusted

RNG = np.random.default_rng(0)
INDEPENDENT = RNG.standard_normal((5000, 8))


def test_one_test_asked_eight_times_is_one_test():
    psi = np.repeat(INDEPENDENT[:, :1], 8, axis=1)
    p = np.linspace(0.01, 0.05, 8)
    np.testing.assert_allclose(step_down_adjusted(p, psi), p, atol=0.004)
    assert holm_adjusted(p)[0] == pytest.approx(0.08)


def test_independent_tests_cost_what_sidak_says():
    p = np.array([0.01, 0.02, 0.03, 0.04])
    left = np.array([4, 3, 2, 1])
    sidak = np.maximum.accumulate(1 - (1 - p) ** left)
    np.testing.assert_allclose(
        step_down_adjusted(p, INDEPENDENT[:, :4]), sidak, atol=0.006
    )


def test_between_the_p_value_and_holms():
    mixed = INDEPENDENT @ RNG.standard_normal((8, 8))
    for _ in range(20):
        p = 10.0 ** RNG.uniform(-8, 0, 8)
        found = step_down_adjusted(p, mixed)
        assert (found >= p).all()
        assert (found <= holm_adjusted(p)).all()
        # who has the smaller p-value has the smaller adjusted one
        assert (np.diff(found[np.argsort(p)]) >= 0).all()


def test_no_test_costs_nothing():
    p = np.array([0.01, np.nan, 0.03])
    psi = INDEPENDENT[:, :3].copy()
    psi[:, 1] = np.nan
    found = step_down_adjusted(p, psi)
    assert np.isnan(found[1])
    np.testing.assert_array_equal(
        found[[0, 2]], step_down_adjusted(p[[0, 2]], psi[:, [0, 2]])
    )
    assert np.isnan(step_down_adjusted(np.array([np.nan]), psi[:, :1])).all()
    assert len(step_down_adjusted(np.array([]), np.zeros((5, 0)))) == 0


def test_any_false_claim_among_correlated_tests_is_as_rare_as_asked():
    """Nothing differs; ten tests share half of their variance."""
    alarms = 0
    rng = np.random.default_rng(1)
    for _ in range(300):
        z = np.sqrt(0.5) * (rng.standard_normal() + rng.standard_normal(10))
        psi = rng.standard_normal((100, 1)) + rng.standard_normal((100, 10))
        alarms += step_down_adjusted(2 * norm.sf(np.abs(z)), psi).min() < 0.05
    assert alarms <= 0.05 * 300 + 2 * np.sqrt(0.05 * 0.95 * 300)


def test_what_does_not_fit_is_refused():
    with pytest.raises(DataError, match="one column for each test"):
        step_down_adjusted(np.array([0.1]), np.zeros((5, 2)))
    with pytest.raises(DataError, match="not finite"):
        step_down_adjusted(np.array([0.1]), np.full((5, 1), np.nan))


def test_opposite_tests_are_one_test_too():
    """Both tests are two-sided."""
    psi = np.column_stack([INDEPENDENT[:, 0], -INDEPENDENT[:, 0]])
    found = step_down_adjusted(np.array([0.04, 0.04]), psi)
    np.testing.assert_allclose(found, 0.04, atol=0.004)


def test_a_test_without_spread_is_no_error():
    found = step_down_adjusted(
        np.array([1.0, 0.02]), np.column_stack([np.zeros(50), INDEPENDENT[:50, 0]])
    )
    assert found[0] == 1.0
    assert 0.02 <= found[1] <= 0.04
