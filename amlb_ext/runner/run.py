"""One run of AMLB as a subprocess, in a folder of its own, with its faults worked around."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from amlb_ext.amlb.configuration import (
    configured_folds,
    find_definition,
    is_openml_benchmark,
    read_constraint,
    read_user_config,
)
from amlb_ext.amlb.definition import Job, list_jobs, sanitize_name
from amlb_ext.amlb.frameworks import find_framework
from amlb_ext.core.errors import RunError
from amlb_ext.runner.amlb_process import run_amlb
from amlb_ext.runner.checkout import Checkout, ensure_checkout
from amlb_ext.runner.results import read_results
from amlb_ext.runner.run_folder import RunOutcome, find_unscored_jobs, write_asked
from amlb_ext.runner.setup import CONTAINERS, option_value, set_up_framework
from amlb_ext.suite.layout import Layout

#: AMLB's own default, two folds of ten minutes on four cores.
DEFAULT_CONSTRAINT = "test"


def run_benchmark(
    framework: str,
    benchmark: str = "hardsynth",
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
) -> RunOutcome:
    """Run AMLB on a suite and check that every job has a score.

    Parameters
    ----------
    framework : str
        AMLB's name of it, or a name in the suite's ``frameworks.yaml``.
    benchmark : str
        Name of a definition, its file, or ``openml/s/ID`` or ``openml/t/ID``.
    constraint : str, optional
        AMLB's default is ``test``.
    userdir : path
        The suite.
    outdir : path
        Each run gets a folder of its own in it.
    tasks, folds : sequence
        The choice of jobs; all when empty.
    amlb, python : path, optional
        See :func:`amlb_ext.runner.checkout.ensure_checkout`; ``amlb`` may be its result.
    extra : sequence of str
        More arguments of ``runbenchmark.py``, passed as they are.
    quiet : bool
        Do not repeat AMLB's output on stderr.

    Returns
    -------
    RunOutcome

    Raises
    ------
    RunError
        AMLB cannot be had, or benchmark, constraint or task is unknown. Failing jobs do not
        raise, they are in the outcome.
    """
    user = Path(userdir).expanduser().absolute()
    out = Path(outdir).expanduser().absolute()
    config = read_user_config(user)
    if isinstance(amlb, Checkout):
        checkout = amlb
    else:
        checkout = ensure_checkout(amlb, python, quiet=quiet)
    mode = option_value(extra, "-m", "--mode") or "local"
    constraint = constraint or DEFAULT_CONSTRAINT
    limits = read_constraint(constraint, user, checkout.root, config)

    # What AMLB must report. Of an OpenML suite or task only AMLB knows the jobs.
    expected: tuple[Job, ...] = ()
    if is_openml_benchmark(benchmark):
        benchmark_argument = benchmark
        benchmark_name = sanitize_name(benchmark)
    else:
        path = find_definition(benchmark, user, checkout.root, config)
        expected = list_jobs(
            path,
            limits,
            fallback_folds=configured_folds(config),
            tasks=tasks,
            folds=folds,
        )
        # An absolute path gives the same benchmark name, and no file or folder of that name
        # in the current directory can take its place.
        benchmark_argument = str(path)
        benchmark_name = sanitize_name(path.stem)
        if mode in CONTAINERS and path.parent == user / "benchmarks":
            benchmark_argument = path.stem  # a container sees the folder elsewhere

    # A folder of its own, with a record of what was asked for, before anything can fail.
    remove_stale(user)
    run_dir = _make_run_dir(
        out,
        framework=framework,
        benchmark=benchmark_name,
        constraint=constraint,
        mode=mode,
    )
    write_asked(run_dir, framework, benchmark_name, constraint, expected)
    log = run_dir / "run.log"
    start = time.monotonic()
    asked = [framework, benchmark_argument, constraint, "-u", str(user)]
    readiness = set_up_framework(
        find_framework(framework, user, checkout.root, config),
        asked,
        checkout=checkout,
        extra=extra,
        log=log,
        quiet=quiet,
    )

    command = [*checkout.command, *asked]
    command += ["-o", str(out), "--session", run_dir.name]
    # Live output makes AMLB's set-up hang on fast machines ("timed out after nan seconds").
    command += ["-Xsetup.live_output=False"]
    if tasks:
        command += ["-t", *tasks]
    if folds:
        command += ["-f", *map(str, folds)]
    command += [*extra, *readiness.arguments]
    amlb_exit = 1
    if not readiness.failure:
        amlb_exit = run_amlb(
            command, root=checkout.root, python=checkout.python, log=log, quiet=quiet
        )
    seconds = time.monotonic() - start

    # AMLB's exit status is 0 even when jobs failed, so its rows are held against the jobs.
    rows = _read_rows(run_dir)
    missing, failed = find_unscored_jobs(
        rows,
        expected,
        log.read_text("utf-8", "replace"),
        amlb_exit=amlb_exit,
        setup_failure=readiness.failure,
    )
    return RunOutcome(
        run_dir=run_dir,
        log=log,
        command=tuple(command),
        amlb_exit=amlb_exit,
        seconds=seconds,
        expected=expected,
        rows=rows,
        missing=missing,
        failed=failed,
        setup_failure=readiness.failure,
    )


def remove_stale(userdir: Path) -> list[Path]:
    """Remove what AMLB once derived from data files that have been written anew since.

    Frameworks that ask for parquet or ARFF get a file beside the CSV, made once and then used
    as it is, however old (``FileConverter`` in ``amlb/datasets/file.py``). Only in a directory
    of ours: elsewhere such a file may be the user's own.

    Returns
    -------
    list of Path
        What was removed.
    """
    layout = Layout(userdir)
    removed: list[Path] = []
    if not layout.manifest.is_file():
        return removed
    for source in sorted((layout.root / "data").glob("*/*.csv")):
        for suffix in (".parquet", ".arff"):
            derived = source.with_suffix(suffix)
            if not derived.is_file():
                continue
            if derived.stat().st_mtime <= source.stat().st_mtime:
                derived.unlink()
                removed.append(derived)
    return removed


def _make_run_dir(
    out: Path, *, framework: str, benchmark: str, constraint: str, mode: str
) -> Path:
    """Make the folder that AMLB would make, so that this run is told from all others."""
    framework_name, _, _ = framework.partition(":")  # flaml:2023Q2 without its tag
    words = [
        sanitize_name(framework_name),
        benchmark,
        sanitize_name(constraint),
        mode,
    ]
    name = ".".join(words).lower()
    start = time.time()
    # Names end in the second; of several runs in one second the later ones take later names.
    for seconds_later in range(3600):
        local_time = time.localtime(start + seconds_later)
        stamp = time.strftime("%Y%m%dT%H%M%S", local_time)
        run_dir = out / f"{name}.{stamp}"
        try:
            run_dir.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise RunError(
                f"cannot write into {out}: {error.strerror}", "choose another -o"
            ) from None
        return run_dir
    raise RunError(f"{out} is full of runs of the same second", "choose another -o")


def _read_rows(run_dir: Path) -> pd.DataFrame:
    """Return the results of a run, without rows where AMLB wrote none."""
    try:
        return read_results(run_dir)
    except RunError:
        columns = ("task", "fold", "result", "info")
        return pd.DataFrame({name: [] for name in columns})
