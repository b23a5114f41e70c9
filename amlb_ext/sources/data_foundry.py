"""Containers of Data Foundry, BeyondArena's among them: a folder, or ``beyondarena/NAME``.

A container is a folder with a Parquet file and JSON files that say what is predicted, how the rows
were split, and which column orders or groups them. It is read as it lies there. The package
``data-foundry`` is asked only where a name of BeyondArena is to be downloaded.

References
----------
Data Foundry, https://github.com/TabArena/data-foundry, ``schema.py`` of release 0.0.5
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import NetworkError, SourceError
from amlb_ext.core.files import sha256_file
from amlb_ext.core.row_order import OrderedTable, RowOrder, read_order
from amlb_ext.core.task import ColumnType, Fold, Origin, Task
from amlb_ext.sources.base import Collection, TaskRef
from amlb_ext.sources.files import table_to_task
from amlb_ext.sources.table import Table, check_folds, read_fold
from amlb_ext.sources.typed_files import read_parquet

_IDENTITY = "container_metadata.json"
_DATA = "dataset.parquet"
_DTYPES = "dtypes.json"
#: The three files of metadata; their names go on with the version of the schema.
_DATASET = "dataset_metadata"
_TASK = "task_metadata"
_SPLITS = "experiment_metadata"
#: Words of the schema for our kinds.
_KINDS = {
    "binary_classification": "classification",
    "multiclass_classification": "classification",
    "regression": "regression",
}


class DataFoundrySource(Collection):
    """A container of Data Foundry, with its own splits, groups and times.

    Examples
    --------
    >>> DataFoundrySource().accepts("beyondarena/diamonds", SourceConfig())
    True
    """

    name = "data_foundry"
    word = "beyondarena"
    title = "BeyondArena"

    def accepts(self, spec: str, options: SourceConfig) -> bool:
        """Whether the spec names BeyondArena, or a folder that is a container."""
        return super().accepts(spec, options) or Path(spec, _IDENTITY).is_file()

    def refs(self, spec: str, options: SourceConfig) -> Iterator[TaskRef]:
        """Yield the container, the named one of BeyondArena, or all of BeyondArena's."""
        if super().accepts(spec, options):
            yield from super().refs(spec, options)
            return
        folder = Path(spec)
        # the name of the folder is a number that nobody can read
        name = _read_json(folder, _DATASET).get("unique_name", folder.name)
        load = partial(load_container, folder, spec, options)
        yield TaskRef(str(name), spec, load)

    def task_names(self) -> Sequence[str]:
        """Return the names of all containers of BeyondArena; nothing is downloaded."""
        return list(_beyond_arena().unique_names)

    def load(self, name: str, options: SourceConfig) -> Task:
        """Download a container of BeyondArena, where the cache has none, and read it."""
        from data_foundry.collections import resolve_cache_dir

        collection = _beyond_arena()
        spec = f"{self.word}/{name}"
        cache = resolve_cache_dir(None, collection_name=collection.name)
        try:
            folder = collection.source.fetch(collection.find_entry(name), cache)
        # the client raises errors of its own, of the network and of its files
        except Exception as error:
            first_line = (str(error).splitlines() or [type(error).__name__])[0]
            raise NetworkError(
                f"{spec} cannot be downloaded: {first_line}",
                "try again where Hugging Face can be reached, or give the folder of a container",
            ) from None
        return load_container(Path(folder), spec, options)

    def suggestions(self, options: SourceConfig) -> list[str]:
        """Return ``beyondarena``, and its tasks where the package can name them."""
        if find_spec("data_foundry") is None:
            return [self.word]
        return super().suggestions(options)


