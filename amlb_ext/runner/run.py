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
        Do not repeat on stderr what AMLB says.

    Returns
    -------
    RunOutcome

    Raises
    ------
    RunError
        AMLB cannot be had, or benchmark, constraint or task is unknown. Failing jobs do not
        raise, they are in the outcome.
    """
    user, out = (
        Path(userdir).expanduser().absolute(),
        Path(outdir).expanduser().absolute(),
    )
    config = read_user_config(user)
    found = (
        amlb
        if isinstance(amlb, Checkout)
        else ensure_checkout(amlb, python, quiet=quiet)
    )
    constraint = constraint or DEFAULT_CONSTRAINT
    limits = read_constraint(constraint, user, found.root, config)
    expected: tuple[Job, ...] = ()
    mode = option_value(extra, "-m", "--mode") or "local"
    if is_openml_benchmark(benchmark):
        word, name = benchmark, sanitize_name(benchmark)
    else:
        path = find_definition(benchmark, user, found.root, config)
        expected = list_jobs(
            path,
            limits,
            fallback_folds=configured_folds(config),
            tasks=tasks,
            folds=folds,
        )
        # An absolute path gives the same benchmark name, and no file or folder of that name
        # in the current directory can take its place.
        word, name = str(path), sanitize_name(path.stem)
        if mode in CONTAINERS and path.parent == user / "benchmarks":
            word = path.stem  # a container sees the user directory elsewhere
    remove_stale(user)
    run_dir = _new_run_dir(out, framework, name, constraint, mode)
    write_asked(run_dir, framework, name, constraint, expected)
    asked = [framework, word, constraint, "-u", str(user)]
    log = run_dir / "run.log"
    start = time.monotonic()
    readiness = set_up_framework(
        find_framework(framework, user, found.root, config),
        asked,
        checkout=found,
        extra=extra,
        log=log,
        quiet=quiet,
    )
    command = [
        str(found.python),
        str(found.root / "runbenchmark.py"),
        *asked,
        "-o",
        str(out),
    ]
    command += ["--session", run_dir.name, "-Xsetup.live_output=False"]
    command += ["-t", *tasks] if tasks else []
    command += ["-f", *map(str, folds)] if folds else []
    command += [*extra, *readiness.arguments]
    amlb_exit = 1
    if not readiness.failure:
        amlb_exit = run_amlb(
            command, root=found.root, python=found.python, log=log, quiet=quiet
        )
    seconds = time.monotonic() - start
    rows = _rows(run_dir)
    text = log.read_text("utf-8", "replace")
    missing, failed = find_unscored_jobs(
        rows, expected, text, amlb_exit, readiness.failure
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
    removed = []
    if layout.manifest.is_file():
        for source in sorted((layout.root / "data").glob("*/*.csv")):
            for suffix in (".parquet", ".arff"):
                derived = source.with_suffix(suffix)
                if (
                    derived.is_file()
                    and derived.stat().st_mtime <= source.stat().st_mtime
                ):
                    derived.unlink()
                    removed.append(derived)
    return removed


def _new_run_dir(
    out: Path, framework: str, benchmark: str, constraint: str, mode: str
) -> Path:
    """Make the folder that AMLB would make, so that this run is told from all others."""
    words = [
        sanitize_name(framework.split(":")[0]),
        benchmark,
        sanitize_name(constraint),
        mode,
    ]
    name = ".".join(words).lower()
    start = time.time()
    for later in range(3600):
        stamp = time.strftime("%Y%m%dT%H%M%S", time.localtime(start + later))
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


def _rows(run_dir: Path) -> pd.DataFrame:
    try:
        return read_results(run_dir)
    except RunError:
        return pd.DataFrame({"task": [], "fold": [], "result": [], "info": []})
