"""One run's folder: what its name, its logs and our own note tell of it."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amlb_ext.amlb.definition import Job

#: What a run of ours was asked for, in the run's folder.
ASKED = "asked.json"
_LARGEST_LOG = 64 * 2**20


@dataclass(frozen=True)
class Run:
    """One run of AMLB.

    Attributes
    ----------
    path : Path
    name, benchmark, constraint, stamp : str
        Of the framework, and so on; folders are named in lower case. Empty where unknown.
    asked : tuple of Job
        What it was asked for; empty where nobody kept it.
    log : str
        All that AMLB said.
    """

    path: Path
    name: str
    benchmark: str
    constraint: str
    stamp: str
    asked: tuple[Job, ...]
    log: str


def write_asked(
    run_dir: Path, framework: str, benchmark: str, constraint: str, jobs: Sequence[Job]
) -> None:
    """Keep beside a run what it was asked for, so that killing it hides nothing."""
    entry = {
        "framework": framework,
        "benchmark": benchmark,
        "constraint": constraint,
        "jobs": [[job.task, job.fold] for job in jobs],
    }
    (run_dir / ASKED).write_text(json.dumps(entry, indent=1), encoding="utf-8")


def read_run(path: Path) -> Run | None:
    """Return what a folder's name and files tell of a run; None when it is none."""
    words = path.name.split(".")
    asked = _read_asked(path / ASKED)
    named = len(words) >= 5 and re.fullmatch(r"\d{8}T\d{6}", words[-1]) is not None
    if not named and not asked and not (path / "scores").is_dir():
        return None
    name, benchmark, constraint = words[:3] if named else ("", "", "")
    return Run(
        path,
        str(asked.get("framework", name)),
        str(asked.get("benchmark", benchmark)),
        str(asked.get("constraint", constraint)),
        words[-1] if named else "",
        tuple(Job(str(task), int(fold)) for task, fold in asked.get("jobs", ())),
        "\n".join(_logs(path)),
    )


def _read_asked(path: Path) -> dict[str, Any]:
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        return entry if isinstance(entry, dict) else {}
    except (OSError, ValueError):
        return {}


def _logs(path: Path) -> Iterator[str]:
    """Yield what AMLB said, from our own log, from its logs, or from their archive."""
    files = [path / "run.log", *sorted((path / "logs").glob("*.log"))]
    for file in files:
        if file.is_file() and file.stat().st_size <= _LARGEST_LOG:
            yield file.read_text(encoding="utf-8", errors="replace")
    archive = path / "logs.zip"
    if not any(file.is_file() for file in files) and archive.is_file():
        try:
            with zipfile.ZipFile(archive) as opened:
                for member in opened.infolist():
                    if member.filename.endswith(".log") and member.file_size <= _LARGEST_LOG:
                        yield opened.read(member).decode("utf-8", "replace")
        except (OSError, zipfile.BadZipFile):
            return
