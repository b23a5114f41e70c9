"""The report on ordinary results of AMLB: one framework is F, all others are candidates.

Nothing is run again. Tasks and test rows come from the benchmark's definition and its source,
predictions from AMLB's runs; they are joined row by row, and each row's truth must be the source's.
All after that is the report of any suite, see :mod:`amlb_ext.report`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.amlb.configuration import search_definition
from amlb_ext.amlb.definition import sanitize_name
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.display import format_count
from amlb_ext.core.errors import (
    ConfigError,
    HardsynthError,
    RunError,
    SourceError,
    suggest_nearest,
)
from amlb_ext.core.unit import ROW
from amlb_ext.core.version import __version__
from amlb_ext.models.columns import list_names
from amlb_ext.report.build import (
    assemble_report,
    build_in_order,
    check_level,
    frameworks_in_order,
    points_per_chart,
    suite_overview,
    with_refusals,
)
from amlb_ext.report.charts import framework_colours
from amlb_ext.report.described import TaskSettings
from amlb_ext.report.model import BuiltTask, SuiteReport
from amlb_ext.report.results_task import build_result_task
from amlb_ext.runner.jobs import read_benchmark_jobs, runs_by_benchmark
from amlb_ext.runner.results import read_results
from amlb_ext.sources import open_specs
from amlb_ext.sources.amlb_yaml import AmlbSource
from amlb_ext.sources.base import TaskRef

#: What AMLB calls a task of OpenML, in its column ``id``.
_TASK_ID = re.compile(r"(?:.*/)?((?:test\.)?openml)\.org/t/(\d+)")
#: What AMLB makes of ``openml/s/271`` in the name of a run.
_OPENML_NAME = re.compile(r"((?:test_)?openml)_([st])_(\d+)")
_NO_REFITS = (
    "Results hold one fit of F for each fold and none beside it, so what F would do if it were "
    "fitted again is not known: where F fails changes are described, and none is judged."
)


def build_results_report(
    results: Sequence[str | Path],
    baseline: str,
    *,
    benchmark: str | None = None,
    options: SourceConfig | None = None,
    workers: int = 1,
    segments: Sequence[str] = (),
    loss: Any = None,
    level: float = 0.95,
    charts: bool = True,
    quiet: bool = True,
) -> SuiteReport:
    """Compare the frameworks of AMLB's results with one of them, task by task and over all tasks.

    Parameters
    ----------
    results : sequence of path
        AMLB's output folders, or runs in them. Of several runs of a job the latest that was scored
        counts.
    baseline : str
        The framework that is F, as the results call it.
    benchmark : str, optional
        The definition that was run: a name, a YAML file, ``openml/s/ID`` or ``openml/t/ID``. By
        default the one that the runs are named after.
    options : SourceConfig, optional
        Where definitions and data are.
    workers : int
        Processes, one task each; 0 for every core. They change nothing but time.
    segments : sequence of str
        See :func:`amlb_ext.report.build.build_report`.
    loss : optional
        What is compared, see :func:`amlb_ext.core.losses.read_loss`; by default the Brier loss or
        the squared error of the scaled target, which a task keeps that it does not fit.
    level : float
        Nominal coverage of intervals, between 0 and 1.
    charts : bool
        Whether to draw charts.
    quiet : bool
        Show no progress bar.

    Returns
    -------
    SuiteReport

    Raises
    ------
    RunError
        A folder has no results, those of two benchmarks, or none of this one; or F has no
        predictions of any task.
    ConfigError
        The results have no such framework, no task has a segment, or the loss fits no task.
    SourceError
        The definition is not found.
    """
    check_level(level)
    if not results:
        raise ConfigError("no results were named", "give AMLB's folder with --results")
    options = options or SourceConfig()
    name, refs, runs, notes = _find_benchmark(results, benchmark, options)
    jobs = read_benchmark_jobs(list(refs), *runs)
    if jobs.table.empty:
        raise RunError(
            f"no result in {', '.join(map(str, results))} is of {name}, whose tasks are "
            f"{list_names(refs)}",
            "name the definition that was run with --benchmark",
        )
    baseline = _find_baseline(baseline, jobs.table)
    others = sorted(set(jobs.table["framework"]) - {baseline}, key=str.lower)
    if not others:
        raise RunError(
            f"the results have no framework but {baseline}",
            "run another one and give its results, too",
        )
    colours = framework_colours(others)
    tasks = [name for name in refs if name in set(jobs.table["amlb_task"])]
    settings = TaskSettings(
        colours=colours,
        level=level,
        points=points_per_chart(len(tasks)) if charts else 0,
        segments=segments,
        loss=loss,
    )
    ids = {}
    if "id" in jobs.rows:
        ids = jobs.rows.groupby("task")["id"].agg(set).to_dict()
    inputs = []
    for task in tasks:
        matches = map(_TASK_ID.fullmatch, ids.get(task, ()))
        task_ids = frozenset(match[2] for match in matches if match)
        own_jobs = jobs.table[jobs.table["amlb_task"] == task]
        inputs.append((task, refs[task], task_ids, own_jobs, baseline, settings))
    parts = build_in_order(_try_task, inputs, workers, quiet)
    built_tasks = [part for part in parts if isinstance(part, BuiltTask)]
    left_out = [part for part in parts if isinstance(part, str)]
    if not built_tasks:
        raise RunError(f"no task can be compared: {left_out[0]}")
    without = [name for name in refs if name not in tasks]
    if without:
        counted = f"{len(without)} of {format_count(len(refs), 'task')}"
        left_out.append(f"{counted} of {name} have no result: {list_names(without)}")
    counts = suite_overview(name, [part.report for part in built_tasks], ROW)
    return assemble_report(
        built_tasks,
        with_refusals(jobs.table, built_tasks),
        settings,
        unit=ROW,
        name=name,
        about={
            "Benchmark": name,
            "Baseline F": baseline,
            "Tasks": counts["Tasks"],
            "Test rows": counts["Test rows"],
            "hardsynth": __version__,
        },
        caveats=[_NO_REFITS],
        warnings=[f"{text}." for text in left_out],
        question=f"Which framework really improves on {baseline}, today’s model F, and where?",
        notes=(*notes, *_version_notes(jobs.rows), *jobs.notes),
        noun="benchmark",
    )


def _find_benchmark(
    results: Sequence[str | Path], given: str | None, options: SourceConfig
) -> tuple[str, dict[str, TaskRef], Sequence[Path], Sequence[str]]:
    """Return what was run, its tasks by AMLB's names, the folders of its runs, and notes."""
    runs = runs_by_benchmark(*results)
    # AMLB before 2.0 does not say: what is given is held against the tasks and each row's truth
    unnamed = runs.pop("", [])
    if unnamed and given is None:
        raise RunError(
            f"{unnamed[0]} does not say which benchmark it is of, as a run of AMLB before 2.0",
            "give the definition that was run with --benchmark",
        )
    name = _run_name(given) if given is not None else next(iter(runs))
    if len(runs) == 1 and not unnamed:
        # the same definition under another name
        name = next(iter(runs))
    others = sorted(set(runs) - {name})
    if len(runs) > 1 and (given is None or name not in runs):
        raise RunError(
            f"the results are of {len(runs)} benchmarks: {', '.join(sorted(runs))}",
            "name the one to be reported with --benchmark",
        )
    notes = []
    if others:
        notes.append(f"Results of other benchmarks were left out: {', '.join(others)}.")
    own_runs = (*runs.get(name, ()), *unnamed)
    rows = read_results(*own_runs)
    ids = dict(zip(rows["task"], rows.get("id", rows["task"]), strict=True))
    spec = given or _spec_of_run(name, options)
    if spec is None:
        refs = _refs_by_id(name, ids, options)
    else:
        refs = _refs_by_name(spec, ids, options)
    shown = name if spec is None else _shown_name(spec)
    return shown, refs, own_runs, notes


