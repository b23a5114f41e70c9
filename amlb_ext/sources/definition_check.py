"""A benchmark definition of one's own: what AMLB would fail on, or score wrongly.

The rules are those of :mod:`amlb_ext.amlb.loader_rules` for tables and of
:mod:`amlb_ext.amlb.series_rules` for series.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.amlb.configuration import resolve_directories, search_definition
from amlb_ext.amlb.definition import is_series_task, read_definition
from amlb_ext.amlb.loader_rules import check_pair, infer_target, read_fields
from amlb_ext.amlb.series_rules import NEEDED, check_series_table, check_series_task
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import HardsynthError, SourceError
from amlb_ext.core.files import sha256_file
from amlb_ext.sources.dataset_files import Place, find_files
from amlb_ext.sources.urls import is_url


@dataclass(frozen=True, kw_only=True)
class DefinitionCheck:
    """What was found in a definition.

    Attributes
    ----------
    path : Path
    problems : tuple of str
        One sentence each, with the task it is of.
    checked, unseen : tuple of str
        Tasks whose files were looked at, and those that have none here: OpenML's, and files of
        other formats than CSV.
    """

    path: Path
    problems: tuple[str, ...]
    checked: tuple[str, ...]
    unseen: tuple[str, ...]


def check_definition(spec: str, options: SourceConfig) -> DefinitionCheck:
    """Hold the files of a definition's enabled tasks against AMLB's rules.

    Parameters
    ----------
    spec : str
        Its file, or its name as AMLB takes it.
    options : SourceConfig
        Where definitions and files are looked for, and how much may be downloaded.

    Raises
    ------
    SourceError
        There is no such definition.
    DefinitionError
        It cannot be read.
    """
    path = search_definition(spec, options)
    if path is None:
        raise SourceError(
            f"there is no AMLB definition {spec!r}",
            "give its file, or name --userdir or --amlb where it stands",
        )
    problems: list[str] = []
    checked, unseen = [], []
    for name, task in read_definition(path):
        place = Place(name, path.parent, resolve_directories(options), options)
        try:
            check = _check_series if is_series_task(task) else _check_tables
            found = check(name, task, place)
        except HardsynthError as error:
            found = [str(error)]
        if found is None:
            unseen.append(name)
            continue
        checked.append(name)
        problems += [f"task {name}: {problem}" for problem in found]
    return DefinitionCheck(
        path=path,
        problems=tuple(problems),
        checked=tuple(checked),
        unseen=tuple(unseen),
    )


def _check_series(name: str, task: Mapping[str, Any], place: Place) -> list[str]:
    """Return the problems of a task of series, and of its file wherever it stands."""
    dataset = task["dataset"]
    for key in ("path", "target"):
        if dataset.get(key) is None:
            return [f"'{key}' is missing: AMLB fails"]
    problems = check_series_task(name, task)
    named = str(dataset["path"])
    # a file that AMLB finds was looked at
    is_local = Path(named).is_absolute() and not is_url(named)
    if is_local or any(dataset.get(key) is None for key in NEEDED):
        return problems
    table = pd.read_csv(place.resolve_file(named))
    folds = int(task.get("folds") or 1)
    return problems + check_series_table(table, dataset, folds=folds)


def _check_tables(name: str, task: Mapping[str, Any], place: Place) -> list[str] | None:
    """Return the problems of a task of tables; None where there is no CSV file to look at."""
    dataset = task.get("dataset")
    if task.get("openml_task_id") is not None or dataset is None:
        return None
    files = find_files(dataset, place)
    if isinstance(files, Path):
        return [
            f"{files.name} is one table, and AMLB needs files to train and to test on"
        ]
    if any(file.suffix.lower() != ".csv" for pair in files for file in pair):
        return None
    problems = [
        f"the path {text} is relative to the folder that AMLB is started in"
        for text in _relative_paths(dataset)
    ][:1]
    wanted = task.get("folds")
    if isinstance(wanted, int) and wanted > len(files):
        problems.append(
            f"{wanted} folds are asked for, and there are files of {len(files)}"
        )
    settings = dataset if isinstance(dataset, dict) else {}
    for fold, (train, test) in enumerate(files[:wanted]):
        fields = read_fields(train)
        target, kind = settings.get("target"), settings.get("type")
        if not isinstance(fields, str):
            target, kind = infer_target(fields, target, kind)
        found = check_pair(train, test, str(target), str(kind))
        if train.is_file() and sha256_file(train) == sha256_file(test):
            found.append(
                "The training file holds the same rows as the test file, so that any model that "
                "remembers them wins."
            )
        problems += [f"fold {fold}: {problem}" for problem in found]
    return problems


def _relative_paths(dataset: Any) -> Iterator[str]:
    """Yield the paths of a data set that lead from the current folder."""
    if isinstance(dataset, dict):
        dataset = [dataset.get(key) for key in ("path", "train", "test")]
    if isinstance(dataset, list):
        for part in dataset:
            yield from _relative_paths(part)
    elif isinstance(dataset, str):
        is_elsewhere = is_url(dataset) or dataset.startswith(("{", "~"))
        if not (is_elsewhere or Path(dataset).is_absolute()):
            yield dataset
