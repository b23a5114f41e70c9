import numpy as np
import pytest

from amlb_ext.core.config import HardnessConfig
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.task import Kind
from amlb_ext.hardening.hardness import raw_hardness, settle_rule

# axis 1 is the target, of which there is one here
Y = np.array([0.0, 0.0, 0.0, 0.0])[:, None]
F = np.array([0.05, -0.1, 0.2, 0.09])[:, None]
LABELS = np.array([0, 1, 0, 1])[:, None]
P = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0.497, 0.503]])[:, None]


def regression(rule, alpha=None, **more):
    config = HardnessConfig(rule=rule, alpha=alpha, **more)
    return settle_rule(config, Kind.REGRESSION, (), y=Y, f=F)


def test_absolute_selects_errors_of_at_least_alpha():
    # |F - y| = .05 .1 .2 .09
    rule = regression("absolute", 0.1)
    assert rule.select(rule.hardness(Y, F)).tolist() == [False, True, True, False]


def test_squared_is_the_printed_formula():
    # (F - y)^2 = .0025 .01 .04 .0081
    rule = regression("squared", 0.01)
    assert rule.select(rule.hardness(Y, F)).tolist() == [False, True, True, False]


def test_band_selects_the_least_confident():
    # max_c p = .9 .5 .8 .503
    config = HardnessConfig(rule="band", alpha=0.502)
    rule = settle_rule(config, Kind.BINARY, ("a", "b"), y=LABELS, f=P)
    assert rule.select(rule.hardness(LABELS, P)).tolist() == [False, True, False, False]
    config = HardnessConfig(rule="band", alpha=0.505)
    rule = settle_rule(config, Kind.BINARY, ("a", "b"), y=LABELS, f=P)
    assert rule.select(rule.hardness(LABELS, P)).tolist() == [False, True, False, True]


def test_wrong_selects_low_true_probability():
    # p_y = .9 .5 .2 .503
    config = HardnessConfig(rule="wrong", alpha=0.5)
    rule = settle_rule(config, Kind.BINARY, ("a", "b"), y=LABELS, f=P)
    assert rule.select(rule.hardness(LABELS, P)).tolist() == [False, True, True, False]


def test_wrong_with_an_alpha_per_class():
    # class b is bad up to .55, class a only up to .1: rows 1 (.5, b) and 3 (.503, b)
    config = HardnessConfig(rule="wrong", class_alpha={"a": 0.1, "b": 0.55})
    rule = settle_rule(config, Kind.BINARY, ("a", "b"), y=LABELS, f=P)
    assert rule.select(rule.hardness(LABELS, P)).tolist() == [False, True, False, True]


def test_customary_alpha_gives_way_to_a_share_only_when_too_few_fail():
    rng = np.random.default_rng(0)
    good, y = rng.uniform(0, 0.05, (200, 1)), np.zeros((200, 1))
    paper = HardnessConfig(rule="paper", most=1)
    rule = settle_rule(paper, Kind.REGRESSION, (), y=y, f=good)
    assert rule.alpha < 0.1
    assert rule.select(rule.hardness(y, good)).sum() == 20  # the worst 10 % of 200
    rule = settle_rule(paper, Kind.REGRESSION, (), y=y, f=good * 10)
    assert rule.alpha == 0.1
    # an alpha the user gave is never moved
    rule = settle_rule(HardnessConfig(alpha=0.3), Kind.REGRESSION, (), y=y, f=good)
    assert rule.alpha == 0.3


def test_suggested_alpha_gives_the_rows_it_promises():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 1], (50, 1))
    y = rng.integers(0, 2, (50, 1))
    for name in ("band", "wrong"):
        none = HardnessConfig(rule=name, alpha=0.0)
        rule = settle_rule(none, Kind.BINARY, ("a", "b"), y=y, f=p)
        alpha = rule.alpha_for(rule.hardness(y, p), 7)
        some = settle_rule(
            HardnessConfig(rule=name, alpha=alpha), Kind.BINARY, ("a", "b"), y=y, f=p
        )
        assert 7 <= some.select(some.hardness(y, p)).sum() <= 8  # alpha has four digits


def test_reducible_ignores_the_label():
    y, p, t = LABELS[:, 0], P[:, 0], np.array([[0.1, 0.9]] * 4)
    one = raw_hardness("reducible", y, p, t)
    np.testing.assert_array_equal(one, raw_hardness("reducible", 1 - y, p, t))
    # row 0: (.1 - .9)^2 + (.9 - .1)^2
    assert one[0] == pytest.approx(1.28)


def test_a_rule_of_the_wrong_family_says_which_fit():
    with pytest.raises(ConfigError, match="band or wrong or quantile or reducible"):
        settle_rule(
            HardnessConfig(rule="absolute"), Kind.BINARY, ("a", "b"), y=LABELS, f=P
        )


def test_class_alpha_is_for_classes():
    with pytest.raises(ConfigError, match="this task is regression"):
        settle_rule(
            HardnessConfig(class_alpha={"a": 0.5}),
            Kind.REGRESSION,
            (),
            y=LABELS,
            f=LABELS,
        )


def test_unknown_class_in_class_alpha():
    with pytest.raises(ConfigError, match="the classes are a, b"):
        settle_rule(
            HardnessConfig(rule="wrong", class_alpha={"z": 0.5}),
            Kind.BINARY,
            ("a", "b"),
            y=LABELS,
            f=P,
        )