def _run_name(spec: str) -> str:
    """Return what AMLB calls a benchmark in the names of its runs.

    Examples
    --------
    >>> _run_name("my/Small.yaml"), _run_name("openml/s/271")
    ('small', 'openml_s_271')
    """
    return sanitize_name(_shown_name(spec)).lower()


def _shown_name(spec: str) -> str:
    is_file = spec.lower().endswith((".yaml", ".yml"))
    return Path(spec).stem if is_file else spec


def _spec_of_run(name: str, options: SourceConfig) -> str | None:
    """Return the spec of the benchmark that a run is named after; None where none is found.

    Examples
    --------
    >>> _spec_of_run("openml_s_271", SourceConfig()), _spec_of_run("validation", SourceConfig())
    ('openml/s/271', 'validation')
    """
    match = _OPENML_NAME.fullmatch(name)
    if match:
        return f"{match[1].replace('_', '.')}/{match[2]}/{match[3]}"
    for known in AmlbSource().suggestions(options):
        if _run_name(known) == name:
            return known
    return None


def _refs_by_name(
    spec: str, ids: Mapping[str, str], options: SourceConfig
) -> dict[str, TaskRef]:
    """Return the tasks of a definition by the names that AMLB has for them."""
    by_id = {_openml_task(text): task for task, text in ids.items()}
    if re.fullmatch(r"[\w.-]+", spec) and search_definition(spec, options) is None:
        known = AmlbSource().suggestions(options)
        raise SourceError(
            f"there is no AMLB definition {spec!r}", suggest_nearest(spec, known)
        )
    return {
        by_id.get(ref.spec, sanitize_name(ref.name)): ref
        for ref in open_specs([spec], options)
    }


