"""From a task of a suite to its certificate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.parallel import Execution, available_cores, run_jobs
from amlb_ext.core.rng import random_stream
from amlb_ext.suite import Suite
from amlb_ext.validity import measures, ranking_measures, realism_measures
from amlb_ext.validity.candidates import MIN_CANDIDATES, Size, named_candidates
from amlb_ext.validity.certificate import Certificate, decide_verdict, nothing_to_mend
from amlb_ext.validity.copy_checks import measure_copies
from amlb_ext.validity.evaluation import ScoredRows, TaskEvaluation, evaluate_task
from amlb_ext.validity.label_measures import measure_labels
from amlb_ext.validity.measures import Losses, Measure
from amlb_ext.validity.refits import REFITS, check_baseline
from amlb_ext.validity.task_rows import TaskRows, read_task
from amlb_ext.validity.unlabelled import read_unlabelled
from amlb_ext.validity.unlabelled_gain import measure_unlabelled_gain


def certify(
    directory: str | Path,
    workers: int = 1,
    *,
    size: Size = "quick",
    refits: int = REFITS,
    seed: int | None = None,
    candidates: Sequence[str] = (),
    unlabelled: Mapping[str, Path] | None = None,
    trusted: bool = False,
) -> list[Certificate]:
    """Certify every task of a finished suite, in the manifest's order.

    Parameters
    ----------
    directory : str or Path
    workers : int
        Processes, one task or one fold each; 0 for every core. They change nothing but time.
    size : {'quick', 'full'}
    refits : int
        Twins of F for the null control.
    seed : int, optional
        The suite's own when omitted.
    candidates : sequence of str
        Short names or import paths in place of the zoo.
    unlabelled : mapping of str to Path, optional
        A table of real rows without labels per task, see :mod:`amlb_ext.validity.unlabelled`.
    trusted : bool
        Fit F again whatever class the suite names.

    Raises
    ------
    SuiteError
        No finished suite, or an F that is not on the list of what a suite may name.
    ModelError
        A candidate that cannot be built.
    """
    suite = Suite.load(directory)
    if not trusted:
        check_baseline(suite)
    tasks = list(suite.tasks)
    same, files = (size, refits, seed, tuple(candidates)), dict(unlabelled or {})
    jobs = [(str(directory), task, *same, files.get(task)) for task in tasks]
    done = dict(certify_jobs(jobs, workers))
    return [done[index].certificate for index in sorted(done)]


@dataclass(frozen=True)
class Certified:
    """A certificate, and what it was measured with that later results are set against.

    Attributes
    ----------
    certificate : Certificate
    null : DataFrame of shape (n, 3 + R)
        The rows of the untouched test folds: ``fold`` (the source's number), ``row`` (position
        in the file), ``loss`` of F, and the loss of each re-fit, ``refit_0``, ...
    """

    certificate: Certificate
    null: pd.DataFrame


def certify_jobs(
    jobs: Sequence[tuple[Any, ...]], workers: int | Execution
) -> Iterator[tuple[int, Certified]]:
    """Yield ``(index, certified)`` as tasks finish; 0 workers for every core.

    Tasks are shared out to the processes, or, where there are fewer tasks than processes, the
    folds of each.
    """
    if isinstance(workers, Execution):
        if workers.cluster and workers.shared:
            yield from run_jobs(certify_job, jobs, replace(workers, timeout=0.0, memory=0))
            return
        workers = workers.processes if not workers.cluster else 0
    workers = workers or available_cores()
    if len(jobs) >= workers:
        yield from run_jobs(certify_job, jobs, workers)
        return
    for index, job in enumerate(jobs):
        directory, task, size, refits, seed, words, file = job
        yield index, certify_job(directory, task, size, refits, seed, words, file, workers)


def certify_job(
    directory: str,
    task: str,
    size: Size,
    refits: int,
    seed: int | None,
    words: tuple[str, ...],
    unlabelled: Path | None = None,
    workers: int = 1,
) -> Certified:
    """Certify one task; see :func:`certify`."""
    rows = read_task(Suite.load(directory), task)
    return certify_with_null(rows, size, refits, seed, words, unlabelled, workers)


def certify_task(
    suite: Suite,
    task: str,
    *,
    size: Size = "quick",
    refits: int = REFITS,
    seed: int | None = None,
    candidates: Sequence[str] = (),
    unlabelled: Path | None = None,
    trusted: bool = False,
) -> Certificate:
    """Certify one task of a suite; see :func:`certify`."""
    if not trusted:
        check_baseline(suite)
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
    return certify_with_null(rows, size, refits, seed, tuple(candidates), unlabelled).certificate


def certify_with_null(
    rows: TaskRows,
    size: Size,
    refits: int,
    seed: int | None,
    candidates: tuple[str, ...],
    unlabelled: Path | None,
    workers: int = 1,
) -> Certified:
    """Certify a task in memory and keep the losses of F's re-fits."""
    seed = rows.seed if seed is None else seed
    specs = named_candidates(candidates, rows.kind) if candidates else None
    far = None if unlabelled is None else read_unlabelled(unlabelled, rows, seed)
    found = evaluate_task(rows, size, refits, seed, specs, far, workers)
    taken = assemble(rows, found, seed)
    table: dict[str, dict[str, float | None]] = {}
    if far is not None:
        found.notes += far.notes
        more, table = measure_unlabelled_gain(found, far)
        taken += more
    counts = {part: len(scored) for part, scored in found.parts.items()}
    verdict, reason = decide_verdict(taken, found.notes, counts.get("full"))
    unbeaten = nothing_to_mend(taken)
    if unbeaten and unbeaten != reason:
        found.notes.append(unbeaten)
    if found.capped:
        found.notes.append(found.capped)
    certificate = Certificate(
        task=rows.name,
        kind=rows.kind.value,
        verdict=verdict,
        reason=reason,
        measures=tuple(taken),
        rows=counts,
        candidates=_candidates(found),
        null=_null(found),
        dropped=dict(sorted(found.dropped.items())),
        notes=tuple(dict.fromkeys(found.notes)),
        size="own" if specs else size,
        refits=refits,
        seed=seed,
        powered=table,
    )
    return Certified(certificate, _null_rows(found.parts["full"]))


