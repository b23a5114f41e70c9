"""The answer of a comparison, once what F and the models lose on each unit is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from amlb_ext.comparison.failures import compare_on_slices
from amlb_ext.comparison.place import describe_place
from amlb_ext.comparison.result import ModelComparison
from amlb_ext.core.task import Column
from amlb_ext.swap.answer import Side, SwapRows, judge_swaps
from amlb_ext.swap.segments import Segment
from amlb_ext.units.judged import answer


def answer_units(
    units: SwapRows,
    sides: Mapping[str, Side],
    *,
    columns: Sequence[Column] = (),
    fits: Mapping[str, pd.DataFrame] | None = None,
    segments: Sequence[Segment] = (),
    seed: int,
    **more: Any,
) -> ModelComparison:
    """Answer the three questions, and who is harmed, where F fails and on which slices.

    Parameters
    ----------
    units : SwapRows
        Rows or windows, judged, with their features.
    sides : mapping of str to Side
        Of the models.
    columns : sequence of Column
        Of the features, which slices are looked for in; none where there are no slices.
    fits : mapping of str to DataFrame, optional
        See :func:`amlb_ext.units.judged.answer`.
    segments : sequence of Segment
    seed : int
    **more
        Further attributes of the answer.
    """
    judged = units.judged
    compared = judged.compared
    losses = pd.DataFrame({name: side.losses for name, side in sides.items()})
    slices = pd.DataFrame()
    if columns:
        slices = compare_on_slices(units.table, columns, judged, losses, seed=seed)
    return ModelComparison(
        contrasts=answer(judged, losses, fits=fits).rename(
            columns={"candidate": "model"}
        ),
        n_rows=len(judged.is_bad),
        n_bad=int(judged.is_bad.sum()),
        rule=judged.rule,
        verb=judged.verb,
        weighting=judged.weighting,
        level=compared.level,
        refits=0 if compared.refits is None else compared.refits.shape[1],
        capping=compared.cap.sentence(compared.span),
        unit=judged.unit,
        slices=slices,
        swap=judge_swaps(units, sides, segments=segments, seed=seed),
        place=describe_place(judged, units.table),
        seed=seed,
        **more,
    )
