"""Methods of a study that make rows: the product's own search and synthesizers, by setting.

Every method unites the bad rows of S with rows made from them, and clusters by the bad row;
``*_alone`` leaves the bad rows out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from amlb_ext.core.config import build_config
from amlb_ext.core.presets import PRESETS
from amlb_ext.experiments.fidelity.draw import Answer, from_rows
from amlb_ext.experiments.fidelity.sample import Method, Sample
from amlb_ext.hardening.judged_rows import JudgedRows, judge_real_rows
from amlb_ext.hardening.made_rows.sides import MadeSide, make_side
from amlb_ext.validity.calibration import calibrate

MADE: dict[str, Method] = {}
_NO_SYNTHESIZER = {"synthesizer": {"times": 0.0}}
_UNFILTERED = {"agreement": {"filter": False}}
_GENTLE = {"search": {"kappa": 0.02, "sigma2": 0.0005, "strength": 0.05}}


def make(s: Sample, name: str, layer: Mapping[str, Any]) -> MadeSide:
    """Make rows from the bad rows of S under settings; once for each name."""
    if name not in s.shared:
        models = s.draw.ready.models
        config = build_config(s.draw.config.model_dump(exclude={"preset"}), dict(layer))
        models = dataclasses.replace(models, config=config)
        points = s.points
        real = judge_real_rows(
            models,
            features=models.encoder.inverse(points.Z),
            Z=points.Z,
            y=s.y[:, None],
            f=points.f[:, None],
            t=points.t[:, None],
            row=s.rows,
        )
        s.shared[name] = make_side(models, real, f"{s.key} {name}")
    return s.shared[name]


def answer(s: Sample, made: JudgedRows, alone: bool = False) -> Answer | None:
    """Return the answer of made rows, united with the bad rows of S."""
    delta, clusters = np.zeros((0, s.delta.shape[1])), np.zeros(0, dtype=int)
    if not alone:
        delta, clusters = s.delta[s.bad], s.bad
    if len(made):
        delta = np.vstack([delta, s.draw.points(made.Z).delta(made.y[:, 0])])
        clusters = np.concatenate([clusters, made.parent])
    return from_rows(delta, None, clusters)


def _enter(
    name: str, text: str, layer: Mapping[str, Any], part: str, alone: bool = False
) -> None:
    made_as = name.removesuffix("_alone")

    def run(s: Sample) -> Answer | None:
        if not len(s.bad):
            return None
        return answer(s, getattr(make(s, made_as, layer), part).rows, alone)

    MADE[name] = Method(run, text)


def _merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for layer in layers:
        for stage, values in layer.items():
            out[stage] = {**out.get(stage, {}), **values}
    return out


_STILL: dict[str, Any] = {
    "search": {
        "kappa": 0.0,
        "generations": 0,
        "sigma2": 0.0,
        "jitter": 0.03,
        "reapply": False,
    }
}
_enter("jitter", "bad rows and jittered copies, labels kept",
       _merged(_STILL, _UNFILTERED, _NO_SYNTHESIZER), "augmented")  # fmt: skip
_enter("literal", "the paper's augmentation (preset literal)",
       _merged(PRESETS["literal"], _NO_SYNTHESIZER), "augmented")  # fmt: skip
_enter("gentle", "kappa .02, near start, no filter",
       _merged(_GENTLE, _UNFILTERED, _NO_SYNTHESIZER), "augmented")  # fmt: skip
_enter("gentle_filtered", "kappa .02, near start, agreement filter",
       _merged(_GENTLE, _NO_SYNTHESIZER), "augmented")  # fmt: skip
_enter("stress", "preset stress, augmented rows",
       _merged(PRESETS["stress"], _NO_SYNTHESIZER), "augmented")  # fmt: skip
for _kappa in (0.0, 0.005, 0.02, 0.1, 0.5):
    _layer: dict[str, Any] = {"search": {"kappa": _kappa}}
    _enter(f"kappa_{_kappa:g}", f"preset faithful at kappa {_kappa:g}, augmented rows",
           _merged(_layer, _NO_SYNTHESIZER), "augmented")  # fmt: skip
for _name in ("vae", "copula", "local"):
    _layer = {"search": {"kappa": 0.005}, "synthesizer": {"name": _name}}
    for _alone in (False, True):
        _enter(f"{_name}{'_alone' * _alone}",
               f"synthetic rows of {_name}{' alone' * _alone}, learnt from kappa_0.005",
               _layer, "synthetic", _alone)  # fmt: skip


def calibrated(s: Sample) -> float:
    """Return the kappa of preset ``faithful``, from the training rows of the draw."""
    draw = s.draw
    if "kappa" not in draw.shared:
        draw.shared["kappa"] = calibrate([draw.task], 0, draw.config)[0].kappa
    return float(draw.shared["kappa"])


def faithful(s: Sample) -> Answer | None:
    """Augment as preset ``faithful`` does."""
    if not len(s.bad):
        return None
    layer = _merged({"search": {"kappa": calibrated(s)}}, _NO_SYNTHESIZER)
    return answer(s, make(s, "faithful", layer).augmented.rows)


MADE["faithful"] = Method(faithful, "preset faithful, kappa calibrated; augmented rows")
