"""What a run was asked for and what came of it.

AMLB's exit status is 0 even when jobs failed: a job whose data cannot be loaded has no results
row at all, a framework that fails has a row with an empty ``result``. So the rows are held
against the jobs that the definition asks for, and AMLB's reasons are taken from its log.
"""

from __future__ import annotations

import itertools
import json
import re
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.amlb.definition import Job
from amlb_ext.core.errors import RunError
from amlb_ext.core.locks import is_locked
from amlb_ext.runner.processes import (
    COLOUR,
    MAX_CHARACTERS,
    framework_error,
    nonempty_lines,
)

#: Where neither the row nor the log says why a job has no score.
NO_REASON = "AMLB gives no reason"


@dataclass(frozen=True)
class UnscoredJob:
    """A job without a score, and AMLB's reason."""

    task: str
    fold: int
    reason: str

    def __str__(self) -> str:
        return f"{self.task}, fold {self.fold}: {self.reason}"


UnscoredJobs = tuple[UnscoredJob, ...]


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """What a run was asked for and what came of it.

    Attributes
    ----------
    run_dir : Path
        The run's folder: ``scores``, ``predictions``, ``logs.zip`` and our ``run.log``.
    command : tuple of str
    amlb_exit : int
        AMLB's own exit status.
    seconds : float
    expected : tuple of Job
        The jobs of the definition; empty for an OpenML suite or task, which only AMLB knows.
    rows : DataFrame
        The results, see :func:`amlb_ext.runner.results.read_results`; may be empty.
    missing : tuple of UnscoredJob
        Jobs without a results row.
    failed : tuple of UnscoredJob
        Jobs with a row but without a result.
    setup_failure : str
        Why the framework could not be set up; empty where it was.
    """

    run_dir: Path
    command: tuple[str, ...] = ()
    amlb_exit: int = 0
    seconds: float = 0.0
    expected: tuple[Job, ...]
    rows: pd.DataFrame
    missing: UnscoredJobs = ()
    failed: UnscoredJobs = ()
    setup_failure: str = ""

    @property
    def log(self) -> Path:
        """The file that holds AMLB's whole output."""
        return self.run_dir / "run.log"

    @property
    def ok(self) -> bool:
        """Whether every job has a score."""
        if self.amlb_exit or self.missing or self.failed:
            return False
        return len(self.rows) > 0

    def summary(self) -> str:
        """Return a few lines for a person: counts, then each reason with its jobs."""
        total = len(self.expected)
        if not total:  # of an OpenML suite or task, whose jobs only AMLB knows
            total = len(self.rows) + len(self.missing)
        scored = int(self.rows["result"].notna().sum())
        lines = [
            f"{scored} of {total} jobs scored in {self.seconds:.0f} s: {self.run_dir}"
        ]
        unscored_by_reason: dict[str, list[UnscoredJob]] = {}
        for job in (*self.missing, *self.failed):
            unscored_by_reason.setdefault(job.reason, []).append(job)
        for reason, unscored in unscored_by_reason.items():
            names = ", ".join(f"{job.task}/{job.fold}" for job in unscored[:5])
            others = len(unscored) - 5
            more = f" and {others} more" if others > 0 else ""
            lines.append(f"no score for {names}{more}: {reason}")
        if self.setup_failure:
            if not unscored_by_reason:
                lines.append(self.setup_failure)
            lines.append(
                f"full output: {self.log}; the same command again, or with '-- -s force' "
                "at its end, sets it up afresh"
            )
        elif any(map(_OF_ENVIRONMENT.match, unscored_by_reason)):
            lines.append(
                "if its packages do not fit together, the same command with '-- -s force' at its "
                "end sets the framework up afresh"
            )
        elif not self.ok and not unscored_by_reason:
            lines.append(f"AMLB ended with status {self.amlb_exit}, see {self.log}")
        return "\n".join(lines)


def join_outcomes(outcomes: Sequence[RunOutcome]) -> RunOutcome:
    """Return the outcome of a command that went on with stopped runs.

    Parameters
    ----------
    outcomes : sequence of RunOutcome
        What the stopped runs scored, of all that the command asks for, then the runs that were
        needed.
    """
    last = outcomes[-1]
    return RunOutcome(
        run_dir=last.run_dir,
        command=last.command,
        amlb_exit=max(outcome.amlb_exit for outcome in outcomes),
        seconds=sum(outcome.seconds for outcome in outcomes),
        expected=outcomes[0].expected,
        rows=pd.concat([outcome.rows for outcome in outcomes]),
        missing=tuple(job for outcome in outcomes for job in outcome.missing),
        failed=tuple(job for outcome in outcomes for job in outcome.failed),
        setup_failure=last.setup_failure,
    )


