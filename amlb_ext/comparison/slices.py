"""Slices in which F fails, and which model mends them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from amlb_ext.comparison.labelled import LabelledRows
from amlb_ext.core.rng import random_stream
from amlb_ext.report.slices import search_and_judge
from amlb_ext.stats.bounded_loss import ErrorCap
from amlb_ext.stats.heavy_tails import contrast_plainly
from amlb_ext.stats.weighted_mean import (
    holm_adjusted,
    p_value,
    weighted_mean_interval,
)

#: What :func:`compare_on_slices` returns for each slice and model.
COLUMNS = (
    "slice",
    "rows",
    "bad",
    "share",
    "base",
    "model",
    "difference",
    "low",
    "high",
)


def compare_on_slices(
    rows: LabelledRows,
    is_bad: np.ndarray,
    losses: pd.DataFrame,
    loss_f: np.ndarray,
    *,
    cap: ErrorCap,
    level: float,
    seed: int,
) -> pd.DataFrame:
    """Return the slices in which F fails, with each model's difference from F inside.

    Slices are found on one half of the rows. Everything that is returned is counted on the other
    half, so being chosen flatters no slice and no model.

    Parameters
    ----------
    rows : LabelledRows
    is_bad : ndarray of shape (n,), bool
    losses : DataFrame of shape (n, candidates)
        As they are.
    loss_f : ndarray of shape (n,)
    cap : ErrorCap
    level : float
    seed : int

    Returns
    -------
    DataFrame
        One row for each slice and model: ``slice`` (conditions), ``rows`` and ``bad`` inside,
        ``share`` of bad rows there and ``base`` among all rows, ``model``, ``difference`` of mean
        loss from F's with its interval, ``p_holm`` over all slices and models, ``verdict``,
        ``by`` and ``reason`` as in :func:`amlb_ext.stats.claims.answer_questions`.
    """
    # rows of a group stay in one half, and count as the group that they are
    clusters = np.arange(len(rows))
    order = rows.task.order
    if order is not None and order.clusters is not None:
        clusters = order.clusters
    found = search_and_judge(
        rows.task.features,
        rows.task.columns,
        is_bad,
        clusters,
        random_stream(seed, "compare", "slices"),
    )
    records = []
    for slice_row, inside in zip(
        found.table.to_dict("records"), found.inside, strict=True
    ):
        for name in losses.columns:
            loss_g, own_f = losses[name].to_numpy()[inside], loss_f[inside]
            capped = weighted_mean_interval(
                cap.apply(loss_g) - cap.apply(own_f),
                clusters=clusters[inside],
                level=level,
            )
            plain = contrast_plainly(loss_g, own_f, cap=cap)
            estimate, veto = plain.judge(capped)
            records.append(
                {
                    **{key: slice_row[key] for key in COLUMNS[:5]},
                    "model": name,
                    "difference": estimate.point,
                    "low": estimate.low,
                    "high": estimate.high,
                    "p": p_value(estimate),
                    "by": plain.by(veto),
                    "reason": veto,
                }
            )
    table = pd.DataFrame(records, columns=[*COLUMNS, "p", "by", "reason"])
    is_withheld = (table["reason"] != "").to_numpy(dtype=bool)
    # what may not be claimed stays in the family, and is never rejected
    tested = table["p"].mask(is_withheld, 1.0).to_numpy(dtype=float)
    table["p_holm"] = np.where(is_withheld, np.nan, holm_adjusted(tested))
    is_significant = table["p_holm"] < 1 - level
    is_gain = table["difference"] < 0
    table["verdict"] = np.select(
        [is_withheld, is_significant & is_gain, is_significant & ~is_gain],
        ["no claim", "better", "worse"],
        default="undecided",
    )
    return table
