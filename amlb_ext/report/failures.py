"""What F's failures look like: slices of the features, groups of failures, and their map.

All of it describes. Bad rows were chosen by F's errors, so none of it ranks models.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.core.task import Column
from amlb_ext.report.charts import ORIGINS, WORDS
from amlb_ext.report.clusters import assign_groups, describe_clusters, find_clusters
from amlb_ext.report.feature_space import FeatureSpace, project_rows
from amlb_ext.report.model import Chart, ChartSeries
from amlb_ext.report.predictions import TaskPredictions
from amlb_ext.report.slices import find_slices
from amlb_ext.suite import Suite, amlb_name
from amlb_ext.suite.coding import Coding

COLUMNS = ("task", "group", "about", "bad", "share", "ga", "synthetic", "loss_f")


@dataclass(frozen=True)
class FailureDescription:
    """What is known of a task's failures.

    Attributes
    ----------
    groups : ndarray of shape (n,), int
        The group of each row of the untouched test folds, 0 the largest; -1 for good rows.
    clusters : DataFrame
        One row per group: ``task``, ``group`` (1, 2, ...), ``about``, ``bad`` (source rows),
        ``share`` of all bad rows, ``ga`` and ``synthetic`` rows made from it, ``loss_f`` (F's
        mean loss).
    slices : DataFrame
        See :func:`amlb_ext.report.slices.find_slices`, with ``task``.
    chart : Chart or None
    """

    groups: np.ndarray
    clusters: pd.DataFrame
    slices: pd.DataFrame
    chart: Chart | None


def find_failures(
    suite: Suite, task: str, full: TaskPredictions, points: int
) -> FailureDescription:
    """Describe where F fails.

    Parameters
    ----------
    suite : Suite
    task : str
    full : Predicted
        The untouched test folds.
    points : int
        On the map at most; 0 for none.
    """
    seed, coding = suite.manifest.seed, suite.tasks[task].coding
    columns = _columns(coding)
    features, _ = _read(suite, full.name)
    source = full.rows["source_row"].to_numpy()
    bad = (full.rows["origin"] == "bad").to_numpy()
    slices = find_slices(
        features, columns, bad, source, random_stream(seed, task, "report", "slices")
    )
    slices.insert(0, "task", task)
    space = FeatureSpace().fit(features, columns)
    Z = space.transform(features)
    first = np.flatnonzero(bad)[np.unique(source[bad], return_index=True)[1]]
    labels = find_clusters(Z[first], derive_seed(seed, task, "report", "clusters") % 2**31)
    groups = np.where(bad, assign_groups(source, source[first], labels), -1)
    about = describe_clusters(features.iloc[first], columns, labels, features)
    made, made_Z = _made(suite, task, space)
    loss = full.rows["loss"].to_numpy(dtype=float)
    parents = assign_groups(made["parent_row"].to_numpy(), source[first], labels)
    rows = [
        {
            "task": task,
            "group": group + 1,
            "about": text,
            "bad": int((labels == group).sum()),
            "share": float((labels == group).mean()),
            **{o: int(((made["origin"] == o) & (parents == group)).sum()) for o in ("ga",
                                                                               "synthetic")},
            "loss_f": float(loss[groups == group].mean()),
        }
        for group, text in enumerate(about)
    ]  # fmt: skip
    chart = None
    if points > 0:
        once = np.unique(source, return_index=True)[1]
        once = np.union1d(np.setdiff1d(once, np.flatnonzero(bad)), first)
        chart = _map(task, seed, Z[once], bad[once], groups[once], made, made_Z, parents, points)
    return FailureDescription(groups, pd.DataFrame(rows, columns=list(COLUMNS)), slices, chart)


def _columns(coding: Coding) -> tuple[Column, ...]:
    kinds = {"float": "numeric", "integer": "integer"}
    return tuple(
        Column(c.name, kinds.get(c.form, "categorical"), c.categories, True)  # type: ignore[arg-type]
        for c in coding.columns
    )


def _read(suite: Suite, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return features and provenance of an AMLB task's test rows, folds stacked.

    Cells that were replaced, because no training row knows their category, are missing: what
    stands in their place says nothing about the row.
    """
    coding, features, about = suite.coding(name), [], []
    for index in range(len(suite.amlb_task(name).folds)):
        test = suite.pair(name, index)[1]
        some, origin = coding.decode(coding.read_csv(test))[0], suite.provenance(name, index)
        replaced = origin["substituted"]
        replaced = replaced[replaced.to_numpy() != ""].str.split(",").explode()
        for column in coding.columns:
            at = replaced.index[(replaced == column.written).to_numpy(dtype=bool)]
            if len(at):
                some.loc[at, column.name] = np.nan
        features.append(some)
        about.append(origin)
    return pd.concat(features, ignore_index=True), pd.concat(about, ignore_index=True)


def _made(suite: Suite, task: str, space: FeatureSpace) -> tuple[pd.DataFrame, np.ndarray]:
    """Return provenance and points of the made rows."""
    tables = [pd.DataFrame({"origin": [], "parent_row": []}).astype({"parent_row": "int64"})]
    points = []
    for suffix in ("ga", "synthetic"):
        name = amlb_name(task, suffix)
        if name in suite.amlb_tasks:
            features, about = _read(suite, name)
            points.append(space.transform(features))
            tables.append(about[["origin", "parent_row"]])
    if not points:
        return tables[0], np.empty((0, 0))
    return pd.concat(tables[1:], ignore_index=True), np.concatenate(points)


def _map(
    task: str,
    seed: int,
    Z: np.ndarray,
    bad: np.ndarray,
    groups: np.ndarray,
    made: pd.DataFrame,
    made_Z: np.ndarray,
    parents: np.ndarray,
    points: int,
) -> Chart:
    kind = np.r_[np.where(bad, "bad", "good"), made["origin"].to_numpy(dtype=object)]
    group = np.r_[groups, parents]
    everything = np.concatenate([Z, made_Z]) if len(made) else Z
    xy, chosen, method = project_rows(
        everything,
        random_stream(seed, task, "report", "map"),
        keep=kind == "bad",
        group=kind,
        most=points,
    )
    kind, group = kind[chosen], group[chosen]
    series = []
    for origin in ("good", "synthetic", "ga"):
        at = kind == origin
        if at.any():
            text = [f"{WORDS[origin]}, group {g + 1}" if g >= 0 else WORDS[origin]
                    for g in group[at]]  # fmt: skip
            series.append(
                ChartSeries(
                    WORDS[origin], "points", xy[at, 0], xy[at, 1], ORIGINS[origin], text=text
                )
            )
    most = int(group[kind == "bad"].max(initial=0))
    for number in range(most + 1):
        at = (kind == "bad") & (group == number)
        if at.any():
            name = f"bad rows, group {number + 1}" if most else "bad rows"
            series.append(
                ChartSeries(name, "points", xy[at, 0], xy[at, 1], "bad", symbol=(number + 1) % 6)
            )
    return Chart(
        f"{task}-map",
        f"Map of the rows ({method})",
        f"Near rows are alike in their features ({method} of all features). Marks of bad rows "
        "differ by group of failures.",
        "",
        "",
        tuple(series),
        bare=True,
    )
