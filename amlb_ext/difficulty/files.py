"""How hard each row of a source is for F, and how much is left to gain on each task, as files.

Rows are written as Parquet, tasks as CSV, and a description of both in Croissant.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from amlb_ext.core.errors import ConfigError
from amlb_ext.core.files import write_file, write_text
from amlb_ext.core.json_values import to_json_values
from amlb_ext.core.parquet import write_parquet
from amlb_ext.core.version import __version__
from amlb_ext.publish.croissant import (
    describe_data_set,
    field,
    file_object,
    record_set,
)
from amlb_ext.suite import SuiteFiles, amlb_name
from amlb_ext.validity import Certificate, read_certificates

#: Types of a kind of column: Arrow's, and in Croissant's words.
TYPES = {
    "number": (pa.float64(), "sc:Float"),
    "count": (pa.int64(), "sc:Integer"),
    "flag": (pa.bool_(), "sc:Boolean"),
    "text": (pa.string(), "sc:Text"),
}


@dataclass(frozen=True)
class Column:
    """A column of the data: its type, and what it holds.

    Attributes
    ----------
    name, about : str
    kind : str
        Of :data:`TYPES`.
    unit : str
        Empty where there is none.
    """

    name: str
    about: str
    kind: str = "number"
    unit: str = ""


#: Columns of the rows, a record for each row and test fold; null where the suite does not have it.
ROW_COLUMNS = (
    Column("task", "name of the task in the suite", "text"),
    Column("source", "spec of the source, such as openml/t/31", "text"),
    Column("source_row", "row of the source table, from 0", "count"),
    Column(
        "fold",
        "number of the source's fold in whose test rows it stands; F was fitted on the others",
        "count",
    ),
    Column("hardness", "value of the rule K for F's prediction: larger is harder"),
    Column(
        "loss",
        "loss of F: Brier loss of class probabilities, or squared error of the target scaled "
        "to [0, 1] by the training rows",
    ),
    Column("is_bad", "whether K calls the row a failure of F", "flag"),
    Column(
        "p_fails",
        "P(F fails | x), from features alone, learnt on other rows; the weight of the region",
        unit="probability",
    ),
    Column(
        "reducible",
        "reducible hardness: squared distance of F's prediction from a cross-fitted oracle's",
    ),
    Column(
        "label_support",
        "classes: the oracle's probability of the label; numbers: minus the distance between "
        "oracle and label, in RMSEs of the oracle",
    ),
    Column("label_agrees", "whether that support is enough", "flag"),
    Column("in_main", "copies of the row in the suite's main task", "count"),
    Column("in_region", "copies of the row in the part drawn by p_fails", "count"),
    Column("made_from", "augmented rows that were made from the row", "count"),
    Column(
        "cells_replaced",
        "whether a cell had a value that no training row has, and F saw another",
        "flag",
    ),
)
#: Columns that count copies of a row, or rows made from it: in which part, by which number.
_COUNTS = (
    ("in_main", "", "source_row"),
    ("in_region", "region", "source_row"),
    ("made_from", "ga", "parent_row"),
)


def collect_rows(suite: SuiteFiles) -> pd.DataFrame:
    """Return the difficulty of every test row of every task.

    Parameters
    ----------
    suite : SuiteFiles

    Returns
    -------
    DataFrame
        The columns of :data:`ROW_COLUMNS`; a row stands once for each test fold that holds it.

    Raises
    ------
    SuiteError
        The suite is damaged.
    """
    names = [column.name for column in ROW_COLUMNS]
    tables = []
    for task, entry in suite.tasks.items():
        full = suite.amlb_task(amlb_name(task, "full"))
        for index, fold in enumerate(full.folds):
            provenance = suite.provenance(full.name, index)
            table = provenance.rename(columns={"weight": "p_fails"})
            table = table.reindex(columns=names).astype(object)
            table["task"] = task
            table["source"] = entry.origin.spec
            table["fold"] = fold
            table["is_bad"] = provenance["origin"] == "bad"
            if "substituted" in provenance:
                table["cells_replaced"] = provenance["substituted"].fillna("") != ""
            for name, suffix, key in _COUNTS:
                counts = _count_rows(suite, amlb_name(task, suffix), fold, key)
                copies = provenance["source_row"].map(counts)
                table[name] = copies.fillna(0).astype("int64")
            tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _count_rows(suite: SuiteFiles, part: str, fold: int, key: str) -> pd.Series:
    """Return how often each source row stands in a part of a fold, or is a parent there."""
    task = suite.amlb_tasks.get(part)
    if task is None or fold not in task.folds:
        return pd.Series(dtype="int64")
    return suite.provenance(part, task.folds.index(fold))[key].value_counts()


#: Columns of the tasks.
TASK_COLUMNS = (
    Column("task", "name of the task in the suite", "text"),
    Column("source", "spec of the source, such as openml/t/31", "text"),
    Column("source_url", "address of the source, where it states one", "text"),
    Column("content_hash", "sha256 of the table as it was read", "text"),
    Column("licence", "licence of the source, as it states it", "text"),
    Column("kind", "regression, binary or multiclass", "text"),
    Column("target", "name of the target in the source", "text"),
    Column("folds", "test folds", "count"),
    Column("rows", "test rows, all folds together", "count"),
    Column("source_rows", "different rows of the source among them", "count"),
    Column("bad_rows", "test rows that are failures of F", "count"),
    Column("baseline", "F: today's model", "text"),
    Column("baseline_params", "its parameters beside the defaults, as JSON", "text"),
    Column("rule", "the rule K that calls a row a failure", "text"),
    Column("alpha", "its threshold, by fold", "text"),
    Column("mean_loss", "mean loss of F over the test rows"),
    Column("region_loss", "the same, weighted by P(F fails | x)"),
    Column(
        "left_to_gain",
        "share of F's loss where it fails that the best of the certificate's candidates saves",
        unit="share",
    ),
    Column("left_to_gain_low", "lower limit of its 95 % interval", unit="share"),
    Column("left_to_gain_high", "upper limit of its 95 % interval", unit="share"),
    Column(
        "finding", "mendable, nothing to mend, or not shown; empty for none", "text"
    ),
    Column("verdict", "of the certificate; empty where there is none", "text"),
    Column("preset", "of the suite's settings", "text"),
    Column("seed", "of the suite", "count"),
    Column("hardsynth", "version that made the suite", "text"),
    Column("command", "that made the suite", "text"),
)


def collect_tasks(suite: SuiteFiles, rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each task: F, seeds and versions, and how much is left to gain.

    Parameters
    ----------
    suite : SuiteFiles
    rows : DataFrame
        As :func:`collect_rows` gives them.

    Returns
    -------
    DataFrame
        The columns of :data:`TASK_COLUMNS`.

    Raises
    ------
    SuiteError
        A damaged certificate.
    """
    certificates = read_certificates(suite)
    records = []
    manifest = suite.manifest
    for task, entry in suite.tasks.items():
        record = {
            "task": task,
            "source": entry.origin.spec,
            "source_url": entry.origin.url,
            "content_hash": entry.content_hash,
            "licence": entry.origin.licence,
            "kind": entry.kind.value,
            "target": entry.target,
            "folds": len(entry.folds),
            "preset": str(manifest.config.get("preset", "")),
            "seed": manifest.seed,
            "hardsynth": manifest.version,
            "command": manifest.command,
            **_about_baseline(suite, task, rows[rows["task"] == task]),
            **_left_to_gain(certificates.get(task)),
        }
        records.append(record)
    return pd.DataFrame(records, columns=[column.name for column in TASK_COLUMNS])


