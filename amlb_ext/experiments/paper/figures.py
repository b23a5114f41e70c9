"""Figures 3 to 8 of the paper, drawn of one split by matplotlib, one SVG file per picture."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.manifold import TSNE
from sklearn.metrics import roc_curve

from amlb_ext.core.files import write_text
from amlb_ext.experiments.paper.data import DATA
from amlb_ext.experiments.paper.run import SplitResult
from amlb_ext.experiments.paper.settings import Experiment
from amlb_ext.hardening.baseline.estimator import fill_missing

#: Colours of the paper's captions: good or test, bad, augmented, synthetic.
COLOURS = {"test": "#6f7b87", "bad": "#c2371e", "ga": "#2e8b57", "synthetic": "#7740a8"}
TEXT = {"test": "test", "bad": "bad", "ga": "augmented", "synthetic": "synthetic"}
#: Most points of a part in a picture, and in a map.
MOST, MOST_MAPPED = 2000, 600
#: Section 5.5: perplexity and number of clusters, by family.
MAP = {"regression": (15, 3), "classification": (30, 4)}

Arrays = dict[str, dict[str, dict[str, np.ndarray]]]


def draw_figures(
    experiment: Experiment, done: Sequence[SplitResult], folder: Path
) -> list[Path]:
    """Draw a figure of each data set's first split.

    Returns
    -------
    list of Path
        The SVG files, in ``folder``.
    """
    pictures = []
    for split in done:
        if split.split:
            continue
        path = folder / f"{experiment.name}_{split.data}.svg"
        figure = _DRAW[experiment.figure](_arrays(split.arrays), split.data)
        write_text(path, _svg(figure, path.stem))
        pictures.append(path)
    return pictures


def _arrays(path: Path) -> Arrays:
    """Return row → part → Z, y, f, g."""
    found: Arrays = {}
    with np.load(path) as stored:
        for key in stored.files:
            row, part, name = key.split("/")
            found.setdefault(row, {}).setdefault(part, {})[name] = stored[key]
    return found


def _svg(figure: Figure, name: str) -> str:
    FigureCanvasSVG(figure)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        text = io.StringIO()
        figure.savefig(
            text, format="svg", metadata={"Date": None, "Creator": None}, dpi=140
        )
    return text.getvalue()


def _panels(
    count: int, width: float = 3.2, height: float = 2.9
) -> tuple[Figure, list[Axes]]:
    figure = Figure(
        (width * min(count, 3), height * -(-count // 3)), layout="constrained"
    )
    return figure, list(
        figure.subplots(-(-count // 3), min(count, 3), squeeze=False).flat
    )


def _some(size: int, most: int = MOST) -> np.ndarray:
    """Return at most so many positions, evenly spread."""
    return (
        np.arange(size) if size <= most else np.linspace(0, size - 1, most).astype(int)
    )


def _scatter(
    ax: Axes, x: np.ndarray, y: np.ndarray, part: str, label: str = ""
) -> None:
    rows = _some(len(x))
    ax.scatter(x[rows], y[rows], s=5, color=COLOURS[part], alpha=0.6, linewidths=0,
               label=label or TEXT[part], rasterized=True)  # fmt: skip


def _identity(ax: Axes, title: str) -> None:
    ax.axline((0, 0), slope=1, color="#1b2025", linewidth=0.8, linestyle="--")
    ax.set(xlabel="target", ylabel="prediction", title=title)
    ax.legend(fontsize=7, markerscale=2)


def _steps(rows: Arrays, data: str) -> Figure:
    """Figure 3: (a) the table, (b) bad, (c) augmented, (d) F, (e) synthetic, (f) F and G."""
    parts = next(iter(rows.values()))
    figure, axes = _panels(6)
    shown = (("test",), ("test", "bad"), ("bad", "ga"), (), ("ga", "synthetic"), ())
    titles = ("(a) test rows", "(b) bad rows", "(c) augmented", "(d) F", "(e) synthetic",
              "(f) F and G on synthetic rows")  # fmt: skip
    for ax, names, title in zip(axes, shown, titles, strict=True):
        for name in (n for n in names if n in parts):
            _scatter(ax, parts[name]["Z"][:, 0], parts[name]["Z"][:, 1], name)
        if names:
            ax.set(
                xlabel="x1",
                ylabel="x2",
                title=title,
                xlim=(-0.05, 1.05),
                ylim=(-0.05, 1.05),
            )
            ax.legend(fontsize=7, markerscale=2)
    for name in ("test", "ga", "bad"):
        if name in parts:
            _scatter(axes[3], parts[name]["y"], parts[name]["f"], name)
    _identity(axes[3], titles[3])
    if "synthetic" in parts:
        made = parts["synthetic"]
        _scatter(axes[5], made["y"], made["f"], "bad", "F")
        _scatter(axes[5], made["y"], made["g"], "ga", "G")
    _identity(axes[5], titles[5])
    return figure


def _levels(rows: Arrays, data: str) -> Figure:
    """Figure 4: F's predictions of bad and augmented rows, by level of perturbation."""
    figure, axes = _panels(len(rows))
    for ax, (row, parts) in zip(axes, rows.items(), strict=False):
        for name in ("ga", "bad"):
            if name in parts:
                _scatter(ax, parts[name]["y"], parts[name]["f"], name)
        _identity(ax, f"std of the perturbation {row}")
    _blank(axes[len(rows) :])
    return figure


