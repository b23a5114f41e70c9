"""What a run was asked for and what came of it.

AMLB's exit status is 0 even when jobs failed: a job whose data cannot be loaded has no results
row at all, a framework that fails has a row with an empty ``result``. So the rows are held
against the jobs that the definition asks for, and AMLB's reasons are taken from its log.
"""

from __future__ import annotations

import itertools
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.amlb.definition import Job

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


@dataclass(frozen=True)
class RunOutcome:
    """What a run was asked for and what came of it.

    Attributes
    ----------
    run_dir : Path
        The run's folder: ``scores``, ``predictions``, ``logs.zip`` and our ``run.log``.
    log : Path
        All that AMLB said.
    command : tuple of str
    amlb_exit : int
        AMLB's own exit status.
    seconds : float
    expected : tuple of Job
        The jobs of the definition; empty for an OpenML suite or task, which only AMLB knows.
    rows : DataFrame
        The results, see :func:`amlb_ext.runner.results.read_results`; may be empty.
    missing : tuple of Problem
        Jobs without a results row.
    failed : tuple of Problem
        Jobs with a row but without a result.
    setup_failure : str
        Why the framework could not be set up; empty where it was.
    """

    run_dir: Path
    log: Path
    command: tuple[str, ...]
    amlb_exit: int
    seconds: float
    expected: tuple[Job, ...]
    rows: pd.DataFrame
    missing: tuple[UnscoredJob, ...]
    failed: tuple[UnscoredJob, ...]
    setup_failure: str = ""

    @property
    def ok(self) -> bool:
        """Whether every job has a score."""
        return (
            self.amlb_exit == 0
            and not self.missing
            and not self.failed
            and len(self.rows) > 0
        )

    @property
    def exit_status(self) -> int:
        """0 when every job has a score, else 1."""
        return 0 if self.ok else 1

    def summary(self) -> str:
        """Return a few lines for a person: counts, then each reason with its jobs."""
        scored = int(self.rows["result"].notna().sum()) if len(self.rows) else 0
        total = len(self.expected) or len(self.rows) + len(self.missing)
        lines = [
            f"{scored} of {total} jobs scored in {self.seconds:.0f} s: {self.run_dir}"
        ]
        grouped: dict[str, list[UnscoredJob]] = {}
        for problem in (*self.missing, *self.failed):
            grouped.setdefault(problem.reason, []).append(problem)
        for reason, problems in grouped.items():
            jobs = ", ".join(f"{p.task}/{p.fold}" for p in problems[:5])
            more = f" and {len(problems) - 5} more" if len(problems) > 5 else ""
            lines.append(f"no score for {jobs}{more}: {reason}")
        if self.setup_failure:
            if not grouped:
                lines.append(self.setup_failure)
            lines.append(
                f"all that was said: {self.log}; give the command again to try again"
            )
        elif not self.ok and not grouped:
            lines.append(f"AMLB ended with status {self.amlb_exit}, see {self.log}")
        return "\n".join(lines)


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
        The last error of each job's own process.
    last_error : str
        The last line where it is an error's, else empty.
    """

    started: set[Job]
    reasons: dict[Job, str]
    crashes: dict[Job, str]
    last_error: str

    @classmethod
    def read(cls, text: str) -> RunLog:
        """Return what the text of a log tells."""
        return cls(
            started=started_jobs(text),
            reasons=failure_reasons(text),
            crashes=crash_errors(text),
            last_error=last_error(text),
        )

    def why_failed(self, job: Job, info: Any) -> str:
        """Return why a job has a row without a result; ``info`` is what its row says."""
        reason = str(info or "") or self.reasons.get(job) or NO_REASON
        return prepend_cause(reason, self.crashes.get(job, ""))


def find_unscored_jobs(
    rows: pd.DataFrame,
    expected: Sequence[Job],
    log: str,
    amlb_exit: int = 0,
    setup_failure: str = "",
) -> tuple[tuple[UnscoredJob, ...], tuple[UnscoredJob, ...]]:
    """Return the jobs without a row and the jobs without a result, each with its reason.

    Parameters
    ----------
    rows : DataFrame
        As :func:`amlb_ext.runner.results.read_results` gives it, or empty.
    expected : sequence of Job
        When empty, the jobs that the log says failed are the missing ones.
    log : str
        What AMLB said.
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
    general = setup_failure or _reason_of_the_end(log, amlb_exit)
    failures: dict[Job, str | None] = {}  # None for a job that was scored
    for row in rows.to_dict("records"):
        job = Job(str(row["task"]), int(row["fold"]))
        if pd.notna(row["result"]):
            failures[job] = None
        elif job not in failures:
            failures[job] = run_log.why_failed(job, row.get("info"))
    wanted = list(expected) or [
        *failures,
        *(job for job in reasons if job not in failures),
    ]
    missing = [
        UnscoredJob(job.task, job.fold, reasons.get(job) or general or NO_REASON)
        for job in wanted
        if job not in failures
    ]
    failed = [
        UnscoredJob(job.task, job.fold, reason)
        for job, reason in failures.items()
        if reason is not None
    ]
    return tuple(missing), tuple(failed)


