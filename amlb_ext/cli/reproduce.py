"""``hardsynth reproduce``: the paper's tables and figures, beside the printed numbers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.flags import add_jobs_flag, add_output_flags, is_quiet
from amlb_ext.core.display import text_table

if TYPE_CHECKING:
    from amlb_ext.experiments.reproduce import Result
NAMES = (
    "table-1, table-a1, table-a2, table-a3, figure-3 to figure-8, all; of the seed paper "
    "osyn-table-1, osyn-table-2, osyn-table-3, osyn-table-7, osyn-cost, osyn (all five)"
)


def add(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "reproduce",
        help="run the paper's tables and figures",
        description="Run tables and figures of the paper that the method comes from, and write our "
        "numbers beside the printed ones as CSV, Markdown and one page. Run the same command again "
        "to continue an interrupted run. Exit status 1: something was left out.",
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help=NAMES)
    parser.add_argument(
        "-o",
        "--out",
        default="reproduced",
        metavar="DIR",
        help="folder to write to (default: reproduced)",
    )
    parser.add_argument(
        "--splits",
        type=int,
        metavar="N",
        help="run the first N splits only (default: the paper's 31; osyn: repetitions)",
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="folder that holds housing.csv and the diabetes file; osyn: adult/, bank/ and bike/",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another setting (search.kappa=0.3) or reading (pool=test, with_bad=true, "
        "fitness=label, learning_rate=0.1, by_area=true, sample=1, balanced=false); osyn: "
        "rows=20000, generator=vae, b=2, ...; repeat the flag for several",
    )
    parser.add_argument(
        "--no-certificates",
        action="store_true",
        help="do not write suites and certificates beside the tables",
    )
    add_jobs_flag(parser)
    add_output_flags(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run it; see :func:`amlb_ext.experiments.reproduce`. Exit status 1: something was left out."""
    from amlb_ext.experiments import reproduce
    from amlb_ext.experiments.paper.settings import read_changes
    from amlb_ext.suite.sealed_json import json_text

    results = reproduce(
        arguments.names,
        Path(arguments.out),
        splits=arguments.splits,
        data=Path(arguments.data).expanduser() if arguments.data else None,
        changes=read_changes(arguments.set),
        certify=not arguments.no_certificates,
        workers=arguments.jobs,
        quiet=is_quiet(arguments),
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
        rows.append(
            [result.name, result.splits, result.candidate, *told, seconds, left]
        )
    return "\n".join([*shown, text_table(headers, rows)])
