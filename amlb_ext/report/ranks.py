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

import numpy as np
import pandas as pd
import scikit_posthocs
from scipy.stats import friedmanchisquare, wilcoxon

from amlb_ext.report.model import FrameworkRanks
from amlb_ext.stats.contrasts import choose_weighting

#: Fewer tasks than this tell next to nothing.
FEWEST_TASKS = 3


def rank_tasks(table: pd.DataFrame, left_out: Mapping[str, str] | None = None) -> FrameworkRanks:
    """Rank entrants over tasks by mean loss.

    Parameters
    ----------
    table : DataFrame of shape (tasks, entrants)
        Mean losses on the same rows of a task, smaller is better; NaN where an entrant has none.
    left_out : mapping of str to str, optional
        Tasks that are not in the table, and why.

    Returns
    -------
    Ranks
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
    without = dict(left_out or {})
    for task in table.index[table.isna().any(axis=1)]:
        names = ", ".join(map(str, table.columns[table.loc[task].isna()]))
        without[str(task)] = f"no losses of {names}"
    whole = table.dropna(axis=0)
    if whole.shape[1] < 2 or not len(whole):
        about = (
            "There is nothing to rank: fewer than two entrants share a task on which claims "
            "may be made."
        )
        return FrameworkRanks(
            pd.Series(dtype=float), (), without, float("nan"), pd.DataFrame(), about
        )
    mean = whole.rank(axis=1).mean().sort_values(kind="stable")
    tasks = tuple(map(str, whole.index))
    p_all, p, about = _tests(whole)
    return FrameworkRanks(mean, tasks, without, p_all, p, about)


def _tests(whole: pd.DataFrame) -> tuple[float, pd.DataFrame, str]:
    n, k = whole.shape
    nothing = float("nan"), pd.DataFrame()
    if n < FEWEST_TASKS:
        plural = "" if n == 1 else "s"
        return *nothing, f"{n} task{plural}: too few to test ranks, they only describe."
    values = whole.to_numpy(dtype=float)
    if (values == values[:, :1]).all():
        return *nothing, "All entrants have the same losses."
    names = list(whole.columns)
    if k == 2:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ties and few tasks: the p-value is approximate
            p_value = float(wilcoxon(values[:, 0], values[:, 1]).pvalue)
        p = pd.DataFrame([[1.0, p_value], [p_value, 1.0]], names, names)
        return float("nan"), p, f"Wilcoxon's signed-rank test over {n} tasks: p = {p_value:.3f}."
    p_all = float(friedmanchisquare(*values.T).pvalue)
    p = scikit_posthocs.posthoc_nemenyi_friedman(values)
    p.index = p.columns = pd.Index(names)
    weak = " With so few tasks only large differences can show." if n < 10 else ""
    return (
        p_all,
        p.astype(float),
        f"Friedman's test over {n} tasks and {k} entrants: p = {p_all:.3f}; entrants joined by a "
        f"bar do not differ by Nemenyi's test at .05.{weak}",
    )


def mean_losses(
    losses: pd.DataFrame,
    loss_f: np.ndarray,
    weights: np.ndarray | None,
    scored: pd.DataFrame,
    clusters: np.ndarray | None = None,
) -> pd.Series:
    """Return mean losses of F and every entrant on the rows that all have.

    They are weighted where the weights of just these rows are worth enough.

    Examples
    --------
    >>> losses = pd.DataFrame({"a": np.repeat([1.0, 3.0], 60)})
    >>> w = np.repeat([1.0, 3.0], 60)
    >>> mean_losses(losses, np.full(120, 2.0), w, losses.notna()).to_dict()
    {'F': 2.0, 'a': 2.5}
    """
    keep = scored.all(axis=1).to_numpy(dtype=bool)
    if not keep.any():
        return pd.Series(np.nan, index=["F", *losses.columns])
    own = None if weights is None else np.asarray(weights, dtype=float)[keep]
    w = choose_weighting(own, None if clusters is None else clusters[keep]).weights
    out = {"F": float(np.average(loss_f[keep], weights=w))}
    for name in losses.columns:
        out[str(name)] = float(np.average(losses[name].to_numpy(dtype=float)[keep], weights=w))
    return pd.Series(out)
