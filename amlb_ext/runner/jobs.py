"""Which jobs of a suite have been run, and what came of each.

A job is one framework, under one constraint, on one fold of one AMLB task. AMLB's rows are held
against the suite's own definitions, so that what is *not* there is seen too: AMLB writes no row
for a job whose data it could not load, or that was killed with it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.amlb.definition import Job
from amlb_ext.core.errors import RunError
from amlb_ext.runner.results import CONSTRAINT, TEXT, read_results
from amlb_ext.runner.run_folder import (
    RunFolder,
    crash_errors,
    failure_reasons,
    last_error,
    prepend_cause,
    read_run_folder,
    started_jobs,
)
from amlb_ext.runner.subprocesses import shareable
from amlb_ext.suite import Suite
from amlb_ext.suite.layout import MAIN_SUFFIXES

#: Status of a job, the best first.
STATUS = ("scored", "failed", "missing", "not run")


@dataclass(frozen=True)
class JobTable:
    """What is known of all jobs.

    Attributes
    ----------
    table : DataFrame
        One row per job: ``framework`` (a label that is unique per constraint and version),
        ``name``, ``constraint``, ``version``, ``benchmark``, ``amlb_task``, ``fold`` (AMLB's),
        ``status`` (``scored``; ``failed``: a row without a result; ``missing``: asked for or
        begun, but without a row or without predictions; ``not run``: neither), ``reason``,
        ``result``, ``metric``, ``duration`` (seconds), ``run`` (folder).
    rows : DataFrame
        AMLB's own rows of this suite, as :func:`amlb_ext.runner.read_results` gives them.
    notes : tuple of str
        What was left out, each one sentence.
    """

    table: pd.DataFrame
    rows: pd.DataFrame
    notes: tuple[str, ...] = ()


#: Columns of ``Jobs.table``.
JOB_COLUMNS = (
    *("framework", "name", "constraint", "version", "benchmark", "amlb_task", "fold", "status"),
    *("reason", "result", "metric", "duration", "run"),
)


def read_jobs(suite: Suite, *outdirs: Path | str) -> JobTable:
    """Return every job that the given results, or the definitions they ran, speak of.

    Parameters
    ----------
    suite : Suite
    *outdirs : path
        AMLB's output folders (``-o``), or runs in them. Of several runs of a job the latest
        that was scored counts, else the latest.

    Returns
    -------
    Jobs

    Raises
    ------
    RunError
        No results at all, or none of this suite.
    """
    rows, runs = _all_rows(outdirs)
    known = rows["task"].isin(list(suite.amlb_tasks))
    notes = []
    if not known.all():
        others = sorted(set(rows.loc[~known, "task"]))
        notes.append(
            f"{int((~known).sum())} results of other benchmarks were left out "
            f"(tasks {', '.join(others[:3])}{', ...' if len(others) > 3 else ''})."
        )
    twin = suite.manifest.pair
    if twin is not None:  # the original's tasks have the same names, but not our rows
        theirs = {str(run.path) for run in runs if run.benchmark.lower() == twin.of.lower()}
        away = known & rows["run"].isin(theirs)
        if away.any():
            notes.append(
                f"{int(away.sum())} results of {twin.of}, the benchmark whose hard twin this suite "
                "holds, were left out: they are of other rows."
            )
        known, runs = known & ~away, [run for run in runs if str(run.path) not in theirs]
    ours = [run for run in runs if _is_ours(suite, run, rows)]
    found = list(_records(suite, rows[known], ours))
    if not found:
        raise RunError(
            f"there are no results of the suite {suite.layout.root} in "
            f"{', '.join(map(str, outdirs))}",
            f"run one: hardsynth run FRAMEWORK -u {shlex.quote(str(suite.layout.root))}",
        )
    table = pd.DataFrame(found)
    table["framework"], table["reason"] = _labels(table), table["reason"].map(shareable)
    table["order"] = table["status"].map(STATUS.index)
    key = ["framework", "amlb_task", "fold"]
    table = table.sort_values(["order", "stamp"], ascending=[True, False], kind="stable")
    table = table.drop_duplicates(key)[list(JOB_COLUMNS)]
    position = {name: index for index, name in enumerate(suite.amlb_tasks)}
    table = table.sort_values(
        key, key=lambda column: column.map(position) if column.name == "amlb_task" else column
    )
    return JobTable(table.reset_index(drop=True), rows[known].reset_index(drop=True), tuple(notes))


def _all_rows(outdirs: Iterable[Path | str]) -> tuple[pd.DataFrame, list[RunFolder]]:
    """Return the rows of all folders, with their run, and all runs, with or without rows."""
    frames, runs, errors = [], {}, []
    for outdir in map(Path, outdirs):
        try:
            frames.append(read_results(outdir))
        except RunError as error:
            errors.append(error)
            found = False
        else:
            found = True
        for path in [outdir, *sorted(p for p in outdir.glob("*") if p.is_dir())]:
            run = read_run_folder(path)
            if run is not None:
                runs[str(path)] = run
                found = True
        if not found:
            raise errors[-1]
    empty = pd.DataFrame({"task": [], "fold": [], "framework": [], "result": [], "run": []})
    rows = pd.concat(frames, ignore_index=True) if frames else empty
    for name in TEXT & set(rows.columns):  # files of other versions may lack a column
        rows[name] = rows[name].fillna("")
    for path in rows["run"].unique():
        if path not in runs:
            runs[path] = RunFolder(Path(path), "", "", "", "", (), "")
    return rows.drop_duplicates(), list(runs.values())


def _is_ours(suite: Suite, run: RunFolder, rows: pd.DataFrame) -> bool:
    """Whether a run was of this suite: other suites have definitions of the same name."""
    tasks = set(rows.loc[rows["run"] == str(run.path), "task"])
    tasks |= {job.task for job in (*run.asked, *started_jobs(run.log), *failure_reasons(run.log))}
    return not tasks or not tasks.isdisjoint(suite.amlb_tasks)


def _records(suite: Suite, rows: pd.DataFrame, runs: list[RunFolder]) -> Iterator[dict[str, Any]]:
    for run in runs:
        own = rows[rows["run"] == str(run.path)]
        reasons, begun, last = failure_reasons(run.log), started_jobs(run.log), last_error(run.log)
        crashes = crash_errors(run.log)
        known = {*run.asked, *begun, *reasons}
        seen: set[tuple[str, str, Job]] = set()
        whose = {(run.name, run.constraint)} if run.name else set()
        if len(own):
            named = own[["framework", *(["constraint"] if "constraint" in own else [])]]
            whose = {(str(p[0]), str(p[1]) if len(p) > 1 else "") for p in named.values}
        versions: dict[tuple[str, str], str] = {}
        for row in own.to_dict("records"):
            job = Job(str(row["task"]), int(row["fold"]))
            name, constraint = str(row["framework"]), str(row.get("constraint") or "")
            seen.add((name, constraint, job))
            versions[name, constraint] = str(row.get("version") or "")
            status, reason = _status(run, row, job, reasons)
            reason = prepend_cause(reason, crashes.get(job, ""))
            yield {
                "name": name,
                "constraint": constraint,
                "version": str(row.get("version") or ""),
                "benchmark": run.benchmark,
                "amlb_task": job.task,
                "fold": job.fold,
                "status": status,
                "reason": reason,
                "result": row["result"],
                "metric": str(row.get("metric") or ""),
                "duration": row.get("duration"),
                "run": str(run.path),
                "stamp": re.sub(r"\D", "", run.stamp or str(row.get("utc") or "")),
                "told": True,
            }
        for name, constraint in sorted(whose):
            for job in _defined(suite, run.benchmark, {*own["task"], *(j.task for j in known)}):
                if (name, constraint, job) in seen or job.task not in suite.amlb_tasks:
                    continue
                asked = job in known
                reason = reasons.get(job, "") or _why(run, asked, job in begun, last)
                yield {
                    "name": name,
                    "constraint": constraint,
                    "version": versions.get((name, constraint), ""),
                    "benchmark": run.benchmark,
                    "amlb_task": job.task,
                    "fold": job.fold,
                    "status": "missing" if asked else "not run",
                    "reason": reason,
                    "result": float("nan"),
                    "metric": "",
                    "duration": float("nan"),
                    "run": str(run.path),
                    "stamp": re.sub(r"\D", "", run.stamp),
                    "told": False,
                }


def _status(
    run: RunFolder, row: Mapping[str, Any], job: Job, reasons: Mapping[Job, str]
) -> tuple[str, str]:
    """Return what became of a job that has a row, and why."""
    if pd.isna(row["result"]):
        said = str(row.get("info") or "") or reasons.get(job)
        return "failed", said or "AMLB gives no reason"
    path = run.path / "predictions" / job.task / str(job.fold) / "predictions.csv"
    if not path.is_file():
        return "missing", "scored by AMLB, but its predictions are not beside the scores"
    return "scored", ""


def _why(run: RunFolder, asked: bool, begun: bool, last: str) -> str:
    if not asked:
        return "not asked for" if run.asked else "neither a result nor a sign that it was begun"
    if begun:
        return "begun, but it left no result: killed, or AMLB ended during it"
    return f"asked for, but AMLB ended before it{f' ({last})' if last else ''}"


def _defined(suite: Suite, benchmark: str, tried: Collection[str]) -> Iterator[Job]:
    """Yield the jobs of the definition that a run was made with, as far as it is known."""
    known = {name.lower(): tasks for name, tasks in suite.definitions.items()}
    asked = known.get(benchmark.lower(), set())
    for task in suite.amlb_tasks.values():
        if task.name in asked or task.name in tried:
            yield from (Job(task.name, fold) for fold in range(len(task.folds)))


def _labels(table: pd.DataFrame) -> pd.Series:
    """Return the framework's name, with constraint and version where they tell rows apart.

    A row without a version (a job that left none) goes with the version of its framework's
    other rows.
    """
    out = table["name"].copy()
    # AMLB lower-cases the names of folders: take the spelling of the rows where there is one
    spelled = {name.lower(): name for name in table.loc[table["told"], "name"]}
    out = table["name"] = out.map(lambda name: spelled.get(name.lower(), name))
    lowered = {c.lower(): c for c in table.loc[table["told"], "constraint"]}
    table["constraint"] = table["constraint"].map(lambda c: lowered.get(c.lower(), c))
    for name, some in table.groupby("name"):
        at = table["name"] == name
        if some["constraint"].nunique() > 1:
            out = out.where(~at, out + " (" + table["constraint"] + ")")
        for constraint, version in some.groupby("constraint")["version"]:
            versions = [v for v in version.unique() if v]
            if len(versions) > 1:
                here = at & (table["constraint"] == constraint) & (table["version"] != "")
                out = out.where(~here, out + " " + table["version"])
    return out


# Commands that run some jobs again, and no others.


def rerun_commands(jobs: pd.DataFrame, suite: Suite, results: Path | str) -> list[str]:
    """Return the commands that run again the jobs in ``jobs``, and no others.

    AMLB runs every chosen fold of every chosen task, so tasks that lack the same folds share a
    command.

    Parameters
    ----------
    jobs : DataFrame
        Rows of :func:`read_jobs`.
    suite : Suite
    results : path
        For ``-r``.

    Returns
    -------
    list of str
        For a POSIX shell.
    """
    commands = []
    columns = ["name", "constraint", "benchmark"]
    root, main = str(suite.layout.root), suite.manifest.name
    # AMLB lower-cases definitions in the names of folders
    spelled = {name.lower(): name for name in suite.definitions} | {"": main}
    for (name, constraint, benchmark), some in jobs.groupby(columns, sort=False):
        if constraint == CONSTRAINT:  # no run of AMLB's: `hardsynth score` wrote it
            commands.append(shlex.join(["hardsynth", "score", root, "-r", str(results)]))
            continue
        suffixes = {suite.amlb_tasks[task].suffix for task in some["amlb_task"]}
        installed = main if suffixes <= set(MAIN_SUFFIXES) else f"{main}_all"  # under another name
        definition = spelled.get(str(benchmark).lower(), installed)
        tasks: dict[tuple[int, ...], list[str]] = {}
        for task, folds in some.groupby("amlb_task", sort=False)["fold"]:
            tasks.setdefault(tuple(sorted(folds)), []).append(str(task))
        for which, names in tasks.items():
            words = ["hardsynth", "run", str(name), *([str(constraint)] if constraint else [])]
            words += ["-u", root, "-b", definition]
            words += ["-r", str(results)]
            words += [word for task in names for word in ("-t", task)]
            if len(which) < max(len(suite.amlb_tasks[task].folds) for task in names):
                words += [word for fold in which for word in ("-f", str(fold))]
            commands.append(shlex.join(words))
    return list(dict.fromkeys(commands))
