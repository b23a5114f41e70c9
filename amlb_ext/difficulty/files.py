"""Difficulty data as files: rows as Parquet, tasks as CSV, and a description in Croissant."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from amlb_ext.core.errors import ConfigError
from amlb_ext.core.files import write_file, write_text
from amlb_ext.core.json_values import to_json_values
from amlb_ext.core.parquet import write_parquet
from amlb_ext.core.version import __version__
from amlb_ext.difficulty.tasks import (
    ROW_COLUMNS,
    TASK_COLUMNS,
    TYPES,
    Column,
    collect_rows,
    collect_tasks,
)
from amlb_ext.publish.croissant import (
    describe_data_set,
    field,
    file_object,
    record_set,
)
from amlb_ext.suite import SuiteFiles

_CITATION = (
    "Zakharov, Boukhanovsky: Model-Aware Automatic Benchmark Generation with Self-Error "
    "Instructions for Data-Driven Models. Machine Learning and Knowledge Extraction 7(4), 148, "
    "2025. doi:10.3390/make7040148"
)


def describe_dataset(
    name: str, tasks: pd.DataFrame, files: Mapping[str, tuple[str, str]]
) -> dict[str, Any]:
    """Return the JSON-LD of difficulty data.

    Parameters
    ----------
    name : str
        Of the data set.
    tasks : DataFrame
        As :func:`amlb_ext.difficulty.tasks.collect_tasks` gives them.
    files : mapping of str to (str, str)
        Name and sha256 of the files ``rows`` and ``tasks``.

    Returns
    -------
    dict
        Without times and absolute paths: the same data has the same description.
    """
    listed = ", ".join(tasks["task"].head(5)) + (", ..." if len(tasks) > 5 else "")
    baselines = ", ".join(dict.fromkeys(tasks["baseline"]))
    encodings = {"rows": "application/x-parquet", "tasks": "text/csv"}
    description = describe_data_set(
        name,
        description=f"How hard each test row of {listed} is for the model F ({baselines}), and "
        "how much of F's loss where it fails other models save. It holds no features: join it to "
        "the source by source_row.",
        version=__version__,
        creator={"@type": "sc:Organization", "name": f"hardsynth {__version__}"},
        citeAs=_CITATION,
        isLiveDataset=False,
        distribution=[
            file_object(f"{key}-file", file, encodings[key], sha256=digest)
            for key, (file, digest) in files.items()
        ],
        recordSet=[
            _records("rows", "One record for each source row and fold.", ROW_COLUMNS),
            _records("tasks", "One record for each task.", TASK_COLUMNS),
        ],
    )
    urls = [url for url in dict.fromkeys(tasks["source_url"]) if url.startswith("http")]
    if urls:
        description["isBasedOn"] = urls
    licences = [text for text in dict.fromkeys(tasks["licence"]) if text]
    if licences:
        description["license"] = licences
    return description


def _records(key: str, about: str, columns: Sequence[Column]) -> dict[str, Any]:
    fields = []
    for column in columns:
        text = f"{column.about} ({column.unit})" if column.unit else column.about
        fields.append(
            field(
                f"{key}/{column.name}",
                column.name,
                TYPES[column.kind][1],
                file=f"{key}-file",
                description=text,
            )
        )
    return record_set(key, fields, description=about)


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
        arrow, _ = TYPES[column.kind]
        fields.append(pa.field(column.name, arrow, metadata=about))
        values = pa.array(rows[column.name], type=arrow, from_pandas=True)
        arrays.append(values)
    content = {"format": FORMAT, "tasks": to_json_values(tasks)}
    metadata = {"hardsynth": json.dumps(content, sort_keys=True)}
    return pa.table(arrays, schema=pa.schema(fields, metadata=metadata))
