"""Who wins against whom over tasks, by what is shown, and what is left to gain on each.

A task counts as a win where a difference on all rows is shown, by the verdicts of the report: F's
by the contrasts with F, those between two frameworks by
:func:`amlb_ext.stats.pairwise.compare_pairs`. Beside it stands on how many tasks a framework has
the smaller mean loss, shown or not. Tasks are the sample: folds of one task share training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.display import (
    format_decimals,
    format_level,
    format_percent,
    shorten_text,
)
from amlb_ext.core.unit import F, Unit
from amlb_ext.report.charts import interval_mark
from amlb_ext.report.model import Chart, ReportSection
from amlb_ext.report.overall import mean_change
from amlb_ext.report.ranks import FEWEST_TASKS
from amlb_ext.report.tables import percent_range
from amlb_ext.stats.bounded_mean import clopper_pearson


def win_section(
    contrasts: Sequence[pd.DataFrame],
    duels: Sequence[pd.DataFrame],
    unit: Unit,
    level: float,
) -> ReportSection | None:
    """Return the matrix of wins; None for fewer than three tasks or two entrants.

    Parameters
    ----------
    contrasts, duels : sequence of DataFrame
        Of each task: candidates against F, without F's controls, and against each other.
    unit : Unit
    level : float
    """
    table = win_table(contrasts, duels, level)
    if not len(table) or table["tasks"].max() < FEWEST_TASKS:
        return None
    return ReportSection(
        key="wins",
        title="Who wins against whom",
        about=(
            f"In each row: on how many tasks a framework is shown to be better and to be worse on "
            f"all {unit.many} than that of the column, of those on which both have whole results; "
            f"below, the share of tasks on which its mean loss is the smaller one, shown or not, "
            f"with its {format_level(level)} interval over tasks (Clopper and Pearson). Sorted by "
            "the rank that counts what is not shown as a tie."
        ),
        table=table,
        shown=_win_matrix(table),
        most=max(30, len(table)),
        is_for_papers=True,
    )


def win_table(
    contrasts: Sequence[pd.DataFrame], duels: Sequence[pd.DataFrame], level: float
) -> pd.DataFrame:
    """Return a row for each ordered pair of entrants, F among them.

    Parameters
    ----------
    contrasts, duels : sequence of DataFrame
        See :func:`win_section`.
    level : float

    Returns
    -------
    DataFrame
        ``tasks`` are those on which both have whole results; of the ``undecided`` some have no
        verdict at all. ``smaller_loss`` counts tasks, ``share`` is of those without a tie.
        ``change`` is the geometric mean of the ratio of the two losses, less 1, with its t interval
        over tasks; the first framework is better where it is negative.

    Examples
    --------
    >>> contrasts = pd.DataFrame({
    ...     "framework": ["a"], "where": "all rows", "verdict": "better", "loss": [1.0],
    ...     "loss_f": [2.0]})
    >>> table = win_table([contrasts] * 3, [], 0.95)
    >>> table[["framework", "other", "better", "worse", "share", "change"]].values.tolist()
    [['a', 'F', 3, 0, 1.0, -0.5], ['F', 'a', 0, 3, 0.0, 1.0]]
    """
    met: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for table in contrasts:
        overall = table[table["where"] == "all rows"] if len(table) else table
        for row in overall.to_dict("records"):
            duel = {**row, "other": F, "loss_other": row["loss_f"]}
            met.setdefault((row["framework"], F), []).append(duel)
    for table in duels:
        for row in table.to_dict("records"):
            met.setdefault((row["framework"], row["other"]), []).append(row)
    records = []
    for (first, second), rows in met.items():
        whole = [row for row in rows if row["verdict"] != "incomplete"]
        records.append(_win_record(first, second, whole, level, is_turned=False))
        records.append(_win_record(second, first, whole, level, is_turned=True))
    return pd.DataFrame(records)


def _win_record(
    first: str,
    second: str,
    rows: Sequence[dict[str, Any]],
    level: float,
    *,
    is_turned: bool,
) -> dict[str, Any]:
    """Return what is counted of two entrants over tasks, seen from the first."""
    verdicts = [row["verdict"] for row in rows]
    better, worse = verdicts.count("better"), verdicts.count("worse")
    losses = np.array([[row["loss"], row["loss_other"]] for row in rows], dtype=float)
    losses = losses.reshape(-1, 2)
    if is_turned:
        better, worse = worse, better
        losses = losses[:, ::-1]
    own, others = losses.T
    untied = own != others
    share = clopper_pearson((own < others)[untied].astype(float), level)
    with np.errstate(divide="ignore", invalid="ignore"):
        change = mean_change(own / others - 1, level)
    return {
        "framework": first,
        "other": second,
        "tasks": len(rows),
        "better": better,
        "worse": worse,
        "undecided": len(rows) - better - worse,
        "smaller_loss": int((own < others).sum()),
        "share": share.point,
        "share_low": share.low,
        "share_high": share.high,
        "change": change.point,
        "change_low": change.low,
        "change_high": change.high,
    }


def shown_ranks(table: pd.DataFrame) -> pd.Series:
    """Return the mean rank of each entrant over tasks, best first: what is not shown is a tie.

    On a task an entrant stands behind those that are shown to be better, and shares its place with
    those of which nothing is shown: its rank is 1, and 1 more for each of the former and a half for
    each of the latter. Without whole results of both a pair counts by its other tasks; an entrant
    that has them on fewer than half of the tasks has no rank (NaN) and comes last.

    Parameters
    ----------
    table : DataFrame
        See :func:`win_table`.

    Examples
    --------
    >>> table = pd.DataFrame({"framework": ["a", "F"], "other": ["F", "a"], "tasks": 4,
    ...                       "better": [2, 0], "worse": [0, 2], "undecided": 2})
    >>> shown_ranks(table).to_dict()
    {'a': 1.25, 'F': 1.75}
    """
    met = table[table["tasks"] > 0]
    behind = (met["worse"] + met["undecided"] / 2) / met["tasks"]
    ranks = 1 + behind.groupby(met["framework"]).sum()
    n_tasks = met.groupby("framework")["tasks"].max()
    return ranks.where(2 * n_tasks >= n_tasks.max()).sort_values(kind="stable")


def _win_matrix(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table as readers see it: entrants by entrants, the best first."""
    ranks = shown_ranks(table)
    cells = {
        (row["framework"], row["other"]): _win_text(row)
        for row in table.to_dict("records")
    }
    rows = []
    for name, rank in ranks.items():
        row = {"framework": name, "rank by what is shown": format_decimals(rank)}
        for other in ranks.index:
            row[f"against {other}"] = cells.get((name, other), "–")
        rows.append(row)
    return pd.DataFrame(rows)


