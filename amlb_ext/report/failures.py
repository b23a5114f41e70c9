"""What F's failures look like: slices of the features, groups of failures, and their map.

All of it describes. Bad rows were chosen by F's errors, so none of it ranks models.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.report.charts import ORIGINS, WORDS
from amlb_ext.report.clusters import assign_groups, describe_clusters, find_clusters
from amlb_ext.report.feature_space import FeatureSpace, project_rows
from amlb_ext.report.model import Chart, ChartSeries
from amlb_ext.report.predictions import TaskPredictions
from amlb_ext.report.slices import find_slices
from amlb_ext.suite import Suite, amlb_name

COLUMNS = ("task", "group", "about", "bad", "share", "ga", "synthetic", "loss_f")


@dataclass(frozen=True, kw_only=True)
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
    full : TaskPredictions
        The untouched test folds.
    points : int
        On the map at most; 0 for none.
    """
    seed = suite.manifest.seed
    coding = suite.tasks[task].coding
    columns = tuple(column.as_column() for column in coding.columns)
    features = _read_test_rows(suite, full.name).features
    source = full.rows["source_row"].to_numpy()
    bad = (full.rows["origin"] == "bad").to_numpy()
    slices = find_slices(
        features, columns, bad, source, random_stream(seed, task, "report", "slices")
    )
    slices.insert(0, "task", task)

    space = FeatureSpace().fit(features, columns)
    # A source row that occurs in several folds is one failure.
    bad_rows = np.flatnonzero(bad)
    first_bad = bad_rows[np.unique(source[bad], return_index=True)[1]]
    Z = space.transform(features)
    labels = find_clusters(
        Z[first_bad], derive_seed(seed, task, "report", "clusters") % 2**31
    )
    groups = np.where(bad, assign_groups(source, source[first_bad], labels), -1)
    made = _place_made_rows(suite, task, space)
    made_groups = assign_groups(made.parent_row, source[first_bad], labels)

    chart = None
    if points > 0:
        once = np.unique(source, return_index=True)[1]
        good_once = np.setdiff1d(once, bad_rows)
        shown = np.union1d(good_once, first_bad)
        origin = np.where(bad[shown], "bad", "good")
        mapped = _MappedRows(
            Z=np.concatenate([Z[shown], made.Z]) if len(made.Z) else Z[shown],
            origin=np.concatenate([origin, made.origin]),
            group=np.concatenate([groups[shown], made_groups]),
        )
        chart = _map_chart(
            task, mapped, points, random_stream(seed, task, "report", "map")
        )
    phrases = describe_clusters(features.iloc[first_bad], columns, labels, features)
    loss_f = full.rows["loss"].to_numpy(dtype=float)
    clusters = []
    for group, phrase in enumerate(phrases):
        is_made_from = made_groups == group
        row = {
            "task": task,
            "group": group + 1,
            "about": phrase,
            "bad": int((labels == group).sum()),
            "share": float((labels == group).mean()),
            "ga": int(((made.origin == "ga") & is_made_from).sum()),
            "synthetic": int(((made.origin == "synthetic") & is_made_from).sum()),
            "loss_f": float(loss_f[groups == group].mean()),
        }
        clusters.append(row)
    return FailureDescription(
        groups=groups,
        clusters=pd.DataFrame(clusters, columns=list(COLUMNS)),
        slices=slices,
        chart=chart,
    )


@dataclass(frozen=True, kw_only=True)
class _TestRows:
    """Features and provenance of an AMLB task's test rows, folds stacked."""

    features: pd.DataFrame
    provenance: pd.DataFrame


