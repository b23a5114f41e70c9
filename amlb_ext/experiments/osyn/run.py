"""All repetitions of a table: one job each, each result a file of its own; resumable."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from amlb_ext.core.errors import ConfigError, SourceError
from amlb_ext.core.task import Task
from amlb_ext.experiments.engine import Repetition, hash_key, run_repetitions
from amlb_ext.experiments.osyn import cost, repeat
from amlb_ext.experiments.osyn.case import SEED
from amlb_ext.experiments.osyn.cells import Outcome
from amlb_ext.experiments.osyn.choices import (
    TABLES,
    Choice,
    OsynTable,
    make_choice,
    models_of,
)
from amlb_ext.experiments.osyn.tabular import load_table

REPETITIONS = "repetitions"


def check_choice(names: Sequence[str], changes: Mapping[str, Any] | None) -> Choice:
    """Return the settings, or say what is wrong before any work.

    Raises
    ------
    ConfigError
        As :func:`~amlb_ext.experiments.osyn.choices.make_choice`; a table without a model.
    """
    choice = make_choice(changes)
    for name in names:
        table = TABLES[name]
        if not any(models_of(table, data, choice) for data in table.data):
            known = ", ".join(
                sorted({m for models in table.data.values() for m in models})
            )
            raise ConfigError(
                f"{name} has none of the models asked for", f"it has {known}"
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
    left_out = dict(table.lacking)
    tasks: dict[str, Task | None] = {}
    for name in table.data:
        if not models_of(table, name, choice):
            continue
        try:
            simulated = name == "simulation"
            tasks[name] = (
                None if simulated else load_table(name, data, choice.data_rows)
            )
        except SourceError as error:
            left_out[name] = str(error)
    repeated = []
    for name, task in tasks.items():
        content = "" if task is None else task.content_hash
        for number in range(repetitions or table.repetitions):
            path = out / REPETITIONS / f"{name}_{number:02d}.json"
            key = hash_key(
                table.name, name, dataclasses.asdict(choice), content, number, SEED
            )
            arguments = (table.name, name, task, choice, number)
            repeated.append(Repetition(path, key, compute_repetition, arguments))
    results = run_repetitions(
        repeated, name=table.name, unit="repetition", workers=workers, quiet=quiet
    )
    outcomes = [
        Outcome(
            data=result["data"],
            number=result["number"],
            rows=result["rows"],
            seconds=result["seconds"],
        )
        for result in results
    ]
    return outcomes, left_out


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
    began = time.process_time()
    if task is None:
        simulate = (
            repeat.repeat_table_1 if table == "osyn-table-1" else repeat.repeat_table_2
        )
        rows = simulate(choice, number)
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
