"""What is left to gain on each task: the certificate's solvability, with its interval."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from amlb_ext.suite import SuiteFiles, amlb_name
from amlb_ext.validity import Certificate, read_certificates

# How hard each row of a source is for F: one record for each row and test fold.


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


#: Columns of the rows; each is null where the suite does not have it.
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
#: Names in the provenance of columns that are called otherwise here.
_IN_PROVENANCE = {"p_fails": "weight"}


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
    tables = []
    for task in suite.tasks:
        full = suite.amlb_task(amlb_name(task, "full"))
        for index, source_fold in enumerate(full.folds):
            tables.append(_rows_of_fold(suite, task, index, source_fold=source_fold))
    return pd.concat(tables, ignore_index=True)


def _rows_of_fold(
    suite: SuiteFiles, task: str, index: int, *, source_fold: int
) -> pd.DataFrame:
    provenance = suite.provenance(amlb_name(task, "full"), index)
    names = [column.name for column in ROW_COLUMNS]
    table = pd.DataFrame(index=provenance.index, columns=names, dtype=object)
    for name in names:
        stored = _IN_PROVENANCE.get(name, name)
        if stored in provenance:
            table[name] = provenance[stored]
    table["task"] = task
    table["source"] = suite.tasks[task].origin.spec
    table["fold"] = source_fold
    table["is_bad"] = provenance["origin"] == "bad"
    if "substituted" in provenance:
        table["cells_replaced"] = provenance["substituted"].fillna("") != ""
    rows = provenance["source_row"]
    table["in_main"] = _counts(suite, task, "", source_fold=source_fold, rows=rows)
    table["in_region"] = _counts(
        suite, task, "region", source_fold=source_fold, rows=rows
    )
    table["made_from"] = _counts(
        suite, task, "ga", source_fold=source_fold, rows=rows, key="parent_row"
    )
    return table


def _counts(
    suite: SuiteFiles,
    task: str,
    suffix: str,
    *,
    source_fold: int,
    rows: pd.Series,
    key: str = "source_row",
) -> np.ndarray:
    """Return how often each source row stands in a part of a fold, or is a parent there."""
    part = suite.amlb_tasks.get(amlb_name(task, suffix))
    if part is None or source_fold not in part.folds:
        return np.zeros(len(rows), dtype=np.int64)
    provenance = suite.provenance(part.name, part.folds.index(source_fold))
    counts = provenance[key].value_counts()
    return rows.map(counts).fillna(0).to_numpy(dtype=np.int64)


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
        As :func:`amlb_ext.difficulty.tasks.collect_rows` gives them.

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
    for task in suite.tasks:
        of_task = rows[rows["task"] == task]
        record = _about_source(suite, task)
        record |= _about_baseline(suite, task, of_task)
        record |= _left_to_gain(certificates.get(task))
        records.append(record)
    return pd.DataFrame(records, columns=[column.name for column in TASK_COLUMNS])


def _about_source(suite: SuiteFiles, task: str) -> dict[str, Any]:
    entry = suite.tasks[task]
    manifest = suite.manifest
    return {
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
    }


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
    is_weighted = np.isfinite(weights).all() and weights.sum() > 0
    return {
        "rows": len(rows),
        "source_rows": int(rows["source_row"].nunique()),
        "bad_rows": int(rows["is_bad"].sum()),
        "baseline": str(baseline.get("model", "")),
        "baseline_params": json.dumps(baseline.get("params", {}), sort_keys=True),
        "rule": ", ".join(filter(None, rules)),
        "alpha": ", ".join(dict.fromkeys(alphas)),
        "mean_loss": float(loss.mean()),
        "region_loss": float(np.average(loss, weights=weights))
        if is_weighted
        else np.nan,
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
