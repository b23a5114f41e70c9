"""The critical difference diagram: which entrants a bar joins, and where names stand."""

import numpy as np
from matplotlib.figure import Figure

from amlb_ext.report.rank_bars import alike_runs, bar_levels, draw_rank_bars


def test_a_bar_joins_the_longest_runs_only():
    apart = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    assert alike_runs(np.where(apart <= 2, 0.5, 0.01), 0.05) == [(0, 2), (1, 3), (2, 4)]
    assert alike_runs(np.where(apart <= 4, 0.5, 0.01), 0.05) == [(0, 4)]
    assert alike_runs(np.where(apart == 0, 1.0, 0.01), 0.05) == []


def test_bars_that_touch_stand_on_two_levels():
    assert bar_levels([(1.0, 2.0), (2.0, 3.0), (4.0, 5.0)]) == [0, 1, 0]


def test_the_better_half_is_named_on_the_left_and_no_line_crosses_another():
    axes = Figure().subplots()
    labels = draw_rank_bars(
        axes,
        np.array([1.2, 2.0, 3.5, 4.1]),
        np.ones((4, 4)),
        alpha=0.05,
        margin=0.1,
        line={"color": "k"},
        bar={"color": "b"},
        text={"size": 9},
    )
    assert [label.get_ha() for label in labels] == ["right", "right", "left", "left"]
    heights = [label.get_position()[1] for label in labels]
    assert heights == [-2, -3, -3, -2]
