"""Tables 1 to 3, the figures and the claims of the swarm paper as studies: one cell a draw.

The paper's data are texts and its takers language models: what can be compared is the order of
methods and its claims, C1 to C8, not a number.

Of a claim a difference is taken within each draw and averaged over draws and tables of data; its
interval is clustered by the table where there are three or more, since what is asked is whether it
holds on another table. A claim *holds* where the interval lies above zero, *does not hold* where it
lies below, and is *open* otherwise. Fewer than ten draws explore, whatever their interval says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict

from amlb_ext.stats.weighted_mean import MIN_CLUSTERS, weighted_mean_interval
from benchmarks.studies.engine import Labels, Rows, Study, grid
from benchmarks.studies.page import (
    Part,
    Picture,
    Table,
    compare_with_printed,
    format_with_spread,
    means_table,
    read_printed,
)
from benchmarks.studies.swarms.adversarial import ARMS, draw_adversarial
from benchmarks.studies.swarms.choices import EMBEDDED, KNOWN, SwarmChoice, tables_of
from benchmarks.studies.swarms.draw import draw_table_1, draw_table_2, draw_table_3
from benchmarks.studies.swarms.hull import (
    HULL_CAPTION,
    WORTH_CAPTION,
    draw_hull,
    draw_hull_figure,
    draw_worth,
    summarize_hull,
)
from benchmarks.studies.swarms.methods import AGNOSTIC, GUIDED, METHODS
from benchmarks.studies.swarms.populations import load_swarm_table

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


#: Settings of unseen takers of Table 2, and what stands for them here.
PRINTED_TAKERS = {"qwen": "refits", "open": "unseen", "closed": "unseen"}
NOTES = {
    "swarm-table-1": "fresh: on rows that no search saw, mean ± standard error over draws. "
    "Compositions are scaled by their spread over the initial generators.",
    "swarm-table-2": "Difficulty 1 − best accuracy. reported: what the search saw; fresh: its own "
    "measure on new rows; refits: the takers fitted on other rows; real: real test rows weighted "
    "to where the made rows are, with true labels ('-': too few real rows there). Form proof: an "
    "auditor's gain over the best taker on real rows, before any search.",
    "swarm-table-3": "All figures by the known truth: difficulty is noise plus excess, and only "
    "excess can be mended. Forms: searched by the truth's labels (literal), for excess under the "
    "truth (honest) or under a fitted teacher (fitted). On the straight line (toy) the linear "
    "taker is the truth, so every excess there is error of fitting.",
    "swarm-adversarial": "Accuracy on the untouched test fold. contradicted: share of made rows "
    "whose label the teacher contradicts.",
}


def _cells(
    data: tuple[str, ...], takes_files: bool, choice: SwarmChoice, folder: Path | None
) -> Iterator[Labels]:
    names = tables_of(data, choice, takes_files and folder is not None)
    return grid(data=names, draw="draws")(choice)


def printed_mean(table: str, objective: str, method: str, figure: str) -> float:
    """Return the printed number of a cell, of several data sets the mean; NaN for none.

    Examples
    --------
    >>> printed_mean("swarm-table-3", "difficult", "pso", "seen difficult")
    0.639
    """
    printed = read_printed("swarms").get(table, {})
    numbers = []
    if table == "swarm-table-1" and figure == "fresh":
        entry = printed.get(objective, {}).get(method, {})
        numbers = [values[0] for values in entry.values()]
    elif table == "swarm-table-2":
        for takers, ours in PRINTED_TAKERS.items():
            if ours == figure:
                numbers += list(printed[takers].get(method, {}).values())
    elif table == "swarm-table-3" and figure == f"seen {objective}":
        numbers = [printed[objective][method]] if method in printed[objective] else []
    return float(np.mean(numbers)) if numbers else float("nan")


def _summarize(table: str, rows: pd.DataFrame, choice: SwarmChoice) -> list[Part]:
    """Return the claims, then the figures, then what the paper prints beside ours."""
    cells = []
    labels = ["data", "form", "objective", "method", "figure"]
    for place, group in rows.groupby(labels, sort=False):
        paper = printed_mean(table, *place[2:])
        cell = dict(zip(labels, place, strict=True))
        cells.append(cell | compare_with_printed(group["value"], paper))
    parts: list[Part] = [
        Table(heading="Claims", frame=judge_claims(table, rows), file="claims.csv"),
        NOTES[table],
        *_figure_tables(table, rows),
        Table(heading="All figures", data=pd.DataFrame(cells), file="figures.csv"),
    ]
    if table == "swarm-table-2":
        picture = Picture(
            file="worth.svg", figure=draw_worth(rows), caption=WORTH_CAPTION
        )
        parts.append(picture)
    names = ARMS if table == "swarm-adversarial" else METHODS
    parts.append("\n".join(f"- {name}: {text}" for name, text in names.items()))
    return parts


def _figure_tables(table: str, rows: pd.DataFrame) -> Iterator[Table]:
    """Yield methods down; across, tables of data for one figure, or the figures of one table."""
    across, by = "figure", ["form", "objective", "data"]
    shown = rows
    if table in ("swarm-table-1", "swarm-adversarial"):
        across, by = "data", ["objective", "form"]
        shown = rows[rows["figure"].isin(["fresh", "accuracy"])]
    for place, group in shown.groupby(by, sort=False):
        frame = means_table(group, "method", across)
        if table == "swarm-table-1":
            printed = [
                printed_mean(table, place[0], name, "fresh") for name in frame["method"]
            ]
            frame.insert(1, "paper, mean", printed)
        yield Table(heading="; ".join(place), frame=frame)


def _summarize_plane(rows: pd.DataFrame, choice: SwarmChoice) -> list[Part]:
    first = rows[rows["draw"] == rows["draw"].iloc[0]]
    return [
        Table(
            heading="The plane of three generators",
            frame=summarize_hull(first),
            file="hull.csv",
            note="soups, anywhere: largest value in the triangle and in the square; truth: "
            "correlation with the excess by the truth.",
        ),
        Picture(file="hull.svg", figure=draw_hull_figure(first), caption=HULL_CAPTION),
    ]


#: One table of data shows what ten do.
SMALL = {
    "draws": 1,
    "iterations": 1,
    "rows": 100,
    "evaluation_rows": 40,
    "steps": 5,
    "base_steps": 10,
    "most_rows": 600,
    "least_rows": 60,
    "objectives": ("difficult", "personalised"),
    "tables": ("five_gaussians",),
}


def _study(
    name: str,
    title: str,
    compute: Callable[..., Rows],
    *,
    data: tuple[str, ...] = EMBEDDED,
    takes_files: bool = True,
) -> Study:
    return Study(
        name=name,
        title=f"Data Swarms, {title}",
        group="swarm",
        settings=SwarmChoice(),
        cells=partial(_cells, data, takes_files),
        load=load_swarm_table,
        compute=compute,
        summarize=partial(_summarize, name),
        small=SMALL,
    )


STUDIES = (
    _study(
        "swarm-table-1",
        "Table 1, figures 4 and 5: every method by every objective",
        draw_table_1,
    ),
    _study(
        "swarm-table-2",
        "Table 2: rows made difficult, given to models never seen",
        draw_table_2,
    ),
    _study(
        "swarm-table-3",
        "Table 3: where the truth is known",
        draw_table_3,
        data=KNOWN,
        takes_files=False,
    ),
    _study(
        "swarm-adversarial",
        "figures 2 and 3: generators and takers that evolve together",
        draw_adversarial,
    ),
    Study(
        name="swarm-hull",
        title="Data Swarms: all mixtures of three generators, objective and support",
        group="swarm",
        settings=SwarmChoice(draws=1),
        cells=grid(data=("interaction",), draw="draws"),
        load=load_swarm_table,
        compute=draw_hull,
        summarize=_summarize_plane,
        small={**SMALL, "tables": ()},
    ),
)
