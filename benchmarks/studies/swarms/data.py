"""The tables that swarms are run on: with the installation, simulated, or of the user's folder."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from amlb_ext.core.config import SourceConfig, SplitConfig
from amlb_ext.core.task import Task
from amlb_ext.hardening.split import split_task
from amlb_ext.sources import open_specs
from benchmarks.studies.files import FILES as UCI_FILES
from benchmarks.studies.files import find_data_file, keep_rows, load_uci
from benchmarks.studies.swarms.populations import POPULATIONS, draw_task

#: Parquet files and their targets.
PARQUET = {"letter": "class", "kin8nm": "y"}


def load_swarm_table(name: str, folder: Path | None, most_rows: int) -> Task | None:
    """Return a table without folds; None where each draw simulates its own.

    Parameters
    ----------
    name : str
    folder : Path or None
        With the files of the tables that need one.
    most_rows : int
        Keep so many rows, drawn at random.

    Raises
    ------
    SourceError
        No such file.

    Examples
    --------
    >>> len(load_swarm_table("breast_cancer", None, 500))
    500
    """
    if name in POPULATIONS:
        return None
    if name in UCI_FILES:
        return load_uci(name, folder, most_rows)
    spec, target = f"bundled/{name}", None
    if name in PARQUET:
        # one folder may hold the files of many sets, some of them in a folder "large"
        places = "large" if folder and (folder / "large").is_dir() else name
        spec = str(find_data_file(folder, places, [f"{name}.parquet"]))
        target = PARQUET[name]
    [ref] = open_specs([spec], SourceConfig(target=target))
    return keep_rows(ref.load().renamed(name), most_rows, "swarm rows")


def split_draw(task: Task | None, name: str, seed: int, most_rows: int) -> Task:
    """Return the table of one draw with its one fold, simulated where there is none."""
    if task is None:
        task = draw_task(name, seed, min(most_rows, 4000))
    without_folds = dataclasses.replace(task, folds=())
    return split_task(without_folds, SplitConfig(folds=1), seed)
