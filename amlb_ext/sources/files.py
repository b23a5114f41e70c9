"""A table on disk, by its path."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from amlb_ext.core.atomic import sha256_file
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import DataError
from amlb_ext.core.tables import default_target, make_task
from amlb_ext.core.task import Fold, Origin, Task
from amlb_ext.sources.base import Source, TaskRef
from amlb_ext.sources.reading import READERS, read_table
from amlb_ext.sources.table import Table, join_folds


class FileSource(Source):
    """Tables on disk.

    ``options.target`` and ``options.kind`` say what is predicted; without a target AMLB's rule
    holds (``target`` or ``class``, else the last column). ``options.test_file`` gives the task
    one fold: the file's rows train, the test file's rows test.

    Examples
    --------
    >>> FileSource().accepts("data/cars.csv", SourceConfig())
    True
    """

    name = "files"
    forms = "a path ending in .csv, .parquet or .arff"

    def accepts(self, spec: str, options: SourceConfig) -> bool:
        """Whether the spec has a table's ending."""
        return Path(spec).suffix.lower() in READERS and "://" not in spec

    def refs(self, spec: str, options: SourceConfig) -> Iterator[TaskRef]:
        """Yield the one task of the file."""
        path = Path(spec).expanduser()
        yield TaskRef(path.stem, spec, partial(load_file, path, spec, options))


def load_file(path: Path, spec: str, options: SourceConfig) -> Task:
    """Read one table, with its test file if there is one, as a task.

    Parameters
    ----------
    path : Path
    spec : str
        As the user typed it, kept in the task's origin.
    options : SourceConfig
        ``target``, ``kind`` and ``test_file`` are used.

    Returns
    -------
    Task
        Named after the file, with one fold when a test file is given, else none.

    Raises
    ------
    SourceError, DataError
        As :func:`~amlb_ext.sources.reading.read_table` and
        :func:`~amlb_ext.core.tables.make_task`.
    """
    table = read_table(path)
    ids = {"file": path.name, "sha256": sha256_file(path)}
    folds: tuple[Fold, ...] = ()
    if options.test_file:
        test_path = Path(options.test_file).expanduser()
        table, folds = join_folds([(table, read_table(test_path))])
        ids |= {"test_file": test_path.name, "test_sha256": sha256_file(test_path)}
    return to_task(
        table,
        name=path.stem,
        target=options.target,
        kind=options.kind,
        folds=folds,
        origin=Origin(spec, ids),
    )


def to_task(
    table: Table,
    *,
    name: str,
    target: str | None,
    kind: str | None,
    folds: tuple[Fold, ...],
    origin: Origin,
    notes: tuple[str, ...] = (),
) -> Task:
    """Make a task of a table, with AMLB's default target where none is given.

    Raises
    ------
    DataError
        When there is no such column (the message lists those that are there), or as
        :func:`~amlb_ext.core.tables.make_task`.
    """
    names = list(table.frame.columns)
    if not names:
        raise DataError(f"{name}: {table.name} has no column", "give a table with a header")
    return make_task(
        table.frame,
        target or default_target(names),
        name=name,
        kind=kind,
        types=table.types,
        categories=table.categories,
        folds=folds,
        origin=origin,
        notes=notes,
    )
