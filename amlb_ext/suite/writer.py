"""Write a fold of a task: its CSV files, where each row comes from, and last its record.

A fold counts as finished when its record stands and every file in it has the sha256 that the
record names, so that a run killed at any moment loses at most the folds in flight. A fold that
was written on another machine is packed there, checked and written here.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from amlb_ext.amlb.coding import Coding, write_csv
from amlb_ext.core.errors import SuiteError, is_utf8
from amlb_ext.core.files import (
    move_file,
    remove_file,
    remove_temporary_files,
    write_file,
    write_text,
)
from amlb_ext.core.notes import Note
from amlb_ext.core.parquet import write_parquet
from amlb_ext.core.paths import check_no_links
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
                f"there are {len(self.features)} rows of features, {len(self.target)} of the "
                f"target and {len(self.provenance)} of provenance",
                "pass one target and one row of provenance for each row",
            )

    def __len__(self) -> int:
        return len(self.features)

    def take(self, rows: np.ndarray) -> Rows:
        """Return some of the rows, by mask or by position, which may come more than once."""
        return Rows(
            features=self.features.iloc[rows].reset_index(drop=True),
            target=self.target.iloc[rows].reset_index(drop=True),
            provenance=self.provenance.iloc[rows].reset_index(drop=True),
        )


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
        The request, as ``hardsynth/request.json`` keeps it.

    Raises
    ------
    SuiteError
        The directory holds files but no suite, or cannot be written.
    """
    check_suite_root(layout)
    write_text(layout.request, json_text(request))
    # without a manifest the suite is unfinished, whatever else stands
    if layout.manifest.exists():
        move_file(layout.manifest, layout.previous)
    remove_temporary_files(layout.root)


def check_suite_root(layout: Layout) -> None:
    """Raise where the directory cannot become, or continue to be, a suite.

    Raises
    ------
    SuiteError
        It is a file, has a name that AMLB cannot read, or holds files but no suite.
    """
    root = layout.root
    check_no_links(root)
    if not is_utf8(str(root)):
        raise SuiteError(
            f"the name of the folder {root} is not UTF-8", "choose another with -o"
        )
    if root.exists() and not root.is_dir():
        raise SuiteError(f"{root} is a file", "choose a folder with -o")
    # the request shows that the files are ours, so that they may be continued or replaced
    if root.is_dir() and not layout.request.is_file() and not is_fresh(root):
        raise SuiteError(
            f"{root} is not empty and holds no suite of ours",
            "choose another folder with -o",
        )


