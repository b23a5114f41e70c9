"""Methods of a study that make no rows: real labelled rows, and what a teacher adds to them."""

from __future__ import annotations

import numpy as np

from amlb_ext.experiments.fidelity.draw import (
    Answer,
    Points,
    from_rows,
    reducible_gap,
    without_interval,
)
from amlb_ext.experiments.fidelity.sample import Method, Sample, expected_contrasts
from amlb_ext.stats.prediction_powered import prediction_powered_mean
from amlb_ext.stats.ranking import half_and_half_score


def few_bad(s: Sample) -> Answer | None:
    """Mean over the bad rows."""
    return from_rows(s.delta[s.bad])


def whole(s: Sample) -> Answer | None:
    """Mean over S."""
    return from_rows(s.delta)


def weighted(s: Sample) -> Answer | None:
    """Mean over S weighted by w."""
    return from_rows(s.delta, s.points.w)


def weighted_reducible(s: Sample) -> Answer | None:
    """Mean over S weighted by v."""
    v = reducible_gap(s.points)
    return from_rows(s.delta, v) if v.sum() > 0 else None


def _half(s: Sample, points: Points) -> Answer | None:
    if not len(s.bad) or not len(points):
        return None
    tau, beta = expected_contrasts(s.draw, points)
    if not beta.sum() > 0:
        return None
    columns = zip(s.delta[s.bad].T, tau.T, strict=True)
    score = [half_and_half_score(few, column, beta).score for few, column in columns]
    return without_interval(np.array(score), len(s.bad) + len(points))


def half(s: Sample) -> Answer | None:
    """Half-and-half score on S itself."""
    return _half(s, s.points)


def half_unlabelled(s: Sample) -> Answer | None:
    """Half-and-half score on unlabelled real rows."""
    return _half(s, s.draw.unlabelled)


def ppi_weighted(s: Sample) -> Answer | None:
    """Prediction-powered weighted mean."""
    far = s.draw.unlabelled
    if not len(far):
        return None
    near_tau = expected_contrasts(s.draw, s.points, failures=False)[0]
    far_tau = expected_contrasts(s.draw, far, failures=False)[0]
    found = []
    for values, near, unlabelled in zip(s.delta.T, near_tau.T, far_tau.T, strict=True):
        powered = prediction_powered_mean(
            values, near, unlabelled, weights=s.points.w, weights_unlabelled=far.w
        )
        found.append(powered.estimate)
    return Answer.of(found, len(s.y) + len(far))


REAL = {
    "few_bad": Method(few_bad, "the few real bad rows of S"),
    "whole": Method(whole, "all of S, every row alike"),
    "weighted": Method(weighted, "all of S weighted by w = P(bad | x)"),
    "reducible": Method(weighted_reducible, "all of S weighted by v = (T - F)^2"),
    "half": Method(half, "half the bad rows, half the teacher's expected loss on S"),
    "half_unlabelled": Method(
        half_unlabelled,
        "half the bad rows, half the teacher's expected loss on real rows U",
    ),
    "ppi_weighted": Method(
        ppi_weighted, "S weighted by w, prediction-powered by unlabelled real rows U"
    ),
}
