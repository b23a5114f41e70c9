"""Tables 1 to 3 and the figures of the swarm paper as studies: one cell a draw of a table of data.

The paper's data are texts and its takers language models: what can be compared is the order of
methods and its claims, not a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError, SourceError
from amlb_ext.core.task import Task
from benchmarks.studies.agreement import compare_with_printed, read_printed
from benchmarks.studies.engine import Cell, Plan, Rows, Study
from benchmarks.studies.page import Part, Picture, Table, means_table
from benchmarks.studies.swarms.adversarial import ARMS, draw_adversarial
from benchmarks.studies.swarms.choices import EMBEDDED, KNOWN, SwarmChoice, tables_of
from benchmarks.studies.swarms.claims import judge_claims
from benchmarks.studies.swarms.data import load_swarm_table
from benchmarks.studies.swarms.draw import draw_table_1, draw_table_2, draw_table_3
from benchmarks.studies.swarms.hull import draw_hull, summarize_hull
from benchmarks.studies.swarms.methods import METHODS
from benchmarks.studies.swarms.pictures import (
    HULL_CAPTION,
    WORTH_CAPTION,
    draw_hull_figure,
    draw_worth,
)

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

Draw = Callable[[Task | None, str, int, SwarmChoice], Rows]


def _plan(
    data: tuple[str, ...],
    takes_files: bool,
    compute: Draw,
    choice: SwarmChoice,
    folder: Path | None,
) -> Plan:
    left_out: dict[str, str] = {}
    cells = []
    for name in tables_of(data, choice, takes_files and folder is not None):
        try:
            task = load_swarm_table(name, folder, choice.most_rows)
        except (SourceError, DataError) as error:
            # the other tables are run, and the page says what lacks
            left_out[name] = str(error)
            continue
        for number in range(choice.draws):
            cells.append(
                Cell(
                    labels={"data": name, "draw": number},
                    compute=compute,
                    arguments=(task, name, number, choice),
                    # a simulated table follows from its name and the draw
                    content="" if task is None else task.content_hash,
                )
            )
    return Plan(cells=cells, left_out=left_out)


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
    compute: Draw,
    *,
    data: tuple[str, ...] = EMBEDDED,
    takes_files: bool = True,
) -> Study:
    return Study(
        name=name,
        title=f"Data Swarms, {title}",
        group="swarm",
        settings=SwarmChoice(),
        plan=partial(_plan, data, takes_files, compute),
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
        plan=partial(_plan, ("interaction",), False, draw_hull),
        summarize=_summarize_plane,
        small={**SMALL, "tables": ()},
    ),
)
