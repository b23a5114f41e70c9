"""What a report tells of a task beside its verdicts: where F fails, and what a swap does.

Of rows and windows alike. Nothing of this ranks frameworks: bad units were chosen by F's errors.
Who loses where F is replaced is judged as in :func:`hardsynth.compare`, on the units that are
compared; a framework about which nothing may be said there is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_level, format_percent
from amlb_ext.core.errors import ConfigError, DataError, HardsynthError
from amlb_ext.core.losses import Loss, Predicted
from amlb_ext.core.rng import random_stream
from amlb_ext.core.task import Column
from amlb_ext.report.charts import contrast_chart
from amlb_ext.report.compare import (
    TaskComparison,
    best_first,
    is_control_framework,
)
from amlb_ext.report.losses import predicted_by_f
from amlb_ext.report.model import BuiltTask, ColourRole, ReportSection, TaskReport
from amlb_ext.report.predictions import TaskPredictions
from amlb_ext.report.tables import percent_range
from amlb_ext.swap.answer import Side, Swap, SwapAnswer, SwapRows, judge_swaps
from amlb_ext.swap.harm import LEVEL
from amlb_ext.swap.segments import Segment, read_segments
from amlb_ext.units.judged import Judged
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
        series a Loss.
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
    slices = search_and_judge(
        units.table,
        columns,
        bad=judged.is_bad,
        groups=compared.groups,
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
            clusters=compared.groups,
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
    sections = []
    if swap.swaps:
        sections.append(_harm_section(task, swap, judged))
    if len(swap.segments):
        sections.append(_segment_section(task, swap, judged))
    reason = compared.weighting.reason
    how_units_count = f"{reason[0].upper()}{reason[1:]}."
    if not compared.weighting.is_weighted:
        how_units_count += " Nothing is claimed where F fails."
    chart = None
    if settings.points:
        chart = contrast_chart(
            f"{task}-contrasts", contrasts, settings.colours, judged.unit
        )
    return BuiltTask(
        report=TaskReport(
            name=task,
            title=task,
            unit=judged.unit,
            loss=loss,
            metric=metric,
            capping=compared.cap.sentence(compared.span),
            weighting=how_units_count,
            weighted=compared.weighting.is_weighted,
            no_claim=judged.no_claim,
            warnings=comparison.warnings,
            contrasts=contrasts,
            pairs=comparison.pairs,
            slices=slices.table,
            slice_losses=slice_losses,
            charts=() if chart is None else (chart,),
            notes=tuple(
                f"{error.message}, so it is not judged here"
                for error in lacking.values()
            ),
            sections=tuple(sections),
            swap=swap.without_trees(),
        ),
        losses=compared.cap.apply(comparison.losses),
        loss_f=compared.cap.apply(compared.loss_f),
        lacking=lacking,
        duels=comparison.duels,
        gains=comparison.gains,
    )


def segments_of_task(
    given: Sequence[str], table: pd.DataFrame
) -> tuple[list[Segment], dict[str, HardsynthError]]:
    """Return the segments that a task has, and why it lacks the others.

    Parameters
    ----------
    given : sequence of str
        Columns and conditions, see :func:`amlb_ext.swap.segments.read_segments`.
    table : DataFrame of n units

    Returns
    -------
    list of Segment
        Each name once.
    dict of str to HardsynthError
        By what was given.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [20, 30, 40, 50]})
    >>> found, lacking = segments_of_task(["age < 25", "size"], table)
    >>> [segment.name for segment in found], list(lacking)
    (['age < 25'], ['size'])
    """
    found: dict[str, Segment] = {}
    lacking: dict[str, HardsynthError] = {}
    for text in given:
        try:
            named = read_segments(text, table)
        except (ConfigError, DataError) as error:
            lacking[text] = error
            continue
        found |= {segment.name: segment for segment in named}
    return list(found.values()), lacking


def swap_rows(
    full: TaskPredictions,
    judged: Judged,
    features: pd.DataFrame,
    loss: Loss,
    refits: tuple[Side, ...] = (),
    no_refits: str = "",
) -> SwapRows:
    """Return the untouched test rows of a task, with F's own predictions of them.

    Parameters
    ----------
    full : TaskPredictions
    judged : Judged
    features : DataFrame of n rows
        In the order of ``full.rows``.
    loss : Loss
        What is compared.
    refits : tuple of Side
        See :func:`amlb_ext.report.refits.fit_baseline_again`. Those that a suite keeps are none:
        they saw a part of F's training rows alone.
    no_refits : str
        Why there are none.
    """
    return SwapRows(
        judged=judged,
        table=features,
        f=Side(losses=judged.compared.loss_f, predicted=predicted_by_f(full)),
        loss=loss,
        refits=refits,
        no_refits=no_refits,
    )


def judged_frameworks(contrasts: pd.DataFrame) -> list[str]:
    """Return the candidates of which something may be said on all units; others stand with why.

    Parameters
    ----------
    contrasts : DataFrame
        See :class:`amlb_ext.report.model.TaskReport`.
    """
    if not len(contrasts):
        return []
    overall = contrasts[contrasts["where"] == "all rows"]
    may_be_judged = ~overall["verdict"].isin(["incomplete", "no claim"])
    names = [str(name) for name in overall.loc[may_be_judged, "framework"]]
    return [name for name in names if not is_control_framework(name)]


def _harm_section(task: str, answer: SwapAnswer, judged: Judged) -> ReportSection:
    level = judged.compared.level
    flips = {}
    if len(answer.flips):
        over_all = answer.flips[answer.flips["segment"] == "all rows"]
        flips = {row["model"]: row for row in over_all.to_dict("records")}
    records = []
    for name, swap in answer.swaps.items():
        records.append(
            {
                "task": task,
                "framework": name,
                **_harm_record(swap, level, flips.get(name, {})),
            }
        )
    table = pd.DataFrame(records)
    many = judged.unit.many
    about = (
        f"The fifth of {many} where a framework is foreseen to lose, and the one where it is "
        f"foreseen to gain: change in percent of F’s mean loss over all {many} "
        f"({format_level(level)} interval). No fifth of the {many} that two conditions on "
        f"{judged.unit.features} name is worse by more than the bound."
    )
    if (table["verdict"] == "no verdict").all():
        why = next(iter(answer.swaps.values())).no_refits
        about += (
            " There is no verdict on harm: a model that is fitted again loses somewhere, too, and "
            f"F was not fitted again ({why})."
        )
    else:
        about += (
            f" Harm is a worst fifth that is worse than F, and than that of F fitted again "
            f"({format_percent(records[0]['refits'], sign=True)} on average)."
        )
    return ReportSection(
        key="harm",
        title="Who loses where F is replaced",
        about=about,
        table=table,
        shown=_shown_harm(table),
    )


def _harm_record(swap: Swap, level: float, flips: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of one framework; shares are of F's mean loss over all units."""
    record: dict[str, Any] = {
        "verdict": swap.verdict,
        "rows": swap.n,
        "loss_f": swap.base,
    }
    for fifth in ("worst", "best"):
        shares = swap.shares(swap.harm.groups[f"{fifth} fifth"], level)
        names = (f"{fifth}_fifth", f"{fifth}_low", f"{fifth}_high")
        record |= dict(zip(names, shares, strict=True))
    # words for rows that are not shown to lose would be words for chance
    words = swap.words if swap.harm.p <= LEVEL else None
    return record | {
        "refits": swap.share(swap.harm.by_refits),
        "p": swap.harm.p,
        "p_refits": swap.harm.p_refits,
        "bound": swap.share(swap.bound),
        "negative_flips": flips.get("negative", np.nan),
        "positive_flips": flips.get("positive", np.nan),
        "p_flips": flips.get("p", np.nan),
        "where": "" if words is None else words.text,
        "proposal": "" if swap.remedy is None else swap.remedy.formula(swap.name),
    }


