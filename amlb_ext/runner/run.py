"""One run of AMLB as a subprocess, in a folder of its own, with its faults worked around."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.amlb.configuration import (
    configured_folds,
    find_definition,
    is_openml_benchmark,
    read_constraint,
    read_user_config,
)
from amlb_ext.amlb.definition import (
    Job,
    is_enabled,
    is_series_task,
    list_jobs,
    read_tasks,
    sanitize_name,
)
from amlb_ext.amlb.frameworks import check_framework, find_framework
from amlb_ext.amlb.loader_rules import has_cells_of
from amlb_ext.core.errors import DefinitionError, RunError, suggest_nearest
from amlb_ext.core.files import remove_file
from amlb_ext.core.locks import lock_open_file
from amlb_ext.core.paths import check_no_links, is_suite_folder
from amlb_ext.runner.checkout import Checkout, ensure_checkout
from amlb_ext.runner.processes import run_amlb, say_on_stderr
from amlb_ext.runner.results import read_results
from amlb_ext.runner.run_folder import (
    ASKED,
    RunOutcome,
    find_unscored_jobs,
    is_running,
    job_of_row,
    join_outcomes,
    make_run_dir,
    read_asked,
    tasks_by_folds,
    write_asked,
    write_record,
)
from amlb_ext.runner.setup import CONTAINERS, option_value, set_up_framework
from amlb_ext.suite.layout import Layout

#: AMLB's own default, two folds of ten minutes on four cores.
DEFAULT_CONSTRAINT = "test"
#: The setting that names AMLB's files of frameworks.
_FRAMEWORK_FILES = "frameworks.definition_file"


def run_benchmarks(
    framework: str,
    benchmarks: Sequence[str],
    constraint: str | None = None,
    *,
    userdir: str | Path,
    outdir: str | Path = "results",
    tasks: Sequence[str] = (),
    folds: Sequence[int] = (),
    amlb: str | Path | Checkout | None = None,
    python: str | Path | None = None,
    extra: Sequence[str] = (),
    quiet: bool = False,
) -> tuple[RunOutcome, ...]:
    """Run AMLB on several definitions of a suite, one after another.

    Each gets a process and a folder of its own, as if it had been named alone. What two of them
    share is run once: a hard twin and the suite's main definition have the hard rows in common,
    and the twin, whose metrics and limits are the original's, is named first.

    Parameters
    ----------
    framework : str
        AMLB's name of it, or a name in the suite's ``frameworks.yaml``.
    benchmarks : sequence of str
        Names of definitions, their files, or ``openml/s/ID`` or ``openml/t/ID``, in the order in
        which they are run.
    constraint : str, optional
        AMLB's default is ``test``.
    userdir : path
        The suite.
    outdir : path
        Each run gets a folder of its own in it.
    tasks, folds : sequence
        The choice of jobs; all when empty. A task may stand in any of the definitions.
    amlb, python : path, optional
        See :func:`amlb_ext.runner.checkout.ensure_checkout`; ``amlb`` may be its result.
    extra : sequence of str
        More arguments of ``runbenchmark.py``, passed as they are.
    quiet : bool
        Do not repeat AMLB's output on stderr.

    Returns
    -------
    tuple of RunOutcome
        In the order of the runs; none for a definition of which nothing is left to run, nor for
        those after a framework could not be set up. Failing jobs do not raise, they are in the
        outcome.

    Raises
    ------
    RunError
        AMLB cannot be had, or framework, benchmark, constraint or task is unknown; nothing was
        written then.
    """
    if any(word.split("=")[0] == "--resume" for word in extra):
        raise RunError(
            "--resume needs the name of AMLB's session, which hardsynth gives each run",
            "leave it out: the same command goes on where it was stopped",
        )
    user = Path(userdir).expanduser().absolute()
    config = read_user_config(user)
    if isinstance(amlb, Checkout):
        checkout = amlb
    else:
        checkout = ensure_checkout(amlb, python, quiet=quiet)
    # The user may name other files of frameworks than the suite's configuration does.
    if not any(_FRAMEWORK_FILES in word for word in extra):
        check_framework(framework, user, checkout.root, config)
    constraint = constraint or DEFAULT_CONSTRAINT
    setting = _Setting(
        framework=framework,
        constraint=constraint,
        mode=option_value(extra, "-m", "--mode") or "local",
        user=user,
        out=Path(outdir).expanduser().absolute(),
        config=config,
        limits=read_constraint(constraint, user, checkout.root, config),
        checkout=checkout,
        extra=tuple(extra),
        quiet=quiet,
    )
    outcomes: list[RunOutcome] = []
    for run in _plan_runs(benchmarks, setting, tasks=tasks, folds=folds):
        outcomes.append(_carry_out(run, setting))
        # The next run would spend the same minutes on the same failure.
        if outcomes[-1].setup_failure:
            break
    return tuple(outcomes)


@dataclass(frozen=True, kw_only=True)
class _Setting:
    """What the runs of one command share.

    Attributes
    ----------
    framework, constraint, mode : str
    user, out : Path
        Absolute.
    config : dict
        The user directory's ``config.yaml``.
    limits : dict
        The constraint's.
    checkout : Checkout
    extra : tuple of str
    quiet : bool
    """

    framework: str
    constraint: str
    mode: str
    user: Path
    out: Path
    config: dict[str, Any]
    limits: dict[str, Any]
    checkout: Checkout
    extra: tuple[str, ...]
    quiet: bool

    def definition(self, benchmark: str) -> Path:
        """Return the file of a benchmark's definition."""
        return find_definition(benchmark, self.user, self.checkout.root, self.config)


