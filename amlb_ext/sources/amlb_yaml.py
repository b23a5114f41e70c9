"""An AMLB benchmark definition, by path or by name; ``SPEC#TASK`` is one task of it.

Built on ``openml`` (``openml_task_id``) and ``files`` (``dataset``, see
:mod:`amlb_ext.sources.dataset_files` for all its forms).
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from amlb_ext.amlb.configuration import (
    ENDINGS,
    resolve_directories,
    search_definition,
    search_folders,
)
from amlb_ext.amlb.definition import read_definition
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import SourceError, suggest_nearest
from amlb_ext.core.files import sha256_file
from amlb_ext.core.task import Kind, Origin, Task
from amlb_ext.sources.base import Source, TaskRef, choose_names, whole_number
from amlb_ext.sources.column_roles import csv_format
from amlb_ext.sources.dataset_files import Place, find_files
from amlb_ext.sources.files import table_to_task
from amlb_ext.sources.openml import load_task
from amlb_ext.sources.read_table import CsvFormat, read_table
from amlb_ext.sources.table import Table, join_folds


class AmlbSource(Source):
    """AMLB benchmark definitions.

    Examples
    --------
    >>> AmlbSource().accepts("my/benchmark.yaml#iris", SourceConfig())
    True
    """

    name = "amlb"

    def accepts(self, spec: str, options: SourceConfig) -> bool:
        """Whether the spec is a path to YAML or the name of a known definition."""
        base = spec.partition("#")[0]
        if "://" in base:
            return False
        # A broken AMLB configuration of the user's counts as yes, so that `refs` says what it is.
        try:
            return search_definition(base, options) is not None
        except SourceError:
            return True

    def refs(self, spec: str, options: SourceConfig) -> Iterator[TaskRef]:
        """Yield the enabled tasks of the definition, or the one after ``#``."""
        base, _, only = spec.partition("#")
        path = search_definition(base, options)
        if path is None:
            raise SourceError(
                f"there is no AMLB definition {base!r}",
                suggest_nearest(base, self.suggestions(options)),
            )
        entries = list(read_definition(path))
        names = choose_names([name for name, _ in entries], only, path.name)
        for name, entry in entries:
            if name not in names:
                continue
            task_spec = f"{base}#{name}"
            about: dict[str, Any] = {"spec": task_spec, "options": options}
            yield TaskRef(
                name, task_spec, partial(load_entry, name, entry, path, **about)
            )

    def suggestions(self, options: SourceConfig) -> list[str]:
        """Return the names of all definitions that are found."""
        try:
            folders = search_folders(options)
        except SourceError:
            return []
        files = chain.from_iterable(folder.iterdir() for folder in folders)
        return sorted({file.stem for file in files if file.suffix.lower() in ENDINGS})


def load_entry(
    name: str, entry: dict[str, Any], path: Path, *, spec: str, options: SourceConfig
) -> Task:
    """Read one task of a definition.

    Parameters
    ----------
    name : str
    entry : dict
        The task's keys, defaults merged in.
    path : Path
        The definition.
    spec : str
        Kept in the task's origin.
    options : SourceConfig
        Folders, cache, tries, OpenML's settings, how columns are read. ``target`` and ``kind``
        are not used: the definition has its own.

    Returns
    -------
    Task
        Named as in the definition.

    Raises
    ------
    SourceError, NetworkError, DataError
        What is wrong with this task.
    """
    max_folds = None
    if entry.get("folds") is not None:
        max_folds = whole_number(entry, "folds", name)
    if entry.get("openml_task_id") is not None:
        task_id = entry["openml_task_id"]
        # In quotes it is a text to YAML, and serves as well.
        if not str(task_id).isdecimal():
            raise SourceError(
                f"{name}: openml_task_id is {reprlib.repr(str(task_id))}",
                "write the task's number, e.g. 59",
            )
        # AMLB reports the results under the definition's name, whatever OpenML calls the data.
        task = load_task(int(task_id), options, spec=spec).renamed(name)
        return task.with_folds(task.folds[:max_folds])
    # A data set may also be a path or a list of paths, which say nothing of target and kind.
    dataset = entry["dataset"]
    settings: dict[str, Any] = dataset if isinstance(dataset, dict) else {}
    kind = settings.get("type")
    target = settings.get("target")
    _check_kind(name, kind)
    place = Place(name, path.parent, resolve_directories(options), options)
    files = find_files(dataset, place)
    notes: tuple[str, ...] = ()
    if isinstance(files, Path):
        table = read_table(files, csv_format(options))
        ids = {"file": _file_identity(files)}
    else:
        table, ids = _read_folds(files[:max_folds], csv_format(options))
        if max_folds is not None and max_folds > len(files):
            notes = (
                f"the definition asks for {max_folds} folds, its files hold {len(files)}",
            )
    return table_to_task(
        table,
        name=name,
        target=None if target is None else str(target),
        kind=kind,
        origin=Origin(spec, ids),
        notes=notes,
        options=options,
    )


def _read_folds(
    pairs: Sequence[tuple[Path, Path]], how: CsvFormat
) -> tuple[Table, dict[str, str]]:
    """Return one table of all files, and what identifies the files."""
    # A file may serve several folds, and is read once.
    tables: dict[Path, Table] = {}
    ids: dict[str, str] = {}
    for fold, (train, test) in enumerate(pairs):
        for part, file in (("train", train), ("test", test)):
            if file not in tables:
                tables[file] = read_table(file, how)
            ids[f"{part}_{fold}"] = _file_identity(file)
    table_pairs = [(tables[train], tables[test]) for train, test in pairs]
    return join_folds(table_pairs), ids


def _file_identity(file: Path) -> str:
    return f"{file.name} sha256:{sha256_file(file)}"


def _check_kind(name: str, kind: Any) -> None:
    known = [known_kind.value for known_kind in Kind]
    if kind == "timeseries":
        raise SourceError(
            f"{name}: time series are not yet supported beside tables",
            f"make a suite of its own of it, DEFINITION#{name}; or set 'enabled: false' on this "
            "task, the others go on without it",
        )
    if kind is not None and kind not in known:
        raise SourceError(
            f"{name}: the type {reprlib.repr(kind)} is unknown",
            suggest_nearest(str(kind)[:50], known),
        )