def _null_rows(full: ScoredRows) -> pd.DataFrame:
    """Rows of all folds in order; a re-fit that failed in any fold is left out."""
    row = pd.Series(full.fold).groupby(full.fold).cumcount()
    out = pd.DataFrame({"fold": full.fold, "row": row, "loss": full.losses.F})
    for number, loss in enumerate(full.twins.T):
        if not np.isnan(loss).any():
            out[f"refit_{number}"] = loss
    return out


def _candidates(found: TaskEvaluation) -> dict[str, dict[str, float | None]]:
    out: dict[str, dict[str, float | None]] = {}
    for index, name in enumerate(found.names):
        means = {part: s.losses.G[:, index].mean() for part, s in found.parts.items()}
        everything = found.parts["full"]
        means["region"] = np.average(everything.losses.G[:, index], weights=everything.weight)
        v = everything.reducible
        if usable(v):
            means["reducible"] = np.average(everything.losses.G[:, index], weights=v)
        out[name] = {part: measures.finite_or_none(value) for part, value in means.items()}
    return out


def _null(found: TaskEvaluation) -> dict[str, dict[str, Any]]:
    out: dict[str, dict[str, Any]] = {}
    full = found.parts["full"]
    views = {part: (scored, np.ones(len(scored))) for part, scored in found.parts.items()}
    views["region"] = (full, full.weight)
    if usable(full.reducible):
        views["reducible"] = (full, full.reducible)
    for name, (scored, w) in views.items():
        out[name] = {
            "F": measures.finite_or_none(np.average(scored.losses.F, weights=w)),
            "twins": [measures.finite_or_none(np.average(t, weights=w)) for t in scored.twins.T],
        }
    return out


def certificates_to_json(certificates: Sequence[Certificate]) -> Mapping[str, Any]:
    """Return certificates by task, as ``hardsynth certify --json`` prints them."""
    return {certificate.task: certificate.to_json() for certificate in certificates}


# Which measures a certificate takes, and on which rows.


