"""Methods of a study that make no rows: real labelled rows, and what a teacher adds to them."""

from __future__ import annotations

import numpy as np

from amlb_ext.stats.prediction_powered import prediction_powered_mean
from amlb_ext.stats.ranking import half_and_half_score
from benchmarks.studies.fidelity.answer import (
    Answer,
    average_rows,
    without_interval,
)
from benchmarks.studies.fidelity.draw import Points, reducible_gap
from benchmarks.studies.fidelity.sample import Method, Sample, expected_contrasts


def average_bad(s: Sample) -> Answer | None:
    """Mean over the bad rows."""
    return average_rows(s.delta[s.bad])


def average_all(s: Sample) -> Answer | None:
    """Mean over S."""
    return average_rows(s.delta)


def weight_by_chance(s: Sample) -> Answer | None:
    """Mean over S weighted by w."""
    return average_rows(s.delta, s.points.w)


def weight_by_reducible(s: Sample) -> Answer | None:
    """Mean over S weighted by v."""
    v = reducible_gap(s.points)
    # F equals the teacher everywhere: nothing is reducible, and no weighted mean exists
    if not v.sum() > 0:
        return None
    return average_rows(s.delta, v)


def half_on_sample(s: Sample) -> Answer | None:
    """Half-and-half score on S itself."""
    return _half_and_half(s, s.points)


def half_on_unlabelled(s: Sample) -> Answer | None:
    """Half-and-half score on unlabelled real rows."""
    return _half_and_half(s, s.draw.unlabelled)


def _half_and_half(s: Sample, points: Points) -> Answer | None:
    if not len(s.bad) or not len(points):
        return None
    tau, beta = expected_contrasts(s.draw, points)
    # a teacher that expects no failure has no expected loss of failures
    if not beta.sum() > 0:
        return None
    scores = []
    for bad_delta, model_tau in zip(s.delta[s.bad].T, tau.T, strict=True):
        scores.append(half_and_half_score(bad_delta, model_tau, beta).score)
    return without_interval(np.array(scores), len(s.bad) + len(points))


def power_by_unlabelled(s: Sample) -> Answer | None:
    """Prediction-powered weighted mean."""
    unlabelled = s.draw.unlabelled
    if not len(unlabelled):
        return None
    # unlike the half-and-half score it has an interval: every term is a mean of real rows
    # the teacher's expected delta, over all outcomes, predicts a row's delta
    tau, _ = expected_contrasts(s.draw, s.points, failures=False)
    tau_unlabelled, _ = expected_contrasts(s.draw, unlabelled, failures=False)
    estimates = []
    for delta, predicted, predicted_unlabelled in zip(
        s.delta.T, tau.T, tau_unlabelled.T, strict=True
    ):
        powered = prediction_powered_mean(
            delta,
            predicted,
            predicted_unlabelled,
            weights=s.points.w,
            weights_unlabelled=unlabelled.w,
        )
        estimates.append(powered.estimate)
    return Answer.from_estimates(estimates, len(s.y) + len(unlabelled))


REAL = {
    "few_bad": Method(average_bad, "the few real bad rows of S"),
    "whole": Method(average_all, "all of S, every row alike"),
    "weighted": Method(weight_by_chance, "all of S weighted by w = P(bad | x)"),
    "reducible": Method(weight_by_reducible, "all of S weighted by v = (T - F)^2"),
    "half": Method(
        half_on_sample, "half the bad rows, half the teacher's expected loss on S"
    ),
    "half_unlabelled": Method(
        half_on_unlabelled,
        "half the bad rows, half the teacher's expected loss on real rows U",
    ),
    "ppi_weighted": Method(
        power_by_unlabelled,
        "S weighted by w, prediction-powered by unlabelled real rows U",
    ),
}
