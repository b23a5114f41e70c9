"""All repetitions of a table: one job each, each result a file of its own; resumable."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from amlb_ext.core.errors import ConfigError, SourceError
from amlb_ext.core.task import Task
from benchmarks.studies.engine import Repetition, hash_key, run_repetitions
from benchmarks.studies.osyn import cost, repeat
from benchmarks.studies.osyn.case import SEED
from benchmarks.studies.osyn.cells import Outcome
from benchmarks.studies.osyn.choices import (
    TABLES,
    Choice,
    OsynTable,
    make_choice,
    models_of,
)
from benchmarks.studies.osyn.tabular import load_table

#: Folder of the results.
REPETITIONS = "repetitions"


def check_choice(names: Sequence[str], changes: Mapping[str, Any] | None) -> Choice:
    """Return the settings, or say what is wrong before any work.

    Raises
    ------
    ConfigError
        As :func:`~benchmarks.studies.osyn.choices.make_choice`; a table without a model.
    """
    choice = make_choice(changes)
    for name in names:
        table = TABLES[name]
        if not any(models_of(table, data, choice) for data in table.data):
            models = sorted(set().union(*table.data.values()))
            raise ConfigError(
                f"{name} has none of the models asked for",
                f"it has {', '.join(models)}",
            )
    return choice


def reproduce_osyn(
    table: OsynTable,
    out: Path,
    choice: Choice,
    *,
    repetitions: int | None = None,
    data: Path | None = None,
    workers: int = 0,
    quiet: bool = True,
) -> tuple[list[Outcome], dict[str, str]]:
    """Run or continue the repetitions of a table.

    Parameters
    ----------
    table : OsynTable
    out : Path
        The table's folder.
    choice : Choice
    repetitions : int, optional
        In place of the table's own.
    data : Path, optional
        Folder of the data sets.
    workers : int
        Processes; 0 for every core.
    quiet : bool

    Returns
    -------
    list of Outcome
        By data set and repetition.
    dict of str to str
        Data sets that were left out, and why.
    """
    tasks, left_out = _load_tasks(table, choice, data)
    planned = []
    for name, task in tasks.items():
        # the simulation's rows follow from the settings and the seed
        content = "" if task is None else task.content_hash
        for number in range(repetitions or table.repetitions):
            # the choice as a whole: a table does not say which settings it reads
            settings = dataclasses.asdict(choice)
            key = hash_key(table.name, name, settings, content, number, SEED)
            repetition = Repetition(
                path=out / REPETITIONS / f"{name}_{number:02d}.json",
                key=key,
                compute=compute_repetition,
                arguments=(table.name, name, task, choice, number),
            )
            planned.append(repetition)
    results = run_repetitions(
        planned,
        name=table.name,
        unit="repetition",
        workers=workers,
        quiet=quiet,
    )
    outcomes = []
    for result in results:
        outcome = Outcome(
            data=result["data"],
            number=result["number"],
            rows=result["rows"],
            seconds=result["seconds"],
        )
        outcomes.append(outcome)
    return outcomes, left_out


def _load_tasks(
    table: OsynTable, choice: Choice, folder: Path | None
) -> tuple[dict[str, Task | None], dict[str, str]]:
    """Return the data sets of the models asked for, and why others are left out.

    The simulation is None: it draws its own rows.
    """
    left_out = dict(table.lacking)
    tasks: dict[str, Task | None] = {}
    for name in table.data:
        if not models_of(table, name, choice):
            continue
        if name == "simulation":
            tasks[name] = None
            continue
        try:
            tasks[name] = load_table(name, folder, choice.data_rows)
        except SourceError as error:
            # the other data sets are run, and the page says what lacks
            left_out[name] = str(error)
    return tasks, left_out


def compute_repetition(
    table: str, data: str, task: Task | None, choice: Choice, number: int
) -> dict[str, Any]:
    """Return the rows of one repetition of a table on one data set.

    Parameters
    ----------
    table, data : str
        Names.
    task : Task, optional
        None for the simulation, which draws its own rows.
    choice : Choice
    number : int
        Of the repetition; the random streams are keyed by it.
    """
    # processor time, which other work of the machine does not lengthen
    began = time.process_time()
    if task is None and table == "osyn-table-1":
        rows = repeat.repeat_table_1(choice, number)
    elif task is None:
        rows = repeat.repeat_table_2(choice, number)
    elif table == "osyn-cost":
        rows = cost.measure_cost(task, choice, number)
    else:
        rows = repeat.repeat_tabular(table, data, task, choice, number)
    return {
        "data": data,
        "number": number,
        "seconds": time.process_time() - began,
        "rows": rows,
    }
