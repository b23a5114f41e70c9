"""Tasks and suites of OpenML, online or from the client's cache.

The client (imported here only, when first needed) finds, downloads and caches; the data itself
is decoded by :mod:`amlb_ext.sources.arff`, which says why. Every load runs on a private cache
folder, into which the user's cached files are linked and from which new ones are copied back;
:mod:`amlb_ext.sources.openml_client` says why.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from amlb_ext.core.assets import asset_path
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import NetworkError, SourceError
from amlb_ext.core.files import cache_folder
from amlb_ext.core.task import ColumnType, Fold, Origin, Task
from amlb_ext.sources import openml_client as client
from amlb_ext.sources.arff import read_arff
from amlb_ext.sources.base import Collection, Source, TaskRef
from amlb_ext.sources.files import table_to_task
from amlb_ext.sources.table import Table, check_folds, read_fold
from amlb_ext.sources.typed_files import read_parquet

_SPEC = re.compile(r"(?P<domain>openml|test\.openml)/(?P<what>[ts])/(?P<id>\d+)")
_TEST_SERVER = "https://test.openml.org/api/v1/xml"
#: Numbers of OpenML's task types.
_KINDS = {1: "classification", 2: "regression"}
#: OpenML's words for types of columns; numeric columns are told by their values.
_COLUMN_TYPES: dict[str, ColumnType] = {
    "nominal": "categorical",
    "string": "text",
    "date": "date",
}


class OpenMLSource(Source):
    """OpenML tasks and suites, also of its test server or of ``options.openml_server``.

    Examples
    --------
    >>> ref = next(OpenMLSource().refs("openml/t/31", SourceConfig()))
    >>> ref.name, ref.spec
    ('openml_t_31', 'openml/t/31')
    """

    name = "openml"

    def accepts(self, spec: str, options: SourceConfig) -> bool:
        """Whether the spec has the form of an OpenML task or suite."""
        return _SPEC.fullmatch(spec) is not None

    def refs(self, spec: str, options: SourceConfig) -> Iterator[TaskRef]:
        """Yield the task, or the suite's tasks (which asks the server)."""
        match = _SPEC.fullmatch(spec)
        assert match is not None, "accepts is asked first"
        domain = match["domain"]
        task_ids = [int(match["id"])]
        if domain == "test.openml":
            options = options.model_copy(update={"openml_server": _TEST_SERVER})
        if match["what"] == "s":
            task_ids = list_suite_tasks(task_ids[0], options, spec=spec)
        for task_id in task_ids:
            task_spec = f"{domain}/t/{task_id}"
            load = partial(load_task, task_id, options, spec=task_spec)
            yield TaskRef(f"openml_t_{task_id}", task_spec, load)


def list_suite_tasks(suite_id: int, options: SourceConfig, *, spec: str) -> list[int]:
    """Return the task ids of a suite, from the server or else as they were last seen.

    Raises
    ------
    NetworkError
        The server cannot be reached and the suite was never seen.
    SourceError
        There is no such suite, or it has no tasks.
    """
    with client.borrowed(_import_client(options), options, spec) as openml:
        host = re.sub(r"\W+", "_", openml.config.server)
        seen = cache_folder("suites", host, f"{suite_id}.json")
        try:
            client.check_server(openml, spec)
            suite = openml.study.get_suite(suite_id)
            task_ids = [int(task_id) for task_id in suite.tasks or []]
        except NetworkError:
            # The client does not cache suites, so we keep what we saw last.
            with suppress(OSError, ValueError):
                last_seen = json.loads(seen.read_text(encoding="utf-8"))
                return [int(task_id) for task_id in last_seen]
            raise
    if not task_ids:
        raise SourceError(f"{spec} holds no tasks", "give another suite")
    with suppress(OSError):
        seen.parent.mkdir(parents=True, exist_ok=True)
        seen.write_text(json.dumps(task_ids), encoding="utf-8")
    return task_ids


