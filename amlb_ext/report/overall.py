"""Frameworks over all tasks: how often better and worse than F, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.report.compare import is_control_framework
from amlb_ext.report.model import FrameworkRanks, TaskReport
from amlb_ext.stats.weighted_mean import (
    MeanEstimate,
    holm_adjusted,
    weighted_mean_interval,
)

#: What is counted of each question.
_COUNTED = (
    "better",
    "worse",
    "undecided",
    "withheld",
    "better_family",
    "relative",
    "low",
    "high",
)
#: Where each question is asked, and what stands before its columns.
PREFIXES = {"all rows": "overall_", "region": ""}
COLUMNS = (
    "framework",
    "tasks",
    *(f"overall_{name}" for name in _COUNTED),
    *_COUNTED,
    "larger",
    "mean_rank",
)
#: Verdicts of contrasts that are not judged.
WITHHELD = ("incomplete", "no claim")
#: A loss this many times F's, or this many times smaller, counts as that in a mean: a loss of 0
#: has no logarithm, and one task would decide the mean of all.
LARGEST_RATIO = 100.0


def overall_table(
    tasks: Sequence[TaskReport], ranks: FrameworkRanks, level: float = 0.95
) -> pd.DataFrame:
    """Return one row per framework, the largest saving first; see ``SuiteReport.overall``.

    The mean change of F's loss over tasks is geometric; tasks without a verdict are not in it, and
    there is none where results of a task are missing.
    ``better_family`` counts tasks on which a framework is ``better`` even when p-values are
    Holm-adjusted over all tasks, candidates and both questions.
    """
    tables = [task.contrasts for task in tasks if len(task.contrasts)]
    if not tables:
        return pd.DataFrame(columns=list(COLUMNS))
    contrasts = pd.concat(tables, ignore_index=True)
    is_better_family = better_in_family(contrasts, 1 - level)
    rows = []
    for framework, own_contrasts in contrasts.groupby("framework", sort=False):
        row: dict[str, Any] = {"framework": framework}
        for where, prefix in PREFIXES.items():
            asked = own_contrasts[own_contrasts["where"] == where]
            row["tasks"] = len(asked)
            counted = _count_verdicts(asked, is_better_family[asked.index], level)
            # whoever leaves out a task may have left out the worst
            if "incomplete" in set(asked["verdict"]):
                counted |= dict.fromkeys(("relative", "low", "high"), np.nan)
            row |= {f"{prefix}{name}": value for name, value in counted.items()}
        row["larger"] = int((own_contrasts["verdict"] == "larger gain").sum())
        row["mean_rank"] = float(ranks.mean.get(framework, np.nan))
        rows.append(row)
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    is_control = table["framework"].map(is_control_framework).to_numpy()
    change = table["overall_relative"].to_numpy(dtype=float)
    # The last key sorts first: candidates before F's controls, then the largest saving.
    order = np.lexsort((change, is_control))
    return table.iloc[order].reset_index(drop=True)


def _count_verdicts(
    asked: pd.DataFrame, is_better_family: np.ndarray, level: float
) -> dict[str, Any]:
    """Return what is counted of one framework and one question, over all tasks."""
    verdicts = asked["verdict"]
    is_withheld = verdicts.isin(WITHHELD)
    changes = asked.loc[~is_withheld, "relative"].to_numpy(dtype=float)
    mean_change = _mean_change(changes, level)
    n_by_verdict = verdicts.value_counts()
    return {
        "better": int(n_by_verdict.get("better", 0)),
        "worse": int(n_by_verdict.get("worse", 0)),
        "undecided": int(n_by_verdict.get("undecided", 0)),
        "withheld": int(is_withheld.sum()),
        "better_family": int(is_better_family.sum()),
        "relative": mean_change.point,
        "low": mean_change.low,
        "high": mean_change.high,
    }


def _mean_change(changes: np.ndarray, level: float) -> MeanEstimate:
    """Return the geometric mean of 1 + change over tasks, less 1, and its t interval.

    Twice F's loss on one task and half of it on another cancel; the arithmetic mean of +100 % and
    -50 % would call that a loss. Tasks are the sample: folds of one task share training rows and
    are not independent.
    """
    is_ratio = ~np.isnan(changes)
    ratios = np.clip(1 + changes[is_ratio], 1 / LARGEST_RATIO, LARGEST_RATIO)
    mean = weighted_mean_interval(np.log(ratios), level=level)
    return replace(
        mean,
        point=float(np.expm1(mean.point)),
        low=float(np.expm1(mean.low)),
        high=float(np.expm1(mean.high)),
    )


def better_in_family(contrasts: pd.DataFrame, alpha: float) -> np.ndarray:
    """Return which contrasts stay better when p-values are adjusted over the whole report.

    Where F fails both claims behind ``better`` (unlike F, unlike its re-fits) must hold, so the
    larger of the two p-values is adjusted (intersection-union).
    """
    is_control = contrasts["framework"].map(is_control_framework)
    is_withheld = contrasts["verdict"].isin(WITHHELD)
    is_third = ~contrasts["where"].isin(list(PREFIXES))
    larger_p = contrasts[["p", "p_null"]].max(axis=1)
    # NaN is no member of the family.
    family_p = larger_p.mask(is_control | is_withheld | is_third).to_numpy(dtype=float)
    is_better = (contrasts["verdict"] == "better").to_numpy()
    return is_better & (holm_adjusted(family_p) < alpha)
