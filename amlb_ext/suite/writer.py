"""Writes a fold of a task: its CSV files, where each row comes from, and last its record.

A fold counts as finished when its record stands and every file in it has the sha256 that the
record names, so that a run killed at any moment loses at most the folds in flight.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from amlb_ext.core.errors import SuiteError, is_utf8
from amlb_ext.core.files import (
    move_file,
    remove_file,
    remove_temporary_files,
    sha256_file,
    write_file,
    write_text,
)
from amlb_ext.core.parquet import write_parquet
from amlb_ext.core.task import Column, Kind
from amlb_ext.suite.coding import Coding, write_csv
from amlb_ext.suite.fold_record import FoldRecord, PartRecord
from amlb_ext.suite.layout import SUFFIXES, Layout, amlb_name, is_fresh
from amlb_ext.suite.sealed_json import json_text
from amlb_ext.suite.unseen_values import fit_to_train


@dataclass(frozen=True)
class Rows:
    """Rows to write.

    Attributes
    ----------
    features : DataFrame of shape (n, d)
        In canonical form.
    target : Series of shape (n,)
        In canonical form.
    provenance : DataFrame of shape (n, p)
        Where each row comes from. ``substituted``, where it is there, names the columns (as they
        are written, with commas between) whose cells were replaced already.
    """

    features: pd.DataFrame
    target: pd.Series
    provenance: pd.DataFrame

    def __post_init__(self) -> None:
        sizes = {len(self.features), len(self.target), len(self.provenance)}
        if len(sizes) != 1:
            raise SuiteError(
                f"{len(self.features)} rows of features, {len(self.target)} of the target and "
                f"{len(self.provenance)} of provenance came",
                "hand in one row of each per row",
            )

    def __len__(self) -> int:
        return len(self.features)

    def take(self, keep: np.ndarray) -> Rows:
        """Return the rows where the mask ``keep`` of shape (n,) holds."""
        return Rows(self.features[keep], self.target[keep], self.provenance[keep])


@dataclass(frozen=True)
class Part:
    """One AMLB task in one fold.

    Attributes
    ----------
    test : Rows
    train : Rows, optional
        Its own training rows; None shares the task's.
    """

    test: Rows
    train: Rows | None = None


def begin_suite(layout: Layout, request: Mapping[str, Any]) -> None:
    """Mark the directory as a suite that is being generated.

    Half-written files of a killed run are removed, finished folds stay.

    Parameters
    ----------
    layout : Layout
    request : mapping
        What was asked for; kept in ``hardsynth/request.json``.

    Raises
    ------
    SuiteError
        The directory holds files but no suite, or cannot be written.
    """
    root = layout.root
    if not is_utf8(str(root)):
        raise SuiteError(f"the name of the folder {root} is not UTF-8", "choose another with -o")
    if root.exists() and not root.is_dir():
        raise SuiteError(f"{root} is a file, a directory is wanted", "choose another with -o")
    known = (layout.request, layout.manifest, layout.previous)
    if root.is_dir() and not is_fresh(root) and not any(path.exists() for path in known):
        raise SuiteError(
            f"{root} is not empty and no suite of hardsynth", "choose another directory with -o"
        )
    write_text(layout.request, json_text(request))
    if layout.manifest.exists():
        move_file(layout.manifest, layout.previous)
    remove_temporary_files(root)


def write_fold(
    layout: Layout,
    task_name: str,
    coding: Coding,
    fold: int,
    train: Rows,
    parts: Mapping[str, Part],
    key: str,
    summary: Mapping[str, Any],
) -> FoldRecord:
    """Write one fold of a task and its record.

    Test rows whose label no training row of their part has are dropped and counted; a part
    that AMLB could not use at all (no test rows, training rows of a single class) is left
    out. Both are said in the record's notes. Cells that AMLB could not read beside the training
    rows are replaced where the caller has not done so; see
    :func:`amlb_ext.suite.unseen_values.fit_to_train`.

    Parameters
    ----------
    layout : Layout
    task_name : str
        Safe name, see :func:`amlb_ext.suite.layout.safe_names`.
    coding : Coding
        The task's coding.
    fold : int
        The source's fold number.
    train : Rows
        Training rows of every part that has none of its own.
    parts : mapping of str to Part
        By suffix, see :data:`amlb_ext.suite.layout.SUFFIXES`.
    key : str
        Hash of everything the fold depends on; see :func:`read_finished_fold`.
    summary : mapping
        Figures to keep in the record.

    Returns
    -------
    FoldRecord

    Raises
    ------
    SuiteError
        An unknown suffix, rows that do not fit the coding, or a disk that cannot be written.
    """
    unknown = sorted(set(parts) - set(SUFFIXES))
    if unknown:
        raise SuiteError(f"unknown suffix {unknown[0]!r}", f"use one of {SUFFIXES}")
    remove_file(layout.record(task_name, fold))
    files: dict[str, str] = {}
    notes: list[str] = []
    records: dict[str, PartRecord] = {}
    homes: list[tuple[Rows, str]] = []
    for suffix in SUFFIXES:
        if suffix not in parts:
            continue
        name = amlb_name(task_name, suffix)
        part = parts[suffix]
        own = train if part.train is None else part.train
        fitted = _fit(own, part.test, coding, f"{name}, fold {fold}", notes)
        if fitted is None:
            continue
        test, substituted = fitted
        home = next((home for rows, home in homes if rows is own), "")
        if not home:
            train_name = task_name if own is train else name
            home = _write_rows(layout, train_name, fold, own, coding, files, "train")
            homes.append((own, home))
        records[suffix] = PartRecord(
            train=home,
            test=_write_rows(layout, name, fold, test, coding, files, "test"),
            provenance=layout.relative(layout.provenance(name, fold)),
            train_rows=len(own),
            test_rows=len(test),
            labels=_present(test, coding),
            substituted=substituted,
            dropped=len(part.test) - len(test),
        )
    record = FoldRecord(task_name, fold, key, records, files, tuple(notes), dict(summary))
    text = json_text(record.to_json())
    write_text(layout.record(task_name, fold), text)
    return FoldRecord.from_json(json.loads(text))


def read_finished_fold(layout: Layout, task_name: str, fold: int, key: str) -> FoldRecord | None:
    """Return the record of a fold that need not be computed again, else None.

    Parameters
    ----------
    layout : Layout
    task_name : str
    fold : int
    key : str
        The record's key must be this one.
    """
    path = layout.record(task_name, fold)
    try:
        record = FoldRecord.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if (record.task, record.fold, record.key) != (task_name, fold, key):
        return None
    for relative, digest in record.files.items():
        file = layout.at(relative)
        if not file.is_file() or sha256_file(file) != digest:
            return None
    return record


def _fit(
    train: Rows, test: Rows, coding: Coding, where: str, notes: list[str]
) -> tuple[Rows, dict[str, int]] | None:
    """Test rows that AMLB can read beside these training rows, or None with a note."""
    reason = _unfit(train, coding)
    if not reason and coding.kind.is_classification:
        keep = test.target.isin(set(train.target.dropna())).to_numpy()
        if not keep.all():
            notes.append(f"{where}: {int((~keep).sum())} test rows of classes not in train dropped")
            test = test.take(keep)
    if not reason and len(test) == 0:
        reason = "no test rows"
    if reason:
        notes.append(f"{where}: left out, {reason}")
        return None
    fitted = fit_to_train(train.features, test.features, _columns(coding))
    written = {column.name: column.written for column in coding.columns}
    by_row: list[set[str]] = [set() for _ in range(len(test))]
    for row, names in enumerate(test.provenance.get("substituted", pd.Series(dtype=object))):
        by_row[row] |= set(filter(None, names.split(",")))
    for row, column in fitted.cells:
        by_row[row].add(written[column])
    order = [column.written for column in coding.columns]
    said = [",".join(name for name in order if name in names) if names else "" for names in by_row]
    provenance = test.provenance.reset_index(drop=True)
    provenance = provenance.drop(columns="substituted", errors="ignore").assign(substituted=said)
    counts = Counter(name for names in by_row for name in names)
    return Rows(fitted.features, test.target, provenance), dict(sorted(counts.items()))


def _unfit(train: Rows, coding: Coding) -> str:
    if coding.kind.is_classification:
        classes = train.target.nunique()
        return "" if classes >= 2 else f"training rows of {classes} class"
    return "" if len(train) >= 2 else f"{len(train)} training rows"


def _columns(coding: Coding) -> list[Column]:
    """The columns as :func:`fit_to_train` wants them; only the written form matters there."""
    return [
        Column(
            column.name,
            {"float": "numeric", "integer": "integer", "boolean": "boolean"}.get(  # type: ignore[arg-type]
                column.form, "categorical"
            ),
            column.categories,
        )
        for column in coding.columns
    ]


def _present(rows: Rows, coding: Coding) -> tuple[str, ...]:
    if coding.kind is Kind.REGRESSION:
        return ()
    present = set(rows.target)
    return tuple(label for label in coding.labels if label in present)


def _write_rows(
    layout: Layout,
    name: str,
    fold: int,
    rows: Rows,
    coding: Coding,
    files: dict[str, str],
    side: str,
) -> str:
    """Write CSV and provenance; return the CSV's relative path."""
    if side == "train":
        path, home = layout.train(name, fold), layout.train_provenance(name, fold)
    else:
        path, home = layout.test(name, fold), layout.provenance(name, fold)
    for derived in (".parquet", ".arff"):  # AMLB would reuse what it made of an older file
        remove_file(path.with_suffix(derived))
    relative = layout.relative(path)
    files[relative] = write_csv(coding.encode(rows.features, rows.target), path)
    provenance = rows.provenance
    if side == "train":  # in training rows no cell is replaced
        provenance = provenance.drop(columns="substituted", errors="ignore")
    files[layout.relative(home)] = _write_parquet(provenance, home)
    return relative


def _write_parquet(frame: pd.DataFrame, path: Path) -> str:
    table = pa.Table.from_pandas(frame.reset_index(drop=True), preserve_index=False)
    plain = table.replace_schema_metadata(None)  # pandas names its own version there
    return write_parquet(plain, path, compression="zstd", store_schema=False)


# Folds that were written elsewhere: packed there, and checked in here against their sha256.


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
    names = {name for record in records for name in record.files}
    return {name: layout.at(name).read_bytes() for name in sorted(names)}


def check_in_folds(
    layout: Layout, records: Sequence[FoldRecord], contents: Mapping[str, bytes]
) -> Sequence[FoldRecord]:
    """Write folds that came from elsewhere; their records last, so that they count as finished.

    Parameters
    ----------
    layout : Layout
        Where they shall stand.
    records : sequence of FoldRecord
    contents : mapping of str to bytes
        What :func:`pack_folds` gave.

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
