"""Methods of a study that make rows: the product's own search and synthesizers, by setting.

Every method unites the bad rows of S with rows made from them, and clusters by the bad row;
``*_alone`` leaves the bad rows out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from amlb_ext.core.config import PRESETS, build_config, merge_layers
from amlb_ext.hardening.judged_rows import FoldModels, JudgedRows, judge_real_rows
from amlb_ext.hardening.made_rows.sides import MadeSide, make_side
from amlb_ext.validity.calibration import calibrate
from amlb_ext.validity.held_out_parts import HeldOutCandidates
from benchmarks.studies.fidelity.answer import Answer, average_rows
from benchmarks.studies.fidelity.draw import Draw
from benchmarks.studies.fidelity.sample import Function, Method, Sample

Layer = Mapping[str, Any]

#: Methods that were studied before made rows kept relations stay as they were.
_WITHOUT_RELATIONS: Layer = {"relations": {"mine": False}}
_WITH_RELATIONS: Layer = {"relations": {"mine": True}}
_NO_SYNTHESIZER: Layer = {"synthesizer": {"times": 0.0}}
_UNFILTERED: Layer = {"search": {"operators": {"agreement": False}}}
_GENTLE: Layer = {
    "search": {"kappa": 0.02, "operators": {"sigma2": 0.0005, "strength": 0.05}}
}
#: No search at all: copies of the bad rows, jittered once, with the labels they have.
_STILL: Layer = {
    "search": {
        "kappa": 0.0,
        "generations": 0,
        "operators": {"sigma2": 0.0, "jitter": 0.03, "reapply": False},
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
    if name not in s.shared:
        fold = s.draw.prepared.models
        # the draw's settings are complete: a preset below them would say nothing
        settings = s.draw.config.model_dump(exclude={"preset"})
        config = build_config(settings, dict(_WITHOUT_RELATIONS), dict(layer))
        # the draw has mined its training rows; a method keeps what was found, or does not
        relations = fold.relations if config.relations.mine else None
        models = dataclasses.replace(fold, config=config, relations=relations)
        real = judge_sample(s, models)
        s.shared[name] = make_side(models, real, f"{s.key} {name}")
    return s.shared[name]


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


def average_with_bad(s: Sample, made: JudgedRows, alone: bool = False) -> Answer | None:
    """Return the answer of made rows, united with the bad rows of S unless alone."""
    n_models = s.delta.shape[1]
    delta = np.zeros((0, n_models))
    clusters = np.zeros(0, dtype=int)
    if not alone:
        delta = s.delta[s.bad]
        clusters = s.bad
    if len(made):
        made_delta = s.draw.score_rows(made.Z).delta(made.y[:, 0])
        delta = np.vstack([delta, made_delta])
        # a made row is no observation of its own: it counts with the bad row it comes from
        clusters = np.concatenate([clusters, made.parent])
    return average_rows(delta, None, clusters)


def _made_answer(
    made_as: str,
    layer: Layer,
    part: Literal["augmented", "synthetic"],
    alone: bool = False,
) -> Function:
    def run(s: Sample) -> Answer | None:
        # every made row starts from a bad one
        if not len(s.bad):
            return None
        side = make_rows(s, made_as, layer)
        made = side.augmented if part == "augmented" else side.synthetic
        return average_with_bad(s, made.rows, alone)

    return run


def _augmented_method(name: str, text: str, *layers: Layer) -> Method:
    """Return the method of augmented rows under settings, without a synthesizer."""
    layer = merge_layers(*layers, _NO_SYNTHESIZER)
    return Method(_made_answer(name, layer, "augmented"), text)


def _synthetic_methods(synthesizer: str) -> dict[str, Method]:
    """Return the methods of a synthesizer's rows: with the bad rows, and alone."""
    layer = {"search": {"kappa": 0.005}, "synthesizer": {"name": synthesizer}}
    # both are made as ``synthesizer``, so they share their rows
    return {
        synthesizer: Method(
            _made_answer(synthesizer, layer, "synthetic"),
            f"synthetic rows of {synthesizer}, learnt from kappa_0.005",
        ),
        f"{synthesizer}_alone": Method(
            _made_answer(synthesizer, layer, "synthetic", alone=True),
            f"synthetic rows of {synthesizer} alone, learnt from kappa_0.005",
        ),
    }


