"""The charts of a report: from rows and tables to what is to be seen.

Figures after Zakharov & Boukhanovsky (2025): predictions against truth (3d, 4, 6), distribution
of the target (5), ROC curves (7); the map of failures (8) is drawn by ``failures``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from sklearn.metrics import roc_curve

from amlb_ext.report.compare import is_control_framework
from amlb_ext.report.model import Chart, ChartSeries, ColourRole
from amlb_ext.report.parts import F
from amlb_ext.report.predictions import TaskPredictions

#: Frameworks that a crowded chart shows, the best ones.
MOST_LINES = 5
#: A mean change of F's loss beyond this is told, not drawn.
OFF_THE_SCALE = 1.0
_POINTS_ON_A_CURVE = 60
ORIGINS: dict[str, ColourRole] = {
    "good": "good",
    "bad": "bad",
    "ga": "ga",
    "synthetic": "synthetic",
}
WORDS = {"good": "good rows", "bad": "bad rows", "ga": "augmented rows",
         "synthetic": "synthetic rows"}  # fmt: skip


def framework_colours(frameworks: Sequence[str]) -> dict[str, ColourRole]:
    """Return the colour of each framework, the same in all charts of a report.

    Examples
    --------
    >>> framework_colours(["flaml", "HardsynthNull"])
    {'F': 'f', 'flaml': 'c0', 'HardsynthNull': 'null'}
    """
    colours: tuple[ColourRole, ...] = ("c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7")
    out: dict[str, ColourRole] = {F: "f"}
    candidates = [name for name in frameworks if not is_control_framework(name)]
    for index, name in enumerate(candidates):
        out[name] = colours[index % len(colours)]
    return out | {name: "null" for name in frameworks if is_control_framework(name)}


def contrast_chart(
    key: str, contrasts: pd.DataFrame, colours: Mapping[str, ColourRole]
) -> Chart | None:
    """Return the contrasts with F and their intervals, the null control at the bottom."""
    table = contrasts[contrasts["where"] == "region"] if len(contrasts) else contrasts
    table = table.dropna(subset=["difference"]) if len(table) else table
    if not len(table):
        return None
    names = [*table["framework"], "re-fits of F (null)"]
    series = [
        ChartSeries(
            str(row["framework"]),
            "intervals",
            np.array([row["difference"]]),
            np.array([float(position)]),
            colours.get(str(row["framework"]), "ink"),
            np.array([row["low"]]),
            np.array([row["high"]]),
            (f"{row['framework']}: {row['difference']:.4g} ({row['verdict']})",),
        )
        for position, row in enumerate(table.to_dict("records"))
    ]
    middle, se = table["null_difference"].to_numpy(), table["null_se"].to_numpy()
    if np.isfinite(middle).any():
        where = int(np.flatnonzero(np.isfinite(middle))[0])
        at, half = float(middle[where]), 1.96 * float(se[where])
        series.append(
            ChartSeries(
                "re-fits of F (null)",
                "intervals",
                np.array([at]),
                np.array([float(len(names) - 1)]),
                "null",
                np.array([at - half]),
                np.array([at + half]),
                (f"mean of F's re-fits: {at:.4g}, two standard errors either side",),
            )
        )
    else:
        names.pop()
    said = ", ".join(f"{r['framework']} {r['difference']:.3g}" for r in table.to_dict("records"))
    return Chart(
        key,
        "Loss minus F's loss, on the region",
        f"Negative is better than F. {said}. Bars are 95 % intervals; no bar, no interval.",
        "difference of mean loss from F",
        "",
        tuple(series),
        y_categories=tuple(map(str, names)),
        guides=("zero",),
    )


def target_chart(key: str, views: Mapping[str, TaskPredictions]) -> Chart | None:
    """Return how the target is distributed among good, bad, augmented and synthetic rows."""
    found = _by_origin(views)
    if not found:
        return None
    view = next(iter(views.values()))
    series = []
    if view.labels:
        for origin, y in found.items():
            share = np.bincount(y.astype(int), minlength=len(view.labels)) / len(y)
            text = [f"{WORDS[origin]}, {n}: {s:.1%}" for n, s in zip(view.labels, share,
                                                                   strict=True)]  # fmt: skip
            at = np.arange(len(view.labels), dtype=float)
            series.append(ChartSeries(WORDS[origin], "bars", at, share, ORIGINS[origin], text=text))
        labels: tuple[str, ...] = view.labels
    else:
        edges = np.histogram_bin_edges(np.concatenate(list(found.values())), bins=20)
        for origin, y in found.items():
            share = np.histogram(y, edges)[0] / len(y)
            series.append(ChartSeries(WORDS[origin], "bars", edges, share, ORIGINS[origin]))
        labels = ()
    counts = ", ".join(f"{len(y)} {WORDS[origin]}" for origin, y in found.items())
    return Chart(
        key,
        "Target, by kind of row",
        f"Share of each kind of row per {'class' if labels else 'bin'}; {counts}.",
        "class" if labels else "target",
        "share of rows",
        tuple(series),
        x_categories=labels,
    )


def _by_origin(views: Mapping[str, TaskPredictions]) -> dict[str, np.ndarray]:
    found = {}
    for suffix, origins in (("full", ("good", "bad")), ("ga", ("ga",)), ("", ("ga", "synthetic"))):
        view = views.get(suffix)
        for origin in origins:
            if view is not None and origin not in found:
                rows = (view.rows["origin"] == origin).to_numpy()
                if rows.any():
                    found[origin] = view.y[rows]
    return found


def truth_chart(
    key: str,
    title: str,
    view: TaskPredictions,
    rows: np.ndarray,
    order: Sequence[str],
    colours: Mapping[str, ColourRole],
    most: int,
) -> Chart | None:
    """Return predictions against the truth for F and the best candidates (regression).

    Parameters
    ----------
    key, title : str
    view : Predicted
    rows : ndarray of shape (n,), bool
        The rows to show.
    order : sequence of str
        Candidates, the best first.
    colours : mapping of str to Role
    most : int
        Points per model; the rows are thinned evenly along the truth.
    """
    entrants = _some(view, order, 2)
    at = np.flatnonzero(rows)
    if view.labels or not entrants or not len(at):
        return None
    at = at[np.argsort(view.y[at], kind="stable")]
    at = at[np.unique(np.linspace(0, len(at) - 1, most).round().astype(int))]
    series = []
    for number, (name, f) in enumerate(entrants.items()):
        series.append(
            ChartSeries(name, "points", view.y[at], f[at], colours.get(name, "ink"), symbol=number)
        )
    return Chart(
        key,
        title,
        "Each point is a row; on the diagonal the prediction is right.",
        "truth",
        "prediction",
        tuple(series),
        guides=("diagonal",),
        square=True,
    )


def roc_chart(
    key: str,
    title: str,
    view: TaskPredictions,
    rows: np.ndarray,
    weights: np.ndarray | None,
    order: Sequence[str],
    colours: Mapping[str, ColourRole],
) -> Chart | None:
    """Return ROC curves of F and the best candidates; one class against the rest, averaged.

    With more than two classes the curve is the micro average: every (row, class) is one case.
    """
    if not view.labels:
        return None
    series = []
    for name, f in _some(view, order, MOST_LINES).items():
        keep = rows & ~np.isnan(f[:, 0])
        curve = _curve(view.y[keep], f[keep], None if weights is None else weights[keep])
        if curve is not None:
            series.append(ChartSeries(name, "line", *curve, colours.get(name, "ink")))
    if not series:
        return None
    what = "the last class" if len(view.labels) == 2 else "every class against the rest, together"
    return Chart(
        key,
        title,
        f"ROC curves for {what}; nearer to the upper left corner is better.",
        "false positive rate",
        "true positive rate",
        tuple(series),
        guides=("diagonal",),
        square=True,
    )


def _some(view: TaskPredictions, order: Sequence[str], most: int) -> dict[str, np.ndarray]:
    """Return predictions of F, where known, and of the best candidates."""
    own = view.own()
    out = {} if own is None or np.isnan(own).all() else {F: own}
    for name in [name for name in order if name in view.f][:most]:
        out[name] = view.f[name]
    return out


def _curve(
    y: np.ndarray, f: np.ndarray, w: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray] | None:
    if f.shape[1] == 2:
        hit, score = y == 1, f[:, 1]
    else:
        hit, score = (y[:, None] == np.arange(f.shape[1])).ravel(), f.ravel()
        w = None if w is None else np.repeat(w, f.shape[1])
    if not len(hit) or hit.all() or not hit.any():
        return None
    x, t, _ = roc_curve(hit, score, sample_weight=w)
    if len(x) > _POINTS_ON_A_CURVE:
        # points evenly spread along the curve, its ends among them
        way = np.cumsum(np.r_[0.0, np.hypot(np.diff(x), np.diff(t))])
        at = np.searchsorted(way, np.linspace(0, way[-1], _POINTS_ON_A_CURVE))
        at = np.unique(np.r_[0, np.minimum(at, len(x) - 1), len(x) - 1])
        x, t = x[at], t[at]
    return x, t


def overall_chart(overall: pd.DataFrame, colours: Mapping[str, ColourRole]) -> Chart | None:
    """Return the mean saving over tasks per framework, with its interval over tasks."""
    table = overall[np.isfinite(overall["relative"].to_numpy(dtype=float))]
    far = table[table["relative"].abs() > OFF_THE_SCALE]
    if len(far) < len(table):  # one constant predictor would hide all others
        table = table.drop(far.index)
    else:
        far = far.head(0)
    if not len(table):
        return None
    series = [
        ChartSeries(
            str(row["framework"]),
            "intervals",
            100 * np.array([row["relative"]]),
            np.array([float(position)]),
            colours.get(str(row["framework"]), "ink"),
            100 * np.array([row["low"]]),
            100 * np.array([row["high"]]),
            (f"{row['framework']}: {row['relative']:+.1%} over {row['tasks']} tasks",),
        )
        for position, row in enumerate(table.to_dict("records"))
    ]
    said = _changes(table)
    if len(far):
        said += f". Off the scale, not drawn: {_changes(far)}"
    return Chart(
        "overall",
        "Mean change of F's loss in its failure region, over tasks",
        f"Negative saves loss. {said}. Bars are 95 % intervals with tasks as the sample.",
        "change of F's loss, in %",
        "",
        tuple(series),
        y_categories=tuple(map(str, table["framework"])),
        guides=("zero",),
    )


def _changes(table: pd.DataFrame) -> str:
    return ", ".join(f"{r['framework']} {r['relative']:+.0%}" for r in table.to_dict("records"))
