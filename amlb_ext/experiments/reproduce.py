"""From names to results: load what can be had, run the splits, write tables, figures and page."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.core.errors import ConfigError, SourceError, SuiteError, suggest_nearest
from amlb_ext.core.files import write_file, write_text
from amlb_ext.core.task import Task
from amlb_ext.experiments import osyn, page, swarms
from amlb_ext.experiments.agreement import count_verdicts
from amlb_ext.experiments.osyn import cells as osyn_cells
from amlb_ext.experiments.osyn import page_blocks
from amlb_ext.experiments.osyn import run as osyn_run
from amlb_ext.experiments.paper import certificates, figures
from amlb_ext.experiments.paper.cells import (
    cells_markdown,
    compare_cells,
    compare_shares,
)
from amlb_ext.experiments.paper.data import DATA
from amlb_ext.experiments.paper.readings import Readings
from amlb_ext.experiments.paper.run import run_experiment
from amlb_ext.experiments.paper.settings import (
    EXPERIMENTS,
    Experiment,
    Setting,
    settings_of,
    split_changes,
)
from amlb_ext.experiments.swarms import page_blocks as swarm_blocks
from amlb_ext.experiments.swarms import run as swarm_run
from amlb_ext.experiments.swarms.cells import compare_cells as compare_swarm_cells
from amlb_ext.experiments.swarms.pictures import draw_pictures
from amlb_ext.experiments.text_blocks import blocks_markdown
from amlb_ext.suite.sealed_json import json_text


@dataclass(kw_only=True)
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
    blocks, notes : list
        Of the swarm paper's tables: text as the page shows it.
    """

    name: str
    cells: pd.DataFrame = field(default_factory=pd.DataFrame)
    shares: pd.DataFrame = field(default_factory=pd.DataFrame)
    figures: list[Path] = field(default_factory=list)
    certificates: list[dict[str, Any]] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    splits: int = 0
    candidate: str = ""
    seconds: float = 0.0
    wall: float = 0.0
    markdown: str = ""
    blocks: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

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
            "blocks": self.blocks,
            "notes": self.notes,
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
        :data:`~amlb_ext.experiments.osyn.TABLES`, or ``osyn`` (the seed paper's); of
        :data:`~amlb_ext.experiments.swarms.TABLES`, or ``swarm`` (the swarm paper's).
    out : Path
        Each experiment has a folder of its own in it.
    splits : int, optional
        In place of the paper's 31; repetitions of the seed paper's tables, draws of the swarm
        paper's.
    data : Path, optional
        Folder of the data sets.
    changes : mapping, optional
        Other settings or readings, see :func:`~amlb_ext.experiments.paper.settings.settings_of`, or
        :class:`~amlb_ext.experiments.osyn.choices.Choice` for the seed paper's tables,
        :class:`~amlb_ext.experiments.swarms.SwarmChoice` for the swarm paper's.
    certify : bool
        Also make a suite of each row with the pipeline and state its certificate.
    workers : int
        Processes; 0 for every core.
    quiet : bool
        Show no progress bars.

    Raises
    ------
    ConfigError
        An unknown name or setting, or no split asked for.
    SourceError
        None of the data can be had.
    """
    tables = _named_tables(names)
    swarm_tables = _named_swarm_tables(names)
    experiments = _named_experiments(names)
    if splits is not None and splits < 1:
        raise ConfigError(f"{splits} splits were asked for", "give --splits 1 or more")
    for experiment in experiments:
        for data_name in experiment.rows:
            settings_of(experiment, data_name, changes)  # raises before any work
    # the changes are settings of one paper or of the other, so they are checked for what runs
    choice = osyn.Choice()
    if tables:
        choice = osyn_run.check_choice([table.name for table in tables], changes)
    swarm_choice = swarms.SwarmChoice()
    if swarm_tables:
        asked = [table.name for table in swarm_tables]
        swarm_choice = swarm_run.check_choice(asked, changes, data is not None)
    if out.exists() and not out.is_dir():
        raise SuiteError(f"{out} is a file", "choose a folder with -o")
    run = _Run(
        out=out,
        data=data,
        splits=splits,
        certify=certify,
        workers=workers,
        quiet=quiet,
    )
    results = [_reproduce_table(table, choice, run) for table in tables]
    has_cells = any(len(result.cells) for result in results)
    if tables and not experiments and not swarm_tables and not has_cells:
        reason = next(iter(results[0].left_out.values()))
        raise SourceError(f"no data: {reason}", "give --data DIR")
    results += [_reproduce_swarm(table, swarm_choice, run) for table in swarm_tables]
    if tables or swarm_tables:
        # the experiments may fail for want of data; what is finished has its page then
        page.write_page(out)
    if experiments:
        results += _reproduce_experiments(experiments, changes or {}, run)
        page.write_page(out)
    return results


@dataclass(frozen=True, kw_only=True)
class _Run:
    """What :func:`reproduce` was asked for, whatever the experiment."""

    out: Path
    data: Path | None
    splits: int | None
    certify: bool
    workers: int
    quiet: bool


# --- the seed paper's tables ---


def _named_tables(names: Sequence[str]) -> list[osyn.OsynTable]:
    """Return the seed paper's tables among the names."""
    tables = []
    for name in names:
        if name == "osyn":
            tables += list(osyn.TABLES.values())
        elif name in osyn.TABLES:
            tables.append(osyn.TABLES[name])
    return tables


def _reproduce_table(table: osyn.OsynTable, choice: osyn.Choice, run: _Run) -> Result:
    folder = run.out / table.name
    began = time.monotonic()
    outcomes, left_out = osyn.reproduce_osyn(
        table,
        folder,
        choice,
        repetitions=run.splits,
        data=run.data,
        workers=run.workers,
        quiet=run.quiet,
    )
    cells = osyn_cells.compare_cells(table, outcomes, choice.size)
    # seconds count earlier runs too, the clock this run alone
    result = Result(
        name=table.name,
        cells=cells,
        left_out=left_out,
        splits=run.splits or table.repetitions,
        seconds=sum(outcome.seconds for outcome in outcomes),
        wall=time.monotonic() - began,
        markdown=page_blocks.table_markdown(table, cells),
    )
    # without an outcome there is no result, and so no place on the page
    if outcomes:
        _write_csv(folder / "cells.csv", cells)
        write_text(folder / "cells.md", result.markdown)
        write_text(folder / page.RESULT, json_text(result.to_json()))
    return result


# --- the swarm paper's tables ---


def _named_swarm_tables(names: Sequence[str]) -> list[swarms.SwarmTable]:
    """Return the swarm paper's tables among the names."""
    tables = []
    for name in names:
        if name == "swarm":
            tables += list(swarms.TABLES.values())
        elif name in swarms.TABLES:
            tables.append(swarms.TABLES[name])
    return tables


def _reproduce_swarm(
    table: swarms.SwarmTable, choice: swarms.SwarmChoice, run: _Run
) -> Result:
    folder = run.out / table.name
    began = time.monotonic()
    done, left_out = swarms.reproduce_swarm(
        table,
        folder,
        choice,
        draws=run.splits,
        data=run.data,
        workers=run.workers,
        quiet=run.quiet,
    )
    draws = run.splits or table.draws
    blocks = swarm_blocks.table_blocks(table, done)
    notes = swarm_blocks.table_notes(table, choice, draws)
    result = Result(
        name=table.name,
        cells=compare_swarm_cells(table.name, done),
        figures=draw_pictures(table.name, done, folder),
        left_out=left_out,
        splits=draws,
        seconds=sum(draw.seconds for draw in done),
        wall=time.monotonic() - began,
        markdown=blocks_markdown(table.title, blocks, notes),
        blocks=[dataclasses.asdict(block) for block in blocks],
        notes=notes,
    )
    # without a draw there is no result, and so no place on the page
    if done:
        _write_csv(folder / "cells.csv", result.cells)
        write_text(folder / "cells.md", result.markdown)
        write_text(folder / page.RESULT, json_text(result.to_json()))
    return result


# --- the paper's tables and figures ---


def _named_experiments(names: Sequence[str]) -> list[Experiment]:
    """Return the paper's tables and figures among the names.

    Raises
    ------
    ConfigError
        A name of none of the papers.
    """
    experiments = []
    for name in names:
        if name in ("osyn", "swarm", *osyn.TABLES, *swarms.TABLES):
            continue
        if name == "all":
            experiments += list(EXPERIMENTS.values())
        elif name in EXPERIMENTS:
            experiments.append(EXPERIMENTS[name])
        else:
            known = [*EXPERIMENTS, *osyn.TABLES, *swarms.TABLES, "all", "osyn", "swarm"]
            raise ConfigError(
                f"no table or figure is called {name!r}",
                suggest_nearest(name, known),
            )
    return experiments


def _reproduce_experiments(
    experiments: Sequence[Experiment], changes: Mapping[str, Any], run: _Run
) -> list[Result]:
    _, readings = split_changes(changes)
    loaded, lacking = _load_tasks(experiments, run.data, Readings(**readings))
    results = []
    for experiment in experiments:
        tasks = {}
        left_out = {}
        for name in experiment.rows:
            if name in loaded:
                tasks[name] = (loaded[name], settings_of(experiment, name, changes))
            else:
                left_out[name] = lacking[name]
        # an experiment without data has a result, too: the page says why it is empty
        if tasks:
            result = _reproduce_experiment(experiment, tasks, run)
        else:
            result = Result(name=experiment.name)
        result.left_out = left_out
        write_text(run.out / experiment.name / page.RESULT, json_text(result.to_json()))
        results.append(result)
    return results


def _load_tasks(
    experiments: Sequence[Experiment], folder: Path | None, readings: Readings
) -> tuple[dict[str, Task], dict[str, str]]:
    """Load every data set once; return tasks, and why the others cannot be had."""
    # several experiments share a data set
    tasks: dict[str, Task] = {}
    lacking: dict[str, str] = {}
    for experiment in experiments:
        for name in experiment.rows:
            if name in tasks or name in lacking:
                continue
            try:
                tasks[name] = DATA[name].load(folder, readings).renamed(name)
            except SourceError as error:
                lacking[name] = str(error)
    # the first reason is enough: the others are of the same kind
    if not tasks:
        reason = next(iter(lacking.values()))
        raise SourceError(f"no data: {reason}", "give --data DIR")
    return tasks, lacking


def _reproduce_experiment(
    experiment: Experiment, tasks: dict[str, tuple[Task, list[Setting]]], run: _Run
) -> Result:
    folder = run.out / experiment.name
    began = time.monotonic()
    # a figure shows one split, however many are asked for
    n_splits = run.splits if run.splits and not experiment.figure else experiment.splits
    done = run_experiment(
        experiment,
        tasks,
        splits=n_splits,
        out=folder,
        workers=run.workers,
        quiet=run.quiet,
    )
    result = Result(
        name=experiment.name,
        splits=n_splits,
        candidate=done[0].candidate,
        seconds=sum(split.seconds for split in done),
    )
    if experiment.figure:
        result.figures = figures.draw_figures(experiment, done, folder)
    else:
        # data sets that could not be had have no cells
        rows = {
            name: experiment.rows[name] for name in experiment.rows if name in tasks
        }
        compared = dataclasses.replace(experiment, rows=rows)
        result.cells = compare_cells(compared, done)
        result.shares = compare_shares(compared, done)
        result.markdown = cells_markdown(experiment, result.cells)
        _write_csv(folder / "cells.csv", result.cells)
        _write_csv(folder / "shares.csv", result.shares)
        write_text(folder / "cells.md", result.markdown)
        if run.certify:
            result.certificates = certificates.certify_rows(
                experiment,
                tasks,
                folder,
                workers=run.workers,
                quiet=run.quiet,
            )
    result.wall = time.monotonic() - began
    return result


def _write_csv(path: Path, table: pd.DataFrame) -> None:
    write_file(path, lambda part: table.to_csv(part, index=False))