@dataclass(frozen=True, kw_only=True)
class _Run:
    """One run of AMLB before it begins.

    Attributes
    ----------
    argument : str
        The benchmark as ``runbenchmark.py`` is given it.
    name : str
        As AMLB names the run's folder by it.
    expected : tuple of Job
        What AMLB must report; empty for an OpenML suite or task, whose jobs only AMLB knows.
    tasks : tuple of str
        The choice of tasks; all when empty.
    folds : tuple of int
        The choice of folds; all when empty.
    has_series : bool
        Whether a task is one of series.
    """

    argument: str
    name: str
    expected: tuple[Job, ...] = ()
    tasks: tuple[str, ...]
    folds: tuple[int, ...]
    has_series: bool = False


def _plan_run(
    benchmark: str, setting: _Setting, *, tasks: Sequence[str], folds: Sequence[int]
) -> _Run:
    """Return a run of one definition; raise for a task or a fold that it lacks."""
    if is_openml_benchmark(benchmark):
        return _Run(
            argument=benchmark,
            name=sanitize_name(benchmark),
            tasks=tuple(tasks),
            folds=tuple(folds),
        )
    path = setting.definition(benchmark)
    expected = list_jobs(
        path,
        setting.limits,
        fallback_folds=configured_folds(setting.config),
        tasks=tasks,
        folds=folds,
    )
    # An absolute path gives the same benchmark name, and no file or folder of that name
    # in the current directory can take its place.
    argument = str(path)
    is_in_suite = path.parent == setting.user / "benchmarks"
    if setting.mode in CONTAINERS and is_in_suite:
        argument = path.stem  # a container sees the folder elsewhere
    return _Run(
        argument=argument,
        name=sanitize_name(path.stem),
        expected=expected,
        tasks=tuple(tasks),
        folds=tuple(folds),
        has_series=any(map(is_series_task, read_tasks(path, setting.limits))),
    )


def _plan_runs(
    benchmarks: Sequence[str],
    setting: _Setting,
    *,
    tasks: Sequence[str],
    folds: Sequence[int],
) -> list[_Run]:
    """Return the runs of several definitions, no task of the same files twice.

    Raises
    ------
    DefinitionError
        A task that none of them has, or folds that no task has.
    """
    if len(benchmarks) == 1:
        return [_plan_run(benchmarks[0], setting, tasks=tasks, folds=folds)]
    wanted = {sanitize_name(task).lower(): task for task in tasks}
    runs = []
    known: dict[str, Any] = {}  # the files of each task so far, by its name
    refusal: DefinitionError | None = None
    for benchmark in benchmarks:
        if is_openml_benchmark(benchmark):
            runs.append(_plan_run(benchmark, setting, tasks=tasks, folds=folds))
            continue
        chosen = []
        path = setting.definition(benchmark)
        defined = read_tasks(path, setting.limits)
        for task in defined:
            name = sanitize_name(task["name"])
            if not is_enabled(task, path.name):
                continue
            files = task.get("dataset")
            is_repeated = name in known and known[name] == files
            known.setdefault(name, files)
            if not is_repeated and (not wanted or name.lower() in wanted):
                chosen.append(name)
        if not chosen:
            continue
        # AMLB is told the tasks only where some of the definition are left out.
        named = chosen if len(chosen) < len(defined) else []
        try:
            runs.append(_plan_run(benchmark, setting, tasks=named, folds=folds))
        except DefinitionError as error:  # it has none of the folds; another may
            refusal = error
    unknown = set(wanted) - {name.lower() for name in known}
    for name, asked in wanted.items():
        if name in unknown and not any(map(is_openml_benchmark, benchmarks)):
            raise DefinitionError(
                f"there is no task {asked!r} in {' or '.join(benchmarks)}",
                suggest_nearest(asked, known),
            )
    if not runs:
        raise refusal or DefinitionError(
            f"{' and '.join(benchmarks)} have no task that is enabled",
            "name another definition",
        )
    return runs


