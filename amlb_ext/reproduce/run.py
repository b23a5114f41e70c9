"""All splits of an experiment: one job per data set and split, each result a file of its own.

A finished split is never computed again unless a setting, the data or the version changed, so the
same command continues a run that was stopped; the first splits are the same however many are asked.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from amlb_ext import __version__
from amlb_ext.core.atomic import sweep, write_file, write_text
from amlb_ext.core.config import SplitConfig
from amlb_ext.core.parallel import available_cores, run_jobs
from amlb_ext.core.task import Task
from amlb_ext.hardening.split import split_task
from amlb_ext.reproduce.chain import Outcome, run_split, to_json
from amlb_ext.reproduce.settings import Experiment, Setting
from amlb_ext.suite.records import json_text

SPLITS = "splits"
#: Seed of the splits.
SEED = 1


@dataclass(frozen=True)
class Done:
    """One split of one data set.

    Attributes
    ----------
    data : str
    split : int
    rows : dict
        Setting → ``counts`` and ``scores``; see :class:`~amlb_ext.reproduce.chain.Outcome`.
    seconds : float
        Processor seconds it took.
    candidate : str
        What stood for G.
    arrays : Path
        Points of every part, where the experiment is a figure.
    """

    data: str
    split: int
    rows: dict[str, Any]
    seconds: float
    candidate: str
    arrays: Path


def run_experiment(
    experiment: Experiment,
    tasks: dict[str, tuple[Task, list[Setting]]],
    splits: int,
    out: Path,
    workers: int = 0,
    quiet: bool = True,
) -> list[Done]:
    """Run or continue an experiment.

    Parameters
    ----------
    experiment : Experiment
    tasks : dict
        Data set → its task, without folds, and the settings of its rows.
    splits : int
    out : Path
        The experiment's folder.
    workers : int
        Processes; 0 for every core.
    quiet : bool

    Returns
    -------
    list of Done
        By data set and split.

    Raises
    ------
    ModelError
        F or G cannot be fitted.
    """
    folder = out / SPLITS
    if folder.exists():
        sweep(folder)
    jobs: list[tuple[Any, ...]] = []
    places: list[Path] = []
    for data, (task, settings) in tasks.items():
        split = split_task(task, SplitConfig(folds=splits), SEED)
        content = task.content_hash
        for number in range(splits):
            path = folder / f"{data}_{number:02d}.json"
            key = split_key(settings, content, number, bool(experiment.figure))
            places.append(path)
            if stored(path, key) is None:
                fold = split.with_folds((split.folds[number],))
                jobs.append((fold, number, settings, path, key, bool(experiment.figure)))
    workers = min(workers or available_cores(), max(1, len(jobs)))
    with tqdm(total=len(jobs), desc=experiment.name, unit="split", disable=quiet) as bar:
        for _ in run_jobs(_job, jobs, workers):
            bar.update()
    return list(_read(places))


def split_key(settings: Sequence[Setting], content: str, number: int, drawn: bool) -> str:
    """Return the hash of everything a split's result depends on."""
    parts = [__version__, [s.to_json() for s in settings], content, number, SEED, drawn]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def stored(path: Path, key: str) -> dict[str, Any] | None:
    """Return a finished split, None when there is none of that key."""
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return entry if isinstance(entry, dict) and entry.get("key") == key else None


def _job(
    task: Task, number: int, settings: list[Setting], path: Path, key: str, drawn: bool
) -> None:
    began = time.process_time()
    outcomes = run_split(task, 0, settings, number)
    if drawn:
        write_file(path.with_suffix(".npz"), lambda part: _save(part, outcomes))
    entry = {
        "key": key,
        "data": task.name,
        "split": number,
        "candidate": settings[0].candidate.model,
        "seconds": time.process_time() - began,
        "rows": {name: to_json(outcome) for name, outcome in outcomes.items()},
    }
    write_text(path, json_text(entry))


def _save(path: Path, outcomes: dict[str, Outcome]) -> None:
    arrays = {
        f"{row}/{part}/{name}": values
        for row, outcome in outcomes.items()
        for part, points in outcome.parts.items()
        for name, values in vars(points).items()
    }
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _read(places: Sequence[Path]) -> Iterator[Done]:
    for path in places:
        entry = json.loads(path.read_text(encoding="utf-8"))
        yield Done(
            entry["data"],
            entry["split"],
            entry["rows"],
            entry["seconds"],
            entry["candidate"],
            path.with_suffix(".npz"),
        )
