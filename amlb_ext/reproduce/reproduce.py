"""From names to results: load what can be had, run the splits, write tables, figures and page."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.core.atomic import write_file, write_text
from amlb_ext.core.errors import ConfigError, SourceError, SuiteError, nearest
from amlb_ext.core.task import Task
from amlb_ext.reproduce import certificates, figures, page
from amlb_ext.reproduce.cells import cells, markdown, shares, verdict
from amlb_ext.reproduce.data import DATA
from amlb_ext.reproduce.readings import Readings
from amlb_ext.reproduce.run import Done, run_experiment
from amlb_ext.reproduce.settings import EXPERIMENTS, Experiment, Setting, settings_of, split_changes
from amlb_ext.suite.records import json_text


@dataclass
class Result:
    """What came of one experiment.

    Attributes
    ----------
    name : str
    cells, shares : DataFrame
        Empty for figures; see :mod:`amlb_ext.reproduce.cells`.
    figures : list of Path
    certificates : list of dict
    left_out : dict of str to str
        Data set → why it could not be had.
    splits : int
    candidate : str
        What stood for G.
    seconds, wall : float
        Processor seconds of all splits (of earlier runs too), and the clock of this run.
    """

    name: str
    cells: pd.DataFrame
    shares: pd.DataFrame
    figures: list[Path] = field(default_factory=list)
    certificates: list[dict[str, Any]] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    splits: int = 0
    candidate: str = ""
    seconds: float = 0.0
    wall: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "name": self.name,
            "cells": self.cells.to_dict(orient="records"),
            "shares": self.shares.to_dict(orient="records"),
            "verdict": verdict(self.cells),
            "figures": [path.name for path in self.figures],
            "certificates": self.certificates,
            "left_out": self.left_out,
            "splits": self.splits,
            "candidate": self.candidate,
            "seconds": self.seconds,
            "wall": self.wall,
        }


def reproduce(
    names: Sequence[str],
    out: Path,
    *,
    splits: int | None = None,
    data: Path | None = None,
    changes: Mapping[str, Any] | None = None,
    certify: bool = True,
    workers: int = 0,
    quiet: bool = True,
) -> list[Result]:
    """Reproduce tables and figures, and write one page of all that stand in a folder.

    Parameters
    ----------
    names : sequence of str
        Of :data:`~amlb_ext.reproduce.settings.EXPERIMENTS`, or ``all``.
    out : Path
        Each experiment has a folder of its own in it.
    splits : int, optional
        In place of the paper's 31.
    data : Path, optional
        Folder of ``housing.csv`` and the diabetes file.
    changes : mapping, optional
        Other settings or readings, see :func:`~amlb_ext.reproduce.settings.settings_of`.
    certify : bool
        Also make a suite of each row with the pipeline and state its certificate.
    workers : int
    quiet : bool

    Raises
    ------
    ConfigError
        An unknown name or setting, or no split asked for.
    SourceError
        None of the data can be had.
    """
    chosen = [experiment for name in names for experiment in _named(name)]
    if splits is not None and splits < 1:
        raise ConfigError(f"{splits} splits were asked for", "give --splits 1 or more")
    for experiment in chosen:
        for name in experiment.rows:
            settings_of(experiment, name, changes)  # raises before any work
    if out.exists() and not out.is_dir():
        raise SuiteError(f"{out} is a file", "choose a folder with -o")
    loaded, lacking = _load(chosen, data, Readings(**split_changes(changes or {})[1]))
    results = []
    for experiment in chosen:
        tasks = {
            name: (loaded[name], settings_of(experiment, name, changes))
            for name in experiment.rows
            if name in loaded
        }
        left_out = {name: lacking[name] for name in experiment.rows if name in lacking}
        if tasks:
            result = _one(experiment, tasks, splits, out, certify, workers, quiet)
            result.left_out = left_out
        else:
            result = Result(experiment.name, pd.DataFrame(), pd.DataFrame(), left_out=left_out)
        write_text(out / experiment.name / page.RESULT, json_text(result.to_json()))
        results.append(result)
    page.write_page(out)
    return results


def _named(name: str) -> list[Experiment]:
    if name == "all":
        return list(EXPERIMENTS.values())
    if name not in EXPERIMENTS:
        raise ConfigError(f"nothing is called {name!r}", nearest(name, [*EXPERIMENTS, "all"]))
    return [EXPERIMENTS[name]]


def _load(
    chosen: Sequence[Experiment], folder: Path | None, read: Readings
) -> tuple[dict[str, Task], dict[str, str]]:
    """Load every data set once; return tasks, and why the others cannot be had."""
    tasks: dict[str, Task] = {}
    lacking: dict[str, str] = {}
    for name in dict.fromkeys(name for experiment in chosen for name in experiment.rows):
        try:
            tasks[name] = DATA[name].load(folder, read).renamed(name)
        except SourceError as error:
            lacking[name] = str(error)
    if not tasks:
        raise SourceError(f"no data: {next(iter(lacking.values()))}", "give --data DIR")
    return tasks, lacking


def _one(
    experiment: Experiment,
    tasks: dict[str, tuple[Task, list[Setting]]],
    splits: int | None,
    out: Path,
    certify: bool,
    workers: int,
    quiet: bool,
) -> Result:
    folder = out / experiment.name
    count = experiment.splits if splits is None or experiment.figure else splits
    began = time.monotonic()
    done = run_experiment(experiment, tasks, count, folder, workers, quiet)
    result = _summary(experiment, done, count)
    if experiment.figure:
        result.figures = figures.draw(experiment, done, folder)
    else:
        for name, table in (("cells", result.cells), ("shares", result.shares)):
            write_file(folder / f"{name}.csv", lambda part, t=table: t.to_csv(part, index=False))  # type: ignore[misc]
        write_text(folder / "cells.md", markdown(experiment, result.cells))
        if certify:
            result.certificates = certificates.certified(experiment, tasks, folder, workers, quiet)
    result.wall = time.monotonic() - began
    return result


def _summary(experiment: Experiment, done: list[Done], count: int) -> Result:
    found = {d.data for d in done}
    kept = Experiment(
        experiment.name,
        experiment.title,
        {name: rows for name, rows in experiment.rows.items() if name in found},
        figure=experiment.figure,
    )
    empty = pd.DataFrame()
    return Result(
        experiment.name,
        empty if experiment.figure else cells(kept, done),
        empty if experiment.figure else shares(kept, done),
        splits=count,
        candidate=done[0].candidate,
        seconds=sum(d.seconds for d in done),
    )