def write_fold(
    layout: Layout,
    task_name: str,
    coding: Coding,
    *,
    fold: int,
    train: Rows,
    parts: Mapping[str, Part],
    key: str,
    summary: Mapping[str, Any],
    notes: Sequence[Note] = (),
) -> FoldRecord:
    """Write one fold of a task and its record.

    Test rows whose label no training row of their part has are dropped and counted; a part
    that AMLB could not use at all (no test rows, training rows of a single class) is left
    out, which the record notes. Cells that AMLB could not read beside the training
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
    notes : sequence of Note
        What happened while the rows were made.

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
    # first the record goes: without it the fold is unfinished, whatever stands of its files
    remove_file(layout.record(task_name, fold))
    files: dict[str, str] = {}
    left_out: list[Note] = []
    records: dict[str, PartRecord] = {}
    # parts that share these very training rows share their file
    train_files: dict[int, str] = {}
    for suffix in SUFFIXES:
        if suffix not in parts:
            continue
        name = amlb_name(task_name, suffix)
        part = parts[suffix]
        part_train = train if part.train is None else part.train
        fitted = _fit_part(part_train, part.test, coding, name=name)
        if isinstance(fitted, Note):
            left_out.append(fitted)
            continue
        if id(part_train) not in train_files:
            owner = task_name if part_train is train else name
            train_path = layout.train(owner, fold)
            # no cell of a training row is replaced
            origins = part_train.provenance.drop(columns="substituted", errors="ignore")
            files |= _write_rows(
                layout,
                replace(part_train, provenance=origins),
                coding,
                table=train_path,
                provenance=layout.train_provenance(owner, fold),
            )
            train_files[id(part_train)] = layout.relative(train_path)
        test_path = layout.test(name, fold)
        provenance_path = layout.provenance(name, fold)
        files |= _write_rows(
            layout,
            fitted,
            coding,
            table=test_path,
            provenance=provenance_path,
        )
        present = set(fitted.target)
        replaced = ",".join(filter(None, fitted.provenance["substituted"]))
        records[suffix] = PartRecord(
            train=train_files[id(part_train)],
            test=layout.relative(test_path),
            provenance=layout.relative(provenance_path),
            train_rows=len(part_train),
            test_rows=len(fitted),
            labels=tuple(label for label in coding.labels if label in present),
            # by column of the file, in text order
            substituted=dict(
                sorted(Counter(filter(None, replaced.split(","))).items())
            ),
            dropped=len(part.test) - len(fitted),
        )
    # last the record comes, when all its files stand
    record = FoldRecord(
        task=task_name,
        fold=fold,
        key=key,
        parts=records,
        files=files,
        notes=(*left_out, *notes),
        summary=dict(summary),
    )
    text = record.json()
    write_text(layout.record(task_name, fold), text)
    # as a later run will read it: numbers that are none are null by then
    return FoldRecord.from_json(json.loads(text))


def read_finished_fold(
    layout: Layout, task_name: str, fold: int, *, key: str
) -> FoldRecord | None:
    """Return the record of a fold that need not be computed again, else None.

    Parameters
    ----------
    layout : Layout
    task_name : str
    fold : int
    key : str
        The record's key must be this one.
    """
    # a record that is missing or damaged means that the fold is computed again
    record = FoldRecord.read(layout.record(task_name, fold))
    if record is None:
        return None
    is_asked_for = (record.task, record.fold, record.key) == (task_name, fold, key)
    return record if is_asked_for and record.is_whole(layout) else None


def _fit_part(train: Rows, test: Rows, coding: Coding, *, name: str) -> Rows | Note:
    """Drop and change what AMLB could not read beside these training rows.

    Where it cannot use the part at all, a note says why.
    """
    if coding.kind.is_classification:
        classes = int(train.target.nunique())
        if classes < 2:
            return Note(
                kind="few training classes", part=name, counts={"classes": classes}
            )
        test = test.take(test.target.isin(set(train.target.dropna())).to_numpy())
    elif len(train) < 2:
        return Note(kind="few training rows", part=name, counts={"rows": len(train)})
    if len(test) == 0:
        return Note(kind="no test rows", part=name)
    columns = [column.as_column() for column in coding.columns]
    fitted = fit_to_train(train.features, test.features, columns)
    # per row the columns of the file, some of which the caller may have replaced before
    by_row: list[set[str]] = [set() for _ in range(len(test))]
    if "substituted" in test.provenance:
        for replaced, joined_names in zip(
            by_row, test.provenance["substituted"], strict=True
        ):
            replaced.update(filter(None, joined_names.split(",")))
    written = {column.name: column.written for column in coding.columns}
    for row, column_name in fitted.cells:
        by_row[row].add(written[column_name])
    order = list(written.values())
    joined = [",".join(sorted(names, key=order.index)) for names in by_row]
    # the column moves to the end, wherever the caller had it: one order of columns in all files
    provenance = test.provenance.reset_index(drop=True)
    provenance = provenance.drop(columns="substituted", errors="ignore")
    return Rows(fitted.features, test.target, provenance.assign(substituted=joined))


def _write_rows(
    layout: Layout,
    rows: Rows,
    coding: Coding,
    *,
    table: Path,
    provenance: Path,
) -> dict[str, str]:
    """Write rows as CSV, and where they come from; return the sha256 of both by relative path."""
    remove_derived(table)
    encoded = coding.encode(rows.features, rows.target)
    origins = rows.provenance.reset_index(drop=True)
    # pandas writes its own version into the schema, and other bytes with every release
    plain = pa.Table.from_pandas(origins, preserve_index=False).replace_schema_metadata(
        None
    )
    return {
        layout.relative(table): write_csv(encoded, table),
        layout.relative(provenance): write_parquet(
            plain, provenance, compression="zstd", store_schema=False
        ),
    }


def remove_derived(table: Path) -> None:
    """Remove what AMLB made of an older table, which it would use again."""
    for ending in (".parquet", ".arff"):
        remove_file(table.with_suffix(ending))


def pack_folds(layout: Layout, records: Sequence[FoldRecord]) -> dict[str, bytes]:
    """Return the files of finished folds, by path relative to the suite's root."""
    contents = {}
    for record in records:
        for name in record.files:
            contents[name] = layout.at(name).read_bytes()
    return contents


def check_in_folds(
    layout: Layout, records: Sequence[FoldRecord], contents: Mapping[str, bytes]
) -> None:
    """Write folds that another machine made, their records last: a record marks a finished fold.

    Parameters
    ----------
    layout : Layout
        Where they are written.
    records : sequence of FoldRecord
    contents : mapping of str to bytes
        As :func:`pack_folds` returns them.

    Raises
    ------
    SuiteError
        A file is missing, was damaged in transit, or belongs to none of the folds: nothing is
        written then. Or the disk cannot be written.
    """
    wanted: dict[str, str] = {}
    # a task's own folder, or that of one of its parts: <task>_<suffix>
    own: list[str] = []
    for record in records:
        wanted |= record.files
        for top in ("data", "hardsynth"):
            own += [f"{top}/{record.task}/", f"{top}/{record.task}_"]
    for name, digest in wanted.items():
        if hashlib.sha256(contents.get(name, b"")).hexdigest() != digest:
            raise SuiteError(
                f"{name} did not arrive, or was damaged in transit",
                "run the same command again; the fold is made again",
            )
        if ".." in name.split("/") or not name.startswith(tuple(own)):
            raise SuiteError(
                f"{name} does not belong to the folds that arrived",
                "check the workers of the cluster",
            )
    # no record stands while its files are replaced, so that a killed run leaves no false one
    for record in records:
        remove_file(layout.record(record.task, record.fold))
    for name in wanted:
        write_file(layout.at(name), partial(Path.write_bytes, data=contents[name]))
    for record in records:
        write_text(layout.record(record.task, record.fold), record.json())
