"""Which rows are sent: the split fits, test rows stay even, labels stay."""

from collections import Counter

import numpy as np
import pytest

from amlb_ext.core.errors import PublishError
from amlb_ext.publish.rows import HOLDOUT, ORDERED, choose_rows, choose_sizes, draw_rows

FOLDS = [
    (40, 10),
    (45, 5),
    (142, 36),
    (142, 130),
    (800, 200),
    (800, 1247),
    (900, 100),
    (7000, 23),
]


@pytest.mark.parametrize("procedure", [ORDERED, HOLDOUT])
@pytest.mark.parametrize(("train", "test"), FOLDS)
def test_the_split_fits_and_keeps_what_it_can(procedure, train, test):
    t, m, r = choose_sizes(procedure, train, test, fit="repeat")
    alone, all_m, once = choose_sizes(procedure, train, test, fit="drop")
    assert once == 1
    assert procedure.test_count(t + r * m) == r * m
    assert procedure.test_count(alone + all_m) == all_m
    assert alone <= t <= train
    assert m <= test
    most = max(k for k in range(1, train) if procedure.train_range(k)[0] <= train)
    assert all_m == min(test, most)
    if r > 1:
        assert m > test / 2


def test_every_test_row_is_sent_equally_often_and_no_training_row_twice():
    labels = [[f"c{i % 3}"] for i in range(300)]
    chosen = choose_rows(
        ORDERED, labels, [[*g, "bad"] for g in labels[:20]], fit="repeat", rng=rng(0)
    )
    side, row, again = chosen.layout()
    assert set(Counter(row[side]).values()) == {chosen.repeats}
    assert chosen.repeats == 3  # 240 + 1 of 300 training rows allow 60 test rows
    assert set(Counter(row[~side]).values()) == {1}
    assert sorted(set(zip(row[side], again[side], strict=True))) == [
        (r, k) for r in range(20) for k in range(3)
    ]


def test_training_rows_stand_first_or_around_the_test_rows():
    groups = [["a"]] * 40
    side, _, _ = choose_rows(
        ORDERED, groups, groups[:8], fit="repeat", rng=rng(0)
    ).layout()
    assert not side[: -side.sum()].any()
    chosen = choose_rows(HOLDOUT, groups, groups[:8], fit="repeat", rng=rng(0))
    side, row, _ = chosen.layout()
    assert np.flatnonzero(side).tolist() == HOLDOUT.test_positions(len(chosen)).tolist()
    assert (np.diff(row[~side]) > 0).all()


@pytest.mark.parametrize("k", [2, 3, 10, 57, 99])
def test_groups_stay_in_proportion_and_rare_ones_stay(k):
    groups = [["a", "x"]] * 60 + [["a", "y"]] * 37 + [["b", "x"]] * 3
    drawn = draw_rows(groups, k, rng(k))
    assert len(set(drawn)) == k
    counts = Counter(groups[i][0] for i in drawn)
    assert counts["b"] >= 1
    assert abs(counts["a"] - 0.97 * k) <= 1 + 0.03 * k
    if k >= 10:
        assert {groups[i][1] for i in drawn if groups[i][0] == "a"} == {"x", "y"}


def test_too_few_rows_are_refused_with_a_remedy():
    with pytest.raises(PublishError, match="too few") as caught:
        choose_sizes(ORDERED, 4, 1, fit="repeat")
    assert "--only" in caught.value.remedy
    assert choose_sizes(ORDERED, 5, 1, fit="repeat") == (5, 1, 1)


def rng(seed):
    return np.random.default_rng(seed)
