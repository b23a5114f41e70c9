"""Compare losses that are known already: of any models, or of what is no model at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.comparison.answer import answer_units
from amlb_ext.comparison.result import ModelComparison
from amlb_ext.core.checked_call import Level, Seed, check_candidates, checked_call
from amlb_ext.core.errors import DataError
from amlb_ext.core.frames import to_pandas
from amlb_ext.core.numbers import plain_floats
from amlb_ext.core.unit import ROW
from amlb_ext.models.columns import Align, align_rows
from amlb_ext.models.given_table import GivenTable
from amlb_ext.stats.contrasts import ComparedUnits
from amlb_ext.swap.answer import Side, SwapRows
from amlb_ext.swap.segments import read_segments
from amlb_ext.units.judged import Judged
from amlb_ext.units.labelled import LEAST_ROWS, read_labelled_rows, read_row_order
from amlb_ext.units.region import RegionWeights
from amlb_ext.units.rows import weigh_rows

#: Share of the rows with the largest losses that are bad where losses have many values.
BAD_SHARE = 0.1


@checked_call
def compare_losses(
    loss_F: Any,
    losses: Any,
    X: Any = None,
    *,
    groups: Any = None,
    time: Any = None,
    segments: Any = None,
    refits: Any = None,
    level: Level = 0.95,
    seed: Seed = 0,
    align: Align = "auto",
) -> ModelComparison:
    """Compare losses of the same rows, such as those of an evaluation's log.

    What :func:`hardsynth.compare` says of models is said of their losses alone: no model is asked,
    so nothing is predicted and no mixture is proposed.

    Parameters
    ----------
    loss_F : array-like of shape (n,)
        The loss of each row today, smaller is better; at least 50 rows.
    losses : mapping of str to array-like of shape (n,), or DataFrame
        The same of each candidate, by name.
    X : DataFrame of n rows, optional
        What is known of each row beforehand: where losses change is foreseen from it. Without it
        only all rows and segments that are masks are judged.
    groups, time : str or array-like of shape (n,), optional
        Rows of one group belong together; times order the rows. A column of ``X``, or values.
    segments : optional
        See :func:`amlb_ext.swap.segments.read_segments`.
    refits : DataFrame of shape (n, R), optional
        The losses of F's recipe, fitted on bootstrap samples of its training rows: what fitting
        again does by itself. Without it there is no verdict on harm.
    level : float
        Coverage of the intervals.
    seed : int
    align : {'auto', 'index', 'position'}
        How the rows of the losses belong to those of X.

    Returns
    -------
    ModelComparison

    Raises
    ------
    DataError
        Fewer than 50 rows, other lengths, or a loss that is missing, not finite or negative.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> right = rng.random(400) < 0.7
    >>> better = right | (rng.random(400) < 0.3)
    >>> result = compare_losses(1.0 - right, {"new prompt": 1.0 - better})
    >>> result.table["overall"].tolist()
    ['better']
    """
    if hasattr(losses, "columns"):
        losses = dict(to_pandas(losses, what="losses").items())
    check_candidates(losses, '{"G": loss_of_G}')
    n = np.size(loss_F)
    # a list has a method of that name
    index = loss_F.index if isinstance(loss_F, pd.Series) else range(n)
    table = GivenTable.of(pd.DataFrame(index=index) if X is None else X)
    loss_f = _read_losses(loss_F, "loss_F", table, align)
    by_model = {
        str(name): _read_losses(values, str(name), table, align)
        for name, values in losses.items()
    }
    again = None
    if refits is not None:
        columns = pd.DataFrame(refits)
        again = pd.DataFrame(
            {
                number: _read_losses(columns[name], f"re-fit {name}", table, align)
                for number, name in enumerate(columns.columns)
            }
        )
    named = read_segments(segments, table.frame, beside=table.rows, align=align)
    order, left_out = read_row_order(table, groups, time, align=align)
    is_bad, rule = _call_bad(loss_f)
    region = RegionWeights(reason="no table was given to learn from where F fails")
    known = pd.DataFrame(index=range(n))
    notes: tuple[str, ...] = ()
    if X is not None:
        # a target has two values at least; nothing but the features is used
        varied = loss_f if np.ptp(loss_f) else np.arange(n, dtype=float)
        rows = read_labelled_rows(
            X, varied, kind="regression", order=order, left_out=left_out
        )
        known, notes = rows.task.features, rows.notes
        if is_bad.any() and not is_bad.all():
            region = weigh_rows(rows, is_bad, seed=seed)
    judged = Judged(
        compared=ComparedUnits(
            loss_f=loss_f,
            weights=region.inside,
            clusters=None if order is None else order.clusters,
            refits=again,
            level=level,
            unit=ROW,
        ),
        is_bad=is_bad,
        risk=region.weights,
        rule=rule,
        no_claim=region.reason,
    )
    sides = {name: Side(losses=values) for name, values in by_model.items()}
    frame = pd.DataFrame(by_model, index=table.frame.index)
    by_row = frame.assign(F=loss_f, **judged.by_row())
    return answer_units(
        SwapRows.of_losses(judged, known),
        sides,
        segments=named,
        seed=seed,
        loss_name="the losses given",
        notes=notes,
        rows=by_row[[*judged.by_row(), "F", *by_model]],
    )


def _read_losses(given: Any, name: str, table: GivenTable, align: Align) -> np.ndarray:
    """Return losses in the order of the rows, ``(n,)``."""
    aligned = align_rows(given, table.rows, what=name, align=align)
    try:
        values = plain_floats(aligned)
    except (TypeError, ValueError):
        raise DataError(
            f"{name} holds what is no number", "give one number for each row"
        ) from None
    if values.ndim != 1:
        raise DataError(
            f"{name} has shape {values.shape}", "give one number for each row"
        )
    if len(values) < LEAST_ROWS:
        raise DataError(
            f"{len(values)} rows are too few to compare losses on",
            f"give at least {LEAST_ROWS} rows",
        )
    broken = int((~np.isfinite(values)).sum())
    if broken:
        raise DataError(
            f"{name} is missing or not finite on {broken} of {len(values)} rows",
            "leave those rows out for all models",
        )
    negative = int((values < 0).sum())
    if negative:
        raise DataError(
            f"{name} is negative on {negative} of {len(values)} rows",
            "give losses, smaller is better and 0 is none: of a score, the largest less it",
        )
    return values


def _call_bad(loss_f: np.ndarray) -> tuple[np.ndarray, str]:
    """Return which rows are bad for F, and the rule in words."""
    if len(np.unique(loss_f)) == 2:
        return loss_f == loss_f.max(), "the rows with the larger of two losses"
    is_bad = loss_f >= np.quantile(loss_f, 1 - BAD_SHARE)
    return is_bad, f"the {is_bad.mean():.0%} of the rows with the largest loss"
