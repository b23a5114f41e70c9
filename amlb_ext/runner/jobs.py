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
from amlb_ext.runner.run_folder import RunFolder, RunLog, read_run_folder
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
    *(
        "framework",
        "name",
        "constraint",
        "version",
        "benchmark",
        "amlb_task",
        "fold",
        "status",
    ),
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
    JobTable

    Raises
    ------
    RunError
        No results at all, or none of this suite.
    """
    rows, runs = _all_rows(outdirs)
    rows, runs, notes = _of_this_suite(suite, rows, runs)
    records = list(_records(suite, rows, runs))
    if not records:
        raise RunError(
            f"there are no results of the suite {suite.layout.root} in "
            f"{', '.join(map(str, outdirs))}",
            f"run one: hardsynth run FRAMEWORK -u {shlex.quote(str(suite.layout.root))}",
        )
    table = pd.DataFrame(records)
    table["framework"] = _labels(table)
    table["reason"] = table["reason"].map(shareable)
    # Of several runs of a job the first here counts: the best status, then the latest.
    table["order"] = table["status"].map(STATUS.index)
    table = table.sort_values(
        ["order", "stamp"], ascending=[True, False], kind="stable"
    )
    key = ["framework", "amlb_task", "fold"]
    table = table.drop_duplicates(key)[list(JOB_COLUMNS)]
    position = {name: index for index, name in enumerate(suite.amlb_tasks)}
    table = table.sort_values(
        key,
        key=lambda column: (
            column.map(position) if column.name == "amlb_task" else column
        ),
    )
    return JobTable(
        table.reset_index(drop=True), rows.reset_index(drop=True), tuple(notes)
    )


def _of_this_suite(
    suite: Suite, rows: pd.DataFrame, runs: list[RunFolder]
) -> tuple[pd.DataFrame, list[RunFolder], list[str]]:
    """Return rows and runs of this suite, and a note on each kind that was left out."""
    notes = []
    is_own = rows["task"].isin(list(suite.amlb_tasks))
    if not is_own.all():
        others = sorted(set(rows.loc[~is_own, "task"]))
        notes.append(
            f"{int((~is_own).sum())} results of other benchmarks were left out "
            f"(tasks {', '.join(others[:3])}{', ...' if len(others) > 3 else ''})."
        )
    pair = suite.manifest.pair
    if pair is not None:  # the original's tasks have the same names, but not our rows
        of_original = {
            str(run.path) for run in runs if run.benchmark.lower() == pair.of.lower()
        }
        is_original = is_own & rows["run"].isin(of_original)
        if is_original.any():
            notes.append(
                f"{int(is_original.sum())} results of {pair.of}, the benchmark whose hard twin "
                "this suite holds, were left out: they are of other rows."
            )
        is_own &= ~is_original
        runs = [run for run in runs if str(run.path) not in of_original]
    return rows[is_own], [run for run in runs if _is_ours(suite, run, rows)], notes


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
    empty = pd.DataFrame(
        {"task": [], "fold": [], "framework": [], "result": [], "run": []}
    )
    rows = pd.concat(frames, ignore_index=True) if frames else empty
    for name in TEXT & set(rows.columns):  # files of other versions may lack a column
        rows[name] = rows[name].fillna("")
    for path in rows["run"].unique():
        if path not in runs:
            runs[path] = RunFolder(Path(path), "", "", "", "", (), "")
    return rows.drop_duplicates(), list(runs.values())


def _is_ours(suite: Suite, run: RunFolder, rows: pd.DataFrame) -> bool:
    """Whether a run was of this suite: other suites have definitions of the same name."""
    log = RunLog.read(run.log)
    tasks = set(rows.loc[rows["run"] == str(run.path), "task"])
    tasks |= {job.task for job in (*run.asked, *log.started, *log.reasons)}
    return not tasks or not tasks.isdisjoint(suite.amlb_tasks)


def _records(
    suite: Suite, rows: pd.DataFrame, runs: list[RunFolder]
) -> Iterator[dict[str, Any]]:
    """Yield a row of the table for every job of every run."""
    for run in runs:
        log = RunLog.read(run.log)
        own_rows = rows[rows["run"] == str(run.path)]
        with_rows: set[tuple[str, str, Job]] = set()
        versions: dict[tuple[str, str], str] = {}
        for row in own_rows.to_dict("records"):
            record = _record_of_row(run, row, log)
            entrant = (record["name"], record["constraint"])
            with_rows.add((*entrant, Job(record["amlb_task"], record["fold"])))
            versions[entrant] = record["version"]
            yield record
        tried = {*run.asked, *log.started, *log.reasons}
        tasks = {*own_rows["task"], *(job.task for job in tried)}
        for name, constraint in sorted(_entrants(run, own_rows)):
            for job in _defined_jobs(suite, run.benchmark, tasks):
                if (
                    name,
                    constraint,
                    job,
                ) in with_rows or job.task not in suite.amlb_tasks:
                    continue
                is_tried = job in tried
                yield _record(
                    run,
                    job,
                    name=name,
                    constraint=constraint,
                    version=versions.get((name, constraint), ""),
                    status="missing" if is_tried else "not run",
                    reason=log.reasons.get(job, "")
                    or _why_missing(run, job, is_tried, log),
                )


def _entrants(run: RunFolder, rows: pd.DataFrame) -> set[tuple[str, str]]:
    """Return framework and constraint of a run: as its rows say, else as its folder."""
    if not len(rows):
        return {(run.name, run.constraint)} if run.name else set()
    constraints = rows["constraint"] if "constraint" in rows else [""] * len(rows)
    return {
        (str(name), str(c))
        for name, c in zip(rows["framework"], constraints, strict=True)
    }


def _record_of_row(
    run: RunFolder, row: Mapping[str, Any], log: RunLog
) -> dict[str, Any]:
    """Return what AMLB's row says of a job."""
    job = Job(str(row["task"]), int(row["fold"]))
    status, reason = "scored", ""
    if pd.isna(row["result"]):
        status, reason = "failed", log.why_failed(job, row.get("info"))
    elif not _predictions_path(run, job).is_file():
        # Without them its errors cannot be compared with those of F row by row.
        status = "missing"
        reason = "scored by AMLB, but its predictions are not beside the scores"
    record = _record(
        run,
        job,
        name=str(row["framework"]),
        constraint=str(row.get("constraint") or ""),
        version=str(row.get("version") or ""),
        status=status,
        reason=reason,
    )
    return record | {
        "result": row["result"],
        "metric": str(row.get("metric") or ""),
        "duration": row.get("duration"),
        "stamp": re.sub(r"\D", "", run.stamp or str(row.get("utc") or "")),
        "has_row": True,
    }


