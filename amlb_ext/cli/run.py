"""``hardsynth run``: the AutoML Benchmark on a suite."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amlb_ext.cli.command import command
from amlb_ext.cli.display import Answer
from amlb_ext.cli.verify import check_verified
from amlb_ext.core.checked_call import CountOrNone
from amlb_ext.core.paths import check_suite_folder, is_suite_folder


@command(group="benchmark")
def run(
    framework: str,
    constraint: str | None = None,
    *,
    userdir: Path,
    benchmark: str | None = None,
    task: Sequence[str] = (),
    fold: Sequence[CountOrNone] = (),
    results: Path = Path("results"),
    amlb: str | None = None,
    python: str | None = None,
    unverified: bool = False,
    quiet: bool = False,
    extra: Sequence[str] = (),
) -> Answer:
    """Run the AutoML Benchmark on a suite.

    Find or install AMLB, run a framework on the suite, and list the jobs that have no score. AMLB
    executes code that stands in the suite, so a suite that hardsynth verify does not pass is not
    run. Everything after -- is passed to runbenchmark.py unchanged. Exit status 1: at least one job
    has no score.

    Parameters
    ----------
    framework : FRAMEWORK
        name of the framework, as runbenchmark.py takes it
    constraint : CONSTRAINT
        a constraint of AMLB or of the suite (default: test)
    userdir : DIR
        the suite's folder
    benchmark : NAME
        benchmark definition to run (default: the suite's main definition), or several, ONE+TWO,
        which are run one after another, what they share once
    task : TASK
        run this task only
    fold : FOLD
        run this fold only
    results : DIR
        folder for the results of AMLB, its option -o
    amlb : DIR
        AMLB checkout (default: $AMLB_HOME, or else a new clone)
    python : FILE
        the Python interpreter with the requirements of AMLB installed
    unverified : bool
        run although hardsynth verify does not pass the folder: whatever code and commands are in it
        are executed

    Examples
    --------
    $ hardsynth run RandomForest -u hard -r results
    """
    # an export, which has no manifest, has AMLB's configuration
    if not (userdir / "config.yaml").is_file():
        check_suite_folder(userdir)
    from amlb_ext.runner import run_benchmarks

    if not unverified:
        check_verified(userdir, "run")
    benchmarks = _find_definitions(userdir, benchmark, results.absolute())
    outcomes = run_benchmarks(
        framework,
        benchmarks,
        constraint,
        userdir=userdir,
        outdir=results,
        tasks=tuple(task),
        folds=tuple(fold),
        amlb=amlb,
        python=python,
        extra=tuple(extra),
        quiet=quiet,
    )
    is_ok = all(outcome.ok for outcome in outcomes)

    def entry() -> dict[str, Any]:
        entries = [_outcome_entry(outcome) for outcome in outcomes]
        return entries[0] if len(entries) == 1 else {"runs": entries, "ok": is_ok}

    return Answer(
        lambda: "\n".join(outcome.summary() for outcome in outcomes),
        entry,
        status=0 if is_ok else 1,
        # jobs without a score are errors
    )


def _find_definitions(userdir: Path, benchmark: str | None, results: Path) -> list[str]:
    """Return definitions that AMLB can run where the suite stands now.

    Those of a suite that was moved are put right, so AMLB started by hand finds its files, too.
    """
    from amlb_ext.publish.export.folder import exported_suite_name
    from amlb_ext.suite import open_suite
    from amlb_ext.suite.place import follow_move, runnable_definition

    # an export has no manifest to load a suite from, but a record that names its definition
    exported = exported_suite_name(userdir)
    if exported or (benchmark and not is_suite_folder(userdir)):
        return split_benchmarks(benchmark or exported)
    suite = open_suite(userdir)
    names = split_benchmarks(benchmark or suite.name)
    if written := follow_move(suite):
        print(
            f"{userdir.name} was moved: {', '.join(written)} name its new place",
            file=sys.stderr,
        )
    return [runnable_definition(suite, name, results) for name in names]


def split_benchmarks(benchmark: str) -> list[str]:
    """Return the definitions that ``-b`` names.

    Examples
    --------
    >>> split_benchmarks("mine_hard+hardsynth_mine"), split_benchmarks("mine")
    (['mine_hard', 'hardsynth_mine'], ['mine'])
    """
    # The path of a file may have the sign in it.
    if Path(benchmark).is_file():
        return [benchmark]
    names = [name for name in benchmark.split("+") if name]
    return list(dict.fromkeys(names)) or [benchmark]


def _outcome_entry(outcome: Any) -> dict[str, Any]:
    """Return a run's outcome for JSON, which lacks tables."""
    rows = outcome.rows.to_dict(orient="records")
    entry = dataclasses.asdict(outcome)
    return {**entry, "log": outcome.log, "rows": rows, "ok": outcome.ok}
