"""Folds of a task, and parts of a fold's training rows.

Folds are repeated random splits, stratified by class, for sources that have none; the paper
(section 5) uses 31 random splits of 8:2. A source with folds of its own, as an OpenML task, keeps
them, or the first so many of them.

Rows with groups or times (:mod:`amlb_ext.core.row_order`) are split so that groups stay together
and nothing is learnt from later rows. Random folds let a model see the neighbours of what it is
tested on, and flatter it. With an order

* the folds of a table test the last rows in blocks, each by a model of all rows before it; or
  random groups, each by a model of the others;
* within the training rows of a fold, F and the oracle are cross-fitted in the same way, and so are
  K's threshold and the region, which are learnt from what cross-fitting says. The oldest third has
  nothing before it to be learnt from, so it is learnt from and never judged.

Both at once are strict: what is learnt from is older, *and* of no group that is tested on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

from amlb_ext.core.errors import DataError
from amlb_ext.core.rng import draw_int_seed, random_stream
from amlb_ext.core.row_order import RowOrder
from amlb_ext.core.task import Fold, Task
from amlb_ext.sources.reading import describe_target_texts

if TYPE_CHECKING:
    from amlb_ext.core.config import SplitConfig

#: Random splits of a source without folds, unless the user asks for another number.
DEFAULT_FOLDS = 5

#: Parts that the training rows of a fold are dealt into for cross-fitting, each left out once.
PARTS = 5

#: Tasks that are hardened together: one, or those of a table with several targets.
Tasks = tuple[Task, ...]
#: Positions to fit on and positions to predict, once per part: what scikit-learn calls ``cv``.
CvSplits = Sequence[tuple[np.ndarray, np.ndarray]]


def group_tasks(tasks: Sequence[Task]) -> list[Tasks]:
    """Return the tasks of each group together, the others alone, in order.

    Examples
    --------
    >>> from types import SimpleNamespace as T
    >>> tasks = [T(name="a"), T(name="t_x", group="t"), T(name="t_y", group="t")]
    >>> tasks[0].group = ""
    >>> [[task.name for task in group] for group in group_tasks(tasks)]
    [['a'], ['t_x', 't_y']]
    """
    groups: dict[tuple[str, str], list[Task]] = {}
    for task in tasks:
        # A task without a group is a group of one, under its own name.
        key = (task.group, "") if task.group else ("", task.name)
        groups.setdefault(key, []).append(task)
    return [tuple(group) for group in groups.values()]


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
    >>> from amlb_ext.core.config import SplitConfig
    >>> import pandas as pd
    >>> from amlb_ext.core.tables import make_task
    >>> table = pd.DataFrame({"x": range(40), "y": [0, 1] * 20})
    >>> task = split_task(make_task(table, "y", name="t"), SplitConfig(folds=3), seed=1)
    >>> [len(fold.test) for fold in task.folds]
    [8, 8, 8]
    """
    order = task.order if task.order is not None and task.order.splits else None
    if task.folds:
        if order is not None:
            is_asked_for = bool(config.time or config.group)
            check_folds(task, order, is_asked_for=is_asked_for)
        return _first_folds(task, config.folds)
    n_folds = DEFAULT_FOLDS if config.folds is None else config.folds
    # the tasks of a group share this name, and so their folds
    fold_seed = draw_int_seed(random_stream(seed, task.stream_name, "split"))
    if order is not None:
        return task.with_folds(
            ordered_folds(task, order, n_folds, config.test_size, fold_seed)
        )
    # the strata: class codes, or one stratum for a regression
    strata = np.zeros(len(task), dtype=int)
    is_alone = np.zeros(len(task), dtype=bool)
    if task.kind.is_classification:
        strata = task.target.cat.codes.to_numpy()
        is_alone = np.bincount(strata)[strata] < 2
    alone = np.flatnonzero(is_alone)
    free = np.flatnonzero(~is_alone)
    strata = strata[free]

    n_test = max(1, round(config.test_size * len(task)))
    n_train = len(free) - n_test
    left = len(task) - n_test
    if left < max(FEWEST_ROWS, LEAST_TRAINED * len(task)):
        raise DataError(
            f"{task.name}: {left} rows are left to learn from for {n_test} test rows",
            "give a smaller --test-size",
        )
    if n_train < 1:
        # a target such as an id, of which hardly any class has two rows
        remedy = "name another column with --target"
        looks = describe_target_texts(task)
        if looks.startswith("dates"):
            remedy += "; or write these dates as numbers, e.g. of days"
        elif looks:
            remedy += f"; or are these {looks}"
        raise DataError(
            f"{task.name}: the target {task.target_name!r} has {len(task.labels)} classes in "
            f"{len(task)} rows; {len(alone)} rows are alone in their class, so there are no "
            f"{n_test} rows to test on",
            remedy,
        )
    # each class needs a row on either side, or scikit-learn refuses to stratify
    can_stratify = len(np.unique(strata)) <= min(n_test, n_train)
    stratifies = task.kind.is_classification and can_stratify
    splitter_class = StratifiedShuffleSplit if stratifies else ShuffleSplit
    splitter = splitter_class(n_folds, test_size=n_test, random_state=fold_seed)
    folds = []
    for train, test in splitter.split(free, strata):
        train_rows = np.sort(np.concatenate([free[train], alone]))
        test_rows = np.sort(free[test])
        folds.append(Fold(train_rows.astype(np.int64), test_rows.astype(np.int64)))
    split = task.with_folds(tuple(folds))
    if config.folds is None or config.folds >= DEFAULT_FOLDS:
        return split
    tested = np.unique(np.concatenate([fold.test for fold in folds]))
    note = f"--folds {config.folds}: {_power_text(len(tested), len(task))}"
    return dataclasses.replace(split, notes=(*split.notes, note))


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
        tested = sum(len(fold.test) for fold in task.folds[:wanted])
        total = sum(len(fold.test) for fold in task.folds)
        note += (
            f"of which --folds {wanted} takes the first {wanted}: "
            f"{_power_text(tested, total)}"
        )
    return dataclasses.replace(
        task, folds=task.folds[:wanted], notes=(*task.notes, note)
    )


