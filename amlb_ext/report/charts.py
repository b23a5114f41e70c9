"""The charts of a report, made from its rows and tables.

Figures after Zakharov & Boukhanovsky (2025): predictions against truth (3d, 4, 6), ROC curves (7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import numpy as np
import pandas as pd
from sklearn.metrics import roc_curve

from amlb_ext.core.display import format_number, format_percent
from amlb_ext.core.unit import F, Unit
from amlb_ext.report.compare import is_control_framework
from amlb_ext.report.model import (
    CandidateColour,
    Chart,
    ChartSeries,
    ColourRole,
    TaskReport,
)
from amlb_ext.report.overall import WITHHELD
from amlb_ext.report.predictions import TaskPredictions, has_prediction

#: Frameworks that a crowded chart shows, the best ones.
MOST_LINES = 5
#: A mean change of F's loss beyond this is told, not drawn.
OFF_THE_SCALE = 1.0
#: Points kept of a ROC curve: the eye sees no more.
_POINTS_ON_A_CURVE = 40
_PALETTE: tuple[ColourRole, ...] = get_args(CandidateColour)
#: Half the width of a 95 % interval, in standard errors.
_NORMAL_HALF_WIDTH = 1.96


def framework_colours(frameworks: Sequence[str]) -> dict[str, ColourRole]:
    """Return the colour of each framework, the same in all charts of a report.

    Examples
    --------
    >>> framework_colours(["flaml", "HardsynthNull"])
    {'F': 'f', 'flaml': 'c0', 'HardsynthNull': 'null'}
    """
    colours: dict[str, ColourRole] = {F: "f"}
    candidates = [name for name in frameworks if not is_control_framework(name)]
    for index, name in enumerate(candidates):
        # More candidates than colours share some; their names stand beside the marks.
        colours[name] = _PALETTE[index % len(_PALETTE)]
    for name in frameworks:
        if is_control_framework(name):
            colours[name] = "null"
    return colours


def contrast_chart(
    key: str,
    contrasts: pd.DataFrame,
    colours: Mapping[str, ColourRole],
    unit: Unit,
) -> Chart | None:
    """Return the contrasts with F and their intervals, the null control at the bottom.

    They are those of the region, and of all units where nothing was compared in the region.
    """
    if not len(contrasts):
        return None
    compared = contrasts.dropna(subset=["difference"])
    where, place = "all rows", f"on all {unit.many}"
    if (compared["where"] == "region").any():
        where, place = "region", "on the region"
    table = compared[compared["where"] == where]
    if not len(table):
        return None
    rows = table.to_dict("records")
    series = []
    for position, row in enumerate(rows):
        framework = str(row["framework"])
        marks = interval_mark(
            framework,
            position,
            (row["difference"], row["low"], row["high"]),
            role=colours.get(framework, "ink"),
            text=f"{framework}: {row['difference']:.4g} ({row['verdict']})",
        )
        series.append(marks)
    known = table[np.isfinite(table["null_difference"].to_numpy(dtype=float))]
    if len(known):
        # Every framework has the same re-fits beside it: the first row that has them will do.
        middle = float(known["null_difference"].iloc[0])
        half_width = _NORMAL_HALF_WIDTH * float(known["null_se"].iloc[0])
        marks = interval_mark(
            f"{unit.refits} of F (null)",
            len(rows),
            (middle, middle - half_width, middle + half_width),
            role="null",
            text=f"mean of F's {unit.refits}: {middle:.4g}, two standard errors either side",
        )
        series.append(marks)
    # For those who cannot see the marks.
    differences = ", ".join(
        f"{row['framework']} {format_number(row['difference'], sign=True)}"
        for row in rows
    )
    return Chart(
        key=key,
        title=f"Loss minus F's loss, {place}",
        about=f"Negative is better than F. {differences}. Bars are 95 % intervals; without a bar "
        "there is no interval.",
        x_label="mean loss minus F's",
        series=tuple(series),
        y_categories=tuple(marks.name for marks in series),
        guides=("zero",),
    )


def interval_mark(
    name: str,
    position: int,
    estimate: tuple[float, float, float],
    *,
    role: ColourRole,
    text: str = "",
) -> ChartSeries:
    """Return a mark and its interval on the row ``position`` of a chart by name.

    ``estimate`` is the point, and the low and the high limit.
    """
    point, low, high = estimate
    return ChartSeries(
        name=name,
        kind="intervals",
        x=np.array([point]),
        y=np.array([float(position)]),
        role=role,
        low=np.array([low]),
        high=np.array([high]),
        text=(text,) if text else (),
    )


def truth_chart(
    task: str,
    predictions: TaskPredictions,
    order: Sequence[str],
    *,
    colours: Mapping[str, ColourRole],
    most: int,
) -> Chart | None:
    """Return predictions against the truth for F and the best candidates (regression).

    Parameters
    ----------
    task : str
    predictions : TaskPredictions
        Of real rows.
    order : sequence of str
        Candidates, the best first.
    colours : mapping of str to ColourRole
    most : int
        Points per model; the rows are thinned evenly along the truth.
    """
    entrants = _best_entrants(predictions, order, 2)
    if not entrants:
        return None
    # Thinned along the truth: rows with rare, extreme targets stay.
    shown = np.argsort(predictions.y, kind="stable")
    shown = shown[_spread_evenly(len(shown), most)]
    series = []
    for symbol, (name, f) in enumerate(entrants.items()):
        points = ChartSeries(
            name=name,
            kind="points",
            x=predictions.y[shown],
            y=f[shown],
            role=colours.get(name, "ink"),
            symbol=symbol,
        )
        series.append(points)
    return Chart(
        key=f"{task}-truth",
        title="Prediction against truth, real rows",
        about="Each point is a row; on the diagonal the prediction is right.",
        x_label="truth",
        y_label="prediction",
        series=tuple(series),
        guides=("diagonal",),
    )


def roc_chart(
    task: str,
    predictions: TaskPredictions,
    order: Sequence[str],
    *,
    colours: Mapping[str, ColourRole],
    weights: np.ndarray | None,
) -> Chart | None:
    """Return ROC curves of F and the best candidates; one class against the rest, averaged.

    With more than two classes the curve is the micro average: every (row, class) is one case.
    """
    series = []
    for name, f in _best_entrants(predictions, order, MOST_LINES).items():
        shown = has_prediction(f)
        shown_weights = None if weights is None else weights[shown]
        curve = _roc_curve(predictions.y[shown], f[shown], shown_weights)
        if curve is None:
            continue
        false_rate, true_rate = curve
        line = ChartSeries(
            name=name,
            kind="line",
            x=false_rate,
            y=true_rate,
            role=colours.get(name, "ink"),
        )
        series.append(line)
    if not series:
        return None
    classes = "every class against the rest, together"
    if len(predictions.labels) == 2:
        classes = "the last class"
    title = "ROC on the failure region (real rows, weighted)"
    if weights is None:
        title = "ROC on all real rows, each counting alike"
    return Chart(
        key=f"{task}-roc-region",
        title=title,
        about=f"ROC curves for {classes}; nearer to the upper left corner is better.",
        x_label="false positive rate",
        y_label="true positive rate",
        series=tuple(series),
        guides=("diagonal",),
    )


def _best_entrants(
    predictions: TaskPredictions, order: Sequence[str], most: int
) -> dict[str, np.ndarray]:
    """Return predictions of F, where known, and of the best candidates."""
    entrants: dict[str, np.ndarray] = {}
    own = predictions.own()
    if own is not None and not np.isnan(own).all():
        entrants[F] = own
    candidates = [name for name in order if name in predictions.f]
    for name in candidates[:most]:
        entrants[name] = predictions.f[name]
    return entrants


def _roc_curve(
    y: np.ndarray, probabilities: np.ndarray, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return false and true positive rates; None where there is one class only."""
    n_classes = probabilities.shape[1]
    if n_classes == 2:
        is_hit = y == 1
        score = probabilities[:, 1]
    else:
        # Micro average: every (row, class) is one case, with the weight of its row.
        is_hit = (y[:, None] == np.arange(n_classes)).ravel()
        score = probabilities.ravel()
        weights = None if weights is None else np.repeat(weights, n_classes)
    if not len(is_hit) or is_hit.all() or not is_hit.any():
        return None
    false_rate, true_rate, _ = roc_curve(is_hit, score, sample_weight=weights)
    # some of its corners, the ends among them
    kept = _spread_evenly(len(false_rate), _POINTS_ON_A_CURVE)
    return false_rate[kept], true_rate[kept]


