"""A table on disk, by its path: one task, or one for each of several targets.

The source paper (section 6) calls several targets multi-output regression. AMLB knows one target
per task, so each is a task of its own, with the same rows and folds; what binds them is
:attr:`amlb_ext.core.task.Task.group`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import ConfigError, DataError, suggest_nearest
from amlb_ext.core.files import sha256_file
from amlb_ext.core.numbers import is_numeric
from amlb_ext.core.paths import table_ending, table_stem
from amlb_ext.core.tables import default_target, make_task
from amlb_ext.core.task import Origin, Reading, TargetChoice, Task
from amlb_ext.sources.base import Source, TaskRef
from amlb_ext.sources.column_roles import apply_roles, csv_format
from amlb_ext.sources.read_table import read_table
from amlb_ext.sources.table import Table, join_folds


class FileSource(Source):
    """Tables on disk.

    ``options.target`` and ``options.kind`` say what is predicted; without a target AMLB's rule
    holds (``target`` or ``class``, else the last column). ``options.test_file`` gives the task
    one fold: the file's rows train, the test file's rows test. ``options.targets`` names several
    targets, and gives a task for each.

    Examples
    --------
    >>> FileSource().accepts("data/cars.csv", SourceConfig())
    True
    """

    name = "files"

    def accepts(self, spec: str, options: SourceConfig) -> bool:
        """Whether the spec has a table's ending."""
        # an address is no path, whatever it ends in
        return bool(table_ending(spec)) and "://" not in spec

    def refs(self, spec: str, options: SourceConfig) -> Iterator[TaskRef]:
        """Yield the one task of the file, or one for each of ``options.targets``."""
        path = Path(spec).expanduser()
        stem = table_stem(path.name)
        load_all = partial(load_file, path, spec, options)
        if not options.targets:
            yield TaskRef(stem, spec, lambda: load_all()[0])
            return
        # the file is read once, whichever target is loaded first
        load_once = cache(load_all)
        for number, target in enumerate(options.targets):
            load = partial(lambda number: load_once()[number], number)
            yield TaskRef(f"{stem}_{target}", spec, load)


def load_file(path: Path, spec: str, options: SourceConfig) -> list[Task]:
    """Read one table, with its test file if there is one, as a task for each target.

    Parameters
    ----------
    path : Path
    spec : str
        As the user typed it, kept in the task's origin.
    options : SourceConfig
        ``target``, ``targets``, ``kind`` and ``test_file`` are used.

    Returns
    -------
    list of Task
        Named after the file, with one fold when a test file is given, else none.

    Raises
    ------
    SourceError, DataError
        As :func:`~amlb_ext.sources.read_table.read_table` and
        :func:`~amlb_ext.core.tables.make_task`.
    """
    how = csv_format(options)
    table = read_table(path, how)
    # the name alone: a suite holds no folders of the machine that made it
    ids = {"file": path.name, "sha256": sha256_file(path)}
    # without a test file the pipeline makes the folds
    if options.test_file:
        test_path = Path(options.test_file).expanduser()
        table = join_folds([(table, read_table(test_path, how))])
        ids |= {"test_file": test_path.name, "test_sha256": sha256_file(test_path)}
    about: dict[str, Any] = {
        "name": table_stem(path.name),
        "kind": options.kind,
        "origin": Origin(spec, ids),
        "options": options,
    }
    if options.targets:
        return to_tasks(table, targets=options.targets, **about)
    return [table_to_task(table, target=options.target, **about)]


def table_to_task(
    table: Table,
    *,
    name: str,
    target: str | None,
    kind: str | None,
    origin: Origin,
    notes: tuple[str, ...] = (),
    options: SourceConfig | None = None,
) -> Task:
    """Make a task of a table, with AMLB's default target where none is given.

    Columns are read as ``options.read_as`` says.

    Raises
    ------
    DataError
        When there is no such column (the message lists those that are there), or as
        :func:`~amlb_ext.core.tables.make_task`.
    """
    names = list(table.frame.columns)
    if not names:
        raise DataError(
            f"{name}: {table.name} has no column", "give a table with a header"
        )
    choice: TargetChoice = "given"
    if not target:
        target = default_target(names)
        is_usual = target.lower() in ("target", "class")
        choice = "by name" if is_usual else "last column"
    options = options or SourceConfig()
    table = apply_roles(table, options, [target])
    # numbers that are to be categories are so as a target, too
    if kind is None and options.read_as.get(target) == "category":
        kind = "classification"
    return make_task(
        table.frame,
        target,
        name=name,
        kind=kind,
        types=table.types,
        categories=table.categories,
        folds=table.folds,
        origin=origin,
        notes=(*table.notes, *notes),
        reading=Reading(choice, table.named, table.dates),
        index=table.index,
    )


# Several targets, all numbers.


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
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"x": range(30), "a": range(30), "b": [k * k for k in range(30)]})
    >>> about = {"kind": None, "origin": Origin("t.csv")}
    >>> for task in to_tasks(Table("t.csv", frame), name="t", targets=("a", "b"), **about):
    ...     task.name, task.group, list(task.features)
    ('t_a', 't', ['x'])
    ('t_b', 't', ['x'])
    """
    table = apply_roles(table, options or SourceConfig(), list(targets))
    for target in targets:
        if target not in table.frame:
            raise DataError(
                f"{name}: no column {target!r} for --targets",
                suggest_nearest(target, table.frame),
            )
        values = table.frame[target]
        if not is_numeric(values):
            present = values.dropna()
            example = f", e.g. {present.iloc[0]!r}" if len(present) else ""
            raise DataError(
                f"{name}: the target {target!r} holds no numbers{example}; --targets serves "
                "regression only",
                f"leave it out of --targets, or harden it alone with --target {target}",
            )
    tasks: list[Task] = []
    for target in targets:
        others = [other for other in targets if other != target]
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
                f"one of {len(targets)} targets of {table.name}, beside {', '.join(others)}",
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
