"""Where F fails, in words: slices of the features in which it fails more often than elsewhere.

They describe. Bad rows were chosen by F's errors, so none of this ranks models.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from amlb_ext.core.rng import random_stream
from amlb_ext.report.predictions import TaskPredictions, row_clusters
from amlb_ext.report.slices import JudgedSlices, search_and_judge
from amlb_ext.suite import SuiteFiles


def find_failures(suite: SuiteFiles, task: str, full: TaskPredictions) -> JudgedSlices:
    """Describe where F fails on the untouched test folds of a task.

    Parameters
    ----------
    suite : SuiteFiles
    task : str
    full : TaskPredictions
        The untouched test folds.

    Returns
    -------
    JudgedSlices
        Its table begins with the column ``task``.
    """
    columns = tuple(column.as_column() for column in suite.tasks[task].coding.columns)
    judged = search_and_judge(
        _read_features(suite, full.name),
        columns,
        bad=(full.rows["origin"] == "bad").to_numpy(),
        groups=row_clusters(full.rows),
        rng=random_stream(suite.manifest.seed, task, "report", "slices"),
    )
    judged.table.insert(0, "task", task)
    return judged


def _read_features(suite: SuiteFiles, name: str) -> pd.DataFrame:
    """Read the features of an AMLB task's test rows, folds stacked.

    Cells that were replaced, because no training row knows their category, are missing: what
    stands in their place says nothing about the row.
    """
    coding = suite.coding(name)
    features_by_fold = []
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
    return pd.concat(features_by_fold, ignore_index=True)
