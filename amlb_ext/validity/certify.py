"""From a task of a suite to its certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from amlb_ext.core.parallel import available_cores, run_jobs
from amlb_ext.core.rng import stream
from amlb_ext.suite import Suite
from amlb_ext.validity import fidelity, measures, realism
from amlb_ext.validity.certificate import Certificate, decide, nothing_to_mend
from amlb_ext.validity.evaluate import Evaluation, Scored, TaskRows, evaluate, read_task
from amlb_ext.validity.measures import Losses, Measure
from amlb_ext.validity.zoo import MIN_CANDIDATES, Size, named


def certify(
    directory: str | Path,
    workers: int = 1,
    *,
    size: Size = "quick",
    refits: int = 3,
    seed: int | None = None,
    candidates: Sequence[str] = (),
) -> list[Certificate]:
    """Certify every task of a finished suite, in the manifest's order.

    Parameters
    ----------
    directory : str or Path
    workers : int
        Processes, one task each; 0 for every core. They change nothing but time.
    size : {'quick', 'full'}
    refits : int
        Twins of F for the null control.
    seed : int, optional
        The suite's own when omitted.
    candidates : sequence of str
        Short names or import paths in place of the zoo.

    Raises
    ------
    SuiteError
        No finished suite.
    ModelError
        A candidate that cannot be built.
    """
    tasks = list(Suite.load(directory).tasks)
    jobs = [(str(directory), task, size, refits, seed, tuple(candidates)) for task in tasks]
    workers = min(workers or available_cores(), len(jobs))
    done = dict(run_jobs(certify_job, jobs, workers))
    return [done[index] for index in sorted(done)]


def certify_job(
    directory: str, task: str, size: Size, refits: int, seed: int | None, words: tuple[str, ...]
) -> Certificate:
    """Certify one task in a process of its own; see :func:`certify`."""
    suite = Suite.load(directory)
    return certify_task(suite, task, size=size, refits=refits, seed=seed, candidates=words)


def certify_task(
    suite: Suite,
    task: str,
    *,
    size: Size = "quick",
    refits: int = 3,
    seed: int | None = None,
    candidates: Sequence[str] = (),
) -> Certificate:
    """Certify one task of a suite; see :func:`certify`."""
    rows = read_task(suite, task)
    return certify_rows(rows, size=size, refits=refits, seed=seed, candidates=candidates)


def certify_rows(
    rows: TaskRows,
    *,
    size: Size = "quick",
    refits: int = 3,
    seed: int | None = None,
    candidates: Sequence[str] = (),
) -> Certificate:
    """Certify a task in memory; a pure function of its arguments."""
    seed = rows.seed if seed is None else seed
    specs = named(candidates, rows.kind) if candidates else None
    found = evaluate(rows, size, refits, seed, specs)
    taken = _measures(rows, found, seed)
    verdict, reason = decide(taken, found.notes)
    unbeaten = nothing_to_mend(taken)
    if unbeaten and unbeaten != reason:
        found.notes.append(unbeaten)
    return Certificate(
        task=rows.name,
        kind=rows.kind.value,
        verdict=verdict,
        reason=reason,
        measures=tuple(taken),
        rows={part: len(scored) for part, scored in found.parts.items()},
        candidates=_candidates(found),
        null=_null(found),
        dropped=dict(sorted(found.dropped.items())),
        notes=tuple(dict.fromkeys(found.notes)),
        size="own" if specs else size,
        refits=refits,
        seed=seed,
    )


def _measures(rows: TaskRows, found: Evaluation, seed: int) -> list[Measure]:
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
    out += _kept(rows)
    made = parts.get("synthetic") or parts.get("ga")
    if bad is not None and made is not None:
        if np.isnan(made.losses.F).any():
            found.notes.append(
                "F is a file of predictions: its loss on made rows is unknown, so their fidelity "
                "and hardness could not be measured"
            )
        out += [fidelity.widening(_known(made.losses)), *_made(rows, found, made, bad, seed)]
    return out


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
    """Labels, hardness, realism and memorisation of the synthetic rows (else of ga rows)."""
    everything = found.parts["full"].agrees
    few = (bad.support, bad.agrees, bad.losses.c)
    margin = -0.02 if rows.kind.is_classification else -0.1
    own = (made.support, made.agrees, made.losses.c)
    out = measures.labels(own, few, everything, float(made.recorded.mean()), margin)
    out.append(measures.hardness(_known(made.losses), bad.losses))
    rng = stream(seed, rows.name, "realism")
    table = realism.thinned(made.table, rng)
    once = np.unique(bad.table.c, return_index=True)[1]  # a row may be bad in several folds
    real = bad.table.take(once)
    return out + realism.realism(table, real, rng) + realism.memorisation(table, real, rng)


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


def _candidates(found: Evaluation) -> dict[str, dict[str, float | None]]:
    out: dict[str, dict[str, float | None]] = {}
    for index, name in enumerate(found.names):
        means = {part: s.losses.G[:, index].mean() for part, s in found.parts.items()}
        everything = found.parts["full"]
        means["region"] = np.average(everything.losses.G[:, index], weights=everything.weight)
        out[name] = {part: measures.number(value) for part, value in means.items()}
    return out


def _null(found: Evaluation) -> dict[str, dict[str, Any]]:
    out: dict[str, dict[str, Any]] = {}
    views: list[tuple[str, str]] = [(part, part) for part in found.parts] + [("region", "full")]
    for name, part in views:
        scored = found.parts[part]
        w = scored.weight if name == "region" else np.ones(len(scored))
        out[name] = {
            "F": measures.number(np.average(scored.losses.F, weights=w)),
            "twins": [measures.number(np.average(t, weights=w)) for t in scored.twins.T],
        }
    return out


def as_json(certificates: Sequence[Certificate]) -> Mapping[str, Any]:
    """Return certificates by task, as ``hardsynth certify --json`` prints them."""
    return {certificate.task: certificate.to_json() for certificate in certificates}
