"""Tasks and suites of OpenML, online or from the client's cache.

The client (imported here only, when first needed) finds, downloads and caches; the data itself
is decoded by :mod:`amlb_ext.sources.arff`, which says why. Every load runs on a private cache
folder, into which the user's cached files are linked and from which new ones are copied back;
:mod:`amlb_ext.sources.openml_client` says why.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import NetworkError, SourceError
from amlb_ext.core.task import ColumnType, Fold, Origin, Task
from amlb_ext.sources import openml_client as client
from amlb_ext.sources.arff import read_arff
from amlb_ext.sources.base import Source, TaskRef, cache_folder
from amlb_ext.sources.files import table_to_task
from amlb_ext.sources.read_table import read_parquet
from amlb_ext.sources.table import Table

_SPEC = re.compile(r"(?P<domain>openml|test\.openml)/(?P<what>[ts])/(?P<id>\d+)")
_TEST_SERVER = "https://test.openml.org/api/v1/xml"
_KINDS = {1: "classification", 2: "regression"}


class OpenMLSource(Source):
    """OpenML tasks and suites, also of its test server or of ``options.openml_server``.

    Examples
    --------
    >>> ref = next(OpenMLSource().refs("openml/t/31", SourceConfig()))
    >>> ref.name, ref.spec
    ('openml_t_31', 'openml/t/31')
    """

    name = "openml"
    forms = "openml/t/ID, openml/s/ID (also test.openml/...)"

    def accepts(self, spec: str, options: SourceConfig) -> bool:
        """Whether the spec has the form of an OpenML task or suite."""
        return _SPEC.fullmatch(spec) is not None

    def refs(self, spec: str, options: SourceConfig) -> Iterator[TaskRef]:
        """Yield the task, or the suite's tasks (which asks the server)."""
        match = _SPEC.fullmatch(spec)
        if match is None:
            raise SourceError(f"{spec!r} is no OpenML spec", f"accepted: {self.forms}")
        domain, number = match["domain"], int(match["id"])
        if domain == "test.openml":
            options = options.model_copy(update={"openml_server": _TEST_SERVER})
        numbers = [number] if match["what"] == "t" else suite_tasks(number, options, spec=spec)
        if len(numbers) > options.max_tasks:
            raise SourceError(
                f"{spec} names {len(numbers):,} tasks, each of which would be fetched and hardened",
                f"--max-tasks {len(numbers)} if you mean it (default: 1000)",
            )
        for task_id in numbers:
            one = f"{domain}/t/{task_id}"
            yield TaskRef(
                f"openml_t_{task_id}", one, partial(load_task, task_id, options, spec=one)
            )


def suite_tasks(suite_id: int, options: SourceConfig, *, spec: str) -> list[int]:
    """Return the task ids of a suite, from the server or else as they were last seen.

    Raises
    ------
    NetworkError
        The server cannot be reached and the suite was never seen.
    SourceError
        There is no such suite, or it has no tasks.
    """
    with client.borrowed(_client(options), options) as openml, client.explained(openml, spec):
        host = re.sub(r"\W+", "_", openml.config.server)
        seen = cache_folder(options, "suites", host, f"{suite_id}.json")
        try:
            client.check_server(openml, spec, options)
            tasks = [int(task) for task in openml.study.get_suite(suite_id).tasks or []]
        except NetworkError:
            with suppress(OSError, ValueError):
                return [int(task) for task in json.loads(seen.read_text(encoding="utf-8"))]
            raise
    if not tasks:
        raise SourceError(f"{spec} holds no tasks", "give another suite")
    with suppress(OSError):
        seen.parent.mkdir(parents=True, exist_ok=True)
        seen.write_text(json.dumps(tasks), encoding="utf-8")
    return tasks


def load_task(task_id: int, options: SourceConfig, *, spec: str) -> Task:
    """Read a task with its own folds.

    Parameters
    ----------
    task_id : int
    options : SourceConfig
        ``openml_cache``, ``openml_server`` and ``retries`` are used.
    spec : str
        Kept in the task's origin.

    Returns
    -------
    Task
        Named as its data set; the folds of repeat 0, as AMLB runs them.

    Raises
    ------
    NetworkError
        Something is not in the cache and the server cannot be reached.
    SourceError
        No such task, a kind other than classification and regression, a learning curve, or
        damaged files.
    DataError
        As :func:`~amlb_ext.core.tables.make_task`.
    """
    with (
        tempfile.TemporaryDirectory(prefix="hardsynth-openml-") as private,
        client.borrowed(_client(options), options) as openml,
        client.explained(openml, spec),
    ):
        kept = Path(openml.config.get_cache_directory())
        openml.config.set_root_cache_directory(private)
        work = Path(openml.config.get_cache_directory())
        task, dataset = _fetch(openml, task_id, kept, work, spec, options)
        folds = _folds(task, spec)
        client.keep(work, kept)
        table, notes = _table(dataset, work / "datasets" / str(dataset.dataset_id), spec)
    return _to_task(table, task, dataset, folds, notes, spec)


def _client(options: SourceConfig) -> ModuleType:
    """Import the client; with a cache given, without touching the user's home."""
    if "openml" in sys.modules:
        return sys.modules["openml"]
    with tempfile.TemporaryDirectory(prefix="hardsynth-openml-") as nowhere:
        given = nowhere if options.openml_cache else None
        settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "openml"
        with (
            client.environment("OPENML_CACHE_DIR", given),
            client.environment("XDG_CONFIG_HOME", None if settings.exists() else given),
        ):
            try:
                import openml
            except OSError as error:
                raise SourceError(
                    f"the OpenML client cannot make its cache: {error}", "use --openml-cache DIR"
                ) from None
    if given:
        openml.config.set_root_cache_directory(
            Path(openml.config._resolve_default_cache_dir()).expanduser()
        )
    return openml


