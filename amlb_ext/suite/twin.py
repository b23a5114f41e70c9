"""A hard twin of an existing benchmark: the same task names, limits and metrics, hard rows.

A task of the twin is the suite's main task. Where that is left out, because it would be the whole
test fold, it is the task of rows that were drawn by how likely F fails on them, and where that is
unknown, too, of those on which F fails. Of a benchmark of series it holds the series that were
drawn so; where failures are not foreseen, those on which F fails. AMLB's ``results.csv`` names the
task but not the benchmark, so twins get an ``id`` of their own: ``<twin>/<task>``. AMLB's
``--resume`` goes by it too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amlb_ext.amlb.definition import sanitize_name
from amlb_ext.core.errors import SuiteError
from amlb_ext.suite.manifest import LIMITS, AmlbTask, Pair, TwinTask
from amlb_ext.suite.series_manifest import METRICS, ForecastTask

#: Metrics that a test file of fewer classes than the task has leaves undefined.
_RANKED = frozenset({"auc", "pr_auc", "auc_ovo", "auc_ovr"})
#: The metrics that stand in their place; see :func:`amlb_ext.suite.definition.metrics_for`.
_DEFINED = ["logloss", "acc"]
#: Kinds of tasks of series that may stand in a twin, the first choice first, and what they hold.
_HARD_SERIES = {
    "region": "series drawn by how likely F fails on them",
    "bad": "series on which F fails",
}
#: The same of tasks of tables, by suffix.
_HARD_TABLES = {
    "": "hard rows",
    "region": "rows drawn by how likely F fails on them",
    "bad": "rows on which F fails",
}


@dataclass(frozen=True)
class Original:
    """The benchmark that a suite is the hard twin of.

    Attributes
    ----------
    name : str
        Of its definition, without ending.
    entries : dict of str to dict
        By the suite's task name, the original's entry with its defaults merged in.
    """

    name: str
    entries: Mapping[str, Mapping[str, Any]]


def twin_name(benchmark: str) -> str:
    """Return the name of a benchmark's hard twin.

    Examples
    --------
    >>> twin_name("validation")
    'validation_hard'
    """
    return f"{benchmark}_hard"


def pair_of_tables(
    original: Original,
    amlb_tasks: Sequence[AmlbTask],
    *,
    lacks_a_class: Collection[str],
) -> Pair:
    """Return the manifest's entry of the twin of a suite of tables.

    Parameters
    ----------
    original : Original
    amlb_tasks : sequence of AmlbTask
        Of the suite.
    lacks_a_class : collection of str
        AMLB tasks of which a test file lacks a class.
    """
    twins = []
    for name, task in _hard_tasks(amlb_tasks).items():
        if name not in original.entries:
            continue
        entry = original.entries[name]
        what = f"{_HARD_TABLES[task.suffix]} of {entry['name']} of {original.name}"
        folds_text = source_folds_text(task)
        twins.append(
            TwinTask(
                name=str(entry["name"]),
                task=task.name,
                what=f"{what}; {folds_text}" if folds_text else what,
                limits=_limits(entry),
                metric=_twin_metrics(entry, task, task.name in lacks_a_class),
            )
        )
    return Pair(name=twin_name(original.name), of=original.name, tasks=tuple(twins))


def _hard_tasks(amlb_tasks: Sequence[AmlbTask]) -> dict[str, AmlbTask]:
    """Return the AMLB task of each task that holds its hard rows; see :data:`_HARD_TABLES`."""
    parts: dict[str, dict[str, AmlbTask]] = {}
    for task in amlb_tasks:
        parts.setdefault(task.task, {})[task.suffix] = task
    found = {}
    for name, by_suffix in parts.items():
        main, failing = by_suffix.get(""), by_suffix.get("bad")
        # a mixture may be shown to be better in some of the folds with failures, or in none
        if main is not None and failing is not None and main.folds != failing.folds:
            del by_suffix[""]
        hard = [by_suffix[part] for part in _HARD_TABLES if part in by_suffix]
        if hard:
            found[name] = hard[0]
    return found


def pair_of_series(
    original: Original, tasks_by_table: Mapping[str, Sequence[ForecastTask]]
) -> Pair:
    """Return the manifest's entry of the twin of a suite of series.

    Of each origin it has one hard task, where there is one.

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
    twins = []
    taken: set[str] = set()
    for table, tasks in tasks_by_table.items():
        entry = original.entries[table]
        origins = sorted({task.origin for task in tasks})
        for origin in origins:
            kinds = {task.kind: task for task in tasks if task.origin == origin}
            hard = [kinds[kind] for kind in _HARD_SERIES if kind in kinds]
            if not hard:
                continue
            name = str(entry["name"])
            if len(origins) > 1:
                name = f"{name}_o{origin}"
            key = sanitize_name(name).lower()
            if key in taken:
                raise SuiteError(
                    f"two tasks of the twin would be called {name!r}",
                    "rename one of the original's tasks",
                )
            taken.add(key)
            what = _HARD_SERIES[hard[0].kind]
            twins.append(
                TwinTask(
                    name=name,
                    task=hard[0].name,
                    what=f"{what}, of {entry['name']} of {original.name}",
                    limits=_limits(entry),
                    metric=named_metrics(entry) or list(METRICS),
                )
            )
    return Pair(name=twin_name(original.name), of=original.name, tasks=tuple(twins))


def named_metrics(entry: Mapping[str, Any]) -> list[str]:
    """Return the metrics that an entry names: one, several, or none."""
    metric = entry.get("metric") or ()
    names = [metric] if isinstance(metric, str) else metric
    return [str(name) for name in names if name is not None]


def _limits(entry: Mapping[str, Any]) -> dict[str, Any]:
    # what the original leaves out, or states as null, AMLB's defaults decide for both
    return {key: entry[key] for key in LIMITS if entry.get(key) is not None}


def _twin_metrics(
    entry: Mapping[str, Any], task: AmlbTask, is_undefined: bool
) -> list[str] | None:
    """Return the original's metrics, less those that a hard test file leaves undefined.

    None stands for AMLB's own.
    """
    named = named_metrics(entry)
    if not named:
        return task.metric
    defined = [name for name in named if not (is_undefined and name in _RANKED)]
    return defined or list(_DEFINED)


def changed_metrics(pair: Pair, original: Original) -> dict[str, str]:
    """Return, by AMLB task, what the twin is scored by where the original is scored by another."""
    changed = {}
    entries = {str(entry["name"]): entry for entry in original.entries.values()}
    for twin in pair.tasks:
        metrics = twin.metric or []
        if metrics != named_metrics(entries[twin.name]):
            # AMLB optimises the first metric and reports it as the result
            changed[twin.task] = metrics[0]
    return changed


def source_folds_text(task: AmlbTask) -> str:
    """Return which folds of the source stand behind AMLB's, where the numbers differ."""
    if task.folds == list(range(len(task.folds))):
        return ""
    listed = ", ".join(f"{fold} is {source}" for fold, source in enumerate(task.folds))
    return f"folds without failures are left out, so fold {listed} of the original"
