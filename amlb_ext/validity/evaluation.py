"""From what models lose to a certificate: measures, verdict, and what is written.

There is one way for rows of tables and windows of series. Which of their losses count is settled
before, in :mod:`~amlb_ext.validity.task_evaluation` and
:mod:`~amlb_ext.validity.window_certificate`; both hand over an :class:`Evaluation`, and the
measures that are taken from files alone.

Notation
--------
n units of a part, m candidates, R twins of F; see :mod:`amlb_ext.validity.measures`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from amlb_ext.core.rng import random_stream
from amlb_ext.core.unit import Unit
from amlb_ext.suite.copy_counts import MADE_PARTS
from amlb_ext.validity import measures, ranking_measures
from amlb_ext.validity.candidates import MIN_CANDIDATES
from amlb_ext.validity.certificate import Certificate, decide_verdict, nothing_to_mend
from amlb_ext.validity.measures import (
    LabelOpinion,
    Losses,
    Measure,
    ScoredUnits,
    finite_or_none,
)
from amlb_ext.validity.reference import Reference


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """All parts of a task with the losses of all models.

    Attributes
    ----------
    name : str
        Key of the random streams.
    unit : Unit
    names : list of str
        Candidates that could be fitted everywhere.
    parts : dict of str to ScoredUnits
        By suffix: ``full`` are all that are tested, ``bad`` those that made ones are set beside.
    judge : callable
        What the judges say of the labels of a part.
    tested_bad : Losses or None
        Of the bad ones that are tested; None without any.
    from_failures : tuple of str
        Parts that are made from failures, in the order in which they are compared.
    reference : Reference
        What the order of candidates on made units is held to.
    n_classes : int
        0 for numbers.
    dropped : dict of str to str
        Why a candidate could not be fitted.
    notes : tuple of str
    no_region : str
        Why no unit has a weight; empty where all have.
    no_twins : str
        Why F has no twins; empty where it has, or where nobody asked for them.
    came_fitted : bool
        Whether one F, fitted elsewhere, served all folds, and the twins are its clones.
    capped : tuple of str
        Candidates that saw fewer training rows than F.
    has_match : bool
        Whether a candidate of F's own family saw as many training rows as F.
    """

    name: str
    unit: Unit
    names: list[str]
    parts: dict[str, ScoredUnits]
    judge: Callable[[ScoredUnits], LabelOpinion]
    tested_bad: Losses | None
    from_failures: tuple[str, ...]
    reference: Reference
    n_classes: int = 0
    dropped: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    no_region: str = ""
    no_twins: str = ""
    came_fitted: bool = False
    capped: tuple[str, ...] = ()
    has_match: bool = True

    @property
    def made(self) -> ScoredUnits | None:
        """The part whose labels, hardness and looks are measured; None where nothing was made."""
        for part in MADE_PARTS[::-1]:
            if part in self.parts:
                return self.parts[part]
        return None


def measure_evaluation(
    evaluation: Evaluation,
    seed: int,
    *,
    of_files: Sequence[Measure],
    looks: Sequence[Measure],
    capped: Evaluation | None = None,
) -> tuple[list[Measure], list[str]]:
    """Return all measures of a task, in the order a certificate shows them, and notes.

    Parameters
    ----------
    evaluation : Evaluation
    seed : int
    of_files, looks : sequence of Measure
        What was measured without any model: what files hold, and whether made units look real.
    capped : Evaluation, optional
        With squared errors capped. Orders are compared as the losses are, since AMLB's metrics know
        no cap.
    """
    capped = capped or evaluation
    full, bad, made = capped.parts["full"], capped.parts.get("bad"), capped.made
    notes = []
    out = _region_measures(capped, seed)
    if len(capped.names) >= MIN_CANDIDATES:
        if bad is not None:
            out += _ranking_measures(capped, bad, seed)
        out += _order_measures(evaluation, seed)
    elif len(capped.parts) > 1:
        notes.append(f"{len(capped.names)} candidates, {MIN_CANDIDATES} make a ranking")
    if not capped.no_region:
        out += _null_measures(capped)
        clusters = full.losses.clusters
        out.append(measures.measure_effective_size(full.weight, clusters, capped.unit))
    out += of_files
    if bad is not None and made is not None:
        if not len(made.known_losses):
            notes.append(
                "F is a file of predictions: its loss on made rows is unknown, so their fidelity "
                "and hardness could not be measured"
            )
        out.append(ranking_measures.measure_widening(made.known_losses, capped.unit))
        # made units beside the real ones that they stand for
        out += measures.measure_labels(
            capped.judge(made),
            capped.judge(bad),
            capped.unit,
            all_agree=capped.judge(full).agrees,
            recorded=made.recorded_share,
            n_classes=capped.n_classes,
        )
        out.append(
            measures.measure_hardness(made.known_losses, bad.losses, capped.unit)
        )
        out += looks
    return out, notes


def _region_measures(evaluation: Evaluation, seed: int) -> list[Measure]:
    """Measure whether failures are foreseen, and whether anything there can be mended."""
    full, unit = evaluation.parts["full"], evaluation.unit
    if evaluation.no_region:
        region = measures.plan_measure("region", "", ">=", 0.5)
        return [region.missing(evaluation.no_region)]
    return [
        measures.measure_region(full.weight, full.bad, full.losses.clusters, unit),
        measures.measure_solvability(
            full.losses,
            full.weight,
            evaluation.names,
            random_stream(seed, evaluation.name, "halves"),
            unit,
            capped=evaluation.capped,
            has_match=evaluation.has_match,
        ),
    ]


def _ranking_measures(
    evaluation: Evaluation, bad: ScoredUnits, seed: int
) -> list[Measure]:
    """Compare rankings on the bad units with those on weighted and on made ones."""
    full, unit = evaluation.parts["full"], evaluation.unit
    # one stream for all: the order of the measures decides their draws
    rng = random_stream(seed, evaluation.name, "rankings")
    out = []
    if evaluation.tested_bad is not None and not evaluation.no_region:
        out.append(
            ranking_measures.measure_target_agreement(
                evaluation.tested_bad, full.losses, full.weight, rng, unit
            )
        )
    for part in evaluation.from_failures:
        made = evaluation.parts.get(part)
        # a part without units is measured too: the certificate says that it is missing
        no_losses = bad.losses.take(np.zeros(0, dtype=int))
        made_losses = no_losses if made is None else made.known_losses
        for measure in ranking_measures.measure_fidelity(
            made_losses, bad.losses, rng, part, unit
        ):
            # the limits are those of the calibration of kappa; here the order decides
            out.append(replace(measure, threshold=None, passed=None, sense=""))
    return out


def _order_measures(evaluation: Evaluation, seed: int) -> list[Measure]:
    """Compare the order of candidates on every made part with that of the whole test folds."""
    reference, unit = evaluation.reference, evaluation.unit
    out = []
    for part in MADE_PARTS:
        made = evaluation.parts.get(part)
        if made is None:
            continue
        why_not = evaluation.no_region
        if np.isnan(made.losses.baseline).any():
            why_not = f"F is a file of predictions: its loss on {part} rows is unknown"
        order = ranking_measures.measure_order(
            made.losses.with_candidates(reference.columns),
            reference.losses,
            part,
            random_stream(seed, evaluation.name, "order", part),
            unit,
            weights=reference.weights,
            as_many=reference.tested,
            why_not=why_not,
        )
        out.append(order)
    return out


def _null_measures(evaluation: Evaluation) -> list[Measure]:
    """Compare F with its twins on the region and on the bad units, where all could be fitted."""
    out = []
    unit = evaluation.unit
    for where, part in (("region", "full"), (f"bad {unit.many}", "bad")):
        scored = evaluation.parts.get(part)
        if scored is None or not scored.twins.shape[1]:
            continue
        # a twin that failed on one fold leaves NaN there, and no mean over all of them
        if np.isnan(scored.twins).any():
            continue
        # bad rows were chosen by F's errors: weighting them by the region would choose twice
        weights = scored.weight if part == "full" else np.ones(len(scored))
        measure = ranking_measures.measure_null(
            scored.twins,
            scored.losses.baseline,
            clusters=scored.losses.clusters,
            fold=scored.fold,
            weights=weights,
            where=where,
            unit=unit,
            came_fitted=evaluation.came_fitted,
        )
        out.append(measure)
    return out


def write_certificate(
    evaluation: Evaluation,
    found: Sequence[Measure],
    *,
    task: str,
    kind: str,
    notes: Sequence[str],
    size: str,
    refits: int,
    seed: int,
    is_searched: bool = False,
) -> Certificate:
    """Decide what a task may be used for and write down on what that rests.

    Parameters
    ----------
    evaluation : Evaluation
        As the losses are, without a cap.
    found : sequence of Measure
    task, kind : str
    notes : sequence of str
        Each is kept once: folds may say the same.
    size, refits, seed
        As the certificate keeps them.
    is_searched : bool
        Whether a synthesizer searched for what models get wrong.
    """
    verdict, reason = decide_verdict(
        found,
        evaluation.unit,
        n_real=len(evaluation.parts["full"]),
        no_twins=evaluation.no_twins,
        is_searched=is_searched,
    )
    sizes = {part: len(scored) for part, scored in evaluation.parts.items()}
    # windows of earlier origins are failures, too, and no part of the test
    if evaluation.tested_bad is not None and "bad" in sizes:
        sizes["bad"] = len(evaluation.tested_bad)
    candidates, null = _mean_losses(evaluation)
    # worth a note even where another measure decides
    unbeaten = nothing_to_mend(found)
    more = [unbeaten] if unbeaten and unbeaten != reason else []
    return Certificate(
        task=task,
        kind=kind,
        verdict=verdict,
        reason=reason,
        measures=tuple(found),
        unit=evaluation.unit,
        rows=sizes,
        candidates=candidates,
        null=null,
        dropped=dict(sorted(evaluation.dropped.items())),
        notes=tuple(dict.fromkeys([*notes, *more])),
        size=size,
        refits=refits,
        seed=seed,
    )


def _mean_losses(
    evaluation: Evaluation,
) -> tuple[dict[str, dict[str, float | None]], dict[str, dict[str, Any]]]:
    """Return the mean loss of each candidate on each part, and those of F and of its twins.

    All units are a part once more by each of their weights.
    """
    parts: dict[str, tuple[ScoredUnits, np.ndarray | None]] = {}
    for part, scored in evaluation.parts.items():
        parts[part] = (scored, None)
    full = evaluation.parts["full"]
    if not evaluation.no_region:
        parts["region"] = (full, full.weight)
    # known, and not all zero
    if np.isfinite(full.reducible).all() and full.reducible.sum() > 0:
        parts["reducible"] = (full, full.reducible)
    candidates: dict[str, dict[str, float | None]]
    candidates = {name: {} for name in evaluation.names}
    null: dict[str, dict[str, Any]] = {}
    for part, (scored, weights) in parts.items():
        for name, losses in zip(candidates, scored.losses.candidates.T, strict=True):
            mean = np.average(losses, weights=weights)
            candidates[name][part] = finite_or_none(mean)
        # weights of 1, not none: the last digits of the mean depend on the way it is summed
        if weights is None:
            weights = np.ones(len(scored))
        twins = [np.average(twin, weights=weights) for twin in scored.twins.T]
        null[part] = {
            "F": finite_or_none(np.average(scored.losses.baseline, weights=weights)),
            "twins": [finite_or_none(mean) for mean in twins],
        }
    return candidates, null
