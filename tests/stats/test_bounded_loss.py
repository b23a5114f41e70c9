import numpy as np
import pytest

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.stats.bounded_loss import (
    LOSSES,
    absolute_loss,
    log_loss,
    squared_loss,
)

F = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])


def test_classification_losses_by_hand():
    y = np.array([0, 1])
    assert LOSSES["zero_one"](y, F).tolist() == [0, 1]
    assert LOSSES["zero_one"](y, np.array([1, 1])).tolist() == [1, 0]
    # .3^2 + .2^2 + .1^2 = .14;  .1^2 + .7^2 + .6^2 = .86
    assert LOSSES["brier"](y, F) == pytest.approx([0.14, 0.86])
    assert LOSSES["log_loss"](y, F) == pytest.approx([-np.log(0.7), -np.log(0.3)])


def test_bounds_are_met_and_not_exceeded():
    wrong = np.array([[0.0, 1.0]])
    assert LOSSES["brier"](np.array([0]), wrong) == LOSSES["brier"].bound == 2
    assert log_loss(0.01)(np.array([0]), wrong)[0] == pytest.approx(
        log_loss(0.01).bound
    )
    assert log_loss(0.01).bound == pytest.approx(np.log(100))
    for loss in (squared_loss(0, 4), absolute_loss(0, 4)):
        # The prediction is clipped to the range, the loss of a target beyond it capped.
        assert loss(np.array([0.0, 9.0, 4.0]), np.array([99.0, 0.0, 5.0])).tolist() == [
            1,
            1,
            0,
        ]


@pytest.mark.parametrize("eps", [0, 1, -1, 2, 0.9, 0.06, float("nan")])
def test_log_refuses_a_clip_that_is_no_probability(eps):
    with pytest.raises(ConfigError, match="a small probability"):
        log_loss(eps)


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 1), (0, np.inf)])
def test_an_empty_range_is_refused(low, high):
    with pytest.raises(ConfigError, match="smaller first"):
        squared_loss(low, high)


def test_wrong_rows_are_refused():
    with pytest.raises(
        DataError, match=r"give \(n,\) targets and \(n, C\) probabilities"
    ):
        LOSSES["brier"](np.array([0, 1]), np.array([0, 1]))
    with pytest.raises(DataError, match="order of the columns"):
        LOSSES["brier"](np.array([0, 3]), F)
    with pytest.raises(DataError, match="missing"):
        LOSSES["squared"](np.array([0.0, np.nan]), np.array([0.0, 1.0]))
