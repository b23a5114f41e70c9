"""What a report tells of a task beside its verdicts: where F fails, and what a swap does.

Of rows and windows alike. Nothing of this ranks frameworks: bad units were chosen by F's errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.losses import Predicted
from amlb_ext.core.rng import random_stream
from amlb_ext.core.task import Column
from amlb_ext.report.charts import contrast_chart, slice_chart
from amlb_ext.report.compare import TaskComparison, best_first
from amlb_ext.report.model import BuiltTask, Chart, ColourRole, TaskReport
from amlb_ext.report.swaps import judged_frameworks, segments_of_task, swap_sections
from amlb_ext.swap.answer import Side, SwapRows, judge_swaps
from amlb_ext.units.slices import losses_on_slices, search_and_judge


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """What all tasks of a report have in common.

    Attributes
    ----------
    colours : mapping of str to ColourRole
        Colours of the frameworks.
    level : float
    points : int
        Most points of a chart, and of series most windows that are drawn; 0 for no charts.
    segments : sequence of str
        Columns and conditions, see :mod:`amlb_ext.swap.segments`.
    loss : optional
        What is compared, see :func:`amlb_ext.core.losses.read_loss`, the suite's own by default; of
        series a WindowLoss.
    swaps : bool
        Whether to tell who loses where F is replaced.
    refits : int
        How often F is fitted again in each fold, for a verdict on harm; 0 for none.
    """

    colours: Mapping[str, ColourRole]
    level: float
    points: int
    segments: Sequence[str]
    loss: Any
    swaps: bool = True
    refits: int = 0


def describe_task(
    task: str,
    comparison: TaskComparison,
    units: SwapRows,
    settings: TaskSettings,
    *,
    columns: Sequence[Column],
    loss: str,
    metric: str,
    predicted: Callable[[str], Predicted] | None = None,
    segment_table: pd.DataFrame | None = None,
    seed: int = 0,
) -> BuiltTask:
    """Describe where F fails in slices of the features, and what replacing it does.

    What only rows or only windows have is added to the report that is returned.

    Parameters
    ----------
    task : str
    comparison : TaskComparison
    units : SwapRows
        The units that are compared, with their features.
    settings : TaskSettings
    columns : sequence of Column
        Of the features.
    loss, metric : str
        What is compared, and the metric that goes with it.
    predicted : callable, optional
        From a framework to what it predicts of the units.
    segment_table : DataFrame of n rows, optional
        What segments are of; the features when omitted.
    seed : int
    """
    judged = comparison.judged
    contrasts = comparison.contrasts
    compared = judged.compared
    clusters = compared.clusters
    if clusters is None:
        clusters = np.arange(len(compared.loss_f))
    slices = search_and_judge(
        units.table,
        columns,
        bad=judged.is_bad,
        groups=clusters,
        rng=random_stream(seed, task, "report", "slices"),
    )
    slices.table.insert(0, "task", task)
    slice_losses = pd.DataFrame()
    # of pairs of rows a slice has no mean loss of its own
    if units.loss is None or not units.loss.is_of_pairs:
        incomplete = contrasts.loc[contrasts["verdict"] == "incomplete", "framework"]
        shown = [n for n in best_first(contrasts) if n not in set(incomplete)]
        slice_losses = losses_on_slices(
            task,
            slices=slices.table,
            inside=slices.inside,
            losses=comparison.losses[shown],
            loss_f=compared.loss_f,
            clusters=clusters,
            level=compared.level,
            cap=compared.cap,
        )
    found, lacking = segments_of_task(
        settings.segments, units.table if segment_table is None else segment_table
    )
    sides = {
        name: Side(
            losses=comparison.losses[name].to_numpy(),
            predicted=None if predicted is None else predicted(name),
        )
        for name in (judged_frameworks(contrasts) if settings.swaps else ())
    }
    swap = judge_swaps(units, sides, segments=found, seed=seed)
    charts: list[Chart | None] = []
    if settings.points:
        charts = [
            contrast_chart(
                f"{task}-contrasts", contrasts, settings.colours, judged.unit
            ),
            slice_chart(f"{task}-slices", slice_losses, settings.colours, loss=loss),
        ]
    return BuiltTask(
        report=TaskReport(
            name=task,
            title=task,
            unit=judged.unit,
            loss=loss,
            metric=metric,
            capping=compared.cap.sentence(compared.span),
            weighting=comparison.weighting,
            weighted=comparison.is_weighted,
            no_claim=comparison.no_claim,
            warnings=comparison.warnings,
            contrasts=contrasts,
            pairs=comparison.pairs,
            slices=slices.table,
            slice_losses=slice_losses,
            charts=tuple(chart for chart in charts if chart is not None),
            notes=tuple(
                f"{error.message}, so it is not judged here"
                for error in lacking.values()
            ),
            sections=swap_sections(task, swap, judged),
            swap=swap.without_trees(),
        ),
        losses=compared.cap.apply(comparison.losses),
        loss_f=compared.cap.apply(compared.loss_f),
        lacking=lacking,
        duels=comparison.duels,
        gains=comparison.gains,
    )