def held_out_of(draw: Draw) -> HeldOutCandidates:
    """Return the parts of a draw's training rows with their candidates, fitted once."""
    if "held_out" not in draw.shared:
        draw.shared["held_out"] = HeldOutCandidates(
            [draw.task], draw.config, draw.cross
        )
    held_out: HeldOutCandidates = draw.shared["held_out"]
    return held_out


def calibrated_kappa(s: Sample) -> float:
    """Return the kappa of preset ``faithful``, from the training rows of the draw."""
    draw = s.draw
    # kept by the draw, not by the sample: it reads the training rows alone
    if "kappa" not in draw.shared:
        calibration = calibrate([draw.task], 0, draw.config, held_out_of(draw))[0]
        draw.shared["kappa"] = calibration.kappa
    return float(draw.shared["kappa"])


def _faithful_method(name: str, text: str, relations: Layer) -> Method:
    """Return the method that augments as preset ``faithful`` does."""

    def run(s: Sample) -> Answer | None:
        if not len(s.bad):
            return None
        search = {"search": {"kappa": calibrated_kappa(s)}}
        layer = merge_layers(search, relations, _NO_SYNTHESIZER)
        return average_with_bad(s, make_rows(s, name, layer).augmented.rows)

    return Method(run, text)


MADE: dict[str, Method] = {
    "jitter": _augmented_method(
        "jitter", "bad rows and jittered copies, labels kept", _STILL, _UNFILTERED
    ),
    "literal": _augmented_method(
        "literal", "the paper's augmentation (preset literal)", PRESETS["literal"]
    ),
    "gentle": _augmented_method(
        "gentle", "kappa .02, near start, no filter", _GENTLE, _UNFILTERED
    ),
    "gentle_filtered": _augmented_method(
        "gentle_filtered", "kappa .02, near start, agreement filter", _GENTLE
    ),
    "stress": _augmented_method(
        "stress", "preset stress, augmented rows", PRESETS["stress"]
    ),
}
# kappa weighs how far the search may push a row: from not at all to as hard as the paper
for _kappa in (0.0, 0.005, 0.02, 0.1, 0.5):
    _name = f"kappa_{_kappa:g}"
    MADE[_name] = _augmented_method(
        _name,
        f"preset faithful at kappa {_kappa:g}, augmented rows",
        {"search": {"kappa": _kappa}},
    )
for _synthesizer in ("vae", "copula", "local"):
    MADE |= _synthetic_methods(_synthesizer)
MADE["faithful"] = _faithful_method(
    "faithful",
    "preset faithful, kappa calibrated; augmented rows, relations not kept",
    _WITHOUT_RELATIONS,
)
MADE["feasible"] = _faithful_method(
    "feasible",
    "the same, where augmented rows keep the relations between columns",
    _WITH_RELATIONS,
)
MADE["feasible_vae"] = Method(
    _made_answer(
        "feasible_vae",
        merge_layers({"search": {"kappa": 0.005}}, _WITH_RELATIONS),
        "synthetic",
    ),
    "synthetic rows of vae that keep the relations, learnt from kappa_0.005",
)


def _faithful_with_vae(s: Sample) -> Answer | None:
    """Bad and synthetic rows, as preset ``faithful`` made the main task up to 0.1.0."""
    if not len(s.bad):
        return None
    layer = {"search": {"kappa": calibrated_kappa(s)}, **_WITH_RELATIONS}
    side = make_rows(s, "faithful_vae", layer)
    return average_with_bad(s, side.synthetic.rows)


MADE["faithful_vae"] = Method(
    _faithful_with_vae,
    "bad rows and synthetic rows of the VAE, kappa calibrated, relations kept: the main task of "
    "--composition bad,synthetic",
)