def load_task(task_id: int, options: SourceConfig, *, spec: str) -> Task:
    """Read a task with its own folds.

    Parameters
    ----------
    task_id : int
    options : SourceConfig
        ``openml_cache``, ``openml_server`` and ``read_as`` are used.
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
        tempfile.TemporaryDirectory(prefix="hardsynth-openml-") as private_cache,
        client.borrowed(_import_client(options), options, spec) as openml,
    ):
        # The client adds the server's name to the root folder, so both are asked for.
        cache = Path(openml.config.get_cache_directory())
        openml.config.set_root_cache_directory(private_cache)
        work = Path(openml.config.get_cache_directory())
        folders = {"cache": cache, "work": work}
        task, dataset = _fetch(openml, task_id, spec=spec, options=options, **folders)
        folds = _read_folds(task, spec)
        client.copy_new_files(work, cache)
        # Read here, since the private cache goes when this block ends.
        data_folder = work / "datasets" / str(dataset.dataset_id)
        table = _read_data(dataset, data_folder, spec)
    target = _find_column(table, task.target_name)
    if target is None:
        raise SourceError(
            f"{spec}: the data has no column {task.target_name!r}", "give another task"
        )
    check_folds(
        folds,
        len(table.frame),
        spec,
        remedy="the task's split does not fit its data; delete both from the cache and try again",
    )
    unused = set()
    for attribute in (dataset.row_id_attribute, dataset.ignore_attribute):
        unused |= {_find_column(table, name) for name in _column_names(attribute)}
    unused -= {None, target}
    return table_to_task(
        replace(table, frame=table.frame.drop(columns=list(unused)), folds=folds),
        name=str(dataset.name),
        target=target,
        kind=_KINDS[int(task.task_type_id.value)],
        origin=_describe_origin(task, dataset, target, spec),
        options=options,
    )


def _import_client(options: SourceConfig) -> ModuleType:
    """Import the client; with a cache given, without touching the user's home.

    The import itself makes folders: a cache, and one for settings unless the user has one.
    """
    if "openml" in sys.modules:
        return sys.modules["openml"]
    with tempfile.TemporaryDirectory(prefix="hardsynth-openml-") as empty_folder:
        home = empty_folder if options.openml_cache else None
        # Settings that the user has are read where they are; a folder for new ones is not made.
        config_home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        has_settings = (config_home / "openml").exists()
        with (
            client.environment("OPENML_CACHE_DIR", home),
            client.environment("XDG_CONFIG_HOME", None if has_settings else home),
        ):
            try:
                import openml
            except OSError as error:
                raise SourceError(
                    f"the OpenML client cannot make its cache: {error}",
                    "use --openml-cache DIR",
                ) from None
    if home:
        default_cache = Path(openml.config._resolve_default_cache_dir()).expanduser()
        openml.config.set_root_cache_directory(default_cache)
    return openml


def _fetch(
    openml: ModuleType,
    task_id: int,
    *,
    cache: Path,
    work: Path,
    spec: str,
    options: SourceConfig,
) -> tuple[Any, Any]:
    """Return the client's task and dataset, with the split and the data in ``work``."""
    # What the cache has is shown to the client, so that it fetches only the rest.
    task_folder = work / "tasks" / str(task_id)
    client.link_cached_files(cache / "tasks" / str(task_id), task_folder)
    data_id = client.cached_data_id(task_folder / "task.xml")
    data_folder = work / "datasets" / data_id
    if data_id:
        client.link_cached_files(cache / "datasets" / data_id, data_folder)
    has_arff = (data_folder / "dataset.arff").exists()
    has_parquet = any(data_folder.glob("*.pq"))
    needed = (task_folder / "datasplits.arff", data_folder / "description.xml")
    has_all = (has_arff or has_parquet) and all(map(Path.exists, needed))
    # Without a data id the folder is that of all data sets, and says nothing of this one.
    if not (data_id and has_all):
        client.check_server(openml, spec)
    task = openml.tasks.get_task(task_id, download_data=False, download_qualities=False)
    if int(task.task_type_id.value) not in _KINDS:
        raise SourceError(
            f"{spec} is of the kind {task.task_type!r}",
            "give a supervised classification or regression task",
        )
    # Again, since only the task names its data where it was not in the cache.
    data_path = Path("datasets", str(task.dataset_id))
    client.link_cached_files(cache / data_path, work / data_path)
    # The client prefers Parquet, of which the server does not always have the declared types.
    skip_parquet = "false" if has_parquet and not has_arff else "true"
    with client.environment("OPENML_SKIP_PARQUET", skip_parquet):
        dataset = openml.datasets.get_dataset(
            task.dataset_id, download_data=True, download_qualities=False
        )
    task.split = task.download_split()
    return task, dataset


def _read_folds(task: Any, spec: str) -> tuple[Fold, ...]:
    """Return the folds of repeat 0 and sample 0, which are those that AMLB runs."""
    repeat = task.split.split[0]
    if any(len(samples) > 1 for samples in repeat.values()):
        raise SourceError(f"{spec} is a learning curve", "give a task with plain folds")
    return tuple(read_fold(*repeat[number][0]) for number in sorted(repeat))