def _refs_by_id(
    name: str, ids: Mapping[str, str], options: SourceConfig
) -> dict[str, TaskRef]:
    """Return the tasks of OpenML that results name, where their definition is not found."""
    refs = {}
    for task, text in ids.items():
        spec = _openml_task(text)
        if not spec:
            raise SourceError(
                f"no definition {name!r} is found, and {task} is no task of OpenML",
                "give the definition that was run with --benchmark FILE",
            )
        [refs[task]] = open_specs([spec], options)
    return refs


def _openml_task(text: object) -> str:
    """Return the spec of the task of OpenML that AMLB's ``id`` names; empty for none."""
    match = _TASK_ID.fullmatch(str(text))
    return f"{match[1]}/t/{match[2]}" if match else ""


def _find_baseline(given: str, jobs: pd.DataFrame) -> str:
    """Return the framework that a user means, as the report calls it."""
    labels = frameworks_in_order(jobs)
    if given in labels:
        return given
    of_name = jobs.loc[jobs["name"] == given, "framework"].unique()
    if len(of_name) == 1:
        return str(of_name[0])
    if len(of_name) > 1:
        raise ConfigError(
            f"--baseline {given} was run as {', '.join(sorted(of_name))}",
            f"name one of them: --baseline {of_name[0]!r}",
        )
    raise ConfigError(
        f"--baseline {given}: the results have no framework of that name",
        suggest_nearest(given, labels),
    )


def _try_task(name: str, *inputs: Any) -> BuiltTask | str:
    """Return the task's part of the report, or why there is none."""
    try:
        return build_result_task(name, *inputs)
    except HardsynthError as error:
        return f"{name} is left out: {error}"


def _version_notes(rows: pd.DataFrame) -> list[str]:
    """Return which framework was run by which version of AMLB, where there are several.

    Examples
    --------
    >>> table = {"app_version": ["2.1.7", "1.5"], "framework": ["flaml", "TPOT"]}
    >>> _version_notes(pd.DataFrame(table))[0]
    'The results are of several versions of AMLB: 1.5 (TPOT), 2.1.7 (flaml).'
    """
    named = rows[rows.get("app_version", pd.Series("", rows.index)) != ""]
    versions = named.groupby("app_version")["framework"].unique() if len(named) else {}
    if len(versions) < 2:
        return []
    told = [f"{version} ({list_names(of)})" for version, of in versions.items()]
    return [f"The results are of several versions of AMLB: {', '.join(told)}."]
