"""Figures 3 to 8 of the paper, drawn of one split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.manifold import TSNE
from sklearn.metrics import roc_curve

from amlb_ext.hardening.baseline.estimator import fill_missing
from benchmarks.studies.page import Part, Picture
from benchmarks.studies.paper.chain import ScoredRows
from benchmarks.studies.paper.data import DATA, PaperSettings

if TYPE_CHECKING:
    from benchmarks.studies.paper.tables import PaperTable

#: Colours of the paper's captions: good or test, bad, augmented, synthetic.
COLOURS = {"test": "#6f7b87", "bad": "#c2371e", "ga": "#2e8b57", "synthetic": "#7740a8"}
TEXT = {"test": "test", "bad": "bad", "ga": "augmented", "synthetic": "synthetic"}
#: Colours of clusters; there are at most as many of these as Figure 8 needs.
CLUSTER_COLOURS = ("#c2371e", "#bd5600", "#ad3f80", "#5c50b0")
#: Of the lines that a perfect or a blind model would give.
LINE_COLOUR = "#1b2025"
#: Most points of a part that are kept, and in a map.
MOST, MOST_MAPPED = 5000, 600
#: Section 5.5: perplexity and number of clusters, by family.
MAP = {"regression": (15, 3), "classification": (30, 4)}
#: Levels of perturbation that Figure 5 shows.
SHOWN_LEVELS = ("0.02", "0.1")
#: Panels of a row, and the width and height of each in inches.
COLUMNS, WIDTH, HEIGHT = 3, 3.2, 2.9
ALL_PARTS = ("test", "bad", "ga", "synthetic")
#: Figure → its panels: how they are drawn, title and parts. A title with the row's name stands for
#: one panel per row of the table, the others show the first row.
PANELS: dict[str, tuple[tuple[str, str, tuple[str, ...]], ...]] = {
    "steps": (
        ("features", "(a) test rows", ("test",)),
        ("features", "(b) bad rows", ("test", "bad")),
        ("features", "(c) augmented", ("bad", "ga")),
        ("predictions", "(d) F", ("test", "ga", "bad")),
        ("features", "(e) synthetic", ("ga", "synthetic")),
        ("models", "(f) F and G on synthetic rows", ("synthetic",)),
    ),
    "levels": (("predictions", "std of the perturbation {row}", ("ga", "bad")),),
    "targets": (("targets", "std of the perturbation {row}", ("test", "bad", "ga")),),
    "thresholds": (("predictions", "alpha = {row}", ("test", "bad")),),
    "roc": (
        ("roc", "(a) test rows", ("test",)),
        ("roc", "(b) bad and made rows", ("bad", "ga", "synthetic")),
    ),
    "maps": (
        ("clusters", "clusters of bad rows", ("test", "bad")),
        ("map", "made rows", ALL_PARTS),
    ),
}

#: Part → its points, columns x1, x2, y, f, g; for classes f and g are P(y = 1).
Parts = dict[str, pd.DataFrame]


def thin_points(
    points: ScoredRows, places: np.ndarray | None = None
) -> Iterator[dict[str, Any]]:
    """Yield points of a part as rows: its first two columns or its places in a map."""
    most = MOST if places is None else len(places)
    for position, row in enumerate(_spread_positions(len(points.y), most)):
        x = points.Z[row] if places is None else places[position]
        f, g = points.f[row], points.g[row]
        yield {
            "x1": float(x[0]),
            "x2": float(x[1]) if len(x) > 1 else 0.0,
            "f": float(f if f.ndim == 0 else f[1]),
            "g": float(g if g.ndim == 0 else g[1]),
            "value": float(points.y[row]),
        }


def map_parts(parts: Mapping[str, ScoredRows], family: str) -> dict[str, np.ndarray]:
    """Return t-SNE places ``(n, 2)`` of rows of every part, embedded together."""
    perplexity, _ = MAP[family]
    chosen = {}
    for name in COLOURS:
        if name in parts:
            Z = parts[name].Z
            chosen[name] = Z[_spread_positions(len(Z), MOST_MAPPED)]
    Z = fill_missing(np.vstack(list(chosen.values())))
    tsne = TSNE(2, perplexity=min(perplexity, len(Z) - 1), random_state=42, init="pca")
    ends = np.cumsum([len(rows) for rows in chosen.values()])
    return dict(zip(chosen, np.split(tsne.fit_transform(Z), ends[:-1]), strict=True))


def draw_parts(
    table: PaperTable, rows: pd.DataFrame, chosen: PaperSettings
) -> list[Part]:
    """Return a picture of each data set's first split."""
    pictures: list[Part] = []
    first = rows[rows["draw"] == rows["draw"].iloc[0]]
    for data, of_data in first.groupby("data", sort=False):
        by_row: dict[str, Parts] = {}
        for (row, part), points in of_data.groupby(["row", "part"], sort=False):
            numbers = points[["x1", "x2", "f", "g"]].apply(pd.to_numeric)
            shown = numbers.assign(y=points["value"])
            by_row.setdefault(str(row), {})[str(part)] = shown
        pictures.append(
            Picture(
                file=f"{data}.svg",
                figure=draw_panels(table.draw, by_row, DATA[str(data)].family),
                caption=DATA[str(data)].text,
            )
        )
    return pictures


