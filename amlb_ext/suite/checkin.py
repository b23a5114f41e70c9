"""Folds that were written elsewhere: packed there, and checked in here against their sha256."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from amlb_ext.core.atomic import write_file, write_text
from amlb_ext.core.errors import SuiteError
from amlb_ext.suite.layout import Layout
from amlb_ext.suite.records import FoldRecord, json_text


def pack(layout: Layout, records: Sequence[FoldRecord]) -> dict[str, bytes]:
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
    names = {name for record in records for name in record.files}
    return {name: layout.at(name).read_bytes() for name in sorted(names)}


def check_in(
    layout: Layout, records: Sequence[FoldRecord], contents: Mapping[str, bytes]
) -> Sequence[FoldRecord]:
    """Write folds that came from elsewhere; their records last, so that they count as finished.

    Parameters
    ----------
    layout : Layout
        Where they shall stand.
    records : sequence of FoldRecord
    contents : mapping of str to bytes
        What :func:`pack` gave.

    Returns
    -------
    sequence of FoldRecord
        The records as they came.

    Raises
    ------
    SuiteError
        A file is missing, was damaged on its way, or is none of a fold; nothing was written. Or
        the disk cannot be written.
    """
    wanted = {name: digest for record in records for name, digest in record.files.items()}
    for name, digest in wanted.items():
        found = contents.get(name)
        if found is None or hashlib.sha256(found).hexdigest() != digest:
            what = "was not sent" if found is None else "was damaged on its way"
            raise SuiteError(f"{name} {what}", "run the same command again; the fold is made again")
        _check_place(layout, records, name)
    for record in records:
        layout.record(record.task, record.fold).unlink(missing_ok=True)
    for name in wanted:
        write_file(layout.at(name), partial(Path.write_bytes, data=contents[name]))
    for record in records:
        write_text(layout.record(record.task, record.fold), json_text(record.to_json()))
    return records


def _check_place(layout: Layout, records: Sequence[FoldRecord], name: str) -> None:
    tops = {f"{top}/{record.task}" for record in records for top in ("data", "hardsynth")}
    fits = any(name.startswith((f"{top}/", f"{top}_")) for top in tops)
    if not fits or ".." in name.split("/"):
        raise SuiteError(f"{name} is no file of these folds", "check the workers of the cluster")
