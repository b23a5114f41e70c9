"""From a task of a suite to its certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from amlb_ext.core.parallel import available_cores, run_jobs
from amlb_ext.core.rng import stream
from amlb_ext.suite import Suite
from amlb_ext.validity import fidelity, measures, realism
from amlb_ext.validity.certificate import Certificate, decide, nothing_to_mend
from amlb_ext.validity.evaluate import Evaluation, Scored, evaluate
from amlb_ext.validity.label_checks import labels
from amlb_ext.validity.measures import Losses, Measure
from amlb_ext.validity.null import REFITS
from amlb_ext.validity.task_rows import TaskRows, read_task
from amlb_ext.validity.unlabelled import read_unlabelled
from amlb_ext.validity.unlabelled_gain import powered
from amlb_ext.validity.zoo import MIN_CANDIDATES, Size, named


def certify(
    directory: str | Path,
    workers: int = 1,
    *,
    size: Size = "quick",
    refits: int = REFITS,
    seed: int | None = None,
    candidates: Sequence[str] = (),
    unlabelled: Mapping[str, Path] | None = None,
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
    unlabelled : mapping of str to Path, optional
        A table of real rows without labels per task, see :mod:`amlb_ext.validity.unlabelled`.

    Raises
    ------
    SuiteError
        No finished suite.
    ModelError
        A candidate that cannot be built.
    """
    tasks = list(Suite.load(directory).tasks)
    same, files = (size, refits, seed, tuple(candidates)), dict(unlabelled or {})
    jobs = [(str(directory), task, *same, files.get(task)) for task in tasks]
    workers = min(workers or available_cores(), len(jobs))
    done = dict(run_jobs(certify_job, jobs, workers))
    return [done[index] for index in sorted(done)]


def certify_job(
    directory: str,
    task: str,
    size: Size,
    refits: int,
    seed: int | None,
    words: tuple[str, ...],
    unlabelled: Path | None = None,
) -> Certificate:
    """Certify one task in a process of its own; see :func:`certify`."""
    suite = Suite.load(directory)
    return certify_task(
        suite, task, size=size, refits=refits, seed=seed, candidates=words, unlabelled=unlabelled
    )


def certify_task(
    suite: Suite,
    task: str,
    *,
    size: Size = "quick",
    refits: int = REFITS,
    seed: int | None = None,
    candidates: Sequence[str] = (),
    unlabelled: Path | None = None,
) -> Certificate:
    """Certify one task of a suite; see :func:`certify`."""
    rows = read_task(suite, task)
    return certify_rows(
        rows, size=size, refits=refits, seed=seed, candidates=candidates, unlabelled=unlabelled
    )


def certify_rows(
    rows: TaskRows,
    *,
    size: Size = "quick",
    refits: int = REFITS,
    seed: int | None = None,
    candidates: Sequence[str] = (),
    unlabelled: Path | None = None,
) -> Certificate:
    """Certify a task in memory; a pure function of its arguments and the unlabelled file."""
    seed = rows.seed if seed is None else seed
    specs = named(candidates, rows.kind) if candidates else None
    far = None if unlabelled is None else read_unlabelled(unlabelled, rows, seed)
    found = evaluate(rows, size, refits, seed, specs, far)
    taken = _measures(rows, found, seed)
    table: dict[str, dict[str, float | None]] = {}
    if far is not None:
        found.notes += far.notes
        more, table = powered(found, far)
        taken += more
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
        powered=table,
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
    out += _other_weight(everything)
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


def _other_weight(everything: Scored) -> list[Measure]:
    """Information on the second weight v, reducible hardness; no limit, so no verdict."""
    v, side = everything.reducible, everything.losses
    name, source = "effective size, v", "weights v = (T - F)^2; information only"
    if not _usable(v):
        out = [measures.lacking(name, "no row has a reducible hardness", source, None, "")]
        views = [("on all rows", None), ("weighted by w", everything.weight)]
    else:
        size = measures.effective_size(v, side.c)
        text = size.text.replace("weighted test rows", "test rows weighted by v")
        out = [replace(size, name=name, threshold=None, passed=None, sense="", source=source,
                       text=text)]  # fmt: skip
        views = [("on all rows", None), ("weighted by w", everything.weight), ("weighted by v", v)]
    gaps = side.G - side.F[:, None]
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


def _usable(v: np.ndarray) -> bool:
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
    """Labels, hardness, realism and memorisation of the synthetic rows (else of ga rows)."""
    everything = found.parts["full"].agrees
    few = (bad.support, bad.agrees, bad.losses.c)
    own = (made.support, made.agrees, made.losses.c)
    out = labels(own, few, everything, float(made.recorded.mean()), len(rows.labels))
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
        v = everything.reducible
        if _usable(v):
            means["reducible"] = np.average(everything.losses.G[:, index], weights=v)
        out[name] = {part: measures.number(value) for part, value in means.items()}
    return out


def _null(found: Evaluation) -> dict[str, dict[str, Any]]:
    out: dict[str, dict[str, Any]] = {}
    full = found.parts["full"]
    views = {part: (scored, np.ones(len(scored))) for part, scored in found.parts.items()}
    views["region"] = (full, full.weight)
    if _usable(full.reducible):
        views["reducible"] = (full, full.reducible)
    for name, (scored, w) in views.items():
        out[name] = {
            "F": measures.number(np.average(scored.losses.F, weights=w)),
            "twins": [measures.number(np.average(t, weights=w)) for t in scored.twins.T],
        }
    return out


def as_json(certificates: Sequence[Certificate]) -> Mapping[str, Any]:
    """Return certificates by task, as ``hardsynth certify --json`` prints them."""
    return {certificate.task: certificate.to_json() for certificate in certificates}