def _carry_out(run: _Run, setting: _Setting) -> RunOutcome:
    """Run AMLB on what stopped runs of the same command have not scored."""
    digest = hashlib.sha256()
    for file in (Path(run.argument), Layout(setting.user).manifest):
        if file.is_file():
            digest.update(file.read_bytes())
    asked = {
        "framework": setting.framework,
        "benchmark": run.name,
        "constraint": setting.constraint,
        "mode": setting.mode,
        "tasks": list(run.tasks),
        "folds": list(run.folds),
        "extra": list(setting.extra),
        # results of another suite do not count
        "digest": digest.hexdigest(),
    }
    stopped, scored_rows = find_stopped_runs(setting.out, asked)
    done = {job_of_row(row) for row in scored_rows.to_dict("records")}
    scored = done & set(run.expected)
    parts = [run]
    if scored:
        left = [job for job in run.expected if job not in scored]
        parts = [
            replace(
                run,
                expected=tuple(Job(task, fold) for task in tasks for fold in folds),
                tasks=tuple(tasks),
                folds=folds,
            )
            for folds, tasks in tasks_by_folds(left).items()
        ]
        if not setting.quiet:
            say_on_stderr(
                f"{len(scored)} of {len(run.expected)} jobs were scored before an earlier run was "
                "stopped; the others are run"
            )
    outcomes: list[RunOutcome] = []
    for part in parts:
        outcomes.append(_run_once(part, setting, asked))
        if outcomes[-1].setup_failure:
            break
    else:
        # none of them need be gone on with: the same command runs everything anew
        for folder in (*stopped, *(outcome.run_dir for outcome in outcomes)):
            write_record(folder, {**read_asked(folder / ASKED), "ended": True})
    if not scored:
        return outcomes[0]
    before = RunOutcome(run_dir=stopped[-1], expected=run.expected, rows=scored_rows)
    return join_outcomes([before, *outcomes])


def _run_once(run: _Run, setting: _Setting, asked: Mapping[str, Any]) -> RunOutcome:
    """Run AMLB once, in a folder of its own."""
    # A folder of its own, with a record of what was asked for, before anything can fail.
    remove_unchecked(setting.user)
    framework = sanitize_name(setting.framework.partition(":")[0])  # without 2023Q2
    constraint = sanitize_name(setting.constraint)
    name = f"{framework}.{run.name}.{constraint}.{setting.mode}".lower()
    run_dir = make_run_dir(setting.out, name)
    write_asked(run_dir, asked, run.expected)
    with lock_open_file(run_dir / ASKED, lambda: None) as held:
        return _run_in_folder(run, setting, run_dir, held)


