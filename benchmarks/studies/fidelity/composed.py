"""The main task as ``generate`` composes it: the mixture is chosen on the training rows."""

from __future__ import annotations

import dataclasses

import numpy as np

from amlb_ext.core.rng import derive_seed
from amlb_ext.hardening.composition import Composition
from amlb_ext.hardening.judged_rows import JudgedRows
from amlb_ext.hardening.made_rows.region_rows import make_region_rows
from amlb_ext.hardening.made_rows.screening import TakenRows
from amlb_ext.validity.composition import choose_composition
from benchmarks.studies.fidelity.answer import Answer, average_rows
from benchmarks.studies.fidelity.made import held_out_of, judge_sample
from benchmarks.studies.fidelity.sample import Function, Method, Sample


def choose_for_sample(s: Sample) -> Composition:
    """Return the mixture that the draw's training rows choose for a fold of S's size."""
    draw = s.draw
    key = f"composition {len(s.y)}"
    # kept by the draw, not by the sample: it reads the training rows alone
    if key not in draw.shared:
        choice = choose_composition(
            [draw.task],
            0,
            draw.config,
            draw.cross,
            held_out_of(draw),
            n_test=len(s.y),
        )
        draw.shared[key] = choice.composition
    composition: Composition = draw.shared[key]
    return composition


def compose(s: Sample, composition: Composition) -> Answer | None:
    """Return what the main test file says: every row of it counts alike."""
    if composition.parts == ("bad",):
        return average_rows(s.delta[s.bad])
    n_made = 0
    made_delta = np.zeros((0, s.delta.shape[1]))
    parents = np.zeros(0, dtype=int)
    if composition.made_share:
        made = _population_rows(s, composition)
        n_made = len(made)
        if n_made:
            made_delta = s.draw.score_rows(made.Z).delta(made.y[:, 0])
            parents = made.parent
    rng = s.stage_stream("composed weighted")
    picked = composition.pick_real_rows(s.points.w, n_made, rng)
    delta = np.vstack([s.delta[picked], made_delta])
    # a row that is repeated, or moved, is no observation of its own
    clusters = np.concatenate([picked, parents])
    return average_rows(delta, None, clusters)


def _population_rows(s: Sample, composition: Composition) -> JudgedRows:
    """Return the made rows of a mixture; those of one region share are made once."""
    key = ("population rows", composition.region_share)
    if key not in s.shared:
        draw = s.draw
        models = draw.prepared.models
        models = dataclasses.replace(models, config=draw.config)
        real = judge_sample(s, models)
        fitted_on = models.encoder.inverse(models.Z)
        region = draw.prepared.region
        s.shared[key] = make_region_rows(
            models,
            real,
            importance=lambda Z: composition.importance(region.weights(Z)),
            wanted=composition.population_wanted(len(s.y)),
            taken=TakenRows((fitted_on, real.features)),
            seed=derive_seed(draw.seed, draw.table, "study", s.key, "population"),
        ).rows
    rows: JudgedRows = s.shared[key]
    return rows


def _fixed(composition: Composition) -> Function:
    def run(s: Sample) -> Answer | None:
        return compose(s, composition)

    return run


COMPOSED: dict[str, Method] = {
    "composed": Method(
        lambda s: compose(s, choose_for_sample(s)),
        "the main task of generate: the mixture is chosen on the training rows",
    ),
    "repeated": Method(
        _fixed(
            Composition(parts=("weighted",), region_share=0.5, made_share=0.0),
        ),
        "all of S, each row repeated by half its region weight",
    ),
    "repeated_and_made": Method(
        _fixed(
            Composition(
                parts=("weighted", "population"), region_share=0.5, made_share=0.5
            ),
        ),
        "the same, and as many rows moved from S with the teacher's labels",
    ),
}
