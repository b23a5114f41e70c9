"""Methods of a study: real labelled rows, made ones, and the main task as ``generate`` composes it.

Those that make rows use the product's own search and synthesizers, by setting: each unites the
bad rows of S with rows made from them, and clusters by the bad row. The mixture of the main task is
chosen on the training rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from amlb_ext.core.config import PRESETS, build_config, merge_layers
from amlb_ext.core.rng import derive_seed
from amlb_ext.core.row_losses import row_loss
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.fold import make_side
from amlb_ext.hardening.hardness import raw_hardness
from amlb_ext.hardening.judged_rows import FoldModels, JudgedRows, judge_real_rows
from amlb_ext.hardening.made_rows.population_teacher import make_region_rows
from amlb_ext.hardening.made_rows.screening import MadeSide, TakenRows
from amlb_ext.hardening.weights import Composition
from amlb_ext.stats.prediction_powered import prediction_powered_mean
from amlb_ext.validity.calibration import calibrate
from amlb_ext.validity.candidates import candidate_zoo
from amlb_ext.validity.composition import MixtureTrial, try_mixtures
from amlb_ext.validity.held_out_parts import HeldOutCandidates, HeldOutPart, fit_zoos
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
        powered = prediction_powered_mean(
            delta,
            predicted,
            predicted_unlabelled,
            weights=s.points.w,
            weights_unlabelled=unlabelled.w,
        )
        estimates.append(powered.estimate)
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


def try_for_sample(s: Sample) -> MixtureTrial:
    """Return what the draw's training rows say of each mixture for a fold of S's size."""
    draw = s.draw
    key = f"mixtures {len(s.y)}"
    fold = ([draw.task], 0, draw.config, draw.cross, held_out_of(draw))
    # kept by the draw, not by the sample: it reads the training rows alone
    return once(draw.shared, key, lambda: try_mixtures(*fold, n_test=len(s.y)))


def choose_for_sample(s: Sample) -> Composition:
    """Return the mixture that ``generate`` takes: the whole fold, unless one is shown better."""
    trial = try_for_sample(s)
    return trial.compositions[trial.better_than_whole()]


def choose_not_beaten(s: Sample) -> Composition:
    """Return the mixture by the rule that ``generate`` followed up to commit de905088.

    It took the first, in an order of preference that began with half weights, than which none was
    better by two standard errors over mock folds, which were taken for independent.
    """
    trial = try_for_sample(s)

    def preference(column: int) -> tuple[bool, float, int]:
        composition = trial.compositions[column]
        shares = (0.5, 1.0, 0.0)
        is_bad = composition.parts == ("bad",)
        rank = shares.index(composition.region_share)
        return is_bad, composition.made_share, rank

    order = sorted(range(len(trial.compositions)), key=preference)
    taus = trial.region[:, order]
    best = int(taus.mean(axis=0).argmax())
    for column, mixture in enumerate(order):
        lead = taus[:, best] - taus[:, column]
        if lead.mean() <= 2.0 * lead.std(ddof=1) / np.sqrt(len(lead)):
            return trial.compositions[mixture]
    return trial.compositions[order[best]]


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
    draw = s.draw

    def make() -> JudgedRows:
        models = dataclasses.replace(draw.prepared.models, config=draw.config)
        real = judge_sample(s, models)
        fitted_on = models.encoder.inverse(models.Z)
        region = draw.prepared.region
        return make_region_rows(
            models,
            real,
            importance=lambda Z: composition.importance(region.weights(Z)),
            wanted=composition.population_wanted(len(s.y)),
            taken=TakenRows((fitted_on, real.features)),
            seed=derive_seed(draw.seed, draw.table, "study", s.key, "population"),
        ).rows

    return once(s.shared, ("population rows", composition.region_share), make)


@method
def composed(s: Sample) -> Answer | None:
    """The main task of generate: a mixture that is shown, on the training rows, to order
    candidates better than the whole fold; else the whole fold.
    """
    return compose(s, choose_for_sample(s))


@method
def not_beaten(s: Sample) -> Answer | None:
    """The first mixture that is not clearly beaten on the training rows, half weights before
    others: the main task of generate up to commit de905088.
    """
    return compose(s, choose_not_beaten(s))


@method
def repeated(s: Sample) -> Answer | None:
    """All of S, each row repeated by half its region weight."""
    once_or_more = Composition(parts=("weighted",), region_share=0.5, made_share=0.0)
    return compose(s, once_or_more)


@method
def repeated_and_made(s: Sample) -> Answer | None:
    """The same, and as many rows moved from S with the teacher's labels."""
    both = Composition(
        parts=("weighted", "population"), region_share=0.5, made_share=0.5
    )
    return compose(s, both)


# Rows that F was trained on, judged by models that were fitted without them.


def _training_gaps(s: Sample) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the candidates' gaps to F on all training rows, out of fold, and which are bad.

    None where a candidate could not be fitted without some part. The twin of F, which is no
    candidate, is not fitted again: its column is 0.
    """
    draw = s.draw

    def judge() -> tuple[np.ndarray, np.ndarray] | None:
        parts = held_out_of(draw).parts
        *names, _ = draw.models
        # the pool ranks those of the zoo; a certificate's boosting has as many rounds as F
        zoo = candidate_zoo(draw.task.kind, n_classes=len(draw.task.labels))
        boosting = {name: spec for name, spec in zoo.items() if "boosting" in name}
        zoos = fit_zoos(draw.task, boosting, 0, parts)
        zoos = [{**part.zoos[0], **own} for part, own in zip(parts, zoos, strict=True)]
        if not set(names) <= set(zoos[0]):
            return None
        gaps = [
            _part_gaps(part, [models[name] for name in names])
            for part, models in zip(parts, zoos, strict=True)
        ]
        is_bad = [part.rows.is_bad for part in parts]
        return np.vstack(gaps), np.concatenate(is_bad)

    return once(draw.shared, "training gaps", judge)


def _part_gaps(part: HeldOutPart, models: Sequence[EstimatorBaseline]) -> np.ndarray:
    y = part.rows.y[:, 0]
    loss_of_f = row_loss(y, part.rows.f[:, 0])
    gaps = [row_loss(y, model.predict(part.rows.Z)) - loss_of_f for model in models]
    return np.column_stack([*gaps, np.zeros(len(y))])


def _average_trained(
    s: Sample, beside: np.ndarray | None = None, failures: bool = True
) -> Answer | None:
    """Return the answer of training rows, failures or all of them, beside deltas of S."""
    found = _training_gaps(s)
    if found is None:
        return None
    gaps, is_bad = found
    delta = gaps[is_bad] if failures else gaps
    return average_rows(delta if beside is None else np.vstack([beside, delta]))


@method
def trained_failures(s: Sample) -> Answer | None:
    """F's out-of-fold failures among the training rows, with their own labels, for candidates
    fitted out of fold.
    """
    return _average_trained(s)


@method
def trained_failures_and_bad(s: Sample) -> Answer | None:
    """The same beside the few bad rows of S."""
    return _average_trained(s, s.delta[s.bad])


@method
def trained_failures_and_whole(s: Sample) -> Answer | None:
    """The same beside all of S."""
    return _average_trained(s, s.delta)


@method
def trained(s: Sample) -> Answer | None:
    """All training rows, for F and candidates fitted out of fold."""
    return _average_trained(s, failures=False)
