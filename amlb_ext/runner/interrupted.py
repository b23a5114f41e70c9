"""Runs that were stopped before their end: the same command finds them and goes on with them.

A run keeps beside its results what it was asked for (``asked.json``) and holds a lock on that file
while it, or AMLB as its child, lives. A run that came to its end says so in the file. One that does
not, and whose lock is free, was stopped: what it scored counts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.amlb.definition import Job
from amlb_ext.core.errors import RunError
from amlb_ext.core.locks import lock_open_file
from amlb_ext.runner.results import read_results
from amlb_ext.runner.run_folder import ASKED, job_of_row, read_asked

#: Entries of the record that differ between a run and the one that goes on with it.
_OWN = ("jobs", "ended")


@dataclass(frozen=True, kw_only=True)
class StoppedRuns:
    """Runs of one command that were stopped.

    Attributes
    ----------
    folders : tuple of Path
        The oldest first.
    rows : DataFrame
        The jobs that they scored, see :func:`amlb_ext.runner.results.read_results`.
    """

    folders: tuple[Path, ...]
    rows: pd.DataFrame

    @property
    def scored(self) -> set[Job]:
        """The jobs that need not be run again."""
        return {job_of_row(row) for row in self.rows.to_dict("records")}


def find_stopped_runs(out: Path, asked: Mapping[str, Any]) -> StoppedRuns:
    """Return the runs in a folder that were asked for the same and were stopped.

    Parameters
    ----------
    out : Path
        AMLB's output folder.
    asked : mapping
        The record of the run that begins.

    Raises
    ------
    RunError
        One of them is still running.
    """
    folders, rows = [], []
    for path in sorted(out.glob(f"*/{ASKED}")):
        record = read_asked(path)
        if record.get("ended", True) or _key(record) != _key(asked):
            continue
        with lock_open_file(path, _refuse(path)):
            folders.append(path.parent)
        try:
            found = read_results(path.parent)
        except RunError:
            continue
        rows.append(found[found["result"].notna()])
    table = pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()
    return StoppedRuns(folders=tuple(folders), rows=table)


def _key(record: Mapping[str, Any]) -> str:
    told = {name: value for name, value in record.items() if name not in _OWN}
    return json.dumps(told, sort_keys=True)


def _refuse(path: Path) -> Any:
    def refuse() -> None:
        raise RunError(
            f"the same run is going on in {path.parent}",
            "wait until it has ended, or stop it, or choose another folder for the results",
        )

    return refuse


def mark_ended(folders: Iterable[Path]) -> None:
    """Note that runs need not be gone on with: the same command then runs everything anew."""
    for folder in folders:
        record = {**read_asked(folder / ASKED), "ended": True}
        (folder / ASKED).write_text(json.dumps(record, indent=1), encoding="utf-8")


def digest_of(*files: Path) -> str:
    """Return a digest of those files that are there: results of another suite do not count."""
    digest = hashlib.sha256()
    for file in files:
        if file.is_file():
            digest.update(file.read_bytes())
    return digest.hexdigest()
