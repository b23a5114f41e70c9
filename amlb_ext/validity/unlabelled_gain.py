"""What unlabelled real rows add to a certificate: narrower intervals, where they may be used."""

from __future__ import annotations

import numpy as np

from amlb_ext.stats.prediction_powered import prediction_powered_mean
from amlb_ext.validity.evaluation import TaskEvaluation
from amlb_ext.validity.measures import Measure, finite_or_none, make_measure, missing_measure
from amlb_ext.validity.unlabelled import Unlabelled

#: Refitted weights may differ from the stored ones by this much.
DRIFT = 1e-3
SOURCE = "Angelopoulos et al. 2023, prediction-powered inference"


def measure_unlabelled_gain(
    found: TaskEvaluation, far: Unlabelled
) -> tuple[list[Measure], dict[str, dict[str, float | None]]]:
    """Return what unlabelled rows add: two measures, and per candidate both intervals.

    Labelled rows are judged by their own fold; an unlabelled row counts once, with the mean
    weight over folds and the weighted mean of tau.
    """
    support = far.support
    names = ("unlabelled support", "ppi gain")
    text = f"of {len(far.features)} unlabelled rows, share that lies where labelled test rows do"
    why = "docs/validity.md; nearly as many as of the labelled rows among themselves"
    inside = make_measure(
        names[0],
        support.share_inside,
        text,
        why,
        threshold=finite_or_none(support.least),
        sense=">=",
    )
    out = [inside]
    if support.refused:
        reason = f"unlabelled rows were not used: {support.reason}"
        return [*out, missing_measure(names[1], reason, SOURCE, None, "")], {}
    drift = max(v.drift for v in found.views)
    if not drift <= DRIFT:
        found.notes.append(
            f"region weights fitted again differ from the stored ones by up to {drift:.2g}; "
            "intervals with unlabelled rows use the new ones"
        )
    full = found.parts["full"].losses
    w = np.concatenate([v.weight for v in found.views])
    w_far = np.mean([v.far_weight for v in found.views], axis=0)
    table: dict[str, dict[str, float | None]] = {}
    ratios = []
    for column, name in enumerate(found.names):
        tau = np.concatenate([v.tau[name] for v in found.views])
        tau_far = np.mean([v.far_weight * v.far[name] for v in found.views], axis=0) / w_far
        both = prediction_powered_mean(
            full.G[:, column] - full.F,
            tau,
            tau_far,
            weights=w,
            weights_unlabelled=w_far,
            clusters=full.c,
        )
        a, b = both.classical, both.estimate
        values = {"difference": a.point, "low": a.low, "high": a.high, "lam": both.lam}
        values |= {"ppi_difference": b.point, "ppi_low": b.low, "ppi_high": b.high}
        table[name] = {key: finite_or_none(value) for key, value in values.items()}
        ratios.append(both.width_ratio)
    some = [ratio for ratio in ratios if np.isfinite(ratio)]
    if not some:
        return [
            *out,
            missing_measure(names[1], "no candidate has an interval", SOURCE, None, ""),
        ], table
    gain = float(np.mean(some))
    text = (
        f"intervals of candidates minus F on the region are {1 - gain:.0%} narrower with "
        f"{len(far.features)} unlabelled rows; the value is the mean ratio of widths"
    )
    return [*out, make_measure(names[1], gain, text, SOURCE)], table
