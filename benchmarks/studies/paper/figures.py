"""Figures 3 to 8 of the paper, drawn of one split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from benchmarks.studies.paper.data import DATA
from benchmarks.studies.paper.readings import PaperSettings

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

#: Part → its points, columns x1, x2, y, f, g; for classes f and g are P(y = 1).
Parts = dict[str, pd.DataFrame]


def thin_points(
    points: ScoredRows, places: np.ndarray | None = None
) -> Iterator[dict[str, Any]]:
    """Yield points of a part as rows: its first two columns or its places in a map."""
    xy = points.Z if places is None else places
    kept = _spread_positions(len(points.y), MOST if places is None else len(places))
    for position, row in enumerate(kept):
        x = xy[row] if places is None else xy[position]
        f, g = points.f[row], points.g[row]
        values = {"x1": x[0], "x2": x[1] if len(x) > 1 else 0.0, "y": points.y[row]}
        values |= {"f": f if f.ndim == 0 else f[1], "g": g if g.ndim == 0 else g[1]}
        for name, value in values.items():
            yield {"point": position, "figure": name, "value": float(value)}


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
            wide = points.pivot_table(
                index="point", columns="figure", values="value", sort=False
            )
            by_row.setdefault(str(row), {})[str(part)] = wide
        pictures.append(
            Picture(
                file=f"{data}.svg",
                figure=DRAW[table.draw](by_row, str(data)),
                caption=DATA[str(data)].text,
            )
        )
    return pictures


def _make_panels(
    count: int, width: float = WIDTH, height: float = HEIGHT
) -> tuple[Figure, list[Axes]]:
    """Return a figure with at least so many axes, row by row."""
    n_columns = min(count, COLUMNS)
    n_rows = -(-count // COLUMNS)  # rounded up
    figure = Figure((width * n_columns, height * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    return figure, list(axes.flat)


def _spread_positions(size: int, most: int) -> np.ndarray:
    """Return at most so many positions, evenly spread."""
    if size <= most:
        return np.arange(size)
    return np.linspace(0, size - 1, most).astype(int)


def _scatter_points(
    ax: Axes, x: np.ndarray, y: np.ndarray, *, part: str, label: str = ""
) -> None:
    # as pixels: thousands of points as shapes would make a file of megabytes
    ax.scatter(
        x,
        y,
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
            x1, x2 = parts[name][["x1", "x2"]].to_numpy().T
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


def _draw_steps(rows: Mapping[str, Parts], data: str) -> Figure:
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


def _draw_levels(rows: Mapping[str, Parts], data: str) -> Figure:
    """Figure 4: F's predictions of bad and augmented rows, by level of perturbation."""
    figure, axes = _make_panels(len(rows))
    # there may be more axes than levels
    for ax, (row, parts) in zip(axes, rows.items(), strict=False):
        _scatter_predictions(ax, parts, ["ga", "bad"])
        _finish_predictions(ax, f"std of the perturbation {row}")
    for ax in axes[len(rows) :]:
        ax.set_axis_off()
    return figure


def _draw_targets(rows: Mapping[str, Parts], data: str) -> Figure:
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


def _draw_thresholds(rows: Mapping[str, Parts], data: str) -> Figure:
    """Figure 6: F's predictions of the test rows, the bad ones marked, by threshold."""
    figure, axes = _make_panels(len(rows))
    for ax, (row, parts) in zip(axes, rows.items(), strict=False):
        _scatter_predictions(ax, parts, ["test", "bad"])
        _finish_predictions(ax, f"alpha = {row}")
    return figure


def _draw_roc(rows: Mapping[str, Parts], data: str) -> Figure:
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
        # of one label there is no curve
        if is_positive.nunique() < 2:
            continue
        for model, style in (("f", "-"), ("g", "--")):
            false_rate, true_rate, _ = roc_curve(is_positive, parts[name][model])
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
    if len(ax.lines) > 1:
        ax.legend(fontsize=7)


def _draw_maps(rows: Mapping[str, Parts], data: str) -> Figure:
    """Figure 8: t-SNE of all rows; (a) clusters of bad rows, (b) augmented and synthetic rows."""
    _, n_clusters = MAP[DATA[data].family]
    parts = next(iter(rows.values()))
    places = {name: part[["x1", "x2"]].to_numpy() for name, part in parts.items()}
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


DRAW: dict[str, Callable[[Mapping[str, Parts], str], Figure]] = {
    "steps": _draw_steps,
    "levels": _draw_levels,
    "targets": _draw_targets,
    "thresholds": _draw_thresholds,
    "roc": _draw_roc,
    "maps": _draw_maps,
}
