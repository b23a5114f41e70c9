"""A table on disk, by its path."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import DataError
from amlb_ext.core.files import sha256_file
from amlb_ext.core.paths import table_ending, table_stem
from amlb_ext.core.tables import default_target, make_task
from amlb_ext.core.task import Origin, Reading, TargetChoice, Task
from amlb_ext.sources.base import Source, TaskRef
from amlb_ext.sources.column_roles import apply_roles, csv_format
from amlb_ext.sources.read_table import read_table
from amlb_ext.sources.table import Table, join_folds
from amlb_ext.sources.targets import to_tasks


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
    table, ids = _read_files(path, options)
    about: dict[str, Any] = {
        "name": table_stem(path.name),
        "kind": options.kind,
        "origin": Origin(spec, ids),
        "options": options,
    }
    if options.targets:
        return to_tasks(table, targets=options.targets, **about)
    return [table_to_task(table, target=options.target, **about)]


def _read_files(path: Path, options: SourceConfig) -> tuple[Table, dict[str, str]]:
    """Return the table, with one fold where it has a test file, and what identifies the files."""
    how = csv_format(options)
    table = read_table(path, how)
    # the name alone: a suite holds no folders of the machine that made it
    ids = {"file": path.name, "sha256": sha256_file(path)}
    # without a test file the pipeline makes the folds
    if not options.test_file:
        return table, ids
    test_path = Path(options.test_file).expanduser()
    test_table = read_table(test_path, how)
    table = join_folds([(table, test_table)])
    ids |= {"test_file": test_path.name, "test_sha256": sha256_file(test_path)}
    return table, ids


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