def assemble(rows: TaskRows, found: TaskEvaluation, seed: int) -> list[Measure]:
    """Return all measures of a task, in the order a certificate shows them."""
    parts, everything = found.parts, found.parts["full"]
    w, c = everything.weight, everything.losses.c
    bad = parts.get("bad")
    out = [
        measures.measure_region(w, everything.bad, c),
        measures.measure_solvability(
            everything.losses, w, found.names, random_stream(seed, rows.name, "halves")
        ),
    ]
    if bad is not None:
        rng = random_stream(seed, rows.name, "rankings")
        if len(found.names) >= MIN_CANDIDATES:
            out.append(
                ranking_measures.measure_target_agreement(bad.losses, everything.losses, w, rng)
            )
            for part in ("synthetic", "ga"):
                some = parts.get(part)
                side = _known(bad.losses if some is None else some.losses, some is not None)
                out += ranking_measures.measure_fidelity(side, bad.losses, rng, part)
        else:
            found.notes.append(f"{len(found.names)} candidates, {MIN_CANDIDATES} make a ranking")
    out += _nulls(found)
    out.append(measures.measure_effective_size(w, c))
    out += _other_weight(everything)
    out += _kept(rows)
    out += measure_copies(rows)
    made = parts.get("synthetic") or parts.get("ga")
    if bad is not None and made is not None:
        if np.isnan(made.losses.F).any():
            found.notes.append(
                "F is a file of predictions: its loss on made rows is unknown, so their fidelity "
                "and hardness could not be measured"
            )
        out += [
            ranking_measures.measure_widening(_known(made.losses)),
            *_made(rows, found, made, bad, seed),
        ]
    return out


def _other_weight(everything: ScoredRows) -> list[Measure]:
    """Information on the second weight v, reducible hardness; no limit, so no verdict."""
    v, side = everything.reducible, everything.losses
    name, source = "effective size, v", "weights v = (T - F)^2; information only"
    if not usable(v):
        out = [measures.missing_measure(name, "no row has a reducible hardness", source, None, "")]
        views = [("on all rows", None), ("weighted by w", everything.weight)]
    else:
        size = measures.measure_effective_size(v, side.c)
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
        measures.make_measure(
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


def _nulls(found: TaskEvaluation) -> list[Measure]:
    out = []
    for where, part in (("region", "full"), ("bad rows", "bad")):
        scored = found.parts.get(part)
        if scored is None or not scored.twins.shape[1] or np.isnan(scored.twins).any():
            continue
        w = scored.weight if part == "full" else np.ones(len(scored))
        side = scored.losses
        out.append(
            ranking_measures.measure_null(scored.twins, side.F, side.c, scored.fold, w, where)
        )
    return out


def _made(
    rows: TaskRows, found: TaskEvaluation, made: ScoredRows, bad: ScoredRows, seed: int
) -> list[Measure]:
    """Labels, hardness, realism and distance of the synthetic rows (else of ga rows)."""
    everything = found.parts["full"].agrees
    few = (bad.support, bad.agrees, bad.losses.c)
    own = (made.support, made.agrees, made.losses.c)
    out = measure_labels(own, few, everything, float(made.recorded.mean()), len(rows.labels))
    out.append(measures.measure_hardness(_known(made.losses), bad.losses))
    rng = random_stream(seed, rows.name, "realism")
    table = realism_measures.thin_table(made.table, rng)
    once = np.unique(bad.table.c, return_index=True)[1]  # a row may be bad in several folds
    real = bad.table.take(once)
    out += realism_measures.measure_realism(table, real, rng)
    return [*out, realism_measures.measure_closest_record(table, real, rng)]


def _kept(rows: TaskRows) -> list[Measure]:
    """Share of made rows that K, the oracle and the search for doublets let pass."""
    out = []
    for made, word in (("augmented", "ga"), ("synthetic", "synthetic")):
        asked = sum(s.get(f"{made}_asked", 0) for s in rows.summaries)
        if asked:
            kept = sum(s.get(made, 0) for s in rows.summaries)
            text = f"{word} rows on which F still fails and whose label stands, of {asked} asked"
            out.append(
                measures.make_measure(
                    f"{word} rows kept", kept / asked, text, "docs/validity.md, 4"
                )
            )
    return out
