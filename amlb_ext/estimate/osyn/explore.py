"""The bound of OSYN over all of its settings, to look at and never to quote.

Never choose a setting by its bound, nor by how close the bound comes to a known error: a bound
chosen among many no longer holds with its level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.estimate.osyn.theorem import checked_masses, clip_counts
from amlb_ext.stats.bounded_loss import checked_losses

#: b as in the seed paper's grid, section 5.4.3.
B_GRID = tuple(np.round(np.arange(0, 7.05, 0.1), 1).tolist())


def sweep_settings(
    p: np.ndarray,
    loss_s: np.ndarray,
    rng: np.random.Generator,
    b: Sequence[float] = B_GRID,
    delta2: Sequence[float] | None = None,
    g: Sequence[int] = (50_000,),
    delta: float = 0.1,
    C_h: float = 1.0,
    a_hat: float | None = None,
) -> pd.DataFrame:
    """Return the bound of the closed form for each (g, b, delta2), to look at only.

    One multinomial draw for each g is clipped with every b, so that curves over b are smooth.

    Parameters
    ----------
    p : ndarray of shape (K,)
        Region masses, or counts.
    loss_s : ndarray of shape (K,)
        Losses of the labelled rows.
    rng : Generator
    b : sequence of float
    delta2 : sequence of float, optional
        Values below ``delta``; by default 199 at equal distances.
    g : sequence of int
    delta : float
        delta1 + delta2.
    C_h, a_hat : float
        Bounds of the loss and of the mean losses of the regions; a_hat is C_h by default.

    Returns
    -------
    DataFrame
        ``g``, ``b``, ``delta1``, ``delta2``, ``bound``, ``F_minus_eps``, ``B``, ``D``,
        ``g_star``, ``assumption_met``; one row for each setting, in that order.

    Raises
    ------
    ConfigError
        A delta2 outside 0..delta, and those of
        :func:`~amlb_ext.estimate.osyn.theorem.adjusted_counts`.
    DataError
        Losses and masses of different lengths, or losses outside 0..C_h.

    Examples
    --------
    >>> seen, wrong = np.ones(100), np.arange(100) % 5 == 0
    >>> sweep = sweep_settings(seen, wrong, np.random.default_rng(0), b=[0, 1], delta2=[0.02, 0.05])
    >>> sweep[["b", "delta2", "B"]].round(3).values.tolist()
    [[0.0, 0.02, 0.14], [0.0, 0.05, 0.122], [1.0, 0.02, 0.14], [1.0, 0.05, 0.123]]
    """
    if delta2 is None:
        deltas2 = np.arange(1, 200) / 200 * delta
    else:
        deltas2 = np.asarray(delta2, dtype=float)
    if not 0 < delta < 1 or ((deltas2 <= 0) | (deltas2 >= delta)).any():
        raise ConfigError(
            f"delta2 is not within 0..{delta}", "choose delta2 above 0, below delta"
        )
    p = checked_masses(p)
    loss_s = checked_losses(loss_s, C_h)
    if len(p) != len(loss_s):
        raise DataError(
            f"{len(p)} masses for {len(loss_s)} losses", "give one of each a region"
        )
    a_hat = C_h if a_hat is None else a_hat
    tables = []
    for size in g:
        drawn = rng.multinomial(size, p)
        for width in b:
            g_star = clip_counts(drawn, size, width)
            bounds = _bounds_over_deltas(
                g_star, loss_s, deltas2=deltas2, delta=delta, C_h=C_h, a_hat=a_hat
            )
            tables.append(pd.DataFrame({"g": size, "b": float(width), **bounds}))
    if not tables:
        raise ConfigError("b or g is empty", "give one value of each or more")
    return pd.concat(tables, ignore_index=True)


def _bounds_over_deltas(
    g_star: np.ndarray,
    loss_s: np.ndarray,
    *,
    deltas2: np.ndarray,
    delta: float,
    C_h: float,
    a_hat: float,
) -> dict[str, Any]:
    """Return the columns of the table for one draw of the counts and every delta2.

    This is :func:`~amlb_ext.estimate.osyn.theorem.theorem_bound` for all of them at once.
    """
    total = int(g_star.sum())
    w = g_star / total
    F_minus_eps = float(g_star @ loss_s) / total
    deltas1 = delta - deltas2
    B = C_h * np.sqrt(0.5 * np.log(1 / deltas2) * (w @ w))
    D = a_hat * np.log(1 / deltas1) / total
    is_met = F_minus_eps >= B
    excess = np.where(is_met, F_minus_eps - B, 0)
    root = np.sqrt(excess + D) - np.sqrt(D)
    return {
        "delta1": deltas1,
        "delta2": deltas2,
        "bound": np.where(is_met, root**2, 0.0),
        "F_minus_eps": F_minus_eps,
        "B": B,
        "D": D,
        "g_star": total,
        "assumption_met": is_met,
    }
