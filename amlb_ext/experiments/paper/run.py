"""All splits of an experiment: one job per data set and split, each result a file of its own.

A finished split is never computed again unless a setting, the data or the version changed, so the
same command continues a run that was stopped; the first splits are the same however many are asked.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from amlb_ext.core.config import SplitConfig
from amlb_ext.core.files import write_file
from amlb_ext.core.task import Task
from amlb_ext.experiments.engine import Repetition, hash_key, run_repetitions
from amlb_ext.experiments.paper.chain import SettingOutcome, outcome_json, run_split
from amlb_ext.experiments.paper.settings import Experiment, Setting
from amlb_ext.hardening.split import split_task

#: Folder of the results.
SPLITS = "splits"
#: Seed of the splits.
SEED = 1


@dataclass(frozen=True, kw_only=True)
class SplitResult:
    """One split of one data set.

    Attributes
    ----------
    data : str
    split : int
    rows : dict
        Setting → ``counts`` and ``scores`` of a
        :class:`~amlb_ext.experiments.paper.chain.SettingOutcome`.
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
    *,
    splits: int,
    out: Path,
    workers: int = 0,
    quiet: bool = True,
) -> list[SplitResult]:
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
    list of SplitResult
        By data set and split.

    Raises
    ------
    ModelError
        F or G cannot be fitted.
    """
    # a figure needs the points themselves, which stand beside the scores
    is_drawn = bool(experiment.figure)
    repetitions = []
    for data, (task, settings) in tasks.items():
        split = split_task(task, SplitConfig(folds=splits), SEED)
        for number in range(splits):
            path = out / SPLITS / f"{data}_{number:02d}.json"
            key = split_key(
                settings, task.content_hash, number=number, is_drawn=is_drawn
            )
            # one fold alone, so that a process is not sent all of them
            fold = split.with_folds((split.folds[number],))
            arrays = path.with_suffix(".npz") if is_drawn else None
            repetition = Repetition(
                path=path,
                key=key,
                compute=compute_split,
                arguments=(fold, number, settings, arrays),
            )
            repetitions.append(repetition)
    results = run_repetitions(
        repetitions,
        name=experiment.name,
        unit="split",
        workers=workers,
        quiet=quiet,
    )
    return [
        _read_split(result, repetition.path)
        for result, repetition in zip(results, repetitions, strict=True)
    ]


def split_key(
    settings: Sequence[Setting], content: str, *, number: int, is_drawn: bool
) -> str:
    """Return the hash of everything a split's result depends on."""
    return hash_key(
        [setting.to_json() for setting in settings], content, number, SEED, is_drawn
    )


def compute_split(
    task: Task, number: int, settings: list[Setting], arrays: Path | None
) -> dict[str, Any]:
    """Return the scores of one split, and write its points where the experiment is a figure.

    Parameters
    ----------
    task : Task
        With one fold, the split.
    number : int
        Of the split.
    settings : list of Setting
    arrays : Path, optional
        File for the points of every part.
    """
    began = time.process_time()
    # the task holds its one fold as the first; the streams are keyed by the split's number
    outcomes = run_split(task, 0, settings, number)
    if arrays is not None:
        write_file(arrays, lambda part: _save_points(part, outcomes))
    return {
        "data": task.name,
        "split": number,
        "candidate": settings[0].candidate.model,
        "seconds": time.process_time() - began,
        "rows": {name: outcome_json(outcome) for name, outcome in outcomes.items()},
    }


def _save_points(path: Path, outcomes: dict[str, SettingOutcome]) -> None:
    arrays = {}
    for row, outcome in outcomes.items():
        for part, points in outcome.parts.items():
            for name, values in vars(points).items():
                arrays[f"{row}/{part}/{name}"] = values
    # an open file, since numpy would add its own ending to the temporary name
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _read_split(result: dict[str, Any], path: Path) -> SplitResult:
    return SplitResult(
        data=result["data"],
        split=result["split"],
        rows=result["rows"],
        seconds=result["seconds"],
        candidate=result["candidate"],
        arrays=path.with_suffix(".npz"),
    )
