"""Certificates beside the tasks they speak of: ``hardsynth/<task>/certificate.json``.

A certificate is stored with a key of all it depends on, so that a suite that is continued or
grown keeps those that still hold. It is no part of the manifest: it may be written again, with
another seed or zoo, without touching the suite. It carries its own checksum and that of
``null.parquet``; how it was made stands in both, so that either can be made again from the other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import sha256_file, write_text
from amlb_ext.core.locks import lock_folder
from amlb_ext.core.parquet import read_frame, write_parquet
from amlb_ext.core.progress import Bar, StageDisplay
from amlb_ext.suite import Layout, SuiteFiles
from amlb_ext.suite.sealed_json import sealed_text
from amlb_ext.suite.verify import damaged_certificate, open_certificate
from amlb_ext.validity.candidates import Size
from amlb_ext.validity.certificate import FORMAT, Certificate
from amlb_ext.validity.certify import Certified, CertifySettings, certify_jobs
from amlb_ext.validity.task_rows import REFITS, check_baseline

#: Key in the metadata of ``null.parquet``.
_HOW = b"hardsynth"


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
    unlabelled: Mapping[str, Path] | None = None,
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
        See :func:`amlb_ext.validity.certify`.
    reuse : bool
        Keep a stored certificate that was made from the same folds in the same way.
    quiet : bool
        No progress bar.
    unlabelled : mapping of str to Path, optional
        A table of real rows without labels per task.
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
        files = dict(unlabelled or {})
        how = {task: _how_made(settings, files.get(task)) for task in wanted}
        keys = {task: _certificate_key(suite, task, how[task]) for task in wanted}
        certificates: dict[str, Certificate] = {}
        for task in wanted if reuse else ():
            stored = _read_stored(suite, task, keys[task])
            if stored is not None:
                certificates[task] = stored
        missing = [task for task in wanted if task not in certificates]
        jobs = []
        for task in missing:
            jobs.append((str(directory), task, settings, files.get(task)))
        with Bar(
            total=len(jobs), desc="certificates", unit="task", disable=quiet
        ) as bar:
            display = StageDisplay(bar)
            for index, certified in certify_jobs(jobs, workers, display.show):
                # written at once: what is finished survives an interruption
                task = missing[index]
                display.forget(task)
                certificates[task] = certified.certificate
                _store_certificate(suite, task, keys[task], how[task], certified)
                bar.update()
    return [certificates[task] for task in wanted]


def stored_how(layout: Layout, task: str) -> dict[str, Any] | None:
    """Return how a task's certificate was made, as the arguments of :func:`certify_suite`.

    Parameters
    ----------
    layout : Layout
    task : str

    Returns
    -------
    dict or None
        ``size``, ``refits``, ``seed``, ``candidates``, and ``unlabelled`` where a table of such
        rows was used: its sha256. None where neither of the two files can be read.
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


def read_certificates(suite: SuiteFiles) -> dict[str, Certificate]:
    """Return the stored certificates of a suite by task; those that are missing are left out.

    Raises
    ------
    SuiteError
        A damaged certificate.
    """
    found = {}
    for task in suite.tasks:
        path = suite.layout.task_certificate(task)
        if path.is_file():
            try:
                entry = json.loads(path.read_text(encoding="utf-8"))["certificate"]
            except (OSError, ValueError, KeyError, TypeError):
                raise SuiteError(
                    f"{path} is damaged", "hardsynth verify DIR --repair makes it again"
                ) from None
            found[task] = Certificate.from_json(entry)
    return found


def read_null(suite: SuiteFiles, task: str) -> pd.DataFrame | None:
    """Return the losses of F's re-fits that :func:`certify_suite` kept; None without any.

    Returns
    -------
    DataFrame of shape (n, 3 + R) or None
        See :class:`amlb_ext.validity.certify.Certified`.
    """
    path = suite.layout.task_null(task)
    try:
        return read_frame(path) if path.is_file() else None
    except (OSError, ValueError):  # pyarrow's errors derive from these
        raise SuiteError(
            f"{path} is damaged", "hardsynth certify DIR writes it again"
        ) from None


def _how_made(settings: CertifySettings, unlabelled: Path | None) -> dict[str, Any]:
    """Return how a certificate is made, as it is stored with it; see :func:`stored_how`."""
    how: dict[str, Any] = {
        "size": settings.size,
        "refits": settings.refits,
        "seed": settings.seed,
        "candidates": list(settings.candidates),
    }
    if unlabelled is not None:
        # its content, not its place: the table may be moved or sent along
        how["unlabelled"] = sha256_file(unlabelled)
    return how


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