def _read_data(dataset: Any, folder: Path, spec: str) -> Table:
    """Read the data of a task: the ARFF file where there is one, else the Parquet file."""
    arff = folder / "dataset.arff"
    if arff.exists():
        table = read_arff(arff)
        # Some data sets have no checksum, or something else in its place.
        stated = str(dataset.md5_checksum or "").lower()
        has_changed = hashlib.md5(arff.read_bytes()).hexdigest() != stated
        if not has_changed or not re.fullmatch(r"[0-9a-f]{32}", stated):
            return table
        note = "the cached data file differs from the md5 checksum that OpenML states"
        return replace(table, notes=(*table.notes, note))
    parquet_files = sorted(folder.glob("*.pq"))
    if not parquet_files:
        raise SourceError(f"{spec}: the OpenML client kept no data file", "try again")
    table = read_parquet(parquet_files[0])
    types: dict[str, ColumnType] = {}
    categories: dict[str, tuple[str, ...]] = {}
    # A Parquet file does not hold the types that the server declares; its description does.
    for feature in dataset.features.values():
        name = feature.name
        if feature.data_type not in _COLUMN_TYPES or name not in table.frame:
            continue
        types[name] = _COLUMN_TYPES[feature.data_type]
        if feature.nominal_values:
            categories[name] = tuple(map(str, feature.nominal_values))
    note = "read from the cached Parquet file, since the ARFF file is not in the cache"
    notes = (*table.notes, note)
    return Table(table.name, table.frame, types, categories, notes)


def _describe_origin(task: Any, dataset: Any, target: str, spec: str) -> Origin:
    ids = {
        "task_id": task.task_id,
        "data_id": dataset.dataset_id,
        "version": dataset.version,
        "md5_checksum": dataset.md5_checksum,
        "target": target,
    }
    present_ids = {key: str(value) for key, value in ids.items() if value is not None}
    # The client gives a list where the server names several works.
    citation = dataset.citation
    if isinstance(citation, list):
        citation = "; ".join(map(str, citation))
    return Origin(
        spec=spec,
        ids=present_ids,
        licence=str(dataset.licence or ""),
        citation=str(citation or ""),
        url=str(dataset.openml_url or ""),
    )


def _find_column(table: Table, name: Any) -> str | None:
    """Return the table's column of that name; server and file may differ in quotes or case."""
    # the very name first; then the same one in other quotes or another case
    for essence in (str, lambda name: str(name).strip("'\" ").casefold()):
        for column in map(str, table.frame.columns):
            if essence(column) == essence(name):
                return column
    return None


def _column_names(value: Any) -> list[str]:
    """Return the columns that an attribute of the data set names: a list, or a text with commas.

    A name may hold a comma itself, so the whole text is tried too.
    """
    if not value:
        return []
    if isinstance(value, list):
        return [str(name).strip() for name in value if not isinstance(name, list)]
    text = str(value)
    return [name.strip() for name in (text, *text.split(","))]


# Tasks of TabArena by name: ``tabarena``, ``tabarena/NAME``.
#
# TabArena v0.1 is 51 tasks of OpenML with splits of their own. A name stands for its task, read as
# :mod:`amlb_ext.sources.openml` reads any other, with the folds of repeat 0.
#
# References
# ----------
# Erickson et al. (2025), "TabArena: A Living Benchmark for Machine Learning on Tabular Data",
# https://arxiv.org/abs/2506.16791


@cache
def tabarena_task_ids() -> dict[str, int]:
    """Return OpenML's task id by the name that TabArena uses.

    Examples
    --------
    >>> len(tabarena_task_ids()), tabarena_task_ids()["anneal"]
    (51, 363614)
    """
    path = asset_path("resources", "tabarena", "tasks.csv")
    with path.open(encoding="utf-8", newline="") as file:
        lines = [line for line in file if not line.startswith("#")]
    return {row["name"]: int(row["task_id"]) for row in csv.DictReader(lines)}


class TabArenaSource(Collection):
    """Tasks of TabArena v0.1, from OpenML or its client's cache.

    Examples
    --------
    >>> ref = next(TabArenaSource().refs("tabarena/anneal", SourceConfig()))
    >>> ref.name, ref.spec
    ('anneal', 'tabarena/anneal')
    """

    name = "tabarena"

    def task_names(self) -> Sequence[str]:
        """Return the names of all 51."""
        return list(tabarena_task_ids())

    def load(self, name: str, options: SourceConfig) -> Task:
        """Read the task of OpenML that a name stands for."""
        task_id = tabarena_task_ids()[name]
        return load_task(task_id, options, spec=f"tabarena/{name}")
