"""All repetitions of a table: one job each, each result a file of its own; resumable."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from amlb_ext import __version__
from amlb_ext.core.atomic import sweep, write_text
from amlb_ext.core.errors import ConfigError, SourceError
from amlb_ext.core.parallel import available_cores, run_jobs
from amlb_ext.core.task import Task
from amlb_ext.reproduce.osyn import cost, repeat
from amlb_ext.reproduce.osyn.case import SEED
from amlb_ext.reproduce.osyn.cells import Outcome
from amlb_ext.reproduce.osyn.choices import TABLES, Choice, OsynTable, make_choice, models_of
from amlb_ext.reproduce.osyn.tabular import load
from amlb_ext.reproduce.run import stored
from amlb_ext.suite.records import json_text

REPETITIONS = "repetitions"


def checked(names: Sequence[str], changes: Mapping[str, Any] | None) -> Choice:
    """Return the settings, or say what is wrong before any work.

    Raises
    ------
    ConfigError
        As :func:`~amlb_ext.reproduce.osyn.choices.make_choice`; a table without a model.
    """
    choice = make_choice(changes)
    for name in names:
        table = TABLES[name]
        if not any(models_of(table, data, choice) for data in table.data):
            known = ", ".join(sorted({m for models in table.data.values() for m in models}))
            raise ConfigError(f"{name} has none of the models asked for", f"it has {known}")
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
            tasks[name] = None if simulated else load(name, data, choice.data_rows)
        except SourceError as error:
            left_out[name] = str(error)
    folder = out / REPETITIONS
    if folder.exists():
        sweep(folder)
    count = repetitions or table.repetitions
    jobs, places = [], []
    for name, task in tasks.items():
        content = "" if task is None else task.content_hash
        for number in range(count):
            path = folder / f"{name}_{number:02d}.json"
            key = _key(table.name, name, choice, content, number)
            places.append(path)
            if stored(path, key) is None:
                jobs.append((table.name, name, task, choice, number, path, key))
    workers = min(workers or available_cores(), max(1, len(jobs)))
    with tqdm(total=len(jobs), desc=table.name, unit="repetition", disable=quiet) as bar:
        for _ in run_jobs(_job, jobs, workers):
            bar.update()
    return [_read(path) for path in places], left_out


def _key(table: str, data: str, choice: Choice, content: str, number: int) -> str:
    parts = [__version__, table, data, dataclasses.asdict(choice), content, number, SEED]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _job(
    table: str, data: str, task: Task | None, choice: Choice, number: int, path: Path, key: str
) -> None:
    began = time.process_time()
    if task is None:
        run = repeat.table_1 if table == "osyn-table-1" else repeat.table_2
        rows = run(choice, number)
    elif table == "osyn-cost":
        rows = cost.cost(task, choice, number)
    else:
        rows = repeat.tabular(table, data, task, choice, number)
    seconds = time.process_time() - began
    entry = {"key": key, "data": data, "number": number, "seconds": seconds, "rows": rows}
    write_text(path, json_text(entry))


def _read(path: Path) -> Outcome:
    entry = json.loads(path.read_text(encoding="utf-8"))
    return Outcome(entry["data"], entry["number"], entry["rows"], entry["seconds"])
