"""Frameworks ranked over tasks: Friedman's test, Nemenyi's comparisons, and their diagram.

A task is one block, whatever its number of folds: folds share training rows and are not
independent.

References
----------
Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7, 1-30.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import friedmanchisquare, wilcoxon

from amlb_ext.core.display import format_count, shorten_text
from amlb_ext.report.inline import COLOUR
from amlb_ext.report.model import NO_RANKS, Chart, FrameworkRanks
from amlb_ext.report.still import INK, POINTS_PER_INCH, canvas, figure_to_svg
from amlb_ext.stats.pairwise import nemenyi_p_values

#: Ranks differ significantly below this p-value.
RANK_LEVEL = 0.05
#: Over fewer tasks even opposite ranks, 1 and k of k, lie closer than Nemenyi's critical
#: difference: for 3 entrants on 2 tasks that is 2.34, for 10 it is 9.58.
FEWEST_TASKS = 3


def rank_tasks(
    table: pd.DataFrame, left_out: Mapping[str, str] | None = None
) -> FrameworkRanks:
    """Rank entrants over tasks by mean loss.

    Parameters
    ----------
    table : DataFrame of shape (tasks, entrants)
        Mean losses on the same rows of a task, smaller is better; NaN where an entrant has none.
    left_out : mapping of str to str, optional
        Tasks that are not in the table, and why.

    Returns
    -------
    FrameworkRanks
        Over the tasks on which every entrant is scored.

    Examples
    --------
    >>> table = pd.DataFrame({"F": [0.3, 0.4, 0.2], "a": [0.1, 0.3, 0.1], "b": [0.2, 0.5, 0.3]},
    ...                      index=["x", "y", "z"])
    >>> ranks = rank_tasks(table)
    >>> ranks.mean.round(2).to_dict()
    {'a': 1.0, 'F': 2.33, 'b': 2.67}
    >>> round(ranks.friedman_p, 3)
    0.097
    """
    reasons = dict(left_out or {})
    for task in table.index[table.isna().any(axis=1)]:
        without_loss = table.columns[table.loc[task].isna()]
        names = ", ".join(str(name) for name in without_loss)
        reasons[str(task)] = f"no losses of {names}"
    # A rank is one among the same entrants on every task.
    losses = table.dropna(axis=0)
    if losses.shape[1] < 2 or not len(losses):
        return replace(NO_RANKS, left_out=reasons)
    ranks = replace(
        NO_RANKS,
        # Ties share the mean of their ranks; equal mean ranks keep the order of the columns.
        mean=losses.rank(axis=1).mean().sort_values(kind="stable"),
        tasks=tuple(str(task) for task in losses.index),
        left_out=reasons,
    )
    return _test_ranks(ranks, losses)


def _test_ranks(ranks: FrameworkRanks, losses: pd.DataFrame) -> FrameworkRanks:
    """Return the ranks with p-values, where there are tasks enough to test them."""
    n_tasks, n_entrants = losses.shape
    if n_tasks < FEWEST_TASKS:
        counted = format_count(n_tasks, "task")
        about = (
            f"{counted}: the ranks only describe. There is no diagram, since over fewer than "
            f"{FEWEST_TASKS} tasks Nemenyi's test can tell no two entrants apart."
        )
        return replace(ranks, about=about)
    values = losses.to_numpy(dtype=float)
    if (values == values[:, :1]).all():
        return replace(ranks, about="All entrants have the same losses.")
    names = list(losses.columns)
    if n_entrants == 2:
        # Friedman's test needs three entrants; of two it would be the sign test.
        with warnings.catch_warnings():
            # Of ties and of few tasks, with which the p-value is approximate.
            warnings.simplefilter("ignore")
            p_value = float(wilcoxon(values[:, 0], values[:, 1]).pvalue)
        return replace(
            ranks,
            p=pd.DataFrame([[1.0, p_value], [p_value, 1.0]], names, names),
            about=f"Wilcoxon's signed-rank test over {n_tasks} tasks: p = {p_value:.3f}.",
        )
    friedman_p = float(friedmanchisquare(*values.T).pvalue)
    caution = ""
    if n_tasks < 10:
        caution = " With so few tasks only large differences can show."
    return replace(
        ranks,
        friedman_p=friedman_p,
        p=pd.DataFrame(nemenyi_p_values(values), names, names),
        about=f"Friedman's test over {n_tasks} tasks and {n_entrants} entrants: "
        f"p = {friedman_p:.3f}; entrants joined by a bar do not differ by Nemenyi's test at "
        f".05.{caution}",
    )


def mean_losses(losses: pd.DataFrame, loss_f: np.ndarray) -> pd.Series:
    """Return mean losses of F and every entrant on the rows that all have.

    Examples
    --------
    >>> losses = pd.DataFrame({"a": [1.0, 3.0, np.nan]})
    >>> mean_losses(losses, np.array([2.0, 2.0, 9.0])).to_dict()
    {'F': 2.0, 'a': 2.0}
    """
    together = losses.assign(F=loss_f).dropna()
    return together[["F", *losses.columns]].mean()


# The critical difference diagram (Demsar 2006): mean ranks on an axis, bars below it.
# NOTE[OWN]: scikit-posthocs draws one, and draws in statsmodels and seaborn (50 MB) with it.


def draw_rank_diagram(ranks: FrameworkRanks, key: str) -> str:
    """Return the critical difference diagram of mean ranks; empty when there is none.

    Bars join entrants that cannot be told apart (Demšar 2006).

    Parameters
    ----------
    ranks : FrameworkRanks
    key : str
        Unique in the page.

    Returns
    -------
    str

    Examples
    --------
    >>> draw_rank_diagram(NO_RANKS, "ranks")
    ''
    """
    mean = ranks.mean.dropna()
    if ranks.p.empty or len(mean) < 2:
        return ""
    p_values = ranks.p.reindex(index=mean.index, columns=mean.index).fillna(1.0)
    names = [shorten_text(name, 24) for name in mean.index]
    labels = [f"{name} ({rank:.2f})" for name, rank in zip(names, mean, strict=True)]
    width = float(np.clip(3.6 + 0.15 * max(map(len, labels)), 6.4, 9.0))
    with canvas(key):
        figure = Figure((width, 3.0), dpi=POINTS_PER_INCH)
        axes = figure.subplots()
        means = mean.to_numpy(dtype=float)
        # bars join entrants that cannot be told apart
        runs = alike_runs(p_values.to_numpy(dtype=float), RANK_LEVEL)
        for level, (first, last) in enumerate(runs, 1):
            ends = [means[first], means[last]]
            axes.plot(
                ends, [-level, -level], color=COLOUR["c0"], linewidth=3.5, zorder=2
            )
        _draw_entrants(axes, means, labels, lowest=-len(runs))
        # Marks at the ends of the axis are drawn whole.
        for mark in (*axes.lines, *axes.collections):
            mark.set_clip_on(False)
        axes.yaxis.set_visible(False)
        for side in ("right", "left", "bottom"):
            axes.spines[side].set_visible(False)
        axes.xaxis.set_ticks_position("top")
        axes.spines["top"].set_position("zero")
        axes.spines["top"].set_visible(True)
        axes.set_xlim(1, len(mean))
        axes.set_xticks(range(1, len(mean) + 1))
        axes.set_xlabel("mean rank (1 is best)")
        axes.xaxis.set_label_position("top")
        # Each entrant has a line of its own below the axis: only now their number is known.
        depth = -axes.get_ylim()[0]
        figure.set_size_inches(width, 0.6 + 0.2 * depth)
        best = f"{names[0]} has the best mean rank, {mean.iloc[0]:.2f}."
        chart = Chart(
            key=key,
            title="Mean ranks and critical differences",
            about=f"{best} {ranks.about}",
        )
        return figure_to_svg(figure, chart)


def _draw_entrants(
    axes: Axes, mean: np.ndarray, labels: Sequence[str], lowest: int
) -> None:
    """Mark the entrants; the best half has its labels on the left, the others on the right."""
    n_left = (len(mean) + 1) // 2
    # Between a mark and its label, in ranks: a share of the axis.
    margin = 0.015 * (len(mean) - 1)
    for entrant, (rank, label) in enumerate(zip(mean, labels, strict=True)):
        is_left = entrant < n_left
        x = mean[0] - 2 * margin if is_left else mean[-1] + 2 * margin
        # outermost ranks come first, so that no line crosses another
        row = entrant if is_left else len(mean) - 1 - entrant
        y = lowest - 1 - row
        axes.plot([x, rank, rank], [y, y, 0], color=INK, linewidth=0.8)
        axes.scatter(rank, 0, s=16, color=INK, zorder=3)
        axes.text(
            x - margin if is_left else x + margin,
            y,
            label,
            ha="right" if is_left else "left",
            va="center",
            color=INK,
            size=9.5,
        )


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