def _targets(rows: Arrays, data: str) -> Figure:
    """Figure 5: histograms of targets, for levels .02 and .1."""
    chosen = {row: rows[row] for row in ("0.02", "0.1") if row in rows}
    figure, axes = _panels(len(chosen))
    for ax, (row, parts) in zip(axes, chosen.items(), strict=False):
        for name in ("test", "bad", "ga"):
            if name in parts:
                ax.hist(parts[name]["y"], bins=40, density=True, alpha=0.5,
                        color=COLOURS[name], label=TEXT[name])  # fmt: skip
        ax.set(
            xlabel="scaled target",
            ylabel="density",
            title=f"std of the perturbation {row}",
        )
        ax.legend(fontsize=7)
    return figure


def _thresholds(rows: Arrays, data: str) -> Figure:
    """Figure 6: F's predictions of the test rows, the bad ones marked, by threshold."""
    figure, axes = _panels(len(rows))
    for ax, (row, parts) in zip(axes, rows.items(), strict=False):
        for name in ("test", "bad"):
            if name in parts:
                _scatter(ax, parts[name]["y"], parts[name]["f"], name)
        _identity(ax, f"alpha = {row}")
    return figure


def _roc(rows: Arrays, data: str) -> Figure:
    """Figure 7: ROC curves of F and G (a) on the test rows, (b) on bad and made rows."""
    parts = next(iter(rows.values()))
    figure, axes = _panels(2)
    for ax, names, title in (
        (axes[0], ("test",), "(a) test rows"),
        (axes[1], ("bad", "ga", "synthetic"), "(b) bad and made rows"),
    ):
        for name in (n for n in names if n in parts):
            for model, style in (("f", "-"), ("g", "--")):
                false, true, _ = roc_curve(
                    parts[name]["y"] == 1, parts[name][model][:, 1]
                )
                ax.plot(false, true, style, color=COLOURS[name], linewidth=1.1,
                        label=f"{model.upper()}, {TEXT[name]}")  # fmt: skip
        ax.axline((0, 0), slope=1, color="#1b2025", linewidth=0.6, linestyle=":")
        ax.set(xlabel="false positive rate", ylabel="true positive rate", title=title)
        ax.legend(fontsize=7)
    return figure


def _maps(rows: Arrays, data: str) -> Figure:
    """Figure 8: t-SNE of all rows; (a) clusters of bad rows, (b) augmented and synthetic rows."""
    parts = next(iter(rows.values()))
    perplexity, clusters = MAP[DATA[data].family]
    names = [name for name in COLOURS if name in parts]
    chosen = {
        name: parts[name]["Z"][_some(len(parts[name]["Z"]), MOST_MAPPED)]
        for name in names
    }
    Z = fill_missing(np.vstack(list(chosen.values())))
    at = TSNE(2, perplexity=min(perplexity, len(Z) - 1), random_state=42, init="pca")
    place = dict(zip(names, np.split(at.fit_transform(Z), _ends(chosen)), strict=True))
    figure, axes = _panels(2, 4.4, 4.0)
    bad = place.get("bad", np.empty((0, 2)))
    _scatter(axes[0], place["test"][:, 0], place["test"][:, 1], "test")
    if len(bad) >= clusters:
        found = KMeans(clusters, n_init=10, random_state=42).fit_predict(bad)
        for k, colour in zip(range(clusters), _cycle(), strict=False):
            x, z = bad[found == k].T
            axes[0].scatter(
                x, z, s=7, color=colour, label=f"bad, cluster {k + 1}", rasterized=True
            )
    for name in names:
        _scatter(axes[1], place[name][:, 0], place[name][:, 1], name)
    for ax, title in zip(axes, ("clusters of bad rows", "made rows"), strict=True):
        ax.set(title=title, xticks=[], yticks=[])
        ax.legend(fontsize=7, markerscale=2)
    return figure


def _ends(chosen: dict[str, np.ndarray]) -> list[int]:
    return list(np.cumsum([len(rows) for rows in chosen.values()])[:-1])


def _cycle() -> Iterator[str]:
    yield from ("#c2371e", "#bd5600", "#ad3f80", "#5c50b0")


def _blank(axes: Sequence[Axes]) -> None:
    for ax in axes:
        ax.set_axis_off()


_DRAW: dict[str, Callable[[Arrays, str], Any]] = {
    "steps": _steps,
    "levels": _levels,
    "targets": _targets,
    "thresholds": _thresholds,
    "roc": _roc,
    "maps": _maps,
}
