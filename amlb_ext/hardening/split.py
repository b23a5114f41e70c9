"""Folds of a task, and parts of a fold's training rows.

Folds are repeated random splits, stratified by class, for sources that have none; the paper
(section 5) uses 31 random splits of 8:2. A source with folds of its own, as an OpenML task, keeps
them, or the first so many of them. Rows with groups or times are split as
:mod:`amlb_ext.hardening.ordered_split` says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from sklearn.model_selection import (
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

from amlb_ext.core.config import DEFAULT_FOLDS, SplitConfig
from amlb_ext.core.errors import DataError
from amlb_ext.core.rng import draw_int_seed, random_stream
from amlb_ext.core.row_order import RowOrder
from amlb_ext.core.task import Fold, Task
from amlb_ext.hardening.ordered_split import (
    check_folds,
    ordered_folds,
    ordered_parts,
)
from amlb_ext.sources.reading import describe_target_texts

#: Parts that the training rows of a fold are dealt into for cross-fitting, each left out once.
PARTS = 5

#: Positions to fit on and positions to predict, once per part: what scikit-learn calls ``cv``.
CvSplits = Sequence[tuple[np.ndarray, np.ndarray]]


def split_task(task: Task, config: SplitConfig, seed: int) -> Task:
    """Return the task with folds; of its own ones as many as asked for, the first.

    Where ``config.folds`` says anything about folds of the task's own, a note of the task says
    what became of it.

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

    Raises
    ------
    DataError
        Too few rows whose class has a second row; too few times or groups; or folds of the
        source's own that mix them.

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
        if task.order is not None and task.order.splits:
            is_asked_for = bool(config.time or config.group)
            check_folds(task, task.order, is_asked_for=is_asked_for)
        return _first_folds(task, config.folds)
    # the tasks of a group share this name, and so their folds
    rng = random_stream(seed, task.stream_name, "split")
    if task.order is not None and task.order.splits:
        folds_in_order = ordered_folds(
            task,
            task.order,
            folds=DEFAULT_FOLDS if config.folds is None else config.folds,
            test_size=config.test_size,
            seed=draw_int_seed(rng),
        )
        return task.with_folds(folds_in_order)
    # the strata: class codes, or one stratum for a regression
    strata = np.zeros(len(task), dtype=int)
    is_alone = np.zeros(len(task), dtype=bool)
    if task.kind.is_classification:
        strata = task.target.cat.codes.to_numpy()
        class_sizes = np.bincount(strata)
        is_alone = class_sizes[strata] < 2
    alone = np.flatnonzero(is_alone)
    free = np.flatnonzero(~is_alone)
    strata = strata[free]

    n_test = max(1, round(config.test_size * len(task)))
    n_train = len(free) - n_test
    if n_train < 1:
        raise _lonely_classes_error(task, n_alone=len(alone), n_test=n_test)
    # each class needs a row on either side, or scikit-learn refuses to stratify
    can_stratify = len(np.unique(strata)) <= min(n_test, n_train)
    splitter_class = ShuffleSplit
    if task.kind.is_classification and can_stratify:
        splitter_class = StratifiedShuffleSplit
    splitter = splitter_class(
        DEFAULT_FOLDS if config.folds is None else config.folds,
        test_size=n_test,
        random_state=draw_int_seed(rng),
    )
    folds = []
    for train, test in splitter.split(free, strata):
        train_rows = np.concatenate([free[train], alone])
        train_rows = np.sort(train_rows).astype(np.int64)
        test_rows = np.sort(free[test]).astype(np.int64)
        folds.append(Fold(train_rows, test_rows))
    return task.with_folds(tuple(folds))


def _lonely_classes_error(task: Task, *, n_alone: int, n_test: int) -> DataError:
    """Return the error of a target such as an id, of which hardly any class has two rows."""
    remedy = "name another column with --target"
    looks = describe_target_texts(task)
    if looks:
        remedy += f"; or are these {looks}"
    return DataError(
        f"{task.name}: the target {task.target_name!r} has {len(task.labels)} classes in "
        f"{len(task)} rows; {n_alone} rows are alone in their class, so there are no {n_test} rows "
        "to test on",
        remedy,
    )


def _first_folds(task: Task, wanted: int | None) -> Task:
    """Return the task with the first of its own folds, and a note where a number was named."""
    available = len(task.folds)
    if wanted is None or wanted == available:
        return task
    plural = "" if available == 1 else "s"
    note = f"the source has {available} fold{plural} of its own, "
    if wanted > available:
        note += f"fewer than --folds {wanted} asks for: all are used"
    else:
        note += f"of which --folds {wanted} takes the first {wanted}"
    return dataclasses.replace(
        task,
        folds=task.folds[:wanted],
        notes=(*task.notes, note),
    )


def cross_folds(
    y: np.ndarray,
    n_classes: int,
    parts: int,
    seed: int,
    order: RowOrder | None = None,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (train, held-out) positions, stratified where each class has a row for each part.

    Rows with an order are split as :func:`~amlb_ext.hardening.ordered_split.ordered_parts` says;
    forward in time the oldest of them are never held out.

    Examples
    --------
    >>> [len(held) for _, held in cross_folds(np.arange(10) % 2, 2, 5, seed=0)]
    [2, 2, 2, 2, 2]
    """
    if order is not None and order.splits:
        return ordered_parts(y, n_classes, parts, seed, order)
    parts = min(parts, len(y))
    _, class_sizes = np.unique(y, return_counts=True)
    splitter_class = KFold
    if n_classes and class_sizes.min() >= parts:
        splitter_class = StratifiedKFold
    # scikit-learn takes seeds of 31 bits
    splitter = splitter_class(parts, shuffle=True, random_state=seed % 2**31)
    # splitters look at the number of rows, not at what is in them
    no_features = np.zeros(len(y))
    return list(splitter.split(no_features, y))


def judged_rows(parts: CvSplits) -> np.ndarray:
    """Return the positions that some part holds out, ascending.

    Examples
    --------
    >>> judged_rows([(np.array([0]), np.array([2])), (np.array([0, 2]), np.array([1]))]).tolist()
    [1, 2]
    """
    return np.sort(np.concatenate([held for _, held in parts]))