#: Errors of a job that packages of other versions, or damaged ones, make.
_OF_ENVIRONMENT = re.compile(
    r"(\w+\.)*(ImportError|ModuleNotFoundError|AttributeError)\b"
)


def tasks_by_folds(jobs: Iterable[Job]) -> dict[tuple[int, ...], list[str]]:
    """Return the tasks of which the same folds are to be run, by these folds.

    AMLB runs every chosen fold of every chosen task.

    Examples
    --------
    >>> tasks_by_folds([Job("a", 1), Job("b", 0), Job("a", 0), Job("c", 1)])
    {(0, 1): ['a'], (0,): ['b'], (1,): ['c']}
    """
    folds_of_task: dict[str, list[int]] = {}
    for job in jobs:
        folds_of_task.setdefault(job.task, []).append(job.fold)
    tasks: dict[tuple[int, ...], list[str]] = {}
    for task, folds in folds_of_task.items():
        tasks.setdefault(tuple(sorted(folds)), []).append(task)
    return tasks


def job_of_row(row: Mapping[str, Any]) -> Job:
    """Return the job of a row of AMLB's results."""
    return Job(str(row["task"]), int(row["fold"]))


@dataclass(frozen=True, kw_only=True)
class RunLog:
    """What AMLB's log tells of each job.

    Attributes
    ----------
    started : set of Job
        Jobs that were begun.
    reasons : dict of Job to str
        AMLB's reason for each job that failed.
    crashes : dict of Job to str
        The last error of each started job's own process; empty where there is none.
    last_error : str
        The last line where it is an error's, else empty.
    """

    started: set[Job] = field(default_factory=set)
    reasons: dict[Job, str] = field(default_factory=dict)
    crashes: dict[Job, str] = field(default_factory=dict)
    last_error: str = ""

    @classmethod
    def read(cls, text: str) -> RunLog:
        """Return what the text of a log tells.

        Examples
        --------
        >>> log = RunLog.read(
        ...     "Starting job local.hardsynth.quick.toy.0.flaml.\\n"
        ...     "ValueError: too few rows\\n"
        ...     "subprocess.CalledProcessError: Command 'exec.py' returned non-zero exit status 1."
        ... )
        >>> log.started, log.crashes
        ({Job(task='toy', fold=0)}, {Job(task='toy', fold=0): 'ValueError: too few rows'})
        """
        plain = COLOUR.sub("", text)
        starts = list(_STARTED.finditer(plain))
        crashes = {}
        for start, following in itertools.zip_longest(starts, starts[1:]):
            # AMLB runs jobs one by one: all that stands before the next start is this job's.
            end = following.start() if following else len(plain)
            crashes[_named_job(start)] = _crash_of_job(plain[start.end() : end])
        fails = _FAILED.finditer(plain)
        last_line = (nonempty_lines(plain) or [""])[-1]
        has_ended_so = _ERROR_LINE.match(last_line)
        return cls(
            started=set(map(_named_job, starts)),
            reasons={_named_job(fail): fail[3].strip() for fail in fails},
            crashes=crashes,
            last_error=last_line[:MAX_CHARACTERS] if has_ended_so else "",
        )

    def why_failed(self, job: Job, info: Any) -> str:
        """Return why a job has a row without a result; ``info`` is what its row says."""
        # The row's own text is the most exact; without one the log stands in for it.
        reason = str(info or "")
        if not reason:
            reason = self.reasons.get(job) or NO_REASON
        return name_cause(reason, self.crashes.get(job, ""))


