"""Certificates beside the tasks they speak of: ``hardsynth/<task>/certificate.json``.

A certificate is stored with a key of all it depends on, so that a suite that is continued or
grown keeps those that still hold. It is no part of the manifest: it may be written again, with
another seed or zoo, without touching the suite.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from amlb_ext.core.atomic import sha256_file, write_file, write_text
from amlb_ext.core.errors import SuiteError
from amlb_ext.suite import Suite
from amlb_ext.suite.records import json_text
from amlb_ext.validity.certificate import Certificate
from amlb_ext.validity.certify import certify_jobs
from amlb_ext.validity.null import REFITS
from amlb_ext.validity.zoo import Size


def certify_suite(
    directory: Path,
    workers: int = 0,
    *,
    size: Size = "quick",
    refits: int = REFITS,
    seed: int | None = None,
    candidates: Sequence[str] = (),
    reuse: bool = True,
    quiet: bool = True,
    unlabelled: Mapping[str, Path] | None = None,
) -> list[Certificate]:
    """Certify every task of a finished suite and store the certificates in it.

    Parameters
    ----------
    directory : Path
    workers : int
        Processes, one task or one fold each; 0 for every core. They change nothing but time.
    size, refits, seed, candidates
        See :func:`amlb_ext.validity.certify`.
    reuse : bool
        Keep a stored certificate that was made from the same folds in the same way.
    quiet : bool
        No progress bar.
    unlabelled : mapping of str to Path, optional
        A table of real rows without labels per task.

    Returns
    -------
    list of Certificate
        In the manifest's order.

    Raises
    ------
    SuiteError
        No finished suite, or a disk that cannot be written.
    ModelError
        A candidate that cannot be built.
    """
    suite = Suite.load(directory)
    how = [size, refits, seed, list(candidates)]
    files = dict(unlabelled or {})
    more = {task: [sha256_file(path)] for task, path in files.items()}
    keys = {task: _key(suite, task, [*how, *more.get(task, [])]) for task in suite.tasks}
    found = {task: _stored(suite, task, key) for task, key in keys.items() if reuse}
    missing = [task for task in suite.tasks if found.get(task) is None]
    same = (size, refits, seed, tuple(candidates))
    jobs = [(str(directory), task, *same, files.get(task)) for task in missing]
    with tqdm(total=len(jobs), desc="certificates", unit="task", disable=quiet) as bar:
        for index, done in certify_jobs(jobs, workers):
            task, null = missing[index], done.null
            found[task] = done.certificate
            content = {"key": keys[task], "certificate": done.certificate.to_json()}
            write_file(suite.layout.task_null(task), partial(null.to_parquet, index=False))
            write_text(suite.layout.task_certificate(task), json_text(content))
            bar.update()
    return [certificate for task in suite.tasks if (certificate := found[task]) is not None]


def read_certificates(suite: Suite) -> dict[str, Certificate]:
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
            entry = json.loads(path.read_text(encoding="utf-8"))
            found[task] = Certificate.from_json(entry.get("certificate", {}))
    return found


def read_null(suite: Suite, task: str) -> pd.DataFrame | None:
    """Return the losses of F's re-fits that :func:`certify_suite` kept; None without any.

    Returns
    -------
    DataFrame of shape (n, 3 + R) or None
        See :class:`amlb_ext.validity.certify.Certified`.
    """
    path = suite.layout.task_null(task)
    try:
        return pd.read_parquet(path) if path.is_file() else None
    except (OSError, ValueError):  # pyarrow's errors derive from these
        raise SuiteError(f"{path} is damaged", "hardsynth certify DIR writes it again") from None


def _key(suite: Suite, task: str, how: Sequence[object]) -> str:
    folds = {k: fold["key"] for k, fold in suite.tasks[task].folds.items()}
    text = json.dumps([suite.manifest.version, task, sorted(folds.items()), how])
    return hashlib.sha256(text.encode()).hexdigest()


def _stored(suite: Suite, task: str, key: str) -> Certificate | None:
    try:
        path = suite.layout.task_certificate(task)
        entry = json.loads(path.read_text(encoding="utf-8"))
        holds = entry["key"] == key and suite.layout.task_null(task).is_file()
        return Certificate.from_json(entry["certificate"]) if holds else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
