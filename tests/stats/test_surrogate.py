import numpy as np
import pytest

from amlb_ext.core.errors import DataError
from amlb_ext.stats.bounded_loss import LOSSES, log_loss
from amlb_ext.stats.bounded_mean import t_interval
from amlb_ext.stats.prediction_powered import (
    Surrogate,
    choose_surrogate,
    cross_fitted_surrogate,
    expected_loss,
    prediction_powered_error,
)


def given(tau, far) -> Surrogate:
    return Surrogate(np.asarray(tau, float), np.asarray(far, float))


def test_it_is_ppi_plus_plus_by_hand():
    rng = np.random.default_rng(0)
    tau, far = rng.random(60), rng.random(500)
    v = np.clip(0.5 * tau + 0.2 * rng.random(60), 0, 1)
    # lam minimises the variance: cov(v, tau) / n over var(tau) / n + var(far) / N
    own, other = tau.var() / 60, far.var() / 500
    lam = np.clip(np.cov(v, tau, ddof=0)[0, 1] / 60 / (own + other), 0, 1)
    theta = v.mean() - lam * (tau.mean() - far.mean())
    se = np.sqrt((v - lam * tau).var(ddof=1) / 60 + lam**2 * far.var(ddof=1) / 500)
    e = prediction_powered_error(v, given(tau, far), 0.9)
    assert e.point == pytest.approx(theta)
    quantile = 1.671093  # of t with 59 degrees of freedom, at .95
    assert (e.low, e.high) == pytest.approx(
        (theta - quantile * se, theta + quantile * se)
    )


def test_a_surrogate_that_knows_narrows_and_a_useless_one_does_not_shift():
    rng = np.random.default_rng(2)
    tau, far = rng.random(300), rng.random(5000)
    v = np.clip(tau + 0.05 * rng.standard_normal(300), 0, 1)
    assert (
        prediction_powered_error(v, given(tau, far)).width < 0.4 * t_interval(v).width
    )
    flat = prediction_powered_error(v, given(np.full(300, 0.7), np.full(5000, 0.7)))
    assert flat.point == pytest.approx(v.mean())
    assert flat.width == pytest.approx(t_interval(v).width, rel=0.02)


@pytest.mark.parametrize(
    ("v", "far", "reason"),
    [
        ([], [0.1, 0.2], "0 labelled rows"),
        ([1.0], [0.1, 0.2], "1 labelled rows"),
        ([0.0] * 30, [0.1, 0.2], "spread cannot be seen"),
        ([0.0, 1.0], [0.1], "1 rows without label"),
    ],
)
def test_no_interval_and_why(v, far, reason):
    e = prediction_powered_error(v, given(np.linspace(0, 1, len(v)), far))
    assert not e.has_interval
    assert reason in e.reason


def test_wrong_surrogates_are_refused():
    with pytest.raises(DataError, match="one value per labelled row"):
        prediction_powered_error([0.0, 1.0], given([0.1], [0.1, 0.2]))
    with pytest.raises(DataError, match="missing"):
        prediction_powered_error([0.0, 1.0], given([0.1, np.nan], [0.1, 0.2]))


@pytest.mark.parametrize("name", ["zero_one", "brier", "log_loss"])
def test_expected_loss_is_the_mean_under_the_model(name):
    loss = log_loss(0.05) if name == "log_loss" else LOSSES[name]
    f = np.array([[0.5, 0.3, 0.2], [0.97, 0.02, 0.01]])
    by_label = np.stack([loss(np.full(2, c), f) for c in range(3)], axis=1)
    assert expected_loss(loss, f) == pytest.approx((f * by_label).sum(axis=1))


def test_cross_fitting_sees_no_label_of_its_own_row():
    rng = np.random.default_rng(3)
    X, far = rng.random((120, 2)), rng.random((50, 2))
    noise = (rng.random(120) < 0.5).astype(float)  # nothing to learn
    s = cross_fitted_surrogate(X, noise, far)
    assert s.unlabelled.shape == (50,)
    # A surrogate that had seen the labels would correlate with them.
    assert np.corrcoef(s.labelled, noise)[0, 1] < 0.2
    again = cross_fitted_surrogate(X, noise, far)
    assert (again.labelled == s.labelled).all()


def test_cross_fitted_prediction_powered_intervals_cover():
    rng = np.random.default_rng(4)
    truth, hit = 0.5, 0
    for r in range(20):
        X, far = rng.random((100, 1)), rng.random((400, 1))
        v = np.clip(X[:, 0] + 0.1 * rng.standard_normal(100), 0, 1)
        e = prediction_powered_error(
            v, cross_fitted_surrogate(X, v, far, folds=3, seed=r), 0.9
        )
        hit += e.low <= truth <= e.high
    # three standard errors of 20 draws: 3 sqrt(.9 * .1 / 20) = .20
    assert hit / 20 > 0.9 - 0.2


def test_which_surrogate_is_the_default():
    rng = np.random.default_rng(5)
    p = rng.random(100)
    f = np.column_stack([p, 1 - p])
    v, X = (rng.random(100) < 0.3).astype(float), rng.random((100, 2))
    zero_one = LOSSES["zero_one"]
    expected = choose_surrogate(zero_one, v, f, f, X, X)
    assert (expected.labelled == expected_loss(zero_one, f)).all()
    hard = np.eye(2)[(p > 0.5).astype(int)]  # probabilities of 0 and 1 expect no loss
    cross_fitted = cross_fitted_surrogate(X, v, X)
    found = choose_surrogate(zero_one, v, hard, hard, X, X)
    assert (found.labelled == cross_fitted.labelled).all()
    assert choose_surrogate(zero_one, v, hard, hard) is None
    assert choose_surrogate(zero_one, v[:99], hard[:99], hard, X[:99], X) is None
    found = choose_surrogate(LOSSES["squared"], v, p, p, X, X)
    assert (found.labelled == cross_fitted.labelled).all()
    assert choose_surrogate(LOSSES["squared"], np.zeros(100), p, p, X, X) is None
    with pytest.raises(DataError, match=r"give \(n, d\)"):
        cross_fitted_surrogate(X, v, X[:, :1])