def _spread_evenly(n: int, most: int) -> np.ndarray:
    """Return ``most`` of the positions 0 to n - 1 or fewer, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, most).round().astype(int))


def trade_off_chart(
    tasks: Sequence[TaskReport], colours: Mapping[str, ColourRole]
) -> Chart | None:
    """Return what each candidate gains where F fails against what it loses elsewhere."""
    points: dict[str, list[tuple[str, float, float]]] = {}
    left_out = []
    for task in tasks:
        if not len(task.contrasts):
            continue
        known = task.asked("all rows").dropna(subset=["from_region", "from_elsewhere"])
        for row in known.to_dict("records"):
            name = str(row["framework"])
            if is_control_framework(name) or row["verdict"] in WITHHELD:
                continue
            parts = 100 * row["from_elsewhere"], 100 * row["from_region"]
            title = task.shown_name
            if max(np.abs(parts)) > 100 * OFF_THE_SCALE:
                change = format_percent(sum(parts) / 100, sign=True)
                left_out.append(f"{name} on {title} ({change} in all)")
            else:
                points.setdefault(name, []).append((title, *parts))
    if not points:
        return None
    series = []
    for place, (name, own) in enumerate(sorted(points.items())):
        texts = []
        for title, elsewhere, region in own:
            texts.append(
                f"{name} on {title}: {region:+.1f} % where F fails, {elsewhere:+.1f} % elsewhere"
            )
        marks = ChartSeries(
            name=name,
            kind="points",
            x=np.array([elsewhere for _, elsewhere, _ in own]),
            y=np.array([region for _, _, region in own]),
            role=colours.get(name, "ink"),
            text=tuple(texts),
            symbol=place % 6,
        )
        series.append(marks)
    about = (
        "Each point is a candidate on a task. Both axes are in percent of F's whole loss, so they "
        f"add up to the change on all {tasks[0].unit.many}. Below the dashed line a candidate has "
        "less loss than F in total: at the lower left everywhere; at the lower right it gains "
        "where F fails and "
        "loses elsewhere."
    )
    if left_out:
        about += f" Off the scale, not drawn: {'; '.join(left_out)}."
    return Chart(
        key="trade-off",
        title="Gain where F fails, against loss elsewhere",
        about=about,
        x_label="change elsewhere, in % of F's loss",
        y_label="change where F fails, in % of F's loss",
        series=tuple(series),
        guides=("zero", "level", "break-even"),
    )
