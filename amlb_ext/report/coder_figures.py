"""What is said of language models over several tasks: means with their spread, submissions, cost.

These are the figures of WeirdML (https://htihle.github.io/weirdml.html), beside those of every
other framework.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_decimals, format_percent
from amlb_ext.report.charts import framework_colours
from amlb_ext.report.coder_runs import (
    CoderRun,
    by_coder,
    coder_columns,
    curve_chart,
    curve_table,
    failures_section,
)
from amlb_ext.report.model import Chart, ChartSeries, ReportSection
from amlb_ext.stats.weighted_mean import weighted_mean_interval

_CURVE_ABOUT = (
    "Accuracy on the test rows after k submissions, mean over runs. Chosen: by held-out rows, "
    "which is how frameworks are compared. Max: by the labels of the test rows, which is WeirdML’s."
)


def headline_table(
    scores: pd.DataFrame,
    runs: Sequence[CoderRun],
    kinds: Mapping[str, str],
    level: float,
) -> pd.DataFrame:
    """Return a line for each framework: means over the tasks, and how far these spread.

    Parameters
    ----------
    scores : DataFrame
        A line for each task and framework: ``mean``, and of coders ``max_on_test``, ``failed``.
    runs : sequence of CoderRun
    kinds : mapping of str to str
        What each framework is.
    level : float
        Of the interval, which is over tasks and needs three.

    Returns
    -------
    DataFrame
        ``framework``, ``kind``, ``tasks``, ``selected``, ``low``, ``high``, ``sd`` (over tasks),
        and where there are coders ``max_on_test``, ``failed``, ``failed_sd`` (over tasks),
        ``cost_of_run``.
    """
    lines = []
    for framework, own in scores.groupby("framework", sort=False):
        means = own["mean"].dropna().to_numpy(dtype=float)
        interval = weighted_mean_interval(
            means, clusters=np.arange(len(means)), level=level
        )
        # unknown of any, it is unknown of all
        costs = [
            np.nan if run.cost is None else run.cost
            for run in runs
            if run.framework == framework
        ]
        lines.append(
            {
                "framework": framework,
                "kind": kinds[str(framework)],
                "tasks": len(means),
                "selected": means.mean() if len(means) else np.nan,
                "low": max(interval.low, 0.0),
                "high": min(interval.high, 1.0),
                "sd": own["mean"].std(),
                "max_on_test": own["max_on_test"].mean(),
                "failed": own["failed"].mean(),
                "failed_sd": own["failed"].std(),
                "cost_of_run": np.mean(costs) if costs else np.nan,
            }
        )
    table = pd.DataFrame(lines).sort_values("selected", ascending=False, kind="stable")
    if "coder" not in kinds.values():
        table = table.loc[:, :"sd"]
    return table.reset_index(drop=True)


def submissions_section(
    runs: Sequence[CoderRun], kinds: Mapping[str, str], charts: bool
) -> ReportSection:
    """Return how far each further submission helps, over all tasks."""
    curve = curve_table(runs)
    table = curve.groupby(["framework", "k"], sort=False)[["chosen", "max_on_test"]]
    means = table.mean().reset_index()
    section = ReportSection(
        key="submissions",
        title="Score by number of submissions",
        about=f"{_CURVE_ABOUT} Each task counts as much as another.",
        table=means,
    )
    if not (charts and len(means)):
        return section
    chart = Chart(
        key=section.key,
        title=section.title,
        about=_CURVE_ABOUT,
        x_label="submissions k",
        y_label="accuracy, mean over the tasks",
    )
    names = {"chosen": ", chosen", "max_on_test": ", max on test"}
    return replace(section, charts=(curve_chart(chart, means, kinds, names),))


def cost_chart(headline: pd.DataFrame, kinds: Mapping[str, str]) -> Chart | None:
    """Return cost of a run against accuracy, of the coders whose cost is known; None for none."""
    known = headline.dropna(subset=["cost_of_run", "selected"])
    if known.empty:
        return None
    colours = framework_colours(list(kinds))
    series = []
    told = []
    for place, line in enumerate(known.to_dict("records")):
        name = str(line["framework"])
        text = (
            f"{name}: {line['cost_of_run']:.3g} for {format_decimals(line['selected'])}"
        )
        told.append(text)
        series.append(
            ChartSeries(
                name=name,
                kind="points",
                x=np.array([line["cost_of_run"]]),
                y=np.array([line["selected"]]),
                role=colours[name],
                text=(text,),
                symbol=place % 6,
            )
        )
    return Chart(
        key="cost",
        title="Cost against score",
        about=f"What a run costs, and the mean accuracy over the tasks. {'; '.join(told)}.",
        x_label="cost of a run, in the unit of the price",
        y_label="accuracy, mean over the tasks",
        series=tuple(series),
    )


def run_violins(
    shown: Sequence[str],
    values: Mapping[str, np.ndarray],
    kinds: Mapping[str, str],
) -> list[ChartSeries]:
    """Return the distribution of each framework's runs, one line of a chart each."""
    colours = framework_colours(list(kinds))
    violins = []
    for position, name in enumerate(shown):
        runs = values[name]
        violins.append(
            ChartSeries(
                name=name,
                kind="violin",
                x=runs,
                y=np.full(len(runs), float(position)),
                role="f" if kinds[name] == "reference" else colours[name],
                text=tuple(f"{name}: {value:.3f}" for value in runs),
            )
        )
    return violins


