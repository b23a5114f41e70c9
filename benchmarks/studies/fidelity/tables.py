"""The tables of a study, read as tasks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import ConfigError, DataError, SourceError, suggest_nearest
from amlb_ext.core.paths import table_ending
from amlb_ext.core.task import Task
from amlb_ext.sources import open_specs
from benchmarks.studies.fidelity.protocol import Table
from benchmarks.studies.files import keep_rows


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
    # sources read files, OpenML and bundled tables alike
    spec = _source_spec(name, table.source, folder)
    refs = list(open_specs([spec], SourceConfig(target=table.target)))
    if len(refs) != 1:
        raise DataError(
            f"{name}: {table.source} holds {len(refs)} tasks", "name one of them"
        )
    task = _drop_columns(refs[0].load().renamed(name), table.drop)
    return keep_rows(task, table.most, "study rows")


def _source_spec(name: str, source: str, folder: Path) -> str:
    """Return the spec to open: a file in the folder, else the source as it stands."""
    path = folder / Path(source).expanduser()
    if path.is_file():
        return str(path)
    # a source's name has no such ending, and an address may have one: neither is a missing file
    is_file = bool(table_ending(source)) and "://" not in source
    if is_file and not Path(source).is_file():
        raise SourceError(
            f"{name}: there is no file {path}",
            "name the folder of the tables with --data DIR",
        )
    return source


def _drop_columns(task: Task, dropped: tuple[str, ...]) -> Task:
    """Return a task without some of its columns, and without folds."""
    names = [column.name for column in task.columns]
    for column in dropped:
        if column not in names:
            raise ConfigError(
                f"{task.name} has no column {column!r} to drop",
                suggest_nearest(column, names),
            )
    columns = tuple(column for column in task.columns if column.name not in dropped)
    features = task.features[[column.name for column in columns]]
    return dataclasses.replace(task, columns=columns, features=features, folds=())