def _change_text(change: float, low: float, high: float) -> str:
    """Return a change with its interval in percent: ``+48 % (30 to 65)``."""
    return f"{format_percent(change, sign=True)} ({percent_range(low, high)})"


def _shown_harm(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table as readers see it: intervals beside their values, no empty column."""
    records = table.to_dict("records")
    shown = pd.DataFrame({"framework": table["framework"]})
    if (table["verdict"] != "no verdict").any():
        shown["verdict"] = table["verdict"]
    for fifth in ("worst", "best"):
        names = (f"{fifth}_fifth", f"{fifth}_low", f"{fifth}_high")
        changes = [_change_text(*(row[name] for name in names)) for row in records]
        shown[f"{fifth} fifth"] = changes
    shown["bound"] = [format_percent(value, sign=True) for value in table["bound"]]
    if table["negative_flips"].notna().any():
        shown["right to wrong"] = table["negative_flips"]
        shown["wrong to right"] = table["positive_flips"]
    if table["where"].any():
        shown["mostly where"] = table["where"]
    if table["proposal"].any():
        shown["proposal"] = table["proposal"]
    return shown


def _segment_section(task: str, answer: SwapAnswer, judged: Judged) -> ReportSection:
    table = answer.segments.rename(columns={"model": "framework"})
    table.insert(0, "task", task)
    if len(answer.flips):
        flips = answer.flips.rename(
            columns={
                "model": "framework",
                "negative": "negative_flips",
                "positive": "positive_flips",
            }
        )
        counted = ["segment", "framework", "negative_flips", "positive_flips"]
        table = table.merge(flips[counted], how="left")
    shown = table[["segment", "framework"]].copy()
    shown[judged.unit.many] = table["rows"]
    loss_f = table["loss_f"].where(table["loss_f"] > 0)
    shares = table[["difference", "low", "high"]].div(loss_f, axis=0)
    shown["change"] = [_change_text(*row) for row in shares.to_numpy(dtype=float)]
    shown["verdict"] = table["verdict"]
    if "negative_flips" in table:
        shown["right to wrong"] = table["negative_flips"]
        shown["wrong to right"] = table["positive_flips"]
    return ReportSection(
        key="segments",
        title="Segments that you named",
        about=(
            "Change of the mean loss where a framework replaces F, in percent of F’s mean loss "
            "there; the intervals of a framework hold together."
        ),
        table=table,
        shown=shown,
    )
