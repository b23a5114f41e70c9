"""Which measures a certificate takes, and on which rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from amlb_ext.core.rng import random_stream
from amlb_ext.validity import measures, ranking_measures, realism_measures
from amlb_ext.validity.candidates import MIN_CANDIDATES
from amlb_ext.validity.evaluation import ScoredRows, TaskEvaluation
from amlb_ext.validity.feasibility_measures import measure_feasibility
from amlb_ext.validity.label_measures import measure_labels
from amlb_ext.validity.measures import Losses, Measure
from amlb_ext.validity.task_rows import TaskRows


def measure_task(
    rows: TaskRows, evaluation: TaskEvaluation, seed: int
) -> tuple[list[Measure], list[str]]:
    """Return all measures of a task, in the order a certificate shows them, and notes."""
    full = evaluation.parts["full"]
    bad = evaluation.parts.get("bad")
    made = evaluation.parts.get("synthetic") or evaluation.parts.get("ga")
    notes = []
    out = [
        measures.measure_region(full.weight, full.bad, full.losses.c),
        measures.measure_solvability(
            full.losses,
            full.weight,
            evaluation.names,
            random_stream(seed, rows.name, "halves"),
        ),
    ]
    if bad is not None and len(evaluation.names) >= MIN_CANDIDATES:
        out += _ranking_measures(rows, evaluation, bad, seed)
    elif bad is not None:
        notes.append(
            f"{len(evaluation.names)} candidates, {MIN_CANDIDATES} make a ranking"
        )
    out += _null_measures(evaluation)
    out.append(measures.measure_effective_size(full.weight, full.losses.c))
    out += _second_weight_measures(full)
    out += _kept_measures(rows)
    out += realism_measures.measure_copies(rows.count_copies())
    out += measure_feasibility(rows)
    if bad is not None and made is not None:
        if np.isnan(made.losses.F).any():
            notes.append(
                "F is a file of predictions: its loss on made rows is unknown, so their fidelity "
                "and hardness could not be measured"
            )
        out.append(ranking_measures.measure_widening(_known_losses(made)))
        out += _made_row_measures(rows, full, made, bad, seed)
    return out, notes


def is_usable_weight(weights: np.ndarray) -> bool:
    """Whether weights are known and not all zero."""
    return bool(np.isfinite(weights).all() and weights.sum() > 0)


def _known_losses(scored: ScoredRows) -> Losses:
    """Return the losses, or those of no rows where F's loss is not known on all of them."""
    if np.isnan(scored.losses.F).any():
        return scored.losses.take(np.zeros(0, dtype=int))
    return scored.losses


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
        no_losses = bad.losses.take(np.zeros(0, dtype=int))
        made_losses = no_losses if made is None else _known_losses(made)
        out += ranking_measures.measure_fidelity(made_losses, bad.losses, rng, part)
    return out


def _null_measures(evaluation: TaskEvaluation) -> list[Measure]:
    """Compare F with its twins on the region and on the bad rows, where all could be fitted."""
    out = []
    for where, part in (("region", "full"), ("bad rows", "bad")):
        scored = evaluation.parts.get(part)
        if scored is None or not scored.twins.shape[1] or np.isnan(scored.twins).any():
            continue
        out.append(
            ranking_measures.measure_null(
                twins=scored.twins,
                F=scored.losses.F,
                c=scored.losses.c,
                fold=scored.fold,
                w=scored.weight if part == "full" else np.ones(len(scored)),
                where=where,
            )
        )
    return out


def _second_weight_measures(full: ScoredRows) -> list[Measure]:
    """Inform on the second weight v, reducible hardness; no limit, so no verdict."""
    v = full.reducible
    name, source = "effective size, v", "weights v = (T - F)^2; information only"
    views: list[tuple[str, np.ndarray | None]] = [
        ("on all rows", None),
        ("weighted by w", full.weight),
    ]
    if is_usable_weight(v):
        views.append(("weighted by v", v))
        size = measures.measure_effective_size(v, full.losses.c)
        size = replace(
            size,
            name=name,
            threshold=None,
            passed=None,
            sense="",
            source=source,
            text=size.text.replace("weighted test rows", "test rows weighted by v"),
        )
    else:
        why = "no row has a reducible hardness"
        size = measures.missing_measure(name, why, source, None, "")
    gaps = full.losses.gaps
    candidates = gaps.shape[1]
    counts = {}
    for where, weights in views:
        counts[where] = int((np.average(gaps, axis=0, weights=weights) < 0).sum())
    ahead = ", ".join(
        f"{count} of {candidates} {where}" for where, count in counts.items()
    )
    share = measures.make_measure(
        "candidates ahead of F",
        counts["weighted by w"] / max(candidates, 1),
        f"{ahead}; the value is the share weighted by w",
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
        out.append(
            measures.make_measure(
                f"{part} rows kept", kept / asked, text, "docs/validity.md, 4"
            )
        )
    return out


def _made_row_measures(
    rows: TaskRows, full: ScoredRows, made: ScoredRows, bad: ScoredRows, seed: int
) -> list[Measure]:
    """Measure labels, hardness, realism and distance of the synthetic rows, else of ga rows."""
    out = measure_labels(
        made=(made.support, made.agrees, made.losses.c),
        bad=(bad.support, bad.agrees, bad.losses.c),
        real=full.agrees,
        recorded=float(made.recorded.mean()),
        n_classes=len(rows.labels),
    )
    out.append(measures.measure_hardness(_known_losses(made), bad.losses))
    rng = random_stream(seed, rows.name, "realism")
    made_table = realism_measures.thin_table(made.table, rng)
    once = np.unique(bad.table.c, return_index=True)[
        1
    ]  # a row may be bad in several folds
    bad_table = bad.table.take(once)
    out += realism_measures.measure_realism(made_table, bad_table, rng)
    out.append(realism_measures.measure_closest_record(made_table, bad_table, rng))
    return out
