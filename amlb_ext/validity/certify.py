"""From a task of a suite to its certificate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.parallel import Execution, available_cores, run_jobs
from amlb_ext.suite import Suite
from amlb_ext.validity import measures
from amlb_ext.validity.assemble import assemble, usable
from amlb_ext.validity.certificate import Certificate, decide, nothing_to_mend
from amlb_ext.validity.evaluate import Evaluation, Scored, evaluate
from amlb_ext.validity.null import REFITS, check_baseline
from amlb_ext.validity.task_rows import TaskRows, read_task
from amlb_ext.validity.unlabelled import read_unlabelled
from amlb_ext.validity.unlabelled_gain import powered
from amlb_ext.validity.zoo import Size, named


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
    return certified(rows, size, refits, seed, words, unlabelled, workers)


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
    return certified(rows, size, refits, seed, tuple(candidates), unlabelled).certificate


def certified(
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
    specs = named(candidates, rows.kind) if candidates else None
    far = None if unlabelled is None else read_unlabelled(unlabelled, rows, seed)
    found = evaluate(rows, size, refits, seed, specs, far, workers)
    taken = assemble(rows, found, seed)
    table: dict[str, dict[str, float | None]] = {}
    if far is not None:
        found.notes += far.notes
        more, table = powered(found, far)
        taken += more
    counts = {part: len(scored) for part, scored in found.parts.items()}
    verdict, reason = decide(taken, found.notes, counts.get("full"))
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


def _null_rows(full: Scored) -> pd.DataFrame:
    """Rows of all folds in order; a re-fit that failed in any fold is left out."""
    row = pd.Series(full.fold).groupby(full.fold).cumcount()
    out = pd.DataFrame({"fold": full.fold, "row": row, "loss": full.losses.F})
    for number, loss in enumerate(full.twins.T):
        if not np.isnan(loss).any():
            out[f"refit_{number}"] = loss
    return out


def _candidates(found: Evaluation) -> dict[str, dict[str, float | None]]:
    out: dict[str, dict[str, float | None]] = {}
    for index, name in enumerate(found.names):
        means = {part: s.losses.G[:, index].mean() for part, s in found.parts.items()}
        everything = found.parts["full"]
        means["region"] = np.average(everything.losses.G[:, index], weights=everything.weight)
        v = everything.reducible
        if usable(v):
            means["reducible"] = np.average(everything.losses.G[:, index], weights=v)
        out[name] = {part: measures.number(value) for part, value in means.items()}
    return out


def _null(found: Evaluation) -> dict[str, dict[str, Any]]:
    out: dict[str, dict[str, Any]] = {}
    full = found.parts["full"]
    views = {part: (scored, np.ones(len(scored))) for part, scored in found.parts.items()}
    views["region"] = (full, full.weight)
    if usable(full.reducible):
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
