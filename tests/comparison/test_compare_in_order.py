"""Models compared on rows with groups or times."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from amlb_ext.comparison import compare
from amlb_ext.comparison.models import as_predicted, choose_loss, predict_rows
from amlb_ext.core.config import HardnessConfig
from amlb_ext.core.row_order import RowOrder
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.units.labelled import read_labelled_rows
from amlb_ext.units.rows import judge_rows

# what is planted here is plain to a few trees, too
pytestmark = pytest.mark.usefixtures("light_models")


def shops(seed, n_shops=30, rows=12, own=0.3):
    """F errs by a shop's own amount, which no feature tells, and at large x."""
    rng = np.random.default_rng(seed)
    shop = np.repeat(np.arange(n_shops), rows)
    x = rng.random(len(shop))
    own = rng.normal(0, own, n_shops)
    y = x + own[shop] + (x > 0.8) * 0.7 + rng.normal(0, 0.05, len(shop))
    return pd.DataFrame({"x": x, "z": rng.random(len(shop))}), y, shop


@pytest.fixture(scope="module")
def data():
    X0, y0, shop0 = shops(1)
    X, y, shop = shops(2)
    F = LinearRegression().fit(X0, y0)
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X0, y0)
    return F, {"tree": tree}, (X0, y0), (X, y), shop0, shop


def run(data, **order):
    F, candidates, train, (X, y), _, _ = data
    return compare(F, candidates, X, y, train=train, refits=2, **order)


def test_rows_of_a_group_are_worth_fewer_rows(data):
    *_, shop0, shop = data
    plain = run(data).contrasts.iloc[0]
    grouped = run(data, groups=shop, train_groups=shop0)
    clustered = grouped.contrasts.iloc[0]
    assert clustered["difference"] == pytest.approx(plain["difference"])
    assert clustered["high"] - clustered["low"] > plain["high"] - plain["low"]
    said = " ".join(grouped.notes)
    assert "clustered by the 30 groups of 'groups'" in said
    assert "2 times on bootstrap samples of its training rows" in said


def weigh(rows, f, config):
    loss = choose_loss(rows, {"F": f})
    loss_f = loss(as_predicted(rows, f))
    judged = judge_rows(rows, f, loss_f, config, loss=loss)
    return judged.risk


def test_where_f_fails_is_learnt_from_earlier_rows(data):
    F, X, y = data[0], *shops(2, own=0)[:2]
    time = np.random.default_rng(0).permutation(len(y)).astype(float)
    model = ModelAdapter(F, "F")
    rows = read_labelled_rows(X, y, models=[model], order=RowOrder(time=time))
    f = predict_rows(model, rows)
    config = HardnessConfig(rule="absolute", alpha=0.15)
    weights = weigh(rows, f, config)
    oldest = time < len(y) // 3
    assert not weights[oldest].any()
    assert (weights[~oldest] > 0).all()
    # what comes later changes no weight of what came before
    early = np.flatnonzero(time < 2 * len(y) // 3)
    changed = y.copy()
    late = np.setdiff1d(np.arange(len(y)), early)
    changed[late] = changed[late][::-1]
    other = read_labelled_rows(X, changed, models=[model], order=RowOrder(time=time))
    again = weigh(other, f, config)
    assert np.array_equal(weights[early], again[early])


def test_rows_that_come_later_are_no_training_rows(data):
    F, candidates, _, (X, y), *_ = data
    days = pd.date_range("2024-01-01", periods=len(y))
    result = compare(F, candidates, X.assign(day=days), y, time="day", refits=2)
    assert result.refits == 0
    assert any("its training rows are not given" in note for note in result.notes)
