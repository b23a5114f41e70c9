"""What is said of language models over several tasks: means with their spread, submissions, cost.

These are the figures of WeirdML (https://htihle.github.io/weirdml.html), beside those of every
other framework.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_decimals, format_percent
from amlb_ext.report.charts import framework_colours
from amlb_ext.report.coder_runs import CoderRun, coder_columns, coder_tables
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
                "cost_of_run": _cost_of_run(runs, str(framework)),
            }
        )
    table = pd.DataFrame(lines).sort_values("selected", ascending=False, kind="stable")
    if "coder" not in kinds.values():
        table = table.loc[:, :"sd"]
    return table.reset_index(drop=True)


def _cost_of_run(runs: Sequence[CoderRun], framework: str) -> float:
    """Return what a run costs on average; NaN where that is unknown of any."""
    costs = [run.cost for run in runs if run.framework == framework]
    known = [cost for cost in costs if cost is not None]
    return float(np.mean(known)) if known and len(known) == len(costs) else np.nan


def submissions_section(
    runs: Sequence[CoderRun], kinds: Mapping[str, str], charts: bool
) -> ReportSection:
    """Return how far each further submission helps, over all tasks."""
    curve = coder_tables(runs).curve
    table = curve.groupby(["framework", "k"], sort=False)[["chosen", "max_on_test"]]
    means = table.mean().reset_index()
    chart = _submissions_chart(means, kinds) if charts and len(means) else None
    return ReportSection(
        key="submissions",
        title="Score by number of submissions",
        about=f"{_CURVE_ABOUT} Each task counts as much as another.",
        table=means,
        charts=() if chart is None else (chart,),
    )


def _submissions_chart(means: pd.DataFrame, kinds: Mapping[str, str]) -> Chart:
    colours = framework_colours(list(kinds))
    series = []
    for coder, line in means.groupby("framework", sort=False):
        for column, name in (("chosen", "chosen"), ("max_on_test", "max on test")):
            series.append(
                ChartSeries(
                    name=f"{coder}, {name}",
                    kind="line",
                    x=line["k"].to_numpy(dtype=float) - 1,
                    y=line[column].to_numpy(dtype=float),
                    role=colours[str(coder)],
                )
            )
    return Chart(
        key="submissions",
        title="Score by number of submissions",
        about=_CURVE_ABOUT,
        x_label="submissions k",
        y_label="accuracy, mean over the tasks",
        series=tuple(series),
        x_categories=tuple(str(k) for k in range(1, means["k"].max() + 1)),
    )


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
    groups: dict[tuple[str, str], list[CoderRun]] = {}
    for run in runs:
        groups.setdefault((run.task, run.framework), []).append(run)
    for (task, framework), group in groups.items():
        own = [run for run in group if run.is_models_own]
        accuracies = [run.selected for run in own]
        line = {"task": task, "framework": framework, "runs": len(own)}
        line["accuracy"] = float(np.mean(accuracies)) if own else np.nan
        lines.append(line | coder_columns(own, test_rows[task]))
    table = pd.DataFrame(lines)
    tables = coder_tables(runs)
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
            table=tables.curve,
        ),
        ReportSection(
            key="failures",
            title="Why submissions failed",
            about="Share of the submissions that count, by reason.",
            table=tables.failures,
            percents=("share",),
        ),
    )
