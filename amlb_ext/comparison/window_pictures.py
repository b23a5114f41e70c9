"""Pictures of windows: the past, what came, and what F and the models forecast."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from amlb_ext.core.display import format_decimals, shorten_text
from amlb_ext.units.failing_windows import FailingWindows
from amlb_ext.units.rolling import RolledForecasts

#: Colours of what is known, of F, and of the models in their order.
_TRUTH, _BASELINE = "#2f3842", "#c2371e"
_MODELS = ("#1f6fb2", "#2a8a4a", "#8a5fb0", "#b07a1e", "#4aa3a8")
#: Seasons of the past that are drawn.
_SEASONS_SHOWN = 3


def draw_worst_windows(
    failing: FailingWindows,
    forecasts: Mapping[str, RolledForecasts],
    count: int,
    figure: Figure | None,
) -> Figure:
    """Draw the windows that are hardest for F, hardest first.

    Parameters
    ----------
    failing : FailingWindows
        With F's forecasts.
    forecasts : mapping of str to RolledForecasts
        Of the models.
    count : int
    figure : Figure or None
        Drawn on; one of pyplot's where there is none.
    """
    hardest = np.argsort(-failing.hardness, kind="stable")[:count]
    n_rows = -(-len(hardest) // 2)
    # registered with pyplot, so that a notebook shows it and plt.savefig finds it
    figure = figure or plt.figure(layout="constrained")
    figure.set_size_inches(9.5, 2.5 * n_rows + 0.5)
    axes = figure.subplots(n_rows, 2, squeeze=False).ravel()
    for ax, window in zip(axes, hardest, strict=False):
        _draw_window(ax, failing, forecasts, int(window))
    for ax in axes[len(hardest) :]:
        ax.set_visible(False)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), frameon=False
    )
    return figure


def _draw_window(
    ax: Axes,
    failing: FailingWindows,
    forecasts: Mapping[str, RolledForecasts],
    window: int,
) -> None:
    panel = failing.panel
    item, cutoff = int(failing.items[window]), int(failing.cutoffs[window])
    past = panel.past(item, cutoff)
    shown = min(len(past), max(_SEASONS_SHOWN * panel.season, 2 * panel.horizon))
    before = panel.calendar[cutoff + 1 - shown : cutoff + 1]
    behind = panel.future_times(cutoff)
    ax.plot(before, past[-shown:], color=_TRUTH, linewidth=1)
    future = failing.future[window]
    ax.plot(behind, future, color=_TRUTH, linewidth=1.6, label="what came")
    rolled = failing.forecasts
    label = "F"
    ax.plot(behind, rolled.mean[window], color=_BASELINE, linewidth=1.6, label=label)
    if rolled.quantiles is not None:
        low, high = rolled.quantiles[window][:, 0], rolled.quantiles[window][:, -1]
        ax.fill_between(behind, low, high, color=_BASELINE, alpha=0.15, linewidth=0)
    for number, (name, said) in enumerate(forecasts.items()):
        colour = _MODELS[number % len(_MODELS)]
        mean = said.mean[window]
        ax.plot(behind, mean, color=colour, linewidth=1, label=shorten_text(name, 20))
    ax.axvline(panel.calendar[cutoff], color="#9aa3ab", linewidth=0.8, linestyle=":")
    name = shorten_text(panel.names[item], 28)
    mase = format_decimals(float(rolled.mase[window]), 2)
    ax.set_title(f"{name}: MASE of F {mase}", fontsize=9, loc="left")
    # few dates, each without what the one before it says already: they must not run into another
    locator = AutoDateLocator(minticks=3, maxticks=6)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    ax.xaxis.get_offset_text().set_fontsize(7)
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)