def find_unscored_jobs(
    rows: pd.DataFrame,
    expected: Sequence[Job],
    log: str,
    amlb_exit: int = 0,
    setup_failure: str = "",
) -> tuple[UnscoredJobs, UnscoredJobs]:
    """Return the jobs without a row and the jobs without a result, each with its reason.

    Parameters
    ----------
    rows : DataFrame
        As :func:`amlb_ext.runner.results.read_results` gives it, or empty.
    expected : sequence of Job
        When empty, the jobs that the log says failed are the missing ones.
    log : str
        AMLB's output.
    amlb_exit : int
        Its exit status.
    setup_failure : str
        Why AMLB was not run at all.

    Examples
    --------
    >>> rows = pd.DataFrame({"task": ["a"], "fold": [0], "result": [None], "info": ["too slow"]})
    >>> log = "Job `local.b.c.a.1.F` failed with error: no such file"
    >>> missing, failed = find_unscored_jobs(rows, [Job("a", 0), Job("a", 1)], log)
    >>> str(missing[0]), str(failed[0])
    ('a, fold 1: no such file', 'a, fold 0: too slow')
    """
    run_log = RunLog.read(log)
    # Without a set-up AMLB did not run, so the log speaks of no job.
    reasons = {} if setup_failure else run_log.reasons
    general_reason = setup_failure or _why_run_ended(log, amlb_exit) or NO_REASON
    # Of several rows of a job a score counts before a failure, and the first of two failures.
    failures: dict[Job, str | None] = {}  # None for a job that was scored
    for row in rows.to_dict("records"):
        job = job_of_row(row)
        if pd.notna(row["result"]):
            failures[job] = None
        elif job not in failures:
            failures[job] = run_log.why_failed(job, row.get("info"))
    missing = [
        UnscoredJob(job.task, job.fold, reasons.get(job) or general_reason)
        for job in expected or reasons
        if job not in failures
    ]
    failed = [
        UnscoredJob(job.task, job.fold, failure)
        for job, failure in failures.items()
        if failure is not None
    ]
    return tuple(missing), tuple(failed)


# What the text of a log tells. AMLB colours it, and calls a job
# ``local.<benchmark>.<constraint>.<task>.<fold>.<framework>``.

_STARTED = re.compile(r"Starting job [^\s`]*\.([\w-]+)\.(\d+)\.[^.\s]+\.$", re.M)
_FAILED = re.compile(
    r"Job `[^`]*\.([\w-]+)\.(\d+)\.[^.`]+` failed with error: ?([^\n]*)"
)
#: Of an error's text, by which it is known again where AMLB has cut it.
_COMPARED_CHARACTERS = 60


_ERROR_LINE = re.compile(r"[\w.]*(Error|Exception|Interrupt|Exit)\b")
_CRASHED = re.compile(
    r"(subprocess\.)?CalledProcessError\b"
    r"|NoResultError: (Process crashed|Interrupting thread)"
)
_INTERRUPTED = re.compile(r"Interrupting thread .* after ([\d.]+)s timeout")
#: What Python says of a process that left no error; with its command, which AMLB cuts.
_ENDED = re.compile(
    r"CalledProcessError: .*(returned non-zero exit status \d+|died with <Signals.*>)"
)


def _named_job(match: re.Match[str]) -> Job:
    """Return the job whose task and fold a line of the log names."""
    return Job(match[1], int(match[2]))


def _crash_of_job(log: str) -> str:
    """Return the last error of a job's own process; AMLB keeps no more than its exit status."""
    interrupted = _INTERRUPTED.search(log)
    # Errors that follow, or none at all, are what the interruption led to.
    if interrupted:
        return f"TimeoutError: AMLB stopped the job after {interrupted[1]} s"
    ended = _ENDED.search(log)
    return framework_error(log) or (
        f"the framework's process {ended[1]}" if ended else ""
    )


def name_cause(reason: str, cause: str) -> str:
    """Return the framework's own error in place of AMLB's words that its process failed.

    Examples
    --------
    >>> name_cause("CalledProcessError: Command 'x' returned no", "ValueError: no rows")
    'ValueError: no rows'
    >>> name_cause("NoResultError: no rows", "ValueError: no rows")
    'ValueError: no rows'
    >>> name_cause("TimeoutError: too slow", "ValueError: no rows")
    'TimeoutError: too slow'
    """
    if not cause:
        return reason
    # AMLB hands on the text of an exception without its name, and cuts it.
    text = reason.removeprefix("NoResultError: ")[:_COMPARED_CHARACTERS].strip()
    is_same = text != reason and bool(text) and text in cause
    return cause if is_same or _CRASHED.match(reason) else reason


def _why_run_ended(log: str, amlb_exit: int) -> str:
    """Return the error that ended the whole run, or nothing."""
    lines = nonempty_lines(COLOUR.sub("", log))
    # AMLB prints "ERROR:" on a line of its own, and what went wrong on the next.
    for line, following in reversed(list(itertools.pairwise(lines))):
        if line == "ERROR:":
            return following
    if not amlb_exit:
        return ""
    status = f"AMLB ended with status {amlb_exit}"
    return f"{status}: {lines[-1]}" if lines else status


# One run's folder: what its name, its logs and our own note tell of it.

