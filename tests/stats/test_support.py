import numpy as np
import pytest

from amlb_ext.core.errors import DataError
from amlb_ext.stats.support import check_support
from benchmarks.studies.five_gaussians import draw_rows


def drawn(n: int, seed: int):
    return draw_rows(n, np.random.default_rng(seed))


def test_spheres_by_hand():
    S = np.array([[0.0], [1.0], [3.0]])
    # k = 1: radii 1, 1, 2. -1 is inside (1 from 0), -1.1 not; 5 is inside (2 from 3), 5.1 not;
    # 1.9 is inside (.9 from 1); 2.1, nearest to 3, is inside.
    U = np.array([[-1.0], [-1.1], [5.0], [5.1], [1.9], [2.1]])
    # Of S itself 0 and 1 are inside each other's spheres, 3 is 2 from 1.
    s = check_support(S, U, k=1)
    assert s.labelled_share_inside == pytest.approx(2 / 3)
    assert s.inside.tolist() == [True, False, True, False, True, True]
    assert s.share_inside == pytest.approx(4 / 6)
    assert not s.refused


@pytest.mark.parametrize("seed", range(2))
def test_independent_draws_pass(seed):
    S, _ = drawn(300, seed)
    X, y = drawn(5000, 100 + seed)
    s = check_support(S, X, labels=y)
    assert s.share_inside > 0.98
    assert not s.refused
    assert s.lacking == ()


@pytest.mark.parametrize("seed", range(1))
def test_a_missing_class_is_refused_and_named(seed):
    S, y = drawn(1500, seed)
    X, labels = drawn(5000, 100 + seed)
    # class 3 lies alone and makes a quarter of the population
    s = check_support(S[y != 3][:500], X, labels=labels, classes=list("abcde"))
    assert s.refused
    assert s.lacking[0] == "d"
    assert "lack class" in s.reason
    assert "25." in s.reason or "24." in s.reason


def test_without_labels_columns_are_named():
    rng = np.random.default_rng(0)
    S, X = rng.random((200, 3)), rng.random((400, 3))
    X[:200, 1] -= 4
    s = check_support(S, X, columns=["a", "b", "c"])
    assert s.lacking == ("b",)
    assert "b (lower by" in s.reason
    assert "1 (lower by" in check_support(S, X).reason


def test_equal_rows_lie_inside():
    S = np.ones((30, 2))
    assert check_support(S, np.ones((5, 2))).share_inside == 1
    assert check_support(S, np.full((5, 2), 1.1)).share_inside == 0


def test_too_few_rows_are_refused():
    s = check_support(np.zeros((10, 2)), np.zeros((5, 2)))
    assert s.refused
    assert np.isnan(s.share_inside)
    assert "too few" in s.reason
    assert check_support(np.zeros((11, 2)), np.zeros((0, 2))).refused


def test_wrong_input_is_refused():
    S = np.zeros((20, 2))
    with pytest.raises(DataError, match="same encoder"):
        check_support(S, np.zeros((5, 3)))
    with pytest.raises(DataError, match="missing"):
        check_support(S, np.full((5, 2), np.nan))
    with pytest.raises(DataError, match="k >= 1"):
        check_support(S, S, labels=np.zeros(3))
    with pytest.raises(DataError, match="k >= 1"):
        check_support(S, S, k=0)
