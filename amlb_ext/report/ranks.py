"""Frameworks ranked over tasks: Friedman's test and Nemenyi's comparisons.

A task is one block, whatever its number of folds: folds share training rows and are not
independent.

References
----------
Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7, 1-30.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, wilcoxon

from amlb_ext.report.model import FrameworkRanks
from amlb_ext.stats.pairwise import nemenyi_p_values

#: Fewer tasks than this tell next to nothing.
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
        return FrameworkRanks(
            mean=pd.Series(dtype=float),
            tasks=(),
            left_out=reasons,
            friedman_p=float("nan"),
            p=pd.DataFrame(),
            about="There is nothing to rank: fewer than two entrants share a task on which "
            "claims may be made.",
        )
    test = _test_ranks(losses)
    return FrameworkRanks(
        # Ties share the mean of their ranks; equal mean ranks keep the order of the columns.
        mean=losses.rank(axis=1).mean().sort_values(kind="stable"),
        tasks=tuple(str(task) for task in losses.index),
        left_out=reasons,
        friedman_p=test.friedman_p,
        p=test.p,
        about=test.about,
    )


@dataclass(frozen=True, kw_only=True)
class _RankTest:
    """Whether ranks differ; see :class:`~amlb_ext.report.model.FrameworkRanks`."""

    about: str
    friedman_p: float = float("nan")
    p: pd.DataFrame = field(default_factory=pd.DataFrame)


def _test_ranks(losses: pd.DataFrame) -> _RankTest:
    n_tasks, n_entrants = losses.shape
    if n_tasks < FEWEST_TASKS:
        plural = "" if n_tasks == 1 else "s"
        return _RankTest(
            about=f"{n_tasks} task{plural}: too few tasks to test; the ranks only describe."
        )
    values = losses.to_numpy(dtype=float)
    if (values == values[:, :1]).all():
        return _RankTest(about="All entrants have the same losses.")
    names = list(losses.columns)
    if n_entrants == 2:
        # Friedman's test needs three entrants; of two it would be the sign test.
        with warnings.catch_warnings():
            # Of ties and of few tasks, with which the p-value is approximate.
            warnings.simplefilter("ignore")
            test = wilcoxon(values[:, 0], values[:, 1])
        p_value = float(test.pvalue)
        return _RankTest(
            p=pd.DataFrame([[1.0, p_value], [p_value, 1.0]], names, names),
            about=f"Wilcoxon's signed-rank test over {n_tasks} tasks: p = {p_value:.3f}.",
        )
    friedman_p = float(friedmanchisquare(*values.T).pvalue)
    nemenyi_p = pd.DataFrame(nemenyi_p_values(values), names, names)
    caution = (
        " With so few tasks only large differences can show." if n_tasks < 10 else ""
    )
    return _RankTest(
        friedman_p=friedman_p,
        p=nemenyi_p,
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
