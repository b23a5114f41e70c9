"""Records of a finished fold and of a finished task."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amlb_ext.amlb.coding import Coding
from amlb_ext.core.files import sha256_file
from amlb_ext.core.notes import Note
from amlb_ext.core.task import Kind, Origin
from amlb_ext.suite.layout import Layout
from amlb_ext.suite.read_record import (
    Count,
    InnerPath,
    PlainName,
    record_from_json,
)
from amlb_ext.suite.sealed_json import json_text


@dataclass(frozen=True)
class PartRecord:
    """One AMLB task's files in one fold.

    Attributes
    ----------
    train, test, provenance : str
        Paths relative to the suite's root.
    train_rows, test_rows : int
    labels : tuple of str
        Labels present in the test file, in the task's order and spelling; empty for regression.
    substituted : dict of str to int
        Per column of the file, how many test cells were replaced, see
        :func:`amlb_ext.suite.unseen_values.fit_to_train`.
    dropped : int
        Test rows left out because the training rows lack their label.
    """

    train: InnerPath
    test: InnerPath
    provenance: InnerPath
    train_rows: Count
    test_rows: Count
    labels: tuple[str, ...] = ()
    substituted: dict[str, int] = field(default_factory=dict)
    dropped: int = 0


@dataclass(frozen=True)
class FoldRecord:
    """A finished fold of a task.

    Attributes
    ----------
    task : str
    fold : int
        The source's fold number.
    key : str
        Hash of everything the fold depends on.
    parts : dict of str to PartRecord
        By suffix; what AMLB could not use is left out.
    files : dict of str to str
        The sha256 of each file, by path relative to the suite's root.
    notes : tuple of Note
        What happened while it was made.
    summary : dict
        The caller's figures of the fold.
    """

    task: PlainName
    fold: Count
    key: str
    parts: dict[str, PartRecord]
    files: dict[InnerPath, str]
    notes: tuple[Note, ...] = ()
    summary: dict[str, Any] = field(default_factory=dict)

    def json(self) -> str:
        """Return the record as deterministic JSON."""
        return json_text(self)

    @classmethod
    def from_json(cls, entry: object) -> FoldRecord:
        """Read a record that :meth:`json` wrote.

        Raises
        ------
        ValueError
            The entry is not a record, or names a path outside the suite.
        """
        return record_from_json(cls, entry)

    @classmethod
    def read(cls, path: Path) -> FoldRecord | None:
        """Read a record's file; None where it is missing or damaged."""
        try:
            return cls.from_json(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def is_whole(self, layout: Layout) -> bool:
        """Whether every file of the fold stands there as it was written."""
        files = [(layout.at(name), digest) for name, digest in self.files.items()]
        return all(file.is_file() and sha256_file(file) == sha for file, sha in files)


@dataclass(frozen=True)
class SuiteTask:
    """A task of the suite with its finished folds.

    Attributes
    ----------
    name : str
        Safe name, see :func:`amlb_ext.suite.layout.safe_names`.
    kind : Kind
    target : str
        The target's name in the source.
    coding : Coding
    origin : Origin
    content_hash : str
    notes : tuple of str
    folds : tuple of FoldRecord
    source_name : str
        The task's name in the source.
    """

    name: str
    kind: Kind
    target: str
    coding: Coding
    origin: Origin
    content_hash: str
    notes: tuple[str, ...]
    folds: tuple[FoldRecord, ...]
    source_name: str = ""
