"""Roles, support and takers: who sees what, and what is refused in a sentence."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.errors import ConfigError, DataError, ModelError
from amlb_ext.core.task import Column, Kind
from amlb_ext.hardening.encode import Encoder
from amlb_ext.swarm.labels import SupportGuard, check_labels_name
from amlb_ext.swarm.roles import deal_roles
from amlb_ext.swarm.takers import Panel, check_takers, taker_specs

RNG = np.random.default_rng(0)


def as_lists(roles):
    return [roles.takers, roles.generator, roles.teacher, roles.auditor]


@pytest.mark.parametrize("n", [1200, 1437, 9000])
def test_roles_share_no_row_and_use_all(n):
    y = (RNG.random(n) < 0.1).astype(int)
    roles = as_lists(deal_roles(y, 2, np.random.default_rng(0)))
    assert np.array_equal(np.sort(np.concatenate(roles)), np.arange(n))
    assert min(len(rows) for rows in roles) >= 300
    for rows in roles:
        assert y[rows].mean() == pytest.approx(y.mean(), abs=0.01)


def test_too_few_rows_for_four_roles():
    with pytest.raises(DataError, match=r"455 training rows.*--least-rows 113"):
        deal_roles(np.arange(455) % 2, 2, np.random.default_rng(0))


def make_guard(n=1000):
    columns = (Column("g", "categorical", ("a", "b")), Column("x", "numeric"))
    codes = RNG.integers(0, 2, n)
    # category a has small numbers, b large ones
    numbers = RNG.random(n) * 0.4 + 0.6 * codes
    dtype = pd.CategoricalDtype(["a", "b"])
    table = pd.DataFrame(
        {"g": pd.Categorical.from_codes(codes, dtype=dtype), "x": numbers}
    )
    encoder = Encoder(columns).fit(table)
    return SupportGuard(encoder, encoder.transform(table)), encoder.transform(table)


def test_support_is_where_real_rows_are():
    guard, real = make_guard()
    supported, nearest = guard.nearest(real)
    assert supported.all()
    assert np.array_equal(real[nearest], real)
    middle = np.array([[0.0, 0.2], [0.0, 0.9], [1.0, 0.1]])
    supported, _ = guard.nearest(middle)
    assert supported.tolist() == [True, False, False]


def test_a_constant_taker_is_named():
    class Constant:
        def predict(self, Z):
            return np.tile([0.9, 0.1], (len(Z), 1))

    panel = Panel(models={"lazy": Constant()})
    with pytest.raises(ModelError, match=r"lazy answers the same on all 7 real rows"):
        check_takers(panel, panel.predict(np.zeros((7, 1))))


def test_a_failing_taker_is_named():
    class Failing:
        def predict(self, Z):
            raise ModelError("out of order")

    with pytest.raises(ModelError, match="taker broken failed: out of order"):
        Panel(models={"broken": Failing()}).predict(np.zeros((7, 1)))


def test_takers_by_name_and_by_path():
    path = "sklearn.tree.DecisionTreeClassifier:max_depth=2"
    seen, unseen = taker_specs(["forest", path], Kind.BINARY)
    assert list(seen) == ["forest", path]
    # trees of another depth are no unseen family beside the user's tree
    assert not {"tree_3", "tree_8", "forest"} & set(unseen)
    with pytest.raises(ModelError, match="leaves nothing to compare"):
        taker_specs(["forest"], Kind.BINARY)


def test_unknown_labels():
    with pytest.raises(ConfigError, match=r"no labels 'exces'.*'excess'"):
        check_labels_name("exces")
