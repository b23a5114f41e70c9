"""F and each candidate inside the slices in which F fails: who mends them.

A slice is found on one half of the source rows; losses are those of the other half. Only slices
in which F fails significantly more often there, too, are shown, and that flatters the others a
little. So this describes, and ranks nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from amlb_ext.report.parts import F
from amlb_ext.stats.capped_errors import NO_CAP, ErrorCap
from amlb_ext.stats.heavy_tails import contrast_plainly
from amlb_ext.stats.weighted_mean import weighted_mean_interval

COLUMNS = (
    "task",
    "slice",
    "framework",
    "rows",
    "loss",
    "low",
    "high",
    "difference",
    "difference_low",
    "difference_high",
)
_INTERVALS = ("low", "high", "difference_low", "difference_high")


def losses_on_slices(
    task: str,
    *,
    slices: pd.DataFrame,
    inside: Sequence[np.ndarray],
    losses: pd.DataFrame,
    loss_f: np.ndarray,
    clusters: np.ndarray,
    level: float,
    cap: ErrorCap = NO_CAP,
) -> pd.DataFrame:
    """Return the mean loss of F and of each candidate in each slice, with intervals.

    Parameters
    ----------
    task : str
    slices : DataFrame
        See :func:`amlb_ext.report.slices.find_slices`.
    inside : sequence of ndarray of shape (n,), bool
        For each slice, the rows that judge it.
    losses : DataFrame of shape (n, candidates)
        Losses of the candidates, NaN on rows that one has not scored.
    loss_f : ndarray of shape (n,)
    clusters : ndarray of shape (n,)
        The source row of each row.
    level : float
        Coverage of the intervals.
    cap : ErrorCap
        The largest loss that counts. Where the largest would decide in a slice, all its losses
        are plain and without intervals, see :mod:`amlb_ext.stats.heavy_tails`.

    Returns
    -------
    DataFrame
        One row per slice and framework, F first: ``rows``, mean ``loss`` with its interval, and
        ``difference`` from F on the same rows with its own. NaN where there is none.

    Examples
    --------
    >>> table = losses_on_slices(
    ...     "t",
    ...     slices=pd.DataFrame({"slice": ["x > 1"]}),
    ...     inside=[np.array([True, True, True, False])],
    ...     losses=pd.DataFrame({"tree": [0.1, 0.2, 0.3, 9.0]}),
    ...     loss_f=np.array([0.4, 0.5, 0.6, 0.0]),
    ...     clusters=np.arange(4),
    ...     level=0.95,
    ... )
    >>> table[["framework", "rows", "loss", "difference"]].round(3).to_dict("list")
    {'framework': ['F', 'tree'], 'rows': [3, 3], 'loss': [0.5, 0.2], 'difference': [0.0, -0.3]}
    """
    losses_by_name = {F: loss_f}
    for name in losses.columns:
        losses_by_name[str(name)] = losses[name].to_numpy(dtype=float)
    records = []
    for text, is_inside in zip(slices["slice"], inside, strict=True):
        here, vetoes, plain_means = [], [], []
        for name, own_loss in losses_by_name.items():
            rows = is_inside & ~np.isnan(own_loss)
            own, own_f = own_loss[rows], loss_f[rows]
            interval = partial(
                weighted_mean_interval, clusters=clusters[rows], level=level
            )
            estimate = interval(cap.apply(own))
            change = interval(cap.apply(own) - cap.apply(own_f))
            plain = contrast_plainly(own, own_f, cap=cap)
            vetoes.append(plain.judge(change)[1])
            plain_means.append({"loss": plain.g.mean, "difference": plain.difference})
            here.append(
                {
                    "task": task,
                    "slice": text,
                    "framework": name,
                    "rows": int(rows.sum()),
                    "loss": estimate.point,
                    "low": estimate.low,
                    "high": estimate.high,
                    "difference": change.point,
                    "difference_low": change.low,
                    "difference_high": change.high,
                }
            )
        # models of one slice are read side by side: all losses capped, or none
        if any(vetoes):
            for record, means in zip(here, plain_means, strict=True):
                record |= means | dict.fromkeys(_INTERVALS, np.nan)
        records += here
    return pd.DataFrame(records, columns=list(COLUMNS))
