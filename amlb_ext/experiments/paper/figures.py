"""Figures 3 to 8 of the paper, drawn of one split by matplotlib, one SVG file per picture."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

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
#: Colours of clusters; there are at most as many of these as Figure 8 needs.
CLUSTER_COLOURS = ("#c2371e", "#bd5600", "#ad3f80", "#5c50b0")
#: Of the lines that a perfect or a blind model would give.
LINE_COLOUR = "#1b2025"
#: Most points of a part in a picture, and in a map.
MOST, MOST_MAPPED = 2000, 600
#: Section 5.5: perplexity and number of clusters, by family.
MAP = {"regression": (15, 3), "classification": (30, 4)}
#: Levels of perturbation that Figure 5 shows.
SHOWN_LEVELS = ("0.02", "0.1")
#: Panels of a row, and the width and height of each in inches.
COLUMNS, WIDTH, HEIGHT = 3, 3.2, 2.9

#: Part → Z, y, f, g.
Parts = dict[str, dict[str, np.ndarray]]
#: Row of a table → its parts.
Arrays = dict[str, Parts]


def draw_figures(
    experiment: Experiment, done: Sequence[SplitResult], folder: Path
) -> list[Path]:
    """Draw a figure of each data set's first split.

    Returns
    -------
    list of Path
        The SVG files, in ``folder``.
    """
    draw = _DRAW[experiment.figure]
    pictures = []
    for split in done:
        if split.split != 0:
            continue
        path = folder / f"{experiment.name}_{split.data}.svg"
        figure = draw(_read_arrays(split.arrays), split.data)
        write_text(path, _svg_text(figure, path.stem))
        pictures.append(path)
    return pictures


def _read_arrays(path: Path) -> Arrays:
    """Return the points of every row and part, as :mod:`~.run` wrote them."""
    arrays: Arrays = {}
    with np.load(path) as stored:
        for key in stored.files:
            row, part, name = key.split("/")
            arrays.setdefault(row, {}).setdefault(part, {})[name] = stored[key]
    return arrays


def _svg_text(figure: Figure, name: str) -> str:
    FigureCanvasSVG(figure)
    # the same bytes every time: ids from the name, no date
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        text = io.StringIO()
        metadata = {"Date": None, "Creator": None}
        figure.savefig(text, format="svg", metadata=metadata, dpi=140)
    return text.getvalue()


# --- parts of pictures ---


def _make_panels(
    count: int, width: float = WIDTH, height: float = HEIGHT
) -> tuple[Figure, list[Axes]]:
    """Return a figure with at least so many axes, row by row."""
    n_columns = min(count, COLUMNS)
    n_rows = -(-count // COLUMNS)  # rounded up
    figure = Figure((width * n_columns, height * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    return figure, list(axes.flat)


def _spread_positions(size: int, most: int = MOST) -> np.ndarray:
    """Return at most so many positions, evenly spread."""
    if size <= most:
        return np.arange(size)
    return np.linspace(0, size - 1, most).astype(int)


def _scatter_points(
    ax: Axes, x: np.ndarray, y: np.ndarray, *, part: str, label: str = ""
) -> None:
    rows = _spread_positions(len(x))
    # as pixels: thousands of points as shapes would make a file of megabytes
    ax.scatter(
        x[rows],
        y[rows],
        s=5,
        color=COLOURS[part],
        alpha=0.6,
        linewidths=0,
        label=label or TEXT[part],
        rasterized=True,
    )


def _scatter_features(ax: Axes, parts: Parts, names: Sequence[str]) -> None:
    """Show the first two features of some parts."""
    for name in names:
        if name in parts:
            x1, x2 = parts[name]["Z"][:, :2].T
            _scatter_points(ax, x1, x2, part=name)


def _scatter_predictions(ax: Axes, parts: Parts, names: Sequence[str]) -> None:
    """Show F's predictions over the targets of some parts."""
    for name in names:
        if name in parts:
            _scatter_points(ax, parts[name]["y"], parts[name]["f"], part=name)


def _finish_predictions(ax: Axes, title: str) -> None:
    """Add the line on which predictions are right, labels and a legend."""
    ax.axline(
        (0, 0),
        slope=1,
        color=LINE_COLOUR,
        linewidth=0.8,
        linestyle="--",
    )
    ax.set(xlabel="target", ylabel="prediction", title=title)
    ax.legend(fontsize=7, markerscale=2)


# --- figures ---


def _draw_steps(rows: Arrays, data: str) -> Figure:
    """Figure 3: (a) the table, (b) bad, (c) augmented, (d) F, (e) synthetic, (f) F and G."""
    parts = next(iter(rows.values()))
    figure, axes = _make_panels(6)
    # panels of features, by place; the other two are of predictions
    feature_panels = {
        0: ("(a) test rows", ["test"]),
        1: ("(b) bad rows", ["test", "bad"]),
        2: ("(c) augmented", ["bad", "ga"]),
        4: ("(e) synthetic", ["ga", "synthetic"]),
    }
    for place, (title, names) in feature_panels.items():
        ax = axes[place]
        _scatter_features(ax, parts, names)
        limits = (-0.05, 1.05)
        ax.set(
            xlabel="x1",
            ylabel="x2",
            title=title,
            xlim=limits,
            ylim=limits,
        )
        ax.legend(fontsize=7, markerscale=2)
    _scatter_predictions(axes[3], parts, ["test", "ga", "bad"])
    _finish_predictions(axes[3], "(d) F")
    if "synthetic" in parts:
        synthetic = parts["synthetic"]
        y = synthetic["y"]
        _scatter_points(
            axes[5],
            y,
            synthetic["f"],
            part="bad",
            label="F",
        )
        _scatter_points(
            axes[5],
            y,
            synthetic["g"],
            part="ga",
            label="G",
        )
    _finish_predictions(axes[5], "(f) F and G on synthetic rows")
    return figure