def _power_text(tested: int, total: int) -> str:
    """Return what fewer test rows can show, beside all rows.

    Standard errors go with the root of the number of rows.
    """
    return (
        f"{tested:,} of {total:,} rows are tested, so a change must be "
        f"{np.sqrt(total / tested):.1f} times as large to be shown as on all of them"
    )


def cross_folds(
    y: np.ndarray,
    n_classes: int,
    parts: int,
    seed: int,
    order: RowOrder | None = None,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (train, held-out) positions, stratified where each class has a row for each part.

    Rows with an order are split as :func:`~amlb_ext.hardening.split.ordered_parts` says;
    forward in time the oldest of them are never held out.

    Examples
    --------
    >>> [len(held) for _, held in cross_folds(np.arange(10) % 2, 2, 5, seed=0)]
    [2, 2, 2, 2, 2]
    """
    if order is not None and order.splits:
        return ordered_parts(y, n_classes, parts, seed, order)
    return _random_parts(y, n_classes, min(parts, len(y)), seed)


def _random_parts(
    y: np.ndarray,
    n_classes: int,
    parts: int,
    seed: int,
    groups: np.ndarray | None = None,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return random (train, held-out) positions, groups whole where there are any."""
    plain, stratified = KFold, StratifiedKFold
    if groups is not None:
        plain, stratified = GroupKFold, StratifiedGroupKFold
    _, class_sizes = np.unique(y, return_counts=True)
    has_each_class = n_classes and class_sizes.min() >= parts
    splitter_class = stratified if has_each_class else plain
    # scikit-learn takes seeds of 31 bits
    splitter = splitter_class(parts, shuffle=True, random_state=seed % 2**31)
    # splitters look at the number of rows, not at what is in them
    no_features = np.zeros(len(y))
    return list(splitter.split(no_features, y, groups))


def judged_rows(parts: CvSplits) -> np.ndarray:
    """Return the positions that some part holds out, ascending.

    Examples
    --------
    >>> judged_rows([(np.array([0]), np.array([2])), (np.array([0, 2]), np.array([1]))]).tolist()
    [1, 2]
    """
    return np.sort(np.concatenate([held for _, held in parts]))


# Splits of rows with groups or times.


#: Share of the rows that folds forward in time test on at most, all folds together.
MOST_TESTED = 0.5
#: Share of the training rows, the oldest, that are learnt from only.
OLDEST = 1 / 3
#: Fewer rows than this teach no model.
FEWEST_ROWS = 10
#: A fold that learns from a smaller share of the table is no fold of it.
LEAST_TRAINED = 0.1


def ordered_folds(
    task: Task, order: RowOrder, folds: int, test_size: float, seed: int
) -> tuple[Fold, ...]:
    """Return folds of a table whose rows have an order.

    Parameters
    ----------
    task : Task
    order : RowOrder
        Of its rows.
    folds : int
    test_size : float
        Share of the rows that each fold tests on at most; forward in time all folds together test
        on half of the rows at most.
    seed : int
        Of random groups.

    Raises
    ------
    DataError
        Too few times or groups.
    """
    tests: Sequence[np.ndarray]
    if order.time is not None:
        share = min(test_size, MOST_TESTED / folds)
        tests = _blocks(order.time, oldest=1 - share * folds, n_blocks=folds)
    else:
        tests = _random_groups(task, order, folds, test_size, seed)
    made = []
    for test in tests:
        train = np.flatnonzero(order.may_teach(test))
        if len(train) < max(FEWEST_ROWS, LEAST_TRAINED * len(task)):
            remedy = "give a smaller --gap" if order.gap else "give more rows"
            if order.time is not None and order.group is not None:
                remedy = (
                    "groups that last over all times leave nothing to learn from: leave --group "
                    "or --time out"
                )
            raise DataError(
                f"{task.name}: {len(train)} rows are left to learn from for {len(test)} test "
                f"rows ({order.text})",
                remedy,
            )
        made.append(Fold(train.astype(np.int64), np.sort(test).astype(np.int64)))
    if len(made) < folds:
        times = len(np.unique(order.time)) if order.time is not None else 0
        raise DataError(
            f"{task.name}: {times} different times are too few for {folds} folds forward in time",
            f"--folds {max(1, len(made))}",
        )
    return tuple(made)


def check_folds(task: Task, order: RowOrder, *, is_asked_for: bool = True) -> None:
    """Refuse a source's own folds where they mix what the order keeps apart.

    Parameters
    ----------
    task : Task
    order : RowOrder
        Of its rows.
    is_asked_for : bool
        Whether the user named the columns of the order; else the source did.

    Raises
    ------
    DataError
    """
    flags, faults = [], []
    if order.time is not None:
        flags.append(f"--time {order.time_name}")
        faults.append(f"not older than the test rows ({order.time_name!r})")
    if order.group is not None:
        flags.append(f"--group {order.group_name}")
        faults.append(f"of groups of the test rows ({order.group_name!r})")
    words = " and ".join(flags)
    remedy = (
        f"give the rows as one table with {words}, which makes folds that keep to it"
    )
    if is_asked_for:
        remedy += f", or leave {words} out"
    for number, fold in enumerate(task.folds):
        n_wrong = int((~order.may_teach(fold.test)[fold.train]).sum())
        if n_wrong:
            raise DataError(
                f"{task.name}: the source has folds of its own, and in fold {number} {n_wrong} of "
                f"{len(fold.train)} training rows are {', or '.join(faults)}",
                remedy,
            )


def ordered_parts(
    y: np.ndarray, n_classes: int, parts: int, seed: int, order: RowOrder
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (train, held-out) positions that keep to an order.

    By groups alone every row is held out once. Forward in time the oldest rows never are.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Class codes, for parts alike in classes where groups allow it.
    n_classes : int
        0 for regression.
    parts : int
    seed : int
    order : RowOrder
        Of these rows.

    Raises
    ------
    DataError
        No part has rows to learn from.

    Examples
    --------
    >>> order = RowOrder(time=np.arange(60.0), gap=2)
    >>> for train, held in ordered_parts(np.zeros(60), 0, 2, 0, order):
    ...     print(train.max(), held.min(), held.max())
    18 20 39
    38 40 59
    """
    held_parts: list[np.ndarray] = []
    if order.time is not None:
        held_parts = _blocks(order.time, oldest=OLDEST, n_blocks=parts)
    else:
        assert order.group is not None
        # whole groups, alike in classes where that can be
        n_parts = min(parts, len(np.unique(order.group)))
        # of one group nothing can be learnt elsewhere
        if n_parts > 1:
            random_parts = _random_parts(y, n_classes, n_parts, seed, order.group)
            # with few groups a part may be left without any
            held_parts = [held for _, held in random_parts if len(held)]
    splits = []
    for held in held_parts:
        train = np.flatnonzero(order.may_teach(held))
        # what has nothing to learn from is not judged
        if len(train) >= FEWEST_ROWS:
            splits.append((train, np.sort(held)))
    if not splits:
        raise DataError(
            f"of {len(y)} training rows none can be predicted by a model of other rows "
            f"({order.text})",
            "give more rows, more times or groups, or a smaller --gap",
        )
    return splits


def blocks_left_out(
    order: RowOrder, n_blocks: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (kept, left-out) positions, with one block of time left out in turn.

    For the re-fits of a null control, which stand for F itself: what was learnt from five sixths
    of the years is F's like, what was learnt from the first year is not.

    Examples
    --------
    >>> kept, left_out = blocks_left_out(RowOrder(time=np.arange(10.0)), 5)[0]
    >>> left_out.tolist(), len(kept)
    ([0, 1], 8)
    """
    assert order.time is not None
    everything = np.arange(len(order.time))
    blocks = _blocks(order.time, oldest=0.0, n_blocks=n_blocks)
    return [(np.setdiff1d(everything, block), np.sort(block)) for block in blocks]


def _blocks(time: np.ndarray, *, oldest: float, n_blocks: int) -> list[np.ndarray]:
    """Return blocks of rows of about one size, in the order of time, behind the oldest share.

    Rows of one time are never parted, so there may be fewer blocks.
    """
    in_order = np.argsort(time, kind="stable")
    sorted_times = time[in_order]
    n = len(time)
    starts = np.linspace(oldest * n, n, n_blocks + 1)[:-1]
    positions = np.minimum(np.rint(starts).astype(int), n - 1)
    # a block starts with the first row of its time
    first_rows = np.searchsorted(sorted_times, sorted_times[positions], side="left")
    if oldest > 0:
        # the first time has nothing before it: its block starts with the second
        second = np.searchsorted(sorted_times, sorted_times[0], side="right")
        first_rows = np.maximum(first_rows, second)
    edges = [*np.unique(first_rows[first_rows < n]), n]
    return [in_order[start:end] for start, end in pairwise(edges)]


def _random_groups(
    task: Task, order: RowOrder, folds: int, test_size: float, seed: int
) -> Sequence[np.ndarray]:
    """Return the rows of random groups, for each fold."""
    assert order.group is not None
    n_groups = len(np.unique(order.group))
    n_test = max(1, round(test_size * n_groups))
    if n_test >= n_groups:
        raise DataError(
            f"{task.name}: {n_groups} groups are too few to test on {test_size:.0%} of them",
            "give more groups, or a smaller --test-size",
        )
    splitter = GroupShuffleSplit(folds, test_size=n_test, random_state=seed)
    # splitters look at the number of rows, not at what is in them
    no_features = np.zeros(len(task))
    splits = splitter.split(no_features, groups=order.group)
    return [test for _, test in splits]
