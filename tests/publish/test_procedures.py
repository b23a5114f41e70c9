"""The two splits: Java's generator, Weka's shuffle, and a second implementation in the loopback."""

import numpy as np
import pytest
from loopback_publish import holdout, ordered

from amlb_ext.publish.rows import HOLDOUT, ORDERED, JavaRandom

SIZES = [*range(5, 120), 177, 500, 999, 1000, 1001, 1023, 1024, 4999, 5000]


@pytest.mark.parametrize(
    ("seed", "bound", "expected"),
    [
        # new java.util.Random(seed).nextInt(bound), OpenJDK
        (0, 10, [0, 8, 9, 7, 5, 3, 1, 1, 9, 4]),
        (0, 100, [60, 48, 29, 47, 15, 53, 91, 61, 19, 54]),
        (42, 10, [0, 3, 8, 4, 0, 5, 5, 8, 9, 3]),
    ],
)
def test_the_generator_is_javas(seed, bound, expected):
    random = JavaRandom(seed)
    assert [random.next_int(bound) for _ in expected] == expected


def test_a_bound_that_divides_badly_is_drawn_again():
    # 2^31 - 1 leaves no rest but one number; 2^30 + 1 rejects nearly half of all draws
    random = JavaRandom(0)
    drawn = [random.next_int(2**30 + 1) for _ in range(200)]
    assert max(drawn) <= 2**30
    assert 0.4 < np.mean(drawn) / 2**30 < 0.6


def test_both_splits_are_those_of_the_second_implementation():
    for n in SIZES:
        assert set(ORDERED.test_positions(n).tolist()) == ordered(n)
        assert set(HOLDOUT.test_positions(n).tolist()) == holdout(n)


def test_the_rule_of_the_ordered_split():
    # f <= 0.8 n is for training: n = 1000 gives 801 and 199; n = 14 has f <= 11.2, 12 and 2
    assert [ORDERED.test_count(n) for n in (1000, 14, 5, 6)] == [199, 2, 0, 1]
    assert ORDERED.test_positions(14).tolist() == [12, 13]


@pytest.mark.parametrize("procedure", [ORDERED, HOLDOUT])
def test_train_range_is_exactly_what_goes_with_so_many_test_rows(procedure):
    found = {}
    for n in range(4, 3000):
        found.setdefault(procedure.test_count(n), []).append(
            n - procedure.test_count(n)
        )
    for test, trains in list(found.items())[:-1]:
        if test:
            assert procedure.train_range(test) == (min(trains), max(trains))
