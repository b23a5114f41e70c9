"""Every two frameworks on all units of one task, and what the best of them saves of F's loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.rng import random_stream
from amlb_ext.core.unit import F
from amlb_ext.stats.best_saving import best_saving
from amlb_ext.stats.contrasts import SMALLEST_EFFECTIVE_SIZE, ComparedUnits
from amlb_ext.stats.pairwise import compare_pairs


def duels_on_all_units(
    losses: pd.DataFrame,
    units: ComparedUnits,
    *,
    scored: pd.DataFrame,
    names: Sequence[str],
) -> pd.DataFrame:
    """Return every two frameworks compared on all units, which count alike.

    Parameters
    ----------
    losses, scored : DataFrame of shape (n, frameworks)
    units : ComparedUnits
    names : sequence of str
        Of candidates.

    Returns
    -------
    DataFrame
        See :func:`amlb_ext.stats.pairwise.compare_pairs`, with ``loss`` and ``loss_other``, the
        mean losses on the units that both are scored on, capped.

    Examples
    --------
    >>> losses = pd.DataFrame({"a": np.linspace(0, 1, 100), "b": np.linspace(0.2, 1.1, 100)})
    >>> units = ComparedUnits(loss_f=np.ones(100))
    >>> table = duels_on_all_units(losses, units, scored=losses.notna(), names=["a", "b"])
    >>> table[["framework", "other", "verdict", "loss", "loss_other"]].values.tolist()
    [['a', 'b', 'better', 0.5, 0.65]]
    """
    own, is_scored = losses[list(names)], scored[list(names)]
    table = compare_pairs(own, units.alike(), scored=is_scored)
    counted = pd.DataFrame(units.cap.apply(own), columns=own.columns, index=own.index)
    means = []
    for first, second in zip(table["framework"], table["other"], strict=True):
        both = is_scored[first] & is_scored[second]
        means.append(counted.loc[both, [first, second]].mean().to_numpy())
    shape = np.reshape(means, (-1, 2))
    return table.assign(loss=shape[:, 0], loss_other=shape[:, 1])


def left_to_gain(
    task: str, losses: pd.DataFrame, units: ComparedUnits, level: float
) -> list[dict[str, Any]]:
    """Return what the best of the candidates saves of F's loss, on all units and where F fails.

    Parameters
    ----------
    task : str
    losses : DataFrame of shape (n, candidates)
        Of those with whole results, capped.
    units : ComparedUnits
        Capped.
    level : float

    Returns
    -------
    list of dict
        Rows of the table of what is left to gain; none without a candidate, or where F loses
        nothing.

    Examples
    --------
    >>> loss_f = np.linspace(0.5, 1, 200)
    >>> losses = pd.DataFrame({"half": loss_f / 2, "worse": 2 * loss_f})
    >>> [record] = left_to_gain("t", losses, ComparedUnits(loss_f=loss_f), 0.95)
    >>> record["best"], round(record["low"], 2), round(record["high"], 2)
    ('half', 0.5, 0.5)
    """
    n = len(units.loss_f)
    clusters = np.arange(n) if units.clusters is None else units.clusters
    weights = {"all rows": np.ones(n)}
    if units.weighting.effective_size >= SMALLEST_EFFECTIVE_SIZE:
        weights["region"] = np.asarray(units.weights, dtype=float)
    records = []
    for where, counted in weights.items():
        if losses.empty or not (counted * units.loss_f).sum() > 0:
            continue
        found = best_saving(
            losses.to_numpy(dtype=float),
            units.loss_f,
            counted,
            clusters,
            random_stream(0, task, "report", "left to gain", where),
            level,
        )
        best, share = next(iter(found.chosen.items()))
        records.append(
            {
                "task": task,
                "where": where,
                "rows": n,
                "saved": found.point,
                "low": found.low,
                "high": found.high,
                "best": F if best < 0 else str(losses.columns[best]),
                "chosen": share,
                "reason": found.reason,
            }
        )
    return records
