"""A hard twin of an existing benchmark: the same task names, limits and metrics, hard rows.

AMLB's ``results.csv`` names the task but not the benchmark, so twins get an ``id`` of their own:
``<twin>/<task>``. AMLB's ``--resume`` goes by it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amlb_ext.core.task import Kind
from amlb_ext.suite.definition import benchmark_entries
from amlb_ext.suite.manifest import AmlbTask, Pair, PairTask

#: Keys of a task that decide how AMLB runs it, in the order in which they are written.
LIMITS = (
    "max_runtime_seconds",
    "cores",
    "max_mem_size_mb",
    "min_vol_size_mb",
    "ec2_instance_type",
    "ec2_volume_type",
    "quantile_levels",
)
#: Metrics that a test file of fewer classes than the task has leaves undefined.
_RANKED = frozenset({"auc", "pr_auc", "auc_ovo", "auc_ovr"})
#: The metrics that stand in their place; see :func:`amlb_ext.amlb.loader_rules.metrics_for`.
_DEFINED = ["logloss", "acc"]


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


def make_pair(
    original: Original,
    amlb_tasks: Sequence[AmlbTask],
    *,
    labels: Mapping[str, Sequence[str]],
    lacks_a_class: Mapping[str, bool],
) -> Pair:
    """Return the manifest's entry of the twin.

    Parameters
    ----------
    original : Original
    amlb_tasks : sequence of AmlbTask
        Of the suite; the main ones are taken.
    labels : mapping of str to sequence of str
        Each task's class labels; empty for regression.
    lacks_a_class : mapping of str to bool
        Whether a test file of the task lacks a class.
    """
    tasks: dict[str, PairTask] = {}
    for task in amlb_tasks:
        if task.suffix or task.name not in original.entries:
            continue
        entry = original.entries[task.name]
        # what the original leaves out, or states as null, AMLB's defaults decide for both
        limits = {key: entry[key] for key in LIMITS if entry.get(key) is not None}
        is_undefined = bool(labels[task.name]) and lacks_a_class[task.name]
        tasks[task.name] = PairTask(
            name=str(entry["name"]),
            limits=limits,
            metric=_twin_metrics(entry, task, is_undefined),
        )
    return Pair(name=twin_name(original.name), of=original.name, tasks=tasks)


def named_metrics(entry: Mapping[str, Any]) -> list[str]:
    """Return the metrics that an entry names: one, several, or none."""
    metric = entry.get("metric")
    if isinstance(metric, str):
        return [metric]
    names = metric or ()
    return [str(name) for name in names if name is not None]


def _twin_metrics(
    entry: Mapping[str, Any], task: AmlbTask, is_undefined: bool
) -> list[str] | None:
    """Return the original's metrics, less those that a hard test file leaves undefined.

    None stands for AMLB's own.
    """
    named = named_metrics(entry)
    if not named:
        return task.metric
    if not is_undefined or task.type is Kind.REGRESSION:
        return named
    defined = [metric for metric in named if metric not in _RANKED]
    return defined or list(_DEFINED)


def changed_metrics(pair: Pair, original: Original) -> dict[str, str]:
    """Return, by task, what the twin is scored by where the original is scored by another."""
    changed = {}
    for task, entry in pair.tasks.items():
        metrics = entry.metric or []
        if metrics != named_metrics(original.entries[task]):
            # AMLB optimises the first metric and reports it as the result
            changed[task] = metrics[0]
    return changed


def pair_entries(
    pair: Pair, amlb_tasks: Mapping[str, AmlbTask]
) -> list[dict[str, Any]]:
    """Return the content of the twin's definition.

    Limits stand in it only where the original's own entry (or its defaults) has them.
    """
    entries = []
    # the definition has the order of the AMLB tasks, not that of the pair
    for name, task in amlb_tasks.items():
        if name not in pair.tasks:
            continue
        twin = pair.tasks[name]
        original_name = twin.name
        limits = twin.limits
        [plain] = benchmark_entries([task])
        description = f"hard rows of {original_name} of {pair.of}"
        folds_text = source_folds_text(task)
        if folds_text:
            description += f"; {folds_text}"
        # keys are written in this order
        entry: dict[str, Any] = {
            "name": original_name,
            "id": f"{pair.name}/{original_name}",
            "description": description,
            "folds": plain["folds"],
        }
        for limit in LIMITS:
            if limit in limits:
                entry[limit] = limits[limit]
        entry["dataset"] = plain["dataset"]
        if twin.metric is not None:
            entry["metric"] = list(twin.metric)
        entries.append(entry)
    return entries


def source_folds_text(task: AmlbTask) -> str:
    """Return which folds of the source stand behind AMLB's, where the numbers differ."""
    amlb_folds = list(range(len(task.folds)))
    if task.folds == amlb_folds:
        return ""
    pairs = [f"{fold} is {source}" for fold, source in enumerate(task.folds)]
    listed = ", ".join(pairs)
    return f"folds without failures are left out, so fold {listed} of the original"