_STARTED = re.compile(r"Starting job [^\s`]*\.([\w-]+)\.(\d+)\.[^.\s]+\.$", re.M)
_FAILED = re.compile(
    r"Job `[^`]*\.([\w-]+)\.(\d+)\.[^.`]+` failed with error: ?([^\n]*)"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def started_jobs(log: str) -> set[Job]:
    """Return the jobs that AMLB's log says were begun.

    Examples
    --------
    >>> started_jobs("Starting job local.hardsynth.quick.iris_full.1.flaml.")
    {Job(task='iris_full', fold=1)}
    """
    return {
        Job(task, int(fold)) for task, fold in _STARTED.findall(_COLOUR.sub("", log))
    }


def last_error(log: str) -> str:
    """Return the last line of a log when it is an error's, else nothing.

    Examples
    --------
    >>> last_error("...\\nsubprocess.CalledProcessError: setup.sh failed\\n")
    'subprocess.CalledProcessError: setup.sh failed'
    """
    lines = [line.strip() for line in _COLOUR.sub("", log).splitlines() if line.strip()]
    named = lines and re.match(r"[\w.]*(Error|Exception|Interrupt|Exit)\b", lines[-1])
    return lines[-1][:300] if named else ""


def failure_reasons(log: str) -> dict[Job, str]:
    """Return AMLB's reason per failed job, as its log has it."""
    log = _COLOUR.sub("", log)
    return {
        Job(task, int(fold)): why.strip() for task, fold, why in _FAILED.findall(log)
    }


_CRASHED = re.compile(
    r"(subprocess\.)?CalledProcessError\b|NoResultError: Process crashed"
)


def crash_errors(log: str) -> dict[Job, str]:
    """Return the last error of each job's own process; AMLB keeps no more than its exit status.

    Examples
    --------
    >>> crash_errors(
    ...     "Starting job local.hardsynth.quick.toy.0.flaml.\\n"
    ...     "AttributeError: `np.Inf` was removed\\n"
    ...     "subprocess.CalledProcessError: Command 'exec.py' returned non-zero exit status 1.\\n"
    ... )
    {Job(task='toy', fold=0): 'AttributeError: `np.Inf` was removed'}
    """
    log = _COLOUR.sub("", log)
    errors: dict[Job, str] = {}
    for start, following in itertools.pairwise([*_STARTED.finditer(log), None]):
        assert start is not None
        end = following.start() if following else len(log)
        error = framework_error(log[start.end() : end])
        if error:
            errors[Job(start[1], int(start[2]))] = error
    return errors


def prepend_cause(reason: str, cause: str) -> str:
    """Put the framework's own error before AMLB's words that its process failed.

    Examples
    --------
    >>> prepend_cause("CalledProcessError: Command 'x' returned 1.", "ValueError: no rows")
    "ValueError: no rows (CalledProcessError: Command 'x' returned 1.)"
    >>> prepend_cause("TimeoutError: too slow", "ValueError: no rows")
    'TimeoutError: too slow'
    """
    return f"{cause} ({reason})" if cause and _CRASHED.match(reason) else reason


_OWN_ERROR = re.compile(
    r"^(?:\w+\.)*(?!CalledProcessError|NoResultError|StaleProcessError)"
    r"\w*(?:Error|Exception|Interrupt|NotFound)\b: .*$"
    # pip's, git's, apt's; not pip's remark on packages that nobody asked for
    r"|^(?:ERROR|error|fatal|E): (?!pip's dependency resolver|Command ).*$",
    re.M,
)


def framework_error(log: str) -> str:
    """Return the last line that is an error of the framework's own, or of what installs it.

    Examples
    --------
    >>> framework_error("ERROR: No matching distribution found for x\\nCalledProcessError: 1")
    'ERROR: No matching distribution found for x'
    >>> framework_error("all is well")
    ''
    """
    found = _OWN_ERROR.findall(_COLOUR.sub("", log))
    return found[-1].strip()[:300] if found else ""


def _reason_of_the_end(log: str, amlb_exit: int) -> str:
    """Return the error that ended the whole run, or nothing."""
    lines = [line.strip() for line in _COLOUR.sub("", log).splitlines() if line.strip()]
    # AMLB prints "ERROR:" on a line of its own, and what went wrong on the next.
    errors = [
        following for line, following in itertools.pairwise(lines) if line == "ERROR:"
    ]
    if errors:
        return errors[-1]
    if not amlb_exit:
        return ""
    ended = f"AMLB ended with status {amlb_exit}"
    return f"{ended}: {lines[-1]}" if lines else ended


# One run's folder: what its name, its logs and our own note tell of it.

#: What a run of ours was asked for, in the run's folder.
ASKED = "asked.json"
_LARGEST_LOG = 64 * 2**20


@dataclass(frozen=True)
class RunFolder:
    """One run of AMLB.

    Attributes
    ----------
    path : Path
    name, benchmark, constraint, stamp : str
        Of the framework, and so on; folders are named in lower case. Empty where unknown.
    asked : tuple of Job
        What it was asked for; empty where nobody kept it.
    log : str
        All that AMLB said.
    """

    path: Path
    name: str
    benchmark: str
    constraint: str
    stamp: str
    asked: tuple[Job, ...]
    log: str


def write_asked(
    run_dir: Path, framework: str, benchmark: str, constraint: str, jobs: Sequence[Job]
) -> None:
    """Keep beside a run what it was asked for, so that killing it hides nothing."""
    entry = {
        "framework": framework,
        "benchmark": benchmark,
        "constraint": constraint,
        "jobs": [[job.task, job.fold] for job in jobs],
    }
    (run_dir / ASKED).write_text(json.dumps(entry, indent=1), encoding="utf-8")


def read_run_folder(path: Path) -> RunFolder | None:
    """Return what a folder's name and files tell of a run; None when it is none."""
    words = path.name.split(".")
    asked = _read_asked(path / ASKED)
    named = len(words) >= 5 and re.fullmatch(r"\d{8}T\d{6}", words[-1]) is not None
    if not named and not asked and not (path / "scores").is_dir():
        return None
    name, benchmark, constraint = words[:3] if named else ("", "", "")
    return RunFolder(
        path,
        str(asked.get("framework", name)),
        str(asked.get("benchmark", benchmark)),
        str(asked.get("constraint", constraint)),
        words[-1] if named else "",
        tuple(Job(str(task), int(fold)) for task, fold in asked.get("jobs", ())),
        "\n".join(_logs(path)),
    )


def _read_asked(path: Path) -> dict[str, Any]:
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        return entry if isinstance(entry, dict) else {}
    except (OSError, ValueError):
        return {}


def _logs(path: Path) -> Iterator[str]:
    """Yield what AMLB said, from our own log, from its logs, or from their archive."""
    files = [path / "run.log", *sorted((path / "logs").glob("*.log"))]
    for file in files:
        if file.is_file() and file.stat().st_size <= _LARGEST_LOG:
            yield file.read_text(encoding="utf-8", errors="replace")
    archive = path / "logs.zip"
    if not any(file.is_file() for file in files) and archive.is_file():
        try:
            with zipfile.ZipFile(archive) as opened:
                for member in opened.infolist():
                    if (
                        member.filename.endswith(".log")
                        and member.file_size <= _LARGEST_LOG
                    ):
                        yield opened.read(member).decode("utf-8", "replace")
        except (OSError, zipfile.BadZipFile):
            return
