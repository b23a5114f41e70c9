"""Difficulty data as files: rows as Parquet, tasks as CSV, and a description in Croissant."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa

from amlb_ext.core.errors import ConfigError
from amlb_ext.core.files import write_file, write_text
from amlb_ext.core.json_values import to_json_values
from amlb_ext.core.parquet import write_parquet
from amlb_ext.difficulty.croissant import describe_dataset
from amlb_ext.difficulty.rows import ROW_COLUMNS, collect_rows
from amlb_ext.difficulty.tasks import collect_tasks
from amlb_ext.suite import SuiteFiles

#: Incremented when a reader of an older version could not understand the file.
FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class DifficultyFiles:
    """What was written.

    Attributes
    ----------
    rows, tasks, croissant : Path
        ``FILE.parquet``, ``FILE_tasks.csv`` and ``FILE_croissant.json``.
    table : DataFrame
        The tasks.
    n_rows : int
    """

    rows: Path
    tasks: Path
    croissant: Path
    table: pd.DataFrame
    n_rows: int


def write_difficulty(directory: str | Path, path: Path) -> DifficultyFiles:
    """Write the difficulty of a suite's rows and tasks.

    Parameters
    ----------
    directory : path
        A finished suite.
    path : Path
        The Parquet file; the other two stand beside it.

    Returns
    -------
    DifficultyFiles

    Raises
    ------
    SuiteError
        The suite is unfinished or damaged, or the folder cannot be written.
    ConfigError
        The path does not end in ``.parquet``.
    """
    if path.suffix.lower() != ".parquet":
        raise ConfigError(
            f"{path} does not end in .parquet",
            f"write -o {path.with_suffix('.parquet')}",
        )
    suite = SuiteFiles.load(directory)
    rows = collect_rows(suite)
    tasks = collect_tasks(suite, rows)
    tasks_path = path.with_name(f"{path.stem}_tasks.csv")
    croissant_path = path.with_name(f"{path.stem}_croissant.json")
    rows_digest = write_parquet(rows_table(rows, tasks), path)
    tasks_digest = write_file(
        tasks_path, partial(tasks.to_csv, index=False, lineterminator="\n")
    )
    files = {
        "rows": (path.name, rows_digest),
        "tasks": (tasks_path.name, tasks_digest),
    }
    description = describe_dataset(path.stem, tasks, files)
    write_text(croissant_path, json.dumps(description, indent=1) + "\n")
    return DifficultyFiles(
        rows=path,
        tasks=tasks_path,
        croissant=croissant_path,
        table=tasks,
        n_rows=len(rows),
    )


def rows_table(rows: pd.DataFrame, tasks: pd.DataFrame) -> pa.Table:
    """Return the rows with their schema: types, what each column holds, and what each task is.

    The schema's metadata has, under ``hardsynth``, JSON with ``format`` and ``tasks``; each field
    has ``description`` and ``unit``.
    """
    fields = []
    arrays = []
    for column in ROW_COLUMNS:
        about = {"description": column.about, "unit": column.unit}
        fields.append(pa.field(column.name, column.type, metadata=about))
        values = pa.array(rows[column.name], type=column.type, from_pandas=True)
        arrays.append(values)
    content = {"format": FORMAT, "tasks": to_json_values(tasks)}
    metadata = {"hardsynth": json.dumps(content, sort_keys=True)}
    return pa.table(arrays, schema=pa.schema(fields, metadata=metadata))
