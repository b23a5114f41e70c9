"""From a task of a suite to its certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.memory import release_memory
from amlb_ext.core.parallel import available_cores, run_jobs
from amlb_ext.core.progress import begin_stage, listening
from amlb_ext.suite import SuiteFiles
from amlb_ext.validity.candidates import Size, named_candidates
from amlb_ext.validity.certificate import Certificate
from amlb_ext.validity.evaluation import (
    ScoredUnits,
    measure_evaluation,
    write_certificate,
)
from amlb_ext.validity.task_evaluation import (
    cap_errors,
    describe_capped,
    evaluate_task,
)
from amlb_ext.validity.task_measures import measure_files, measure_looks
from amlb_ext.validity.task_rows import REFITS, TaskRows, check_baseline, read_task
from amlb_ext.validity.unlabelled import measure_unlabelled_gain, read_unlabelled


@dataclass(frozen=True, kw_only=True)
class CertifySettings:
    """How certificates are made; see :func:`certify`."""

    size: Size = "quick"
    refits: int = REFITS
    seed: int | None = None
    candidates: tuple[str, ...] = ()


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
    suite = SuiteFiles.load(directory)
    if not trusted:
        check_baseline(suite)
    settings = CertifySettings(
        size=size, refits=refits, seed=seed, candidates=tuple(candidates)
    )
    files = unlabelled or {}
    jobs = []
    for task in suite.tasks:
        jobs.append((str(directory), task, settings, files.get(task)))
    # jobs end in any order
    by_job = dict(certify_jobs(jobs, workers))
    return [by_job[number].certificate for number in range(len(jobs))]


@dataclass(frozen=True)
class Certified:
    """A certificate, with the losses of F that later results are compared with.

    Attributes
    ----------
    certificate : Certificate
    null : DataFrame of shape (n, 3 + R)
        The rows of the untouched test folds: ``fold`` (the source's number), ``row`` (position
        in the file), ``loss`` of F, and the loss of each re-fit, ``refit_0``, ...
    """

    certificate: Certificate
    null: pd.DataFrame


#: The suite's directory, the task, how, and its file of unlabelled rows.
CertifyJob = tuple[str, str, CertifySettings, Path | None]


def certify_jobs(
    jobs: Sequence[CertifyJob],
    workers: int,
    on_stage: Callable[[str, str], None] | None = None,
) -> Iterator[tuple[int, Certified]]:
    """Yield ``(index, certified)`` as tasks finish; 0 workers for every core.

    Tasks are shared out to the processes, or, where there are fewer tasks than processes, the
    folds of each.

    Parameters
    ----------
    jobs : sequence of tuple
    workers : int
    on_stage : callable, optional
        Called with the name of a task and what is done of it now.
    """

    def show(job: str, words: str) -> None:
        if on_stage is not None:
            _, task, *_ = jobs[int(job.split()[-1])]
            on_stage(task, words)

    workers = workers or available_cores()
    if len(jobs) >= workers:  # a task each keeps all processes busy
        yield from run_jobs(certify_job, jobs, workers, show)
        return
    # one task after the other, each with its folds on all processes
    for index, job in enumerate(jobs):
        with listening(partial(show, f"job {index}")):
            certified = certify_job(*job, workers=workers)
        yield index, certified


def certify_job(
    directory: str,
    task: str,
    settings: CertifySettings,
    unlabelled: Path | None = None,
    workers: int = 1,
) -> Certified:
    """Certify one task; see :func:`certify`."""
    # the worker reads the files itself: a task's rows are costly to send
    rows = read_task(SuiteFiles.load(directory), task)
    # reading takes several times the memory of what was read
    release_memory()
    return certify_with_null(rows, settings, unlabelled=unlabelled, workers=workers)


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
    settings = CertifySettings(
        size=size, refits=refits, seed=seed, candidates=tuple(candidates)
    )
    return certify_with_null(rows, settings, unlabelled=unlabelled).certificate


def certify_with_null(
    rows: TaskRows,
    settings: CertifySettings,
    *,
    unlabelled: Path | None = None,
    workers: int = 1,
) -> Certified:
    """Certify a task in memory and keep the losses of F's re-fits."""
    seed = rows.seed if settings.seed is None else settings.seed
    candidates = None
    if settings.candidates:
        candidates = named_candidates(settings.candidates, rows.kind)
    # read first: a table that cannot be used should not cost the fits
    far = None
    if unlabelled is not None:
        far = read_unlabelled(unlabelled, rows, seed)
    begin_stage("fitting candidates and F again")
    evaluation, views = evaluate_task(
        rows,
        size=settings.size,
        refits=settings.refits,
        seed=seed,
        candidates=candidates,
        far=far,
        workers=workers,
    )
    capped, capping = cap_errors(rows, evaluation)
    begin_stage("measuring")
    measures, measure_notes = measure_evaluation(
        evaluation,
        seed,
        of_files=measure_files(rows),
        looks=measure_looks(rows, seed),
        capped=capped,
    )
    notes = [*evaluation.notes, *measure_notes]
    powered: dict[str, dict[str, float | None]] = {}
    if far is not None:
        gain = measure_unlabelled_gain(
            capped.names, capped.parts["full"].losses, views, far
        )
        measures += gain.measures
        notes += [*far.notes, *gain.notes]
        powered = gain.intervals
    certificate = write_certificate(
        evaluation,
        measures,
        task=rows.name,
        kind=rows.kind.value,
        notes=[*notes, *describe_capped(rows, evaluation), *capping],
        size="own" if candidates else settings.size,
        refits=settings.refits,
        seed=seed,
        is_searched=rows.settings.get("synthesizer", {}).get("name") == "swarm",
        powered=powered,
    )
    return Certified(certificate, _null_rows(evaluation.parts["full"]))


def _null_rows(full: ScoredUnits) -> pd.DataFrame:
    """Return the losses of the rows of all folds, in order.

    A re-fit that failed in any fold is left out.
    """
    # rows are pooled fold after fold, in the order of the files
    position_in_fold = pd.Series(full.fold).groupby(full.fold).cumcount()
    columns = {
        "fold": full.fold,
        "row": position_in_fold,
        "loss": full.losses.baseline,
    }
    table = pd.DataFrame(columns)
    for number, loss in enumerate(full.twins.T):
        if not np.isnan(loss).any():
            table[f"refit_{number}"] = loss
    return table


def certificates_to_json(certificates: Sequence[Certificate]) -> Mapping[str, Any]:
    """Return certificates by task, as ``hardsynth certify --json`` prints them."""
    return {certificate.task: certificate.to_json() for certificate in certificates}
