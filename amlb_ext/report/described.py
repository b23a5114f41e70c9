"""What a report tells of a task beside its verdicts: where F fails, and what a swap does.

Of rows and windows alike. Nothing of this ranks frameworks: bad units were chosen by F's errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from amlb_ext.core.rng import random_stream
from amlb_ext.core.task import Column
from amlb_ext.report.compare import TaskComparison, best_first
from amlb_ext.report.model import BuiltTask, TaskReport
from amlb_ext.report.swaps import segments_of_task, swap_sections
from amlb_ext.swap.answer import Side, SwapRows, judge_swaps
from amlb_ext.units.slices import losses_on_slices, search_and_judge


def describe_task(
    task: str,
    comparison: TaskComparison,
    units: SwapRows,
    sides: Mapping[str, Side],
    *,
    columns: Sequence[Column],
    segments: Sequence[str],
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
    sides : mapping of str to Side
        Frameworks of which something may be said on all units.
    columns : sequence of Column
        Of the features.
    segments : sequence of str
        Columns and conditions that a user names.
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
        segments, units.table if segment_table is None else segment_table
    )
    swap = judge_swaps(units, sides, segments=found, seed=seed)
    return BuiltTask(
        report=TaskReport(
            name=task,
            title=task,
            unit=judged.unit,
            capping=compared.cap.sentence(compared.span),
            weighting=comparison.weighting,
            weighted=comparison.is_weighted,
            no_claim=comparison.no_claim,
            warnings=comparison.warnings,
            contrasts=contrasts,
            pairs=comparison.pairs,
            slices=slices.table,
            slice_losses=slice_losses,
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
