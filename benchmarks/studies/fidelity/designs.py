"""Attempts at rows that add information: each design proposes rows, a corrected teacher labels.

A design proposes rows x; the target is drawn from the corrected teacher *given that F is bad*
there, and a row is kept with a chance in proportion to ``P_T(bad | x)``. So made rows are what
the best model of the data at hand expects of F's failures. Each stands in three forms: half the
few bad rows and half made rows (plain name), made rows ``_alone``, and ``_shrunk``, where the
share of the made rows is fitted by cross-validation on the real bad rows.

None of them has an interval: made rows carry the teacher's error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from amlb_ext.hardening.made_rows.population_teacher import (
    draw_outcomes,
    failing_chance,
)
from benchmarks.studies.fidelity import proposals, swarm_proposal
from benchmarks.studies.fidelity.answer import Answer, without_interval
from benchmarks.studies.fidelity.corrected import CorrectedTeacher
from benchmarks.studies.fidelity.draw import Points
from benchmarks.studies.fidelity.mixtures import fit_mixture, fit_share
from benchmarks.studies.fidelity.proposals import Proposal
from benchmarks.studies.fidelity.sample import (
    Function,
    Method,
    Sample,
    expected_contrasts,
)

#: What made rows stand for: rows on which F fails, or any rows where failures are likely.
Aim = Literal["failures", "region"]
#: Most rows kept.
MOST_KEPT = 1500
#: With fewer rows than these a design says nothing.
FEWEST_KEPT = 10


@dataclass(frozen=True, kw_only=True)
class Design:
    """Where rows come from, what they stand for, and whether the teacher is corrected.

    Attributes
    ----------
    name : str
        Also keys the random streams of labels and shares.
    text : str
    proposal : Proposal or None
        None takes the unlabelled real rows U as they stand: the ceiling of what made features
        can give.
    aim : {'failures', 'region'}
    corrected : bool
    """

    name: str
    text: str
    proposal: Proposal | None
    aim: Aim = "failures"
    corrected: bool = True


def label_rows(s: Sample, design: Design) -> tuple[Points, np.ndarray] | None:
    """Return made rows and their targets; None where no proposal can be a failure.

    The three forms of a design share them, so they are made once for each sample.
    """
    if design.name not in s.shared:
        s.shared[design.name] = _draw_labels(s, design)
    return s.shared[design.name]


def average_made_rows(s: Sample, design: Design) -> tuple[np.ndarray, int] | None:
    """Return the mean delta of the made rows per model, and their number."""
    # without a bad row there is nothing that the made rows could stand beside
    made = label_rows(s, design) if len(s.bad) else None
    if made is None:
        return None
    points, y = made
    return points.delta(y).mean(axis=0), len(y)


def _score_proposal(s: Sample, proposal: Proposal | None) -> Points:
    """Return proposed rows, scored; designs that share a proposal share its rows."""
    if proposal is None:
        return s.draw.unlabelled
    stage = f"proposed by {proposal.stream}"
    if stage not in s.shared:
        rows = proposal.propose(s, s.stage_stream(stage))
        # to features and back: categories and ranges become those that a table can hold
        encoder = s.draw.prepared.models.encoder
        Z = encoder.transform(encoder.inverse(rows))
        s.shared[stage] = s.draw.score_rows(Z)
    return s.shared[stage]


def _draw_labels(s: Sample, design: Design) -> tuple[Points, np.ndarray] | None:
    rng = s.stage_stream(f"{design.name} labels")
    points = _score_proposal(s, design.proposal)
    if not len(points):
        return None
    outcomes, chance = points.outcomes, points.chance
    if design.corrected:
        outcomes, chance = _corrected_teacher(s).predict_outcomes(points)
    mass = points.w
    if design.aim == "failures":
        # joint with F being bad, so that the targets are drawn given a failure
        rule = s.draw.prepared.models.rule
        chance = failing_chance(rule, points.f, points.t, outcomes, chance)
        mass = chance.sum(axis=1)
    kept, y = draw_outcomes(outcomes, chance, rng, MOST_KEPT, mass)
    # kept without repeats, so few rows with any chance leave few
    if len(kept) < FEWEST_KEPT:
        return None
    return points.take_rows(kept), y


def _corrected_teacher(s: Sample) -> CorrectedTeacher:
    """Return the corrected teacher of a sample, fitted once for all designs."""
    if "corrected" not in s.shared:
        s.shared["corrected"] = CorrectedTeacher(s.draw, s.points, s.y)
    return s.shared["corrected"]


def _mix_with_real_rows(design: Design, share: float | None) -> Function:
    """Return the form of a design in which real rows have a share; None: a fitted one."""

    def run(s: Sample) -> Answer | None:
        made = average_made_rows(s, design)
        if made is None:
            return None
        made_delta, n_made = made
        # the real side has the made rows' aim: the bad rows alike, or all of S by w
        delta, w = s.delta, s.points.w
        if design.aim == "failures":
            delta = s.delta[s.bad]
            w = np.ones(len(s.bad))
        weight = share
        # None: as much as the bad rows themselves say, by cross-validation
        if weight is None:
            # the twin, last, is no candidate and does not decide about the share
            rng = s.stage_stream(f"{design.name} share")
            weight = fit_share(delta[:, :-1], made_delta[:-1], rng, w)
        # in this order: another rounds differently, and published numbers would move
        real_part = weight * (w @ delta) / w.sum()
        mixed = real_part + (1 - weight) * made_delta
        n_real = len(delta) if weight else 0
        return without_interval(mixed, n_made + n_real)

    return run


def _stack(design: Design) -> Function:
    """Few bad rows, the teacher on S, and made rows, with shares by cross-validation.

    Shares add up to one, so half and half and the prediction-powered estimate (1, -1, 1) are
    among the mixtures; they are pulled towards (1/2, 0, 1/2).
    """

    def run(s: Sample) -> Answer | None:
        made = average_made_rows(s, design)
        if made is None:
            return None
        made_delta, n_made = made
        tau, beta = expected_contrasts(s.draw, s.points)
        is_bad = np.isin(np.arange(len(s.y)), s.bad)
        teacher_share, made_share = fit_mixture(
            s.delta * is_bad[:, None],
            is_bad,
            tau=tau,
            beta=beta,
            made=made_delta,
            rng=s.stage_stream(f"{design.name} mixture"),
        )
        real_delta = s.delta[s.bad].mean(axis=0)
        teacher_delta = tau.sum(axis=0) / beta.sum()
        real_share = 1 - teacher_share - made_share
        mixed = real_share * real_delta + teacher_share * teacher_delta
        mixed = mixed + made_share * made_delta
        return without_interval(mixed, n_made + len(s.y))

    return run


#: The design that ``population_stacked`` mixes, too.
_POPULATION = Design(
    name="population",
    text="F's failures among moved rows of the population",
    proposal=proposals.POPULATION,
)
_DESIGNS = (
    _POPULATION,
    Design(
        name="population_plain",
        text="the same, T not corrected",
        proposal=proposals.POPULATION,
        corrected=False,
    ),
    Design(
        name="population_vae",
        text="F's failures among a VAE's rows",
        proposal=proposals.POPULATION_VAE,
    ),
    Design(
        name="failures",
        text="rows of a copula of all failures known",
        proposal=proposals.FAILURES,
    ),
    Design(
        name="searched",
        text="rows searched for reducible hardness",
        proposal=proposals.SEARCHED,
    ),
    Design(
        name="neighbourhoods",
        text="rows along the local covariance of failures",
        proposal=proposals.NEIGHBOURHOODS,
    ),
    Design(
        name="swarm",
        text="rows of a swarm that was searched for ranking fidelity",
        proposal=swarm_proposal.SWARM,
    ),
    Design(
        name="swarm_start",
        text="rows of the same generators without a search",
        proposal=swarm_proposal.SWARM_START,
    ),
    Design(
        name="unlabelled",
        text="F's expected failures among real rows U: no generator",
        proposal=None,
    ),
    Design(
        name="population_region",
        text="moved rows of the population, drawn by w",
        proposal=proposals.POPULATION,
        aim="region",
    ),
    Design(
        name="unlabelled_region",
        text="real rows U drawn by w: no generator",
        proposal=None,
        aim="region",
    ),
)


def _design_methods(design: Design) -> dict[str, Method]:
    """Return the three forms of a design, by name."""
    real_rows = "bad rows" if design.aim == "failures" else "S weighted by w"
    return {
        design.name: Method(
            _mix_with_real_rows(design, share=0.5),
            f"half {real_rows}, half {design.text}",
        ),
        f"{design.name}_alone": Method(
            _mix_with_real_rows(design, share=0.0), design.text
        ),
        f"{design.name}_shrunk": Method(
            _mix_with_real_rows(design, share=None),
            f"{real_rows} and, by cross-validation, {design.text}",
        ),
    }


DESIGNS: dict[str, Method] = {}
for _design in _DESIGNS:
    DESIGNS |= _design_methods(_design)
DESIGNS["population_stacked"] = Method(
    _stack(_POPULATION),
    "bad rows, the teacher on S and population, shares by cross-validation",
)
