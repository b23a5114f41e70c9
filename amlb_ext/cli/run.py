"""``hardsynth run``: the AutoML Benchmark on a suite."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from pathlib import Path
from typing import Any

from amlb_ext.cli.display import print_json
from amlb_ext.cli.flags import add_output_flags, is_quiet
from amlb_ext.cli.numbers import whole_number
from amlb_ext.cli.series_suites import load_series_suite, runnable_definitions
from amlb_ext.core.errors import RunError
from amlb_ext.core.paths import check_suite_folder


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "run",
        help="run the AutoML Benchmark on a suite",
        examples="hardsynth run RandomForest -u hard -r results",
        description="Find or install AMLB, run a framework on the suite, and list the jobs that "
        "have no score. AMLB executes code that stands in the suite, so a suite that hardsynth "
        "verify does not pass is not run. Everything after -- is passed to runbenchmark.py "
        "unchanged. Exit status 1: at least one job has no score.",
    )
    parser.add_argument(
        "framework",
        metavar="FRAMEWORK",
        help="name of the framework, as runbenchmark.py takes it",
    )
    parser.add_argument(
        "constraint",
        metavar="CONSTRAINT",
        nargs="?",
        help="a constraint of AMLB or of the suite (default: test)",
    )
    parser.add_argument(
        "-u", "--userdir", required=True, metavar="DIR", help="the suite's folder"
    )
    parser.add_argument(
        "-b",
        "--benchmark",
        metavar="NAME",
        help="benchmark definition to run (default: the suite's main definition), or several, "
        "ONE+TWO, which are run one after another, what they share once",
    )
    parser.add_argument(
        "-t",
        "--task",
        action="append",
        default=[],
        metavar="TASK",
        help="run this task only; repeat the flag for several",
    )
    parser.add_argument(
        "-f",
        "--fold",
        action="append",
        default=[],
        type=whole_number(0),
        metavar="FOLD",
        help="run this fold only; repeat the flag for several",
    )
    parser.add_argument(
        "-r",
        "--results",
        metavar="DIR",
        default="results",
        help="folder for the results of AMLB, its option -o (default: results)",
    )
    parser.add_argument(
        "--amlb",
        metavar="DIR",
        help="AMLB checkout (default: $AMLB_HOME, or else a new clone)",
    )
    parser.add_argument(
        "--python",
        metavar="FILE",
        help="Python interpreter with the requirements of AMLB installed",
    )
    parser.add_argument(
        "--unverified",
        action="store_true",
        help="run although hardsynth verify does not pass the folder: whatever code and commands "
        "are in it are executed",
    )
    add_output_flags(parser)
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Run AMLB on a suite; see :func:`amlb_ext.runner.run_benchmarks`."""
    userdir = Path(arguments.userdir)
    # an export, which has no manifest, has AMLB's configuration
    if not (userdir / "config.yaml").is_file():
        check_suite_folder(userdir)
    from amlb_ext.publish.export.folder import exported_suite_name
    from amlb_ext.runner import run_benchmarks
    from amlb_ext.suite import SuiteFiles
    from amlb_ext.suite.task_folder import is_task_folder, read_task_folder

    if not arguments.unverified:
        _check_verified(userdir)
    extra = list(arguments.extra)
    series = load_series_suite(userdir)
    # An export has no manifest to load a suite from, but a record that names its definition.
    benchmark = (
        arguments.benchmark
        or (series and series.name)
        or exported_suite_name(userdir)
        or (read_task_folder(userdir).name if is_task_folder(userdir) else "")
        or SuiteFiles.load(userdir).manifest.name
    )
    benchmarks = split_benchmarks(benchmark)
    if series is not None:
        results = Path(arguments.results).absolute()
        benchmarks = runnable_definitions(series, benchmarks, results)
        # AMLB keeps the splits of series by the task's name alone, wherever the file stands
        if not {"-i", "--indir"} & set(extra):
            extra += ["-i", str(results / "input")]
    outcomes = run_benchmarks(
        arguments.framework,
        benchmarks,
        arguments.constraint,
        userdir=userdir,
        outdir=Path(arguments.results),
        tasks=tuple(arguments.task),
        folds=tuple(arguments.fold),
        amlb=arguments.amlb,
        python=arguments.python,
        extra=tuple(extra),
        quiet=is_quiet(arguments),
    )
    is_ok = all(outcome.ok for outcome in outcomes)
    if arguments.json:
        entries = [_outcome_entry(outcome) for outcome in outcomes]
        print_json(entries[0] if len(entries) == 1 else {"runs": entries, "ok": is_ok})
    # With --quiet, too: jobs without a score are errors.
    elif not arguments.quiet or not is_ok:
        for outcome in outcomes:
            print(outcome.summary())
    return 0 if is_ok else 1


def _check_verified(userdir: Path) -> None:
    """Raise where AMLB would execute what ``verify`` does not pass.

    Raises
    ------
    RunError
        It names the first problem.
    """
    from amlb_ext.cli.verify import verify_folder
    from amlb_ext.suite.folder_faults import WARNING

    problems = []
    # AMLB gets definitions that name the place where a suite of series stands now
    for finding in verify_folder(userdir, where_it_stands=False):
        if not finding.startswith(WARNING):
            problems.append(finding)
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise RunError(
            f"{userdir} is not run, since hardsynth verify does not pass it: {problems[0]}{more}",
            f"hardsynth verify {shlex.quote(str(userdir))} lists all; where you trust whatever "
            "stands there: --unverified",
        )


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
    return {**dataclasses.asdict(outcome), "rows": rows, "ok": outcome.ok}
