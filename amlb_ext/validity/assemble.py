"""Which measures a certificate takes, and on which rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from amlb_ext.core.rng import stream
from amlb_ext.validity import fidelity, measures, realism
from amlb_ext.validity.copy_checks import copies
from amlb_ext.validity.evaluate import Evaluation, Scored
from amlb_ext.validity.label_checks import labels
from amlb_ext.validity.measures import Losses, Measure
from amlb_ext.validity.task_rows import TaskRows
from amlb_ext.validity.zoo import MIN_CANDIDATES


def assemble(rows: TaskRows, found: Evaluation, seed: int) -> list[Measure]:
    """Return all measures of a task, in the order a certificate shows them."""
    parts, everything = found.parts, found.parts["full"]
    w, c = everything.weight, everything.losses.c
    bad = parts.get("bad")
    out = [
        measures.region(w, everything.bad, c),
        measures.solvability(everything.losses, w, found.names, stream(seed, rows.name, "halves")),
    ]
    if bad is not None:
        rng = stream(seed, rows.name, "rankings")
        if len(found.names) >= MIN_CANDIDATES:
            out.append(fidelity.target_check(bad.losses, everything.losses, w, rng))
            for part in ("synthetic", "ga"):
                some = parts.get(part)
                side = _known(bad.losses if some is None else some.losses, some is not None)
                out += fidelity.fidelity(side, bad.losses, rng, part)
        else:
            found.notes.append(f"{len(found.names)} candidates, {MIN_CANDIDATES} make a ranking")
    out += _nulls(found)
    out.append(measures.effective_size(w, c))
    out += _other_weight(everything)
    out += _kept(rows)
    out += copies(rows)
    made = parts.get("synthetic") or parts.get("ga")
    if bad is not None and made is not None:
        if np.isnan(made.losses.F).any():
            found.notes.append(
                "F is a file of predictions: its loss on made rows is unknown, so their fidelity "
                "and hardness could not be measured"
            )
        out += [fidelity.widening(_known(made.losses)), *_made(rows, found, made, bad, seed)]
    return out


def _other_weight(everything: Scored) -> list[Measure]:
    """Information on the second weight v, reducible hardness; no limit, so no verdict."""
    v, side = everything.reducible, everything.losses
    name, source = "effective size, v", "weights v = (T - F)^2; information only"
    if not usable(v):
        out = [measures.lacking(name, "no row has a reducible hardness", source, None, "")]
        views = [("on all rows", None), ("weighted by w", everything.weight)]
    else:
        size = measures.effective_size(v, side.c)
        text = size.text.replace("weighted test rows", "test rows weighted by v")
        out = [replace(size, name=name, threshold=None, passed=None, sense="", source=source,
                       text=text)]  # fmt: skip
        views = [("on all rows", None), ("weighted by w", everything.weight), ("weighted by v", v)]
    gaps = side.gaps
    ahead = [int((np.average(gaps, axis=0, weights=w) < 0).sum()) for _, w in views]
    m = gaps.shape[1]
    said = ", ".join(
        f"{count} of {m} {where}" for count, (where, _) in zip(ahead, views, strict=True)
    )
    text = f"{said}; the value is the share weighted by w"
    return [
        *out,
        measures.measure(
            "candidates ahead of F", ahead[1] / max(m, 1), text, "ours; information only"
        ),
    ]


def usable(v: np.ndarray) -> bool:
    """Whether weights are known and not all zero."""
    return bool(np.isfinite(v).all() and v.sum() > 0)


def _known(losses: Losses, any_rows: bool = True) -> Losses:
    """Return the losses, or none where F's loss on these rows is not known."""
    if any_rows and not np.isnan(losses.F).any():
        return losses
    return losses.take(np.zeros(0, dtype=int))


def _nulls(found: Evaluation) -> list[Measure]:
    out = []
    for where, part in (("region", "full"), ("bad rows", "bad")):
        scored = found.parts.get(part)
        if scored is None or not scored.twins.shape[1] or np.isnan(scored.twins).any():
            continue
        w = scored.weight if part == "full" else np.ones(len(scored))
        side = scored.losses
        out.append(fidelity.null_check(scored.twins, side.F, side.c, scored.fold, w, where))
    return out


def _made(rows: TaskRows, found: Evaluation, made: Scored, bad: Scored, seed: int) -> list[Measure]:
    """Labels, hardness, realism and distance of the synthetic rows (else of ga rows)."""
    everything = found.parts["full"].agrees
    few = (bad.support, bad.agrees, bad.losses.c)
    own = (made.support, made.agrees, made.losses.c)
    out = labels(own, few, everything, float(made.recorded.mean()), len(rows.labels))
    out.append(measures.hardness(_known(made.losses), bad.losses))
    rng = stream(seed, rows.name, "realism")
    table = realism.thinned(made.table, rng)
    once = np.unique(bad.table.c, return_index=True)[1]  # a row may be bad in several folds
    real = bad.table.take(once)
    out += realism.realism(table, real, rng)
    return [*out, realism.closest_record(table, real, rng)]


def _kept(rows: TaskRows) -> list[Measure]:
    """Share of made rows that K, the oracle and the search for doublets let pass."""
    out = []
    for made, word in (("augmented", "ga"), ("synthetic", "synthetic")):
        asked = sum(s.get(f"{made}_asked", 0) for s in rows.summaries)
        if asked:
            kept = sum(s.get(made, 0) for s in rows.summaries)
            text = f"{word} rows on which F still fails and whose label stands, of {asked} asked"
            out.append(
                measures.measure(f"{word} rows kept", kept / asked, text, "docs/validity.md, 4")
            )
    return out
