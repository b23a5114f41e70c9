import math

import numpy as np
import pytest
from scipy import stats

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.stats.bounded_mean import (
    bca_interval,
    betting_interval,
    clopper_pearson,
    empirical_bernstein,
    hall_interval,
    interval_for_skewness,
    stratified_interval,
    t_interval,
    wilson_interval,
    wilson_limits,
)

ANY = [t_interval, hall_interval, bca_interval, empirical_bernstein]


def errors(e: int, n: int) -> np.ndarray:
    return np.repeat([1.0, 0.0], [e, n - e])


# Newcombe (1998), Statistics in Medicine 17, 857-872, table I: 81/263, 15/148, 0/20, 1/29.
@pytest.mark.parametrize(
    ("e", "n", "score", "exact"),
    [
        (81, 263, (0.2553, 0.3662), (0.2527, 0.3676)),
        (15, 148, (0.0624, 0.1605), (0.0578, 0.1617)),
        (0, 20, (0.0, 0.1611), (0.0, 0.1684)),
        (1, 29, (0.0061, 0.1718), (0.0009, 0.1776)),
    ],
)
def test_binomial_intervals_are_those_of_the_textbook(e, n, score, exact):
    w, c = wilson_interval(errors(e, n)), clopper_pearson(errors(e, n))
    assert (w.low, w.high) == pytest.approx(score, abs=6e-5)
    assert (c.low, c.high) == pytest.approx(exact, abs=6e-5)
    assert w.point == c.point == e / n


@pytest.mark.parametrize("n", [1, 2, 30])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_wilson_agrees_with_scipy(n, level):
    e = np.arange(n + 1)
    low, high = wilson_limits(e, np.full(n + 1, n), level)
    scipy = [stats.binomtest(int(k), n).proportion_ci(level, "wilson") for k in e]
    assert low == pytest.approx([s.low for s in scipy], abs=1e-12)
    assert high == pytest.approx([s.high for s in scipy], abs=1e-12)


def test_t_is_that_of_scipy():
    v = np.array([0.2, 0.3, 0.4, 0.7])
    e = t_interval(v, 0.9)
    low, high = stats.t.interval(0.9, 3, v.mean(), stats.sem(v))
    assert (e.low, e.high) == pytest.approx((low, high))


def test_bernstein_by_hand():
    # m = .5, s^2 = 100 / 99 / 4, ln(4 / .1) = 3.6889
    e = empirical_bernstein(errors(50, 100), 0.9)
    half = math.sqrt(100 / 99 / 4 * 2 * 3.68888 / 100) + 7 * 3.68888 / (3 * 99)
    assert e.high == pytest.approx(0.5 + half, abs=1e-5)
    twice = empirical_bernstein(2 * errors(50, 100), 0.9, bound=2)
    assert twice.high == pytest.approx(2 * e.high)


@pytest.mark.parametrize("interval", [t_interval, hall_interval, bca_interval])
def test_equal_losses_show_no_spread(interval):
    e = interval(np.full(20, 0.3))
    assert not e.has_interval
    assert e.point == pytest.approx(0.3)
    assert "spread cannot be seen" in e.reason
    assert empirical_bernstein(np.full(20, 0.3)).has_interval


def test_mover_by_hand():
    v, c = np.r_[errors(5, 50), errors(10, 20)], np.repeat([0, 1], [50, 20])
    a, b = wilson_interval(errors(5, 50), 0.9), wilson_interval(errors(10, 20), 0.9)
    e = stratified_interval(v, c, [0.8, 0.2], 0.9, binary=True)
    assert e.point == pytest.approx(0.8 * 0.1 + 0.2 * 0.5)
    down = math.hypot(0.8 * (0.1 - a.low), 0.2 * (0.5 - b.low))
    up = math.hypot(0.8 * (a.high - 0.1), 0.2 * (b.high - 0.5))
    assert (e.low, e.high) == pytest.approx((e.point - down, e.point + up))


def test_one_class_is_the_plain_interval():
    v = errors(3, 40)
    one, w = (
        stratified_interval(v, np.zeros(40), [1.0], binary=True),
        wilson_interval(v),
    )
    assert (one.low, one.high) == pytest.approx((w.low, w.high))
    v = np.random.default_rng(0).random(40)
    one, t = stratified_interval(v, np.zeros(40), [1.0]), t_interval(v)
    assert (one.low, one.high) == pytest.approx((t.low, t.high))


def test_equal_priors_and_sizes_are_welch():
    rng = np.random.default_rng(1)
    a, b = rng.random(12), 0.2 * rng.random(30)
    e = stratified_interval(np.r_[a, b], np.repeat([0, 1], [12, 30]), [0.5, 0.5], 0.9)
    # Half the sum of two means has the limits of half the difference of a and -b.
    welch = stats.ttest_ind(a, -b, equal_var=False).confidence_interval(0.9)
    assert (e.low, e.high) == pytest.approx((welch.low / 2, welch.high / 2))


def test_a_missing_class_is_named_with_its_share():
    v, c = errors(4, 40), np.repeat([0, 2], 20)
    e = stratified_interval(
        v, c, [0.5, 0.2, 0.25, 0.05], binary=True, names=["a", "b", "c", "d"]
    )
    assert not e.has_interval
    assert e.reason == "no labelled row of classes b, d, 25.0% of the population"
    assert stratified_interval(v, c, [0.5, 0, 0.5, 0], binary=True).has_interval
    single = stratified_interval(np.r_[0.1, 0.3, 0.2], [0, 0, 1], [0.9, 0.1])
    assert "fewer than 2 labelled rows of class 1, 10.0%" in single.reason