def _fetch(
    openml: ModuleType, task_id: int, kept: Path, work: Path, spec: str, options: SourceConfig
) -> tuple[Any, Any]:
    """The client's task and dataset, with the split and the data in ``work``."""
    here = work / "tasks" / str(task_id)
    client.link(kept / "tasks" / str(task_id), here)
    data_id = client.cached_data_id(here / "task.xml")
    folder = work / "datasets" / data_id
    if data_id:
        client.link(kept / "datasets" / data_id, folder)
    arff, parquet = (folder / "dataset.arff").exists(), any(folder.glob("*.pq"))
    needed = (here / "datasplits.arff", folder / "description.xml")
    if not (data_id and (arff or parquet) and all(path.exists() for path in needed)):
        client.check_server(openml, spec, options)
    task = openml.tasks.get_task(task_id, download_data=False, download_qualities=False)
    if int(task.task_type_id.value) not in _KINDS:
        raise SourceError(
            f"{spec} is of the kind {task.task_type!r}",
            "give a supervised classification or regression task",
        )
    client.link(kept / "datasets" / str(task.dataset_id), work / "datasets" / str(task.dataset_id))
    skip = "false" if parquet and not arff else "true"
    with client.environment("OPENML_SKIP_PARQUET", skip):
        dataset = openml.datasets.get_dataset(
            task.dataset_id, download_data=True, download_qualities=False
        )
    task.split = task.download_split()
    return task, dataset


def _folds(task: Any, spec: str) -> tuple[Fold, ...]:
    """Repeat 0, sample 0, as AMLB runs it."""
    repeat = task.split.split[0]
    if any(len(samples) > 1 for samples in repeat.values()):
        raise SourceError(f"{spec} is a learning curve", "give a task with plain folds")
    return tuple(
        Fold(*(np.asarray(part, dtype=np.int64) for part in repeat[number][0]))
        for number in sorted(repeat)
    )


def _table(dataset: Any, folder: Path, spec: str) -> tuple[Table, list[str]]:
    """The data as a table; the ARFF file where there is one."""
    notes: list[str] = []
    path = folder / "dataset.arff"
    if path.exists():
        stated = str(dataset.md5_checksum or "").lower()
        if (
            re.fullmatch(r"[0-9a-f]{32}", stated)
            and stated != hashlib.md5(path.read_bytes()).hexdigest()
        ):
            notes.append("the cached data file differs from the md5 checksum that OpenML states")
        return read_arff(path), notes
    path = next(iter(sorted(folder.glob("*.pq"))), path)
    if not path.exists():
        raise SourceError(f"{spec}: the client kept no data file", "try again")
    read = read_parquet(path)
    frame = read.frame
    types: dict[str, ColumnType] = {}
    categories: dict[str, tuple[str, ...]] = {}
    words: dict[str, ColumnType] = {"nominal": "categorical", "string": "text", "date": "date"}
    for feature in dataset.features.values():
        if feature.data_type in words and feature.name in frame:
            types[feature.name] = words[feature.data_type]
            categories[feature.name] = tuple(map(str, feature.nominal_values or ()))
    notes.append("read from the cached Parquet file, since the ARFF file is not in the cache")
    known = {k: v for k, v in categories.items() if v}
    return Table(path.name, frame, types, known, read.notes), notes


def _to_task(
    table: Table, task: Any, dataset: Any, folds: tuple[Fold, ...], notes: list[str], spec: str
) -> Task:
    target = _column(table, task.target_name)
    if target is None:
        raise SourceError(
            f"{spec}: the data has no column {task.target_name!r}", "give another task"
        )
    n = len(table.frame)
    for number, fold in enumerate(folds):
        both = np.concatenate([fold.train, fold.test])
        if len(both) == 0 or both.min() < 0 or both.max() >= n or len(set(both)) < len(both):
            raise SourceError(
                f"{spec}: fold {number} names rows twice or beyond the {n} rows of the data",
                "the task's split does not fit its data; delete both from the cache and try again",
            )
    unused = [*_names(dataset.row_id_attribute), *_names(dataset.ignore_attribute)]
    hidden = {_column(table, name) for name in unused}
    frame = table.frame.drop(columns=[name for name in hidden if name and name != target])
    ids = {"task_id": task.task_id, "data_id": dataset.dataset_id, "version": dataset.version}
    ids |= {"md5_checksum": dataset.md5_checksum, "target": target}
    citation = dataset.citation
    return table_to_task(
        replace(table, frame=frame),
        name=str(dataset.name),
        target=target,
        kind=_KINDS[int(task.task_type_id.value)],
        folds=folds,
        origin=Origin(
            spec,
            {key: str(value) for key, value in ids.items() if value is not None},
            _text(dataset.licence),
            "; ".join(map(str, citation)) if isinstance(citation, list) else _text(citation),
            _text(dataset.openml_url),
        ),
        notes=tuple(notes),
    )


def _column(table: Table, name: Any) -> str | None:
    """The table's column of that name; the server and the file may differ in quotes or case."""
    wanted = str(name)
    for same in (str, lambda text: text.strip("'\" ").casefold()):
        for column in table.frame.columns:
            if same(column) == same(wanted):
                return str(column)
    return None


def _names(value: Any) -> list[str]:
    """The columns that an attribute of the data set names; it may be a list or commas."""
    if not value:
        return []
    listed = value if isinstance(value, list) else str(value).split(",")
    return [str(name).strip() for name in (value, *listed) if not isinstance(name, list)]


def _text(value: Any) -> str:
    return "" if value is None else str(value)