def _about_baseline(suite: SuiteFiles, task: str, rows: pd.DataFrame) -> dict[str, Any]:
    folds = suite.tasks[task].folds
    summaries = [folds[fold].summary for fold in sorted(folds)]
    rules = dict.fromkeys(str(summary.get("rule", "")) for summary in summaries)
    alphas = [
        f"{summary['alpha']:.6g}" for summary in summaries if summary.get("alpha")
    ]
    loss = rows["loss"].to_numpy(dtype=float)
    weights = rows["p_fails"].to_numpy(dtype=float)
    baseline = suite.manifest.config.get("baseline", {})
    region_loss = np.nan
    if np.isfinite(weights).all() and weights.sum() > 0:
        region_loss = float(np.average(loss, weights=weights))
    return {
        "rows": len(rows),
        "source_rows": int(rows["source_row"].nunique()),
        "bad_rows": int(rows["is_bad"].sum()),
        "baseline": str(baseline.get("model", "")),
        "baseline_params": json.dumps(baseline.get("params", {}), sort_keys=True),
        "rule": ", ".join(filter(None, rules)),
        "alpha": ", ".join(dict.fromkeys(alphas)),
        "mean_loss": float(loss.mean()),
        "region_loss": region_loss,
    }


def _left_to_gain(certificate: Certificate | None) -> dict[str, Any]:
    """Return what the certificate says of the best candidate's saving where F fails."""
    if certificate is None:
        return {"finding": "", "verdict": ""}
    record: dict[str, Any] = {"finding": "", "verdict": certificate.verdict}
    for measure in certificate.measures:
        if measure.name == "solvability":
            record |= {
                "left_to_gain": measure.value,
                "left_to_gain_low": measure.low,
                "left_to_gain_high": measure.high,
                "finding": measure.finding,
            }
    return record


# The files, and what Croissant says of them.


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
        As :func:`collect_tasks` gives them.
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
    write_tasks = partial(tasks.to_csv, index=False, lineterminator="\n")
    files = {
        "rows": (path.name, rows_digest),
        "tasks": (tasks_path.name, write_file(tasks_path, write_tasks)),
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