def draw_panels(name: str, rows: Mapping[str, Parts], family: str) -> Figure:
    """Return a figure of the paper: its panels, for each row or for the first."""
    if name == "targets":
        rows = {row: parts for row, parts in rows.items() if row in SHOWN_LEVELS}
    planned = []
    for position, (row, parts) in enumerate(rows.items()):
        for kind, title, names in PANELS[name]:
            if position == 0 or "{row}" in title:
                shown = {part: parts[part] for part in names if part in parts}
                planned.append((kind, title.format(row=row), shown))
    n_columns = min(len(planned), COLUMNS)
    n_rows = -(-len(planned) // COLUMNS)  # rounded up
    figure = Figure((WIDTH * n_columns, HEIGHT * n_rows), layout="constrained")
    axes = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
    for ax, (kind, title, shown) in zip(axes, planned, strict=False):
        if kind == "clusters":
            _draw_clusters(ax, shown, MAP[family][1])
        else:
            DRAW[kind](ax, shown)
        ax.set_title(title)
        handles, labels = ax.get_legend_handles_labels()
        if handles:
            ax.legend(handles, labels, fontsize=7, markerscale=2)
    for ax in axes[len(planned) :]:
        ax.set_axis_off()
    return figure


def _spread_positions(size: int, most: int) -> np.ndarray:
    """Return at most so many positions, evenly spread."""
    if size <= most:
        return np.arange(size)
    return np.linspace(0, size - 1, most).astype(int)


def _scatter(ax: Axes, x: Any, y: Any, colour: str, label: str) -> None:
    # as pixels: thousands of points as shapes would make a file of megabytes
    ax.scatter(
        x, y, s=5, color=colour, alpha=0.6, linewidths=0, label=label, rasterized=True
    )


def _draw_map(ax: Axes, parts: Parts) -> None:
    for name, points in parts.items():
        _scatter(ax, points["x1"], points["x2"], COLOURS[name], TEXT[name])
    # distances of t-SNE have no unit
    ax.set(xticks=[], yticks=[])


def _draw_features(ax: Axes, parts: Parts) -> None:
    _draw_map(ax, parts)
    limits, ticks = (-0.05, 1.05), (0.0, 0.5, 1.0)
    ax.set(
        xlabel="x1", ylabel="x2", xlim=limits, ylim=limits, xticks=ticks, yticks=ticks
    )


def _draw_predictions(ax: Axes, parts: Parts) -> None:
    """Show F's predictions over the targets, and the line on which they are right."""
    for name, points in parts.items():
        _scatter(ax, points["y"], points["f"], COLOURS[name], TEXT[name])
    ax.axline((0, 0), slope=1, color=LINE_COLOUR, linewidth=0.8, linestyle="--")
    ax.set(xlabel="target", ylabel="prediction")


def _draw_models(ax: Axes, parts: Parts) -> None:
    """Show predictions of F and G over the targets."""
    for points in parts.values():
        for model, part in (("f", "bad"), ("g", "ga")):
            _scatter(ax, points["y"], points[model], COLOURS[part], model.upper())
    _draw_predictions(ax, {})


def _draw_targets(ax: Axes, parts: Parts) -> None:
    for name, points in parts.items():
        ax.hist(
            points["y"],
            bins=40,
            density=True,
            alpha=0.5,
            color=COLOURS[name],
            label=TEXT[name],
        )
    ax.set(xlabel="scaled target", ylabel="density")


def _draw_roc(ax: Axes, parts: Parts) -> None:
    for name, points in parts.items():
        is_positive = points["y"] == 1
        # of one label there is no curve
        if is_positive.nunique() < 2:
            continue
        for model, style in (("f", "-"), ("g", "--")):
            false_rate, true_rate, _ = roc_curve(is_positive, points[model])
            label = f"{model.upper()}, {TEXT[name]}"
            ax.plot(false_rate, true_rate, style, color=COLOURS[name], label=label)
    ax.axline((0, 0), slope=1, color=LINE_COLOUR, linewidth=0.6, linestyle=":")
    ax.set(xlabel="false positive rate", ylabel="true positive rate")


def _draw_clusters(ax: Axes, parts: Parts, n_clusters: int) -> None:
    """Show the test rows of a map, and clusters of the bad ones."""
    _draw_map(ax, {"test": parts["test"]})
    bad = parts.get("bad", pd.DataFrame())
    if len(bad) < n_clusters:
        return
    places = bad[["x1", "x2"]].to_numpy()
    clusters = KMeans(n_clusters, n_init=10, random_state=42).fit_predict(places)
    for cluster in range(n_clusters):
        x, y = places[clusters == cluster].T
        _scatter(ax, x, y, CLUSTER_COLOURS[cluster], f"bad, cluster {cluster + 1}")


DRAW: dict[str, Callable[[Axes, Parts], None]] = {
    "features": _draw_features,
    "predictions": _draw_predictions,
    "models": _draw_models,
    "targets": _draw_targets,
    "roc": _draw_roc,
    "map": _draw_map,
}
