"""Splits by groups and forward in time: nothing that is tested on is almost seen before."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.config import SplitConfig, build_config
from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.core.row_order import OrderedTable, RowOrder, read_order
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Fold
from amlb_ext.hardening.prepare import cross_fit, prepare
from amlb_ext.hardening.split import ordered_parts, split_task
from amlb_ext.pipeline.generate import order_task

pytestmark = pytest.mark.usefixtures("light_models")


def drifting(n=300):
    """A level for each ten days, and a column that nearly names the day: neighbours tell it."""
    rng = np.random.default_rng(0)
    level = np.repeat(rng.normal(0, 1, n // 10), 10)
    x = rng.random(n)
    return pd.DataFrame(
        {
            "day": pd.date_range("2022-01-01", periods=n).strftime("%Y-%m-%d"),
            "shop": [f"s{number}" for number in rng.integers(0, 20, n)],
            "x": x,
            "clock": np.arange(n) + rng.normal(0, 1, n),
            "y": 2 * x + level + rng.normal(0, 0.1, n),
        }
    ).sample(frac=1, random_state=0)


def shop_levels(n=300):
    """Each shop has a level and coordinates of its own, so that rows of a shop tell of it."""
    rng = np.random.default_rng(1)
    shop = rng.integers(0, 20, n)
    places = rng.random((20, 2))
    levels = rng.normal(0, 1, 20)
    table = pd.DataFrame(places[shop], columns=["east", "north"])
    return table.assign(shop=shop, x=rng.random(n), y=levels[shop] + rng.random(n))


def ordered(table, *, folds=2, **order):
    split = SplitConfig(folds=folds, **order)
    task = make_task(table, "y", name="t")
    return split_task(order_task(task, split, build_config().source), split, seed=1)


def out_of_fold_error(task):
    config = build_config({"baseline": {"model": "random_forest"}})
    cross = cross_fit([task], 0, config)
    # on the same scale for every split: that of the target
    error = (cross.f - cross.y)[cross.judged] * cross.targets[0].scale.span
    return float(np.sqrt((error**2).mean()))


@pytest.mark.parametrize(
    ("table", "order"),
    [
        (drifting(), {"time": "day"}),
        pytest.param(shop_levels(), {"group": "shop"}, marks=pytest.mark.exhaustive),
    ],
)
def test_random_folds_flatter_where_a_leak_is_planted_and_these_do_not(table, order):
    task = ordered(table, **order)
    fold = task.folds[0]
    # the same training rows, cross-fitted at random
    unordered = dataclasses.replace(task, order=None)
    at_random = out_of_fold_error(unordered)
    in_order = out_of_fold_error(task)
    prepared = prepare(
        [task], 0, build_config({"baseline": {"model": "random_forest"}})
    )
    span = prepared.models.targets[0].scale.span
    new = prepared.test.y - prepared.test.f
    on_new_rows = float(np.sqrt((new**2).mean())) * span
    assert at_random < 0.75 * on_new_rows
    assert in_order > 0.85 * on_new_rows
    assert len(fold.test) > 20


def test_every_fold_forward_in_time_learns_from_older_rows_with_the_gap():
    table = drifting()
    task = ordered(table, folds=3, time="day", gap="7D")
    days = pd.to_datetime(table["day"]).to_numpy()
    tested = []
    for fold in task.folds:
        first = days[fold.test].min()
        assert days[fold.train].max() <= first - np.timedelta64(7, "D")
        tested.append(days[fold.test])
    # blocks that follow each other up to the last day, half of the rows at most
    assert max(block.max() for block in tested) == days.max()
    assert len(np.unique(np.concatenate(tested))) == sum(map(len, tested)) <= 150


def test_cross_fitting_within_the_training_rows_keeps_to_the_order_too():
    table = drifting()
    task = ordered(table, time="day", gap="7D")
    cross = cross_fit([task], 0, build_config({"baseline": {"model": "ridge"}}))
    time = task.order.time[cross.row]
    for train, held in cross.parts:
        assert time[train].max() <= time[held].min() - 7 * 86400
    assert np.isfinite(cross.f[cross.judged]).all()
    never = np.setdiff1d(np.arange(len(cross.row)), cross.judged)
    # the oldest third is learnt from only
    assert time[never].max() < time[cross.judged].min()
    assert len(never) == pytest.approx(len(cross.row) / 3, abs=2)
    # re-fits of the null control learn from most of the time, unlike those of the parts
    [target] = cross.targets
    assert len(target.refits) == 5
    assert target.refits is not target.cross_fits


def test_no_group_is_on_both_sides_of_any_split():
    task = ordered(shop_levels(), group="shop")
    group = task.order.group
    for fold in task.folds:
        assert not np.isin(group[fold.test], group[fold.train]).any()
    cross = cross_fit([task], 0, build_config({"baseline": {"model": "ridge"}}))
    own = group[cross.row]
    for train, held in cross.parts:
        assert not np.isin(own[held], own[train]).any()
    # by groups every row has its turn
    assert len(cross.judged) == len(cross.row)


def test_columns_that_order_are_no_features_unless_they_are_kept():
    task = ordered(drifting(), time="day")
    assert [column.name for column in task.columns] == ["shop", "x", "clock"]
    assert any("forward in time by 'day'" in note for note in task.notes)


@pytest.mark.parametrize(
    ("order", "error", "said"),
    [
        ({"time": "dai"}, ConfigError, "has no such column.*did you mean 'day'"),
        ({"time": "y"}, ConfigError, "the target"),
        (
            {"time": "shop"},
            DataError,
            "row 1 has 's.*', which is no date and no number",
        ),
        ({"gap": "7D"}, ConfigError, "add --time COLUMN"),
        ({"group": "shop", "gap": "7D"}, ConfigError, "add --time COLUMN"),
        ({"time": "day", "gap": "7 bananas"}, ConfigError, "a duration such as 7D"),
        ({"time": "day", "gap": "7"}, ConfigError, "a duration such as 7D"),
        ({"time": "x", "gap": "-1"}, ConfigError, "a number, 0 or more"),
        ({"time": "one"}, DataError, "all rows have the same time"),
        ({"group": "one"}, DataError, "all rows are of one group"),
        ({"group": "row"}, DataError, "a group of its own"),
        ({"group": "holes"}, DataError, "150 rows have no group, the first is row 2"),
        ({"time": "day", "group": "shop"}, DataError, "leave --group or --time"),
        ({"time": "half"}, DataError, "2 different times are too few for 2 folds"),
    ],
)
def test_a_column_that_cannot_order_the_rows_is_refused(order, error, said):
    table = drifting().reset_index(drop=True)
    table = table.assign(
        one=1.0,
        row=[f"r{k}" for k in range(300)],
        holes=np.where(np.arange(300) % 2, None, "a"),
        half=np.arange(300) // 150,
    )
    with pytest.raises(error, match=said):
        ordered(table, **order)


def test_folds_of_a_source_that_mix_what_is_to_stay_apart_are_refused():
    table = drifting().sort_values("day").reset_index(drop=True)
    older, newer = np.arange(200), np.arange(200, 300)
    for train, test, is_right in ((older, newer, True), (newer, older, False)):
        task = make_task(table, "y", name="t", folds=[Fold(train, test)])
        order = read_order(OrderedTable.of_task(task), time="day", group=None, gap=None)
        task = dataclasses.replace(task, order=order)
        if is_right:
            assert split_task(task, SplitConfig(), seed=1).folds == task.folds
            continue
        with pytest.raises(DataError, match=r"100 of 100 .* not older") as caught:
            split_task(task, SplitConfig(time="day"), seed=1)
        assert "leave --time day out" in caught.value.remedy
        # a source that names the column itself: there is no flag to leave out
        with pytest.raises(DataError) as caught:
            split_task(task, SplitConfig(), seed=1)
        assert "leave" not in caught.value.remedy


def test_rows_of_one_time_are_never_parted():
    order = RowOrder(time=np.repeat([1.0, 2.0, 3.0, 4.0], 15))
    for train, held in ordered_parts(np.zeros(60), 0, 5, 0, order):
        assert order.time[train].max() < order.time[held].min()
