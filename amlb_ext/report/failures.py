"""What F's failures look like: slices of the features, groups of failures, and their map.

All of it describes. Bad rows were chosen by F's errors, so none of it ranks models.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.report.charts import ORIGINS, WORDS
from amlb_ext.report.clusters import assign_groups, describe_clusters, find_clusters
from amlb_ext.report.feature_space import FeatureSpace, project_rows
from amlb_ext.report.model import Chart, ChartSeries
from amlb_ext.report.predictions import TaskPredictions, row_clusters
from amlb_ext.report.slices import search_and_judge
from amlb_ext.suite import SuiteFiles, amlb_name

COLUMNS = (
    "task",
    "group",
    "about",
    "bad",
    "share",
    "ga",
    "synthetic",
    "loss_f",
)


@dataclass(frozen=True, kw_only=True)
class FailureDescription:
    """Description of a task's failures.

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
    inside : tuple of ndarray of shape (n,), bool
        For each slice, the rows that judge it.
    chart : Chart or None
    """

    groups: np.ndarray
    clusters: pd.DataFrame
    slices: pd.DataFrame
    inside: tuple[np.ndarray, ...]
    chart: Chart | None


def find_failures(
    suite: SuiteFiles, task: str, full: TaskPredictions, points: int
) -> FailureDescription:
    """Describe where F fails.

    Parameters
    ----------
    suite : SuiteFiles
    task : str
    full : TaskPredictions
        The untouched test folds.
    points : int
        Most points of the map; 0 for no map.
    """
    seed = suite.manifest.seed
    coding = suite.tasks[task].coding
    columns = tuple(column.as_column() for column in coding.columns)
    features = _read_test_rows(suite, full.name).features
    source = full.rows["source_row"].to_numpy()
    bad = (full.rows["origin"] == "bad").to_numpy()
    # Each of the three has a random stream of its own: none depends on what another draws.
    judged = search_and_judge(
        features,
        columns,
        bad=bad,
        groups=row_clusters(full.rows),
        rng=random_stream(seed, task, "report", "slices"),
    )
    slices = judged.table
    slices.insert(0, "task", task)

    space = FeatureSpace().fit(features, columns)
    Z = space.transform(features)
    # A source row that occurs in several folds is one failure.
    bad_rows = np.flatnonzero(bad)
    bad_sources, first = np.unique(source[bad], return_index=True)
    first_bad = bad_rows[first]
    cluster_seed = derive_int_seed(seed, task, "report", "clusters")
    labels = find_clusters(Z[first_bad], cluster_seed)
    groups = assign_groups(source, bad_sources, labels)
    # The source row of a good row may be bad in another fold.
    groups[~bad] = -1
    made = _place_made_rows(suite, task, space)
    made_groups = assign_groups(made.parent_row, bad_sources, labels)

    chart = None
    if points > 0:
        # One place on the map per source row, or two where it is bad in some folds only.
        _, first_rows = np.unique(source, return_index=True)
        good_once = np.setdiff1d(first_rows, bad_rows)
        shown = np.union1d(good_once, first_bad)
        mapped = _MappedRows(
            Z=Z[shown],
            origin=np.where(bad[shown], "bad", "good"),
            group=groups[shown],
        )
        if len(made.Z):
            mapped = mapped.with_made_rows(made, made_groups)
        rng = random_stream(seed, task, "report", "map")
        chart = _map_chart(task, mapped, most=points, rng=rng)
    # What sets each group of failures apart, and what became of it.
    phrases = describe_clusters(
        features.iloc[first_bad], columns, labels=labels, features_all=features
    )
    loss_f = full.rows["loss"].to_numpy(dtype=float)
    clusters = []
    for group, phrase in enumerate(phrases):
        in_group = labels == group
        made_from_group = made.origin[made_groups == group]
        row = {
            "task": task,
            "group": group + 1,
            "about": phrase,
            "bad": int(in_group.sum()),
            "share": float(in_group.mean()),
            "ga": int((made_from_group == "ga").sum()),
            "synthetic": int((made_from_group == "synthetic").sum()),
            "loss_f": float(loss_f[groups == group].mean()),
        }
        clusters.append(row)
    return FailureDescription(
        groups=groups,
        clusters=pd.DataFrame(clusters, columns=list(COLUMNS)),
        slices=slices,
        inside=judged.inside,
        chart=chart,
    )


@dataclass(frozen=True, kw_only=True)
class _TestRows:
    """Features and provenance of an AMLB task's test rows, folds stacked."""

    features: pd.DataFrame
    provenance: pd.DataFrame


def _read_test_rows(suite: SuiteFiles, name: str) -> _TestRows:
    """Read an AMLB task's test rows.

    Cells that were replaced, because no training row knows their category, are missing: what
    stands in their place says nothing about the row.
    """
    coding = suite.coding(name)
    features_by_fold = []
    provenance_by_fold = []
    n_folds = len(suite.amlb_task(name).folds)
    for index in range(n_folds):
        _, test_file = suite.pair(name, index)
        features, _ = coding.decode(coding.read_csv(test_file))
        provenance = suite.provenance(name, index)
        # Names of replaced columns, joined by commas: one entry per cell after this.
        replaced = provenance["substituted"]
        replaced = replaced[replaced.to_numpy() != ""]
        replaced = replaced.str.split(",").explode()
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


def _place_made_rows(suite: SuiteFiles, task: str, space: FeatureSpace) -> _MadeRows:
    """Read the rows that were made from the task's failures, and place them in its space."""
    points = []
    origins = []
    parents = []
    for suffix in ("ga", "synthetic"):
        name = amlb_name(task, suffix)
        # Where F did not fail, or made rows were not asked for, there is no such AMLB task.
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

    def with_made_rows(self, made: _MadeRows, group: np.ndarray) -> _MappedRows:
        """Return these rows, followed by made ones."""
        return _MappedRows(
            Z=np.concatenate([self.Z, made.Z]),
            origin=np.concatenate([self.origin, made.origin]),
            group=np.concatenate([self.group, group]),
        )


def _map_chart(
    task: str, rows: _MappedRows, *, most: int, rng: np.random.Generator
) -> Chart:
    """Return the map of the rows; marks of bad rows differ by group."""
    xy, chosen, method = project_rows(
        rows.Z, rng, keep=rows.origin == "bad", group=rows.origin, most=most
    )
    origin = rows.origin[chosen]
    group = rows.group[chosen]
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
    # Groups of failures share the colour of bad rows and differ by their marks.
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
            symbol=(number + 1) % 6,  # 0, a circle, is that of the other rows
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
