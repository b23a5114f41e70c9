"""``hardsynth gate``: may a candidate replace F? An exit status for CI."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.command import Form, Jobs, Parts, Suite, command
from amlb_ext.cli.compare import COMPARISON, compare_rows, read_candidates
from amlb_ext.cli.display import Answer
from amlb_ext.cli.settings import ORDER_SETTINGS, READING_SETTINGS
from amlb_ext.cli.terminal import print_commands
from amlb_ext.cli.values import Share, named_files
from amlb_ext.core.checked_call import Level
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import (
    check_file,
    check_predictions_file,
    check_suite_folder,
    is_suite_folder,
)

if TYPE_CHECKING:
    from amlb_ext.gate.checks import GateResult

#: Variable of the environment with the key that records are signed with.
KEY = "HARDSYNTH_GATE_KEY"


_FORMS = [
    Form(
        where="with --check",
        holds=itemgetter("check"),
        only=("check", "junit", "annotate"),
        instead="leave it out: the record has it",
    ),
    Form(
        where="on a suite",
        holds=lambda given: not given["check"] and is_suite_folder(given["suite"]),
        only=(
            *("the need", "results", "predictions", "candidate", "baseline", "task"),
            *("loss", "level", "junit", "annotate", "segment", "max_flips", "refits"),
        ),
        instead="leave it out: how rows are read and which are bad was settled by hardsynth "
        "generate; hardsynth gate TABLE takes it",
    ),
    Form(
        where="on a table",
        holds=lambda given: given["suite"].is_file(),
        unused=("results", "predictions", "task"),
        instead="name models or predictions with --baseline and --candidate",
    ),
    Form(
        where="with --need better",
        holds=lambda given: given["need"] == "better",
        unused=("segment",),
        instead="add --need not-worse",
    ),
]


@command(
    group="daily",
    forms=_FORMS,
    of={"the need": "amlb_ext.gate.checks.check_gate", **COMPARISON},
    without=(
        "answer",
        "table",
        "candidates",
        "tasks",
        "data",
        "config",
        "segments",
        "max_flips",
        "unit",
        "swaps",
    ),
    settings=READING_SETTINGS | ORDER_SETTINGS,
    everyday={
        "what is needed": (
            "need",
            "where",
            "margin",
            "no_harm",
            "max_flips",
            "segment",
            "candidate",
        ),
        "on a table": ("suite", "target", "baseline", "train"),
        "on a suite": ("results", "predictions"),
        "output": ("junit", "record", "check", "quiet", "json"),
    },
)
def gate(
    suite: Suite,
    *,
    target: str | None = None,
    baseline: str | None = None,
    candidate: Sequence[str] = (),
    level: Level = 0.95,
    results: Sequence[str] = (),
    predictions: Sequence[str] = (),
    task: Sequence[str] = (),
    segment: Sequence[str] = (),
    max_flips: Share | None = None,
    record: Path | None = None,
    check: bool = False,
    junit: Path | None = None,
    annotate: bool = False,
    jobs: Jobs = 0,
    quiet: bool = False,
    json: bool = False,
    settings: dict[str, Any],
    parts: Parts,
) -> Answer:
    """Decide in CI, by an exit status, whether a candidate may replace F.

    Compare a candidate with F, on a table as 'hardsynth compare' does, or on a suite as 'hardsynth
    report' does. Exit status 0: the candidate passes. 1: it fails. 3: no claim is possible on these
    rows. 2: wrong usage.

    Parameters
    ----------
    suite : SUITE|TABLE|RECORD
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
    segment : COLUMN|CONDITION
        a group of rows that must not get worse, either, where --need is not-worse; repeat the flag
        for several
    max_flips : SHARE
        also needed: at most so many rows, e.g. 2%, are shown to be right under F and
        wrong under the candidate
    record : FILE
        for a table: write a sealed record of models, table, settings and outcome; signed with the
        key in HARDSYNTH_GATE_KEY, if that is set
    check : bool
        repeat the gate of a record, which is named in place of the table: the files must be the
        same, and so must every outcome and figure
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
    need = {**parts["the need"], "max_flips": max_flips}
    options = parts["how"]
    commands: tuple[str, ...] = ()
    differing: list[str] = []
    if check:
        checked, differing = _repeat(suite)
    elif suite.is_dir():
        check_suite_folder(suite)
        named = named_files(predictions, "--predictions")
        for file in named.values():
            check_predictions_file(Path(file))
        from amlb_ext.gate.suites import check_suite

        checked, commands = check_suite(
            suite,
            predictions={name: Path(file) for name, file in named.items()},
            baseline=baseline,
            candidates=candidate,
            tasks=task,
            results=results,
            loss=options["loss"],
            segments=segment,
            refits=options["refits"],
            workers=jobs,
            level=level,
            quiet=quiet,
            **need,
        )
    else:
        wanted = {"target": target, "baseline": baseline, "candidate": candidate}
        for flag, given in wanted.items():
            if not given:
                raise ConfigError(
                    f"a table needs --{flag}",
                    "hardsynth gate TABLE --target NAME --baseline FILE --candidate FILE",
                )
        how: dict[str, Any] = {
            "target": target,
            "baseline": baseline,
            "candidates": read_candidates(candidate),
            "need": need,
            "settings": settings,
            "how": {**options, "level": level, "segments": list(segment)},
        }
        checked = _gate_of_table(suite, quiet=quiet, **how)
        if record is not None:
            _write_record(record, suite, checked, how)
    from amlb_ext.core.files import write_text
    from amlb_ext.core.json_values import to_json_values
    from amlb_ext.gate.checks import EXIT_STATUS, github_annotations, junit_xml

    if junit:
        write_text(junit, junit_xml(checked))
    if annotate or os.environ.get("GITHUB_ACTIONS") == "true":
        # JSON on standard output stays JSON; the runner reads both streams
        print_commands(github_annotations(checked), sys.stderr if json else sys.stdout)
    lines = [f"results are missing: {line}" for line in commands]
    lines += [f"not as recorded: {line}" for line in differing]
    if check and not differing:
        lines.append("as recorded: files, outcomes and figures are the same")
    entry = {
        "outcome": checked.outcome,
        **to_json_values(checked, omit=("unit", "verb")),
    }
    if commands:
        entry["commands"] = list(commands)
    return Answer(
        lambda: checked.text() + "\n".join(lines),
        lambda: entry,
        status=1 if differing else EXIT_STATUS[checked.outcome],
    )


