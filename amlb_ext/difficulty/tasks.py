"""What is left to gain on each task: the certificate's solvability, with its interval."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.difficulty.rows import column
from amlb_ext.suite import SuiteFiles
from amlb_ext.validity import Certificate, read_certificates

#: Columns of the tasks.
TASK_COLUMNS = (
    column("task", "name of the task in the suite", "text"),
    column("source", "spec of the source, such as openml/t/31", "text"),
    column("source_url", "address of the source, where it states one", "text"),
    column("content_hash", "sha256 of the table as it was read", "text"),
    column("licence", "licence of the source, as it states it", "text"),
    column("kind", "regression, binary or multiclass", "text"),
    column("target", "name of the target in the source", "text"),
    column("folds", "test folds", "count"),
    column("rows", "test rows, all folds together", "count"),
    column("source_rows", "different rows of the source among them", "count"),
    column("bad_rows", "test rows that are failures of F", "count"),
    column("baseline", "F: today's model", "text"),
    column("baseline_params", "its parameters beside the defaults, as JSON", "text"),
    column("rule", "the rule K that calls a row a failure", "text"),
    column("alpha", "its threshold, by fold", "text"),
    column("mean_loss", "mean loss of F over the test rows"),
    column("region_loss", "the same, weighted by P(F fails | x)"),
    column(
        "left_to_gain",
        "share of F's loss where it fails that the best of the certificate's candidates saves",
        unit="share",
    ),
    column("left_to_gain_low", "lower limit of its 95 % interval", unit="share"),
    column("left_to_gain_high", "upper limit of its 95 % interval", unit="share"),
    column(
        "finding", "mendable, nothing to mend, or not shown; empty for none", "text"
    ),
    column("verdict", "of the certificate; empty where there is none", "text"),
    column("preset", "of the suite's settings", "text"),
    column("seed", "of the suite", "count"),
    column("hardsynth", "version that made the suite", "text"),
    column("command", "that made the suite", "text"),
)


def collect_tasks(suite: SuiteFiles, rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each task: F, seeds and versions, and how much is left to gain.

    Parameters
    ----------
    suite : SuiteFiles
    rows : DataFrame
        As :func:`amlb_ext.difficulty.rows.collect_rows` gives them.

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
