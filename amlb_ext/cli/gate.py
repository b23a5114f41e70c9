"""``hardsynth gate``: may a candidate replace F? An exit status for CI."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from amlb_ext.cli.command import Jobs, Suite, command
from amlb_ext.cli.compare import (
    COMPARISON,
    compare_rows,
    comparison_options,
    read_candidates,
)
from amlb_ext.cli.display import print_json
from amlb_ext.cli.settings import ORDER_SETTINGS, READING_SETTINGS
from amlb_ext.cli.terminal import print_commands
from amlb_ext.cli.values import named_files
from amlb_ext.core.checked_call import Level
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import (
    check_file,
    check_predictions_file,
    check_suite_folder,
)

if TYPE_CHECKING:
    pass


@command(
    group="daily",
    of={"the need": "amlb_ext.gate.checks.check_gate", **COMPARISON},
    without=("answer", "table", "candidates", "tasks", "data", "config"),
    settings=READING_SETTINGS | ORDER_SETTINGS,
    everyday={
        "what is needed": ("need", "where", "margin", "candidate"),
        "on a table": ("suite", "target", "baseline", "train"),
        "on a suite": ("results", "predictions", "task"),
        "output": ("junit", "annotate", "quiet", "json"),
    },
)
def gate(
    suite: Suite,
    *,
    target: str | None = None,
    baseline: str | None = None,
    candidate: Sequence[str] = (),
    margin: Annotated[float, Field(gt=0, lt=1)] = 0.05,
    level: Level = 0.95,
    results: Sequence[str] = (),
    predictions: Sequence[str] = (),
    task: Sequence[str] = (),
    junit: Path | None = None,
    annotate: bool = False,
    jobs: Jobs = 0,
    quiet: bool = False,
    json: bool = False,
    settings: dict[str, Any],
    **options: Any,
) -> int:
    """Decide in CI, by an exit status, whether a candidate may replace F.

    Compare a candidate with F, on a table as 'hardsynth compare' does, or on a suite as 'hardsynth
    report' does. Exit status 0: the candidate passes. 1: it fails. 3: no claim is possible on these
    rows. 2: wrong usage.

    Parameters
    ----------
    suite : SUITE|TABLE
        a suite's folder, or a file of labelled rows that no model has seen
    target : NAME
        for a table: column to predict
    baseline : FILE
        the current model F, or its predictions, as in 'hardsynth compare'; not for a suite, which
        has its own F
    candidate : [NAME=]FILE
        a model that might replace F, or its predictions; for a suite, the name of a framework in
        its results or predictions (default: all); repeat the flag for several
    results : OUT
        for a suite: output folders of AMLB
    predictions : [NAME=]FILE
        for a suite: predictions for its test rows, as in 'hardsynth report'
    task : NAME
        for a suite: a task on which the candidate must pass (default: all); repeat the flag
    junit : FILE
        also write the checks as a JUnit XML file
    annotate : bool
        print annotations for GitHub Actions (default: if GITHUB_ACTIONS is set)

    Examples
    --------
    $ hardsynth gate new.csv --target churn --baseline deployed.skops --candidate \
boosting=boosting.skops --need not-worse --junit gate.xml
    $ hardsynth gate hard --predictions boosting=boosting.csv --need better --where failures
    """
    check_file(suite)
    need = {
        "need": options.pop("need"),
        "where": options.pop("where"),
        "margin": margin,
    }
    commands: tuple[str, ...] = ()
    if suite.is_dir():
        check_suite_folder(suite)
        files = {
            name: Path(file)
            for name, file in named_files(predictions, "--predictions").items()
        }
        for path in files.values():
            check_predictions_file(path)
        from amlb_ext.gate.suites import check_suite

        checked, commands = check_suite(
            suite,
            baseline=baseline,
            candidates=candidate,
            tasks=task,
            results=results,
            predictions=files,
            workers=jobs,
            level=level,
            quiet=quiet or json,
            **need,
        )
    else:
        for flag, given in {
            "results": results,
            "predictions": predictions,
            "task": task,
        }.items():
            if given:
                raise ConfigError(
                    f"--{flag} is for a suite, and {suite} is a table",
                    "name models or predictions with --baseline and --candidate",
                )
        for flag, value in {
            "target": target,
            "baseline": baseline,
            "candidate": candidate,
        }.items():
            if not value:
                raise ConfigError(
                    f"a table needs --{flag}",
                    "hardsynth gate TABLE --target NAME --baseline FILE --candidate FILE",
                )
        from amlb_ext.gate.checks import check_gate

        answer = compare_rows(
            suite,
            str(target),
            str(baseline),
            read_candidates(candidate),
            settings=settings,
            level=level,
            quiet=quiet or json,
            **comparison_options(options),
        )
        checked = check_gate(answer, data=suite.name, **need)
    from amlb_ext.core.files import write_text
    from amlb_ext.core.json_values import to_json_values
    from amlb_ext.gate.checks import EXIT_STATUS, github_annotations, junit_xml

    if junit:
        write_text(junit, junit_xml(checked))
    if json:
        entry = {"outcome": checked.outcome, **to_json_values(checked, omit=("unit",))}
        print_json({**entry, "commands": list(commands)} if commands else entry)
    elif not quiet:
        print(checked.text(), end="")
        for line in commands:
            print(f"results are missing: {line}")
    if annotate or os.environ.get("GITHUB_ACTIONS") == "true":
        # JSON on standard output stays JSON; the runner reads both streams
        print_commands(github_annotations(checked), sys.stderr if json else sys.stdout)
    return EXIT_STATUS[checked.outcome]
