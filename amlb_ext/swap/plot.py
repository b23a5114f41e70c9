"""Pictures of a swap: the user's segments, the rate curve, and the rows by their rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from amlb_ext.swap.answer import Swap

#: Colour of each verdict on a segment.
_COLOURS = {"better": "#1a7f4b", "worse": "#c2371e"}
_INK, _GREY = "#2f3842", "#7c8691"
#: Rows of the picture of ranks are averaged in so many parts.
RANK_PARTS = 20


def draw_segments(segments: pd.DataFrame, base: float, ax: Axes | None = None) -> Axes:
    """Draw a forest: the change of loss in each segment with its simultaneous interval.

    Parameters
    ----------
    segments : DataFrame
        See :func:`amlb_ext.swap.segments.judge_segments`.
    base : float
        F's mean loss over all rows; changes are shares of it.
    ax : Axes, optional
        Drawn on a new figure when omitted.
    """
    names = list(dict.fromkeys(segments["segment"]))
    models = list(dict.fromkeys(segments["model"]))
    ax = ax or new_axes(7.0, 1.2 + 0.3 * len(names) * len(models))
    ticks, labels = [], []
    place = 0.0
    for name in reversed(names):
        rows = segments[segments["segment"] == name]
        for row in reversed(rows.to_dict("records")):
            colour = _COLOURS.get(row["verdict"], _INK)
            draw_change(ax, row, base, place, fmt="o", color=colour)
            own = f" · {row['model']}" if len(models) > 1 else ""
            ticks.append(place)
            labels.append(f"{name}{own} ({row['rows']})")
            place += 1
        place += 0.4
    ax.set_yticks(ticks, labels)
    ax.set_xlabel("change of the loss, of F’s mean loss over all rows (left: better)")
    return finish_forest(ax)


def draw_curve(swap: Swap, ax: Axes | None = None) -> Axes:
    """Draw the change of the rows that are foreseen worst, from few to all of them."""
    ax = ax or new_axes(6.0, 3.2)
    curve = swap.harm.curve
    share = curve["share"].to_numpy()
    change = curve["change"].to_numpy() / swap.base
    half = 1.96 * curve["se"].to_numpy() / swap.base
    ax.fill_between(share, change - half, change + half, color=_INK, alpha=0.15, lw=0)
    ax.plot(share, change, color=_INK, label=swap.name)
    if swap.harm.refits:
        again = [refit.value / swap.base for refit in swap.harm.refits]
        ax.plot(
            np.full(len(again), 0.2),
            again,
            "D",
            color="#c2371e",
            markersize=4,
            label="F fitted again",
        )
    ax.legend(frameon=False)
    return _finish_shares(ax, f"share of {swap.unit.many}, foreseen worst first")


def draw_ranks(swap: Swap, d: np.ndarray, ax: Axes | None = None) -> Axes:
    """Draw the change of the rows by the rank of what was foreseen, in twenty parts.

    Parameters
    ----------
    swap : Swap
    d : ndarray of shape (n,)
        Change of each row.
    ax : Axes, optional
    """
    ax = ax or new_axes(6.0, 3.2)
    rank = np.mean([foresight.rank for foresight in swap.harm.passes], axis=0)
    part = np.minimum((rank * RANK_PARTS).astype(int), RANK_PARTS - 1)
    counts = np.bincount(part, minlength=RANK_PARTS)
    sums = np.bincount(part, d, minlength=RANK_PARTS)
    means = np.divide(sums, counts, out=np.zeros(RANK_PARTS), where=counts > 0)
    colours = ["#c2371e" if mean > 0 else "#1a7f4b" for mean in means]
    places = (np.arange(RANK_PARTS) + 0.5) / RANK_PARTS
    ax.bar(places, means / swap.base, width=0.8 / RANK_PARTS, color=colours)
    label = f"rank of {swap.unit.many} by the foreseen change, worst first"
    return _finish_shares(ax, label)


def new_axes(width: float, height: float) -> Axes:
    """Return axes that pyplot knows: a notebook shows them, plt.savefig finds them."""
    return plt.figure(figsize=(width, height), layout="constrained").subplots()


def draw_change(
    ax: Axes, row: Mapping[str, Any], base: float, place: float, **look: Any
) -> None:
    """Draw a change with its interval, as shares of a loss; a missing interval draws no bar."""
    change = row["difference"] / base
    limits = [[change - row["low"] / base], [row["high"] / base - change]]
    ax.errorbar([change], [place], xerr=limits, capsize=3, **look)


def finish_forest(ax: Axes) -> Axes:
    """Give axes whose x are changes of loss a line at none, and percents."""
    ax.axvline(0, color=_GREY, linewidth=1)
    ax.xaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _finish_shares(ax: Axes, label: str) -> Axes:
    """Give axes of changes by share of the units a line at no change, and percents."""
    ax.axhline(0, color=_GREY, linewidth=1)
    ax.set_xlabel(label)
    ax.set_ylabel("change of F’s loss")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    ax.spines[["top", "right"]].set_visible(False)
    return ax
