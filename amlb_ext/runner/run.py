"""One run of AMLB as a subprocess, in a folder of its own, with its faults worked around."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import pandas as pd

from amlb_ext.amlb.configuration import (
    configured_folds,
    find_definition,
    is_openml,
    read_constraint,
    read_user_config,
)
from amlb_ext.amlb.definition import Job, list_jobs, sanitize_name
from amlb_ext.core.assets import asset
from amlb_ext.core.display import printable
from amlb_ext.core.errors import RunError
from amlb_ext.runner.checkout import Checkout, ensure
from amlb_ext.runner.outcome import RunOutcome, check
from amlb_ext.runner.results import read_results
from amlb_ext.runner.runs import write_asked
from amlb_ext.suite.layout import Layout

#: AMLB's own default, two folds of ten minutes on four cores.
DEFAULT_CONSTRAINT = "test"
#: Seconds that AMLB gets to end by itself after Ctrl-C.
GRACE = 30.0


#: Modes of AMLB that run in a container.
CONTAINERS = ("docker", "singularity")


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
        See :func:`amlb_ext.runner.checkout.ensure`; ``amlb`` may be its result.
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
    user, out = Path(userdir).expanduser().absolute(), Path(outdir).expanduser().absolute()
    config = read_user_config(user)
    found = amlb if isinstance(amlb, Checkout) else ensure(amlb, python, quiet=quiet)
    constraint = constraint or DEFAULT_CONSTRAINT
    limits = read_constraint(constraint, user, found.root, config)
    expected: tuple[Job, ...] = ()
    mode = _mode(extra)
    if is_openml(benchmark):
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
    command = [str(found.python), str(found.root / "runbenchmark.py")]
    command += [framework, word, constraint, "-u", str(user), "-o", str(out)]
    command += ["--session", run_dir.name, "-Xsetup.live_output=False"]
    command += ["-t", *tasks] if tasks else []
    command += ["-f", *map(str, folds)] if folds else []
    command += list(extra)
    log = run_dir / "run.log"
    start = time.monotonic()
    amlb_exit = _stream(command, found, log, quiet)
    seconds = time.monotonic() - start
    rows = _rows(run_dir)
    missing, failed = check(rows, expected, log.read_text("utf-8", "replace"), amlb_exit)
    return RunOutcome(
        run_dir, log, tuple(command), amlb_exit, seconds, expected, rows, missing, failed
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
                if derived.is_file() and derived.stat().st_mtime <= source.stat().st_mtime:
                    derived.unlink()
                    removed.append(derived)
    return removed


def _mode(extra: Sequence[str]) -> str:
    """Return AMLB's mode, a part of the run's name: ``-m docker`` among the extra arguments."""
    for word, following in itertools.pairwise([*extra, ""]):
        if word in ("-m", "--mode"):
            return following
        if word.startswith("--mode="):
            return word.removeprefix("--mode=")
    return "local"


def _new_run_dir(out: Path, framework: str, benchmark: str, constraint: str, mode: str) -> Path:
    """Make the folder that AMLB would make, so that this run is told from all others."""
    words = [sanitize_name(framework.split(":")[0]), benchmark, sanitize_name(constraint), mode]
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


def _stream(command: Sequence[str], found: Checkout, log: Path, quiet: bool) -> int:
    """Run AMLB; what it says goes into the log, and to stderr unless ``quiet``."""
    bin_dir = found.python.parent
    # An activated environment: AMLB's `setup_cmd` calls the `pip` that stands first on PATH.
    environment: dict[str, Any] = {
        **os.environ,
        "PATH": os.pathsep.join([str(bin_dir), os.environ.get("PATH", os.defpath)]),
        "PYTHONPATH": str(asset("resources", "amlb_sitecustomize")),
        "PYTHONUNBUFFERED": "1",
    }
    environment.pop("PYTHONHOME", None)
    environment.pop("VIRTUAL_ENV", None)
    if (bin_dir.parent / "pyvenv.cfg").is_file():
        environment["VIRTUAL_ENV"] = str(bin_dir.parent)
    with log.open("w", encoding="utf-8") as sink:
        try:
            process = subprocess.Popen(
                list(command),
                cwd=found.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise RunError(f"cannot start {command[0]}: {error.strerror}", "check --amlb") from None
        assert process.stdout is not None
        # A thread, so that a stray grandchild that keeps the pipe open cannot hold us up.
        reader = threading.Thread(
            target=_copy, args=(process.stdout, sink, quiet), daemon=True, name="amlb-output"
        )
        reader.start()
        try:
            process.wait()
        except BaseException as stop:
            if not isinstance(stop, KeyboardInterrupt):  # Ctrl-C reaches AMLB by itself
                process.terminate()
            try:
                process.wait(timeout=GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            raise
        finally:
            reader.join(timeout=10)
            if not reader.is_alive():
                process.stdout.close()
    return process.returncode


def _copy(source: IO[str], sink: IO[str], quiet: bool) -> None:
    for line in source:
        if sink.closed:
            return
        sink.write(line)
        if not quiet:
            sys.stderr.write(printable(line))
            sys.stderr.flush()
