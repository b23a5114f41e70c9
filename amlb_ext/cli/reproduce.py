"""``hardsynth reproduce``: the paper's tables and figures, beside the printed numbers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.core.display import text_table

if TYPE_CHECKING:
    from amlb_ext.experiments.reproduce import Result

Add = Callable[[argparse.ArgumentParser], None]
NAMES = (
    "table-1, table-a1, table-a2, table-a3, figure-3 to figure-8, all; of the seed paper "
    "osyn-table-1, osyn-table-2, osyn-table-3, osyn-table-7, osyn-cost, osyn (all five)"
)


def add_reproduce(commands: Any, jobs: Add, output: Add) -> None:
    """Add the command to the parser of all commands.

    Parameters
    ----------
    commands : argparse's subparsers
    jobs, output : callable
        Add the flags that every command shares.
    """
    command = commands.add_parser(
        "reproduce",
        help="run the paper's tables and figures",
        description="Run tables and figures of the paper the method comes from and set our "
        "numbers beside the printed ones, in CSV, Markdown and one page. The same command "
        "continues an interrupted run.",
    )
    command.add_argument("names", nargs="+", metavar="NAME", help=NAMES)
    command.add_argument(
        "-o", "--out", default="reproduced", metavar="DIR", help="default: reproduced"
    )
    command.add_argument(
        "--splits",
        type=int,
        metavar="N",
        help="in place of the paper's 31; the first N of them (osyn: repetitions)",
    )
    command.add_argument(
        "--data",
        metavar="DIR",
        help="folder of housing.csv and the diabetes file; osyn: of adult/, bank/, bike/",
    )
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another setting (search.kappa=0.3) or reading (pool=test, with_bad=true, "
        "fitness=label, learning_rate=0.1, by_area=true, sample=1, balanced=false); osyn: "
        "rows=20000, generator=vae, b=2, ...; repeat it",
    )
    command.add_argument(
        "--no-certificates",
        action="store_true",
        help="leave out the suites and certificates beside the tables",
    )
    jobs(command)
    output(command)


def reproduce(arguments: argparse.Namespace) -> int:
    """Run it; see :func:`amlb_ext.experiments.reproduce`. Exit status 1: something was left out."""
    from amlb_ext.experiments import reproduce as run
    from amlb_ext.experiments.paper.settings import read_changes
    from amlb_ext.suite.sealed_json import json_text

    results = run(
        arguments.names,
        Path(arguments.out),
        splits=arguments.splits,
        data=Path(arguments.data).expanduser() if arguments.data else None,
        changes=read_changes(arguments.set),
        certify=not arguments.no_certificates,
        workers=arguments.jobs,
        quiet=arguments.quiet or arguments.json,
    )
    if arguments.json:
        print(json_text([result.to_json() for result in results]), end="")
    elif not arguments.quiet:
        print(_text(results))
        print(f"\nwritten: {Path(arguments.out) / 'index.html'}")
    return 1 if any(result.left_out for result in results) else 0


def _text(results: list[Result]) -> str:
    """Return every table cell by cell, then one line per name."""
    from amlb_ext.experiments.agreement import count_verdicts

    shown = [r.markdown for r in results if r.markdown]
    headers = ["what", "splits", "G", "within", "outside", "processor s", "left out"]
    rows = []
    for result in results:
        found = count_verdicts(result.cells)
        told = (found["within"], found["outside"]) if len(result.cells) else ("", "")
        left = "; ".join(f"{name}: {why}" for name, why in result.left_out.items())
        seconds = round(result.seconds, 1)
        rows.append([result.name, result.splits, result.candidate, *told, seconds, left])
    return "\n".join([*shown, text_table(headers, rows)])