def _read_test_rows(suite: Suite, name: str) -> _TestRows:
    """Read an AMLB task's test rows.

    Cells that were replaced, because no training row knows their category, are missing: what
    stands in their place says nothing about the row.
    """
    coding = suite.coding(name)
    features_by_fold, provenance_by_fold = [], []
    for index in range(len(suite.amlb_task(name).folds)):
        test_file = suite.pair(name, index)[1]
        features = coding.decode(coding.read_csv(test_file))[0]
        provenance = suite.provenance(name, index)
        # Names of replaced columns, joined by commas: one entry per cell after this.
        replaced = provenance["substituted"]
        replaced = replaced[replaced.to_numpy() != ""].str.split(",").explode()
        for column in coding.columns:
            is_replaced = (replaced == column.written).to_numpy(dtype=bool)
            rows = replaced.index[is_replaced]
            if len(rows):
                features.loc[rows, column.name] = np.nan
        features_by_fold.append(features)
        provenance_by_fold.append(provenance)
    return _TestRows(
        features=pd.concat(features_by_fold, ignore_index=True),
        provenance=pd.concat(provenance_by_fold, ignore_index=True),
    )


@dataclass(frozen=True, kw_only=True)
class _MadeRows:
    """Augmented and synthetic rows: points, ``ga`` or ``synthetic``, and the row they came from."""

    Z: np.ndarray
    origin: np.ndarray
    parent_row: np.ndarray


def _place_made_rows(suite: Suite, task: str, space: FeatureSpace) -> _MadeRows:
    points, origins, parents = [], [], []
    for suffix in ("ga", "synthetic"):
        name = amlb_name(task, suffix)
        if name in suite.amlb_tasks:
            rows = _read_test_rows(suite, name)
            points.append(space.transform(rows.features))
            origins.append(rows.provenance["origin"].to_numpy(dtype=object))
            parents.append(rows.provenance["parent_row"].to_numpy())
    if not points:
        return _MadeRows(
            Z=np.empty((0, 0)),
            origin=np.empty(0, dtype=object),
            parent_row=np.empty(0, dtype=int),
        )
    return _MadeRows(
        Z=np.concatenate(points),
        origin=np.concatenate(origins),
        parent_row=np.concatenate(parents),
    )


@dataclass(frozen=True, kw_only=True)
class _MappedRows:
    """Rows of the map: points, kinds of rows, and groups of failures (-1 for none)."""

    Z: np.ndarray
    origin: np.ndarray
    group: np.ndarray


def _map_chart(
    task: str, rows: _MappedRows, most: int, rng: np.random.Generator
) -> Chart:
    """Return the map of the rows; marks of bad rows differ by group."""
    xy, chosen, method = project_rows(
        rows.Z, rng, keep=rows.origin == "bad", group=rows.origin, most=most
    )
    origin, group = rows.origin[chosen], rows.group[chosen]
    series = []
    for kind in ("good", "synthetic", "ga"):  # bad rows come last: they lie on top
        is_kind = origin == kind
        if not is_kind.any():
            continue
        texts = []
        for row_group in group[is_kind]:
            suffix = f", group {row_group + 1}" if row_group >= 0 else ""
            texts.append(WORDS[kind] + suffix)
        marks = ChartSeries(
            name=WORDS[kind],
            kind="points",
            x=xy[is_kind, 0],
            y=xy[is_kind, 1],
            role=ORIGINS[kind],
            text=texts,
        )
        series.append(marks)
    is_bad = origin == "bad"
    largest = int(group[is_bad].max(initial=0))
    for number in range(largest + 1):
        in_group = is_bad & (group == number)
        if not in_group.any():
            continue
        marks = ChartSeries(
            name=f"bad rows, group {number + 1}" if largest else "bad rows",
            kind="points",
            x=xy[in_group, 0],
            y=xy[in_group, 1],
            role="bad",
            symbol=(number + 1) % 6,
        )
        series.append(marks)
    return Chart(
        key=f"{task}-map",
        title=f"Map of the rows ({method})",
        about=f"Near rows are alike in their features ({method} of all features). Marks of bad "
        "rows differ by group of failures.",
        x_label="",
        y_label="",
        series=tuple(series),
        bare=True,
    )