def _record(
    run: RunFolder,
    job: Job,
    *,
    name: str,
    constraint: str,
    version: str,
    status: str,
    reason: str,
) -> dict[str, Any]:
    """Return a row of the table for a job without any of AMLB's."""
    return {
        "name": name,
        "constraint": constraint,
        "version": version,
        "benchmark": run.benchmark,
        "amlb_task": job.task,
        "fold": job.fold,
        "status": status,
        "reason": reason,
        "result": float("nan"),
        "metric": "",
        "duration": float("nan"),
        "run": str(run.path),
        "stamp": re.sub(r"\D", "", run.stamp),
        "has_row": False,
    }


def _predictions_path(run: RunFolder, job: Job) -> Path:
    return run.path / "predictions" / job.task / str(job.fold) / "predictions.csv"


def _why_missing(run: RunFolder, job: Job, is_tried: bool, log: RunLog) -> str:
    """Return why a job without a row has none, as far as the run's folder tells."""
    if not is_tried:
        return (
            "not asked for"
            if run.asked
            else "neither a result nor a sign that it was begun"
        )
    if job in log.started:
        return "begun, but it left no result: killed, or AMLB ended during it"
    return f"asked for, but AMLB ended before it{f' ({log.last_error})' if log.last_error else ''}"


def _defined_jobs(
    suite: Suite, benchmark: str, tried: Collection[str]
) -> Iterator[Job]:
    """Yield the jobs of the definition that a run was made with, as far as it is known."""
    # AMLB lower-cases definitions in the names of folders
    definitions = {name.lower(): tasks for name, tasks in suite.definitions.items()}
    defined = definitions.get(benchmark.lower(), set())
    for task in suite.amlb_tasks.values():
        if task.name in defined or task.name in tried:
            yield from (Job(task.name, fold) for fold in range(len(task.folds)))


def _labels(table: pd.DataFrame) -> pd.Series:
    """Return the framework's name, with constraint and version where they tell rows apart.

    A row without a version (a job that left none) goes with the version of its framework's
    other rows.
    """
    # AMLB lower-cases the names of folders: take the spelling of the rows where there is one
    for column in ("name", "constraint"):
        spellings = {text.lower(): text for text in table.loc[table["has_row"], column]}
        table[column] = [spellings.get(text.lower(), text) for text in table[column]]
    labels = table["name"].copy()
    for name, of_name in table.groupby("name"):
        has_name = table["name"] == name
        if of_name["constraint"].nunique() > 1:
            labels = labels.where(~has_name, labels + " (" + table["constraint"] + ")")
        for constraint, versions in of_name.groupby("constraint")["version"]:
            if len([version for version in versions.unique() if version]) > 1:
                is_versioned = has_name & (table["constraint"] == constraint)
                is_versioned &= table["version"] != ""
                labels = labels.where(~is_versioned, labels + " " + table["version"])
    return labels


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
            commands.append(
                shlex.join(["hardsynth", "score", root, "-r", str(results)])
            )
            continue
        suffixes = {suite.amlb_tasks[task].suffix for task in some["amlb_task"]}
        installed = (
            main if suffixes <= set(MAIN_SUFFIXES) else f"{main}_all"
        )  # under another name
        definition = spelled.get(str(benchmark).lower(), installed)
        tasks: dict[tuple[int, ...], list[str]] = {}
        for task, folds in some.groupby("amlb_task", sort=False)["fold"]:
            tasks.setdefault(tuple(sorted(folds)), []).append(str(task))
        for which, names in tasks.items():
            words = [
                "hardsynth",
                "run",
                str(name),
                *([str(constraint)] if constraint else []),
            ]
            words += ["-u", root, "-b", definition]
            words += ["-r", str(results)]
            words += [word for task in names for word in ("-t", task)]
            if len(which) < max(len(suite.amlb_tasks[task].folds) for task in names):
                words += [word for fold in which for word in ("-f", str(fold))]
            commands.append(shlex.join(words))
    return list(dict.fromkeys(commands))