def _win_text(row: dict[str, Any]) -> str:
    """Return ``7 better, 1 worse of 10; 80 % (44 to 97)``."""
    if not row["tasks"]:
        return "no task"
    text = f"{row['better']} better, {row['worse']} worse of {row['tasks']}"
    if not np.isfinite(row["share"]):
        return text
    limits = percent_range(row["share_low"], row["share_high"])
    return f"{text}; {format_percent(row['share'])} ({limits})"


def gain_section(
    records: Sequence[dict[str, Any]], unit: Unit, level: float, *, charts: bool
) -> ReportSection | None:
    """Return what is left to gain on each task; None where nothing was compared.

    Parameters
    ----------
    records : sequence of dict
        See :func:`amlb_ext.report.compare.left_to_gain`.
    unit : Unit
    level : float
    charts : bool
    """
    if len({record["task"] for record in records}) < FEWEST_TASKS:
        return None
    table = pd.DataFrame(records).sort_values(
        ["where", "low", "saved"], ascending=[True, False, False], kind="stable"
    )
    shown = pd.DataFrame({"task": table["task"].drop_duplicates().to_list()})
    for where, title in (("all rows", f"all {unit.many}"), ("region", "where F fails")):
        own = table[table["where"] == where].set_index("task")
        texts = {task: _gain_text(row) for task, row in own.iterrows()}
        shown[title] = shown["task"].map(texts).fillna("–")
        if where == "all rows":
            shown["best"] = shown["task"].map(own["best"])
    return ReportSection(
        key="left_to_gain",
        title="What is left to gain",
        about=(
            "The share of F’s loss that the best of these frameworks saves, with its "
            f"{format_level(level)} interval: the framework is chosen without the rows that judge "
            "it, and F itself is one, which saves 0. It is about these models as they were fitted; "
            "one that was not run may save more."
        ),
        table=table,
        shown=shown,
        charts=(_gain_chart(table[table["where"] == "all rows"], unit),)
        if charts
        else (),
        is_for_papers=True,
    )


def _gain_text(row: pd.Series) -> str:
    low, high = format_percent(row["low"], ""), format_percent(row["high"], "")
    return f"{format_percent(row['saved'])} ({low} to {high})"


def _gain_chart(table: pd.DataFrame, unit: Unit) -> Chart:
    marks = [
        interval_mark(
            row["best"],
            position,
            (100 * row["saved"], 100 * row["low"], 100 * row["high"]),
            role="c0",
            text=f"{shorten_text(row['task'], 40)}: {row['best']} saves {_gain_text(row)}",
        )
        for position, (_, row) in enumerate(table.iterrows())
    ]
    return Chart(
        key="left_to_gain",
        title="Left to gain",
        about=f"Share of F’s loss on all {unit.many} that the best framework saves, by task.",
        x_label="percent of F’s loss",
        series=tuple(replace(mark, name="") for mark in marks),
        y_categories=tuple(shorten_text(name, 40) for name in table["task"]),
        guides=("zero",),
    )
