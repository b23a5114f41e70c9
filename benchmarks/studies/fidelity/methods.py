"""Methods of a study: real labelled rows, and made ones.

Those that make rows use the product's own search and synthesizers, by setting: each unites the
bad rows of S with rows made from them, and clusters by the bad row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from amlb_ext.core.config import PRESETS, build_config, merge_layers
from amlb_ext.hardening.fold import make_side
from amlb_ext.hardening.hardness import raw_hardness
from amlb_ext.hardening.judged_rows import FoldModels, JudgedRows, judge_real_rows
from amlb_ext.hardening.made_rows.screening import MadeSide
from amlb_ext.stats.prediction_powered import prediction_powered_mean
from amlb_ext.validity.calibration import calibrate
from amlb_ext.validity.held_out_parts import HeldOutCandidates
from benchmarks.studies.fidelity.draw import Draw, Points, once
from benchmarks.studies.fidelity.sample import (
    METHODS,
    Answer,
    Method,
    Sample,
    average_rows,
    expected_contrasts,
    method,
    without_interval,
)


@method
def few_bad(s: Sample) -> Answer | None:
    """The few real bad rows of S."""
    return average_rows(s.delta[s.bad])


@method
def whole(s: Sample) -> Answer | None:
    """All of S, every row alike."""
    return average_rows(s.delta)


@method
def weighted(s: Sample) -> Answer | None:
    """All of S weighted by w = P(bad | x)."""
    return average_rows(s.delta, s.points.w)


@method
def reducible(s: Sample) -> Answer | None:
    """All of S weighted by v = (T - F)^2."""
    # the kind "reducible" reads no label
    no_label = np.zeros(len(s.y))
    v = raw_hardness("reducible", no_label, s.points.f, s.points.t)
    # F equals the teacher everywhere: nothing is reducible, and no weighted mean exists
    if not v.sum() > 0:
        return None
    return average_rows(s.delta, v)


@method
def half(s: Sample) -> Answer | None:
    """Half the bad rows, half the teacher's expected loss on S."""
    return _half_and_half(s, s.points)


@method
def half_unlabelled(s: Sample) -> Answer | None:
    """Half the bad rows, half the teacher's expected loss on real rows U."""
    return _half_and_half(s, s.draw.unlabelled)


def _half_and_half(s: Sample, points: Points) -> Answer | None:
    if not len(s.bad) or not len(points):
        return None
    tau, beta = expected_contrasts(s.draw, points)
    # a teacher that expects no failure has no expected loss of failures
    if not beta.sum() > 0:
        return None
    realised = s.delta[s.bad].mean(axis=0)
    # a ratio of sums, not a mean of ratios: rows that are hardly ever bad hardly count
    expected = tau.sum(axis=0) / beta.sum()
    return without_interval((realised + expected) / 2, len(s.bad) + len(points))


@method
def ppi_weighted(s: Sample) -> Answer | None:
    """S weighted by w, prediction-powered by unlabelled real rows U."""
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
        estimate = prediction_powered_mean(
            delta,
            predicted,
            predicted_unlabelled,
            weights=s.points.w,
            weights_unlabelled=unlabelled.w,
        )
        estimates.append(estimate)
    return Answer.from_estimates(estimates, len(s.y) + len(unlabelled))


Layer = Mapping[str, Any]

#: Methods that were studied before made rows kept relations stay as they were.
_WITHOUT_RELATIONS: Layer = {"relations": {"mine": False}}
_WITH_RELATIONS: Layer = {"relations": {"mine": True}}
_UNFILTERED: Layer = {"search": {"operators": {"agreement": False}}}
_GENTLE: Layer = {
    "search": {"kappa": 0.02, "operators": {"sigma2": 0.0005, "strength": 0.05}}
}
#: No search at all: copies of the bad rows, jittered once, with the labels they have.
_STILL: Layer = {
    "search": {
        "kappa": 0.0,
        "operators": {
            "generations": 0,
            "sigma2": 0.0,
            "jitter": 0.03,
            "reapply": False,
        },
    }
}


def make_rows(s: Sample, name: str, layer: Layer) -> MadeSide:
    """Make rows from the bad rows of S under settings; once for each name.

    Parameters
    ----------
    s : Sample
    name : str
        Keys the random streams too, so methods of one name share their rows.
    layer : mapping
        Settings above those of the draw.
    """

    def make() -> MadeSide:
        fold = s.draw.prepared.models
        # the draw's settings are complete: a preset below them would say nothing
        settings = s.draw.config.model_dump(exclude={"preset"})
        config = build_config(settings, dict(_WITHOUT_RELATIONS), dict(layer))
        # the draw has mined its training rows; a method keeps what was found, or does not
        relations = fold.relations if config.relations.mine else None
        models = dataclasses.replace(fold, config=config, relations=relations)
        return make_side(models, judge_sample(s, models), f"{s.key} {name}")

    return once(s.shared, name, make)


