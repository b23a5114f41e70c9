"""Folds for sources that have none: repeated random splits, stratified by class.

The paper (section 5) uses 31 random splits of 8:2.
"""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from amlb_ext.core.config import SplitConfig
from amlb_ext.core.rng import int_seed, stream
from amlb_ext.core.task import Fold, Task


def split_task(task: Task, config: SplitConfig, seed: int) -> Task:
    """Return the task with folds; its own are kept.

    Classes with a single row always stay in the training part, since neither AMLB nor F can
    score a label that was never seen.

    Parameters
    ----------
    task : Task
    config : SplitConfig
    seed : int
        The user's seed; the stream is keyed by the task's name, or by its group's, whose tasks
        so have the same folds.

    Returns
    -------
    Task

    Examples
    --------
    >>> import pandas as pd
    >>> from amlb_ext.core.tables import make_task
    >>> table = pd.DataFrame({"x": range(40), "y": [0, 1] * 20})
    >>> task = split_task(make_task(table, "y", name="t"), SplitConfig(folds=3), seed=1)
    >>> [len(fold.test) for fold in task.folds]
    [8, 8, 8]
    """
    if task.folds:
        return task
    rng = stream(seed, task.stream_name, "split")
    rows = np.arange(len(task))
    alone = np.zeros(len(task), dtype=bool)
    if task.kind.is_classification:
        codes = task.target.cat.codes.to_numpy()
        counts = np.bincount(codes, minlength=len(task.labels))
        alone = counts[codes] < 2
    free = rows[~alone]
    size = max(1, round(config.test_size * len(task)))
    splitter_class = ShuffleSplit
    if task.kind.is_classification and len(np.unique(codes[free])) <= min(size, len(free) - size):
        splitter_class = StratifiedShuffleSplit
    splitter = splitter_class(config.folds, test_size=size, random_state=int_seed(rng))
    strata = codes[free] if task.kind.is_classification else None
    folds = []
    for train, test in splitter.split(free, strata):
        kept = np.sort(np.concatenate([free[train], rows[alone]]))
        folds.append(Fold(kept.astype(np.int64), np.sort(free[test]).astype(np.int64)))
    return task.with_folds(tuple(folds))
