"""From names to results: load what can be had, run the splits, write tables, figures and page."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.core.errors import ConfigError, SourceError, SuiteError, suggest_nearest
from amlb_ext.core.files import write_file, write_text
from amlb_ext.core.task import Task
from amlb_ext.experiments import osyn, page
from amlb_ext.experiments.osyn import cells as osyn_cells
from amlb_ext.experiments.osyn import page_blocks
from amlb_ext.experiments.osyn import run as osyn_run
from amlb_ext.experiments.paper import certificates, figures
from amlb_ext.experiments.paper.cells import (
    cells_markdown,
    compare_cells,
    compare_shares,
    count_verdicts,
)
from amlb_ext.experiments.paper.data import DATA
from amlb_ext.experiments.paper.readings import Readings
from amlb_ext.experiments.paper.run import SplitResult, run_experiment
from amlb_ext.experiments.paper.settings import (
    EXPERIMENTS,
    Experiment,
    Setting,
    settings_of,
    split_changes,
)
from amlb_ext.suite.sealed_json import json_text


@dataclass
class Result:
    """What came of one experiment.

    Attributes
    ----------
    name : str
    cells, shares : DataFrame
        Empty for figures; see :mod:`amlb_ext.experiments.paper.cells`.
    figures : list of Path
    certificates : list of dict
    left_out : dict of str to str
        Data set → why it could not be had.
    splits : int
    candidate : str
        What stood for G.
    seconds, wall : float
        Processor seconds of all splits (of earlier runs too), and the clock of this run.
    markdown : str
        The cells as written; empty for figures.
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
    markdown: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "name": self.name,
            "cells": self.cells.to_dict(orient="records"),
            "shares": self.shares.to_dict(orient="records"),
            "verdict": count_verdicts(self.cells),
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
        Of :data:`~amlb_ext.experiments.paper.settings.EXPERIMENTS`, or ``all``; of
        :data:`~amlb_ext.experiments.osyn.TABLES`, or ``osyn`` (the seed paper's).
    out : Path
        Each experiment has a folder of its own in it.
    splits : int, optional
        In place of the paper's 31; repetitions of the seed paper's tables.
    data : Path, optional
        Folder of the data sets.
    changes : mapping, optional
        Other settings or readings, see :func:`~amlb_ext.experiments.paper.settings.settings_of`, or
        :class:`~amlb_ext.experiments.osyn.choices.Choice` for the seed paper's tables.
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
    seeds = [table for name in names for table in _seed_tables(name)]
    chosen = [experiment for name in names for experiment in _named(name)]
    if splits is not None and splits < 1:
        raise ConfigError(f"{splits} splits were asked for", "give --splits 1 or more")
    for experiment in chosen:
        for name in experiment.rows:
            settings_of(experiment, name, changes)  # raises before any work
    choice = osyn_run.check_choice([table.name for table in seeds], changes) if seeds else None
    if out.exists() and not out.is_dir():
        raise SuiteError(f"{out} is a file", "choose a folder with -o")
    results = []
    for table in seeds:
        results.append(
            _seed_table(table, choice or osyn.Choice(), splits, out, data, workers, quiet)
        )
    if seeds and not chosen and not any(len(result.cells) for result in results):
        raise SourceError(f"no data: {next(iter(results[0].left_out.values()))}", "give --data DIR")
    if seeds:
        page.write_page(out)
    if not chosen:
        return results
    loaded, lacking = _load(chosen, data, Readings(**split_changes(changes or {})[1]))
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


def _seed_tables(name: str) -> list[osyn.OsynTable]:
    """Return the seed paper's tables of that name."""
    if name == "osyn":
        return list(osyn.TABLES.values())
    return [osyn.TABLES[name]] if name in osyn.TABLES else []


def _seed_table(
    table: osyn.OsynTable,
    choice: osyn.Choice,
    repetitions: int | None,
    out: Path,
    data: Path | None,
    workers: int,
    quiet: bool,
) -> Result:
    folder, began = out / table.name, time.monotonic()
    done, left_out = osyn.reproduce_osyn(
        table,
        folder,
        choice,
        repetitions=repetitions,
        data=data,
        workers=workers,
        quiet=quiet,
    )
    found = osyn_cells.compare_cells(table, done, choice.size)
    result = Result(
        table.name,
        found,
        pd.DataFrame(),
        left_out=left_out,
        splits=repetitions or table.repetitions,
        seconds=sum(one.seconds for one in done),
        wall=time.monotonic() - began,
        markdown=page_blocks.table_markdown(table, found),
    )
    if not done:
        return result
    write_file(folder / "cells.csv", lambda part: found.to_csv(part, index=False))
    write_text(folder / "cells.md", result.markdown)
    write_text(folder / page.RESULT, json_text(result.to_json()))
    return result


def _named(name: str) -> list[Experiment]:
    if _seed_tables(name):
        return []
    if name == "all":
        return list(EXPERIMENTS.values())
    if name not in EXPERIMENTS:
        raise ConfigError(
            f"nothing is called {name!r}",
            suggest_nearest(name, [*EXPERIMENTS, *osyn.TABLES, "all", "osyn"]),
        )
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
        result.figures = figures.draw_figures(experiment, done, folder)
    else:
        for name, table in (("cells", result.cells), ("shares", result.shares)):
            write_file(folder / f"{name}.csv", lambda part, t=table: t.to_csv(part, index=False))  # type: ignore[misc]
        result.markdown = cells_markdown(experiment, result.cells)
        write_text(folder / "cells.md", result.markdown)
        if certify:
            result.certificates = certificates.certify_rows(
                experiment, tasks, folder, workers, quiet
            )
    result.wall = time.monotonic() - began
    return result


def _summary(experiment: Experiment, done: list[SplitResult], count: int) -> Result:
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
        empty if experiment.figure else compare_cells(kept, done),
        empty if experiment.figure else compare_shares(kept, done),
        splits=count,
        candidate=done[0].candidate,
        seconds=sum(d.seconds for d in done),
    )