def judge_sample(s: Sample, models: FoldModels) -> JudgedRows:
    """Return the rows of S as K and the oracle judge them."""
    points = s.points
    # judged rows have an axis of targets, and a study's task has one target
    return judge_real_rows(
        models,
        features=models.encoder.inverse(points.Z),
        Z=points.Z,
        y=s.y[:, None],
        f=points.f[:, None],
        t=points.t[:, None],
        row=s.rows,
    )


def average_with_bad(s: Sample, made: JudgedRows) -> Answer | None:
    """Return the answer of made rows, united with the bad rows of S."""
    delta, clusters = s.delta[s.bad], s.bad
    if len(made):
        made_delta = s.draw.score_rows(made.Z).delta(made.y[:, 0])
        delta = np.vstack([delta, made_delta])
        # a made row is no observation of its own: it counts with the bad row it comes from
        clusters = np.concatenate([clusters, made.parent])
    return average_rows(delta, None, clusters)


def held_out_of(draw: Draw) -> HeldOutCandidates:
    """Return the parts of a draw's training rows with their candidates, fitted once."""
    return once(
        draw.shared,
        "held_out",
        lambda: HeldOutCandidates([draw.task], draw.config, draw.cross),
    )


def calibrated_kappa(s: Sample) -> float:
    """Return the kappa of preset ``faithful``, from the training rows of the draw."""
    draw = s.draw

    def calibrated() -> float:
        [calibration] = calibrate([draw.task], 0, draw.config, held_out_of(draw))
        return float(calibration.kappa)

    # kept by the draw, not by the sample: it reads the training rows alone
    return once(draw.shared, "kappa", calibrated)


def _add_made(
    name: str,
    text: str,
    *layers: Layer,
    part: Literal["augmented", "synthetic"] = "augmented",
    is_calibrated: bool = False,
) -> None:
    """Add the method of the bad rows of S and of rows made from them, by settings."""
    if part == "augmented":
        layers = (*layers, {"synthesizer": {"times": 0.0}})

    def run(s: Sample) -> Answer | None:
        # every made row starts from a bad one
        if not len(s.bad):
            return None
        kappa = {"search": {"kappa": calibrated_kappa(s)}} if is_calibrated else {}
        side = make_rows(s, name, merge_layers(kappa, *layers))
        return average_with_bad(s, getattr(side, part).rows)

    METHODS[name] = Method(run, text)


_add_made("jitter", "bad rows and jittered copies, labels kept", _STILL, _UNFILTERED)
_add_made("literal", "the paper's augmentation (preset literal)", PRESETS["literal"])
_add_made("gentle", "kappa .02, near start, no filter", _GENTLE, _UNFILTERED)
_add_made("gentle_filtered", "kappa .02, near start, agreement filter", _GENTLE)
_add_made("stress", "preset stress, augmented rows", PRESETS["stress"])
# kappa weighs how far the search may push a row: from not at all to as hard as the paper
for _kappa in (0.0, 0.005, 0.02, 0.1, 0.5):
    _text = f"preset faithful at kappa {_kappa:g}, augmented rows"
    _add_made(f"kappa_{_kappa:g}", _text, {"search": {"kappa": _kappa}})
for _synthesizer in ("vae", "copula", "local"):
    _add_made(
        _synthesizer,
        f"synthetic rows of {_synthesizer}, learnt from kappa_0.005",
        {"search": {"kappa": 0.005}, "synthesizer": {"name": _synthesizer}},
        part="synthetic",
    )
_add_made(
    "faithful",
    "preset faithful, kappa calibrated; augmented rows, relations not kept",
    _WITHOUT_RELATIONS,
    is_calibrated=True,
)
_add_made(
    "feasible",
    "the same, where augmented rows keep the relations between columns",
    _WITH_RELATIONS,
    is_calibrated=True,
)
_add_made(
    "feasible_vae",
    "synthetic rows of vae that keep the relations, learnt from kappa_0.005",
    {"search": {"kappa": 0.005}},
    _WITH_RELATIONS,
    part="synthetic",
)
_add_made(
    "faithful_vae",
    "bad rows and synthetic rows of the VAE, kappa calibrated, relations kept: the main task of "
    "--composition bad,synthetic",
    _WITH_RELATIONS,
    part="synthetic",
    is_calibrated=True,
)