def runs_chart(jobs: pd.DataFrame, kinds: Mapping[str, str]) -> Chart:
    """Return all runs of all tasks, by framework."""
    scored = jobs[jobs["status"] == "scored"]
    values = {
        str(name): own["score"].to_numpy(dtype=float)
        for name, own in scored.groupby("framework")
    }
    shown = [name for name in kinds if name in values]
    medians = ", ".join(f"{name} {np.median(values[name]):.3f}" for name in shown)
    return Chart(
        key="all-runs",
        title="Runs of all tasks",
        about=f"A point is a run. Medians: {medians}.",
        x_label="accuracy",
        y_label="",
        series=tuple(run_violins(shown, values, kinds)),
        y_categories=tuple(shown),
    )


def beside_systems(
    runs: Sequence[CoderRun], test_rows: Mapping[str, int]
) -> tuple[ReportSection, ...]:
    """Return what only coders have, in the report of a suite that compares with F.

    There the claims are those of all frameworks, on the same rows; this says what stands behind a
    coder's predictions.

    Parameters
    ----------
    runs : sequence of CoderRun
    test_rows : mapping of str to int
        By AMLB task; runs on others are left out.
    """
    runs = [run for run in runs if run.task in test_rows]
    if not runs:
        return ()
    lines = []
    for (task, framework), group in by_coder(runs).items():
        own = [run for run in group if run.is_models_own]
        accuracies = [run.selected for run in own]
        line = {"task": task, "framework": framework, "runs": len(own)}
        line["accuracy"] = float(np.mean(accuracies)) if own else np.nan
        lines.append(line | coder_columns(own, test_rows[task]))
    table = pd.DataFrame(lines)
    failed = format_percent(table["failed"].mean())
    literal = sorted({run.framework for run in runs if run.is_literal})
    told = f"{failed} of the submissions failed. "
    if literal:
        told += (
            "Told the accuracy on the test rows, as WeirdML does, and so not comparable: "
            f"{', '.join(literal)}. "
        )
    return (
        ReportSection(
            key="coders",
            title="Coders",
            about=f"{told}Accuracy is of the predictions that all comparisons above rest on. Never "
            "compare max on test with another framework: the labels of the test rows chose it.",
            table=table,
            percents=("failed",),
        ),
        ReportSection(
            key="curve",
            title="Score by number of submissions",
            about=_CURVE_ABOUT,
            table=curve_table(runs),
        ),
        failures_section(runs),
    )