def _run_in_folder(
    run: _Run, setting: _Setting, run_dir: Path, held: int
) -> RunOutcome:
    """Set the framework up, run AMLB, and hold what it reports against what was asked for."""
    checkout = setting.checkout
    log = run_dir / "run.log"
    start = time.monotonic()
    asked = [setting.framework, run.argument, setting.constraint]
    asked += ["-u", str(setting.user)]
    framework = find_framework(
        setting.framework, setting.user, checkout.root, setting.config
    )
    more_arguments, failure = set_up_framework(
        framework,
        asked,
        checkout=checkout,
        extra=setting.extra,
        log=log,
        quiet=setting.quiet,
    )

    command = [*checkout.command, *asked]
    command += ["-o", str(setting.out), "--session", run_dir.name]
    # Live output makes AMLB's set-up hang on fast machines ("timed out after nan seconds").
    command += ["-Xsetup.live_output=False"]
    if run.tasks:
        command += ["-t", *run.tasks]
    if run.folds:
        command += ["-f", *map(str, run.folds)]
    command += [*setting.extra, *more_arguments]
    # AMLB writes the splits of series by the task's name alone, so that two runs would write one
    # file, and one would read what the other has begun to write
    splits = run_dir / "input"
    if run.has_series and not option_value(setting.extra, "-i", "--indir"):
        command += ["-i", str(splits)]
    amlb_exit = 1
    if not failure:
        amlb_exit = run_amlb(
            command,
            root=checkout.root,
            python=checkout.python,
            log=log,
            quiet=setting.quiet,
            # an AMLB that outlives us still holds the run
            held=(held,),
        )
    shutil.rmtree(splits, ignore_errors=True)
    seconds = time.monotonic() - start

    # AMLB's exit status is 0 even when jobs failed, so its rows are held against the jobs.
    try:
        rows = read_results(run_dir)
    except RunError:  # AMLB wrote none
        rows = pd.DataFrame({name: [] for name in ("task", "fold", "result", "info")})
    missing, failed = find_unscored_jobs(
        rows,
        run.expected,
        log.read_text("utf-8", "replace"),
        amlb_exit=amlb_exit,
        setup_failure=failure,
    )
    return RunOutcome(
        run_dir=run_dir,
        command=tuple(command),
        amlb_exit=amlb_exit,
        seconds=seconds,
        expected=run.expected,
        rows=rows,
        missing=missing,
        failed=failed,
        setup_failure=failure,
    )


def remove_unchecked(userdir: Path) -> None:
    """Remove what would be used in place of the files that were checked: it is soon made again.

    Python runs the compiled code of a cache in place of the code beside it. Frameworks that ask for
    parquet or ARFF get a file beside the CSV, made once and then used as it is, whoever made it
    (``FileConverter`` in ``amlb/datasets/file.py``). One with the cells of the CSV stays: another
    run may be reading it. Only in a directory of ours: elsewhere such a file may be the user's own.
    """
    layout = Layout(userdir)
    if is_suite_folder(userdir):
        # what a link names is nothing of ours
        check_no_links(userdir)
        for cache in layout.extensions.glob("*/__pycache__"):
            shutil.rmtree(cache, ignore_errors=True)
    if layout.manifest.is_file():
        for table in (layout.root / "data").glob("*/*.csv"):
            parquet = table.with_suffix(".parquet")
            if parquet.is_file() and not has_cells_of(parquet, table):
                remove_file(parquet)
            # what one of these holds is not compared
            remove_file(table.with_suffix(".arff"))


# Runs that were stopped before their end: the same command finds them and goes on with them.
#
# A run keeps beside its results what it was asked for (``asked.json``) and holds a lock on that
# file while it, or AMLB as its child, lives. A run that came to its end says so in the file. One
# that does not, and whose lock is free, was stopped: what it scored counts.

#: Entries of the record that differ between a run and the one that goes on with it.
_OWN = ("jobs", "ended")


def find_stopped_runs(
    out: Path, asked: Mapping[str, Any]
) -> tuple[list[Path], pd.DataFrame]:
    """Return the runs in a folder that were asked for the same and were stopped.

    Parameters
    ----------
    out : Path
        AMLB's output folder.
    asked : mapping
        The record of the run that begins.

    Returns
    -------
    folders : list of Path
        The oldest first.
    rows : DataFrame
        The jobs that they scored, see :func:`amlb_ext.runner.results.read_results`.

    Raises
    ------
    RunError
        One of them is still running.
    """
    folders, rows = [], []
    for path in sorted(out.glob(f"*/{ASKED}")):
        record = read_asked(path)
        if record.get("ended", True) or _key(record) != _key(asked):
            continue
        if is_running(path.parent):
            raise RunError(
                f"the same run is going on in {path.parent}",
                "wait until it has ended, or stop it, or choose another folder for the results",
            )
        folders.append(path.parent)
        try:
            found = read_results(path.parent)
        except RunError:
            continue
        rows.append(found[found["result"].notna()])
    return folders, pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def _key(record: Mapping[str, Any]) -> str:
    told = {name: value for name, value in record.items() if name not in _OWN}
    return json.dumps(told, sort_keys=True)
