"""A table with several targets, all numbers: one task for each, with the same rows and folds.

The source paper (section 6) calls this multi-output regression. AMLB knows one target per task, so
each target is a task of its own; what binds them is :attr:`amlb_ext.core.task.Task.group`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import ConfigError, DataError, suggest_nearest
from amlb_ext.core.numbers import is_numeric
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Origin, Reading, Task
from amlb_ext.sources.column_roles import apply_roles
from amlb_ext.sources.table import Table


def check_targets(options: SourceConfig) -> None:
    """Raise early for targets that no table could have.

    Raises
    ------
    ConfigError
        A single target, one named twice, ``target`` beside ``targets``, or a kind other than
        regression.

    Examples
    --------
    >>> check_targets(SourceConfig(targets=("price",)))
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ConfigError: --targets names a single column, 'price' (name several, or \
use --target price)
    """
    targets = options.targets
    if not targets:
        return
    if options.target:
        raise ConfigError(
            f"--target {options.target} and --targets {' '.join(targets)} were both given",
            "--target names one column, --targets several: use one of the two",
        )
    if len(targets) == 1:
        raise ConfigError(
            f"--targets names a single column, {targets[0]!r}",
            f"name several, or use --target {targets[0]}",
        )
    for name in targets:
        if targets.count(name) > 1:
            raise ConfigError(
                f"--targets names {name!r} twice", "name every column once"
            )
    if options.kind not in (None, "regression"):
        raise ConfigError(
            f"--targets serves regression only, and --kind {options.kind} was given",
            "leave --kind out, or name one class column with --target",
        )


def to_tasks(
    table: Table,
    *,
    name: str,
    targets: Sequence[str],
    kind: str | None,
    origin: Origin,
    options: SourceConfig | None = None,
) -> list[Task]:
    """Make a task of each target; no target is a feature of another.

    Rows that lack any of the targets are dropped from all tasks.

    Parameters
    ----------
    table : Table
    name : str
        Of the group; the tasks are called ``<name>_<target>``.
    targets : sequence of str
        At least two, see :func:`check_targets`.
    kind : str, optional
        ``regression`` also takes a column of two numbers, which otherwise are classes.
    origin : Origin
    options : SourceConfig, optional
        Columns are read as its ``read_as`` says.

    Raises
    ------
    DataError
        An unknown target, one that is no number, a table without features, or as
        :func:`~amlb_ext.core.tables.make_task`.

    Examples
    --------
    >>> frame = pd.DataFrame({"x": range(30), "a": range(30), "b": [k * k for k in range(30)]})
    >>> about = {"kind": None, "origin": Origin("t.csv")}
    >>> for task in to_tasks(Table("t.csv", frame), name="t", targets=("a", "b"), **about):
    ...     task.name, task.group, list(task.features)
    ('t_a', 't', ['x'])
    ('t_b', 't', ['x'])
    """
    table = apply_roles(table, options or SourceConfig(), list(targets))
    columns = list(table.frame.columns)
    for target in targets:
        if target not in columns:
            raise DataError(
                f"{name}: no column {target!r} for --targets",
                suggest_nearest(target, columns),
            )
        _check_numbers(table.frame[target], name)
    tasks: list[Task] = []
    for target in targets:
        others = [other for other in targets if other != target]
        listed_others = ", ".join(others)
        task = make_task(
            table.frame,
            target,
            name=f"{name}_{target}",
            kind=kind,
            types=table.types,
            categories=table.categories,
            folds=table.folds,
            origin=origin,
            notes=(
                *table.notes,
                f"one of {len(targets)} targets of {table.name}, beside {listed_others}",
            ),
            # the other targets are no features, and a row that lacks one of them is dropped
            beside=others,
            reading=Reading("given", table.named, table.dates),
            index=table.index,
        )
        if task.kind.is_classification:
            raise DataError(
                f"{name}: the target {target!r} has two values and was taken for classes, but "
                "--targets serves regression only",
                "add --kind regression to take it as a number",
            )
        # All tasks share one table, in memory and in what is sent to a worker.
        features = tasks[0].features if tasks else task.features
        tasks.append(replace(task, group=name, features=features))
    return tasks


def _check_numbers(values: pd.Series, name: str) -> None:
    if is_numeric(values):
        return
    present = values.dropna()
    example = f", e.g. {present.iloc[0]!r}" if len(present) else ""
    raise DataError(
        f"{name}: the target {values.name!r} holds no numbers{example}; --targets serves "
        "regression only",
        f"leave it out of --targets, or harden it alone with --target {values.name}",
    )