def _draw_levels(rows: Arrays, data: str) -> Figure:
    """Figure 4: F's predictions of bad and augmented rows, by level of perturbation."""
    figure, axes = _make_panels(len(rows))
    # there may be more axes than levels
    for ax, (row, parts) in zip(axes, rows.items(), strict=False):
        _scatter_predictions(ax, parts, ["ga", "bad"])
        _finish_predictions(ax, f"std of the perturbation {row}")
    for ax in axes[len(rows) :]:
        ax.set_axis_off()
    return figure


def _draw_targets(rows: Arrays, data: str) -> Figure:
    """Figure 5: histograms of targets, for levels .02 and .1."""
    shown = {row: rows[row] for row in SHOWN_LEVELS if row in rows}
    figure, axes = _make_panels(len(shown))
    for ax, (row, parts) in zip(axes, shown.items(), strict=False):
        for name in ("test", "bad", "ga"):
            if name not in parts:
                continue
            ax.hist(
                parts[name]["y"],
                bins=40,
                density=True,
                alpha=0.5,
                color=COLOURS[name],
                label=TEXT[name],
            )
        title = f"std of the perturbation {row}"
        ax.set(xlabel="scaled target", ylabel="density", title=title)
        ax.legend(fontsize=7)
    return figure


def _draw_thresholds(rows: Arrays, data: str) -> Figure:
    """Figure 6: F's predictions of the test rows, the bad ones marked, by threshold."""
    figure, axes = _make_panels(len(rows))
    for ax, (row, parts) in zip(axes, rows.items(), strict=False):
        _scatter_predictions(ax, parts, ["test", "bad"])
        _finish_predictions(ax, f"alpha = {row}")
    return figure


def _draw_roc(rows: Arrays, data: str) -> Figure:
    """Figure 7: ROC curves of F and G (a) on the test rows, (b) on bad and made rows."""
    parts = next(iter(rows.values()))
    figure, axes = _make_panels(2)
    _draw_roc_panel(axes[0], parts, ["test"])
    axes[0].set_title("(a) test rows")
    _draw_roc_panel(axes[1], parts, ["bad", "ga", "synthetic"])
    axes[1].set_title("(b) bad and made rows")
    return figure


def _draw_roc_panel(ax: Axes, parts: Parts, names: Sequence[str]) -> None:
    for name in names:
        if name not in parts:
            continue
        is_positive = parts[name]["y"] == 1
        for model, style in (("f", "-"), ("g", "--")):
            p = parts[name][model][:, 1]
            false_rate, true_rate, _ = roc_curve(is_positive, p)
            ax.plot(
                false_rate,
                true_rate,
                style,
                color=COLOURS[name],
                linewidth=1.1,
                label=f"{model.upper()}, {TEXT[name]}",
            )
    ax.axline(
        (0, 0),
        slope=1,
        color=LINE_COLOUR,
        linewidth=0.6,
        linestyle=":",
    )
    ax.set(xlabel="false positive rate", ylabel="true positive rate")
    ax.legend(fontsize=7)


def _draw_maps(rows: Arrays, data: str) -> Figure:
    """Figure 8: t-SNE of all rows; (a) clusters of bad rows, (b) augmented and synthetic rows."""
    perplexity, n_clusters = MAP[DATA[data].family]
    places = _map_parts(next(iter(rows.values())), perplexity)
    figure, (clusters_ax, parts_ax) = _make_panels(2, 4.4, 4.0)

    x, y = places["test"].T
    _scatter_points(clusters_ax, x, y, part="test")
    bad = places.get("bad", np.empty((0, 2)))
    if len(bad) >= n_clusters:
        _scatter_clusters(clusters_ax, bad, n_clusters)
    clusters_ax.set_title("clusters of bad rows")

    for name, place in places.items():
        x, y = place.T
        _scatter_points(parts_ax, x, y, part=name)
    parts_ax.set_title("made rows")

    for ax in (clusters_ax, parts_ax):
        # distances of t-SNE have no unit
        ax.set(xticks=[], yticks=[])
        ax.legend(fontsize=7, markerscale=2)
    return figure


def _map_parts(parts: Parts, perplexity: int) -> dict[str, np.ndarray]:
    """Return t-SNE places ``(n, 2)`` of the rows of every part, embedded together."""
    chosen = {}
    for name in COLOURS:
        if name in parts:
            Z = parts[name]["Z"]
            chosen[name] = Z[_spread_positions(len(Z), MOST_MAPPED)]
    Z = fill_missing(np.vstack(list(chosen.values())))
    tsne = TSNE(2, perplexity=min(perplexity, len(Z) - 1), random_state=42, init="pca")
    places = tsne.fit_transform(Z)
    ends = np.cumsum([len(rows) for rows in chosen.values()])
    return dict(zip(chosen, np.split(places, ends[:-1]), strict=True))


def _scatter_clusters(ax: Axes, places: np.ndarray, n_clusters: int) -> None:
    clusters = KMeans(n_clusters, n_init=10, random_state=42).fit_predict(places)
    for cluster in range(n_clusters):
        x, y = places[clusters == cluster].T
        ax.scatter(
            x,
            y,
            s=7,
            color=CLUSTER_COLOURS[cluster],
            label=f"bad, cluster {cluster + 1}",
            rasterized=True,
        )


_DRAW: dict[str, Callable[[Arrays, str], Figure]] = {
    "steps": _draw_steps,
    "levels": _draw_levels,
    "targets": _draw_targets,
    "thresholds": _draw_thresholds,
    "roc": _draw_roc,
    "maps": _draw_maps,
}