def _gate_of_table(
    table: Path,
    *,
    target: str,
    baseline: str,
    candidates: dict[str, str],
    need: dict[str, Any],
    settings: dict[str, Any],
    how: dict[str, Any],
    quiet: bool,
) -> GateResult:
    """Compare models on a table, and hold them against the need."""
    from amlb_ext.gate.checks import check_gate

    answer = compare_rows(
        table, target, baseline, candidates, settings=settings, quiet=quiet, **how
    )
    return check_gate(answer, data=table.name, **need)


def _write_record(
    path: Path, table: Path, checked: GateResult, how: dict[str, Any]
) -> None:
    """Write what was compared and what came out."""
    from amlb_ext.core.json_values import to_json_values
    from amlb_ext.gate.record import write_record

    files = {"table": str(table), "F": how["baseline"], **how["candidates"]}
    if how["how"]["train"] is not None:
        files["train"] = str(how["how"]["train"])
    write_record(
        path,
        checked,
        files=files,
        settings={"table": str(table), **to_json_values(how)},
        key=os.environ.get(KEY, "").encode(),
    )


def _repeat(path: Path) -> tuple[GateResult, list[str]]:
    """Repeat the gate of a record; return also what comes out otherwise."""
    from amlb_ext.gate.record import differences, read_record

    content = read_record(path, os.environ.get(KEY, "").encode())
    stored = dict(content["settings"])
    how = dict(stored.pop("how"))
    if how["train"] is not None:
        how["train"] = Path(how["train"])
    checked = _gate_of_table(Path(stored.pop("table")), **stored, how=how, quiet=True)
    return checked, differences(content, checked)
