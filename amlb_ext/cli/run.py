"""``hardsynth run``: the AutoML Benchmark on a suite. ``score``: F and a candidate without it."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amlb_ext.cli.command import Jobs, Suite, command
from amlb_ext.cli.display import Answer
from amlb_ext.cli.verify import check_verified
from amlb_ext.core.checked_call import CountOrNone
from amlb_ext.core.display import text_table
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
        entries = []
        for outcome in outcomes:
            rows = outcome.rows.to_dict(orient="records")
            own = {**dataclasses.asdict(outcome), "log": outcome.log, "rows": rows}
            own["ok"] = outcome.ok
            entries.append(own)
        return entries[0] if len(entries) == 1 else {"runs": entries, "ok": is_ok}

    return Answer(
        lambda: "\n".join(outcome.summary() for outcome in outcomes),
        entry,
        status=0 if is_ok else 1,
    )


def _find_definitions(userdir: Path, benchmark: str | None, results: Path) -> list[str]:
    """Return definitions that AMLB can run where the suite stands now."""
    from amlb_ext.publish.export.folder import exported_suite_name
    from amlb_ext.suite import open_suite
    from amlb_ext.suite.shared_files import runnable_definition

    # an export has no manifest to load a suite from, but a record that names its definition
    exported = exported_suite_name(userdir)
    if exported or (benchmark and not is_suite_folder(userdir)):
        return split_benchmarks(benchmark or exported)
    suite = open_suite(userdir)
    names = split_benchmarks(benchmark or suite.name)
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


@command(group="benchmark", flag_names={"out": "--out"})
def score(
    suite: Suite,
    *,
    out: Path | None = None,
    results: Path | None = None,
    hard: bool = False,
    trust_suite: bool = False,
    jobs: Jobs = 0,
    quiet: bool = False,
) -> Answer:
    """Score F, its null and a candidate without AMLB.

    Fit the suite's own integrations on its training files and print their mean loss on every part:
    F, the null (F with another seed) and a candidate. Lower is better.

    Parameters
    ----------
    out : FILE
        also write the loss of every fold as CSV
    results : DIR
        also write predictions as AMLB does, for 'hardsynth report'
    hard : bool
        also score the _hard tasks, which take longer

    Examples
    --------
    $ hardsynth score hard -r results
    """
    check_suite_folder(suite)
    from amlb_ext.core.files import write_file
    from amlb_ext.runner import compare_scores, summarise_scores
    from amlb_ext.runner.agreement import alarm_text
    from amlb_ext.runner.score import HOW_TO_READ

    compared = compare_scores(
        suite,
        workers=jobs,
        quiet=quiet,
        with_hard=hard,
        results=results,
        trusted=trust_suite,
    )
    # standard error, since standard output may be read as JSON
    if compared.disagreements:
        alarm = alarm_text("HardsynthBaseline as fitted here", compared.disagreements)
        remedy = "generate the suite again with this version of hardsynth"
        print(f"ALARM: {alarm}; {remedy}.", file=sys.stderr)
    if out:
        write_file(out, lambda part: compared.table.to_csv(part, index=False))
    summary = summarise_scores(compared.table)

    def text() -> str:
        table = text_table(list(summary.columns), summary.values.tolist())
        # the numbers mislead without the explanation, so both are always printed
        return f"{table}\n\n{HOW_TO_READ}"

    return Answer(text, lambda: summary.to_dict(orient="records"))