#: What a run of ours was asked for, in the run's folder.
ASKED = "asked.json"
#: AMLB's name of a run: framework, benchmark, constraint, mode and time.
_RUN_NAME = re.compile(r"([^.]*)\.([^.]*)\.([^.]*)\..*\.(\d{8}T\d{6})")
#: Bytes; a larger log is not read: a framework may print without end.
_LARGEST_LOG = 64 * 2**20


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """One run of AMLB.

    Attributes
    ----------
    path : Path
    name, benchmark, constraint, stamp : str
        Of the framework, and so on; folders are named in lower case. Empty where unknown.
    asked : tuple of Job
        What the run was asked for; empty where no record of it was kept.
    log : RunLog
    is_running : bool
        Whether the run is going on.
    """

    path: Path
    name: str = ""
    benchmark: str = ""
    constraint: str = ""
    stamp: str = ""
    asked: tuple[Job, ...] = ()
    log: RunLog = field(default_factory=RunLog)
    is_running: bool = False


def make_run_dir(out: Path, name: str) -> Path:
    """Make a folder for a run that no other run has, called as AMLB calls them.

    Parameters
    ----------
    out : Path
        What AMLB is given as ``-o``.
    name : str
        Without the time at its end.

    Raises
    ------
    RunError
        The folder cannot be written into.
    """
    start = time.time()
    # Names end in the second; of several runs in one second the later ones take later names.
    for later in range(3600):
        stamp = time.strftime("%Y%m%dT%H%M%S", time.localtime(start + later))
        run_dir = out / f"{name}.{stamp}"
        try:
            run_dir.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise RunError(
                f"cannot write into {out}: {error.strerror}", "choose another folder"
            ) from None
        return run_dir
    raise RunError(f"{out} is full of runs of the same second", "choose another folder")


def write_asked(run_dir: Path, asked: Mapping[str, Any], jobs: Sequence[Job]) -> None:
    """Keep beside a run what it was asked for, so that killing it hides nothing.

    Parameters
    ----------
    run_dir : Path
    asked : mapping
        ``framework``, ``benchmark``, ``constraint``, and whatever tells a command from others.
    jobs : sequence of Job
    """
    listed = [[job.task, job.fold] for job in jobs]
    write_record(run_dir, {**asked, "jobs": listed, "ended": False})


def write_record(run_dir: Path, record: Mapping[str, Any]) -> None:
    """Write the record of a run."""
    (run_dir / ASKED).write_text(json.dumps(record, indent=1), encoding="utf-8")


def output_folder(path: Path) -> Path:
    """Return the folder that runs are written into; of a single run the one that it stands in."""
    is_run = _RUN_NAME.fullmatch(path.name) or (path / ASKED).is_file()
    return path.parent if is_run else path


def read_run_folder(path: Path) -> RunFolder | None:
    """Return what a folder's name and files tell of a run; None when it is none."""
    record = read_asked(path / ASKED)
    match = _RUN_NAME.fullmatch(path.name)
    if not match and not record and not (path / "scores").is_dir():
        return None
    name, benchmark, constraint, stamp = match.groups() if match else ("",) * 4
    jobs = [Job(str(task), int(fold)) for task, fold in record.get("jobs", ())]
    # Our record has the spelling of the user, the name only lower case.
    return RunFolder(
        path=path,
        name=str(record.get("framework", name)),
        benchmark=str(record.get("benchmark", benchmark)),
        constraint=str(record.get("constraint", constraint)),
        stamp=stamp,
        asked=tuple(jobs),
        log=RunLog.read("\n".join(_read_logs(path))),
        is_running=is_running(path),
    )


def is_running(run_dir: Path) -> bool:
    """Whether a run is going on: it, or AMLB as its child, holds its record."""
    return is_locked(run_dir / ASKED)


def read_asked(path: Path) -> dict[str, Any]:
    """Return what a run was asked for; empty where no record was kept."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _read_logs(path: Path) -> Iterator[str]:
    """Yield what AMLB printed, from our own log, from its logs, or from their archive."""
    files = [*path.glob("run.log"), *sorted(path.glob("logs/*.log"))]
    for file in files:
        if file.stat().st_size <= _LARGEST_LOG:
            yield file.read_text(encoding="utf-8", errors="replace")
    if files:
        return
    # AMLB packs its logs when a run has ended (``archive`` in its configuration); one that was
    # killed meanwhile has a broken archive
    with (
        suppress(OSError, zipfile.BadZipFile),
        zipfile.ZipFile(path / "logs.zip") as opened,
    ):
        for member in opened.infolist():
            if member.filename.endswith(".log") and member.file_size <= _LARGEST_LOG:
                yield opened.read(member).decode("utf-8", "replace")