def load_container(
    folder: Path, spec: str, options: SourceConfig | None = None
) -> Task:
    """Read a container as a task.

    Parameters
    ----------
    folder : Path
    spec : str
        Kept in the task's origin.
    options : SourceConfig, optional
        ``read_as`` and ``drop`` are used.

    Returns
    -------
    Task
        With the folds of repeat 0 and, where the container says so, the groups or times of its
        rows. An unpublished test part is not read.

    Raises
    ------
    SourceError
        A file that is missing or damaged, another kind of problem, or a split that does not fit.
    DataError
        As :func:`~amlb_ext.sources.files.table_to_task` and
        :func:`~amlb_ext.core.row_order.read_order`.
    """
    identity = _read_json(folder, _IDENTITY.removesuffix(".json"))
    about = _read_json(folder, _DATASET)
    asked = _read_json(folder, _TASK)
    problem = str(asked.get("problem_type"))
    if problem not in _KINDS:
        raise SourceError(
            f"{spec} is of the kind {problem!r}", f"taken are {', '.join(_KINDS)}"
        )
    folds = _read_splits(_read_json(folder, _SPLITS), spec)
    path = folder / _DATA
    if not path.is_file():
        raise SourceError(f"{spec} has no {_DATA}", "download the container again")
    table = _with_declared_categories(read_parquet(path), folder)
    check_folds(folds, len(table.frame), spec, remedy="download the container again")
    target = str(asked.get("target_column_name"))
    ids = {
        "uuid": str(identity.get("uuid", "")),
        "sha256": sha256_file(path),
        "target": target,
    }
    task = table_to_task(
        replace(table, folds=folds),
        name=str(about.get("unique_name", folder.name)),
        target=target,
        kind=_KINDS[problem],
        origin=Origin(
            spec=spec,
            ids=ids,
            licence=str(about.get("license") or ""),
            citation=str(about.get("academic_reference_bibtex") or ""),
            url=str(about.get("original_dataset_source_download_link") or ""),
        ),
        options=options,
    )
    return replace(task, order=_read_container_order(task, asked))


def _read_json(folder: Path, stem: str) -> dict[str, Any]:
    """Return the object of a container's file, whichever version of the schema it names."""
    paths = sorted([*folder.glob(f"{stem}.json"), *folder.glob(f"{stem}.*.json")])
    if not paths:
        raise SourceError(
            f"{folder} is no Data Foundry container: it has no {stem}.*.json",
            "give the folder that holds dataset.parquet and its JSON files",
        )
    try:
        content = json.loads(paths[0].read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError(f"it holds a {type(content).__name__}, no object")
        return content
    except (OSError, ValueError) as error:
        raise SourceError(
            f"{paths[0].name} of {folder} is not valid JSON: {error}",
            "download the container again",
        ) from None


def _read_splits(splits: Mapping[str, Any], spec: str) -> tuple[Fold, ...]:
    """Return the folds of repeat 0, in the order of their numbers."""
    try:
        repeat = splits["splits"]["0"]
        folds = [read_fold(*repeat[number]) for number in sorted(repeat, key=int)]
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(
            f"{spec}: its splits are not of the form repeat, fold, [train, test]: {error!r}",
            "download the container again",
        ) from None
    if not folds:
        raise SourceError(f"{spec} has no split", "give another container")
    return tuple(folds)


def _with_declared_categories(table: Table, folder: Path) -> Table:
    """Return a table whose categories are those that the container declares.

    Parquet may have them as plain texts or numbers.
    """
    if not (folder / _DTYPES).is_file():
        return table
    dtypes = _read_json(folder, _DTYPES.removesuffix(".json"))
    named = [name for name in table.frame if dtypes.get(name) == "category"]
    types: dict[str, ColumnType] = dict.fromkeys(named, "categorical")
    return replace(table, types=table.types | types)


def _read_container_order(task: Task, asked: Mapping[str, Any]) -> RowOrder | None:
    """Return the order that the container's splits keep to, by its file of the task."""
    groups = asked.get("group_on") or ()
    if isinstance(groups, str):
        groups = (groups,)
    if len(groups) < 2:
        group = groups[0] if groups else None
        table = OrderedTable.of_task(task)
        return read_order(table, time=asked.get("time_on"), group=group)
    # rows of one group are alike in all columns that name it
    columns = task.features[list(groups)].astype(str)
    codes, _ = pd.factorize(pd.MultiIndex.from_frame(columns))
    return RowOrder(
        group=np.asarray(codes, dtype=np.int64), group_name=", ".join(groups)
    )


def _beyond_arena() -> Any:
    """Return the package's collection; nothing is downloaded."""
    if find_spec("data_foundry") is None:
        raise SourceError(
            "beyondarena needs the package data-foundry, which is not installed",
            "pip install 'hardsynth[beyondarena]', or give the folder of a container",
        )
    from data_foundry.collections import BEYOND_ARENA

    return BEYOND_ARENA
