"""The hard twin of an AMLB benchmark of series: its task names, limits and metrics, hard windows.

A task of the twin holds the series that were drawn by how likely F fails on them; where failures
are not foreseen, those on which F fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from amlb_ext.amlb.definition import sanitize_name
from amlb_ext.core.errors import SuiteError
from amlb_ext.forecasting.suite_files import METRICS
from amlb_ext.forecasting.suite_manifest import ForecastTask, SeriesPair, TwinTask
from amlb_ext.suite.twin import LIMITS, Original, named_metrics, twin_name

#: Kinds of tasks that may stand in a twin: of each origin the first that it has.
HARD_KINDS = ("region", "bad")
_WHAT = {
    "region": "series drawn by how likely F fails on them",
    "bad": "series on which F fails",
}


def make_pair(
    original: Original, tasks_by_table: Mapping[str, Sequence[ForecastTask]]
) -> SeriesPair:
    """Return the manifest's entry of the twin.

    Parameters
    ----------
    original : Original
        Entries by the tables' names in the suite.
    tasks_by_table : mapping of str to sequence of ForecastTask

    Raises
    ------
    SuiteError
        Two tasks of the twin would have one name.
    """
    twins: list[TwinTask] = []
    for table, tasks in tasks_by_table.items():
        entry = original.entries[table]
        hard = _hard_tasks(tasks)
        several = len({task.origin for task in tasks}) > 1
        for task in hard:
            name = str(entry["name"])
            if several:
                name = f"{name}_o{task.origin}"
            limits = {key: entry[key] for key in LIMITS if entry.get(key) is not None}
            twins.append(
                TwinTask(
                    name=name,
                    task=task.name,
                    what=f"{_WHAT[task.kind]}, of {entry['name']} of {original.name}",
                    limits=limits,
                    metric=named_metrics(entry) or list(METRICS),
                )
            )
    _check_names(twins)
    return SeriesPair(
        name=twin_name(original.name), of=original.name, tasks=tuple(twins)
    )


def _hard_tasks(tasks: Iterable[ForecastTask]) -> list[ForecastTask]:
    """Return the one hard task of each origin that has one."""
    by_origin: dict[int, dict[str, ForecastTask]] = {}
    for task in tasks:
        by_origin.setdefault(task.origin, {})[task.kind] = task
    hard = []
    for kinds in by_origin.values():
        known = [kinds[kind] for kind in HARD_KINDS if kind in kinds]
        hard += known[:1]
    return hard


def _check_names(twins: Iterable[TwinTask]) -> None:
    taken: dict[str, str] = {}
    for twin in twins:
        key = sanitize_name(twin.name).lower()
        if key in taken:
            raise SuiteError(
                f"two tasks of the twin would be called {twin.name!r}",
                "rename one of the original's tasks",
            )
        taken[key] = twin.name


def twin_entries(
    pair: SeriesPair, entries: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the entries of the twin's definition.

    Parameters
    ----------
    pair : SeriesPair
    entries : mapping of str to mapping
        The suite's own by task; the data sets are taken from them.
    """
    twins = []
    for twin in pair.tasks:
        own = entries[twin.task]
        # keys are written in this order
        entry: dict[str, Any] = {
            "name": twin.name,
            # AMLB's results name the task but not the benchmark
            "id": f"{pair.name}/{twin.name}",
            "description": twin.what,
            "folds": 1,
        }
        for limit in LIMITS:
            if limit in twin.limits:
                entry[limit] = twin.limits[limit]
        entry["dataset"] = own["dataset"]
        entry["metric"] = list(twin.metric)
        entry.setdefault("quantile_levels", list(own["quantile_levels"]))
        twins.append(entry)
    return twins
