"""Which jobs of a suite have been run, and what came of each.

A job is one framework, under one constraint, on one fold of one AMLB task. AMLB's rows are held
against the suite's own definitions, so that what is *not* there is seen too: AMLB writes no row
for a job whose data it could not load, or that was killed with it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.amlb.definition import Job
from amlb_ext.core.errors import RunError
from amlb_ext.core.unit import F
from amlb_ext.runner.original_results import AdoptedJob, adopt_results
from amlb_ext.runner.processes import shareable
from amlb_ext.runner.results import (
    CONSTRAINT,
    TEXT,
    NoScoresError,
    predictions_path,
    read_results,
)
from amlb_ext.runner.run_folder import (
    RunFolder,
    job_of_row,
    read_run_folder,
    tasks_by_folds,
)
from amlb_ext.suite import SuiteFiles
from amlb_ext.suite.layout import MAIN_SUFFIXES

#: Status of a job, the best first.
STATUS = ("scored", "failed", "missing", "not run")


@dataclass(frozen=True)
class JobTable:
    """What is known of all jobs.

    Attributes
    ----------
    table : DataFrame
        One row per job: ``framework`` (a label that is unique per constraint and, where jobs of
        several versions were scored, per version),
        ``name``, ``constraint``, ``version``, ``benchmark``, ``amlb_task``, ``fold`` (AMLB's),
        ``status`` (``scored``; ``failed``: a row without a result; ``missing``: asked for or
        begun, but without a row or without predictions; ``not run``: neither), ``reason``,
        ``result``, ``metric``, ``duration`` (seconds), ``run`` (folder), and ``original_task``
        and ``original_fold``, the job's names in a run of the benchmark whose hard twin the suite
        holds; empty and -1 for jobs of the suite.
    rows : DataFrame
        AMLB's own rows of this suite, as :func:`amlb_ext.runner.read_results` gives them.
    notes : tuple of str
        What was left out, each one sentence.
    """

    table: pd.DataFrame
    rows: pd.DataFrame
    notes: tuple[str, ...] = ()


#: Columns of :attr:`JobTable.table`.
JOB_COLUMNS = (
    "framework",
    "name",
    "constraint",
    "version",
    "benchmark",
    "amlb_task",
    "fold",
    "status",
    "reason",
    "result",
    "metric",
    "duration",
    "run",
    "original_task",
    "original_fold",
)


def read_jobs(suite: SuiteFiles, *outdirs: Path | str) -> JobTable:
    """Return every job that the given results, or the definitions they ran, speak of.

    Parameters
    ----------
    suite : SuiteFiles
    *outdirs : path
        AMLB's output folders (``-o``), or runs in them. Of several runs of a job the latest
        that was scored counts, else the latest.

    Returns
    -------
    JobTable

    Raises
    ------
    RunError
        No results at all, or none of this suite.
    """
    rows, runs = _read_outdirs(outdirs)
    adopted: list[dict[str, Any]] = []
    original_notes: list[str] = []
    pair = suite.manifest.pair
    if pair is not None:
        # runs of the benchmark whose hard twin the suite holds: its tasks have the names of ours,
        # but all test rows
        original = {
            str(run.path): run
            for run in runs
            if run.benchmark.lower() == pair.of.lower()
        }
        runs = [run for run in runs if str(run.path) not in original]
        is_original = rows["run"].isin(set(original))
        found, original_notes = adopt_results(suite, pair, rows[is_original], original)
        rows = rows[~is_original]
        adopted = [_adopted_record(job) for job in found]
    rows, runs, notes = _select_own(suite.amlb_tasks, rows, runs)
    notes += original_notes
    records: list[dict[str, Any]] = []
    for run in runs:
        own_rows = _rows_of_run(run, rows)
        jobs = _defined_jobs(suite, run.benchmark, _tasks_of_run(run, own_rows))
        records += _records_of_run(run, own_rows, jobs)
    records += adopted
    if not records:
        where = ", ".join(map(str, outdirs))
        details = f" ({' '.join(notes)})" if notes else ""
        raise RunError(
            f"there are no results of the suite {suite.layout.root} in {where}{details}",
            f"run one: hardsynth run FRAMEWORK -u {shlex.quote(str(suite.layout.root))}",
        )
    table = _job_table(records, list(suite.amlb_tasks))
    return JobTable(table, rows.reset_index(drop=True), tuple(notes))


def read_benchmark_jobs(
    tasks: Sequence[str], *outdirs: Path | str, wanted: Collection[Job] = ()
) -> JobTable:
    """Return every job that results of an ordinary benchmark, or of a suite of series, speak of.

    Parameters
    ----------
    tasks : sequence of str
        AMLB's names of the benchmark's tasks.
    *outdirs : path
        See :func:`read_jobs`.
    wanted : collection of Job
        What every framework is to have been run on, even if none was.

    Returns
    -------
    JobTable
        A fold that some framework was run on and another was not is ``not run`` for this one.
        Without any job of these tasks the table is empty.

    Raises
    ------
    RunError
        No results at all.
    """
    rows, runs = _read_outdirs(outdirs)
    rows, runs, notes = _select_own(tasks, rows, runs)
    done = {*wanted, *map(job_of_row, rows.to_dict("records"))}
    for run in runs:
        done |= {job for job in _tried_jobs(run) if job.task in set(tasks)}
    jobs = sorted(done, key=lambda job: (job.task, job.fold))
    records: list[dict[str, Any]] = []
    for run in runs:
        records += _records_of_run(run, _rows_of_run(run, rows), jobs)
    table = pd.DataFrame(columns=list(JOB_COLUMNS))
    if records:
        table = _job_table(records, tasks)
    return JobTable(table, rows.reset_index(drop=True), tuple(notes))


def runs_by_benchmark(*outdirs: Path | str) -> dict[str, list[Path]]:
    """Return the folders of all runs, by the name of the benchmark that AMLB ran.

    Those of AMLB before 2.0 do not say what they ran: their name is empty.

    Raises
    ------
    RunError
        A folder holds no run of AMLB.
    """
    runs: dict[str, list[Path]] = {}
    for outdir in map(Path, outdirs):
        folders = _read_run_folders(outdir)
        if not folders:
            raise RunError(
                f"{outdir} holds no AMLB results that belong to a run with predictions",
                "give the folder that AMLB wrote into (-o)",
            )
        for run in folders.values():
            # AMLB lower-cases the names of folders
            runs.setdefault(run.benchmark.lower(), []).append(run.path)
    return runs


def _job_table(
    records: Sequence[Mapping[str, Any]], tasks: Sequence[str]
) -> pd.DataFrame:
    """Return one row for each job: of several runs of a job the one that counts."""
    table = pd.DataFrame(records)
    # AMLB lower-cases the names of folders: take the spelling of the rows where there is one.
    table["name"] = _respell(table["name"], table["has_row"])
    table["constraint"] = _respell(table["constraint"], table["has_row"])
    table["reason"] = table["reason"].map(shareable)
    # Of several runs of a job the first here counts: the best status, then the suite's own, then
    # the latest.
    table["order"] = table["status"].map(STATUS.index)
    table["is_original"] = table["original_task"] != ""
    table = table.sort_values(
        ["order", "is_original", "stamp"],
        ascending=[True, True, False],
        kind="stable",
    )
    table = _without_healed(table)
    table["framework"] = _framework_labels(table)
    job_key = ["framework", "amlb_task", "fold"]
    table = table.drop_duplicates(job_key)
    # tasks in the given order, frameworks and folds in their own
    table = table.assign(place=table["amlb_task"].map(list(tasks).index))
    table = table.sort_values(["framework", "place", "fold"], ignore_index=True)
    return table[list(JOB_COLUMNS)]


# Rows and runs of the given folders.


def _read_outdirs(
    outdirs: Iterable[Path | str],
) -> tuple[pd.DataFrame, list[RunFolder]]:
    """Return the rows of all folders, with their run, and all runs, with or without rows."""
    frames: list[pd.DataFrame] = []
    runs: dict[str, RunFolder] = {}
    for outdir in map(Path, outdirs):
        folders = _read_run_folders(outdir)
        runs.update(folders)
        try:
            frames.append(read_results(outdir))
        except NoScoresError:
            # A run that was killed leaves a folder without scores: that is a finding, too.
            if not folders:
                raise
    rows = pd.DataFrame(columns=["task", "fold", "framework", "result", "run"])
    if frames:
        rows = pd.concat(frames, ignore_index=True)
    for name in TEXT & set(rows.columns):  # files of other versions may lack a column
        rows[name] = rows[name].fillna("")
    for path in rows["run"].unique():
        if path not in runs:  # rows in a folder that is no run's, e.g. results.csv
            runs[path] = RunFolder(path=Path(path))
    return rows.drop_duplicates(), list(runs.values())


def _read_run_folders(outdir: Path) -> dict[str, RunFolder]:
    """Return the runs in a folder, which may be a run's itself, by their paths."""
    subfolders = sorted(path for path in outdir.glob("*") if path.is_dir())
    found = map(read_run_folder, [outdir, *subfolders])
    return {str(run.path): run for run in found if run is not None}


def _select_own(
    tasks: Collection[str], rows: pd.DataFrame, runs: list[RunFolder]
) -> tuple[pd.DataFrame, list[RunFolder], list[str]]:
    """Return rows and runs of these tasks, and a note on each kind that was left out."""
    notes = []
    is_own = rows["task"].isin(list(tasks))
    if not is_own.all():
        other_tasks = sorted(set(rows.loc[~is_own, "task"]))
        more = ", ..." if len(other_tasks) > 3 else ""
        notes.append(
            f"{(~is_own).sum()} results of other benchmarks were left out "
            f"(tasks {', '.join(other_tasks[:3])}{more})."
        )
    own_runs = []
    for run in runs:
        # other suites have definitions of the same name
        of_run = _tasks_of_run(run, _rows_of_run(run, rows))
        # A run that was killed before its first job may be of this suite as well as of another.
        if not of_run or not of_run.isdisjoint(tasks):
            own_runs.append(run)
    return rows[is_own], own_runs, notes


def _tasks_of_run(run: RunFolder, rows: pd.DataFrame) -> set[str]:
    """Return the tasks of which a run has rows, or which it tried."""
    return {*rows["task"], *(job.task for job in _tried_jobs(run))}


def _rows_of_run(run: RunFolder, rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["run"] == str(run.path)]


def _tried_jobs(run: RunFolder) -> set[Job]:
    """Return the jobs that a run was asked for or has begun."""
    return {*run.asked, *run.log.started, *run.log.reasons}


# One record per job of a run.


def _adopted_record(adopted: AdoptedJob) -> dict[str, Any]:
    """Return the record of a job of the original's that stands for one of the suite's."""
    record = _record_of_row(adopted.run, adopted.row)
    record["original_task"] = record["amlb_task"]
    record["original_fold"] = record["fold"]
    record["amlb_task"] = adopted.amlb_task
    record["fold"] = adopted.fold
    return record


def _records_of_run(
    run: RunFolder, rows: pd.DataFrame, jobs: Sequence[Job]
) -> Iterator[dict[str, Any]]:
    """Yield a record for every job of a run: those with a row, then the other ``jobs``."""
    recorded: set[tuple[str, str, Job]] = set()
    # framework and constraint as the rows say, else as the folder, and the version
    entrants: dict[tuple[str, str], str] = {}
    for row in rows.to_dict("records"):
        record = _record_of_row(run, row)
        name, constraint = record["name"], record["constraint"]
        recorded.add((name, constraint, Job(record["amlb_task"], record["fold"])))
        entrants[name, constraint] = record["version"]
        yield record
    if rows.empty and run.name:
        entrants[run.name, run.constraint] = ""
    tried = _tried_jobs(run)
    for (name, constraint), version in sorted(entrants.items()):
        for job in jobs:
            if (name, constraint, job) in recorded:
                continue
            is_tried = job in tried
            reason = run.log.reasons.get(job) or _why_missing(run, job, is_tried)
            yield {
                **_empty_record(run, job),
                "name": name,
                "constraint": constraint,
                "version": version,
                "status": "missing" if is_tried else "not run",
                "reason": reason,
            }


def _record_of_row(run: RunFolder, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a job from AMLB's row."""
    job = job_of_row(row)
    status = "scored"
    reason = ""
    if pd.isna(row["result"]):
        status = "failed"
        reason = run.log.why_failed(job, row.get("info"))
    elif not predictions_path(run.path, job.task, job.fold).is_file():
        # Without them its errors cannot be compared with those of F row by row.
        status = "missing"
        reason = "scored by AMLB, but its predictions file is missing"
    return {
        **_empty_record(run, job),
        "name": str(row["framework"]),
        "constraint": str(row.get("constraint") or ""),
        "version": str(row.get("version") or ""),
        "metric": str(row.get("metric") or ""),
        "status": status,
        "reason": reason,
        "result": row["result"],
        "duration": row.get("duration"),
        # rows of an appended results.csv have no run, but the time at which they were written
        "stamp": _digits(str(run.stamp or row.get("utc") or "")),
        "has_row": True,
    }


def _empty_record(run: RunFolder, job: Job) -> dict[str, Any]:
    """Return the record of a job of a run, before it is known what came of it."""
    return {
        "benchmark": run.benchmark,
        "amlb_task": job.task,
        "fold": job.fold,
        "result": float("nan"),
        "metric": "",
        "duration": float("nan"),
        "run": str(run.path),
        "original_task": "",
        "original_fold": -1,
        "stamp": _digits(run.stamp),
        "has_row": False,
    }


def _digits(stamp: str) -> str:
    """Return the digits of a time, so that those of folders and of rows compare.

    Examples
    --------
    >>> _digits("20260102T030405") == _digits("2026-01-02T03:04:05")
    True
    """
    return re.sub(r"\D", "", stamp)


def _why_missing(run: RunFolder, job: Job, is_tried: bool) -> str:
    """Return why a job without a row has none, as far as the run's folder tells."""
    if not is_tried:
        return (
            "not asked for" if run.asked else "no result, and no sign that it started"
        )
    if run.is_running:
        return f"not scored yet: the run in {run.path.name} is going on"
    if job in run.log.started:
        return "started but left no result: the job was killed, or AMLB ended during it"
    error = f" ({run.log.last_error})" if run.log.last_error else ""
    return f"requested, but AMLB ended before it started{error}"


def _defined_jobs(
    suite: SuiteFiles, benchmark: str, tasks: Collection[str]
) -> list[Job]:
    """Return the jobs of the definition that a run was made with, as far as it is known.

    The tasks that the run speaks of count as well: a suite installed under another name has
    definitions of other names.
    """
    # AMLB lower-cases definitions in the names of folders.
    definitions = {name.lower(): names for name, names in suite.definitions.items()}
    chosen = {*tasks, *definitions.get(benchmark.lower(), set())}
    jobs = []
    for task in suite.amlb_tasks.values():
        if task.name in chosen:
            jobs += [Job(task.name, fold) for fold in range(len(task.folds))]
    return jobs


def _without_healed(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table without jobs that failed and were later scored, in whatever version.

    A job that fails in the set-up is recorded under another version than its successful re-run
    (``stable``, then ``1.2.4``), so jobs are matched by name and constraint.
    """
    keys = ["name", "constraint", "amlb_task", "fold"]
    is_scored = table["status"] == "scored"
    last_score = table[is_scored].groupby(keys)["stamp"].max().rename("last_score")
    joined = table.join(last_score, on=keys)
    is_healed = ~is_scored & (joined["last_score"].fillna("") > table["stamp"])
    return table[~is_healed].reset_index(drop=True)


def _framework_labels(table: pd.DataFrame) -> pd.Series:
    """Return the framework's name, with constraint and version where they tell rows apart.

    A framework called F is always told apart by its constraint.

    Only versions that scored a job tell rows apart: one that failed in the set-up is no version
    of its own, and goes with the version that was scored last.
    """
    labels = table["name"].copy()
    with_constraint = labels + " (" + table["constraint"] + ")"
    several = table.groupby("name")["constraint"].transform("nunique") > 1
    # in a report F is the baseline, whatever a framework is called
    labels = labels.where(~several & (labels != F), with_constraint)
    for _, entrant in table.groupby(["name", "constraint"]):
        is_versioned = (entrant["status"] == "scored") & (entrant["version"] != "")
        scored = entrant[is_versioned].sort_values("stamp", kind="stable")
        if scored["version"].nunique() < 2:
            continue
        is_known = entrant["version"].isin(scored["version"])
        version = entrant["version"].where(is_known, scored["version"].iloc[-1])
        labels[entrant.index] += " " + version
    return labels


def _respell(texts: pd.Series, is_exact: pd.Series) -> list[str]:
    """Return the texts in the spelling of the exact ones among them."""
    spellings = {text.lower(): text for text in texts[is_exact]}
    return [spellings.get(text.lower(), text) for text in texts]


# Jobs that a verdict needs and nobody has run.


def jobs_for_verdict(jobs: pd.DataFrame, suite: SuiteFiles) -> pd.DataFrame:
    """Return the jobs without which frameworks that were run have no verdict.

    Losses are compared with F's on the untouched test folds, all of them and of every task: whoever
    leaves out a fold may have left out the worst.

    Parameters
    ----------
    jobs : DataFrame
        As :attr:`JobTable.table`.
    suite : SuiteFiles

    Returns
    -------
    DataFrame
        As :func:`rerun_commands` takes it, with the ``framework``; without the jobs that failed,
        which are to be run again as they were. Empty where every framework has its verdicts.
    """
    columns = ["framework", "name", "constraint", "benchmark", "amlb_task", "fold"]
    missing = []
    untouched = []
    for task in suite.amlb_tasks.values():
        if task.suffix == "full":
            untouched += [(task.name, fold) for fold in range(len(task.folds))]
    tried = jobs[jobs["status"] != "not run"]
    for framework, of_framework in tried.groupby("framework", sort=False):
        if "scored" not in set(of_framework["status"]):
            continue
        done = set(zip(of_framework["amlb_task"], of_framework["fold"], strict=True))
        first = of_framework.iloc[0]
        about = (framework, first["name"], first["constraint"], suite.manifest.name)
        for name, fold in untouched:
            if (name, fold) not in done:
                missing.append((*about, name, fold))
    return pd.DataFrame(missing, columns=columns)


# Commands that run some jobs, and no others.


def rerun_commands(
    jobs: pd.DataFrame, suite: SuiteFiles, results: Path | str
) -> list[str]:
    """Return the commands that run again the jobs in ``jobs``, and no others.

    AMLB runs every chosen fold of every chosen task, so tasks that lack the same folds share a
    command.

    Parameters
    ----------
    jobs : DataFrame
        Rows of :func:`read_jobs`.
    suite : SuiteFiles
    results : path
        For ``-r``.

    Returns
    -------
    list of str
        For a POSIX shell.
    """
    commands: list[str] = []
    root = str(suite.layout.root)
    columns = ["name", "constraint", "benchmark"]
    for (name, constraint, benchmark), group in jobs.groupby(columns, sort=False):
        if constraint == CONSTRAINT:  # no run of AMLB's: `hardsynth score` wrote it
            words = ["hardsynth", "score", root, "-r", str(results)]
            commands.append(shlex.join(words))
            continue
        tasks_to_run = set(group["amlb_task"])
        definition = _definition_to_run(suite, str(benchmark), tasks_to_run)
        broken = map(Job, group["amlb_task"], group["fold"])
        for folds, tasks in tasks_by_folds(broken).items():
            words = ["hardsynth", "run", str(name)]
            if constraint:
                words.append(str(constraint))
            words += ["-u", root, "-b", definition, "-r", str(results)]
            for task in tasks:
                words += ["-t", task]
            # AMLB runs every fold where none is named
            if len(folds) < max(len(suite.amlb_tasks[task].folds) for task in tasks):
                for fold in folds:
                    words += ["-f", str(fold)]
            commands.append(shlex.join(words))
    return list(dict.fromkeys(commands))


def _definition_to_run(suite: SuiteFiles, benchmark: str, tasks: set[str]) -> str:
    """Return the definition that holds some tasks of a run of a benchmark."""
    main_name = suite.manifest.name
    # AMLB lower-cases definitions in the names of folders.
    spellings = {"": main_name, **{name.lower(): name for name in suite.definitions}}
    if benchmark.lower() in spellings:
        return spellings[benchmark.lower()]
    # The suite ran as installed under another name: the suite's own definition has the tasks, too.
    suffixes = {suite.amlb_tasks[task].suffix for task in tasks}
    return main_name if suffixes <= set(MAIN_SUFFIXES) else f"{main_name}_all"
