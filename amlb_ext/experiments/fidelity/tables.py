"""The tables of a study, read as tasks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import ConfigError, DataError, SourceError, suggest_nearest
from amlb_ext.core.rng import random_stream
from amlb_ext.core.task import Task
from amlb_ext.experiments.fidelity.protocol import Table
from amlb_ext.sources import open_specs
from amlb_ext.sources.read_table import READERS


def load_table(name: str, table: Table, folder: Path) -> Task:
    """Return a table as a task without folds.

    Parameters
    ----------
    name : str
    table : Table
    folder : Path
        Where a file named by a relative path is looked for.

    Raises
    ------
    ConfigError
        A column to drop that is not there.
    DataError
        The source holds several tasks.
    SourceError
        No such file, or one that cannot be read.
    """
    spec = _spec(name, table.source, folder)
    refs = list(open_specs([spec], SourceConfig(target=table.target)))
    if len(refs) != 1:
        raise DataError(
            f"{name}: {table.source} holds {len(refs)} tasks", "name one of them"
        )
    task = refs[0].load()
    known = [column.name for column in task.columns]
    for column in table.drop:
        if column not in known:
            raise ConfigError(
                f"{name} has no column {column!r} to drop",
                suggest_nearest(column, known),
            )
    columns = tuple(c for c in task.columns if c.name not in table.drop)
    task = dataclasses.replace(
        task.renamed(name),
        columns=columns,
        features=task.features[[c.name for c in columns]],
        folds=(),
    )
    if len(task) <= table.most:
        return task
    rows = random_stream(0, name, "study rows").choice(
        len(task), table.most, replace=False
    )
    rows.sort()
    return dataclasses.replace(
        task,
        features=task.features.iloc[rows].reset_index(drop=True),
        target=task.target.iloc[rows].reset_index(drop=True),
        row_ids=task.row_ids[rows],
    )


def _spec(name: str, source: str, folder: Path) -> str:
    """Return the spec to open: a file in the folder, else the source as it stands."""
    path = folder / Path(source).expanduser()
    if path.is_file():
        return str(path)
    is_file = Path(source).suffix.lower() in READERS and "://" not in source
    if is_file and not Path(source).is_file():
        raise SourceError(
            f"{name}: there is no file {path}",
            "name the folder of the tables with --data DIR",
        )
    return source
