"""Folds that were written on another machine: packed there, checked and written here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import write_file, write_text
from amlb_ext.suite.fold_record import FoldRecord
from amlb_ext.suite.layout import Layout

_REMEDY = "run the same command again; the fold is made again"


def pack_folds(layout: Layout, records: Sequence[FoldRecord]) -> dict[str, bytes]:
    """Return the files of finished folds.

    Parameters
    ----------
    layout : Layout
        Where they were written.
    records : sequence of FoldRecord

    Returns
    -------
    dict of str to bytes
        By path relative to the suite's root.
    """
    digests = _digests(records)
    return {name: layout.at(name).read_bytes() for name in sorted(digests)}


def check_in_folds(
    layout: Layout, records: Sequence[FoldRecord], contents: Mapping[str, bytes]
) -> Sequence[FoldRecord]:
    """Write folds that another machine made, their records last: a record marks a finished fold.

    Parameters
    ----------
    layout : Layout
        Where they are written.
    records : sequence of FoldRecord
    contents : mapping of str to bytes
        As :func:`pack_folds` returns them.

    Returns
    -------
    sequence of FoldRecord
        The records as they came.

    Raises
    ------
    SuiteError
        A file is missing, was damaged in transit, or belongs to none of the folds: nothing is
        written then. Or the disk cannot be written.
    """
    wanted = _digests(records)
    for name, digest in wanted.items():
        content = contents.get(name)
        if content is None:
            raise SuiteError(f"{name} did not arrive", _REMEDY)
        if hashlib.sha256(content).hexdigest() != digest:
            raise SuiteError(f"{name} was damaged in transit", _REMEDY)
        _check_place(records, name)
    # no record stands while its files are replaced, so that a killed run leaves no false one
    for record in records:
        path = layout.record(record.task, record.fold)
        path.unlink(missing_ok=True)
    for name in wanted:
        write_content = partial(Path.write_bytes, data=contents[name])
        write_file(layout.at(name), write_content)
    for record in records:
        path = layout.record(record.task, record.fold)
        write_text(path, record.json())
    return records


def _digests(records: Sequence[FoldRecord]) -> dict[str, str]:
    """Return the sha256 of every file of these folds, by relative path."""
    digests: dict[str, str] = {}
    for record in records:
        digests |= record.files
    return digests


def _check_place(records: Sequence[FoldRecord], name: str) -> None:
    """Raise where a worker names a file that none of its folds would have."""
    for record in records:
        for top in ("data", "hardsynth"):
            # the task's own folder, or that of one of its parts: <task>_<suffix>
            folder = f"{top}/{record.task}"
            is_below = name.startswith((f"{folder}/", f"{folder}_"))
            if is_below and ".." not in name.split("/"):
                return
    raise SuiteError(
        f"{name} does not belong to the folds that arrived",
        "check the workers of the cluster",
    )
