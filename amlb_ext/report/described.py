"""What a report tells of a task beside its verdicts: where F fails, and what a swap does.

Of rows and windows alike. Nothing of this ranks frameworks: bad units were chosen by F's errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.rng import random_stream
from amlb_ext.core.task import Column
from amlb_ext.report.compare import TaskComparison
from amlb_ext.report.model import ReportSection
from amlb_ext.report.swaps import segments_of_task, swap_sections
from amlb_ext.swap.answer import Side, SwapAnswer, SwapRows, judge_swaps
from amlb_ext.units.slices import losses_on_slices, search_and_judge


@dataclass(frozen=True, kw_only=True)
class Described:
    """What is told of a task.

    Attributes
    ----------
    slices, slice_losses : DataFrame
        See :mod:`amlb_ext.units.slices`; both begin with the column ``task``.
    swap : SwapAnswer
        What replacing F by each framework does.
    sections : tuple of ReportSection
        The same as a report shows it.
    lacking : dict of str to HardsynthError
        Segments that the task has not, and why.
    """

    slices: pd.DataFrame
    slice_losses: pd.DataFrame
    swap: SwapAnswer
    sections: tuple[ReportSection, ...]
    lacking: Mapping[str, HardsynthError]


def describe_task(
    task: str,
    comparison: TaskComparison,
    units: SwapRows,
    sides: Mapping[str, Side],
    *,
    columns: Sequence[Column],
    shown: Sequence[str],
    segments: Sequence[str],
    segment_table: pd.DataFrame | None = None,
    seed: int = 0,
) -> Described:
    """Describe where F fails in slices of the features, and what replacing it does.

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
    shown : sequence of str
        Frameworks whose losses in slices are shown, the best first.
    segments : sequence of str
        Columns and conditions that a user names.
    segment_table : DataFrame of n rows, optional
        What segments are of; the features when omitted.
    seed : int
    """
    judged = comparison.judged
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
        slice_losses = losses_on_slices(
            task,
            slices=slices.table,
            inside=slices.inside,
            losses=comparison.losses[list(shown)],
            loss_f=compared.loss_f,
            clusters=clusters,
            level=compared.level,
            cap=compared.cap,
        )
    found, lacking = segments_of_task(
        segments, units.table if segment_table is None else segment_table
    )
    swap = judge_swaps(units, sides, segments=found, seed=seed)
    return Described(
        slices=slices.table,
        slice_losses=slice_losses,
        swap=swap.without_trees(),
        sections=swap_sections(task, swap, judged),
        lacking=lacking,
    )
