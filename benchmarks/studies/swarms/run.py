"""All draws of a swarm table: one job for each table of data and draw, resumable."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amlb_ext.core.errors import ConfigError, DataError, HardsynthError, SourceError
from amlb_ext.core.task import Task
from benchmarks.studies.engine import Repetition, hash_key, run_repetitions
from benchmarks.studies.swarms.adversarial import draw_adversarial
from benchmarks.studies.swarms.choices import (
    TABLES,
    SwarmChoice,
    SwarmTable,
    make_choice,
    tables_of,
)
from benchmarks.studies.swarms.data import load_swarm_table
from benchmarks.studies.swarms.draw import draw_table_1, draw_table_2, draw_table_3
from benchmarks.studies.swarms.hull import draw_hull

#: Folder of the results.
DRAWS = "draws"
#: What computes one draw of each table.
COMPUTE: dict[str, Callable[[Task | None, str, int, SwarmChoice], dict[str, Any]]] = {
    "swarm-table-1": draw_table_1,
    "swarm-table-2": draw_table_2,
    "swarm-table-3": draw_table_3,
    "swarm-adversarial": draw_adversarial,
    "swarm-hull": draw_hull,
}


@dataclass(frozen=True, kw_only=True)
class DrawResult:
    """One draw of one table of data.

    Attributes
    ----------
    data : str
    number : int
    rows : dict
        As the function of :data:`COMPUTE` returns it.
    seconds : float
        Processor seconds.
    """

    data: str
    number: int
    rows: dict[str, Any]
    seconds: float


def check_choice(
    names: Sequence[str], changes: Mapping[str, Any] | None, has_folder: bool
) -> SwarmChoice:
    """Return the settings, or say what is wrong before any work.

    Raises
    ------
    ConfigError
        As :func:`~benchmarks.studies.swarms.choices.make_choice`; a table of the paper to which
        none of the data belong that were asked for.
    """
    choice = make_choice(changes)
    for name in names:
        table = TABLES[name]
        if not tables_of(table, choice, has_folder):
            known = tables_of(table, dataclasses.replace(choice, tables=()), has_folder)
            raise ConfigError(
                f"{name} has none of the tables asked for", f"it has {', '.join(known)}"
            )
    return choice


def reproduce_swarm(
    table: SwarmTable,
    out: Path,
    choice: SwarmChoice,
    *,
    draws: int | None = None,
    data: Path | None = None,
    workers: int = 0,
    quiet: bool = True,
) -> tuple[list[DrawResult], dict[str, str]]:
    """Run or continue the draws of a table.

    Parameters
    ----------
    table : SwarmTable
    out : Path
        The table's folder.
    choice : SwarmChoice
    draws : int, optional
        In place of the table's own number.
    data : Path, optional
        Folder of tables that take the place of the embedded ones.
    workers : int
        Processes; 0 for every core.
    quiet : bool

    Returns
    -------
    list of DrawResult
        By table of data and draw.
    dict of str to str
        Tables of data that were left out, and why.
    """
    tasks, left_out = _load_tasks(table, choice, data)
    planned = []
    for name, task in tasks.items():
        # a simulated table follows from its name and the draw
        content = "" if task is None else task.content_hash
        settings = dataclasses.asdict(dataclasses.replace(choice, tables=()))
        for number in range(draws or table.draws):
            planned.append(
                Repetition(
                    path=out / DRAWS / f"{name}_{number:02d}.json",
                    key=hash_key(table.name, name, settings, content, number),
                    compute=compute_draw,
                    arguments=(table.name, name, task, choice, number),
                )
            )
    found = run_repetitions(
        planned, name=table.name, unit="draw", workers=workers, quiet=quiet
    )
    results = []
    for result in found:
        if result["failure"]:
            left_out.setdefault(result["data"], result["failure"])
            continue
        results.append(
            DrawResult(
                data=result["data"],
                number=result["number"],
                rows=result["rows"],
                seconds=result["seconds"],
            )
        )
    return results, left_out


def _load_tasks(
    table: SwarmTable, choice: SwarmChoice, folder: Path | None
) -> tuple[dict[str, Task | None], dict[str, str]]:
    left_out: dict[str, str] = {}
    tasks: dict[str, Task | None] = {}
    for name in tables_of(table, choice, folder is not None):
        try:
            tasks[name] = load_swarm_table(name, folder, choice.most_rows)
        except (SourceError, DataError) as error:
            # the other tables are run, and the page says what lacks
            left_out[name] = str(error)
    return tasks, left_out


def compute_draw(
    table: str, data: str, task: Task | None, choice: SwarmChoice, number: int
) -> dict[str, Any]:
    """Return one draw of a table of the paper on one table of data.

    What a table cannot do (a regression among adversarial swarms, too few rows) is the draw's
    ``failure``, and costs no other table its draws.
    """
    # processor time, which other work of the machine does not lengthen
    began = time.process_time()
    rows: dict[str, Any] = {}
    failure = ""
    try:
        rows = COMPUTE[table](task, data, number, choice)
    except HardsynthError as error:
        failure = str(error)
    return {
        "data": data,
        "number": number,
        "failure": failure,
        "seconds": time.process_time() - began,
        "rows": rows,
    }
