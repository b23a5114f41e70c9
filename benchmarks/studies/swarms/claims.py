"""The claims of the swarm paper, C1 to C8, each with what was found and a verdict.

A difference is taken within each draw and averaged over draws and tables of data; its interval is
clustered by the table where there are three or more, since what is asked is whether it holds on
another table. A claim *holds* where the interval lies above zero, *does not hold* where it lies
below, and is *open* otherwise. Fewer than ten draws explore, whatever their interval says.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict

from amlb_ext.core.display import format_with_spread
from amlb_ext.stats.weighted_mean import MIN_CLUSTERS, weighted_mean_interval
from benchmarks.studies.agreement import read_printed
from benchmarks.studies.swarms.methods import AGNOSTIC, GUIDED

#: Draws that a verdict needs to be more than exploration.
ENOUGH_DRAWS = 10
#: Share of the settings of Table 1 that the swarm must win for C1, and at least for "in part".
C1_SHARE, C1_PART = 15 / 16, 0.5
#: Objectives of Table 1.
TABLE_1 = ("difficult", "separate", "novel", "consistent")
FORMS = ("literal", "honest")
ALL = (*AGNOSTIC, *GUIDED)


class Question(BaseModel):
    """A claim, or a reading of it, as ``printed/claims.yaml`` states it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str
    asked: str
    printed: str
    rivals: tuple[str, ...]
    first: tuple[str, ...] = ("pso",)
    figure: str = "fresh"
    objectives: tuple[str, ...] = ("difficult",)
    forms: tuple[str, ...] = FORMS
    is_relative: bool = False
    of_means: bool = False


def judge_claims(table: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the claims that a table of the paper speaks of, with what was found.

    Parameters
    ----------
    table : str
    rows : DataFrame
        ``data, draw, form, objective, method, figure, value``.
    """
    n_draws = int(rows.groupby("data")["draw"].nunique().min())
    lines = []
    if table == "swarm-table-1":
        lines += [_count_wins(rows, form) for form in FORMS]
    for entry in read_printed("claims").get(table, ()):
        question = Question.model_validate(entry)
        for form in question.forms:
            line = _answer(question, form, rows)
            if line is not None:
                lines.append(line)
    for line in lines:
        if n_draws < ENOUGH_DRAWS:
            line["verdict"] += f"; exploratory, draws: {n_draws}"
    return pd.DataFrame(lines)


def _answer(question: Question, form: str, rows: pd.DataFrame) -> dict[str, str] | None:
    """Return a line of the claims; None where no draw has what is asked for."""
    chosen = rows[
        (rows["form"] == form)
        & (rows["figure"] == question.figure)
        & rows["objective"].isin(question.objectives)
    ]
    wide = chosen.pivot_table(
        index=["data", "draw", "objective"],
        columns="method",
        values="value",
        sort=False,
    )
    first = wide[[name for name in question.first if name in wide]]
    rivals = wide[[name for name in question.rivals if name in wide]]
    if first.empty or rivals.empty:
        return None
    if question.of_means:
        ours, other = first.mean(axis=1), rivals.mean(axis=1)
    else:
        ours, other = first.max(axis=1), rivals.max(axis=1)
    differences = ours - other
    if question.is_relative:
        # nothing to compare with where the other is zero
        differences = 100 * differences / other.where(other > 0)
    by_draw = differences.groupby(level=["data", "draw"], sort=False).mean().dropna()
    if by_draw.empty:
        return None
    clusters = pd.factorize(by_draw.index.get_level_values("data"))[0]
    if clusters.max() + 1 < MIN_CLUSTERS:
        # of one table or two, the spread over draws is all there is
        clusters = np.arange(len(by_draw))
    estimate = weighted_mean_interval(by_draw.to_numpy(), None, clusters)
    verdict = "open"
    if estimate.low > 0:
        verdict = "holds"
    elif estimate.high < 0:
        verdict = "does not hold"
    shown = format_with_spread(
        estimate.point, estimate.se, 1 if question.is_relative else 4, sign=True
    )
    return {
        "claim": question.code,
        "asked": f"{question.asked}; {form}",
        "the paper": question.printed,
        "here": f"{shown} %" if question.is_relative else shown,
        "verdict": verdict,
    }


def _count_wins(rows: pd.DataFrame, form: str) -> dict[str, str]:
    """Return C1: in how many settings the swarm's mean is above that of all eight baselines."""
    fresh = rows[
        (rows["form"] == form)
        & (rows["figure"] == "fresh")
        & rows["objective"].isin(TABLE_1)
    ]
    means = fresh.groupby(["data", "objective", "method"])["value"].mean().unstack()
    baselines = [name for name in ALL if name in means]
    won = means["pso"] > means[baselines].max(axis=1)
    # a breeder of rows knows the label of each row that it keeps, one of prompts does not
    others = [name for name in baselines if name != "breeder"]
    without = means["pso"] > means[others].max(axis=1)
    share = float(won.mean())
    verdict = "does not hold"
    if share >= C1_SHARE:
        verdict = "holds"
    elif share >= C1_PART:
        verdict = "in part"
    return {
        "claim": "C1",
        "asked": f"swarm above all eight baselines; {form}",
        "the paper": "15 of 16 settings",
        "here": f"{int(won.sum())} of {len(won)}; without the breeder {int(without.sum())}",
        "verdict": verdict,
    }
