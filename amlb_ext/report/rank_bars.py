"""The critical difference diagram (Demšar 2006): mean ranks on an axis, bars below it.

NOTE[OWN]: scikit-posthocs draws one, and draws in statsmodels and seaborn (50 MB) with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Text


def alike_runs(p_values: np.ndarray, alpha: float) -> list[tuple[int, int]]:
    """Return the longest runs of entrants that cannot be told apart, in the order of their ranks.

    Parameters
    ----------
    p_values : ndarray of shape (k, k)
        Of entrants in the order of their mean ranks.
    alpha : float
        Two entrants with a larger p-value are alike.

    Returns
    -------
    list of (int, int)
        First and last entrant of each run of at least two.

    Examples
    --------
    >>> alike_runs(np.array([[1, 0.3, 0.01], [0.3, 1, 0.2], [0.01, 0.2, 1]]), 0.05)
    [(0, 1), (1, 2)]
    """
    n_entrants = len(p_values)
    is_alike = p_values > alpha
    runs: list[tuple[int, int]] = []
    for first in range(n_entrants - 1):
        last = first
        # a run ends before the first entrant that differs from any of its members
        while last + 1 < n_entrants and is_alike[first : last + 1, last + 1].all():
            last += 1
        is_part_of_another = bool(runs) and last <= runs[-1][1]
        if last > first and not is_part_of_another:
            runs.append((first, last))
    return runs


def bar_levels(intervals: list[tuple[float, float]]) -> list[int]:
    """Return on which level each bar stands, so that no two bars of a level touch.

    Examples
    --------
    >>> bar_levels([(1.0, 2.0), (1.5, 3.0), (2.5, 4.0)])
    [0, 1, 0]
    """
    taken: list[list[tuple[float, float]]] = []
    levels = []
    for low, high in intervals:
        level = 0
        while level < len(taken) and any(
            low <= end and start <= high for start, end in taken[level]
        ):
            level += 1
        if level == len(taken):
            taken.append([])
        taken[level].append((low, high))
        levels.append(level)
    return levels


def draw_rank_bars(
    axes: Axes,
    mean: np.ndarray,
    p_values: np.ndarray,
    *,
    alpha: float,
    margin: float,
    line: dict[str, Any],
    bar: dict[str, Any],
    text: dict[str, Any],
) -> list[Text]:
    """Draw the diagram; the best half has its labels on the left, the others on the right.

    Parameters
    ----------
    axes : Axes
    mean : ndarray of shape (k,)
        Mean ranks, ascending.
    p_values : ndarray of shape (k, k)
    alpha : float
        Entrants with a larger p-value are joined by a bar.
    margin : float
        From the outermost rank to the labels, in ranks.
    line, bar, text : dict
        Keyword arguments of matplotlib for lines and marks, for bars and for labels.

    Returns
    -------
    list of Text
        Empty labels to be filled in, one per entrant, in order.
    """
    axes.yaxis.set_visible(False)
    for side in ("right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.xaxis.set_ticks_position("top")
    axes.spines["top"].set_position("zero")

    runs = alike_runs(p_values, alpha)
    intervals = [(float(mean[first]), float(mean[last])) for first, last in runs]
    levels = bar_levels(intervals)
    for (low, high), level in zip(intervals, levels, strict=True):
        axes.plot([low, high], [-level - 1, -level - 1], **bar)

    lowest_bar = -max(levels, default=-1) - 1
    n_left = (len(mean) + 1) // 2
    labels = []
    for entrant, rank in enumerate(mean):
        is_left = entrant < n_left
        x = mean[0] - margin if is_left else mean[-1] + margin
        # outermost ranks come first, so that no line crosses another
        row = entrant if is_left else len(mean) - 1 - entrant
        y = lowest_bar - 1 - row
        axes.plot([x, rank, rank], [y, y, 0], **line)
        axes.scatter(rank, 0, s=16, color=line["color"], zorder=3)
        side = "right" if is_left else "left"
        label = axes.text(x, y, "", ha=side, va="center", color=line["color"], **text)
        labels.append(label)
    return labels
