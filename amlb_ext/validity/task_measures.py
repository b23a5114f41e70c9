"""Which measures a certificate takes, and on which rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from amlb_ext.core.rng import random_stream
from amlb_ext.validity import measures, ranking_measures, realism_measures
from amlb_ext.validity.candidates import MIN_CANDIDATES
from amlb_ext.validity.evaluation import ScoredRows, TaskEvaluation
from amlb_ext.validity.feasibility_measures import measure_feasibility
from amlb_ext.validity.measures import Losses, Measure
from amlb_ext.validity.refits import baseline_spec
from amlb_ext.validity.task_rows import MADE, POPULATION, TaskRows


def measure_task(
    rows: TaskRows,
    evaluation: TaskEvaluation,
    seed: int,
    uncapped: TaskEvaluation | None = None,
) -> tuple[list[Measure], list[str]]:
    """Return all measures of a task, in the order a certificate shows them, and notes.

    Parameters
    ----------
    rows : TaskRows
    evaluation : TaskEvaluation
        Its squared errors may be capped.
    seed : int
    uncapped : TaskEvaluation, optional
        As the losses are. Orders are compared on these, since AMLB's metrics know no cap.
    """
    full = evaluation.parts["full"]
    bad = evaluation.parts.get("bad")
    made = evaluation.parts.get("synthetic") or evaluation.parts.get("ga")
    notes = []
    out = [
        measures.measure_region(full.weight, full.bad, full.losses.clusters),
        measures.measure_solvability(
            full.losses,
            full.weight,
            evaluation.names,
            random_stream(seed, rows.name, "halves"),
            capped=evaluation.capped,
            has_match=evaluation.has_match,
        ),
    ]
    has_made_rows = any(part in evaluation.parts for part in MADE)
    out += _main_task_measures(rows)
    if len(evaluation.names) >= MIN_CANDIDATES:
        if bad is not None:
            out += _ranking_measures(rows, evaluation, bad, seed)
        out += _order_measures(rows, uncapped or evaluation, seed)
    elif bad is not None or has_made_rows:
        notes.append(
            f"{len(evaluation.names)} candidates, {MIN_CANDIDATES} make a ranking"
        )
    out += _null_measures(rows, evaluation)
    out.append(measures.measure_effective_size(full.weight, full.losses.clusters))
    out += _second_weight_measures(full)
    out += _kept_measures(rows)
    out += realism_measures.measure_copies(rows.count_copies())
    out += measure_feasibility(rows)
    if bad is not None and made is not None:
        if np.isnan(made.losses.baseline).any():
            notes.append(
                "F is a file of predictions: its loss on made rows is unknown, so their fidelity "
                "and hardness could not be measured"
            )
        out.append(ranking_measures.measure_widening(_known_losses(made)))
        out += _made_row_measures(rows, full, made, bad, seed)
    if POPULATION in evaluation.parts:
        out += _population_labels(rows, full, evaluation.parts[POPULATION])
    return out, notes


def is_usable_weight(weights: np.ndarray) -> bool:
    """Whether weights are known and not all zero."""
    return bool(np.isfinite(weights).all() and weights.sum() > 0)


def _known_losses(scored: ScoredRows) -> Losses:
    """Return the losses, or none at all where F's loss is missing on some row."""
    if np.isnan(scored.losses.baseline).any():
        return _no_losses(scored)
    return scored.losses


def _no_losses(scored: ScoredRows) -> Losses:
    return scored.losses.take(np.zeros(0, dtype=int))


def _ranking_measures(
    rows: TaskRows, evaluation: TaskEvaluation, bad: ScoredRows, seed: int
) -> list[Measure]:
    """Compare rankings on the bad rows with those on weighted and on made rows."""
    full = evaluation.parts["full"]
    # one stream for all: the order of the measures decides their draws
    rng = random_stream(seed, rows.name, "rankings")
    out = [
        ranking_measures.measure_target_agreement(
            bad.losses, full.losses, full.weight, rng
        ),
    ]
    for part in ("synthetic", "ga"):
        made = evaluation.parts.get(part)
        # a part without rows is measured too: the certificate says that it is missing
        made_losses = _no_losses(bad) if made is None else _known_losses(made)
        fidelity = ranking_measures.measure_fidelity(made_losses, bad.losses, rng, part)
        # the limits are those of the calibration of kappa; here the order decides
        out += [_as_information(measure) for measure in fidelity]
    return out


def _as_information(measure: Measure) -> Measure:
    """Return a measure without its limit."""
    return replace(measure, threshold=None, passed=None, sense="")


def _main_task_measures(rows: TaskRows) -> list[Measure]:
    """Return how well the main task orders candidates, as its choice found it.

    It was measured on training rows. The main task's own real rows are among those that any
    reference holds, so no measure on the test folds could tell.
    """
    agreements = []
    for summary in rows.summaries:
        # absent where the user named the parts, or nothing could be compared
        tau = summary.get("composition", {}).get("tau")
        if tau:
            agreements.append(tau)
    if not agreements:
        return []
    chosen, whole, bad = (
        float(np.mean([tau[mixture] for tau in agreements]))
        for mixture in ("chosen", "whole", "bad")
    )
    text = (
        "agreement (tau) of the main task's order of candidates with the region's, on mock test "
        f"folds of training rows; the whole fold reaches {whole:.2f}, the bad rows {bad:.2f}"
    )
    return [
        measures.make_measure(
            "main task's order", chosen, text, "docs/composition.md; information only"
        )
    ]


