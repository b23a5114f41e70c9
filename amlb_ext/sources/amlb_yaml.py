"""An AMLB benchmark definition, by path or by name; ``SPEC#TASK`` is one task of it.

Built on ``openml`` (``openml_task_id``) and ``files`` (``dataset``, see
:mod:`amlb_ext.sources.dataset_files` for all its forms).
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from functools import partial
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
from amlb_ext.core.task import Fold, Kind, Origin, Task
from amlb_ext.sources.base import Source, TaskRef
from amlb_ext.sources.dataset_files import Place, find_files
from amlb_ext.sources.files import table_to_task
from amlb_ext.sources.openml import load_task
from amlb_ext.sources.read_table import read_table
from amlb_ext.sources.table import Table, join_folds


class AmlbSource(Source):
    """AMLB benchmark definitions.

    Examples
    --------
    >>> AmlbSource().accepts("my/benchmark.yaml#iris", SourceConfig())
    True
    """

    name = "amlb"
    forms = "a path ending in .yaml or .yml, or the name of an AMLB benchmark definition"

    def accepts(self, spec: str, options: SourceConfig) -> bool:
        """Whether the spec is a path to YAML or the name of a known definition."""
        base = spec.partition("#")[0]
        if "://" in base:
            return False
        try:
            return search_definition(base, options) is not None
        except SourceError:
            return True  # the user's AMLB configuration is broken: let refs say so

    def refs(self, spec: str, options: SourceConfig) -> Iterator[TaskRef]:
        """Yield the enabled tasks of the definition, or the one after ``#``."""
        base, _, only = spec.partition("#")
        path = search_definition(base, options)
        if path is None:
            raise SourceError(
                f"no AMLB definition {base!r}", suggest_nearest(base, self.suggestions(options))
            )
        entries = list(read_definition(path))
        if only:
            names = [name for name, _ in entries]
            entries = [(name, entry) for name, entry in entries if name.lower() == only.lower()]
            if not entries:
                raise SourceError(f"{path.name} has no task {only!r}", suggest_nearest(only, names))
        for name, entry in entries:
            one = f"{base}#{name}"
            yield TaskRef(name, one, partial(load_entry, name, entry, path, one, options))

    def suggestions(self, options: SourceConfig) -> list[str]:
        """Return the names of all definitions that are found."""
        try:
            found = search_folders(options)
        except SourceError:
            return []
        return sorted(
            {p.stem for folder in found for p in folder.iterdir() if p.suffix.lower() in ENDINGS}
        )


def load_entry(
    name: str, entry: dict[str, Any], path: Path, spec: str, options: SourceConfig
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
        Folders, cache, tries, OpenML's settings. ``target`` and ``kind`` are not used: the
        definition has its own.

    Returns
    -------
    Task
        Named as in the definition.

    Raises
    ------
    SourceError, NetworkError, DataError
        What is wrong with this task.
    """
    limit = _limit(name, entry.get("folds"))
    if entry.get("openml_task_id") is not None:
        identifier = str(entry["openml_task_id"])
        if not identifier.isdecimal():
            raise SourceError(
                f"{name}: openml_task_id is {reprlib.repr(identifier)}",
                "write the task's number, e.g. 59",
            )
        task = load_task(int(identifier), options, spec=spec).renamed(name)
        return task.with_folds(task.folds[:limit])
    dataset = entry["dataset"]
    keys: dict[str, Any] = dataset if isinstance(dataset, dict) else {}
    kind = keys.get("type")
    if kind == "timeseries":
        raise SourceError(
            f"{name}: time series are not yet supported",
            "set 'enabled: false' on this task, the others go on without it",
        )
    if kind is not None and kind not in [word.value for word in Kind]:
        raise SourceError(
            f"{name}: the type {reprlib.repr(kind)} is unknown",
            suggest_nearest(str(kind)[:50], [k.value for k in Kind]),
        )
    place = Place(name, path.parent, resolve_directories(options), options)
    ids: dict[str, str] = {}
    pairs = find_files(dataset, place)
    notes: tuple[str, ...] = ()
    folds: tuple[Fold, ...] = ()
    if isinstance(pairs, Path):
        table = read_table(pairs)
        ids["file"] = f"{pairs.name} sha256:{sha256_file(pairs)}"
    else:
        if limit is not None and limit > len(pairs):
            notes = (f"the definition asks for {limit} folds, its files hold {len(pairs)}",)
        read: dict[Path, Table] = {}
        for fold, pair in enumerate(pairs[:limit]):
            for part, file in zip(("train", "test"), pair, strict=True):
                if file not in read:
                    read[file] = read_table(file)
                ids[f"{part}_{fold}"] = f"{file.name} sha256:{sha256_file(file)}"
        table, folds = join_folds([(read[train], read[test]) for train, test in pairs[:limit]])
    target = keys.get("target")
    return table_to_task(
        table,
        name=name,
        target=None if target is None else str(target),
        kind=kind,
        folds=folds,
        origin=Origin(spec, ids),
        notes=notes,
    )


def _limit(name: str, folds: Any) -> int | None:
    if folds is None:
        return None
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 1:
        raise SourceError(
            f"{name}: folds is {reprlib.repr(folds)}", "write a whole number from 1 on"
        )
    return folds
