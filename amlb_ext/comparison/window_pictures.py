"""Pictures of windows: the past, what came, and what F and the models forecast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, islice

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from amlb_ext.core.display import format_decimals, shorten_text
from amlb_ext.core.unit import F
from amlb_ext.units.failing_windows import FailingWindows
from amlb_ext.units.rolling import RolledForecasts

#: Colours of what came, of F, and of the models in their order.
_TRUTH, _BASELINE = "#2f3842", "#c2371e"
_MODELS = ("#1f6fb2", "#2a8a4a", "#8a5fb0", "#b07a1e", "#4aa3a8")
#: Seasons of the past that are drawn.
_SEASONS_SHOWN = 3
#: Names that stand side by side in a legend.
_NAMES_IN_A_LINE = 4


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
    colours = [_TRUTH, _BASELINE, *islice(cycle(_MODELS), len(forecasts))]
    for ax, window in zip(axes, hardest, strict=False):
        named = draw_window(ax, failing, forecasts, int(window), colours)
        ax.set_title(window_title(failing, int(window)), fontsize=9, loc="left")
        ax.tick_params(labelsize=7)
        ax.xaxis.get_offset_text().set_fontsize(7)
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[len(hardest) :]:
        ax.set_visible(False)
    draw_legend(figure, named)
    return figure


def window_title(failing: FailingWindows, window: int) -> str:
    """Return the name of a window's series, and F's MASE on it."""
    name = shorten_text(failing.panel.names[int(failing.items[window])], 28)
    mase = format_decimals(float(failing.forecasts.mase[window]), 2)
    return f"{name}: MASE of F {mase}"


def draw_window(
    ax: Axes,
    failing: FailingWindows,
    forecasts: Mapping[str, RolledForecasts],
    window: int,
    colours: Sequence[str],
) -> dict[str, Line2D]:
    """Draw a window: its past, what came, and what was forecast; return each line by its name.

    Parameters
    ----------
    ax : Axes
    failing : FailingWindows
        With F's forecasts; the band is that between its lowest and its highest quantile.
    forecasts : mapping of str to RolledForecasts
        Of the models.
    window : int
        Its position.
    colours : sequence of str
        Of what came, of F, and of each model.
    """
    of_truth, of_f, *of_models = colours
    panel = failing.panel
    item, cutoff = int(failing.items[window]), int(failing.cutoffs[window])
    past = panel.past(item, cutoff)
    shown = min(len(past), max(_SEASONS_SHOWN * panel.season, 2 * panel.horizon))
    before = panel.calendar[cutoff + 1 - shown : cutoff + 1]
    behind = panel.future_times(cutoff)
    named: dict[str, Line2D] = {}

    def draw(name: str, values: np.ndarray, colour: str, width: float) -> None:
        [named[name]] = ax.plot(behind, values, color=colour, linewidth=width)

    ax.plot(before, past[-shown:], color=of_truth, linewidth=1)
    draw("what came", failing.future[window], of_truth, 1.6)
    rolled = failing.forecasts
    draw(F, rolled.mean[window], of_f, 1.6)
    if rolled.quantiles is not None:
        low, high = rolled.quantiles[window][:, 0], rolled.quantiles[window][:, -1]
        ax.fill_between(behind, low, high, color=of_f, alpha=0.15, linewidth=0)
    for (name, said), colour in zip(forecasts.items(), of_models, strict=True):
        draw(name, said.mean[window], colour, 1)
    ax.axvline(panel.calendar[cutoff], color="#9aa3ab", linewidth=0.8, linestyle=":")
    # few dates, each without what the one before it says already: they must not run into another
    locator = AutoDateLocator(minticks=3, maxticks=6)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    return named


def draw_legend(figure: Figure, named: Mapping[str, Line2D]) -> None:
    """Draw the legend of windows below them."""
    legend = figure.legend(
        list(named.values()),
        ["name"] * len(named),
        loc="outside lower center",
        ncols=min(len(named), _NAMES_IN_A_LINE),
        frameon=False,
    )
    # set afterwards: a leading "_" would hide the entry
    for text, name in zip(legend.get_texts(), named, strict=True):
        text.set_text(shorten_text(name, 20))
