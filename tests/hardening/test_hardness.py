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


def settle(kind, f, y, **settings):
    labels = ("a", "b") if kind.is_classification else ()
    return settle_rule(HardnessConfig(**settings), kind, labels, y=y, f=f)


@pytest.mark.parametrize(
    ("settings", "bad"),
    [
        # |F - y| = .05 .1 .2 .09
        ({"rule": "absolute", "alpha": 0.1}, [1, 2]),
        # (F - y)^2 = .0025 .01 .04 .0081
        ({"rule": "squared", "alpha": 0.01}, [1, 2]),
        # max_c p = .9 .5 .8 .503
        ({"rule": "band", "alpha": 0.502}, [1]),
        ({"rule": "band", "alpha": 0.505}, [1, 3]),
        # p_y = .9 .5 .2 .503
        ({"rule": "wrong", "alpha": 0.5}, [1, 2]),
        # class b is bad up to .55, class a only up to .1: rows 1 (.5, b) and 3 (.503, b)
        ({"rule": "wrong", "class_alpha": {"a": 0.1, "b": 0.55}}, [1, 3]),
    ],
)
def test_a_rule_selects_the_rows_of_its_formula(settings, bad):
    kind, y, f = Kind.REGRESSION, Y, F
    if settings["rule"] in ("band", "wrong"):
        kind, y, f = Kind.BINARY, LABELS, P
    rule = settle(kind, f, y, **settings)
    assert np.flatnonzero(rule.select(rule.hardness(y, f))).tolist() == bad


def test_customary_alpha_gives_way_to_a_share_only_when_too_few_fail():
    rng = np.random.default_rng(0)
    good, y = rng.uniform(0, 0.05, (200, 1)), np.zeros((200, 1))
    rule = settle(Kind.REGRESSION, good, y, rule="paper")
    assert rule.alpha < 0.1
    assert rule.select(rule.hardness(y, good)).sum() == 20  # the worst 10 % of 200
    rule = settle(Kind.REGRESSION, good * 10, y, rule="paper")
    assert rule.alpha == 0.1
    # a share that the user gave decides, however many fail
    rule = settle(Kind.REGRESSION, good * 10, y, rule="absolute", share=0.2)
    assert rule.select(rule.hardness(y, good * 10)).sum() == 40
    # an alpha the user gave is never moved
    rule = settle(Kind.REGRESSION, good, y, alpha=0.3)
    assert rule.alpha == 0.3


def test_only_the_rule_paper_may_call_most_rows_bad():
    rng = np.random.default_rng(0)
    poor, y = rng.uniform(0.2, 0.9, (200, 1)), np.zeros((200, 1))
    for name, bad in (("absolute", 100), ("paper", 200)):
        rule = settle(Kind.REGRESSION, poor, y, rule=name)
        assert rule.select(rule.hardness(y, poor)).sum() == bad


def test_a_share_of_the_rows_also_where_F_decides():
    rng = np.random.default_rng(3)
    p = rng.dirichlet([1, 1], (50, 1))
    y = rng.integers(0, 2, (50, 1))
    rule = settle(Kind.BINARY, p, y, share=0.2)
    assert not rule.by_decision
    hardness = rule.hardness(y, p)
    np.testing.assert_array_equal(
        np.flatnonzero(rule.select(hardness)), np.sort(np.argsort(hardness)[-10:])
    )


def test_suggested_alpha_gives_the_rows_it_promises():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 1], (50, 1))
    y = rng.integers(0, 2, (50, 1))
    for name in ("band", "wrong"):
        rule = settle(Kind.BINARY, p, y, rule=name, alpha=0.0)
        alpha = rule.alpha_for(rule.hardness(y, p), 7)
        some = settle(Kind.BINARY, p, y, rule=name, alpha=alpha)
        assert 7 <= some.select(some.hardness(y, p)).sum() <= 8  # alpha has four digits


def test_reducible_ignores_the_label():
    y, p, t = LABELS[:, 0], P[:, 0], np.array([[0.1, 0.9]] * 4)
    one = raw_hardness("reducible", y, p, t)
    np.testing.assert_array_equal(one, raw_hardness("reducible", 1 - y, p, t))
    # row 0: (.1 - .9)^2 + (.9 - .1)^2
    assert one[0] == pytest.approx(1.28)


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        (Kind.BINARY, {"rule": "absolute"}, "band or wrong or quantile or reducible"),
        (Kind.REGRESSION, {"class_alpha": {"a": 0.5}}, "this task is regression"),
        (
            Kind.BINARY,
            {"rule": "wrong", "class_alpha": {"z": 0.5}},
            "the classes are a, b",
        ),
    ],
)
def test_rules_that_do_not_serve_a_task_are_refused(kind, settings, said):
    f = P if kind.is_classification else LABELS
    with pytest.raises(ConfigError, match=said):
        settle(kind, f, LABELS, **settings)
