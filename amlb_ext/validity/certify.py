"""From the tasks of a suite to their certificates, which stand beside them.

A certificate is stored in ``hardsynth/<task>/certificate.json``, with a key of all it depends on,
so that a suite that is continued or grown keeps those that still hold. It is no part of the
manifest: it may be written again, with another seed or zoo, without touching the suite. It carries
its own checksum and that of ``null.parquet``; how it was made stands in both, so that either can
be made again from the other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import write_text
from amlb_ext.core.locks import lock_folder
from amlb_ext.core.memory import release_memory
from amlb_ext.core.parallel import available_cores, run_jobs
from amlb_ext.core.parquet import read_frame, write_parquet
from amlb_ext.core.progress import Bar, StageDisplay, begin_stage, listening
from amlb_ext.suite import Layout, Suite, SuiteFiles, TableManifest
from amlb_ext.suite.sealed_json import sealed_text
from amlb_ext.suite.verify import damaged_certificate, open_certificate
from amlb_ext.validity.candidates import Size, named_candidates
from amlb_ext.validity.certificate import FORMAT, Certificate
from amlb_ext.validity.evaluation import measure_evaluation, write_certificate
from amlb_ext.validity.task_evaluation import cap_errors, describe_capped, evaluate_task
from amlb_ext.validity.task_measures import measure_files, measure_looks
from amlb_ext.validity.task_rows import REFITS, TaskRows, check_baseline, read_task

#: Key in the metadata of ``null.parquet``.
_HOW = b"hardsynth"


@dataclass(frozen=True, kw_only=True)
class CertifySettings:
    """How certificates are made.

    Attributes
    ----------
    size : {'quick', 'full'}
    refits : int
        Twins of F for the null control.
    seed : int or None
        The suite's own where None.
    candidates : tuple of str
        Short names or import paths in place of the zoo.
    """

    size: Size = "quick"
    refits: int = REFITS
    seed: int | None = None
    candidates: tuple[str, ...] = ()


def certify_suite(
    directory: Path,
    workers: int = 0,
    *,
    size: Size = "quick",
    refits: int = REFITS,
    seed: int | None = None,
    candidates: Collection[str] = (),
    reuse: bool = True,
    quiet: bool = True,
    tasks: Collection[str] | None = None,
    trusted: bool = False,
) -> list[Certificate]:
    """Certify every task of a finished suite and store the certificates in it.

    Parameters
    ----------
    directory : Path
    workers : int
        Processes of this machine, one task or one fold each; 0 for every core. They change nothing
        but time.
    size, refits, seed, candidates
        See :class:`CertifySettings`.
    reuse : bool
        Keep a stored certificate that was made from the same folds in the same way.
    quiet : bool
        No progress bar.
    tasks : collection of str, optional
        Leave the certificates of the others alone.
    trusted : bool
        Fit F again whatever class the suite names, ``--trust-suite``.

    Returns
    -------
    list of Certificate
        In the manifest's order.

    Raises
    ------
    SuiteError
        No finished suite, a disk that cannot be written, or an F that is not on the list of what
        a suite may name.
    ModelError
        A candidate that cannot be built.
    """
    layout = Layout(Path(directory))
    # one writer at a time: another process may be generating or certifying the same suite
    with lock_folder(layout.lock, layout.root):
        suite = SuiteFiles.load(directory)
        if not trusted:
            check_baseline(suite)
        wanted = [task for task in suite.tasks if tasks is None or task in tasks]
        settings = CertifySettings(
            size=size, refits=refits, seed=seed, candidates=tuple(candidates)
        )
        how = dict(vars(settings))
        keys = {task: _certificate_key(suite, task, how) for task in wanted}
        certificates: dict[str, Certificate] = {}
        for task in wanted:
            stored = _read_stored(suite, task, keys[task]) if reuse else None
            if stored is not None:
                certificates[task] = stored
        missing = [task for task in wanted if task not in certificates]
        jobs = [(str(directory), task, settings) for task in missing]
        with Bar(
            total=len(jobs), desc="certificates", unit="task", disable=quiet
        ) as bar:
            display = StageDisplay(bar)
            for index, certified in certify_jobs(jobs, workers, display.show):
                # written at once: what is finished survives an interruption
                task = missing[index]
                display.forget(task)
                certificates[task] = certified.certificate
                _store_certificate(suite, task, keys[task], how, certified)
                bar.update()
    return [certificates[task] for task in wanted]


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


#: The suite's directory, the task, and how.
CertifyJob = tuple[str, str, CertifySettings]


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
    workers: int = 1,
) -> Certified:
    """Certify one task of a suite."""
    # the worker reads the files itself: a task's rows are costly to send
    rows = read_task(SuiteFiles.load(directory), task)
    # reading takes several times the memory of what was read
    release_memory()
    return certify_task(rows, settings, workers=workers)


def certify_task(
    rows: TaskRows,
    settings: CertifySettings,
    workers: int = 1,
) -> Certified:
    """Certify a task in memory; a pure function of its arguments."""
    seed = rows.seed if settings.seed is None else settings.seed
    candidates = None
    if settings.candidates:
        candidates = named_candidates(settings.candidates, rows.kind)
    begin_stage("fitting candidates and F again")
    evaluation = evaluate_task(
        rows,
        size=settings.size,
        refits=settings.refits,
        seed=seed,
        candidates=candidates,
        workers=workers,
    )
    capped, capping = cap_errors(rows, evaluation)
    begin_stage("measuring")
    # the models are gone, and each kind of measure takes tables of its own
    release_memory()
    of_files = measure_files(rows)
    release_memory()
    looks = measure_looks(rows, seed)
    release_memory()
    measures, measure_notes = measure_evaluation(
        evaluation, seed, of_files=of_files, looks=looks, capped=capped
    )
    notes = [*evaluation.notes, *measure_notes]
    certificate = write_certificate(
        evaluation,
        measures,
        task=rows.name,
        kind=rows.kind.value,
        notes=[*notes, *describe_capped(rows, evaluation), *capping],
        size="own" if candidates else settings.size,
        refits=settings.refits,
        seed=seed,
        is_searched=_is_searched(rows.settings),
    )
    full = evaluation.parts["full"]
    # rows are pooled fold after fold, in the order of the files
    position_in_fold = pd.Series(full.fold).groupby(full.fold).cumcount()
    columns = {
        "fold": full.fold,
        "row": position_in_fold,
        "loss": full.losses.baseline,
    }
    for number, loss in enumerate(full.twins.T):
        # a re-fit that failed in any fold is left out
        if not np.isnan(loss).any():
            columns[f"refit_{number}"] = loss
    return Certified(certificate, pd.DataFrame(columns))


def stored_how(layout: Layout, task: str) -> dict[str, Any] | None:
    """Return how a task's certificate was made, as the arguments of :func:`certify_suite`.

    Parameters
    ----------
    layout : Layout
    task : str

    Returns
    -------
    dict or None
        ``size``, ``refits``, ``seed``, ``candidates``. None where neither of the two files can be
        read.
    """
    content = open_certificate(layout, task)
    try:
        # both files say it, so that either can be made again from the other
        if content is not None:
            return dict(content["how"])
        metadata = pq.read_schema(layout.task_null(task)).metadata
        return dict(json.loads(metadata[_HOW]))
    # pyarrow's errors derive from the first two
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_certificates(suite: Suite) -> dict[str, Certificate]:
    """Return the stored certificates of a suite by task; those that nobody made are left out.

    Raises
    ------
    SuiteError
        A certificate is damaged, was changed after it was written, or is missing though the
        manifest lists it.
    """
    found = {}
    for task in suite.manifest.certified:
        path = suite.layout.task_certificate(task)
        is_listed = suite.layout.relative(path) in suite.manifest.files
        if not (path.is_file() or is_listed):
            continue
        try:
            if is_listed:
                entry = json.loads(suite.unchanged_file(path).read_bytes())
            else:
                # its own seal vouches for it; beside it stands how it was measured
                entry = (open_certificate(suite.layout, task) or {})["certificate"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise SuiteError(
                f"{path} is damaged, or was changed after it was written",
                "hardsynth verify DIR --repair makes it again",
            ) from None
        found[task] = Certificate.from_json(entry)
    return found


def certificate_faults(suite: Suite) -> Iterator[str]:
    """Yield where a certificate contradicts itself, whoever sealed it.

    Parameters
    ----------
    suite : Suite
        Its files are as they were written.
    """
    settings, writer = {}, "the command that made the suite"
    if isinstance(suite.manifest, TableManifest):
        settings, writer = suite.manifest.config, "hardsynth certify DIR"
    try:
        certificates = read_certificates(suite)
    except SuiteError as error:
        yield str(error)
        return
    for task, certificate in certificates.items():
        clause = certificate.contradiction(is_searched=_is_searched(settings))
        if clause:
            where = suite.layout.relative(suite.layout.task_certificate(task))
            yield (
                f"{where} contradicts itself: {clause}. It was changed, or is of another version "
                f"of hardsynth; {writer} writes it again."
            )


def _is_searched(settings: Mapping[str, Any]) -> bool:
    """Whether made rows are searched for what models get wrong."""
    return bool(settings.get("synthesizer", {}).get("name") == "swarm")


def read_null(suite: SuiteFiles, task: str) -> pd.DataFrame | None:
    """Return the losses of F's re-fits that :func:`certify_suite` kept; None without any.

    Returns
    -------
    DataFrame of shape (n, 3 + R) or None
        See :class:`Certified`.
    """
    path = suite.layout.task_null(task)
    try:
        if path.is_file() and damaged_certificate(suite.layout, task):
            raise ValueError("it is not that of the certificate beside it")
        return read_frame(path) if path.is_file() else None
    except (OSError, ValueError):  # pyarrow's errors derive from these
        raise SuiteError(
            f"{path} is damaged, or was changed after it was written",
            "hardsynth certify DIR writes it again",
        ) from None


def _certificate_key(suite: SuiteFiles, task: str, how: Mapping[str, object]) -> str:
    """Return a key of all that a certificate depends on: rows, settings and this version."""
    folds = {fold: entry.key for fold, entry in suite.tasks[task].folds.items()}
    # a certificate of an older format is measured again, not kept
    parts = [
        FORMAT,
        suite.manifest.version,
        task,
        sorted(folds.items()),
        list(how.values()),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _store_certificate(
    suite: SuiteFiles,
    task: str,
    key: str,
    how: Mapping[str, object],
    certified: Certified,
) -> None:
    """Write the re-fits' losses, then the certificate, which holds their checksum."""
    table = pa.Table.from_pandas(certified.null, preserve_index=False)
    # beside the metadata that pandas needs to read its types back
    metadata = {**(table.schema.metadata or {}), _HOW: json.dumps(how).encode()}
    digest = write_parquet(
        table.replace_schema_metadata(metadata), suite.layout.task_null(task)
    )
    content = {
        "key": key,
        "how": how,
        "null": digest,
        "certificate": certified.certificate.to_json(),
    }
    write_text(suite.layout.task_certificate(task), sealed_text(content))


def _read_stored(suite: SuiteFiles, task: str, key: str) -> Certificate | None:
    """Return a stored certificate if its files are intact and its key is the one wanted."""
    opened = open_certificate(suite.layout, task)
    if opened is None or damaged_certificate(suite.layout, task):
        return None
    if opened.get("key") != key:
        return None
    try:
        return Certificate.from_json(opened["certificate"])
    # whatever is wrong with it, it can be measured again
    except (KeyError, SuiteError):
        return None