def test_wrong_input_says_what_came():
    for priors in ([0.5, 0.4], [1.5, -0.5]):
        with pytest.raises(DataError, match="share from 0 to 1"):
            stratified_interval([0.0, 1.0], [0, 1], priors)
    for classes in ([0, 2], [0, 0.5], [0]):
        with pytest.raises(DataError, match="whole number, 0 to 1"):
            stratified_interval([0.0, 1.0], classes, [0.5, 0.5])
    with pytest.raises(DataError, match="0 or 1"):
        wilson_interval([0.5])
    with pytest.raises(DataError, match="bound of 1"):
        t_interval([0.5, 2.0])
    with pytest.raises(DataError, match="missing"):
        t_interval([0.5, math.nan])
    with pytest.raises(DataError, match=r"shape \(n,\)"):
        t_interval(np.zeros((2, 2)))
    with pytest.raises(ConfigError, match="between 0 and 1"):
        wilson_interval([1.0], 95)
    with pytest.raises(ConfigError, match="positive"):
        t_interval([0.0], bound=0)


def test_hall_inverts_its_transformation():
    v = np.random.default_rng(0).exponential(0.05, 150)
    e, g, n = hall_interval(v), stats.skew(v), len(v)
    t = stats.t.ppf(0.975, n - 1)

    def transformed(mean):
        x = (v.mean() - mean) / (v.std(ddof=1) / math.sqrt(n))
        a = g / math.sqrt(n)
        return x + a * x**2 / 3 + a**2 * x**3 / 27 + a / 6

    assert transformed(e.low) == pytest.approx(t)
    assert transformed(e.high) == pytest.approx(-t)
    even = np.r_[0.2, 0.4, 0.6, 0.8]
    assert (hall_interval(even).low, hall_interval(even).high) == pytest.approx(
        (t_interval(even).low, t_interval(even).high)
    )


def test_betting_holds_where_rare_rows_lose_much():
    # two rows in a hundred lose a thousand times what the others do
    rng, hit, approximate = np.random.default_rng(0), 0, 0
    truth = 0.98 * 0.001 + 0.02 * 0.9
    for _ in range(100):
        v = np.where(rng.random(60) < 0.02, 0.9, 0.001)
        bet, t = betting_interval(v), t_interval(v)
        hit += bet.low <= truth <= bet.high
        approximate += t.has_interval and t.low <= truth <= t.high
        assert bet.width < 0.7 * empirical_bernstein(v).width
    assert hit >= 95
    assert approximate < 80


def test_which_interval_is_quoted_hangs_on_the_skewness():
    exponential = stats.expon.ppf((np.arange(300) + 0.5) / 300) / 10
    assert interval_for_skewness(exponential) == "t"
    assert interval_for_skewness((exponential[::2] / 2) ** 2) == "betting"
    assert interval_for_skewness((exponential / 2) ** 1.7) == "hall"


@pytest.mark.parametrize(
    "interval",
    [
        wilson_interval,
        clopper_pearson,
        t_interval,
        hall_interval,
        betting_interval,
        empirical_bernstein,
    ],
)
def test_coverage_at_an_error_of_a_fifth(interval):
    rng = np.random.default_rng(5)
    drawn = rng.binomial(100, 0.2, 300)
    got = {e: interval(errors(e, 100), 0.9) for e in set(drawn.tolist())}
    hit = sum(got[e].low <= 0.2 <= got[e].high for e in drawn.tolist())
    # three standard errors of 300 draws: 3 sqrt(.9 * .1 / 300) = .052
    assert hit / 300 > 0.9 - 0.052
    if interval is empirical_bernstein:
        assert hit >= 298


@pytest.mark.parametrize("interval", [wilson_interval, clopper_pearson])
def test_no_error_and_only_errors(interval):
    none, all_ = interval(errors(0, 10)), interval(errors(10, 10))
    assert none.low == 0
    assert all_.high == 1
    assert none.high == pytest.approx(1 - all_.low)
    assert interval(errors(1, 1)).has_interval
    assert not interval([]).has_interval


@pytest.mark.parametrize("interval", ANY)
@pytest.mark.parametrize("v", [[], [0.3]])
def test_fewer_than_two_rows_give_a_reason(interval, v):
    e = interval(v)
    assert not e.has_interval
    assert "2 needed" in e.reason


@pytest.mark.parametrize("interval", ANY)
def test_limits_stay_between_zero_and_the_bound(interval):
    e = interval([0.0, 0.0, 0.0, 2.0], bound=2.0)
    assert 0 <= e.low <= e.point <= e.high <= 2


@pytest.mark.parametrize("rows", [1, 3, 9])
def test_an_interval_holds_where_a_class_has_few_rows(rows):
    rng = np.random.default_rng(rows)
    classes = np.repeat([0, 1], [rows, 100])
    rate, priors = np.array([0.82, 0.05]), [0.9, 0.1]
    held = []
    for _ in range(300):
        losses = rng.random(len(classes)) < rate[classes]
        e = stratified_interval(losses, classes, priors, binary=True)
        held.append(e.low <= rate @ priors <= e.high)
    assert np.mean(held) > 0.92