def _order_measures(
    rows: TaskRows, evaluation: TaskEvaluation, seed: int
) -> list[Measure]:
    """Compare the order of candidates on every made part with that on real rows."""
    reference = evaluation.reference
    out = []
    for part in MADE:
        made = evaluation.parts.get(part)
        if made is None:
            continue
        # made for the region as a whole, not from failures
        are_failures = part != POPULATION
        why_not = reference.why_no_failures() if are_failures else ""
        if np.isnan(made.losses.baseline).any():
            why_not = f"F is a file of predictions: its loss on {part} rows is unknown"
        order = ranking_measures.measure_order(
            made.losses.with_candidates(reference.columns),
            reference.failures if are_failures else reference.region,
            part,
            random_stream(seed, rows.name, "order", part),
            as_many=(
                reference.tested_failures if are_failures else reference.tested_rows
            ),
            why_not=why_not,
            are_failures=are_failures,
        )
        out.append(order)
    return out


def _null_measures(rows: TaskRows, evaluation: TaskEvaluation) -> list[Measure]:
    """Compare F with its twins on the region and on the bad rows, where all could be fitted."""
    out = []
    came_fitted = baseline_spec(rows.settings, rows.kind) is None
    for where, part in (("region", "full"), ("bad rows", "bad")):
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
            came_fitted=came_fitted,
        )
        out.append(measure)
    return out


def _second_weight_measures(full: ScoredRows) -> list[Measure]:
    """Report on the second weight v, reducible hardness: without a limit, so it decides nothing."""
    v = full.reducible
    name, source = "effective size, v", "weights v = (T - F)^2; information only"
    views: list[tuple[str, np.ndarray | None]] = [
        ("on all rows", None),
        ("weighted by w", full.weight),
    ]
    if is_usable_weight(v):
        views.append(("weighted by v", v))
        size = measures.measure_effective_size(v, full.losses.clusters)
        # the same measure as that of w
        size = replace(
            _as_information(size),
            name=name,
            source=source,
            text=size.text.replace("weighted test rows", "test rows weighted by v"),
        )
    else:
        why = "no row has a reducible hardness"
        size = measures.missing_measure(name, why, source, None, "")
    gaps = full.losses.gaps
    n_candidates = gaps.shape[1]
    n_ahead = {}
    for where, weights in views:
        mean_gaps = np.average(gaps, axis=0, weights=weights)
        n_ahead[where] = int((mean_gaps < 0).sum())
    counts = []
    for where, count in n_ahead.items():
        counts.append(f"{count} of {n_candidates} {where}")
    share = measures.make_measure(
        "candidates ahead of F",
        # a zoo of which nothing could be fitted has no share
        n_ahead["weighted by w"] / max(n_candidates, 1),
        f"{', '.join(counts)}; the value is the share weighted by w",
        "ours; information only",
    )
    return [size, share]


def _kept_measures(rows: TaskRows) -> list[Measure]:
    """Return the share of made rows that K, the oracle and the search for doublets let pass."""
    out = []
    for origin, part in (("augmented", "ga"), ("synthetic", "synthetic")):
        asked = sum(summary.get(f"{origin}_asked", 0) for summary in rows.summaries)
        if not asked:
            continue
        kept = sum(summary.get(origin, 0) for summary in rows.summaries)
        text = f"{part} rows on which F still fails and whose label stands, of {asked} asked"
        measure = measures.make_measure(
            f"{part} rows kept", kept / asked, text, "docs/validity.md, 4"
        )
        out.append(measure)
    return out


def _made_row_measures(
    rows: TaskRows, full: ScoredRows, made: ScoredRows, bad: ScoredRows, seed: int
) -> list[Measure]:
    """Measure labels, hardness, realism and distance of the synthetic rows, else of ga rows."""
    out = measures.measure_labels(
        made.labels,
        bad.labels,
        all_agree=full.labels.agrees,
        recorded=float(made.recorded.mean()),
        n_classes=len(rows.labels),
    )
    out.append(measures.measure_hardness(_known_losses(made), bad.losses))
    # the tables say nothing of losses, so they serve where F's loss is unknown as well
    rng = random_stream(seed, rows.name, "realism")
    made_table = realism_measures.thin_table(made.table, rng)
    # a row may be bad in several folds, and would be its own nearest neighbour
    _, first_of_each = np.unique(bad.table.clusters, return_index=True)
    bad_table = bad.table.take(first_of_each)
    out += realism_measures.measure_realism(made_table, bad_table, rng)
    out.append(realism_measures.measure_closest_record(made_table, bad_table, rng))
    return out


def _population_labels(
    rows: TaskRows, full: ScoredRows, made: ScoredRows
) -> list[Measure]:
    """Measure the labels of rows made for the region against those of the weighted real rows."""
    return measures.measure_labels(
        made.labels,
        full.labels,
        all_agree=full.labels.agrees,
        recorded=float(made.recorded.mean()),
        n_classes=len(rows.labels),
        prefix=f"{POPULATION}: ",
        weights=full.weight,
    )
